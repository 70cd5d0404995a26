//! Predictions: from a record and a machine to a time and what bounds it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::balance::Work;
use crate::traffic::Traffic;
use crate::{Caches, Machine, Operands, Parameters, Record, Residence, Step, clocks, unit};

/// Clocks between two workgroups that the dispatcher sends to one die. Derived from launches of
/// tens of thousands of one-wave workgroups.
const DISPATCH: f64 = 8.4;
/// Bytes of a die's second-level cache. Kernels of the table whose footprint fits in it were
/// measured as if the preceding launch had left their operands there.
const NEAR_CACHE: u64 = 4 << 20;
/// Highest bandwidth of a compute unit, in bytes per clock.
const WIDEST: f64 = 64.0;

/// The resource that takes the largest share of a kernel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Matrix units
    Matrix,
    /// Vector units
    Vector,
    /// LDS
    Lds,
    /// Address unit of loads and stores
    Addresses,
    /// The second-level caches
    Cache,
    /// Infinity Cache and memory
    Memory,
    /// No resource: the kernel waits for results, at barriers, or for the launch
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

/// A predicted time in µs. It can only be printed or serialized with a label that says that it is
/// predicted.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Predicted {
    #[serde(rename = "predicted_us")]
    microseconds: f64,
}

impl Predicted {
    const fn new(microseconds: f64) -> Self {
        Self { microseconds }
    }

    /// Returns the number, for arithmetic.
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

/// Time in µs between the end of a launch and the start of a dependent one. An assumption: events
/// around dependent launches on an MI300X show 1 to 3 µs.
const GAP: f64 = 1.25;
/// Lower bound of the time of any graph, in µs: the shortest time that is published for an MI300X
/// (iree-turbine #1160).
const SHORTEST_PUBLISHED: f64 = 2.78;

impl Predicted {
    /// Returns the time of successive launches on a stream, each dependent on the one before.
    #[must_use]
    pub fn in_sequence(launches: impl Iterator<Item = Self>) -> Self {
        let (sum, count) = launches.fold((0.0, 0_u32), |(sum, count), one| (sum + one.microseconds, count + 1));
        let gaps = GAP * f64::from(count.saturating_sub(1));
        Self::new((sum + gaps).max(SHORTEST_PUBLISHED))
    }
}

/// The predicted time of a kernel, and its causes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The time with none of the operands in the caches
    pub time: Predicted,
    /// The time right after the same launch, for comparison with published measurements
    pub warm: Predicted,
    /// The interval of `time`, which contains nine of ten kernels that were compared with hardware.
    /// If the prediction is extrapolated, it is a guess: from half of the time to 2.5 times it
    pub interval: [Predicted; 2],
    /// The resource with the largest share of the time, and that share
    pub bound: (Bound, f64),
    /// Share of the time in which the average matrix unit is busy
    pub matrix: f64,
    /// Rate of the matrix instructions, in TFLOP/s
    pub rate: f64,
    /// Number of workgroups that a compute unit holds at once
    pub resident: u64,
    /// The reasons why the prediction is extrapolated, that is, why no kernel like this was
    /// compared with hardware; empty if it is not
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
    let [from, to] = if outside.is_empty() { [0.84, 1.27] } else { [0.5, 2.5] };
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
    /// Indices of one wave's instructions in execution order
    path: Vec<u32>,
    /// Number of workgroups of the busiest compute unit, and the number that it holds at once
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
    /// Returns the resource with the largest share of the time, and that share. If it is busy for
    /// less than half of the time, returns latency with the remaining share, which is spent
    /// waiting.
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

    /// Returns the clocks of one wave's matrix instructions with operands of a type.
    fn matrix_clocks(&self, operands: Operands) -> f64 {
        let clocks = self.steps().map(|step| match step {
            Step::Mfma { clocks, operands: own } if own == operands => f64::from(clocks),
            _ => 0.0,
        });
        clocks.sum()
    }

    /// Returns the operations of all waves' matrix instructions with operands of a type.
    fn operations(&self, operands: Operands) -> f64 {
        let waves = f64::from(self.record.waves) * self.record.workgroups as f64;
        self.matrix_clocks(operands) * clocks::rate(operands) * waves
    }

    /// Returns the factor by which a clock becomes longer under the machine's power limit, if the
    /// average matrix unit and the average vector unit are busy for these shares of the clocks.
    fn slowed_by_power(&self, matrix: f64, vector: f64) -> f64 {
        let all: f64 = Operands::ALL.into_iter().map(|one| self.matrix_clocks(one)).sum();
        let share = |operands| matrix * self.matrix_clocks(operands) / all.max(1.0);
        let drawn = |operands| share(operands) / self.machine.allowance(operands);
        let by_matrix: f64 = Operands::ALL.into_iter().map(drawn).sum();
        self.machine.stretch(by_matrix + self.machine.drawn_by_vector(vector))
    }

    /// Returns the least time in µs of the matrix instructions under the machine's power limit.
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
        // With many rounds of workgroups, the third round gives the time of each further one.
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

    /// Returns the share of compute units that have a workgroup, averaged over the rounds of the
    /// busiest unit. Idle units draw no power for arithmetic, and leave their share of the caches
    /// and of memory to the others.
    fn occupied(&self) -> f64 {
        self.record.workgroups as f64 / (self.groups as f64 * f64::from(self.machine.units))
    }

    /// Returns the clocks of `count` workgroups that run at once on a compute unit.
    fn round(&self, caches: Caches, count: u64) -> f64 {
        let record = self.record;
        let unit = self.unit(caches);
        unit::run(unit, &record.instructions, &self.path, record.waves, count, count).clocks
    }

    /// Returns the share of the accesses to private memory that miss a die's second-level cache.
    /// Waves share no private memory, so all waves resident on a die compete for the cache.
    fn scratch_beyond(&self) -> f64 {
        let (record, machine) = (self.record, self.machine);
        let groups = self.resident as f64 * f64::from(machine.units / machine.dies);
        let bytes = 64.0 * f64::from(record.scratch) * f64::from(record.waves) * groups;
        1.0 - (NEAR_CACHE as f64 / bytes.max(1.0)).min(1.0)
    }

    /// Returns the model of a compute unit during the launch.
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

/// Rate in TFLOP/s above which no kernel was compared with hardware. The table's fastest kernel
/// reaches 446.
const FASTEST: f64 = 450.0;
/// Share of the time in which the average matrix unit is busy, above which no kernel was compared
/// with hardware.
const BUSIEST: f64 = 0.45;
/// Time in µs below which launches were measured too slow by up to a factor of two.
const SHORTEST: f64 = 10.0;

/// Returns the differences of a launch from the kernels that were compared with hardware:
/// convolutions and matrix products on matrix units, channels innermost, bf16, on an MI300X.
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
