//! The steps that operations are lowered to: elementwise operations, and reductions along axes.
//!
//! An operation of the schema becomes a few steps over [`Value`]s, all in the compute type, which
//! the compiler fuses. All of them broadcast as hipDNN does: right-aligned, an extent of 1 against
//! any other.

use crate::convert::convert;
use crate::ir::{Emitter, Input};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::value::{Data, Operand, Ordered, Value, extent, extents};
use rotini_graph::{DataType, TensorId};

/// The shape of a step's result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Logical extents.
    pub(crate) dims: &'a [i64],
    /// The memory order, with all axes.
    pub(crate) order: &'a [usize],
    /// Type of the elements.
    pub(crate) dtype: DataType,
}

impl<'a> Shape<'a> {
    pub(crate) fn new(dims: &'a [i64], order: &'a [usize], dtype: DataType) -> Self {
        Shape { dims, order, dtype }
    }
}

/// The operation that combines elements into one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combiner {
    Sum,
    Product,
    Least,
    Greatest,
    /// The greatest of unsigned integers.
    GreatestUnsigned,
}

impl Combiner {
    pub(crate) fn combine<'c>(self, math: &Math<'c>, so_far: Ssa<'c>, element: Ssa<'c>) -> Scalar<'c> {
        match self {
            Combiner::Sum => so_far + element,
            Combiner::Product => so_far * element,
            Combiner::Least => math.min(so_far, element),
            Combiner::Greatest => math.max(so_far, element),
            Combiner::GreatestUnsigned => so_far.maxui(element),
        }
    }
}

/// The result of a reduction, or a value computed from it, before operations with the reduced axes
/// may use it.
#[derive(Clone, Debug)]
pub(crate) struct Open<'c> {
    pub(crate) value: Value<'c>,
    /// Whether consumers with the reduced axes must be in another dispatch.
    pub(crate) is_spread: bool,
}

impl<'c> Open<'c> {
    /// Makes the result of a reduction that is not spread.
    pub(crate) fn plain(value: Value<'c>) -> Self {
        Open {
            value,
            is_spread: false,
        }
    }

    /// Returns the result for any use: behind a barrier if the reduction is spread.
    pub(crate) fn closed(self, at: &Emitter<'c>) -> Value<'c> {
        let Open { mut value, is_spread } = self;
        if is_spread && let Data::Tensor { ssa, .. } = &mut value.data {
            *ssa = at.barrier(*ssa);
        }
        value
    }
}

impl<'c> Lowering<'_, 'c> {
    /// Appends an elementwise operation: `body` computes each element from the operands' elements
    /// at its index.
    pub(crate) fn map(
        &self,
        operands: &[&Value<'c>],
        shape: &Shape<'_>,
        compute: DataType,
        body: impl FnOnce(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) -> Ordered<'c> {
        let at = self.emitter();
        let read = self.operands(operands, shape.dims, shape.order);
        let extents = extents(shape.dims, shape.order);
        let ssa = at.elementwise(&extents, shape.dtype, &inputs(&read, shape.order), |elements| {
            let math = Math::new(at, self.target(), compute, shape.order.to_vec());
            let result = body(&math, &arguments(&at, &read, elements, compute));
            convert(&at, result, compute, shape.dtype)
        });
        Ordered::new(ssa, shape.order.to_vec(), shape.dtype, shape.dims.to_vec())
    }

    /// Defines a tensor that a node writes: `body` computes each element from the operands'
    /// elements at its index.
    pub(crate) fn finish(
        &mut self,
        id: TensorId,
        operands: &[&Value<'c>],
        compute: DataType,
        body: impl FnOnce(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
    ) {
        let shape = Shape {
            dims: &self.tensor(id).dims,
            order: &self.result_order(id, operands),
            dtype: self.carried_type(id, compute),
        };
        let result = self.map(operands, &shape, compute, body);
        self.define(id, Value::of(result));
    }

    /// Returns the memory order of a result: that of the stored tensor, else that of the first
    /// operand that has every axis, so that a chain of operations keeps the order of its first
    /// operand.
    pub(crate) fn result_order(&self, id: TensorId, operands: &[&Value<'_>]) -> Vec<usize> {
        let out = self.tensor(id);
        match self.stored_order(id) {
            Some(order) => order,
            None => order_of(&out.dims, operands),
        }
    }

    pub(crate) fn operands(&self, values: &[&Value<'c>], dims: &[i64], loops: &[usize]) -> Vec<Operand<'c>> {
        let at = self.emitter();
        values
            .iter()
            .map(|value| Operand::new(&at, &value.over(&at, dims, loops), dims))
            .collect()
    }
}

/// Returns the memory order of the first operand that has every axis with these extents, else
/// row-major order.
pub(crate) fn order_of(dims: &[i64], operands: &[&Value<'_>]) -> Vec<usize> {
    operands
        .iter()
        .find_map(|value| match &value.data {
            Data::Tensor { order, .. } if value.dims == dims && order.len() == dims.len() => Some(order.clone()),
            _ => None,
        })
        .unwrap_or_else(|| (0..dims.len()).collect())
}

/// Returns the axes of a tensor with the extents `whole` that another one, right-aligned, lacks or
/// has with an extent of 1.
pub(crate) fn lacking(whole: &[i64], part: &[i64]) -> Vec<usize> {
    let missing = whole.len().saturating_sub(part.len());
    let extent = |axis: usize| axis.checked_sub(missing).and_then(|axis| part.get(axis)).copied();
    (0..whole.len())
        .filter(|&axis| extent(axis).unwrap_or(1) == 1)
        .collect()
}

/// Returns the number of elements along these axes.
pub(crate) fn count(dims: &[i64], axes: &[usize]) -> i64 {
    axes.iter().fold(1_i64, |count, &axis| {
        count.checked_mul(extent(dims, axis)).expect("an extent that overflows")
    })
}

pub(crate) fn inputs<'c>(operands: &[Operand<'c>], order: &[usize]) -> Vec<Input<'c>> {
    let mut inputs = Vec::new();
    for operand in operands {
        inputs.extend(operand.input(order));
    }
    inputs
}

/// Returns the operands' elements in the compute type, inside the body.
pub(crate) fn arguments<'c>(
    body: &Emitter<'c>,
    operands: &[Operand<'c>],
    elements: &[Ssa<'c>],
    compute: DataType,
) -> Vec<Ssa<'c>> {
    let mut read = elements.iter().copied();
    operands
        .iter()
        .map(|operand| {
            let element = if operand.is_read() { read.next() } else { None };
            convert(body, operand.element(body, element), operand.dtype(), compute)
        })
        .collect()
}
