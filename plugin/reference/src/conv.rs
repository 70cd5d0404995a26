//! Convolutions. The forward direction multiplies patches of the input by the filters, one block of
//! output positions at a time; the gradients are its transposes, which pair the same elements.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::sums::{Sums, product_grid};
use crate::value::{Numbers, Value};
use rotini_graph::{ConvGeometry, ConvMode, TensorId};
use std::ops::Range;

/// Output positions in a block, chosen so that the patches of a block stay in the second-level
/// cache.
const BLOCK: usize = 128;

/// The tensor of a convolution that is computed from the other two.
#[derive(Clone, Copy, Debug)]
enum Direction {
    /// y\[n, k, o\] = sum over c, t of x\[n, c, o stride + t dilation - pre_padding\] w\[k, c, t\],
    /// per group of channels.
    Fprop,
    /// The transpose of fprop as a map of x: dx\[n, c, i\] = sum over k, t of dy\[n, k, o\] w\[k,
    /// c, t\] where o and t lead to i.
    Dgrad,
    /// The transpose of fprop as a map of w: dw\[k, c, t\] = sum over n, o of x\[n, c, i\] dy\[n,
    /// k, o\] where o and t lead to i.
    Wgrad,
}

/// Convolution forward.
pub(crate) fn fprop(context: &Context<'_>, op: &rotini_graph::ConvFprop) -> Result<Value, ReferenceError> {
    convolution(
        context,
        Direction::Fprop,
        [op.x, op.w, op.y],
        [op.x, op.w],
        op.y,
        &op.geometry,
    )
}

/// The gradient with respect to x.
pub(crate) fn dgrad(context: &Context<'_>, op: &rotini_graph::ConvDgrad) -> Result<Value, ReferenceError> {
    convolution(
        context,
        Direction::Dgrad,
        [op.dx, op.w, op.dy],
        [op.dy, op.w],
        op.dx,
        &op.geometry,
    )
}

/// The gradient with respect to w.
pub(crate) fn wgrad(context: &Context<'_>, op: &rotini_graph::ConvWgrad) -> Result<Value, ReferenceError> {
    convolution(
        context,
        Direction::Wgrad,
        [op.x, op.dw, op.dy],
        [op.x, op.dy],
        op.dw,
        &op.geometry,
    )
}

/// Computes a convolution in one direction. Fprop multiplies the zeros of the padding like any
/// element; the gradients skip the padding. Float sums are in binary64; integer sums wrap in the
/// compute type.
fn convolution(
    context: &Context<'_>,
    direction: Direction,
    tensors: [TensorId; 3],
    [a, b]: [TensorId; 2],
    result: TensorId,
    geometry: &ConvGeometry,
) -> Result<Value, ReferenceError> {
    let [x, w, y] = tensors.map(|id| context.dims(id));
    let (x, w, y) = (x?, w?, y?);
    if y.len() > 5 {
        return Err(context.unsupported("convolutions of more than three spatial dimensions"));
    }
    let problem = Problem::new(&x, &w, &y, geometry)?;
    let dims = context.dims(result)?;
    if context.compute.precision().is_none() {
        let (a, b) = (context.exact_integers(a)?, context.exact_integers(b)?);
        let wrapped: Vec<i64> = problem
            .sums(direction, &a.numbers, &b.numbers)
            .into_iter()
            .map(|sum| context.compute.wrap(sum).unwrap_or(sum))
            .collect();
        return Ok(context.integer_value(dims, wrapped));
    }
    let (a, b) = (context.factors(a)?, context.factors(b)?);
    let sums = problem.sums(direction, &a.numbers, &b.numbers);
    let errors = match (&a.errors, &b.errors) {
        (Some(a_errors), Some(b_errors)) => {
            let a = Erroneous {
                values: &a.numbers,
                errors: a_errors,
            };
            let b = Erroneous {
                values: &b.numbers,
                errors: b_errors,
            };
            Some(problem.bounds(direction, context.compute, a, b))
        }
        _ => None,
    };
    Ok(Value {
        dims,
        numbers: Numbers::Float(sums),
        errors,
    })
}

/// An operand's elements with their error bounds.
#[derive(Clone, Copy)]
struct Erroneous<'a> {
    values: &'a [f64],
    errors: &'a [f64],
}

/// Numbers that can be multiplied and accumulated.
trait Sum: Copy + Default + Send + Sync {
    /// Returns self + a b.
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

/// The geometry of one spatial axis.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    filter: usize,
    output: usize,
    stride: usize,
    dilation: usize,
    /// Number of zeros before the first element; if negative, the number of elements cut off.
    padding: i64,
    flipped: bool,
}

impl Axis {
    /// A missing axis, with all extents 1.
    const UNIT: Axis = Axis {
        input: 1,
        filter: 1,
        output: 1,
        stride: 1,
        dilation: 1,
        padding: 0,
        flipped: false,
    };

    /// Returns the input position of a filter tap at an output position; `None` in the padding.
    fn source(&self, output: usize, tap: usize) -> Option<usize> {
        let tap = if self.flipped { self.filter - 1 - tap } else { tap };
        i64::try_from(output * self.stride + tap * self.dilation)
            .ok()?
            .checked_sub(self.padding)
            .and_then(|position| usize::try_from(position).ok())
            .filter(|&position| position < self.input)
    }
}

/// A convolution over three spatial axes. Convolutions of fewer axes have leading axes of extent 1.
struct Problem {
    batch: usize,
    groups: usize,
    /// Number of input channels of a group.
    channels: usize,
    /// Number of filters of a group.
    filters: usize,
    axes: [Axis; 3],
}

impl Problem {
    fn new(x: &[usize], w: &[usize], y: &[usize], geometry: &ConvGeometry) -> Result<Self, ReferenceError> {
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
                padding: geometry.pre_padding.get(index).copied().ok_or_else(wrong)?,
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

    /// Returns the largest number of products in any sum of a direction.
    fn terms(&self, direction: Direction) -> usize {
        match direction {
            Direction::Fprop => self.channels * self.taps(),
            Direction::Dgrad => self.filters * self.taps(),
            Direction::Wgrad => self.batch * self.positions(),
        }
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.filter).product()
    }

    fn inputs(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// Computes all sums of a direction from its two operands.
    fn sums<T: Sum>(&self, direction: Direction, a: &[T], b: &[T]) -> Vec<T> {
        match direction {
            Direction::Fprop => self.compute(a, b),
            Direction::Dgrad => self.dgrad(a, b),
            Direction::Wgrad => self.wgrad(a, b),
        }
    }

    /// Returns, for each filter tap, the pairs of an output position and the input position that
    /// the tap multiplies there. Pairs in the padding are left out.
    fn pairs(&self) -> Vec<Vec<(usize, usize)>> {
        let [depth, height, width] = &self.axes;
        let mut pairs = Vec::with_capacity(self.taps());
        for tap_d in 0..depth.filter {
            for tap_h in 0..height.filter {
                for tap_w in 0..width.filter {
                    let pair = |position: usize| {
                        let row = position / width.output;
                        let d = depth.source(row / height.output, tap_d)?;
                        let h = height.source(row % height.output, tap_h)?;
                        let w = width.source(position % width.output, tap_w)?;
                        Some((position, (d * height.input + h) * width.input + w))
                    };
                    pairs.push((0..self.positions()).filter_map(pair).collect());
                }
            }
        }
        pairs
    }

    /// Calls `visit` for each triple of an image, a filter and one of the input channels that the
    /// filter reads, with the indices (n, c, k) and the index of c within its group.
    fn for_each_channel_pair(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        for image in 0..self.batch {
            for group in 0..self.groups {
                for filter in group * self.filters..(group + 1) * self.filters {
                    for within in 0..self.channels {
                        visit(image, group * self.channels + within, filter, within);
                    }
                }
            }
        }
    }

    fn dgrad<T: Sum>(&self, dy: &[T], w: &[T]) -> Vec<T> {
        let (inputs, positions, taps, pairs) = (self.inputs(), self.positions(), self.taps(), self.pairs());
        let mut dx = vec![T::default(); self.batch * self.groups * self.channels * inputs];
        self.for_each_channel_pair(|image, channel, filter, within| {
            let dy = &dy[(image * self.groups * self.filters + filter) * positions..][..positions];
            let dx = &mut dx[(image * self.groups * self.channels + channel) * inputs..][..inputs];
            let w = &w[(filter * self.channels + within) * taps..][..taps];
            for (pairs, &factor) in pairs.iter().zip(w) {
                for &(position, input) in pairs {
                    dx[input] = dx[input].add_product(dy[position], factor);
                }
            }
        });
        dx
    }

    fn wgrad<T: Sum>(&self, x: &[T], dy: &[T]) -> Vec<T> {
        let (inputs, positions, taps, pairs) = (self.inputs(), self.positions(), self.taps(), self.pairs());
        let mut dw = vec![T::default(); self.groups * self.filters * self.channels * taps];
        self.for_each_channel_pair(|image, channel, filter, within| {
            let dy = &dy[(image * self.groups * self.filters + filter) * positions..][..positions];
            let x = &x[(image * self.groups * self.channels + channel) * inputs..][..inputs];
            let dw = &mut dw[(filter * self.channels + within) * taps..][..taps];
            for (pairs, sum) in pairs.iter().zip(dw) {
                for &(position, input) in pairs {
                    *sum = sum.add_product(x[input], dy[position]);
                }
            }
        });
        dw
    }

    /// Computes all sums of fprop, on as many threads as there are processors.
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

    /// Computes the sums of all filters of a group at a range of output positions: one row per
    /// filter.
    fn block<T: Sum>(&self, x: &[T], w: &[T], (image, range): &(usize, Range<usize>)) -> Vec<T> {
        let (inputs, terms) = (self.channels * self.inputs(), self.channels * self.taps());
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

    /// Returns, for each channel and filter tap, a row of the input elements that the tap
    /// multiplies at each position of the range; 0 in the padding.
    fn patches<T: Sum>(&self, x: &[T], range: Range<usize>) -> Vec<T> {
        let [depth, height, width] = &self.axes;
        let mut patches = Vec::with_capacity(self.channels * self.taps() * range.len());
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

    /// Returns the error bound of each sum of a direction, including the operands' own errors.
    fn bounds(&self, sums: Direction, compute: Codec, a: Erroneous<'_>, b: Erroneous<'_>) -> Vec<f64> {
        let magnitudes = |values: &[f64]| -> Vec<f64> { values.iter().map(|value| value.abs()).collect() };
        let sum = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
        let (a_size, b_size) = (magnitudes(a.values), magnitudes(b.values));
        let sizes = self.sums(sums, &a_size, &b_size);
        let inexact = a.errors.iter().chain(b.errors).any(|&error| error > 0.0);
        let propagated = if inexact {
            let from_a = self.sums(sums, a.errors, &sum(&b_size, b.errors));
            let from_b = self.sums(sums, &a_size, b.errors);
            sum(&from_a, &from_b)
        } else {
            vec![0.0; sizes.len()]
        };
        let grid = if inexact {
            None
        } else {
            product_grid(a.values, b.values)
        };
        let bounds = Sums::new(compute, self.terms(sums), grid);
        sizes
            .iter()
            .zip(propagated)
            .map(|(&size, propagated)| bounds.bound(size, propagated))
            .collect()
    }
}
