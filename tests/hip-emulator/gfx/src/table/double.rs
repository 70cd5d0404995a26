//! f64 arithmetic.

use rustc_apfloat::{Float, ieee::Double};

use super::{
    entry::{Entry, MaskIn, Obeys, PLAIN, Ty, Ty::*, VectorOp, float, rounds, vector},
    order::f64::{max, min},
    soft::{soft, soft_bits},
};
use crate::lanes::{In, Out, kernel, lane, map_f64, map64, pack, put_wide, wide};

const D1: &[Ty] = &[F64];
const D2: &[Ty] = &[F64, F64];
const D3: &[Ty] = &[F64, F64, F64];

const QUIET: u64 = 1 << 51;
const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;

#[inline(always)]
const fn exponent(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

/// Returns 2^n for exponents of normal numbers.
#[inline(always)]
const fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// Returns the fraction in [0.5, 1) with its sign, and the exponent; zero, infinity and NaN pass
/// with exponent 0.
#[inline(always)]
fn frexp(a: f64) -> (f64, i32) {
    if a == 0.0 || !a.is_finite() {
        return (
            if a.is_nan() {
                f64::from_bits(a.to_bits() | QUIET)
            } else {
                a
            },
            0,
        );
    }
    let (bits, less) = if a.is_subnormal() {
        ((a * power(54)).to_bits(), 54)
    } else {
        (a.to_bits(), 0)
    };
    let fraction = f64::from_bits(bits & !INFINITY | 0x3fe << 52);
    (fraction, exponent(bits) - 1022 - less)
}

/// The first 1201 bits of the fraction 2/π.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// Returns the 53 bits of 2/π that reduce an angle, for a segment that is counted from a position
/// given by the angle's exponent.
fn two_over_pi(angle: u64, segment: u32) -> f64 {
    let exponent = exponent(angle);
    let skipped = 53 * segment as i32 + (exponent - 1077).max(0);
    let word = |index: i32| TWO_OVER_PI.get(index as usize).copied().unwrap_or(0);
    let pair = u128::from(word(skipped / 64)) << 64 | u128::from(word(skipped / 64 + 1));
    let bits = (pair << (skipped % 64) >> 75) as u64;
    // Scaled up where the product with the angle would lose digits to denormals.
    let scale = if exponent >= 1968 { 128 } else { 0 };
    ldexp(bits as f64, scale - 53 - skipped)
}

/// Returns a·2^b, rounded once.
#[inline(always)]
fn ldexp(a: f64, b: i32) -> f64 {
    let (fraction, exponent) = frexp(a);
    if a == 0.0 || !a.is_finite() {
        return fraction;
    }
    let exponent = exponent.saturating_add(b);
    if exponent > 1024 {
        f64::INFINITY.copysign(a)
    } else if exponent > 0 {
        fraction * 2.0 * power(exponent - 1)
    } else {
        // The first product is exact, down to the smallest normal number; only the second rounds.
        fraction * power(exponent.max(-1021)) * power((exponent + 1021).clamp(-200, 0))
    }
}

/// V_DIV_SCALE_F64: as in `single`, with f64's limits.
#[inline(always)]
fn div_scale(s0: u64, s1: u64, s2: u64) -> (u64, bool) {
    let (value, d, n) = (f64::from_bits(s0), f64::from_bits(s1), f64::from_bits(s2));
    let [up, down] = [128, -128].map(|n| (value * power(n)).to_bits());
    if n == 0.0 || d == 0.0 {
        (f64::NAN.to_bits(), false)
    } else if exponent(s2) - exponent(s1) >= 768 {
        (if s0 == s1 { up } else { s0 }, true)
    } else if d.is_subnormal() {
        (up, false)
    } else if (1.0 / d).is_subnormal() && (n / d).is_subnormal() {
        (if s0 == s1 { down } else { s0 }, true)
    } else if (1.0 / d).is_subnormal() {
        (down, false)
    } else if (n / d).is_subnormal() {
        (if s0 == s2 { up } else { s0 }, true)
    } else if exponent(s2) <= 53 {
        (up, false)
    } else {
        (s0, false)
    }
}

/// V_DIV_FIXUP_F64: as in `single`.
#[inline(always)]
fn div_fixup(q: u64, d: u64, n: u64) -> u64 {
    let (df, nf) = (f64::from_bits(d), f64::from_bits(n));
    let sign = (d ^ n) & SIGN;
    if nf.is_nan() {
        n | QUIET
    } else if df.is_nan() {
        d | QUIET
    } else if (nf == 0.0 && df == 0.0) || (nf.is_infinite() && df.is_infinite()) {
        SIGN | INFINITY | QUIET
    } else if df == 0.0 || nf.is_infinite() {
        sign | INFINITY
    } else if df.is_infinite() || nf == 0.0 || exponent(n) - exponent(d) < -1075 {
        sign
    } else if exponent(q) == 0x7ff {
        sign | INFINITY
    } else {
        q & !SIGN | sign
    }
}

const FMA: Obeys = soft!(double, |r, a, b, c| a.mul_add_r(b, c, r).value);
const LDEXP: Obeys = soft_bits!(true, |r, a, b| {
    Double::from_bits(a.into()).scalbn_r(b as i32, r).to_bits() as u64
});
/// As in `single`.
const DIV_FMAS: Obeys = {
    fn kernel(input: &In<'_>, out: &mut Out) {
        let round = input.mode.round(true);
        for l in 0..64 {
            let sources = [0, 2, 4].map(|n| wide(input.r[n], input.r[n + 1], l));
            let [a, b, c] = sources.map(|bits| Double::from_bits(bits.into()));
            let by = if f64::from_bits(sources[2]).abs() >= 2.0 {
                128
            } else {
                -128
            };
            let value = a.mul_add_r(b, c, round).value;
            let scaled = if lane(input.mask, l) != 0 {
                value.scalbn_r(by, round)
            } else {
                value
            };
            let bits = scaled.to_bits() as u64;
            put_wide(&mut out.r, l, bits);
        }
    }
    Obeys::Rounding(kernel)
};

pub(super) const OPS: &[Entry] = &[
    rounds(
        "v_add_f64",
        F64,
        D2,
        map_f64!(|a, b| a + b),
        soft!(double, |r, a, b, _c| a.add_r(b, r).value),
    ),
    rounds(
        "v_mul_f64",
        F64,
        D2,
        map_f64!(|a, b| a * b),
        soft!(double, |r, a, b, _c| a.mul_r(b, r).value),
    ),
    float("v_min_f64", F64, D2, map64!(|a, b| min(a, b))),
    float("v_max_f64", F64, D2, map64!(|a, b| max(a, b))),
    rounds("v_fma_f64", F64, D3, map_f64!(|a, b, c| a.mul_add(b, c)), FMA),
    vector(
        "v_fmac_f64",
        VectorOp {
            target: Some(F64),
            sources: D3,
            accumulates: true,
            obeys: FMA,
            kernel: map_f64!(|a, b, c| a.mul_add(b, c)),
            ..PLAIN
        },
    ),
    float("v_ceil_f64", F64, D1, map_f64!(|a| a.ceil())),
    float("v_floor_f64", F64, D1, map_f64!(|a| a.floor())),
    float("v_trunc_f64", F64, D1, map_f64!(|a| a.trunc())),
    float("v_rndne_f64", F64, D1, map_f64!(|a| a.round_ties_even())),
    float(
        "v_fract_f64",
        F64,
        D1,
        map_f64!(|a| {
            // minNum, for a NaN or infinity stays one
            let fraction = a - a.floor();
            if fraction >= 1.0 {
                f64::from_bits(0x3fef_ffff_ffff_ffff)
            } else {
                fraction
            }
        }),
    ),
    // Approximations on the hardware (2^29 ULP); correctly rounded here.
    float("v_rcp_f64", F64, D1, map_f64!(|a| 1.0 / a)),
    float("v_rsq_f64", F64, D1, map_f64!(|a| 1.0 / a.sqrt())),
    float("v_sqrt_f64", F64, D1, map_f64!(|a| a.sqrt())),
    float("v_frexp_mant_f64", F64, D1, map_f64!(|a| frexp(a).0)),
    float(
        "v_frexp_exp_i32_f64",
        B32,
        D1,
        kernel!(|input, out| {
            for l in 0..64 {
                out.r[0][l] = frexp(f64::from_bits(wide(input.r[0], input.r[1], l))).1 as u32;
            }
        }),
    ),
    rounds(
        "v_ldexp_f64",
        F64,
        &[F64, B32],
        kernel!(|input, out| {
            for l in 0..64 {
                let value = f64::from_bits(wide(input.r[0], input.r[1], l));
                let value = ldexp(value, input.r[2][l] as i32).to_bits();
                put_wide(&mut out.r, l, value);
            }
        }),
        LDEXP,
    ),
    float(
        "v_trig_preop_f64",
        F64,
        &[F64, B32],
        kernel!(|input, out| {
            for l in 0..64 {
                let value = two_over_pi(wide(input.r[0], input.r[1], l), input.r[2][l] & 31);
                put_wide(&mut out.r, l, value.to_bits());
            }
        }),
    ),
    vector(
        "v_div_scale_f64",
        VectorOp {
            target: Some(F64),
            sources: D3,
            mask_out: true,
            obeys: Obeys::Denormals,
            kernel: kernel!(|input, out| {
                let mut flags = [0_u8; 64];
                let r = input.r;
                for l in 0..64 {
                    let (value, flag) = div_scale(wide(r[0], r[1], l), wide(r[2], r[3], l), wide(r[4], r[5], l));
                    put_wide(&mut out.r, l, value);
                    flags[l] = u8::from(flag);
                }
                out.mask = pack(&flags);
            }),
            ..PLAIN
        },
    ),
    vector(
        "v_div_fmas_f64",
        VectorOp {
            target: Some(F64),
            sources: D3,
            mask_in: MaskIn::Vcc,
            obeys: DIV_FMAS,
            kernel: kernel!(|input, out| {
                let r = input.r;
                for l in 0..64 {
                    let [a, b, c] = [wide(r[0], r[1], l), wide(r[2], r[3], l), wide(r[4], r[5], l)].map(f64::from_bits);
                    // The scaling is reversed: a large quotient was scaled down, a small one up.
                    let scale = power(if c.abs() >= 2.0 { 128 } else { -128 });
                    let value = a.mul_add(b, c);
                    let value = if lane(input.mask, l) != 0 { value * scale } else { value }.to_bits();
                    put_wide(&mut out.r, l, value);
                }
            }),
            ..PLAIN
        },
    ),
    float("v_div_fixup_f64", F64, D3, map64!(|q, d, n| div_fixup(q, d, n))),
];
