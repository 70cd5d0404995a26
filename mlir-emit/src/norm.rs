//! Normalizations: statistics along axes, and what is made of them.
//!
//! All of them are one scheme. x is centred by its mean (not in RMSNorm) and divided by its deviation, both taken along some axes;
//! scale and bias are broadcast over the result. The gradients follow the same scheme backwards:
//!
//! ```text
//! x̂ = (x - mean) inverse                       dbias  = Σ dy
//! y = scale x̂ + bias                           dscale = Σ dy x̂
//! g = dy scale                                 dx     = inverse (g - avg g - x̂ avg(g x̂))      (RMSNorm: without avg g)
//! ```
//!
//! where avg is along the axes of the statistics, and Σ along those that scale lacks.

use crate::convert::{check_compute, compute_type};
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::step::{Combiner, Open, Shape, count, order_of};
use crate::value::{Data, Value};
use crate::{EmitError, Unsupported};
use melior::ir::Value as Ssa;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, DataType, Layernorm,
    LayernormBackward, NormalGraph, RmsNorm, RmsNormBackward, TensorId, rms_normalized_axis,
};

/// What hipDNN's references find statistics with that a backward pass is not given, where the schema names no epsilon or the graph has
/// none (`CpuFpReferenceBatchnorm.hpp`).
const BACKWARD_EPSILON: f64 = 1e-5;

/// Says whether a normalization of `x` can be lowered.
pub(crate) fn check(
    graph: &NormalGraph,
    compute: DataType,
    x: TensorId,
    peer_stats: &[TensorId],
) -> Result<(), Unsupported> {
    if !check_compute(graph, compute, &[x])?.is_float() {
        return Err(Unsupported::new(format!("a normalization has no meaning in {compute}")));
    }
    match peer_stats.first() {
        Some(&peer) => Err(Unsupported::of_tensor(
            peer,
            "statistics of other devices are not supported",
        )),
        None => Ok(()),
    }
}

/// Statistics of x along axes.
struct Statistics<'c, 'b> {
    mean: Option<Value<'c, 'b>>,
    /// 1 / √(variance + ε), or of the mean of squares.
    inverse: Value<'c, 'b>,
}

pub(crate) fn batchnorm_inference(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &BatchnormInference,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let x = lowering.value(op.x)?.clone();
    let [mean, inverse, scale, bias] = channels(lowering, &x, [op.mean, op.inv_variance, op.scale, op.bias])?;
    lowering.finish(
        op.y,
        &[&x, &mean, &inverse, &scale, &bias],
        compute,
        |math, elements| {
            let &[x, mean, inverse, scale, bias] = elements else {
                return Err(MISSING);
            };
            let normal = math.mul(math.sub(x, mean)?, inverse)?;
            math.add(math.mul(scale, normal)?, bias)
        },
    )
}

pub(crate) fn batchnorm_inference_variance(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &BatchnormInferenceVariance,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let (x, epsilon) = (lowering.value(op.x)?.clone(), single(lowering, op.epsilon)?);
    let [mean, variance, scale, bias] = channels(lowering, &x, [op.mean, op.variance, op.scale, op.bias])?;
    let operands = [&x, &mean, &variance, &scale, &bias, &epsilon];
    lowering.finish(op.y, &operands, compute, |math, elements| {
        let &[x, mean, variance, scale, bias, epsilon] = elements else {
            return Err(MISSING);
        };
        let inverse = math.inverse_root(math.add(variance, epsilon)?)?;
        let normal = math.mul(math.sub(x, mean)?, inverse)?;
        math.add(math.mul(scale, normal)?, bias)
    })
}

pub(crate) fn batchnorm(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &Batchnorm,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let (x, epsilon) = (lowering.value(op.x)?.clone(), single(lowering, op.epsilon)?);
    let [scale, bias] = channels(lowering, &x, [op.scale, op.bias])?;
    let axes = all_but_channels(&x.dims);
    let Found { statistics, variance } = find(lowering, &x, &epsilon, &axes, compute)?;
    normalize(lowering, op.y, &x, &statistics, &scale, Some(&bias), compute)?;
    save(lowering, op.mean, statistics.mean.as_ref(), compute)?;
    save(lowering, op.inv_variance, Some(&statistics.inverse), compute)?;
    let (Some(momentum), Some(mean)) = (op.momentum, &statistics.mean) else {
        return Ok(());
    };
    let momentum = single(lowering, momentum)?;
    let elements = count(&x.dims, &axes)? as f64;
    // Of the batch as a sample; a single element has no such variance, and keeps its own.
    let unbiased = if elements > 1.0 {
        elements / (elements - 1.0)
    } else {
        1.0
    };
    for (previous, next, batch, factor) in [
        (op.prev_running_mean, op.next_running_mean, mean, 1.0),
        (op.prev_running_variance, op.next_running_variance, &variance, unbiased),
    ] {
        let (Some(previous), Some(next)) = (previous, next) else {
            continue;
        };
        let [previous] = channels(lowering, &x, [previous])?;
        let updated = elementwise(lowering, &[batch, &previous, &momentum], compute, |math, elements| {
            let &[batch, previous, momentum] = elements else {
                return Err(MISSING);
            };
            let kept = math.mul(math.sub(math.constant(1.0)?, momentum)?, previous)?;
            math.add(kept, math.mul(momentum, math.scale(factor, batch)?)?)
        })?;
        save(lowering, Some(next), Some(&updated), compute)?;
    }
    Ok(())
}

pub(crate) fn layernorm(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &Layernorm,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let [x, scale, bias] = values(lowering, [op.x, op.scale, op.bias])?;
    let epsilon = single(lowering, op.epsilon)?;
    let axes = trailing(&x.dims, op.normalized_dim_count)?;
    let Found { statistics, .. } = find(lowering, &x, &epsilon, &axes, compute)?;
    normalize(lowering, op.y, &x, &statistics, &scale, Some(&bias), compute)?;
    save(lowering, op.mean, statistics.mean.as_ref(), compute)?;
    save(lowering, op.inv_variance, Some(&statistics.inverse), compute)
}

pub(crate) fn rms_norm(lowering: &mut Lowering<'_, '_, '_>, compute: DataType, op: &RmsNorm) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let ([x, scale], epsilon) = (values(lowering, [op.x, op.scale])?, single(lowering, op.epsilon)?);
    let bias = op.bias.map(|bias| lowering.value(bias).cloned()).transpose()?;
    let axes = matching(&x.dims, &scale.dims)?;
    let squares = open_average(lowering, &[&x], &axes, compute, |math, elements| {
        let x = only(elements)?;
        math.mul(x, x)
    })?;
    let statistics = Statistics {
        mean: None,
        inverse: inverse(lowering, &squares, &epsilon, compute)?,
    };
    normalize(lowering, op.y, &x, &statistics, &scale, bias.as_ref(), compute)?;
    save(lowering, op.inv_rms, Some(&statistics.inverse), compute)
}

pub(crate) fn batchnorm_backward(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &BatchnormBackward,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let [dy, x] = values(lowering, [op.dy, op.x])?;
    let [scale] = channels(lowering, &x, [op.scale])?;
    let axes = all_but_channels(&x.dims);
    let statistics = given_or_found(lowering, &x, op.mean, op.inv_variance, None, &axes, compute)?;
    let gradients = Gradients {
        dx: op.dx,
        dscale: op.dscale,
        dbias: Some(op.dbias),
    };
    differentiate(lowering, &gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}

pub(crate) fn layernorm_backward(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &LayernormBackward,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let [dy, x, scale] = values(lowering, [op.dy, op.x, op.scale])?;
    let axes = trailing(&x.dims, op.normalized_dim_count)?;
    let statistics = given_or_found(lowering, &x, op.mean, op.inv_variance, op.epsilon, &axes, compute)?;
    let gradients = Gradients {
        dx: op.dx,
        dscale: op.dscale,
        dbias: Some(op.dbias),
    };
    differentiate(lowering, &gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}

pub(crate) fn rms_norm_backward(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &RmsNormBackward,
) -> Result<(), EmitError> {
    let compute = float(compute)?;
    let [dy, x, scale] = values(lowering, [op.dy, op.x, op.scale])?;
    let axes = matching(&x.dims, &scale.dims)?;
    let statistics = Statistics {
        mean: None,
        inverse: statistic(lowering, &x, op.inv_rms, &axes)?,
    };
    let gradients = Gradients {
        dx: op.dx,
        dscale: op.dscale,
        dbias: op.dbias,
    };
    differentiate(lowering, &gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}

/// Every axis but the channels': N and the spatial ones.
fn all_but_channels(dims: &[i64]) -> Vec<usize> {
    (0..dims.len()).filter(|&axis| axis != 1).collect()
}

/// The last so many axes.
fn trailing(dims: &[i64], count: i64) -> Result<Vec<usize>, EmitError> {
    let first = usize::try_from(count)
        .ok()
        .and_then(|count| dims.len().checked_sub(count));
    Ok((first.ok_or(EmitError::Internal("more normalized axes than axes"))?..dims.len()).collect())
}

/// The axes that an RMSNorm's scale says are normalized.
fn matching(x: &[i64], scale: &[i64]) -> Result<Vec<usize>, EmitError> {
    let first = rms_normalized_axis(x, scale).ok_or(EmitError::Internal("a scale that does not fit"))?;
    Ok((first..x.len()).collect())
}

fn float(compute: DataType) -> Result<DataType, EmitError> {
    compute_type(compute)
        .filter(|compute| compute.is_float())
        .ok_or(EmitError::Internal("a compute type that check declines"))
}

fn values<'c, 'b, const N: usize>(
    lowering: &Lowering<'_, 'c, 'b>,
    ids: [TensorId; N],
) -> Result<[Value<'c, 'b>; N], EmitError> {
    let values: Vec<_> = ids
        .iter()
        .map(|&id| lowering.value(id).cloned())
        .collect::<Result<_, _>>()?;
    values.try_into().map_err(|_| MISSING)
}

/// One element for each channel of x, whatever axes of extent 1 its tensor has after them.
fn channels<'c, 'b, const N: usize>(
    lowering: &Lowering<'_, 'c, 'b>,
    x: &Value<'c, 'b>,
    ids: [TensorId; N],
) -> Result<[Value<'c, 'b>; N], EmitError> {
    let mut dims = vec![1; x.dims.len()];
    if let (Some(channels), Some(&extent)) = (dims.get_mut(1), x.dims.get(1)) {
        *channels = extent;
    }
    let values: Vec<_> = ids
        .iter()
        .map(|&id| lowering.value(id)?.clone().with_dims(&lowering.emitter(), &dims))
        .collect::<Result<_, _>>()?;
    values.try_into().map_err(|_| MISSING)
}

/// One element, whatever its tensor's rank.
fn single<'c, 'b>(lowering: &Lowering<'_, 'c, 'b>, id: TensorId) -> Result<Value<'c, 'b>, EmitError> {
    lowering.value(id)?.clone().with_dims(&lowering.emitter(), &[1])
}

/// A statistic of x along axes, whose tensor may end before them.
fn statistic<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    x: &Value<'c, 'b>,
    id: TensorId,
    axes: &[usize],
) -> Result<Value<'c, 'b>, EmitError> {
    let dims: Vec<i64> = x
        .dims
        .iter()
        .enumerate()
        .map(|(axis, &extent)| if axes.contains(&axis) { 1 } else { extent })
        .collect();
    lowering.value(id)?.clone().with_dims(&lowering.emitter(), &dims)
}

/// Statistics that were found, and the variance that the deviation was made of.
struct Found<'c, 'b> {
    statistics: Statistics<'c, 'b>,
    variance: Value<'c, 'b>,
}

/// Finds the statistics of x along axes.
fn find<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    x: &Value<'c, 'b>,
    epsilon: &Value<'c, 'b>,
    axes: &[usize],
    compute: DataType,
) -> Result<Found<'c, 'b>, EmitError> {
    let mean = average(lowering, &[x], axes, compute, |_, elements| only(elements))?;
    // The variance around the mean: of all elements, not of a sample.
    let variance = open_average(lowering, &[x, &mean], axes, compute, |math, elements| {
        let &[x, mean] = elements else { return Err(MISSING) };
        let distance = math.sub(x, mean)?;
        math.mul(distance, distance)
    })?;
    Ok(Found {
        statistics: Statistics {
            mean: Some(mean),
            inverse: inverse(lowering, &variance, epsilon, compute)?,
        },
        variance: variance.value,
    })
}

/// The average along axes of what `body` makes of the elements. The first operand has all axes.
fn average<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    operands: &[&Value<'c, 'b>],
    axes: &[usize],
    compute: DataType,
    body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
) -> Result<Value<'c, 'b>, EmitError> {
    open_average(lowering, operands, axes, compute, body)?.closed(&lowering.emitter())
}

/// [`average`] that more is made of before anything has the axes again.
fn open_average<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    operands: &[&Value<'c, 'b>],
    axes: &[usize],
    compute: DataType,
    body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
) -> Result<Open<'c, 'b>, EmitError> {
    let dims = &operands.first().ok_or(MISSING)?.dims;
    let total = sum(lowering, operands, axes, compute, body)?;
    let elements = count(dims, axes)? as f64;
    let value = elementwise(lowering, &[&total.value], compute, |math, operands| {
        math.div(only(operands)?, math.constant(elements)?)
    })?;
    Ok(Open { value, ..total })
}

fn sum<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    operands: &[&Value<'c, 'b>],
    axes: &[usize],
    compute: DataType,
    body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
) -> Result<Open<'c, 'b>, EmitError> {
    let dims = operands.first().ok_or(MISSING)?.dims.clone();
    let shape = Shape {
        dims: &dims,
        order: &order_of(&dims, operands),
        dtype: compute,
    };
    lowering.reduce_openly(operands, &shape, axes, (Combiner::Sum, 0.0), body)
}

/// A step without reduction on a value that lacks the reduced axes: they stay away.
fn elementwise<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    operands: &[&Value<'c, 'b>],
    compute: DataType,
    body: impl for<'r> FnOnce(&Math<'c, 'r>, &[Ssa<'c, 'r>]) -> Scalar<'c, 'r>,
) -> Result<Value<'c, 'b>, EmitError> {
    let first = operands.first().ok_or(MISSING)?;
    let order = match &first.data {
        Data::Tensor { order, .. } => order.clone(),
        Data::Constant(_) | Data::Scalar(_) => Vec::new(),
    };
    let shape = Shape {
        dims: &first.dims.clone(),
        order: &order,
        dtype: compute,
    };
    lowering.map(operands, &shape, compute, body).map(Value::of)
}

/// 1 / √(value + ε).
fn inverse<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    value: &Open<'c, 'b>,
    epsilon: &Value<'c, 'b>,
    compute: DataType,
) -> Result<Value<'c, 'b>, EmitError> {
    let inverse = elementwise(lowering, &[&value.value, epsilon], compute, |math, elements| {
        let &[value, epsilon] = elements else {
            return Err(MISSING);
        };
        math.inverse_root(math.add(value, epsilon)?)
    })?;
    Open {
        value: inverse,
        is_spread: value.is_spread,
    }
    .closed(&lowering.emitter())
}

/// Saved statistics, or the same found again.
fn given_or_found<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    x: &Value<'c, 'b>,
    mean: Option<TensorId>,
    inverse_variance: Option<TensorId>,
    epsilon: Option<TensorId>,
    axes: &[usize],
    compute: DataType,
) -> Result<Statistics<'c, 'b>, EmitError> {
    if let (Some(mean), Some(inverse)) = (mean, inverse_variance) {
        return Ok(Statistics {
            mean: Some(statistic(lowering, x, mean, axes)?),
            inverse: statistic(lowering, x, inverse, axes)?,
        });
    }
    let epsilon = match epsilon {
        Some(epsilon) => single(lowering, epsilon)?,
        None => Value {
            data: Data::Constant(rotini_graph::Scalar::float(BACKWARD_EPSILON)),
            dtype: compute,
            dims: vec![1],
        },
    };
    Ok(find(lowering, x, &epsilon, axes, compute)?.statistics)
}

/// y = scale x̂ + bias.
fn normalize<'c, 'b>(
    lowering: &mut Lowering<'_, 'c, 'b>,
    y: TensorId,
    x: &Value<'c, 'b>,
    statistics: &Statistics<'c, 'b>,
    scale: &Value<'c, 'b>,
    bias: Option<&Value<'c, 'b>>,
    compute: DataType,
) -> Result<(), EmitError> {
    let mut operands = vec![x, &statistics.inverse, scale];
    operands.extend(bias);
    operands.extend(&statistics.mean);
    let (has_bias, has_mean) = (bias.is_some(), statistics.mean.is_some());
    lowering.finish(y, &operands, compute, |math, elements| {
        let (&[x, inverse, scale], rest) = elements.split_first_chunk().ok_or(MISSING)?;
        let mut rest = rest.iter().copied();
        let bias = if has_bias { rest.next() } else { None };
        let mean = if has_mean { rest.next() } else { None };
        let scaled = math.mul(scale, normal(math, x, mean, inverse)?)?;
        match bias {
            Some(bias) => math.add(scaled, bias),
            None => Ok(scaled),
        }
    })
}

/// x̂.
fn normal<'c, 'r>(
    math: &Math<'c, 'r>,
    x: Ssa<'c, 'r>,
    mean: Option<Ssa<'c, 'r>>,
    inverse: Ssa<'c, 'r>,
) -> Scalar<'c, 'r> {
    let centred = match mean {
        Some(mean) => math.sub(x, mean)?,
        None => x,
    };
    math.mul(centred, inverse)
}

fn save<'c, 'b>(
    lowering: &mut Lowering<'_, 'c, 'b>,
    id: Option<TensorId>,
    value: Option<&Value<'c, 'b>>,
    compute: DataType,
) -> Result<(), EmitError> {
    match (id, value) {
        (Some(id), Some(value)) => {
            let dims = &lowering.tensor(id)?.dims;
            let value = value.clone().with_dims(&lowering.emitter(), dims)?;
            lowering.finish(id, &[&value], compute, |_, elements| only(elements))
        }
        _ => Ok(()),
    }
}

/// What a backward pass writes.
struct Gradients {
    dx: TensorId,
    dscale: TensorId,
    dbias: Option<TensorId>,
}

/// What the gradients are made of, at one place.
struct Parts<'c, 'r> {
    dy: Ssa<'c, 'r>,
    /// dy scale.
    scaled: Ssa<'c, 'r>,
    /// x̂.
    normal: Ssa<'c, 'r>,
    inverse: Ssa<'c, 'r>,
}

impl<'c, 'r> Parts<'c, 'r> {
    /// From dy, x, scale, the inverse and the mean, if there is one.
    fn new(math: &Math<'c, 'r>, elements: &[Ssa<'c, 'r>]) -> Result<Self, EmitError> {
        let (&[dy, x, scale, inverse], mean) = elements.split_first_chunk().ok_or(MISSING)?;
        Ok(Parts {
            dy,
            scaled: math.mul(dy, scale)?,
            normal: normal(math, x, mean.first().copied(), inverse)?,
            inverse,
        })
    }
}

/// The gradients, with the statistics along `axes`.
fn differentiate<'c, 'b>(
    lowering: &mut Lowering<'_, 'c, 'b>,
    gradients: &Gradients,
    [dy, x, scale]: [&Value<'c, 'b>; 3],
    statistics: &Statistics<'c, 'b>,
    axes: &[usize],
    compute: DataType,
) -> Result<(), EmitError> {
    let mut operands = vec![dy, x, scale, &statistics.inverse];
    operands.extend(&statistics.mean);

    let lacking = lacking(&x.dims, &scale.dims);
    let dscale = sum(lowering, &operands, &lacking, compute, |math, elements| {
        let parts = Parts::new(math, elements)?;
        math.mul(parts.dy, parts.normal)
    })?;
    let dbias = sum(lowering, &[dy], &lacking, compute, |_, elements| only(elements))?;

    let slope = average(lowering, &operands, axes, compute, |math, elements| {
        let parts = Parts::new(math, elements)?;
        math.mul(parts.scaled, parts.normal)
    })?;
    let level = match &statistics.mean {
        Some(_) => Some(average(lowering, &[dy, scale], axes, compute, |math, elements| {
            let &[dy, scale] = elements else { return Err(MISSING) };
            math.mul(dy, scale)
        })?),
        None => None,
    };
    let count = operands.len();
    operands.push(&slope);
    operands.extend(&level);
    lowering.finish(gradients.dx, &operands, compute, |math, elements| {
        let (elements, rest) = elements.split_at_checked(count).ok_or(MISSING)?;
        let parts = Parts::new(math, elements)?;
        let centred = match rest.get(1) {
            Some(&level) => math.sub(parts.scaled, level)?,
            None => parts.scaled,
        };
        math.mul(parts.inverse, math.sub(centred, math.mul(parts.normal, only(rest)?)?)?)
    })?;
    save(lowering, Some(gradients.dscale), Some(&dscale.value), compute)?;
    save(lowering, gradients.dbias, Some(&dbias.value), compute)
}

/// The axes that scale lacks, which need not be those of the statistics.
fn lacking(x: &[i64], scale: &[i64]) -> Vec<usize> {
    let missing = x.len().saturating_sub(scale.len());
    let extent = |axis: usize| axis.checked_sub(missing).and_then(|axis| scale.get(axis)).copied();
    (0..x.len()).filter(|&axis| extent(axis).unwrap_or(1) == 1).collect()
}
