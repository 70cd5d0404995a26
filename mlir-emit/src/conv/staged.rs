//! The staged forms, for CPUs: operands are copied to the layouts and extents that IREE's code generation is fast for, then summed.
//!
//! IREE folds a transpose of an operand into the convolution that reads it, which then runs tens of times slower. Each copy here
//! therefore stands behind a barrier, in a kernel of its own.

use super::{Shape, channels_first, channels_last, direct, multiply_add, pad, split_axis};
use crate::EmitError;
use crate::ir::{Emitter, Loop, affine_map, dim, first};
use crate::value::{Ordered, reshape};
use melior::ir::Value as Ssa;
use rotini_graph::DataType;

/// Most groups that are lowered one by one: they share one kernel, but compile time grows with the calls.
const MAX_SINGLE_GROUPS: i64 = 64;

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A filter of one element on an input without padding is a matmul.
    Matmul,
    /// A channel per group: each filter has a copy of its channel.
    Depthwise,
    /// A plain convolution for each group.
    PerGroup,
    /// Hundreds of groups of several channels: slow, and rare.
    Direct,
}

impl Form {
    fn of(shape: &Shape<'_>) -> Form {
        let is_point = shape.window.iter().all(|&extent| extent == 1) && shape.padding().iter().all(|&zeros| zeros == (0, 0));
        match (shape.groups, shape.channels) {
            (1, _) if is_point => Form::Matmul,
            (2.., 1) => Form::Depthwise,
            (..=MAX_SINGLE_GROUPS, _) => Form::PerGroup,
            _ => Form::Direct,
        }
    }
}

/// The convolution in the compute type, and the memory order of its axes.
pub(super) fn lower<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Result<(Ssa<'c, 'b>, Vec<usize>), EmitError> {
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
) -> Result<(Ssa<'c, 'b>, Vec<usize>), EmitError> {
    let rank = x.dims.len();
    let is_first = !x.lies_in(&channels_last(rank)) && x.lies_in(&channels_first(rank));
    let order = if is_first { channels_first(rank) } else { channels_last(rank) };
    let (batch, filter, channel) = ((Axis::Batch, shape.batch), (Axis::Filter, shape.filters), (Axis::Channel, shape.channels));
    let spatial = spatial(&shape.output);

    let x = x.in_order(at, &order)?;
    let mut x = Tensor::of(at, &x, Operand::Input, 1)?;
    if shape.geometry.stride.iter().any(|&stride| stride > 1) {
        x = x.copied(at, &layout(is_first, batch, &spatial, channel), x.dtype, shape)?;
    }
    let w = w.in_order(at, &order)?;
    let w = Tensor::of(at, &w, Operand::Filter, 1)?.merged(at, &[filter, channel])?;

    let positions = |extent: i64| (Axis::Spatial(0), shape.output.iter().product::<i64>() * extent);
    let (x, result) = if is_first {
        (x.merged(at, &[batch, channel, positions(1)])?, vec![batch, filter, positions(1)])
    } else {
        (x.merged(at, &[positions(shape.batch), channel])?, vec![positions(shape.batch), filter])
    };
    let sum = sum(at, &x, &w, &result, &[channel], None, compute)?;
    Ok((sum.split(at, &layout(is_first, batch, &spatial, filter))?.ssa, order))
}
