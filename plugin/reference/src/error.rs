//! The reasons why the reference cannot execute a graph.

use thiserror::Error;

/// The reason why the reference did not compute a graph. Every variant names the tensor or node.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The reference does not implement an operation, mode or type. The graph may be valid.
    #[error("{node}: the reference does not compute {what}")]
    Unsupported {
        /// The node.
        node: String,
        /// The operation, mode or type.
        what: String,
    },
    /// The reference cannot represent a tensor with this property. The graph may be valid.
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
    /// A defect that no graph has after [`Graph::validate`](rotini_graph::Graph::validate).
    #[error("the graph was not validated: {what}")]
    NotValidated {
        /// The defect.
        what: String,
    },
}

impl ReferenceError {
    pub(crate) fn not_validated(what: impl Into<String>) -> Self {
        ReferenceError::NotValidated { what: what.into() }
    }
}
