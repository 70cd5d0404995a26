//! What a run found: the types behind the JSON file, the table, the page and `--compare`.
//!
//! Times are in microseconds and sizes in bytes unless a field says otherwise. What was not
//! measured is absent, never zero.

use crate::protocol::Values;
use rotini_workloads::Published;
use serde::{Deserialize, Serialize};

/// The version of this form. A reader refuses others.
pub const VERSION: u32 = 1;

/// A run of `rotini bench`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`VERSION`].
    pub version: u32,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// The arguments that repeat it.
    pub command: Vec<String>,
    /// The seed of the inputs and of the order of turns.
    pub seed: u64,
    /// What the inputs of timed executions held.
    #[serde(default)]
    pub values: Values,
    /// Where it ran.
    pub machine: Machine,
    /// What was compared. A row has one measurement for each, in this order.
    pub engines: Vec<Engine>,
    /// One for each graph.
    pub rows: Vec<Row>,
}

/// Where times come from: they are never shown without this word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The processor's own clock: the graphs ran on the CPU.
    Cpu,
    /// Events of a real GPU.
    Gpu,
    /// The emulated MI300: how long the emulator took. It says nothing about speed and is not shown
    /// as speed.
    Emulated,
}

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The device that executes: `AMD Instinct MI300X`, `CPU`, `emulated gfx942`.
    pub device: String,
    /// Where times come from.
    pub clock: Clock,
    /// Facts as name and value, in order: processor, cores, memory, load before the run, kernel,
    /// GPU clocks, power cap, driver, ROCm.
    pub facts: Vec<(String, String)>,
    /// The most that the device can do, for the roofline. Absent where it is not known.
    pub peaks: Vec<Peak>,
    /// Bytes per second of the device's memory.
    pub memory_bandwidth: Option<f64>,
    /// The size of the last cache.
    pub last_cache: Option<u64>,
}

/// The rate of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// The type of the operands: `f16`.
    pub dtype: String,
    /// Operations per second; a multiply and an add are two.
    pub flops: f64,
    /// Where the figure comes from: `measured here`, `data sheet`.
    pub source: String,
}

/// One engine of one plugin with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Its name in tables, unique in a run.
    pub label: String,
    /// The plugin's file name.
    pub plugin: String,
    /// What the plugin calls itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The engine API that it implements.
    pub api_version: String,
    /// The engine's name in hipDNN.
    pub engine: String,
    /// Settings that were given: environment variables.
    pub settings: Vec<(String, String)>,
    /// Why it takes no part, if it could not be loaded.
    pub unusable: Option<String>,
}

/// One graph with the measurements of each engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The graph's name.
    pub graph: String,
    /// What the user gave: a file, a command line, a suite's row.
    pub origin: String,
    /// What it does in a few words: `conv fprop + add + relu`.
    pub summary: String,
    /// The type of the operands, for the roofline: `f16`.
    pub dtype: String,
    /// Operations of one execution; absent where counting them makes no sense.
    pub flops: Option<f64>,
    /// The least that an execution must read and write.
    pub bytes: u64,
    /// The predicted time, where there is one.
    pub predicted: Option<f64>,
    /// What others published.
    pub published: Vec<Published>,
    /// One for each engine.
    pub measurements: Vec<Measurement>,
    /// Each other engine against the first.
    pub comparisons: Vec<Comparison>,
}

/// The outcome of a graph on an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// Executed, and right by the reference.
    Right,
    /// Executed; the reference cannot judge it, for the reason given.
    Unjudged(String),
    /// Executed, with wrong results. Its times do not count.
    Wrong(String),
    /// Not applicable, with the plugin's reason if it gave one.
    Declined(String),
    /// A call failed.
    Failed(String),
    /// The engine's process ended.
    Crashed(String),
    /// It did not answer in time.
    Hung(String),
}

impl Outcome {
    /// Returns true if the results are right, or not known to be wrong.
    #[must_use]
    pub fn times_count(&self) -> bool {
        matches!(self, Self::Right | Self::Unjudged(_))
    }

    /// Returns the reason, if the outcome has one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Right => None,
            Self::Unjudged(reason)
            | Self::Wrong(reason)
            | Self::Declined(reason)
            | Self::Failed(reason)
            | Self::Crashed(reason)
            | Self::Hung(reason) => Some(reason),
        }
    }
}

/// What was measured of one engine on one graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Time to create the context with an empty cache.
    pub create_cold: Option<f64>,
    /// Time to create it again in a new process, from the cache on disk.
    pub create_warm: Option<f64>,
    /// The first execution, until its work is done.
    pub first: Option<f64>,
    /// The steady state with the same buffers each time.
    pub hot: Option<Times>,
    /// The steady state with rotating buffers that exceed the last cache in total.
    pub rotating: Option<Times>,
    /// The host's time of one call: median.
    pub host_p50: Option<f64>,
    /// The same: 99th percentile.
    pub host_p99: Option<f64>,
    /// Workspace in bytes.
    pub workspace: Option<u64>,
    /// On a GPU, whether the executions were timed in captured graphs: if not, times have the
    /// host's calls in them.
    #[serde(default)]
    pub captured: Option<bool>,
    /// Readings of the GPU's sensors in the last turn with the same buffers, if turns were long
    /// enough.
    #[serde(default)]
    pub load: Option<Load>,
    /// The error of the output that is furthest from the reference.
    pub error: Option<Error>,
}

/// Readings of a GPU's sensors while it works.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The clock of its compute units, in MHz: the median.
    pub megahertz: f64,
    /// The power that it draws: the median.
    pub watts: Option<f64>,
}

impl Measurement {
    /// Returns an outcome without measurements.
    #[must_use]
    pub fn of(outcome: Outcome) -> Self {
        Measurement {
            outcome,
            create_cold: None,
            create_warm: None,
            first: None,
            hot: None,
            rotating: None,
            host_p50: None,
            host_p99: None,
            workspace: None,
            captured: None,
            load: None,
            error: None,
        }
    }
}

/// The times of many executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The median.
    pub median: f64,
    /// The interval that holds the true median with 95 % confidence.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// One for each round: the mean of its executions.
    pub samples: Vec<f64>,
}

/// How far an output is from the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// The output.
    pub tensor: String,
    /// The largest difference.
    pub max_absolute: f64,
    /// The largest difference divided by the tolerance; above 1 is wrong.
    pub ratio: f64,
}

/// The comparison of an engine with the first engine of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The index of the other engine.
    pub engine: usize,
    /// Its time divided by the first engine's: above 1, the first is faster. Hot.
    pub ratio: f64,
    /// The interval that holds the true ratio with 95 % confidence.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Comparison {
    /// Returns true if the interval excludes 1.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}
