//! Matrix multiplications, including those grouped by expert.

use super::choices::Choices;
use super::convolution::product;
use super::draft::{Draft, Known, dims, small};
use crate::range::Range;
use rotini_graph::{DataType, Matmul, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode};
use rotini_reference::Profile;

/// Returns the dims of a new batch of matrices.
fn matrices(choices: &mut Choices<'_>) -> Vec<i64> {
    let rank = choices.pick(&[2, 3, 2, 3, 4, 5]);
    dims(choices, rank)
}

fn is_matrix(known: &Known) -> bool {
    known.dims.len() >= 2 && known.range.magnitude() <= 256.0
}

pub(super) fn matmul(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let a = if choices.chance(10) {
        let dims = matrices(choices);
        draft.input(choices, &dims, DataType::I8, Profile::Normal)
    } else {
        draft.first(choices, Profile::Normal, is_matrix, matrices)
    };
    let (batch, matrix) = a.dims.split_at(a.dims.len() - 2);
    let columns = choices.between(0, 17).max(1);
    // One matrix for all, the same number, a divisor of it, or a multiple.
    let of_b: Vec<i64> = batch
        .iter()
        .map(|&extent| match choices.below(6) {
            0..=2 => extent,
            3 => 1,
            4 => (1..=extent)
                .rev()
                .find(|divisor| extent % divisor == 0 && *divisor < extent)
                .unwrap_or(1),
            _ => extent * 2,
        })
        .collect();
    let out: Vec<i64> = batch
        .iter()
        .zip(&of_b)
        .map(|(a, b)| *a.max(b))
        .chain([matrix[0], columns])
        .collect();
    let b_dims = small([of_b.as_slice(), &[matrix[1], columns]].concat())?;
    let b = draft.operand(choices, &b_dims, a.dtype, Profile::Weights, is_matrix);
    let (compute, c) = product(draft, choices, [&a, &b], matrix[1], &small(out)?)?;
    draft.node(compute, Matmul { a: a.id, b: b.id, c })
}

/// Returns the dims of new tokens.
fn tokens(choices: &mut Choices<'_>) -> Vec<i64> {
    vec![1, choices.between(1, 12), choices.between(1, 8)]
}

fn are_tokens(known: &Known) -> bool {
    is_matrix(known) && known.dims.len() == 3 && known.dims[0] == 1
}

pub(super) fn grouped(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let token = draft.first(choices, Profile::Normal, are_tokens, tokens);
    let (count, inner) = (token.dims[1], token.dims[2]);
    let (experts, columns) = (choices.between(1, 4), choices.between(1, 8));
    let weight = draft.operand(
        choices,
        &[experts, inner, columns],
        token.dtype,
        Profile::Weights,
        is_matrix,
    );
    let mode = choices.pick(&[MoeMode::None, MoeMode::Gather, MoeMode::Scatter]);
    let rows = if mode == MoeMode::Gather {
        choices.between(1, 12)
    } else {
        count
    };
    let mut routing = |draft: &mut Draft, dims: [i64; 3]| draft.routing(choices, &dims).id;
    let first_token_offset = routing(draft, [experts, 1, 1]);
    let token_index = (mode != MoeMode::None).then(|| routing(draft, [1, rows, 1]));
    let token_ks = (mode == MoeMode::Scatter).then(|| routing(draft, [1, rows, 1]));
    let top_k = if mode == MoeMode::Scatter {
        i32::try_from(choices.between(1, experts)).ok()?
    } else {
        0
    };
    let sum = token.range.times(weight.range).times(Range::new(0.0, inner as f64));
    let output = draft.float_result(choices, &[1, rows, columns], super::draft::is_bounded(sum)?);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        MoeGroupedMatmul {
            token: token.id,
            weight: weight.id,
            first_token_offset,
            token_index,
            token_ks,
            output,
            mode,
            top_k,
        },
    )
}

pub(super) fn grouped_backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let token = draft.first(choices, Profile::Normal, are_tokens, tokens);
    let (count, inner) = (token.dims[1], token.dims[2]);
    let (experts, columns) = (choices.between(1, 4), choices.between(1, 8));
    let doutput = draft.operand(choices, &[1, count, columns], token.dtype, Profile::Weights, is_matrix);
    let offset = draft.routing(choices, &[experts, 1, 1]);
    let sum = token.range.times(doutput.range).times(Range::new(0.0, count as f64));
    let dweight = draft.float_result(choices, &[experts, inner, columns], super::draft::is_bounded(sum)?);
    let compute = draft.compute(choices);
    draft.node(
        compute,
        MoeGroupedMatmulBwd {
            doutput: doutput.id,
            token: token.id,
            first_token_offset: offset.id,
            dweight,
        },
    )
}
