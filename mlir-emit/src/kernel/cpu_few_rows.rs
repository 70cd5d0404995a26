//! Products of few rows and a matrix with contiguous columns, on CPUs. No operand is packed, and
//! there is no reduction across lanes.
//!
//! Example: one row of 768 terms by 3072 columns. A tile has all rows and 128 columns; a vector
//! holds the sums of one row and 16 columns. For each term the kernel loads 128 contiguous elements
//! of the matrix, and multiplies them by one number of each row. The wider the tile, the fewer
//! pages are looked up: 4096 terms by 4096 columns, which come from memory, take 7.0 ms in tiles of
//! 64 columns, and 5.0 ms in tiles of 256 (one core, AMD Zen 4).

use super::code::{Code, Int, Ssa};
use crate::mlir::{Float, Type};

/// Columns per vector.
const LANES: i64 = 16;
/// Vectors along a tile's columns: the largest of these that leaves enough tiles is used.
const ACROSS: [i64; 3] = [16, 8, 4];
/// Number of tiles that is enough for the cores of a CPU.
const TILES: i64 = 16;
/// Maximum number of vectors of sums that stay in registers.
const SUMS: i64 = 28;
/// Maximum number of rows.
const ROWS: i64 = 7;
/// Minimum number of columns.
const COLUMNS: i64 = 4 * LANES;
/// Maximum number of terms that are summed in f32. Such partial sums are added in f64.
const TURN: i64 = 512;

/// The product of a \[rows, terms\] matrix and a \[terms, columns\] one, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FewRows {
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) terms: i64,
}

impl FewRows {
    /// Returns whether there is a kernel for this product.
    pub(super) fn is_possible(&self) -> bool {
        (1..=ROWS).contains(&self.rows) && self.columns >= COLUMNS && self.terms > 0
    }

    /// Returns the number of vectors along a tile's columns.
    fn across(&self) -> i64 {
        let is_possible = |across: &i64| self.rows * across <= SUMS && self.columns >= TILES * across * LANES;
        ACROSS.into_iter().find(is_possible).unwrap_or(COLUMNS / LANES)
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let buffers = code.buffers();
        // The last workgroup also takes the remaining columns, so that no two workgroups write the
        // same columns.
        let tile = self.across() * LANES;
        let workgroups = self.columns / tile;
        let workgroup = code.workgroup();
        let first = workgroup * tile;
        let end = first + tile;
        let end = workgroup.is_below(workgroups - 1).select(end, self.columns);
        code.each([first, end, tile.into()], |column| {
            // The last tile ends at the last column, and may overlap the tile before.
            let column = column.min(self.columns - tile);
            self.tile(code, buffers, column);
        });
        workgroups
    }

    /// Computes the sums of all rows and the columns of one tile.
    fn tile<'c>(&self, code: &Code<'c>, [a, b, out]: [Ssa<'c>; 3], column: Int<'c>) {
        let float = Type::float(code.context(), Float::F32);
        let vector = float.vector(&[LANES]);
        let vectors = self.across();
        let zeros: Vec<_> = (0..self.rows * vectors).map(|_| code.zeros(vector)).collect();
        let turn = |first: Int<'c>, end: Int<'c>| {
            code.repeat([first, end, 1.into()], &zeros, |term, sums| {
                let line = term * self.columns + column;
                let loaded: Vec<_> = (0..vectors)
                    .map(|across| code.read_vector(b, line + across * LANES, vector))
                    .collect();
                let mut sums = sums.iter();
                let mut next = Vec::new();
                for row in 0..self.rows {
                    let number = code.read(a, term + row * self.terms).broadcast(vector);
                    for (&elements, &sum) in loaded.iter().zip(&mut sums) {
                        next.push(number.vector_fma(elements, sum));
                    }
                }
                next
            })
        };
        let sums = if self.terms <= TURN {
            turn(0.into(), self.terms.into())
        } else {
            let wide = Type::float(code.context(), Float::F64).vector(&[LANES]);
            let none = vec![code.zeros(wide); zeros.len()];
            let totals = code.repeat([0.into(), self.terms.into(), TURN.into()], &none, |first, totals| {
                let end = (first + TURN).min(self.terms);
                let sums = turn(first, end);
                let pairs = totals.iter().zip(sums);
                pairs.map(|(&total, sum)| total + sum.extf(wide)).collect()
            });
            let rounded = totals.iter().map(|&total| total.truncf(vector));
            rounded.collect()
        };
        let mut sums = sums.into_iter();
        for row in 0..self.rows {
            for (across, sum) in (0..vectors).zip(&mut sums) {
                let place = column + (row * self.columns + across * LANES);
                code.write_vector(sum, out, place);
            }
        }
    }
}
