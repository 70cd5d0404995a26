//! The gradient with respect to x of a convolution, as one kernel that rotini writes.
//!
//! With a stride of one, dx\[h\] = Σ dy\[h + pre - r\] w\[r\]: a convolution of dy with the
//! reversed filter. With a stride of two, dx has two phases along the axis, to which different taps
//! contribute. Example: a window of three taps with a padding of one before.
//!
//! ```text
//! dx[2q]     = Σ dy[q] w[1]
//! dx[2q + 1] = Σ dy[q] w[2] + dy[q + 1] w[0]
//! ```
//!
//! In general the phase r = h mod s of dx is Σ dy\[q + ⌊(r + pre) / s⌋ - t\] w\[(r + pre) mod s + s
//! t\] over t. The phases are a batch of products in one kernel: each spatial axis adds an axis to
//! the batch. No zeros are stuffed between the elements of dy.

use super::kernels::{depthwise, has_depthwise_kernel, has_tiles, per_image};
use super::shape::{Shape, channels_first, channels_last};
use crate::contract::{are_halves, factor, strides};
use crate::deferred::Deferred;
use crate::ir::only;
use crate::kernel::{Axis, Product, Window};
use crate::lowering::Lowering;
use crate::step;
use crate::value::{Ordered, Value, extent, extents};
use rotini_graph::DataType;
use rotini_schedule::{Machine, gemm};

/// Elements of dy that a lane loads at once.
const WIDTH: i64 = 8;

/// Limit of the padding and the dilation: there is no kernel beyond it.
const FAR: i64 = 1 << 31;

/// The phases of dx along one spatial axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Along {
    /// Positions of a phase.
    places: i64,
    phases: i64,
    /// Maximum number of taps of a phase.
    taps: i64,
    /// The first tap of the first phase, and the difference from it to the first tap of the second
    /// phase.
    tap: [i64; 2],
    /// The element of dy that meets the first tap at position 0: for the first phase, and the
    /// difference from it to the second phase.
    step: [i64; 2],
    dilation: i64,
    window: i64,
    output: i64,
}

impl Along {
    fn new(shape: &Shape<'_>, axis: usize) -> Option<Self> {
        let geometry = shape.geometry;
        let at = |extents: &[i64]| extents.get(axis).copied();
        let (stride, pre, window) = (at(&geometry.stride)?, at(&geometry.pre_padding)?, at(&shape.window)?);
        // The dilation of a window with one tap does not matter.
        let dilation = if window > 1 { at(&geometry.dilation)? } else { 1 };
        let (input, output) = (at(&shape.input)?, at(&shape.output)?);
        // A number up to this limit times the number of elements of a tensor fits in 64 bits.
        if pre > FAR || dilation > FAR {
            return None;
        }
        if stride > 2 || stride == 2 && dilation > 1 || input % stride != 0 {
            return None;
        }
        let tap = |phase: i64| (phase + pre) % stride;
        let step = |phase: i64| (phase + pre) / stride;
        let taps = |phase: i64| (window - tap(phase) + stride - 1) / stride;
        let last = stride - 1;
        Some(Along {
            places: input / stride,
            phases: stride,
            taps: (0..stride).map(taps).max()?.max(1),
            tap: [tap(0), tap(last) - tap(0)],
            step: [step(0), step(last) - step(0)],
            dilation,
            window,
            output,
        })
    }

    /// Returns the number of taps of a phase.
    fn taps_of(&self, phase: i64) -> i64 {
        let first = self.tap[0] + phase * self.tap[1];
        (self.window - first + self.phases - 1) / self.phases
    }

    /// Returns whether each tap meets an element of dy at every position.
    fn is_inside(&self) -> bool {
        let most = self.places - 1 + self.step[0] + self.step[1].max(0);
        let least = self.step[0] + self.step[1].min(0) - (self.taps - 1) * self.dilation;
        least >= 0 && most < self.output
    }

    fn is_even(&self) -> bool {
        (0..self.phases).all(|phase| self.taps_of(phase) == self.taps)
    }
}

/// Returns the gradient in the memory order `order`; `None` if there is no kernel for these types
/// and extents. Its type is `stored` if there are phases, and the compute type otherwise.
pub(super) fn lower<'c>(
    lowering: &Lowering<'_, 'c>,
    [dy, w]: [&Ordered<'c>; 2],
    (dims, order): (&[i64], &[usize]),
    shape: &Shape<'_>,
    [stored, compute]: [DataType; 2],
) -> Option<Ordered<'c>> {
    let machine = lowering.target().machine()?;
    let axes: Option<Vec<Along>> = (0..shape.spatial()).map(|axis| Along::new(shape, axis)).collect();
    let axes = axes?;
    let logical: Vec<Axis> = [Axis::Row(0), Axis::Group(axes.len())]
        .into_iter()
        .chain((0..axes.len()).map(|axis| Axis::Row(axis + 1)))
        .collect();
    let order_of_axes: Vec<Axis> = order.iter().map(|&axis| logical[axis]).collect();
    let has_phases = axes.iter().any(|axis| axis.phases > 1);
    let by_lanes = has_depthwise_kernel([dy.dtype, w.dtype], (shape, shape.filters), compute);
    if by_lanes && has_phases && order.last() == Some(&1) {
        return side_by_side(
            lowering,
            [dy, w].map(Deferred::new),
            (dims, order),
            (shape, &axes),
            ([stored, compute], machine),
        );
    }
    if by_lanes && !has_phases {
        let product = product([dy, w], shape, &axes, (order_of_axes, compute));
        let ssa = depthwise(lowering, product, [dy, w], (shape, machine));
        return ssa.map(|ssa| Ordered::new(ssa, order.to_vec(), compute, dims.to_vec()));
    }
    let is_deep = shape.filters.checked_rem(WIDTH) == Some(0);
    if !are_halves([dy.dtype, w.dtype], compute) || !has_tiles(shape) || !is_deep {
        return None;
    }
    let rank = dims.len();
    let last = channels_last(rank);
    let image: i64 = shape.input.iter().product();
    let whole = |product: Product, operands: [Deferred<'_, 'c>; 2]| {
        let ssa = lowering.kernel_on(machine, product, operands);
        ssa.map(|ssa| Ordered::new(ssa, order.to_vec(), compute, dims.to_vec()))
    };
    if shape.groups == 1
        && shape.is_pointwise()
        && image % 4 == 0
        && dy.lies_in(&channels_first(rank))
        && !dy.lies_in(&last)
    {
        let product = per_image([dy, w], [1, 0], (order, compute, "dgrad"));
        return whole(product, [w, dy].map(Deferred::new));
    }
    let dy = lowering.in_order(dy, &last);
    // Lanes read contiguous channels, or contiguous filters.
    let w = if extent(&strides(w), 1) > 1 {
        lowering.in_order(w, &last)
    } else {
        Deferred::new(w)
    };
    if !has_phases {
        let product = product([dy.layout(), w.layout()], shape, &axes, (order_of_axes, compute));
        return whole(product, [dy, w]);
    }
    side_by_side(
        lowering,
        [dy, w],
        (dims, order),
        (shape, &axes),
        ([stored, compute], machine),
    )
}

/// Computes the gradient with phases, channels innermost, and copies it to its memory order.
fn side_by_side<'c>(
    lowering: &Lowering<'_, 'c>,
    operands: [Deferred<'_, 'c>; 2],
    (dims, order): (&[i64], &[usize]),
    (shape, axes): (&Shape<'_>, &[Along]),
    ([stored, compute], machine): ([DataType; 2], &Machine),
) -> Option<Ordered<'c>> {
    // The logical axes: images, channels, and two for each spatial axis, positions and phases.
    let mut split = vec![shape.batch, shape.groups * shape.channels];
    let mut logical = vec![Axis::Row(0), Axis::Group(axes.len())];
    for (number, axis) in axes.iter().enumerate() {
        split.extend([axis.places, axis.phases]);
        logical.extend([Axis::Row(number + 1), Axis::Batch(number)]);
    }
    let last = channels_last(split.len());
    let order_of_axes = last.iter().map(|&axis| logical[axis]).collect();
    let [dy, w] = operands.each_ref().map(Deferred::layout);
    let product = product([dy, w], shape, axes, (order_of_axes, compute));
    let ssa = if has_depthwise_kernel([dy.dtype, w.dtype], (shape, shape.filters), compute) {
        depthwise(lowering, product, [dy, w], (shape, machine))
    } else {
        lowering.kernel_on(machine, product, operands)
    };
    let ssa = ssa?;
    let sums = Value::of(Ordered::new(ssa, last.clone(), compute, split.clone()));
    let rounded = step::Shape {
        dims: &split,
        order: &last,
        dtype: stored,
    };
    let rounded = lowering.map(&[&sums], &rounded, compute, |_, elements| only(elements));
    let at = lowering.emitter();
    let spatial = axes.len();
    let pairs = (0..spatial).map(|axis| vec![2 * axis + 1, 2 * axis + 2]);
    let groups: Vec<Vec<usize>> = [vec![0]]
        .into_iter()
        .chain(pairs)
        .chain([vec![2 * spatial + 1]])
        .collect();
    let whole = channels_last(dims.len());
    let ssa = at.collapse(at.barrier(rounded.ssa), &groups, &extents(dims, &whole));
    let result = Ordered::new(ssa, whole, stored, dims.to_vec());
    Some(lowering.reordered(&result, order))
}

/// Returns the product. Channels are innermost in dy.
fn product(
    [dy, w]: [&Ordered<'_>; 2],
    shape: &Shape<'_>,
    axes: &[Along],
    (order, compute): (Vec<Axis>, DataType),
) -> Product {
    let (of_dy, of_w) = (strides(dy), strides(w));
    let (mut first, mut first_tap) = (0, 0);
    let [mut own, mut batches, mut tap_batches, mut sum, mut taps] = [const { Vec::new() }; 5];
    let (mut windows, mut tap_windows) = (Vec::new(), Vec::new());
    own.push(extent(&of_dy, 0));
    for (number, axis) in axes.iter().enumerate() {
        let (stride, tap) = (extent(&of_dy, number + 2), extent(&of_w, number + 2));
        first += axis.step[0] * stride;
        first_tap += axis.tap[0] * tap;
        batches.push(axis.step[1] * stride);
        tap_batches.push(axis.tap[1] * tap);
        own.push(stride);
        sum.push(-axis.dilation * stride);
        taps.push(axis.phases * tap);
        if !axis.is_inside() {
            windows.push(Window {
                extent: axis.output,
                start: axis.step[0],
                own: (number + 1, 1),
                sum: (number, -axis.dilation),
                batch: (number, axis.step[1]),
            });
        }
        if !axis.is_even() {
            // A term without a tap must be zero in both operands: zero times infinity is not zero.
            tap_windows.push(Window {
                extent: axis.window,
                start: axis.tap[0],
                own: (0, 0),
                sum: (number, axis.phases),
                batch: (number, axis.tap[1]),
            });
        }
    }
    windows.extend(tap_windows.iter().copied());
    sum.push(extent(&of_dy, 1));
    taps.push(extent(&of_w, 0));
    let mut batch: Vec<i64> = axes.iter().map(|axis| axis.phases).collect();
    // In both operands a group is a run of filters.
    if shape.groups > 1 {
        batch.push(shape.groups);
        batches.push(shape.filters * extent(&of_dy, 1));
        tap_batches.push(shape.filters * extent(&of_w, 0));
    }
    Product {
        batch,
        rows: [shape.batch]
            .into_iter()
            .chain(axes.iter().map(|axis| axis.places))
            .collect(),
        columns: vec![shape.channels],
        sum: axes.iter().map(|axis| axis.taps).chain([shape.filters]).collect(),
        // With groups, each group would need its own numbers of terms. So terms without a tap are
        // zeros.
        terms: if shape.groups == 1 {
            terms(axes, shape.filters)
        } else {
            Vec::new()
        },
        chosen: None,
        factors: [
            factor(dy, first, [batches, own, sum], windows),
            factor(w, first_tap, [tap_batches, vec![extent(&of_w, 1)], taps], tap_windows),
        ],
        order,
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: false,
        name: format!(
            "dgrad_{}x{}_{}",
            shape.batch * shape.input.iter().product::<i64>(),
            shape.channels,
            dy.dtype
        ),
    }
}

/// Returns the number of terms of each phase up to its last tap along the first axis; an empty list
/// if all phases have the same number.
fn terms(axes: &[Along], filters: i64) -> Vec<i64> {
    if axes.iter().all(Along::is_even) {
        return Vec::new();
    }
    let mut all = vec![filters];
    for (number, axis) in axes.iter().enumerate().rev() {
        let inner = all;
        all = Vec::new();
        for phase in 0..axis.phases {
            // Along the other axes, a missing tap is a zero between other terms.
            let taps = match axis.taps_of(phase) {
                0 => 0,
                taps if number == 0 => taps,
                _ => axis.taps,
            };
            all.extend(inner.iter().map(|terms| terms * taps));
        }
    }
    all
}
