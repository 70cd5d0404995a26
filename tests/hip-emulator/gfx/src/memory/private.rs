//! Runs accesses to private memory (scratch), of which each lane has its own bytes.

use super::{
    lanes_where, set_lanes,
    transfer::{gather, scatter},
};
use crate::{
    error::Trap,
    inst::{Action, Vmem},
    wave::Wave,
};

/// Loads or stores at `offsets` of the lanes of `exec` in their private memory.
pub(crate) fn access<const STRICT: bool>(
    wave: &mut Wave,
    inst: &Vmem,
    offsets: &[i64; 64],
    exec: u64,
) -> Result<(), Trap> {
    let size = wave.scratch.len() as u64 / 64;
    let bytes = u64::from(inst.access.bytes);
    let mut places = [0_u32; 64];
    for lane in set_lanes(exec) {
        let inside = u64::try_from(offsets[lane])
            .ok()
            .filter(|offset| offset.saturating_add(bytes) <= size);
        let offset = inside.ok_or(Trap::Private {
            offset: offsets[lane],
            bytes,
            lane: lane as u32,
        })?;
        // A launch has at most 8 MiB of private memory a wave.
        places[lane] = (lane as u64 * size + offset) as u32;
    }
    let (first, count) = (usize::from(inst.data), inst.access.rows());
    let width = usize::from(inst.access.bytes);
    match inst.action {
        Action::Load => {
            if STRICT {
                for row in 0..count {
                    let known = |bytes: usize| {
                        lanes_where(exec, |lane| {
                            let at = places[lane] as usize;
                            wave.scratch_known[at + 4 * row..at + width.min(4 * row + bytes)]
                                .iter()
                                .all(|&known| known)
                        })
                    };
                    let (low, whole) = (known(2), known(4));
                    wave.tracker.set_rows(first + row, 1, exec, whole);
                    wave.tracker.add_low(first + row, exec, low);
                }
            }
            let target = &mut wave.rows[first..first + count];
            // SAFETY: every lane's offset was checked against its part of the scratch vector.
            unsafe { gather(wave.scratch.as_ptr(), &places, exec, inst.access, target) }
        }
        Action::Store => {
            if STRICT {
                // Register by register: arrays are spilled with whatever lies beside them.
                for row in 0..count {
                    let known = match count {
                        1 => wave.tracker.data(first, inst.access),
                        _ => wave.tracker.row(first + row),
                    };
                    for lane in set_lanes(exec) {
                        let at = places[lane] as usize;
                        wave.scratch_known[at + 4 * row..at + width.min(4 * (row + 1))].fill(known >> lane & 1 != 0);
                    }
                }
            }
            let source = &wave.rows[first..first + count];
            // SAFETY: every lane's offset was checked against its part of the scratch vector.
            unsafe { scatter(wave.scratch.as_mut_ptr(), &places, exec, inst.access, source) }
        }
        Action::Atomic(..) => return Err(Trap::Unsupported("an atomic on private memory")),
    }
    Ok(())
}
