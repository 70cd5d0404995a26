//! Prepared graphs: decoded from bytes, in normal form, checked.

use crate::error::Error;
use crate::own_thread::on_own_thread;
use rotini_cache::CompiledFor;
use rotini_emit::{Choices, Target};
use rotini_graph::{Bindings, Graph, NormalGraph};

/// A graph whose executions may be of other shapes is reported to need as much more as it might, up
/// to this many bytes, or this many times what the declared shapes need.
const SMALL: u64 = 64 << 20;
const TIMES: u64 = 4;

/// A graph that was decoded and brought into its normal form, ready to be checked and compiled.
pub struct Prepared {
    /// The graph without labels.
    pub graph: NormalGraph,
    /// The labels.
    pub bindings: Bindings,
    /// The graph as it was decoded, if executions may be of other shapes.
    pub overridable: Option<Graph>,
}

/// A graph to be compiled, and what messages about it contain.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The graph.
    pub graph: &'a NormalGraph,
    /// What to compile for.
    pub compiled_for: &'a CompiledFor<Target>,
    /// The choices that were demanded or measured, if any.
    pub choices: Option<&'a Choices>,
    /// The caller's labels of the nodes.
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

    /// Declines what cannot be compiled and executed.
    pub(crate) fn check(&self, target: &Target) -> Result<(), Error> {
        rotini_emit::check(&self.graph, target)
            .map_err(|unsupported| Error::Unsupported(unsupported.describe(&self.bindings)))
    }

    /// The workspace to report: an upper bound as long as the code is not known, and for executions
    /// of other shapes.
    pub(crate) fn workspace_bytes(&self, target: &Target, choices: &Choices, exact: Option<u64>) -> Result<u64, Error> {
        match exact {
            Some(exact) if self.overridable.is_none() => Ok(exact),
            exact => {
                // Lowered as for the compiler: not on a thread of the host's. Where there can be no
                // other, the limit does.
                let limit = rotini_emit::workspace_limit(&self.graph, target)?;
                let graph = &self.graph;
                let bound = on_own_thread(|| rotini_emit::workspace_bound_chosen(graph, target, choices))
                    .unwrap_or(Ok(limit))?;
                let bound = bound.max(exact.unwrap_or(0));
                if self.overridable.is_none() {
                    return Ok(bound);
                }
                // Other shapes may become other kernels, which leave more in memory: what they
                // might need is reported as far as it is no burden.
                Ok(bound.max(limit.min(bound.saturating_mul(TIMES).max(SMALL))))
            }
        }
    }

    /// Refuses code that was made after the host could ask for the workspace, and that needs more
    /// than was reported then: a host that allocated that much would give too little. Code that the
    /// compiler made without schedules, for example, may need more.
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

/// Says whether a graph can be compiled and executed for a target; if not, why and where. Neither
/// compiles nor touches a device.
///
/// # Errors
///
/// The first reason found.
pub fn check(bytes: &[u8], target: &Target) -> Result<Prepared, Error> {
    let prepared = decode(bytes)?;
    prepared.check(target)?;
    Ok(prepared)
}
