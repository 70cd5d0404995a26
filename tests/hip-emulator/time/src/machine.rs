//! Owns the machines: constants of products, and the parameters of the model.

use crate::Operands;

/// A product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name, as the compiler's targets have it
    pub name: &'static str,
    /// Dies (XCDs), to which workgroups go in turn
    pub dies: u32,
    /// Compute units of all dies
    pub units: u32,
    /// Clock at most, in GHz
    pub clock: f64,
    /// Bytes a nanosecond from the second-level caches of all dies
    pub near: f64,
    /// Bytes a nanosecond from Infinity Cache
    pub cached: f64,
    /// Bytes of Infinity Cache
    pub cache: u64,
    /// Bytes a nanosecond from memory, sustained
    pub memory: f64,
    /// Bytes a nanosecond from memory, as the data sheet has it
    pub peak_memory: f64,
    /// f16 operations a picosecond of the matrix units (TFLOP/s), as the data sheet has it
    pub peak_f16: f64,
    /// Operations a picosecond (TFLOP/s) that the vendor's best kernels sustain at the machine's power limit: bf16, f16, and 8 bits
    pub sustained: [f64; 3],
}

/// The share of [`Machine::sustained`] that a kernel reaches at most. The maximum is that of hand-written kernels, tuned for the one size at
/// which it was measured.
const REACHED: f64 = 0.85;

/// Bytes a nanosecond that a die of 38 units gets from its second-level cache: 16.8 TB/s of eight dies (published: 15 read, 17 in
/// Origami's tables). [`crate::Parameters::bandwidth`] is the share of it that was fitted.
const DIE: f64 = 2100.0;

/// 8 dies of 38 compute units, HBM3 5.3 TB/s, 1307 TFLOP/s: AMD's data sheet "Instinct MI300X". Sustained rates of products: AMD's "Measuring
/// Max-Achievable FLOPs, Part 2" (ROCm blogs, ROCm 6.3), which also has the clocks: 1207 MHz in bf16, 1115 in f16, 1230 in FP8. Infinity Cache 256 MB; 5.5 TB/s of it and
/// 4.1 TB/s of HBM are sustained in published measurements (Azure, Chips and Cheese; 5.4 to 7.3 and 4.0 to 4.3).
pub const MI300X: Machine = Machine {
    name: "mi300x",
    dies: 8,
    units: 304,
    clock: 2.1,
    near: 8.0 * DIE,
    cached: 5500.0,
    cache: 256 << 20,
    memory: 4100.0,
    peak_memory: 5300.0,
    peak_f16: 1307.4,
    sustained: [708.0, 654.0, 1273.0],
};

/// 6 dies of 38 compute units, 981 TFLOP/s, HBM3 5.3 TB/s: AMD's data sheet "Instinct MI300A".
pub const MI300A: Machine = Machine {
    name: "mi300a",
    dies: 6,
    units: 228,
    near: 6.0 * DIE,
    peak_f16: 980.6,
    // Nobody published them: those of the MI300X by compute units.
    sustained: scaled(228.0 / 304.0),
    ..MI300X
};

/// 4 dies of 20 compute units, HBM3 5.3 TB/s: IREE's and LLVM's tables of targets (80 compute units). The clock is taken to be the MI300X's.
pub const MI308X: Machine = Machine {
    name: "mi308x",
    dies: 4,
    units: 80,
    near: 4.0 * DIE * 20.0 / 38.0,
    peak_f16: 344.0,
    sustained: scaled(80.0 / 304.0),
    ..MI300X
};

/// As the MI300X, with HBM3E of 6 TB/s: AMD's data sheet "Instinct MI325X". What is sustained is scaled.
pub const MI325X: Machine = Machine {
    name: "mi325x",
    memory: 4100.0 * 6.0 / 5.3,
    peak_memory: 6000.0,
    sustained: [843.0, 794.0, 1519.0],
    ..MI300X
};

/// The MI300X's sustained rates, scaled.
const fn scaled(share: f64) -> [f64; 3] {
    let [bf16, f16, byte] = MI300X.sustained;
    [share * bf16, share * f16, share * byte]
}

/// All machines.
pub const MACHINES: [Machine; 4] = [MI300X, MI300A, MI308X, MI325X];

impl Machine {
    /// Operations a picosecond (TFLOP/s) that no kernel exceeds for long, for operands of a type. f32 and f64 draw less power: theirs is the
    /// data sheet's rate.
    #[must_use]
    pub fn ceiling(&self, operands: Operands) -> f64 {
        let [bf16, f16, byte] = self.sustained;
        match operands {
            Operands::Bf16 => REACHED * bf16,
            Operands::F16 => REACHED * f16,
            Operands::Byte => REACHED * byte,
            Operands::Wide => self.peak(32),
        }
    }

    /// Operations a picosecond (TFLOP/s) of products whose operands have so many bits, as the data sheet has it: twice the rate of f16 for
    /// eight bits, an eighth of it for f32 and f64.
    #[must_use]
    pub fn peak(&self, bits: u32) -> f64 {
        match bits {
            ..=8 => 2.0 * self.peak_f16,
            9..=16 => self.peak_f16,
            _ => self.peak_f16 / 8.0,
        }
    }

    /// Microseconds that so many bytes and operations take at least, at the data sheet's rates.
    #[must_use]
    pub fn least(&self, bytes: f64, operations: f64, bits: u32) -> f64 {
        (bytes / (1e3 * self.peak_memory)).max(operations / (1e6 * self.peak(bits)))
    }

    /// The machine with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|machine| machine.name == name)
    }
}
