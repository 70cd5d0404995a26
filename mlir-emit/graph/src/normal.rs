//! The normal form of a graph: the graph without everything that does not change its result.
//!
//! Tensors are numbered by first use, and inputs and outputs get *slots* in that order. Names, uids
//! and ids are dropped, strides without meaning are zeroed and absent parameters are replaced by
//! their defaults. Graphs with the same normal form share one kernel; the [`Bindings`] say which of
//! the caller's uids fills which slot.

use crate::{DataType, Graph, Op, PointwiseMode, Scalar, TensorId, TensorKind};
use serde::{Deserialize, Serialize};

/// The storage of a tensor of a normal graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NormalKind {
    /// A buffer that is read.
    Input,
    /// A buffer that is written.
    Output,
    /// An intermediate result.
    Virtual,
    /// One value for every element.
    Constant(Scalar),
    /// One value, read on the host at execution.
    RuntimeScalar,
}

/// A tensor of a normal graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NormalTensor {
    /// Element type.
    pub dtype: DataType,
    /// Logical extents.
    pub dims: Vec<i64>,
    /// Strides in elements; 0 where the extent is 1, and for constants and runtime scalars.
    pub strides: Vec<i64>,
    /// Storage of the data.
    pub kind: NormalKind,
    /// The tensor of row offsets, if this tensor is ragged.
    pub ragged_offset: Option<TensorId>,
    /// Alignment in bytes that the caller promises.
    pub alignment: i64,
}

/// An operation of a normal graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NormalNode {
    /// The type in which it is computed.
    pub compute: DataType,
    /// The operation and its operands.
    pub op: Op,
}

/// A graph without labels. Only [`Graph::normalise`] creates one, from a graph that was validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NormalGraph {
    tensors: Vec<NormalTensor>,
    nodes: Vec<NormalNode>,
    override_shapes: bool,
}

/// The purpose of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SlotRole {
    /// The buffer is read.
    Input,
    /// One value is read on the host when an execution begins.
    Scalar,
    /// The buffer is written.
    Output,
}

/// The uid that fills each slot, in the order of the kernel's arguments: all inputs, then all
/// runtime scalars, then all outputs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bindings {
    /// The caller's uid of each slot.
    pub uids: Vec<i64>,
    /// The caller's name for each slot's tensor, for messages.
    pub labels: Vec<String>,
    /// The caller's name for each node, in the normal graph's order, for messages.
    pub node_labels: Vec<String>,
    /// The caller's name for each tensor, in the normal graph's order, for messages.
    pub tensor_labels: Vec<String>,
}

impl NormalGraph {
    /// Returns all tensors, indexed by [`TensorId`].
    #[must_use]
    pub fn tensors(&self) -> &[NormalTensor] {
        &self.tensors
    }

    /// Returns all operations in topological order.
    #[must_use]
    pub fn nodes(&self) -> &[NormalNode] {
        &self.nodes
    }

    /// Returns true if the caller may override shapes at execution.
    #[must_use]
    pub fn override_shapes(&self) -> bool {
        self.override_shapes
    }

    /// Returns the tensor at `id`, if it exists.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<&NormalTensor> {
        self.tensors.get(id.index())
    }

    /// Returns the slots in order: inputs, runtime scalars, then outputs, each by first use.
    pub fn slots(&self) -> impl Iterator<Item = (TensorId, &NormalTensor, SlotRole)> {
        let of = |kind, role| {
            (0_u32..)
                .zip(&self.tensors)
                .filter(move |(_, tensor)| tensor.kind == kind)
                .map(move |(index, tensor)| (TensorId(index), tensor, role))
        };
        of(NormalKind::Input, SlotRole::Input)
            .chain(of(NormalKind::RuntimeScalar, SlotRole::Scalar))
            .chain(of(NormalKind::Output, SlotRole::Output))
    }

    /// Returns the bytes that identify the graph: equal exactly for graphs that share one kernel.
    /// The format is Postcard's, which is specified.
    ///
    /// # Errors
    ///
    /// Only if memory for the bytes runs out.
    pub fn canonical_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }
}

impl Graph {
    /// Returns the normal form of a validated graph, and the uids that fill its slots. Tensors that
    /// no node uses are left out.
    #[must_use]
    pub fn normalise(&self) -> (NormalGraph, Bindings) {
        let mut numbers: Vec<Option<TensorId>> = vec![None; self.tensors.len()];
        let mut order: Vec<TensorId> = Vec::new();
        let mut written = vec![false; self.tensors.len()];
        let mut number = |id: TensorId| {
            if let Some(slot @ None) = numbers.get_mut(id.index()) {
                *slot = Some(TensorId(u32::try_from(order.len()).unwrap_or(u32::MAX)));
                order.push(id);
            }
        };
        for node in &self.nodes {
            node.op.for_each_input(&mut |_, id| number(id));
            node.op.for_each_output(&mut |_, id| {
                number(id);
                if let Some(written) = written.get_mut(id.index()) {
                    *written = true;
                }
            });
        }
        // Offset tensors of ragged tensors are used by the ragged tensor, not by a node.
        let mut next = 0;
        while let Some(&id) = order.get(next) {
            next += 1;
            if let Some(offset) = self.tensor(id).and_then(|tensor| tensor.ragged_offset)
                && let Some(slot @ None) = numbers.get_mut(offset.index())
            {
                *slot = Some(TensorId(u32::try_from(order.len()).unwrap_or(u32::MAX)));
                order.push(offset);
            }
        }
        let renumber = |id: TensorId| numbers.get(id.index()).copied().flatten().unwrap_or(id);

        let mut bindings = Bindings::default();
        let mut tensors = Vec::with_capacity(order.len());
        let (mut scalars, mut outputs) = (Vec::new(), Vec::new());
        for id in &order {
            let Some(tensor) = self.tensor(*id) else {
                continue;
            };
            let is_written = written.get(id.index()).copied().unwrap_or(false);
            let kind = match tensor.kind {
                TensorKind::Buffer if is_written => NormalKind::Output,
                TensorKind::Buffer => NormalKind::Input,
                TensorKind::Virtual => NormalKind::Virtual,
                TensorKind::Constant(scalar) => NormalKind::Constant(scalar),
                TensorKind::RuntimeScalar => NormalKind::RuntimeScalar,
            };
            match kind {
                NormalKind::Input => {
                    bindings.uids.push(tensor.uid);
                    bindings.labels.push(tensor.to_string());
                }
                NormalKind::RuntimeScalar => scalars.push(tensor),
                NormalKind::Output => outputs.push(tensor),
                NormalKind::Virtual | NormalKind::Constant(_) => {}
            }
            bindings.tensor_labels.push(tensor.to_string());
            // Strides have no meaning on axes of extent 1, nor for values without memory (constants
            // and runtime scalars).
            let stored = matches!(kind, NormalKind::Input | NormalKind::Output | NormalKind::Virtual);
            let strides = tensor
                .dims
                .iter()
                .zip(&tensor.strides)
                .map(|(&dim, &stride)| if stored && dim > 1 { stride } else { 0 })
                .collect();
            tensors.push(NormalTensor {
                dtype: tensor.dtype,
                dims: tensor.dims.clone(),
                strides,
                kind,
                ragged_offset: tensor.ragged_offset.map(renumber),
                alignment: if kind == NormalKind::Virtual {
                    1
                } else {
                    tensor.alignment
                },
            });
        }
        for tensor in scalars.into_iter().chain(outputs) {
            bindings.uids.push(tensor.uid);
            bindings.labels.push(tensor.to_string());
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (position, node) in self.nodes.iter().enumerate() {
            let mut op = node.op.clone();
            op.renumber(&mut |id| renumber(id));
            write_out_defaults(&mut op);
            nodes.push(NormalNode {
                compute: node.compute,
                op,
            });
            bindings.node_labels.push(self.node_label(position));
        }
        (
            NormalGraph {
                tensors,
                nodes,
                override_shapes: self.override_shapes,
            },
            bindings,
        )
    }
}

/// Writes absent parameters out where their default is a number, so that a graph that states the
/// default and one that omits the parameter have the same normal form.
fn write_out_defaults(op: &mut Op) {
    let Op::Pointwise(op) = op else { return };
    match op.mode {
        PointwiseMode::ReluFwd | PointwiseMode::ReluBwd => {
            op.relu_lower_clip.get_or_insert(0.0);
            op.relu_lower_clip_slope.get_or_insert(0.0);
        }
        PointwiseMode::SwishFwd | PointwiseMode::SwishBwd => _ = op.swish_beta.get_or_insert(1.0),
        PointwiseMode::EluFwd | PointwiseMode::EluBwd => _ = op.elu_alpha.get_or_insert(1.0),
        PointwiseMode::SoftplusFwd | PointwiseMode::SoftplusBwd => _ = op.softplus_beta.get_or_insert(1.0),
        _ => {}
    }
}
