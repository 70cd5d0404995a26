//! The gradients of attention, without scores in memory: one kernel for the gradients of queries,
//! and one for those of keys and values.
//!
//! ```text
//! of queries, for each step of keys:
//!     s = q kᵀ    p = exp(s - stats)    d = do vᵀ    ds = p (d - D)
//!     dq += ds k
//! of keys and values, for each step of queries:
//!     s = k qᵀ    p = exp(s - stats)    d = v doᵀ    ds = p (d - D)
//!     dk += ds q    dv += p do
//! ```
//!
//! Both kernels are the same with the sides exchanged: own rows of two tensors are in registers,
//! rows of two other tensors are streamed, and the first of these (in the kernel for keys and
//! values, both) is read by rows and by columns. Statistics and D belong to queries, which are own
//! rows in one kernel and streamed rows in the other. Each kernel recomputes the scores and d: two
//! of seven products, which takes less time than reading them from memory.
//!
//! A head of queries may share its keys with other heads of queries. The gradients of keys are sums
//! over all of these heads.

use super::again::Matrix;
use super::backward::{Backward, Side};
use super::gradient_steps::{Lanes, Numbers};
use super::streamed::{Copied, STEP, Streamed};
use super::tile::{Own, Tile};
use super::{SIXTEEN, is_within, lengths_of};
use crate::kernel::code::{Code, Int};
use crate::kernel::gemm::element;
use crate::mlir::{Float, Type};
use rotini_graph::DataType;
use rotini_schedule::attention::Prefill as Schedule;

/// The gradients of one side of an attention on an AMD GPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gradients {
    pub(crate) problem: Backward,
    pub(crate) schedule: Schedule,
}

impl Gradients {
    /// Returns whether there is a kernel for these gradients.
    pub(crate) fn is_possible(&self) -> bool {
        let Backward { of, d_o, keys, .. } = &self.problem;
        let [of_key, of_value] = of.columns;
        let keys = of.batch.saturating_mul(of.heads).saturating_mul(*keys);
        let bytes = |rows: i64, columns: i64| rows.checked_mul(columns.saturating_mul(4));
        let stored = [bytes(of.rows(), of_key), bytes(keys, of_key), bytes(keys, of_value)];
        let can_copy = |&columns: &i64| self.own().can_copy(columns) && [4 * SIXTEEN, 8 * SIXTEEN].contains(&columns);
        of.is_possible()
            && of.mask.is_none()
            && of.columns.iter().all(can_copy)
            && self.own().visible.count() > 0
            && is_within(d_o.elements.checked_mul(2))
            && stored.into_iter().all(is_within)
            && self.problem.stored().iter().all(|(dtype, ..)| is_float(*dtype))
    }

    /// Returns the own rows, whose gradients are computed.
    fn own(&self) -> Own {
        let (count, visible) = self.problem.own();
        Own {
            count,
            visible,
            schedule: self.schedule,
        }
    }

    /// Returns the number of lanes per workgroup.
    pub(in crate::kernel) fn lanes(&self) -> u64 {
        self.own().lanes().cast_unsigned()
    }

    /// Returns the kernel's name, for people.
    pub(in crate::kernel) fn name(&self) -> String {
        let Schedule { subgroups, blocks, .. } = self.schedule;
        format!("{}_{subgroups}x{blocks}", self.problem.name())
    }

    /// Writes the body, and returns the number of workgroups. The buffers are q, k, v, dO, two
    /// statistics per query, the sequence lengths if given, and the gradients.
    pub(in crate::kernel) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let (of, own) = (&self.problem.of, self.own());
        let Backward { d_o: of_d_o, side, .. } = &self.problem;
        let context = code.context();
        let half = element(context, of.dtype);
        let float = Type::float(context, Float::F32);
        let lengths = self.problem.lengths().map_or(0, |lengths| lengths.len());
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let of_keys = of.batch * of.heads;
        let group = match side {
            Side::Queries => of.group,
            Side::Keys(_) => 1,
        };
        // As in the prefill kernel: if batches times heads of keys are a multiple of the number of
        // dies, all workgroups that read the same rows are on one die.
        let tile = own.tile(workgroup, of_keys * group);
        let number = workgroup % (of_keys * group);
        let (among, number) = (number / of_keys, number % of_keys);
        let (batch, head_of_keys) = (number / of.heads, number % of.heads);
        let first_head = head_of_keys * of.group;
        let [q, k, v, d_o] = code.buffers();
        let sides = [[(of.q, q), (*of_d_o, d_o)], [(of.k, k), (of.v, v)]];
        let numbers = [code.buffer(4), code.buffer(5)];
        let stored = 6 + lengths;
        let tile = Tile::new(code, own, half, [lane, tile], lengths_of(code, 6, lengths, batch));
        let (owned, streamed, own_head) = match side {
            Side::Queries => (sides[0], sides[1], first_head + among),
            Side::Keys(_) => (sides[1], sides[0], head_of_keys),
        };
        let copied = |side: usize| {
            let (operand, buffer) = streamed[side];
            let columns = of.columns[side];
            Copied {
                operand,
                columns,
                buffer,
                memory: code.shared(STEP * columns, half),
                is_exchanged: true,
            }
        };
        let streamed = Streamed {
            tile: &tile,
            copied: [copied(0), copied(1)],
        };
        let factors = |side: usize| {
            let (operand, buffer) = owned[side];
            tile.factors((buffer, operand.strides, of.columns[side]), [batch, own_head])
        };
        let numbers = match side {
            Side::Queries => {
                let row = batch * (of.heads * of.group) + own_head;
                Numbers::own(&tile, numbers, row * of.queries)
            }
            Side::Keys(_) => Numbers::Streamed {
                buffers: numbers,
                extents: [of.heads * of.group, of.queries],
            },
        };
        let matrices = [0, 1].map(|side: usize| {
            let (operand, buffer) = owned[side];
            Matrix {
                operand,
                buffer,
                columns: of.columns[side],
            }
        });
        let lanes = Lanes {
            own: matrices,
            tile: &tile,
            scale: of.scale,
            streamed,
            factors: [factors(0), factors(1)],
            numbers,
            seen: tile.seen(),
        };
        let sums = match side {
            Side::Queries => lanes.sums([batch, head_of_keys], &lanes.none()),
            Side::Keys(_) if of.group == 1 => lanes.sums([batch, first_head], &lanes.none()),
            Side::Keys(_) => code.repeat([0, of.group, 1].map(Int::Known), &lanes.none(), |among, sums| {
                lanes.sums([batch, first_head + among], sums)
            }),
        };
        let sums = if self.own().visible.is_same_for_all() {
            sums
        } else {
            let streamed_heads = match side {
                Side::Queries => [head_of_keys, head_of_keys + 1],
                Side::Keys(_) => [first_head, first_head + of.group],
            };
            lanes.mended(&sums, [batch, own_head], streamed_heads)
        };
        let scale = code.float(of.scale, float);
        for (number, (dtype, strides, _)) in self.problem.stored().into_iter().enumerate() {
            let to = code.buffer(stored + number);
            for (block, sums) in (0..).zip(lanes.apart(&sums)) {
                let sums = &sums[number];
                tile.store(block, sums, (to, dtype, strides), [batch, own_head], |sum| {
                    // The scale is a factor of the scores' gradients, but not of the probabilities.
                    if number == 0 { sum * scale } else { sum }
                });
            }
        }
        own.tiles() * of_keys * group
    }
}

fn is_float(dtype: DataType) -> bool {
    matches!(dtype, DataType::F16 | DataType::Bf16 | DataType::F32)
}
