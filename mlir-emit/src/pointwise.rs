//! Pointwise operations: their support, and their lowering to one `linalg.generic` each, which the
//! compiler fuses.

use crate::Unsupported;
use crate::convert::{check_compute, checked_compute_type};
use crate::functions::parameter;
use crate::ir::{FloatPredicate as F, IntegerPredicate as I};
use crate::lowering::Lowering;
use crate::math::{Math, Scalar};
use crate::mlir::{Name, Value as Ssa};
use crate::step::{Shape, order_of};
use crate::target::Target;
use crate::value::{Ordered, Value};
use rotini_graph::{DataType, NormalGraph, Pointwise, PointwiseMode as M, TensorId};

/// The order of the two operands of a gradient.
///
/// hipDNN's newest sources have (dy, x): `BinaryOperationFunctors.hpp` of its test SDK, the sample
/// `FusedBnInfDReluBnBwd.cpp`, and the fused plans of its providers since pull request 7736 of
/// ROCm/rocm-libraries. That pull request reversed (x, dy) to agree with cuDNN, whose front end
/// calls them (loss, input). Fusilli has always had (dy, x).
const BACKWARD_OPERANDS: BackwardOperands = BackwardOperands { dy: 0, x: 1 };

/// The positions of a gradient's operands.
struct BackwardOperands {
    dy: usize,
    x: usize,
}

/// The order of the three operands of `BINARY_SELECT`.
///
/// hipDNN's reference has the mask last, as the only operand of type BOOLEAN
/// (`PointwiseSignatureKey.hpp`, since pull request 10520). That a set mask selects in_0 is taken
/// from cuDNN: its attention selects the scores where the mask holds, and the lowest f32 elsewhere
/// (`scaled_dot_product_flash_attention.h`). Fusilli takes the mask first, in code that its
/// importer never reaches.
pub(crate) const SELECT_OPERANDS: SelectOperands = SelectOperands {
    set: 0,
    unset: 1,
    mask: 2,
};

/// The positions of the operands of a selection.
pub(crate) struct SelectOperands {
    pub(crate) set: usize,
    pub(crate) unset: usize,
    pub(crate) mask: usize,
}

/// The positions of the addend and of the squared operand in `ADD_SQUARE`: x + y², as the front
/// end's `Types.hpp` says now. It said (x + y)² before; cuDNN adds the first tensor and the square
/// of the second.
const ADD_SQUARE_OPERANDS: [usize; 2] = [0, 1];

/// Checks whether the pointwise operation can be lowered.
pub(crate) fn check(
    graph: &NormalGraph,
    target: &Target,
    compute: DataType,
    op: &Pointwise,
) -> Result<(), Unsupported> {
    let operands: Vec<_> = [Some(op.in_0), op.in_1, op.in_2].into_iter().flatten().collect();
    let compute = check_compute(graph, compute, &operands)?;
    let is_truth = |id: TensorId| graph.tensor(id).is_some_and(|tensor| tensor.dtype == DataType::Bool);
    if op.mode == M::GenIndex && is_truth(op.out_0) {
        return Err(Unsupported::of_tensor(
            op.out_0,
            "an index that is stored as a truth value",
        ));
    }
    if compute.is_float() {
        // Code for the CPU has no math library: these functions are approximated only in f32.
        if compute == DataType::F64 && target.is_cpu() && needs_math_library(op.mode) {
            return Err(Unsupported::new(format!(
                "{} in f64 is not available on the CPU",
                op.mode.name()
            )));
        }
        return Ok(());
    }
    if !is_integer_mode(op.mode) {
        return Err(Unsupported::new(format!(
            "{} has no meaning in the integer compute type {compute}",
            op.mode.name()
        )));
    }
    let (least, largest) = compute.whole_range();
    let fits =
        |value: f32| value.fract() == 0.0 && f64::from(value) >= least as f64 && f64::from(value) <= largest as f64;
    let clips_fit = [op.relu_lower_clip, op.relu_upper_clip].into_iter().flatten().all(fits);
    if !clips_fit || op.relu_lower_clip_slope.is_some_and(|slope| slope != 0.0) {
        return Err(Unsupported::new(format!(
            "RELU_FWD in {compute} takes whole clips and no slope"
        )));
    }
    Ok(())
}

/// Returns true for modes that use sin, cos or erf.
const fn needs_math_library(mode: M) -> bool {
    matches!(mode, M::Erf | M::Sin | M::Tan)
}

/// Returns true for modes that have a meaning for integers.
const fn is_integer_mode(mode: M) -> bool {
    matches!(
        mode,
        M::Abs
            | M::Add
            | M::AddSquare
            | M::BinarySelect
            | M::CmpEq
            | M::CmpGe
            | M::CmpGt
            | M::CmpLe
            | M::CmpLt
            | M::CmpNeq
            | M::Div
            | M::GenIndex
            | M::Identity
            | M::LogicalAnd
            | M::LogicalNot
            | M::LogicalOr
            | M::Max
            | M::Min
            | M::Mul
            | M::Neg
            | M::ReluFwd
            | M::Sub
    )
}

/// Lowers the pointwise operation.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &Pointwise) {
    let compute = checked_compute_type(compute);
    let out = lowering.tensor(op.out_0);
    let values = [Some(op.in_0), op.in_1, op.in_2]
        .into_iter()
        .flatten()
        .map(|id| lowering.value(id).clone())
        .collect::<Vec<_>>();
    let same = lowering.operand_that_is_yielded(op, &values, compute);
    let same = same.map(|operand| Pointwise::new(M::Identity, operand, None, None, op.out_0));
    let (op, values) = match &same {
        Some(identity) => (identity, vec![lowering.value(identity.in_0).clone()]),
        None => (op, lowering.selected_alone(op, values, compute)),
    };
    let operands: Vec<_> = values.iter().collect();
    let order = if lowering.quirks().keeps_order(op, &values) {
        order_of(&out.dims, &operands)
    } else {
        lowering.result_order(op.out_0, &operands)
    };
    let shape = Shape::new(&out.dims, &order, lowering.carried_type(op.out_0, compute));
    let axis = op.axis.and_then(|axis| usize::try_from(axis).ok());
    let result = lowering.map(&operands, &shape, compute, |math, elements| {
        if compute.is_float() {
            math.float_mode(op, &lowering.terms(op, elements), axis)
        } else {
            math.integer_mode(op, elements, axis)
        }
    });
    let ssa = lowering.summable_elements(op, &values, compute, result.ssa);
    lowering.define(op.out_0, Value::of(Ordered { ssa, ..result }));
}

impl<'c> Math<'c> {
    fn float_mode(&self, op: &Pointwise, operands: &[Ssa<'c>], axis: Option<usize>) -> Scalar<'c> {
        let operand = |index: usize| operands[index];
        let x = operand(0);
        let y = || operand(1);
        let zero = || self.constant(0.0);
        let one = || self.constant(1.0);
        let compare = |predicate| self.flag(self.compare(predicate, x, y()));
        let is_set = |value| self.compare(F::UnorderedNotEqual, value, zero());
        match op.mode {
            M::Abs => x.absf(),
            M::Add => x + y(),
            M::AddSquare => {
                let [addend, squared] = ADD_SQUARE_OPERANDS.map(operand);
                addend + squared * squared
            }
            M::BinarySelect => is_set(operand(SELECT_OPERANDS.mask))
                .select(operand(SELECT_OPERANDS.set), operand(SELECT_OPERANDS.unset)),
            M::Ceil => self.function(Name::MathCeil, x),
            M::CmpEq => compare(F::Equal),
            M::CmpGe => compare(F::GreaterEqual),
            M::CmpGt => compare(F::Greater),
            M::CmpLe => compare(F::LessEqual),
            M::CmpLt => compare(F::Less),
            M::CmpNeq => compare(F::UnorderedNotEqual),
            M::Div => x / y(),
            M::EluFwd => {
                let below = self.scale(parameter(op.elu_alpha, 1.0), self.expm1(x));
                self.compare(F::Greater, x, zero()).select(x, below)
            }
            M::Erf => self.erf(x),
            M::Exp => x.exp(),
            M::Floor => x.floor(),
            M::GeluApproxTanhFwd => x * self.sigmoid(self.gelu_tanh(x)),
            M::GeluFwd => x * self.normal_cdf(x),
            M::GenIndex => self.index(axis.expect("GEN_INDEX without an axis")),
            M::Identity => x,
            M::Log => self.function(Name::MathLog, x),
            M::LogicalAnd => self.flag(is_set(x) & is_set(y())),
            M::LogicalNot => self.flag(self.compare(F::Equal, x, zero())),
            M::LogicalOr => self.flag(is_set(x) | is_set(y())),
            M::Max => self.maximum(x, y()),
            M::Min => self.minimum(x, y()),
            M::Mul => x * y(),
            M::Neg => self.at.negated(x),
            M::Reciprocal => one() / x,
            M::ReluFwd => self.relu(op, x),
            // Not math.rsqrt, which targets may round worse than these two operations.
            M::Rsqrt => one() / x.sqrt(),
            M::SigmoidFwd => self.sigmoid(x),
            M::Sin => self.sin(x),
            M::SoftplusFwd => {
                // max(t, 0) + log(1 + exp(-|t|)) never overflows.
                let beta = parameter(op.softplus_beta, 1.0);
                let t = self.scale(beta, x);
                let tail = (-t.absf()).exp();
                let rest = self.log1p(tail);
                let sum = t.maximumf(zero()) + rest;
                sum / self.constant(beta)
            }
            M::Sqrt => x.sqrt(),
            M::Sub => x - y(),
            M::SwishFwd => x * self.sigmoid(self.scale(parameter(op.swish_beta, 1.0), x)),
            M::Tan => self.tan(x),
            M::TanhFwd => self.tanh(x),
            M::EluBwd
            | M::GeluApproxTanhBwd
            | M::GeluBwd
            | M::ReluBwd
            | M::SigmoidBwd
            | M::SoftplusBwd
            | M::SwishBwd
            | M::TanhBwd => {
                let (dy, x) = (operand(BACKWARD_OPERANDS.dy), operand(BACKWARD_OPERANDS.x));
                dy * self.derivative(op, x)
            }
        }
    }

    /// Returns a line where x is below the lower clip, the upper clip where x is above the upper
    /// clip, and x in between. NaN stays NaN.
    fn relu(&self, op: &Pointwise, x: Ssa<'c>) -> Scalar<'c> {
        let lower_value = parameter(op.relu_lower_clip, 0.0);
        let lower = self.constant(lower_value);
        let slope = parameter(op.relu_lower_clip_slope, 0.0);
        let below = if slope == 0.0 {
            lower
        } else {
            let offset = if lower_value == 0.0 { x } else { x - lower };
            self.scale(slope, offset) + lower
        };
        let top = match op.relu_upper_clip {
            Some(upper) => {
                let upper = self.constant(f64::from(upper));
                self.compare(F::GreaterEqual, x, upper).select(upper, x)
            }
            None => x,
        };
        // If both clips apply, the lower one wins, as in hipDNN's reference.
        self.compare(F::LessEqual, x, lower).select(below, top)
    }

    fn integer_mode(&self, op: &Pointwise, operands: &[Ssa<'c>], axis: Option<usize>) -> Scalar<'c> {
        let operand = |index: usize| operands[index];
        let x = operand(0);
        let y = || operand(1);
        let zero = || self.at.integer(0, self.ty);
        let compare = |predicate| self.flag(self.at.compare_integers(predicate, x, y()));
        let is_set = |value| self.at.compare_integers(I::NotEqual, value, zero());
        match op.mode {
            M::Abs => self.at.same(Name::MathAbsi, &[x]),
            M::Add => x + y(),
            M::AddSquare => {
                let [addend, squared] = ADD_SQUARE_OPERANDS.map(operand);
                addend + squared * squared
            }
            M::BinarySelect => is_set(operand(SELECT_OPERANDS.mask))
                .select(operand(SELECT_OPERANDS.set), operand(SELECT_OPERANDS.unset)),
            M::CmpEq => compare(I::Equal),
            M::CmpGe => compare(I::GreaterEqual),
            M::CmpGt => compare(I::Greater),
            M::CmpLe => compare(I::LessEqual),
            M::CmpLt => compare(I::Less),
            M::CmpNeq => compare(I::NotEqual),
            M::Div => self.integer_div(x, y()),
            M::GenIndex => self.index(axis.expect("GEN_INDEX without an axis")),
            M::Identity => x,
            M::LogicalAnd => self.flag(is_set(x) & is_set(y())),
            M::LogicalNot => self.flag(self.at.compare_integers(I::Equal, x, zero())),
            M::LogicalOr => self.flag(is_set(x) | is_set(y())),
            M::Max => self.maximum(x, y()),
            M::Min => self.minimum(x, y()),
            M::Mul => x * y(),
            M::Neg => self.at.negated(x),
            M::ReluFwd => {
                let clip = |value: f32| self.at.integer(value as i64, self.ty);
                let lower = clip(op.relu_lower_clip.unwrap_or(0.0));
                let above = self.at.compare_integers(I::Greater, x, lower);
                let Some(upper) = op.relu_upper_clip else {
                    return above.select(x, lower);
                };
                let capped = x.minsi(clip(upper));
                above.select(capped, lower)
            }
            M::Sub => x - y(),
            _ => unreachable!("a mode that check declines for integers"),
        }
    }
}
