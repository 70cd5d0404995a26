//! Matrix multiplication over the last two dimensions, with batch dimensions that repeat.

use crate::op::Matmul;
use crate::{Graph, GraphError};

impl Graph {
    /// Checks a product: ranks of at least 2, equal inner extents, and for each batch axis extents
    /// of which one divides the other; the output has the larger one. Missing leading batch axes
    /// count as 1, as in NumPy.
    pub(crate) fn check_matmul(&self, position: usize, op: &Matmul) -> Result<(), GraphError> {
        let [a, b, c] = [op.a, op.b, op.c].map(|id| self.at(id));
        let ranks = [a, b, c].map(|tensor| tensor.dims.len());
        let ([a_batch @ .., rows, inner], [b_batch @ .., b_inner, columns], true) =
            (a.dims.as_slice(), b.dims.as_slice(), ranks[2] == ranks[0].max(ranks[1]))
        else {
            let [a, b, c] = ranks;
            let what = format!(
                "ranks of a, b and c are {a}, {b} and {c}, but must be at least 2, and c must have the larger one"
            );
            return Err(self.attribute(position, what));
        };
        if inner != b_inner {
            let what = format!("{a} has {inner} columns, but {b} has {b_inner} rows");
            return Err(self.contradiction(position, what));
        }
        let mut inferred = Vec::with_capacity(ranks[2]);
        let axes = ranks[2].saturating_sub(2);
        for axis in 0..axes {
            let extent = |batch: &[i64]| {
                let missing = axes.saturating_sub(batch.len());
                let own = axis.checked_sub(missing).and_then(|axis| batch.get(axis));
                own.copied().unwrap_or(1)
            };
            let (of_a, of_b) = (extent(a_batch), extent(b_batch));
            let (larger, smaller) = (of_a.max(of_b), of_a.min(of_b));
            if larger % smaller != 0 {
                let what = format!("batch extents {of_a} and {of_b} along axis {axis} do not divide");
                return Err(self.attribute(position, what));
            }
            inferred.push(larger);
        }
        inferred.extend([*rows, *columns]);
        self.shape(position, c, inferred)
    }
}
