//! Convolution forward: patches of the input against the filters, block by block of output positions.

use crate::ReferenceError;
use crate::element::Codec;
use crate::evaluate::Context;
use crate::value::{Numbers, Operand, Value};
use rotini_graph::ConvMode;
use std::ops::Range;

/// Output positions in a block: the patches of a block stay in the second-level cache.
const BLOCK: usize = 128;

/// y\[n, k, o\] = sum over c, t of x\[n, c, o stride + t dilation - pre_padding\] w\[k, c, t\], per group of channels.
///
/// Padding is zeros, which are multiplied like any element. Float sums are in binary64, integer sums wrap in the compute type.
pub(crate) fn fprop(context: &Context<'_>, op: &rotini_graph::ConvFprop) -> Result<Value, ReferenceError> {
    let y_dims = context.dims(op.y)?;
    if y_dims.len() > 5 {
        return Err(context.unsupported("convolutions of more than three spatial dimensions"));
    }
    let problem = Problem::new(&context.dims(op.x)?, &context.dims(op.w)?, &y_dims, &op.geometry)?;
    if context.compute.precision().is_none() {
        let (x, w) = (context.integers(op.x)?, context.integers(op.w)?);
        let erroneous = |operand: &Operand<'_, i64>| {
            let errors = operand.errors.as_deref().unwrap_or_default();
            errors.iter().any(|&error| error > 0.0)
        };
        if erroneous(&x) || erroneous(&w) {
            return Err(context.unsupported("bounds for integers that depend on how a float was rounded"));
        }
        let sums = problem.compute(&x.numbers, &w.numbers);
        let wrapped: Vec<i64> = sums
            .into_iter()
            .map(|sum| context.compute.wrap(sum).unwrap_or(sum))
            .collect();
        let errors = context.bounds.then(|| vec![0.0; wrapped.len()]);
        return Ok(Value {
            dims: y_dims,
            numbers: Numbers::Integer(wrapped),
            errors,
        });
    }
    let (x, w) = (context.floats(op.x)?, context.floats(op.w)?);
    let sums = problem.compute(&x.numbers, &w.numbers);
    let errors = match (&x.errors, &w.errors) {
        (Some(x_errors), Some(w_errors)) => {
            Some(problem.bounds(context.compute, (&x.numbers, x_errors), (&w.numbers, w_errors)))
        }
        _ => None,
    };
    Ok(Value {
        dims: y_dims,
        numbers: Numbers::Float(sums),
        errors,
    })
}

/// Numbers that can be summed up.
trait Sum: Copy + Default + Send + Sync {
    /// self + a b.
    fn add_product(self, a: Self, b: Self) -> Self;
}

impl Sum for f64 {
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

impl Sum for i64 {
    fn add_product(self, a: Self, b: Self) -> Self {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

/// One spatial axis.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    filter: usize,
    output: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
    flipped: bool,
}

impl Axis {
    /// An axis that is not there.
    const UNIT: Axis = Axis {
        input: 1,
        filter: 1,
        output: 1,
        stride: 1,
        dilation: 1,
        padding: 0,
        flipped: false,
    };

    /// The input position of a filter tap at an output position; `None` in the padding.
    fn source(&self, output: usize, tap: usize) -> Option<usize> {
        let tap = if self.flipped { self.filter - 1 - tap } else { tap };
        (output * self.stride + tap * self.dilation)
            .checked_sub(self.padding)
            .filter(|&position| position < self.input)
    }
}

/// A convolution over three spatial axes, of which the first may be missing.
struct Problem {
    batch: usize,
    groups: usize,
    /// Input channels of a group.
    channels: usize,
    /// Filters of a group.
    filters: usize,
    axes: [Axis; 3],
}

impl Problem {
    fn new(
        x: &[usize],
        w: &[usize],
        y: &[usize],
        geometry: &rotini_graph::ConvGeometry,
    ) -> Result<Self, ReferenceError> {
        let wrong = || ReferenceError::not_validated(format!("a convolution of {x:?} with {w:?} to {y:?}"));
        let ([batch, in_channels, x @ ..], [filters, channels, w @ ..], [y_batch, y_channels, y @ ..]) = (x, w, y)
        else {
            return Err(wrong());
        };
        if y_batch != batch || y_channels != filters || *channels == 0 || in_channels % channels != 0 {
            return Err(wrong());
        }
        let groups = in_channels / channels;
        if groups == 0 || filters % groups != 0 {
            return Err(wrong());
        }
        let mut axes = [Axis::UNIT; 3];
        for (index, axis) in axes.iter_mut().skip(3_usize.saturating_sub(x.len())).enumerate() {
            let extent = |list: &[usize]| list.get(index).copied().ok_or_else(wrong);
            let attribute = |list: &[i64]| {
                list.get(index)
                    .and_then(|&value| usize::try_from(value).ok())
                    .ok_or_else(wrong)
            };
            *axis = Axis {
                input: extent(x)?,
                filter: extent(w)?,
                output: extent(y)?,
                stride: attribute(&geometry.stride)?,
                dilation: attribute(&geometry.dilation)?,
                padding: attribute(&geometry.pre_padding)?,
                flipped: geometry.mode == ConvMode::Convolution,
            };
        }
        Ok(Problem {
            batch: *batch,
            groups,
            channels: *channels,
            filters: filters / groups,
            axes,
        })
    }

    /// Products in a sum.
    fn terms(&self) -> usize {
        self.channels * self.axes.iter().map(|axis| axis.filter).product::<usize>()
    }

    fn inputs(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// All sums, on as many threads as there are processors.
    fn compute<T: Sum>(&self, x: &[T], w: &[T]) -> Vec<T> {
        let positions = self.positions();
        let blocks: Vec<(usize, Range<usize>)> = (0..self.batch * self.groups)
            .flat_map(|image| {
                (0..positions)
                    .step_by(BLOCK)
                    .map(move |start| (image, start..positions.min(start + BLOCK)))
            })
            .collect();
        let threads = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(blocks.len());
        let share = blocks.len().div_ceil(threads.max(1)).max(1);
        let mut y = vec![T::default(); self.batch * self.groups * self.filters * positions];
        std::thread::scope(|scope| {
            let workers: Vec<_> = blocks
                .chunks(share)
                .map(|blocks| {
                    let work = move || -> Vec<Vec<T>> { blocks.iter().map(|block| self.block(x, w, block)).collect() };
                    (blocks, scope.spawn(work))
                })
                .collect();
            for (blocks, worker) in workers {
                let results = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                for ((image, range), result) in blocks.iter().zip(results) {
                    for (filter, row) in result.chunks_exact(range.len()).enumerate() {
                        let start = (image * self.filters + filter) * positions + range.start;
                        y[start..start + range.len()].copy_from_slice(row);
                    }
                }
            }
        });
        y
    }

    /// The sums of all filters of a group at a range of output positions: one row per filter.
    fn block<T: Sum>(&self, x: &[T], w: &[T], (image, range): &(usize, Range<usize>)) -> Vec<T> {
        let (inputs, terms) = (self.channels * self.inputs(), self.terms());
        let x = &x[image * inputs..][..inputs];
        let w = &w[(image % self.groups) * self.filters * terms..][..self.filters * terms];
        let patches = self.patches(x, range.clone());
        let mut sums = vec![T::default(); self.filters * range.len()];
        for (sums, w) in sums.chunks_exact_mut(range.len()).zip(w.chunks_exact(terms)) {
            for (patch, &factor) in patches.chunks_exact(range.len()).zip(w) {
                for (sum, &element) in sums.iter_mut().zip(patch) {
                    *sum = sum.add_product(element, factor);
                }
            }
        }
        sums
    }

    /// For each channel and filter tap, a row of the elements that it meets at each position of the range; 0 in the padding.
    fn patches<T: Sum>(&self, x: &[T], range: Range<usize>) -> Vec<T> {
        let [depth, height, width] = &self.axes;
        let mut patches = Vec::with_capacity(self.terms() * range.len());
        for channel in x.chunks_exact(self.inputs()) {
            for tap_d in 0..depth.filter {
                for tap_h in 0..height.filter {
                    for tap_w in 0..width.filter {
                        patches.extend(range.clone().map(|position| {
                            let column = position % width.output;
                            let row = position / width.output;
                            let source = || {
                                let d = depth.source(row / height.output, tap_d)?;
                                let h = height.source(row % height.output, tap_h)?;
                                let w = width.source(column, tap_w)?;
                                channel.get((d * height.input + h) * width.input + w).copied()
                            };
                            source().unwrap_or_default()
                        }));
                    }
                }
            }
        }
        patches
    }

    /// How far a sum can be off that is accumulated in `compute` in any order, from operands that are off themselves.
    ///
    /// A sum of n products is off by at most n u times the sum of their magnitudes, with u the unit roundoff. It is not off at
    /// all where every product and partial sum is a multiple of one power of two that is not too small for the largest of them:
    /// integers in disguise, as [`fill`](crate::fill()) makes them.
    fn bounds(&self, compute: Codec, (x, x_errors): (&[f64], &[f64]), (w, w_errors): (&[f64], &[f64])) -> Vec<f64> {
        let sum = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a.abs() + b).collect() };
        let magnitudes = self.compute(&sum(x, &vec![0.0; x.len()]), &sum(w, &vec![0.0; w.len()]));
        let inexact = x_errors.iter().chain(w_errors).any(|&error| error > 0.0);
        let propagated = if inexact {
            let from_x = self.compute(x_errors, &sum(w, w_errors));
            let from_w = self.compute(&sum(x, &vec![0.0; x.len()]), w_errors);
            sum(&from_x, &from_w)
        } else {
            vec![0.0; magnitudes.len()]
        };
        let precision = compute.precision().unwrap_or(53);
        let roundoff = self.terms() as f64 * 2.0_f64.powi(-precision);
        let exact_below = match (grid(x), grid(w)) {
            (Some(x), Some(w)) if !inexact => 2.0_f64.powi(x + w + precision),
            _ => 0.0,
        };
        magnitudes
            .iter()
            .zip(propagated)
            .map(|(&magnitude, propagated)| {
                if magnitude <= exact_below {
                    propagated
                } else {
                    propagated + roundoff * (magnitude + propagated)
                }
            })
            .collect()
    }
}

/// The exponent of the largest power of two of which all values are multiples; `None` if one is not finite.
fn grid(values: &[f64]) -> Option<i32> {
    let exponent = |value: f64| -> Option<i32> {
        if value == 0.0 {
            return Some(i32::MAX);
        }
        let bits = value.to_bits();
        let exponent = i32::try_from((bits >> 52) & 0x7FF).ok()?;
        let significand = (bits & ((1 << 52) - 1)) | if exponent == 0 { 0 } else { 1 << 52 };
        let lowest = i32::try_from(significand.trailing_zeros()).ok()?;
        (exponent != 0x7FF).then_some(exponent.max(1) - 1075 + lowest)
    };
    values
        .iter()
        .try_fold(i32::MAX, |least, &value| Some(least.min(exponent(value)?)))
        // All zeros: any grid will do.
        .map(|least| if least == i32::MAX { 0 } else { least })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_values() {
        assert_eq!(grid(&[1.0, 0.5, -0.75, 0.0]), Some(-2));
        assert_eq!(grid(&[6.0, 4.0]), Some(1));
        assert_eq!(grid(&[0.0]), Some(0));
        assert_eq!(grid(&[f64::from_bits(1)]), Some(-1074));
        assert_eq!(grid(&[1.0, f64::NAN]), None);
    }
}
