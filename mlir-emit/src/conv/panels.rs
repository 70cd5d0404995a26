//! Convolutions and their gradients on CPUs as one kernel, which reads the operands by their
//! strides ([`crate::kernel::Panels`]).
//!
//! The only materialised tensor is an operand with its padding. A strided convolution's gradient
//! with respect to x has a part for each phase: the elements of x with the same index modulo the
//! stride, to which the same taps contribute.

use super::shape::Shape;
use crate::deferred::Deferred;
use crate::kernel::{Along, CpuKernel, Panels, Part};
use crate::lowering::Lowering;
use crate::value::{Ordered, extents};
use rotini_graph::{DataType, packed_strides};

/// Maximum number of parts of the gradient of a strided convolution. Each part has separate code,
/// which takes the compiler a second.
const MOST_PARTS: usize = 8;

/// Two operands and a result, and the strides of loops in them.
struct Frame {
    /// The number of elements of each operand; 0 if there are too many.
    elements: [i64; 2],
    /// Strides of both operands and of the result.
    strides: [Vec<i64>; 3],
    /// Whether vectors lie along an axis of the first operand, and not of the second.
    is_exchanged: bool,
}

impl Frame {
    fn new(factors: [&Ordered<'_>; 2], (dims, order): (&[i64], &[usize]), is_exchanged: bool) -> Self {
        let [a, b] = factors.map(|factor| packed_strides(&factor.dims, &factor.order));
        Frame {
            elements: factors.map(|factor| elements_of(&factor.dims)),
            strides: [a, b, packed_strides(dims, order)],
            is_exchanged,
        }
    }

    /// Orders three numbers, for both operands and the result, as the kernel orders its tensors.
    fn placed(&self, [a, b, out]: [i64; 3]) -> [i64; 3] {
        if self.is_exchanged { [b, a, out] } else { [a, b, out] }
    }

    /// Returns the offset of a number of steps along an axis of each tensor, in the order of the
    /// kernel's tensors. `None`: the tensor does not vary along the loop.
    fn moved(&self, steps: [Option<(usize, i64)>; 3]) -> [i64; 3] {
        let moved = |tensor: usize| match steps[tensor] {
            Some((axis, steps)) => self.strides[tensor][axis] * steps,
            None => 0,
        };
        self.placed([moved(0), moved(1), moved(2)])
    }

    /// Returns a loop with a step along an axis of each tensor.
    fn along(&self, extent: i64, steps: [Option<(usize, i64)>; 3]) -> Along {
        Along {
            extent,
            strides: self.moved(steps),
        }
    }

    /// Returns the result of the kernel with these parts; `None` if there is no such kernel.
    /// `operands` prepares both operands.
    fn lower<'c>(
        &self,
        lowering: &Lowering<'_, 'c>,
        (name, parts): (String, Vec<Part>),
        operands: impl FnOnce() -> [Ordered<'c>; 2],
        (dims, order): (&[i64], &[usize]),
    ) -> Option<Ordered<'c>> {
        let registers = lowering.target().registers()?;
        let [a, b] = self.elements;
        let kernel = CpuKernel::Panels(Panels {
            name,
            parts,
            elements: self.placed([a, b, elements_of(dims)]),
            registers,
        });
        if !kernel.is_possible() {
            return None;
        }
        let mut read = operands().map(|operand| operand.ssa);
        if self.is_exchanged {
            read.reverse();
        }
        let ssa = lowering.cpu_kernel(&kernel, &read, &extents(dims, order));
        Some(Ordered::new(ssa, order.to_vec(), DataType::F32, dims.to_vec()))
    }
}

/// Returns the number of elements of a tensor; 0 if it exceeds 64 bits.
fn elements_of(dims: &[i64]) -> i64 {
    let elements = dims.iter().try_fold(1_i64, |product, &dim| product.checked_mul(dim));
    elements.unwrap_or(0)
}

/// Returns whether channels (axis 1) are the innermost axis with more than one element.
pub(super) fn is_last(dims: &[i64], order: &[usize]) -> bool {
    innermost(dims, order) == Some(1)
}

/// Returns the innermost axis with more than one element.
fn innermost(dims: &[i64], order: &[usize]) -> Option<usize> {
    let is_wide = |axis: &&usize| dims.get(**axis).is_some_and(|&extent| extent > 1);
    order.iter().rev().find(is_wide).copied()
}

/// Plans the operand of a kernel: the tensor with zeros before and after each spatial axis, in f32
/// and in this memory order.
fn operand<'l, 'c>(
    lowering: &'l Lowering<'_, 'c>,
    tensor: &Ordered<'c>,
    zeros: &[(i64, i64)],
    order: &[usize],
) -> Deferred<'l, 'c> {
    let mut padding = vec![(0, 0); tensor.dims.len()];
    for (of_axis, zeros) in padding.iter_mut().skip(2).zip(zeros) {
        *of_axis = *zeros;
    }
    let added = padding.clone();
    let wanted = order.to_vec();
    Deferred::new(tensor)
        .then(
            |layout| {
                for (dim, (before, after)) in layout.dims.iter_mut().zip(added) {
                    *dim += before + after;
                }
            },
            move |tensor| padded(lowering, tensor, &padding),
        )
        .then(
            |layout| (layout.order, layout.dtype) = (order.to_vec(), DataType::F32),
            move |tensor| wide(lowering, &tensor, &wanted),
        )
}

/// Returns the tensor with zeros before and after each axis, behind a barrier.
fn padded<'c>(lowering: &Lowering<'_, 'c>, tensor: Ordered<'c>, zeros: &[(i64, i64)]) -> Ordered<'c> {
    if zeros.iter().all(|&zeros| zeros == (0, 0)) {
        return tensor;
    }
    let at = lowering.emitter();
    let padding: Vec<_> = tensor.order.iter().map(|&axis| zeros[axis]).collect();
    let shape = extents(&tensor.dims, &tensor.order);
    let (ssa, _) = at.pad(tensor.ssa, &shape, &padding, (0.0, tensor.dtype));
    let dims = tensor.dims.iter().zip(zeros);
    Ordered {
        ssa: at.barrier(ssa),
        dims: dims.map(|(dim, (before, after))| dim + before + after).collect(),
        ..tensor
    }
}

/// Sorts the loops by their stride in one tensor, the largest stride first.
fn sorted(mut axes: Vec<Along>, tensor: usize) -> Vec<Along> {
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.strides[tensor].saturating_abs()));
    axes
}

/// Returns whether both operands are floats of at most 32 bits that are summed in f32, and the
/// target has vector registers.
pub(super) fn are_floats(lowering: &Lowering<'_, '_>, [a, b]: [&Ordered<'_>; 2], compute: DataType) -> bool {
    let is_float = |dtype: DataType| matches!(dtype, DataType::F32 | DataType::F16 | DataType::Bf16);
    let are_floats = compute == DataType::F32 && is_float(a.dtype) && is_float(b.dtype);
    are_floats && lowering.target().registers().is_some()
}

/// Returns the tensor in f32 and in this memory order. A tensor with padding is converted after it
/// is padded, so that the padded copy has fewer bits per element.
pub(super) fn wide<'c>(lowering: &Lowering<'_, 'c>, tensor: &Ordered<'c>, order: &[usize]) -> Ordered<'c> {
    if tensor.dtype == DataType::F32 {
        return lowering.reordered(tensor, order);
    }
    let wide = lowering.round(tensor, DataType::F32, order.to_vec());
    wide.apart(&lowering.emitter())
}

/// Returns the position in the filter of the tap with this number along a spatial axis, and the
/// step to the next tap's position.
fn tap(shape: &Shape<'_>, axis: usize, number: i64) -> (i64, i64) {
    let extent = shape.window[axis];
    if shape.is_reversed() {
        (extent - 1 - number, -1)
    } else {
        (number, 1)
    }
}

/// Adds the offsets in each tensor.
fn plus(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Returns for each spatial axis the extents of y and of the window, the stride and the dilation. A
/// stride or dilation that does not matter is 1.
fn spatial<'s>(shape: &'s Shape<'_>) -> impl Iterator<Item = (usize, [i64; 4])> + 's {
    let geometry = shape.geometry;
    let steps = geometry.stride.iter().zip(&geometry.dilation);
    let extents = shape.output.iter().zip(&shape.window);
    let axes = extents.zip(steps).enumerate();
    axes.map(|(axis, ((&output, &window), (&stride, &dilation)))| {
        let stride = if output > 1 { stride } else { 1 };
        let dilation = if window > 1 { dilation } else { 1 };
        (axis, [output, window, stride, dilation])
    })
}

/// Returns a part of a convolution, or of its gradient with respect to x, from its loops: along
/// images, groups and the result's channels of a group, positions of an image, and terms.
/// `is_last`: whether channels are innermost in the result.
fn part_of(
    shape: &Shape<'_>,
    is_last: bool,
    [images, groups, channels]: [Along; 3],
    first: [i64; 3],
    [mut positions, terms]: [Vec<Along>; 2],
) -> Part {
    if !is_last {
        return Part {
            first,
            batch: vec![images, groups],
            rows: vec![channels],
            columns: sorted(positions, 2),
            terms: sorted(terms, 0),
        };
    }
    positions.insert(0, images);
    // With one channel and one filter per group, the columns are the groups.
    let (batch, columns) = if shape.channels == 1 && shape.filters == 1 {
        (Vec::new(), vec![groups])
    } else {
        (vec![groups], vec![channels])
    };
    Part {
        first,
        batch,
        rows: sorted(positions, 2),
        columns,
        terms: sorted(terms, 1),
    }
}

/// Returns the convolution's result in this memory order; `None` if there is no kernel. The filter
/// has been reversed already if the convolution reads it reversed.
pub(super) fn forward<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, w]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (dims, order): (&[i64], &[usize]),
    compute: DataType,
) -> Option<Ordered<'c>> {
    if !are_floats(lowering, [x, w], compute) {
        return None;
    }
    let x = operand(lowering, x, &shape.padding(), &x.order);
    let w = operand(lowering, w, &[], &w.order);
    // Vectors lie along the filters if channels are innermost, else along the positions of an
    // image.
    let is_last = is_last(dims, order);
    let frame = Frame::new([x.layout(), w.layout()], (dims, order), !is_last);
    let images = frame.along(shape.batch, [Some((0, 1)), None, Some((0, 1))]);
    let groups = frame.along(
        shape.groups,
        [
            Some((1, shape.channels)),
            Some((0, shape.filters)),
            Some((1, shape.filters)),
        ],
    );
    let filters = frame.along(shape.filters, [None, Some((0, 1)), Some((1, 1))]);
    let (mut positions, mut terms) = (
        Vec::new(),
        vec![frame.along(shape.channels, [Some((1, 1)), Some((1, 1)), None])],
    );
    for (axis, [output, window, stride, dilation]) in spatial(shape) {
        positions.push(frame.along(output, [Some((axis + 2, stride)), None, Some((axis + 2, 1))]));
        terms.push(frame.along(window, [Some((axis + 2, dilation)), Some((axis + 2, 1)), None]));
    }
    let part = part_of(shape, is_last, [images, groups, filters], [0; 3], [positions, terms]);
    let name = format!("conv_{}x{}x{}_f32", shape.pixels(), shape.filters, shape.terms());
    frame.lower(lowering, (name, vec![part]), || [x.emit(), w.emit()], (dims, order))
}

/// Returns the gradient with respect to w in this memory order; `None` if there is no kernel.
pub(super) fn wgrad<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, dy]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (dims, order): (&[i64], &[usize]),
    compute: DataType,
) -> Option<Ordered<'c>> {
    if !are_floats(lowering, [x, dy], compute) {
        return None;
    }
    let x = operand(lowering, x, &shape.padding(), &x.order);
    let dy = operand(lowering, dy, &[], &dy.order);
    // Depthwise: each lane of a vector is a different channel.
    let is_depthwise = shape.channels == 1 && shape.filters == 1;
    let frame = Frame::new([dy.layout(), x.layout()], (dims, order), is_depthwise);
    let groups = frame.along(
        shape.groups,
        [
            Some((1, shape.filters)),
            Some((1, shape.channels)),
            Some((0, shape.filters)),
        ],
    );
    let mut first = [0; 3];
    let mut of_filter = vec![frame.along(shape.channels, [None, Some((1, 1)), Some((1, 1))])];
    let mut terms = vec![frame.along(shape.batch, [Some((0, 1)), Some((0, 1)), None])];
    for (axis, [output, window, stride, dilation]) in spatial(shape) {
        let (of_first, next) = tap(shape, axis, 0);
        first = plus(first, frame.moved([None, Some((axis + 2, of_first * dilation)), None]));
        of_filter.push(frame.along(window, [None, Some((axis + 2, dilation * next)), Some((axis + 2, 1))]));
        terms.push(frame.along(output, [Some((axis + 2, 1)), Some((axis + 2, stride)), None]));
    }
    let of_filter = sorted(of_filter, 2);
    let part = if is_depthwise {
        Part {
            first,
            batch: Vec::new(),
            rows: of_filter,
            columns: vec![groups],
            terms: sorted(terms, 1),
        }
    } else {
        Part {
            first,
            batch: vec![groups],
            rows: vec![frame.along(shape.filters, [Some((1, 1)), None, Some((0, 1))])],
            columns: of_filter,
            terms: sorted(terms, 0),
        }
    };
    let name = format!("wgrad_{}x{}x{}_f32", shape.filters, shape.terms(), shape.pixels());
    let operands = || {
        let x = x.emit();
        [dy.emit(), x]
    };
    frame.lower(lowering, (name, vec![part]), operands, (dims, order))
}

/// The elements of x along one axis to which the same taps contribute.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// The first element, the number of elements, and the distance between them.
    first: i64,
    count: i64,
    step: i64,
    /// The first tap, the number of taps, and the distance between them.
    tap: i64,
    taps: i64,
    next: i64,
    /// The index in dy for the first element and the first tap, which may be outside of dy, and the
    /// distance in dy by which each further tap moves back.
    window: i64,
    back: i64,
}

/// Returns the phases along one axis; `None` if the stride is too large, or if there is more than
/// one tap and both stride and dilation are larger than one.
fn phases(shape: &Shape<'_>, axis: usize) -> Option<Vec<Phase>> {
    let of = |list: &[i64]| list.get(axis).copied();
    let (stride, dilation) = (of(&shape.geometry.stride)?, of(&shape.geometry.dilation)?);
    let (pre, window, input) = (of(&shape.geometry.pre_padding)?, of(&shape.window)?, of(&shape.input)?);
    let is_far = usize::try_from(stride).map_or(true, |stride| stride > MOST_PARTS);
    if is_far || stride > 1 && dilation > 1 && window > 1 {
        return None;
    }
    let back = if stride == 1 && window > 1 { dilation } else { 1 };
    let mut phases = Vec::new();
    for rest in 0..stride {
        // The elements stride * q + rest - pre, for q from `from` to `to`.
        let from = (pre - rest).max(0);
        let from = from / stride + i64::from(from % stride != 0);
        let to = (input - 1 + pre - rest).div_euclid(stride);
        if to < from {
            continue;
        }
        phases.push(Phase {
            first: stride * from + rest - pre,
            count: to - from + 1,
            step: stride,
            tap: rest,
            taps: if rest < window {
                (window - 1 - rest) / stride + 1
            } else {
                0
            },
            next: stride,
            window: from,
            back,
        });
    }
    Some(phases)
}

/// Returns the gradient with respect to x in this memory order; `None` if there is no kernel. The
/// kernel reads dy in the memory order `order_of_dy`.
pub(super) fn dgrad<'c>(
    lowering: &Lowering<'_, 'c>,
    [dy, w]: [&Ordered<'c>; 2],
    order_of_dy: &[usize],
    shape: &Shape<'_>,
    (dims, order): (&[i64], &[usize]),
    compute: DataType,
) -> Option<Ordered<'c>> {
    let axes: Option<Vec<Vec<Phase>>> = (0..shape.spatial()).map(|axis| phases(shape, axis)).collect();
    let axes = axes?;
    if axes.iter().map(Vec::len).product::<usize>() > MOST_PARTS {
        return None;
    }
    let zeros: Vec<(i64, i64)> = axes
        .iter()
        .zip(&shape.output)
        .map(|(phases, output)| {
            let reached = phases.iter().filter(|phase| phase.taps > 0);
            let before = reached
                .clone()
                .map(|phase| (phase.taps - 1) * phase.back - phase.window);
            let after = reached.map(|phase| phase.window + phase.count - output);
            (before.max().unwrap_or(0).max(0), after.max().unwrap_or(0).max(0))
        })
        .collect();
    if !are_floats(lowering, [dy, w], compute) {
        return None;
    }
    let dy = operand(lowering, dy, &zeros, order_of_dy);
    let w = operand(lowering, w, &[], &w.order);
    let is_last = is_last(dims, order);
    let frame = Frame::new([dy.layout(), w.layout()], (dims, order), !is_last);
    let images = frame.along(shape.batch, [Some((0, 1)), None, Some((0, 1))]);
    let groups = frame.along(
        shape.groups,
        [
            Some((1, shape.filters)),
            Some((0, shape.filters)),
            Some((1, shape.channels)),
        ],
    );
    let channels = frame.along(shape.channels, [None, Some((1, 1)), Some((1, 1))]);
    let filters = frame.along(shape.filters, [Some((1, 1)), Some((0, 1)), None]);
    let mut chosen: Vec<Vec<Phase>> = vec![Vec::new()];
    for phases in &axes {
        let with = |chosen: &Vec<Phase>| {
            let chosen = chosen.clone();
            phases
                .iter()
                .map(move |&phase| [chosen.as_slice(), &[phase]].concat())
                .collect::<Vec<_>>()
        };
        chosen = chosen.iter().flat_map(with).collect();
    }
    let part = |phases: &Vec<Phase>| {
        let mut first = [0; 3];
        let (mut positions, mut terms) = (Vec::new(), vec![filters]);
        for (spatial, (phase, &(before, _))) in phases.iter().zip(&zeros).enumerate() {
            let axis = spatial + 2;
            let (of_tap, next) = tap(shape, spatial, phase.tap);
            // Without taps, nothing is read.
            let from = if phase.taps > 0 { phase.window + before } else { 0 };
            first = plus(
                first,
                frame.moved([Some((axis, from)), Some((axis, of_tap)), Some((axis, phase.first))]),
            );
            positions.push(frame.along(phase.count, [Some((axis, 1)), None, Some((axis, phase.step))]));
            let steps = [Some((axis, -phase.back)), Some((axis, next * phase.next)), None];
            terms.push(frame.along(phase.taps, steps));
        }
        part_of(shape, is_last, [images, groups, channels], first, [positions, terms])
    };
    let parts = chosen.iter().map(part).collect();
    let positions: i64 = shape.input.iter().product();
    let name = format!(
        "dgrad_{}x{}x{}_f32",
        shape.batch * positions,
        shape.channels,
        shape.filters
    );
    frame.lower(lowering, (name, parts), || [dy.emit(), w.emit()], (dims, order))
}
