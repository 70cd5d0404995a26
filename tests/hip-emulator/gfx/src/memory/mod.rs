//! Memory: device memory through the launch's allocations, LDS, private memory.
//!
//! Whatever the kind, an access is a base, 64 offsets, a mask of lanes and an [`Access`];
//! `transfer::gather` and `transfer::scatter` move the data between memory and register rows.

pub(crate) mod apertures;
pub(crate) mod atomic;
mod ds;
mod global;
mod lds;
mod patterns;
mod private;
mod shadow;
mod smem;
mod transfer;
mod vmem;

use crate::lanes::Row;

pub(crate) use ds::ds;
pub use global::{Block, Memory};
pub(crate) use global::{Global, KERNARG};
pub(crate) use lds::Lds;
pub(crate) use smem::smem;
pub(crate) use vmem::{stored_lanes, vmem};

/// Width and form of the data of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// 1, 2, 4, 8, 12 or 16
    pub(crate) bytes: u8,
    /// Whether loads of 1 and 2 bytes are sign-extended
    pub(crate) signed: bool,
    /// The half of the register that is accessed: the other is kept (loads) or ignored (stores)
    pub(crate) half: Option<Half>,
}

/// A half of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Low,
    High,
}

impl Access {
    /// Parses a mnemonic's suffix: `dwordx4`, `ushort`, `b64`, `u8`, `short_d16_hi`.
    pub(crate) fn parse(suffix: &str) -> Option<Self> {
        let (name, half) = match (suffix.strip_suffix("_d16_hi"), suffix.strip_suffix("_d16")) {
            (Some(name), _) => (name, Some(Half::High)),
            (_, Some(name)) => (name, Some(Half::Low)),
            _ => (suffix, None),
        };
        let (bytes, signed) = match name {
            "ubyte" | "byte" | "u8" | "b8" => (1, false),
            "sbyte" | "i8" => (1, true),
            "ushort" | "short" | "u16" | "b16" => (2, false),
            "sshort" | "i16" => (2, true),
            "dword" | "b32" => (4, false),
            "dwordx2" | "b64" => (8, false),
            "dwordx3" | "b96" => (12, false),
            "dwordx4" | "b128" => (16, false),
            _ => return None,
        };
        (half.is_none() || bytes <= 2).then_some(Self { bytes, signed, half })
    }

    /// Returns the number of registers of the data.
    #[inline]
    pub(crate) fn rows(self) -> usize {
        usize::from(self.bytes).div_ceil(4)
    }
}

/// Returns a lane's 32 or 64 bits from `words` rows.
#[inline]
pub(crate) fn lane_value(rows: &[Row], words: usize, lane: usize) -> u64 {
    let rows = rows.iter().take(words).enumerate();
    rows.fold(0, |value, (word, row)| value | u64::from(row[lane]) << (32 * word))
}

/// Sets a lane's 32 or 64 bits in `words` rows.
#[inline]
pub(crate) fn set_lane_value(rows: &mut [Row], words: usize, lane: usize, value: u64) {
    for (word, row) in rows.iter_mut().take(words).enumerate() {
        row[lane] = (value >> (32 * word)) as u32;
    }
}

/// Returns the lanes of a mask for which a predicate holds.
#[inline]
pub(crate) fn lanes_where(mask: u64, holds: impl Fn(usize) -> bool) -> u64 {
    set_lanes(mask)
        .filter(|&lane| holds(lane))
        .fold(0, |lanes, lane| lanes | 1 << lane)
}

/// Iterates over the lanes of a mask.
#[inline]
pub(crate) fn set_lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}
