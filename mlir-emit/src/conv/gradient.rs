//! The gradients of a convolution.
//!
//! With respect to x it is a convolution itself: of dy, its elements as far apart as the windows were and zeros between them, with the
//! filter turned around and its two kinds of channels exchanged. With respect to w it is a matmul: dy times the patches of x, summed
//! over all positions.

use super::named::{Axis, Dim, Tensor, between, sum};
use super::{Shape, direct, product};
use crate::EmitError;
use crate::ir::{Emitter, Relation};
use crate::value::{Ordered, extent, extents};
use melior::ir::Value as Ssa;
use rotini_graph::{ConvGeometry, ConvMode, DataType};

/// The convolution that a gradient with respect to x is.
pub(super) struct Turned<'c, 'b> {
    pub(super) dy: Ordered<'c, 'b>,
    pub(super) w: Ordered<'c, 'b>,
    pub(super) geometry: ConvGeometry,
}

/// Prepares the operands of the gradient with respect to x, whose shape is that of the forward convolution.
pub(super) fn turned<'c, 'b>(
    at: &Emitter<'c, 'b>,
    dy: Ordered<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
) -> Result<Turned<'c, 'b>, EmitError> {
    let stride = &shape.geometry.stride;
    let before = shape.zeros_before();
    let is_plain = stride.iter().all(|&stride| stride == 1) && before.iter().all(|&zeros| zeros >= 0);
    let (dy, pre_padding) = if is_plain {
        (dy, before)
    } else {
        (spread(at, &dy, shape)?, vec![0; shape.spatial()])
    };
    Ok(Turned {
        dy,
        w: exchanged(at, w, shape)?,
        geometry: ConvGeometry {
            pre_padding,
            ..shape.turned_geometry()
        },
    })
}

/// The elements of what [`turned`] makes of the operands.
pub(super) fn turned_elements(shape: &Shape<'_>) -> Option<u64> {
    let dy = product(&shape.spread())?.checked_mul(product(&[shape.batch, shape.groups, shape.filters])?)?;
    let w = product(&shape.window)?.checked_mul(product(&[shape.groups, shape.filters, shape.channels])?)?;
    dy.checked_add(w)
}

impl Shape<'_> {
    /// Zeros before the first element of dy, for the windows of the turned filter; fewer than none where dy is cut.
    fn zeros_before(&self) -> Vec<i64> {
        let ConvGeometry {
            pre_padding, dilation, ..
        } = self.geometry;
        let axes = self.window.iter().zip(dilation).zip(pre_padding);
        axes.map(|((window, dilation), pre)| (window - 1) * dilation - pre)
            .collect()
    }

    /// The geometry of the turned filter's windows over dy with everything that they reach.
    pub(super) fn turned_geometry(&self) -> ConvGeometry {
        let none = vec![0; self.spatial()];
        ConvGeometry {
            pre_padding: none.clone(),
            post_padding: none,
            stride: vec![1; self.spatial()],
            dilation: self.geometry.dilation.clone(),
            mode: ConvMode::CrossCorrelation,
        }
    }

    /// Spatial extents of dy with everything that the windows of the turned filter reach.
    pub(super) fn spread(&self) -> Vec<i64> {
        let axes = self.input.iter().zip(&self.window).zip(&self.geometry.dilation);
        axes.map(|((input, window), dilation)| input + (window - 1) * dilation)
            .collect()
    }
}

/// dy with zeros between its elements and around them, and without those that no window reaches.
fn spread<'c, 'b>(at: &Emitter<'c, 'b>, dy: &Ordered<'c, 'b>, shape: &Shape<'_>) -> Result<Ordered<'c, 'b>, EmitError> {
    let mut dims = dy.dims.clone();
    for (dim, extent) in dims.iter_mut().skip(2).zip(shape.spread()) {
        *dim = extent;
    }
    let before = shape.zeros_before();
    let ssa = at.tabulate(&extents(&dims, &dy.order)?, dy.dtype, |body| {
        let index = body.index_type();
        let mut inside: Option<Ssa<'_, '_>> = None;
        let mut indices = Vec::new();
        for (position, &axis) in dy.order.iter().enumerate() {
            let here = body.loop_index(position)?;
            let Some(spatial) = axis.checked_sub(2) else {
                indices.push(here);
                continue;
            };
            let (zeros, stride) = (extent(&before, spatial)?, extent(&shape.geometry.stride, spatial)?);
            // Unsigned: what lies before the first element is far behind the last.
            let moved = body.same("arith.subi", &[here, body.integer(zeros, index)?])?;
            let stride = body.integer(stride, index)?;
            let source = body.same("arith.divui", &[moved, stride])?;
            let rest = body.same("arith.remui", &[moved, stride])?;
            let last = extent(&dy.dims, axis)? - 1;
            let is_element = body.compare_indices(Relation::Equal, rest, body.integer(0, index)?)?;
            let is_there = body.compare_indices(Relation::AtMost, source, body.integer(last, index)?)?;
            let both = body.same("arith.andi", &[is_element, is_there])?;
            indices.push(body.one("arith.select", &[both, source, body.integer(0, index)?], index, &[])?);
            inside = Some(match inside {
                Some(others) => body.same("arith.andi", &[others, both])?,
                None => both,
            });
        }
        masked(
            body,
            inside,
            body.extract(at.captured(dy.ssa), &indices, dy.dtype)?,
            dy.dtype,
        )
    })?;
    Ok(Ordered {
        ssa: at.barrier(ssa)?,
        order: dy.order.clone(),
        dtype: dy.dtype,
        dims,
    })
}

/// w turned around, its filters and channels exchanged within each group.
fn exchanged<'c, 'b>(
    at: &Emitter<'c, 'b>,
    w: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
) -> Result<Ordered<'c, 'b>, EmitError> {
    let mut dims = w.dims.clone();
    if let [filters, channels, ..] = dims.as_mut_slice() {
        *filters = shape.groups * shape.channels;
        *channels = shape.filters;
    }
    let swapped = |axis: usize| match axis {
        0 => 1,
        1 => 0,
        spatial => spatial,
    };
    if shape.groups == 1 && shape.window.iter().all(|&extent| extent == 1) {
        return Ok(Ordered {
            ssa: w.ssa,
            order: w.order.iter().map(|&axis| swapped(axis)).collect(),
            dtype: w.dtype,
            dims,
        });
    }
    // In the order of w, each axis in the place of the one that it was.
    let order: Vec<usize> = w.order.clone();
    let ssa = at.tabulate(&extents(&dims, &order)?, w.dtype, |body| {
        let index = body.index_type();
        let constant = |value: i64| body.integer(value, index);
        let at_axis = |axis: usize| {
            let position = order.iter().position(|&candidate| candidate == axis);
            body.loop_index(position.ok_or(EmitError::Internal("a filter without an axis"))?)
        };
        let (filter, channel) = (at_axis(0)?, at_axis(1)?);
        let channels = constant(shape.channels)?;
        let group = body.same("arith.divui", &[filter, channels])?;
        let first = body.same("arith.muli", &[group, constant(shape.filters)?])?;
        let source_filter = body.same("arith.addi", &[first, channel])?;
        let source_channel = body.same("arith.remui", &[filter, channels])?;
        let mut indices = Vec::new();
        for &axis in &w.order {
            indices.push(match axis {
                0 => source_filter,
                1 => source_channel,
                spatial => {
                    let last = constant(extent(&w.dims, spatial)? - 1)?;
                    body.same("arith.subi", &[last, at_axis(spatial)?])?
                }
            });
        }
        body.extract(at.captured(w.ssa), &indices, w.dtype)
    })?;
    Ok(Ordered {
        ssa: at.barrier(ssa)?,
        order,
        dtype: w.dtype,
        dims,
    })
}

/// The gradient with respect to w: row-major K C window.
pub(super) fn filter<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    dy: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    compute: DataType,
) -> Result<Ssa<'c, 'b>, EmitError> {
    let spatial = shape.spatial();
    let (group, batch) = (shape.group(), (Axis::Batch, shape.batch));
    let (channel, filter) = ((Axis::Channel, shape.channels), (Axis::Filter, shape.filters));
    let (position, term) = ((Axis::Position, shape.positions()), (Axis::Channel, shape.terms()));
    let outer = vec![1; group.len()];

    let taps = between(&[&group[..], &[channel]].concat(), Axis::Tap, &shape.window, &[batch]);
    let patches = patches(at, x, shape, &between(&taps, Axis::Spatial, &shape.output, &[]))?;
    let runs = [&outer[..], &[1 + spatial, 1 + spatial]].concat();
    let patches = patches
        .merged(at, &[&group[..], &[term, position]].concat(), &runs)?
        .behind_barrier(at)?;

    let axes = between(
        &[&group[..], &[filter, batch]].concat(),
        Axis::Spatial,
        &shape.output,
        &[],
    );
    let dy = Tensor::output(at, dy, shape.groups)?.copied(at, &axes, dy.dtype, shape.geometry)?;
    let runs = [&outer[..], &[1, 1 + spatial]].concat();
    let dy = dy
        .merged(at, &[&group[..], &[filter, position]].concat(), &runs)?
        .behind_barrier(at)?;

    let result = [&group[..], &[filter, term]].concat();
    let dw = sum(at, [&patches, &dy], &result, &[position], shape.geometry, compute)?;
    let axes = between(
        &[&group[..], &[filter, channel]].concat(),
        Axis::Tap,
        &shape.window,
        &[],
    );
    let dw = dw.split(at, &axes, &[&outer[..], &[1, 1 + spatial]].concat())?;
    if group.is_empty() {
        return Ok(dw.ssa);
    }
    let merged = (Axis::Filter, shape.groups * shape.filters);
    let runs = [vec![2], vec![1; 1 + spatial]].concat();
    Ok(dw
        .merged(at, &between(&[merged, channel], Axis::Tap, &shape.window, &[]), &runs)?
        .ssa)
}

/// What each window has of x under each tap, zeros outside. Not a copy of a padded x: IREE 3.13's GPU code reads past the end of that
/// (seen executed on an emulated gfx942).
fn patches<'c, 'b>(
    at: &Emitter<'c, 'b>,
    x: &Ordered<'c, 'b>,
    shape: &Shape<'_>,
    axes: &[Dim],
) -> Result<Tensor<'c, 'b>, EmitError> {
    let geometry = shape.geometry;
    let extents: Vec<i64> = axes.iter().map(|&(_, extent)| extent).collect();
    let ssa = at.tabulate(&extents, x.dtype, |body| {
        let index = body.index_type();
        let constant = |value: i64| body.integer(value, index);
        let position = |axis: Axis| axes.iter().position(|&(candidate, _)| candidate == axis);
        let here = |axis: Axis| match position(axis) {
            Some(position) => body.loop_index(position),
            None => constant(0),
        };
        let mut inside: Option<Ssa<'_, '_>> = None;
        let mut indices = Vec::new();
        for &axis in &x.order {
            let Some(spatial) = axis.checked_sub(2) else {
                indices.push(if axis == 0 {
                    here(Axis::Batch)?
                } else {
                    let first = body.same("arith.muli", &[here(Axis::Group)?, constant(shape.channels)?])?;
                    body.same("arith.addi", &[first, here(Axis::Channel)?])?
                });
                continue;
            };
            let along =
                |axis: Axis, step: &[i64]| body.same("arith.muli", &[here(axis)?, constant(extent(step, spatial)?)?]);
            let reached = body.same(
                "arith.addi",
                &[
                    along(Axis::Spatial(spatial), &geometry.stride)?,
                    along(Axis::Tap(spatial), &geometry.dilation)?,
                ],
            )?;
            // Unsigned: what lies before the first element is far behind the last.
            let zeros = constant(extent(&geometry.pre_padding, spatial)?)?;
            let source = body.same("arith.subi", &[reached, zeros])?;
            let last = constant(extent(&x.dims, axis)? - 1)?;
            let is_there = body.compare_indices(Relation::AtMost, source, last)?;
            indices.push(body.one("arith.select", &[is_there, source, constant(0)?], index, &[])?);
            inside = Some(match inside {
                Some(others) => body.same("arith.andi", &[others, is_there])?,
                None => is_there,
            });
        }
        masked(
            body,
            inside,
            body.extract(at.captured(x.ssa), &indices, x.dtype)?,
            x.dtype,
        )
    })?;
    Ok(Tensor::new(ssa, x.dtype, axes.to_vec()))
}

/// The element, or zero where the condition does not hold.
fn masked<'c, 'r>(
    body: &Emitter<'c, 'r>,
    condition: Option<Ssa<'c, 'r>>,
    element: Ssa<'c, 'r>,
    dtype: DataType,
) -> Result<Ssa<'c, 'r>, EmitError> {
    match condition {
        Some(condition) => {
            let zero = body.zero(dtype)?;
            body.one(
                "arith.select",
                &[condition, element, zero],
                body.element_type(dtype)?,
                &[],
            )
        }
        None => Ok(element),
    }
}

/// The elements of what [`filter`] makes of the operands, each thing once.
pub(super) fn filter_elements(shape: &Shape<'_>) -> Option<u64> {
    let groups = u64::try_from(shape.groups).ok()?;
    let (positions, terms) = (
        u64::try_from(shape.positions()).ok()?,
        u64::try_from(shape.terms()).ok()?,
    );
    let filters = u64::try_from(shape.filters).ok()?;
    let matrix = |rows: u64, columns: u64| rows.checked_mul(columns)?.checked_mul(groups);
    direct::elements(shape)?
        .checked_add(matrix(positions, terms)?)?
        .checked_add(matrix(filters, positions)?)?
        .checked_add(matrix(filters, terms)?)
}
