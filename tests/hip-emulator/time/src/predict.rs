//! Owns predictions: a record and a machine in, microseconds and what bounds them out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Machine, Parameters, Record, Residence, Step, unit};

/// Clocks between two workgroups that the dispatcher gives to one die. Source: the time of one-wave workgroups by the ten thousand.
const DISPATCH: f64 = 8.4;
/// Bytes of a die's second-level cache: what fits is taken to be there from the run before.
const NEAR_CACHE: u64 = 4 << 20;
/// Bytes a clock that a compute unit gets at most.
const WIDEST: f64 = 64.0;

/// What takes the largest share of a kernel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Matrix units
    Matrix,
    /// Vector units
    Vector,
    /// LDS
    Lds,
    /// Addresses of loads and stores
    Addresses,
    /// The second-level caches
    Cache,
    /// Infinity Cache and memory
    Memory,
    /// None of them: waiting for results, at barriers, for the launch
    Latency,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Matrix => "matrix units",
            Self::Vector => "vector units",
            Self::Lds => "LDS",
            Self::Addresses => "addresses of loads and stores",
            Self::Cache => "second-level cache",
            Self::Memory => "memory",
            Self::Latency => "latency",
        })
    }
}

/// Microseconds that nobody measured: they cannot be printed or written without saying so.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Predicted {
    #[serde(rename = "predicted_us")]
    microseconds: f64,
}

impl Predicted {
    const fn new(microseconds: f64) -> Self {
        Self { microseconds }
    }

    /// The figure, for arithmetic.
    #[must_use]
    pub const fn microseconds(self) -> f64 {
        self.microseconds
    }
}

impl fmt::Display for Predicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.microseconds < 100.0 { 1 } else { 0 };
        write!(f, "predicted {:.digits$} µs", self.microseconds)
    }
}

/// Dispatches that follow each other: each waits for the one before, and pays for its own launch.
impl std::iter::Sum for Predicted {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self::new(all.map(|one| one.microseconds).sum())
    }
}

/// What a kernel is predicted to take, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The time
    pub time: Predicted,
    /// From and to: nine of ten kernels that were held against hardware lie there; twice as wide, as a guess, outside of the domain
    pub interval: [Predicted; 2],
    /// What takes the largest share, and the share
    pub bound: (Bound, f64),
    /// Share of the time in which the matrix units work
    pub matrix: f64,
    /// Workgroups that a compute unit holds at once
    pub resident: u64,
    /// Why no kernel like this was held against hardware: empty inside of the domain
    pub outside: Vec<&'static str>,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = self.interval;
        write!(
            f,
            "{} ({:.1} to {:.1}), {:.0} % {}",
            self.time,
            from.microseconds,
            to.microseconds,
            100.0 * self.bound.1,
            self.bound.0
        )?;
        if self.outside.is_empty() {
            return Ok(());
        }
        write!(f, "; extrapolated: {}", self.outside.join(", "))
    }
}

/// Predicts one launch.
#[must_use]
pub fn predict(record: &Record, machine: &Machine, parameters: &Parameters) -> Prediction {
    let residence = Residence {
        waves: record.waves,
        registers: record.registers,
        scalars: record.scalars,
        lds: record.lds,
        scratch: record.scratch,
    };
    let way: Vec<u32> = record.path.instructions().collect();
    let groups = record.workgroups.div_ceil(machine.units.into());
    let resident = u64::from(residence.workgroups()).min(groups);
    let run = |groups| {
        let unit = unit(record, machine, parameters);
        unit::run(unit, &record.instructions, &way, record.waves, resident, groups)
    };
    // Many rounds of workgroups: the third shows what each further one takes.
    let few = groups.min(3 * resident);
    let busy = run(few);
    let mut clocks = busy.clocks;
    if groups > few {
        let round = (busy.clocks - run(2 * resident).clocks) / resident as f64;
        clocks += round * (groups - few) as f64;
    }
    let share = |busy: f64| busy * groups as f64 / few as f64 / clocks.max(1.0);
    let matrix = share(busy.matrix).min(1.0);
    let unloaded = clocks / machine.clock / 1000.0;
    let mut time = unloaded * (1.0 + parameters.slowdown * matrix) + parameters.floor;
    let mut memory = share(busy.memory);
    if record.footprint > machine.cache {
        // All of it comes from memory once, or goes there.
        let least = record.footprint as f64 / machine.memory / 1000.0;
        memory = memory.max(least / time.max(least));
        time = time.max(least);
    }
    let bound = [
        (Bound::Matrix, matrix),
        (Bound::Vector, share(busy.vector)),
        (Bound::Lds, share(busy.lds)),
        (Bound::Addresses, share(busy.addresses)),
        (Bound::Cache, share(busy.cache)),
        (Bound::Memory, memory),
    ];
    let (unit, most) = bound
        .into_iter()
        .fold((Bound::Latency, 0.0), |a, b| if b.1 > a.1 { b } else { a });
    // Less than half of the time: the rest of it is spent waiting.
    let bound = if most < 0.5 {
        (Bound::Latency, 1.0 - most)
    } else {
        (unit, most.min(1.0))
    };
    let outside = outside(record, machine, &way);
    let [from, to] = if outside.is_empty() { [0.84, 1.27] } else { [0.5, 2.0] };
    Prediction {
        time: Predicted::new(time),
        interval: [Predicted::new(from * time), Predicted::new(to * time)],
        bound,
        matrix,
        resident,
        outside,
    }
}

/// A compute unit of a machine, while a launch has it.
fn unit(record: &Record, machine: &Machine, parameters: &Parameters) -> unit::Unit {
    let units = f64::from(machine.units);
    let active = units.min(record.workgroups as f64);
    let share = |rate: f64| (rate / machine.clock / active).min(WIDEST);
    let near = machine.near * parameters.bandwidth;
    let is_warm = record.footprint <= NEAR_CACHE;
    unit::Unit {
        near: parameters.near,
        far: if is_warm { 1.0 } else { parameters.far },
        cache_rate: share(near),
        far_rate: share(if is_warm { near } else { machine.cached }),
        store_rate: share(machine.memory),
        store_clocks: parameters.store,
        dispatch: DISPATCH * units / f64::from(machine.dies),
    }
}

/// What distinguishes a launch from the kernels that were held against hardware: convolutions and products on matrix units, channels
/// innermost, bf16, on an MI300X.
fn outside(record: &Record, machine: &Machine, way: &[u32]) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if machine.name != crate::MI300X.name {
        reasons.push("another machine than the MI300X");
    }
    let steps = || {
        way.iter()
            .filter_map(|&number| record.instructions.get(number as usize))
            .map(|i| i.step)
    };
    if !steps().any(|step| matches!(step, Step::Mfma(_))) {
        reasons.push("no matrix instructions");
    }
    if steps().any(|step| matches!(step, Step::Atomic { .. })) {
        reasons.push("atomics");
    }
    if record.scratch > 0 {
        reasons.push("private memory");
    }
    let (loads, narrow) = steps().fold((0_u64, 0_u64), |(loads, narrow), step| match step {
        Step::Load { dwords, .. } => (loads + 1, narrow + u64::from(dwords < 4)),
        _ => (loads, narrow),
    });
    if 2 * narrow > loads {
        reasons.push("narrow loads");
    }
    reasons
}
