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
    /// How it is called in tables: unique in a run.
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
    /// Why it takes no part, if it could not be loaded or asked.
    pub unusable: Option<String>,
}

/// One graph and what each engine did with it.
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

/// How an engine did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// Executed, and right by the reference.
    Right,
    /// Executed; the reference cannot judge it, for the reason given.
    Unjudged(String),
    /// Executed, with wrong results. Its times do not count.
    Wrong(String),
    /// Not applicable, with the reason where the plugin tells one.
    Declined(String),
    /// A call failed.
    Failed(String),
    /// The engine's process ended.
    Crashed(String),
    /// It did not answer in time.
    Hung(String),
}

impl Outcome {
    /// Whether times belong to results that may be relied on, or at least are not known to be
    /// wrong.
    #[must_use]
    pub fn times_count(&self) -> bool {
        matches!(self, Self::Right | Self::Unjudged(_))
    }

    /// Why, where there is more to say than the outcome itself.
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
    /// How it did.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Creating the context with nothing kept from before.
    pub create_cold: Option<f64>,
    /// Creating it again in a new process, with what the first left on disk.
    pub create_warm: Option<f64>,
    /// The first execution, until its work is done.
    pub first: Option<f64>,
    /// The steady state with the same buffers each time.
    pub hot: Option<Times>,
    /// The steady state with buffers that take turns and do not fit into the last cache together.
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
    /// What the GPU's sensors said in the last of its turns with the same buffers, if turns were
    /// long enough.
    #[serde(default)]
    pub load: Option<Load>,
    /// How far the results are from the reference.
    pub error: Option<Error>,
}

/// What the sensors of a GPU say while it works.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The clock of its compute units, in MHz: the median.
    pub megahertz: f64,
    /// The power that it draws: the median.
    pub watts: Option<f64>,
}

impl Measurement {
    /// An outcome, and nothing measured.
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

/// How far results are from the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// The output that is furthest.
    pub tensor: String,
    /// The largest difference.
    pub max_absolute: f64,
    /// The largest difference as a share of what is allowed; above 1 is wrong.
    pub ratio: f64,
}

/// An engine against the first engine of the run.
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
    /// Whether there is a difference at all: the interval does not hold 1.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}
