//! Attention and its gradient.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// The corner of the score matrix at which the diagonal of an attention mask starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum DiagonalAlignment {
    TopLeft,
    BottomRight,
}

/// The implementation of attention that the graph's author asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum AttentionImplementation {
    Auto,
    Composite,
    Unified,
}

operation! {
    /// Scaled dot-product attention: o = softmax(scale q k^T + mask) v, row by row. A row whose
    /// keys are all masked is zero.
    ///
    /// The scale is `attn_scale_value` or the tensor `scale`, and 1 if neither is set (hipDNN's
    /// `PlanUtils.hpp`; older versions of hipDNN used 1 / sqrt(D)). `stats` is the natural
    /// logarithm of the sum of exponentials. `sink_token` adds one exponential per head to that
    /// sum, which has neither key nor value.
    Sdpa
    reads {
        q: TensorId, k: TensorId, v: TensorId, attn_mask: Option<TensorId>, scale: Option<TensorId>,
        seq_len_q: Option<TensorId>, seq_len_kv: Option<TensorId>, seed: Option<TensorId>, offset: Option<TensorId>,
        dropout_mask: Option<TensorId>, dropout_scale: Option<TensorId>, page_table_k: Option<TensorId>,
        page_table_v: Option<TensorId>, block_mask: Option<TensorId>, sink_token: Option<TensorId>,
        descale_q: Option<TensorId>, descale_k: Option<TensorId>, descale_v: Option<TensorId>,
        descale_s: Option<TensorId>, scale_s: Option<TensorId>, scale_o: Option<TensorId>,
    }
    writes {
        o: TensorId, stats: Option<TensorId>, max: Option<TensorId>, sum_exp: Option<TensorId>,
        rng_dump: Option<TensorId>, amax_s: Option<TensorId>, amax_o: Option<TensorId>,
    }
    attributes {
        /// Whether `stats` is requested.
        generate_stats: Option<bool>,
        /// Whether ALiBi is applied: a bias linear in the distance between query and key.
        alibi_mask: bool,
        /// Whether keys and queries beyond the sequence lengths are masked.
        padding_mask: bool,
        /// Deprecated: right bound 0, aligned to the top left.
        causal_mask: bool,
        /// Deprecated: right bound 0, aligned to the bottom right.
        causal_mask_bottom_right: bool,
        /// Fraction of the attention weights that dropout zeroes.
        dropout_probability: Option<f32>,
        /// Factor on q k^T.
        attn_scale_value: Option<f32>,
        /// Number of keys visible before the diagonal.
        left_bound: Option<i64>,
        /// Number of keys visible after the diagonal.
        right_bound: Option<i64>,
        /// Length of the longest sequence of keys.
        max_seq_len_kv: Option<i32>,
        /// Corner at which the diagonal starts.
        diagonal_alignment: DiagonalAlignment,
        /// Type of the matrix core's inputs; `None` if not set.
        mma_core_mode: Option<crate::DataType>,
        /// The requested implementation.
        implementation: AttentionImplementation,
    }
}

impl Sdpa {
    /// Returns an attention without a mask and with scale 1 that stores only `o`.
    #[must_use]
    pub const fn new(q: TensorId, k: TensorId, v: TensorId, o: TensorId) -> Self {
        Sdpa {
            q,
            k,
            v,
            attn_mask: None,
            scale: None,
            seq_len_q: None,
            seq_len_kv: None,
            seed: None,
            offset: None,
            dropout_mask: None,
            dropout_scale: None,
            page_table_k: None,
            page_table_v: None,
            block_mask: None,
            sink_token: None,
            descale_q: None,
            descale_k: None,
            descale_v: None,
            descale_s: None,
            scale_s: None,
            scale_o: None,
            o,
            stats: None,
            max: None,
            sum_exp: None,
            rng_dump: None,
            amax_s: None,
            amax_o: None,
            generate_stats: None,
            alibi_mask: false,
            padding_mask: false,
            causal_mask: false,
            causal_mask_bottom_right: false,
            dropout_probability: None,
            attn_scale_value: None,
            left_bound: None,
            right_bound: None,
            max_seq_len_kv: None,
            diagonal_alignment: DiagonalAlignment::TopLeft,
            mma_core_mode: None,
            implementation: AttentionImplementation::Auto,
        }
    }
}

operation! {
    /// The gradients of scaled dot-product attention. With P = exp(scores - stats) and dS = P (do
    /// v^T - sum of do o): dv = P^T do, dq = scale dS k, dk = scale dS^T q, and dbias = dS summed
    /// over the axes along which the mask broadcasts.
    SdpaBackward
    reads {
        q: TensorId, k: TensorId, v: TensorId, o: TensorId, d_o: TensorId, stats: TensorId,
        scale: Option<TensorId>, attn_mask: Option<TensorId>, seq_len_q: Option<TensorId>,
        seq_len_kv: Option<TensorId>, seed: Option<TensorId>, offset: Option<TensorId>,
        dropout_mask: Option<TensorId>, dropout_scale: Option<TensorId>, dropout_scale_inv: Option<TensorId>,
    }
    writes { dq: TensorId, dk: TensorId, dv: TensorId, dbias: Option<TensorId> }
    attributes {
        /// Whether ALiBi is applied: a bias linear in the distance between query and key.
        alibi_mask: bool,
        /// Whether keys and queries beyond the sequence lengths are masked.
        padding_mask: bool,
        /// Deprecated: right bound 0, aligned to the top left.
        causal_mask: bool,
        /// Deprecated: right bound 0, aligned to the bottom right.
        causal_mask_bottom_right: bool,
        /// Fraction of the attention weights that dropout zeroed in the forward pass.
        dropout_probability: Option<f32>,
        /// Factor on q k^T.
        attn_scale_value: Option<f32>,
        /// Number of keys visible before the diagonal.
        left_bound: Option<i64>,
        /// Number of keys visible after the diagonal.
        right_bound: Option<i64>,
        /// Corner at which the diagonal starts.
        diagonal_alignment: DiagonalAlignment,
    }
}

impl SdpaBackward {
    /// Returns the gradients of q, k and v from q, k, v, o, do and stats, without a mask and with
    /// scale 1.
    #[must_use]
    pub const fn new([q, k, v, o, d_o, stats]: [TensorId; 6], [dq, dk, dv]: [TensorId; 3]) -> Self {
        SdpaBackward {
            q,
            k,
            v,
            o,
            d_o,
            stats,
            scale: None,
            attn_mask: None,
            seq_len_q: None,
            seq_len_kv: None,
            seed: None,
            offset: None,
            dropout_mask: None,
            dropout_scale: None,
            dropout_scale_inv: None,
            dq,
            dk,
            dv,
            dbias: None,
            alibi_mask: false,
            padding_mask: false,
            causal_mask: false,
            causal_mask_bottom_right: false,
            dropout_probability: None,
            attn_scale_value: None,
            left_bound: None,
            right_bound: None,
            diagonal_alignment: DiagonalAlignment::TopLeft,
        }
    }
}

/// Declares [`AttentionScores`] over the fields that both operations have.
macro_rules! scores {
    ($($field:ident: $ty:ty),+ $(,)?) => {
        /// The operands and attributes of the scores, which both directions of attention have.
        #[derive(Clone, Copy, Debug)]
        #[expect(missing_docs, reason = "the fields of both operations")]
        pub struct AttentionScores { $(pub $field: $ty),+ }

        scores!(of Sdpa $($field)+);
        scores!(of SdpaBackward $($field)+);
    };
    (of $op:ident $($field:ident)+) => {
        impl $op {
            /// Returns the operands and attributes of the scores.
            #[must_use]
            pub const fn scores(&self) -> AttentionScores {
                AttentionScores { $($field: self.$field),+ }
            }
        }
    };
}

scores! {
    q: TensorId, k: TensorId, v: TensorId, attn_mask: Option<TensorId>, scale: Option<TensorId>,
    seq_len_q: Option<TensorId>, seq_len_kv: Option<TensorId>, dropout_mask: Option<TensorId>,
    attn_scale_value: Option<f32>, alibi_mask: bool, padding_mask: bool, causal_mask: bool,
    causal_mask_bottom_right: bool, left_bound: Option<i64>, right_bound: Option<i64>,
    diagonal_alignment: DiagonalAlignment,
}
