//! Graphs, nodes and tensors as decoded, before normalisation.

use crate::dtype::{DataType, Scalar};
use crate::op::Op;
use crate::tensor_id::TensorId;
use std::fmt;

/// The storage of a tensor's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// A buffer that the caller passes to each execution.
    Buffer,
    /// An intermediate result without memory.
    Virtual,
    /// A value stored in the graph, which all elements have.
    Constant(Scalar),
    /// A single value that is read through a host pointer at execution.
    RuntimeScalar,
}

/// A tensor of a decoded graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The caller's name for the tensor's data.
    pub uid: i64,
    /// A label for messages.
    pub name: String,
    /// Element type.
    pub dtype: DataType,
    /// Logical extents: N, C, then spatial (or batch, then matrix).
    pub dims: Vec<i64>,
    /// Distance in elements between neighbours along each dimension; 0 broadcasts.
    pub strides: Vec<i64>,
    /// Storage of the data.
    pub kind: TensorKind,
    /// The tensor of row offsets, if this tensor is ragged.
    pub ragged_offset: Option<TensorId>,
    /// Alignment in bytes that the caller promises.
    pub alignment: i64,
}

impl Tensor {
    /// Names a tensor in messages: its label if it has one, and its uid.
    #[must_use]
    pub fn label(uid: i64, name: &str) -> String {
        if name.is_empty() {
            format!("tensor {uid}")
        } else {
            format!("tensor '{name}' (uid {uid})")
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Tensor::label(self.uid, &self.name))
    }
}

/// One operation of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// A label for messages.
    pub name: String,
    /// The type in which the operation is computed.
    pub compute: DataType,
    /// The operation and its operands.
    pub op: Op,
}

/// A decoded operation graph.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Graph {
    /// A label for messages.
    pub name: String,
    /// All tensors; a [`TensorId`] is an index into this list.
    pub tensors: Vec<Tensor>,
    /// All operations; in topological order once validated.
    pub nodes: Vec<Node>,
    /// Whether the caller may override shapes at execution.
    pub override_shapes: bool,
    /// The engine API version that the graph needs: major, minor, patch.
    pub min_api_version: [u32; 3],
}

impl Graph {
    /// Returns the tensor at `id`, if it exists.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<&Tensor> {
        self.tensors.get(id.index())
    }

    /// Returns a tensor that [`validate`](Graph::validate) has found to exist.
    pub(crate) fn at(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
    }

    /// Names a node in messages: its operation, its label if it has one, and its position.
    #[must_use]
    pub fn node_label(&self, position: usize) -> String {
        match self.nodes.get(position) {
            Some(node) if node.name.is_empty() => format!("node {position} ({})", node.op.kind()),
            Some(node) => format!("node '{}' ({})", node.name, node.op.kind()),
            None => format!("node {position}"),
        }
    }
}
