//! Attention on CPUs, without scores in memory: a query in each lane of a vector.
//!
//! ```text
//! copy 8 to 32 queries to the stack, column by column
//! for each block of keys that any of them sees:
//!     s = k qᵀ      m' = max(m, max s)      p = exp(s - m')
//!     l = l exp(m - m') + Σ p      o = o exp(m - m') + vᵀ p      m = m'
//! o / l, row by row
//! ```
//!
//! Both products multiply a vector of queries by one element of a key or a value. Keys and values
//! are read in place: nothing is packed, and there is no reduction across lanes. Example: 12 heads
//! of 384 queries and keys with 64 columns take 4.9 ms on one core (AMD Zen 4), and 6.7 ms with
//! scores in memory.

use super::cpu_lanes::{BLOCK, Lanes, length, transposed};
use super::{MISSING, Mask, Operand, Problem, Strides, Visible};
use crate::counts::ceil_div;
use crate::ir::FloatPredicate;
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::panels::Registers;
use rotini_graph::DataType;

/// Minimum number of queries for which vectors pay off.
const FEW: i64 = 8;
/// Minimum number of heads with a single query each and common keys for which vectors pay off: any
/// other form copies the keys for each head.
const FEW_HEADS: i64 = 2;

/// An attention on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OnCpu {
    of: Problem,
    registers: Registers,
    /// The number of heads whose single queries are the rows of one head; 1 if the rows are the
    /// queries of a head.
    heads_in_rows: i64,
}

impl OnCpu {
    /// Returns the kernel of an attention. If heads with single queries share their keys, these
    /// queries become the rows of one head.
    pub(crate) fn new(of: Problem, registers: Registers) -> Self {
        let Problem {
            group, queries, mask, ..
        } = of;
        // All rows of the kernel must have the same elements of the mask.
        let is_shared = mask.is_none_or(|mask| mask.strides[1] == 0);
        if queries != 1 || group < FEW_HEADS || !is_shared {
            return OnCpu {
                of,
                registers,
                heads_in_rows: 1,
            };
        }
        let rows = |strides: Strides| Strides {
            head: strides.head.saturating_mul(group),
            row: strides.head,
            ..strides
        };
        OnCpu {
            of: Problem {
                q: Operand {
                    strides: rows(of.q.strides),
                    ..of.q
                },
                out: (of.out.0, rows(of.out.1)),
                group: 1,
                queries: group,
                // All rows see the keys that the single query of a head sees: those of `keys`.
                visible: Visible {
                    from: None,
                    to: None,
                    ..of.visible
                },
                mask: of.mask.map(|mask| {
                    let [of_batch, of_head, _, of_key] = mask.strides;
                    Mask {
                        strides: [of_batch, of_head, 0, of_key],
                        ..mask
                    }
                }),
                ..of
            },
            registers,
            heads_in_rows: group,
        }
    }

    /// Returns the attention that the kernel computes: the one passed to [`new`](Self::new),
    /// perhaps with heads as rows.
    pub(in crate::kernel) fn problem(&self) -> &Problem {
        &self.of
    }

    /// Returns whether there is a kernel for this attention.
    pub(crate) fn is_possible(&self) -> bool {
        const MOST: i64 = 1 << 40;
        let of = &self.of;
        let sizes = [of.q, of.k, of.v].map(|operand| operand.elements);
        let stored = of.rows().saturating_mul(of.columns[1]);
        // If the mask varied along queries, the elements for neighbouring queries would not be
        // contiguous.
        let has_mask = of
            .mask
            .is_none_or(|mask| mask.dtype == DataType::F32 && mask.strides[2] == 0 && mask.elements < MOST);
        [of.dtype, of.out.0] == [DataType::F32; 2]
            && self.tiling().is_some()
            && (of.queries >= FEW || self.heads_in_rows > 1)
            && of.visible.count() > 0
            && of.queries < i64::from(i32::MAX)
            && of.visible.keys[1] < i64::from(i32::MAX)
            && has_mask
            && sizes.into_iter().chain([stored]).all(|count| count > 0 && count < MOST)
    }

    /// Returns the number of lanes per vector, and the number of vectors of a workgroup's queries.
    fn tiling(&self) -> Option<[i64; 2]> {
        self.registers.tiling(self.of.columns, BLOCK, self.of.queries)
    }

    /// Returns the kernel's name, for people.
    pub(in crate::kernel) fn name(&self) -> String {
        let [of_key, of_value] = self.of.columns;
        let heads = self.of.batch * self.of.heads * self.of.group;
        let [queries, keys] = [self.of.queries, self.of.visible.count()];
        format!("attention_{heads}x{queries}x{keys}x{of_key}x{of_value}_f32")
    }

    /// Writes the body, and returns the number of workgroups. The buffers are q, k, v, the mask and
    /// the sequence lengths if they exist, the output, the greatest scores and the sums of
    /// exponentials.
    pub(in crate::kernel) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let of = &self.of;
        // The buffers after q, k, v and the mask.
        let lengths = 3 + usize::from(of.mask.is_some());
        let stored = lengths + of.visible.lengths.iter().flatten().count();
        let tiling = self.tiling().expect(MISSING);
        let each = tiling.iter().product::<i64>();
        let tiles = ceil_div(of.queries, each);
        let workgroup = code.workgroup();
        // Neighbouring workgroups have the same keys.
        let number = workgroup / tiles;
        let first = workgroup % tiles * each;
        let heads = of.heads * of.group;
        let (batch, head) = (number / heads, number % heads);
        let places = [batch, head, head / of.group];
        let lanes = Lanes::new(code, tiling, (first, of.queries));
        let memory = [of.columns[0], BLOCK, of.columns[1]].map(|columns| lanes.memory(columns));
        let [queries, scores, sums] = memory;
        let tile = Tile {
            of,
            accumulators: self.registers.count / 2,
            memory: [queries, scores, sums],
            lanes,
            places,
            buffers: (0..lengths).map(|number| code.buffer(number)).collect(),
        };
        let mut ends = (lengths..stored)
            .map(|number| length(code, code.buffer(number), batch))
            .collect::<Vec<_>>();
        if let Some(queries) = ends.first_mut() {
            *queries = *queries * self.heads_in_rows;
        }
        tile.copy_queries();
        let sums = tile.sums(&ends);
        if of.visible.is_bounded() {
            tile.mend(&sums, &ends);
        }
        let outputs = [stored, stored + 1, stored + 2].map(|number| code.buffer(number));
        tile.store(&sums, outputs, number);
        of.batch * heads * tiles
    }
}

/// The queries of a workgroup, and the state of their sums.
pub(super) struct Tile<'a, 'c> {
    pub(super) of: &'a Problem,
    /// Number of vectors of sums that stay in registers.
    pub(super) accumulators: i64,
    pub(super) lanes: Lanes<'a, 'c>,
    /// Indices of the batch, of the head, and of the head of keys.
    pub(super) places: [Int<'c>; 3],
    /// q, k, v, and the mask if it exists.
    pub(super) buffers: Vec<Ssa<'c>>,
    /// Queries, scores of a block, and sums of values. Each is a matrix on the stack, of columns
    /// (or keys) by queries.
    pub(super) memory: [Ssa<'c>; 3],
}

impl<'c> Tile<'_, 'c> {
    pub(super) fn read(&self, memory: usize, row: Int<'c>, vector: i64) -> Ssa<'c> {
        let memory = self.memory[memory];
        self.lanes.read(memory, row, vector)
    }

    pub(super) fn write(&self, value: Ssa<'c>, memory: usize, row: Int<'c>, vector: i64) {
        let memory = self.memory[memory];
        self.lanes.write(value, memory, row, vector)
    }

    /// Copies the queries to the stack, transposed, and fills the sums with zeros.
    fn copy_queries(&self) {
        let code = self.lanes.code;
        let [batch, head, _] = self.places;
        let [of_query, of_value] = self.of.columns;
        let q = (self.buffers[0], self.of.q.strides);
        self.lanes.copy(q, [batch, head], (of_query, self.memory[0]));
        let zeros = code.zeros(self.lanes.vector);
        code.each([0.into(), of_value.into(), 1.into()], |column| {
            for vector in 0..self.lanes.vectors {
                self.write(zeros, 2, column, vector);
            }
        });
    }

    /// Stores the quotients, the greatest scores and the sums of exponentials. `number`: the index
    /// of the head among the heads of all batches.
    fn store(&self, sums: &[[Ssa<'c>; 2]], [out, of_greatest, of_total]: [Ssa<'c>; 3], number: Int<'c>) {
        let code = self.lanes.code;
        let [batch, head, _] = self.places;
        let (_, strides) = self.of.out;
        let zeros = code.zeros(self.lanes.vector);
        for (vector, &[greatest, total]) in (0..).zip(sums) {
            let first = self.lanes.first + vector * self.lanes.count;
            let is_nothing = code.compare_floats(FloatPredicate::Equal, total, zeros);
            let stored = |lane: i64, body: &dyn Fn(Int<'c>)| {
                let query = first + lane;
                code.when(query.is_below(self.of.queries), || {
                    body(query);
                })
            };
            code.each(
                [0.into(), self.of.columns[1].into(), self.lanes.count.into()],
                |column| {
                    let mut quotients = Vec::new();
                    for next in 0..self.lanes.count {
                        let sum = self.read(2, column + next, vector);
                        let quotient = sum / total;
                        quotients.push(is_nothing.select(zeros, quotient));
                    }
                    for (lane, row) in (0..self.lanes.count).zip(transposed(code, quotients)) {
                        stored(lane, &|query| {
                            let place = strides.place([batch, head, query]);
                            code.write_vector(row, out, place + column)
                        });
                    }
                },
            );
            let row = number * self.of.queries;
            for lane in 0..self.lanes.count {
                stored(lane, &|query| {
                    let place = code.index(row + query);
                    for (numbers, buffer) in [(greatest, of_greatest), (total, of_total)] {
                        let number = code.extract(numbers, lane, self.lanes.float);
                        code.write(number, buffer, place);
                    }
                });
            }
        }
    }
}
