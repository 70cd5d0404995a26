//! The machines: constants of the products, and the parameters of the power model.

use crate::Operands;

/// A GPU product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name, as in the compiler's targets
    pub name: &'static str,
    /// Number of dies (XCDs), to which workgroups are dispatched in turn
    pub dies: u32,
    /// Number of compute units on all dies
    pub units: u32,
    /// Highest clock in GHz
    pub clock: f64,
    /// Bandwidth of the second-level caches of all dies, in bytes per nanosecond
    pub near: f64,
    /// Bandwidth of Infinity Cache, in bytes per nanosecond
    pub cached: f64,
    /// Bandwidth of Infinity Cache in AMD's documents, in bytes per nanosecond
    pub peak_cached: f64,
    /// Size of Infinity Cache in bytes
    pub cache: u64,
    /// Sustained memory bandwidth, in bytes per nanosecond
    pub memory: f64,
    /// Memory bandwidth in the data sheet, in bytes per nanosecond
    pub peak_memory: f64,
    /// f16 rate of the matrix units in the data sheet, in TFLOP/s
    pub peak_f16: f64,
    /// Rates in TFLOP/s that the vendor's best kernels sustain at the machine's power limit: bf16,
    /// f16, and 8 bits
    pub sustained: [f64; 3],
    /// Clocks in GHz at which they sustain these rates
    pub sustained_clocks: [f64; 3],
    /// Highest share of the sustained rates that other kernels reach
    pub reached: [f64; 3],
    /// Power limit in watts, if it was looked up
    pub watts: Option<f64>,
}

/// Exponent of the clock in the power that a machine draws. The MI325X has the dies of the MI300X
/// and a limit of 1000 W instead of 750 W, and AMD's kernels reach 1.19, 1.21 and 1.19 times the
/// rate there in bf16, f16 and FP8 (the page cited at [`MI300X`], whose notes also give the
/// limits): ln(1000 / 750) / ln(1.20). From the clocks on that page it would be 1.57.
const POWER: f64 = 1.58;

/// Power of all vector units, as a share of the power of all matrix units in bf16. Clocks were
/// derived from counters of attention kernels that are not predicted here: the rate, divided by the
/// share of the peak that the use of the matrix units allows. AITER's kernels (for 64 columns
/// Composable Kernel's) and AOTriton's, for 16384 rows and heads of 128 and 64 columns
/// (data/measured/triton-attention.csv), run at 1.14, 1.38, 1.58 and 1.63 GHz. From AITER's times
/// the copy of the result is subtracted, at the bandwidth of [`MI300X`]. With the vector work of
/// this project's Triton kernel, 0.94 and 1.6 clocks per clock of matrix work, [`Machine::stretch`]
/// gives these clocks for shares of 0.46, 0.51, 1.01 and 0.74. This constant is their mean.
const VECTOR: f64 = 0.68;

/// [`Machine::reached`] for published rates: the published maximum is that of hand-written kernels,
/// tuned for the one size at which it was measured.
const REACHED: f64 = 0.85;

/// Bandwidth of a die of 38 units from its second-level cache, in bytes per nanosecond: 16.8 TB/s
/// for eight dies (published: 15 read, 17 in Origami's tables). [`crate::Parameters::bandwidth`] is
/// the fitted share of it.
const DIE: f64 = 2100.0;

/// The MI300X: 8 dies of 38 compute units, HBM3 5.3 TB/s, 1307 TFLOP/s (AMD's data sheet "Instinct
/// MI300X"). Sustained rates of products are from AMD's "Measuring Max-Achievable FLOPs, Part 2"
/// (ROCm blogs, ROCm 6.3; ROCm/rocm-blogs at d957560caa), which also gives the clocks: 1207 MHz in
/// bf16, 1115 in f16, 1230 in FP8. Its notes give 750 W, and for FP8 1223.6 TFLOP/s at 1273 MHz,
/// where the two numbers seem to be interchanged. Infinity Cache has 256 MB; 5.5 TB/s of it and 4.1
/// TB/s of HBM are sustained in published measurements (Azure, Chips and Cheese; 5.4 to 7.3 and 4.0
/// to 4.3). Its peak is 17.2 TB/s (AMD's white paper "CDNA 3 architecture").
pub const MI300X: Machine = Machine {
    name: "mi300x",
    dies: 8,
    units: 304,
    clock: 2.1,
    near: 8.0 * DIE,
    cached: 5500.0,
    peak_cached: 17_200.0,
    cache: 256 << 20,
    memory: 4100.0,
    peak_memory: 5300.0,
    peak_f16: 1307.4,
    sustained: [708.0, 654.0, 1273.0],
    sustained_clocks: [1.207, 1.115, 1.230],
    reached: [REACHED; 3],
    watts: Some(750.0),
};

/// The MI300A: 6 dies of 38 compute units, 981 TFLOP/s, HBM3 5.3 TB/s (AMD's data sheet "Instinct
/// MI300A").
pub const MI300A: Machine = Machine {
    name: "mi300a",
    dies: 6,
    units: 228,
    near: 6.0 * DIE,
    peak_f16: 980.6,
    // No sustained rates are published: these are the MI300X's, scaled by the number of compute
    // units.
    sustained: scaled(228.0 / 304.0),
    watts: None,
    ..MI300X
};

/// The MI308X: 4 dies of 20 compute units, HBM3 5.3 TB/s (IREE's and LLVM's tables of targets: 80
/// compute units). The clock is assumed to be the MI300X's.
pub const MI308X: Machine = Machine {
    name: "mi308x",
    dies: 4,
    units: 80,
    near: 4.0 * DIE * 20.0 / 38.0,
    peak_f16: 344.0,
    sustained: scaled(80.0 / 304.0),
    watts: None,
    ..MI300X
};

/// The MI325X: like the MI300X, with HBM3E of 6 TB/s (AMD's data sheet "Instinct MI325X"). Rates of
/// products, clocks and power are from the page cited at [`MI300X`]. The sustained memory bandwidth
/// is scaled.
pub const MI325X: Machine = Machine {
    name: "mi325x",
    memory: 4100.0 * 6.0 / 5.3,
    peak_memory: 6000.0,
    sustained: [843.0, 794.0, 1519.0],
    sustained_clocks: [1.447, 1.354, 1.464],
    watts: Some(1000.0),
    ..MI300X
};

/// Returns the MI300X's sustained rates, multiplied by `share`.
const fn scaled(share: f64) -> [f64; 3] {
    let [bf16, f16, byte] = MI300X.sustained;
    [share * bf16, share * f16, share * byte]
}

/// Returns the index of a type in [`Machine::sustained`]; `None` for f32 and f64, whose rates are
/// not limited by power.
pub(crate) const fn index(operands: Operands) -> Option<usize> {
    match operands {
        Operands::Bf16 => Some(0),
        Operands::F16 => Some(1),
        Operands::Byte => Some(2),
        Operands::Wide => None,
    }
}

/// All machines.
pub const MACHINES: [Machine; 4] = [MI300X, MI300A, MI308X, MI325X];

impl Machine {
    /// Returns the highest rate in TFLOP/s that any kernel sustains, by type of operands. f32 and
    /// f64 draw less power, so theirs is the data sheet's rate.
    #[must_use]
    pub fn ceiling(&self, operands: Operands) -> f64 {
        match index(operands) {
            Some(index) => self.reached[index] * self.sustained[index],
            None => self.peak(32),
        }
    }

    /// Returns the share of the clocks in which all matrix units may work at the highest clock, if
    /// nothing else draws power. Above this share the clock falls.
    #[must_use]
    pub fn allowance(&self, operands: Operands) -> f64 {
        let Some(index) = index(operands) else { return 1.0 };
        let bits = if operands == Operands::Byte { 8 } else { 16 };
        let slowed = self.sustained_clocks[index] / self.clock;
        self.sustained[index] / (self.peak(bits) * slowed) * slowed.powf(POWER)
    }

    /// Returns the power that the vector units would draw at the highest clock, as a share of the
    /// machine's limit, if they work in `share` of the clocks.
    #[must_use]
    pub fn drawn_by_vector(&self, share: f64) -> f64 {
        VECTOR * share / self.allowance(Operands::Bf16)
    }

    /// Returns the clock in GHz at which the vendor's best kernels sustain their rate; `None` for
    /// f32 and f64.
    #[must_use]
    pub fn sustained_clock(&self, operands: Operands) -> Option<f64> {
        index(operands).map(|index| self.sustained_clocks[index])
    }

    /// Returns the factor by which a clock becomes longer if the units would draw `drawn` times the
    /// machine's limit at the highest clock.
    #[must_use]
    pub fn stretch(&self, drawn: f64) -> f64 {
        drawn.max(1.0).powf(1.0 / POWER)
    }

    /// Returns the data sheet's rate in TFLOP/s of products whose operands have `bits` bits: twice
    /// the f16 rate for eight bits, an eighth of it for f32 and f64.
    #[must_use]
    pub fn peak(&self, bits: u32) -> f64 {
        match bits {
            ..=8 => 2.0 * self.peak_f16,
            9..=16 => self.peak_f16,
            _ => self.peak_f16 / 8.0,
        }
    }

    /// Returns the least time in µs for these bytes and operations, at the data sheet's rates.
    #[must_use]
    pub fn least(&self, bytes: f64, operations: f64, bits: u32) -> f64 {
        (bytes / (1e3 * self.peak_memory)).max(operations / (1e6 * self.peak(bits)))
    }

    /// Returns the machine with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|machine| machine.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_power_limit_the_clock_is_the_published_one() {
        for (operands, rate, clock) in [(Operands::Bf16, 708.0, 1.207), (Operands::F16, 654.0, 1.115)] {
            let used = rate / MI300X.peak_f16 * MI300X.clock / clock;
            let stretch = MI300X.stretch(used / MI300X.allowance(operands));
            assert!((MI300X.clock / stretch - clock).abs() < 1e-9, "{operands:?}");
        }
        assert_eq!(MI300X.stretch(0.5), 1.0);
    }

    /// The exponent was derived from two power limits and the rates at these limits; the clocks on
    /// the same page are consistent with it.
    #[test]
    fn power_grows_with_the_clock_as_published() {
        let limits = MI325X.watts.unwrap() / MI300X.watts.unwrap();
        for (high, low) in MI325X.sustained_clocks.iter().zip(MI300X.sustained_clocks) {
            let exponent = limits.ln() / (high / low).ln();
            assert!((exponent - POWER).abs() < 0.11, "{exponent}");
        }
    }
}
