//! CDNA3's 8-bit floats (FNUZ: no infinity, no −0, 0x80 is the NaN): fp8 is 1-4-3 with bias 8, bf8
//! is 1-5-2 with bias 16.

use super::entry::{Entry, Obeys, PLAIN, Ty, Ty::*, VectorOp, float, vector};
use crate::lanes::{Kernel, kernel, map};

const NAN: u32 = 0x80;

/// Returns the FNUZ bias of a format, from the number of its fraction bits.
#[inline(always)]
const fn bias(fraction: u32) -> i32 {
    1 << (6 - fraction)
}

/// Converts a byte to f32, exactly.
#[inline(always)]
fn to_f32(byte: u32, fraction: u32) -> u32 {
    let byte = byte & 0xff;
    if byte == NAN {
        return f32::NAN.to_bits();
    }
    let magnitude = byte & 0x7f;
    let (exponent, mantissa) = ((magnitude >> fraction) as i32, magnitude & ((1 << fraction) - 1));
    let (exponent, mantissa) = if exponent == 0 {
        (1, mantissa)
    } else {
        (exponent, mantissa | 1 << fraction)
    };
    // mantissa · 2^(exponent − bias − fraction)
    let power = f32::from_bits(((exponent - bias(fraction) - fraction as i32 + 127) as u32) << 23);
    (mantissa as f32 * power).to_bits() | (byte & 0x80) << 24
}

/// Converts from f32, to nearest, ties to even; overflow, infinity and NaN become the NaN.
#[inline(always)]
fn from_f32(value: u32, fraction: u32) -> u32 {
    let (sign, magnitude) = (value >> 24 & 0x80, value & 0x7fff_ffff);
    if magnitude >= 0x7f80_0000 {
        return NAN;
    }
    let exponent = ((magnitude >> 23) as i32 - 127 + bias(fraction)).max(1);
    // In units of the last place, adding 2^23 rounds to an integer.
    let unit = exponent - bias(fraction) - fraction as i32;
    let scaled = f32::from_bits(magnitude) * f32::from_bits(((127 - unit) as u32) << 23);
    let units = ((scaled + 8_388_608.0) - 8_388_608.0) as u32;
    // A carry out of the fraction increments the exponent.
    let code = (((exponent - 1) as u32) << fraction) + units;
    if code > 0x7f {
        NAN
    } else if code == 0 {
        0
    } else {
        sign | code
    }
}

/// Builds a conversion to two bytes in the half that op_sel names; the other half is kept.
const fn packs(name: &'static str, kernel: Kernel) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(B16),
            sources: &[F32, F32],
            keeps_high: true,
            kernel,
            ..PLAIN
        },
    )
}

/// Builds a conversion of the low two bytes to two f32.
macro_rules! unpacks {
    ($name:literal, $fraction:literal) => {
        vector(
            $name,
            VectorOp {
                target: Some(PkF32),
                sources: B1,
                obeys: Obeys::Denormals,
                kernel: kernel!(|input, out| {
                    for l in 0..64 {
                        out.r[0][l] = to_f32(input.r[0][l], $fraction);
                        out.r[1][l] = to_f32(input.r[0][l] >> 8, $fraction);
                    }
                }),
                ..PLAIN
            },
        )
    };
}

const B1: &[Ty] = &[B32];

pub(super) const OPS: &[Entry] = &[
    float("v_cvt_f32_fp8", F32, B1, map!(|a| to_f32(a, 3))),
    float("v_cvt_f32_bf8", F32, B1, map!(|a| to_f32(a, 2))),
    unpacks!("v_cvt_pk_f32_fp8", 3),
    unpacks!("v_cvt_pk_f32_bf8", 2),
    packs("v_cvt_pk_fp8_f32", map!(|a, b| from_f32(a, 3) | from_f32(b, 3) << 8)),
    packs("v_cvt_pk_bf8_f32", map!(|a, b| from_f32(a, 2) | from_f32(b, 2) << 8)),
];
