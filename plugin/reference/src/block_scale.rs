//! Block scales: one scale for each block of elements.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::functions::pointwise_tolerance;
use crate::narrow::Format;
use crate::value::{Extreme, Numbers, Value, distance, flushed, rounding_error};
use half::{bf16, f16};
use rotini_graph::{BlockScaleDequantize, BlockScaleQuantize, TensorId};

/// Computes y = x · scale, or x · 2^-scale, with the scale of the block that holds the element.
pub(crate) fn dequantize(context: &Context<'_>, op: &BlockScaleDequantize) -> Result<Value, ReferenceError> {
    let (dims, scale_dims) = (context.dims(op.y)?, context.dims(op.scale)?);
    if context.compute.precision().is_none() {
        return Err(context.unsupported("block scales in integers"));
    }
    let wrong = || ReferenceError::not_validated(format!("blocks of {dims:?} with scales {scale_dims:?}"));
    let leading = dims.len().checked_sub(op.block_size.len()).ok_or_else(wrong)?;
    let mut blocks = vec![1; leading];
    for &size in &op.block_size {
        blocks.push(usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(wrong)?);
    }
    let (x, scale) = (context.floats(op.x)?, context.floats(op.scale)?);
    let unit: Vec<usize> = (0..dims.len())
        .map(|axis| dims.iter().skip(axis + 1).product())
        .collect();
    let (mut numbers, mut bounds) = (Vec::with_capacity(x.numbers.len()), Vec::new());
    for (flat, &value) in x.numbers.iter().enumerate() {
        let position = unit
            .iter()
            .zip(&dims)
            .zip(&blocks)
            .zip(&scale_dims)
            .fold(0, |position, (((unit, dim), block), extent)| {
                position * extent + flat / unit % dim / block
            });
        let &raw = scale.numbers.get(position).ok_or_else(wrong)?;
        let at = |errors: &Option<std::borrow::Cow<'_, [f64]>>, index: usize| {
            errors
                .as_ref()
                .and_then(|errors| errors.get(index).copied())
                .unwrap_or_default()
        };
        let (x_error, raw_error) = (at(&x.errors, flat), at(&scale.errors, position));
        let (factor, factor_error) = if op.is_negative_scale {
            let factor = (-raw).exp2();
            // A power with a whole exponent is exact; any other is approximated as pointwise
            // functions are.
            let own = if raw.fract() == 0.0 {
                0.0
            } else {
                pointwise_tolerance(context.compute) * factor
            };
            (factor, own + factor * (raw_error.exp2() - 1.0))
        } else {
            (raw, raw_error)
        };
        let product = value * factor;
        let x_error = x_error.max(flushed(context.compute, value));
        let factor_error = factor_error.max(flushed(context.compute, factor));
        let propagated = x_error * (factor.abs() + factor_error) + value.abs() * factor_error;
        let own = rounding_error(context.compute, product, propagated == 0.0).max(flushed(context.compute, product));
        numbers.push(product);
        bounds.push(propagated + own);
    }
    Ok(Value {
        dims,
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(bounds),
    })
}

/// Computes the scale of each block along an axis, and x divided by its block's scale.
///
/// The scale is rounded up, such that the block's largest magnitude becomes at most the output
/// type's largest number. Details follow `CpuFpReferenceBlockScaleQuantize.hpp` of hipDNN's test
/// SDK: the quotient of the block's magnitude and the largest number is computed in binary64, NaN
/// is ignored, a binary32 scale is rounded to nearest, and where the scale is 0 the output is 0.
pub(crate) fn quantize(
    context: &Context<'_>,
    op: &BlockScaleQuantize,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    if context.compute.precision().is_none() || op.transpose {
        return Err(context.unsupported("block scales in integers or transposed"));
    }
    let (dims, scale_dims) = (context.dims(op.x)?, context.dims(op.scale)?);
    let wrong = || ReferenceError::not_validated(format!("blocks of {dims:?} with scales {scale_dims:?}"));
    let axis = op.axis.unwrap_or(dims.len() as i64 - 1);
    let axis = usize::try_from(axis)
        .ok()
        .filter(|&axis| axis < dims.len())
        .ok_or_else(wrong)?;
    let size = usize::try_from(op.block_size)
        .ok()
        .filter(|&size| size > 0)
        .ok_or_else(wrong)?;
    let (largest, codec) = (context.codec(op.y)?.largest(), context.codec(op.scale)?);
    if !matches!(
        codec,
        Codec::F32 | Codec::F16 | Codec::Bf16 | Codec::Narrow(Format::E8M0)
    ) {
        return Err(context.unsupported("block scales of this type"));
    }

    let x = context.floats(op.x)?;
    let x_error = |flat: usize| {
        x.errors
            .as_ref()
            .and_then(|errors| errors.get(flat))
            .copied()
            .unwrap_or_default()
    };
    let inner: usize = dims.iter().skip(axis + 1).product();
    let (extent, blocks) = (dims[axis], scale_dims[axis]);
    let block_of =
        |flat: usize| (flat / (inner * extent) * blocks + flat / inner % extent / size) * inner + flat % inner;
    let mut magnitudes = vec![Extreme::default(); scale_dims.iter().product()];
    for (flat, value) in x.numbers.iter().enumerate() {
        let magnitude = magnitudes.get_mut(block_of(flat)).ok_or_else(wrong)?;
        magnitude.add(0.0, 0.0);
        magnitude.add(value.abs(), x_error(flat).max(flushed(context.compute, *value)));
    }
    let (scales, scale_errors): (Vec<f64>, Vec<f64>) = magnitudes
        .iter()
        .map(|magnitude| {
            let scale = |magnitude: f64| rounded_up(codec, magnitude / largest);
            let middle = scale(magnitude.value);
            let (low, high) = (magnitude.value - magnitude.error(), magnitude.value + magnitude.error());
            let error = distance(scale(low.max(0.0)), middle).max(distance(scale(high), middle));
            (middle, error.max(flushed(context.compute, middle)))
        })
        .unzip();

    let (mut numbers, mut bounds) = (Vec::with_capacity(x.numbers.len()), Vec::new());
    for (flat, &value) in x.numbers.iter().enumerate() {
        let (&scale, &error) = scales
            .get(block_of(flat))
            .zip(scale_errors.get(block_of(flat)))
            .ok_or_else(wrong)?;
        let quotient = |x: f64, scale: f64| if scale == 0.0 { 0.0 } else { x / scale };
        let middle = quotient(value, scale);
        let x_error = x_error(flat).max(flushed(context.compute, value));
        let mut bound: f64 = 0.0;
        for x in [value - x_error, value + x_error] {
            for scale in [scale - error, scale + error] {
                bound = bound.max(distance(quotient(x, scale), middle));
            }
        }
        let exact = bound == 0.0 && scale.log2().fract() == 0.0;
        let rounding = if exact { 1.0 } else { 4.0 } * rounding_error(context.compute, middle, exact);
        bounds.push(bound + rounding.max(flushed(context.compute, middle)));
        numbers.push(middle);
    }
    let value = |dims: Vec<usize>, numbers, bounds| Value {
        dims,
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(bounds),
    };
    Ok(vec![
        (op.y, value(dims.clone(), numbers, bounds)),
        (op.scale, value(scale_dims.clone(), scales, scale_errors)),
    ])
}

/// Returns the least number of a type that is not below `value`, or the largest finite one if only
/// infinity is; in binary32 the nearest number, but never infinity.
fn rounded_up(codec: Codec, value: f64) -> f64 {
    let nearest = codec.round(value);
    match codec {
        Codec::F32 => nearest.min(f32::MAX.into()),
        _ if nearest >= value || nearest == codec.largest() => nearest,
        Codec::F16 => f16::from_bits(f16::from_f64(nearest).to_bits() + 1).into(),
        Codec::Bf16 => bf16::from_bits(bf16::from_f64(nearest).to_bits() + 1).into(),
        // E8M0, rounded down to a power of two; the next one is twice that.
        _ => nearest * 2.0,
    }
}
