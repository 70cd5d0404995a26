//! The attributes and axes of the scores matrix, shared by forward and backward.

use rotini_graph::{AttentionScores, DiagonalAlignment};

/// Axes of the scores tensor, [batch, head, query, key].
pub(super) const HEAD: usize = 1;
pub(super) const QUERY: usize = 2;
pub(super) const KEY: usize = 3;

/// The keys that a query sees: from `left` before the query's diagonal key to `right` after it. A
/// missing bound hides nothing on its side.
#[derive(Clone, Copy)]
pub(super) struct Diagonal {
    pub(super) left: Option<i64>,
    pub(super) right: Option<i64>,
    pub(super) is_bottom_right: bool,
}

impl Diagonal {
    pub(super) fn of(op: &AttentionScores) -> Self {
        // A negative bound means no bound.
        let bound = |bound: Option<i64>| bound.filter(|bound| *bound >= 0);
        let (left, right, alignment) = match (op.causal_mask, op.causal_mask_bottom_right) {
            (true, _) => (None, Some(0), DiagonalAlignment::TopLeft),
            (false, true) => (None, Some(0), DiagonalAlignment::BottomRight),
            (false, false) => (bound(op.left_bound), bound(op.right_bound), op.diagonal_alignment),
        };
        Diagonal {
            left,
            right,
            is_bottom_right: alignment == DiagonalAlignment::BottomRight && (left.is_some() || right.is_some()),
        }
    }
}
