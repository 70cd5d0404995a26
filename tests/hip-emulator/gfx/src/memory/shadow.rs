//! Shadow state of LDS for strict mode: for each byte, whether it was written and which waves
//! accessed it since the last barrier.
//!
//! One byte of state per byte of LDS. Bit 7: written by this workgroup. The other bits, since the
//! last barrier: untouched, read by one wave, written by one wave, read by several, or changed by
//! atomics of one or several waves. Two waves race on a byte if one of them writes it and the other
//! accesses it with no barrier between, unless both do so by atomics.

use crate::lanes::Row;

/// Bit 7 of a state.
const WRITTEN: u8 = 0x80;
// A workgroup has at most 16 waves.
const READ: u8 = 1;
const LAST_READ: u8 = 16;
const WROTE: u8 = 33;
const ATOMIC: u8 = 65;
const LAST_ATOMIC: u8 = 80;
const READ_BY_MANY: u8 = 97;
const ATOMIC_BY_MANY: u8 = 98;

/// The kind of access to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    Atomic,
}

/// A race: the lane, and the other wave, or `None` if there are several.
pub(crate) type Race = (usize, Option<u32>);

/// Accesses of lanes to `offset + offsets[lane]`, all of them in bounds.
pub(crate) struct Accesses<'a> {
    pub(crate) offsets: &'a Row,
    pub(crate) offset: u32,
    pub(crate) mask: u64,
    /// Lanes whose stored data is initialised
    pub(crate) known: u64,
}

/// The states of a workgroup's LDS.
pub(crate) struct Shadow {
    states: Vec<u8>,
    /// Whether any byte was accessed since the last barrier
    touched: bool,
}

impl Shadow {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            states: vec![0; bytes],
            touched: false,
        }
    }

    /// Resets the state for the next workgroup.
    pub(crate) fn reset(&mut self) {
        self.states.fill(0);
        self.touched = false;
    }

    /// Records a barrier that all waves have reached.
    pub(crate) fn barrier(&mut self) {
        if std::mem::take(&mut self.touched) {
            self.states.iter_mut().for_each(|state| *state &= WRITTEN);
        }
    }

    /// Records accesses of `wave` to `bytes` bytes per lane; returns the lanes whose bytes had all
    /// been written before.
    pub(crate) fn touch(&mut self, accesses: &Accesses<'_>, bytes: u8, wave: u8, touch: Touch) -> Result<u64, Race> {
        self.touched = true;
        match bytes {
            16 => self.touch_lanes::<16>(accesses, wave, touch),
            12 => self.touch_lanes::<12>(accesses, wave, touch),
            8 => self.touch_lanes::<8>(accesses, wave, touch),
            4 => self.touch_lanes::<4>(accesses, wave, touch),
            2 => self.touch_lanes::<2>(accesses, wave, touch),
            _ => self.touch_lanes::<1>(accesses, wave, touch),
        }
    }

    /// Records an access as [`Shadow::touch`] does for all lanes at once, for ranges relative to
    /// `first`. Returns true if every byte was written before or is now, and nothing races. If
    /// false, the caller must use `touch` to find the cause.
    pub(crate) fn touch_ranges(&mut self, first: u32, ranges: &[(i64, usize)], wave: u8, touch: Touch) -> bool {
        self.touched = true;
        ranges.iter().all(|&(start, length)| {
            let at = (i64::from(first) + start) as usize;
            let Some(states) = at.checked_add(length).and_then(|end| self.states.get_mut(at..end)) else {
                return false;
            };
            let (blocks, rest) = states.as_chunks_mut::<32>();
            let (eights, rest) = rest.as_chunks_mut::<8>();
            blocks.iter_mut().all(|block| alike(block, wave, touch))
                && eights.iter_mut().all(|eight| alike(eight, wave, touch))
                && rest
                    .iter_mut()
                    .all(|state| alike(std::array::from_mut(state), wave, touch))
        })
    }

    fn touch_lanes<const N: usize>(&mut self, accesses: &Accesses<'_>, wave: u8, touch: Touch) -> Result<u64, Race> {
        let before = [WRITTEN; N];
        let (read, wrote) = ([WRITTEN | (READ + wave); N], [WRITTEN | (WROTE + wave); N]);
        let many = [WRITTEN | READ_BY_MANY; N];
        let stores = touch == Touch::Write && accesses.known & accesses.mask == accesses.mask;
        let mut initialised = accesses.mask;
        for (lane, &offset) in accesses.offsets.iter().enumerate() {
            if accesses.mask >> lane & 1 == 0 {
                continue;
            }
            let at = offset as usize + accesses.offset as usize;
            let Some(states) = self
                .states
                .get_mut(at..)
                .and_then(|states| states.first_chunk_mut::<N>())
            else {
                continue;
            };
            // Fast path for the common cases: all bytes initialised and in the same state.
            if touch == Touch::Read {
                if *states == many || *states == read || *states == wrote {
                    continue;
                }
                if *states == before {
                    *states = read;
                    continue;
                }
            } else if stores && (*states == before || *states == read || *states == wrote) {
                *states = wrote;
                continue;
            }
            let known = accesses.known >> lane & 1 != 0;
            match touch_all(states, wave, touch, known) {
                Ok(all) => initialised &= !(u64::from(!all) << lane),
                Err(other) => return Err((lane, other)),
            }
        }
        Ok(initialised)
    }
}

/// Records an access to bytes that are all in the same state, or in groups of eight in the same
/// state; returns false if that is not possible.
#[inline]
fn alike<const N: usize>(states: &mut [u8; N], wave: u8, touch: Touch) -> bool {
    let first = states[0];
    if *states != [first; N] {
        return N > 8
            && states
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .all(|eight| alike(eight, wave, touch));
    }
    let mut after = first;
    let fine = touch_one(&mut after, wave, touch, true).is_ok_and(|before| before || touch == Touch::Write);
    if fine && after != first {
        *states = [after; N];
    }
    fine
}

/// Returns whether all bytes were written before; the error is the other wave of a race, or `None`
/// if there are several.
fn touch_all<const N: usize>(states: &mut [u8; N], wave: u8, touch: Touch, known: bool) -> Result<bool, Option<u32>> {
    let mut first = states[0];
    if *states == [first; N] {
        let initialised = touch_one(&mut first, wave, touch, known)?;
        *states = [first; N];
        return Ok(initialised);
    }
    let mut initialised = true;
    for state in states {
        initialised &= touch_one(state, wave, touch, known)?;
    }
    Ok(initialised)
}

fn touch_one(state: &mut u8, wave: u8, touch: Touch, known: bool) -> Result<bool, Option<u32>> {
    let (read, wrote, atomic) = (READ + wave, WROTE + wave, ATOMIC + wave);
    let (written, old) = (*state & WRITTEN, *state & !WRITTEN);
    let race = || {
        let first = match old {
            READ_BY_MANY | ATOMIC_BY_MANY => return None,
            ATOMIC..=LAST_ATOMIC => ATOMIC,
            WROTE..ATOMIC => WROTE,
            _ => READ,
        };
        Some(u32::from(old - first))
    };
    let new = match touch {
        Touch::Read => match old {
            0 => read,
            // A wave's own write or atomic stays recorded: other waves' accesses race with it.
            _ if old == read || old == wrote || old == atomic || old == READ_BY_MANY => old,
            READ..=LAST_READ => READ_BY_MANY,
            _ => return Err(race()),
        },
        Touch::Write => match old {
            0 => wrote,
            _ if old == read || old == wrote || old == atomic => wrote,
            _ => return Err(race()),
        },
        Touch::Atomic => match old {
            0 => atomic,
            _ if old == read || old == atomic => atomic,
            _ if old == wrote => wrote,
            ATOMIC..=LAST_ATOMIC | ATOMIC_BY_MANY => ATOMIC_BY_MANY,
            _ => return Err(race()),
        },
    };
    let after = match touch {
        Touch::Read => written,
        Touch::Write => u8::from(known) * WRITTEN,
        Touch::Atomic => written & (u8::from(known) * WRITTEN),
    };
    *state = new | after;
    Ok(written != 0)
}

#[cfg(test)]
mod tests {
    use super::{Accesses, Race, Shadow, Touch};

    /// Records one lane's access; returns whether all bytes were written before.
    fn access(shadow: &mut Shadow, at: u32, bytes: u8, wave: u8, touch: Touch, known: bool) -> Result<bool, Race> {
        let accesses = Accesses {
            offsets: &[at; 64],
            offset: 0,
            mask: 1 << 5,
            known: u64::from(known) << 5,
        };
        shadow.touch(&accesses, bytes, wave, touch).map(|lanes| lanes == 1 << 5)
    }

    fn run(accesses: &[(u8, Touch)]) -> Result<bool, Race> {
        let mut shadow = Shadow::new(64);
        let mut last = Ok(true);
        for &(wave, touch) in accesses {
            last = access(&mut shadow, 8, 12, wave, touch, true);
        }
        last
    }

    #[test]
    fn races_are_accesses_of_two_waves_one_of_which_writes() {
        use Touch::{Atomic, Read, Write};
        type Accesses = &'static [(u8, Touch)];
        let fine: [Accesses; 8] = [
            &[(0, Read), (1, Read), (2, Read)],
            &[(0, Write), (0, Read), (0, Write)],
            &[(1, Read), (1, Write)],
            &[(0, Atomic), (1, Atomic), (2, Atomic)],
            &[(3, Atomic), (3, Read), (3, Write)],
            &[(0, Read), (0, Atomic), (1, Atomic)],
            &[(15, Read), (0, Read), (15, Read)],
            &[(0, Write), (0, Atomic)],
        ];
        for accesses in fine {
            assert!(run(accesses).is_ok(), "{accesses:?}");
        }
        let races: [(Accesses, Option<u32>); 9] = [
            (&[(0, Write), (1, Read)], Some(0)),
            (&[(5, Read), (1, Write)], Some(5)),
            (&[(15, Write), (1, Write)], Some(15)),
            (&[(0, Read), (1, Read), (1, Write)], None),
            (&[(0, Write), (0, Read), (1, Read)], Some(0)),
            (&[(0, Atomic), (1, Read)], Some(0)),
            (&[(0, Write), (1, Atomic)], Some(0)),
            (&[(0, Write), (0, Atomic), (1, Atomic)], Some(0)),
            (&[(0, Atomic), (1, Atomic), (0, Read)], None),
        ];
        for (accesses, other) in races {
            assert_eq!(run(accesses), Err((5, other)), "{accesses:?}");
        }
    }

    #[test]
    fn ranges_do_what_lanes_do() {
        // Random accesses of two waves, recorded by ranges and lane by lane.
        let (mut one, mut other) = (Shadow::new(256), Shadow::new(256));
        let (mut state, mut short) = (1_u32, 0);
        for round in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (at, bytes) = (state >> 8 & 0x78, [4, 8, 16][round % 3]);
            let (wave, touch) = (
                (state >> 20 & 1) as u8,
                if state >> 21 & 3 == 0 {
                    Touch::Write
                } else {
                    Touch::Read
                },
            );
            let lanes = access(&mut one, at, bytes, wave, touch, true);
            let fine = other.touch_ranges(64, &[(i64::from(at) - 64, bytes.into())], wave, touch);
            // Eight bytes in different states fall back to the lane path.
            assert!(
                !fine || lanes.is_ok_and(|before| before || touch == Touch::Write),
                "round {round}"
            );
            short += u32::from(fine);
            if !fine {
                assert_eq!(access(&mut other, at, bytes, wave, touch, true), lanes);
            }
            assert_eq!(one.states, other.states);
            if state >> 24 & 7 == 0 {
                one.barrier();
                other.barrier();
            }
        }
        assert!(short > 10_000, "{short}");
    }

    #[test]
    fn a_barrier_parts_accesses_and_keeps_what_was_written() {
        let mut shadow = Shadow::new(64);
        assert_eq!(
            access(&mut shadow, 0, 16, 0, Touch::Read, true),
            Ok(false),
            "never written"
        );
        shadow.barrier();
        assert_eq!(access(&mut shadow, 0, 16, 1, Touch::Write, true), Ok(false));
        shadow.barrier();
        assert_eq!(access(&mut shadow, 0, 16, 0, Touch::Read, true), Ok(true));
        assert_eq!(
            access(&mut shadow, 12, 8, 0, Touch::Read, true),
            Ok(false),
            "half of it written"
        );
        shadow.barrier();
        assert_eq!(access(&mut shadow, 4, 2, 0, Touch::Write, false), Ok(true));
        assert_eq!(
            access(&mut shadow, 0, 16, 0, Touch::Read, true),
            Ok(false),
            "overwritten by nothing known"
        );
        shadow.reset();
        assert_eq!(access(&mut shadow, 0, 4, 1, Touch::Read, true), Ok(false));
    }
}
