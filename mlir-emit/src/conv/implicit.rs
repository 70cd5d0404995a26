//! Forward convolutions on AMD GPUs with tiles of our own: channels innermost in both operands.
//!
//! - A window of several taps is an implicit GEMM over rows, columns, images, filters. Images are the loop beside the filters: 32 of them
//!   fill matrix instructions whatever the extents of the image are.
//! - A window of one tap is a product of matrices, of x at the positions that count; where channels do not lie innermost, one for each image.

use super::operand::{number, padded, reached};
use super::shape::{Shape, channels_first, channels_last};
use crate::EmitError;
use crate::contract::{half, scheduled_sum};
use crate::ir::{Emitter, dim};
use crate::mlir::Value as Ssa;
use crate::value::{Ordered, reshape};
use rotini_graph::DataType;
use rotini_schedule::repack::{self, Pixels, Reading};
use rotini_schedule::tiles::{self, Convolution};
use rotini_schedule::{Machine, Schedule};

/// The result and its order, if there is such a form for these operands.
pub(super) fn lower<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, w]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    (compute, machine): (DataType, &Machine),
) -> Result<Option<(Ssa<'c, 'b>, Vec<usize>)>, EmitError> {
    let Some(half) = half([x.dtype, w.dtype], compute) else {
        return Ok(None);
    };
    if shape.groups != 1 || shape.spatial() != 2 {
        return Ok(None);
    }
    let (taps, pixels): (i64, i64) = (shape.window.iter().product(), shape.pixels());
    let is_padded = shape.padding().iter().any(|&amount| amount != (0, 0));
    let axes = channels_last(x.dims.len());
    let products = number(pixels.saturating_mul(taps))?
        .saturating_mul(number(shape.channels)?)
        .saturating_mul(number(shape.filters)?);
    let read = pixels.saturating_mul(shape.channels).min(x.dims.iter().product());
    let is_last = x.lies_in(&axes);
    let problem = Pixels {
        bytes: number(read)?.saturating_mul(2),
        innermost: number(shape.output.iter().product())?,
        filter: number(w.dims.iter().product())?.saturating_mul(2),
        taps: number(taps)?,
        channels: number(shape.channels)?,
        filters: number(shape.filters)?,
        is_strided: shape.geometry.stride.iter().any(|&stride| stride > 1),
        products,
    };
    let reading = if is_last {
        Reading::InPlace
    } else {
        repack::reading(machine, &problem)
    };
    if reading == Reading::Default {
        return Ok(None);
    }
    if taps == 1 && !is_padded {
        let [pixels, image] = [pixels, shape.output.iter().product()].map(number);
        let (filters, channels) = (problem.filters, problem.channels);
        let tiles = if is_last {
            tiles::product(machine, pixels?, filters, channels)
        } else {
            tiles::per_image(machine, [number(shape.batch)?, filters, image?, channels])
        };
        let Some(tiles) = tiles else { return Ok(None) };
        let schedule = Schedule {
            split: None,
            tiles: Some((tiles, half)),
        };
        if is_last {
            return product(at, [x, w], shape, &schedule).map(Some);
        }
        return per_image(at, [x, w], shape, (&schedule, reading)).map(Some);
    }
    let [rows, columns] = shape.output.as_slice() else {
        return Ok(None);
    };
    // With unit loops or axes the compiler is wrong about padding (`Quirk::PaddingOfUnitLoops`, `Quirk::UnitPadding`). An axis with one tap
    // is read as images are, step by step.
    let has_steps = |(&window, &stride): (&i64, &i64)| window > 1 || stride == 1;
    let has_taps = shape.output.iter().chain(&shape.input).all(|&extent| extent > 1)
        && taps > 1
        && shape.window.iter().zip(&shape.geometry.stride).all(has_steps);
    let problem = Convolution {
        rows: number(*rows)?,
        columns: number(*columns)?,
        images: number(shape.batch)?,
        filters: number(shape.filters)?,
        channels: number(shape.channels)?,
        windows: shape.window.iter().filter(|&&extent| extent > 1).count(),
    };
    match tiles::convolution(machine, &problem) {
        Some(tiles) if has_taps => {
            let schedule = Schedule {
                split: None,
                tiles: Some((tiles, half)),
            };
            convolution(at, [x, w], shape, &schedule).map(Some)
        }
        _ => Ok(None),
    }
}

/// A window of several taps.
fn convolution<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, w]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    schedule: &Schedule,
) -> Result<(Ssa<'c, 'b>, Vec<usize>), EmitError> {
    let axes = channels_last(x.dims.len());
    let (x, w) = (x.in_order(at, &axes)?, w.in_order(at, &axes)?);
    let padded = padded(at, &x, shape, 1)?;
    // Loops: rows, columns, images, filters; taps of the axes that have several, channels.
    let mut summed = Vec::new();
    let (mut places, mut taps) = (Vec::new(), Vec::new());
    let steps = shape.geometry.stride.iter().zip(&shape.geometry.dilation);
    for (axis, (&window, (stride, dilation))) in shape.window.iter().zip(steps).enumerate() {
        if window > 1 {
            let tap = dim(4 + summed.len());
            places.push(format!("d{axis} * {stride} + {tap} * {dilation}"));
            taps.push(tap);
            summed.push(window);
        } else {
            places.push(dim(axis));
        }
    }
    let channel = dim(4 + summed.len());
    summed.push(shape.channels);
    let filter = if taps.len() == shape.window.len() {
        w.ssa
    } else {
        let dims = [&[shape.filters], summed.as_slice()].concat();
        let groups = [vec![0], vec![1, 2], vec![3]];
        reshape(at, "tensor.collapse_shape", w.ssa, &groups, &dims, w.dtype)?
    };
    let x_map = [vec![dim(2)], places, vec![channel.clone()]].concat();
    let w_map = [vec![dim(3)], taps, vec![channel]].concat();
    let results = [shape.output.as_slice(), &[shape.batch, shape.filters]].concat();
    let factors = [(padded, x.dtype, x_map), (filter, w.dtype, w_map)];
    let ssa = scheduled_sum(at, schedule, factors, (&results, &summed))?;
    Ok((ssa, vec![2, 3, 0, 1]))
}

/// A window of one tap.
fn product<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, w]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    schedule: &Schedule,
) -> Result<(Ssa<'c, 'b>, Vec<usize>), EmitError> {
    let axes = channels_last(x.dims.len());
    let (x, w) = (reached(at, x, shape)?.in_order(at, &axes)?, w.in_order(at, &axes)?);
    let rows = [vec![0, 1, 2], vec![3]];
    let merged = |operand: &Ordered<'c, 'b>, rows_of: i64| {
        let dims = [rows_of, shape.channels];
        let ssa = reshape(at, "tensor.collapse_shape", operand.ssa, &rows, &dims, operand.dtype)?;
        Ok::<_, EmitError>(Ordered { ssa, ..operand.clone() })
    };
    let (x, w) = (merged(&x, shape.pixels())?, merged(&w, shape.filters)?);
    let results = [shape.pixels(), shape.filters];
    let factors = [
        (x.ssa, x.dtype, vec![dim(0), dim(2)]),
        (w.ssa, w.dtype, vec![dim(1), dim(2)]),
    ];
    let ssa = scheduled_sum(at, schedule, factors, (&results, &[shape.channels]))?;
    let dims = [&[shape.batch], shape.output.as_slice(), &[shape.filters]].concat();
    let ssa = reshape(at, "tensor.expand_shape", ssa, &rows, &dims, DataType::F32)?;
    Ok((ssa, axes))
}

/// A window of one tap, into channels that do not lie innermost: a product for each image, which writes them as they lie.
fn per_image<'c, 'b>(
    at: &Emitter<'c, 'b>,
    [x, w]: [&Ordered<'c, 'b>; 2],
    shape: &Shape<'_>,
    (schedule, reading): (&Schedule, Reading),
) -> Result<(Ssa<'c, 'b>, Vec<usize>), EmitError> {
    let last = channels_last(x.dims.len());
    let (x, w) = (reached(at, x, shape)?, w.in_order(at, &last)?);
    let image: i64 = shape.output.iter().product();
    let collapsed = |operand: Ordered<'c, 'b>, groups: &[Vec<usize>], dims: &[i64]| {
        let ssa = reshape(at, "tensor.collapse_shape", operand.ssa, groups, dims, operand.dtype)?;
        Ok::<_, EmitError>(Ordered { ssa, ..operand })
    };
    let (x, x_map) = if reading == Reading::InPlace {
        let dims = [shape.batch, shape.channels, image];
        let x = x.in_order(at, &channels_first(x.dims.len()))?;
        let x = collapsed(x, &[vec![0], vec![1], vec![2, 3]], &dims)?;
        (x, vec![dim(0), dim(3), dim(2)])
    } else {
        let dims = [shape.batch, image, shape.channels];
        let x = collapsed(x.in_order(at, &last)?, &[vec![0], vec![1, 2], vec![3]], &dims)?;
        (x, vec![dim(0), dim(2), dim(3)])
    };
    let w = collapsed(w, &[vec![0, 1, 2], vec![3]], &[shape.filters, shape.channels])?;
    let results = [shape.batch, shape.filters, image];
    let factors = [(w.ssa, w.dtype, vec![dim(1), dim(3)]), (x.ssa, x.dtype, x_map)];
    let ssa = scheduled_sum(at, schedule, factors, (&results, &[shape.channels]))?;
    let dims = [&results[..2], shape.output.as_slice()].concat();
    let ssa = reshape(
        at,
        "tensor.expand_shape",
        ssa,
        &[vec![0], vec![1], vec![2, 3]],
        &dims,
        DataType::F32,
    )?;
    Ok((ssa, (0..4).collect()))
}
