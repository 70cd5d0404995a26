//! Recomputation of sums that are NaN, from only the rows that are visible.
//!
//! Matrix instructions multiply rows of values that are visible to one row of weights and hidden
//! from another. The weight of a hidden row is 0, and 0 times NaN or an infinity is NaN. So a lane
//! checks its sums at the end. If any is NaN, the lane goes over the rows that are visible to its
//! own row, one by one. If none is, the check costs one addition for each sum.

use super::{MISSING, Operand, WIDE};
use crate::counts::{exactly, unsigned};
use crate::ir::FloatPredicate;
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::RUN;
use crate::mlir::Type;

/// The state of a lane that recomputes its sums.
pub(super) struct Again<'a, 'c> {
    pub(super) code: &'a Code<'c>,
    /// The element type of the tensors.
    pub(super) half: Type<'c>,
    pub(super) float: Type<'c>,
    /// The lane's quarter of the columns: of 16 groups of contiguous columns, the lane has the sums
    /// of groups 4 · quarter to 4 · quarter + 3.
    pub(super) quarter: Int<'c>,
}

/// A row of a tensor: its buffer, and the offset of its first element.
#[derive(Clone, Copy)]
pub(super) struct Row<'c> {
    pub(super) buffer: Ssa<'c>,
    pub(super) place: Int<'c>,
}

/// A tensor of one head of a batch.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'c> {
    pub(super) operand: Operand,
    pub(super) buffer: Ssa<'c>,
    pub(super) columns: i64,
}

impl<'c> Matrix<'c> {
    /// Returns the row of a batch, a head and a row number.
    pub(super) fn row(&self, place: [Int<'c>; 3]) -> Row<'c> {
        Row {
            buffer: self.buffer,
            place: self.operand.strides.place(place),
        }
    }
}

impl<'c> Again<'_, 'c> {
    /// Returns the sums of a row, or those that `body` computes if any of them is NaN and
    /// `is_meant` is true.
    ///
    /// `sums`: one vector for each column that a lane reads at once, with the sums of four columns.
    /// `body` returns four vectors for each tensor, one for each of the lane's four groups of
    /// columns.
    pub(super) fn mended(
        &self,
        sums: &[Ssa<'c>],
        is_meant: Int<'c>,
        body: impl FnOnce() -> Vec<Ssa<'c>>,
    ) -> Vec<Ssa<'c>> {
        let code = self.code;
        let (&first, rest) = sums.split_first().expect(MISSING);
        let mut all = first;
        for &sum in rest {
            all = all + sum;
        }
        let mut sum = code.extract(all, 0, self.float);
        for number in 1..RUN {
            sum = sum + code.extract(all, number, self.float);
        }
        let is_nan = code.compare_floats(FloatPredicate::Unordered, sum, sum);
        code.replaced(Int::Made(is_nan) & is_meant, sums, || {
            let run = self.float.vector(&[RUN]);
            let by_columns = body();
            let width = unsigned(RUN);
            let mut sums = Vec::new();
            for groups in by_columns.chunks(width) {
                let columns = groups[0].r#type().as_vector().0;
                for column in 0..columns[0] {
                    let own: Vec<_> = groups
                        .iter()
                        .map(|&group| code.extract(group, column, self.float))
                        .collect();
                    sums.push(code.vector(&own, run));
                }
            }
            sums
        })
    }

    /// Returns zeroed sums for a matrix with `columns` columns: a vector for each of four groups of
    /// columns.
    pub(super) fn none(&self, columns: i64) -> Vec<Ssa<'c>> {
        let zeros = self.code.zeros(self.float.vector(&[self.width(columns)]));
        vec![zeros; unsigned(RUN)]
    }

    /// Returns the number of contiguous columns in a group.
    fn width(&self, columns: i64) -> i64 {
        columns / super::SIXTEEN
    }

    /// Returns the dot product of two rows.
    pub(super) fn dot(&self, [a, b]: [Row<'c>; 2], columns: i64) -> Ssa<'c> {
        let code = self.code;
        let (narrow, wide) = (self.half.vector(&[WIDE]), self.float.vector(&[WIDE]));
        let bounds = [0, columns, WIDE].map(Int::Known);
        let sums = code.repeat(bounds, &[code.zeros(wide)], |column, sums| {
            let [sums] = exactly(sums);
            // Without this barrier the compiler loads all of a row at once, and all lanes pay for
            // the registers.
            code.schedule_barrier();
            let [a, b] = [a, b].map(|row| {
                let loaded = code.load(row.buffer, row.place + column, narrow);
                loaded.extf(wide)
            });
            vec![a.fma(b, sums)]
        });
        let [sums] = exactly(&sums);
        let mut sum = code.extract(sums, 0, self.float);
        for number in 1..WIDE {
            sum = sum + code.extract(sums, number, self.float);
        }
        sum
    }

    /// Adds `factor` times the lane's columns of a row to the sums.
    pub(super) fn added(&self, sums: &[Ssa<'c>], factor: Ssa<'c>, (row, columns): (Row<'c>, i64)) -> Vec<Ssa<'c>> {
        let code = self.code;
        let width = self.width(columns);
        let (narrow, wide) = (self.half.vector(&[width]), self.float.vector(&[width]));
        let factor = factor.broadcast(wide);
        let group = |(number, &sum): (i64, &Ssa<'c>)| {
            code.schedule_barrier();
            let group = self.quarter * RUN + number;
            let place = row.place + group * width;
            let loaded = code.load(row.buffer, place, narrow);
            let loaded = loaded.extf(wide);
            factor.fma(loaded, sum)
        };
        (0..).zip(sums).map(group).collect()
    }

    /// Returns whether a number is not NaN.
    pub(super) fn is_number(&self, number: Ssa<'c>) -> Int<'c> {
        Int::Made(self.code.compare_floats(FloatPredicate::Ordered, number, number))
    }
}
