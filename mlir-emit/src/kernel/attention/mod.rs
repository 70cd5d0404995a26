//! Attention by kernels of our own.
//!
//! | File | Owns |
//! |---|---|
//! | `decode`, `parts`, `sum` | attention of few queries: the keys are cut into parts |
//! | `prefill`, `steps` | attention of many queries, in one kernel |
//!
//! In both, the scores of a block are a matrix of 16 keys by 16 queries, and a lane has one query's scores of four keys. That is what it needs
//! of the exponentials for the second product. Of values it loads neighbouring columns of four keys, and each of these columns is a row of an
//! instruction of its own. Scores are in powers of 2: they are multiplied by log2(e) with the scale.

mod decode;
mod parts;
mod prefill;
mod steps;
mod sum;

pub(crate) use decode::Decode;
pub(super) use decode::LANES;
pub(crate) use prefill::Prefill;

use super::code::{Code, Int, Ssa};
use super::epilogue::RUN;
use super::places::BEYOND;
use crate::EmitError;
use crate::mlir::Type;
use rotini_graph::DataType;
use rotini_schedule::gemm::INTRINSIC;

/// Rows and columns of a matrix instruction.
const SIXTEEN: i64 = INTRINSIC.cast_signed();
/// Columns of q and k that a lane has at once.
const WIDE: i64 = 8;
/// The least finite number of 32 bits.
const LEAST: &str = "-3.40282347E+38";
/// -∞.
const HIDDEN: &str = "0xFF800000";

const MISSING: EmitError = EmitError::Internal("a value that a kernel of attention lacks");

/// How far apart elements are along batches, heads, and queries or keys. Columns lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) batch: i64,
    pub(crate) head: i64,
    pub(crate) row: i64,
}

impl Strides {
    /// The place of a row's first element.
    fn place<'c>(&self, code: &Code<'c>, [batch, head, row]: [Int<'c>; 3]) -> Result<Int<'c>, EmitError> {
        code.sum([
            code.mul(batch, self.batch)?,
            code.mul(head, self.head)?,
            code.mul(row, self.row)?,
        ])
    }
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

    /// How many keys so many neighbouring queries see at most.
    pub(crate) fn seen_by(&self, queries: i64) -> i64 {
        match (self.from, self.to) {
            (Some(from), Some(to)) => self.count().min(to.saturating_sub(from).saturating_add(queries).max(0)),
            _ => self.count(),
        }
    }

    /// How many keys any query may see.
    pub(crate) fn count(&self) -> i64 {
        let [first, end] = self.keys;
        end.saturating_sub(first)
    }
}

/// An attention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
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
    pub(crate) scale: f64,
    /// The output's type and memory.
    pub(crate) out: (DataType, Strides),
}

impl Problem {
    /// Whether there are kernels for such types, columns and sizes. What a kernel stores besides the output it checks itself.
    fn is_possible(&self) -> bool {
        let [of_key, of_value] = self.columns;
        let bytes = [self.q, self.k, self.v].map(|operand| operand.elements.checked_mul(2));
        let stored = self.rows().checked_mul(of_value.saturating_mul(4));
        matches!(self.dtype, DataType::F16 | DataType::Bf16)
            && matches!(self.out.0, DataType::F16 | DataType::Bf16 | DataType::F32)
            && of_key % (4 * WIDE) == 0
            && (4 * WIDE..=256).contains(&of_key)
            && [4 * SIXTEEN, 8 * SIXTEEN].contains(&of_value)
            && bytes.into_iter().chain([stored]).all(is_within)
    }

    /// Queries of all heads of all batches.
    pub(super) fn rows(&self) -> i64 {
        self.batch
            .saturating_mul(self.heads)
            .saturating_mul(self.group.saturating_mul(self.queries))
    }
}

/// Whether a buffer of so many bytes can be addressed.
fn is_within(bytes: Option<i64>) -> bool {
    bytes.is_some_and(|bytes| bytes > 0 && bytes < BEYOND)
}

/// Of a number that each lane has, what the four lanes of a query have together.
fn of_query<'c>(code: &Code<'c>, operation: &str, mut value: Ssa<'c>) -> Result<Ssa<'c>, EmitError> {
    for distance in [SIXTEEN, 2 * SIXTEEN] {
        let other = code.exchanged(value, distance)?;
        value = code.same(operation, &[value, other])?;
    }
    Ok(value)
}

/// The greatest score of a query: of those so far, and of these of its four lanes.
fn greatest_of<'c>(
    code: &Code<'c>,
    mut greatest: Ssa<'c>,
    scores: &[Ssa<'c>],
    float: Type<'c>,
) -> Result<Ssa<'c>, EmitError> {
    for &scores in scores {
        for number in 0..RUN {
            let score = code.extract(scores, number, float)?;
            greatest = code.same("arith.maxnumf", &[greatest, score])?;
        }
    }
    of_query(code, "arith.maxnumf", greatest)
}
