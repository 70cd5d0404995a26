//! The protocol between the bench and the process of an engine: one JSON document a line.
//!
//! Buffers do not travel: both sides make the same inputs from the seed, and results come back in a
//! file that has the bytes of all tensors that are in buffers, one after the other, by ascending
//! uid.

use crate::results::Load;
use rotini_graph::{Graph, TensorKind};
use rotini_reference::Buffers;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The device whose memory the engines use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The memory of the process.
    Cpu,
    /// AMD GPUs, or their emulator.
    Hip,
    /// NVIDIA GPUs.
    Cuda,
}

/// How a graph is executed for its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// By one call.
    Called,
    /// By a captured graph with the call in it. GPUs only.
    Captured,
    /// By one call whose inputs arrive late: they are copied by the stream before it, behind other
    /// copies. GPUs only.
    Ordered,
    /// By several threads at once, each with its own handle, stream, context and buffers. Their
    /// results must be the same.
    Threads,
}

/// What the inputs of timed executions hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Numbers with few significant bits, for which results are judged.
    #[default]
    Exact,
    /// Normally distributed numbers: a GPU at its power limit is slower with them.
    Gaussian,
}

/// What the bench asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Loads the plugin.
    Load {
        /// The shared library.
        plugin: PathBuf,
        /// Where graphs run.
        device: Device,
        /// The library of the device's API, if not the usual one.
        library: Option<String>,
        /// Which of its GPUs.
        gpu: usize,
    },
    /// Creates a context of a graph. An earlier one is gone before.
    Create {
        /// The file of the serialized graph.
        graph: PathBuf,
        /// The engine.
        engine: i64,
        /// Knobs and their values.
        #[serde(default)]
        knobs: Vec<(String, String)>,
    },
    /// Fills new buffers, executes once, and writes their contents.
    Execute {
        /// The seed of the inputs.
        seed: u64,
        /// The bytes of all buffers instead, in the form of a file of results.
        inputs: Option<PathBuf>,
        /// Where the results go.
        results: PathBuf,
        /// How.
        way: Way,
    },
    /// Executes many times, in new buffers.
    Round {
        /// The seed of the inputs.
        seed: u64,
        /// What they hold.
        values: Values,
        /// The least total size of the buffers in bytes: more than the last cache, so that no
        /// operand stays in it. 0: the same buffers each time.
        rotate: u64,
        /// The intended duration in microseconds.
        microseconds: f64,
    },
    /// Times single calls.
    Calls {
        /// The seed of the inputs.
        seed: u64,
        /// How many.
        calls: u32,
    },
    /// Destroys the context.
    Drop,
}

/// What the process answers. Times are in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The plugin is loaded.
    Loaded {
        /// What it calls itself.
        name: String,
        /// Its version.
        version: String,
        /// The engine API that it implements.
        api_version: String,
        /// Its engines: ids and names.
        engines: Vec<(i64, String)>,
        /// The device's name.
        device: String,
        /// Whether it is emulated.
        emulated: bool,
        /// How many GPUs there are.
        gpus: usize,
    },
    /// The engine declines the graph.
    Declined {
        /// What the plugin said about it.
        reason: String,
    },
    /// There is a context.
    Created {
        /// How long that took, without the applicability question.
        microseconds: f64,
        /// Bytes of workspace.
        workspace: u64,
    },
    /// The graph was executed once.
    Executed {
        /// Until its work was done.
        microseconds: f64,
    },
    /// It was executed many times.
    Round {
        /// One execution, on average.
        microseconds: f64,
        /// On a GPU, whether the executions were in captured graphs: if not, the time has the
        /// host's calls in it.
        captured: Option<bool>,
        /// What the GPU's sensors said meanwhile.
        load: Option<Load>,
    },
    /// Calls were timed.
    Calls {
        /// The median.
        p50: f64,
        /// The 99th percentile.
        p99: f64,
    },
    /// The context is gone.
    Dropped,
    /// The engine did something forbidden, such as writing outside a buffer.
    Wrong {
        /// What.
        reason: String,
    },
    /// A call failed.
    Failed {
        /// Why.
        reason: String,
    },
}

/// The uids of the tensors in a file of results, and the size of each.
#[must_use]
pub(crate) fn contents(graph: &Graph) -> Vec<(i64, usize)> {
    let stored = graph.tensors.iter();
    let stored = stored.filter(|tensor| matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar));
    let mut contents: Vec<(i64, usize)> = stored
        .filter_map(|tensor| Some((tensor.uid, rotini_reference::span_bytes(tensor).ok()?)))
        .collect();
    contents.sort_unstable();
    contents.dedup();
    contents
}

/// The buffers of a file of results, by uid.
#[must_use]
pub fn split(graph: &Graph, mut bytes: &[u8]) -> Buffers {
    let mut buffers = Buffers::new();
    for (uid, size) in contents(graph) {
        let Some((buffer, rest)) = bytes.split_at_checked(size) else {
            break;
        };
        buffers.insert(uid, buffer.to_vec());
        bytes = rest;
    }
    buffers
}
