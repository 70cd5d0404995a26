//! What each way of computing a softmax and its weighted sum gives, and what the outputs are made of it.

use crate::convert::FloatPredicate as F;
use crate::ir::MISSING;
use crate::math::{Math, Scalar};
use crate::mlir::Value as Ssa;
use crate::step::Shape;
use crate::value::{Data, Value};
use rotini_graph::DataType;

/// What the outputs are made of.
pub(super) struct Softmax<'c, 'b> {
    pub(super) weighted: Weighted<'c, 'b>,
    /// The largest score of each row.
    pub(super) greatest: Value<'c, 'b>,
    /// What was subtracted from each row's scores: the largest one, or 0 if that is -∞.
    pub(super) reference: Value<'c, 'b>,
    /// The sum of each row's exponentials.
    pub(super) total: Value<'c, 'b>,
}

/// The values' sum.
pub(super) enum Weighted<'c, 'b> {
    /// Weighed by exponentials that are not divided by their sum.
    Sum(Value<'c, 'b>),
    /// The output itself, in the type and memory that it is carried in.
    Quotient(Value<'c, 'b>),
}

/// A sum over the sum of its weights, or 0 where there are none.
pub(super) fn divided<'c, 'r>(math: &Math<'c, 'r>, elements: &[Ssa<'c, 'r>]) -> Scalar<'c, 'r> {
    let &[weighted, total] = elements else {
        return Err(MISSING);
    };
    let nothing = math.compare(F::Equal, total, math.constant(0.0)?)?;
    math.select(nothing, math.constant(0.0)?, math.div(weighted, total)?)
}

/// The memory of a reduced value: rows without keys.
pub(super) struct Row {
    dims: Vec<i64>,
    order: Vec<usize>,
}

impl Row {
    pub(super) fn new(value: &Value<'_, '_>) -> Self {
        Row {
            dims: value.dims.clone(),
            order: match &value.data {
                Data::Tensor { order, .. } => order.clone(),
                Data::Constant(_) | Data::Scalar(_) => Vec::new(),
            },
        }
    }

    pub(super) fn shape(&self, dtype: DataType) -> Shape<'_> {
        Shape {
            dims: &self.dims,
            order: &self.order,
            dtype,
        }
    }
}
