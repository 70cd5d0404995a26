//! Packed arithmetic (VOP3P). The driver selects and negates the halves before.

use rustc_apfloat::Float;

use super::{
    entry::{Entry, Obeys, PLAIN, Ty, Ty::*, VectorOp, clamps, float, rounds, valu, vector},
    half::{fma, from_f32, to_f32},
    order::f16::{max, min},
    soft::soft,
};
use crate::lanes::{Kernel, kernel, map};

const P2: &[Ty] = &[PkF32, PkF32];
const P3: &[Ty] = &[PkF32, PkF32, PkF32];
const W2: &[Ty] = &[PkB16, PkB16];
const W3: &[Ty] = &[PkB16, PkB16, PkB16];

/// Two f32 results of two f32 sources each.
macro_rules! map_pk_f32 {
    (|$a:ident, $b:ident| $value:expr) => {
        kernel!(|input, out| {
            for h in 0..2 {
                for l in 0..64 {
                    let ($a, $b) = (f32::from_bits(input.r[h][l]), f32::from_bits(input.r[2 + h][l]));
                    let value: f32 = $value;
                    out.r[h][l] = value.to_bits();
                }
            }
        })
    };
}

/// Two 16-bit results of two halves each.
macro_rules! map_pk_b16 {
    (|$a:ident, $b:ident| $value:expr) => {
        map!(|x, y| {
            let low: u16 = {
                let ($a, $b) = (x as u16, y as u16);
                $value
            };
            let high: u16 = {
                let ($a, $b) = ((x >> 16) as u16, (y >> 16) as u16);
                $value
            };
            u32::from(low) | u32::from(high) << 16
        })
    };
}

const H2: &[Ty] = &[PkF16, PkF16];
const H3: &[Ty] = &[PkF16, PkF16, PkF16];

/// Two f16 results of two halves each.
macro_rules! map_pk_f16 {
    (|$a:ident, $b:ident| $value:expr) => {
        map_pk_b16!(|p, q| {
            let ($a, $b) = (to_f32(p.into()), to_f32(q.into()));
            from_f32($value) as u16
        })
    };
}

const FMA: Kernel = kernel!(|input, out| {
    for h in 0..2 {
        for l in 0..64 {
            let [a, b, c] = [input.r[h][l], input.r[2 + h][l], input.r[4 + h][l]].map(f32::from_bits);
            out.r[h][l] = a.mul_add(b, c).to_bits();
        }
    }
});

/// Two 16-bit results of three halves each.
macro_rules! map_pk3_b16 {
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        map!(|x, y, z| {
            let half = |shift: u32| -> u32 {
                let [$a, $b, $c] = [x, y, z].map(|v| (v >> shift) as u16);
                let value: u16 = $value;
                u32::from(value)
            };
            half(0) | half(16) << 16
        })
    };
}

const PK_FMA_F16: Kernel = map_pk3_b16!(|a, b, c| fma(a.into(), b.into(), c.into()) as u16);
const SOFT_FMA_F16: Obeys = soft!(halves, |r, a, b, c| a.mul_add_r(b, c, r).value);

pub(super) const OPS: &[Entry] = &[
    rounds(
        "v_pk_add_f32",
        PkF32,
        P2,
        map_pk_f32!(|a, b| a + b),
        soft!(singles, |r, a, b, _c| a.add_r(b, r).value),
    ),
    rounds(
        "v_pk_mul_f32",
        PkF32,
        P2,
        map_pk_f32!(|a, b| a * b),
        soft!(singles, |r, a, b, _c| a.mul_r(b, r).value),
    ),
    rounds(
        "v_pk_fma_f32",
        PkF32,
        P3,
        FMA,
        soft!(singles, |r, a, b, c| a.mul_add_r(b, c, r).value),
    ),
    // op_sel selects the half of the first source for the low result, and of the second source for
    // the high result.
    valu(
        "v_pk_mov_b32",
        PkF32,
        P2,
        kernel!(|input, out| {
            out.r[0] = *input.r[0];
            out.r[1] = *input.r[3];
        }),
    ),
    clamps(
        "v_pk_add_u16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| a.wrapping_add(b)),
        map_pk_b16!(|a, b| a.saturating_add(b)),
    ),
    clamps(
        "v_pk_sub_u16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| a.wrapping_sub(b)),
        map_pk_b16!(|a, b| a.saturating_sub(b)),
    ),
    clamps(
        "v_pk_add_i16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| a.wrapping_add(b)),
        map_pk_b16!(|a, b| (a as i16).saturating_add(b as i16) as u16),
    ),
    clamps(
        "v_pk_sub_i16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| a.wrapping_sub(b)),
        map_pk_b16!(|a, b| (a as i16).saturating_sub(b as i16) as u16),
    ),
    valu("v_pk_mul_lo_u16", PkB16, W2, map_pk_b16!(|a, b| a.wrapping_mul(b))),
    clamps(
        "v_pk_mad_u16",
        PkB16,
        W3,
        map_pk3_b16!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        map_pk3_b16!(|a, b, c| (u32::from(a) * u32::from(b)).saturating_add(c.into()).min(0xffff) as u16),
    ),
    clamps(
        "v_pk_mad_i16",
        PkB16,
        W3,
        map_pk3_b16!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        map_pk3_b16!(|a, b, c| {
            let [a, b, c] = [a, b, c].map(|v| i64::from(v as i16));
            (a * b + c).clamp(-0x8000, 0x7fff) as u16
        }),
    ),
    valu("v_pk_max_u16", PkB16, W2, map_pk_b16!(|a, b| a.max(b))),
    valu("v_pk_min_u16", PkB16, W2, map_pk_b16!(|a, b| a.min(b))),
    valu(
        "v_pk_max_i16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| (a as i16).max(b as i16) as u16),
    ),
    valu(
        "v_pk_min_i16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| (a as i16).min(b as i16) as u16),
    ),
    valu("v_pk_lshlrev_b16", PkB16, W2, map_pk_b16!(|a, b| b << (a & 15))),
    valu("v_pk_lshrrev_b16", PkB16, W2, map_pk_b16!(|a, b| b >> (a & 15))),
    valu(
        "v_pk_ashrrev_i16",
        PkB16,
        W2,
        map_pk_b16!(|a, b| ((b as i16) >> (a & 15)) as u16),
    ),
    rounds(
        "v_pk_add_f16",
        PkF16,
        H2,
        map_pk_f16!(|a, b| a + b),
        soft!(halves, |r, a, b, _c| a.add_r(b, r).value),
    ),
    rounds(
        "v_pk_mul_f16",
        PkF16,
        H2,
        map_pk_f16!(|a, b| a * b),
        soft!(halves, |r, a, b, _c| a.mul_r(b, r).value),
    ),
    rounds("v_pk_fma_f16", PkF16, H3, PK_FMA_F16, SOFT_FMA_F16),
    vector(
        "v_pk_fmac_f16",
        VectorOp {
            target: Some(PkF16),
            sources: H3,
            accumulates: true,
            obeys: SOFT_FMA_F16,
            kernel: PK_FMA_F16,
            ..PLAIN
        },
    ),
    float("v_pk_min_f16", PkF16, H2, map_pk_b16!(|a, b| min(a, b))),
    float("v_pk_max_f16", PkF16, H2, map_pk_b16!(|a, b| max(a, b))),
];
