//! The direct form: one `linalg.generic` with the convolution's index maps.
//!
//! The operation takes x, w and y in their memory order, channels first or channels last. An
//! operand whose memory order is neither, or differs from that of the other operand, is copied
//! first, behind a barrier (see [`Ordered::in_order`]).

use super::shape::{Shape, channels_first, channels_last, split_axis};
use crate::counts::product;
use crate::ir::{Affine, Emitter, IndexMap, Loop};
use crate::math::multiply_add;
use crate::mlir::Value as Ssa;
use crate::narrow::multiplied;
use crate::quirks::Quirks;
use crate::value::{Ordered, Value, extents};
use rotini_graph::DataType;

/// Lowers a convolution to one structured operation over all axes: n, groups, filters and output
/// positions in memory order, then the reduction over channels and window. Returns the result and
/// the memory order of its axes.
pub(super) fn lower<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    w: &Ordered<'c>,
    shape: &Shape<'_>,
    compute: DataType,
) -> (Ssa<'c>, Vec<usize>) {
    let channel_order = ChannelOrder::for_operands(x, w, shape, at.quirks());
    let axes = channel_order.axes(x.dims.len());
    let x = x.in_order(at, &axes);
    let w = w.in_order(at, &axes);
    let grouped = shape.groups > 1;
    let x_ssa = input(at, &x, w.dtype, shape, channel_order);
    let (w_ssa, _) = split_axis(at, &w, 0, shape.groups);

    // Loops are named by position: the axes of the result first, then the reduction in the order of
    // the filter.
    let mut loops = Vec::new();
    let mut loop_extents = Vec::new();
    let mut new_loop = |kind: Loop, extent: i64| {
        loops.push(kind);
        loop_extents.push(extent);
        loops.len() - 1
    };
    let n = new_loop(Loop::Parallel, shape.batch);
    let mut output = Vec::new();
    let mut group = None;
    let filter;
    let channel;
    let mut window = Vec::new();
    match channel_order {
        ChannelOrder::First => {
            group = grouped.then(|| new_loop(Loop::Parallel, shape.groups)).or(group);
            filter = new_loop(Loop::Parallel, shape.filters);
            output.extend(shape.output.iter().map(|&extent| new_loop(Loop::Parallel, extent)));
            channel = new_loop(Loop::Reduction, shape.channels);
            window.extend(shape.window.iter().map(|&extent| new_loop(Loop::Reduction, extent)));
        }
        ChannelOrder::Last => {
            if grouped && at.quirks().puts_groups_first(shape) {
                group = Some(new_loop(Loop::Parallel, shape.groups));
            }
            output.extend(shape.output.iter().map(|&extent| new_loop(Loop::Parallel, extent)));
            if grouped && group.is_none() {
                group = Some(new_loop(Loop::Parallel, shape.groups));
            }
            filter = new_loop(Loop::Parallel, shape.filters);
            window.extend(shape.window.iter().map(|&extent| new_loop(Loop::Reduction, extent)));
            channel = new_loop(Loop::Reduction, shape.channels);
        }
    }
    let result_rank = loops.iter().filter(|kind| **kind == Loop::Parallel).count();
    let result_shape: Vec<i64> = loop_extents.iter().take(result_rank).copied().collect();
    // The axes of the result in memory order: the axis of groups, if it exists, comes before the
    // filters.
    let mut in_memory: Vec<usize> = (0..result_rank).filter(|&axis| Some(axis) != group).collect();
    if let Some(group) = group {
        in_memory.insert(
            match channel_order {
                ChannelOrder::First => group,
                ChannelOrder::Last => in_memory.len().saturating_sub(1),
            },
            group,
        );
    }

    let positions: Vec<Affine> = output
        .iter()
        .zip(&window)
        .zip(shape.geometry.stride.iter().zip(&shape.geometry.dilation))
        .map(|((&o, &r), (stride, dilation))| Affine::Loop(o) * *stride + Affine::Loop(r) * *dilation)
        .collect();
    let taps: Vec<Affine> = window.iter().copied().map(Affine::Loop).collect();
    let group: Vec<Affine> = group.map(Affine::Loop).into_iter().collect();
    let [n, filter, channel] = [n, filter, channel].map(|number| vec![Affine::Loop(number)]);
    let [x_axes, w_axes] = match channel_order {
        ChannelOrder::First => [
            [n, group.clone(), channel.clone(), positions],
            [group, filter, channel, taps],
        ],
        ChannelOrder::Last => [
            [n, positions, group.clone(), channel.clone()],
            [group, filter, taps, channel],
        ],
    };
    let (x_map, w_map) = (x_axes.concat(), w_axes.concat());
    let rank = loops.len();
    let y_map = IndexMap::select(rank, 0..result_rank);
    let init = at.zeros(&result_shape, compute);
    let inputs = [
        (multiplied(at, x_ssa, x.dtype), IndexMap::new(rank, x_map)),
        (multiplied(at, w_ssa, w.dtype), IndexMap::new(rank, w_map)),
    ];
    let ssa = at.generic(&loops, &inputs, (init, y_map), |elements| {
        multiply_add(at, elements, [x.dtype, w.dtype], compute)
    });
    let result = Ordered::new(ssa, (0..result_rank).collect(), compute, result_shape);
    let result_shape = extents(&result.dims, &in_memory);
    let ssa = if result.order == in_memory {
        ssa
    } else {
        Value::of(result).copy_to(at, &in_memory)
    };
    let ssa = if grouped {
        merge_groups(at, ssa, &result_shape, shape, channel_order)
    } else {
        ssa
    };
    (ssa, axes)
}

/// Returns the number of elements of all tensors that [`lower`] makes from the operands, each
/// tensor counted once.
pub(super) fn elements(shape: &Shape<'_>) -> Option<u64> {
    let w = product(&shape.window)?.checked_mul(product(&[shape.groups, shape.filters, shape.channels])?)?;
    let y = product(&shape.output)?.checked_mul(product(&[shape.groups, shape.batch, shape.filters])?)?;
    shape.padded_elements()?.checked_add(w)?.checked_add(y)
}

/// The position of the channels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelOrder {
    /// N C spatial, K C spatial.
    First,
    /// N spatial C, K spatial C.
    Last,
}

impl ChannelOrder {
    fn axes(self, rank: usize) -> Vec<usize> {
        match self {
            ChannelOrder::First => channels_first(rank),
            ChannelOrder::Last => channels_last(rank),
        }
    }

    /// Returns the order that needs the fewest copies. A copy of x weighs more than one of w, since
    /// x is usually larger.
    fn for_operands(x: &Ordered<'_>, w: &Ordered<'_>, shape: &Shape<'_>, quirks: Quirks) -> Self {
        if quirks.is_channels_first(shape) {
            return ChannelOrder::First;
        }
        let copies = |order: ChannelOrder| {
            let axes = order.axes(x.dims.len());
            (!x.lies_in(&axes), !w.lies_in(&axes))
        };
        if copies(ChannelOrder::Last) < copies(ChannelOrder::First) {
            ChannelOrder::Last
        } else {
            ChannelOrder::First
        }
    }
}

/// Returns the input as the convolution reads it: channels split into groups if there are several,
/// and padded with zeros. The split comes first, so that the padding is next to the convolution and
/// fuses with it.
fn input<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    w: DataType,
    shape: &Shape<'_>,
    channel_order: ChannelOrder,
) -> Ssa<'c> {
    let (ssa, extents) = split_axis(at, x, 1, shape.groups);
    // The first spatial axis in memory.
    let spatial = match channel_order {
        ChannelOrder::First => extents.len().saturating_sub(shape.spatial()),
        ChannelOrder::Last => 1,
    };
    let (read, padding) = shape.read(&extents, spatial, at.quirks());
    let ssa = at.crop(ssa, &extents, &read, x.dtype);
    let (padded, _) = at.pad(ssa, &read, &padding, (0.0, x.dtype));
    let is_padded = padding.iter().any(|&amount| amount != (0, 0));
    let padding = &padding[spatial..];
    if is_padded && !at.quirks().may_fuse_padding(shape, [x.dtype, w], padding) {
        at.barrier(padded)
    } else {
        padded
    }
}

/// Merges two axes of the result, groups and filters of a group, into one.
fn merge_groups<'c>(
    at: &Emitter<'c>,
    ssa: Ssa<'c>,
    from: &[i64],
    shape: &Shape<'_>,
    channel_order: ChannelOrder,
) -> Ssa<'c> {
    let group = match channel_order {
        ChannelOrder::First => 1,
        ChannelOrder::Last => 1 + shape.spatial(),
    };
    let mut target = Vec::new();
    let mut reassociation = Vec::new();
    let mut axis = 0;
    while let Some(&extent) = from.get(axis) {
        if axis == group {
            target.push(extent * from[axis + 1]);
            reassociation.push(vec![axis, axis + 1]);
            axis += 2;
        } else {
            target.push(extent);
            reassociation.push(vec![axis]);
            axis += 1;
        }
    }
    at.collapse(ssa, &reassociation, &target)
}
