//! Matrix multiplication over the last two dimensions, with batch dimensions that repeat.

use crate::op::Matmul;
use crate::{Graph, GraphError};

impl Graph {
    /// Equal ranks from 2, equal inner extents, and batch extents of which one divides the other: the output has the larger one.
    pub(crate) fn check_matmul(&self, position: usize, op: &Matmul) -> Result<(), GraphError> {
        let (Some(a), Some(b), Some(c)) = (self.tensor(op.a), self.tensor(op.b), self.tensor(op.c)) else {
            return Ok(());
        };
        let ranks = [a, b, c].map(|tensor| tensor.dims.len());
        let ([a_batch @ .., rows, inner], [b_batch @ .., b_inner, columns], true) =
            (a.dims.as_slice(), b.dims.as_slice(), ranks == [ranks[0]; 3])
        else {
            let [a, b, c] = ranks;
            let what = format!("ranks of a, b and c are {a}, {b} and {c}, but must be equal and at least 2");
            return Err(self.attribute(position, what));
        };
        if inner != b_inner {
            let what = format!("{a} has {inner} columns, but {b} has {b_inner} rows");
            return Err(self.attribute(position, what));
        }
        let mut inferred = Vec::with_capacity(ranks[0]);
        for (axis, (&of_a, &of_b)) in a_batch.iter().zip(b_batch).enumerate() {
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
