//! Attention of few queries to many keys, as when a language model generates text: one subgroup
//! goes over a part of the keys, and a second kernel combines the results of the parts.
//!
//! ```text
//! of each part:  m_p = max s      l_p = Σ exp(s - m_p)      w_p = Σ exp(s - m_p) v
//! m = max m_p    l = Σ l_p exp(m_p - m)      o = Σ w_p exp(m_p - m) / l
//! ```
//!
//! The queries of all heads of q that share keys are the columns of one matrix instruction, 16 at
//! most, so that keys and values are read once. No data passes through LDS.

use super::{Problem, SIXTEEN, is_within};
use crate::kernel::code::Int;

/// Lanes per workgroup of either kernel.
pub(in crate::kernel) const LANES: i64 = rotini_schedule::gemm::LANES.cast_signed();

/// An attention whose keys are split into parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decode {
    pub(crate) of: Problem,
    /// The number of parts of the keys that any query may see, and the keys per part, of which the
    /// last part may have fewer.
    pub(crate) parts: i64,
    pub(crate) each: i64,
}

/// The number of statistics of each query, which the first kernel passes to the second and the
/// second stores besides the output: the greatest score and the sum of exponentials.
pub(super) const FOUND: i64 = 2;

impl Decode {
    /// Returns whether there are kernels for this attention.
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

    /// Returns the number of columns of the matrices: the queries of all heads that share keys.
    pub(super) fn columns_of_group(&self) -> i64 {
        self.of.group.saturating_mul(self.of.queries)
    }

    /// Returns the number of parts of all heads of keys and all batches.
    pub(super) fn all(&self) -> i64 {
        self.of.batch.saturating_mul(self.of.heads).saturating_mul(self.parts)
    }

    /// Returns the numbers of elements that the first kernel stores: of the weighted sums of
    /// values, and of the statistics (greatest scores and sums of exponentials).
    pub(in crate::kernel) fn between(&self) -> [i64; 2] {
        let each = self.all() * self.columns_of_group();
        [each * self.of.columns[1], each * FOUND]
    }

    /// Returns the kernels' name, for people.
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

    /// Returns the batch, the head of q and the query of a column of a head of keys.
    pub(super) fn query<'c>(&self, of_keys: Int<'c>, column: Int<'c>) -> [Int<'c>; 3] {
        let (batch, head) = (of_keys / self.of.heads, of_keys % self.of.heads);
        let among = column / self.of.queries;
        [batch, head * self.of.group + among, column % self.of.queries]
    }
}
