//! Prepared graphs: decoded from bytes, in normal form, checked.

use crate::error::Error;
use rotini_emit::Target;
use rotini_graph::{Bindings, Graph, NormalGraph};

/// A graph that was decoded and brought into its normal form, ready to be checked and compiled.
pub struct Prepared {
    /// The graph without labels.
    pub graph: NormalGraph,
    /// The labels.
    pub bindings: Bindings,
    /// The graph as it was decoded, if executions may be of other shapes.
    pub overridable: Option<Graph>,
}

/// A graph to be compiled, and what messages need to be told about it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The graph.
    pub graph: &'a NormalGraph,
    /// What to compile for.
    pub target: &'a Target,
    /// The target's features.
    pub features: &'a str,
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

    /// The workspace to tell: an upper bound as long as the code is not known, and for executions of other shapes.
    pub(crate) fn workspace_bytes(&self, target: &Target, exact: Option<u64>) -> Result<u64, Error> {
        match exact {
            Some(exact) if self.overridable.is_none() => Ok(exact),
            exact => {
                let bound = rotini_emit::workspace_bound(&self.graph, target)
                    .map_err(|error| Error::Internal(error.to_string()))?;
                Ok(bound.max(exact.unwrap_or(0)))
            }
        }
    }

    /// The graph as what is to be compiled for a target with these features.
    #[must_use]
    pub fn source<'a>(&'a self, bytes: &'a [u8], target: &'a Target, features: &'a str) -> Source<'a> {
        Source {
            graph: &self.graph,
            target,
            features,
            nodes: &self.bindings.node_labels,
            bytes,
        }
    }
}

/// Decodes a graph and brings it into its normal form.
///
/// # Errors
///
/// [`Error::Graph`] if it is malformed, [`Error::Unsupported`] if it uses something that rotini does not know.
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

/// Says whether a graph can be compiled and executed for a target; if not, why and where. Neither compiles nor touches a device.
///
/// # Errors
///
/// The first reason found.
pub fn check(bytes: &[u8], target: &Target) -> Result<Prepared, Error> {
    let prepared = decode(bytes)?;
    prepared.check(target)?;
    Ok(prepared)
}
