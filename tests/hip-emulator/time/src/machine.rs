//! Owns the machines: constants of products, and the parameters of the model.

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
}

/// Bytes a nanosecond that a die of 38 units gets from its second-level cache: 16.8 TB/s of eight dies (published: 15 read, 17 in
/// Origami's tables). [`crate::Parameters::bandwidth`] is the share of it that was fitted.
const DIE: f64 = 2100.0;

/// 8 dies of 38 compute units, HBM3 5.3 TB/s, 1307 TFLOP/s: AMD's data sheet "Instinct MI300X". Infinity Cache 256 MB; 5.5 TB/s of it and
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
};

/// 6 dies of 38 compute units, 981 TFLOP/s, HBM3 5.3 TB/s: AMD's data sheet "Instinct MI300A".
pub const MI300A: Machine = Machine {
    name: "mi300a",
    dies: 6,
    units: 228,
    near: 6.0 * DIE,
    peak_f16: 980.6,
    ..MI300X
};

/// 4 dies of 20 compute units, HBM3 5.3 TB/s: IREE's and LLVM's tables of targets (80 compute units). The clock is taken to be the MI300X's.
pub const MI308X: Machine = Machine {
    name: "mi308x",
    dies: 4,
    units: 80,
    near: 4.0 * DIE * 20.0 / 38.0,
    peak_f16: 344.0,
    ..MI300X
};

/// As the MI300X, with HBM3E of 6 TB/s: AMD's data sheet "Instinct MI325X". What is sustained is scaled.
pub const MI325X: Machine = Machine {
    name: "mi325x",
    memory: 4100.0 * 6.0 / 5.3,
    peak_memory: 6000.0,
    ..MI300X
};

/// All machines.
pub const MACHINES: [Machine; 4] = [MI300X, MI300A, MI308X, MI325X];

impl Machine {
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
