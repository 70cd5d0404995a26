//! Custom operations: known bodies, by the name in the comment that they begin with.
//!
//! A body is MLIR, which nothing here reads: what each means is said once more, mostly as the operation of the schema that it repeats.

use crate::element::Codec;
use crate::evaluate::Context;
use crate::functions::pointwise_tolerance;
use crate::value::{Numbers, Value, rounding_error};
use crate::{ReferenceError, matmul, pointwise, reduction};
use rotini_graph::{CustomOp, Matmul, Pointwise, PointwiseMode, Reduction, ReductionMode, TensorId};

/// Computes one node. Its operands are rounded to their tensors' types, as the body gets them; `context` has them so.
pub(crate) fn custom(context: &Context<'_>, op: &CustomOp) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let text = String::from_utf8_lossy(&op.data);
    let name = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// "))
        .unwrap_or_default();
    let in_f32 = context.computing(Codec::F32);
    let in_i32 = context.computing(Codec::I32);
    let element_wise = |context: &Context<'_>, mode, first, second, output| {
        let value = pointwise::pointwise(context, &Pointwise::new(mode, first, second, None, output))?;
        Ok((output, value))
    };
    let reduced = |input, mode, output| {
        let op = Reduction {
            input,
            output,
            mode,
            is_deterministic: false,
        };
        Ok((output, reduction::reduction(&in_f32, &op)?))
    };
    match (name, op.inputs.as_slice(), op.outputs.as_slice()) {
        ("gelu", &[x], &[y]) => {
            let (y, mut value) = element_wise(&in_f32, PointwiseMode::GeluFwd, x, None, y)?;
            if let Some(errors) = &mut value.errors {
                // The body says x / 2 times 1 + erf, in f32: what is left of 1 + erf near -1 is off by steps of 1.
                let x = in_f32.floats(x)?;
                for (error, x) in errors.iter_mut().zip(x.numbers.iter()) {
                    *error += 4.0 * f64::from(f32::EPSILON) * x.abs();
                }
            }
            Ok(vec![(y, value)])
        }
        ("exp in f64", &[x], &[y]) => {
            let in_f64 = context.computing(Codec::F64);
            Ok(vec![element_wise(&in_f64, PointwiseMode::Exp, x, None, y)?])
        }
        ("doubled", &[x], &[y]) => Ok(vec![element_wise(&in_i32, PointwiseMode::Add, x, Some(x), y)?]),
        ("nothing", &[x], &[y]) => Ok(vec![element_wise(&in_i32, PointwiseMode::Sub, x, Some(x), y)?]),
        ("add square", &[x, z], &[y]) => Ok(vec![element_wise(&in_f32, PointwiseMode::AddSquare, x, Some(z), y)?]),
        ("row sums", &[x], &[y]) => Ok(vec![reduced(x, ReductionMode::Add, y)?]),
        ("row sums and maxima", &[x], &[sum, most]) => Ok(vec![
            reduced(x, ReductionMode::Add, sum)?,
            reduced(x, ReductionMode::Max, most)?,
        ]),
        ("row sums twice", &[x], &[one, two]) => Ok(vec![
            reduced(x, ReductionMode::Add, one)?,
            reduced(x, ReductionMode::Add, two)?,
        ]),
        ("reshaped", &[x], &[y]) => moved(context, x, y, |[_, columns], index| (index / columns, index % columns)),
        ("product", &[a, b], &[c]) => Ok(vec![(c, matmul::matmul(&in_f32, &Matmul { a, b, c })?)]),
        ("transposed", &[x], &[y]) => moved(context, x, y, |[rows, _], index| {
            let (row, column) = (index % rows, index / rows);
            (row, column)
        }),
        ("larger number", &[x, z], &[y]) => Ok(vec![element_wise(&in_f32, PointwiseMode::Max, x, Some(z), y)?]),
        ("row maxima", &[x], &[y]) => Ok(vec![reduced(x, ReductionMode::Max, y)?]),
        ("third row added", &[x], &[y]) => computed(context, x, y, |values, [_, columns], index| {
            let value = values[index] + values[2 * columns + index % columns];
            (value, rounding_error(Codec::F32, value, true))
        }),
        ("larger", &[x, z], &[y]) => paired(context, [x, z], y, larger),
        ("smaller", &[x, z], &[y]) => paired(context, [x, z], y, |x, z| -larger(-x, -z)),
        ("row extremes", &[x], &[least, most]) => {
            let row = |values: &[f64], columns: usize, index: usize| values[index * columns..][..columns].to_vec();
            let mut all = computed(context, x, least, |values, [_, columns], index| {
                let least = row(values, columns, index)
                    .into_iter()
                    .map(|value| -value)
                    .reduce(larger);
                (-least.unwrap_or(f64::NAN), 0.0)
            })?;
            all.extend(computed(context, x, most, |values, [_, columns], index| {
                let most = row(values, columns, index).into_iter().reduce(larger);
                (most.unwrap_or(f64::NAN), 0.0)
            })?);
            Ok(all)
        }
        (
            name @ ("row maxima and more"
            | "row minima and more"
            | "row largest numbers and more"
            | "row sums and more"),
            &[x, z],
            &[y],
        ) => {
            let more = context.floats(z)?.numbers.to_vec();
            computed(context, x, y, |values, [_, columns], index| {
                let all = values[index * columns..][..columns].iter().copied();
                match name {
                    "row maxima and more" => (all.fold(more[index], larger), 0.0),
                    "row minima and more" => (-all.fold(-more[index], |least, value| larger(least, -value)), 0.0),
                    "row largest numbers and more" => (all.fold(more[index], f64::max), 0.0),
                    _ => {
                        let magnitude = all.clone().fold(more[index].abs(), |sum, value| sum + value.abs());
                        // Each of the sums is rounded.
                        (
                            all.fold(more[index], |sum, value| sum + value),
                            magnitude * 25.0 * 2.0_f64.powi(-24),
                        )
                    }
                }
            })
        }
        (
            "rotary" | "Rotary embedding: the halves of each row turned by the angles of its place.",
            &[x, c, s],
            &[y],
        ) => rotary(context, [x, c, s], y),
        (joined_name, parts, &[y]) if joined_name.starts_with("joined along ") => {
            let axis = joined_name.rsplit(' ').next().and_then(|axis| axis.parse().ok());
            joined(context, parts, y, axis.unwrap_or_default())
        }
        ("odd rows", &[x], &[y]) => moved(context, x, y, |[_, columns], index| {
            (2 * (index / columns) + 1, index % columns)
        }),
        ("ramp", &[x], &[y]) => computed(context, x, y, |values, [_, columns], index| {
            let value = values[index] * (index % columns) as f64;
            (value, rounding_error(Codec::F32, value, true))
        }),
        ("SwiGLU: the left half of each row times the swish of the right half.", &[x], &[y]) => {
            computed(context, x, y, |values, [_, columns], index| {
                let half = columns / 2;
                let left = index / half * columns + index % half;
                let (left, right) = (values[left], values[left + half]);
                let value = left * right / (1.0 + (-right).exp());
                (value, pointwise_tolerance(Codec::F32) * (1.0 + value.abs()))
            })
        }
        _ => Err(context.unsupported(format!("the body '{name}'"))),
    }
}

/// Elements made from those of a stored matrix and its extents, each with its error.
fn computed(
    context: &Context<'_>,
    x: TensorId,
    y: TensorId,
    element: impl Fn(&[f64], [usize; 2], usize) -> (f64, f64),
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let operand = context.floats(x)?;
    let &[rows, columns] = operand.dims else {
        return Err(context.unsupported("a body for matrices"));
    };
    let dims = context.dims(y)?;
    let (numbers, errors): (Vec<f64>, Vec<f64>) = (0..dims.iter().product())
        .map(|index| element(&operand.numbers, [rows, columns], index))
        .unzip();
    let value = Value {
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(errors),
        dims,
    };
    Ok(vec![(y, value)])
}

/// The elements of a matrix in other places: `from` tells the row and column of each, from the matrix's extents.
fn moved(
    context: &Context<'_>,
    x: TensorId,
    y: TensorId,
    from: impl Fn([usize; 2], usize) -> (usize, usize),
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let operand = context.floats(x)?;
    let &[rows, columns] = operand.dims else {
        return Err(context.unsupported("a body for matrices"));
    };
    let dims = context.dims(y)?;
    let taken = |values: &[f64]| -> Vec<f64> {
        (0..dims.iter().product())
            .map(|index| {
                let (row, column) = from([rows, columns], index);
                values.get(row * columns + column).copied().unwrap_or(f64::NAN)
            })
            .collect()
    };
    let value = Value {
        numbers: Numbers::Float(taken(&operand.numbers)),
        errors: operand.errors.as_deref().map(taken),
        dims: dims.clone(),
    };
    Ok(vec![(y, value)])
}

/// The larger one, where NaN is larger than all and 0 larger than -0.
fn larger(x: f64, z: f64) -> f64 {
    if x.is_nan() || z.is_nan() {
        f64::NAN
    } else if x > z || x == z && x.is_sign_positive() {
        x
    } else {
        z
    }
}

/// Each element from those at its place.
fn paired(
    context: &Context<'_>,
    [x, z]: [TensorId; 2],
    y: TensorId,
    element: impl Fn(f64, f64) -> f64,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let (x, z) = (context.floats(x)?, context.floats(z)?);
    let numbers: Vec<f64> = x
        .numbers
        .iter()
        .zip(z.numbers.iter())
        .map(|(&x, &z)| element(x, z))
        .collect();
    let value = Value {
        errors: context.bounds.then(|| vec![0.0; numbers.len()]),
        numbers: Numbers::Float(numbers),
        dims: context.dims(y)?,
    };
    Ok(vec![(y, value)])
}

/// Rows whose halves are turned: the cosines and sines have the rows' last axes but half of the last one.
fn rotary(
    context: &Context<'_>,
    [x, cosines, sines]: [TensorId; 3],
    y: TensorId,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let (x, cosines, sines) = (context.floats(x)?, context.floats(cosines)?, context.floats(sines)?);
    let columns = x.dims.last().copied().unwrap_or(1);
    let half = columns / 2;
    let (mut numbers, mut errors) = (Vec::new(), Vec::new());
    for (index, &value) in x.numbers.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let angle = (row * half + column % half) % cosines.numbers.len();
        let (c, s) = (cosines.numbers[angle], sines.numbers[angle]);
        let (one, two) = if column < half {
            (value * c, -x.numbers[index + half] * s)
        } else {
            (x.numbers[index - half] * s, value * c)
        };
        numbers.push(one + two);
        // Two products and their sum, each rounded.
        errors.push(2.0_f64.powi(-23) * (one.abs() + two.abs()) + f64::from(f32::MIN_POSITIVE));
    }
    let value = Value {
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(errors),
        dims: context.dims(y)?,
    };
    Ok(vec![(y, value)])
}

/// Tensors one after the other along an axis.
fn joined(
    context: &Context<'_>,
    parts: &[TensorId],
    y: TensorId,
    axis: usize,
) -> Result<Vec<(TensorId, Value)>, ReferenceError> {
    let parts = parts
        .iter()
        .map(|&part| context.floats(part))
        .collect::<Result<Vec<_>, _>>()?;
    let dims = context.dims(y)?;
    let blocks: usize = dims.iter().take(axis).product();
    let mut numbers = Vec::new();
    for block in 0..blocks {
        for part in &parts {
            let length: usize = part.dims.iter().skip(axis).product();
            numbers.extend_from_slice(&part.numbers[block * length..][..length]);
        }
    }
    let value = Value {
        errors: context.bounds.then(|| vec![0.0; numbers.len()]),
        numbers: Numbers::Float(numbers),
        dims,
    };
    Ok(vec![(y, value)])
}
