//! Custom operations: a function on tensors that the caller wrote in MLIR, called from the
//! computation.
//!
//! `rotini-custom` reads the text, without MLIR's library. This module builds the resulting typed
//! tree operation by operation, so that the caller's text never reaches a parser of MLIR, in any
//! process. `docs/custom-op.md` tells users what a body may contain.

pub(crate) mod build;
pub(crate) mod elements;

use crate::bindings::most_buffers;
use crate::ir::Emitter;
use crate::legalise::bodies::{avoiding, declined};
use crate::lowering::Lowering;
use crate::mlir::{Attribute, Context, Name, Type};
use crate::quirks::Quirks;
use crate::target::Target;
use crate::value::{Ordered, Value};
use crate::{EmitError, Unsupported};
use rotini_custom::{Arithmetic, Body, Element, Generic, Operation, TensorType, rotary};
use rotini_graph::{CustomOp, DataType, NormalGraph, NormalKind, Op, TensorId};
use std::collections::HashSet;

/// The id of operations whose body is a function in MLIR.
const ID: &str = "rotini.mlir";

/// Checks whether the operation can be lowered.
pub(crate) fn check(graph: &NormalGraph, target: &Target, op: &CustomOp) -> Result<(), Unsupported> {
    let body = body(graph, op)?;
    let buffers = op.inputs.iter().chain(&op.outputs).collect::<HashSet<_>>().len();
    let most = most_buffers(target);
    if buffers > most {
        return Err(refused(&format!(
            "{buffers} tensors, which is more than the {most} that one kernel takes here"
        )));
    }
    if let Some(id) = constant_output(graph, op, &body) {
        return Err(Unsupported::of_tensor(id, "it depends on no buffer"));
    }
    for statement in &body.statements {
        if let Operation::Generic(generic) = &statement.operation {
            check_functions(target, &body, generic)?;
        }
    }
    declined(&body, target).map_or(Ok(()), |reason| Err(refused(&reason)))
}

/// Returns an output that depends only on constants, or on scalars that are passed at execution.
fn constant_output(graph: &NormalGraph, op: &CustomOp, body: &Body) -> Option<TensorId> {
    let is_buffer = |id: &TensorId| {
        let kind = graph.tensor(*id).map(|tensor| tensor.kind);
        matches!(kind, Some(NormalKind::Input | NormalKind::Output | NormalKind::Virtual))
    };
    let given: Vec<bool> = op.inputs.iter().map(is_buffer).collect();
    if given.iter().all(|is_given| *is_given) {
        return None;
    }
    let depends = body.depending(&given);
    let results = op.outputs.iter().zip(depends);
    results.filter(|(_, depends)| !depends).map(|(&id, _)| id).next()
}

/// Declines functions that have no good approximation on the target.
fn check_functions(target: &Target, body: &Body, generic: &Generic) -> Result<(), Unsupported> {
    for scalar in &generic.body {
        if let Arithmetic::Operation { name, .. } = &scalar.arithmetic
            && target.is_cpu()
            && ["math.expm1", "math.log1p"].contains(name)
            && elements::element_of(body, scalar.result) == Element::F64
        {
            return Err(refused(&format!("{name} in f64 on the CPU, which is wrong near 0")));
        }
    }
    Ok(())
}

/// Returns an upper bound of the total number of elements of the body's intermediate tensors.
pub(crate) fn elements(graph: &NormalGraph, target: &Target, op: &CustomOp) -> Option<u64> {
    let body = body(graph, op).ok()?;
    Some(avoiding(body, Quirks::of(target)).elements)
}

/// Returns the verified body of the operation.
fn body(graph: &NormalGraph, op: &CustomOp) -> Result<Body, Unsupported> {
    if op.outputs.is_empty() {
        return Err(Unsupported::new("a custom operation without outputs"));
    }
    let read = |data: &[u8]| {
        let (inputs, outputs) = (types(graph, &op.inputs)?, types(graph, &op.outputs)?);
        rotini_custom::read(data, &inputs, &outputs).map_err(|refusal| refused(&refusal.to_string()))
    };
    match op.custom_op_id.as_str() {
        ID => read(&op.data),
        rotary::ID if rotary::is_known(&op.data) => {
            let (inputs, outputs) = (types(graph, &op.inputs)?, types(graph, &op.outputs)?);
            read(
                rotary::body(&inputs, &outputs)
                    .map_err(|reason| refused(&reason))?
                    .as_bytes(),
            )
        }
        rotary::ID => Err(refused("another body than the one that is known of 'fusilli.rope'")),
        other => Err(Unsupported::new(format!(
            "the custom operation '{other}' is not rotini's, which is '{ID}'"
        ))),
    }
}

/// Returns the body of an operation that [`check`] accepts.
fn accepted(graph: &NormalGraph, op: &CustomOp) -> Body {
    body(graph, op).expect("a body that check declines")
}

fn refused(reason: &str) -> Unsupported {
    Unsupported::new(format!("{reason} (docs/custom-op.md)"))
}

/// Returns the types of tensors in the terms of a body.
fn types(graph: &NormalGraph, ids: &[TensorId]) -> Result<Vec<TensorType>, Unsupported> {
    ids.iter()
        .map(|&id| {
            let tensor = graph
                .tensor(id)
                .ok_or_else(|| Unsupported::new("a tensor that is not there"))?;
            let element = match tensor.dtype {
                DataType::F16 => Element::F16,
                DataType::Bf16 => Element::Bf16,
                DataType::F32 => Element::F32,
                DataType::F64 => Element::F64,
                DataType::U8 | DataType::I8 => Element::I8,
                DataType::I32 => Element::I32,
                DataType::I64 => Element::I64,
                other => return Err(refused(&format!("a tensor of {other}"))),
            };
            let dims = tensor.dims.clone();
            Ok(TensorType { dims, element })
        })
        .collect()
}

/// Lowers the operation to a call of the body's function. Operands are in logical row-major order
/// and rounded to their types.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, position: usize, op: &CustomOp) {
    let at = lowering.emitter();
    let body = accepted(lowering.graph(), op);
    let sums = body
        .statements
        .iter()
        .any(|statement| matches!(&statement.operation, Operation::Generic(generic) if generic.combiner().is_some()));
    let mut operands = Vec::with_capacity(op.inputs.len());
    for &id in &op.inputs {
        let tensor = lowering.tensor(id);
        let value = lowering.value(id).materialise(&at);
        let order: Vec<usize> = (0..tensor.dims.len()).collect();
        let ssa = if value.dtype == tensor.dtype && value.order == order {
            value.ssa
        } else {
            at.rounded(lowering.round(&value, tensor.dtype, order).ssa, tensor.dtype)
        };
        let is_summed = sums && tensor.kind == NormalKind::Virtual;
        operands.push(lowering.read_by_body(ssa, is_summed));
    }
    let types = op
        .outputs
        .iter()
        .map(|&id| result_type(lowering, &at, id))
        .collect::<Vec<_>>();
    let callee = Attribute::symbol(&name(position));
    let results = at.op(Name::FuncCall, &operands, &types, &[("callee", callee)], Vec::new());
    for (&id, ssa) in op.outputs.iter().zip(results) {
        let tensor = lowering.tensor(id);
        let value = Ordered::new(
            lowering.apart_from_contractions(at.rounded(ssa, tensor.dtype)),
            (0..tensor.dims.len()).collect(),
            tensor.dtype,
            tensor.dims.clone(),
        );
        lowering.define(id, Value::of(value));
    }
}

fn result_type<'c>(lowering: &Lowering<'_, 'c>, at: &Emitter<'c>, id: TensorId) -> Type<'c> {
    let tensor = lowering.tensor(id);
    at.tensor_type(&tensor.dims, tensor.dtype)
}

/// Returns the text of the functions that the computation calls: one private function per custom
/// operation, in the graph's order.
pub(crate) fn functions(
    context: &Context,
    graph: &NormalGraph,
    (target, quirks): (&Target, Quirks),
) -> Result<Vec<String>, EmitError> {
    let mut functions = Vec::new();
    for (position, node) in graph.nodes().iter().enumerate() {
        if let Op::CustomOp(op) = &node.op {
            let body = avoiding(accepted(graph, op), quirks);
            functions.push(build::function(context, &body, &name(position), (target, quirks))?);
        }
    }
    Ok(functions)
}

/// Returns the name of a node's function in the module.
fn name(position: usize) -> String {
    format!("custom_{position}")
}
