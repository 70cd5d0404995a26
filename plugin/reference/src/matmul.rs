//! Matrix multiplication: one dot product per element of the output.

use crate::ReferenceError;
use crate::context::Context;
use crate::sums::{Sums, product_grid};
use crate::value::{Numbers, Value};
use rotini_graph::{Matmul, TensorId};

/// Computes c\[.., m, n\] = sum over k of a\[.., m, k\] b\[.., k, n\].
///
/// If an operand's batch extent is a fraction of the output's, each of its matrices is used for a
/// run of consecutive outputs: the operand's index is the output's index divided by the quotient of
/// the two extents (`CpuReferenceMatmul.hpp` of hipDNN).
pub(crate) fn matmul(context: &Context<'_>, op: &Matmul) -> Result<Value, ReferenceError> {
    let [a, b, c] = [op.a, op.b, op.c].map(|id| context.dims(id));
    let (a, b, c) = (a?, b?, c?);
    // An operand of lower rank lacks leading batch axes, which are added with extent 1.
    let ranked = |dims: Vec<usize>| [vec![1; c.len().saturating_sub(dims.len())], dims].concat();
    let (a, b) = (ranked(a), ranked(b));
    contract(context, &Product::new(&a, &b, &c)?, op.a, op.b, c)
}

/// Sums of products of the elements of two operands.
pub(crate) trait Contraction {
    /// Returns the largest number of products in any of the sums.
    fn terms(&self) -> usize;

    /// Computes all sums, each started from `zero` and continued by `add`.
    fn sums<T: Copy, S: Copy>(&self, a: &[T], b: &[T], zero: S, add: impl Fn(S, T, T) -> S) -> Vec<S>;
}

/// Computes a contraction of two tensors. Float sums are in binary64; integer sums wrap in the
/// compute type.
pub(crate) fn contract(
    context: &Context<'_>,
    contraction: &impl Contraction,
    a: TensorId,
    b: TensorId,
    dims: Vec<usize>,
) -> Result<Value, ReferenceError> {
    if context.compute.precision().is_none() {
        let (a, b) = (context.exact_integers(a)?, context.exact_integers(b)?);
        let sums = contraction.sums(&a.numbers, &b.numbers, 0_i64, |sum, a, b| {
            sum.wrapping_add(a.wrapping_mul(b))
        });
        let wrapped = sums.into_iter().map(|sum| context.compute.wrap(sum).unwrap_or(sum));
        return Ok(context.integer_value(dims, wrapped.collect()));
    }
    let (a, b) = (context.factors(a)?, context.factors(b)?);
    let sums = contraction.sums(&a.numbers, &b.numbers, 0.0, |sum, a, b| sum + a * b);
    let errors = match (&a.errors, &b.errors) {
        (Some(a_errors), Some(b_errors)) => {
            let pairs = |values: &[f64], errors: &[f64]| -> Vec<(f64, f64)> {
                values
                    .iter()
                    .map(|value| value.abs())
                    .zip(errors.iter().copied())
                    .collect()
            };
            let exact = a_errors.iter().chain(b_errors.iter()).all(|&error| error == 0.0);
            let grid = if exact {
                product_grid(&a.numbers, &b.numbers)
            } else {
                None
            };
            let bounds = Sums::new(context.compute, contraction.terms(), grid);
            let bounded = contraction.sums(
                &pairs(&a.numbers, a_errors),
                &pairs(&b.numbers, b_errors),
                (0.0, 0.0),
                |(size, error), (a, a_error), (b, b_error)| {
                    (size + a * b, error + a_error * (b + b_error) + a * b_error)
                },
            );
            let bound = |(size, error)| bounds.bound(size, error);
            Some(bounded.into_iter().map(bound).collect())
        }
        _ => None,
    };
    Ok(Value {
        dims,
        numbers: Numbers::Float(sums),
        errors,
    })
}

/// A batched matrix product: its extents, and the operand matrices of each output matrix.
pub(crate) struct Product {
    pub(crate) rows: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    /// For each output matrix in order, the positions of its two operand matrices; `None` if the
    /// output matrix is zero.
    pub(crate) matrices: Vec<Option<(usize, usize)>>,
}

impl Product {
    fn new(a: &[usize], b: &[usize], c: &[usize]) -> Result<Self, ReferenceError> {
        let wrong = || ReferenceError::not_validated(format!("a product of {a:?} and {b:?} to {c:?}"));
        let ([a_batch @ .., rows, inner], [b_batch @ .., b_inner, columns], [batch @ .., c_rows, c_columns]) =
            (a, b, c)
        else {
            return Err(wrong());
        };
        if inner != b_inner || rows != c_rows || columns != c_columns {
            return Err(wrong());
        }
        let matrices: usize = batch.iter().product();
        let matrices = (0..matrices)
            .map(|position| Some((repeated(position, a_batch, batch)?, repeated(position, b_batch, batch)?)))
            .map(|operands| operands.map(Some).ok_or_else(wrong))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Product {
            rows: *rows,
            inner: *inner,
            columns: *columns,
            matrices,
        })
    }
}

impl Contraction for Product {
    fn terms(&self) -> usize {
        self.inner
    }

    fn sums<T: Copy, S: Copy>(&self, a: &[T], b: &[T], zero: S, add: impl Fn(S, T, T) -> S) -> Vec<S> {
        let mut c = Vec::with_capacity(self.matrices.len() * self.rows * self.columns);
        for matrix in &self.matrices {
            let Some((of_a, of_b)) = matrix else {
                c.extend(std::iter::repeat_n(zero, self.rows * self.columns));
                continue;
            };
            let a = a.iter().skip(of_a * self.rows * self.inner);
            let b = b.get(of_b * self.inner * self.columns..).unwrap_or_default();
            let a: Vec<T> = a.take(self.rows * self.inner).copied().collect();
            for row in a.chunks_exact(self.inner) {
                let mut sums = vec![zero; self.columns];
                for (&factor, b) in row.iter().zip(b.chunks_exact(self.columns)) {
                    for (sum, &element) in sums.iter_mut().zip(b) {
                        *sum = add(*sum, factor, element);
                    }
                }
                c.extend(sums);
            }
        }
        c
    }
}

/// Returns the position of the operand matrix that belongs to the output matrix at `position`;
/// `None` if the operand's extents do not divide the output's.
fn repeated(mut position: usize, from: &[usize], to: &[usize]) -> Option<usize> {
    if from.len() != to.len() {
        return None;
    }
    let (mut result, mut stride) = (0, 1);
    for (&from, &to) in from.iter().zip(to).rev() {
        let times = to.checked_div(from).filter(|times| times * from == to)?;
        result += position % to / times * stride;
        position /= to;
        stride *= from;
    }
    Some(result)
}
