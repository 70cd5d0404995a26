//! Attention of many queries in one kernel, as when a language model reads a prompt: flash attention.
//!
//! ```text
//! copy the first keys and values to LDS
//! for each step of keys that any query of the workgroup sees:
//!     begin to copy the next ones from memory to registers
//!     s = q kᵀ      m' = max(m, max s)      p = exp(s - m')      l = l exp(m - m') + Σ p      o = o exp(m - m') + p v      m = m'
//!     wait for the copy, and put it into LDS
//! o / l
//! ```
//!
//! A workgroup has some blocks of 16 queries of one head, and each of its subgroups a few of them. Sums, scores and exponentials stay in
//! registers. Steps of keys that no query of the workgroup sees are left out. Keys are compared with the bounds only in steps where some query
//! does not see some key.

use super::steps::{Lanes, Range};
use super::{MISSING, Problem, SIXTEEN, WIDE};
use crate::EmitError;
use crate::kernel::code::{Code, Int};
use crate::kernel::gemm::{Written, element};
use crate::mlir::{Context, Float, Type};
use rotini_schedule::attention::Prefill as Schedule;
use rotini_schedule::gemm::LANES;

/// Keys of a step.
pub(super) const STEP: i64 = 64;

/// An attention whose queries are cut into workgroups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefill {
    pub(crate) of: Problem,
    pub(crate) schedule: Schedule,
}

impl Prefill {
    /// Whether there is a kernel for it.
    pub(crate) fn is_possible(&self) -> bool {
        let lanes = self.lanes().cast_signed();
        // Lanes copy whole rows of a step, the same number each.
        let is_copied = |&columns: &i64| {
            let across = columns / WIDE;
            across > 0 && lanes % across == 0 && STEP % (lanes / across) == 0
        };
        self.of.is_possible()
            && self.of.columns[0].count_ones() == 1
            && self.of.columns.iter().all(is_copied)
            && self.of.visible.count() > 0
    }

    /// Queries of a workgroup.
    pub(super) fn tall(&self) -> i64 {
        self.schedule.rows().cast_signed()
    }

    /// Blocks of 16 queries of a subgroup.
    pub(super) fn blocks(&self) -> i64 {
        self.schedule.blocks.cast_signed()
    }

    /// Lanes of a workgroup.
    pub(in crate::kernel) fn lanes(&self) -> u64 {
        self.schedule.subgroups * LANES
    }

    /// What it is, for people who read the kernel's name.
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

    /// Whether each step has only keys that all queries see.
    pub(super) fn is_plain(&self) -> bool {
        self.of.visible.is_same_for_all() && self.of.visible.count() % STEP == 0
    }

    /// Writes the kernel. Its arguments are the lane, the workgroup, q, k, v, lengths if there are any, the output, the greatest scores and the
    /// sums of exponentials.
    pub(in crate::kernel) fn write<'c>(&self, context: &'c Context) -> Result<Written<'c>, EmitError> {
        let of = &self.of;
        let half = element(context, of.dtype).ok_or(MISSING)?;
        let out = element(context, of.out.0).ok_or(MISSING)?;
        let float = Type::float(context, Float::F32);
        let (index, word) = (Type::index(context), Type::integer(context, 32));
        let mut arguments = vec![index, index];
        for operand in [of.q, of.k, of.v] {
            arguments.push(half.memref(&[operand.elements], None)?);
        }
        let lengths = of.visible.lengths.map_or(0, |lengths| lengths.len());
        for _ in 0..lengths {
            arguments.push(word.memref(&[of.batch], None)?);
        }
        let rows = of.rows();
        arguments.push(out.memref(&[rows * of.columns[1]], None)?);
        arguments.extend([float.memref(&[rows], None)?; 2]);
        let code = Code::new(context, &arguments);
        let (lane, workgroup) = (Int::Made(code.argument(0)?), Int::Made(code.argument(1)?));
        let of_keys = of.batch * of.heads;
        let heads = of_keys * of.group;
        let tiles = (of.queries + self.tall() - 1) / self.tall();
        // Dies take workgroups in turn. If batches times heads of keys are a multiple of the dies, one die has all that reads a head's keys.
        // Where later queries see more keys, they begin first.
        let tile = code.div(workgroup, heads)?;
        let tile = match of.visible.to {
            Some(_) => code.sub(tiles - 1, tile)?,
            None => tile,
        };
        let number = code.rem(workgroup, heads)?;
        let (among, number) = (code.div(number, of_keys)?, code.rem(number, of_keys)?);
        let (batch, head_of_keys) = (code.div(number, of.heads)?, code.rem(number, of.heads)?);
        let head = code.add(code.mul(head_of_keys, of.group)?, among)?;
        let lengths = (0..lengths).map(|number| {
            let loaded = code.load(code.argument(5 + number)?, (batch, Int::Known(0)), word)?;
            let length = code.one("arith.index_cast", &[loaded], index, &[])?;
            code.greater(Int::Made(length), 0)
        });
        let lengths = lengths.collect::<Result<Vec<_>, EmitError>>()?;
        let within = code.rem(lane, LANES.cast_signed())?;
        let first = code.mul(tile, self.tall())?;
        let subgroup = code.div(lane, LANES.cast_signed())?;
        let [of_key, of_value] = of.columns;
        let lanes = Lanes {
            code: &code,
            prefill: self,
            half,
            float,
            lane,
            column: code.rem(within, SIXTEEN)?,
            quarter: code.div(within, SIXTEEN)?,
            first,
            block: code.mul(subgroup, self.blocks())?,
            numbers: [batch, head, head_of_keys],
            buffers: [code.argument(3)?, code.argument(4)?],
            memories: [code.shared(STEP * of_key, half)?, code.shared(STEP * of_value, half)?],
            range: self.range(&code, first, &lengths)?,
        };
        let q = lanes.queries(code.argument(2)?)?;
        let sums = lanes.sums(&q, &lengths)?;
        let stored = 5 + lengths.len();
        let stored = [stored, stored + 1, stored + 2].map(|number| code.argument(number));
        let [o, greatest, total] = stored;
        lanes.store(&sums, (out, o?), [greatest?, total?])?;
        code.op("func.return", &[], &[], &[], Vec::new())?;
        Ok(Written {
            block: code.finish()?,
            workgroups: tiles * heads,
        })
    }

    /// The keys that queries of a workgroup see, whose first query this is.
    fn range<'c>(&self, code: &Code<'c>, first: Int<'c>, lengths: &[Int<'c>]) -> Result<Range<'c>, EmitError> {
        let visible = &self.of.visible;
        let [from, to] = visible.keys.map(Int::Known);
        let (mut any, mut all) = ([from, to], [from, to]);
        if let Some(from) = visible.from {
            any[0] = code.greater(code.add(first, from)?, any[0])?;
            all[0] = code.greater(code.add(first, self.tall() - 1 + from)?, all[0])?;
        }
        if let Some(to) = visible.to {
            any[1] = code.lesser(code.greater(code.add(first, self.tall() + to)?, 0)?, any[1])?;
            all[1] = code.lesser(code.greater(code.add(first, 1 + to)?, 0)?, all[1])?;
        }
        if let &[queries, keys] = lengths {
            any[1] = code.select(code.is_below(first, queries)?, code.lesser(any[1], keys)?, 0)?;
            let are_there = code.is_below(code.add(first, self.tall() - 1)?, queries)?;
            all[1] = code.select(are_there, code.lesser(all[1], keys)?, 0)?;
        }
        Ok(Range { any, all })
    }
}
