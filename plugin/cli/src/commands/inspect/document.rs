//! The data about a graph's kernels.

use rotini_emit::Target;
use rotini_inspect::census::Code;
use rotini_inspect::object::{Needs, Occupancy};
use rotini_inspect::{Census, Configuration, Counts};
use rotini_schedule::gemm::{self, Problem, Schedule};
use rotini_time::Predicted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The data about a graph's kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) ok: bool,
    /// rotini's version that wrote this document
    pub(super) rotini: String,
    pub(super) compiler: String,
    pub(super) graph: String,
    pub(super) target: String,
    /// Short description of the graph
    pub(super) summary: String,
    pub(super) dtype: String,
    pub(super) least: Least,
    /// Matrix products that run as rotini's own kernels
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) products: Vec<Product>,
    pub(super) kernels: Vec<Kernel>,
    /// Launches in order; absent if nothing was executed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) launches: Option<Vec<Launch>>,
    /// The device whose measured constants predictions use; if absent, they use published ones
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) constants_of: Option<String>,
}

/// Lower bound of the graph's cost, at the rates of the data sheet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Least {
    /// Bytes of the graph's tensors, each moved once
    pub(super) bytes: u64,
    /// Operations of the graph's products
    pub(super) operations: Option<f64>,
    pub(super) least_us: f64,
}

/// A matrix product that runs as rotini's own kernel: its schedule, and the alternatives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) problem: Problem,
    /// The schedule as spelled in the kernel's name
    pub(super) schedule: String,
    /// The chosen schedule, then the fastest ones by the closed form, each with its predicted µs
    pub(super) predicted_us: Vec<(String, f64)>,
}

impl Product {
    /// Number of schedules that are listed.
    const TOLD: usize = 5;

    pub(super) fn new(target: &Target, (problem, schedule): (Problem, Schedule)) -> Self {
        let machine = rotini_schedule::Machine::of(&target.to_string());
        let mut all = machine.map_or_else(Vec::new, |machine| gemm::ranked(machine, &problem));
        let own = all.iter().position(|(other, _)| *other == schedule);
        // The chosen schedule is listed first, even if it was chosen by measurement.
        if let Some(chosen) = own.map(|own| all.remove(own)) {
            all.insert(0, chosen);
        }
        let told = all.iter().take(Self::TOLD);
        Self {
            problem,
            schedule: schedule.word(),
            predicted_us: told.map(|(schedule, time)| (schedule.word(), *time)).collect(),
        }
    }
}

/// A kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kernel {
    pub(super) name: String,
    /// Absent if the compiler did not report it
    pub(super) configuration: Option<Configuration>,
    pub(super) needs: Needs,
    pub(super) occupancy: Occupancy,
    pub(super) code: Counted,
    /// The kernel's hottest loop, if it has a loop
    pub(super) hottest_loop: Option<Counted>,
}

/// Counts of instructions in machine code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) total: u64,
    /// Number of instructions by class and width
    pub(super) instructions: BTreeMap<String, u64>,
    /// Matrix instructions as a share of all instructions
    pub(super) matrix_share: f64,
    /// Operations of one wave's matrix instructions
    pub(super) matrix_operations: u64,
    /// By unit: clocks of a SIMD that one pass of a wave occupies the unit, at full rate
    pub(super) clocks: BTreeMap<String, u64>,
    /// The unit that is occupied longest
    pub(super) busiest: Option<String>,
}

/// A launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) kernel: String,
    pub(super) workgroups: u64,
    /// Counts of all workgroups; absent if only a sample was executed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<Counts>,
    pub(super) time: Predicted,
    /// The predicted time with the operands in Infinity Cache, as far as they fit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warm: Option<Predicted>,
    /// Lower and upper end of the expected time
    pub(super) interval: [Predicted; 2],
    /// The unit that bounds the time
    pub(super) bound: String,
    pub(super) predicted_bound_share: f64,
    /// Share of the predicted time in which the matrix units work
    pub(super) predicted_matrix_share: f64,
    /// The reasons why this kernel is unlike all that the model was compared with on hardware
    pub(super) extrapolated: Vec<String>,
}

impl Document {
    /// Returns the predicted time of all launches together.
    pub(super) fn time(&self) -> Option<Predicted> {
        let launches = self.launches.as_ref()?;
        Some(Predicted::in_sequence(launches.iter().map(|launch| launch.time)))
    }

    /// Returns the fraction of the roofline that the predicted time reaches.
    pub(super) fn share(&self) -> Option<f64> {
        Some(self.least.least_us / self.time()?.microseconds())
    }

    /// Returns the bytes that all launches loaded and stored, including cache hits.
    pub(super) fn bytes(&self) -> Option<u64> {
        let of = |launch: &Launch| {
            let counts = launch.counts.as_ref()?;
            Some(counts.bytes_read.saturating_add(counts.bytes_written))
        };
        self.launches.as_ref()?.iter().map(of).sum()
    }
}

impl Kernel {
    pub(super) fn new(kernel: rotini_inspect::Kernel, configuration: Option<Configuration>) -> Self {
        let Code { all, hottest } = kernel.code;
        Self {
            name: kernel.name,
            configuration,
            occupancy: kernel.needs.occupancy(),
            needs: kernel.needs,
            code: Counted::new(&all),
            hottest_loop: hottest.as_ref().map(Counted::new),
        }
    }
}

impl Counted {
    fn new(census: &Census) -> Self {
        let clocks = census.clocks();
        let total = census.total();
        Self {
            total,
            instructions: census
                .0
                .iter()
                .map(|(class, &count)| (class.to_string(), count))
                .collect(),
            matrix_share: census.matrix() as f64 / total.max(1) as f64,
            matrix_operations: census.operations(),
            clocks: clocks.named().map(|(name, clocks)| (name.to_owned(), clocks)).into(),
            busiest: clocks.most().map(str::to_owned),
        }
    }
}
