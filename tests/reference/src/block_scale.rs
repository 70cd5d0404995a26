//! Scales that belong to blocks of elements.

use crate::ReferenceError;
use crate::evaluate::Context;
use crate::functions::pointwise_tolerance;
use crate::value::{Numbers, Value, flushed, rounding_error};
use rotini_graph::BlockScaleDequantize;

/// y = x scale, or x 2^-scale, with the scale of the block that holds the element.
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
            // A power with a whole exponent is exact, any other approximated as pointwise functions are.
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
