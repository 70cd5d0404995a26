//! Temporaries that share memory: one must be dead before the other is written.
//!
//! IREE executes kernels at the same time if they do not depend on each other, so two temporaries
//! share memory only if the kernel that writes one depends on all kernels that read the other. The
//! largest temporaries are placed first, each at the lowest offset that the temporaries alive at
//! the same time leave free.

use std::collections::BTreeSet;

/// Most temporaries that are placed: placing takes time quadratic in their number.
const MOST: usize = 1024;

/// A tensor between kernels. Kernels are identified by numbers; a kernel's number is larger than
/// those of the kernels that it depends on.
#[derive(Clone, Debug)]
pub(super) struct Temporary {
    pub(super) bytes: u64,
    pub(super) maker: usize,
    /// The kernels that read it; empty if it is alive to the end.
    pub(super) readers: Vec<usize>,
}

impl Temporary {
    /// Returns true if the kernel that writes `other` depends on all kernels that read this one.
    fn is_dead_before(&self, other: &Temporary, depends: &[BTreeSet<usize>]) -> bool {
        let before = &depends[other.maker];
        !self.readers.is_empty() && self.readers.iter().all(|reader| before.contains(reader))
    }
}

/// Returns, for each of `count` kernels, the kernels that it depends on. `reads` has pairs of a
/// kernel and another kernel whose results it reads.
pub(super) fn dependencies(count: usize, reads: &[(usize, usize)]) -> Vec<BTreeSet<usize>> {
    let mut direct = vec![BTreeSet::new(); count];
    for &(reader, maker) in reads.iter().filter(|(reader, maker)| reader != maker) {
        direct[reader].insert(maker);
    }
    let mut all: Vec<BTreeSet<usize>> = Vec::with_capacity(count);
    for makers in direct {
        let beyond = makers.iter().flat_map(|&maker| all[maker].iter().copied());
        let beyond: Vec<usize> = beyond.collect();
        all.push(makers.into_iter().chain(beyond).collect());
    }
    all
}

/// Returns the bytes that the temporaries need when they share memory; `None` if there are too many
/// of them or the sizes overflow.
pub(super) fn packed(mut temporaries: Vec<Temporary>, depends: &[BTreeSet<usize>]) -> Option<u64> {
    if temporaries.len() > MOST {
        return None;
    }
    temporaries.sort_by_key(|temporary| (std::cmp::Reverse(temporary.bytes), temporary.maker));
    let mut placed: Vec<(u64, u64, &Temporary)> = Vec::new();
    let mut total = 0;
    for temporary in &temporaries {
        let is_alive =
            |other: &Temporary| !other.is_dead_before(temporary, depends) && !temporary.is_dead_before(other, depends);
        let mut offset = 0;
        // Placed temporaries are sorted by their offsets: take the first gap that is large enough.
        for &(start, end, _) in placed.iter().filter(|(.., other)| is_alive(other)) {
            if start >= offset && start - offset >= temporary.bytes {
                break;
            }
            offset = end.max(offset);
        }
        let end = offset.checked_add(temporary.bytes)?;
        let place = placed.partition_point(|&(start, ..)| start <= offset);
        placed.insert(place, (offset, end, temporary));
        total = end.max(total);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(bytes: u64, maker: usize, readers: &[usize]) -> Temporary {
        Temporary {
            bytes,
            maker,
            readers: readers.to_vec(),
        }
    }

    #[test]
    fn a_chain_takes_two_temporaries() {
        let reads: Vec<_> = (1..10).map(|number| (number, number - 1)).collect();
        let depends = dependencies(10, &reads);
        assert_eq!(depends[9].len(), 9);
        let chain: Vec<_> = (0..9).map(|number| temporary(64, number, &[number + 1])).collect();
        assert_eq!(packed(chain, &depends), Some(128));
    }

    #[test]
    fn what_may_run_at_the_same_time_shares_nothing() {
        // Kernels 1 and 2 read what 0 makes; 3 reads what both make.
        let depends = dependencies(4, &[(1, 0), (2, 0), (3, 1), (3, 2)]);
        let temporaries = vec![
            temporary(64, 0, &[1, 2]),
            temporary(64, 1, &[3]),
            temporary(32, 2, &[3]),
        ];
        assert_eq!(packed(temporaries, &depends), Some(160));
    }

    #[test]
    fn what_is_returned_stays_alive() {
        let depends = dependencies(3, &[(1, 0), (2, 1)]);
        let temporaries = vec![temporary(64, 0, &[]), temporary(64, 1, &[2])];
        assert_eq!(packed(temporaries, &depends), Some(128));
    }
}
