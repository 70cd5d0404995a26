//! Owns how many workgroups a compute unit holds at once.

/// What a workgroup takes of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residence {
    /// Waves of a workgroup
    pub waves: u32,
    /// Vector registers of a lane, those for accumulation among them
    pub registers: u32,
    /// Scalar registers of a wave
    pub scalars: u32,
    /// LDS bytes of a workgroup
    pub lds: u32,
    /// Private bytes of a lane
    pub scratch: u32,
}

impl Residence {
    /// Workgroups that fit: four SIMDs with 512 vector registers a lane in blocks of 8, 800 scalar
    /// registers and 8 waves each; 64 KiB of LDS in blocks of 512 bytes; barriers for 16 workgroups
    /// of more than one wave.
    ///
    /// A damaged code object may claim any figure: more than there is counts as all of it.
    #[must_use]
    pub fn workgroups(self) -> u32 {
        let by_registers = 512 / self.registers.clamp(1, 512).next_multiple_of(8);
        let by_scalars = if self.scalars > 100 { 7 } else { 8 };
        let waves = 4 * by_registers.min(by_scalars).max(1);
        let by_lds = match self.lds {
            0 => u32::MAX,
            lds => 65536 / lds.min(65536).next_multiple_of(512),
        };
        let by_barriers = if self.waves > 1 { 16 } else { u32::MAX };
        (waves / self.waves.max(1)).min(by_lds).min(by_barriers).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_damaged_code_object_leave_one_workgroup() {
        let whole = u32::MAX;
        let residence = Residence {
            waves: whole,
            registers: whole,
            scalars: whole,
            lds: whole,
            scratch: whole,
        };
        assert_eq!(residence.workgroups(), 1);
    }
}
