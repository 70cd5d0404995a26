//! Register sets: the registers that an instruction reads and writes, as ranges and as bit sets.

use smallvec::SmallVec;

/// A range of registers that an instruction accesses, for strict mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// True for rows, false for scalar registers
    pub(crate) vector: bool,
    pub(crate) first: u16,
    pub(crate) count: u16,
}

/// Bit sets for 64 rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Number of the first row, divided by 64
    pub(crate) index: usize,
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// The wait counters that an instruction increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    /// `vmcnt`
    pub(crate) vector: bool,
    /// `lgkmcnt`
    pub(crate) scalar: bool,
    /// Whether it may finish out of order: then only a count of 0 covers it.
    pub(crate) unordered: bool,
}

/// The registers that an instruction accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) words: SmallVec<[Word; 2]>,
    pub(crate) scalars_read: u128,
    pub(crate) scalars_written: u128,
    pub(crate) reads_scc: bool,
    pub(crate) writes_scc: bool,
    /// Whether it works on all lanes whatever EXEC is.
    pub(crate) all_lanes: bool,
    /// Whether it writes fewer lanes than EXEC has: then `flow` must decide.
    pub(crate) special: bool,
    pub(crate) counters: Option<Counters>,
}

impl Footprint {
    /// Adds registers that are read or written.
    pub(crate) fn add(&mut self, range: &Range, written: bool) {
        let (first, count) = (usize::from(range.first), usize::from(range.count));
        if !range.vector {
            let mask = scalar_mask(first, count);
            let set = if written {
                &mut self.scalars_written
            } else {
                &mut self.scalars_read
            };
            *set |= mask;
            return;
        }
        for row in first..first + count {
            let index = row / 64;
            let position = self.words.iter().position(|word| word.index == index);
            let position = position.unwrap_or_else(|| {
                self.words.push(Word {
                    index,
                    ..Word::default()
                });
                self.words.len() - 1
            });
            let word = &mut self.words[position];
            let set = if written { &mut word.written } else { &mut word.read };
            *set |= 1 << (row % 64);
        }
    }
}

/// Returns scalar registers as a bit set.
pub(crate) const fn scalar_mask(first: usize, count: usize) -> u128 {
    let ones = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
    if first >= 128 { 0 } else { ones << first }
}
