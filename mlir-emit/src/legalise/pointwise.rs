//! Elements that the compiler may find, too late, to be constants or equal to an operand.

use crate::lowering::Lowering;
use crate::mlir::Value as Ssa;
use crate::pointwise::SELECT_OPERANDS;
use crate::quirks::{Quirk, Quirks};
use crate::value::{Data, Value};
use rotini_graph::{DataType, NormalNode, Op, Pointwise, PointwiseMode as M, TensorId};
use std::ops::RangeInclusive;

/// Magnitudes of constant masks that are nonzero in every compute type.
const SET_IN_ANY_TYPE: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=i32::MAX as f64;

impl<'c> Lowering<'_, 'c> {
    /// Returns the operand that equals the result for all elements: x, if a constant mask selects
    /// it, and for max(x, x), and in integers for 1 · x, x + 0, x - 0 and x / 1.
    ///
    /// [`Quirk::YieldedOperand`]: computed behind the barrier of
    /// [elements](Self::summable_elements) that may be constants, the result would look like
    /// another tensor than x. If both are operands of a further operation that yields x if they are
    /// the same, the compiler finds out too late.
    pub(crate) fn operand_that_is_yielded(
        &self,
        op: &Pointwise,
        values: &[Value<'_>],
        compute: DataType,
    ) -> Option<TensorId> {
        if !self.quirks().avoids(Quirk::YieldedOperand) {
            return None;
        }
        let operands = [Some(op.in_0), op.in_1, op.in_2];
        let constant = |position: usize| match values.get(position)?.data {
            Data::Constant(scalar) => Some(scalar.to_f64()),
            _ => None,
        };
        let first_or_second = |neutral: f64| match (constant(0), constant(1)) {
            (_, Some(value)) if value == neutral => Some(0),
            (Some(value), _) if value == neutral => Some(1),
            _ => None,
        };
        let is_same = op.in_1 == Some(op.in_0);
        let position = match op.mode {
            M::BinarySelect if is_same => SELECT_OPERANDS.set,
            M::BinarySelect => match constant(SELECT_OPERANDS.mask)?.abs() {
                0.0 => SELECT_OPERANDS.unset,
                mask if SET_IN_ANY_TYPE.contains(&mask) => SELECT_OPERANDS.set,
                _ => return None,
            },
            M::Max | M::Min if is_same => 0,
            M::Mul if compute.is_integer() => first_or_second(1.0)?,
            M::Add if compute.is_integer() => first_or_second(0.0)?,
            M::Sub if compute.is_integer() => constant(1).filter(|value| *value == 0.0).map(|_| 0)?,
            M::Div if compute.is_integer() => constant(1).filter(|value| *value == 1.0).map(|_| 0)?,
            _ => return None,
        };
        let is_tensor = values
            .get(position)
            .is_some_and(|value| matches!(value.data, Data::Tensor { .. }));
        operands.get(position).copied().flatten().filter(|_| is_tensor)
    }

    /// Returns the operands of a selection in i32. [`Quirk::SelectedSingle`]: a single element that
    /// the compiler may know not to be negative, such as an unsigned byte or the result of a
    /// comparison, is converted in a separate dispatch.
    pub(crate) fn selected_alone(&self, op: &Pointwise, values: Vec<Value<'c>>, compute: DataType) -> Vec<Value<'c>> {
        let is_selection = compute == DataType::I32 && op.mode == M::BinarySelect;
        if !is_selection || !self.quirks().avoids(Quirk::SelectedSingle) {
            return values;
        }
        let alone = |(position, value): (usize, Value<'c>)| {
            let is_narrow = matches!(value.dtype, DataType::U8 | DataType::I32 | DataType::Bool);
            let is_single = is_narrow && value.dims.iter().all(|&dim| dim == 1);
            if position == SELECT_OPERANDS.mask || !is_single || !matches!(value.data, Data::Tensor { .. }) {
                return value;
            }
            Value::of(self.converted(value.materialise(&self.emitter()), DataType::I32))
        };
        values.into_iter().enumerate().map(alone).collect()
    }

    /// Returns the elements of a result that may be summed. [`Quirk::ConstantSums`]: elements that
    /// may all be the same, such as x or true, 0 · x in integers, or an index along an axis, are
    /// computed in a separate dispatch if the graph has other operations than pointwise ones.
    pub(crate) fn summable_elements(
        &self,
        op: &Pointwise,
        values: &[Value<'_>],
        compute: DataType,
        result: Ssa<'c>,
    ) -> Ssa<'c> {
        let is_pointwise = |node: &NormalNode| matches!(node.op, Op::Pointwise(_));
        let is_logical = matches!(op.mode, M::LogicalOr | M::LogicalAnd | M::BinarySelect);
        let may_be_constant = op.mode == M::GenIndex || is_logical || compute.is_integer();
        if may_be_constant && may_fold(op, values) && !self.graph().nodes().iter().all(is_pointwise) {
            self.emitter().barrier_against(Quirk::ConstantSums, result)
        } else {
            result
        }
    }
}

impl Quirks {
    /// Returns true if a result is computed in its operand's memory order, and brought into its own
    /// order only when it is stored. [`Quirk::ConstantTransposed`]: if it may be a constant.
    pub(crate) fn keeps_order(self, op: &Pointwise, values: &[Value<'_>]) -> bool {
        self.avoids(Quirk::ConstantTransposed) && may_fold(op, values)
    }
}

/// Returns true if the compiler may find that the result does not depend on the operands' elements,
/// as with x - x in integers, 0 · x, or an index.
fn may_fold(op: &Pointwise, values: &[Value<'_>]) -> bool {
    let is_same = op
        .in_1
        .is_some_and(|second| second == op.in_0 || op.in_2 == Some(second));
    let is_index = op.mode == M::GenIndex;
    is_same
        || is_index
        || op.in_2 == Some(op.in_0)
        || values.iter().any(|value| matches!(value.data, Data::Constant(_)))
}
