//! The gradient with respect to x of a convolution with steps, phase by phase.
//!
//! Example: a window of three taps with stride 2 and one zero before. An even element of dx is reached by the tap in the middle alone, an odd one
//! by the first and the last. So dx has two phases, each a convolution of dy with stride 1 by its taps:
//!
//! ```text
//! dx[2q]     = Σ dy[q] w[1]
//! dx[2q + 1] = Σ dy[q] w[2] + dy[q + 1] w[0]
//! ```
//!
//! In general the phase r = h mod s of dx is Σ dy\[q + t\] w\[r + pre - s t\] over the steps t for which w has such a tap. Two axes have s² phases.
//! No product is computed twice, and none with a stuffed zero. A last kernel puts the phases side by side.

use super::on_gpus;
use super::operand::number;
use super::shape::{Shape, channels_last, product};
use crate::EmitError;
use crate::contract::half;
use crate::ir::{Emitter, MISSING, Relation, only};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::step;
use crate::value::{Ordered, Value, extent, extents, reshape};
use rotini_graph::{ConvGeometry, ConvMode, DataType};
use rotini_schedule::phases::Gradient;

/// Most phases: each is a kernel, and what they leave is read once more.
const MOST: i64 = 4;

/// One phase along one axis.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// The first step of dy that it reads, at most 0, and how many it reads.
    step: i64,
    steps: i64,
    /// The tap of the first step. The next step has the tap a stride before.
    tap: i64,
}

/// The phases along an axis with this stride, zeros before and window; `None` if one has no tap, or begins to read behind its
/// own place.
fn along(stride: i64, pre: i64, window: i64) -> Option<Vec<Phase>> {
    let phase = |first: i64| {
        let place = first.checked_add(pre)?;
        let last = place.checked_div_euclid(stride)?;
        let before = place.checked_sub(window)?.checked_div_euclid(stride)?;
        let step = before + 1;
        let steps = last - before;
        (step <= 0 && steps > 0).then_some(Phase {
            step,
            steps,
            tap: place - stride * step,
        })
    };
    (0..stride).map(phase).collect()
}

/// The gradient in the memory order `order` and of the type `dtype`, if there is such a form.
pub(super) fn lower<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    [dy, w]: [&Ordered<'c, 'b>; 2],
    dims: &[i64],
    (order, dtype): (&[usize], DataType),
    shape: &Shape<'_>,
    compute: DataType,
) -> Result<Option<Ordered<'c, 'b>>, EmitError> {
    let ConvGeometry {
        pre_padding,
        stride,
        dilation,
        ..
    } = shape.geometry;
    let Some(machine) = lowering.target().machine() else {
        return Ok(None);
    };
    let has_no_rest = shape
        .input
        .iter()
        .zip(stride)
        .all(|(input, stride)| input % stride == 0);
    let is_plain = shape.groups == 1 && shape.spatial() == 2 && dilation.iter().all(|&dilation| dilation == 1);
    let is_near = stride.iter().all(|&stride| stride <= MOST);
    let is_float = matches!(dtype, DataType::F32 | DataType::F16 | DataType::Bf16);
    if half([dy.dtype, w.dtype], compute).is_none() || !is_float || !is_plain || !is_near || !has_no_rest {
        return Ok(None);
    }
    let axes = stride.iter().zip(pre_padding).zip(&shape.window);
    let phases: Option<Vec<Vec<Phase>>> = axes
        .map(|((&stride, &pre), &window)| along(stride, pre, window))
        .collect();
    let Some(phases) = phases else { return Ok(None) };
    // One phase of each axis at a time.
    let mut all: Vec<Vec<Phase>> = vec![Vec::new()];
    for axis in &phases {
        all = all
            .iter()
            .flat_map(|outer| axis.iter().map(|&phase| [outer.as_slice(), &[phase]].concat()))
            .collect();
    }
    let problem = Gradient {
        images: number(shape.batch)?,
        channels: number(shape.channels)?,
        filters: number(shape.filters)?,
        positions: number(shape.positions())?,
        taps: number(shape.window.iter().product())?,
        elements: number(dims.iter().product())?,
        phases: number(stride.iter().product())?,
        row: match order {
            [.., 1] => None,
            [.., innermost] => Some(number(extent(dims, *innermost)?)?),
            [] => return Ok(None),
        },
    };
    if stride.iter().product::<i64>() > MOST || !rotini_schedule::phases::pays(machine, &problem) {
        return Ok(None);
    }
    let spatial = shape.spatial();
    let part: Vec<i64> = shape
        .input
        .iter()
        .zip(stride)
        .map(|(input, stride)| input / stride)
        .collect();
    let places = [&[shape.batch, shape.channels], part.as_slice()].concat();
    let last = channels_last(places.len());
    let at = lowering.emitter();
    let filters = filters(&at, w, &all, shape)?;
    let dy = dy.in_order(&at, &last)?;
    let mut parts = Vec::new();
    for (phase, filter) in all.iter().zip(&filters) {
        let geometry = ConvGeometry {
            pre_padding: phase.iter().map(|axis| -axis.step).collect(),
            post_padding: vec![0; spatial],
            stride: vec![1; spatial],
            dilation: vec![1; spatial],
            mode: ConvMode::CrossCorrelation,
        };
        let shape = Shape::new(&dy.dims, &filter.dims, &places, &geometry)?;
        let (ssa, order) = on_gpus(lowering, &dy, filter, &shape, compute)?;
        let sums = Ordered {
            ssa,
            order,
            dtype: compute,
            dims: places.clone(),
        };
        let stored = step::Shape {
            dims: &places,
            order: &last,
            dtype,
        };
        let stored = lowering.map(&[&Value::of(sums)], &stored, compute, |_, elements| only(elements))?;
        parts.push(at.barrier(stored.ssa)?);
    }
    let side_by_side = interleaved(lowering, &parts, (&places, stride), (dtype, compute))?;
    let ssa = at.barrier(side_by_side)?;
    let result = Ordered {
        ssa,
        order: last,
        dtype,
        dims: dims.to_vec(),
    };
    result.in_order(&at, order).map(Some)
}

/// The filter of each phase, with the channels of dx outermost and those of dy innermost. One kernel makes all of them, one behind the other.
fn filters<'c, 'b>(
    at: &Emitter<'c, 'b>,
    w: &Ordered<'c, 'b>,
    phases: &[Vec<Phase>],
    shape: &Shape<'_>,
) -> Result<Vec<Ordered<'c, 'b>>, EmitError> {
    let dims = |phase: &[Phase]| -> Vec<i64> {
        let steps = phase.iter().map(|axis| axis.steps);
        [shape.channels, shape.filters].into_iter().chain(steps).collect()
    };
    let mut ends = Vec::new();
    let mut elements = 0;
    for phase in phases {
        elements += dims(phase).iter().product::<i64>();
        ends.push(elements);
    }
    let firsts: Vec<i64> = [0].into_iter().chain(ends.iter().copied()).collect();
    let ssa = at.tabulate(&[elements], w.dtype, |body| {
        let index = body.index_type();
        let here = body.loop_index(0)?;
        let constant = |value: i64| body.integer(value, index);
        let mut chosen: Option<Vec<Ssa<'_, '_>>> = None;
        for (phase, &first) in phases.iter().zip(&firsts).rev() {
            let mut rest = body.same("arith.subi", &[here, constant(first)?])?;
            let mut digit = |extent: i64| {
                let digit = body.same("arith.remui", &[rest, constant(extent)?])?;
                rest = body.same("arith.divui", &[rest, constant(extent)?])?;
                Ok::<_, EmitError>(digit)
            };
            // The innermost first.
            let filter = digit(shape.filters)?;
            let mut taps = Vec::new();
            for (axis, &stride) in phase.iter().zip(&shape.geometry.stride).rev() {
                let steps = body.same("arith.muli", &[digit(axis.steps)?, constant(stride)?])?;
                taps.push(body.same("arith.subi", &[constant(axis.tap)?, steps])?);
            }
            let channel = digit(shape.channels)?;
            taps.reverse();
            let logical = [vec![filter, channel], taps].concat();
            chosen = Some(match chosen {
                None => logical,
                Some(later) => {
                    let last = constant(first + dims(phase).iter().product::<i64>() - 1)?;
                    let is_here = body.compare_indices(Relation::AtMost, here, last)?;
                    let pairs = logical.into_iter().zip(later);
                    pairs
                        .map(|(mine, other)| body.one("arith.select", &[is_here, mine, other], index, &[]))
                        .collect::<Result<_, _>>()?
                }
            });
        }
        w.element(at, body, &chosen.ok_or(MISSING)?)
    })?;
    let all = at.barrier(ssa)?;
    let filter = |(phase, &first): (&Vec<Phase>, &i64)| {
        let dims = dims(phase);
        let order = channels_last(dims.len());
        let flat = at.slice(all, &[first], &[dims.iter().product()], w.dtype)?;
        let axes = [(0..dims.len()).collect()];
        let ssa = reshape(
            at,
            "tensor.expand_shape",
            flat,
            &axes,
            &extents(&dims, &order)?,
            w.dtype,
        )?;
        Ok(Ordered {
            ssa,
            order,
            dtype: w.dtype,
            dims,
        })
    };
    phases.iter().zip(&firsts).map(filter).collect()
}

/// The elements of all phases side by side, channels innermost.
fn interleaved<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    parts: &[Ssa<'c, 'b>],
    (places, stride): (&[i64], &[i64]),
    (dtype, compute): (DataType, DataType),
) -> Result<Ssa<'c, 'b>, EmitError> {
    let at = lowering.emitter();
    let spatial = stride.len();
    // Two axes for each spatial one of dx: the places of a phase, and the phases.
    let mut dims = places.get(..2).unwrap_or_default().to_vec();
    for axis in 0..spatial {
        dims.extend([extent(places, axis + 2)?, extent(stride, axis)?]);
    }
    let order = channels_last(dims.len());
    let is_phase = |axis: &usize| *axis > 2 && axis % 2 == 1;
    let phases_first: Vec<usize> = order
        .iter()
        .copied()
        .filter(is_phase)
        .chain(order.iter().copied().filter(|axis| !is_phase(axis)))
        .collect();
    let shape = extents(places, &channels_last(places.len()))?;
    let stacked = at.stacked(parts, &shape, dtype)?;
    let split = [(0..spatial).collect()]
        .into_iter()
        .chain((spatial..order.len()).map(|axis| vec![axis]))
        .collect::<Vec<_>>();
    let shape = extents(&dims, &phases_first)?;
    let stacked = Value::of(Ordered {
        ssa: reshape(&at, "tensor.expand_shape", stacked, &split, &shape, dtype)?,
        order: phases_first,
        dtype,
        dims: dims.clone(),
    });
    let result = step::Shape {
        dims: &dims,
        order: &order,
        dtype,
    };
    let result = lowering.map(&[&stacked], &result, compute, |_, elements| only(elements))?;
    let merged = [vec![0]]
        .into_iter()
        .chain((0..spatial).map(|axis| vec![2 * axis + 1, 2 * axis + 2]))
        .chain([vec![2 * spatial + 1]])
        .collect::<Vec<_>>();
    let shape = merged.iter().map(|axes| {
        axes.iter()
            .map(|&axis| extent(&extents(&dims, &order)?, axis))
            .product()
    });
    let shape = shape.collect::<Result<Vec<i64>, _>>()?;
    reshape(&at, "tensor.collapse_shape", result.ssa, &merged, &shape, dtype)
}

/// The elements of what [`lower`] makes of the operands, each thing once: copies of both, the phases, and dx twice.
pub(super) fn elements(shape: &Shape<'_>) -> Option<u64> {
    let dx = product(&[shape.batch, shape.channels])?.checked_mul(product(&shape.input)?)?;
    let dy = product(&[shape.positions(), shape.filters])?;
    dx.checked_mul(3)?
        .checked_add(dy)?
        .checked_add(shape.filter_elements()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tap_is_in_the_phase_that_it_reaches() {
        for (stride, pre, window) in [
            (1, 0, 1),
            (2, 1, 3),
            (2, 0, 3),
            (2, 2, 5),
            (2, 0, 2),
            (3, 1, 4),
            (4, 2, 9),
        ] {
            let phases = along(stride, pre, window).expect("every phase has a tap");
            let mut taps = Vec::new();
            for (first, phase) in (0..).zip(&phases) {
                for step in phase.step..phase.step + phase.steps {
                    let tap = phase.tap - stride * (step - phase.step);
                    // The window at step reaches the first element of the phase with this tap.
                    assert_eq!(stride * step + tap, first + pre, "{stride} {pre} {window}");
                    taps.push(tap);
                }
            }
            taps.sort_unstable();
            assert_eq!(taps, (0..window).collect::<Vec<_>>(), "{stride} {pre} {window}");
        }
    }

    #[test]
    fn a_phase_without_taps_or_behind_its_place_has_no_form() {
        assert!(along(2, 0, 1).is_none());
        assert!(along(3, 0, 2).is_none());
        assert!(along(2, 4, 3).is_none());
        assert!(along(2, i64::MAX, 3).is_none());
    }
}
