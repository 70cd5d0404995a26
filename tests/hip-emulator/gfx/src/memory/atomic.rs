//! Atomic read-modify-write of device memory and LDS; the mnemonic's name selects the function.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use half::{bf16, f16};

use crate::{error::Trap, inst::AtomicFn};

/// Returns the function of a buffer, global or flat atomic, and the number of registers of its
/// value: `add`, `umax_x2`, `cmpswap`, `pk_add_f16`.
pub(crate) fn parse(name: &str) -> Option<(AtomicFn, usize)> {
    let (base, words) = match name {
        // These have 64 bits without the suffix.
        "add_f64" | "min_f64" | "max_f64" => return float64(name).map(|function| (function, 2)),
        "add_f32" | "pk_add_f16" | "pk_add_bf16" => return float32(name).map(|function| (function, 1)),
        _ => match name.strip_suffix("_x2") {
            Some(base) => (base, 2),
            None => (name, 1),
        },
    };
    // The data holds the new value first, the comparand second.
    let function: AtomicFn = match (base, words) {
        ("cmpswap", _) => |old, data, compare| if old == compare { data } else { old },
        ("swap", _) => |_, data, _| data,
        ("smin", 1) => |old, data, _| (old as i32).min(data as i32) as u32 as u64,
        ("smax", 1) => |old, data, _| (old as i32).max(data as i32) as u32 as u64,
        ("smin", _) => |old, data, _| (old as i64).min(data as i64) as u64,
        ("smax", _) => |old, data, _| (old as i64).max(data as i64) as u64,
        ("umin", _) => |old, data, _| old.min(data),
        ("umax", _) => |old, data, _| old.max(data),
        _ => common(base)?,
    };
    Some((function, words))
}

/// Returns the function of an LDS atomic (its name without `_rtn`), the number of registers of its
/// value, and whether it has a second value.
pub(crate) fn parse_lds(name: &str) -> Option<(AtomicFn, usize, bool)> {
    if let Some(function) = float64(name) {
        return Some((function, 2, false));
    }
    if let Some(function) = float32(name) {
        return Some((function, 1, false));
    }
    let (base, ty) = name.rsplit_once('_')?;
    let words = match ty {
        "b32" | "u32" | "i32" => 1,
        "b64" | "u64" | "i64" => 2,
        "f32" if base == "cmpst" => 1,
        "f64" if base == "cmpst" => 2,
        _ => return None,
    };
    let function: AtomicFn = match (base, ty) {
        ("cmpst", "b32" | "b64") => |old, data, compare| if old == compare { data } else { old },
        ("cmpst", "f32") => |old, data, compare| {
            if f32::from_bits(old as u32) == f32::from_bits(compare as u32) {
                data
            } else {
                old
            }
        },
        ("cmpst", "f64") => |old, data, compare| {
            if f64::from_bits(old) == f64::from_bits(compare) {
                data
            } else {
                old
            }
        },
        // The first value holds the bits to clear, the second the bits to set.
        ("mskor", _) => |old, data, compare| old & !compare | data,
        ("wrxchg", _) => |_, data, _| data,
        ("wrap", "b32") => |old, data, compare| {
            if old >= compare {
                old.wrapping_sub(compare)
            } else {
                old.wrapping_add(data)
            }
        },
        ("min", "i32") => |old, data, _| (old as i32).min(data as i32) as u32 as u64,
        ("max", "i32") => |old, data, _| (old as i32).max(data as i32) as u32 as u64,
        ("min", "i64") => |old, data, _| (old as i64).min(data as i64) as u64,
        ("max", "i64") => |old, data, _| (old as i64).max(data as i64) as u64,
        ("min", _) => |old, data, _| old.min(data),
        ("max", _) => |old, data, _| old.max(data),
        ("rsub", _) => |old, data, _| data.wrapping_sub(old),
        _ => common(base)?,
    };
    Some((function, words, matches!(base, "cmpst" | "mskor" | "wrap")))
}

/// Returns the functions that all kinds of memory have. The result is truncated where it is stored.
fn common(base: &str) -> Option<AtomicFn> {
    Some(match base {
        "add" => |old, data, _| old.wrapping_add(data),
        "sub" => |old, data, _| old.wrapping_sub(data),
        "and" => |old, data, _| old & data,
        "or" => |old, data, _| old | data,
        "xor" => |old, data, _| old ^ data,
        "inc" => |old, data, _| if old >= data { 0 } else { old + 1 },
        "dec" => |old, data, _| if old == 0 || old > data { data } else { old - 1 },
        _ => return None,
    })
}

fn float32(name: &str) -> Option<AtomicFn> {
    Some(match name {
        "add_f32" => |old, data, _| f32_op(old, data, |a, b| a + b),
        "min_f32" => |old, data, _| f32_op(old, data, f32::min),
        "max_f32" => |old, data, _| f32_op(old, data, f32::max),
        "pk_add_f16" => |old, data, _| {
            halves(old, data, |a, b| {
                f16::from_f32(f16::from_bits(a).to_f32() + f16::from_bits(b).to_f32()).to_bits()
            })
        },
        "pk_add_bf16" => |old, data, _| {
            halves(old, data, |a, b| {
                bf16::from_f32(bf16::from_bits(a).to_f32() + bf16::from_bits(b).to_f32()).to_bits()
            })
        },
        _ => return None,
    })
}

fn float64(name: &str) -> Option<AtomicFn> {
    Some(match name {
        "add_f64" => |old, data, _| (f64::from_bits(old) + f64::from_bits(data)).to_bits(),
        "min_f64" => |old, data, _| f64::from_bits(old).min(f64::from_bits(data)).to_bits(),
        "max_f64" => |old, data, _| f64::from_bits(old).max(f64::from_bits(data)).to_bits(),
        _ => return None,
    })
}

fn f32_op(old: u64, data: u64, function: impl Fn(f32, f32) -> f32) -> u64 {
    function(f32::from_bits(old as u32), f32::from_bits(data as u32))
        .to_bits()
        .into()
}

/// Applies a function to both halves. Rounding an f32 sum a second time is harmless: f32 has more
/// than twice the precision of either format.
fn halves(old: u64, data: u64, sum: impl Fn(u16, u16) -> u16) -> u64 {
    let [low, high] = [0, 16].map(|shift| u64::from(sum((old >> shift) as u16, (data >> shift) as u16)));
    low | high << 16
}

/// Updates memory in one step, atomically also against other workers and the host; returns the old
/// value.
///
/// # Safety
///
/// `host` must point to `4 * words` bytes of a live allocation that concurrent accesses change by
/// atomics only.
pub(crate) unsafe fn atomic(
    host: *mut u8,
    words: usize,
    function: AtomicFn,
    data: u64,
    compare: u64,
) -> Result<u64, Trap> {
    if !host.addr().is_multiple_of(4 * words) {
        return Err(Trap::Unsupported("an atomic at an unaligned address"));
    }
    // SAFETY: the caller guarantees the bytes; they are aligned. The closures always return a
    // value, so the update cannot fail.
    Ok(unsafe {
        if words == 2 {
            let update = |old| Some(function(old, data, compare));
            let cell = AtomicU64::from_ptr(host.cast());
            cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update)
                .unwrap_or_else(|old| old)
        } else {
            let update = |old| Some(function(u64::from(old), data, compare) as u32);
            let cell = AtomicU32::from_ptr(host.cast());
            let old = cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, update);
            old.unwrap_or_else(|old| old).into()
        }
    })
}
