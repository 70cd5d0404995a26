//! Convolutions as kernels that rotini writes: implicit GEMMs that read x in place and treat its
//! padding as zeros.
//!
//! | Convolution | x in memory | Rows | Columns | Sum |
//! |---|---|---|---|---|
//! | forward | channels innermost | positions of windows | filters | taps, channels |
//! | forward, one tap, stride 1 | channels first | filters | positions, for each image | channels |
//! | wgrad | channels innermost, or one tap, stride 1 | taps, channels | filters | positions |
//!
//! x in another memory order is copied first. With few channels in each group, the gradient with
//! respect to w is computed with merged groups, and only its diagonal blocks are kept. Example: 32
//! groups of 4 channels and 4 filters are computed as 8 groups of 16 channels and 16 filters, and a
//! quarter of the sums are kept.

use super::shape::{Shape, channels_first, channels_last};
use crate::contract::{are_halves, factor, strides};
use crate::counts::ceil_div;
use crate::deferred::Deferred;
use crate::ir::MISSING;
use crate::kernel::{Axis, DEPTHWISE_TERMS, Product, Window, parts_of_summed};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::{Ordered, extent, extents, position};
use rotini_graph::DataType;
use rotini_schedule::{Machine, gemm};

/// Channels that a lane loads at once.
pub(super) const WIDTH: i64 = 8;
/// Channels per group from which on the sums take longer than a copy of the image.
const LONG: i64 = 32;

/// Returns the result in the memory order `order`; `None` if there is no kernel for these types and
/// extents.
pub(super) fn lower<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, w]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (order, compute, machine): (&[usize], DataType, &Machine),
) -> Option<Ssa<'c>> {
    if has_depthwise_kernel([x.dtype, w.dtype], (shape, shape.channels), compute) {
        let product = implicit([x, w], shape, (order, compute));
        return depthwise(lowering, product, [x, w], (shape, machine));
    }
    if !are_halves([x.dtype, w.dtype], compute) || !has_tiles(shape) {
        return None;
    }
    let rank = x.dims.len();
    let last = channels_last(rank);
    let image: i64 = shape.input.iter().product();
    let is_first = x.lies_in(&channels_first(rank)) && !x.lies_in(&last);
    if shape.groups == 1 && shape.is_pointwise() && image % 4 == 0 && is_first {
        return lowering.kernel(machine, per_image([x, w], [0, 1], (order, compute, "conv")));
    }
    // If windows skip much of an image, its copy takes as long as the sums of few channels.
    let has_long_sums = shape.groups == 1 || shape.channels >= LONG;
    if !has_long_sums && !x.lies_in(&last) && shape.input != shape.output {
        return None;
    }
    if shape.channels % WIDTH == 0 {
        let operands = [x, w].map(|tensor| lowering.in_order(tensor, &last));
        let product = implicit(operands.each_ref().map(Deferred::layout), shape, (order, compute));
        return lowering.kernel_on(machine, product, operands);
    }
    // With few channels, as in a network's first layer, lanes load half of their width.
    let width = if shape.channels < WIDTH { WIDTH / 2 } else { WIDTH };
    let channels = ceil_div(shape.channels, width) * width;
    let operands = [
        lowering.channels_padded(x, channels)?,
        lowering.channels_padded(w, channels)?,
    ];
    let shape = Shape {
        channels,
        ..shape.clone()
    };
    let product = implicit(operands.each_ref().map(Deferred::layout), &shape, (order, compute));
    lowering.kernel_on(machine, product, operands)
}

/// Returns the axis of groups as an axis of the batch, and the strides along it in the tensors with
/// channels and with filters. Both are empty without groups.
fn groups(shape: &Shape<'_>, [channel, filter]: [i64; 2]) -> (Vec<i64>, [Vec<i64>; 2]) {
    if shape.groups == 1 {
        return Default::default();
    }
    let strides = [shape.channels * channel, shape.filters * filter];
    (vec![shape.groups], strides.map(|stride| vec![stride]))
}

/// Returns whether kernels with matrix instructions suit a convolution with these groups: several
/// groups with few channels or filters leave most of a tile unused.
pub(super) fn has_tiles(shape: &Shape<'_>) -> bool {
    shape.groups == 1 || shape.channels % WIDTH == 0 && shape.filters % WIDTH == 0
}

/// Returns whether the depthwise kernel computes a convolution with small groups, or its gradient
/// with respect to x: each sum in a single lane, without matrix instructions. `summed`: the
/// channels, or filters, of a group that are summed.
pub(super) fn has_depthwise_kernel(
    types: [DataType; 2],
    (shape, summed): (&Shape<'_>, i64),
    compute: DataType,
) -> bool {
    let is_float = matches!(types[0], DataType::F16 | DataType::Bf16 | DataType::F32);
    let mut axes = shape.window.iter().chain([&summed]);
    let terms = axes.try_fold(1, |all: i64, &extent| all.checked_mul(extent));
    let is_short = terms.is_some_and(|terms| terms <= DEPTHWISE_TERMS);
    let is_small = shape.groups > 1 && !has_tiles(shape);
    is_small && is_short && is_float && types[0] == types[1] && compute == DataType::F32
}

/// Computes the sums of a convolution by the [depthwise kernel](has_depthwise_kernel), from a
/// product that was written for the tiled kernel.
pub(super) fn depthwise<'c>(
    lowering: &Lowering<'_, 'c>,
    mut product: Product,
    [image, w]: [&Ordered<'c>; 2],
    (shape, machine): (&Shape<'_>, &Machine),
) -> Option<Ssa<'c>> {
    product.is_depthwise = true;
    product.name = format!("{}_depthwise", product.name);
    if shape.is_depthwise() && shape.filters == 1 {
        // The groups, the last axis of the batch, become the columns: lanes run along them where
        // channels are innermost.
        product.batch.pop();
        product.columns = vec![shape.groups];
        let [first, second] = &mut product.factors;
        first.strides.other = vec![extent(&strides(image), 1)];
        second.strides.own = vec![extent(&strides(w), 0)];
    }
    product.run_axis()?;
    lowering.kernel(machine, product)
}

/// The offsets and edges with which the windows of a convolution read x.
struct Image {
    /// The element that the first tap of the first window reads.
    first: i64,
    /// The stride from one position to the next, and from one tap to the next, in elements.
    steps: Vec<i64>,
    taps: Vec<i64>,
    /// For each axis along which windows extend beyond the image: its number, the image's extent,
    /// the coordinate of the first tap, and the distances between positions and between taps.
    edges: Vec<(usize, [i64; 4])>,
}

impl Image {
    fn new(x: &Ordered<'_>, shape: &Shape<'_>) -> Self {
        let strides = strides(x);
        let geometry = shape.geometry;
        let mut image = Image {
            first: 0,
            steps: Vec::new(),
            taps: Vec::new(),
            edges: Vec::new(),
        };
        for axis in 0..shape.spatial() {
            let (stride, input) = (extent(&strides, axis + 2), extent(&shape.input, axis));
            let (outputs, taps) = (extent(&shape.output, axis), extent(&shape.window, axis));
            // With a single position, or a single tap, the stride to the next one does not matter.
            let step = if outputs > 1 { extent(&geometry.stride, axis) } else { 0 };
            let dilation = if taps > 1 { extent(&geometry.dilation, axis) } else { 0 };
            let before = extent(&geometry.pre_padding, axis);
            image.steps.push(step * stride);
            image.taps.push(dilation * stride);
            image.first -= before * stride;
            if before > 0 || (outputs - 1) * step + (taps - 1) * dilation >= input {
                image.edges.push((axis, [input, -before, step, dilation]));
            }
        }
        image
    }

    /// Returns the windows outside of which a gradient with respect to the filter reads zeros: its
    /// rows are taps, and its sum is over images and positions.
    fn windows_of_taps(&self) -> Vec<Window> {
        let edges = self.edges.iter();
        edges
            .map(|&(axis, [extent, start, step, dilation])| Window {
                extent,
                start,
                own: (axis, dilation),
                sum: (axis + 1, step),
                batch: (0, 0),
            })
            .collect()
    }
}

/// Returns the implicit GEMM of a convolution whose operands both have channels innermost.
fn implicit([x, w]: [&Ordered<'_>; 2], shape: &Shape<'_>, (order, compute): (&[usize], DataType)) -> Product {
    let (from, of_filter) = (strides(x), strides(w));
    let image = Image::new(x, shape);
    let windows = image
        .edges
        .iter()
        .map(|&(axis, [extent, start, step, dilation])| Window {
            extent,
            start,
            own: (axis + 1, step),
            sum: (axis, dilation),
            batch: (0, 0),
        });
    let windows = windows.collect();
    let own = [vec![extent(&from, 0)], image.steps].concat();
    let sum = [image.taps, vec![extent(&from, 1)]].concat();
    let taps = [&of_filter[2..], &[extent(&of_filter, 1)]].concat();
    let (batch, [of_x, of_w]) = groups(shape, [extent(&from, 1), extent(&of_filter, 0)]);
    Product {
        batch,
        rows: [&[shape.batch], shape.output.as_slice()].concat(),
        columns: vec![shape.filters],
        sum: [shape.window.as_slice(), &[shape.channels]].concat(),
        terms: Vec::new(),
        chosen: None,
        factors: [
            factor(x, image.first, [of_x, own, sum], windows),
            factor(w, 0, [of_w, vec![extent(&of_filter, 0)], taps], Vec::new()),
        ],
        order: order
            .iter()
            .map(|&axis| match axis {
                0 => Axis::Row(0),
                1 => Axis::Group(0),
                spatial => Axis::Row(spatial - 1),
            })
            .collect(),
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: false,
        name: format!("conv_{}x{}_{}", shape.pixels(), shape.filters, x.dtype),
    }
}

/// Returns the gradient with respect to w, with channels innermost; `None` if there is no kernel
/// for these types and extents. `is_read`: whether other operations read the gradient.
pub(super) fn wgrad<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, dy]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (compute, machine, is_read): (DataType, &Machine, bool),
) -> Option<Ordered<'c>> {
    if !are_halves([x.dtype, dy.dtype], compute) || shape.is_reversed() {
        return None;
    }
    let taps = shape.window.iter().try_fold(1, |all: i64, &taps| all.checked_mul(taps));
    if shape.is_depthwise() && shape.filters == 1 && taps.is_some_and(|taps| taps <= DEPTHWISE_TERMS) {
        return depthwise_wgrad(lowering, [x, dy], shape, (compute, machine));
    }
    if !has_tiles(shape) {
        let merged = shape.merged_groups()?;
        let wide = Shape {
            groups: shape.groups / merged,
            channels: shape.channels * merged,
            filters: shape.filters * merged,
            ..shape.clone()
        };
        let sums = wgrad(lowering, [x, dy], &wide, (compute, machine, is_read));
        return sums.map(|sums| own_channels(lowering, &sums, (shape, merged, is_read)));
    }
    let spatial = shape.spatial();
    let last = channels_last(x.dims.len());
    // Where channels are outermost, lanes read contiguous positions.
    let are_wide = shape.output.iter().product::<i64>() % 4 == 0;
    let in_place = |is_readable: bool, tensor: &Ordered<'c>| {
        if is_readable && are_wide {
            Deferred::new(tensor)
        } else {
            lowering.in_order(tensor, &last)
        }
    };
    let operands = [in_place(shape.is_pointwise(), x), in_place(true, dy)];
    let [x, dy] = operands.each_ref().map(Deferred::layout);
    let (from, of_dy) = (strides(x), strides(dy));
    let image = Image::new(x, shape);
    let windows = image.windows_of_taps();
    let own = [image.taps, vec![extent(&from, 1)]].concat();
    let sum = [vec![extent(&from, 0)], image.steps].concat();
    let places = [&[extent(&of_dy, 0)], &of_dy[2..]].concat();
    let order: Vec<usize> = [0].into_iter().chain(2..spatial + 2).chain([1]).collect();
    let (batch, [of_x, of_filters]) = groups(shape, [extent(&from, 1), extent(&of_dy, 1)]);
    let product = Product {
        batch,
        rows: [shape.window.as_slice(), &[shape.channels]].concat(),
        columns: vec![shape.filters],
        sum: [&[shape.batch], shape.output.as_slice()].concat(),
        terms: Vec::new(),
        chosen: None,
        factors: [
            factor(x, image.first, [of_x, own, sum], windows),
            factor(dy, 0, [of_filters, vec![extent(&of_dy, 1)], places], Vec::new()),
        ],
        order: [Axis::Group(0)]
            .into_iter()
            .chain((0..=spatial).map(Axis::Row))
            .collect(),
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: false,
        name: format!("wgrad_{}x{}_{}", shape.filters, shape.channels, x.dtype),
    };
    let ssa = lowering.kernel_on(machine, product, operands)?;
    Some(Ordered::new(
        ssa,
        order,
        compute,
        [&[shape.groups * shape.filters, shape.channels], shape.window.as_slice()].concat(),
    ))
}

/// Extracts the diagonal blocks of a merged-group gradient with respect to w: for each filter, the
/// sums of the channels of its own group. `merged`: the number of groups that were merged into one.
fn own_channels<'c>(
    lowering: &Lowering<'_, 'c>,
    sums: &Ordered<'c>,
    (shape, merged, is_read): (&Shape<'_>, i64, bool),
) -> Ordered<'c> {
    let at = lowering.emitter();
    let mut dims = sums.dims.clone();
    *dims.get_mut(1).expect(MISSING) = shape.channels;
    let ssa = at.tabulate(&extents(&dims, &sums.order), sums.dtype, || {
        let constant = |number: i64| at.integer(number, at.index_type());
        let filter = at.loop_index(position(&sums.order, 0));
        let group = filter.divui(constant(shape.filters));
        let place = group.remui(constant(merged));
        let first = place * constant(shape.channels);
        let indices: Vec<_> = sums
            .order
            .iter()
            .enumerate()
            .map(|(position, &axis)| {
                let here = at.loop_index(position);
                match axis {
                    1 => here + first,
                    _ => here,
                }
            })
            .collect();
        at.extract(sums.ssa, &indices, sums.dtype)
    });
    Ordered {
        ssa: if is_read { at.barrier(ssa) } else { ssa },
        dims,
        ..sums.clone()
    }
}

/// Returns the gradient with respect to the filter of a depthwise convolution: rows are taps,
/// columns are groups.
fn depthwise_wgrad<'c>(
    lowering: &Lowering<'_, 'c>,
    [x, dy]: [&Ordered<'c>; 2],
    shape: &Shape<'_>,
    (compute, machine): (DataType, &Machine),
) -> Option<Ordered<'c>> {
    let (from, of_dy) = (strides(x), strides(dy));
    let image = Image::new(x, shape);
    let windows = image.windows_of_taps();
    let sum = [vec![extent(&from, 0)], image.steps].concat();
    let places = [&[extent(&of_dy, 0)], &of_dy[2..]].concat();
    let mut of_x = factor(x, image.first, [vec![0], image.taps, sum], windows);
    of_x.strides.other = vec![extent(&from, 1)];
    let mut product = Product {
        // The one channel of a group.
        batch: vec![1],
        rows: shape.window.clone(),
        columns: vec![shape.groups],
        sum: [&[shape.batch], shape.output.as_slice()].concat(),
        terms: Vec::new(),
        chosen: None,
        factors: [
            of_x,
            factor(dy, 0, [vec![0], vec![extent(&of_dy, 1)], places], Vec::new()),
        ],
        order: [Axis::Column(0), Axis::Batch(0)]
            .into_iter()
            .chain((0..shape.spatial()).map(Axis::Row))
            .collect(),
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: true,
        name: format!("wgrad_{}_{}_depthwise", shape.groups, x.dtype),
    };
    let parts = parts_of_summed(&product, machine)?;
    product.schedule.parts = parts;
    let ssa = lowering.kernel(machine, product)?;
    Some(Ordered::new(
        ssa,
        channels_first(x.dims.len()),
        compute,
        [&[shape.groups, 1], shape.window.as_slice()].concat(),
    ))
}

/// Returns the product of a convolution with one tap and stride 1, channels first in the image: the
/// filter times each image, over the filter's axis `sum`. It is also the gradient with respect to
/// x, with dy as the image.
pub(super) fn per_image(
    [image, w]: [&Ordered<'_>; 2],
    [own, sum]: [usize; 2],
    (order, compute, name): (&[usize], DataType, &str),
) -> Product {
    let (from, of_filter) = (strides(image), strides(w));
    let along = |strides: &[i64], axis: usize| vec![extent(strides, axis)];
    let spatial = from[2..].to_vec();
    let (batch, rows) = (extent(&image.dims, 0), extent(&w.dims, own));
    let columns = image.dims[2..].to_vec();
    let positions = columns.iter().product::<i64>() * batch;
    let of_w = [vec![0], along(&of_filter, own), along(&of_filter, sum)];
    Product {
        batch: vec![batch],
        rows: vec![rows],
        columns,
        sum: vec![extent(&w.dims, sum)],
        terms: Vec::new(),
        chosen: None,
        factors: [
            factor(w, 0, of_w, Vec::new()),
            factor(image, 0, [along(&from, 0), spatial, along(&from, 1)], Vec::new()),
        ],
        order: order
            .iter()
            .map(|&axis| match axis {
                0 => Axis::Batch(0),
                1 => Axis::Row(0),
                spatial => Axis::Column(spatial - 2),
            })
            .collect(),
        compute,
        schedule: gemm::Schedule::default(),
        is_depthwise: false,
        name: format!("{name}_images_{positions}x{rows}_{}", image.dtype),
    }
}
