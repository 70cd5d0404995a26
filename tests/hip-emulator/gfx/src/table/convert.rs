//! Conversions.

use rustc_apfloat::{
    Float, FloatConvert, Round,
    ieee::{Double, Half, Single},
};

use super::{
    entry::{Entry, Obeys, PLAIN, Rule, Ty, Ty::*, VectorOp, float, flows, rounds, valu, vector},
    half::{from_f32, to_f32},
    soft::soft_bits,
};
use crate::lanes::{kernel, map, put_wide, wide};

/// Converts f32 to f16 with the rounding `round`.
fn half_of(value: Single, round: Round) -> u64 {
    FloatConvert::<Half>::convert_r(value, round, &mut false)
        .value
        .to_bits() as u64
}

/// Converts an integer to f32 with the rounding `round`.
fn single_of(value: i128, round: Round) -> u64 {
    Single::from_i128_r(value, round).value.to_bits() as u64
}

/// Converts f32 to f16, rounding toward zero.
#[inline(always)]
fn truncated(a: u32) -> u32 {
    let (sign, magnitude) = (a >> 16 & 0x8000, a & 0x7fff_ffff);
    sign | if magnitude > 0x7f80_0000 {
        0x7e00 | magnitude >> 13 & 0x3ff
    } else if magnitude == 0x7f80_0000 {
        0x7c00
    } else if magnitude >= 0x4780_0000 {
        0x7bff
    } else if magnitude < 0x3880_0000 {
        (f32::from_bits(magnitude) * 16_777_216.0) as u32
    } else {
        (magnitude - 0x3800_0000) >> 13
    }
}

/// Converts f32 to an integer by its floor: saturated, 0 for NaN.
#[inline(always)]
fn floor(a: u32) -> u32 {
    f32::from_bits(a).floor() as i32 as u32
}

const B1: &[Ty] = &[B32];
const F1: &[Ty] = &[F32];
const H1: &[Ty] = &[B16];
const D1: &[Ty] = &[F64];

pub(super) const OPS: &[Entry] = &[
    float("v_cvt_f32_f16", F32, &[F16], map!(|a| to_f32(a).to_bits())),
    rounds(
        "v_cvt_f16_f32",
        F16,
        F1,
        map!(|a| from_f32(f32::from_bits(a))),
        soft_bits!(true, |r, a, _b| half_of(Single::from_bits(u128::from(a as u32)), r)),
    ),
    vector(
        "v_cvt_pkrtz_f16_f32",
        VectorOp {
            target: Some(PkF16),
            sources: &[F32, F32],
            obeys: Obeys::Denormals,
            kernel: map!(|a, b| truncated(a) | truncated(b) << 16),
            ..PLAIN
        },
    ),
    rounds(
        "v_cvt_f32_i32",
        F32,
        B1,
        map!(|a| (a as i32 as f32).to_bits()),
        soft_bits!(false, |r, a, _b| single_of((a as i32).into(), r)),
    ),
    rounds(
        "v_cvt_f32_u32",
        F32,
        B1,
        map!(|a| (a as f32).to_bits()),
        soft_bits!(false, |r, a, _b| single_of((a as u32).into(), r)),
    ),
    // Out of range saturates and NaN gives 0, as in Rust's casts.
    valu("v_cvt_i32_f32", B32, F1, map!(|a| f32::from_bits(a) as i32 as u32)),
    float("v_cvt_flr_i32_f32", B32, F1, map!(|a| floor(a))),
    valu("v_cvt_u32_f32", B32, F1, map!(|a| f32::from_bits(a) as u32)),
    valu("v_cvt_f32_ubyte0", F32, B1, map!(|a| ((a & 0xff) as f32).to_bits())),
    valu(
        "v_cvt_f32_ubyte1",
        F32,
        B1,
        map!(|a| ((a >> 8 & 0xff) as f32).to_bits()),
    ),
    valu(
        "v_cvt_f32_ubyte2",
        F32,
        B1,
        map!(|a| ((a >> 16 & 0xff) as f32).to_bits()),
    ),
    valu("v_cvt_f32_ubyte3", F32, B1, map!(|a| ((a >> 24) as f32).to_bits())),
    flows(
        valu("v_pack_b32_f16", B32, &[F16, F16], map!(|a, b| a & 0xffff | b << 16)),
        Rule::Moves(0),
    ),
    // A signed nibble in units of 1/16
    valu(
        "v_cvt_off_f32_i4",
        F32,
        B1,
        map!(|a| (((a << 28) as i32 >> 28) as f32 / 16.0).to_bits()),
    ),
    valu(
        "v_cvt_pk_u16_u32",
        PkB16,
        &[B32, B32],
        map!(|a, b| a.min(0xffff) | b.min(0xffff) << 16),
    ),
    valu(
        "v_cvt_pk_i16_i32",
        PkB16,
        &[B32, B32],
        map!(|a, b| {
            let half = |v: u32| (v as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff;
            half(a) | half(b) << 16
        }),
    ),
    rounds(
        "v_cvt_f16_u16",
        F16,
        H1,
        map!(|a| from_f32((a & 0xffff) as f32)),
        soft_bits!(true, |r, a, _b| Half::from_u128_r((a as u16).into(), r).value.to_bits()
            as u64),
    ),
    rounds(
        "v_cvt_f16_i16",
        F16,
        H1,
        map!(|a| from_f32(f32::from(a as i16))),
        soft_bits!(true, |r, a, _b| Half::from_i128_r((a as i16).into(), r).value.to_bits()
            as u64),
    ),
    valu("v_cvt_u16_f16", B16, &[F16], map!(|a| u32::from(to_f32(a) as u16))),
    valu(
        "v_cvt_i16_f16",
        B16,
        &[F16],
        map!(|a| u32::from(to_f32(a) as i16 as u16)),
    ),
    valu(
        "v_cvt_i32_f64",
        B32,
        D1,
        kernel!(|input, out| {
            for l in 0..64 {
                out.r[0][l] = f64::from_bits(wide(input.r[0], input.r[1], l)) as i32 as u32;
            }
        }),
    ),
    valu(
        "v_cvt_u32_f64",
        B32,
        D1,
        kernel!(|input, out| {
            for l in 0..64 {
                out.r[0][l] = f64::from_bits(wide(input.r[0], input.r[1], l)) as u32;
            }
        }),
    ),
    valu(
        "v_cvt_f64_i32",
        F64,
        B1,
        kernel!(|input, out| {
            for l in 0..64 {
                let value = f64::from(input.r[0][l] as i32).to_bits();
                put_wide(&mut out.r, l, value);
            }
        }),
    ),
    valu(
        "v_cvt_f64_u32",
        F64,
        B1,
        kernel!(|input, out| {
            for l in 0..64 {
                let value = f64::from(input.r[0][l]).to_bits();
                put_wide(&mut out.r, l, value);
            }
        }),
    ),
    rounds(
        "v_cvt_f32_f64",
        F32,
        &[F64],
        kernel!(|input, out| {
            for l in 0..64 {
                out.r[0][l] = (f64::from_bits(wide(input.r[0], input.r[1], l)) as f32).to_bits();
            }
        }),
        soft_bits!(false, |r, a, _b| {
            let value = Double::from_bits(a.into());
            FloatConvert::<Single>::convert_r(value, r, &mut false).value.to_bits() as u64
        }),
    ),
    float(
        "v_cvt_f64_f32",
        F64,
        F1,
        kernel!(|input, out| {
            for l in 0..64 {
                let value = f64::from(f32::from_bits(input.r[0][l])).to_bits();
                put_wide(&mut out.r, l, value);
            }
        }),
    ),
];
