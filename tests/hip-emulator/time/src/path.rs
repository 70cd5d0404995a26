//! The path of a wave through its kernel: straight runs of instructions, and repetitions of earlier
//! runs.

use crate::RecordError;

/// A straight run of instructions. After it, the last `back` entries of the path are repeated
/// `times` more times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the first instruction
    pub first: u32,
    /// Index after the last instruction
    pub end: u32,
    /// Number of path entries to repeat, of which this is the last
    pub back: u32,
    /// Number of additional repetitions
    pub times: u32,
}

/// The path of a wave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Run>);

/// Length of the longest loop body that is recognised, in straight runs.
const LONGEST: usize = 12;
/// Maximum number of instructions that the model follows of one wave.
const MOST: u64 = 1 << 22;

impl Path {
    /// Returns the path through `runs` (first instruction, index after the last), with loops
    /// detected.
    #[must_use]
    pub fn of(runs: &[(u32, u32)]) -> Self {
        let mut path = Vec::new();
        let mut at = 0;
        while at < runs.len() {
            let repeats = |length: usize| {
                let body = runs.get(at..at + length);
                let again = |n: &usize| body.is_some() && runs.get(at + n * length..at + (n + 1) * length) == body;
                (1..).take_while(again).count()
            };
            let (length, times) = (1..=LONGEST)
                .map(|length| (length, repeats(length)))
                .max_by_key(|&(length, times)| (length * times, std::cmp::Reverse(length)))
                .filter(|&(_, times)| times > 0)
                .unwrap_or((1, 0));
            for (index, &(first, end)) in runs[at..at + length].iter().enumerate() {
                let last = index + 1 == length && times > 0;
                path.push(Run {
                    first,
                    end,
                    back: if last { length as u32 } else { 0 },
                    times: if last { times as u32 } else { 0 },
                });
            }
            at += length * (times + 1);
        }
        Self(path)
    }

    /// Returns the indices of the instructions in execution order.
    pub fn instructions(&self) -> impl Iterator<Item = u32> + '_ {
        let plain = self.0.iter().enumerate().flat_map(move |(at, run)| {
            let from = (at + 1).saturating_sub(run.back as usize);
            let again = (0..run.times).flat_map(move |_| &self.0[from..=at]);
            std::iter::once(run).chain(again)
        });
        plain.flat_map(|run| run.first..run.end)
    }

    /// Returns the number of executed instructions.
    #[must_use]
    pub fn len(&self) -> u64 {
        let length = |run: &Run| u64::from(run.end.saturating_sub(run.first));
        let total = |(at, run): (usize, &Run)| {
            let from = (at + 1).saturating_sub(run.back as usize);
            let body: u64 = self.0[from..=at].iter().map(length).sum();
            length(run).saturating_add(body.saturating_mul(run.times.into()))
        };
        self.0.iter().enumerate().map(total).fold(0, u64::saturating_add)
    }

    /// Returns true if no instruction was executed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn check(&self, instructions: usize) -> Result<(), RecordError> {
        let inside = |(at, run): (usize, &Run)| {
            run.first < run.end && run.end as usize <= instructions && run.back as usize <= at + 1
        };
        if !self.0.iter().enumerate().all(inside) || self.is_empty() {
            return Err(RecordError::Path);
        }
        if self.len() > MOST {
            return Err(RecordError::Long);
        }
        Ok(())
    }
}
