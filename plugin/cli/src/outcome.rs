//! The result of one graph's execution.

use crate::failure::chain;
use rotini_bench::results::Error;
use serde::Serialize;
use std::time::Duration;

/// The verdict on a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Executed, and every output is within its tolerance.
    #[default]
    Right,
    /// Executed, and some output or other memory is wrong.
    Wrong,
    /// Not compared: the reference does not support the graph, or the graph was too large to
    /// execute.
    Unchecked,
    /// Well formed, but not supported.
    Declined,
    /// Not a graph, or not a valid one.
    Malformed,
    /// A file that cannot be read, or a call that failed.
    Failed,
}

/// The origin of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// Compiled in this run.
    Compiled,
    /// Found in the cache directory.
    Cache,
}

/// The result of one graph's execution. Times are in microseconds, sizes in bytes; steps that were
/// not reached are absent.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// The reason, unless the verdict is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The engine that executed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// Time of the query whether the graph can be executed.
    #[serde(
        rename = "applicable_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) applicable: Option<Duration>,
    /// Estimate of the workspace before the graph was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_estimate: Option<usize>,
    /// Origin of the code; unknown without a cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// Time to compile the code, or to find and load it.
    #[serde(
        rename = "create_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) create: Option<Duration>,
    /// Number of kernels that one execution launches; unknown without a cache directory.
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
    /// The error of each output.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<Error>,
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict) -> Self {
        Outcome {
            verdict,
            ..Outcome::default()
        }
    }

    /// Returns the outcome of a graph that was not executed.
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

    /// Returns the output with the largest error relative to its tolerance.
    pub(crate) fn worst(&self) -> Option<&Error> {
        self.outputs.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn micros<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    // Converted from nanoseconds, so that no spurious digits appear.
    serializer.serialize_some(&time.map(|time| time.as_nanos() as f64 / 1e3))
}
