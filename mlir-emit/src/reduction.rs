//! The reduction operation: its support, and its lowering to one combination along the reduced
//! axes.
//!
//! MIN, MAX and AMAX ignore NaN, as hipDNN's reference does (`CpuFpReferenceReduction.hpp` in
//! ROCm/rocm-libraries@619fa521). If all elements are NaN, the result is the reference's initial
//! value: the greatest number of the compute type for MIN, the least for MAX, 0 for AMAX. Unlike
//! there, MAX of only -inf is -inf, and MIN of only +inf is +inf.

use crate::Unsupported;
use crate::convert::{check_compute, checked_compute_type, least_finite};
use crate::counts::exactly;
use crate::ir::FloatPredicate;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::{Combiner, Shape, count, order_of};
use crate::value::Value;
use rotini_graph::{DataType, NormalGraph, Reduction, ReductionMode as M};

/// Checks whether the reduction can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &Reduction) -> Result<(), Unsupported> {
    let compute = check_compute(graph, compute, &[op.input])?;
    if !compute.is_float() && matches!(op.mode, M::Avg | M::Norm2) {
        return Err(Unsupported::new(format!(
            "{:?} has no meaning in the integer compute type {compute}",
            op.mode
        )));
    }
    Ok(())
}

/// Lowers the reduction.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Reduction) {
    let declared = compute;
    let compute = checked_compute_type(compute);
    let input = lowering.value(op.input).clone();
    // Booleans do not need 64 bits. In 64 bits, the minimum of a row of booleans was 1 on gfx942
    // (seen emulated).
    let stays_small = matches!(op.mode, M::Min | M::Max | M::Amax | M::Mul | M::MulNoZeros);
    let compute = match (input.dtype, compute) {
        (DataType::Bool, DataType::I64) if stays_small => DataType::I32,
        (_, compute) => compute,
    };
    let axes: Vec<usize> = input
        .dims
        .iter()
        .zip(&lowering.tensor(op.output).dims)
        .enumerate()
        .filter(|(_, (input, output))| input != output)
        .map(|(axis, _)| axis)
        .collect();
    let mode = op.mode;
    let input = match mode {
        M::Norm1 | M::Amax => lowering.widened_magnitudes(input, compute),
        _ => input,
    };
    let shape = Shape {
        dims: &input.dims,
        order: &order_of(&input.dims, &[&input]),
        dtype: compute,
    };
    let key = match mode {
        M::Min | M::Max => lowering.quirks().unsigned_key(mode == M::Min, compute),
        _ => None,
    };
    let how = key.map_or(combiner(mode), |_| (Combiner::GreatestUnsigned, 0.0));
    let of_nan = if mode == M::Max {
        least_finite(declared)
    } else {
        -least_finite(declared)
    };
    let combined = if axes.is_empty() {
        // Nothing is reduced: each element is its own result.
        let alone = lowering.map(&[&input], &shape, compute, |math, elements| {
            let element = combined(math, mode, only(elements), of_nan);
            match mode {
                M::Amax => math.max(math.constant(0.0), element),
                _ => element,
            }
        });
        Value::of(alone)
    } else {
        lowering.reduce(&[&input], &shape, &axes, how, |math, elements| match elements {
            &[element] => match key {
                Some(key) => turned(math, element, key),
                None => combined(math, mode, element, of_nan),
            },
            _ => unreachable!("{MISSING}"),
        })
    };
    let key = key.filter(|_| !axes.is_empty());
    let elements = count(&input.dims, &axes) as f64;
    lowering.finish(op.output, &[&combined], compute, |math, operands| {
        let [total] = exactly(operands);
        match mode {
            M::Avg => total / math.constant(elements),
            M::Norm2 => total.sqrt(),
            M::Add | M::Mul | M::Min | M::Max | M::Amax | M::Norm1 | M::MulNoZeros => {
                key.map_or(total, |key| turned(math, total, key))
            }
        }
    })
}

/// Flips bits; the function is its own inverse.
fn turned<'c>(math: &Math<'c>, x: Ssa<'c>, key: i64) -> Scalar<'c> {
    x ^ math.at.integer(key, math.ty)
}

/// Returns the combining operation and its identity element.
const fn combiner(mode: M) -> (Combiner, f64) {
    match mode {
        M::Add | M::Avg | M::Norm1 | M::Norm2 => (Combiner::Sum, 0.0),
        M::Mul | M::MulNoZeros => (Combiner::Product, 1.0),
        // For integers, infinities become the ends of the range.
        M::Min => (Combiner::Least, f64::INFINITY),
        M::Max => (Combiner::Greatest, f64::NEG_INFINITY),
        M::Amax => (Combiner::Greatest, 0.0),
    }
}

/// Returns the value with which an element is combined. In a minimum or maximum, `of_nan` replaces
/// NaN. The combination would ignore NaN by itself, but if all elements are NaN, it leaves the
/// compiler's initial value, which may be an infinity.
fn combined<'c>(math: &Math<'c>, mode: M, element: Ssa<'c>, of_nan: f64) -> Scalar<'c> {
    match mode {
        M::Min | M::Max if math.compute.is_float() => {
            let is_nan = math.compare(FloatPredicate::UnorderedNotEqual, element, element);
            is_nan.select(math.constant(of_nan), element)
        }
        M::Add | M::Avg | M::Mul | M::Min | M::Max => element,
        M::Norm1 | M::Amax => math.abs(element),
        M::Norm2 => element * element,
        // Zeros are ignored; the result is 1 if all elements are zeros, as in hipDNN's reference
        // (`CpuFpReferenceReduction.hpp`).
        M::MulNoZeros => {
            let is_zero = math.equal(element, math.constant(0.0));
            is_zero.select(math.constant(1.0), element)
        }
    }
}
