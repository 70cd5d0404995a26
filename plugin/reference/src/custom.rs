//! Custom operations: known bodies, identified by the name in their first comment. The reference
//! parses no MLIR: it implements each known body again, mostly by an operation of the schema.

use crate::context::Context;
use crate::element::Codec;
use crate::functions::pointwise_tolerance;
use crate::value::{Numbers, Value, rounding_error};
use crate::{ReferenceError, matmul, pointwise, reduction};
use rotini_graph::{CustomOp, Matmul, Pointwise, PointwiseMode, Reduction, ReductionMode, TensorId};

/// Computes one node. The operands in `context` have been rounded to their tensors' types.
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
                // The body computes x / 2 · (1 + erf) in f32: steps of 1 near erf = -1.
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
                        // Every partial sum is rounded.
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
        (name, inputs, outputs) => {
            let of_integers = outputs.first().map(|&y| context.codec(y)).transpose()? == Some(Codec::I32);
            let compute = if of_integers { &in_i32 } else { &in_f32 };
            known(compute, name, inputs, outputs)
                .unwrap_or_else(|| Err(context.unsupported(format!("the body '{name}'"))))
        }
    }
}

/// Computes each element of `y`, with its error, from the elements and extents of the matrix `x`.
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

/// Moves elements of a matrix: `from` returns the source row and column of an output element.
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

/// Returns the larger number, where NaN is larger than every number and 0 is larger than -0.
fn larger(x: f64, z: f64) -> f64 {
    if x.is_nan() || z.is_nan() {
        f64::NAN
    } else if x > z || x == z && x.is_sign_positive() {
        x
    } else {
        z
    }
}

/// Computes each element from the elements of `x` and `z` at the same position.
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

/// Rotates the halves of each row. Cosines and sines have the last axes of x, the last one halved.
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

/// Concatenates tensors along an axis.
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

type Outputs = Result<Vec<(TensorId, Value)>, ReferenceError>;

/// Returns the outputs of a body that triggers a compiler defect; `None` for an unknown name.
fn known(context: &Context<'_>, name: &str, inputs: &[TensorId], outputs: &[TensorId]) -> Option<Outputs> {
    Some(match (name, inputs, outputs) {
        ("batched products", &[x, z], &[y]) => batched(context, [x, z], y, |x| x),
        ("batched products of magnitudes", &[x, z], &[y]) => batched(context, [x, z], y, f64::abs),
        ("products, magnitudes, and those turned", &[x, z], &[y, positive, negative]) => {
            stored(context, [x, z], [y, positive, negative])
        }
        ("product and more", &[x, z, more], &[y]) => added(context, [x, z, more], y),
        ("nothing turned", &[_], &[y]) => integers(context, y, |_| 0),
        ("ones summed", &[x], &[y]) => terms(context, x, y, 1.0, None),
        ("more than 18", &[x], &[y]) => terms(context, x, y, 0.0, Some(18.0)),
        ("repeated weights", &[x, z, v], &[y]) => repeated(context, [x, z, v], y),
        ("sum of all", all, &[y]) => {
            let all = all.iter().map(|&x| context.floats(x)).collect::<Result<Vec<_>, _>>();
            all.and_then(|all| {
                let element = |index: usize| sum(all.iter().map(|x| x.numbers[index]));
                floats(
                    context,
                    y,
                    (0..context.dims(y)?.iter().product()).map(element).collect(),
                )
            })
        }
        ("row totals", &[x], &[y]) => totals(context, x, y, 1.0),
        ("negated rows", &[x], &[y]) => totals(context, x, y, -1.0),
        ("weighted rows", &[x, z], &[y]) => weighted(context, [x, z], y),
        ("centred products", &[x, z], &[y]) => centred(context, [x, z], y),
        ("two with the sign", &[x], &[y]) => signs(context, x, y),
        _ => return None,
    })
}

/// Computes the matrix product `a` `b`, plus `more`.
fn added(context: &Context<'_>, [a, b, more]: [TensorId; 3], c: TensorId) -> Outputs {
    let sums = matmul::matmul(context, &Matmul { a, b, c })?;
    let errors = sums.errors.unwrap_or_else(|| vec![0.0; sums.numbers.iter().len()]);
    let more = context.floats(more)?;
    let added = sums.numbers.iter().zip(errors).zip(more.numbers.iter());
    let added = added.map(|((sum, error), more)| (sum.to_f64() + more, error));
    let rounded = added.map(|(sum, error)| (sum, error + rounding_error(Codec::F32, sum, error == 0.0)));
    floats(context, c, rounded.collect())
}

fn floats(context: &Context<'_>, y: TensorId, all: Vec<(f64, f64)>) -> Outputs {
    let (numbers, errors): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
    let value = Value {
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(errors),
        dims: context.dims(y)?,
    };
    Ok(vec![(y, value)])
}

fn integers(context: &Context<'_>, y: TensorId, element: impl Fn(usize) -> i64) -> Outputs {
    let dims = context.dims(y)?;
    let numbers = (0..dims.iter().product()).map(element).collect();
    Ok(vec![(y, context.integer_value(dims, numbers))])
}

/// Returns a sum of terms in f32 and its error bound: each term and each partial sum is rounded.
fn sum(terms: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut magnitude, mut count) = (0.0, 0.0, 1.0);
    for term in terms {
        sum += term;
        magnitude += term.abs();
        count += 1.0;
    }
    (sum, (count + 1.0) * magnitude * 2.0_f64.powi(-24))
}

/// Multiplies the transposed matrices of `x` by those of `z`, with `of` applied to all elements.
fn batched(context: &Context<'_>, [x, z]: [TensorId; 2], y: TensorId, of: fn(f64) -> f64) -> Outputs {
    let &[_, inner, rows] = context.dims(x)?.as_slice() else {
        return Err(context.unsupported("batches of matrices"));
    };
    let columns = context.dims(z)?.last().copied().unwrap_or(1);
    let at = |index: usize, k: usize| {
        let (batch, row, column) = (index / (rows * columns), index / columns % rows, index % columns);
        ((batch * inner + k) * rows + row, (batch * inner + k) * columns + column)
    };
    if context.compute == Codec::I32 {
        let (x, z) = (context.exact_integers(x)?, context.exact_integers(z)?);
        return integers(context, y, |index| {
            let products = (0..inner)
                .map(|k| at(index, k))
                .map(|(a, b)| (of(x.numbers[a] as f64) * of(z.numbers[b] as f64)) as i64);
            products.sum::<i64>()
        });
    }
    let (x, z) = (context.floats(x)?, context.floats(z)?);
    let count: usize = context.dims(y)?.iter().product();
    let all = (0..count).map(|index| {
        let pairs = (0..inner).map(|k| at(index, k));
        sum(pairs.map(|(a, b)| of(x.numbers[a]) * of(z.numbers[b])))
    });
    floats(context, y, all.collect())
}

/// Computes the product of two matrices, the magnitudes of its elements, and their negatives.
fn stored(context: &Context<'_>, [x, z]: [TensorId; 2], [y, positive, negative]: [TensorId; 3]) -> Outputs {
    let &[_, rows, inner] = context.dims(x)?.as_slice() else {
        return Err(context.unsupported("matrices"));
    };
    let columns = context.dims(z)?.last().copied().unwrap_or(1);
    let (x, z) = (context.floats(x)?, context.floats(z)?);
    let sums: Vec<(f64, f64)> = (0..rows * columns)
        .map(|index| {
            let (row, column) = (index / columns, index % columns);
            sum((0..inner).map(|k| x.numbers[row * inner + k] * z.numbers[k * columns + column]))
        })
        .collect();
    let with = |function: fn(f64) -> f64| sums.iter().map(|&(sum, error)| (function(sum), error)).collect();
    let mut all = floats(context, y, sums.clone())?;
    all.extend(floats(context, positive, with(f64::abs))?);
    all.extend(floats(context, negative, with(|sum| -sum.abs()))?);
    Ok(all)
}

/// Returns per row of `x`: `each` times its length, or with `more` its first element + `more`.
fn terms(context: &Context<'_>, x: TensorId, y: TensorId, each: f64, more: Option<f64>) -> Outputs {
    let x = context.floats(x)?;
    let columns = x.dims.last().copied().unwrap_or(1);
    let row = |index: usize| match more {
        Some(more) => {
            let value = x.numbers[index * columns] + more;
            (value, 2.0_f64.powi(-22) * (value.abs() + more))
        }
        None => (each * columns as f64, 0.0),
    };
    floats(context, y, (0..x.numbers.len() / columns).map(row).collect())
}

/// Computes, for each k, the sum over i and j of x[i, j, k] z[j, k] v[i, j, k].
fn repeated(context: &Context<'_>, [x, z, v]: [TensorId; 3], y: TensorId) -> Outputs {
    let (x, z, v) = (context.floats(x)?, context.floats(z)?, context.floats(v)?);
    let last = x.dims.last().copied().unwrap_or(1);
    let element = |k: usize| {
        let all = (k..x.numbers.len()).step_by(last);
        // Each term has two products.
        let (sum, error) =
            sum(all.map(|index| x.numbers[index] * z.numbers[index % z.numbers.len()] * v.numbers[index]));
        (sum, 2.0 * error)
    };
    floats(context, y, (0..last).map(element).collect())
}

/// Computes, for each batch, the products of the rows of `x` with the matrix of `z`, less the sums
/// of the rows. The rows of `x` are repeated once.
fn centred(context: &Context<'_>, [x, z]: [TensorId; 2], y: TensorId) -> Outputs {
    let &[_, rows, inner] = context.dims(x)?.as_slice() else {
        return Err(context.unsupported("batches of matrices"));
    };
    let columns = context.dims(z)?.last().copied().unwrap_or(1);
    let (x, z) = (context.floats(x)?, context.floats(z)?);
    let count: usize = context.dims(y)?.iter().product();
    let all = (0..count).map(|index| {
        let (batch, row, column) = (index / (2 * rows * columns), index / columns % rows, index % columns);
        let products = (0..inner).map(|k| {
            (
                x.numbers[(batch * rows + row) * inner + k],
                z.numbers[(batch * inner + k) * columns + column],
            )
        });
        sum(products.flat_map(|(x, z)| [x * z, -x]))
    });
    floats(context, y, all.collect())
}

/// Computes, for each row, the sum of its elements times their weights.
fn weighted(context: &Context<'_>, [x, z]: [TensorId; 2], y: TensorId) -> Outputs {
    let (x, z) = (context.floats(x)?, context.floats(z)?);
    let columns = x.dims.last().copied().unwrap_or(1);
    let products: Vec<f64> = x.numbers.iter().zip(z.numbers.iter()).map(|(x, z)| x * z).collect();
    floats(
        context,
        y,
        products.chunks(columns).map(|row| sum(row.iter().copied())).collect(),
    )
}

/// Computes `sign` (±1) times the sum of each row. The error bound includes the errors of the
/// elements.
fn totals(context: &Context<'_>, x: TensorId, y: TensorId, sign: f64) -> Outputs {
    let x = context.floats(x)?;
    let columns = x.dims.last().copied().unwrap_or(1);
    let errors = x.errors.as_deref().unwrap_or_default();
    let rows = (0..x.numbers.len() / columns).map(|row| {
        let of_row = row * columns..(row + 1) * columns;
        let before: f64 = errors.get(of_row.clone()).unwrap_or_default().iter().sum();
        let (sum, error) = sum(x.numbers[of_row].iter().copied());
        (sign * sum, error + before)
    });
    floats(context, y, rows.collect())
}

fn signs(context: &Context<'_>, x: TensorId, y: TensorId) -> Outputs {
    let x = context.floats(x)?;
    floats(
        context,
        y,
        x.numbers.iter().map(|value| (2.0_f64.copysign(*value), 0.0)).collect(),
    )
}
