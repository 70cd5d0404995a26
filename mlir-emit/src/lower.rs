//! Lowers a normal graph to one `func.func` over tensors in memory order.
//!
//! Inputs become values, each operation's file defines the values of what it writes, and stored tensors are rounded, put into
//! their memory order and returned. There is one `match` over the operations, here, and one in [`check`].

use crate::convert::convert;
use crate::ir::{Emitter, Loop, MISSING, Relation, affine_map, argument, dim};
use crate::narrow::{contracted, factor_types, is_code, is_packed, pack, packed_bytes, unpack};
use crate::quirks::{Quirk, Quirks};
use crate::shell::{Argument, Signature};
use crate::target::Target;
use crate::value::{Data, Ordered, Value, extents};
use crate::{
    EmitError, Unsupported, attention, block_scale, conv, custom, matmul, moe, norm, pointwise, reduction, resample,
};
use melior::ir::{Block, Type, Value as Ssa};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, NormalNode, NormalTensor, Op, SlotRole, TensorId};

/// Says whether a graph can be lowered, compiled and executed for the target; if not, why and where.
///
/// Takes microseconds, since nothing is built.
///
/// # Errors
///
/// The first reason found.
pub fn check(graph: &NormalGraph, target: &Target) -> Result<(), Unsupported> {
    for (index, tensor) in (0..).zip(graph.tensors()) {
        check_tensor(tensor, target).map_err(|reason| Unsupported::of_tensor(TensorId(index), reason))?;
    }
    for (position, node) in graph.nodes().iter().enumerate() {
        match &node.op {
            Op::ConvFprop(op) => conv::check(graph, node.compute, op),
            Op::Pointwise(op) => pointwise::check(graph, target, node.compute, op),
            Op::Sdpa(op) => attention::check(graph, node.compute, op),
            Op::SdpaBackward(op) => attention::check_backward(graph, node.compute, op),
            Op::ConvDgrad(op) => conv::check_dgrad(graph, node.compute, op),
            Op::ConvWgrad(op) => conv::check_wgrad(graph, node.compute, op),
            Op::Matmul(op) => matmul::check(graph, node.compute, op),
            Op::Reduction(op) => reduction::check(graph, node.compute, op),
            Op::BatchnormInference(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::BatchnormInferenceVariance(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::Batchnorm(op) => norm::check(graph, node.compute, op.x, &op.peer_stats),
            Op::BatchnormBackward(op) => norm::check(graph, node.compute, op.x, &op.peer_stats),
            Op::Layernorm(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::LayernormBackward(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::RmsNorm(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::RmsNormBackward(op) => norm::check(graph, node.compute, op.x, &[]),
            Op::ResampleFwd(op) => resample::check(graph, node.compute, op),
            Op::ResampleBwd(op) => resample::check_backward(graph, node.compute, op),
            Op::MoeGroupedMatmul(op) => moe::check(graph, node.compute, op),
            Op::MoeGroupedMatmulBwd(op) => moe::check_backward(graph, node.compute, op),
            Op::BlockScaleDequantize(op) => block_scale::check_dequantize(graph, node.compute, op),
            Op::BlockScaleQuantize(op) => block_scale::check_quantize(graph, node.compute, op),
            Op::CustomOp(op) => custom::check(graph, target, op),
        }
        .map_err(|unsupported| unsupported.at_node(position))?;
    }
    check_dependence(graph)
}

/// Declines outputs, and operands of all that is not pointwise, that depend on no buffer: the compiler evaluates them itself and copies
/// the result, instead of computing it in the caller's buffer.
fn check_dependence(graph: &NormalGraph) -> Result<(), Unsupported> {
    let mut depends: Vec<bool> = graph
        .tensors()
        .iter()
        .map(|tensor| tensor.kind == NormalKind::Input)
        .collect();
    for node in graph.nodes() {
        let (mut any, mut constant) = (false, None);
        let is_pointwise = matches!(node.op, Op::Pointwise(_));
        node.op.for_each_input(&mut |field, id| {
            let depends = depends.get(id.index()).copied().unwrap_or(false);
            any |= depends;
            let is_made = graph
                .tensor(id)
                .is_some_and(|tensor| tensor.kind == NormalKind::Virtual);
            // Some of what is made of these is made of one of them alone, such as a mean.
            let is_data = ["x", "dy", "q", "k", "v", "token", "weight", "doutput", "d_o"].contains(&field);
            if !depends && (is_data || is_made && !is_pointwise) {
                constant = constant.or(Some(id));
            }
        });
        if let Some(id) = constant {
            return Err(Unsupported::of_tensor(id, "it depends on no buffer"));
        }
        node.op.for_each_output(&mut |_, id| {
            if let Some(depends) = depends.get_mut(id.index()) {
                *depends = any;
            }
        });
    }
    for ((index, tensor), depends) in (0..).zip(graph.tensors()).zip(depends) {
        if tensor.kind == NormalKind::Output && !depends {
            return Err(Unsupported::of_tensor(TensorId(index), "it depends on no buffer"));
        }
    }
    Ok(())
}

fn check_tensor(tensor: &NormalTensor, target: &Target) -> Result<(), String> {
    use DataType::{Bf16, F16, F32, F64, I8, I32, I64, U8};
    if tensor.kind == NormalKind::RuntimeScalar && !matches!(tensor.dtype, F32 | F16 | Bf16 | F64 | U8 | I8 | I32 | I64)
    {
        return Err(format!(
            "a scalar of type {} cannot be passed at execution",
            tensor.dtype
        ));
    }
    let is_dense = || matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Dense { order } if order.len() == tensor.dims.len());
    if matches!(tensor.kind, NormalKind::Input | NormalKind::Output) && is_packed(tensor.dtype) && !is_dense() {
        return Err(format!(
            "elements of {}, which share bytes, with gaps between them or repeated",
            tensor.dtype
        ));
    }
    if tensor.ragged_offset.is_some() {
        return Err("it is ragged (its rows are found through offsets), which is not supported yet".to_owned());
    }
    let in_buffer = matches!(tensor.kind, NormalKind::Input | NormalKind::Output);
    let needed = target.pointer_alignment();
    if in_buffer && tensor.alignment < needed {
        return Err(format!(
            "its buffers are aligned to {} bytes, and kernels on {target} need {needed}",
            tensor.alignment
        ));
    }
    Ok(())
}

/// The arguments of the compiled function, which follow from the graph alone.
///
/// # Errors
///
/// If a span overflows, which validation rules out.
pub fn signature(graph: &NormalGraph) -> Result<Signature, EmitError> {
    let mut arguments = Vec::new();
    for (_, tensor, role) in graph.slots() {
        if role == SlotRole::Scalar {
            arguments.push(Argument {
                role,
                dtype: tensor.dtype,
                shape: Vec::new(),
                packed: true,
            });
            continue;
        }
        let (shape, packed) = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } => (extents(&tensor.dims, &order)?, true),
            Layout::Strided => {
                let span = rotini_graph::element_span(&tensor.dims, &tensor.strides);
                (vec![span.ok_or(EmitError::Internal("a span that overflows"))?], false)
            }
        };
        let (dtype, shape) = match tensor.dtype {
            dtype if is_packed(dtype) => {
                let bytes = shape
                    .iter()
                    .try_fold(1_i64, |count, &extent| count.checked_mul(extent))
                    .and_then(|count| packed_bytes(count, dtype));
                (
                    DataType::U8,
                    vec![bytes.ok_or(EmitError::Internal("a span that overflows"))?],
                )
            }
            dtype if is_code(dtype) => (DataType::U8, shape),
            dtype => (dtype, shape),
        };
        arguments.push(Argument {
            role,
            dtype,
            shape,
            packed,
        });
    }
    Ok(Signature { arguments })
}

/// What is known while a graph is lowered.
pub(crate) struct Lowering<'g, 'c, 'b> {
    graph: &'g NormalGraph,
    target: &'g Target,
    at: Emitter<'c, 'b>,
    values: Vec<Option<Value<'c, 'b>>>,
}

impl<'g, 'c, 'b> Lowering<'g, 'c, 'b> {
    /// Lowers the graph to where `at` is, and gives its results. The arguments of `block` are the signature's inputs and scalars followed
    /// by the old contents of the outputs that have gaps.
    pub(crate) fn run(
        graph: &'g NormalGraph,
        target: &'g Target,
        at: Emitter<'c, 'b>,
        block: &'b Block<'c>,
    ) -> Result<Vec<Ssa<'c, 'b>>, EmitError> {
        let values = vec![None; graph.tensors().len()];
        let mut lowering = Lowering {
            graph,
            target,
            at,
            values,
        };
        let mut next_argument = 0;
        let mut take = || {
            let value = argument(block, next_argument);
            next_argument += 1;
            value
        };
        for (id, tensor, role) in graph.slots() {
            let value = match role {
                SlotRole::Input => lowering.load(tensor, take()?)?,
                SlotRole::Scalar => Value {
                    data: Data::Scalar(take()?),
                    dtype: tensor.dtype,
                    dims: tensor.dims.clone(),
                },
                SlotRole::Output => continue,
            };
            lowering.define(id, value);
        }
        for (index, tensor) in (0..).zip(graph.tensors()) {
            if let NormalKind::Constant(scalar) = tensor.kind {
                // A constant is no code: it is written as the number that it is.
                let value = Value {
                    data: Data::Constant(scalar),
                    dtype: if is_code(tensor.dtype) {
                        contracted(tensor.dtype, lowering.quirks())
                    } else {
                        tensor.dtype
                    },
                    dims: tensor.dims.clone(),
                };
                lowering.define(TensorId(index), value);
            }
        }
        for (position, node) in graph.nodes().iter().enumerate() {
            match &node.op {
                Op::ConvFprop(op) => conv::lower(&mut lowering, node.compute, op)?,
                Op::Pointwise(op) => pointwise::lower(&mut lowering, node.compute, op)?,
                Op::Sdpa(op) => attention::lower(&mut lowering, node.compute, op)?,
                Op::SdpaBackward(op) => attention::lower_backward(&mut lowering, node.compute, op)?,
                Op::ConvDgrad(op) => conv::lower_dgrad(&mut lowering, node.compute, op)?,
                Op::ConvWgrad(op) => conv::lower_wgrad(&mut lowering, node.compute, op)?,
                Op::Matmul(op) => matmul::lower(&mut lowering, node.compute, op)?,
                Op::Reduction(op) => reduction::lower(&mut lowering, node.compute, op)?,
                Op::BatchnormInference(op) => norm::batchnorm_inference(&mut lowering, node.compute, op)?,
                Op::BatchnormInferenceVariance(op) => {
                    norm::batchnorm_inference_variance(&mut lowering, node.compute, op)?;
                }
                Op::Batchnorm(op) => norm::batchnorm(&mut lowering, node.compute, op)?,
                Op::BatchnormBackward(op) => norm::batchnorm_backward(&mut lowering, node.compute, op)?,
                Op::Layernorm(op) => norm::layernorm(&mut lowering, node.compute, op)?,
                Op::LayernormBackward(op) => norm::layernorm_backward(&mut lowering, node.compute, op)?,
                Op::RmsNorm(op) => norm::rms_norm(&mut lowering, node.compute, op)?,
                Op::RmsNormBackward(op) => norm::rms_norm_backward(&mut lowering, node.compute, op)?,
                Op::ResampleFwd(op) => resample::lower(&mut lowering, node.compute, op)?,
                Op::ResampleBwd(op) => resample::lower_backward(&mut lowering, node.compute, op)?,
                Op::MoeGroupedMatmul(op) => moe::lower(&mut lowering, node.compute, op)?,
                Op::MoeGroupedMatmulBwd(op) => moe::lower_backward(&mut lowering, node.compute, op)?,
                Op::BlockScaleDequantize(op) => block_scale::dequantize(&mut lowering, node.compute, op)?,
                Op::BlockScaleQuantize(op) => block_scale::quantize(&mut lowering, node.compute, op)?,
                Op::CustomOp(op) => custom::lower(&mut lowering, position, op)?,
            }
        }
        let mut results = Vec::new();
        for (id, tensor, role) in graph.slots() {
            if role == SlotRole::Output {
                results.push(lowering.store(id, tensor, &mut take)?);
            }
        }
        Ok(results)
    }

    pub(crate) fn emitter(&self) -> Emitter<'c, 'b> {
        self.at
    }

    pub(crate) fn graph(&self) -> &'g NormalGraph {
        self.graph
    }

    pub(crate) fn target(&self) -> &'g Target {
        self.target
    }

    pub(crate) fn quirks(&self) -> Quirks {
        self.at.quirks()
    }

    pub(crate) fn tensor(&self, id: TensorId) -> Result<&'g NormalTensor, EmitError> {
        self.graph.tensor(id).ok_or(EmitError::Internal("an unknown tensor"))
    }

    pub(crate) fn value(&self, id: TensorId) -> Result<&Value<'c, 'b>, EmitError> {
        self.values
            .get(id.index())
            .and_then(Option::as_ref)
            .ok_or(EmitError::Internal("a value before its definition"))
    }

    pub(crate) fn define(&mut self, id: TensorId, value: Value<'c, 'b>) {
        if let Some(slot) = self.values.get_mut(id.index()) {
            *slot = Some(value);
        }
    }

    /// Defines a tensor as the sums of a contraction, which are of the compute type.
    ///
    /// Where the sums themselves are stored as well as more than one tensor of what is made of them, nothing is fused to the sums
    /// ([`Quirk::StoredSums`]).
    pub(crate) fn define_sums(
        &mut self,
        id: TensorId,
        sums: Ordered<'c, 'b>,
        compute: DataType,
    ) -> Result<(), EmitError> {
        let carried_type = self.carried_type(id, compute)?;
        let is_stored = self
            .tensor(id)
            .is_ok_and(|tensor| tensor.kind == NormalKind::Output && tensor.dtype == sums.dtype);
        let escapes = carried_type == sums.dtype && (is_stored || self.readers(id).count() > 1);
        let mut carried = self.carry(sums, carried_type)?;
        if escapes && self.quirks().avoids(Quirk::StoredSums) && self.stores_on_the_way(id) {
            carried.ssa = self.at.barrier(carried.ssa)?;
        }
        self.define(id, Value::of(carried));
        Ok(())
    }

    /// The nodes that read a tensor.
    fn readers(&self, id: TensorId) -> impl Iterator<Item = &'g NormalNode> {
        self.graph.nodes().iter().filter(move |node| {
            let mut reads = false;
            node.op.for_each_input(&mut |_, input| reads |= input == id);
            reads
        })
    }

    /// Whether what is computed element by element from a tensor may be more than one tensor, of which one is made of the other.
    fn stores_on_the_way(&self, id: TensorId) -> bool {
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            for reader in self.readers(id) {
                let Op::Pointwise(op) = &reader.op else { return true };
                let is_stored = self
                    .tensor(op.out_0)
                    .is_ok_and(|tensor| tensor.kind == NormalKind::Output);
                match self.readers(op.out_0).count() {
                    0 => {}
                    1 if !is_stored => next.push(op.out_0),
                    _ => return true,
                }
            }
        }
        false
    }

    /// The type in which a tensor's value is carried to its consumers: the compute type, so that it is rounded only when stored; but
    /// its own type if that is an integer type or one of few bits, because there the conversion is what the tensor is for.
    pub(crate) fn carried_type(&self, id: TensorId, compute: DataType) -> Result<DataType, EmitError> {
        let dtype = self.tensor(id)?.dtype;
        Ok(if dtype.is_integer() || is_code(dtype) {
            dtype
        } else {
            compute
        })
    }

    /// The value of a tensor as an operand that an operation reads many times over: with all its axes, and settled. What was computed
    /// on the way to it is a dispatch of its own ([`Quirk::UnsettledFactors`]).
    pub(crate) fn settled(&self, id: TensorId) -> Result<Ordered<'c, 'b>, EmitError> {
        self.settled_as(id, contracted(self.value(id)?.dtype, self.quirks()))
    }

    /// Both factors of a contraction, in the types in which they can be multiplied.
    pub(crate) fn factors(&self, [a, b]: [TensorId; 2], compute: DataType) -> Result<[Ordered<'c, 'b>; 2], EmitError> {
        let types = [self.value(a)?.dtype, self.value(b)?.dtype];
        let [of_a, of_b] = factor_types(types, compute, self.target, self.quirks());
        Ok([self.settled_as(a, of_a)?, self.settled_as(b, of_b)?])
    }

    /// Both factors of a contraction to a matrix of these `rows` and `columns` over loops of these `summed` extents, in types in which they
    /// can be summed.
    ///
    /// Products of f16 with so few rows or columns that no matrix core multiplies them are summed by threads. Where a thread takes 5 or 7
    /// of them at a time, as it does of an odd number, these are widened ([`Quirk::OddHalves`]).
    pub(crate) fn summable(
        &self,
        factors: [Ordered<'c, 'b>; 2],
        [rows, columns]: [i64; 2],
        summed: &[i64],
        compute: DataType,
    ) -> Result<[Ordered<'c, 'b>; 2], EmitError> {
        const FEW: i64 = 4;
        let is_odd = |&extent: &i64| extent % 2 != 0 && (extent % 5 == 0 || extent % 7 == 0);
        let halves = factors.iter().all(|factor| factor.dtype == DataType::F16) && compute != DataType::F16;
        let avoids = self.quirks().avoids(Quirk::OddHalves);
        if !avoids || !halves || rows.min(columns) > FEW || !summed.iter().any(is_odd) {
            return Ok(factors);
        }
        let [a, b] = factors;
        Ok([self.converted(a, compute)?, self.converted(b, compute)?])
    }

    /// A tensor with its elements converted, in a dispatch of its own.
    pub(crate) fn converted(&self, value: Ordered<'c, 'b>, dtype: DataType) -> Result<Ordered<'c, 'b>, EmitError> {
        let value = self.carry(value, dtype)?;
        Ok(Ordered {
            ssa: self.at.barrier(value.ssa)?,
            ..value
        })
    }

    /// [`settled`](Self::settled) with its elements converted.
    pub(crate) fn settled_as(&self, id: TensorId, dtype: DataType) -> Result<Ordered<'c, 'b>, EmitError> {
        let value = self.value(id)?.materialise(&self.at)?;
        let tensor = self.tensor(id)?;
        let is_argument = tensor.kind == NormalKind::Input
            && !is_packed(tensor.dtype)
            && matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Dense { order } if order.len() == tensor.dims.len());
        if is_argument && value.dtype == dtype {
            return Ok(value);
        }
        let value = self.carry(value, dtype)?;
        Ok(Ordered {
            ssa: self.at.barrier_against(Quirk::UnsettledFactors, value.ssa)?,
            ..value
        })
    }

    /// What a loop over no tensor has computed (indices, gathered elements), in a dispatch of its own where it could end up in that of
    /// a convolution on packed tiles ([`Quirk::LooseLoops`]).
    pub(crate) fn apart(&self, value: Ordered<'c, 'b>) -> Result<Ordered<'c, 'b>, EmitError> {
        let ssa = self.apart_against(Quirk::LooseLoops, value.ssa)?;
        Ok(Ordered { ssa, ..value })
    }

    /// [`apart_from_contractions`](Self::apart_from_contractions), to keep a defect of the compiler away.
    pub(crate) fn apart_against(&self, quirk: Quirk, ssa: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        if self.quirks().avoids(quirk) {
            self.apart_from_contractions(ssa)
        } else {
            Ok(ssa)
        }
    }

    /// A tensor in a dispatch of its own if the graph has a convolution or a matmul that could take it into its own.
    pub(crate) fn apart_from_contractions(&self, ssa: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        let contracts = self.graph.nodes().iter().any(|node| {
            matches!(
                node.op,
                Op::ConvFprop(_)
                    | Op::ConvDgrad(_)
                    | Op::ConvWgrad(_)
                    | Op::Matmul(_)
                    | Op::MoeGroupedMatmul(_)
                    | Op::MoeGroupedMatmulBwd(_)
                    | Op::Sdpa(_)
                    | Op::SdpaBackward(_)
            )
        });
        if contracts { self.at.barrier(ssa) } else { Ok(ssa) }
    }

    /// The memory order of an output without gaps.
    pub(crate) fn stored_order(&self, id: TensorId) -> Option<Vec<usize>> {
        let tensor = self
            .graph
            .tensor(id)
            .filter(|tensor| tensor.kind == NormalKind::Output)?;
        match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } if order.len() == tensor.dims.len() => Some(order),
            _ => None,
        }
    }

    /// Whether all tensors in memory lie in the order of their axes, and all tensors have all of these axes, counted from the last one, or
    /// none of them: more than one element along them, stored.
    pub(crate) fn is_row_major_and_whole(&self, from_the_right: &[usize]) -> bool {
        let is_scalar = |tensor: &&NormalTensor| tensor.dims.iter().all(|&dim| dim == 1);
        self.graph
            .tensors()
            .iter()
            .filter(|tensor| !is_scalar(tensor))
            .all(|tensor| {
                let is_stored = matches!(tensor.kind, NormalKind::Input | NormalKind::Output);
                let wide = tensor.dims.iter().zip(&tensor.strides).filter(|(dim, _)| **dim > 1);
                let is_row_major = !is_stored || wide.map(|(_, stride)| stride).rev().is_sorted();
                let has = |axis: &&usize| tensor.dims.iter().rev().nth(**axis).is_some_and(|&dim| dim > 1);
                let count = from_the_right.iter().filter(has).count();
                is_row_major && (count == 0 || count == from_the_right.len())
            })
    }

    /// An input as a value: its argument as it is, or gathered if it has gaps.
    fn load(&self, tensor: &NormalTensor, ssa: Ssa<'c, 'b>) -> Result<Value<'c, 'b>, EmitError> {
        let data = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } if is_packed(tensor.dtype) => Data::Tensor {
                ssa: unpack(&self.at, ssa, &extents(&tensor.dims, &order)?, tensor.dtype)?,
                order,
            },
            Layout::Dense { order } => Data::Tensor { ssa, order },
            Layout::Strided => {
                let order: Vec<usize> = (0..tensor.dims.len()).collect();
                Data::Tensor {
                    ssa: self.gather(tensor, ssa)?,
                    order,
                }
            }
        };
        Ok(Value {
            data,
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
        })
    }

    /// Reads the elements of a strided tensor out of its span.
    fn gather(&self, tensor: &NormalTensor, span: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        let at = &self.at;
        let gathered = at.tabulate(&tensor.dims, tensor.dtype, |body| {
            let index = body.index_type();
            let mut address = body.integer(0, index)?;
            for (axis, &stride) in tensor.strides.iter().enumerate() {
                if stride == 0 {
                    continue;
                }
                let offset = body.same("arith.muli", &[body.loop_index(axis)?, body.integer(stride, index)?])?;
                address = body.same("arith.addi", &[address, offset])?;
            }
            body.extract(at.captured(span), &[address], tensor.dtype)
        })?;
        self.apart_against(Quirk::LooseLoops, gathered)
    }

    /// Rounds a value to its tensor's type and puts it into the tensor's memory order.
    fn store(
        &self,
        id: TensorId,
        tensor: &NormalTensor,
        old: &mut impl FnMut() -> Result<Ssa<'c, 'b>, EmitError>,
    ) -> Result<Ssa<'c, 'b>, EmitError> {
        let value = self.value(id)?.materialise(&self.at)?;
        let (order, span) = match Layout::of(&tensor.dims, &tensor.strides) {
            Layout::Dense { order } => (order, None),
            Layout::Strided => (value.order.clone(), Some(old()?)),
        };
        let rounded = if value.dtype == tensor.dtype && value.order == order {
            value
        } else {
            self.round(&value, tensor.dtype, order)?
        };
        match span {
            None if is_packed(tensor.dtype) => pack(
                &self.at,
                rounded.ssa,
                &extents(&rounded.dims, &rounded.order)?,
                tensor.dtype,
            ),
            None => Ok(rounded.ssa),
            Some(old) => self.scatter(tensor, &rounded, old),
        }
    }

    /// A value in another type and order, as one elementwise operation that fuses with what made it.
    pub(crate) fn round(
        &self,
        value: &Ordered<'c, 'b>,
        dtype: DataType,
        order: Vec<usize>,
    ) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = &self.at;
        let rank = order.len();
        let results = value
            .order
            .iter()
            .map(|axis| order.iter().position(|candidate| candidate == axis).map(dim))
            .collect::<Option<Vec<_>>>()
            .ok_or(EmitError::Internal("orders over different axes"))?;
        let identity = affine_map(rank, &(0..rank).map(dim).collect::<Vec<_>>());
        let init = at.empty(&extents(&value.dims, &order)?, dtype)?;
        let inputs = [(value.ssa, value.dtype, affine_map(rank, &results))];
        let ssa = at.generic(
            &vec![Loop::Parallel; rank],
            &inputs,
            (init, dtype, identity),
            |body, elements| {
                let element = elements.first().copied().ok_or(MISSING)?;
                convert(body, element, value.dtype, dtype)
            },
        )?;
        Ok(Ordered {
            ssa,
            order,
            dtype,
            dims: value.dims.clone(),
        })
    }

    /// A value as an output of conversions only: used where a carried type differs from what an operation produced.
    pub(crate) fn carry(&self, value: Ordered<'c, 'b>, dtype: DataType) -> Result<Ordered<'c, 'b>, EmitError> {
        if value.dtype == dtype {
            return Ok(value);
        }
        let order = value.order.clone();
        self.round(&value, dtype, order)
    }

    /// Writes the elements of a strided tensor into its span: each address takes the element that lies there, or keeps what it had.
    ///
    /// The gaps are read and written back, so nothing else may write to them meanwhile.
    fn scatter(
        &self,
        tensor: &NormalTensor,
        value: &Ordered<'c, 'b>,
        old: Ssa<'c, 'b>,
    ) -> Result<Ssa<'c, 'b>, EmitError> {
        let at = &self.at;
        let span = rotini_graph::element_span(&tensor.dims, &tensor.strides)
            .ok_or(EmitError::Internal("a span that overflows"))?;
        // From the largest stride to the smallest; strides of outputs nest, so division finds each coordinate.
        let mut axes: Vec<(usize, i64, i64)> = (0..)
            .zip(tensor.dims.iter().zip(&tensor.strides))
            .map(|(axis, (&dim, &stride))| (axis, dim, stride))
            .filter(|(_, dim, _)| *dim > 1)
            .collect();
        axes.sort_by_key(|&(_, _, stride)| std::cmp::Reverse(stride));
        let identity = || affine_map(1, &[dim(0)]);
        let init = at.empty(&[span], tensor.dtype)?;
        let inputs = [(old, tensor.dtype, identity())];
        at.generic(
            &[Loop::Parallel],
            &inputs,
            (init, tensor.dtype, identity()),
            |body, elements| {
                let old = elements.first().copied().ok_or(MISSING)?;
                let index = body.index_type();
                let zero = body.integer(0, index)?;
                let mut rest = body.loop_index(0)?;
                let mut inside = body.integer(1, body.bool_type())?;
                let mut coordinates = vec![zero; tensor.dims.len()];
                for &(axis, extent, stride) in &axes {
                    let divisor = body.integer(stride, index)?;
                    let quotient = body.same("arith.divui", &[rest, divisor])?;
                    rest = body.same("arith.remui", &[rest, divisor])?;
                    let last = body.integer(extent - 1, index)?;
                    let fits = body.compare_indices(Relation::AtMost, quotient, last)?;
                    inside = body.same("arith.andi", &[inside, fits])?;
                    if let Some(coordinate) = coordinates.get_mut(axis) {
                        // Clamped, so that the read is in bounds where the element is not used.
                        *coordinate = body.same("arith.minui", &[quotient, last])?;
                    }
                }
                let exact = body.compare_indices(Relation::AtMost, rest, zero)?;
                inside = body.same("arith.andi", &[inside, exact])?;
                let position = value
                    .order
                    .iter()
                    .map(|&axis| coordinates.get(axis).copied())
                    .collect::<Option<Vec<_>>>()
                    .ok_or(EmitError::Internal("an axis out of range"))?;
                let new = body.extract(at.captured(value.ssa), &position, tensor.dtype)?;
                let element = body.element_type(tensor.dtype)?;
                if tensor.dtype != DataType::Bf16 || !body.quirks().avoids(Quirk::SelectedBf16) {
                    return body.one("arith.select", &[inside, new, old], element, &[]);
                }
                // As bits, which no conversion changes.
                let bits = body.bits16_type();
                let [new_bits, old_bits] = [new, old].map(|value| body.one("arith.bitcast", &[value], bits, &[]));
                let kept = body.one("arith.select", &[inside, new_bits?, old_bits?], bits, &[])?;
                body.one("arith.bitcast", &[kept], element, &[])
            },
        )
    }
}

/// The types of the lowered function: its arguments and its results.
pub(crate) fn function_types<'c>(
    at: &Emitter<'c, '_>,
    signature: &Signature,
) -> Result<(Vec<Type<'c>>, Vec<Type<'c>>), EmitError> {
    let of = |arguments: &[&Argument]| {
        arguments
            .iter()
            .map(|argument| at.tensor_type(&argument.shape, argument.dtype))
            .collect::<Result<Vec<_>, _>>()
    };
    let read: Vec<&Argument> = signature.inputs().collect();
    let kept: Vec<&Argument> = signature.outputs().filter(|argument| !argument.packed).collect();
    let written: Vec<&Argument> = signature.outputs().collect();
    let mut arguments = of(&read)?;
    for scalar in signature.scalars() {
        arguments.push(at.element_type(scalar.dtype)?);
    }
    arguments.extend(of(&kept)?);
    Ok((arguments, of(&written)?))
}
