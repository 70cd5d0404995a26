//! The gradients of attention on CPUs, without scores in memory: one kernel for queries, and one
//! for keys and values.
//!
//! ```text
//! copy 8 to 32 own rows of two tensors to the stack, column by column
//! for each block of rows of the other side:
//!     s = streamed · own    d = streamed' · own'
//!     p = exp(scale s - statistic)    ds = scale p (d - D)
//!     gradient of each own row += the visible rows of the other side, weighted by ds (and p)
//! ```
//!
//! In the products for `s` and `d` each lane has an own row, as in the forward kernel. In the sums
//! of weighted rows each lane has a column. Gradients are accumulated where they are stored, so
//! only `ds` and `p` of a block are on the stack.
//!
//! Blocks that are visible to all own rows are multiplied for several own rows at once. In other
//! blocks each own row is multiplied alone, by the rows that are visible to it. So no sum reads a
//! hidden row.

use super::backward::{Backward, Side};
use super::cpu_lanes::{BLOCK, Lanes, length};
use super::{HIDDEN, MISSING, Strides, Visible};
use crate::counts::{ceil_div, unsigned};
use crate::ir::FloatPredicate;
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::panels::Registers;
use rotini_graph::DataType;

/// Minimum number of rows of a side for which vectors pay off.
const FEW: i64 = 8;

/// The gradients of one side of an attention on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GradientsOnCpu {
    pub(crate) problem: Backward,
    pub(crate) registers: Registers,
}

impl GradientsOnCpu {
    /// Returns whether there is a kernel for these gradients.
    pub(crate) fn is_possible(&self) -> bool {
        const MOST: i64 = 1 << 40;
        let Backward { of, d_o, keys, .. } = &self.problem;
        let read = [of.q, of.k, of.v, *d_o].map(|operand| operand.elements);
        let is_float = |(dtype, _, _): &(DataType, Strides, i64)| *dtype == DataType::F32;
        of.dtype == DataType::F32
            && of.mask.is_none()
            && of.queries.min(*keys) >= FEW
            && of.visible.count() > 0
            && read.into_iter().all(|elements| elements > 0 && elements < MOST)
            && self.problem.stored().iter().all(is_float)
            && self.tiling().is_some()
    }

    /// Returns the number of lanes per vector, and the number of vectors of a workgroup's rows.
    fn tiling(&self) -> Option<[i64; 2]> {
        let blocks = match self.problem.side {
            Side::Queries => 1,
            Side::Keys(_) => 2,
        };
        let (rows, _) = self.problem.own();
        self.registers.tiling(self.problem.of.columns, blocks * BLOCK, rows)
    }

    /// Writes the body, and returns the number of workgroups. The buffers are q, k, v, dO, two
    /// statistics per query, the sequence lengths if given, and the gradients.
    pub(in crate::kernel) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let Backward { of, d_o, side, .. } = &self.problem;
        // The buffers after q, k, v, dO and the two statistics per query.
        let lengths = 6;
        let stored = lengths + self.problem.lengths().iter().flatten().count();
        let tiling = self.tiling().expect(MISSING);
        let [count, vectors] = tiling;
        let (rows, visible) = self.problem.own();
        let tiles = ceil_div(rows, count * vectors);
        let workgroup = code.workgroup();
        // Neighbouring workgroups have the same rows of the other side.
        let number = workgroup / tiles;
        let first = workgroup % tiles * (count * vectors);
        let heads = match side {
            Side::Queries => of.heads * of.group,
            Side::Keys(_) => of.heads,
        };
        let (batch, head) = (number / heads, number % heads);
        let lanes = Lanes::new(code, tiling, (first, rows));
        let tensor = |number: usize, strides: Strides| (code.buffer(number), strides);
        let of_queries = [tensor(0, of.q.strides), tensor(3, d_o.strides)];
        let of_keys = [tensor(1, of.k.strides), tensor(2, of.v.strides)];
        let (own, streamed) = match side {
            Side::Queries => (of_queries, of_keys),
            Side::Keys(_) => (of_keys, of_queries),
        };
        let memory = of.columns.map(|columns| lanes.memory(columns));
        for ((tensor, columns), memory) in own.into_iter().zip(of.columns).zip(memory) {
            lanes.copy(tensor, [batch, head], (columns, memory));
        }
        let mut sums = Vec::new();
        for (number, (_, strides, _)) in self.problem.stored().into_iter().enumerate() {
            sums.push(Sum {
                weights: lanes.memory(BLOCK),
                columns: of.columns[number],
                stored: tensor(stored + number, strides),
            });
        }
        let ends = (lengths..stored)
            .map(|number| length(code, code.buffer(number), batch))
            .collect::<Vec<_>>();
        let owned = (rows - first).min(lanes.each());
        let real = match ends.first() {
            Some(&end) => (end - first).max(0).min(owned),
            None => owned,
        };
        let mut tile = Tile {
            places: [batch, head],
            memory,
            columns: of.columns,
            streamed,
            numbers: Numbers::Streamed {
                buffers: [code.buffer(4), code.buffer(5)],
                extents: [of.heads * of.group, of.queries],
            },
            scale: of.scale,
            sums,
            at_once: self.registers.count / 2,
            visible,
            real,
            lanes,
        };
        if matches!(side, Side::Queries) {
            tile.numbers = tile.own_numbers();
        }
        tile.clear(owned);
        let end = ends.get(1).copied();
        match side {
            Side::Queries => tile.walk(head / of.group, end),
            Side::Keys(_) => {
                let first = head * of.group;
                code.each([0.into(), of.group.into(), 1.into()], |among| {
                    tile.walk(first + among, end);
                });
            }
        }
        of.batch * heads * tiles
    }
}

/// The softmax statistic of each query, and its sum of dO · O.
enum Numbers<'c> {
    /// The statistics of own rows: both for each vector.
    Own(Vec<[Ssa<'c>; 2]>),
    /// The buffers with the statistics of streamed rows. `extents`: heads per batch, rows per head.
    Streamed { buffers: [Ssa<'c>; 2], extents: [i64; 2] },
}

/// A gradient: a weighted sum of rows of the streamed tensor with the same index.
struct Sum<'c> {
    /// The weights of the streamed rows of a block.
    weights: Ssa<'c>,
    columns: i64,
    stored: (Ssa<'c>, Strides),
}

/// The own rows of a workgroup, and the streamed rows of the other side.
struct Tile<'a, 'c> {
    lanes: Lanes<'a, 'c>,
    /// Indices of the batch and of the head of own rows.
    places: [Int<'c>; 2],
    /// The own rows' operands of the scores and of the gradients of scores, on the stack.
    memory: [Ssa<'c>; 2],
    columns: [i64; 2],
    /// The streamed operands of the scores and of the gradients of scores.
    streamed: [(Ssa<'c>, Strides); 2],
    numbers: Numbers<'c>,
    /// The scale of the scores.
    scale: f64,
    /// The gradients of scores are the weights of the first sum, the probabilities those of the
    /// second.
    sums: Vec<Sum<'c>>,
    /// Number of vectors of sums that stay in registers.
    at_once: i64,
    visible: Visible,
    /// The number of own rows that are before the end of their sequence.
    real: Int<'c>,
}

impl<'c> Tile<'_, 'c> {
    /// Loads both statistics of the own rows.
    fn own_numbers(&self) -> Numbers<'c> {
        let Numbers::Streamed { buffers, extents } = &self.numbers else {
            unreachable!("{MISSING}");
        };
        let (code, lanes) = (self.lanes.code, &self.lanes);
        let head = self.head(*extents, self.places);
        let vector = |vector: i64| {
            buffers.map(|buffer| {
                let number = |lane| code.read(buffer, head + lanes.row(vector, lane));
                let numbers = (0..lanes.count).map(number).collect::<Vec<_>>();
                code.vector(&numbers, lanes.vector)
            })
        };
        Numbers::Own((0..lanes.vectors).map(vector).collect())
    }

    /// Returns the offset of the statistics of a head.
    fn head(&self, [heads, rows]: [i64; 2], [batch, head]: [Int<'c>; 2]) -> Int<'c> {
        (batch * heads + head) * rows
    }

    /// Returns the offset of an own row of a gradient.
    fn place(&self, strides: Strides, row: Int<'c>) -> Int<'c> {
        let [batch, head] = self.places;
        strides.place([batch, head, self.lanes.first + row])
    }

    /// Stores zeros in the gradients of the first `owned` rows.
    fn clear(&self, owned: Int<'c>) {
        let code = self.lanes.code;
        let zeros = code.zeros(self.lanes.vector);
        for sum in &self.sums {
            let (buffer, strides) = sum.stored;
            code.each([0.into(), owned, 1.into()], |row| {
                let place = self.place(strides, row);
                let columns = [0.into(), sum.columns.into(), self.lanes.count.into()];
                code.each(columns, |column| {
                    code.write_vector(zeros, buffer, place + column);
                });
            });
        }
    }

    /// Adds the contributions of a head's rows that are visible to any own row. `known`: the end of
    /// these rows, if the graph has lengths.
    fn walk(&self, head: Int<'c>, known: Option<Int<'c>>) {
        let (code, visible) = (self.lanes.code, &self.visible);
        let [mut first, mut end] = visible.keys.map(Int::from);
        if let Some(known) = known {
            end = end.min(known);
        }
        if let Some(from) = visible.from {
            first = (self.lanes.first + from).max(first);
        }
        if let Some(to) = visible.to {
            let own = self.lanes.first + self.real;
            end = (own + to).min(end);
        }
        end = Int::Known(0).is_below(self.real).select(end, 0);
        code.each([first, end, BLOCK.into()], |start| {
            let count = (end - start).min(BLOCK);
            let each = self.at_once / self.lanes.vectors;
            let whole = count - count % each;
            for (range, rows) in [([0.into(), whole], each), ([whole, count], 1)] {
                let [from, to] = range;
                code.each([from, to, rows.into()], |number| {
                    self.weigh((head, start + number), number, rows);
                });
            }
            for (sum, streamed) in self.sums.iter().zip(self.streamed) {
                self.add((sum, streamed), (head, start, count));
            }
        });
    }

    /// Computes the gradients of scores for `rows` streamed rows from `row` on, and the
    /// probabilities if they are needed. `number`: the first row's index in the block.
    fn weigh(&self, (head, row): (Int<'c>, Int<'c>), number: Int<'c>, rows: i64) {
        let (code, lanes) = (self.lanes.code, &self.lanes);
        let [batch, _] = self.places;
        let product = |side: usize| {
            let (buffer, strides) = self.streamed[side];
            let place = strides.place([batch, head, row]);
            let own = (self.memory[side], self.columns[side].into());
            lanes.summed(own, (buffer, place, [1, strides.row]), rows)
        };
        let (scores, gradients) = (product(0), product(1));
        let mut made = scores.into_iter().zip(gradients);
        let scale = lanes.scale(self.scale);
        let (hidden, zeros) = (lanes.all(HIDDEN), code.zeros(lanes.vector));
        for next in 0..rows {
            let streamed = match &self.numbers {
                Numbers::Own(_) => None,
                Numbers::Streamed { buffers, extents } => {
                    let place = Int::sum([self.head(*extents, [batch, head]), row, next.into()]);
                    Some(buffers.map(|buffer| lanes.broadcast(buffer, place)))
                }
            };
            for vector in 0..lanes.vectors {
                let own = match &self.numbers {
                    Numbers::Own(own) => own.get(unsigned(vector)).copied(),
                    Numbers::Streamed { .. } => streamed,
                };
                let ([statistic, level], (score, gradient)) = own.zip(made.next()).expect(MISSING);
                let score = score * scale;
                let weight = (score - statistic).exp();
                // A score of -∞ has the weight 0, and not exp(-∞ + ∞).
                let is_nothing = code.compare_floats(FloatPredicate::Equal, score, hidden);
                let weight = is_nothing.select(zeros, weight);
                let gradient = gradient - level;
                let gradient = weight * gradient;
                let gradient = gradient * scale;
                for (sum, weight) in self.sums.iter().zip([gradient, weight]) {
                    lanes.write(weight, sum.weights, number + next, vector);
                }
            }
        }
    }

    /// Adds the rows of a block to the gradient of each own row to which they are visible.
    fn add(&self, (sum, streamed): (&Sum<'c>, (Ssa<'c>, Strides)), (head, start, count): (Int<'c>, Int<'c>, Int<'c>)) {
        let (code, lanes) = (self.lanes.code, &self.lanes);
        let of_row = sum.columns / lanes.count;
        let most = |most: i64| (1..=most).rev().find(|vectors| of_row % vectors == 0).unwrap_or(1);
        // Vectors of columns for several rows at once, and for one row.
        let (few, many) = (
            if of_row % 4 == 0 && self.at_once > 8 {
                4
            } else {
                most(2)
            },
            most(self.at_once),
        );
        let each = (self.at_once / few).min(lanes.each());
        let whole = self.real - self.real % each;
        let whole = self.all_see(start, count).select(whole, 0);
        let columns = |vectors: i64| [0.into(), sum.columns.into(), (vectors * lanes.count).into()];
        let of = (sum, streamed);
        // The columns of a block stay in the first-level cache until all rows have been updated.
        code.each(columns(few), |column| {
            code.each([0.into(), whole, each.into()], |row| {
                let block = (head, start, [0.into(), count]);
                self.add_columns(of, block, (row, each), (column, few));
            });
        });
        code.each([whole, self.real, 1.into()], |row| {
            let block = (head, start, self.seen_by(row, start, count));
            code.each(columns(many), |column| {
                self.add_columns(of, block, (row, 1), (column, many));
            });
        });
    }

    /// Returns whether all streamed rows of a block are visible to all own rows.
    fn all_see(&self, start: Int<'c>, count: Int<'c>) -> Int<'c> {
        let mut hidden = Int::Known(0);
        if let Some(from) = self.visible.from {
            let first = Int::sum([self.lanes.first, self.real, (from - 1).into()]);
            hidden = (first - start).max(hidden);
        }
        if let Some(to) = self.visible.to {
            let end = self.lanes.first + (to + 1);
            hidden = (start + count - end).max(hidden);
        }
        hidden.is_below(1)
    }

    /// Returns the range of a block's streamed rows that are visible to an own row: the first, and
    /// the one after the last.
    fn seen_by(&self, row: Int<'c>, start: Int<'c>, count: Int<'c>) -> [Int<'c>; 2] {
        let diagonal = self.lanes.first + row - start;
        let [mut from, mut to] = [Int::Known(0), count];
        if let Some(bound) = self.visible.from {
            from = (diagonal + bound).max(from);
        }
        if let Some(bound) = self.visible.to {
            to = (diagonal + (bound + 1)).min(to);
        }
        [from, to]
    }

    /// Adds the rows of a block to some vectors of columns of some own rows. The block is summed in
    /// registers before it is added.
    fn add_columns(
        &self,
        (sum, (buffer, strides)): (&Sum<'c>, (Ssa<'c>, Strides)),
        (head, start, [from, to]): (Int<'c>, Int<'c>, [Int<'c>; 2]),
        (row, rows): (Int<'c>, i64),
        (column, vectors): (Int<'c>, i64),
    ) {
        let (code, lanes) = (self.lanes.code, &self.lanes);
        let count = unsigned(rows * vectors);
        let zeros = vec![code.zeros(lanes.vector); count];
        let [batch, _] = self.places;
        let place = strides.place([batch, head, start]) + column;
        let added = code.repeat([from, to, 1.into()], &zeros, |number, sums| {
            let place = place + number * strides.row;
            let load = |vector: i64| code.read_vector(buffer, place + vector * lanes.count, lanes.vector);
            let columns = (0..vectors).map(load).collect::<Vec<_>>();
            let weights = number * lanes.each() + row;
            let mut sums = sums.iter();
            let mut next = Vec::new();
            for row in 0..rows {
                let weight = lanes.broadcast(sum.weights, weights + row);
                for &column in &columns {
                    let &sum = sums.next().expect(MISSING);
                    next.push(weight.vector_fma(column, sum));
                }
            }
            next
        });
        let (stored, strides) = sum.stored;
        let mut added = added.into_iter();
        for next in 0..rows {
            let place = self.place(strides, row + next) + column;
            for vector in 0..vectors {
                let place = place + vector * lanes.count;
                let so_far = code.read_vector(stored, place, lanes.vector);
                let next = so_far + added.next().expect(MISSING);
                code.write_vector(next, stored, place);
            }
        }
    }
}
