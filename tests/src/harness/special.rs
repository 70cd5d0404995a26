//! Special values of seeds that each run chooses anew: those of one seed alone have hidden defects
//! before.

use super::Runner;
use crate::cases::{self, Case};
use crate::{scaled, seed};
use rotini_reference::Profile;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// In a usual run, one case in this many.
const SHARE: u64 = 8;

impl Runner {
    /// Runs the cases that [have special values](cases::edges) on those of other seeds than the
    /// verdicts' one: one case in eight on the values of `ROTINI_TEST_SEED`, or in a full run all
    /// cases on the values of that seed and of the three after it.
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
