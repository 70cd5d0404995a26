//! f32 arithmetic.

use rustc_apfloat::{Float, ieee::Single};

use super::{
    entry::{Entry, MaskIn, Obeys, PLAIN, Ty, Ty::*, VectorOp, float, rounds, vector},
    order::f32::{max, med3, min},
    soft::{soft, soft_bits},
};
use crate::lanes::{In, Kernel, Out, kernel, lane, map, map_f32, pack};

const F1: &[Ty] = &[F32];
const F2: &[Ty] = &[F32, F32];
const F3: &[Ty] = &[F32, F32, F32];

/// Builds a `v_fmac`: the destination is the addend.
const fn accumulate(name: &'static str, kernel: Kernel, obeys: Obeys) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(F32),
            sources: F3,
            accumulates: true,
            obeys,
            kernel,
            ..PLAIN
        },
    )
}

const QUIET: u32 = 0x40_0000;

/// Returns the fraction in [0.5, 1) with its sign; zero, infinity and NaN pass, a NaN quieted.
#[inline(always)]
fn frexp_mant(a: f32) -> f32 {
    if a == 0.0 || !a.is_finite() {
        return if a.is_nan() {
            f32::from_bits(a.to_bits() | QUIET)
        } else {
            a
        };
    }
    let bits = if a.is_subnormal() {
        (a * 8_388_608.0).to_bits()
    } else {
        a.to_bits()
    };
    f32::from_bits(bits & 0x807f_ffff | 0x3f00_0000)
}

/// Returns the exponent for the fraction of [`frexp_mant`]; 0 for zero, infinity and NaN.
#[inline(always)]
fn frexp_exp(a: f32) -> i32 {
    if a == 0.0 || !a.is_finite() {
        return 0;
    }
    let (bits, less) = if a.is_subnormal() {
        ((a * 8_388_608.0).to_bits(), 23)
    } else {
        (a.to_bits(), 0)
    };
    (bits >> 23 & 0xff) as i32 - 126 - less
}

/// Returns a·2^b, rounded once.
#[inline(always)]
fn ldexp(a: f32, b: i32) -> f32 {
    // The f64 product is exact except at the ends of f64's exponent range, far outside f32's: one
    // rounding.
    let power = f64::from_bits(((b.clamp(-400, 400) + 1023) as u64) << 52);
    (f64::from(a) * power) as f32
}

/// Flushes denormals, as the hardware's approximations do whatever MODE says.
#[inline(always)]
fn flush(a: f32) -> f32 {
    if a.is_subnormal() { 0.0_f32.copysign(a) } else { a }
}

/// Returns the sine of a number of turns plus `quarters`; exact where it is 0 or 1. Beyond 256
/// turns the hardware uses 0 turns.
#[inline(always)]
pub(super) fn turns(a: f32, quarters: i32) -> f32 {
    let a = f64::from(a);
    let turns = if a.abs() > 256.0 && a.is_finite() { 0.0 } else { a };
    let nearest = (4.0 * turns).round_ties_even();
    let angle = (turns - nearest / 4.0) * std::f64::consts::TAU;
    let value = match (nearest as i32).wrapping_add(quarters) & 3 {
        0 => angle.sin(),
        1 => angle.cos(),
        2 => -angle.sin(),
        _ => -angle.cos(),
    };
    value as f32
}

const ADD: Obeys = soft!(single, |r, a, b, _c| a.add_r(b, r).value);
const SUB: Obeys = soft!(single, |r, a, b, _c| a.sub_r(b, r).value);
const SUBREV: Obeys = soft!(single, |r, a, b, _c| b.sub_r(a, r).value);
const MUL: Obeys = soft!(single, |r, a, b, _c| a.mul_r(b, r).value);
const MUL_LEGACY: Obeys = soft!(single, |r, a, b, _c| if a.is_zero() || b.is_zero() {
    Single::ZERO
} else {
    a.mul_r(b, r).value
});
const FMA: Obeys = soft!(single, |r, a, b, c| a.mul_add_r(b, c, r).value);
/// The fused product is rounded once: if it is scaled, at its scaled magnitude.
const DIV_FMAS: Obeys = {
    fn kernel(input: &In<'_>, out: &mut Out) {
        let round = input.mode.round(false);
        for l in 0..64 {
            let [a, b, c] = [0, 1, 2].map(|n| Single::from_bits(input.r[n][l].into()));
            let by = if f32::from_bits(input.r[2][l]).abs() >= 2.0 {
                64
            } else {
                -64
            };
            let value = a.mul_add_r(b, c, round).value;
            let scaled = if lane(input.mask, l) != 0 {
                value.scalbn_r(by, round)
            } else {
                value
            };
            out.r[0][l] = scaled.to_bits() as u32;
        }
    }
    Obeys::Rounding(kernel)
};
const LDEXP: Obeys = soft_bits!(false, |r, a, _b| {
    let value = Single::from_bits(u128::from(a as u32));
    value.scalbn_r((a >> 32) as i32, r).to_bits() as u64
});

pub(super) const OPS: &[Entry] = &[
    rounds("v_add_f32", F32, F2, map_f32!(|a, b| a + b), ADD),
    rounds("v_sub_f32", F32, F2, map_f32!(|a, b| a - b), SUB),
    rounds("v_subrev_f32", F32, F2, map_f32!(|a, b| b - a), SUBREV),
    rounds("v_mul_f32", F32, F2, map_f32!(|a, b| a * b), MUL),
    rounds(
        "v_mul_legacy_f32",
        F32,
        F2,
        map_f32!(|a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        MUL_LEGACY,
    ),
    float("v_min_f32", F32, F2, map!(|a, b| min(a, b))),
    float("v_max_f32", F32, F2, map!(|a, b| max(a, b))),
    float("v_min3_f32", F32, F3, map!(|a, b, c| min(min(a, b), c))),
    float("v_max3_f32", F32, F3, map!(|a, b, c| max(max(a, b), c))),
    float("v_med3_f32", F32, F3, map!(|a, b, c| med3(a, b, c))),
    rounds("v_fma_f32", F32, F3, map_f32!(|a, b, c| a.mul_add(b, c)), FMA),
    accumulate("v_fmac_f32", map_f32!(|a, b, c| a.mul_add(b, c)), FMA),
    // The text has the literal as a separate operand.
    rounds("v_fmaak_f32", F32, F3, map_f32!(|a, b, c| a.mul_add(b, c)), FMA),
    rounds("v_fmamk_f32", F32, F3, map_f32!(|a, k, c| a.mul_add(k, c)), FMA),
    float("v_ceil_f32", F32, F1, map_f32!(|a| a.ceil())),
    float("v_floor_f32", F32, F1, map_f32!(|a| a.floor())),
    float("v_trunc_f32", F32, F1, map_f32!(|a| a.trunc())),
    float("v_rndne_f32", F32, F1, map_f32!(|a| a.round_ties_even())),
    float(
        "v_fract_f32",
        F32,
        F1,
        // Below 1, even where rounding would give 1
        map_f32!(|a| {
            let fraction = a - a.floor();
            if fraction >= 1.0 {
                f32::from_bits(0x3f7f_ffff)
            } else {
                fraction
            }
        }),
    ),
    // Approximations on the hardware (1 ULP); correctly rounded here.
    float("v_rcp_f32", F32, F1, map_f32!(|a| flush(1.0 / flush(a)))),
    float("v_rcp_iflag_f32", F32, F1, map_f32!(|a| flush(1.0 / flush(a)))),
    float(
        "v_rsq_f32",
        F32,
        F1,
        map_f32!(|a| (1.0 / f64::from(flush(a)).sqrt()) as f32),
    ),
    float("v_sqrt_f32", F32, F1, map_f32!(|a| flush(a).sqrt())),
    float("v_exp_f32", F32, F1, map_f32!(|a| flush(f64::from(a).exp2() as f32))),
    float("v_log_f32", F32, F1, map_f32!(|a| f64::from(flush(a)).log2() as f32)),
    float("v_sin_f32", F32, F1, map_f32!(|a| turns(flush(a), 0))),
    float("v_cos_f32", F32, F1, map_f32!(|a| turns(flush(a), 1))),
    rounds(
        "v_ldexp_f32",
        F32,
        &[F32, B32],
        map!(|a, b| ldexp(f32::from_bits(a), b as i32).to_bits()),
        LDEXP,
    ),
    float("v_frexp_mant_f32", F32, F1, map_f32!(|a| frexp_mant(a))),
    float(
        "v_frexp_exp_i32_f32",
        B32,
        F1,
        map!(|a| frexp_exp(f32::from_bits(a)) as u32),
    ),
    // Division: scale, refine, fix up (CDNA3 ISA, V_DIV_SCALE_F32 and following).
    vector(
        "v_div_scale_f32",
        VectorOp {
            target: Some(F32),
            sources: F3,
            mask_out: true,
            obeys: Obeys::Denormals,
            kernel: kernel!(|input, out| {
                let mut flags = [0_u8; 64];
                for l in 0..64 {
                    let s = [input.r[0][l], input.r[1][l], input.r[2][l]];
                    let (value, flag) = div_scale(s);
                    out.r[0][l] = value;
                    flags[l] = u8::from(flag);
                }
                out.mask = pack(&flags);
            }),
            ..PLAIN
        },
    ),
    vector(
        "v_div_fmas_f32",
        VectorOp {
            target: Some(F32),
            sources: F3,
            mask_in: MaskIn::Vcc,
            obeys: DIV_FMAS,
            kernel: kernel!(|input, out| {
                for l in 0..64 {
                    let [a, b, c] = [input.r[0][l], input.r[1][l], input.r[2][l]].map(f32::from_bits);
                    let value = a.mul_add(b, c);
                    let scale = f32::from_bits(if c.abs() >= 2.0 {
                        (127 + 64) << 23
                    } else {
                        (127 - 64) << 23
                    });
                    out.r[0][l] = if lane(input.mask, l) != 0 { value * scale } else { value }.to_bits();
                }
            }),
            ..PLAIN
        },
    ),
    float("v_div_fixup_f32", F32, F3, map!(|q, d, n| div_fixup(q, d, n))),
];

const fn exponent(bits: u32) -> i32 {
    (bits >> 23 & 0xff) as i32
}

/// Scales the operand that the first source repeats (denominator, or numerator of s2/s1) where the
/// division would leave f32's range.
#[inline(always)]
fn div_scale([s0, s1, s2]: [u32; 3]) -> (u32, bool) {
    const UP: f32 = 18_446_744_073_709_551_616.0; // 2^64
    let (value, d, n) = (f32::from_bits(s0), f32::from_bits(s1), f32::from_bits(s2));
    let denormal = |f: f32| f.is_subnormal();
    if n == 0.0 || d == 0.0 {
        (f32::NAN.to_bits(), false)
    } else if exponent(s2) - exponent(s1) >= 96 {
        // The quotient is near overflow: the denominator is scaled up.
        (if s0 == s1 { (value * UP).to_bits() } else { s0 }, true)
    } else if denormal(d) {
        ((value * UP).to_bits(), false)
    } else if denormal(1.0 / d) && denormal(n / d) {
        // The denominator is scaled down. Some editions of the ISA print scaling up, which would
        // leave the range.
        (if s0 == s1 { (value / UP).to_bits() } else { s0 }, true)
    } else if denormal(1.0 / d) {
        ((value / UP).to_bits(), false)
    } else if denormal(n / d) {
        (if s0 == s2 { (value * UP).to_bits() } else { s0 }, true)
    } else if exponent(s2) <= 23 {
        // The numerator is tiny.
        ((value * UP).to_bits(), false)
    } else {
        (s0, false)
    }
}

/// Handles the special cases of n/d; otherwise returns the refined quotient with the right sign.
///
/// The refinement of an overflowing quotient multiplies infinities: it yields an infinity or NaN,
/// and the hardware makes it an infinity. The ISA's text tests the denominator's exponent in that
/// branch, where it cannot be 255 any more: earlier branches have handled that.
#[inline(always)]
fn div_fixup(q: u32, d: u32, n: u32) -> u32 {
    let (df, nf) = (f32::from_bits(d), f32::from_bits(n));
    let sign = (d ^ n) & 0x8000_0000;
    if nf.is_nan() {
        n | QUIET
    } else if df.is_nan() {
        d | QUIET
    } else if (nf == 0.0 && df == 0.0) || (nf.is_infinite() && df.is_infinite()) {
        0xffc0_0000
    } else if df == 0.0 || nf.is_infinite() {
        sign | 0x7f80_0000
    } else if df.is_infinite() || nf == 0.0 {
        sign
    } else if exponent(n) - exponent(d) < -150 {
        // Underflow
        sign
    } else if exponent(q) == 255 {
        // Overflow
        sign | 0x7f80_0000
    } else {
        q & 0x7fff_ffff | sign
    }
}
