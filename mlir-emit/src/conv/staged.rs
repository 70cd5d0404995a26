//! The staged forms, for CPUs: operands are copied to the layouts and extents that IREE's code generation is fast for, then summed.
//!
//! IREE folds a transpose of an operand into the convolution that reads it, which then runs tens of times slower. The copies here
//! therefore stand behind barriers, in kernels of their own.

use super::named::{Axis, Tensor, between, sum};
use super::{Shape, channels_first, channels_last, direct};
use crate::EmitError;
use crate::ir::Emitter;
use crate::value::Ordered;
use melior::ir::Value as Ssa;
use rotini_graph::DataType;

/// Most groups that are summed one by one: they share one kernel, but compile time grows with the calls.
const MAX_SINGLE_GROUPS: i64 = 64;

/// A result in the compute type, and the memory order of its axes.
type Lowered<'c, 'b> = Result<(Ssa<'c, 'b>, Vec<usize>), EmitError>;

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A filter of one element on an input without padding is a matmul.
    Matmul,
    /// A channel per group: each filter has its own copy of a channel.
    Depthwise,
    /// A convolution without groups for each group.
    PerGroup,
    /// Many groups of several channels: slow, and rare.
    Direct,
}

impl Form {
    fn of(shape: &Shape<'_>) -> Form {
        let is_point =
            shape.window.iter().all(|&extent| extent == 1) && shape.padding().iter().all(|&zeros| zeros == (0, 0));
        match (shape.groups, shape.channels) {
            (1, _) if is_point => Form::Matmul,
            (2.., 1) => Form::Depthwise,
            (..=MAX_SINGLE_GROUPS, _) => Form::PerGroup,
            _ => Form::Direct,
        }
    }
}

/// Lowers the convolution.
pub(super) fn lower<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c, 'b> {
    match Form::of(shape) {
        Form::Matmul => matmul(at, x, w, shape, compute),
        Form::Depthwise => depthwise(at, x, w, shape, compute),
        Form::PerGroup => per_group(at, x, w, shape, compute),
        Form::Direct => direct::lower(at, x, w, shape, compute),
    }
}

/// Channels last: \[positions, C\] times \[K, C\] transposed. Channels first: \[K, C\] times \[C, positions\] for each image.
fn matmul<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c, 'b> {
    let (spatial, stride) = (shape.spatial(), &shape.geometry.stride);
    let batch = (Axis::Batch, shape.batch);
    let (channel, filter) = ((Axis::Channel, shape.channels), (Axis::Filter, shape.filters));
    let positions = shape.output.iter().product::<i64>();

    let (first, last) = (channels_first(2 + spatial), channels_last(2 + spatial));
    let is_first = !x.lies_in(&last) && x.lies_in(&first);
    let order = if is_first { first } else { last };
    let dtype = x.dtype;
    let x = Tensor::input(at, &x.in_order(at, &order)?, 1)?;
    let w = Tensor::filter(at, &w.in_order(at, &order)?, 1)?;
    let w = w.merged(at, &[filter, channel], &[1, 1 + spatial])?;

    let y = if is_first {
        let column = (Axis::Position, positions);
        let x = x.copied(
            at,
            &between(&[batch, channel], Axis::Spatial, &shape.output, &[]),
            dtype,
            stride,
        )?;
        let x = x.merged(at, &[batch, channel, column], &[1, 1, spatial])?;
        let product = sum(
            at,
            &x,
            &w,
            &[batch, filter, column],
            &[channel],
            shape.geometry,
            compute,
        )?;
        product.split(
            at,
            &between(&[batch, filter], Axis::Spatial, &shape.output, &[]),
            &[1, 1, spatial],
        )?
    } else {
        let row = (Axis::Position, shape.batch * positions);
        let x = x.copied(
            at,
            &between(&[batch], Axis::Spatial, &shape.output, &[channel]),
            dtype,
            stride,
        )?;
        let x = x.merged(at, &[row, channel], &[1 + spatial, 1])?;
        let product = sum(at, &x, &w, &[row, filter], &[channel], shape.geometry, compute)?;
        product.split(
            at,
            &between(&[batch], Axis::Spatial, &shape.output, &[filter]),
            &[1 + spatial, 1],
        )?
    };
    Ok((y.ssa, order))
}

/// The filters are the vector; x is repeated where several of them read one channel.
fn depthwise<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c, 'b> {
    let wide = shape.widened();
    let batch = (Axis::Batch, shape.batch);
    let filter = (Axis::Filter, shape.groups * shape.filters);

    let repeated = [(Axis::Channel, shape.groups), (Axis::Filter, shape.filters)];
    let x = Tensor::input(at, x, 1)?.copied(
        at,
        &between(&[batch], Axis::Spatial, &shape.input, &repeated),
        compute,
        &[],
    )?;
    let mut runs = vec![1; 1 + shape.spatial()];
    runs.push(2);
    let x = x.merged(at, &between(&[batch], Axis::Spatial, &shape.input, &[filter]), &runs)?;
    let x = x.padded(at, |axis| wide.zeros(axis))?.behind_barrier(at)?;

    let taps = between(&[], Axis::Tap, &shape.window, &[(Axis::Channel, 1)]);
    let w = Tensor::filter(at, w, 1)?
        .copied(at, &[taps.as_slice(), &[filter]].concat(), compute, &[])?
        .behind_barrier(at)?;

    let y = sum(
        at,
        &x,
        &w,
        &between(&[batch], Axis::Spatial, &wide.output, &[filter]),
        &taps,
        shape.geometry,
        compute,
    )?;
    let y = y.cropped(at, &between(&[batch], Axis::Spatial, &shape.output, &[filter]))?;
    Ok((y.ssa, channels_last(2 + shape.spatial())))
}

/// Groups become the outermost axis, so that each is a piece of memory with which one kernel can be called.
fn per_group<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Lowered<'c, 'b> {
    let wide = shape.widened();
    let (batch, channel) = ((Axis::Batch, shape.batch), (Axis::Channel, shape.channels));
    let (filter, wide_filter) = ((Axis::Filter, shape.filters), (Axis::Filter, wide.filters));
    let group = (shape.groups > 1).then_some((Axis::Group, shape.groups));
    let outer: Vec<_> = group.into_iter().chain([batch]).collect();

    let x = Tensor::input(at, x, shape.groups)?;
    let x = x.copied(
        at,
        &between(&outer, Axis::Spatial, &shape.input, &[channel]),
        compute,
        &[],
    )?;
    let x = x.padded(at, |axis| wide.zeros(axis))?.behind_barrier(at)?;

    let w = Tensor::filter(at, w, shape.groups)?;
    let w = w.padded(at, |axis| {
        if axis == Axis::Filter {
            (0, wide.filters - shape.filters)
        } else {
            (0, 0)
        }
    })?;
    let taps = between(&[], Axis::Tap, &shape.window, &[channel]);
    let w = w.copied(
        at,
        &between(group.as_slice(), Axis::Tap, &shape.window, &[channel, wide_filter]),
        compute,
        &[],
    )?;
    let w = w.behind_barrier(at)?;

    let result = between(&[batch], Axis::Spatial, &wide.output, &[wide_filter]);
    let convolve = |x: &Tensor<'c, 'b>, w: &Tensor<'c, 'b>| sum(at, x, w, &result, &taps, shape.geometry, compute);
    let y = if group.is_some() {
        let mut y = Tensor::empty(
            at,
            between(&outer, Axis::Spatial, &wide.output, &[wide_filter]),
            compute,
        )?;
        for index in 0..shape.groups {
            // Behind barriers, because a slice that is fused makes a kernel of its own for each group.
            let x = x.outermost(at, index)?.behind_barrier(at)?;
            let w = w.outermost(at, index)?.behind_barrier(at)?;
            y = y.with_outermost(at, index, &convolve(&x, &w)?)?;
        }
        y
    } else {
        convolve(&x, &w)?
    };
    let y = y.cropped(at, &between(&outer, Axis::Spatial, &shape.output, &[filter]))?;
    let y = match group {
        None => y,
        Some(group) => {
            let y = y.copied(
                at,
                &between(&[batch], Axis::Spatial, &shape.output, &[group, filter]),
                compute,
                &[],
            )?;
            let mut runs = vec![1; 1 + shape.spatial()];
            runs.push(2);
            let filters = (Axis::Filter, shape.groups * shape.filters);
            y.merged(at, &between(&[batch], Axis::Spatial, &shape.output, &[filters]), &runs)?
        }
    };
    Ok((y.ssa, channels_last(2 + shape.spatial())))
}

impl Shape<'_> {
    /// The same with as many outputs and filters as kernels for CPUs are fast for: whole tiles of them.
    fn widened(&self) -> Self {
        let mut wide = self.clone();
        if let Some(width) = wide.output.last_mut()
            && *width > 8
        {
            // At most five more.
            while (5..=8).all(|tile| *width % tile != 0) {
                *width += 1;
            }
        }
        if wide.filters > 16 {
            wide.filters = (wide.filters + 15) / 16 * 16;
        }
        wide
    }

    /// Zeros to add before and after an axis of x.
    fn zeros(&self, axis: Axis) -> (i64, i64) {
        match axis {
            Axis::Spatial(index) => self.padding().get(index).copied().unwrap_or_default(),
            _ => (0, 0),
        }
    }
}
