//! Owns the tiling of attention: the rows of scores of a workgroup, the steps in which it goes over
//! the keys, and the number of parts into which the keys are split.
//!
//! Why the keys of a single query are split: the compiler's form of one query has 16 workgroups or
//! fewer, which read all keys and values of a batch.

use crate::Machine;
use crate::gemm::INTRINSIC;

/// The tiling of an attention with many queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefill {
    /// Subgroups per workgroup.
    pub subgroups: u64,
    /// Blocks of 16 queries per subgroup.
    pub blocks: u64,
}

/// Returns the tiling of an attention with `queries` queries in each of `batches` batches and
/// heads: the most queries per workgroup that still leave a workgroup for every compute unit.
#[must_use]
pub fn prefill(machine: &Machine, batches: u64, queries: u64) -> Prefill {
    let [most, least] = [2, 1].map(|blocks| Prefill { subgroups: 4, blocks });
    let groups = batches.saturating_mul(queries.div_ceil(most.rows()));
    if groups >= machine.units { most } else { least }
}

impl Prefill {
    /// Returns the number of queries per workgroup.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.subgroups * self.blocks * INTRINSIC
    }

    /// Returns the estimated time in ns.
    ///
    /// `batches`: batches times heads. `rows`: own rows in each of them. `seen`: streamed rows of a
    /// head that are visible to one workgroup. `heads`: heads whose rows a workgroup streams.
    #[must_use]
    pub fn time(&self, machine: &Machine, [batches, rows]: [u64; 2], [seen, heads]: [u64; 2]) -> u64 {
        /// Rows of a step, and the time of a step in ns where a workgroup has a compute unit to
        /// itself. The time was predicted for 1024 queries of 16 heads; for gradients it is within
        /// a fifth of the prediction.
        const ROWS: u64 = 64;
        const STEP: u64 = 2000;
        let groups = batches.saturating_mul(rows.div_ceil(self.rows()));
        let turns = groups.div_ceil(machine.units.max(1));
        let steps = seen.div_ceil(ROWS).saturating_mul(heads);
        turns.saturating_mul(steps).saturating_mul(STEP)
    }
}

/// Returns the estimated time in ns of an attention that stores its `scores` scores in memory, in
/// four kernels: 12 bytes per score at 4 TB/s.
///
/// This form is faster than the single kernel where few workgroups would go over many keys, because
/// matrix products divide that work among more workgroups.
#[must_use]
pub fn time_of_scores(scores: u64) -> u64 {
    in_memory(scores, 4, 3)
}

/// Returns the estimated time in ns of the gradients of such an attention, in six kernels: 16 bytes
/// per score.
#[must_use]
pub fn time_of_gradients(scores: u64) -> u64 {
    in_memory(scores, 6, 4)
}

/// Returns the time in ns of `kernels` launches and of the memory traffic of `scores` scores, at
/// `thousand` ns per thousand scores.
fn in_memory(scores: u64, kernels: u64, thousand: u64) -> u64 {
    const KERNEL: u64 = 2500;
    (scores / 1000)
        .saturating_mul(thousand)
        .saturating_add(kernels.saturating_mul(KERNEL))
}

/// Keys that a subgroup multiplies in one step of an attention with few queries.
pub const STEP: u64 = 32;

/// Maximum number of parts: the second kernel loads all of them before it adds the first.
const MOST_PARTS: u64 = 32;

/// Returns the number of parts into which the keys are split, and the number of keys per part, of
/// which the last part may have fewer.
///
/// Each of `batches` batches has at most 16 rows of scores, the rows of one matrix instruction. One
/// subgroup goes over a part, and a second kernel adds the parts.
///
/// All SIMD units read at once, so the SIMD with the most keys determines the time.
#[must_use]
pub fn parts(machine: &Machine, batches: u64, keys: u64) -> [u64; 2] {
    /// The fixed cost of a part, as a number of keys.
    const START: u64 = 32;
    const SIMDS: u64 = 4;
    let count = |each: u64| keys.div_ceil(each).max(1);
    let time = |each: u64| {
        let subgroups = batches.saturating_mul(count(each));
        subgroups
            .div_ceil(machine.units.saturating_mul(SIMDS).max(1))
            .saturating_mul(each.saturating_add(START))
    };
    let each = (1..=MOST_PARTS)
        .map(|parts| keys.div_ceil(parts).div_ceil(STEP).max(1).saturating_mul(STEP))
        .min_by_key(|&each| (time(each), count(each)))
        .unwrap_or(STEP);
    [count(each), each]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_queries_fill_the_machine() {
        let machine = Machine::of("mi300x").unwrap();
        let rows = |batches, queries| prefill(machine, batches, queries).rows();
        assert_eq!(
            [rows(16, 4096), rows(16, 1024), rows(304, 20), rows(1, 64)],
            [128, 64, 128, 64]
        );
        let is_slower = |batches, queries, keys, seen| {
            let time = prefill(machine, batches, queries).time(machine, [batches, queries], [seen, 1]);
            time > time_of_scores(batches * queries * keys)
        };
        assert!(!is_slower(16, 4096, 4096, 4096));
        assert!(!is_slower(16, 1024, 1024, 1024));
        assert!(!is_slower(16, 1024, 32768, 32768));
        assert!(is_slower(8, 20, 32768, 32768));
        assert!(is_slower(1, 2048, 2048, 2048));
        // A sliding window.
        assert!(!is_slower(1, 2048, 2048, 127));
        let are_slower = |batches: u64, rows: u64| {
            let one = prefill(machine, batches, rows).time(machine, [batches, rows], [rows, 1]);
            2 * one > time_of_gradients(batches * rows * rows)
        };
        assert!(!are_slower(16, 2048) && !are_slower(16, 128) && are_slower(2, 2048));
    }

    #[test]
    fn one_query_has_parts() {
        let machine = Machine::of("mi300x").unwrap();
        assert_eq!(parts(machine, 64, 4096), [19, 224]);
        assert_eq!(parts(machine, 64, 65536), [19, 3456]);
        assert_eq!(parts(machine, 1, 384), [12, 32]);
        assert_eq!(parts(machine, 8, 1000), [32, 32]);
        assert_eq!(parts(machine, 1 << 20, 7), [1, 32]);
    }
}
