//! Selects the operations that are fused into a kernel: elementwise consumers of its sums, in
//! program order.
//!
//! Example: a convolution, the addition of a bias, a ReLU and the rounding to f16 become one kernel
//! that stores f16. Fusion stops at the first operation that reads the sums, or a value computed
//! from them, and cannot be fused. The value that this operation reads is stored as well.

use super::epilogue::{Epilogue, Source, Spread, Step, Tensor, is_elementwise};
use super::problem::{Axis, Product};
use crate::mlir::{Context, Operation, Role};
use std::collections::{HashMap, HashSet};

/// Maximum number of tensors that a kernel reads besides its operands: more would need more
/// registers for their addresses than there are.
const MOST: usize = 12;
/// Maximum number of buffers that IREE's HIP driver passes to a kernel.
const MOST_BUFFERS: usize = 16;

/// The epilogue of a kernel, and the operations that the kernel replaces.
pub(super) struct Fused<'c> {
    pub(super) epilogue: Epilogue<'c>,
    /// The indices of the operations that the kernel replaces.
    pub(super) operations: HashSet<usize>,
    /// The index of the operation after which the kernel is dispatched.
    pub(super) last: usize,
}

/// A value that the kernel holds in registers.
#[derive(Clone, Debug)]
struct Held {
    source: Source,
    /// For each axis of the value, the product's axis.
    axes: Vec<Axis>,
}

/// Fuses into the kernel the operations after the one at index `at`, which computes the sums
/// `sums`.
pub(super) fn fuse<'c>(
    context: &'c Context,
    (operations, at): (&[Operation], usize),
    product: &Product,
    sums: usize,
) -> Fused<'c> {
    let mut held = HashMap::from([(
        sums,
        Held {
            source: Source::Sums,
            axes: product.order.clone(),
        },
    )]);
    let mut epilogue = Epilogue::default();
    // The fused operations, in order: the index, the result, and the number of the kernel's
    // operands up to and including those of this operation.
    let mut members: Vec<(usize, usize, usize)> = Vec::new();
    // The operands of a marked row reduction belong to the kernel of that reduction.
    let of_rows = operations
        .iter()
        .filter(|operation| matches!(operation.role(), Role::Rows));
    let of_rows: HashSet<usize> = of_rows
        .flat_map(|operation| operation.operands().iter().copied())
        .collect();
    for (number, operation) in operations.iter().enumerate().skip(at + 1) {
        // Values that the body captures count as operands.
        if !operation.all_operands().iter().any(|id| held.contains_key(id)) {
            continue;
        }
        let Some((step, axes, operands)) = joined(context, operation, product, (&held, &epilogue)) else {
            break;
        };
        let &[result] = operation.results() else { break };
        if of_rows.contains(&result) || epilogue.operands.len() + operands.len() > MOST {
            break;
        }
        let source = Source::Step(epilogue.steps.len());
        held.insert(result, Held { source, axes });
        epilogue.operands.extend(operands);
        epilogue.steps.push(step);
        members.push((number, result, epilogue.operands.len()));
    }
    // Values with other readers are stored. While there are too many buffers, the last fused
    // operation is removed.
    let stored = loop {
        let is_inside = |number: usize| number == at || members.iter().any(|member| member.0 == number);
        let others = operations.iter().enumerate().filter(|(number, _)| !is_inside(*number));
        let read: HashSet<usize> = others.flat_map(|(_, operation)| operation.all_operands()).collect();
        let mut stored: Vec<usize> = held.keys().copied().filter(|id| read.contains(id)).collect();
        stored.sort_unstable();
        let read = product.factors.len() + usize::from(product.chosen.is_some());
        let buffers = read + epilogue.operands.len() + stored.len();
        let Some((_, result, _)) = members.pop_if(|_| buffers > MOST_BUFFERS) else {
            break stored;
        };
        held.remove(&result);
        epilogue.steps.pop();
        epilogue.operands.truncate(members.last().map_or(0, |member| member.2));
    };
    for id in stored {
        let Some(held) = held.get(&id) else { continue };
        let (shape, element) = context.value(id).r#type().as_tensor();
        let tensor = Tensor {
            value: id,
            element,
            spread: spread(product, &held.axes, &shape),
            shape,
        };
        epilogue.stored.push((held.source, tensor));
    }
    let numbers = members.iter().map(|member| member.0);
    Fused {
        epilogue,
        last: numbers.clone().max().unwrap_or(at),
        operations: numbers.chain([at]).collect(),
    }
}

/// Returns an operation as a step of the epilogue, with the product's axes of its result and the
/// additional tensors that the step reads; `None` if it cannot be fused.
fn joined<'c>(
    context: &'c Context,
    operation: &Operation,
    product: &Product,
    (held, epilogue): (&HashMap<usize, Held>, &Epilogue<'c>),
) -> Option<(Step, Vec<Axis>, Vec<Tensor<'c>>)> {
    let structure = operation.structure()?;
    if operation.attribute("compilation_info").is_some() {
        return None;
    }
    let inputs = structure.selected()?;
    let rank = structure.loops.len();
    let [region] = operation.regions() else { return None };
    let (arguments, body) = region.body()?;
    let is_number = |id: usize| context.value(id).r#type().bits().is_some();
    if structure.reduces() || !structure.written.is_identity() || !is_elementwise(body, arguments, is_number) {
        return None;
    }
    // For each loop, the product's axis: known from the operands that the kernel holds.
    let operands = operation.operands();
    let mut axes: Option<Vec<Axis>> = None;
    for (id, map) in operands.iter().zip(&inputs) {
        let Some(held) = held.get(id) else { continue };
        let mut loops = vec![None; rank];
        for (&position, &axis) in map.iter().zip(&held.axes) {
            *loops.get_mut(position)? = Some(axis);
        }
        let loops: Vec<Axis> = loops.into_iter().collect::<Option<_>>()?;
        if map.len() != held.axes.len() || axes.as_ref().is_some_and(|known| *known != loops) {
            return None;
        }
        axes = Some(loops);
    }
    let axes = axes?;
    let mut sources = Vec::new();
    let mut read = Vec::new();
    for (id, map) in operands.iter().zip(&inputs) {
        if let Some(held) = held.get(id) {
            sources.push(held.source);
            continue;
        }
        let (shape, element) = context.value(*id).r#type().if_tensor()?;
        element.bits()?;
        let own: Vec<Axis> = map
            .iter()
            .map(|&position| axes.get(position).copied())
            .collect::<Option<_>>()?;
        sources.push(Source::Operand(epilogue.operands.len() + read.len()));
        read.push(Tensor {
            value: *id,
            element,
            spread: spread(product, &own, &shape),
            shape,
        });
    }
    // The `outs` operand must be unused: it is not read.
    let uses_old = arguments
        .last()
        .is_some_and(|old| body.iter().any(|operation| operation.operands().contains(old)));
    let starts_empty = operands.last().is_some_and(|id| !held.contains_key(id));
    if uses_old || !starts_empty {
        return None;
    }
    sources.push(Source::Unused);
    let step = Step {
        sources,
        arguments: arguments.to_vec(),
        body: body.to_vec(),
    };
    Some((step, axes, read))
}

/// Returns the strides of a row-major tensor with these axes along the axes of the product.
pub(super) fn spread(product: &Product, axes: &[Axis], shape: &[i64]) -> Spread {
    let mut spread = Spread {
        batch: vec![0; product.batch_axes()],
        rows: vec![0; product.rows.len()],
        columns: vec![0; product.columns.len()],
    };
    let mut set = |axis: Axis, stride: i64| {
        let slot = match axis {
            Axis::Batch(index) => spread.batch.get_mut(product.batch_axes() - product.batch.len() + index),
            Axis::Row(index) => spread.rows.get_mut(index),
            Axis::Column(index) => spread.columns.get_mut(index),
            Axis::Group(_) => None,
        };
        if let Some(slot) = slot {
            *slot = stride;
        }
    };
    let mut stride = 1;
    for (&axis, &extent) in axes.iter().zip(shape).rev() {
        // A group axis consists of an axis of the batch and the first axis of the columns. A tensor
        // that is broadcast along the group axis keeps the stride 0 along both.
        if let Axis::Group(index) = axis {
            set(Axis::Column(0), stride);
            set(Axis::Batch(index), stride * product.extent(Axis::Column(0)));
        } else {
            set(axis, stride);
        }
        stride *= extent;
    }
    spread
}
