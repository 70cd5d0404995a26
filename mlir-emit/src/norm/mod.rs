//! Normalizations: statistics along axes, and the results computed from them.
//!
//! All of them follow one scheme. x is centred by its mean (not in RMSNorm) and divided by its
//! deviation, both taken along some axes; scale and bias are broadcast over the result. The
//! gradients apply the same scheme backwards:
//!
//! ```text
//! x̂ = (x - mean) inverse                       dbias  = Σ dy
//! y = scale x̂ + bias                           dscale = Σ dy x̂
//! g = dy scale                                 dx     = inverse (g - avg g - x̂ avg(g x̂))
//! ```
//!
//! where avg is taken along the axes of the statistics, and Σ along the axes that scale lacks. In
//! RMSNorm, dx has no term avg g.

mod gradient;
mod statistics;

use crate::Unsupported;
use crate::convert::check_compute;
use crate::counts::exactly;
use crate::ir::only;
use crate::lowering::Lowering;
use crate::step::{Open, count};
use gradient::differentiate;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, DataType, Layernorm,
    LayernormBackward, NormalGraph, RmsNorm, RmsNormBackward, TensorId,
};
use statistics::{
    Found, Statistics, all_but_channels, average, channels, elementwise, find, float, given_or_found, inverse,
    matching, normalize, save, save_sums, single, statistic, trailing, values,
};

/// Checks whether a normalization of `x` can be lowered.
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

pub(crate) fn batchnorm_inference(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &BatchnormInference) {
    let compute = float(compute);
    let x = lowering.value(op.x).clone();
    let [mean, inverse, scale, bias] = channels(lowering, &x, [op.mean, op.inv_variance, op.scale, op.bias]);
    let bias = lowering.term(op.bias, bias, compute);
    lowering.finish(op.y, &[&x, &mean, &inverse, &scale, &bias], compute, |_, elements| {
        let [x, mean, inverse, scale, bias] = exactly(elements);
        let normal = (x - mean) * inverse;
        scale * normal + bias
    })
}

pub(crate) fn batchnorm_inference_variance(
    lowering: &mut Lowering<'_, '_>,
    compute: DataType,
    op: &BatchnormInferenceVariance,
) {
    let compute = float(compute);
    let (x, epsilon) = (lowering.value(op.x).clone(), single(lowering, op.epsilon));
    let [mean, variance, scale, bias] = channels(lowering, &x, [op.mean, op.variance, op.scale, op.bias]);
    let bias = lowering.term(op.bias, bias, compute);
    let operands = [&x, &mean, &variance, &scale, &bias, &epsilon];
    lowering.finish(op.y, &operands, compute, |math, elements| {
        let [x, mean, variance, scale, bias, epsilon] = exactly(elements);
        let inverse = math.inverse_root(variance + epsilon);
        let normal = (x - mean) * inverse;
        scale * normal + bias
    })
}

pub(crate) fn batchnorm(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Batchnorm) {
    let compute = float(compute);
    let (x, epsilon) = (lowering.value(op.x).clone(), single(lowering, op.epsilon));
    let [scale, bias] = channels(lowering, &x, [op.scale, op.bias]);
    let bias = lowering.term(op.bias, bias, compute);
    let axes = all_but_channels(&x.dims);
    let Found { statistics, variance } = find(lowering, &x, &epsilon, &axes, compute);
    normalize(lowering, op.y, &x, &statistics, &scale, Some(&bias), compute);
    save(lowering, op.mean, statistics.mean.as_ref(), compute);
    save(lowering, op.inv_variance, Some(&statistics.inverse), compute);
    let (Some(momentum), Some(mean)) = (op.momentum, &statistics.mean) else {
        return;
    };
    let momentum = single(lowering, momentum);
    let elements = count(&x.dims, &axes) as f64;
    // The running variance uses the unbiased variance of the batch. A single element has no
    // unbiased variance, and keeps the biased one.
    let unbiased = if elements > 1.0 {
        elements / (elements - 1.0)
    } else {
        1.0
    };
    for (previous, next, batch, is_spread, factor) in [
        (op.prev_running_mean, op.next_running_mean, mean, false, 1.0),
        (
            op.prev_running_variance,
            op.next_running_variance,
            &variance.value,
            variance.is_spread,
            unbiased,
        ),
    ] {
        let (Some(previous), Some(next)) = (previous, next) else {
            continue;
        };
        let [previous] = channels(lowering, &x, [previous]);
        let value = elementwise(lowering, &[batch, &previous, &momentum], compute, |math, elements| {
            let [batch, previous, momentum] = exactly(elements);
            let kept = (math.constant(1.0) - momentum) * previous;
            kept + momentum * math.scale(factor, batch)
        });
        save_sums(lowering, Some(next), &Open { value, is_spread }, compute);
    }
}

pub(crate) fn layernorm(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Layernorm) {
    let compute = float(compute);
    let [x, scale, bias] = values(lowering, [op.x, op.scale, op.bias]);
    let bias = lowering.term(op.bias, bias, compute);
    let epsilon = single(lowering, op.epsilon);
    let axes = trailing(&x.dims, op.normalized_dim_count);
    let Found { statistics, .. } = find(lowering, &x, &epsilon, &axes, compute);
    normalize(lowering, op.y, &x, &statistics, &scale, Some(&bias), compute);
    save(lowering, op.mean, statistics.mean.as_ref(), compute);
    save(lowering, op.inv_variance, Some(&statistics.inverse), compute)
}

pub(crate) fn rms_norm(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &RmsNorm) {
    let compute = float(compute);
    let ([x, scale], epsilon) = (values(lowering, [op.x, op.scale]), single(lowering, op.epsilon));
    let bias = op.bias.map(|id| lowering.term(id, lowering.value(id).clone(), compute));
    let axes = matching(&x.dims, &scale.dims);
    let squares = average(lowering, &[&x], &axes, compute, |_, elements| {
        let x = only(elements);
        x * x
    });
    let statistics = Statistics {
        mean: None,
        inverse: inverse(lowering, &squares, &epsilon, compute),
    };
    normalize(lowering, op.y, &x, &statistics, &scale, bias.as_ref(), compute);
    save(lowering, op.inv_rms, Some(&statistics.inverse), compute)
}

pub(crate) fn batchnorm_backward(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &BatchnormBackward) {
    let compute = float(compute);
    let [dy, x] = values(lowering, [op.dy, op.x]);
    let [scale] = channels(lowering, &x, [op.scale]);
    let axes = all_but_channels(&x.dims);
    let statistics = given_or_found(lowering, &x, op.mean, op.inv_variance, None, &axes, compute);
    let gradients = (op.dx, op.dscale, Some(op.dbias));
    differentiate(lowering, gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}

pub(crate) fn layernorm_backward(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &LayernormBackward) {
    let compute = float(compute);
    let [dy, x, scale] = values(lowering, [op.dy, op.x, op.scale]);
    let axes = trailing(&x.dims, op.normalized_dim_count);
    let statistics = given_or_found(lowering, &x, op.mean, op.inv_variance, op.epsilon, &axes, compute);
    let gradients = (op.dx, op.dscale, Some(op.dbias));
    differentiate(lowering, gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}

pub(crate) fn rms_norm_backward(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &RmsNormBackward) {
    let compute = float(compute);
    let [dy, x, scale] = values(lowering, [op.dy, op.x, op.scale]);
    let axes = matching(&x.dims, &scale.dims);
    let statistics = Statistics {
        mean: None,
        inverse: statistic(lowering, &x, op.inv_rms, &axes),
    };
    let gradients = (op.dx, op.dscale, op.dbias);
    differentiate(lowering, gradients, [&dy, &x, &scale], &statistics, &axes, compute)
}
