//! What is known of a graph's kernels.

use rotini_emit::Target;
use rotini_inspect::census::Code;
use rotini_inspect::object::{Needs, Occupancy};
use rotini_inspect::{Census, Configuration, Counts};
use rotini_schedule::gemm::{self, Problem, Schedule};
use rotini_time::Predicted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of a graph's kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) ok: bool,
    /// The version that wrote it
    pub(super) rotini: String,
    pub(super) compiler: String,
    pub(super) graph: String,
    pub(super) target: String,
    /// What it does in a few words
    pub(super) summary: String,
    pub(super) dtype: String,
    pub(super) least: Least,
    /// Products that rotini writes as kernels
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) products: Vec<Product>,
    pub(super) kernels: Vec<Kernel>,
    /// In the order in which they are launched; absent where nothing was executed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) launches: Option<Vec<Launch>>,
    /// The device whose constants predictions were made with; absent: published ones
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) constants_of: Option<String>,
}

/// The least that the graph costs, at the data sheet's rates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Least {
    /// Bytes of its tensors, each moved once
    pub(super) bytes: u64,
    /// Operations of its products
    pub(super) operations: Option<f64>,
    pub(super) least_us: f64,
}

/// A product that rotini writes as a kernel: its schedule, and the alternatives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Product {
    pub(super) problem: Problem,
    /// The schedule's word, as in the kernel's name
    pub(super) schedule: String,
    /// The best by the closed form, with its microseconds
    pub(super) predicted_us: Vec<(String, f64)>,
}

impl Product {
    /// The number of schedules that are listed.
    const TOLD: usize = 5;

    pub(super) fn new(target: &Target, (problem, schedule): (Problem, Schedule)) -> Self {
        let machine = rotini_schedule::Machine::of(&target.to_string());
        let mut all = machine.map_or_else(Vec::new, |machine| gemm::ranked(machine, &problem));
        let own = all.iter().position(|(other, _)| *other == schedule);
        // The chosen one first, even where it was found by trying.
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
    /// Absent if the compiler did not tell
    pub(super) configuration: Option<Configuration>,
    pub(super) needs: Needs,
    pub(super) occupancy: Occupancy,
    pub(super) code: Counted,
    /// Its hottest loop, if it has one
    pub(super) hottest_loop: Option<Counted>,
}

/// Instructions in machine code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) total: u64,
    /// By class and width
    pub(super) instructions: BTreeMap<String, u64>,
    /// Matrix instructions, as a share of all
    pub(super) matrix_share: f64,
    /// Operations of a wave's matrix instructions
    pub(super) matrix_operations: u64,
    /// What one wave's pass occupies at full rate, in clocks of a SIMD
    pub(super) clocks: BTreeMap<String, u64>,
    /// The unit that is occupied longest
    pub(super) busiest: Option<String>,
}

/// A launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) kernel: String,
    pub(super) workgroups: u64,
    /// What all workgroups did; absent if only a sample ran
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<Counts>,
    pub(super) time: Predicted,
    /// The time with the operands in Infinity Cache, as far as they fit
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warm: Option<Predicted>,
    /// Where the time is expected to lie
    pub(super) interval: [Predicted; 2],
    /// The unit that bounds it, and its share of the predicted time
    pub(super) bound: String,
    pub(super) predicted_bound_share: f64,
    /// Share of the predicted time in which the matrix units work
    pub(super) predicted_matrix_share: f64,
    /// Why no kernel like this was compared with hardware
    pub(super) extrapolated: Vec<String>,
}

impl Document {
    /// What all launches are predicted to take together.
    pub(super) fn time(&self) -> Option<Predicted> {
        let launches = self.launches.as_ref()?;
        Some(Predicted::in_sequence(launches.iter().map(|launch| launch.time)))
    }

    /// Share of the roofline, by the predicted time.
    pub(super) fn share(&self) -> Option<f64> {
        Some(self.least.least_us / self.time()?.microseconds())
    }

    /// Bytes that all launches loaded and stored, caches or not.
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
