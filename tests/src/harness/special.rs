//! Special values from seeds that each run chooses anew: a single fixed seed has hidden defects
//! before.

use super::Runner;
use crate::cases::{self, Case};
use crate::{scaled, seed};
use rotini_reference::Profile;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Sampling interval of a usual run: one case in this many.
const SHARE: u64 = 8;

impl Runner {
    /// Runs the cases that [have special values](cases::edges) with other seeds than that of the
    /// verdicts: one case in eight with `ROTINI_TEST_SEED`, or in a full run all cases with that
    /// seed and the three after it.
    ///
    /// # Panics
    ///
    /// If any fails.
    #[expect(clippy::print_stdout, reason = "the seed repeats a failure")]
    pub fn expect_other_special_values(self) {
        let chosen_by_name = std::env::var("ROTINI_CASE").is_ok_and(|name| !name.is_empty());
        let share = if chosen_by_name { 1 } else { scaled([SHARE, 1]) };
        let mut runner = self.filled_with(Profile::FewEdges);
        for number in 0..scaled([1, 4]) {
            runner.seed = seed().wrapping_add(number);
            println!("special values of ROTINI_TEST_SEED={}", runner.seed);
            let is_chosen = |case: &Case| {
                let mut hasher = DefaultHasher::new();
                (runner.seed, &case.name).hash(&mut hasher);
                hasher.finish().is_multiple_of(share)
            };
            let chosen: Vec<Case> = cases::edges().into_iter().filter(is_chosen).collect();
            runner.expect_all(&chosen, 64);
        }
    }
}
