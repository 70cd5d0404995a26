//! Occupancy: the number of workgroups that a compute unit holds at once.

/// The resources that a workgroup needs of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residence {
    /// Number of waves per workgroup
    pub waves: u32,
    /// Vector registers per lane, including accumulation registers
    pub registers: u32,
    /// Scalar registers per wave
    pub scalars: u32,
    /// LDS bytes per workgroup
    pub lds: u32,
    /// Private memory per lane, in bytes
    pub scratch: u32,
}

impl Residence {
    /// Returns the number of workgroups that fit. A compute unit has four SIMDs, each with 512
    /// vector registers per lane in blocks of 8, 800 scalar registers and 8 waves; 64 KiB of LDS in
    /// blocks of 512 bytes; and barriers for 16 workgroups of more than one wave.
    ///
    /// A damaged code object may claim any number: claims above the hardware's limit count as the
    /// limit.
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
