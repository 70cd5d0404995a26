//! Products of matrices on CPUs whose operands need no packing.
//!
//! Products of few rows are [`FewRows`], if the columns of the right matrix are contiguous. This
//! file has the other products: both of their operands have the summed axis innermost, as a filter
//! has it.
//!
//! Example: 49 positions of 4608 terms by 512 filters. Packing the filter's 9 MB takes more than
//! half as long as the products. A vector has 16 terms of a row, and its lanes are added at the
//! end. A tile of 7 rows by 4 columns has 28 sums, which together with the operands fill the 32
//! registers of AVX-512. The kernel is for CPUs that have these: with the 16 registers of AVX2,
//! packed tiles were faster in two of three shapes (1.7 against 2.2 ms, 3.1 against 4.8, 5.8
//! against 5.2; AMD Zen 4). The last tiles end at the last row and column, and the last vector at
//! the last term: where they overlap the ones before, results are computed twice, or terms are
//! zero.

use super::code::{Code, Int, Ssa};
use super::cpu_few_rows::FewRows;
use crate::counts::ceil_div;
use crate::mlir::{Float, Type};

/// Terms per vector.
const LANES: i64 = 16;
/// Rows and columns of a tile.
const DOWN: i64 = 7;
const ACROSS: i64 = 4;
/// Tiles of a workgroup, along rows and along columns. IREE's workers take eight workgroups at a
/// time if there are at least eight per worker: with only a few more than that, one worker gets
/// twice as many as another.
const TILES: i64 = 8;
/// Minimum number of terms for which adding the lanes at the end pays off.
const TERMS: i64 = 256;
/// Maximum number of terms that are summed in f32: 512 per lane. The partial sums of longer
/// products are added in f64.
const TURN: i64 = 512 * LANES;

/// The contiguous axis of the right matrix of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Terms,
    Columns,
}

/// The product of a \[rows, terms\] matrix and a right matrix, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuMatmul {
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    pub(crate) terms: i64,
    pub(crate) right: Right,
}

impl CpuMatmul {
    /// Returns whether there is a kernel for this product, on CPUs with AVX-512 registers.
    pub(crate) fn is_possible(&self) -> bool {
        const MOST: i64 = 1 << 40;
        let is_counted = |a: i64, b: i64| a.checked_mul(b).is_some_and(|count| count < MOST);
        let has_kernel = match self.right {
            Right::Terms => self.rows > 0 && self.columns > 0 && self.terms >= TERMS,
            Right::Columns => self.lines().is_possible(),
        };
        has_kernel
            && is_counted(self.rows, self.terms)
            && is_counted(self.columns, self.terms)
            && is_counted(self.rows, self.columns)
    }

    fn lines(&self) -> FewRows {
        let CpuMatmul {
            rows, columns, terms, ..
        } = *self;
        FewRows { rows, columns, terms }
    }

    /// Returns the number of elements of both matrices and of the product.
    pub(super) fn elements(&self) -> [i64; 3] {
        let CpuMatmul {
            rows, columns, terms, ..
        } = *self;
        [rows * terms, columns * terms, rows * columns]
    }

    /// Returns the kernel's name, for people.
    pub(super) fn name(&self) -> String {
        let kind = match self.right {
            Right::Terms => "matmul",
            Right::Columns => "few_rows",
        };
        format!("{kind}_{}x{}x{}_f32", self.rows, self.columns, self.terms)
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        if self.right == Right::Columns {
            return self.lines().write(code);
        }
        // Tiles of nearly equal height: overlapping rows are computed twice.
        let down = ceil_div(self.rows, ceil_div(self.rows, DOWN));
        let across = ACROSS.min(self.columns);
        let tiles = [ceil_div(self.rows, down), ceil_div(self.columns, across)];
        // Nearly equal numbers of tiles per workgroup. If there is more than one workgroup, each
        // has several tiles, so that the tile that the last one overlaps is in the same workgroup.
        let [blocks, strips] = tiles.map(|tiles| ceil_div(tiles, TILES));
        let workgroup = code.workgroup();
        let span = |number: Int<'c>, (count, tiles, each): (i64, i64, i64)| {
            let first = number * tiles / count;
            let end = (number + 1) * tiles / count;
            [first * each, end * each]
        };
        // Neighbouring workgroups share their rows if there are many rows, and their columns
        // otherwise. The other operand is read from memory, or from a far cache, by each workgroup.
        let [block, strip] = if self.columns < 2 * self.rows {
            [workgroup / strips, workgroup % strips]
        } else {
            [workgroup % blocks, workgroup / blocks]
        };
        let rows = span(block, (blocks, tiles[0], down));
        let columns = span(strip, (strips, tiles[1], across));
        let buffers = code.buffers();
        // The last tiles end at the last row and column.
        code.each([columns[0], columns[1], across.into()], |column| {
            let column = column.min(self.columns - across);
            code.each([rows[0], rows[1], down.into()], |row| {
                let row = row.min(self.rows - down);
                self.tile(code, buffers, [row, column], [down, across]);
            });
        });
        strips * blocks
    }

    /// Computes the sums of a tile.
    fn tile<'c>(
        &self,
        code: &Code<'c>,
        [a, b, out]: [Ssa<'c>; 3],
        [row, column]: [Int<'c>; 2],
        [down, across]: [i64; 2],
    ) {
        let starts = |first: Int<'c>, count: i64| -> Vec<Int<'c>> {
            (0..count).map(|next| (first + next) * self.terms).collect()
        };
        let tile = Tile {
            code,
            vector: Type::float(code.context(), Float::F32).vector(&[LANES]),
            rows: (a, starts(row, down)),
            columns: (b, starts(column, across)),
        };
        let rest = self.terms % LANES;
        let whole = self.terms - rest;
        let zeros = vec![code.zeros(tile.vector); tile.rows.1.len() * tile.columns.1.len()];
        let turn = |span: [Int<'c>; 2]| {
            code.repeat([span[0], span[1], LANES.into()], &zeros, |term, sums| {
                tile.step(term, sums, LANES)
            })
        };
        let ended = |sums: Vec<Ssa<'c>>| match rest {
            0 => sums,
            rest => tile.step((self.terms - LANES).into(), &sums, rest),
        };
        let sums = if whole <= TURN {
            tile.added(&ended(turn([0.into(), whole.into()])))
        } else {
            let wide = Type::float(code.context(), Float::F64);
            let so_far = |totals: &[Ssa<'c>], sums: Vec<Ssa<'c>>| -> Vec<Ssa<'c>> {
                let sums = tile.added(&sums);
                let pairs = totals.iter().zip(sums);
                pairs.map(|(&total, sum)| total + sum.extf(wide)).collect()
            };
            let none = vec![code.float_text("0.0", wide); zeros.len()];
            let totals = code.repeat([0.into(), whole.into(), TURN.into()], &none, |first, totals| {
                let end = (first + TURN).min(whole);
                so_far(totals, turn([first, end]))
            });
            let totals = so_far(&totals, ended(zeros.clone()));
            let float = Type::float(code.context(), Float::F32);
            let rounded = totals.iter().map(|&total| total.truncf(float));
            rounded.collect()
        };
        let mut sums = sums.into_iter();
        for down in 0..down {
            let line = (row + down) * self.columns + column;
            for (across, sum) in (0..across).zip(&mut sums) {
                code.write(sum, out, line + across);
            }
        }
    }
}

/// A tile of rows and columns whose sums stay in registers.
struct Tile<'t, 'c> {
    code: &'t Code<'c>,
    vector: Type<'c>,
    /// A matrix, and the offsets of the tile's rows in it.
    rows: (Ssa<'c>, Vec<Int<'c>>),
    columns: (Ssa<'c>, Vec<Int<'c>>),
}

impl<'c> Tile<'_, 'c> {
    /// Adds a vector of terms to the sums. Only the last `new` terms of the vector count, since the
    /// ones before have been added already.
    fn step(&self, term: Int<'c>, sums: &[Ssa<'c>], new: i64) -> Vec<Ssa<'c>> {
        let code = self.code;
        let loaded = |buffer: Ssa<'c>, start: &Int<'c>| {
            let vector = code.read_vector(buffer, *start + term, self.vector);
            if new == LANES {
                return vector;
            }
            let lanes: Vec<i64> = (0..LANES)
                .map(|lane| if lane < LANES - new { lane } else { LANES + lane })
                .collect();
            code.shuffle([code.zeros(self.vector), vector], &lanes)
        };
        let (a, rows) = &self.rows;
        let (b, columns) = &self.columns;
        let right: Vec<_> = columns.iter().map(|start| loaded(*b, start)).collect();
        let mut sums = sums.iter();
        let mut next = Vec::new();
        for start in rows {
            let left = loaded(*a, start);
            for (&right, &sum) in right.iter().zip(&mut sums) {
                next.push(left.vector_fma(right, sum));
            }
        }
        next
    }

    /// Adds the lanes of each sum.
    fn added(&self, sums: &[Ssa<'c>]) -> Vec<Ssa<'c>> {
        sums.iter().map(|&sum| self.code.sum_of_lanes(sum)).collect()
    }
}
