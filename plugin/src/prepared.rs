//! Prepared graphs: decoded from bytes, in normal form, and checked.

use crate::error::Error;
use crate::own_thread::on_own_thread;
use rotini_cache::CompiledFor;
use rotini_emit::{Choices, Target};
use rotini_graph::{Bindings, Graph, NormalGraph};

/// The workspace that is reported for a graph with dynamic shapes is increased, up to what other
/// shapes might need, but to no more than the larger of this many bytes and [`TIMES`] times the
/// need of the declared shapes.
const SMALL: u64 = 64 << 20;
const TIMES: u64 = 4;

/// A graph that was decoded and brought into its normal form, ready to be checked and compiled.
pub struct Prepared {
    /// The graph without labels.
    pub graph: NormalGraph,
    /// The labels.
    pub bindings: Bindings,
    /// The graph as it was decoded, if its shapes are dynamic.
    pub overridable: Option<Graph>,
}

/// A graph to be compiled, with the names that messages about it use.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The graph.
    pub graph: &'a NormalGraph,
    /// The target and its features.
    pub compiled_for: &'a CompiledFor<Target>,
    /// The choices that were demanded or measured, if any.
    pub choices: Option<&'a Choices>,
    /// The caller's labels of the graph's nodes.
    pub nodes: &'a [String],
    /// The graph as the host gave it.
    pub bytes: &'a [u8],
}

impl Prepared {
    pub(crate) fn new(graph: Graph) -> Self {
        let (normal, bindings) = graph.normalise();
        Prepared {
            graph: normal,
            bindings,
            overridable: graph.override_shapes.then_some(graph),
        }
    }

    /// Declines a graph that cannot be compiled and executed.
    pub(crate) fn check(&self, target: &Target) -> Result<(), Error> {
        rotini_emit::check(&self.graph, target)
            .map_err(|unsupported| Error::Unsupported(unsupported.describe(&self.bindings)))
    }

    /// Returns the workspace to report: `exact`, or an upper bound if the code is not known yet or
    /// the shapes are dynamic.
    pub(crate) fn workspace_bytes(&self, target: &Target, choices: &Choices, exact: Option<u64>) -> Result<u64, Error> {
        match exact {
            Some(exact) if self.overridable.is_none() => Ok(exact),
            exact => {
                // Lowering needs a large stack, so it does not run on a host thread. If no thread
                // can be started, the general limit is the bound.
                let limit = rotini_emit::workspace_limit(&self.graph, target)?;
                let graph = &self.graph;
                let bound = on_own_thread(|| rotini_emit::workspace_bound_chosen(graph, target, choices))
                    .unwrap_or(Ok(limit))?;
                let bound = bound.max(exact.unwrap_or(0));
                if self.overridable.is_none() {
                    return Ok(bound);
                }
                // Other shapes may be lowered to other kernels, which keep more temporaries in
                // memory. What these might need is reported as long as that is no burden.
                Ok(bound.max(limit.min(bound.saturating_mul(TIMES).max(SMALL))))
            }
        }
    }

    /// Refuses new code that needs more workspace than was reported before it was compiled: a host
    /// that allocated the reported size would pass too little. Code that the compiler made without
    /// schedules, for example, may need more.
    pub(crate) fn expect_reported(&self, target: &Target, choices: &Choices, needed: u64) -> Result<(), Error> {
        let reported = self.workspace_bytes(target, choices, None)?;
        if needed > reported {
            return Err(Error::UnreportedWorkspace { needed, reported });
        }
        Ok(())
    }

    /// Returns the graph as the source of a compilation.
    #[must_use]
    pub fn source<'a>(&'a self, bytes: &'a [u8], compiled_for: &'a CompiledFor<Target>) -> Source<'a> {
        Source {
            graph: &self.graph,
            compiled_for,
            choices: None,
            nodes: &self.bindings.node_labels,
            bytes,
        }
    }
}

/// Decodes a graph and brings it into its normal form.
///
/// # Errors
///
/// [`Error::Graph`] if it is malformed, [`Error::Unsupported`] if it uses something that rotini
/// does not know.
pub fn decode(bytes: &[u8]) -> Result<Prepared, Error> {
    let graph = rotini_wire::decode(bytes).map_err(|error| {
        let is_newer =
            || rotini_wire::required_api_version(bytes).is_some_and(|needed| needed > crate::abi::API_VERSION);
        if error.is_malformed() && !is_newer() {
            Error::Graph(error.to_string())
        } else {
            Error::Unsupported(error.to_string())
        }
    })?;
    let needed = graph.min_api_version;
    if needed > crate::abi::API_VERSION {
        let [major, minor, patch] = needed;
        return Err(Error::Unsupported(format!(
            "it needs engine API {major}.{minor}.{patch}"
        )));
    }
    Ok(Prepared::new(graph))
}

/// Checks whether a graph can be compiled and executed for a target. Neither compiles nor uses a
/// device.
///
/// # Errors
///
/// The first reason found, with the place in the graph if it has one.
pub fn check(bytes: &[u8], target: &Target) -> Result<Prepared, Error> {
    let prepared = decode(bytes)?;
    prepared.check(target)?;
    Ok(prepared)
}
