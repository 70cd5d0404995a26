//! The online softmax of a query on AMD GPUs: the greatest score so far, and sums that are scaled
//! whenever it rises.

use super::{MISSING, of_query};
use crate::kernel::code::{Code, Ssa};
use crate::kernel::epilogue::RUN;
use crate::mlir::{Name, Type};

/// The least finite f32. Where every score is -∞, exponentials relative to it are 0, and not
/// exp(-∞ + ∞).
const LEAST: &str = "-3.40282347E+38";

/// The results of a lane's query so far.
#[derive(Clone)]
pub(super) struct Sums<'c> {
    pub(super) greatest: Ssa<'c>,
    /// The sum of exponentials over the lane's own keys.
    pub(super) total: Ssa<'c>,
    /// For each column of v that the lane reads at once, a vector of four weighted sums.
    pub(super) weighted: Vec<Ssa<'c>>,
}

impl<'c> Sums<'c> {
    /// Returns the results without any key, with `width` vectors of weighted sums.
    pub(super) fn none(code: &Code<'c>, float: Type<'c>, width: usize) -> Self {
        Sums {
            greatest: code.float_text(LEAST, float),
            total: code.float_text("0.0", float),
            weighted: vec![code.zeros(float.vector(&[RUN])); width],
        }
    }

    /// Returns the values that a loop carries.
    pub(super) fn flat(&self) -> Vec<Ssa<'c>> {
        [&[self.greatest, self.total], self.weighted.as_slice()].concat()
    }

    /// Returns the results from the [values](Self::flat) that a loop carries.
    pub(super) fn of(carried: &[Ssa<'c>]) -> Self {
        let (&[greatest, total], weighted) = carried.split_first_chunk().expect(MISSING);
        Sums {
            greatest,
            total,
            weighted: weighted.to_vec(),
        }
    }

    /// Raises the greatest score to that of the new scores in the query's four lanes, scales the
    /// sums, and returns the greatest score as a vector of four. `exp2`: the operation that
    /// computes powers of 2.
    pub(super) fn raise(&mut self, code: &Code<'c>, scores: &[Ssa<'c>], float: Type<'c>, exp2: Name) -> Ssa<'c> {
        let run = float.vector(&[RUN]);
        let mut greatest = self.greatest;
        for &scores in scores {
            for number in 0..RUN {
                greatest = greatest.maxnumf(code.extract(scores, number, float));
            }
        }
        let greatest = of_query(code, Name::ArithMaxnumf, greatest);
        let factor = code.same(exp2, &[self.greatest - greatest]);
        self.greatest = greatest;
        self.total = self.total * factor;
        let factor = factor.broadcast(run);
        for sum in &mut self.weighted {
            *sum = *sum * factor;
        }
        greatest.broadcast(run)
    }
}
