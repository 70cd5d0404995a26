//! Runs buffer, global, flat and scratch instructions.
//!
//! Addresses are a 64-bit base and 64 offsets of 32 bits; lanes that are further apart are
//! processed one by one.
//!
//! A raw buffer access beyond `num_records` is no fault: as on the hardware, each dword beyond it
//! loads as 0 and is not stored. The part within `num_records` must lie in one live allocation; a
//! descriptor that is larger than its allocation is a fault only where a lane uses the excess.

use super::{
    Access, Half,
    apertures::{self, Aperture},
    atomic::atomic,
    lane_value, lanes_where, private, set_lane_value, set_lanes,
    transfer::{gather, scatter},
};
use crate::{
    error::Trap,
    inst::{Action, Address, Vmem},
    lanes::Row,
    rows::extent,
    wave::{Context, Wave},
};

/// Addresses of the lanes of an access: `base + offsets[lane]`.
struct Place {
    base: u64,
    offsets: Row,
}

/// Runs a vector memory instruction.
pub(crate) fn vmem<const STRICT: bool>(wave: &mut Wave, context: &mut Context<'_>, inst: &Vmem) -> Result<(), Trap> {
    let exec = wave.exec();
    if exec == 0 {
        return Ok(());
    }
    match inst.address {
        Address::Buffer {
            descriptor,
            scalar,
            vector,
        } => {
            let d = usize::from(descriptor & 0x7c);
            let [low, high, records, flags] = [
                wave.scalars[d],
                wave.scalars[d + 1],
                wave.scalars[d + 2],
                wave.scalars[d + 3],
            ];
            // Stride and swizzle make structured buffers; bit 23 of the last word adds the lane
            // number.
            if high >> 16 != 0 || flags >> 23 & 1 != 0 {
                return Err(Trap::Unsupported("a structured or swizzled buffer descriptor"));
            }
            let mut offsets = vector.map_or([0; 64], |row| wave.rows[usize::from(row)]);
            let mut immediate = inst.offset as u32;
            let (_, mut highest) = extent(&offsets, exec);
            if highest.checked_add(immediate).is_none() {
                // The lane's and the instruction's offsets form one 32-bit sum: LLVM folds a
                // constant into an address that is negative without it.
                offsets = offsets.map(|offset| offset.wrapping_add(immediate));
                immediate = 0;
                (_, highest) = extent(&offsets, exec);
            }
            let fixed = u64::from(wave.scalar(scalar)) + u64::from(immediate);
            let place = Place {
                base: (u64::from(low) | u64::from(high) << 32) + fixed,
                offsets,
            };
            if u64::from(highest) + fixed + u64::from(inst.access.bytes) <= u64::from(records) {
                access(wave, context, inst, &place, exec)
            } else {
                partial(wave, context, inst, &place, u64::from(records).checked_sub(fixed), exec)
            }
        }
        Address::Global {
            scalar: Some(scalar),
            vector,
        } => {
            let place = Place {
                base: wave.pair(scalar).wrapping_add_signed(inst.offset.into()),
                offsets: vector.map_or([0; 64], |row| wave.rows[usize::from(row)]),
            };
            access(wave, context, inst, &place, exec)
        }
        Address::Global {
            scalar: None,
            vector: Some(vector),
        } => {
            let addresses = wide_addresses(wave, vector, inst.offset);
            near(wave, context, inst, &addresses, exec)
        }
        Address::Global { .. } => Err(Trap::Unsupported("a global access without an address")),
        Address::Flat { vector } => {
            let addresses = wide_addresses(wave, vector, inst.offset);
            let mut global = exec;
            for aperture in [Aperture::Shared, Aperture::Private] {
                let lanes = apertures::lanes(&addresses, exec, aperture);
                global &= !lanes;
                if lanes != 0 {
                    apertures::access::<STRICT>(wave, context, inst, &addresses, lanes, aperture)?;
                }
            }
            if global == 0 {
                return Ok(());
            }
            near(wave, context, inst, &addresses, global)
        }
        Address::Scratch { scalar, vector } => {
            let fixed = i64::from(inst.offset) + scalar.map_or(0, |s| i64::from(wave.scalars[usize::from(s & 0x7f)]));
            let offsets = match vector {
                Some(row) => wave.rows[usize::from(row)].map(|offset| fixed + i64::from(offset)),
                None => [fixed; 64],
            };
            private::access::<STRICT>(wave, inst, &offsets, exec)
        }
    }
}

/// Returns the lanes whose store has an effect: a raw buffer drops stores beyond its range, and
/// compilers leave the data undefined there.
pub(crate) fn stored_lanes(wave: &Wave, inst: &Vmem, exec: u64, bytes: u16) -> u64 {
    let Address::Buffer {
        descriptor,
        scalar,
        vector,
    } = inst.address
    else {
        return exec;
    };
    let records = u64::from(wave.scalars[usize::from(descriptor & 0x7c) + 2]);
    let fixed = u64::from(wave.scalar(scalar)) + u64::from(bytes);
    lanes_where(exec, |lane| {
        let offset = vector.map_or(0, |row| wave.rows[usize::from(row)][lane]);
        u64::from(offset.wrapping_add(inst.offset as u32)) + fixed <= records
    })
}

/// Returns 64-bit addresses from two rows.
fn wide_addresses(wave: &Wave, vector: u16, offset: i32) -> [u64; 64] {
    let (low, high) = (&wave.rows[usize::from(vector)], &wave.rows[usize::from(vector) + 1]);
    std::array::from_fn(|lane| {
        let address = u64::from(low[lane]) | u64::from(high[lane]) << 32;
        address.wrapping_add_signed(offset.into())
    })
}

/// Accesses lanes at 64-bit addresses: together if they lie within 4 GiB, as usual, otherwise one
/// by one.
fn near(wave: &mut Wave, context: &mut Context<'_>, inst: &Vmem, addresses: &[u64; 64], mask: u64) -> Result<(), Trap> {
    let (base, highest) = set_lanes(mask).fold((u64::MAX, 0), |(low, high), lane| {
        (addresses[lane].min(low), addresses[lane].max(high))
    });
    if highest - base <= u64::from(u32::MAX) {
        let offsets = addresses.map(|address| address.wrapping_sub(base) as u32);
        return access(wave, context, inst, &Place { base, offsets }, mask);
    }
    for lane in set_lanes(mask) {
        let place = Place {
            base: addresses[lane],
            offsets: [0; 64],
        };
        access(wave, context, inst, &place, 1 << lane)?;
    }
    Ok(())
}

/// Loads, stores or updates device memory for the lanes of `mask`.
fn access(wave: &mut Wave, context: &mut Context<'_>, inst: &Vmem, place: &Place, mask: u64) -> Result<(), Trap> {
    let bytes = u64::from(inst.access.bytes);
    let count = u64::from(mask.count_ones()) * bytes;
    let first = usize::from(inst.data);
    let range = first..first + inst.access.rows();
    match inst.action {
        Action::Load => {
            context.report.bytes_read += count;
            let target = &mut wave.rows[range];
            in_blocks(context, place, mask, bytes, |base, offsets, mask| {
                // SAFETY: in_blocks found `bytes` bytes of a live allocation at each lane of the
                // mask.
                unsafe { gather(base, offsets, mask, inst.access, target) }
            })
        }
        Action::Store => {
            context.report.bytes_written += count;
            let source = &wave.rows[range];
            in_blocks(context, place, mask, bytes, |base, offsets, mask| {
                // SAFETY: in_blocks found `bytes` bytes of a live allocation at each lane of the
                // mask.
                unsafe { scatter(base, offsets, mask, inst.access, source) }
            })
        }
        Action::Atomic(function, returns) => {
            context.report.bytes_read += count;
            context.report.bytes_written += count;
            let words = inst.access.rows();
            for lane in set_lanes(mask) {
                let address = place.base.wrapping_add(place.offsets[lane].into());
                let host = context.memory.host(address, bytes, lane as u32)?;
                let data = lane_value(&wave.rows[first..], words, lane);
                let compare = if inst.compares {
                    lane_value(&wave.rows[first + words..], words, lane)
                } else {
                    0
                };
                // SAFETY: `host` points to `bytes` bytes of a live allocation.
                let old = unsafe { atomic(host, words, function, data, compare) }?;
                if returns {
                    set_lane_value(&mut wave.rows[usize::from(inst.target)..], words, lane, old);
                }
            }
            Ok(())
        }
    }
}

/// Calls `transfer` for the lanes of each allocation with host base, offsets and lanes. Usually all
/// lanes lie in one allocation.
fn in_blocks(
    context: &mut Context<'_>,
    place: &Place,
    mask: u64,
    bytes: u64,
    mut transfer: impl FnMut(*mut u8, &Row, u64),
) -> Result<(), Trap> {
    let (lowest, highest) = extent(&place.offsets, mask);
    let start = place.base.wrapping_add(lowest.into());
    if let Some(block) = context.memory.find(start, u64::from(highest - lowest) + bytes) {
        // The offsets are the same relative to the block's host address.
        let base = block.host.wrapping_add(place.base.wrapping_sub(block.address) as usize);
        transfer(base, &place.offsets, mask);
        return Ok(());
    }
    for lane in set_lanes(mask) {
        let address = place.base.wrapping_add(place.offsets[lane].into());
        let host = context.memory.host(address, bytes, lane as u32)?;
        transfer(host, &[0; 64], 1 << lane);
    }
    Ok(())
}

/// Runs a buffer access that crosses the descriptor's range, which ends `room` bytes after the base
/// (`None`: before it).
fn partial(
    wave: &mut Wave,
    context: &mut Context<'_>,
    inst: &Vmem,
    place: &Place,
    room: Option<u64>,
    exec: u64,
) -> Result<(), Trap> {
    let atomic = matches!(inst.action, Action::Atomic(..));
    let (width, words) = match inst.access.bytes {
        whole if whole <= 4 || atomic => (u64::from(whole), 1),
        wide => (4, u16::from(wide) / 4),
    };
    for word in 0..words {
        let at = u64::from(word) * 4;
        let inside = lanes_where(exec, |lane| {
            room.is_some_and(|room| u64::from(place.offsets[lane]) + at + width <= room)
        });
        let part = Vmem {
            access: Access {
                bytes: width as u8,
                ..inst.access
            },
            data: inst.data + word,
            ..*inst
        };
        let first = match inst.action {
            Action::Load => Some(part.data),
            Action::Atomic(_, true) => Some(part.target),
            _ => None,
        };
        for row in first.map_or(0..0, |first| first..first + part.access.rows() as u16) {
            for lane in set_lanes(exec & !inside) {
                let value = &mut wave.rows[usize::from(row)][lane];
                *value = match inst.access.half {
                    None => 0,
                    Some(Half::Low) => *value & 0xffff_0000,
                    Some(Half::High) => *value & 0xffff,
                };
            }
        }
        if inside != 0 {
            let place = Place {
                base: place.base + at,
                offsets: place.offsets,
            };
            access(wave, context, &part, &place, inside)?;
        }
    }
    Ok(())
}
