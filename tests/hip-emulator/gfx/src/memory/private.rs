//! Runs accesses to private memory (scratch), which is separate for each lane.

use super::{
    Access, Half, set_lanes,
    transfer::{gather, scatter},
};
use crate::{
    error::Trap,
    inst::{Action, Vmem},
    wave::Wave,
};

/// Loads or stores private memory at `offsets` for the lanes of `exec`.
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
                    let mut bits = wave.tracker.bits(first + row);
                    for lane in set_lanes(exec) {
                        let at = places[lane] as usize;
                        let known = &wave.scratch_known[at + 4 * row..at + width.min(4 * (row + 1))];
                        bits[lane] = loaded_bits(known, inst.access);
                    }
                    wave.tracker.set_bits(first + row, exec, &bits);
                }
            }
            let target = &mut wave.rows[first..first + count];
            // SAFETY: every lane's offset was checked against its part of the scratch vector.
            unsafe { gather(wave.scratch.as_ptr(), &places, exec, inst.access, target) }
        }
        Action::Store => {
            if STRICT {
                let shift = if inst.access.half == Some(Half::High) { 16 } else { 0 };
                // Byte by byte: a spilled array may include uninitialised neighbouring bytes.
                for row in 0..count {
                    let bits = wave.tracker.bits(first + row);
                    for lane in set_lanes(exec) {
                        let at = places[lane] as usize;
                        let known = &mut wave.scratch_known[at + 4 * row..at + width.min(4 * (row + 1))];
                        let bytes = (bits[lane] >> shift).to_le_bytes();
                        known
                            .iter_mut()
                            .zip(bytes)
                            .for_each(|(known, bits)| *known = bits == 0xff);
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

/// Returns the initialised bits of a register after a load of these bytes. A load to half a
/// register counts as a load to all of it.
fn loaded_bits(known: &[bool], access: Access) -> u32 {
    if access.half.is_some() {
        return if known.contains(&false) { 0 } else { u32::MAX };
    }
    // The bits above are copies of the last byte's sign, or 0.
    let above = !access.signed || known.last() == Some(&true);
    let byte = |index: usize| u8::from(known.get(index).copied().unwrap_or(above)) * 0xff;
    u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
}
