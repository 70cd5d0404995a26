//! Attention of few queries to many keys, as when a language model writes: one subgroup goes over a
//! part of the keys, and a second kernel combines their results.
//!
//! ```text
//! of each part:  m_p = max s      l_p = Σ exp(s - m_p)      w_p = Σ exp(s - m_p) v
//! m = max m_p    l = Σ l_p exp(m_p - m)      o = Σ w_p exp(m_p - m) / l
//! ```
//!
//! All heads of q that share keys, with all their queries, are the columns of one matrix
//! instruction, 16 at most: keys and values are read once. Nothing passes through LDS.

use super::{Problem, SIXTEEN, is_within};
use crate::kernel::code::Int;

/// Lanes of a workgroup of either kernel.
pub(in crate::kernel) const LANES: i64 = rotini_schedule::gemm::LANES.cast_signed();

/// An attention whose keys are cut into parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decode {
    pub(crate) of: Problem,
    /// Parts of the keys that any query may see, and keys of one: the last may have fewer.
    pub(crate) parts: i64,
    pub(crate) each: i64,
}

/// The number of statistics of each query, which the first kernel passes to the second and the
/// second stores besides the output: the greatest score and the sum of exponentials.
pub(super) const FOUND: i64 = 2;

impl Decode {
    /// Whether there are kernels for it.
    pub(crate) fn is_possible(&self) -> bool {
        let between = self.all().checked_mul(
            self.columns_of_group()
                .saturating_mul(self.of.columns[1].saturating_mul(4)),
        );
        self.of.is_possible()
            && self.of.mask.is_none()
            && (1..=SIXTEEN).contains(&self.columns_of_group())
            && is_within(between)
    }

    /// Columns of the matrices: queries of all heads that share keys.
    pub(super) fn columns_of_group(&self) -> i64 {
        self.of.group.saturating_mul(self.of.queries)
    }

    /// Parts of all heads of keys of all batches.
    pub(super) fn all(&self) -> i64 {
        self.of.batch.saturating_mul(self.of.heads).saturating_mul(self.parts)
    }

    /// The numbers of elements that the first kernel stores: weighted sums of values, greatest
    /// scores and sums of exponentials.
    pub(in crate::kernel) fn between(&self) -> [i64; 2] {
        let each = self.all() * self.columns_of_group();
        [each * self.of.columns[1], each * FOUND]
    }

    /// What it is, for people who read the kernels' names.
    pub(in crate::kernel) fn name(&self) -> String {
        let [of_key, of_value] = self.of.columns;
        format!(
            "decode_{}x{}x{}x{}x{of_key}x{of_value}_{}",
            self.of.batch * self.of.heads,
            self.columns_of_group(),
            self.parts,
            self.each,
            self.of.dtype
        )
    }

    /// Batch, head of q and query of a column of a head of keys.
    pub(super) fn query<'c>(&self, of_keys: Int<'c>, column: Int<'c>) -> [Int<'c>; 3] {
        let (batch, head) = (of_keys / self.of.heads, of_keys % self.of.heads);
        let among = column / self.of.queries;
        [batch, head * self.of.group + among, column % self.of.queries]
    }
}
