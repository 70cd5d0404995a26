//! The gradient with respect to x of a strided convolution, gathered from the windows that cover
//! each element.
//!
//! dy times the filter is a matrix product: the contribution of each window at each of its taps.
//! Each element of dx sums the contributions of the windows that cover it. With one filter per
//! group a contribution is a single product, which is computed where it is summed.

use super::named::{Axis, Tensor, between, sum};
use super::shape::Shape;
use crate::convert::convert;
use crate::counts::product;
use crate::ir::{Emitter, MISSING};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::Ordered;
use crate::windows::{Fold, Places};
use rotini_graph::{ConvGeometry, DataType};

impl Shape<'_> {
    /// Returns the geometry of the windows along each spatial axis.
    fn steps(&self) -> Vec<Step> {
        let ConvGeometry {
            pre_padding,
            stride,
            dilation,
            ..
        } = self.geometry;
        let axes = self
            .window
            .iter()
            .zip(&self.output)
            .zip(pre_padding.iter().zip(stride).zip(dilation));
        axes.map(|((&window, &output), ((&pre, &stride), &dilation))| Step {
            pre,
            stride,
            dilation,
            window,
            output,
        })
        .collect()
    }
}

/// Returns the gradient with respect to x in the memory order `order`. Each element is gathered
/// from the windows that cover it.
pub(super) fn collected<'c>(
    lowering: &Lowering<'_, 'c>,
    [dy, w]: [&Ordered<'c>; 2],
    dims: &[i64],
    order: &[usize],
    shape: &Shape<'_>,
    compute: DataType,
) -> Ordered<'c> {
    let at = lowering.emitter();
    // With one filter per group a contribution is a single product, which costs less than storing
    // it.
    let terms = match shape.filters {
        1 => None,
        _ => Some(shares(&at, [dy, w], shape, compute)),
    };
    let steps = shape.steps();
    let over: Vec<i64> = steps.iter().map(Step::taps).collect();
    let fold = Fold {
        lowering,
        dims,
        order,
        over: &over,
        compute,
    };
    fold.lower(None, None, (0.0, compute), |math, places, _, so_far| {
        let inner = &places.at;
        let (mut conditions, mut windows, mut taps) = (Vec::new(), Vec::new(), Vec::new());
        for (spatial, step) in steps.iter().enumerate() {
            let padded = places.along(spatial + 2) + places.constant(step.pre);
            let (window, tap, reaches) = step.reached(places, padded, places.folded(spatial));
            conditions.extend(reaches);
            windows.push(window);
            taps.push(tap);
        }
        let is_there = places.all(&conditions).expect(MISSING);
        let zero = places.constant(0);
        let (batch, channel) = (places.along(0), places.along(1));
        let channels = places.constant(shape.channels);
        let group = match terms {
            Some(_) if shape.groups == 1 => None,
            _ => Some(channel.divui(channels)),
        };
        for place in windows.iter_mut().chain(&mut taps) {
            *place = is_there.select(*place, zero);
        }
        let channel = channel.remui(channels);
        let share = match (terms, group) {
            (None, Some(group)) => {
                let at_window = [&[batch, group], windows.as_slice()].concat();
                let at_tap = [&[group, channel], taps.as_slice()].concat();
                let [dy, w] = [
                    convert(inner, dy.element(inner, &at_window), dy.dtype, compute),
                    convert(inner, w.element(inner, &at_tap), w.dtype, compute),
                ];
                dy * w
            }
            (terms, group) => {
                let places = group.into_iter().chain([batch]).chain(windows).chain(taps);
                let indices: Vec<_> = places.chain([channel]).collect();
                inner.extract(terms.expect(MISSING), &indices, compute)
            }
        };
        so_far + is_there.select(share, math.constant(0.0))
    })
}

/// Computes the contribution of each window at each of its taps: dy times the filter. Its axes are
/// group, batch, positions, taps and channels.
fn shares<'c>(at: &Emitter<'c>, [dy, w]: [&Ordered<'c>; 2], shape: &Shape<'_>, compute: DataType) -> Ssa<'c> {
    let spatial = shape.spatial();
    let (group, batch) = (shape.group(), (Axis::Batch, shape.batch));
    let (channel, filter) = ((Axis::Channel, shape.channels), (Axis::Filter, shape.filters));
    let (position, term) = ((Axis::Position, shape.positions()), (Axis::Channel, shape.terms()));
    let outer = vec![1; group.len()];
    let places = between(&[&group[..], &[batch]].concat(), Axis::Spatial, &shape.output, &[]);
    let taps = between(&[], Axis::Tap, &shape.window, &[channel]);

    let dtype = dy.dtype;
    let dy = Tensor::output(at, dy, shape.groups);
    let dy = dy.copied(at, &[&places[..], &[filter]].concat(), dtype, shape.geometry);
    let runs = [&outer[..], &[1 + spatial, 1]].concat();
    let dy = dy
        .merged(at, &[&group[..], &[position, filter]].concat(), &runs)
        .behind_barrier(at);

    let dtype = w.dtype;
    let w = Tensor::filter(at, w, shape.groups);
    let w = w.copied(at, &[&group[..], &taps, &[filter]].concat(), dtype, shape.geometry);
    let w = w
        .merged(at, &[&group[..], &[term, filter]].concat(), &runs)
        .behind_barrier(at);

    let result = [&group[..], &[position, term]].concat();
    let shares = sum(at, [&dy, &w], &result, &[filter], shape.geometry, compute).behind_barrier(at);
    let runs = [&outer[..], &[1 + spatial, 1 + spatial]].concat();
    shares.split(at, &[places, taps].concat(), &runs).ssa
}

/// Returns the number of elements of all tensors that [`collected`] makes from the operands, each
/// tensor counted once.
pub(super) fn elements(shape: &Shape<'_>) -> Option<u64> {
    let [groups, positions, terms, filters] = [shape.groups, shape.positions(), shape.terms(), shape.filters];
    let shares = if filters == 1 {
        Some(0)
    } else {
        product(&[groups, positions, terms])
    };
    shares?
        .checked_add(product(&[groups, positions, filters])?)?
        .checked_add(product(&[groups, terms, filters])?)?
        .checked_add(product(&[shape.batch, groups, shape.channels])?.checked_mul(product(&shape.input)?)?)
}

/// One spatial axis of a convolution, to find the windows that cover an element of x.
#[derive(Clone, Copy, Debug)]
struct Step {
    pre: i64,
    stride: i64,
    dilation: i64,
    window: i64,
    output: i64,
}

impl Step {
    /// Returns the number of taps to try for an element: each belongs to at most one window.
    /// Without dilation only one of `stride` neighbouring taps can, so the taps are tried in steps
    /// of `stride`.
    fn taps(&self) -> i64 {
        if self.dilation == 1 {
            self.window / self.stride + i64::from(self.window % self.stride != 0)
        } else {
            self.window
        }
    }

    /// Returns a window, its tap at the position `padded` of the padded x, and the conditions under
    /// which that window exists. The comparisons are unsigned: an index below zero becomes larger
    /// than any extent.
    fn reached<'c>(&self, places: &Places<'c>, padded: Ssa<'c>, step: Ssa<'c>) -> (Ssa<'c>, Ssa<'c>, Vec<Ssa<'c>>) {
        let split = |place: Ssa<'c>| {
            let stride = places.constant(self.stride);
            let (window, rest) = (place.divui(stride), place.remui(stride));
            (window, rest)
        };
        if self.dilation == 1 {
            let (last, rest) = split(padded);
            let tap = rest + places.scale(step, self.stride);
            let window = last - step;
            let conditions = vec![places.is_below(tap, self.window), places.is_below(window, self.output)];
            return (window, tap, conditions);
        }
        let (window, rest) = split(padded - places.scale(step, self.dilation));
        let is_first = places.is_below(rest, 1);
        (window, step, vec![is_first, places.is_below(window, self.output)])
    }
}
