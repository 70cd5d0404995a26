//! Runs LDS instructions: a wave's loads, stores and atomics.

use super::{
    lane_value, patterns, set_lane_value, set_lanes,
    shadow::{Accesses, Touch},
    transfer::{gather, scatter},
};
use crate::{
    error::Trap,
    inst::{Action, AtomicFn, Ds},
    lanes::Row,
    wave::{Context, Wave},
};

/// Runs an LDS instruction; `index` is its number in the program.
pub(crate) fn ds<const STRICT: bool>(
    wave: &mut Wave,
    context: &mut Context<'_>,
    inst: &Ds,
    index: usize,
) -> Result<(), Trap> {
    let exec = wave.exec();
    if exec == 0 {
        return Ok(());
    }
    // A copy, since loaded data may overwrite the address.
    let mut offsets = wave.rows[usize::from(inst.address)];
    // The sum wraps: LLVM generates an address below 0 with an offset that brings it back into
    // range (its test ds-sub-offset.ll).
    let [first, second] = inst.offsets;
    let least = if inst.pair { first.min(second) } else { first };
    let wrapped;
    let inst = if set_lanes(exec).any(|lane| offsets[lane].checked_add(least).is_none()) {
        for offset in &mut offsets {
            *offset = offset.wrapping_add(least);
        }
        wrapped = Ds {
            offsets: inst.offsets.map(|offset| offset.saturating_sub(least)),
            ..*inst
        };
        &wrapped
    } else {
        inst
    };
    let parts = if inst.pair {
        &inst.offsets[..]
    } else {
        &inst.offsets[..1]
    };
    let access = patterns::Access {
        offsets: &offsets,
        mask: exec,
        bytes: inst.access.bytes,
        parts,
    };
    let lds = &mut context.lds;
    let pattern = lds.patterns.of(index, &access);
    context.report.lds_bank_conflicts += pattern.extra;
    let mut checked = !STRICT;
    if STRICT {
        let touch = match inst.action {
            Action::Load => Some(Touch::Read),
            Action::Store if stored_is_known(wave, inst, exec) => Some(Touch::Write),
            _ => None,
        };
        checked = touch.is_some_and(|touch| {
            let wave = wave.number as u8;
            lds.shadow.touch_ranges(access.first(), &pattern.ranges, wave, touch)
        });
    }
    if !pattern.inside(access.first(), lds.bytes.len()) {
        for &offset in parts {
            lds.inside(&offsets, offset, exec, inst.access)?;
        }
    }
    for part in 0..parts.len() {
        // SAFETY: the pattern or `Lds::inside` has checked the lanes of all parts.
        unsafe {
            if checked {
                self::access::<false>(wave, context, inst, part, &offsets, exec)?;
            } else {
                self::access::<true>(wave, context, inst, part, &offsets, exec)?;
            }
        }
    }
    Ok(())
}

/// Returns true if all data of a store is initialised.
fn stored_is_known(wave: &Wave, inst: &Ds, exec: u64) -> bool {
    let known = |row: u16| exec & !wave.tracker.data(row.into(), inst.access) == 0;
    known(inst.data[0]) && (!inst.pair || known(inst.data[1]))
}

/// Runs one address of an instruction (the `2` forms have two).
///
/// # Safety
///
/// [`Lds::inside`] must hold for the lanes of `exec` and this part's offset.
pub(crate) unsafe fn access<const STRICT: bool>(
    wave: &mut Wave,
    context: &mut Context<'_>,
    inst: &Ds,
    part: usize,
    offsets: &Row,
    exec: u64,
) -> Result<(), Trap> {
    let lds = &mut context.lds;
    let offset = inst.offsets[part];
    let count = inst.access.rows();
    let first = match inst.action {
        Action::Load => usize::from(inst.target) + part * count,
        _ => usize::from(inst.data[part]),
    };
    if STRICT {
        let (touch, known) = match inst.action {
            Action::Load => (Touch::Read, 0),
            Action::Store => (Touch::Write, wave.tracker.data(first, inst.access)),
            Action::Atomic(..) => {
                let compare = inst
                    .compare
                    .map_or(u64::MAX, |row| wave.tracker.lanes(row.into(), count));
                (Touch::Atomic, wave.tracker.lanes(first, count) & compare)
            }
        };
        let mut touched = |offset: u32, bytes: u8, known: u64| {
            let accesses = Accesses {
                offsets,
                offset,
                mask: exec,
                known,
            };
            let old = lds.shadow.touch(&accesses, bytes, wave.number as u8, touch);
            old.map_err(|(lane, other)| Trap::Race {
                offset: offsets[lane] + offset,
                lane: lane as u32,
                other,
            })
        };
        let old = touched(offset, inst.access.bytes, known)?;
        // Tracked byte by byte where some are uninitialised: compilers widen moves.
        let at = |row: usize, byte: u32| offset + 4 * row as u32 + byte;
        let is_whole = inst.access.bytes >= 4;
        match inst.action {
            Action::Load if is_whole && old & exec != exec => {
                for row in 0..count {
                    let mut bits = [0; 64];
                    for byte in 0..4 {
                        let old = touched(at(row, byte), 1, 0)?;
                        set_lanes(exec & old).for_each(|lane| bits[lane] |= 0xff << (8 * byte));
                    }
                    wave.tracker.set_bits(first + row, exec, &bits);
                }
            }
            Action::Store if is_whole && known & exec != exec => {
                for row in 0..count {
                    for byte in 0..4 {
                        let known = wave.tracker.lanes_with(first + row, 0xff << (8 * byte));
                        touched(at(row, byte), 1, known)?;
                    }
                }
            }
            Action::Load => wave.tracker.set_rows(first, count, exec, old),
            Action::Atomic(_, true) => wave.tracker.set_rows(inst.target.into(), count, exec, old),
            _ => {}
        }
    }
    match inst.action {
        Action::Load => {
            let base = lds.bytes.as_ptr().wrapping_add(offset as usize);
            let target = &mut wave.rows[first..first + count];
            // SAFETY: the caller has checked every lane's access against the LDS vector.
            unsafe { gather(base, offsets, exec, inst.access, target) }
        }
        Action::Store => {
            let base = lds.bytes.as_mut_ptr().wrapping_add(offset as usize);
            let source = &wave.rows[first..first + count];
            // SAFETY: the caller has checked every lane's access against the LDS vector.
            unsafe { scatter(base, offsets, exec, inst.access, source) }
        }
        Action::Atomic(function, returns) => {
            atomic(wave, &mut lds.bytes, inst, offsets, exec, (function, returns))?;
        }
    }
    Ok(())
}

/// Runs an atomic lane by lane, lowest first.
fn atomic(
    wave: &mut Wave,
    bytes: &mut [u8],
    inst: &Ds,
    offsets: &Row,
    exec: u64,
    (function, returns): (AtomicFn, bool),
) -> Result<(), Trap> {
    let count = inst.access.rows();
    for lane in set_lanes(exec) {
        let value = |first: u16| lane_value(&wave.rows[usize::from(first)..], count, lane);
        let (data, compare) = (value(inst.data[0]), inst.compare.map_or(0, value));
        let at = (offsets[lane] + inst.offsets[0]) as usize;
        if !at.is_multiple_of(4 * count) {
            return Err(Trap::Unsupported("an atomic at an unaligned address"));
        }
        let mut old = [0; 8];
        // `inside` has checked the range.
        let cell = &mut bytes[at..at + 4 * count];
        old[..4 * count].copy_from_slice(cell);
        let old = u64::from_le_bytes(old);
        cell.copy_from_slice(&function(old, data, compare).to_le_bytes()[..4 * count]);
        if returns {
            set_lane_value(&mut wave.rows[usize::from(inst.target)..], count, lane, old);
        }
    }
    Ok(())
}
