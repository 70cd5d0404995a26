//! Graphs from users: command lines of MIOpenDriver, hipDNN's JSON, logs, and suites of known
//! networks.
//!
//! Each entry point takes a text or a name and returns [`Workload`]s. Nothing is guessed: an option
//! that affects the computation but cannot be expressed as a graph gives an error that names the
//! option.

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

/// The reason why a text could not be converted to graphs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A command line of MIOpen that cannot be converted to a graph.
    #[error("{what} (in: {line})")]
    Line {
        /// The line, or its beginning.
        line: String,
        /// The reason.
        what: String,
    },
    /// A text in hipDNN's JSON form that is not a valid graph.
    #[error("hipDNN's JSON: {place}: {what}")]
    Json {
        /// The part of the text that is wrong.
        place: String,
        /// The reason.
        what: String,
    },
    /// An unknown suite, or options that the suite cannot have.
    #[error("suite {0}")]
    Suite(String),
}

/// A graph and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// A short name, unique among the graphs of a run: `conv_fwd_n32_c64_h56_k64_r3_nhwc_f16`.
    pub name: String,
    /// The user's input: the command line, the file, or the suite's row.
    pub origin: String,
    /// The serialized graph.
    pub graph: Vec<u8>,
    /// Published execution times of the same problem.
    pub published: Vec<Published>,
}

/// A published execution time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The source: `MIOpen's database, MI300X, ConvAsmImplicitGemmGTCDynamicFwdXdlopsNHWC`.
    pub by: String,
    /// Time of one execution in microseconds.
    pub microseconds: f64,
}
