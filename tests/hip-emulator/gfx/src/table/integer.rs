//! Integer and bitwise vector opcodes of 32 and 64 bits.

use super::entry::{Entry, MaskIn, PLAIN, Rule, Ty, Ty::*, VectorOp, clamps, flows, valu, vector};
use crate::{
    lanes::{Kernel, kernel, lane, map, map64, pack, put_wide, wide},
    rows::blend,
};

const B1: &[Ty] = &[B32];
const B2: &[Ty] = &[B32, B32];
const B3: &[Ty] = &[B32, B32, B32];
const SHIFT: &[Ty] = &[B32, B64];

/// Builds an addition or subtraction with carry out, and with carry in as `mask_in` says.
const fn carry(name: &'static str, mask_in: MaskIn, kernel: Kernel) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(B32),
            sources: B2,
            mask_in,
            mask_out: true,
            kernel,
            ..PLAIN
        },
    )
}

/// A 33-bit sum per lane: its low 32 bits, and the carry bit above.
macro_rules! carries {
    (|$a:ident, $b:ident, $c:ident| $value:expr) => {
        kernel!(|input, out| {
            let mut flags = [0_u8; 64];
            for l in 0..64 {
                let ($a, $b) = (u64::from(input.r[0][l]), u64::from(input.r[1][l]));
                let $c = u64::from(lane(input.mask, l));
                let _ = $c;
                let value: u64 = $value;
                out.r[0][l] = value as u32;
                flags[l] = (value >> 32) as u8 & 1;
            }
            out.mask = pack(&flags);
        })
    };
}

/// A shift of a 64-bit value.
macro_rules! shift64 {
    (|$value:ident, $by:ident| $shifted:expr) => {
        kernel!(|input, out| {
            for l in 0..64 {
                let ($value, $by) = (wide(input.r[1], input.r[2], l), input.r[0][l] & 63);
                put_wide(&mut out.r, l, $shifted);
            }
        })
    };
}

/// Returns the low 24 bits, sign-extended.
#[inline(always)]
const fn i24(a: u32) -> i32 {
    (a << 8) as i32 >> 8
}

#[inline(always)]
const fn u24(a: u32) -> u32 {
    a & 0xff_ffff
}

/// Selects bytes of `{a, b}` by the bytes of the selector (V_PERM_B32).
#[inline(always)]
fn perm(a: u32, b: u32, selector: u32) -> u32 {
    let all = u64::from(a) << 32 | u64::from(b);
    let mut value = 0;
    let mut byte = 0;
    while byte < 4 {
        let s = selector >> (8 * byte) & 0xff;
        let chosen = match s {
            0..=7 => (all >> (8 * s)) as u32 & 0xff,
            // Signs of the halves of b, then of a
            8..=11 => 0xff * ((all >> (16 * (s - 8) + 15)) as u32 & 1),
            12 => 0,
            _ => 0xff,
        };
        value |= chosen << (8 * byte);
        byte += 1;
    }
    value
}

#[inline(always)]
pub(super) fn med3<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    low.max(high.min(c))
}

pub(super) const OPS: &[Entry] = &[
    flows(valu("v_mov_b32", B32, B1, map!(|a| a)), Rule::Moves(0)),
    vector(
        "v_mov_b64",
        VectorOp {
            target: Some(B64),
            sources: &[B64],
            rule: Rule::Pairs,
            kernel: map64!(|a| a),
            ..PLAIN
        },
    ),
    flows(valu("v_accvgpr_read_b32", B32, B1, map!(|a| a)), Rule::Moves(0)),
    flows(valu("v_accvgpr_write_b32", B32, B1, map!(|a| a)), Rule::Moves(0)),
    flows(valu("v_accvgpr_mov_b32", B32, B1, map!(|a| a)), Rule::Moves(0)),
    flows(valu("v_not_b32", B32, B1, map!(|a| !a)), Rule::Moves(0)),
    valu("v_bfrev_b32", B32, B1, map!(|a| a.reverse_bits())),
    valu(
        "v_ffbh_u32",
        B32,
        B1,
        map!(|a| if a == 0 { u32::MAX } else { a.leading_zeros() }),
    ),
    valu(
        "v_ffbl_b32",
        B32,
        B1,
        map!(|a| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
    ),
    valu(
        "v_ffbh_i32",
        B32,
        B1,
        map!(|a| {
            let folded = a ^ ((a as i32) >> 31) as u32;
            if folded == 0 { u32::MAX } else { folded.leading_zeros() }
        }),
    ),
    valu("v_bcnt_u32_b32", B32, B2, map!(|a, b| a.count_ones().wrapping_add(b))),
    valu(
        "v_mbcnt_lo_u32_b32",
        B32,
        B2,
        kernel!(|input, out| {
            for l in 0..64 {
                let below = if l < 32 { (1_u32 << l) - 1 } else { u32::MAX };
                out.r[0][l] = (input.r[0][l] & below).count_ones().wrapping_add(input.r[1][l]);
            }
        }),
    ),
    valu(
        "v_mbcnt_hi_u32_b32",
        B32,
        B2,
        kernel!(|input, out| {
            for l in 0..64 {
                let below = if l < 32 { 0 } else { (1_u32 << (l - 32)) - 1 };
                out.r[0][l] = (input.r[0][l] & below).count_ones().wrapping_add(input.r[1][l]);
            }
        }),
    ),
    clamps(
        "v_add_u32",
        B32,
        B2,
        map!(|a, b| a.wrapping_add(b)),
        map!(|a, b| a.saturating_add(b)),
    ),
    clamps(
        "v_sub_u32",
        B32,
        B2,
        map!(|a, b| a.wrapping_sub(b)),
        map!(|a, b| a.saturating_sub(b)),
    ),
    clamps(
        "v_subrev_u32",
        B32,
        B2,
        map!(|a, b| b.wrapping_sub(a)),
        map!(|a, b| b.saturating_sub(a)),
    ),
    clamps(
        "v_add_i32",
        B32,
        B2,
        map!(|a, b| a.wrapping_add(b)),
        map!(|a, b| (a as i32).saturating_add(b as i32) as u32),
    ),
    clamps(
        "v_sub_i32",
        B32,
        B2,
        map!(|a, b| a.wrapping_sub(b)),
        map!(|a, b| (a as i32).saturating_sub(b as i32) as u32),
    ),
    carry("v_add_co_u32", MaskIn::No, carries!(|a, b, _c| a + b)),
    carry("v_sub_co_u32", MaskIn::No, carries!(|a, b, _c| a.wrapping_sub(b))),
    carry("v_subrev_co_u32", MaskIn::No, carries!(|a, b, _c| b.wrapping_sub(a))),
    carry("v_addc_co_u32", MaskIn::Operand, carries!(|a, b, c| a + b + c)),
    carry(
        "v_subb_co_u32",
        MaskIn::Operand,
        carries!(|a, b, c| a.wrapping_sub(b).wrapping_sub(c)),
    ),
    carry(
        "v_subbrev_co_u32",
        MaskIn::Operand,
        carries!(|a, b, c| b.wrapping_sub(a).wrapping_sub(c)),
    ),
    valu("v_mul_lo_u32", B32, B2, map!(|a, b| a.wrapping_mul(b))),
    valu(
        "v_mul_hi_u32",
        B32,
        B2,
        map!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
    ),
    valu(
        "v_mul_hi_i32",
        B32,
        B2,
        map!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
    ),
    valu("v_mul_u32_u24", B32, B2, map!(|a, b| u24(a).wrapping_mul(u24(b)))),
    valu(
        "v_mul_i32_i24",
        B32,
        B2,
        map!(|a, b| i24(a).wrapping_mul(i24(b)) as u32),
    ),
    valu(
        "v_mul_hi_u32_u24",
        B32,
        B2,
        map!(|a, b| ((u64::from(u24(a)) * u64::from(u24(b))) >> 32) as u32),
    ),
    valu(
        "v_mul_hi_i32_i24",
        B32,
        B2,
        map!(|a, b| ((i64::from(i24(a)) * i64::from(i24(b))) >> 32) as u32),
    ),
    valu(
        "v_mad_u32_u24",
        B32,
        B3,
        map!(|a, b, c| u24(a).wrapping_mul(u24(b)).wrapping_add(c)),
    ),
    valu(
        "v_mad_i32_i24",
        B32,
        B3,
        map!(|a, b, c| (i24(a).wrapping_mul(i24(b)) as u32).wrapping_add(c)),
    ),
    vector(
        "v_mad_u64_u32",
        VectorOp {
            target: Some(B64),
            sources: &[B32, B32, B64],
            rule: Rule::Low,
            mask_out: true,
            kernel: kernel!(|input, out| {
                let mut flags = [0_u8; 64];
                for l in 0..64 {
                    let product = u64::from(input.r[0][l]) * u64::from(input.r[1][l]);
                    let (sum, over) = product.overflowing_add(wide(input.r[2], input.r[3], l));
                    put_wide(&mut out.r, l, sum);
                    flags[l] = u8::from(over);
                }
                out.mask = pack(&flags);
            }),
            ..PLAIN
        },
    ),
    valu("v_min_u32", B32, B2, map!(|a, b| a.min(b))),
    valu("v_max_u32", B32, B2, map!(|a, b| a.max(b))),
    valu("v_min_i32", B32, B2, map!(|a, b| (a as i32).min(b as i32) as u32)),
    valu("v_max_i32", B32, B2, map!(|a, b| (a as i32).max(b as i32) as u32)),
    valu("v_med3_u32", B32, B3, map!(|a, b, c| med3(a, b, c))),
    valu(
        "v_med3_i32",
        B32,
        B3,
        map!(|a, b, c| med3(a as i32, b as i32, c as i32) as u32),
    ),
    valu("v_min3_u32", B32, B3, map!(|a, b, c| a.min(b).min(c))),
    valu("v_max3_u32", B32, B3, map!(|a, b, c| a.max(b).max(c))),
    valu(
        "v_min3_i32",
        B32,
        B3,
        map!(|a, b, c| (a as i32).min(b as i32).min(c as i32) as u32),
    ),
    valu(
        "v_max3_i32",
        B32,
        B3,
        map!(|a, b, c| (a as i32).max(b as i32).max(c as i32) as u32),
    ),
    flows(valu("v_and_b32", B32, B2, map!(|a, b| a & b)), Rule::Moves(0)),
    flows(valu("v_or_b32", B32, B2, map!(|a, b| a | b)), Rule::Moves(0)),
    flows(valu("v_xor_b32", B32, B2, map!(|a, b| a ^ b)), Rule::Moves(0)),
    flows(valu("v_xnor_b32", B32, B2, map!(|a, b| !(a ^ b))), Rule::Moves(0)),
    flows(
        valu("v_and_or_b32", B32, B3, map!(|a, b, c| (a & b) | c)),
        Rule::Moves(0),
    ),
    flows(valu("v_or3_b32", B32, B3, map!(|a, b, c| a | b | c)), Rule::Moves(0)),
    valu("v_xad_u32", B32, B3, map!(|a, b, c| (a ^ b).wrapping_add(c))),
    valu("v_add3_u32", B32, B3, map!(|a, b, c| a.wrapping_add(b).wrapping_add(c))),
    valu(
        "v_lshl_add_u32",
        B32,
        B3,
        map!(|a, b, c| (a << (b & 31)).wrapping_add(c)),
    ),
    valu("v_add_lshl_u32", B32, B3, map!(|a, b, c| a.wrapping_add(b) << (c & 31))),
    flows(
        valu("v_lshl_or_b32", B32, B3, map!(|a, b, c| (a << (b & 31)) | c)),
        Rule::Moves(0b10),
    ),
    valu(
        "v_lshl_add_u64",
        B64,
        &[B64, B32, B64],
        kernel!(|input, out| {
            for l in 0..64 {
                let shifted = wide(input.r[0], input.r[1], l) << (input.r[2][l] & 7);
                let value = shifted.wrapping_add(wide(input.r[3], input.r[4], l));
                put_wide(&mut out.r, l, value);
            }
        }),
    ),
    flows(
        valu("v_lshlrev_b32", B32, B2, map!(|a, b| b << (a & 31))),
        Rule::Moves(0b1),
    ),
    flows(
        valu("v_lshrrev_b32", B32, B2, map!(|a, b| b >> (a & 31))),
        Rule::Moves(0b1),
    ),
    flows(
        valu("v_ashrrev_i32", B32, B2, map!(|a, b| ((b as i32) >> (a & 31)) as u32)),
        Rule::Moves(0b1),
    ),
    flows(
        valu("v_lshlrev_b64", B64, SHIFT, shift64!(|a, by| a << by)),
        Rule::Moves(0b1),
    ),
    flows(
        valu("v_lshrrev_b64", B64, SHIFT, shift64!(|a, by| a >> by)),
        Rule::Moves(0b1),
    ),
    flows(
        valu("v_ashrrev_i64", B64, SHIFT, shift64!(|a, by| ((a as i64) >> by) as u64)),
        Rule::Moves(0b1),
    ),
    flows(
        valu(
            "v_bfe_u32",
            B32,
            B3,
            map!(|a, b, c| (a >> (b & 31)) & ((1_u32 << (c & 31)) - 1)),
        ),
        Rule::Moves(0b110),
    ),
    flows(
        valu(
            "v_bfe_i32",
            B32,
            B3,
            map!(|a, b, c| {
                // The field's sign is its top bit, or the operand's sign if the field extends
                // beyond the operand.
                let (offset, width) = (b & 31, c & 31);
                let moved = (a as i32) >> offset;
                let empty = 32 - width;
                if width == 0 {
                    0
                } else {
                    ((moved << (empty & 31)) >> (empty & 31)) as u32
                }
            }),
        ),
        Rule::Moves(0b110),
    ),
    flows(
        valu("v_bfi_b32", B32, B3, map!(|a, b, c| (a & b) | (!a & c))),
        Rule::Moves(0),
    ),
    valu("v_bfm_b32", B32, B2, map!(|a, b| ((1_u32 << (a & 31)) - 1) << (b & 31))),
    flows(
        valu(
            "v_alignbit_b32",
            B32,
            B3,
            map!(|a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32),
        ),
        Rule::Moves(0b100),
    ),
    flows(
        valu(
            "v_alignbyte_b32",
            B32,
            B3,
            map!(|a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32),
        ),
        Rule::Moves(0b100),
    ),
    flows(
        valu("v_perm_b32", B32, B3, map!(|a, b, c| perm(a, b, c))),
        Rule::Moves(0b100),
    ),
    vector(
        "v_cndmask_b32",
        VectorOp {
            // neg and abs apply to its sources as to f32.
            target: Some(B32),
            sources: &[F32, F32],
            mask_in: MaskIn::Operand,
            rule: Rule::Moves(0),
            kernel: |input, out| {
                out.r[0] = *input.r[0];
                blend(&mut out.r[0], input.r[1], input.mask);
            },
            ..PLAIN
        },
    ),
    clamps(
        "v_mad_u32_u16",
        B32,
        &[B16, B16, B32],
        map!(|a, b, c| ((a & 0xffff) * (b & 0xffff)).wrapping_add(c)),
        map!(|a, b, c| ((a & 0xffff) * (b & 0xffff)).saturating_add(c)),
    ),
    clamps(
        "v_mad_i32_i16",
        B32,
        &[B16, B16, B32],
        map!(|a, b, c| (i32::from(a as i16) * i32::from(b as i16)).wrapping_add(c as i32) as u32),
        map!(|a, b, c| (i32::from(a as i16) * i32::from(b as i16)).saturating_add(c as i32) as u32),
    ),
    vector(
        "v_mad_i64_i32",
        VectorOp {
            target: Some(B64),
            sources: &[B32, B32, B64],
            rule: Rule::Low,
            mask_out: true,
            kernel: kernel!(|input, out| {
                let mut flags = [0_u8; 64];
                for l in 0..64 {
                    let product = i64::from(input.r[0][l] as i32) * i64::from(input.r[1][l] as i32);
                    let addend = wide(input.r[2], input.r[3], l) as i64;
                    let sum = product.wrapping_add(addend) as u64;
                    put_wide(&mut out.r, l, sum);
                    // The sign of the 65-bit sum, its bit 64
                    flags[l] = u8::from(i128::from(product) + i128::from(addend) < 0);
                }
                out.mask = pack(&flags);
            }),
            ..PLAIN
        },
    ),
];
