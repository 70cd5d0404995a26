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
        ("gelu", &[x], &[y]) => Ok(vec![element_wise(&in_f32, PointwiseMode::GeluFwd, x, None, y)?]),
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
