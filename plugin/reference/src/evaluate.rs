//! Executes a graph: reads inputs, computes node after node, writes outputs.

use crate::context::{Context, Options, Precision};
use crate::element::Codec;
use crate::tensors::{Buffers, checked_buffer, missing, outputs, read_inputs, tensor_of};
use crate::value::{Numbers, Value};
use crate::walk::{Offsets, extents};
use crate::{ReferenceError, attention, block_scale, conv, custom, matmul, moe, norm, pointwise, reduction, resample};
use rotini_graph::{CustomOp, Graph, Node, Op, TensorId, TensorKind};

/// Computes a graph in binary64 (integers exactly) and writes its outputs, rounding each element
/// once.
///
/// `graph` must have passed [`Graph::validate`]. `buffers` must hold every tensor that is in a
/// buffer and every runtime scalar; bytes between the elements of an output keep their values.
///
/// # Errors
///
/// [`ReferenceError::Unsupported`] if the reference does not implement a part of the graph, or the
/// error for a missing or short buffer. No output has been written in either case.
pub fn execute(graph: &Graph, buffers: &mut Buffers) -> Result<(), ReferenceError> {
    execute_with(graph, buffers, &Options::default())
}

/// Executes as [`execute`] does, with a choice of precision.
///
/// # Errors
///
/// The errors of [`execute`].
pub fn execute_with(graph: &Graph, buffers: &mut Buffers, options: &Options) -> Result<(), ReferenceError> {
    let values = run(graph, buffers, options, false)?;
    let outputs = || outputs(graph, &values);
    for (tensor, _) in outputs() {
        checked_buffer(tensor, buffers)?;
    }
    for (tensor, value) in outputs() {
        let codec = Codec::of(tensor.dtype);
        let bytes = buffers.get_mut(&tensor.uid).ok_or_else(|| missing(tensor))?;
        for (offset, number) in Offsets::of(tensor)?.zip(value.numbers.iter()) {
            codec.store_at(number, bytes, offset);
        }
    }
    Ok(())
}

/// The outputs of a graph before they are rounded, with a bound on the error that a correct kernel
/// may have in each element.
///
/// See [`Evaluation::judge`].
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) values: Vec<Option<Value>>,
}

/// Computes a graph in binary64 together with error bounds, which takes several times as long as
/// [`execute`]. Writes nothing.
///
/// # Errors
///
/// The errors of [`execute`].
pub fn evaluate<'a>(graph: &'a Graph, buffers: &Buffers) -> Result<Evaluation<'a>, ReferenceError> {
    let values = run(graph, buffers, &Options::default(), true)?;
    Ok(Evaluation { graph, values })
}

/// Computes every tensor that a node defines.
fn run(
    graph: &Graph,
    buffers: &Buffers,
    options: &Options,
    bounds: bool,
) -> Result<Vec<Option<Value>>, ReferenceError> {
    if let Some(ragged) = graph.tensors.iter().find(|tensor| tensor.ragged_offset.is_some()) {
        return Err(ReferenceError::UnsupportedTensor {
            tensor: ragged.to_string(),
            what: "ragged rows".to_owned(),
        });
    }
    let mut values = read_inputs(graph, buffers, bounds)?;
    for (position, node) in graph.nodes.iter().enumerate() {
        let unsupported = |what: String| ReferenceError::Unsupported {
            node: graph.node_label(position),
            what,
        };
        let context = Context {
            graph,
            position,
            options,
            values: &values,
            compute: Codec::of_compute(node.compute)
                .ok_or_else(|| unsupported(format!("in the compute type {}", node.compute)))?,
            bounds,
        };
        let (compute, results) = (context.compute, compute(&context, node)?);
        for (id, mut value) in results {
            if !tells_what_is_certain(&node.op) {
                special_for_certain(&mut value);
            }
            let value = settle(graph, id, value, compute, options)?;
            if let Some(slot) = values.get_mut(id.index()) {
                *slot = Some(value);
            }
        }
    }
    Ok(values)
}

/// Computes one node and returns the tensors that it writes with their values.
fn compute(context: &Context<'_>, node: &Node) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    match &node.op {
        Op::ConvFprop(op) => Ok(vec![(op.y, conv::fprop(context, op)?)]),
        Op::ConvDgrad(op) => Ok(vec![(op.dx, conv::dgrad(context, op)?)]),
        Op::ConvWgrad(op) => Ok(vec![(op.dw, conv::wgrad(context, op)?)]),
        Op::Matmul(op) => Ok(vec![(op.c, matmul::matmul(context, op)?)]),
        Op::Reduction(op) => Ok(vec![(op.output, reduction::reduction(context, op)?)]),
        Op::ResampleFwd(op) => resample::forward(context, op),
        Op::BlockScaleDequantize(op) => Ok(vec![(op.y, block_scale::dequantize(context, op)?)]),
        Op::MoeGroupedMatmul(op) => Ok(vec![(op.output, moe::grouped_matmul(context, op)?)]),
        Op::MoeGroupedMatmulBwd(op) => Ok(vec![(op.dweight, moe::grouped_matmul_bwd(context, op)?)]),
        Op::ResampleBwd(op) => Ok(vec![(op.dx, resample::backward(context, op)?)]),
        Op::Pointwise(op) => Ok(vec![(op.out_0, pointwise::pointwise(context, op)?)]),
        Op::BatchnormInference(op) => norm::batchnorm_inference(context, op),
        Op::BatchnormInferenceVariance(op) => norm::batchnorm_inference_variance(context, op),
        Op::Batchnorm(op) => norm::batchnorm(context, op),
        Op::BatchnormBackward(op) => norm::batchnorm_backward(context, op),
        Op::Layernorm(op) => norm::layernorm(context, op),
        Op::LayernormBackward(op) => norm::layernorm_backward(context, op),
        Op::RmsNorm(op) => norm::rms_norm(context, op),
        Op::RmsNormBackward(op) => norm::rms_norm_backward(context, op),
        Op::Sdpa(op) => attention::sdpa(context, op),
        Op::SdpaBackward(op) => attention::sdpa_backward(context, op),
        Op::BlockScaleQuantize(op) => block_scale::quantize(context, op),
        Op::CustomOp(op) => custom_op(context, op),
    }
}

/// Computes a custom operation. Its body reads and writes elements that are rounded to their
/// tensors' types.
fn custom_op(context: &Context<'_>, op: &CustomOp) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let mut values = context.values.to_vec();
    for &id in &op.inputs {
        let codec = Codec::of(tensor_of(context.graph, id)?.dtype);
        if let Some(slot) = values.get_mut(id.index()) {
            *slot = slot.take().map(|value| value.convert(codec));
        }
    }
    let mut results = custom::custom(
        &Context {
            values: &values,
            ..*context
        },
        op,
    )?;
    for (id, value) in &mut results {
        *value = value.clone().convert(Codec::of(tensor_of(context.graph, *id)?.dtype));
    }
    Ok(results)
}

/// Returns true if the error bounds of the operation's NaN and infinite results already account for
/// a subnormal operand that a device may flush to zero, which changes the special value: pointwise
/// operations, normalizations and attention. Examples: a scale of 1e-45 times an infinity, or a
/// weight of 1e-40 times an infinite value, is NaN for a kernel that flushes.
const fn tells_what_is_certain(op: &Op) -> bool {
    matches!(
        op,
        Op::Pointwise(_)
            | Op::BatchnormInference(_)
            | Op::BatchnormInferenceVariance(_)
            | Op::Batchnorm(_)
            | Op::BatchnormBackward(_)
            | Op::Layernorm(_)
            | Op::LayernormBackward(_)
            | Op::RmsNorm(_)
            | Op::RmsNormBackward(_)
            | Op::Sdpa(_)
            | Op::SdpaBackward(_)
    )
}

/// Sets the error of NaN and infinite values to 0: a kernel must have the same special value.
fn special_for_certain(value: &mut Value) {
    let errors = value.errors.iter_mut().flatten();
    for (error, number) in errors.zip(value.numbers.iter()) {
        if !number.to_f64().is_finite() {
            *error = 0.0;
        }
    }
}

/// Converts a node's result to the form in which later nodes read it. An integer tensor, and a
/// float tensor of eight bits or less, has its elements converted to its type, because rounding is
/// the purpose of such a tensor; any other float tensor keeps the unrounded value.
fn settle(
    graph: &Graph,
    id: TensorId,
    mut value: Value,
    compute: Codec,
    options: &Options,
) -> Result<Value, ReferenceError> {
    let tensor = tensor_of(graph, id)?;
    if value.dims != extents(&tensor.dims)? {
        return Err(ReferenceError::not_validated(format!(
            "{tensor} has dims {:?}, but its node makes {:?}",
            tensor.dims, value.dims
        )));
    }
    if tensor.dtype.is_integer() || Codec::of_compute(tensor.dtype).is_none() {
        return Ok(value.convert(Codec::of(tensor.dtype)));
    }
    if let (Precision::Compute, Numbers::Float(numbers)) = (options.precision, &mut value.numbers) {
        numbers.iter_mut().for_each(|number| *number = compute.round(*number));
    }
    match options.round_intermediates {
        Some(dtype) if tensor.kind == TensorKind::Virtual => Ok(value.convert(Codec::of(dtype))),
        _ => Ok(value),
    }
}
