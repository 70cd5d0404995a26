//! The common result of each form of softmax and weighted sum, and the outputs computed from it.

use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::only;
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::Shape;
use crate::value::Value;
use rotini_graph::{DataType, Sdpa};
use std::f64::consts::LN_2;

/// The values that the outputs are computed from.
pub(super) struct Softmax<'c> {
    pub(super) weighted: Weighted<'c>,
    /// The largest score of each row.
    pub(super) greatest: Value<'c>,
    /// The number that was subtracted from each row's scores: the largest score, or the sink if
    /// that is larger. The stepwise form has 0 instead of -∞.
    pub(super) reference: Value<'c>,
    /// The sum of each row's exponentials.
    pub(super) total: Value<'c>,
}

/// The weighted sum of the values.
pub(super) enum Weighted<'c> {
    /// Weighted by exponentials that are not divided by their sum yet.
    Sum(Value<'c>),
    /// The output itself, in the type and memory order in which it is carried.
    Quotient(Value<'c>),
}

impl<'c> Softmax<'c> {
    /// Converts the results of IREE's operation or of rotini's kernels for AMD GPUs, whose largest
    /// scores are multiplied by log2(e).
    pub(super) fn of_online(
        lowering: &Lowering<'_, 'c>,
        weighted: Weighted<'c>,
        greatest: &Value<'c>,
        total: Value<'c>,
    ) -> Self {
        let row = Shape::new(&total.dims, total.order(), DataType::F32);
        let greatest = lowering.map(&[greatest], &row, DataType::F32, |math, elements| {
            math.scale(LN_2, only(elements))
        });
        let greatest = Value::of(greatest);
        Softmax {
            weighted,
            reference: greatest.clone(),
            greatest,
            total,
        }
    }
}

/// Returns true if the operation asks for more than IREE's `online_attention` supports, apart from
/// bounds and an additive mask.
pub(super) const fn asks_for_more(op: &Sdpa) -> bool {
    op.padding_mask || op.alibi_mask || op.sink_token.is_some() || op.max.is_some() || op.sum_exp.is_some()
}

/// Divides a weighted sum by the sum of its weights; 0 if that is 0.
pub(super) fn divided<'c>(math: &Math<'c>, elements: &[Ssa<'c>]) -> Scalar<'c> {
    let [weighted, total] = exactly(elements);
    let nothing = math.compare(F::Equal, total, math.constant(0.0));
    nothing.select(math.constant(0.0), weighted / total)
}
