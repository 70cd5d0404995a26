//! Pointwise operations.

use super::choices::Choices;
use super::draft::{Draft, Known, dims, is_bounded, is_bounded_integer, small};
use crate::modes::{integer_modes, is_far_from_zero, is_gradient, operation, result_range, roles};
use crate::range::Range;
use rotini_graph::{DataType, Pointwise, PointwiseMode as M};
use rotini_reference::Profile;

/// Returns the extents of a new tensor of any rank.
fn any_dims(choices: &mut Choices<'_>) -> Vec<i64> {
    let rank = choices.pick(&[4, 4, 2, 3, 1, 5]);
    dims(choices, rank)
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

/// Returns a mode of this many operands, from those that are no gradients and no indices.
fn mode(choices: &mut Choices<'_>, arity: usize) -> M {
    let mut modes = M::ALL.to_vec();
    modes.retain(|&mode| mode.arity() == arity && !is_gradient(mode) && mode != M::GenIndex);
    choices.pick(&modes)
}

/// Adds a function of one operand.
pub(super) fn unary(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mut op = operation(mode(choices, 1));
    set_parameters(choices, &mut op);
    let role = roles(op.mode)[0];
    let range = |known: &Known| {
        let defined = is_far_from_zero(known.range, role);
        let range = defined.then(|| result_range(&op, &[known.range], DataType::F64))??;
        is_bounded(range)
    };
    let x = draft.first(choices, role, |known| range(known).is_some(), any_dims);
    let range = range(&x)?;
    let dims = if choices.chance(5) {
        grown(choices, &x.dims)
    } else {
        x.dims.clone()
    };
    let dims = small(dims)?;
    let compute = draft.compute(choices);
    op.in_0 = x.id;
    op.out_0 = draft.float_result(choices, &dims, range);
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
    // Half of them are those that most graphs have.
    let mode = if choices.chance(50) {
        choices.pick(&[M::Add, M::Mul, M::Sub, M::Max])
    } else {
        mode(choices, 2)
    };
    let roles = roles(mode);
    let is_defined = |role| move |known: &Known| is_far_from_zero(known.range, role);
    let x = draft.first(choices, roles[0], is_defined(roles[0]), any_dims);
    let y = second(draft, choices, &x, roles[1], is_defined(roles[1]));
    // The smaller operand first, where the operands may be exchanged.
    let [first, other] = if roles[0] == roles[1] && choices.chance(30) {
        [&y, &x]
    } else {
        [&x, &y]
    };
    let mut op = operation(mode);
    let range = is_bounded(result_range(&op, &[first.range, other.range], DataType::F64)?)?;
    let compute = draft.compute(choices);
    (op.in_0, op.in_1) = (first.id, Some(other.id));
    op.out_0 = draft.float_result(choices, &x.dims, range);
    draft.node(compute, op)
}

/// Adds the gradient of an activation.
pub(super) fn gradient(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mut modes = M::ALL.to_vec();
    modes.retain(|&mode| is_gradient(mode));
    let mut op = operation(choices.pick(&modes));
    set_parameters(choices, &mut op);
    let x = draft.first(choices, Profile::Normal, anything, any_dims);
    let like = draft.float(choices);
    let dy = draft.operand(choices, &x.dims.clone(), like, Profile::Normal, anything);
    let range = is_bounded(result_range(&op, &[dy.range, x.range], DataType::F64)?)?;
    let compute = draft.compute(choices);
    (op.in_0, op.in_1) = (dy.id, Some(x.id));
    op.out_0 = draft.float_result(choices, &x.dims, range);
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
    let mut modes = integer_modes().to_vec();
    modes.retain(|&mode| mode != M::GenIndex);
    let mut op = operation(choices.pick(&modes));
    if op.mode == M::ReluFwd {
        op.relu_upper_clip = choices.pick(&[None, Some(6.0)]);
    }
    // Divisors of integers may be zero.
    let mut roles = roles(op.mode);
    roles
        .iter_mut()
        .filter(|role| **role == Profile::Positive)
        .for_each(|role| *role = Profile::Normal);
    let types = [DataType::I32, DataType::I8, DataType::U8, DataType::I64, DataType::Bool];
    let is_whole = |known: &Known| known.dtype.is_integer() && known.exact;
    // The first operand is an input more often than elsewhere, since few tensors hold integers.
    let dtype = choices.pick(&types);
    let extents = any_dims(choices);
    let x = match draft.present(choices, roles[0], is_whole) {
        Some(known) => known,
        None => draft.input(choices, &extents, dtype, roles[0]),
    };
    let mut next = |draft: &mut Draft, role| {
        let dims = shrunk(choices, &x.dims);
        let like = choices.pick(&types);
        draft.operand(choices, &dims, like, role, is_whole)
    };
    let others: Vec<Known> = roles[1..].iter().map(|&role| next(draft, role)).collect();
    let ranges: Vec<Range> = [&x].into_iter().chain(&others).map(|known| known.range).collect();
    let range = is_bounded_integer(result_range(&op, &ranges, DataType::I64)?)?;
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
    let mut ids = others.iter().map(|known| known.id);
    (op.in_0, op.in_1, op.in_2) = (x.id, ids.next(), ids.next());
    op.out_0 = draft.result(choices, &x.dims, dtype, range, exact);
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
