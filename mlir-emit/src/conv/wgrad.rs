//! The gradient with respect to w on AMD GPUs, without patches in memory and with the sum over several workgroups.
//!
//! What is summed over, images and positions, is to lie innermost in both operands: matrix cores read it side by side. Where it does not,
//! operands are copied first.
//!
//! - A window of several taps: images innermost. Then the gradient is a convolution itself: of x by dy, whose positions are the taps of the
//!   window, whose channels are images.
//! - A window of one tap: a product of matrices, of x at the positions that count and dy.

use super::operand::{number, padded, reached};
use super::shape::{Shape, channels_last};
use crate::EmitError;
use crate::contract::{half, scheduled_sum};
use crate::ir::{Emitter, dim};
use crate::value::{Ordered, extent, reshape};
use rotini_graph::DataType;
use rotini_schedule::{Machine, Product, Schedule, split};

/// Images that lie side by side have to fill a step of the matrix cores.
const STEP: i64 = 16;
/// Bits of a row of positions have to be a multiple of this, so that rows begin where wide loads can.
const WORD: i64 = 64;

/// Rows of positions that are read where they are have so many positions at least: a workgroup sums a few rows.
const LONG_ROW: i64 = 784;
/// The most results whose parts, one for each image, are worth not to copy the operands.
const MOST_IN_PLACE: u64 = 1 << 16;

/// The gradient in the order of its loops, if there is such a form for these operands.
pub(super) fn lower<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, dy]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    (compute, machine): (DataType, &Machine),
) -> Result<Option<Ordered<'c, 'b>>, EmitError> {
    if half([x.dtype, dy.dtype], compute).is_none() || shape.groups != 1 || shape.is_reversed() {
        return Ok(None);
    }
    let is_one_tap = shape.window.iter().all(|&extent| extent == 1);
    let is_padded = shape.padding().iter().any(|&amount| amount != (0, 0));
    // With unit loops or axes the compiler is wrong about padding (`Quirk::PaddingOfUnitLoops`,
    // `Quirk::PaddingOfChannels`, `Quirk::UnitPadding`).
    let has_taps = shape
        .window
        .iter()
        .chain(&shape.output)
        .chain(&shape.input)
        .all(|&extent| extent > 1);
    let are_many = shape.channels > 1 && shape.filters > 1;
    let steps = Product {
        count: number(shape.window.iter().product())?,
        rows: number(shape.filters)?,
        columns: number(shape.channels)?,
        terms: number(shape.positions())?,
    };
    if is_one_tap && !is_padded && are_many {
        return product(at, [x, dy], shape, (machine, &steps)).map(Some);
    }
    if shape.spatial() == 2 && has_taps && are_many && shape.batch % STEP == 0 {
        return convolution(at, [x, dy], shape, (machine, &steps)).map(Some);
    }
    Ok(None)
}

/// The gradient of a window of several taps: row-major K window C.
fn convolution<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, dy]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    (machine, steps): (&Machine, &Product),
) -> Result<Ordered<'c, 'b>, EmitError> {
    let spatial = shape.spatial();
    let order: Vec<usize> = (1..spatial + 2).chain([0]).collect();
    let (x, dy) = (x.in_order(at, &order)?, dy.in_order(at, &order)?);
    // The copies stay copies: what pads them is the convolution's part.
    let padded = padded(at, &x, shape, 1)?;

    // Loops: filter, taps, channel; positions, images.
    let (first_tap, channel) = (1, spatial + 1);
    let (first_place, image) = (channel + 1, channel + 1 + spatial);
    let rank = image + 1;
    let geometry = shape.geometry;
    let places = (0..spatial).zip(geometry.stride.iter().zip(&geometry.dilation));
    let reached = places.map(|(axis, (stride, dilation))| {
        format!(
            "d{} * {dilation} + d{} * {stride}",
            first_tap + axis,
            first_place + axis
        )
    });
    let x_map: Vec<String> = [dim(channel)].into_iter().chain(reached).chain([dim(image)]).collect();
    let dy_map: Vec<String> = [dim(0)].into_iter().chain((first_place..rank).map(dim)).collect();
    let results = [&[shape.filters], shape.window.as_slice(), &[shape.channels]].concat();
    let summed = [shape.output.as_slice(), &[shape.batch]].concat();
    let ssa = scheduled_sum(
        at,
        &shared(machine, steps, &summed)?,
        [(padded, x.dtype, x_map), (dy.ssa, dy.dtype, dy_map)],
        (&results, &summed),
    )?;
    Ok(Ordered {
        ssa,
        order: [0].into_iter().chain(2..spatial + 2).chain([1]).collect(),
        dtype: DataType::F32,
        dims: [&[shape.filters, shape.channels], shape.window.as_slice()].concat(),
    })
}

/// How the operands of a product for a window of one tap lie.
#[derive(Clone, Copy)]
enum OneTap {
    /// A matrix for each image, positions innermost: in place.
    Images,
    /// One matrix, channels innermost: in place.
    Rows,
    /// One matrix, positions innermost, as copies are.
    Columns,
}

/// The gradient of a window of one tap: row-major K C, with that window's axes.
fn product<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, dy]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    (machine, steps): (&Machine, &Product),
) -> Result<Ordered<'c, 'b>, EmitError> {
    let spatial = shape.spatial();
    let x = &reached(at, x, shape)?;
    let pixels: i64 = shape.output.iter().product();
    let first: Vec<usize> = (0..spatial + 2).collect();
    let by_channel: Vec<usize> = [1, 0].into_iter().chain(2..spatial + 2).collect();
    let images_last: Vec<usize> = (1..spatial + 2).chain([0]).collect();
    let is_in_rows = pixels * i64::from(x.dtype.bits()) % WORD == 0;
    let last = channels_last(spatial + 2);
    let lie_in = |order: &[usize]| x.lies_in(order) && dy.lies_in(order);
    let is_small = steps.rows.saturating_mul(steps.columns) <= MOST_IN_PLACE && pixels >= LONG_ROW;
    let form = if lie_in(&first) && is_in_rows && is_small {
        // Rows of positions are side by side as they are.
        OneTap::Images
    } else if lie_in(&last) {
        OneTap::Rows
    } else {
        OneTap::Columns
    };
    let order = match form {
        OneTap::Images => &first,
        OneTap::Rows => &last,
        OneTap::Columns if lie_in(&first) && shape.batch % STEP == 0 => &images_last,
        OneTap::Columns => &by_channel,
    };
    let positions = shape.batch * pixels;
    let merged = |operand: &Ordered<'c, 'b>| {
        let operand = operand.in_order(at, order)?;
        let channels = extent(&operand.dims, 1)?;
        let all = |range: std::ops::Range<usize>| range.collect::<Vec<_>>();
        let (groups, dims) = match form {
            OneTap::Images => (
                vec![vec![0], vec![1], all(2..spatial + 2)],
                vec![shape.batch, channels, pixels],
            ),
            OneTap::Rows => (vec![all(0..spatial + 1), vec![spatial + 1]], vec![positions, channels]),
            OneTap::Columns => (vec![vec![0], all(1..spatial + 2)], vec![channels, positions]),
        };
        let ssa = reshape(at, "tensor.collapse_shape", operand.ssa, &groups, &dims, operand.dtype)?;
        Ok::<_, EmitError>(Ordered { ssa, ..operand })
    };
    let (x, dy) = (merged(x)?, merged(dy)?);
    let summed = match form {
        OneTap::Images => vec![shape.batch, pixels],
        OneTap::Rows | OneTap::Columns => vec![positions],
    };
    let read = |own: usize| match form {
        OneTap::Images => vec![dim(2), dim(own), dim(3)],
        OneTap::Rows => vec![dim(2), dim(own)],
        OneTap::Columns => vec![dim(own), dim(2)],
    };
    let results = [shape.filters, shape.channels];
    let schedule = shared(machine, steps, &summed)?;
    let factors = [(dy.ssa, dy.dtype, read(0)), (x.ssa, x.dtype, read(1))];
    let ssa = scheduled_sum(at, &schedule, factors, (&results, &summed))?;
    let dims = [&results[..], shape.window.as_slice()].concat();
    let groups = [vec![0], (1..spatial + 2).collect()];
    Ok(Ordered {
        ssa: reshape(at, "tensor.expand_shape", ssa, &groups, &dims, DataType::F32)?,
        order: first,
        dtype: DataType::F32,
        dims,
    })
}

/// How the sums over these loops are shared.
fn shared(machine: &Machine, steps: &Product, summed: &[i64]) -> Result<Schedule, EmitError> {
    let loops = summed
        .iter()
        .map(|&extent| number(extent))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Schedule {
        split: split(machine, steps, &loops),
        tiles: None,
    })
}
