//! What can be wrong with a graph.

use crate::DataType;
use thiserror::Error;

/// Why a graph is not valid. Every variant names the tensor or node that is at fault.
///
/// Some graphs have no meaning in any version of hipDNN; others break rules of today that a newer
/// version may have given up: [`is_malformed`](GraphError::is_malformed) tells them apart. A valid
/// graph that is not supported is a different case, which the lowering's `check` reports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// There is nothing to compute.
    #[error("the graph has no nodes")]
    Empty,
    /// More tensors or nodes than [`MAX_GRAPH_SIZE`](crate::MAX_GRAPH_SIZE).
    #[error("the graph has {count} {what}, more than the limit of {limit}")]
    TooLarge {
        /// "tensors" or "nodes".
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// Two tensors with one uid.
    #[error("uid {uid} is given to two tensors")]
    DuplicateUid {
        /// The uid.
        uid: i64,
    },
    /// A node (or a tensor, by its ragged offset) names a tensor that is not there.
    #[error("{node}: {field} names uid {uid}, which no tensor has")]
    UnknownUid {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The uid.
        uid: i64,
    },
    /// A node (or a tensor, by its ragged offset) refers to a position outside the graph's tensors.
    #[error("{node}: {field} refers to tensor {index}, which does not exist")]
    UnknownTensor {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The position.
        index: u32,
    },
    /// Rank 0 or beyond [`MAX_RANK`](crate::MAX_RANK).
    #[error("{tensor}: rank {rank} is outside 1 to {limit}")]
    Rank {
        /// The tensor.
        tensor: String,
        /// Its rank.
        rank: usize,
        /// The largest rank.
        limit: usize,
    },
    /// Numbers of dims and strides differ.
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
    /// The tensor does not fit into an address space.
    #[error("{tensor}: its size in bytes overflows")]
    Overflow {
        /// The tensor.
        tensor: String,
    },
    /// A stored tensor in which two elements share an address.
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
    /// A constant or a runtime value that a node writes.
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
    /// A virtual tensor that nothing defines.
    #[error("{node}: {field} reads {tensor}, which is virtual and which no node writes")]
    Undefined {
        /// The node.
        node: String,
        /// The node's field.
        field: &'static str,
        /// The tensor.
        tensor: String,
    },
    /// Nodes that wait for each other.
    #[error("{node} is part of a cycle")]
    Cycle {
        /// One node of the cycle.
        node: String,
    },
    /// The graph stores nothing.
    #[error("every result of the graph is virtual: nothing is stored")]
    NoOutput,
    /// What contradicts itself, however it is read: products of rows and columns of different
    /// lengths, an operand too few.
    #[error("{node}: {what}")]
    Contradiction {
        /// The node.
        node: String,
        /// What is wrong.
        what: String,
    },
    /// An attribute or a tensor that an operation does not take today.
    #[error("{node}: {what}")]
    Attribute {
        /// The node.
        node: String,
        /// What is wrong.
        what: String,
    },
    /// A tensor's dims are not what the operation makes.
    #[error("{node}: {tensor} has dims {declared:?}, but the operation makes {inferred:?}")]
    Shape {
        /// The node.
        node: String,
        /// The tensor.
        tensor: String,
        /// What the graph says.
        declared: Vec<i64>,
        /// What follows from the inputs.
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
    /// Whether no version of hipDNN can mean such a graph, so that its author made a mistake. All
    /// else is declined as not supported: hipDNN asks the next engine only then.
    ///
    /// Malformed is what is wrong with the graph as such (references, definitions, cycles, sizes
    /// beyond any address space) and what contradicts itself. Rules about what an operation takes
    /// may change: ranks, broadcasts, shapes that are inferred, attributes below their least
    /// values.
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
            // No strides may stand for packed ones.
            GraphError::StrideRank { strides, .. } => *strides != 0,
            // 0 is a tensor without elements, and -1 stands for an extent that is not known yet in
            // many formats.
            GraphError::Extent { extent, .. } => *extent < -1,
            // 0 may stand for an alignment that is not known.
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
