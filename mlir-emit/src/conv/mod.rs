//! Convolution forward: what is supported, and its lowering in the form that the target compiles best.
//!
//! x, w and y are taken as they lie in memory, channels first or channels last; only what is in neither order, or in another order
//! than its partner, is copied. The copy stands behind a barrier (see [`Ordered::in_order`]).

use crate::convert::{compute_type, convert};
use crate::ir::{Emitter, Loop, affine_map, dim, first};
use crate::lower::Lowering;
use crate::target::ConvStrategy;
use crate::value::{Ordered, Value, extent, extents, reshape};
use crate::{EmitError, Unsupported};
use melior::ir::{Block, Region, RegionLike, Value as Ssa};
use rotini_graph::{ConvFprop, ConvGeometry, ConvMode, DataType, NormalGraph};

/// Says whether the operation can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &ConvFprop) -> Result<(), Unsupported> {
    let Some(compute) = compute_type(compute) else {
        return Err(Unsupported::new(format!("a convolution cannot be computed in {compute}")));
    };
    if op.geometry.mode != ConvMode::CrossCorrelation {
        return Err(Unsupported::new("conv_mode CONVOLUTION (a flipped filter) is not supported"));
    }
    let spatial = op.geometry.stride.len();
    if spatial > 3 {
        return Err(Unsupported::new(format!("{spatial} spatial dimensions, more than 3")));
    }
    for id in [op.x, op.w] {
        if compute.is_integer() && graph.tensor(id).is_some_and(|tensor| tensor.dtype.is_float()) {
            return Err(Unsupported::of_tensor(id, format!("a float operand of a convolution computed in {compute}")));
        }
    }
    Ok(())
}

/// Lowers the operation.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_, '_>, compute: DataType, op: &ConvFprop) -> Result<(), EmitError> {
    let at = lowering.emitter();
    let compute = compute_type(compute).ok_or(EmitError::Internal("a compute type that check declines"))?;
    let x = lowering.value(op.x)?.materialise(&at)?;
    let w = lowering.value(op.w)?.materialise(&at)?;
    let y = lowering.tensor(op.y)?;
    let order = ChannelOrder::for_operands(&x, &w);
    let axes = order.axes(x.dims.len());
    let shape = Shape::new(&x, &w, &y.dims, order, &op.geometry)?;
    let x = x.in_order(&at, &axes)?;
    let w = w.in_order(&at, &axes)?;
    let ssa = match lowering.strategy() {
        ConvStrategy::Direct | ConvStrategy::Gemm => direct(&at, &x, &w, &shape, compute)?,
    };
    let result = Ordered { ssa, order: axes, dtype: compute, dims: y.dims.clone() };
    let carried = lowering.carry(result, lowering.carried_type(op.y, compute)?)?;
    lowering.define(op.y, Value::of(carried));
    Ok(())
}

/// Where the channels lie in memory.
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
            ChannelOrder::First => (0..rank).collect(),
            ChannelOrder::Last => std::iter::once(0).chain(2..rank).chain([1]).collect(),
        }
    }

    /// The order that needs the fewest copies; x weighs more than w, since it is usually larger.
    fn for_operands(x: &Ordered<'_, '_>, w: &Ordered<'_, '_>) -> Self {
        let copies = |order: ChannelOrder| {
            let axes = order.axes(x.dims.len());
            (!x.lies_in(&axes), !w.lies_in(&axes))
        };
        if copies(ChannelOrder::Last) < copies(ChannelOrder::First) { ChannelOrder::Last } else { ChannelOrder::First }
    }
}

/// The extents of a convolution.
struct Shape<'g> {
    order: ChannelOrder,
    batch: i64,
    groups: i64,
    /// Channels and filters of one group.
    channels: i64,
    filters: i64,
    /// Spatial extents.
    input: Vec<i64>,
    window: Vec<i64>,
    output: Vec<i64>,
    geometry: &'g ConvGeometry,
}

impl<'g> Shape<'g> {
    fn new(
        x: &Ordered<'_, '_>,
        w: &Ordered<'_, '_>,
        y: &[i64],
        order: ChannelOrder,
        geometry: &'g ConvGeometry,
    ) -> Result<Self, EmitError> {
        let ([batch, channels, input @ ..], [filters, group_channels, window @ ..], [_, _, output @ ..]) =
            (x.dims.as_slice(), w.dims.as_slice(), y)
        else {
            return Err(EmitError::Internal("a convolution of low rank"));
        };
        let groups = channels.checked_div(*group_channels).filter(|groups| *groups > 0);
        let groups = groups.ok_or(EmitError::Internal("a convolution without groups"))?;
        Ok(Shape {
            order,
            batch: *batch,
            groups,
            channels: *group_channels,
            filters: filters / groups,
            input: input.to_vec(),
            window: window.to_vec(),
            output: output.to_vec(),
            geometry,
        })
    }

    fn spatial(&self) -> usize {
        self.output.len()
    }

    /// Zeros to add before and after each spatial axis: what the windows reach, and no more.
    fn padding(&self) -> Vec<(i64, i64)> {
        let ConvGeometry { pre_padding, stride, dilation, .. } = self.geometry;
        let axes = self.input.iter().zip(&self.window).zip(&self.output);
        axes.zip(pre_padding.iter().zip(stride.iter().zip(dilation)))
            .map(|(((input, window), output), (&pre, (stride, dilation)))| {
                let reach = (output - 1) * stride + (window - 1) * dilation + 1;
                (pre, (reach - input - pre).max(0))
            })
            .collect()
    }
}

/// The input as the convolution reads it: its channels split into groups if there are several, with the zeros around it. Split
/// first, so that the padding stands next to the convolution and fuses with it.
fn input<'c, 'b>(at: &Emitter<'c, 'b>, x: &Ordered<'c, 'b>, shape: &Shape<'_>) -> Result<Ssa<'c, 'b>, EmitError> {
    let (ssa, extents) = split_axis(at, x, 1, shape.groups)?;
    let padding = shape.padding();
    if padding.iter().all(|&(low, high)| low == 0 && high == 0) {
        return Ok(ssa);
    }
    // Where the spatial axes begin in memory.
    let spatial = match shape.order {
        ChannelOrder::First => extents.len().saturating_sub(shape.spatial()),
        ChannelOrder::Last => 1,
    };
    let mut low = vec![0; extents.len()];
    let mut high = low.clone();
    let mut padded = extents;
    for (axis, (before, after)) in (spatial..).zip(padding) {
        if let (Some(low), Some(high), Some(extent)) = (low.get_mut(axis), high.get_mut(axis), padded.get_mut(axis)) {
            (*low, *high) = (before, after);
            *extent += before + after;
        }
    }
    let block = Block::new(&vec![(at.index_type(), at.location()); padded.len()]);
    let inner = at.inside(&block);
    inner.terminate("tensor.yield", &[inner.zero(x.dtype)?])?;
    let region = Region::new();
    region.append_block(block);
    let attributes = [
        ("static_low", at.i64_array(&low)),
        ("static_high", at.i64_array(&high)),
        ("operandSegmentSizes", at.segments(&[1, 0, 0])),
    ];
    let target = at.tensor_type(&padded, x.dtype)?;
    first(at.op("tensor.pad", &[ssa], &[target], &attributes, vec![region])?)
}

/// One structured operation over all axes: n, groups, filters and output positions in the order of memory, then the sum over channels
/// and window.
fn direct<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Result<Ssa<'c, 'b>, EmitError> {
    let grouped = shape.groups > 1;
    let x_ssa = input(at, x, shape)?;
    let (w_ssa, _) = split_axis(at, w, 0, shape.groups)?;

    // Loops are named by position: the axes of the result first, then the reduction in the order of the filter.
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
    match shape.order {
        ChannelOrder::First => {
            group = grouped.then(|| new_loop(Loop::Parallel, shape.groups)).or(group);
            filter = new_loop(Loop::Parallel, shape.filters);
            output.extend(shape.output.iter().map(|&extent| new_loop(Loop::Parallel, extent)));
            channel = new_loop(Loop::Reduction, shape.channels);
            window.extend(shape.window.iter().map(|&extent| new_loop(Loop::Reduction, extent)));
        }
        ChannelOrder::Last => {
            output.extend(shape.output.iter().map(|&extent| new_loop(Loop::Parallel, extent)));
            group = grouped.then(|| new_loop(Loop::Parallel, shape.groups)).or(group);
            filter = new_loop(Loop::Parallel, shape.filters);
            window.extend(shape.window.iter().map(|&extent| new_loop(Loop::Reduction, extent)));
            channel = new_loop(Loop::Reduction, shape.channels);
        }
    }
    let result_rank = loops.iter().filter(|kind| **kind == Loop::Parallel).count();
    let result_shape: Vec<i64> = loop_extents.iter().take(result_rank).copied().collect();

    let positions: Vec<String> = output
        .iter()
        .zip(&window)
        .zip(shape.geometry.stride.iter().zip(&shape.geometry.dilation))
        .map(|((&o, &r), (stride, dilation))| format!("d{o} * {stride} + d{r} * {dilation}"))
        .collect();
    let group = group.map(dim);
    let taps: Vec<String> = window.iter().copied().map(dim).collect();
    let (x_map, w_map): (Vec<String>, Vec<String>) = match shape.order {
        ChannelOrder::First => (
            [dim(n)].into_iter().chain(group.clone()).chain([dim(channel)]).chain(positions).collect(),
            group.into_iter().chain([dim(filter), dim(channel)]).chain(taps).collect(),
        ),
        ChannelOrder::Last => (
            [dim(n)].into_iter().chain(positions).chain(group.clone()).chain([dim(channel)]).collect(),
            group.into_iter().chain([dim(filter)]).chain(taps).chain([dim(channel)]).collect(),
        ),
    };
    let rank = loops.len();
    let y_map = affine_map(rank, &(0..result_rank).map(dim).collect::<Vec<_>>());
    let init = at.zeros(&result_shape, compute)?;
    let inputs = [(x_ssa, x.dtype, affine_map(rank, &x_map)), (w_ssa, w.dtype, affine_map(rank, &w_map))];
    let ssa = at.generic(&loops, &inputs, (init, compute, y_map), |body, elements| {
        let [x_element, w_element, sum] = elements else { return Err(EmitError::Internal("a missing element")) };
        multiply_add(body, (*x_element, x.dtype), (*w_element, w.dtype), *sum, compute)
    })?;
    if grouped { merge_groups(at, ssa, &result_shape, shape, compute) } else { Ok(ssa) }
}

/// sum + x w in the compute type.
fn multiply_add<'c, 'r>(
    body: &Emitter<'c, 'r>,
    x: (Ssa<'c, 'r>, DataType),
    w: (Ssa<'c, 'r>, DataType),
    sum: Ssa<'c, 'r>,
    compute: DataType,
) -> Result<Ssa<'c, 'r>, EmitError> {
    let x = convert(body, x.0, x.1, compute)?;
    let w = convert(body, w.0, w.1, compute)?;
    let (multiply, add) =
        if compute.is_float() { ("arith.mulf", "arith.addf") } else { ("arith.muli", "arith.addi") };
    let product = body.same(multiply, &[x, w])?;
    body.same(add, &[sum, product])
}

/// The tensor with the physical axis that is the logical `axis` split into (groups, the rest), and its physical extents. One group
/// stays unsplit.
fn split_axis<'c, 'b>(
    at: &Emitter<'c, 'b>,
    tensor: &Ordered<'c, 'b>,
    axis: usize,
    groups: i64,
) -> Result<(Ssa<'c, 'b>, Vec<i64>), EmitError> {
    if groups == 1 {
        return Ok((tensor.ssa, extents(&tensor.dims, &tensor.order)?));
    }
    let mut shape = Vec::new();
    let mut reassociation = Vec::new();
    for &logical in &tensor.order {
        let extent = extent(&tensor.dims, logical)?;
        let start = shape.len();
        if logical == axis {
            shape.extend([groups, extent / groups]);
        } else {
            shape.push(extent);
        }
        reassociation.push((start..shape.len()).collect());
    }
    let ssa = reshape(at, "tensor.expand_shape", tensor.ssa, &reassociation, &shape, tensor.dtype)?;
    Ok((ssa, shape))
}

/// Merges the result's axes (groups, filters of a group) into one.
fn merge_groups<'c, 'b>(
    at: &Emitter<'c, 'b>,
    ssa: Ssa<'c, 'b>,
    from: &[i64],
    shape: &Shape<'_>,
    dtype: DataType,
) -> Result<Ssa<'c, 'b>, EmitError> {
    let group = match shape.order {
        ChannelOrder::First => 1,
        ChannelOrder::Last => 1 + shape.spatial(),
    };
    let mut target = Vec::new();
    let mut reassociation = Vec::new();
    let mut axis = 0;
    while let Some(&extent) = from.get(axis) {
        if axis == group {
            target.push(extent * from.get(axis + 1).copied().unwrap_or(1));
            reassociation.push(vec![axis, axis + 1]);
            axis += 2;
        } else {
            target.push(extent);
            reassociation.push(vec![axis]);
            axis += 1;
        }
    }
    reshape(at, "tensor.collapse_shape", ssa, &reassociation, &target, dtype)
}
