//! Attention of many queries in one kernel, as when a language model reads a prompt: flash
//! attention.
//!
//! ```text
//! copy the first keys and values to LDS
//! for each step of keys that any query of the workgroup sees:
//!     begin to copy the next ones from memory to registers
//!     s = q kᵀ      m' = max(m, max s)      p = exp(s - m')
//!     l = l exp(m - m') + Σ p      o = o exp(m - m') + p v      m = m'
//!     wait for the copy, and put it into LDS
//! o / l
//! ```
//!
//! A workgroup has some blocks of 16 queries of one head, and each of its subgroups a few of these.
//! Sums, scores and exponentials stay in registers. Steps of keys that are hidden from all queries
//! of the workgroup are skipped. Keys are compared with the bounds only in steps in which some key
//! is hidden from some query.

use super::again::Matrix;
use super::steps::Lanes;
use super::streamed::{Copied, STEP, Streamed};
use super::tile::{Own, Tile};
use super::{Operand, Problem, lengths_of};
use crate::kernel::code::Code;
use crate::kernel::gemm::element;
use rotini_schedule::attention::Prefill as Schedule;

/// An attention whose queries are distributed over workgroups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefill {
    pub(crate) of: Problem,
    pub(crate) schedule: Schedule,
}

impl Prefill {
    /// Returns whether there is a kernel for this attention.
    pub(crate) fn is_possible(&self) -> bool {
        let can_copy = |&columns: &i64| self.own().can_copy(columns);
        self.of.is_possible() && self.of.columns.iter().all(can_copy) && self.of.visible.count() > 0
    }

    fn own(&self) -> Own {
        Own {
            count: self.of.queries,
            visible: self.of.visible,
            schedule: self.schedule,
        }
    }

    /// Returns the number of lanes per workgroup.
    pub(in crate::kernel) fn lanes(&self) -> u64 {
        self.own().lanes().cast_unsigned()
    }

    /// Returns the kernel's name, for people.
    pub(in crate::kernel) fn name(&self) -> String {
        let [of_key, of_value] = self.of.columns;
        format!(
            "prefill_{}x{}x{}x{of_key}x{of_value}_{}_{}x{}",
            self.of.batch * self.of.heads * self.of.group,
            self.of.queries,
            self.of.visible.count(),
            self.of.dtype,
            self.schedule.subgroups,
            self.schedule.blocks
        )
    }

    /// Writes the body, and returns the number of workgroups. The buffers are q, k, v, the mask and
    /// the sequence lengths if they exist, the output, the greatest scores and the sums of
    /// exponentials.
    pub(in crate::kernel) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let of = &self.of;
        let context = code.context();
        let half = element(context, of.dtype);
        // The buffers after q, k, v and the mask.
        let first_length = 3 + usize::from(of.mask.is_some());
        let lengths = of.visible.lengths.map_or(0, |lengths| lengths.len());
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let own = self.own();
        let of_keys = of.batch * of.heads;
        let heads = of_keys * of.group;
        // Workgroups go to the dies in turn. If batches times heads of keys are a multiple of the
        // number of dies, all workgroups that read a head's keys are on one die.
        let tile = own.tile(workgroup, heads);
        let number = workgroup % heads;
        let (among, number) = (number / of_keys, number % of_keys);
        let (batch, head_of_keys) = (number / of.heads, number % of.heads);
        let head = head_of_keys * of.group + among;
        let lengths = lengths_of(code, first_length, lengths, batch);
        let stored = first_length + lengths.len();
        let tile = Tile::new(code, own, half, [lane, tile], lengths);
        let copied = |operand: Operand, number, columns, is_exchanged| Copied {
            operand,
            columns,
            buffer: code.buffer(number),
            memory: code.shared(STEP * columns, half),
            is_exchanged,
        };
        let [of_key, of_value] = of.columns;
        let lanes = Lanes {
            tile: &tile,
            prefill: self,
            mask: of.mask.map(|mask| (mask, code.buffer(3))),
            head: [batch, head],
            q: Matrix {
                operand: of.q,
                buffer: code.buffer(0),
                columns: of_key,
            },
            streamed: Streamed {
                tile: &tile,
                // Keys are read by rows, values by columns.
                copied: [copied(of.k, 1, of_key, true), copied(of.v, 2, of_value, false)],
            },
        };
        let q = tile.factors((code.buffer(0), of.q.strides, of_key), [batch, head]);
        let sums = lanes.sums(&q, [batch, head_of_keys]);
        let stored = [stored, stored + 1, stored + 2].map(|number| code.buffer(number));
        let [o, greatest, total] = stored;
        lanes.store(&sums, o, [greatest, total], [batch, head]);
        own.tiles() * heads
    }
}
