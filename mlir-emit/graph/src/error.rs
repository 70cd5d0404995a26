//! Errors of graph validation.

use crate::DataType;
use thiserror::Error;

/// The reason why a graph is not valid. Every variant names the tensor or node at fault.
///
/// Some graphs have no meaning in any version of hipDNN; others break current rules that a newer
/// version may have relaxed. [`is_malformed`](GraphError::is_malformed) distinguishes the two. A
/// valid graph that rotini cannot lower is a third case, which the lowering's `check` reports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The graph has no nodes.
    #[error("the graph has no nodes")]
    Empty,
    /// More tensors or nodes than [`MAX_GRAPH_SIZE`](crate::MAX_GRAPH_SIZE).
    #[error("the graph has {count} {what}, more than the limit of {limit}")]
    TooLarge {
        /// "tensors" or "nodes".
        what: &'static str,
        /// The number in the graph.
        count: usize,
        /// The largest number allowed.
        limit: usize,
    },
    /// Two tensors have the same uid.
    #[error("uid {uid} is given to two tensors")]
    DuplicateUid {
        /// The uid.
        uid: i64,
    },
    /// A node (or a tensor, by its ragged offset) names a uid that no tensor has.
    #[error("{node}: {field} names uid {uid}, which no tensor has")]
    UnknownUid {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The uid.
        uid: i64,
    },
    /// A node (or a tensor, by its ragged offset) refers to an index outside the graph's tensors.
    #[error("{node}: {field} refers to tensor {index}, which does not exist")]
    UnknownTensor {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The index.
        index: u32,
    },
    /// The rank is 0 or beyond [`MAX_RANK`](crate::MAX_RANK).
    #[error("{tensor}: rank {rank} is outside 1 to {limit}")]
    Rank {
        /// The tensor.
        tensor: String,
        /// Its rank.
        rank: usize,
        /// The largest rank.
        limit: usize,
    },
    /// The numbers of dims and of strides differ.
    #[error("{tensor}: {dims} dims but {strides} strides")]
    StrideRank {
        /// The tensor.
        tensor: String,
        /// Number of dims.
        dims: usize,
        /// Number of strides.
        strides: usize,
    },
    /// An extent below 1.
    #[error("{tensor}: dim {axis} is {extent}, but must be at least 1")]
    Extent {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: usize,
        /// The extent.
        extent: i64,
    },
    /// A stride below 0.
    #[error("{tensor}: stride {axis} is {stride}, but must not be negative")]
    Stride {
        /// The tensor.
        tensor: String,
        /// The axis.
        axis: usize,
        /// The stride.
        stride: i64,
    },
    /// The tensor is too large to address.
    #[error("{tensor}: its size in bytes overflows")]
    Overflow {
        /// The tensor.
        tensor: String,
    },
    /// Two elements of a stored tensor share an address.
    #[error("{tensor}: two elements of this output share an address")]
    OverlappingOutput {
        /// The tensor.
        tensor: String,
    },
    /// An alignment that is not a power of two.
    #[error("{tensor}: alignment {alignment} is not a positive power of two")]
    Alignment {
        /// The tensor.
        tensor: String,
        /// The alignment in bytes.
        alignment: i64,
    },
    /// A node writes a constant or a runtime scalar.
    #[error("{node}: {field} writes {tensor}, which holds a value of its own")]
    WritesValue {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The tensor.
        tensor: String,
    },
    /// Two nodes write one tensor.
    #[error("{node}: {field} writes {tensor}, which {other} writes too")]
    WrittenTwice {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The tensor.
        tensor: String,
        /// The other node.
        other: String,
    },
    /// A node reads a virtual tensor that no node writes.
    #[error("{node}: {field} reads {tensor}, which is virtual and which no node writes")]
    Undefined {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The tensor.
        tensor: String,
    },
    /// Nodes depend on each other in a cycle.
    #[error("{node} is part of a cycle")]
    Cycle {
        /// One node of the cycle.
        node: String,
    },
    /// The graph stores nothing: every result is virtual.
    #[error("every result of the graph is virtual: nothing is stored")]
    NoOutput,
    /// The graph contradicts itself under any reading, e.g. inner extents of a product that differ,
    /// or a missing operand.
    #[error("{node}: {what}")]
    Contradiction {
        /// The node.
        node: String,
        /// Description of the fault.
        what: String,
    },
    /// An attribute or a tensor that the operation does not take in the current version of hipDNN.
    #[error("{node}: {what}")]
    Attribute {
        /// The node.
        node: String,
        /// Description of the fault.
        what: String,
    },
    /// The declared dims of a tensor differ from those that follow from the operation's inputs.
    #[error("{node}: {tensor} has dims {declared:?}, but the operation makes {inferred:?}")]
    Shape {
        /// The node.
        node: String,
        /// The tensor.
        tensor: String,
        /// The dims that the graph declares.
        declared: Vec<i64>,
        /// The dims that follow from the inputs.
        inferred: Vec<i64>,
    },
    /// A constant that its tensor's type cannot hold: a float for an integer type, or an integer
    /// beyond its range.
    #[error("{tensor}: its value does not fit its type {dtype}")]
    ValueType {
        /// The tensor.
        tensor: String,
        /// Its type.
        dtype: DataType,
    },
}

impl GraphError {
    /// Returns true if the graph has no meaning in any version of hipDNN, so that its author made a
    /// mistake. All other errors decline the graph as not supported: only then does hipDNN ask the
    /// next engine.
    ///
    /// Malformed are faults of the graph as such (references, definitions, cycles, sizes beyond any
    /// address space) and contradictions. Rules about the operands of an operation may change:
    /// ranks, broadcasts, inferred shapes, attributes below their minimum.
    #[must_use]
    pub const fn is_malformed(&self) -> bool {
        match self {
            GraphError::Empty
            | GraphError::DuplicateUid { .. }
            | GraphError::UnknownUid { .. }
            | GraphError::UnknownTensor { .. }
            | GraphError::Overflow { .. }
            | GraphError::WritesValue { .. }
            | GraphError::WrittenTwice { .. }
            | GraphError::Undefined { .. }
            | GraphError::Cycle { .. }
            | GraphError::NoOutput
            | GraphError::Contradiction { .. } => true,
            // A tensor without any strides may mean packed strides.
            GraphError::StrideRank { strides, .. } => *strides != 0,
            // Extent 0 is a tensor without elements; many formats use -1 for an extent that is not
            // known yet.
            GraphError::Extent { extent, .. } => *extent < -1,
            // Alignment 0 may mean that the alignment is not known.
            GraphError::Alignment { alignment, .. } => *alignment < 0,
            GraphError::TooLarge { .. }
            | GraphError::Rank { .. }
            | GraphError::Stride { .. }
            | GraphError::OverlappingOutput { .. }
            | GraphError::Attribute { .. }
            | GraphError::Shape { .. }
            | GraphError::ValueType { .. } => false,
        }
    }
}
