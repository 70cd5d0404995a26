//! Products of few rows and a matrix with contiguous columns, on CPUs: nothing is packed, and there
//! is no reduction across lanes.
//!
//! Example: one row of 768 terms by 3072 columns. A tile has all rows and 128 columns, a vector of
//! 16 sums for each row and 16 columns. For each term it loads 128 neighbouring elements of the
//! matrix, and multiplies them by one number of each row. The more elements lie side by side, the
//! fewer pages are looked up: 4096 terms by 4096 columns, which come from memory, take 7.0 ms in
//! tiles of 64 columns, and 5.0 ms in tiles of 256 (one core, AMD Zen 4).

use super::code::{Code, Int, Ssa};
use crate::mlir::{Float, Type};

/// Columns of a vector.
const LANES: i64 = 16;
/// Vectors of a tile's columns: the most that leave enough tiles.
const ACROSS: [i64; 3] = [16, 8, 4];
/// Tiles that are enough for the cores of a CPU.
const TILES: i64 = 16;
/// Vectors of sums that stay in registers.
const SUMS: i64 = 28;
/// Most rows.
const ROWS: i64 = 7;
/// Fewest columns.
const COLUMNS: i64 = 4 * LANES;
/// Terms that are summed in f32. The sums of more are added in f64.
const TURN: i64 = 512;

/// The product of a \[rows, terms\] matrix and a \[terms, columns\] one, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FewRows {
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) terms: i64,
}

impl FewRows {
    /// Whether there is a kernel for it.
    pub(super) fn is_possible(&self) -> bool {
        (1..=ROWS).contains(&self.rows) && self.columns >= COLUMNS && self.terms > 0
    }

    /// Vectors of a tile's columns.
    fn across(&self) -> i64 {
        let is_possible = |across: &i64| self.rows * across <= SUMS && self.columns >= TILES * across * LANES;
        ACROSS.into_iter().find(is_possible).unwrap_or(COLUMNS / LANES)
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let buffers = code.buffers();
        // The last workgroup has the rest too: no tile is shared with another.
        let tile = self.across() * LANES;
        let workgroups = self.columns / tile;
        let workgroup = code.workgroup();
        let first = workgroup * tile;
        let end = first + tile;
        let end = workgroup.is_below(workgroups - 1).select(end, self.columns);
        code.each([first, end, tile.into()], |column| {
            // The last tile ends with the last column.
            let column = column.min(self.columns - tile);
            self.tile(code, buffers, column);
        });
        workgroups
    }

    /// The sums of all rows and some columns.
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
                    let place = code.index(term + row * self.terms);
                    let number = code.read(a, place);
                    let number = number.broadcast(vector);
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
