//! The gradients of a convolution.
//!
//! The gradient with respect to x has two forms:
//!
//! - With stride 1 it is a convolution of dy, with zeros around it, by the filter rotated by 180°
//!   with its two channel axes exchanged.
//! - With a larger stride, dy would need zeros between its elements too. Most products would be
//!   with these zeros, and an infinity in w would make NaN where no window is. So the product of dy
//!   and the filter is a matmul, and each element of dx sums the products of the windows that cover
//!   it ([`super::collected`]).
//!
//! On MI300 most gradients with respect to x are kernels that rotini writes ([`super::dgrad`]).
//!
//! The gradient with respect to w is a matmul: dy times the patches of x, summed over all
//! positions.

use super::direct;
use super::named::{Axis, Dim, Tensor, between, sum};
use super::shape::Shape;
use crate::counts::product;
use crate::ir::{Emitter, IntegerPredicate};
use crate::mlir::Value as Ssa;
use crate::sums::{self, Summation};
use crate::target::Target;
use crate::value::{Ordered, extent, extents, position};
use rotini_graph::{ConvGeometry, ConvMode, DataType};

/// The filter and the geometry with which a gradient with respect to x is a convolution.
pub(super) struct Turned<'c> {
    pub(super) w: Ordered<'c>,
    pub(super) geometry: ConvGeometry,
}

/// Rotates the filter for the gradient with respect to x, and computes the geometry. `shape` is
/// that of the forward convolution.
pub(super) fn turned<'c>(at: &Emitter<'c>, w: &Ordered<'c>, shape: &Shape<'_>) -> Turned<'c> {
    Turned {
        w: exchanged(at, w, shape),
        geometry: ConvGeometry {
            pre_padding: shape.zeros_before(),
            ..shape.turned_geometry()
        },
    }
}

/// Returns the number of elements of all tensors that [`turned`] makes from the operands.
pub(super) fn turned_elements(shape: &Shape<'_>) -> Option<u64> {
    let dy = product(&shape.spread())?.checked_mul(product(&[shape.batch, shape.groups, shape.filters])?)?;
    dy.checked_add(shape.filter_elements()?)
}

impl Shape<'_> {
    /// Returns whether the gradient with respect to x is a convolution of dy: the stride is one,
    /// and no element of dy has to be cut off.
    pub(super) fn is_turned(&self) -> bool {
        self.geometry.stride.iter().all(|&stride| stride == 1) && self.zeros_before().iter().all(|&zeros| zeros >= 0)
    }

    /// Returns the zeros before the first element of dy that the windows of the rotated filter
    /// need; negative where elements of dy would have to be cut off.
    fn zeros_before(&self) -> Vec<i64> {
        let ConvGeometry {
            pre_padding, dilation, ..
        } = self.geometry;
        let axes = self.window.iter().zip(dilation).zip(pre_padding);
        axes.map(|((window, dilation), pre)| (window - 1) * dilation - pre)
            .collect()
    }

    /// Returns the geometry of the rotated filter over the padded dy.
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

    /// Returns the spatial extents of dy padded with all that the windows of the rotated filter
    /// cover.
    pub(super) fn spread(&self) -> Vec<i64> {
        let axes = self.input.iter().zip(&self.window).zip(&self.geometry.dilation);
        axes.map(|((input, window), dilation)| input + (window - 1) * dilation)
            .collect()
    }
}

/// Returns w rotated by 180°, with filters and channels exchanged within each group. If the
/// convolution itself reads the filter reversed, the taps keep their order.
fn exchanged<'c>(at: &Emitter<'c>, w: &Ordered<'c>, shape: &Shape<'_>) -> Ordered<'c> {
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
        return Ordered::new(
            w.ssa,
            w.order.iter().map(|&axis| swapped(axis)).collect(),
            w.dtype,
            dims,
        );
    }
    // The result has the memory order of w.
    let order: Vec<usize> = w.order.clone();
    let ssa = at.tabulate(&extents(&dims, &order), w.dtype, || {
        let index = at.index_type();
        let constant = |value: i64| at.integer(value, index);
        let at_axis = |axis| at.loop_index(position(&order, axis));
        let (filter, channel) = (at_axis(0), at_axis(1));
        let channels = constant(shape.channels);
        let group = filter.divui(channels);
        let first = group * constant(shape.filters);
        let source_filter = first + channel;
        let source_channel = filter.remui(channels);
        let mut indices = Vec::new();
        for &axis in &w.order {
            indices.push(match axis {
                0 => source_filter,
                1 => source_channel,
                spatial if shape.is_reversed() => at_axis(spatial),
                spatial => {
                    let last = constant(extent(&w.dims, spatial) - 1);
                    last - at_axis(spatial)
                }
            });
        }
        at.extract(w.ssa, &indices, w.dtype)
    });
    Ordered::new(at.barrier(ssa), order, w.dtype, dims)
}

/// Returns the gradient with respect to w: row-major K C window, or K window C if `is_last`.
pub(super) fn filter<'c>(
    at: &Emitter<'c>,
    x: &Ordered<'c>,
    dy: &Ordered<'c>,
    shape: &Shape<'_>,
    (compute, target, is_last): (DataType, &Target, bool),
) -> Ssa<'c> {
    let spatial = shape.spatial();
    let (group, batch) = (shape.group(), (Axis::Batch, shape.batch));
    let (channel, filter) = ((Axis::Channel, shape.channels), (Axis::Filter, shape.filters));
    let (position, term) = ((Axis::Position, shape.positions()), (Axis::Channel, shape.terms()));
    let outer = vec![1; group.len()];

    let terms = if is_last {
        between(&[], Axis::Tap, &shape.window, &[channel])
    } else {
        between(&[channel], Axis::Tap, &shape.window, &[])
    };
    let taps = [&group[..], &terms, &[batch]].concat();
    let patches = patches(at, x, shape, &between(&taps, Axis::Spatial, &shape.output, &[]));
    let runs = [&outer[..], &[1 + spatial, 1 + spatial]].concat();
    let patches = patches
        .merged(at, &[&group[..], &[term, position]].concat(), &runs)
        .behind_barrier(at);

    let axes = between(
        &[&group[..], &[filter, batch]].concat(),
        Axis::Spatial,
        &shape.output,
        &[],
    );
    let dy = Tensor::output(at, dy, shape.groups).copied(at, &axes, dy.dtype, shape.geometry);
    let runs = [&outer[..], &[1, 1 + spatial]].concat();
    let dy = dy
        .merged(at, &[&group[..], &[filter, position]].concat(), &runs)
        .behind_barrier(at);

    let result = [&group[..], &[filter, term]].concat();
    let results: Vec<i64> = result.iter().map(|&(_, extent)| extent).collect();
    let dw = match Summation::of(target, compute, position.1, &results) {
        Summation::AtOnce => sum(at, [&patches, &dy], &result, &[position], shape.geometry, compute),
        Summation::Blocks(block) => {
            // In the partial sums, the axis of blocks takes the name of the batch axis.
            let (blocks, position) = ((Axis::Batch, position.1 / block), (Axis::Position, block));
            let runs = [&outer[..], &[1, 2]].concat();
            let patches = patches.split(at, &[&group[..], &[term, blocks, position]].concat(), &runs);
            let dy = dy.split(at, &[&group[..], &[filter, blocks, position]].concat(), &runs);
            let partial = [&[blocks], &result[..]].concat();
            let partial = sum(at, [&patches, &dy], &partial, &[position], shape.geometry, compute);
            Tensor::new(
                sums::blocks(at, (partial.ssa, blocks.1), &results, compute),
                compute,
                result,
            )
        }
        Summation::Wide => {
            let wide = sum(at, [&patches, &dy], &result, &[position], shape.geometry, DataType::F64);
            let ssa = sums::in_type(at, wide.ssa, &results, DataType::F64, compute);
            Tensor::new(ssa, compute, result)
        }
    };
    let axes = [&group[..], &[filter], &terms].concat();
    let dw = dw.split(at, &axes, &[&outer[..], &[1, 1 + spatial]].concat());
    if group.is_empty() {
        return dw.ssa;
    }
    let merged = (Axis::Filter, shape.groups * shape.filters);
    let runs = [vec![2], vec![1; 1 + spatial]].concat();
    dw.merged(at, &[&[merged], &terms[..]].concat(), &runs).ssa
}

/// Returns the patches of x: the element under each tap of each window, zero outside of x. The
/// bounds are checked here because a padded copy of x would be another pass over memory.
fn patches<'c>(at: &Emitter<'c>, x: &Ordered<'c>, shape: &Shape<'_>, axes: &[Dim]) -> Tensor<'c> {
    let geometry = shape.geometry;
    let extents: Vec<i64> = axes.iter().map(|&(_, extent)| extent).collect();
    let ssa = at.tabulate(&extents, x.dtype, || {
        let index = at.index_type();
        let constant = |value: i64| at.integer(value, index);
        let position = |axis: Axis| axes.iter().position(|&(candidate, _)| candidate == axis);
        let here = |axis: Axis| match position(axis) {
            Some(position) => at.loop_index(position),
            None => constant(0),
        };
        let mut inside: Option<Ssa<'_>> = None;
        let mut indices = Vec::new();
        for &axis in &x.order {
            let Some(spatial) = axis.checked_sub(2) else {
                indices.push(if axis == 0 {
                    here(Axis::Batch)
                } else {
                    let first = here(Axis::Group) * constant(shape.channels);
                    first + here(Axis::Channel)
                });
                continue;
            };
            let along = |axis: Axis, step: &[i64]| here(axis) * constant(extent(step, spatial));
            let mut tap = along(Axis::Tap(spatial), &geometry.dilation);
            if shape.is_reversed() {
                let last = (extent(&shape.window, spatial) - 1) * extent(&geometry.dilation, spatial);
                tap = constant(last) - tap;
            }
            let reached = along(Axis::Spatial(spatial), &geometry.stride) + tap;
            // Unsigned: an index below zero becomes larger than any extent.
            let zeros = constant(extent(&geometry.pre_padding, spatial));
            let source = reached - zeros;
            let last = constant(extent(&x.dims, axis) - 1);
            let is_there = at.compare_integers(IntegerPredicate::AtMost, source, last);
            indices.push(is_there.select(source, constant(0)));
            inside = Some(match inside {
                Some(others) => others & is_there,
                None => is_there,
            });
        }
        masked(at, inside, at.extract(x.ssa, &indices, x.dtype), x.dtype)
    });
    Tensor::new(ssa, x.dtype, axes.to_vec())
}

/// Returns the element, or zero where the condition is false.
fn masked<'c>(body: &Emitter<'c>, condition: Option<Ssa<'c>>, element: Ssa<'c>, dtype: DataType) -> Ssa<'c> {
    match condition {
        Some(condition) => {
            let zero = body.zero(dtype);
            condition.select(element, zero)
        }
        None => element,
    }
}

/// Returns the number of elements of all tensors that [`filter`] makes from the operands, each
/// tensor counted once.
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
