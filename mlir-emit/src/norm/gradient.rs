//! The gradients of a normalization.

use super::statistics::{Statistics, average, normal, save_sums, sum};
use crate::counts::exactly;
use crate::ir::{MISSING, only};
use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::value::Value;
use rotini_graph::{DataType, TensorId};

/// The outputs of a backward pass.
pub(super) struct Gradients {
    pub(super) dx: TensorId,
    pub(super) dscale: TensorId,
    pub(super) dbias: Option<TensorId>,
}

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

/// Appends the gradients; `axes` are those of the statistics.
pub(super) fn differentiate<'c>(
    lowering: &mut Lowering<'_, 'c>,
    gradients: &Gradients,
    [dy, x, scale]: [&Value<'c>; 3],
    statistics: &Statistics<'c>,
    axes: &[usize],
    compute: DataType,
) {
    let mut operands = vec![dy, x, scale, &statistics.inverse];
    operands.extend(&statistics.mean);

    let lacking = lacking(&x.dims, &scale.dims);
    let dscale = sum(lowering, &operands, &lacking, compute, |_math, elements| {
        let parts = Parts::new(elements);
        parts.dy * parts.normal
    });
    let dbias = sum(lowering, &[dy], &lacking, compute, |_, elements| only(elements));

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
    lowering.finish(gradients.dx, &operands, compute, |_math, elements| {
        let (elements, rest) = elements.split_at(count);
        let parts = Parts::new(elements);
        let centred = match rest.get(1) {
            Some(&level) => parts.scaled - level,
            None => parts.scaled,
        };
        parts.inverse * (centred - parts.normal * only(rest))
    });
    save_sums(lowering, Some(gradients.dscale), &dscale, compute);
    save_sums(lowering, gradients.dbias, &dbias, compute)
}

/// Returns the axes of x that scale lacks, which may differ from those of the statistics.
pub(super) fn lacking(x: &[i64], scale: &[i64]) -> Vec<usize> {
    let missing = x.len().saturating_sub(scale.len());
    let extent = |axis: usize| axis.checked_sub(missing).and_then(|axis| scale.get(axis)).copied();
    (0..x.len()).filter(|&axis| extent(axis).unwrap_or(1) == 1).collect()
}
