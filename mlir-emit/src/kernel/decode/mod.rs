//! Attention of few queries to many keys, as when a language model writes: one subgroup goes over a part of the keys, and a second kernel
//! adds what the parts found.
//!
//! ```text
//! of each part:  m_p = max s      l_p = Σ exp(s - m_p)      w_p = Σ exp(s - m_p) v
//! m = max m_p    l = Σ l_p exp(m_p - m)      o = Σ w_p exp(m_p - m) / l
//! ```
//!
//! All heads of q that share keys, with all their queries, are the columns of one matrix instruction, 16 at most: keys and values are read
//! once. Nothing passes through LDS. A lane has one query's scores of four keys, which is what it needs of the exponentials for the second
//! product; of values it loads neighbouring columns of four keys, and each of these columns is a row of an instruction of its own.
//!
//! Scores are in powers of 2: they are multiplied by log2(e) with the scale.

mod parts;
mod sum;

use super::code::{Code, Int};
use super::places::BEYOND;
use crate::EmitError;
use rotini_graph::DataType;
use rotini_schedule::gemm::INTRINSIC;

/// Rows and columns of a matrix instruction.
const SIXTEEN: i64 = INTRINSIC.cast_signed();
/// Lanes of a workgroup of either kernel.
pub(super) const LANES: i64 = rotini_schedule::gemm::LANES.cast_signed();
/// Columns of q and k that a lane loads at once.
const WIDE: i64 = 8;

const MISSING: EmitError = EmitError::Internal("a value that a decode kernel lacks");

/// How far apart elements are along batches, heads, and queries or keys. Columns lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) batch: i64,
    pub(crate) head: i64,
    pub(crate) row: i64,
}

/// A tensor of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// The number of its value.
    pub(crate) tensor: usize,
    pub(crate) strides: Strides,
    pub(crate) elements: i64,
}

/// Which keys a query sees: those from its own number plus `from` to its own number plus `to`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// The numbers of two values with a number of 32 bits for each batch: how many queries and keys it has. Other queries see nothing.
    pub(crate) lengths: Option<[usize; 2]>,
    /// The first key that any query may see, and where they end.
    pub(crate) keys: [i64; 2],
}

impl Visible {
    /// Of so many queries and keys.
    pub(crate) fn new([from, to]: [Option<i64>; 2], lengths: Option<[usize; 2]>, [queries, keys]: [i64; 2]) -> Self {
        let first = from.map_or(0, |from| from.clamp(0, keys));
        let end = to.map_or(keys, |to| to.saturating_add(queries).clamp(first, keys));
        Visible {
            // Bounds that hide no key are none.
            from: from.filter(|&from| from.saturating_add(queries) > 1),
            to: to.filter(|&to| to.saturating_add(1) < keys),
            lengths,
            keys: [first, end],
        }
    }

    /// Whether queries see the same keys.
    fn is_same_for_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.lengths.is_none()
    }

    /// How many keys any query may see.
    pub(crate) fn count(&self) -> i64 {
        let [first, end] = self.keys;
        end.saturating_sub(first)
    }
}

/// An attention whose keys are cut into parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decode {
    pub(crate) q: Operand,
    pub(crate) k: Operand,
    pub(crate) v: Operand,
    /// Of all three.
    pub(crate) dtype: DataType,
    pub(crate) batch: i64,
    /// Heads of keys.
    pub(crate) heads: i64,
    /// Heads of q for each.
    pub(crate) group: i64,
    pub(crate) queries: i64,
    /// Columns of q and k, and of v.
    pub(crate) columns: [i64; 2],
    pub(crate) visible: Visible,
    /// Parts of the keys that any query may see, and keys of one: the last may have fewer.
    pub(crate) parts: i64,
    pub(crate) each: i64,
    pub(crate) scale: f64,
    /// The output's type and memory.
    pub(crate) out: (DataType, Strides),
}

/// The numbers that an attention of parts has between its two kernels, and that the second one stores beside the output.
pub(super) const FOUND: i64 = 2;

impl Decode {
    /// Whether there are kernels for it.
    pub(crate) fn is_possible(&self) -> bool {
        let [of_key, of_value] = self.columns;
        let bytes = [self.q, self.k, self.v].map(|operand| operand.elements.checked_mul(2));
        let stored = self.rows().checked_mul(of_value.saturating_mul(4));
        let between = self
            .all()
            .checked_mul(self.columns_of_group().saturating_mul(of_value.saturating_mul(4)));
        matches!(self.dtype, DataType::F16 | DataType::Bf16)
            && matches!(self.out.0, DataType::F16 | DataType::Bf16 | DataType::F32)
            && of_key % (4 * WIDE) == 0
            && (4 * WIDE..=256).contains(&of_key)
            && [4 * SIXTEEN, 8 * SIXTEEN].contains(&of_value)
            && (1..=SIXTEEN).contains(&self.columns_of_group())
            && bytes
                .into_iter()
                .chain([stored, between])
                .all(|bytes| bytes.is_some_and(|bytes| bytes > 0 && bytes < BEYOND))
    }

    /// Columns of the matrices: queries of all heads that share keys.
    fn columns_of_group(&self) -> i64 {
        self.group.saturating_mul(self.queries)
    }

    /// Parts of all heads of keys of all batches.
    fn all(&self) -> i64 {
        self.batch.saturating_mul(self.heads).saturating_mul(self.parts)
    }

    /// Queries of all heads of all batches.
    pub(super) fn rows(&self) -> i64 {
        self.batch
            .saturating_mul(self.heads)
            .saturating_mul(self.columns_of_group())
    }

    /// Elements of what the first kernel stores: sums of values, and for each the greatest score and the sum of the exponentials.
    pub(super) fn between(&self) -> [i64; 2] {
        let each = self.all() * self.columns_of_group();
        [each * self.columns[1], each * FOUND]
    }

    /// What it is, for people who read the kernels' names.
    pub(super) fn name(&self) -> String {
        let [of_key, of_value] = self.columns;
        format!(
            "decode_{}x{}x{}x{}x{of_key}x{of_value}_{}",
            self.batch * self.heads,
            self.columns_of_group(),
            self.parts,
            self.each,
            self.dtype
        )
    }

    /// Batch, head of q and query of a column of a head of keys.
    fn query<'c>(&self, code: &Code<'c>, of_keys: Int<'c>, column: Int<'c>) -> Result<[Int<'c>; 3], EmitError> {
        let (batch, head) = (code.div(of_keys, self.heads)?, code.rem(of_keys, self.heads)?);
        let among = code.div(column, self.queries)?;
        Ok([
            batch,
            code.add(code.mul(head, self.group)?, among)?,
            code.rem(column, self.queries)?,
        ])
    }
}
