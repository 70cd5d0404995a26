//! Integer dot products, sums of absolute differences, averages of bytes.

use super::entry::{Entry, PLAIN, Ty, Ty::*, VectorOp, clamps, valu, vector};
use crate::lanes::{Kernel, map};

const B3: &[Ty] = &[B32, B32, B32];
const W3: &[Ty] = &[PkB16, PkB16, B32];

/// Returns a field of `bits` bits of a register, sign-extended.
#[inline(always)]
fn signed(a: u32, bits: u32, index: u32) -> i64 {
    let left = 32 - bits - bits * index;
    i64::from(((a << left) as i32) >> (32 - bits))
}

#[inline(always)]
fn unsigned(a: u32, bits: u32, index: u32) -> i64 {
    let left = 32 - bits - bits * index;
    i64::from((a << left) >> (32 - bits))
}

/// A kernel of the exact sum of the fields' products and `c`.
macro_rules! dot {
    ($field:ident, $bits:literal, $c:ty, |$sum:ident| $value:expr) => {
        map!(|a, b, c| {
            let mut $sum = i64::from(c as $c);
            let mut index = 0;
            while index < 32 / $bits {
                $sum += $field(a, $bits, index) * $field(b, $bits, index);
                index += 1;
            }
            $value
        })
    };
}

/// An integer dot product: wrapping, and saturating under clamp.
macro_rules! dots {
    ($name:literal, $sources:expr, signed, $bits:literal) => {
        clamps(
            $name,
            B32,
            $sources,
            dot!(signed, $bits, i32, |sum| sum as u32),
            dot!(signed, $bits, i32, |sum| sum.clamp(i32::MIN.into(), i32::MAX.into())
                as u32),
        )
    };
    ($name:literal, $sources:expr, unsigned, $bits:literal) => {
        clamps(
            $name,
            B32,
            $sources,
            dot!(unsigned, $bits, u32, |sum| sum as u32),
            dot!(unsigned, $bits, u32, |sum| sum.min(u32::MAX.into()) as u32),
        )
    };
}

/// Builds an entry whose addend is the destination.
const fn accumulate(name: &'static str, kernel: Kernel, clamped: Kernel) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(B32),
            sources: B3,
            accumulates: true,
            kernel,
            clamped: Some(clamped),
            ..PLAIN
        },
    )
}

macro_rules! accumulates {
    ($name:literal, $bits:literal) => {
        accumulate(
            $name,
            dot!(signed, $bits, i32, |sum| sum as u32),
            dot!(signed, $bits, i32, |sum| sum.clamp(i32::MIN.into(), i32::MAX.into())
                as u32),
        )
    };
}

/// Sums the absolute differences of the fields for which `counts` holds for the second field.
#[inline(always)]
fn sad(a: u32, b: u32, bits: u32, counts: impl Fn(i64) -> bool) -> u32 {
    let mut sum = 0;
    for index in 0..32 / bits {
        let (x, y) = (unsigned(a, bits, index), unsigned(b, bits, index));
        if counts(y) {
            sum += (x - y).unsigned_abs() as u32;
        }
    }
    sum
}

pub(super) const OPS: &[Entry] = &[
    dots!("v_dot2_i32_i16", W3, signed, 16),
    dots!("v_dot2_u32_u16", W3, unsigned, 16),
    dots!("v_dot4_i32_i8", B3, signed, 8),
    dots!("v_dot4_u32_u8", B3, unsigned, 8),
    dots!("v_dot8_i32_i4", B3, signed, 4),
    dots!("v_dot8_u32_u4", B3, unsigned, 4),
    accumulates!("v_dot2c_i32_i16", 16),
    accumulates!("v_dot4c_i32_i8", 8),
    accumulates!("v_dot8c_i32_i4", 4),
    clamps(
        "v_sad_u8",
        B32,
        B3,
        map!(|a, b, c| sad(a, b, 8, |_| true).wrapping_add(c)),
        map!(|a, b, c| sad(a, b, 8, |_| true).saturating_add(c)),
    ),
    clamps(
        "v_sad_hi_u8",
        B32,
        B3,
        map!(|a, b, c| (sad(a, b, 8, |_| true) << 16).wrapping_add(c)),
        map!(|a, b, c| (sad(a, b, 8, |_| true) << 16).saturating_add(c)),
    ),
    clamps(
        "v_sad_u16",
        B32,
        B3,
        map!(|a, b, c| sad(a, b, 16, |_| true).wrapping_add(c)),
        map!(|a, b, c| sad(a, b, 16, |_| true).saturating_add(c)),
    ),
    clamps(
        "v_sad_u32",
        B32,
        B3,
        map!(|a, b, c| a.abs_diff(b).wrapping_add(c)),
        map!(|a, b, c| a.abs_diff(b).saturating_add(c)),
    ),
    // A reference byte of 0 is skipped.
    clamps(
        "v_msad_u8",
        B32,
        B3,
        map!(|a, b, c| sad(a, b, 8, |y| y != 0).wrapping_add(c)),
        map!(|a, b, c| sad(a, b, 8, |y| y != 0).saturating_add(c)),
    ),
    // Averages of bytes; the lowest bit of each byte of the third source rounds up.
    valu(
        "v_lerp_u8",
        B32,
        B3,
        map!(|a, b, c| {
            let byte = |shift: u32| {
                let [a, b] = [a, b].map(|v| v >> shift & 0xff);
                ((a + b + (c >> shift & 1)) >> 1) << shift
            };
            byte(0) | byte(8) | byte(16) | byte(24)
        }),
    ),
];
