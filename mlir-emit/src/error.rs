//! The reasons why a graph is not lowered.

use rotini_graph::{Bindings, TensorId};
use thiserror::Error;

/// A graph that is well formed, but that rotini does not run: the reason, and the node and tensor
/// that it concerns, by position in the normal graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Unsupported {
    /// The node that the reason concerns, if any.
    pub node: Option<usize>,
    /// The tensor that the reason concerns, if any.
    pub tensor: Option<TensorId>,
    /// The unsupported property, in one sentence.
    pub reason: String,
}

impl Unsupported {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Unsupported {
            node: None,
            tensor: None,
            reason: reason.into(),
        }
    }

    pub(crate) fn of_tensor(tensor: TensorId, reason: impl Into<String>) -> Self {
        Unsupported {
            tensor: Some(tensor),
            ..Unsupported::new(reason)
        }
    }

    pub(crate) fn at_node(self, node: usize) -> Self {
        Unsupported {
            node: Some(node),
            ..self
        }
    }

    /// Returns the reason, with the caller's names of node and tensor.
    #[must_use]
    pub fn describe(&self, bindings: &Bindings) -> String {
        let node = self.node.and_then(|node| bindings.node_labels.get(node));
        let tensor = self
            .tensor
            .and_then(|tensor| bindings.tensor_labels.get(tensor.index()));
        match (node, tensor) {
            (Some(node), Some(tensor)) => format!("{node}, {tensor}: {}", self.reason),
            (Some(label), None) | (None, Some(label)) => format!("{label}: {}", self.reason),
            (None, None) => self.reason.clone(),
        }
    }
}

/// The error of a lowering that failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// `check` declines the graph.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// No place of the graph takes a choice.
    #[error("nothing in the graph can be '{place}={candidate}'")]
    Choice {
        /// The place, or the kind of places.
        place: String,
        /// The candidate's id.
        candidate: String,
    },
    /// An operation uses a value that is not defined there, or of a wrong type: a defect of the
    /// lowering.
    #[error("the lowering built invalid IR: {diagnostics}")]
    InvalidIr {
        /// A description of the invalid operation.
        diagnostics: String,
    },
    /// A situation that validation rules out: a defect of the lowering.
    #[error("the lowering met what validation rules out: {0}")]
    Internal(&'static str),
}

impl From<std::fmt::Error> for EmitError {
    fn from(_: std::fmt::Error) -> Self {
        EmitError::Internal("text that cannot be written")
    }
}
