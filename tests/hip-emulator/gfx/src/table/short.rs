//! Integer and bitwise vector opcodes of 16 bits.

use super::{
    entry::{Entry, PLAIN, Ty, Ty::*, VectorOp, clamps, valu, vector},
    integer::med3,
};
use crate::lanes::{Kernel, map};

const B1: &[Ty] = &[B32];
const H2: &[Ty] = &[B16, B16];
const H3: &[Ty] = &[B16, B16, B16];

/// Builds a 16-bit VOP3 opcode that keeps the other half of its destination.
const fn keeps(name: &'static str, sources: &'static [Ty], kernel: Kernel, clamped: Option<Kernel>) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(B16),
            sources,
            keeps_high: true,
            kernel,
            clamped,
            ..PLAIN
        },
    )
}

pub(super) const OPS: &[Entry] = &[
    clamps(
        "v_add_u16",
        B16,
        H2,
        map!(|a, b| a.wrapping_add(b) & 0xffff),
        map!(|a, b| (a as u16).saturating_add(b as u16).into()),
    ),
    clamps(
        "v_sub_u16",
        B16,
        H2,
        map!(|a, b| a.wrapping_sub(b) & 0xffff),
        map!(|a, b| (a as u16).saturating_sub(b as u16).into()),
    ),
    clamps(
        "v_subrev_u16",
        B16,
        H2,
        map!(|a, b| b.wrapping_sub(a) & 0xffff),
        map!(|a, b| (b as u16).saturating_sub(a as u16).into()),
    ),
    keeps(
        "v_add_i16",
        H2,
        map!(|a, b| a.wrapping_add(b) & 0xffff),
        Some(map!(|a, b| u32::from((a as i16).saturating_add(b as i16) as u16))),
    ),
    keeps(
        "v_sub_i16",
        H2,
        map!(|a, b| a.wrapping_sub(b) & 0xffff),
        Some(map!(|a, b| u32::from((a as i16).saturating_sub(b as i16) as u16))),
    ),
    valu("v_mul_lo_u16", B16, H2, map!(|a, b| a.wrapping_mul(b) & 0xffff)),
    valu(
        "v_mad_legacy_u16",
        B16,
        H3,
        map!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
    ),
    valu("v_min_u16", B16, H2, map!(|a, b| (a as u16).min(b as u16).into())),
    valu("v_max_u16", B16, H2, map!(|a, b| (a as u16).max(b as u16).into())),
    valu(
        "v_min_i16",
        B16,
        H2,
        map!(|a, b| u32::from((a as i16).min(b as i16) as u16)),
    ),
    valu(
        "v_max_i16",
        B16,
        H2,
        map!(|a, b| u32::from((a as i16).max(b as i16) as u16)),
    ),
    valu("v_lshlrev_b16", B16, H2, map!(|a, b| (b << (a & 15)) & 0xffff)),
    valu("v_lshrrev_b16", B16, H2, map!(|a, b| (b & 0xffff) >> (a & 15))),
    valu(
        "v_ashrrev_i16",
        B16,
        H2,
        map!(|a, b| u32::from(((b as i16) >> (a & 15)) as u16)),
    ),
    valu(
        "v_sat_pk_u8_i16",
        B16,
        B1,
        map!(|a| {
            let clamp = |half: u32| u32::from((half as i16).clamp(0, 255) as u16);
            clamp(a) | clamp(a >> 16) << 8
        }),
    ),
    valu(
        "v_mad_legacy_i16",
        B16,
        H3,
        map!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
    ),
    keeps(
        "v_mad_u16",
        H3,
        map!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        Some(map!(|a, b, c| ((a & 0xffff) * (b & 0xffff))
            .saturating_add(c & 0xffff)
            .min(0xffff))),
    ),
    keeps(
        "v_mad_i16",
        H3,
        map!(|a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        Some(map!(|a, b, c| {
            let [a, b, c] = [a, b, c].map(|v| i64::from(v as i16));
            (a * b + c).clamp(-0x8000, 0x7fff) as u32 & 0xffff
        })),
    ),
    keeps(
        "v_min3_u16",
        H3,
        map!(|a, b, c| (a as u16).min(b as u16).min(c as u16).into()),
        None,
    ),
    keeps(
        "v_max3_u16",
        H3,
        map!(|a, b, c| (a as u16).max(b as u16).max(c as u16).into()),
        None,
    ),
    keeps(
        "v_med3_u16",
        H3,
        map!(|a, b, c| med3(a as u16, b as u16, c as u16).into()),
        None,
    ),
    keeps(
        "v_min3_i16",
        H3,
        map!(|a, b, c| u32::from((a as i16).min(b as i16).min(c as i16) as u16)),
        None,
    ),
    keeps(
        "v_max3_i16",
        H3,
        map!(|a, b, c| u32::from((a as i16).max(b as i16).max(c as i16) as u16)),
        None,
    ),
    keeps(
        "v_med3_i16",
        H3,
        map!(|a, b, c| u32::from(med3(a as i16, b as i16, c as i16) as u16)),
        None,
    ),
];
