//! Builds graphs in code: for tests, benches and tools.

use crate::op::{ConvFprop, ConvGeometry, ConvMode};
use crate::{DataType, Graph, Node, Op, Pointwise, PointwiseMode, Scalar, Tensor, TensorId, TensorKind};

impl ConvGeometry {
    /// Returns a geometry of stride 1 and dilation 1 with equal padding on both sides of each of
    /// the `spatial` dimensions.
    #[must_use]
    pub fn same(spatial: usize, padding: i64) -> Self {
        ConvGeometry {
            pre_padding: vec![padding; spatial],
            post_padding: vec![padding; spatial],
            stride: vec![1; spatial],
            dilation: vec![1; spatial],
            mode: ConvMode::CrossCorrelation,
        }
    }
}

/// Collects tensors and nodes of a graph. Uids count from 1; nothing is checked until
/// [`Graph::validate`].
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
}

impl GraphBuilder {
    /// Returns a builder of an empty graph labelled `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        GraphBuilder {
            graph: Graph {
                name: name.to_owned(),
                min_api_version: [1, 0, 0],
                ..Graph::default()
            },
        }
    }

    /// Adds a tensor with any strides.
    pub fn tensor(&mut self, name: &str, dtype: DataType, dims: &[i64], strides: &[i64], kind: TensorKind) -> TensorId {
        let index = self.graph.tensors.len();
        self.graph.tensors.push(Tensor {
            uid: i64::try_from(index).unwrap_or(i64::MAX).saturating_add(1),
            name: name.to_owned(),
            dtype,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            kind,
            ragged_offset: None,
            alignment: 16,
        });
        TensorId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Adds a packed tensor, row-major over its dims (channels first), in one of the caller's
    /// buffers.
    pub fn buffer(&mut self, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
        let strides = row_major(dims);
        self.tensor(name, dtype, dims, &strides, TensorKind::Buffer)
    }

    /// Adds a packed channels-last tensor in one of the caller's buffers.
    pub fn buffer_channels_last(&mut self, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
        let strides = channels_last(dims);
        self.tensor(name, dtype, dims, &strides, TensorKind::Buffer)
    }

    /// Adds an intermediate tensor, packed and row-major over its dims.
    pub fn virtual_tensor(&mut self, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
        let strides = row_major(dims);
        self.tensor(name, dtype, dims, &strides, TensorKind::Virtual)
    }

    /// Adds a value that is stored in the graph.
    pub fn constant(&mut self, name: &str, dtype: DataType, dims: &[i64], value: Scalar) -> TensorId {
        let strides = row_major(dims);
        self.tensor(name, dtype, dims, &strides, TensorKind::Constant(value))
    }

    /// Adds any operation.
    pub fn node(&mut self, name: &str, compute: DataType, op: impl Into<Op>) -> &mut Self {
        self.graph.nodes.push(Node {
            name: name.to_owned(),
            compute,
            op: op.into(),
        });
        self
    }

    /// Adds a forward convolution.
    pub fn conv_fprop(
        &mut self,
        compute: DataType,
        x: TensorId,
        w: TensorId,
        y: TensorId,
        geometry: ConvGeometry,
    ) -> &mut Self {
        self.node("conv", compute, ConvFprop { x, w, y, geometry })
    }

    /// Adds a pointwise operation without parameters.
    pub fn pointwise(
        &mut self,
        compute: DataType,
        mode: PointwiseMode,
        operands: &[TensorId],
        out: TensorId,
    ) -> &mut Self {
        let operand = |index: usize| operands.get(index).copied();
        let op = Pointwise::new(mode, operand(0).unwrap_or(out), operand(1), operand(2), out);
        self.node(mode.name(), compute, op)
    }

    /// Returns the graph, unchecked.
    #[must_use]
    pub fn build(self) -> Graph {
        self.graph
    }
}

/// Returns packed strides in this memory order, the slowest axis first.
#[must_use]
pub fn packed_strides(dims: &[i64], slow_to_fast: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    let mut next: i64 = 1;
    for &axis in slow_to_fast.iter().rev() {
        if let (Some(stride), Some(dim)) = (strides.get_mut(axis), dims.get(axis)) {
            *stride = next;
            next = next.saturating_mul(*dim);
        }
    }
    strides
}

/// Returns packed row-major strides.
pub(crate) fn row_major(dims: &[i64]) -> Vec<i64> {
    let order: Vec<usize> = (0..dims.len()).collect();
    packed_strides(dims, &order)
}

/// Returns packed strides with axis 1 (channels) innermost.
pub(crate) fn channels_last(dims: &[i64]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..dims.len()).filter(|&axis| axis != 1).collect();
    if dims.len() > 1 {
        order.push(1);
    }
    packed_strides(dims, &order)
}
