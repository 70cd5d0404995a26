//! Why a graph cannot be executed here.

use thiserror::Error;

/// What kept the reference from computing a graph. Every variant names the tensor or node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The reference has no implementation of this yet. The graph may be fine.
    #[error("{node}: the reference does not compute {what}")]
    Unsupported {
        /// The node.
        node: String,
        /// The operation, mode or type.
        what: String,
    },
    /// The reference cannot hold such a tensor. The graph may be fine.
    #[error("{tensor}: the reference does not read or write {what}")]
    UnsupportedTensor {
        /// The tensor.
        tensor: String,
        /// The property.
        what: String,
    },
    /// No buffer for a tensor that needs one.
    #[error("{tensor}: no buffer was given")]
    MissingBuffer {
        /// The tensor.
        tensor: String,
    },
    /// A buffer that ends before the tensor does.
    #[error("{tensor}: the buffer has {got} bytes, but the tensor spans {needed}")]
    ShortBuffer {
        /// The tensor.
        tensor: String,
        /// Bytes in the buffer.
        got: usize,
        /// Bytes from the first to the last element.
        needed: usize,
    },
    /// Something that no graph has after [`Graph::validate`](rotini_graph::Graph::validate).
    #[error("the graph was not validated: {what}")]
    NotValidated {
        /// What is wrong with it.
        what: String,
    },
}

impl ReferenceError {
    pub(crate) fn not_validated(what: impl Into<String>) -> Self {
        ReferenceError::NotValidated { what: what.into() }
    }
}
