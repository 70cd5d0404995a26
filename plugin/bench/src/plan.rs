//! The plan of a run, its observer, and the errors that prevent it.

use crate::client::{EngineSpec, Launch, LaunchError};
use crate::protocol::Values;
use crate::results::{Results, Row};
use rotini_workloads::Workload;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graphs.
    pub workloads: Vec<Workload>,
    /// The engines. The others are compared with the first.
    pub engines: Vec<EngineSpec>,
    /// How their processes are started.
    pub launch: Launch,
    /// The seed of the inputs and of the order of turns.
    pub seed: u64,
    /// What the inputs of timed executions hold. Results are judged with [`Values::Exact`].
    pub values: Values,
    /// How often each graph is visited.
    pub visits: u32,
    /// Turns of each engine in a visit.
    pub rounds: u32,
    /// How long one turn takes, in microseconds. 0: one execution.
    pub turn: f64,
    /// Whether buffers that do not fit into the last cache are measured too.
    pub rotate: bool,
    /// The most operations that the reference is asked for. It does about 4 billion in a second on
    /// one core (convolutions and products of BERT, f32 and f16, on the CPU).
    pub most_judged: f64,
    /// The arguments that repeat the run.
    pub command: Vec<String>,
}

/// Who watches a run.
pub trait Observer {
    /// The machine and the engines are known.
    fn begins(&mut self, results: &Results);
    /// A stage of a graph begins; `done` is the share of the run that is complete.
    fn stage(&mut self, graph: &str, what: &str, done: f64);
    /// A row is complete.
    fn row(&mut self, row: &Row);
    /// Whether to stop early. What was measured is kept.
    fn stops(&self) -> bool {
        false
    }
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The process of an engine cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The temporary directory.
    #[error("the temporary directory of the run: {0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not a graph.
    #[error("{name}: {source}")]
    Graph {
        /// The graph.
        name: String,
        /// Why.
        source: rotini_wire::DecodeError,
    },
}
