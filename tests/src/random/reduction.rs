//! Reductions.

use super::choices::Choices;
use super::draft::{Draft, Known, dims, is_bounded, is_bounded_integer};
use crate::range::Range;
use rotini_graph::{DataType, Reduction, ReductionMode as M};
use rotini_reference::Profile;

/// Maximum number of factors of a product.
const MOST_FACTORS: i64 = 12;

pub(super) fn reduction(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let mode = choices.pick(&[
        M::Add,
        M::Avg,
        M::Max,
        M::Min,
        M::Amax,
        M::Norm1,
        M::Norm2,
        M::Mul,
        M::MulNoZeros,
    ]);
    let new = |choices: &mut Choices<'_>| {
        let rank = choices.pick(&[4, 3, 2, 5, 1]);
        dims(choices, rank)
    };
    let is_reducible = |known: &Known| known.dims.iter().any(|&dim| dim > 1);
    let input = match mode {
        M::Mul => draft.first(choices, Profile::Positive, is_reducible, new),
        // Rounding must not decide whether a factor is zero.
        M::MulNoZeros => draft.first(
            choices,
            Profile::SmallIntegers,
            |known| is_reducible(known) && known.exact,
            new,
        ),
        _ => draft.first(choices, Profile::Normal, is_reducible, new),
    };
    let mut out = input.dims.clone();
    let from = choices.below(out.len());
    for (axis, extent) in out.iter_mut().enumerate() {
        if choices.chance(40) || axis >= from {
            *extent = 1;
        }
    }
    if out == input.dims {
        return None;
    }
    let count = input.dims.iter().product::<i64>() / out.iter().product::<i64>();
    if matches!(mode, M::Mul | M::MulNoZeros) && count > MOST_FACTORS {
        return None;
    }
    let (size, count) = (input.range.magnitude(), count as f64);
    let range = match mode {
        M::Add => input.range.times(Range::new(0.0, count)),
        M::Avg | M::Max | M::Min => input.range,
        M::Amax => Range::new(0.0, size),
        M::Norm1 => Range::new(0.0, size * count),
        M::Norm2 => Range::new(0.0, size * count.sqrt()),
        M::Mul | M::MulNoZeros => Range::around(size.max(1.0).powf(count)),
    };
    let is_whole = input.dtype.is_integer() && input.exact && !matches!(mode, M::Avg | M::Norm2);
    let (compute, output) = if is_whole && choices.chance(70) {
        let out = draft.result(choices, &out, DataType::I32, is_bounded_integer(range)?, true);
        (DataType::I32, out)
    } else {
        (
            draft.compute(choices),
            draft.float_result(choices, &out, is_bounded(range)?),
        )
    };
    draft.node(
        compute,
        Reduction {
            input: input.id,
            output,
            mode,
            is_deterministic: choices.chance(20),
        },
    )
}
