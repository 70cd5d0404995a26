//! Graphs that people bring: command lines of MIOpenDriver, hipDNN's JSON, logs, and suites of
//! known networks.
//!
//! What flows through: a text goes in, [`Workload`]s come out. Nothing is guessed: an option that
//! changes what is computed and that cannot be said as a graph is an error that names the option.

pub mod blocks;
mod json;
mod log;
mod miopen;
pub mod suites;

pub use json::from_json;
pub use log::{LogContents, Problem, from_log};
pub use miopen::from_miopen;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What keeps a text from becoming graphs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A command line of MIOpen's that is no graph.
    #[error("{what} (in: {line})")]
    Line {
        /// The line, or how it begins.
        line: String,
        /// Why.
        what: String,
    },
    /// A text in hipDNN's JSON form that is no graph.
    #[error("hipDNN's JSON: {place}: {what}")]
    Json {
        /// Which part of the text.
        place: String,
        /// Why.
        what: String,
    },
    /// A suite that is not known, or options that it cannot have.
    #[error("suite {0}")]
    Suite(String),
}

/// One graph, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// A short name, one for each graph of a run: `conv_fwd_n32_c64_h56_k64_r3_nhwc_f16`.
    pub name: String,
    /// What the user gave: the command line, the file, the suite's row.
    pub origin: String,
    /// The serialized graph.
    pub graph: Vec<u8>,
    /// Times that others published for the same problem.
    pub published: Vec<Published>,
}

/// A time that others published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Who measured what: `MIOpen's database, MI300X, ConvAsmImplicitGemmGTCDynamicFwdXdlopsNHWC`.
    pub by: String,
    /// Microseconds of one execution.
    pub microseconds: f64,
}
