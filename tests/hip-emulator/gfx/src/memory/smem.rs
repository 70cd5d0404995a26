//! Runs scalar loads.

use crate::{
    error::Trap,
    inst::Smem,
    wave::{Context, Wave},
};

/// Runs a scalar load: from a 64-bit base, or through a buffer descriptor, whose range limits it
/// dword by dword.
pub(crate) fn smem(wave: &mut Wave, context: &mut Context<'_>, inst: &Smem) -> Result<(), Trap> {
    let offset = u64::from(wave.scalar(inst.offset)).wrapping_add_signed(inst.immediate.into());
    let words = usize::from(inst.count);
    let (base, inside) = if inst.buffer {
        let d = usize::from(inst.base & 0x7c);
        let [low, high, records] = [wave.scalars[d], wave.scalars[d + 1], wave.scalars[d + 2]];
        if high >> 16 != 0 {
            return Err(Trap::Unsupported("a structured or swizzled buffer descriptor"));
        }
        let room = u64::from(records).saturating_sub(offset & !3) / 4;
        (u64::from(low) | u64::from(high) << 32, words.min(room as usize))
    } else {
        (wave.pair(inst.base), words)
    };
    let address = base.wrapping_add(offset) & !3;
    let mut values = [0_u32; 16];
    if inside > 0 {
        let host = context.memory.host(address, inside as u64 * 4, 0)?;
        for (word, value) in values.iter_mut().enumerate().take(inside) {
            // SAFETY: `host` points to `inside` dwords of a live allocation.
            *value = unsafe { host.add(4 * word).cast::<u32>().read_unaligned() };
        }
    }
    context.report.bytes_read += 4 * inside as u64;
    for (word, &value) in values.iter().enumerate().take(words) {
        wave.scalars[(usize::from(inst.target) + word) & 0x7f] = value;
    }
    Ok(())
}
