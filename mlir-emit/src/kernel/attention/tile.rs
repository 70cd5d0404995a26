//! A workgroup's own rows of an attention, queries or keys, and the rows of the other side that are
//! visible to them, which are streamed step by step.
//!
//! A subgroup has some blocks of 16 of the own rows. In a block of scores a lane has one own row,
//! its column of the matrix, and four streamed rows.

use super::again::Again;
use super::streamed::{BLOCKS, STEP};
use super::{MISSING, SIXTEEN, Strides, Visible, WIDE};
use crate::counts::{ceil_div, signed, unsigned};
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::RUN;
use crate::kernel::problem::bytes;
use crate::mlir::{Float, Type};
use rotini_graph::DataType;
use rotini_schedule::attention::Prefill as Schedule;
use rotini_schedule::gemm::LANES;

/// The rows that are distributed over workgroups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// The number of rows of a head.
    pub(super) count: i64,
    /// The streamed rows that each row sees.
    pub(super) visible: Visible,
    pub(super) schedule: Schedule,
}

/// Ranges of streamed rows: from the first to before the end.
#[derive(Clone, Copy)]
pub(super) struct Range<'c> {
    /// The rows that any row of the workgroup sees.
    pub(super) any: [Int<'c>; 2],
    /// The rows that all rows of the workgroup see.
    all: [Int<'c>; 2],
}

impl Own {
    /// Returns the number of rows per workgroup.
    pub(super) fn tall(&self) -> i64 {
        self.schedule.rows().cast_signed()
    }

    /// Returns the number of workgroups per head.
    pub(super) fn tiles(&self) -> i64 {
        ceil_div(self.count, self.tall())
    }

    /// Returns the number of blocks of 16 rows per subgroup.
    pub(super) fn blocks(&self) -> i64 {
        self.schedule.blocks.cast_signed()
    }

    /// Returns the number of lanes per workgroup.
    pub(super) fn lanes(&self) -> i64 {
        (self.schedule.subgroups * LANES).cast_signed()
    }

    /// Returns whether the lanes can copy a step of streamed rows with `columns` columns evenly:
    /// each pass of the workgroup copies whole rows.
    pub(super) fn can_copy(&self, columns: i64) -> bool {
        let across = columns / WIDE;
        columns.count_ones() == 1 && across > 0 && self.lanes() % across == 0 && STEP % (self.lanes() / across) == 0
    }

    /// Returns whether all streamed rows of every step are visible to all own rows.
    pub(super) fn is_plain(&self) -> bool {
        self.visible.is_same_for_all() && self.visible.count() % STEP == 0
    }

    /// Returns the tile of a workgroup. Neighbouring workgroups have the same tile of different
    /// heads (`heads` in all). If later rows may see more rows, their tiles begin first.
    pub(super) fn tile<'c>(&self, workgroup: Int<'c>, heads: i64) -> Int<'c> {
        let tile = workgroup / heads;
        match self.visible.to {
            Some(_) => self.tiles() - 1 - tile,
            None => tile,
        }
    }

    /// Returns the streamed rows that the workgroup with the first row `first` sees.
    fn range<'c>(&self, first: Int<'c>, lengths: &[Int<'c>]) -> Range<'c> {
        let visible = &self.visible;
        let [from, to] = visible.keys.map(Int::Known);
        let (mut any, mut all) = ([from, to], [from, to]);
        if let Some(from) = visible.from {
            any[0] = (first + from).max(any[0]);
            all[0] = (first + (self.tall() - 1 + from)).max(all[0]);
        }
        if let Some(to) = visible.to {
            any[1] = (first + (self.tall() + to)).max(0).min(any[1]);
            all[1] = (first + (1 + to)).max(0).min(all[1]);
        }
        if let &[own, streamed] = lengths {
            any[1] = first.is_below(own).select(any[1].min(streamed), 0);
            let are_there = (first + (self.tall() - 1)).is_below(own);
            all[1] = are_there.select(all[1].min(streamed), 0);
        }
        Range { any, all }
    }
}

/// The state of the lanes of a workgroup.
pub(super) struct Tile<'a, 'c> {
    pub(super) code: &'a Code<'c>,
    pub(super) own: Own,
    pub(super) half: Type<'c>,
    pub(super) float: Type<'c>,
    pub(super) lane: Int<'c>,
    /// The lane's column in a block, which is its own row, and its quarter, which selects its
    /// streamed rows of a block.
    pub(super) column: Int<'c>,
    pub(super) quarter: Int<'c>,
    pub(super) subgroup: Int<'c>,
    /// The workgroup's first row.
    first: Int<'c>,
    /// The numbers of own and streamed rows of the batch, if the graph gives them.
    lengths: Vec<Int<'c>>,
    pub(super) range: Range<'c>,
}

impl<'a, 'c> Tile<'a, 'c> {
    /// Computes the state of the lane `lane` of the workgroup with the tile `tile`.
    pub(super) fn new(
        code: &'a Code<'c>,
        own: Own,
        half: Type<'c>,
        [lane, tile]: [Int<'c>; 2],
        lengths: Vec<Int<'c>>,
    ) -> Self {
        let within = lane % LANES.cast_signed();
        let first = tile * own.tall();
        Tile {
            code,
            own,
            half,
            float: Type::float(code.context(), Float::F32),
            lane,
            column: within % SIXTEEN,
            quarter: within / SIXTEEN,
            subgroup: lane / LANES.cast_signed(),
            first,
            range: own.range(first, &lengths),
            lengths,
        }
    }

    /// Returns the state for recomputing sums.
    pub(super) fn again(&self) -> Again<'a, 'c> {
        Again {
            code: self.code,
            half: self.half,
            float: self.float,
            quarter: self.quarter,
        }
    }

    /// Returns the lane's own row in a block of its subgroup.
    pub(super) fn row(&self, block: i64) -> Int<'c> {
        let block = self.subgroup * self.own.blocks() + block;
        self.first + block * SIXTEEN + self.column
    }

    /// Returns whether the own row with this number exists.
    pub(super) fn exists(&self, row: Int<'c>) -> Int<'c> {
        row.is_below_unless(self.own.count % self.own.tall() == 0, self.own.count)
    }

    /// Loads the lane's own rows of a tensor with `columns` columns: for each block, eight of every
    /// 32 columns. Rows that do not exist are zeros.
    pub(super) fn factors(
        &self,
        (buffer, strides, columns): (Ssa<'c>, Strides, i64),
        [batch, head]: [Int<'c>; 2],
    ) -> Vec<Vec<Ssa<'c>>> {
        let code = self.code;
        let vector = self.half.vector(&[WIDE]);
        let block = |block: i64| {
            let row = self.row(block);
            let place = strides.place([batch, head, row]);
            let place = place + self.quarter * WIDE;
            let place = code.masked(self.exists(row), place, buffer);
            (0..columns / (4 * WIDE))
                .map(|turn| code.load(buffer, place + turn * 4 * WIDE, vector))
                .collect()
        };
        (0..self.own.blocks()).map(block).collect()
    }

    /// Returns the range of streamed rows that the lane's row of each block sees.
    pub(super) fn seen(&self) -> Vec<[Int<'c>; 2]> {
        let visible = &self.own.visible;
        let block = |block: i64| {
            let row = self.row(block);
            let mut seen = self.range.any;
            if let Some(from) = visible.from {
                seen[0] = (row + from).max(seen[0]);
            }
            if let Some(to) = visible.to {
                seen[1] = (row + (to + 1)).max(0).min(seen[1]);
            }
            if let Some(&own) = self.lengths.first() {
                seen[1] = row.is_below(own).select(seen[1], 0);
            }
            seen
        };
        (0..self.own.blocks()).map(block).collect()
    }

    /// Returns the numbers of the step that begins with the row `first`, with those of masked
    /// positions replaced. For each block of own rows the result has one list for each replacement
    /// in `others`, with a vector for each block of streamed rows.
    pub(super) fn hidden(
        &self,
        numbers: Vec<Vec<Ssa<'c>>>,
        (first, seen): (Int<'c>, &[[Int<'c>; 2]]),
        others: &[&str],
    ) -> Vec<Vec<Ssa<'c>>> {
        let code = self.code;
        if self.own.is_plain() {
            return numbers;
        }
        let run = self.float.vector(&[RUN]);
        let flat: Vec<_> = numbers.iter().flatten().copied().collect();
        let [from, end] = self.range.all;
        let hides = first.is_below(from);
        let hides_last = end.is_below(first + STEP);
        let masked = || {
            // Without this barrier the compiler makes a selection of the branch, and every step
            // compares.
            code.schedule_barrier();
            let others: Vec<_> = others.iter().map(|other| code.float_text(other, self.float)).collect();
            let mut all = Vec::new();
            for (numbers, &[from, end]) in numbers.iter().zip(seen) {
                let count = from.is_below(end).select(end - from, 0);
                let first = first + self.quarter * RUN - from;
                let lists = others
                    .iter()
                    .flat_map(|&other| (0..BLOCKS).map(move |block| (other, block)));
                for ((other, block), &numbers) in lists.zip(numbers) {
                    let own: Vec<_> = (0..RUN)
                        .map(|number| {
                            let own = code.extract(numbers, number, self.float);
                            let row = first + (block * SIXTEEN + number);
                            let Int::Made(is_seen) = row.is_below(count) else {
                                unreachable!("{MISSING}");
                            };
                            is_seen.select(own, other)
                        })
                        .collect();
                    all.push(code.vector(&own, run));
                }
            }
            all
        };
        let masked = code.replaced(hides | hides_last, &flat, masked);
        let each = unsigned(BLOCKS).saturating_mul(others.len());
        masked.chunks(each).map(<[_]>::to_vec).collect()
    }

    /// Stores the lane's own row of a block: `finished` applied to each of its sums. `sums`: a
    /// vector for each column that the lane reads at once.
    pub(super) fn store(
        &self,
        block: i64,
        sums: &[Ssa<'c>],
        (to, dtype, strides): (Ssa<'c>, DataType, Strides),
        [batch, head]: [Int<'c>; 2],
        finished: impl Fn(Ssa<'c>) -> Ssa<'c>,
    ) {
        let code = self.code;
        let row = self.row(block);
        let exists = self.exists(row);
        let place = strides.place([batch, head, row]);
        let bytes = bytes(dtype);
        let element = crate::kernel::gemm::element(code.context(), dtype);
        let width = signed(sums.len());
        // As many elements as one instruction stores.
        let most = unsigned(16 / bytes);
        for number in 0..RUN {
            let column = (self.quarter * RUN + number) * width;
            let own: Vec<_> = sums
                .iter()
                .map(|&sum| finished(code.extract(sum, number, self.float)))
                .collect();
            let mut next = 0;
            for elements in own.chunks(most) {
                let count = signed(elements.len());
                let mut vector = code.vector(elements, self.float.vector(&[count]));
                if dtype != DataType::F32 {
                    vector = vector.truncf(element.vector(&[count]));
                }
                let place = place + column + Int::Known(next);
                code.store(vector, to, code.masked(exists, place, to));
                next += count;
            }
        }
    }
}
