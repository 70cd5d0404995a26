//! Attention kernels.
//!
//! | File | Owns |
//! |---|---|
//! | `decode`, `parts`, `sum` | attention of few queries: the keys are split into parts |
//! | `prefill`, `steps` | attention of many queries, in one kernel |
//! | `softmax` | the online softmax that both have |
//! | `gradients`, `gradient_steps` | gradients of queries, of keys and values: one kernel each |
//! | `cpu`, `cpu_steps` | attention on CPUs |
//! | `cpu_gradients` | the gradients on CPUs |
//! | `cpu_lanes` | code that both share: vectors with a row in each lane |
//! | `backward` | the description of gradients, on any device |
//! | `again`, `cpu_again` | recomputation of sums that became NaN through hidden rows |
//! | `tile`, `streamed` | code that `prefill` and `gradients` share: own rows, streamed rows |
//!
//! In the kernels for GPUs, the scores of a block are a matrix of 16 keys by 16 queries, and a lane
//! has the scores of one query and four keys. These are the exponentials that the lane needs as an
//! operand of the second product. Of the values it loads contiguous columns of four keys, and each
//! of these columns is a row of a separate matrix instruction. Scores are in powers of 2: they are
//! multiplied by log2(e) together with the scale. For the gradients of keys and values, keys and
//! queries exchange roles.

mod again;
mod backward;
mod cpu;
mod cpu_again;
mod cpu_gradients;
mod cpu_lanes;
mod cpu_steps;
mod decode;
mod gradient_steps;
mod gradients;
mod parts;
mod prefill;
mod softmax;
mod steps;
mod streamed;
mod sum;
mod tile;

pub(crate) use backward::{Backward, Side};
pub(crate) use cpu::OnCpu;
pub(crate) use cpu_gradients::GradientsOnCpu;
pub(crate) use decode::Decode;
pub(super) use decode::LANES;
pub(crate) use gradients::Gradients;
pub(crate) use prefill::Prefill;

use super::code::{BEYOND, Code, Int, Ssa};
use crate::kernel::problem::bytes;
use crate::mlir::{Name, Type};
use rotini_graph::DataType;
use rotini_schedule::gemm::INTRINSIC;

/// Rows and columns of a matrix instruction.
const SIXTEEN: i64 = INTRINSIC.cast_signed();
/// Columns that a lane holds contiguously of an operand of the scores or of their gradients, and
/// columns that it copies at once.
const WIDE: i64 = 8;
/// The greatest finite f32.
const GREATEST: &str = "3.40282347E+38";
/// The lower limit of a mask's finite elements, so that they stay finite in powers of 2. The upper
/// limit is its opposite.
pub(crate) const LEAST_OF_MASK: f64 = -2e38;
/// -∞ and ∞.
const HIDDEN: &str = "0xFF800000";
const INFINITE: &str = "0x7F800000";

const MISSING: &str = "a value that a kernel of attention lacks";

/// The strides along batches, heads, and queries or keys. Columns are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strides {
    pub(crate) batch: i64,
    pub(crate) head: i64,
    pub(crate) row: i64,
}

impl Strides {
    /// Returns the offset of a row's first element.
    fn place<'c>(&self, [batch, head, row]: [Int<'c>; 3]) -> Int<'c> {
        Int::sum([batch * self.batch, head * self.head, row * self.row])
    }
}

/// An operand of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// The id of its value.
    pub(crate) tensor: usize,
    pub(crate) strides: Strides,
    pub(crate) elements: i64,
}

/// The mask that is added to scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    /// The id of its value.
    pub(crate) tensor: usize,
    pub(crate) dtype: DataType,
    /// The strides along batches, heads, queries and keys: 0 along an axis that the mask is
    /// broadcast along.
    pub(crate) strides: [i64; 4],
    pub(crate) elements: i64,
}

impl Mask {
    /// Returns whether the elements of four neighbouring keys are contiguous and fill whole 32-bit
    /// words, so that no load of four elements ends in a word that is partly beyond the buffer.
    /// With a left bound, a step may begin at any key.
    fn has_runs(&self, visible: &Visible) -> bool {
        let bytes = bytes(self.dtype);
        let is_whole = |elements: &i64| elements.saturating_mul(bytes) % 4 == 0;
        let [others @ .., key] = self.strides;
        let begins_anywhere = visible.from.is_some() && bytes < 4;
        key == 1 && !begins_anywhere && others.iter().chain([&self.elements]).all(is_whole)
    }
}

/// The keys that are visible to each query: those from the query's index plus `from` to its index
/// plus `to`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// The ids of two values with a 32-bit number for each batch: its number of queries and its
    /// number of keys. Queries beyond the number see no key.
    pub(crate) lengths: Option<[usize; 2]>,
    /// The first key that any query may see, and the end of these keys.
    pub(crate) keys: [i64; 2],
}

impl Visible {
    /// Returns the bounds for these numbers of queries and keys.
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

    /// Returns the same bounds from the keys' side: the queries that see each key.
    pub(crate) fn transposed(&self, [queries, keys]: [i64; 2]) -> Self {
        let transposed = |bound: Option<i64>| bound.map(i64::saturating_neg);
        let lengths = self.lengths.map(|[queries, keys]| [keys, queries]);
        Visible::new([transposed(self.to), transposed(self.from)], lengths, [keys, queries])
    }

    /// Returns whether all queries see the same keys.
    fn is_same_for_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.lengths.is_none()
    }

    /// Returns whether bounds let some queries see keys that others do not.
    fn is_bounded(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Returns the maximum number of keys that `queries` neighbouring queries see together.
    pub(crate) fn seen_by(&self, queries: i64) -> i64 {
        match (self.from, self.to) {
            (Some(from), Some(to)) => self.count().min(to.saturating_sub(from).saturating_add(queries).max(0)),
            _ => self.count(),
        }
    }

    /// Returns the number of keys that any query may see.
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
    /// The element type of q, k and v.
    pub(crate) dtype: DataType,
    pub(crate) batch: i64,
    /// Heads of keys.
    pub(crate) heads: i64,
    /// Heads of q per head of keys.
    pub(crate) group: i64,
    pub(crate) queries: i64,
    /// Columns of q and k, and columns of v.
    pub(crate) columns: [i64; 2],
    pub(crate) visible: Visible,
    pub(crate) mask: Option<Mask>,
    pub(crate) scale: f64,
    /// The type and the strides of the output.
    pub(crate) out: (DataType, Strides),
}

impl Problem {
    /// Returns whether there are GPU kernels for these types, columns and sizes. A kernel that
    /// stores more than the output checks the rest itself.
    fn is_possible(&self) -> bool {
        let [of_key, of_value] = self.columns;
        let bytes = [self.q, self.k, self.v].map(|operand| operand.elements.checked_mul(2));
        let has_mask = self.mask.is_none_or(|mask| {
            let is_float = matches!(mask.dtype, DataType::F16 | DataType::Bf16 | DataType::F32);
            is_float && is_within(mask.elements.checked_mul(4))
        });
        let stored = self.rows().checked_mul(of_value.saturating_mul(4));
        has_mask
            && matches!(self.dtype, DataType::F16 | DataType::Bf16)
            && matches!(self.out.0, DataType::F16 | DataType::Bf16 | DataType::F32)
            && of_key % (4 * WIDE) == 0
            && (4 * WIDE..=256).contains(&of_key)
            && [4 * SIXTEEN, 8 * SIXTEEN].contains(&of_value)
            && bytes.into_iter().chain([stored]).all(is_within)
    }

    /// Returns the number of queries of all heads of all batches.
    pub(super) fn rows(&self) -> i64 {
        self.batch
            .saturating_mul(self.heads)
            .saturating_mul(self.group.saturating_mul(self.queries))
    }
}

/// Returns whether a buffer of `bytes` bytes can be addressed.
fn is_within(bytes: Option<i64>) -> bool {
    bytes.is_some_and(|bytes| bytes > 0 && bytes < BEYOND)
}

/// Combines the values of the four lanes of a query by `operation`.
fn of_query<'c>(code: &Code<'c>, operation: Name, mut value: Ssa<'c>) -> Ssa<'c> {
    for distance in [SIXTEEN, 2 * SIXTEEN] {
        let other = code.exchanged(value, distance);
        value = code.same(operation, &[value, other]);
    }
    value
}

/// Returns the scores of a block, or their gradients: the product of the rows of two operands,
/// added to `sums`.
fn product<'c>(code: &Code<'c>, [a, b]: [&[Ssa<'c>]; 2], mut sums: Ssa<'c>) -> Ssa<'c> {
    for (&a, &b) in a.iter().zip(b) {
        for half in [[0, 1, 2, 3], [4, 5, 6, 7]] {
            let factors = [code.shuffle([a, a], &half), code.shuffle([b, b], &half)];
            sums = code.mfma(factors, sums);
        }
    }
    sums
}

/// Loads the lengths of a batch, the numbers of queries and keys, from `count` buffers of the
/// kernel from number `first` on. Negative numbers become zero.
fn lengths_of<'c>(code: &Code<'c>, first: usize, count: usize, batch: Int<'c>) -> Vec<Int<'c>> {
    let word = Type::integer(code.context(), 32);
    let length = |number: usize| {
        let loaded = code.load(code.buffer(first + number), batch, word);
        let length = loaded.index_cast(code.index_type());
        Int::Made(length).max(0)
    };
    (0..count).map(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_see_the_queries_that_see_them() {
        let bounds = [None, Some(-9), Some(-3), Some(0), Some(2), Some(9)];
        let sees = |visible: &Visible, query: i64, key: i64| {
            let [first, end] = visible.keys;
            (first..end).contains(&key)
                && visible.from.is_none_or(|from| key >= query + from)
                && visible.to.is_none_or(|to| key <= query + to)
        };
        for (from, to) in bounds.into_iter().flat_map(|from| bounds.map(|to| (from, to))) {
            for [queries, keys] in [[1, 7], [7, 1], [5, 5], [3, 8], [8, 3]] {
                let of_queries = Visible::new([from, to], Some([1, 2]), [queries, keys]);
                let of_keys = of_queries.transposed([queries, keys]);
                assert_eq!(of_keys.lengths, Some([2, 1]));
                for (query, key) in (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key))) {
                    assert_eq!(
                        sees(&of_queries, query, key),
                        sees(&of_keys, key, query),
                        "{query} and {key} of {queries} and {keys}, {from:?} to {to:?}"
                    );
                }
            }
        }
    }
}
