//! What is known about one graph's execution.

use crate::failure::chain;
use serde::Serialize;
use std::time::Duration;

/// How a graph turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Executed, and every output is within its tolerance.
    Right,
    /// Executed, and something is not as it must be.
    Wrong,
    /// Executed, but the reference does not know an operation or type of it.
    Unchecked,
    /// Well formed, and not supported.
    Declined,
    /// Not a graph, or not a valid one.
    Malformed,
    /// A file that cannot be read, or a call that failed.
    Failed,
}

/// Where the code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// Compiled now.
    Compiled,
    /// Found in the cache directory.
    Cache,
}

/// What is known about one graph's execution. Times are in microseconds, sizes in bytes; what was
/// not reached is absent.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// How it turned out.
    pub(crate) verdict: Verdict,
    /// Why, if it is not right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The engine that executed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// Time to ask whether the graph can be executed.
    #[serde(
        rename = "applicable_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) applicable: Option<Duration>,
    /// The workspace that was announced before the graph was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_estimate: Option<usize>,
    /// Where the code came from. Unknown without a cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// Time to compile, or to find and load.
    #[serde(
        rename = "create_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) create: Option<Duration>,
    /// Kernels that one execution launches. Unknown without a cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dispatches: Option<u32>,
    /// The workspace that an execution needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<usize>,
    /// Median time of an execution.
    #[serde(
        rename = "execute_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) execute: Option<Duration>,
    /// How far each output is from the reference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<OutputError>,
}

/// How far an output is from the reference.
#[derive(Debug, Serialize)]
pub(crate) struct OutputError {
    /// The tensor.
    pub(crate) tensor: String,
    /// The largest difference.
    pub(crate) max_absolute: f64,
    /// The largest difference as a share of what is allowed; above 1 is wrong.
    pub(crate) ratio: f64,
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict) -> Self {
        Outcome {
            verdict,
            reason: None,
            engine: None,
            applicable: None,
            workspace_estimate: None,
            origin: None,
            create: None,
            dispatches: None,
            workspace: None,
            execute: None,
            outputs: Vec::new(),
        }
    }

    /// A graph that did not get to be executed.
    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        Outcome {
            reason: Some(chain(error.as_ref())),
            ..Outcome::new(Verdict::Failed)
        }
    }

    pub(crate) fn because(self, verdict: Verdict, reason: impl Into<String>) -> Self {
        Outcome {
            verdict,
            reason: Some(reason.into()),
            ..self
        }
    }

    /// The output that is furthest from the reference, relative to what is allowed.
    pub(crate) fn worst(&self) -> Option<&OutputError> {
        self.outputs.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

impl From<rotini_bench::OutputError> for OutputError {
    fn from(error: rotini_bench::OutputError) -> Self {
        OutputError {
            tensor: error.tensor,
            max_absolute: error.max_absolute,
            ratio: error.ratio,
        }
    }
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn micros<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    // By way of nanoseconds, so that no digits are made up.
    serializer.serialize_some(&time.map(|time| time.as_nanos() as f64 / 1e3))
}
