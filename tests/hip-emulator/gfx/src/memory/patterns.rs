//! Analyses the access pattern of an LDS instruction: bank conflicts for the report and the record,
//! byte ranges for strict mode.
//!
//! Both depend only on the distances between lanes and on the first lane's offset within its word.
//! An instruction repeats its pattern, so the last pattern of each instruction is cached.
//!
//! LDS has 32 banks of 4 bytes. An access of a wave takes turns of 32 lanes for up to 4 bytes per
//! lane, 16 lanes for 8, and 8 lanes for more (128 bytes per turn). Lanes are assigned to turns by
//! number, which for 16 bytes is simpler than the hardware's order.

use smallvec::SmallVec;

use crate::{lanes::Row, rows::has_distances};

/// The last access pattern of an instruction.
pub(crate) struct Pattern {
    distances: Row,
    /// The first active lane's offset within its word.
    within: u32,
    mask: u64,
    /// Offsets that the instruction adds. They differ between executions where the sum wraps around
    /// in some of them.
    parts: SmallVec<[u32; 2]>,
    /// Extra turns due to bank conflicts
    pub(crate) extra: u64,
    /// Byte ranges that the lanes access: start, relative to the first active lane's offset, and
    /// length; sorted and disjoint
    pub(crate) ranges: Vec<(i64, usize)>,
}

impl Pattern {
    /// Returns true if all of it lies within `size` bytes for a first lane at `first`; lanes that
    /// wrap around do not count as inside.
    pub(crate) fn inside(&self, first: u32, size: usize) -> bool {
        let (Some(lowest), Some(last)) = (self.ranges.first(), self.ranges.last()) else {
            return false;
        };
        i64::from(first) + lowest.0 >= 0 && i64::from(first) + last.0 + last.1 as i64 <= size as i64
    }
}

/// An access of all active lanes: `bytes` at a lane's offset plus each of `parts` (one or two).
pub(crate) struct Access<'a> {
    pub(crate) offsets: &'a Row,
    pub(crate) mask: u64,
    pub(crate) bytes: u8,
    pub(crate) parts: &'a [u32],
}

impl Access<'_> {
    /// Returns the first active lane's offset.
    pub(crate) fn first(&self) -> u32 {
        self.offsets[self.mask.trailing_zeros() as usize & 63]
    }
}

/// Patterns by instruction.
#[derive(Default)]
pub(crate) struct Patterns(Vec<Option<Box<Pattern>>>);

impl Patterns {
    /// Returns the pattern of an access by instruction number `index`.
    pub(crate) fn of(&mut self, index: usize, access: &Access<'_>) -> &Pattern {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let slot = &mut self.0[index];
        let (offsets, mask, first) = (access.offsets, access.mask, access.first());
        let repeats = |known: &Pattern| {
            known.mask == mask
                && known.within == first % 4
                && known.parts.as_slice() == access.parts
                && has_distances(offsets, first, &known.distances, mask)
        };
        if !slot.as_ref().is_some_and(|known| repeats(known)) {
            *slot = None;
        }
        slot.get_or_insert_with(|| {
            Box::new(Pattern {
                distances: offsets.map(|offset| offset.wrapping_sub(first)),
                within: first % 4,
                mask,
                parts: access.parts.into(),
                // The distances between lanes are the same for each part.
                extra: extra_turns(offsets, mask, access.bytes) * access.parts.len() as u64,
                ranges: ranges(access),
            })
        })
    }
}

fn ranges(access: &Access<'_>) -> Vec<(i64, usize)> {
    let bytes = usize::from(access.bytes);
    let active = (0..64).filter(|lane| access.mask >> lane & 1 != 0);
    let mut starts: Vec<i64> = active
        .flat_map(|lane: usize| {
            let start = i64::from(access.offsets[lane]) - i64::from(access.first());
            access.parts.iter().map(move |&part| start + i64::from(part))
        })
        .collect();
    starts.sort_unstable();
    let mut ranges: Vec<(i64, usize)> = Vec::new();
    for start in starts {
        match ranges.last_mut() {
            Some((first, length)) if start <= *first + *length as i64 => {
                *length = (*length).max((start - *first) as usize + bytes);
            }
            _ => ranges.push((start, bytes)),
        }
    }
    ranges
}

/// Returns the turns that bank conflicts add.
fn extra_turns(offsets: &Row, mask: u64, bytes: u8) -> u64 {
    let lanes = match bytes {
        0..=4 => 32,
        8 => 16,
        _ => 8,
    };
    let mut extra = 0;
    for first in (0..64).step_by(lanes) {
        let active = (first..first + lanes).filter(|lane| mask >> lane & 1 != 0);
        let mut words: Vec<u32> = active
            .flat_map(|lane| (0..u32::from(bytes).div_ceil(4)).map(move |word| (offsets[lane] / 4).wrapping_add(word)))
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = [0_u64; 32];
        for word in words {
            banks[word as usize % 32] += 1;
        }
        extra += banks.into_iter().max().unwrap_or(0).saturating_sub(1);
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::{Access, Patterns};
    use crate::lanes::Row;

    fn extra(patterns: &mut Patterns, offsets: &Row, mask: u64, bytes: u8) -> u64 {
        let access = Access {
            offsets,
            mask,
            bytes,
            parts: &[0],
        };
        patterns.of(3, &access).extra
    }

    #[test]
    fn conflicts_of_known_patterns() {
        let stride = |step: u32| std::array::from_fn(|lane| lane as u32 * step);
        let count = |step, mask, bytes| extra(&mut Patterns::default(), &stride(step), mask, bytes);
        assert_eq!(count(4, u64::MAX, 4), 0, "consecutive words");
        assert_eq!(count(0, u64::MAX, 4), 0, "one word is broadcast");
        assert_eq!(
            count(8, u64::MAX, 4),
            2,
            "every other bank: two of 32 lanes share one, in both turns"
        );
        assert_eq!(count(128, u64::MAX, 4), 62, "all lanes in one bank");
        assert_eq!(count(128, 0xf, 4), 3, "four lanes in one bank");
        assert_eq!(count(8, u64::MAX, 8), 0, "consecutive pairs");
        assert_eq!(count(16, u64::MAX, 16), 0, "consecutive quadruples");
        assert_eq!(count(132, u64::MAX, 4), 0, "padded columns");
    }

    #[test]
    fn a_pattern_is_recognised_wherever_it_lies() {
        let mut patterns = Patterns::default();
        let column = |at: u32| std::array::from_fn(|lane| at + lane as u32 * 128);
        assert_eq!(extra(&mut patterns, &column(0), u64::MAX, 4), 62);
        assert_eq!(extra(&mut patterns, &column(64), u64::MAX, 4), 62);
        let consecutive = std::array::from_fn(|lane| lane as u32 * 4);
        assert_eq!(extra(&mut patterns, &consecutive, u64::MAX, 4), 0);
        assert_eq!(extra(&mut patterns, &column(0), 0xff, 4), 7);
        // A stride of 66 bytes: with an unaligned start the last lane's word is in the first lane's
        // bank.
        let halves = |at: u32| std::array::from_fn(|lane| at + lane as u32 * 66);
        let mut patterns = Patterns::default();
        assert_eq!(
            [0, 2, 4].map(|at| extra(&mut patterns, &halves(at), u64::MAX, 2)),
            [0, 2, 0]
        );
    }

    #[test]
    fn lanes_that_touch_each_other_are_one_range() {
        let ranges = |offsets: &Row, mask, parts: &[u32]| {
            let access = Access {
                offsets,
                mask,
                bytes: 8,
                parts,
            };
            Patterns::default().of(0, &access).ranges.clone()
        };
        let rows: Row = std::array::from_fn(|lane| 1000 + lane as u32 % 16 * 136 + lane as u32 / 16 * 8);
        let expected: Vec<_> = (0..16).map(|row| (row * 136, 32)).collect();
        assert_eq!(ranges(&rows, u64::MAX, &[0]), expected);
        let both: Vec<_> = (0..16).map(|row| (row * 136, 64)).collect();
        assert_eq!(ranges(&rows, u64::MAX, &[0, 32]), both);
        let backwards: Row = std::array::from_fn(|lane| 504 - lane as u32 * 8);
        assert_eq!(ranges(&backwards, u64::MAX, &[0]), [(-504, 512)]);
        assert_eq!(ranges(&backwards, 0b1011, &[4]), [(-20, 8), (-4, 16)]);
    }
}
