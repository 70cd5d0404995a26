//! The rows of two tensors that are streamed through LDS, 64 rows per step. While one step is used,
//! the next one is loaded from memory to registers.

use super::again::Matrix;
use super::tile::Tile;
use super::{Operand, SIXTEEN, WIDE};
use crate::kernel::code::{Int, Ssa};
use crate::kernel::epilogue::RUN;

/// Rows per step.
pub(super) const STEP: i64 = 64;
/// Blocks of 16 rows per step.
pub(super) const BLOCKS: i64 = STEP / SIXTEEN;

/// A tensor whose rows are streamed.
pub(super) struct Copied<'c> {
    pub(super) operand: Operand,
    pub(super) columns: i64,
    pub(super) buffer: Ssa<'c>,
    /// The rows of a step in LDS.
    pub(super) memory: Ssa<'c>,
    /// Whether the vectors of a row are XOR-swizzled, so that lanes that read one column of
    /// neighbouring rows use different banks.
    pub(super) is_exchanged: bool,
}

/// Two tensors that are streamed together.
pub(super) struct Streamed<'a, 'c> {
    pub(super) tile: &'a Tile<'a, 'c>,
    pub(super) copied: [Copied<'c>; 2],
}

impl<'c> Copied<'c> {
    /// Returns the tensor in device memory.
    pub(super) fn matrix(&self) -> Matrix<'c> {
        Matrix {
            operand: self.operand,
            buffer: self.buffer,
            columns: self.columns,
        }
    }

    /// Returns the number of columns that a lane reads at once where columns are rows of matrices.
    pub(super) fn width(&self) -> i64 {
        self.columns / SIXTEEN
    }

    /// Returns the rows of a step that a lane copies, and the index of the vector that it copies of
    /// each.
    fn lane(&self, tile: &Tile<'_, 'c>) -> (Vec<Int<'c>>, Int<'c>) {
        let across = self.columns / WIDE;
        let down = tile.own.lanes() / across;
        let first = tile.lane / across;
        let rows = (0..STEP / down).map(|number| first + number * down);
        (rows.collect(), tile.lane % across)
    }

    /// Returns the offset of a vector of a row in LDS.
    fn place(&self, row: Int<'c>, mut vector: Int<'c>) -> Int<'c> {
        if self.is_exchanged {
            vector = vector ^ (row % (self.columns / WIDE));
        }
        row * self.columns + vector * WIDE
    }

    /// Reads eight of every 32 columns of the lane's row in a block: an operand of the scores.
    pub(super) fn rows(&self, tile: &Tile<'_, 'c>, block: i64) -> Vec<Ssa<'c>> {
        let code = tile.code;
        let vector = tile.half.vector(&[WIDE]);
        let row = tile.column + block * SIXTEEN;
        (0..self.columns / (4 * WIDE))
            .map(|turn| {
                let place = self.place(row, tile.quarter + 4 * turn);
                code.read_vector(self.memory, place, vector)
            })
            .collect()
    }

    /// Reads contiguous columns of the lane's four rows in a block. The elements with the same
    /// index in all four vectors are an operand of the sums over rows.
    pub(super) fn columns(&self, tile: &Tile<'_, 'c>, block: i64) -> Vec<Ssa<'c>> {
        let code = tile.code;
        let width = self.width();
        let vector = tile.half.vector(&[width]);
        (0..RUN)
            .map(|next| {
                let row = tile.quarter * RUN + (block * SIXTEEN + next);
                let place = if self.is_exchanged {
                    let column = tile.column * width;
                    let place = self.place(row, column / WIDE);
                    place + column % WIDE
                } else {
                    row * self.columns + tile.column * width
                };
                code.read_vector(self.memory, place, vector)
            })
            .collect()
    }
}

impl<'c> Streamed<'_, 'c> {
    /// Goes over the rows of a head that the workgroup sees.
    ///
    /// `early` loads the registers of the step that begins with the given row, while the step
    /// before it is used. `body` gets the first row of a step, these registers and the loop-carried
    /// values, and computes the loop-carried values of the next step.
    pub(super) fn walk(
        &self,
        head: [Int<'c>; 2],
        values: &[Ssa<'c>],
        early: impl Fn(Int<'c>) -> Vec<Ssa<'c>>,
        body: impl FnOnce((Int<'c>, &[Ssa<'c>]), &[Ssa<'c>]) -> Vec<Ssa<'c>>,
    ) -> Vec<Ssa<'c>> {
        let code = self.tile.code;
        let [start, end] = self.tile.range.any;
        // The shared part of the address must stay inside the buffer, even where no lane reads.
        let inside = |first: Int<'c>| first.is_below(end).select(first, 0);
        let within = inside(start);
        self.keep(&self.load(head, [start, within]));
        let kept = early(within);
        code.barrier();
        let count = kept.len();
        let carried = [kept.as_slice(), values].concat();
        let mut carried = code.repeat([start, end, Int::Known(STEP)], &carried, |row, carried| {
            let (kept, values) = carried.split_at(count);
            let next = row + STEP;
            let within = inside(next);
            let (loaded, next) = (self.load(head, [next, within]), early(within));
            code.schedule_barrier();
            let values = body((row, kept), values);
            code.schedule_barrier();
            code.barrier();
            self.keep(&loaded);
            code.barrier();
            [next, values].concat()
        });
        carried.drain(..count.min(carried.len()));
        carried
    }

    /// Loads the rows from `first` on. Rows past the end are zeros. If all steps are whole, the
    /// load after the last step reads the head's first rows again, and its result is not used.
    fn load(&self, [batch, head]: [Int<'c>; 2], [first, within]: [Int<'c>; 2]) -> Vec<Ssa<'c>> {
        let code = self.tile.code;
        let end = self.tile.range.any[1];
        let vector = self.tile.half.vector(&[WIDE]);
        let mut rows = Vec::new();
        for copied in &self.copied {
            let shared = copied.operand.strides.place([batch, head, within]);
            let (own, column) = copied.lane(self.tile);
            let column = column * WIDE;
            for row in own {
                let own = row * copied.operand.strides.row + column;
                let own = if self.tile.own.is_plain() {
                    own
                } else {
                    code.masked((first + row).is_below(end), own, copied.buffer)
                };
                rows.push(code.load_uniform(copied.buffer, own, shared, vector));
            }
        }
        rows
    }

    /// Stores the loaded rows to LDS.
    fn keep(&self, loaded: &[Ssa<'c>]) {
        let (code, tile) = (self.tile.code, self.tile);
        let mut rows = loaded.iter();
        for copied in &self.copied {
            let (own, vector) = copied.lane(tile);
            for (row, &loaded) in own.into_iter().zip(&mut rows) {
                code.write_vector(loaded, copied.memory, copied.place(row, vector));
            }
        }
    }
}
