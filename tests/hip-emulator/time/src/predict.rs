//! Owns predictions: a record and a machine in, microseconds and what bounds them out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::balance::Work;
use crate::traffic::Traffic;
use crate::{Caches, Machine, Operands, Parameters, Record, Residence, Step, clocks, unit};

/// Clocks between two workgroups that the dispatcher gives to one die. Source: the time of one-wave
/// workgroups by the ten thousand.
const DISPATCH: f64 = 8.4;
/// Bytes of a die's second-level cache. The table's kernels whose footprint fits in it were
/// measured as if the launch before had left their operands there.
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

/// Microseconds between the end of a launch and the start of the next one, which depends on it. An
/// assumption: events around dependent launches on an MI300X show 1 to 3 µs.
const GAP: f64 = 1.25;
/// The shortest time of any graph, in microseconds: the shortest that anybody published of an
/// MI300X (iree-turbine #1160).
const SHORTEST_PUBLISHED: f64 = 2.78;

impl Predicted {
    /// The time of launches that follow each other on a stream, each dependent on the one before.
    #[must_use]
    pub fn in_sequence(launches: impl Iterator<Item = Self>) -> Self {
        let (sum, count) = launches.fold((0.0, 0_u32), |(sum, count), one| (sum + one.microseconds, count + 1));
        let gaps = GAP * f64::from(count.saturating_sub(1));
        Self::new((sum + gaps).max(SHORTEST_PUBLISHED))
    }
}

/// What a kernel is predicted to take, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The time with nothing of its operands in the caches
    pub time: Predicted,
    /// The time right after the same launch, for comparison with published measurements
    pub warm: Predicted,
    /// The interval of `time`: nine of ten kernels that were compared with hardware lie in it;
    /// twice as wide, as a guess, where the prediction is extrapolated
    pub interval: [Predicted; 2],
    /// What takes the largest share, and the share
    pub bound: (Bound, f64),
    /// Share of the time in which the average matrix unit works
    pub matrix: f64,
    /// Operations of matrix instructions a picosecond (TFLOP/s)
    pub rate: f64,
    /// Workgroups that a compute unit holds at once
    pub resident: u64,
    /// Why the prediction is extrapolated, that is, why no kernel like this was compared with
    /// hardware; empty if it is not
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
    let launch = Launch::new(record, machine, parameters);
    let cold = launch.run(Caches::Cold);
    let warm = launch.run(Caches::Warm);
    let outside = outside(&launch, &cold);
    let [from, to] = if outside.is_empty() { [0.84, 1.27] } else { [0.5, 2.0] };
    Prediction {
        time: Predicted::new(cold.time),
        warm: Predicted::new(warm.time.min(cold.time)),
        interval: [Predicted::new(from * cold.time), Predicted::new(to * cold.time)],
        bound: cold.bound(),
        matrix: cold.average_matrix,
        rate: cold.rate,
        resident: launch.resident,
        outside,
    }
}

/// A launch on a machine.
struct Launch<'a> {
    record: &'a Record,
    machine: &'a Machine,
    parameters: &'a Parameters,
    /// One wave's instructions in the order in which they ran
    path: Vec<u32>,
    /// Workgroups of the busiest compute unit, and how many of them it holds at once
    groups: u64,
    resident: u64,
    traffic: Traffic,
}

/// A launch's time in microseconds, and the share of it that each resource is busy.
struct Timed {
    time: f64,
    average_matrix: f64,
    rate: f64,
    shares: [(Bound, f64); 6],
}

impl Timed {
    /// What takes the largest share, and the share. If that is less than half of the time, the rest
    /// of it is spent waiting.
    fn bound(&self) -> (Bound, f64) {
        let largest = |a: (Bound, f64), b: (Bound, f64)| if b.1 > a.1 { b } else { a };
        match self.shares.into_iter().fold((Bound::Latency, 0.0), largest) {
            (_, share) if share < 0.5 => (Bound::Latency, 1.0 - share),
            (unit, share) => (unit, share.min(1.0)),
        }
    }
}

impl<'a> Launch<'a> {
    fn new(record: &'a Record, machine: &'a Machine, parameters: &'a Parameters) -> Self {
        let residence = Residence {
            waves: record.waves,
            registers: record.registers,
            scalars: record.scalars,
            lds: record.lds,
            scratch: record.scratch,
        };
        let path: Vec<u32> = record.path.instructions().collect();
        let groups = record.workgroups.div_ceil(machine.units.into());
        Self {
            record,
            machine,
            parameters,
            groups,
            resident: u64::from(residence.workgroups()).min(groups),
            traffic: Traffic::of(record, &path),
            path,
        }
    }

    fn steps(&self) -> impl Iterator<Item = Step> {
        self.path
            .iter()
            .map(|&number| self.record.instructions[number as usize].step)
    }

    /// Clocks of a wave's matrix instructions with operands of a type.
    fn matrix_clocks(&self, operands: Operands) -> f64 {
        let clocks = self.steps().map(|step| match step {
            Step::Mfma { clocks, operands: own } if own == operands => f64::from(clocks),
            _ => 0.0,
        });
        clocks.sum()
    }

    /// Operations of all waves' matrix instructions with operands of a type.
    fn operations(&self, operands: Operands) -> f64 {
        let waves = f64::from(self.record.waves) * self.record.workgroups as f64;
        self.matrix_clocks(operands) * clocks::rate(operands) * waves
    }

    /// How much longer a clock takes under the machine's power limit, if the average matrix unit
    /// and the average vector unit work for these shares of the clocks.
    fn slowed_by_power(&self, matrix: f64, vector: f64) -> f64 {
        let all: f64 = Operands::ALL.into_iter().map(|one| self.matrix_clocks(one)).sum();
        let share = |operands| matrix * self.matrix_clocks(operands) / all.max(1.0);
        let drawn = |operands| share(operands) / self.machine.allowance(operands);
        let by_matrix: f64 = Operands::ALL.into_iter().map(drawn).sum();
        self.machine.stretch(by_matrix + self.machine.drawn_by_vector(vector))
    }

    /// Microseconds that the matrix instructions take at least, by the machine's power.
    fn least_by_power(&self) -> f64 {
        let least = |operands| self.operations(operands) / self.machine.ceiling(operands) / 1e6;
        Operands::ALL.into_iter().map(least).sum()
    }

    fn run(&self, caches: Caches) -> Timed {
        let Self {
            record,
            machine,
            parameters,
            groups,
            resident,
            ..
        } = *self;
        let run = |groups| {
            unit::run(
                self.unit(caches),
                &record.instructions,
                &self.path,
                record.waves,
                resident,
                groups,
            )
        };
        // Many rounds of workgroups: the third shows what each further one takes.
        let few = groups.min(3 * resident);
        let busy = run(few);
        let mut clocks = busy.clocks;
        if groups > few {
            let round = (busy.clocks - run(2 * resident).clocks) / resident as f64;
            clocks += round * (groups - few) as f64;
        }
        if let Some(work) = Work::of(&record.work, record.workgroups) {
            let together: Vec<f64> = (1..=resident).map(|count| self.round(caches, count)).collect();
            clocks *= work.stretch(machine, &together);
        }
        let share = |busy: f64| busy * groups as f64 / few as f64 / clocks.max(1.0);
        let average_matrix = self.occupied() * share(busy.average_matrix).min(1.0);
        let average_vector = self.occupied() * share(busy.average_vector).min(1.0);
        let unloaded = clocks / machine.clock / 1000.0;
        let below = 1.0 + parameters.slowdown * average_matrix;
        let slowed = unloaded * below.max(self.slowed_by_power(average_matrix, average_vector));
        let by_memory = self.traffic.least(machine, caches) / 1000.0;
        let kernel = slowed.max(self.least_by_power()).max(by_memory);
        let time = kernel + parameters.floor;
        Timed {
            time,
            average_matrix,
            rate: Operands::ALL.into_iter().map(|one| self.operations(one)).sum::<f64>() / time / 1e6,
            shares: [
                (
                    Bound::Matrix,
                    share(busy.matrix).min(1.0).max(self.least_by_power() / time),
                ),
                (Bound::Vector, share(busy.vector)),
                (Bound::Lds, share(busy.lds)),
                (Bound::Addresses, share(busy.addresses)),
                (Bound::Cache, share(busy.cache)),
                (Bound::Memory, share(busy.memory).max(by_memory / time)),
            ],
        }
    }

    /// Share of the compute units that have a workgroup, in the mean over the rounds of the busiest
    /// unit. Units without one draw no power for arithmetic, and leave their share of the caches
    /// and of memory to the others.
    fn occupied(&self) -> f64 {
        self.record.workgroups as f64 / (self.groups as f64 * f64::from(self.machine.units))
    }

    /// Clocks of `count` workgroups that run at once on a compute unit.
    fn round(&self, caches: Caches, count: u64) -> f64 {
        let record = self.record;
        let unit = self.unit(caches);
        unit::run(unit, &record.instructions, &self.path, record.waves, count, count).clocks
    }

    /// Share of the accesses to private memory that go beyond a die's second-level cache: what the
    /// waves that run at once have of it is shared with none.
    fn scratch_beyond(&self) -> f64 {
        let (record, machine) = (self.record, self.machine);
        let groups = self.resident as f64 * f64::from(machine.units / machine.dies);
        let bytes = 64.0 * f64::from(record.scratch) * f64::from(record.waves) * groups;
        1.0 - (NEAR_CACHE as f64 / bytes.max(1.0)).min(1.0)
    }

    /// A compute unit of the machine, while the launch has it.
    fn unit(&self, caches: Caches) -> unit::Unit {
        let (machine, parameters) = (self.machine, self.parameters);
        let units = f64::from(machine.units);
        let active = units * self.occupied();
        let share = |rate: f64| (rate / machine.clock / active).min(WIDEST);
        let [read, write] = self.traffic.rates(machine, caches);
        let is_near = caches == Caches::Warm && self.record.footprint <= NEAR_CACHE;
        unit::Unit {
            near: parameters.near,
            far: if is_near { 1.0 } else { parameters.far },
            cache_rate: share(machine.near * parameters.bandwidth),
            far_rate: share(if is_near {
                machine.near * parameters.bandwidth
            } else {
                read
            }),
            store_rate: share(write),
            store_clocks: parameters.store,
            dispatch: DISPATCH * units / f64::from(machine.dies),
            scratch_beyond: self.scratch_beyond(),
        }
    }
}

/// Rate above which no kernel was compared with hardware, in TFLOP/s. The table's fastest has 446.
const FASTEST: f64 = 450.0;
/// The same for the share of the time in which the average matrix unit works.
const BUSIEST: f64 = 0.45;
/// Microseconds below which launches were measured too slow by up to a factor of two.
const SHORTEST: f64 = 10.0;

/// How a launch differs from the kernels that were compared with hardware: convolutions and
/// products on matrix units, channels innermost, bf16, on an MI300X.
fn outside(launch: &Launch<'_>, timed: &Timed) -> Vec<&'static str> {
    let has = |wanted: fn(Step) -> bool| launch.steps().any(wanted);
    let count = |wanted: fn(Step) -> bool| launch.steps().filter(|&step| wanted(step)).count();
    let narrow = count(|step| matches!(step, Step::Load { dwords: ..4, .. }));
    let loads = count(|step| matches!(step, Step::Load { .. }));
    [
        (
            launch.machine.name != crate::MI300X.name,
            "another machine than the MI300X",
        ),
        (!has(|step| matches!(step, Step::Mfma { .. })), "no matrix instructions"),
        (has(|step| matches!(step, Step::Exp)), "exponentials"),
        (has(|step| matches!(step, Step::Atomic { .. })), "atomics"),
        (launch.record.scratch > 0, "private memory"),
        (2 * narrow > loads, "narrow loads"),
        (timed.rate > FASTEST, "above 450 TFLOP/s"),
        (timed.average_matrix > BUSIEST, "matrix units busy above 45 %"),
        (timed.time < SHORTEST, "under ten microseconds"),
    ]
    .into_iter()
    .filter_map(|(holds, reason)| holds.then_some(reason))
    .collect()
}
