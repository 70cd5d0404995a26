//! The steps that operations are made of: elements made from elements, and elements combined along axes.
//!
//! An operation of the schema is a few of these over [`Value`]s, in the compute type throughout; the compiler fuses them. All of them
//! broadcast as hipDNN does: right-aligned, an extent of 1 against any other.

use crate::EmitError;
use crate::convert::convert;
use crate::ir::{Emitter, Loop, affine_map, dim};
use crate::lower::Lowering;
use crate::math::{Math, Scalar};
use crate::value::{Data, Operand, Ordered, Value, extent, extents};
use melior::ir::Value as Ssa;
use rotini_graph::{DataType, TensorId};

/// What a step makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Logical extents.
    pub(crate) dims: &'a [i64],
    /// The memory order: all axes.
    pub(crate) order: &'a [usize],
    /// Type of the elements.
    pub(crate) dtype: DataType,
}

impl<'c, 'b> Lowering<'_, 'c, 'b> {
    /// Makes each element from the operands' elements at its place.
    pub(crate) fn map(
        &self,
        operands: &[&Value<'c, 'b>],
        shape: &Shape<'_>,
        compute: DataType,
        body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
    ) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = self.emitter();
        let rank = shape.order.len();
        let read = self.operands(operands, shape.dims, shape.order)?;
        let init = at.empty(&extents(shape.dims, shape.order)?, shape.dtype)?;
        let identity = affine_map(rank, &(0..rank).map(dim).collect::<Vec<_>>());
        let loops = vec![Loop::Parallel; rank];
        let ssa = at.generic(
            &loops,
            &inputs(&read, shape.order)?,
            (init, shape.dtype, identity),
            |inner, elements| {
                let math = Math::new(*inner, self.target(), compute, shape.order.to_vec())?;
                let result = body(&math, &arguments(inner, &read, elements, compute)?)?;
                convert(inner, result, compute, shape.dtype)
            },
        )?;
        Ok(Ordered {
            ssa,
            order: shape.order.to_vec(),
            dtype: shape.dtype,
            dims: shape.dims.to_vec(),
        })
    }

    /// Combines what `body` makes of the operands' elements and of the result so far, from `start`, over all positions along the
    /// `reduced` axes of `shape`, all of which the first operand has. The result is of the compute type and has an extent of 1 along them.
    pub(crate) fn reduce(
        &self,
        operands: &[&Value<'c, 'b>],
        shape: &Shape<'_>,
        reduced: &[usize],
        start: f64,
        body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>], Ssa<'c, 'r>) -> Scalar<'c, 'r>,
    ) -> Result<Value<'c, 'b>, EmitError> {
        let at = self.emitter();
        let compute = shape.dtype;
        let is_reduced = |axis: &usize| reduced.contains(axis);
        let kept: Vec<usize> = shape.order.iter().copied().filter(|axis| !is_reduced(axis)).collect();
        // Kept axes first, as the compiler's own reductions have them.
        let order: Vec<usize> = kept
            .iter()
            .copied()
            .chain(shape.order.iter().copied().filter(is_reduced))
            .collect();
        let loops: Vec<Loop> = order
            .iter()
            .map(|axis| {
                if is_reduced(axis) {
                    Loop::Reduction
                } else {
                    Loop::Parallel
                }
            })
            .collect();
        let repeated = self.repeated(operands, shape.dims, reduced)?;
        let operands: Vec<_> = match &repeated {
            Some(first) => std::iter::once(first).chain(operands.iter().copied().skip(1)).collect(),
            None => operands.to_vec(),
        };
        let read = self.operands(&operands, shape.dims, shape.order)?;
        let init = at.filled(&extents(shape.dims, &kept)?, compute, start)?;
        let map = affine_map(order.len(), &(0..kept.len()).map(dim).collect::<Vec<_>>());
        let ssa = at.generic(
            &loops,
            &inputs(&read, &order)?,
            (init, compute, map),
            |inner, elements| {
                let (sum, elements) = elements
                    .split_last()
                    .ok_or(EmitError::Internal("a reduction without a result"))?;
                let math = Math::new(*inner, self.target(), compute, order.clone())?;
                body(&math, &arguments(inner, &read, elements, compute)?, *sum)
            },
        )?;
        let mut dims = shape.dims.to_vec();
        for &axis in reduced {
            if let Some(extent) = dims.get_mut(axis) {
                *extent = 1;
            }
        }
        Ok(Value {
            data: Data::Tensor { ssa, order: kept },
            dtype: compute,
            dims,
        })
    }

    /// The first operand with all axes, if there is a reduced axis that no operand has in memory: a loop has to be of something.
    fn repeated(
        &self,
        operands: &[&Value<'c, 'b>],
        dims: &[i64],
        reduced: &[usize],
    ) -> Result<Option<Value<'c, 'b>>, EmitError> {
        let has = |value: &Value<'_, '_>, axis: usize| {
            let own = axis
                .checked_add(value.dims.len())
                .and_then(|axis| axis.checked_sub(dims.len()));
            own.is_some_and(|own| {
                let is_wide = value.dims.get(own) == dims.get(axis);
                is_wide && matches!(&value.data, Data::Tensor { order, .. } if order.contains(&own))
            })
        };
        let is_covered = |axis: &usize| operands.iter().any(|value| has(value, *axis));
        match operands.first() {
            Some(first) if !reduced.iter().all(is_covered) => Ok(Some(Value::of(first.materialise(&self.emitter())?))),
            _ => Ok(None),
        }
    }

    /// Makes the value of a tensor that a node writes from the operands' elements at its place.
    pub(crate) fn finish(
        &mut self,
        id: TensorId,
        operands: &[&Value<'c, 'b>],
        compute: DataType,
        body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
    ) -> Result<(), EmitError> {
        let shape = Shape {
            dims: &self.tensor(id)?.dims,
            order: &self.result_order(id, operands)?,
            dtype: self.carried_type(id, compute)?,
        };
        let result = self.map(operands, &shape, compute, body)?;
        self.define(id, Value::of(result));
        Ok(())
    }

    /// The memory order of a result: the stored tensor's own, else that of the first operand that has every axis, so that a chain stays
    /// in the order of what began it.
    pub(crate) fn result_order(&self, id: TensorId, operands: &[&Value<'_, '_>]) -> Result<Vec<usize>, EmitError> {
        let out = self.tensor(id)?;
        Ok(match self.stored_order(id) {
            Some(order) => order,
            None => order_of(&out.dims, operands),
        })
    }

    fn operands(
        &self,
        values: &[&Value<'c, 'b>],
        dims: &[i64],
        loops: &[usize],
    ) -> Result<Vec<Operand<'c, 'b>>, EmitError> {
        let at = self.emitter();
        values
            .iter()
            .map(|value| Operand::new(&at, &value.over(&at, dims, loops)?, dims))
            .collect()
    }
}

/// The memory order of the first operand that has every axis of these extents, else row-major.
pub(crate) fn order_of(dims: &[i64], operands: &[&Value<'_, '_>]) -> Vec<usize> {
    operands
        .iter()
        .find_map(|value| match &value.data {
            Data::Tensor { order, .. } if value.dims == dims && order.len() == dims.len() => Some(order.clone()),
            _ => None,
        })
        .unwrap_or_else(|| (0..dims.len()).collect())
}

/// How many elements lie along these axes.
pub(crate) fn count(dims: &[i64], axes: &[usize]) -> Result<i64, EmitError> {
    axes.iter().try_fold(1_i64, |count, &axis| {
        count
            .checked_mul(extent(dims, axis)?)
            .ok_or(EmitError::Internal("an extent that overflows"))
    })
}

type Inputs<'c, 'b> = Vec<(Ssa<'c, 'b>, DataType, String)>;

fn inputs<'c, 'b>(operands: &[Operand<'c, 'b>], order: &[usize]) -> Result<Inputs<'c, 'b>, EmitError> {
    let mut inputs = Vec::new();
    for operand in operands {
        inputs.extend(operand.input(order)?);
    }
    Ok(inputs)
}

/// The operands' elements in the compute type, inside the body.
fn arguments<'c, 'r>(
    body: &Emitter<'c, 'r>,
    operands: &[Operand<'c, '_>],
    elements: &[Ssa<'c, 'r>],
    compute: DataType,
) -> Result<Vec<Ssa<'c, 'r>>, EmitError> {
    let mut read = elements.iter().copied();
    operands
        .iter()
        .map(|operand| {
            let element = if operand.is_read() { read.next() } else { None };
            convert(body, operand.element(body, element)?, operand.dtype(), compute)
        })
        .collect()
}
