//! Scaled dot-product attention: by rotini's kernels, by IREE's own operation where that is one
//! dispatch, or step by step with matmuls.
//!
//! ```text
//! forward:  s = scale q kᵀ + mask, -∞ where a key is hidden
//!           m = max s      e = exp(s - m)      l = Σ e
//!           o = e v / l    stats = m + log l
//! backward: P = exp(s - stats)
//!           D = Σ do o     dS = P (do vᵀ - D)
//!           dq = scale dS k    dk = scale dSᵀ q    dv = Pᵀ do
//! ```
//!
//! A row without a visible key is zeros, and its statistic -∞. Combinations of attributes that no
//! reference of hipDNN defines are declined.
//!
//! | File | Contents |
//! |---|---|
//! | `axes` | the attributes and axes of the scores |
//! | `scores` | operands, masks and scores, the same in both directions |
//! | `forward` | softmax and weighted sum, step by step |
//! | `flash` | the same by `iree_linalg_ext.online_attention` |
//! | `kernels` | the same by single kernels: for few queries, for many, and on CPUs |
//! | `gradients` | the gradients by two kernels, without scores in memory |
//! | `online` | the loops and operands of `iree_linalg_ext.online_attention` |
//! | `hidden` | keeps NaN of hidden rows out of results |
//! | `softmax` | the common result of `forward`, `flash` and `kernels` |
//! | `backward` | the gradients, step by step |

mod axes;
mod backward;
mod flash;
mod forward;
mod gradients;
mod hidden;
mod kernels;
mod online;
mod scores;
mod softmax;

pub(crate) use backward::lower as lower_backward;
pub(crate) use flash::is_one_dispatch;
pub(crate) use forward::lower;

use crate::Unsupported;
use crate::convert::{check_compute, check_not_constant};
use crate::counts::product;
use axes::{Diagonal, QUERY};
use rotini_graph::{AttentionScores, DataType, NormalGraph, Sdpa, SdpaBackward, TensorId};

/// Largest sequence length: positions are compared in f32, which is exact up to this number.
const MAX_POSITION: i64 = 1 << 24;

fn check_scores(scores: &AttentionScores, graph: &NormalGraph, compute: DataType) -> Result<(), Unsupported> {
    if !check_compute(graph, compute, &[scores.q, scores.k, scores.v])?.is_float() {
        return Err(Unsupported::new(format!("attention has no meaning in {compute}")));
    }
    check_not_constant(graph, &[scores.q, scores.k, scores.v])?;
    let lengths = [scores.seq_len_q, scores.seq_len_kv];
    let diagonal = Diagonal::of(scores);
    let declined = [
        (
            scores.padding_mask && diagonal.is_bottom_right,
            "a diagonal from the bottom right of padded sequences is defined nowhere",
        ),
        (
            !scores.padding_mask && lengths.iter().any(Option::is_some),
            "sequence lengths without padding_mask",
        ),
        (
            scores.padding_mask && lengths.iter().any(Option::is_none),
            "padding_mask without both sequence lengths",
        ),
        (
            scores.alibi_mask && (diagonal.right != Some(0) || diagonal.is_bottom_right),
            "ALiBi without a causal mask from the top left is defined nowhere",
        ),
    ];
    decline(&declined)?;
    for id in [scores.q, scores.k] {
        let length = graph.tensor(id).and_then(|tensor| tensor.dims.get(QUERY));
        if length.is_some_and(|&length| length > MAX_POSITION) {
            return Err(Unsupported::of_tensor(id, "a sequence of more than 2^24 positions"));
        }
    }
    Ok(())
}

fn decline(reasons: &[(bool, &str)]) -> Result<(), Unsupported> {
    match reasons.iter().find(|(holds, _)| *holds) {
        Some((_, reason)) => Err(Unsupported::new(*reason)),
        None => Ok(()),
    }
}

fn drops(probability: Option<f32>, tensors: &[Option<TensorId>]) -> bool {
    probability.is_some_and(|probability| probability != 0.0) || tensors.iter().any(Option::is_some)
}

/// Checks whether forward attention can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &Sdpa) -> Result<(), Unsupported> {
    let dropout = [op.seed, op.offset, op.dropout_mask, op.dropout_scale, op.rng_dump];
    let eight_bits = [
        op.descale_q,
        op.descale_k,
        op.descale_v,
        op.descale_s,
        op.scale_s,
        op.scale_o,
        op.amax_s,
        op.amax_o,
    ];
    let paged = op.page_table_k.is_some() || op.page_table_v.is_some() || op.max_seq_len_kv.is_some();
    decline(&[
        (drops(op.dropout_probability, &dropout), "dropout is not supported"),
        (paged, "paged keys and values are not supported"),
        (op.block_mask.is_some(), "a block mask is not supported"),
        (
            eight_bits.iter().any(Option::is_some),
            "scales of 8-bit floats are not supported",
        ),
        (
            op.sink_token.is_some() && (op.max.is_some() || op.sum_exp.is_some()),
            "the maximum and the sum beside a sink token are defined nowhere",
        ),
    ])?;
    let q = graph.tensor(op.q).map(|q| q.dtype);
    if let Some(core) = op
        .mma_core_mode
        .filter(|&core| core != DataType::F32 && Some(core) != q)
    {
        return Err(Unsupported::new(format!(
            "mma_core_mode {core}, which is not the type of q"
        )));
    }
    check_scores(&op.scores(), graph, compute)
}

/// Checks whether the gradients of attention can be lowered.
pub(crate) fn check_backward(graph: &NormalGraph, compute: DataType, op: &SdpaBackward) -> Result<(), Unsupported> {
    let dropout = [
        op.seed,
        op.offset,
        op.dropout_mask,
        op.dropout_scale,
        op.dropout_scale_inv,
    ];
    let mask = op.attn_mask.and_then(|id| graph.tensor(id));
    let is_truth = mask.is_some_and(|mask| mask.dtype == DataType::Bool);
    decline(&[
        (drops(op.dropout_probability, &dropout), "dropout is not supported"),
        (
            is_truth && op.dbias.is_some(),
            "a mask of truth values has no gradient (dbias)",
        ),
    ])?;
    check_not_constant(graph, &[op.d_o])?;
    check_scores(&op.scores(), graph, compute)
}

/// Returns the number of elements of intermediate tensors: scores and weights, keys and values for
/// all heads, and the weighted sum.
pub(crate) fn elements(graph: &NormalGraph, op: &Sdpa) -> Option<u64> {
    made(graph, [op.q, op.k, op.v], 2)
}

/// Returns the number of elements of the gradients' intermediate tensors: scores, weights and both
/// of their gradients.
pub(crate) fn backward_elements(graph: &NormalGraph, op: &SdpaBackward) -> Option<u64> {
    // The gradients of keys and values are as large as the keys and values counted here; dq adds
    // one more.
    made(graph, [op.q, op.k, op.v], 4)?.checked_mul(2)
}

fn made(graph: &NormalGraph, [q, k, v]: [TensorId; 3], scores: u64) -> Option<u64> {
    let (q, k, v) = (graph.tensor(q)?, graph.tensor(k)?, graph.tensor(v)?);
    let (&[batch, heads, queries, d], &[_, _, keys, _], &[.., columns]) =
        (q.dims.as_slice(), k.dims.as_slice(), v.dims.as_slice())
    else {
        return None;
    };
    let count = |[rows, columns]: [i64; 2]| product(&[batch, heads, rows, columns]);
    let scores = count([queries, keys])?.checked_mul(scores)?;
    [[keys, d], [keys, columns], [queries, columns]]
        .into_iter()
        .try_fold(scores, |sum, dims| sum.checked_add(count(dims)?))
}
