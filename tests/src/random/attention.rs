//! Attention, forward and backward.

use super::choices::Choices;
use super::draft::{Draft, Known, is_bounded};
use super::is_about_attention;
use crate::range::Range;
use rotini_graph::{DataType, DiagonalAlignment, Sdpa, SdpaBackward, TensorId};
use rotini_reference::Profile;

/// Largest score: above it, the exponential amplifies a score's error too much.
const LARGEST_SCORE: f64 = 40.0;

/// Operands and masking that both directions share.
struct Attention {
    q: Known,
    k: Known,
    v: Known,
    mask: Option<TensorId>,
    /// Whether the mask hides keys.
    hides: bool,
    scale: Option<TensorId>,
    attn_scale_value: Option<f32>,
    lengths: Option<[TensorId; 2]>,
    alibi: bool,
    left: Option<i64>,
    right: Option<i64>,
    alignment: DiagonalAlignment,
    score: f64,
}

fn queries(choices: &mut Choices<'_>) -> Vec<i64> {
    if is_about_attention() {
        return vec![
            choices.between(1, 2),
            choices.pick(&[1, 2, 4]),
            choices.pick(&[1, 3, 16, 33, 40, 64, 70]),
            choices.pick(&[8, 32, 36, 64, 64, 80, 128]),
        ];
    }
    vec![
        choices.between(1, 2),
        choices.between(1, 4),
        choices.between(1, 9),
        choices.between(1, 8),
    ]
}

fn are_queries(known: &Known) -> bool {
    known.dims.len() == 4 && known.dtype.is_float() && known.range.magnitude() <= 8.0
}

fn attention(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<Attention> {
    let q = draft.first(choices, Profile::Normal, are_queries, queries);
    let [b, h, sq, d] = *q.dims.as_slice() else { return None };
    let divisors: Vec<i64> = (1..=h).rev().filter(|divisor| h % divisor == 0).collect();
    let [k_heads, v_heads] = [(); 2].map(|()| divisors[choices.below(divisors.len())]);
    let (skv, dv) = if is_about_attention() {
        let same = choices.chance(80);
        let dv = if same { d } else { choices.pick(&[16, 64, 128]) };
        (choices.pick(&[5, 17, 48, 64, 100, 130]), dv)
    } else {
        (choices.between(1, 11), choices.between(1, 8))
    };
    let mut next = |dims: [i64; 4]| draft.operand(choices, &dims, q.dtype, Profile::Normal, are_queries);
    let (k, v) = (next([b, k_heads, skv, d]), next([b, v_heads, skv, dv]));
    let (factor, scale, attn_scale_value) = match choices.below(3) {
        0 => (0.25, None, Some(0.25)),
        1 => (0.5, Some(draft.constant(&[1; 4], DataType::F32, 0.5).id), None),
        _ => (1.0, None, None),
    };
    let (factor, scale, attn_scale_value) = if is_about_attention() {
        let factor = 2.0 / d as f64;
        (factor, None, Some(factor as f32))
    } else {
        (factor, scale, attn_scale_value)
    };
    let mask_dims = choices.pick(&[
        None,
        None,
        Some([b, h, sq, skv]),
        Some([1, 1, sq, skv]),
        Some([b, 1, 1, skv]),
    ]);
    let mask = mask_dims.map(|dims| match choices.chance(30) {
        true => draft.input(choices, &dims, DataType::Bool, Profile::Booleans),
        false => draft.operand(choices, &dims, q.dtype, Profile::Normal, are_queries),
    });
    let padded = choices.chance(if is_about_attention() { 50 } else { 20 });
    let mut left = choices.pick(&[None, None, None, Some(0), Some(2), Some(-1)]);
    let mut right = choices.pick(&[None, None, Some(0), Some(1), Some(-1)]);
    let mut alignment = choices.pick(&[DiagonalAlignment::TopLeft, DiagonalAlignment::BottomRight]);
    let alibi = choices.chance(10);
    if alibi && !draft.is_rare() {
        (left, right, alignment) = (None, Some(0), DiagonalAlignment::TopLeft);
    }
    if padded && !draft.is_rare() {
        alignment = DiagonalAlignment::TopLeft;
    }
    let lengths =
        padded.then(|| [(); 2].map(|()| draft.input(choices, &[b, 1, 1, 1], DataType::I32, Profile::Positive).id));
    let shift = mask.as_ref().map_or(0.0, |known| known.range.magnitude());
    let score = q.range.magnitude() * k.range.magnitude() * d as f64 * factor + shift;
    (score <= LARGEST_SCORE).then_some(Attention {
        q,
        k,
        v,
        hides: mask.as_ref().is_some_and(|known| known.dtype == DataType::Bool),
        mask: mask.map(|known| known.id),
        scale,
        attn_scale_value,
        lengths,
        alibi,
        left,
        right,
        alignment,
        score,
    })
}

impl Attention {
    /// Returns the dims of the result and of one number per query.
    fn dims(&self) -> [Vec<i64>; 2] {
        let with = |last| [&self.q.dims[..3], &[last]].concat();
        [with(self.v.dims[3]), with(1)]
    }
}

pub(super) fn sdpa(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let attention = attention(draft, choices)?;
    let [o_dims, rows] = attention.dims();
    // A fully masked row is zero.
    let o = draft.float_result(choices, &o_dims, attention.v.range.hull(Range::new(0.0, 0.0)));
    // The statistics of a fully masked row are infinite: then they are stored and not read.
    let bounds = [attention.left, attention.right];
    let reads_all = attention.lengths.is_none() && bounds == [None; 2] && !attention.hides;
    let stats = (reads_all && choices.chance(30)).then(|| {
        let range = Range::around(attention.score + 3.0);
        draft.float_result(choices, &rows, range)
    });
    let sink_token = draft.oddity(choices, 10).then(|| {
        let dims = [1, attention.q.dims[1], 1, 1];
        draft.input(choices, &dims, DataType::F32, Profile::Normal).id
    });
    let compute = draft.compute(choices);
    draft.node(
        compute,
        Box::new(Sdpa {
            attn_mask: attention.mask,
            scale: attention.scale,
            seq_len_q: attention.lengths.map(|[q, _]| q),
            seq_len_kv: attention.lengths.map(|[_, kv]| kv),
            sink_token,
            stats,
            generate_stats: stats.map(|_| true),
            alibi_mask: attention.alibi,
            padding_mask: attention.lengths.is_some(),
            dropout_probability: draft.oddity(choices, 10).then_some(0.5),
            attn_scale_value: attention.attn_scale_value,
            left_bound: attention.left,
            right_bound: attention.right,
            diagonal_alignment: attention.alignment,
            ..Sdpa::new(attention.q.id, attention.k.id, attention.v.id, o)
        }),
    )
}

pub(super) fn sdpa_backward(draft: &mut Draft, choices: &mut Choices<'_>) -> Option<()> {
    let attention = attention(draft, choices)?;
    let [o_dims, rows] = attention.dims();
    let dtype = attention.q.dtype;
    let mut next = |dims: &[i64]| draft.operand(choices, dims, dtype, Profile::Normal, are_queries);
    let (o, d_o) = (next(&o_dims), next(&o_dims));
    // Not the statistics of these scores, so the weights do not sum to 1; but not much smaller
    // either.
    let stats = draft.input(choices, &rows, DataType::F32, Profile::Normal);
    if attention.score > 4.0 {
        return None;
    }
    let length = (attention.q.dims[2] * attention.k.dims[2]) as f64;
    let size = 150.0 * d_o.range.magnitude() * length;
    let gradient = size * (attention.v.range.magnitude() + o.range.magnitude()) * o_dims[3] as f64;
    let mut result =
        |dims: &[i64], size: f64| Some(draft.float_result(choices, dims, is_bounded(Range::around(size))?));
    let dq = result(&attention.q.dims, gradient * attention.k.range.magnitude())?;
    let dk = result(&attention.k.dims, gradient * attention.q.range.magnitude())?;
    let dv = result(&attention.v.dims, size)?;
    let [q, k, v] = [attention.q.id, attention.k.id, attention.v.id];
    let inputs = [q, k, v, o.id, d_o.id, stats.id];
    let compute = draft.compute(choices);
    draft.node(
        compute,
        Box::new(SdpaBackward {
            scale: attention.scale,
            attn_mask: attention.mask,
            seq_len_q: attention.lengths.map(|[q, _]| q),
            seq_len_kv: attention.lengths.map(|[_, kv]| kv),
            alibi_mask: attention.alibi,
            padding_mask: attention.lengths.is_some(),
            attn_scale_value: attention.attn_scale_value,
            left_bound: attention.left,
            right_bound: attention.right,
            diagonal_alignment: attention.alignment,
            ..SdpaBackward::new(inputs, [dq, dk, dv])
        }),
    )
}
