//! The gradients of a normalization.

use super::statistics::{Statistics, average, normal, save_sums, sum};
use crate::counts::exactly;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::step::lacking;
use crate::value::Value;
use rotini_graph::{DataType, TensorId};

/// The operands of the gradients, at one position.
pub(super) struct Parts<'c> {
    pub(super) dy: Ssa<'c>,
    /// dy · scale.
    pub(super) scaled: Ssa<'c>,
    /// x̂, the normalized x.
    pub(super) normal: Ssa<'c>,
    pub(super) inverse: Ssa<'c>,
}

impl<'c> Parts<'c> {
    /// Computes the parts from dy, x, scale, the inverse deviation and the mean, if there is one.
    pub(super) fn new(elements: &[Ssa<'c>]) -> Self {
        let (&[dy, x, scale, inverse], mean) = elements.split_first_chunk().expect(MISSING);
        Parts {
            dy,
            scaled: dy * scale,
            normal: normal(x, mean.first().copied(), inverse),
            inverse,
        }
    }
}

/// Defines the gradients dx, dscale and dbias, if there is one; `axes` are those of the statistics.
pub(super) fn differentiate<'c>(
    lowering: &mut Lowering<'_, 'c>,
    (dx, dscale, dbias): (TensorId, TensorId, Option<TensorId>),
    [dy, x, scale]: [&Value<'c>; 3],
    statistics: &Statistics<'c>,
    axes: &[usize],
    compute: DataType,
) {
    let mut operands = vec![dy, x, scale, &statistics.inverse];
    operands.extend(&statistics.mean);

    let lacking = lacking(&x.dims, &scale.dims);
    let scales = sum(lowering, &operands, &lacking, compute, |_math, elements| {
        let parts = Parts::new(elements);
        parts.dy * parts.normal
    });
    let biases = sum(lowering, &[dy], &lacking, compute, |_, elements| only(elements));

    let slope = average(lowering, &operands, axes, compute, |_math, elements| {
        let parts = Parts::new(elements);
        parts.scaled * parts.normal
    })
    .closed(&lowering.emitter());
    let level = match &statistics.mean {
        Some(_) => {
            let level = average(lowering, &[dy, scale], axes, compute, |_, elements| {
                let [dy, scale] = exactly(elements);
                dy * scale
            });
            Some(level.closed(&lowering.emitter()))
        }
        None => None,
    };
    let count = operands.len();
    operands.push(&slope);
    operands.extend(&level);
    lowering.finish(dx, &operands, compute, |_math, elements| {
        let (elements, rest) = elements.split_at(count);
        let parts = Parts::new(elements);
        let centred = match rest.get(1) {
            Some(&level) => parts.scaled - level,
            None => parts.scaled,
        };
        parts.inverse * (centred - parts.normal * only(rest))
    });
    save_sums(lowering, Some(dscale), &scales, compute);
    save_sums(lowering, dbias, &biases, compute)
}
