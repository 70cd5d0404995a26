//! Code that all attention kernels for CPUs share: vectors with a row of a head in each lane, and
//! matrices of such vectors on the stack.

use super::{MISSING, Strides};
use crate::counts::{signed, unsigned};
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::panels::Registers;
use crate::mlir::{Attribute, Float, Type};

/// Maximum bytes on the stack that the compiler allows a kernel.
const STACK: i64 = 32 << 10;
/// Rows of the other side per block.
pub(super) const BLOCK: i64 = 64;

/// Lanes of the narrowest vector.
const NARROW: i64 = 8;

impl Registers {
    /// Returns the number of lanes and of vectors for a workgroup's rows: the most that fit onto
    /// the stack together with the numbers of `others` rows of the other side. `None` if no vector
    /// length divides `columns`.
    pub(super) fn tiling(self, columns: [i64; 2], others: i64, rows: i64) -> Option<[i64; 2]> {
        let [of_key, of_value] = columns;
        let of_row = of_key.checked_add(of_value)?.checked_add(others)?;
        let fits = |&[lanes, vectors]: &[i64; 2]| {
            let bytes = of_row.checked_mul(lanes * vectors * 4);
            columns.iter().all(|&columns| columns > 0 && columns % lanes == 0)
                && bytes.is_some_and(|bytes| bytes <= STACK)
                && rows > lanes * (vectors - 1)
        };
        let wide = self.lanes;
        [[wide, 2], [wide, 1], [NARROW, 2], [NARROW, 1]].into_iter().find(fits)
    }
}

/// The rows of a workgroup, one in each lane.
pub(super) struct Lanes<'a, 'c> {
    pub(super) code: &'a Code<'c>,
    /// Lanes per vector.
    pub(super) count: i64,
    pub(super) vectors: i64,
    pub(super) vector: Type<'c>,
    pub(super) float: Type<'c>,
    /// The first row.
    pub(super) first: Int<'c>,
    /// Rows per head.
    pub(super) rows: i64,
}

impl<'a, 'c> Lanes<'a, 'c> {
    /// Returns the lanes for the rows of a head from `first` on. `rows`: the rows of the head.
    pub(super) fn new(code: &'a Code<'c>, [count, vectors]: [i64; 2], (first, rows): (Int<'c>, i64)) -> Self {
        let float = Type::float(code.context(), Float::F32);
        Lanes {
            code,
            count,
            vectors,
            vector: float.vector(&[count]),
            float,
            first,
            rows,
        }
    }

    /// Returns the number of rows per workgroup.
    pub(super) fn each(&self) -> i64 {
        self.vectors * self.count
    }

    /// Allocates memory on the stack: for each column, or row of the other side, a number for each
    /// row of the workgroup.
    pub(super) fn memory(&self, columns: i64) -> Ssa<'c> {
        self.code.stack(columns * self.each(), self.float)
    }

    /// Returns the offset of a vector of a column.
    pub(super) fn place(&self, column: Int<'c>, vector: i64) -> Int<'c> {
        column * self.each() + vector * self.count
    }

    /// Reads a vector of a column from memory on the stack.
    pub(super) fn read(&self, memory: Ssa<'c>, column: Int<'c>, vector: i64) -> Ssa<'c> {
        let place = self.place(column, vector);
        self.code.read_vector(memory, place, self.vector)
    }

    /// Stores a vector of a column to memory on the stack.
    pub(super) fn write(&self, value: Ssa<'c>, memory: Ssa<'c>, column: Int<'c>, vector: i64) {
        let place = self.place(column, vector);
        self.code.write_vector(value, memory, place)
    }

    /// Returns a constant in all lanes.
    pub(super) fn all(&self, number: &str) -> Ssa<'c> {
        let value = Attribute::scalar(number, self.float).splat(self.vector);
        self.code.literal(value, self.vector)
    }

    /// Returns the scale of the scores in all lanes.
    pub(super) fn scale(&self, scale: f64) -> Ssa<'c> {
        self.code.float(scale, self.float).broadcast(self.vector)
    }

    /// Loads an element of a buffer into all lanes.
    pub(super) fn broadcast(&self, buffer: Ssa<'c>, place: Int<'c>) -> Ssa<'c> {
        self.code.read(buffer, place).broadcast(self.vector)
    }

    /// Returns the row of a lane; for a lane after the head's last row, the last row.
    pub(super) fn row(&self, vector: i64, lane: i64) -> Int<'c> {
        let row = self.first + (vector * self.count + lane);
        row.min(self.rows - 1)
    }

    /// Copies the rows of a head to the stack, transposed. Lanes after the last row repeat it.
    pub(super) fn copy(
        &self,
        (buffer, strides): (Ssa<'c>, Strides),
        [batch, head]: [Int<'c>; 2],
        (columns, memory): (i64, Ssa<'c>),
    ) {
        let code = self.code;
        for vector in 0..self.vectors {
            let mut rows = Vec::new();
            for lane in 0..self.count {
                rows.push(strides.place([batch, head, self.row(vector, lane)]));
            }
            code.each([0.into(), columns.into(), self.count.into()], |column| {
                let load = |row: &Int<'c>| code.read_vector(buffer, *row + column, self.vector);
                let loaded = rows.iter().map(load).collect::<Vec<_>>();
                for (number, transposed) in (0..).zip(transposed(code, loaded)) {
                    self.write(transposed, memory, column + number, vector);
                }
            });
        }
    }

    /// Returns `results` sums over the columns of a matrix of vectors on the stack: each column
    /// times a number of `buffer`. `place`: the offset of the first number; `of_column` and
    /// `of_result`: the strides from column to column and from result to result. Each sum has all
    /// vectors of a row.
    pub(super) fn summed(
        &self,
        (memory, columns): (Ssa<'c>, Int<'c>),
        (buffer, place, [of_column, of_result]): (Ssa<'c>, Int<'c>, [i64; 2]),
        results: i64,
    ) -> Vec<Ssa<'c>> {
        let code = self.code;
        let sums = unsigned(results * self.vectors);
        let zeros = vec![code.zeros(self.vector); sums];
        code.repeat([0.into(), columns, 1.into()], &zeros, |column, sums| {
            let vectors: Vec<_> = (0..self.vectors)
                .map(|vector| self.read(memory, column, vector))
                .collect();
            let place = place + column * of_column;
            let mut sums = sums.iter();
            let mut next = Vec::new();
            for result in 0..results {
                let number = self.broadcast(buffer, place + result * of_result);
                for &vector in &vectors {
                    let &sum = sums.next().expect(MISSING);
                    next.push(number.vector_fma(vector, sum));
                }
            }
            next
        })
    }
}

/// Loads the number of rows of a batch from `lengths`. Negative numbers become zero.
pub(super) fn length<'c>(code: &Code<'c>, lengths: Ssa<'c>, batch: Int<'c>) -> Int<'c> {
    let length = code.read(lengths, batch);
    let length = length.index_cast(code.index_type());
    Int::Made(length).max(0)
}

/// Transposes a square matrix whose rows are vectors.
pub(super) fn transposed<'c>(code: &Code<'c>, mut rows: Vec<Ssa<'c>>) -> Vec<Ssa<'c>> {
    let lanes = signed(rows.len());
    let mut step = 1;
    while step < lanes {
        let keeps = |lane: i64| lane & step == 0;
        let upper: Vec<i64> = (0..lanes)
            .map(|lane| if keeps(lane) { lane } else { lanes + lane - step })
            .collect();
        let lower: Vec<i64> = (0..lanes)
            .map(|lane| if keeps(lane) { lane + step } else { lanes + lane })
            .collect();
        let distance = unsigned(step);
        for pairs in rows.chunks_mut(2 * distance) {
            let (above, below) = pairs.split_at_mut(distance);
            for (a, b) in above.iter_mut().zip(below) {
                (*a, *b) = (code.shuffle([*a, *b], &upper), code.shuffle([*a, *b], &lower));
            }
        }
        step *= 2;
    }
    rows
}
