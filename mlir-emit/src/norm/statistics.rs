//! Means, deviations and normalized elements, shared by normalizations and their gradients.

use crate::convert::compute_type;
use crate::counts::exactly;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::reduce::one_along;
use crate::step::{Combiner, Open, Shape, count, order_of};
use crate::value::{Data, Value};
use rotini_graph::{DataType, TensorId, rms_normalized_axis};

/// The epsilon with which hipDNN's references compute the statistics of a backward pass that gets
/// none, if the schema has no epsilon or the graph leaves it out (`CpuFpReferenceBatchnorm.hpp`).
const BACKWARD_EPSILON: f64 = 1e-5;

/// Statistics of x along axes.
pub(super) struct Statistics<'c> {
    pub(super) mean: Option<Value<'c>>,
    /// 1 / √(variance + ε); in RMSNorm 1 / √(mean of squares + ε).
    pub(super) inverse: Value<'c>,
}

/// Returns every axis but that of the channels: the batch and spatial axes.
pub(super) fn all_but_channels(dims: &[i64]) -> Vec<usize> {
    (0..dims.len()).filter(|&axis| axis != 1).collect()
}

/// Returns the last `count` axes.
pub(super) fn trailing(dims: &[i64], count: i64) -> Vec<usize> {
    let first = usize::try_from(count)
        .ok()
        .and_then(|count| dims.len().checked_sub(count));
    (first.expect("more normalized axes than axes")..dims.len()).collect()
}

/// Returns the axes that an RMSNorm normalizes, which the shape of its scale determines.
pub(super) fn matching(x: &[i64], scale: &[i64]) -> Vec<usize> {
    let first = rms_normalized_axis(x, scale).expect("a scale that does not fit");
    (first..x.len()).collect()
}

pub(super) fn float(compute: DataType) -> DataType {
    compute_type(compute)
        .filter(|compute| compute.is_float())
        .expect("a compute type that check declines")
}

pub(super) fn values<'c, const N: usize>(lowering: &Lowering<'_, 'c>, ids: [TensorId; N]) -> [Value<'c>; N] {
    let values: Vec<_> = ids.iter().map(|&id| lowering.value(id).clone()).collect();
    values.try_into().expect(MISSING)
}

/// Returns values with one element per channel, reshaped to the rank of x.
pub(super) fn channels<'c, const N: usize>(
    lowering: &Lowering<'_, 'c>,
    x: &Value<'c>,
    ids: [TensorId; N],
) -> [Value<'c>; N] {
    let mut dims = vec![1; x.dims.len()];
    dims[1] = x.dims[1];
    let values: Vec<_> = ids
        .iter()
        .map(|&id| lowering.value(id).clone().with_dims(&lowering.emitter(), &dims))
        .collect();
    values.try_into().expect(MISSING)
}

/// Returns a value with one element, reshaped to rank 1.
pub(super) fn single<'c>(lowering: &Lowering<'_, 'c>, id: TensorId) -> Value<'c> {
    lowering.value(id).clone().with_dims(&lowering.emitter(), &[1])
}

/// Returns a statistic of x along axes, reshaped to the rank of x; its tensor may lack those axes.
pub(super) fn statistic<'c>(lowering: &Lowering<'_, 'c>, x: &Value<'c>, id: TensorId, axes: &[usize]) -> Value<'c> {
    let dims = one_along(&x.dims, axes);
    lowering.value(id).clone().with_dims(&lowering.emitter(), &dims)
}

/// Computed statistics, and the variance that the deviation was computed from.
pub(super) struct Found<'c> {
    pub(super) statistics: Statistics<'c>,
    pub(super) variance: Open<'c>,
}

/// Computes the statistics of x along axes.
pub(super) fn find<'c>(
    lowering: &Lowering<'_, 'c>,
    x: &Value<'c>,
    epsilon: &Value<'c>,
    axes: &[usize],
    compute: DataType,
) -> Found<'c> {
    let mean = average(lowering, &[x], axes, compute, |_, elements| only(elements));
    let mean = mean.closed(&lowering.emitter());
    // The biased variance: the average over all elements.
    let variance = average(lowering, &[x, &mean], axes, compute, |_, elements| {
        let [x, mean] = exactly(elements);
        let distance = x - mean;
        distance * distance
    });
    Found {
        statistics: Statistics {
            mean: Some(mean),
            inverse: inverse(lowering, &variance, epsilon, compute),
        },
        variance,
    }
}

/// Returns the average along `axes` of the results of `body`. The first operand has all axes.
/// Further values may be computed from the average before it is broadcast along the axes again.
pub(super) fn average<'c>(
    lowering: &Lowering<'_, 'c>,
    operands: &[&Value<'c>],
    axes: &[usize],
    compute: DataType,
    body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
) -> Open<'c> {
    let dims = &operands[0].dims;
    let total = sum(lowering, operands, axes, compute, body);
    let elements = count(dims, axes) as f64;
    let value = elementwise(lowering, &[&total.value], compute, |math, operands| {
        only(operands) / math.constant(elements)
    });
    Open { value, ..total }
}

pub(super) fn sum<'c>(
    lowering: &Lowering<'_, 'c>,
    operands: &[&Value<'c>],
    axes: &[usize],
    compute: DataType,
    body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
) -> Open<'c> {
    let dims = &operands[0].dims;
    let order = order_of(dims, operands);
    let shape = Shape::new(dims, &order, compute);
    lowering.reduce_openly(operands, &shape, axes, (Combiner::Sum, 0.0), body)
}

/// Appends an elementwise operation on a value that lacks the reduced axes; so does the result.
pub(super) fn elementwise<'c>(
    lowering: &Lowering<'_, 'c>,
    operands: &[&Value<'c>],
    compute: DataType,
    body: impl Fn(&Math<'c>, &[Ssa<'c>]) -> Scalar<'c>,
) -> Value<'c> {
    let first = &operands[0];
    let shape = Shape::new(&first.dims, first.order(), compute);
    Value::of(lowering.map(operands, &shape, compute, body))
}

/// Returns 1 / √(value + ε).
pub(super) fn inverse<'c>(
    lowering: &Lowering<'_, 'c>,
    value: &Open<'c>,
    epsilon: &Value<'c>,
    compute: DataType,
) -> Value<'c> {
    let inverse = elementwise(lowering, &[&value.value, epsilon], compute, |math, elements| {
        let [value, epsilon] = exactly(elements);
        math.inverse_root(value + epsilon)
    });
    Open {
        value: inverse,
        is_spread: value.is_spread,
    }
    .closed(&lowering.emitter())
}

/// Returns the saved statistics, or computes them again if either is missing.
pub(super) fn given_or_found<'c>(
    lowering: &Lowering<'_, 'c>,
    x: &Value<'c>,
    mean: Option<TensorId>,
    inverse_variance: Option<TensorId>,
    epsilon: Option<TensorId>,
    axes: &[usize],
    compute: DataType,
) -> Statistics<'c> {
    if let (Some(mean), Some(inverse)) = (mean, inverse_variance) {
        return Statistics {
            mean: Some(statistic(lowering, x, mean, axes)),
            inverse: statistic(lowering, x, inverse, axes),
        };
    }
    let epsilon = match epsilon {
        Some(epsilon) => single(lowering, epsilon),
        None => Value {
            data: Data::Constant(rotini_graph::Scalar::float(BACKWARD_EPSILON)),
            dtype: compute,
            dims: vec![1],
        },
    };
    find(lowering, x, &epsilon, axes, compute).statistics
}

/// Defines y = scale x̂ + bias.
pub(super) fn normalize<'c>(
    lowering: &mut Lowering<'_, 'c>,
    y: TensorId,
    x: &Value<'c>,
    statistics: &Statistics<'c>,
    scale: &Value<'c>,
    bias: Option<&Value<'c>>,
    compute: DataType,
) {
    let mut operands = vec![x, &statistics.inverse, scale];
    operands.extend(bias);
    operands.extend(&statistics.mean);
    let (has_bias, has_mean) = (bias.is_some(), statistics.mean.is_some());
    lowering.finish(y, &operands, compute, |_, elements| {
        let (&[x, inverse, scale], rest) = elements.split_first_chunk().expect(MISSING);
        let mut rest = rest.iter().copied();
        let bias = if has_bias { rest.next() } else { None };
        let mean = if has_mean { rest.next() } else { None };
        let scaled = scale * normal(x, mean, inverse);
        match bias {
            Some(bias) => scaled + bias,
            None => scaled,
        }
    })
}

/// Returns x̂, the normalized x.
pub(super) fn normal<'c>(x: Ssa<'c>, mean: Option<Ssa<'c>>, inverse: Ssa<'c>) -> Scalar<'c> {
    let centred = match mean {
        Some(mean) => x - mean,
        None => x,
    };
    centred * inverse
}

/// Saves sums, or values computed from them. If the reduction carries its own schedule, readers in
/// the graph are kept apart from it, since they may have the reduced axes.
pub(super) fn save_sums<'c>(lowering: &mut Lowering<'_, 'c>, id: Option<TensorId>, sums: &Open<'c>, compute: DataType) {
    save(lowering, id, Some(&sums.value), compute);
    match id {
        Some(id) if sums.is_spread && lowering.is_read(id) => lowering.settle(id),
        _ => (),
    }
}

pub(super) fn save<'c>(
    lowering: &mut Lowering<'_, 'c>,
    id: Option<TensorId>,
    value: Option<&Value<'c>>,
    compute: DataType,
) {
    if let (Some(id), Some(value)) = (id, value) {
        let dims = &lowering.tensor(id).dims;
        let value = value.clone().with_dims(&lowering.emitter(), dims);
        lowering.finish(id, &[&value], compute, |_, elements| only(elements));
    }
}
