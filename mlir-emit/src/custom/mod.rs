//! Custom operations: a function on tensors that the caller wrote in MLIR, read with distrust and called from the computation.
//!
//! The body is screened as text, parsed in a context that has the needed dialects and no others, verified, and then everything in it is
//! held against lists of what is allowed (`body`). What is allowed reads and writes nothing but tensors, at places that depend on
//! the shapes alone, and ends. `docs/custom-op.md` tells users what that is.

mod body;
mod text;

use crate::ir::{Emitter, context, dialects};
use crate::lower::Lowering;
use crate::step::loses_sums;
use crate::target::Target;
use crate::value::{Ordered, Value};
use crate::{EmitError, Unsupported};
use melior::Context;
use melior::ir::attribute::{FlatSymbolRefAttribute, StringAttribute};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationPrintingFlags};
use melior::ir::{BlockLike, Module, Type, Value as Ssa};
use rotini_graph::{CustomOp, DataType, NormalGraph, Op, TensorId};
use std::cell::RefCell;
use std::rc::Rc;

/// The one id that is known.
const ID: &str = "rotini.mlir";

/// Says whether the operation can be lowered. Builds MLIR, as nothing else in `check` does.
pub(crate) fn check(graph: &NormalGraph, target: &Target, op: &CustomOp) -> Result<(), Unsupported> {
    if op.custom_op_id != ID {
        return Err(Unsupported::new(format!(
            "the custom operation '{}' is not rotini's, which is '{ID}'",
            op.custom_op_id
        )));
    }
    if op.outputs.is_empty() {
        return Err(Unsupported::new("a custom operation without outputs"));
    }
    let context = dialects();
    let refusal = |reason: String| Unsupported::new(format!("{reason} (docs/custom-op.md)"));
    let module = parse(&context, &op.data).map_err(refusal)?;
    let types = types(&context, graph, op).map_err(|_| Unsupported::new("a tensor of a type that has no MLIR type"))?;
    let body = body::verify(&module, &types.0, &types.1).map_err(refusal)?;
    if body.may_compare_f16 && *target == Target::Cpu {
        // LLVM takes the widening after the comparison, and calls fmaxf then, which IREE 3.13 does not bring.
        return Err(refusal(
            "arith.maxnumf or arith.minnumf in a body that widens f16, which does not link on CPUs: arith.maximumf does".to_owned(),
        ));
    }
    if let Some(extents) = body.reductions.iter().find(|extents| loses_sums(target, extents)) {
        return Err(refusal(format!(
            "{extents:?} reduced at once, which IREE 3.13 computes wrongly on GPUs: one loop after the other is right"
        )));
    }
    Ok(())
}

/// An upper bound of the elements that the body's intermediate tensors have in total.
pub(crate) fn elements(graph: &NormalGraph, op: &CustomOp) -> Option<u64> {
    let context = dialects();
    let module = parse(&context, &op.data).ok()?;
    let types = types(&context, graph, op).ok()?;
    Some(body::verify(&module, &types.0, &types.1).ok()?.elements)
}

/// Lowers the operation: a call of the body, with tensors in logical row-major order that are rounded to their types.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_, '_>, position: usize, op: &CustomOp) -> Result<(), EmitError> {
    let at = lowering.emitter();
    let mut operands = Vec::with_capacity(op.inputs.len());
    for &id in &op.inputs {
        let tensor = lowering.tensor(id)?;
        let value = lowering.value(id)?.materialise(&at)?;
        let order: Vec<usize> = (0..tensor.dims.len()).collect();
        let ssa = if value.dtype == tensor.dtype && value.order == order {
            value.ssa
        } else {
            rounded(lowering, lowering.round(&value, tensor.dtype, order)?.ssa, tensor.dtype)?
        };
        operands.push(lowering.apart_from_contractions(ssa)?);
    }
    let types = op
        .outputs
        .iter()
        .map(|&id| result_type(lowering, &at, id))
        .collect::<Result<Vec<_>, _>>()?;
    let callee = FlatSymbolRefAttribute::new(at.context(), &name(position)).into();
    let results = at.op("func.call", &operands, &types, &[("callee", callee)], Vec::new())?;
    for (&id, ssa) in op.outputs.iter().zip(results) {
        let tensor = lowering.tensor(id)?;
        let value = Ordered {
            ssa: lowering.apart_from_contractions(rounded(lowering, ssa, tensor.dtype)?)?,
            order: (0..tensor.dims.len()).collect(),
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
        };
        lowering.define(id, Value::of(value));
    }
    Ok(())
}

/// The tensor with its elements rounded to its type. On the CPU, IREE 3.13 leaves bf16 that is made and read in one dispatch in f32.
fn rounded<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    ssa: Ssa<'c, 'b>,
    dtype: DataType,
) -> Result<Ssa<'c, 'b>, EmitError> {
    if dtype == DataType::Bf16 && *lowering.target() == Target::Cpu {
        lowering.emitter().barrier(ssa)
    } else {
        Ok(ssa)
    }
}

fn result_type<'c>(lowering: &Lowering<'_, 'c, '_>, at: &Emitter<'c, '_>, id: TensorId) -> Result<Type<'c>, EmitError> {
    let tensor = lowering.tensor(id)?;
    at.tensor_type(&tensor.dims, tensor.dtype)
}

/// The text of the functions that the computation calls: one private function per custom operation, in the graph's order.
pub(crate) fn functions(graph: &NormalGraph) -> Result<Vec<String>, EmitError> {
    let mut functions = Vec::new();
    for (position, node) in graph.nodes().iter().enumerate() {
        let Op::CustomOp(op) = &node.op else { continue };
        let context = context();
        let invalid = |diagnostics: String| EmitError::InvalidIr { diagnostics };
        let module = parse(&context, &op.data).map_err(invalid)?;
        let Some(mut function) = module.body().first_operation_mut() else {
            return Err(EmitError::Internal("a body without a function"));
        };
        function.set_attribute("sym_name", StringAttribute::new(&context, &name(position)).into());
        function.set_attribute("sym_visibility", StringAttribute::new(&context, "private").into());
        functions.push(function.to_string_with_flags(OperationPrintingFlags::new().use_local_scope())?);
    }
    Ok(functions)
}

/// The name of a node's function in the module.
fn name(position: usize) -> String {
    format!("custom_{position}")
}

/// The body, if its text is one that MLIR reads and verifies.
fn parse<'c>(context: &'c Context, data: &[u8]) -> Result<Module<'c>, String> {
    let text = text::screened(data)?;
    let diagnostics: Rc<RefCell<Option<String>>> = Rc::default();
    let sink = Rc::clone(&diagnostics);
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        // Called from C++: a failed borrow must not panic.
        if let Ok(mut first) = sink.try_borrow_mut() {
            first.get_or_insert_with(|| diagnostic.to_string());
        }
        true
    });
    let module = Module::parse(context, text).filter(|module| module.as_operation().verify());
    context.detach_diagnostic_handler(handler);
    module.ok_or_else(|| {
        let message = diagnostics.take().unwrap_or_default();
        format!(
            "its body is not valid MLIR: {}",
            message.lines().next().unwrap_or_default()
        )
    })
}

/// The types of the tensors that the operation reads, and of those that it writes.
fn types<'c>(
    context: &'c Context,
    graph: &NormalGraph,
    op: &CustomOp,
) -> Result<(Vec<Type<'c>>, Vec<Type<'c>>), EmitError> {
    let block = melior::ir::Block::new(&[]);
    let at = Emitter::new(context, &block);
    let of = |ids: &[TensorId]| {
        ids.iter()
            .map(|&id| {
                let tensor = graph.tensor(id).ok_or(EmitError::Internal("an unknown tensor"))?;
                at.tensor_type(&tensor.dims, tensor.dtype)
            })
            .collect::<Result<Vec<_>, _>>()
    };
    Ok((of(&op.inputs)?, of(&op.outputs)?))
}
