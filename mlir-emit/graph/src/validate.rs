//! Proves a graph well formed and puts its nodes in topological order.
//!
//! Once [`Graph::validate`] has passed, every tensor index is in range, every extent and span fits
//! an `i64`, every tensor that is read has one definition before its use, and the shapes and
//! attributes of every operation are consistent, except for custom operations. Later stages rely on
//! these properties: they may decline a graph, but need not check again.

use crate::{
    Graph, GraphError, MAX_GRAPH_SIZE, MAX_RANK, Op, Pointwise, PointwiseMode, Scalar, Tensor, TensorId, TensorKind,
    broadcast_dims, element_span,
};

/// The largest tensor in bytes: beyond it, address arithmetic on the device could overflow.
const MAX_TENSOR_BYTES: i64 = 1 << 46;

impl Graph {
    /// Checks everything that does not depend on the lowering, and sorts the nodes topologically.
    /// The sort is stable: independent nodes keep their order.
    ///
    /// # Errors
    ///
    /// Returns the first fault found, which names the tensor or node.
    pub fn validate(&mut self) -> Result<(), GraphError> {
        limit("nodes", self.nodes.len())?;
        limit("tensors", self.tensors.len())?;
        if self.nodes.is_empty() {
            return Err(GraphError::Empty);
        }
        self.check_uids()?;
        for tensor in &self.tensors {
            check_tensor(tensor)?;
            if let Some(offset) = tensor.ragged_offset.filter(|offset| self.tensor(*offset).is_none()) {
                return Err(GraphError::UnknownTensor {
                    node: tensor.to_string(),
                    field: "ragged_offset",
                    index: offset.0,
                });
            }
        }
        let writers = self.check_references()?;
        self.sort(&writers)?;
        self.check_outputs(&writers)?;
        for position in 0..self.nodes.len() {
            self.check_operation(position)?;
        }
        Ok(())
    }

    fn check_uids(&self) -> Result<(), GraphError> {
        let mut uids: Vec<i64> = self.tensors.iter().map(|tensor| tensor.uid).collect();
        uids.sort_unstable();
        match uids.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(pair) => Err(GraphError::DuplicateUid {
                uid: pair.first().copied().unwrap_or_default(),
            }),
            None => Ok(()),
        }
    }

    /// Checks that every tensor index is in range, and returns the node that writes each tensor.
    fn check_references(&self) -> Result<Vec<Option<usize>>, GraphError> {
        let mut writers: Vec<Option<usize>> = vec![None; self.tensors.len()];
        for (position, node) in self.nodes.iter().enumerate() {
            let mut fault = None;
            let mut check = |field, id: TensorId| {
                if self.tensor(id).is_none() {
                    fault.get_or_insert(GraphError::UnknownTensor {
                        node: self.node_label(position),
                        field,
                        index: id.0,
                    });
                }
            };
            node.op.for_each_input(&mut check);
            node.op.for_each_output(&mut check);
            node.op.for_each_output(&mut |field, id| {
                let (Some(tensor), Some(writer)) = (self.tensor(id), writers.get_mut(id.index())) else {
                    return;
                };
                if matches!(tensor.kind, TensorKind::Constant(_) | TensorKind::RuntimeScalar) {
                    fault.get_or_insert(GraphError::WritesValue {
                        node: self.node_label(position),
                        field,
                        tensor: tensor.to_string(),
                    });
                }
                if let Some(other) = writer.replace(position) {
                    fault.get_or_insert(GraphError::WrittenTwice {
                        node: self.node_label(position),
                        field,
                        tensor: tensor.to_string(),
                        other: self.node_label(other),
                    });
                }
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(writers)
    }

    /// Sorts the nodes by Kahn's algorithm, always taking the first node that is ready.
    fn sort(&mut self, writers: &[Option<usize>]) -> Result<(), GraphError> {
        let writer = |id: TensorId| writers.get(id.index()).copied().flatten();
        let count = self.nodes.len();
        let mut waits_for = vec![0_usize; count];
        let mut wakes: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (position, node) in self.nodes.iter().enumerate() {
            let mut fault = None;
            node.op
                .for_each_input(&mut |field, id| match (writer(id), self.tensor(id)) {
                    (Some(before), _) => {
                        if let (Some(waits), Some(list)) = (waits_for.get_mut(position), wakes.get_mut(before)) {
                            *waits = waits.saturating_add(1);
                            list.push(position);
                        }
                    }
                    (None, Some(tensor)) if tensor.kind == TensorKind::Virtual => {
                        fault.get_or_insert(GraphError::Undefined {
                            node: self.node_label(position),
                            field,
                            tensor: tensor.to_string(),
                        });
                    }
                    (None, _) => {}
                });
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        let mut ready: std::collections::BTreeSet<usize> = waits_for
            .iter()
            .enumerate()
            .filter(|(_, waits)| **waits == 0)
            .map(|(position, _)| position)
            .collect();
        let mut order = Vec::with_capacity(count);
        while let Some(position) = ready.pop_first() {
            order.push(position);
            for &next in wakes.get(position).into_iter().flatten() {
                if let Some(waits) = waits_for.get_mut(next) {
                    *waits = waits.saturating_sub(1);
                    if *waits == 0 {
                        ready.insert(next);
                    }
                }
            }
        }
        if order.len() < count {
            return Err(self.cycle(&waits_for, &writer));
        }
        if order.iter().enumerate().any(|(rank, &position)| rank != position) {
            let mut nodes: Vec<_> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
            self.nodes = order
                .iter()
                .filter_map(|&position| nodes.get_mut(position).and_then(Option::take))
                .collect();
        }
        Ok(())
    }

    /// Returns an error that names a node of a cycle, given the remaining counts of `waits_for`
    /// after every node that can run has run.
    fn cycle(&self, waits_for: &[usize], writer: &dyn Fn(TensorId) -> Option<usize>) -> GraphError {
        let is_stuck = |position: usize| waits_for.get(position).is_some_and(|waits| *waits > 0);
        // A stuck node may be behind a cycle without being part of it. Every stuck node waits for
        // another stuck node, so following these backwards reaches some node twice: that node is on
        // a cycle.
        let mut visited = vec![false; waits_for.len()];
        let mut position = waits_for.iter().position(|waits| *waits > 0).unwrap_or_default();
        while let Some(seen @ false) = visited.get_mut(position) {
            *seen = true;
            if let Some(node) = self.nodes.get(position) {
                let mut back = None;
                node.op
                    .for_each_input(&mut |_, id| back = back.or(writer(id).filter(|before| is_stuck(*before))));
                position = back.unwrap_or(position);
            }
        }
        GraphError::Cycle {
            node: self.node_label(position),
        }
    }

    fn check_outputs(&self, writers: &[Option<usize>]) -> Result<(), GraphError> {
        let mut stores = false;
        for (tensor, writer) in self.tensors.iter().zip(writers) {
            if writer.is_none() || tensor.kind != TensorKind::Buffer {
                continue;
            }
            stores = true;
            if overlaps(&tensor.dims, &tensor.strides) {
                return Err(GraphError::OverlappingOutput {
                    tensor: tensor.to_string(),
                });
            }
        }
        if stores { Ok(()) } else { Err(GraphError::NoOutput) }
    }

    /// Checks the shapes and attributes of one operation by the rules in [`shapes`](crate::shapes).
    fn check_operation(&self, position: usize) -> Result<(), GraphError> {
        match &self.nodes[position].op {
            Op::ConvFprop(op) => self.check_conv_fprop(position, op),
            Op::ConvDgrad(op) => self.check_conv_dgrad(position, op),
            Op::ConvWgrad(op) => self.check_conv_wgrad(position, op),
            Op::Matmul(op) => self.check_matmul(position, op),
            Op::Reduction(op) => self.check_reduction(position, op),
            Op::ResampleFwd(op) => self.check_resample_fwd(position, op),
            Op::ResampleBwd(op) => self.check_resample_bwd(position, op),
            Op::BlockScaleDequantize(op) => self.check_block_scale_dequantize(position, op),
            Op::BlockScaleQuantize(op) => self.check_block_scale_quantize(position, op),
            Op::MoeGroupedMatmul(op) => self.check_moe_grouped_matmul(position, op),
            Op::MoeGroupedMatmulBwd(op) => self.check_moe_grouped_matmul_bwd(position, op),
            Op::Pointwise(pointwise) => self.check_pointwise(position, pointwise),
            Op::BatchnormInference(op) => self.check_batchnorm_inference(position, op),
            Op::BatchnormInferenceVariance(op) => self.check_batchnorm_inference_variance(position, op),
            Op::Batchnorm(op) => self.check_batchnorm(position, op),
            Op::BatchnormBackward(op) => self.check_batchnorm_backward(position, op),
            Op::Layernorm(op) => self.check_layernorm(position, op),
            Op::LayernormBackward(op) => self.check_layernorm_backward(position, op),
            Op::RmsNorm(op) => self.check_rms_norm(position, op),
            Op::RmsNormBackward(op) => self.check_rms_norm_backward(position, op),
            Op::Sdpa(op) => self.check_sdpa(position, op),
            Op::SdpaBackward(op) => self.check_sdpa_backward(position, op),
            // Only the plugin that owns the id knows the rules for its tensors.
            Op::CustomOp(_) => Ok(()),
        }
    }

    /// Returns an error that no version of the rules can allow.
    pub(crate) fn contradiction(&self, position: usize, what: impl Into<String>) -> GraphError {
        GraphError::Contradiction {
            node: self.node_label(position),
            what: what.into(),
        }
    }

    /// Returns an error that the current rules do not allow, though others might.
    pub(crate) fn attribute(&self, position: usize, what: impl Into<String>) -> GraphError {
        GraphError::Attribute {
            node: self.node_label(position),
            what: what.into(),
        }
    }

    pub(crate) fn shape(&self, position: usize, tensor: &Tensor, inferred: Vec<i64>) -> Result<(), GraphError> {
        if tensor.dims == inferred {
            return Ok(());
        }
        Err(GraphError::Shape {
            node: self.node_label(position),
            tensor: tensor.to_string(),
            declared: tensor.dims.clone(),
            inferred,
        })
    }

    fn check_pointwise(&self, position: usize, op: &Pointwise) -> Result<(), GraphError> {
        let operands: Vec<TensorId> = [Some(op.in_0), op.in_1, op.in_2].into_iter().flatten().collect();
        let arity = op.mode.arity();
        let contiguous = op.in_2.is_none() || op.in_1.is_some();
        if operands.len() != arity || !contiguous {
            let what = format!(
                "{} takes {arity} operands, but {} are given",
                op.mode.name(),
                operands.len()
            );
            return Err(if operands.len() < arity || !contiguous {
                self.contradiction(position, what)
            } else {
                self.attribute(position, what)
            });
        }
        if let Some((_, name)) = op.parameters().find(|(parameter, _)| !op.mode.takes(*parameter)) {
            return Err(self.attribute(position, format!("{name} means nothing to {}", op.mode.name())));
        }
        let out = self.at(op.out_0);
        if op.mode == PointwiseMode::GenIndex {
            let rank = out.dims.len();
            let in_range = op
                .axis
                .and_then(|axis| usize::try_from(axis).ok())
                .is_some_and(|axis| axis < rank);
            if !in_range {
                let what = format!(
                    "GEN_INDEX needs an axis from 0 to {}, not {:?}",
                    rank.saturating_sub(1),
                    op.axis
                );
                // Some libraries use negative axes, which count backwards from the last axis.
                return Err(match op.axis {
                    Some(..0) => self.attribute(position, what),
                    _ => self.contradiction(position, what),
                });
            }
        }
        // Operands broadcast against the declared output, which may be larger than all of them.
        for id in operands {
            let operand = self.at(id);
            if broadcast_dims(&operand.dims, &out.dims).as_ref() != Some(&out.dims) {
                let what = format!(
                    "{operand} with dims {:?} does not broadcast to {:?}",
                    operand.dims, out.dims
                );
                return Err(self.attribute(position, what));
            }
        }
        Ok(())
    }
}

fn limit(what: &'static str, count: usize) -> Result<(), GraphError> {
    if count > MAX_GRAPH_SIZE {
        return Err(GraphError::TooLarge {
            what,
            count,
            limit: MAX_GRAPH_SIZE,
        });
    }
    Ok(())
}

fn check_tensor(tensor: &Tensor) -> Result<(), GraphError> {
    let rank = tensor.dims.len();
    if rank == 0 || rank > MAX_RANK {
        return Err(GraphError::Rank {
            tensor: tensor.to_string(),
            rank,
            limit: MAX_RANK,
        });
    }
    if tensor.strides.len() != rank {
        return Err(GraphError::StrideRank {
            tensor: tensor.to_string(),
            dims: rank,
            strides: tensor.strides.len(),
        });
    }
    for (axis, (&extent, &stride)) in tensor.dims.iter().zip(&tensor.strides).enumerate() {
        if extent < 1 {
            return Err(GraphError::Extent {
                tensor: tensor.to_string(),
                axis,
                extent,
            });
        }
        if stride < 0 {
            return Err(GraphError::Stride {
                tensor: tensor.to_string(),
                axis,
                stride,
            });
        }
    }
    // Both the span in memory and the number of elements (larger where an axis has stride 0) must
    // be addressable.
    let elements = tensor
        .dims
        .iter()
        .try_fold(1_i64, |product, &dim| product.checked_mul(dim));
    let fits = [element_span(&tensor.dims, &tensor.strides), elements]
        .into_iter()
        .all(|count| {
            count
                .and_then(|count| count.checked_mul(i64::from(tensor.dtype.bits())))
                .is_some_and(|bits| bits / 8 <= MAX_TENSOR_BYTES)
        });
    if !fits {
        return Err(GraphError::Overflow {
            tensor: tensor.to_string(),
        });
    }
    if tensor.alignment < 1 || tensor.alignment.count_ones() != 1 {
        return Err(GraphError::Alignment {
            tensor: tensor.to_string(),
            alignment: tensor.alignment,
        });
    }
    let fits = match tensor.kind {
        TensorKind::Constant(Scalar::Float(_)) => tensor.dtype.is_float(),
        TensorKind::Constant(Scalar::Integer(value)) => tensor.dtype.holds_integer(value),
        TensorKind::Buffer | TensorKind::Virtual | TensorKind::RuntimeScalar => true,
    };
    if !fits {
        return Err(GraphError::ValueType {
            tensor: tensor.to_string(),
            dtype: tensor.dtype,
        });
    }
    Ok(())
}

/// Returns true if two elements may share an address. Exact if the strides nest, as in all layouts
/// that are used for outputs; any other layout counts as overlapping.
fn overlaps(dims: &[i64], strides: &[i64]) -> bool {
    let mut axes: Vec<(i64, i64)> = dims
        .iter()
        .zip(strides)
        .filter(|(dim, _)| **dim > 1)
        .map(|(&dim, &stride)| (stride, dim))
        .collect();
    axes.sort_unstable();
    let mut reach: i64 = 0;
    for (stride, dim) in axes {
        if stride <= reach {
            return true;
        }
        reach = reach.saturating_add((dim - 1).saturating_mul(stride));
    }
    false
}
