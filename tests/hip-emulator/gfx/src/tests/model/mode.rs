//! Rounding by exact arithmetic, and denormals of operands and results by their types, for each
//! MODE.

use super::{
    Lane,
    Result::{self, Bits, NaN},
    exact::{DOUBLE, Exact, Format, HALF, SINGLE},
    s, u,
};
use crate::table::Ty;

/// Returns true if an opcode's float operands and result obey the denormal fields. Moves and
/// classes treat bits, and conversions to 8-bit floats have their own rules.
fn obeys(name: &str) -> bool {
    let float = ["f16", "f32", "f64"].iter().any(|ty| name.contains(ty));
    let bits = [
        "v_cmp_class",
        "v_cmp_f_",
        "v_cmp_tru_",
        "v_cvt_pk_fp8",
        "v_cvt_pk_bf8",
        "v_pack_b32",
        "v_cndmask",
    ];
    float && !bits.iter().any(|prefix| name.starts_with(prefix))
}

fn format(ty: Ty) -> Option<Format> {
    match ty {
        Ty::F16 | Ty::PkF16 => Some(HALF),
        Ty::F32 | Ty::PkF32 | Ty::Mix => Some(SINGLE),
        Ty::F64 => Some(DOUBLE),
        _ => None,
    }
}

/// Flushes an operand (`side` 0) or result (1) of a type.
fn flushed(value: u64, ty: Ty, mode: u32, side: u32) -> u64 {
    let Some(format) = format(ty) else { return value };
    let field = if format.bits == 32 { 4 } else { 6 };
    if mode >> (field + side) & 1 != 0 {
        return value;
    }
    let parts = if ty.packed() { 2 } else { 1 };
    let ones = u64::MAX >> (64 - format.bits);
    (0..parts).fold(value, |value, part| {
        let shift = part * format.bits;
        let bits = value >> shift & ones;
        if format.is_denormal(bits) {
            value & !(ones << shift) | (bits & format.sign()) << shift
        } else {
            value
        }
    })
}

/// Returns the result of a base mnemonic in a mode (its low eight bits, as in the register); `None`
/// if the model does not know it.
pub(in crate::tests) fn result(
    name: &str,
    lane: Lane,
    sources: &[Ty],
    target: Option<Ty>,
    mode: u32,
) -> Option<Result> {
    if !obeys(name) {
        return super::ieee(name, lane);
    }
    let mut lane = lane;
    for (value, &ty) in lane.s.iter_mut().zip(sources) {
        *value = flushed(*value, ty, mode, 0);
    }
    let result = rounded(name, lane, mode).or_else(|| super::ieee(name, lane))?;
    Some(match (result, target) {
        (Bits(bits), Some(ty)) => Bits(flushed(bits, ty, mode, 1)),
        (Result::Flag(bits, flag), Some(ty)) => Result::Flag(flushed(bits, ty, mode, 1), flag),
        (Result::Near { value, bits, ulps }, Some(ty)) => {
            // A denormal result of an approximation
            let least = match bits {
                16 => 2_f64.powi(-14),
                32 => 2_f64.powi(-126),
                _ => f64::MIN_POSITIVE,
            };
            let flushes = flushed(1, ty, mode, 1) == 0;
            // A value that is 0 except for the model's rounding errors stays near 0.
            if flushes && value.abs() < least && (value.abs() > 1e-15 || value == 0.0) {
                Bits(if value.is_sign_negative() { 1 << (bits - 1) } else { 0 })
            } else {
                Result::Near { value, bits, ulps }
            }
        }
        (result, _) => result,
    })
}

/// Computes opcodes that round, on finite operands.
fn rounded(name: &str, lane: Lane, mode: u32) -> Option<Result> {
    let name = name.strip_prefix("v_")?;
    let op = match name {
        "fmac_f32" | "fmaak_f32" | "fmamk_f32" | "fma_mix_f32" => "fma_f32",
        "fmac_f64" => "fma_f64",
        "pk_fmac_f16" => "pk_fma_f16",
        "fma_legacy_f16" => "fma_f16",
        other => other,
    };
    let direction = |format: Format| if format.bits == 32 { mode & 3 } else { mode >> 2 & 3 };
    let convert = |value: Exact, format: Format, negative: bool| Bits(value.round(format, direction(format), negative));
    let a = lane.s[0];
    match op {
        "cvt_f32_i32" => return Some(convert(Exact::integer(s(a, 32)), SINGLE, false)),
        "cvt_f32_u32" => return Some(convert(Exact::integer(u(a, 32)), SINGLE, false)),
        "cvt_f16_i16" => return Some(convert(Exact::integer(s(a, 16)), HALF, false)),
        "cvt_f16_u16" => return Some(convert(Exact::integer(u(a, 16)), HALF, false)),
        "cvt_f16_f32" => return Some(convert(Exact::of(a, SINGLE)?, HALF, a & SINGLE.sign() != 0)),
        "cvt_f32_f64" => return Some(convert(Exact::of(a, DOUBLE)?, SINGLE, a & DOUBLE.sign() != 0)),
        "fma_mixlo_f16" | "fma_mixhi_f16" => {
            let Bits(single) = operation("fma", lane.s, SINGLE, mode & 3, lane.mask)? else {
                return None;
            };
            return Some(convert(Exact::of(single, SINGLE)?, HALF, single & SINGLE.sign() != 0));
        }
        "mul_legacy_f32" if [lane.s[0], lane.s[1]].iter().any(|v| v & 0x7fff_ffff == 0) => return Some(Bits(0)),
        "mul_legacy_f32" => return operation("mul", lane.s, SINGLE, mode & 3, false),
        _ => {}
    }
    let (operation_name, ty) = op.rsplit_once('_')?;
    let format = match ty {
        "f16" => HALF,
        "f32" => SINGLE,
        "f64" => DOUBLE,
        _ => return None,
    };
    let Some(packed) = operation_name.strip_prefix("pk_") else {
        return operation(operation_name, lane.s, format, direction(format), lane.mask);
    };
    if !["add", "mul", "fma"].contains(&packed) {
        return None;
    }
    let mut value = 0;
    for shift in [0, format.bits] {
        let part = lane.s.map(|v| v >> shift);
        let whole = Lane { s: part, ..lane };
        let result = operation(packed, part, format, direction(format), false)
            .or_else(|| super::ieee(&format!("v_{packed}_{ty}"), whole))?;
        value |= match result {
            Bits(bits) => bits << shift,
            // Any quiet NaN
            NaN(_) => (format.sign() - 1) << shift,
            _ => return None,
        };
    }
    Some(Bits(value))
}

fn operation(name: &str, operands: [u64; 3], format: Format, direction: u32, mask: bool) -> Option<Result> {
    let ones = u64::MAX >> (64 - format.bits);
    let bits = operands.map(|v| v & ones);
    let negative = bits.map(|v| v & format.sign() != 0);
    let [a, b, c] = bits.map(|v| Exact::of(v, format));
    // The sign of a zero sum: that of both operands, otherwise + except when rounding downward.
    let zero = |x: bool, y: bool| if x == y { x } else { direction == 2 };
    let sum = |x: Exact, y: Exact, signs: [bool; 2]| {
        let both = x.is_zero() && y.is_zero();
        let sign = if both { zero(signs[0], signs[1]) } else { direction == 2 };
        x.plus(&y).round(format, direction, sign)
    };
    let minus = Exact::integer(-1);
    Some(Bits(match name {
        "add" => sum(a?, b?, [negative[0], negative[1]]),
        "sub" => sum(a?, b?.times(&minus), [negative[0], !negative[1]]),
        "subrev" => sum(b?, a?.times(&minus), [negative[1], !negative[0]]),
        "mul" => a?.times(&b?).round(format, direction, negative[0] != negative[1]),
        "fma" | "div_fmas" => {
            let (product, c) = (a?.times(&b?), c?);
            let bits = sum(product, c, [negative[0] != negative[1], negative[2]]);
            if name == "fma" || !mask {
                return Some(Bits(bits));
            }
            let step = if format.bits == 32 { 64 } else { 128 };
            let large = bits_of_two(format) <= (operands[2] & ones & !format.sign());
            let by = if large { step } else { -step };
            let Some(value) = Exact::of(bits, format) else {
                return Some(Bits(bits));
            };
            value.scaled(by).round(format, direction, bits & format.sign() != 0)
        }
        "ldexp" => {
            let by = if format.bits == 16 {
                s(operands[1], 16)
            } else {
                s(operands[1], 32)
            };
            a?.scaled((by as i64).clamp(-5000, 5000))
                .round(format, direction, negative[0])
        }
        _ => return None,
    }))
}

fn bits_of_two(format: Format) -> u64 {
    Exact::integer(2).round(format, 0, false)
}
