//! The gradient of pooling.

use super::check_window;
use crate::Unsupported;
use crate::convert::{check_compute, checked_compute_type, convert};
use crate::ir::IntegerPredicate;
use crate::ir::MISSING;
use crate::lowering::Lowering;
use crate::value::Value;
use crate::windows::{Axis, Fold, Windows, divisor};
use rotini_graph::{DataType, NormalGraph, ResampleBwd};

/// Checks whether the gradient can be lowered.
pub(crate) fn check_backward(graph: &NormalGraph, compute: DataType, op: &ResampleBwd) -> Result<(), Unsupported> {
    let compute = check_compute(graph, compute, &[op.dy])?;
    if compute.is_integer() {
        return Err(Unsupported::new(format!("a gradient has no meaning in {compute}")));
    }
    check_window(&op.window)
}

/// Lowers the gradient: each element of dx is the sum over the windows that reach it, which are few
/// and adjacent.
pub(crate) fn lower_backward(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &ResampleBwd) {
    let compute = checked_compute_type(compute);
    let (dy, dx) = (lowering.settled(op.dy), lowering.tensor(op.dx));
    let index = op.index.map(|id| lowering.settled(id));
    let lists = [&op.pre_padding, &op.stride, &op.window].map(Vec::as_slice);
    let windows = Windows::new(&dx.dims, &lowering.tensor(op.dy).dims, lists);
    let axes = windows.axes();
    let order = lowering.stored_order(op.dx).unwrap_or_else(|| dy.order.clone());
    let reaching: Vec<i64> = axes.iter().map(Axis::reaching).collect();
    let fold = Fold {
        lowering,
        dims: &dx.dims,
        order: &order,
        over: &reaching,
        compute,
    };
    let sum = fold.lower(None, None, (0.0, compute), |math, places, _, so_far| {
        let inner = &places.at;
        let (mut conditions, mut starts, mut here) = (Vec::new(), Vec::new(), Vec::new());
        let mut indices = vec![places.along(0), places.along(1)];
        for (spatial, axis) in axes.iter().enumerate() {
            let (place, step) = (places.along(spatial + 2), places.folded(spatial));
            // The position in the padded x.
            let padded = place + places.constant(axis.pre);
            let window = if axis.reaching() == axis.output {
                step
            } else {
                let last = padded.divui(places.constant(axis.stride));
                last - step
            };
            let is_window = places.is_below(window, axis.output);
            let window = is_window.select(window, places.constant(0));
            let start = places.scale(window, axis.stride);
            conditions.push(is_window);
            conditions.push(places.is_below(padded - start, axis.window));
            starts.push(start - places.constant(axis.pre));
            here.push(place);
            indices.push(window);
        }
        let element = convert(inner, dy.element(inner, &indices), dy.dtype, compute);
        let share = match &index {
            Some(index) => {
                let chosen = index.element(inner, &indices);
                let chosen = chosen.index_cast(inner.index_type());
                let here = places.flat(&here, windows.input);
                conditions.push(inner.compare_integers(IntegerPredicate::Equal, chosen, here));
                element
            }
            None => element / divisor(math, places, &axes, op.resample_mode, &starts),
        };
        let counts = places.all(&conditions).expect(MISSING);
        so_far + counts.select(share, math.constant(0.0))
    });
    let carried = lowering.carry(sum, lowering.carried_type(op.dx, compute));
    lowering.define(op.dx, Value::of(carried));
}
