//! Reductions along the axes whose output extent is 1.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::resample::least_finite;
use crate::sums::{Sums, grid, odd_part};
use crate::value::{Extreme, Numbers, Value, division_error, flushed, least_normal, rounding_error};
use crate::walk::{Offsets, broadcast_strides};
use rotini_graph::{Reduction, ReductionMode};

/// Combines the elements behind each output. AVG divides their sum by their number, NORM1 sums
/// magnitudes, NORM2 is the square root of the sum of squares, AMAX the largest magnitude,
/// MUL_NO_ZEROS the product of the nonzero elements.
///
/// MIN, MAX and AMAX ignore NaN, as `CpuFpReferenceReduction.hpp` and the GPU reference of hipDNN
/// do. These start from the ends of the finite range of the compute type (AMAX from 0), which is
/// the result if all elements are NaN. Unlike there, the maximum of elements that are all -inf is
/// -inf here.
pub(crate) fn reduction(context: &Context<'_>, op: &Reduction) -> Result<Value, ReferenceError> {
    use ReductionMode as Mode;
    let dims = context.dims(op.output)?;
    if context.compute.precision().is_none() {
        let input = context.exact_integers(op.input)?;
        let combine: fn(i64, i64) -> i64 = match op.mode {
            Mode::Add => i64::wrapping_add,
            Mode::Mul => i64::wrapping_mul,
            Mode::Min => i64::min,
            Mode::Max => i64::max,
            Mode::Amax => |most, element| most.max(element.wrapping_abs()),
            Mode::Norm1 => |sum, element| sum.wrapping_add(element.wrapping_abs()),
            Mode::MulNoZeros => |product, element| {
                if element == 0 {
                    product
                } else {
                    product.wrapping_mul(element)
                }
            },
            Mode::Avg | Mode::Norm2 => return Err(context.unsupported(format!("{:?} of integers", op.mode))),
        };
        let start = match op.mode {
            Mode::Mul | Mode::MulNoZeros => 1,
            Mode::Min => i64::MAX,
            Mode::Max => i64::MIN,
            _ => 0,
        };
        let combined = groups(input.dims, &dims, &input.numbers, &[])?
            .into_iter()
            .map(|group| {
                let total = group.values.into_iter().fold(start, combine);
                context.compute.wrap(total).unwrap_or(total)
            })
            .collect();
        return Ok(context.integer_value(dims, combined));
    }
    let input = context.floats(op.input)?;
    let no_errors = vec![0.0; input.numbers.len()];
    let groups = groups(
        input.dims,
        &dims,
        &input.numbers,
        input.errors.as_deref().unwrap_or(&no_errors),
    )?;
    let (numbers, errors): (Vec<f64>, Vec<f64>) = groups
        .iter()
        .map(|group| reduced(op.mode, group, context.compute))
        .unzip();
    Ok(Value {
        dims,
        numbers: Numbers::Float(numbers),
        errors: context.bounds.then_some(errors),
    })
}

/// The elements that are reduced to one output, with their error bounds.
struct Group<T> {
    values: Vec<T>,
    errors: Vec<f64>,
}

/// Returns the elements of each output, in logical row-major order.
fn groups<T: Copy>(
    from: &[usize],
    to: &[usize],
    values: &[T],
    errors: &[f64],
) -> Result<Vec<Group<T>>, ReferenceError> {
    // Read with the input's extents, the output has stride 0 along the reduced axes.
    let strides = broadcast_strides(to, from)?;
    let mut groups: Vec<Group<T>> = (0..to.iter().product())
        .map(|_| Group {
            values: Vec::new(),
            errors: Vec::new(),
        })
        .collect();
    let errors = errors.iter().copied().chain(std::iter::repeat(0.0));
    for ((output, &value), error) in Offsets::new(from, &strides).zip(values).zip(errors) {
        if let Some(group) = groups.get_mut(output) {
            group.values.push(value);
            group.errors.push(error);
        }
    }
    Ok(groups)
}

/// Returns the value of one output and a kernel's maximum error.
fn reduced(mode: ReductionMode, group: &Group<f64>, compute: Codec) -> (f64, f64) {
    use ReductionMode as Mode;
    let magnitudes = || group.values.iter().map(|value| value.abs());
    let propagated: f64 = group.errors.iter().sum();
    let exact_grid = if propagated == 0.0 { grid(&group.values) } else { None };
    let sums = Sums::new(compute, group.values.len(), exact_grid);
    match mode {
        Mode::Add => (group.values.iter().sum(), sums.bound(magnitudes().sum(), propagated)),
        Mode::Norm1 => (magnitudes().sum(), sums.bound(magnitudes().sum(), propagated)),
        Mode::Avg => {
            let (sum, error) = (
                group.values.iter().sum::<f64>(),
                sums.bound(magnitudes().sum(), propagated),
            );
            let count = group.values.len();
            (sum / count as f64, division_error(compute, sum, error, count))
        }
        Mode::Norm2 => norm2(group, compute),
        Mode::Mul => product(group.values.iter().zip(&group.errors), compute),
        Mode::MulNoZeros => {
            let (value, error) = product(
                group
                    .values
                    .iter()
                    .zip(&group.errors)
                    .filter(|(value, _)| **value != 0.0),
                compute,
            );
            // An element that a kernel may flush to zero may be left out of its product, whatever
            // its value.
            let uncertain = group.values.iter().zip(&group.errors).any(|(value, error)| {
                value.abs() <= error.max(flushed(compute, *value)) && (*value != 0.0 || *error != 0.0)
            });
            (value, if uncertain { f64::INFINITY } else { error })
        }
        // NaN counts as the least finite number, so it wins only if all other elements are NaN or
        // the infinity that loses (-inf for MAX, +inf for MIN).
        Mode::Min => {
            let values = group.values.iter().map(|value| counted(-value, compute));
            let (value, error) = extreme(values, &group.errors, compute);
            (-value, error)
        }
        Mode::Max => {
            let values = group.values.iter().map(|&value| counted(value, compute));
            extreme(values, &group.errors, compute)
        }
        Mode::Amax => {
            let (value, error) = extreme(magnitudes(), &group.errors, compute);
            (value.max(0.0), error)
        }
    }
}

/// Replaces NaN by the least finite number for a maximum.
fn counted(value: f64, compute: Codec) -> f64 {
    if value.is_nan() { least_finite(compute) } else { value }
}

/// Returns the largest element, ignoring NaN, and its error bound.
fn extreme(values: impl Iterator<Item = f64>, errors: &[f64], compute: Codec) -> (f64, f64) {
    let mut largest = Extreme::default();
    for (value, error) in values.zip(errors) {
        largest.add(value, error.max(flushed(compute, value)));
    }
    (largest.value, largest.error())
}

/// Returns the root of the sum of squares and its error bound. Squares may underflow, and a device
/// may flush subnormal ones to zero.
fn norm2(group: &Group<f64>, compute: Codec) -> (f64, f64) {
    let squares = || group.values.iter().map(|value| value * value);
    let sum: f64 = squares().sum();
    let inexact = group.errors.iter().any(|&error| error > 0.0);
    let propagated: f64 = group
        .values
        .iter()
        .zip(&group.errors)
        .map(|(value, error)| (2.0 * value.abs() + error) * error + flushed(compute, value * value))
        .sum();
    let grid = if inexact {
        None
    } else {
        grid(&group.values).map(|grid| grid.saturating_mul(2))
    };
    let error = Sums::new(compute, group.values.len(), grid).bound(sum, propagated);
    let root = sum.sqrt();
    let moved = ((sum + error).sqrt() - root).max(root - (sum - error).max(0.0).sqrt());
    // Devices may use approximations of the square root that are off by a few units.
    (root, moved + 4.0 * rounding_error(compute, root, error == 0.0))
}

/// Returns the product and its error bound, with one rounding per factor. Partial products, in any
/// order, may overflow or be subnormal on the way.
fn product<'a>(factors: impl Iterator<Item = (&'a f64, &'a f64)>, compute: Codec) -> (f64, f64) {
    let (mut value, mut upper, mut count) = (1.0_f64, 1.0_f64, 0_u32);
    let (mut largest, mut least, mut odd, mut inexact) = (1.0_f64, 1.0_f64, Some(1_u64), false);
    for (&factor, &error) in factors {
        value *= factor;
        upper *= factor.abs() + error;
        largest *= (factor.abs() + error).max(1.0);
        if factor != 0.0 {
            least *= (factor.abs() - error).clamp(0.0, 1.0);
            odd = odd.and_then(|odd| odd.checked_mul(odd_part(factor)?.0));
        }
        inexact |= error != 0.0;
        count += 1;
    }
    if largest.is_finite() && compute.round(largest).is_infinite() {
        return (value, f64::INFINITY);
    }
    let precision = compute.precision().unwrap_or(53);
    let underflow = if least < least_normal(compute) {
        value.abs() + least_normal(compute) * largest
    } else {
        0.0
    };
    let fits = odd.is_some_and(|odd| odd as f64 <= 2.0_f64.powi(precision));
    if !inexact && fits {
        return (value, underflow);
    }
    let roundoff = f64::from(count) * 2.0_f64.powi(-precision);
    (value, (upper - value.abs()).max(0.0) + roundoff * upper + underflow)
}
