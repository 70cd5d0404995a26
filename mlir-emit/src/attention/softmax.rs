//! The results of each way of computing a softmax and its weighted sum, and the outputs computed
//! from them.

use crate::counts::exactly;
use crate::ir::FloatPredicate as F;
use crate::ir::only;
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::Shape;
use crate::value::{Data, Value};
use rotini_graph::{DataType, Sdpa};
use std::f64::consts::LN_2;

/// What the outputs are computed from.
pub(super) struct Softmax<'c> {
    pub(super) weighted: Weighted<'c>,
    /// The largest score of each row.
    pub(super) greatest: Value<'c>,
    /// What was subtracted from each row's scores: the largest one, or 0 if that is -∞.
    pub(super) reference: Value<'c>,
    /// The sum of each row's exponentials.
    pub(super) total: Value<'c>,
}

/// The values' sum.
pub(super) enum Weighted<'c> {
    /// Weighed by exponentials that are not divided by their sum.
    Sum(Value<'c>),
    /// The output itself, in the type and memory that it is carried in.
    Quotient(Value<'c>),
}

impl<'c> Softmax<'c> {
    /// Converts the results of IREE's operation or of rotini's kernels: their largest scores are in
    /// powers of 2.
    pub(super) fn of_online(
        lowering: &Lowering<'_, 'c>,
        weighted: Weighted<'c>,
        greatest: &Value<'c>,
        total: Value<'c>,
    ) -> Self {
        let row = Row::new(&total);
        let greatest = lowering.map(
            &[greatest],
            &row.shape(DataType::F32),
            DataType::F32,
            |math, elements| math.scale(LN_2, only(elements)),
        );
        let greatest = Value::of(greatest);
        Softmax {
            weighted,
            reference: greatest.clone(),
            greatest,
            total,
        }
    }
}

/// Whether the operation asks for more than IREE's `online_attention` has, bounds and an additive
/// mask apart.
pub(super) const fn asks_for_more(op: &Sdpa) -> bool {
    op.padding_mask || op.alibi_mask || op.sink_token.is_some() || op.max.is_some() || op.sum_exp.is_some()
}

/// Divides a weighted sum by the sum of its weights; 0 where there are no weights.
pub(super) fn divided<'c>(math: &Math<'c>, elements: &[Ssa<'c>]) -> Scalar<'c> {
    let [weighted, total] = exactly(elements);
    let nothing = math.compare(F::Equal, total, math.constant(0.0));
    nothing.select(math.constant(0.0), weighted / total)
}

/// The memory of a reduced value: rows without keys.
pub(super) struct Row {
    dims: Vec<i64>,
    order: Vec<usize>,
}

impl Row {
    pub(super) fn new(value: &Value<'_>) -> Self {
        Row {
            dims: value.dims.clone(),
            order: match &value.data {
                Data::Tensor { order, .. } => order.clone(),
                Data::Constant(_) | Data::Scalar(_) => Vec::new(),
            },
        }
    }

    pub(super) fn shape(&self, dtype: DataType) -> Shape<'_> {
        Shape::new(&self.dims, &self.order, dtype)
    }
}
