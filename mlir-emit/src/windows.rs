//! Windows over the spatial axes, arithmetic on indices, and folds: loops over many positions for
//! each element of a result.

use crate::Unsupported;
use crate::convert::convert;
use crate::ir::{Emitter, IndexMap, Input, IntegerPredicate, Loop, MISSING};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::value::{Ordered, extent, extents, position};
use rotini_graph::{DataType, NormalGraph, ResampleMode as M, TensorId};

/// Declines a padding if the padded tensor would have too many elements.
pub(crate) fn check_padded(graph: &NormalGraph, input: TensorId, padding: [&[i64]; 2]) -> Result<(), Unsupported> {
    const MOST: i64 = 1 << 40;
    let dims = graph.tensor(input).map_or(&[][..], |tensor| &tensor.dims);
    let (channels, extents) = dims.split_at_checked(2).unwrap_or_default();
    let [pre, post] = padding;
    let padded = extents.iter().zip(pre.iter().zip(post));
    let mut padded = padded.map(|(extent, (pre, post))| extent.checked_add(*pre)?.checked_add(*post));
    let images = channels
        .iter()
        .try_fold(1_i64, |count, extent| count.checked_mul(*extent));
    match padded.try_fold(images, |count, extent| Some(count?.checked_mul(extent?))) {
        Some(Some(count)) if count <= MOST => Ok(()),
        _ => Err(Unsupported::of_tensor(
            input,
            format!("more than {MOST} elements with its padding"),
        )),
    }
}

/// The geometry of windows over the spatial axes.
#[derive(Clone, Debug)]
pub(crate) struct Windows<'g> {
    /// Spatial extents of x and y.
    pub(crate) input: &'g [i64],
    pub(crate) output: &'g [i64],
    pre_padding: &'g [i64],
    stride: &'g [i64],
    pub(crate) window: &'g [i64],
}

/// One spatial axis of the windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) input: i64,
    pub(crate) output: i64,
    pub(crate) pre: i64,
    pub(crate) stride: i64,
    pub(crate) window: i64,
}

impl Axis {
    /// Returns the end of the last window in x, exclusive; beyond the extent of x there is padding.
    pub(crate) fn reach(&self) -> i64 {
        (self.output - 1) * self.stride + self.window - self.pre
    }

    pub(crate) fn is_padded(&self) -> bool {
        self.pre > 0 || self.reach() > self.input
    }

    /// Returns true if some window covers only padding.
    pub(crate) fn misses(&self) -> bool {
        self.window <= self.pre || self.reach() - self.window >= self.input
    }

    /// Returns the most windows that may cover one element: as many as overlap, but not more than
    /// exist.
    pub(crate) fn reaching(&self) -> i64 {
        let overlapping = self.window / self.stride + i64::from(self.window % self.stride != 0);
        overlapping.min(self.output)
    }
}

impl<'g> Windows<'g> {
    pub(crate) fn new(x: &'g [i64], y: &'g [i64], lists: [&'g [i64]; 3]) -> Self {
        let ([_, _, input @ ..], [_, _, output @ ..]) = (x, y) else {
            unreachable!("pooling of low rank");
        };
        let [pre_padding, stride, window] = lists;
        Windows {
            input,
            output,
            pre_padding,
            stride,
            window,
        }
    }

    pub(crate) fn axis(&self, spatial: usize) -> Axis {
        Axis {
            input: extent(self.input, spatial),
            output: extent(self.output, spatial),
            pre: extent(self.pre_padding, spatial),
            stride: extent(self.stride, spatial),
            window: extent(self.window, spatial),
        }
    }

    pub(crate) fn axes(&self) -> Vec<Axis> {
        (0..self.window.len()).map(|spatial| self.axis(spatial)).collect()
    }

    pub(crate) fn any(&self, holds: impl Fn(&Axis) -> bool) -> bool {
        self.axes().iter().any(holds)
    }

    /// Returns true if the windows cover x exactly.
    pub(crate) fn is_exact(&self) -> bool {
        !self.any(|axis| axis.is_padded() || axis.reach() != axis.input)
    }
}

/// Arithmetic on indices, inside the body of a structured operation.
pub(crate) struct Places<'c> {
    pub(crate) at: Emitter<'c>,
    /// The index along each logical axis of the result.
    along: Vec<Ssa<'c>>,
    /// The index of each loop of the fold.
    folded: Vec<Ssa<'c>>,
}

impl<'c> Places<'c> {
    /// Creates the indices in the body of an operation whose first loops are the logical axes
    /// `order`, without those of a fold.
    pub(crate) fn new(at: Emitter<'c>, order: &[usize]) -> Self {
        let along = |axis| at.loop_index(position(order, axis));
        Places {
            at,
            along: (0..order.len()).map(along).collect(),
            folded: Vec::new(),
        }
    }

    pub(crate) fn constant(&self, value: i64) -> Scalar<'c> {
        self.at.integer(value, self.at.index_type())
    }

    pub(crate) fn along(&self, axis: usize) -> Scalar<'c> {
        self.along[axis]
    }

    pub(crate) fn folded(&self, spatial: usize) -> Scalar<'c> {
        self.folded[spatial]
    }

    pub(crate) fn scale(&self, x: Ssa<'c>, factor: i64) -> Scalar<'c> {
        x * self.constant(factor)
    }

    /// Returns whether 0 <= x < end. The comparison is unsigned, so negative indices are above
    /// `end`.
    pub(crate) fn is_below(&self, x: Ssa<'c>, end: i64) -> Scalar<'c> {
        self.at
            .compare_integers(IntegerPredicate::AtMost, x, self.constant(end - 1))
    }

    /// Returns the conjunction of the conditions; `None` if there are none.
    pub(crate) fn all(&self, conditions: &[Ssa<'c>]) -> Option<Ssa<'c>> {
        conditions.iter().copied().reduce(|all, condition| all & condition)
    }

    /// Returns the row-major position of an element in these extents.
    pub(crate) fn flat(&self, indices: &[Ssa<'c>], extents: &[i64]) -> Scalar<'c> {
        let mut flat = self.constant(0);
        for (&index, &extent) in indices.iter().zip(extents) {
            flat = self.scale(flat, extent) + index;
        }
        flat
    }

    /// Returns the indices of the element at a row-major position.
    pub(crate) fn split(&self, position: Ssa<'c>, extents: &[i64]) -> Vec<Ssa<'c>> {
        let mut rest = position;
        let mut indices = Vec::new();
        for &extent in extents.iter().rev() {
            let extent = self.constant(extent);
            indices.push(rest.remui(extent));
            rest = rest.divui(extent);
        }
        indices.reverse();
        indices
    }

    /// Converts an index to another integer type.
    pub(crate) fn cast(&self, x: Ssa<'c>, dtype: DataType) -> Scalar<'c> {
        x.index_cast(self.at.element_type(dtype))
    }

    /// Returns the index of a window's first tap along a spatial axis, which may be negative.
    pub(crate) fn start(&self, spatial: usize, axis: &Axis) -> Scalar<'c> {
        let start = self.scale(self.along(spatial + 2), axis.stride);
        start - self.constant(axis.pre)
    }

    /// Returns the number of elements of x, along one axis, in the window that begins at `start`.
    pub(crate) fn covered(&self, start: Ssa<'c>, axis: &Axis) -> Scalar<'c> {
        let end = start + self.constant(axis.window);
        let end = end.minsi(self.constant(axis.input));
        let start = start.maxsi(self.constant(0));
        (end - start).maxsi(self.constant(0))
    }
}

/// A fold for each element of a result, over a number of positions.
pub(crate) struct Fold<'l, 'g, 'c> {
    pub(crate) lowering: &'l Lowering<'g, 'c>,
    /// Extents and memory order of the result.
    pub(crate) dims: &'l [i64],
    pub(crate) order: &'l [usize],
    /// Extents of the fold's loops.
    pub(crate) over: &'l [i64],
    pub(crate) compute: DataType,
}

impl<'c> Fold<'_, '_, 'c> {
    /// Lowers a fold that begins with `start`. `body` computes the new value from the elements of
    /// `windowed` and `beside`, which has the shape of the result, and the old value.
    ///
    /// If the operation reads a window, the fold's loops are loops of the operation. If all
    /// elements are found by their positions, the fold may be one loop in each thread.
    pub(crate) fn lower(
        &self,
        beside: Option<&Ordered<'c>>,
        windowed: Option<Input<'c>>,
        (start, dtype): (f64, DataType),
        body: impl FnOnce(&Math<'c>, &Places<'c>, &[Ssa<'c>], Ssa<'c>) -> Scalar<'c>,
    ) -> Ordered<'c> {
        let at = self.lowering.emitter();
        let (rank, target) = (self.order.len(), self.lowering.target());
        let is_found = windowed.is_none();
        let windows = usize::from(!is_found);
        let in_thread = at.quirks().folds_in_thread(is_found);
        let reduced = if in_thread { 0 } else { self.over.len() };
        let loops = [vec![Loop::Parallel; rank], vec![Loop::Reduction; reduced]].concat();
        let map = |numbers: &[usize]| IndexMap::select(loops.len(), numbers.iter().copied());
        // With operands in this order, the compiler recognises pooling, which is fast on CPUs.
        let mut inputs: Vec<_> = windowed.into_iter().collect();
        if !in_thread {
            // Each loop needs an operand that gives its extent.
            let folded: Vec<usize> = (rank..loops.len()).collect();
            inputs.push((at.empty(self.over, dtype), map(&folded)));
        }
        if let Some(tensor) = beside {
            let positions: Vec<_> = tensor.order.iter().map(|&axis| position(self.order, axis)).collect();
            inputs.push((tensor.ssa, map(&positions)));
        }
        let shape = extents(self.dims, self.order);
        let init = if in_thread {
            at.empty(&shape, dtype)
        } else {
            at.filled(&shape, dtype, start)
        };
        let result: Vec<usize> = (0..rank).collect();
        let ssa = at.generic(&loops, &inputs, (init, map(&result)), |elements| {
            let (so_far, read) = elements.split_last().expect(MISSING);
            let mut places = Places::new(at, self.order);
            if in_thread {
                return self.in_thread(&places, read, (start, dtype), body);
            }
            let indices = (rank..loops.len()).map(|position| at.loop_index(position));
            places.folded = indices.collect();
            let math = Math::new(at, target, self.compute, self.order.to_vec());
            let read = [&read[..windows], &read[windows + 1..]].concat();
            body(&math, &places, &read, *so_far)
        });
        Ordered::new(ssa, self.order.to_vec(), dtype, self.dims.to_vec())
    }

    /// Appends the fold as a single loop inside the operation's body.
    pub(crate) fn in_thread(
        &self,
        outer: &Places<'c>,
        read: &[Ssa<'c>],
        (start, dtype): (f64, DataType),
        body: impl for<'i> FnOnce(&Math<'c>, &Places<'c>, &[Ssa<'c>], Ssa<'c>) -> Scalar<'c>,
    ) -> Scalar<'c> {
        let at = outer.at;
        let steps: i64 = self.over.iter().product();
        let bounds = [outer.constant(0), outer.constant(steps)];
        at.fold(bounds, at.constant(start, dtype), |position, so_far| {
            let mut places = Places {
                at,
                along: outer.along.to_vec(),
                folded: Vec::new(),
            };
            places.folded = places.split(position, self.over);
            let read: Vec<_> = read.to_vec();
            let math = Math::new(at, self.lowering.target(), self.compute, Vec::new());
            body(&math, &places, &read, so_far)
        })
    }
}

/// Returns the divisor of the average of the windows that begin at `starts`: the number of their
/// elements, or of those in x, but at least 1.
pub(crate) fn divisor<'c>(
    math: &Math<'c>,
    places: &Places<'c>,
    axes: &[Axis],
    mode: M,
    starts: &[Ssa<'c>],
) -> Scalar<'c> {
    if mode != M::AvgpoolExcludePadding || !axes.iter().any(Axis::is_padded) {
        return math.constant(axes.iter().map(|axis| axis.window as f64).product());
    }
    let mut count = places.constant(1);
    for (axis, &start) in axes.iter().zip(starts) {
        count = if axis.is_padded() {
            count * places.covered(start, axis)
        } else {
            places.scale(count, axis.window)
        };
    }
    let count = count.maxsi(places.constant(1));
    convert(&math.at, places.cast(count, DataType::I64), DataType::I64, math.compute)
}
