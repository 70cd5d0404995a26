//! Pointwise operations.

use super::choices::Choices;
use super::draft::{Draft, Known, dims, is_bounded, is_bounded_integer, small};
use super::range::Range;
use rotini_graph::{DataType, Pointwise, PointwiseMode as M, TensorId};
use rotini_reference::Profile;

/// Returns the extents of a new tensor of any rank.
fn any_dims(choices: &mut Choices<'_>) -> Vec<i64> {
    let rank = choices.pick(&[4, 4, 2, 3, 1, 5]);
    dims(choices, rank)
}

/// Lower bound of the arguments of logarithms, roots and divisors.
const LEAST: f64 = 0.1;

fn is_far_from_zero(known: &Known) -> bool {
    known.range.low >= LEAST
}

fn anything(_: &Known) -> bool {
    true
}

/// Sets the parameters of a mode that has any: each set, or left out.
fn set_parameters(choices: &mut Choices<'_>, op: &mut Pointwise) {
    match op.mode {
        M::ReluFwd | M::ReluBwd => {
            op.relu_lower_clip = choices.pick(&[None, None, Some(-0.5), Some(0.25)]);
            op.relu_upper_clip = choices.pick(&[None, None, Some(0.75), Some(6.0)]);
            op.relu_lower_clip_slope = choices.pick(&[None, None, Some(0.125)]);
        }
        M::SwishFwd | M::SwishBwd => op.swish_beta = choices.pick(&[None, Some(0.5), Some(2.0)]),
        M::EluFwd | M::EluBwd => op.elu_alpha = choices.pick(&[None, Some(0.5), Some(2.0)]),
        M::SoftplusFwd | M::SoftplusBwd => op.softplus_beta = choices.pick(&[None, Some(0.5), Some(2.0)]),
        _ => {}
    }
}

/// Returns the range of a function of one operand; `None` if it is undefined there, or grows too
/// fast for a chain of such functions.
fn function_range(mode: M, x: Range) -> Option<Range> {
    let root = |value: f64| 1.0 / value.sqrt();
    Some(match mode {
        M::Identity => x,
        M::Neg => x.neg(),
        M::Abs => Range::new(0.0, x.magnitude()),
        M::Ceil => x.map(f64::ceil),
        M::Floor => x.map(f64::floor),
        M::Erf | M::Sin | M::TanhFwd => Range::around(1.0),
        M::SigmoidFwd | M::LogicalNot => Range::new(0.0, 1.0),
        M::Exp if x.high <= 4.0 => x.map(f64::exp),
        // Bounds that hold for all values of the parameters.
        M::ReluFwd | M::EluFwd | M::GeluFwd | M::GeluApproxTanhFwd | M::SwishFwd => x.hull(Range::new(-2.0, 1.0)),
        M::SoftplusFwd => Range::new(0.0, x.high.max(0.0) + 1.4),
        M::Log if x.low >= LEAST => x.map(f64::ln),
        M::Reciprocal if x.low >= LEAST => Range::new(1.0 / x.high, 1.0 / x.low),
        M::Rsqrt if x.low >= LEAST => Range::new(root(x.high), root(x.low)),
        M::Sqrt if x.low >= LEAST => x.map(f64::sqrt),
        M::Tan if x.magnitude() <= 1.25 => x.map(f64::tan),
        _ => return None,
    })
}

/// Adds a function of one operand.
pub(super) fn unary(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mode = choices.pick(&[
        M::ReluFwd,
        M::Identity,
        M::TanhFwd,
        M::SigmoidFwd,
        M::GeluFwd,
        M::GeluApproxTanhFwd,
        M::SwishFwd,
        M::EluFwd,
        M::SoftplusFwd,
        M::Exp,
        M::Log,
        M::Reciprocal,
        M::Rsqrt,
        M::Sqrt,
        M::Abs,
        M::Neg,
        M::Ceil,
        M::Floor,
        M::Erf,
        M::Sin,
        M::Tan,
        M::LogicalNot,
    ]);
    let x = match mode {
        M::Log | M::Reciprocal | M::Rsqrt | M::Sqrt => {
            draft.first(choices, Profile::Positive, is_far_from_zero, any_dims)
        }
        M::LogicalNot => draft.first(choices, Profile::Booleans, anything, any_dims),
        _ => draft.first(
            choices,
            Profile::Normal,
            |known| function_range(mode, known.range).is_some(),
            any_dims,
        ),
    };
    let range = is_bounded(function_range(mode, x.range)?)?;
    let dims = if choices.chance(5) {
        grown(choices, &x.dims)
    } else {
        x.dims.clone()
    };
    let dims = small(dims)?;
    let compute = draft.compute(choices);
    let out = draft.float_result(choices, &dims, range);
    let mut op = Pointwise::new(mode, x.id, None, None, out);
    set_parameters(choices, &mut op);
    draft.node(compute, op)
}

/// Returns dims to which the given ones broadcast.
fn grown(choices: &mut Choices<'_>, dims: &[i64]) -> Vec<i64> {
    let mut grown: Vec<i64> = dims
        .iter()
        .map(|&dim| if dim == 1 { choices.between(1, 5) } else { dim })
        .collect();
    if grown.len() < 5 && choices.chance(30) {
        grown.insert(0, choices.between(1, 3));
    }
    grown
}

/// Returns dims that broadcast to the given ones: the same, a bias per channel or per column, any
/// axes of 1, a lower rank.
fn shrunk(choices: &mut Choices<'_>, dims: &[i64]) -> Vec<i64> {
    let keep = |axis: usize| -> Vec<i64> {
        (0..dims.len())
            .map(|each| if each == axis { dims[each] } else { 1 })
            .collect()
    };
    match choices.below(10) {
        0..=4 => dims.to_vec(),
        5 if dims.len() > 1 => keep(1),
        6 => keep(dims.len() - 1),
        7 => vec![1; dims.len()],
        8 => dims[choices.below(dims.len())..].to_vec(),
        _ => dims
            .iter()
            .map(|&dim| if choices.chance(50) { 1 } else { dim })
            .collect(),
    }
}

/// Returns an operand to go with `first`: a tensor, or a constant.
fn second(
    draft: &mut Draft,
    choices: &mut Choices<'_>,
    first: &Known,
    role: Profile,
    fits: impl Fn(&Known) -> bool,
) -> Known {
    if choices.chance(8) {
        let value = choices.pick(&[0.5, 2.0, 0.25, 1.5, 3.0]);
        let dims = choices.pick(&[[1_i64; 4].as_slice(), &[1]]);
        let dims = &dims[..dims.len().min(first.dims.len())];
        return draft.constant(dims, DataType::F32, value);
    }
    let dims = shrunk(choices, &first.dims);
    let like = draft.float(choices);
    draft.operand(choices, &dims, like, role, fits)
}

/// Adds a function of two operands.
pub(super) fn binary(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mode = choices.pick(&[
        M::Add,
        M::Add,
        M::Mul,
        M::Mul,
        M::Sub,
        M::Max,
        M::Min,
        M::Div,
        M::AddSquare,
        M::CmpEq,
        M::CmpGe,
        M::CmpGt,
        M::CmpLe,
        M::CmpLt,
        M::CmpNeq,
        M::LogicalAnd,
        M::LogicalOr,
    ]);
    let role = match mode {
        M::CmpEq | M::CmpGe | M::CmpGt | M::CmpLe | M::CmpLt | M::CmpNeq => Profile::SmallIntegers,
        M::LogicalAnd | M::LogicalOr => Profile::Booleans,
        _ => Profile::Normal,
    };
    let x = draft.first(choices, role, anything, any_dims);
    let y = match mode {
        M::Div => second(draft, choices, &x, Profile::Positive, is_far_from_zero),
        _ => second(draft, choices, &x, role, anything),
    };
    let range = match mode {
        M::Add => x.range.plus(y.range),
        M::Sub => x.range.plus(y.range.neg()),
        M::Mul => x.range.times(y.range),
        M::Div => x.range.times(Range::new(1.0 / y.range.high, 1.0 / y.range.low)),
        M::AddSquare => x.range.plus(Range::new(0.0, y.range.magnitude().powi(2))),
        M::Max | M::Min => x.range.hull(y.range),
        _ => Range::new(0.0, 1.0),
    };
    let range = is_bounded(range)?;
    // The smaller operand first, where the order does not matter or makes another case.
    let swaps = !matches!(mode, M::Div | M::AddSquare | M::Sub) && choices.chance(30);
    let [first, other] = if swaps { [y.id, x.id] } else { [x.id, y.id] };
    let compute = draft.compute(choices);
    let out = draft.float_result(choices, &x.dims, range);
    draft.node(compute, Pointwise::new(mode, first, Some(other), None, out))
}

/// Adds the gradient of an activation.
pub(super) fn gradient(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mode = choices.pick(&[
        M::ReluBwd,
        M::TanhBwd,
        M::SigmoidBwd,
        M::GeluBwd,
        M::GeluApproxTanhBwd,
        M::SwishBwd,
        M::EluBwd,
        M::SoftplusBwd,
    ]);
    let x = draft.first(choices, Profile::Normal, anything, any_dims);
    let like = draft.float(choices);
    let dy = draft.operand(choices, &x.dims.clone(), like, Profile::Normal, anything);
    // No slope exceeds 2, the largest alpha of ELU.
    let range = is_bounded(Range::around(2.0 * dy.range.magnitude()))?;
    let compute = draft.compute(choices);
    let out = draft.float_result(choices, &x.dims, range);
    let mut op = Pointwise::new(mode, dy.id, Some(x.id), None, out);
    set_parameters(choices, &mut op);
    draft.node(compute, op)
}

/// Adds a selection between two operands.
pub(super) fn select(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = draft.first(choices, Profile::Normal, anything, any_dims);
    let y = second(draft, choices, &x, Profile::Normal, anything);
    let condition = if choices.chance(40) {
        let dims = shrunk(choices, &x.dims);
        draft.operand(choices, &dims, DataType::Bool, Profile::Booleans, anything)
    } else {
        second(draft, choices, &x, Profile::Booleans, anything)
    };
    let compute = draft.compute(choices);
    let out = draft.float_result(choices, &x.dims, x.range.hull(y.range));
    let op = Pointwise::new(M::BinarySelect, x.id, Some(y.id), Some(condition.id), out);
    draft.node(compute, op)
}

/// Adds an operation that is computed in integers.
pub(super) fn integer(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mode = choices.pick(&[
        M::Add,
        M::Mul,
        M::Sub,
        M::Identity,
        M::ReluFwd,
        M::Max,
        M::Min,
        M::Abs,
        M::Neg,
        M::AddSquare,
        M::BinarySelect,
        M::CmpEq,
        M::CmpGe,
        M::CmpGt,
        M::CmpLe,
        M::CmpLt,
        M::CmpNeq,
        M::LogicalAnd,
        M::LogicalOr,
        M::LogicalNot,
        M::Div,
    ]);
    let role = match mode {
        M::CmpEq | M::CmpGe | M::CmpGt | M::CmpLe | M::CmpLt | M::CmpNeq => Profile::SmallIntegers,
        M::LogicalAnd | M::LogicalOr | M::LogicalNot => Profile::Booleans,
        _ => Profile::Normal,
    };
    let types = [DataType::I32, DataType::I8, DataType::U8, DataType::I64, DataType::Bool];
    let is_whole = |known: &Known| known.dtype.is_integer() && known.exact;
    // The first operand is an input more often than elsewhere, since few tensors hold integers.
    let dtype = choices.pick(&types);
    let extents = any_dims(choices);
    let x = match draft.present(choices, role, is_whole) {
        Some(known) => known,
        None => draft.input(choices, &extents, dtype, role),
    };
    let mut next = |draft: &mut Draft, role| {
        let dims = shrunk(choices, &x.dims);
        let like = choices.pick(&types);
        draft.operand(choices, &dims, like, role, is_whole)
    };
    let others: Vec<Known> = match mode.arity() {
        1 => Vec::new(),
        2 => vec![next(draft, role)],
        _ => vec![next(draft, Profile::Normal), next(draft, Profile::Booleans)],
    };
    let y = others.first().map_or(x.range, |known| known.range);
    let range = match mode {
        M::Add => x.range.plus(y),
        M::Sub => x.range.plus(y.neg()),
        M::Mul => x.range.times(y),
        M::AddSquare => x.range.plus(Range::new(0.0, y.magnitude().powi(2))),
        M::Neg => x.range.neg(),
        M::Abs => Range::new(0.0, x.range.magnitude()),
        M::Div => Range::around(x.range.magnitude()),
        M::ReluFwd => x.range.hull(Range::new(0.0, 0.0)),
        M::Identity => x.range,
        M::Max | M::Min | M::BinarySelect => x.range.hull(y),
        _ => Range::new(0.0, 1.0),
    };
    let range = is_bounded_integer(range)?;
    let compute = if draft.oddity(choices, 10) {
        DataType::I8
    } else {
        choices.pick(&[DataType::I32, DataType::I32, DataType::I64])
    };
    let exact = [&x].into_iter().chain(&others).all(|known| known.exact);
    let dtype = match is_bounded(range) {
        Some(_) => choices.pick(&[
            DataType::I32,
            DataType::I32,
            DataType::I8,
            DataType::U8,
            DataType::I64,
            DataType::Bool,
            DataType::F32,
        ]),
        None => choices.pick(&[DataType::I32, DataType::I64]),
    };
    let out = draft.result(choices, &x.dims, dtype, range, exact);
    let ids: Vec<TensorId> = others.iter().map(|known| known.id).collect();
    let mut op = Pointwise::new(mode, x.id, ids.first().copied(), ids.get(1).copied(), out);
    if mode == M::ReluFwd {
        op.relu_upper_clip = choices.pick(&[None, Some(6.0)]);
    }
    draft.node(compute, op)
}

/// Adds the index along an axis.
pub(super) fn index(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let x = draft.first(choices, Profile::Normal, anything, any_dims);
    let axis = choices.below(x.dims.len());
    let range = Range::new(0.0, x.dims[axis] as f64);
    let compute = draft.compute(choices);
    let out = draft.float_result(choices, &x.dims, range);
    let mut op = Pointwise::new(M::GenIndex, x.id, None, None, out);
    op.axis = i64::try_from(axis).ok();
    draft.node(compute, op)
}
