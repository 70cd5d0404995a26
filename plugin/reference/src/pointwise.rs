//! Pointwise operations: apply a [`Function`] to each element of the broadcast operands.

use crate::ReferenceError;
use crate::context::Context;
use crate::functions::Function;
use crate::value::{Numbers, Operand, Value};
use crate::walk::{Offsets, broadcast_strides};
use rotini_graph::{Pointwise, TensorId};

/// Computes one node. All operands broadcast to the declared dims of the result.
pub(crate) fn pointwise(context: &Context<'_>, op: &Pointwise) -> Result<Value, ReferenceError> {
    let dims = context.dims(op.out_0)?;
    let ids: Vec<TensorId> = [Some(op.in_0), op.in_1, op.in_2].into_iter().flatten().collect();
    if ids.len() != op.mode.arity() {
        return Err(ReferenceError::not_validated(format!(
            "{} with {} operands",
            op.mode.name(),
            ids.len()
        )));
    }
    let function = Function::new(op);
    let indices = indices(op, &dims)?;
    if context.compute.precision().is_some() {
        let operands = ids
            .iter()
            .map(|&id| context.floats(id))
            .collect::<Result<Vec<_>, _>>()?;
        let numbers = zip(&operands, &dims)?
            .zip(indices.clone())
            .map(|((values, _), index)| function.float(values, index))
            .collect();
        let errors = context
            .bounds
            .then(|| -> Result<Vec<f64>, ReferenceError> {
                Ok(zip(&operands, &dims)?
                    .zip(indices)
                    .map(|((values, errors), index)| function.error(values, errors, index, context.compute))
                    .collect())
            })
            .transpose()?;
        return Ok(Value {
            dims,
            numbers: Numbers::Float(numbers),
            errors,
        });
    }
    let operands = ids
        .iter()
        .map(|&id| context.integers(id))
        .collect::<Result<Vec<_>, _>>()?;
    let mut numbers = Vec::with_capacity(dims.iter().product());
    for ((values, errors), index) in zip(&operands, &dims)?.zip(indices) {
        if errors.iter().any(|&error| error != 0.0) {
            return Err(context.unsupported("bounds for integers that depend on how a float was rounded"));
        }
        let number = function
            .integer(values, index, context.compute)
            .ok_or_else(|| context.unsupported(format!("{} with these parameters in integers", op.mode.name())))?;
        numbers.push(number);
    }
    let errors = context.bounds.then(|| vec![0.0; numbers.len()]);
    Ok(Value {
        dims,
        numbers: Numbers::Integer(numbers),
        errors,
    })
}

/// Returns the index along the operation's axis for each element; 0 if the operation has no axis.
fn indices(op: &Pointwise, dims: &[usize]) -> Result<Offsets, ReferenceError> {
    let mut strides = vec![0; dims.len()];
    if let Some(axis) = op.axis {
        let stride = usize::try_from(axis).ok().and_then(|axis| strides.get_mut(axis));
        *stride.ok_or_else(|| ReferenceError::not_validated(format!("there is no axis {axis}")))? = 1;
    }
    Ok(Offsets::new(dims, &strides))
}

/// Returns, for each element of a result with extents `dims`, the operands' elements and errors,
/// padded to three with zeros.
fn zip<'a, T: Copy + Default>(
    operands: &'a [Operand<'_, T>],
    dims: &'a [usize],
) -> Result<impl Iterator<Item = ([T; 3], [f64; 3])> + 'a, ReferenceError> {
    let mut walks = operands
        .iter()
        .map(|operand| Ok((operand, Offsets::new(dims, &broadcast_strides(operand.dims, dims)?))))
        .collect::<Result<Vec<_>, ReferenceError>>()?;
    let count: usize = dims.iter().product();
    Ok((0..count).map(move |_| {
        let (mut values, mut errors) = ([T::default(); 3], [0.0; 3]);
        for (((operand, offsets), value), error) in walks.iter_mut().zip(&mut values).zip(&mut errors) {
            let offset = offsets.next().unwrap_or_default();
            *value = operand.numbers.get(offset).copied().unwrap_or_default();
            *error = operand
                .errors
                .as_ref()
                .and_then(|errors| errors.get(offset).copied())
                .unwrap_or_default();
        }
        (values, errors)
    }))
}
