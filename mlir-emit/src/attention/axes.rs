//! The attributes and axes of the scores matrix, shared by forward and backward.

use rotini_graph::{DiagonalAlignment, TensorId};

/// Axes of the scores tensor, [batch, head, query, key].
pub(super) const HEAD: usize = 1;
pub(super) const QUERY: usize = 2;
pub(super) const KEY: usize = 3;

/// The attributes of the scores that forward and backward attention share: both operations' structs
/// have fields of these names.
pub(super) struct Scores {
    pub(super) q: TensorId,
    pub(super) k: TensorId,
    pub(super) v: TensorId,
    pub(super) mask: Option<TensorId>,
    pub(super) scale: Option<TensorId>,
    pub(super) scale_value: Option<f32>,
    pub(super) alibi: bool,
    pub(super) padding: bool,
    pub(super) lengths: [Option<TensorId>; 2],
    pub(super) causal: bool,
    pub(super) causal_bottom_right: bool,
    pub(super) left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) alignment: DiagonalAlignment,
}

macro_rules! scores_of {
    ($op:ident) => {
        $crate::attention::axes::Scores {
            q: $op.q,
            k: $op.k,
            v: $op.v,
            mask: $op.attn_mask,
            scale: $op.scale,
            scale_value: $op.attn_scale_value,
            alibi: $op.alibi_mask,
            padding: $op.padding_mask,
            lengths: [$op.seq_len_q, $op.seq_len_kv],
            causal: $op.causal_mask,
            causal_bottom_right: $op.causal_mask_bottom_right,
            left: $op.left_bound,
            right: $op.right_bound,
            alignment: $op.diagonal_alignment,
        }
    };
}

pub(super) use scores_of;

/// The keys that a query sees: from `left` before the query's diagonal key to `right` after it. A
/// missing bound hides nothing on its side.
#[derive(Clone, Copy)]
pub(super) struct Diagonal {
    pub(super) left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) is_bottom_right: bool,
}

impl Scores {
    pub(super) fn diagonal(&self) -> Diagonal {
        // A negative bound means no bound.
        let bound = |bound: Option<i64>| bound.filter(|bound| *bound >= 0);
        let (left, right, alignment) = match (self.causal, self.causal_bottom_right) {
            (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
            (false, true) => (None, Some(0), DiagonalAlignment::BottomRight),
            (false, false) => (bound(self.left), bound(self.right), self.alignment),
        };
        Diagonal {
            left,
            right,
            is_bottom_right: alignment == DiagonalAlignment::BottomRight && (left.is_some() || right.is_some()),
        }
    }
}
