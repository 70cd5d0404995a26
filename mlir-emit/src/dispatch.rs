//! The two `match`es over the operations: the check of each, and its lowering.

use crate::bindings::crowded;
use crate::choice::Chooser;
use crate::cost::workspace_limit;
use crate::ir::Emitter;
use crate::kernel::Kernels;
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::target::Target;
use crate::value::{Data, Value};
use crate::{Unsupported, attention, block_scale, conv, custom, matmul, moe, norm, pointwise, reduction, resample};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, NormalTensor, Op, SlotRole, TensorId};

/// Checks whether a graph can be lowered, compiled and executed for the target; if not, says why
/// and where.
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
        check_truths(graph, &node.op).map_err(|unsupported| unsupported.at_node(position))?;
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
    check_dependence(graph)?;
    match workspace_limit(graph, target) {
        Ok(_) => Ok(()),
        Err(_) => Err(Unsupported::new("tensors on the way with more than 2^64 bytes")),
    }
}

/// Declines truth values where their meaning is not defined: they may only be operands and results
/// of pointwise operations and reductions, and masks of attention.
fn check_truths(graph: &NormalGraph, op: &Op) -> Result<(), Unsupported> {
    let mask = match op {
        Op::Pointwise(_) | Op::Reduction(_) => return Ok(()),
        Op::Sdpa(op) => op.attn_mask,
        Op::SdpaBackward(op) => op.attn_mask,
        _ => None,
    };
    let mut found = None;
    let mut look = |id: TensorId| {
        let is_truth = graph.tensor(id).is_some_and(|tensor| tensor.dtype == DataType::Bool);
        if is_truth && Some(id) != mask {
            found = found.or(Some(id));
        }
    };
    op.for_each_input(&mut |_, id| look(id));
    op.for_each_output(&mut |_, id| look(id));
    match found {
        Some(id) => Err(Unsupported::of_tensor(
            id,
            "truth values (bool) other than in pointwise operations, in reductions and as attn_mask",
        )),
        None => Ok(()),
    }
}

/// Declines outputs that depend on no buffer, and such operands of operations that are not
/// pointwise: the compiler would evaluate them at compile time and copy the result, instead of
/// computing it in the caller's buffer.
fn check_dependence(graph: &NormalGraph) -> Result<(), Unsupported> {
    let mut depends: Vec<bool> = graph
        .tensors()
        .iter()
        .map(|tensor| tensor.kind == NormalKind::Input)
        .collect();
    for node in graph.nodes() {
        let (mut any, mut constant) = (false, None);
        let is_pointwise = matches!(node.op, Op::Pointwise(_));
        let data = data(&node.op);
        node.op.for_each_input(&mut |_, id| {
            let depends = depends[id.index()];
            any |= depends;
            let is_made = graph
                .tensor(id)
                .is_some_and(|tensor| tensor.kind == NormalKind::Virtual);
            // Some operations have an output that depends on only one of these inputs, such as a
            // mean, so none of them may be constant.
            if !depends && (data.contains(&id) || is_made && !is_pointwise) {
                constant = constant.or(Some(id));
            }
        });
        if let Some(id) = constant {
            return Err(Unsupported::of_tensor(id, "it depends on no buffer"));
        }
        node.op.for_each_output(&mut |_, id| {
            depends[id.index()] = any;
        });
    }
    for ((index, tensor), depends) in (0..).zip(graph.tensors()).zip(depends) {
        if tensor.kind == NormalKind::Output && !depends {
            return Err(Unsupported::of_tensor(TensorId(index), "it depends on no buffer"));
        }
    }
    Ok(())
}

/// Returns the tensors whose elements an operation works on, none of which may be constant.
fn data(op: &Op) -> Vec<TensorId> {
    match op {
        Op::ConvFprop(op) => vec![op.x],
        Op::ConvDgrad(op) => vec![op.dy],
        Op::ConvWgrad(op) => vec![op.x, op.dy],
        Op::BatchnormInference(op) => vec![op.x],
        Op::BatchnormInferenceVariance(op) => vec![op.x],
        Op::Batchnorm(op) => vec![op.x],
        Op::BatchnormBackward(op) => vec![op.dy, op.x],
        Op::Layernorm(op) => vec![op.x],
        Op::LayernormBackward(op) => vec![op.dy, op.x],
        Op::RmsNorm(op) => vec![op.x],
        Op::RmsNormBackward(op) => vec![op.dy, op.x],
        Op::ResampleFwd(op) => vec![op.x],
        Op::ResampleBwd(op) => vec![op.dy],
        Op::Sdpa(op) => vec![op.q, op.k, op.v],
        Op::SdpaBackward(op) => vec![op.q, op.k, op.v, op.d_o],
        Op::MoeGroupedMatmul(op) => vec![op.token, op.weight],
        Op::MoeGroupedMatmulBwd(op) => vec![op.doutput, op.token],
        Op::BlockScaleDequantize(op) => vec![op.x],
        Op::BlockScaleQuantize(op) => vec![op.x],
        Op::Reduction(op) => vec![op.input],
        Op::Pointwise(_) | Op::Matmul(_) | Op::CustomOp(_) => Vec::new(),
    }
}

fn check_tensor(tensor: &NormalTensor, target: &Target) -> Result<(), String> {
    use DataType::{Bf16, Bool, F16, F32, F64, I8, I32, I64, U8};
    if tensor.kind == NormalKind::RuntimeScalar
        && !matches!(tensor.dtype, F32 | F16 | Bf16 | F64 | U8 | I8 | I32 | I64 | Bool)
    {
        return Err(format!(
            "a scalar of type {} cannot be passed at execution",
            tensor.dtype
        ));
    }
    if tensor.kind == NormalKind::RuntimeScalar && tensor.dims.iter().any(|&extent| extent != 1) {
        return Err("more than one element is passed at execution".to_owned());
    }
    let is_dense = || matches!(Layout::of(&tensor.dims, &tensor.strides), Layout::Dense { order } if order.len() == tensor.dims.len());
    if matches!(tensor.kind, NormalKind::Input | NormalKind::Output) && tensor.dtype.is_packed() && !is_dense() {
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

/// Lowers the graph into the block of `at`, and returns its results. `arguments` are the
/// signature's inputs and scalars, followed by the old contents of the outputs that have gaps.
pub(crate) fn run<'c>(
    graph: &NormalGraph,
    target: &Target,
    at: Emitter<'c>,
    (kernels, chooser): (&Kernels<'c>, &Chooser),
    arguments: &[Ssa<'c>],
) -> Vec<Ssa<'c>> {
    let mut lowering = Lowering::new(graph, target, at, (kernels, chooser));
    let mut next_argument = 0;
    let mut take = || {
        let value = arguments[next_argument];
        next_argument += 1;
        value
    };
    for (id, tensor, role) in graph.slots() {
        let value = match role {
            SlotRole::Input => lowering.load(tensor, take()),
            SlotRole::Scalar => Value {
                data: Data::Scalar(take()),
                dtype: tensor.dtype,
                dims: tensor.dims.clone(),
            },
            SlotRole::Output => continue,
        };
        lowering.define(id, value);
    }
    for (index, tensor) in (0..).zip(graph.tensors()) {
        if let NormalKind::Constant(scalar) = tensor.kind {
            // A constant is stored as a number, not as a code, even if its tensor's type has codes.
            let value = Value {
                data: Data::Constant(scalar),
                dtype: if tensor.dtype.is_code() {
                    lowering.quirks().contracted(tensor.dtype)
                } else {
                    tensor.dtype
                },
                dims: tensor.dims.clone(),
            };
            lowering.define(TensorId(index), value);
        }
    }
    let crowded = crowded(graph, lowering.target());
    for (position, node) in graph.nodes().iter().enumerate() {
        match &node.op {
            Op::ConvFprop(op) => conv::lower(&mut lowering, node.compute, op),
            Op::Pointwise(op) => pointwise::lower(&mut lowering, node.compute, op),
            Op::Sdpa(op) => attention::lower(&mut lowering, node.compute, op),
            Op::SdpaBackward(op) => attention::lower_backward(&mut lowering, node.compute, op),
            Op::ConvDgrad(op) => conv::lower_dgrad(&mut lowering, node.compute, op),
            Op::ConvWgrad(op) => conv::lower_wgrad(&mut lowering, node.compute, op),
            Op::Matmul(op) => matmul::lower(&mut lowering, node.compute, op),
            Op::Reduction(op) => reduction::lower(&mut lowering, node.compute, op),
            Op::BatchnormInference(op) => norm::batchnorm_inference(&mut lowering, node.compute, op),
            Op::BatchnormInferenceVariance(op) => {
                norm::batchnorm_inference_variance(&mut lowering, node.compute, op);
            }
            Op::Batchnorm(op) => norm::batchnorm(&mut lowering, node.compute, op),
            Op::BatchnormBackward(op) => norm::batchnorm_backward(&mut lowering, node.compute, op),
            Op::Layernorm(op) => norm::layernorm(&mut lowering, node.compute, op),
            Op::LayernormBackward(op) => norm::layernorm_backward(&mut lowering, node.compute, op),
            Op::RmsNorm(op) => norm::rms_norm(&mut lowering, node.compute, op),
            Op::RmsNormBackward(op) => norm::rms_norm_backward(&mut lowering, node.compute, op),
            Op::ResampleFwd(op) => resample::lower(&mut lowering, node.compute, op),
            Op::ResampleBwd(op) => resample::lower_backward(&mut lowering, node.compute, op),
            Op::MoeGroupedMatmul(op) => moe::lower(&mut lowering, node.compute, op),
            Op::MoeGroupedMatmulBwd(op) => moe::lower_backward(&mut lowering, node.compute, op),
            Op::BlockScaleDequantize(op) => block_scale::dequantize(&mut lowering, node.compute, op),
            Op::BlockScaleQuantize(op) => block_scale::quantize(&mut lowering, node.compute, op),
            Op::CustomOp(op) => custom::lower(&mut lowering, position, op),
        }
        let mut outputs = Vec::new();
        node.op.for_each_output(&mut |_, id| outputs.push(id));
        for id in outputs.into_iter().filter(|id| crowded.get(id.index()) == Some(&true)) {
            lowering.settle(id);
        }
    }
    let mut results = Vec::new();
    for (id, tensor, role) in graph.slots() {
        if role == SlotRole::Output {
            results.push(lowering.store(id, tensor, &mut take));
        }
    }
    results
}
