//! f16 arithmetic: computed in f32 and rounded once more (f32's 24 bits suffice for +, −, × and √
//! of 11 bits).

use rustc_apfloat::{
    Float, FloatConvert,
    ieee::{Half, Single},
};

use super::{
    entry::{Entry, Obeys, PLAIN, Ty, Ty::*, VectorOp, float, rounds, vector},
    order::f16::{max, med3, min},
    single::turns,
    soft::{soft, soft_bits},
};
use crate::lanes::{In, Kernel, Out, map, map_f32};

const H1: &[Ty] = &[F16];
const H2: &[Ty] = &[F16, F16];
const H3: &[Ty] = &[F16, F16, F16];

/// Converts the f16 in the low half to f32, exactly.
#[inline(always)]
pub(crate) fn to_f32(half: u32) -> f32 {
    let magnitude = half & 0x7fff;
    // Multiplying by 2^112 rebases the exponent, and also normalises subnormals.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let bits = if magnitude > 0x7c00 {
        scaled.to_bits() | 0x7fc0_0000
    } else if magnitude == 0x7c00 {
        0x7f80_0000
    } else {
        scaled.to_bits()
    };
    f32::from_bits(bits | (half & 0x8000) << 16)
}

/// Converts to f16, to nearest, ties to even.
#[inline(always)]
pub(super) fn from_f32(value: f32) -> u32 {
    let bits = value.to_bits();
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let half = if magnitude > 0x7f80_0000 {
        0x7e00 | magnitude >> 13 & 0x3ff
    } else if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        // Below the smallest normal: the addition rounds at f16's last subnormal bit.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3f00_0000
    } else {
        (magnitude - 0x3800_0000 + 0xfff + (magnitude >> 13 & 1)) >> 13
    };
    sign | half
}

/// Returns a·b + c, rounded once.
#[inline(always)]
pub(super) fn fma(a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (to_f32(a), to_f32(b), to_f32(c));
    // The product is exact; bits that the f64 sum loses are merged into its last bit (rounding to
    // odd), as are those that f32 loses.
    let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = p + c;
    if !sum.is_finite() {
        return from_f32(sum as f32);
    }
    let from_p = sum - c;
    let lost = (p - from_p) + (c - (sum - from_p));
    let mut bits = sum.to_bits();
    if lost != 0.0 && bits & 1 == 0 {
        bits = if (lost > 0.0) == (sum > 0.0) {
            bits + 1
        } else {
            bits - 1
        };
    }
    // Truncated to f32; a nonzero sum is far above f32's smallest number.
    let cut = f32::from_bits((f64::from_bits(bits & !0x1fff_ffff) as f32).to_bits());
    from_f32(f32::from_bits(cut.to_bits() | u32::from(bits & 0x1fff_ffff != 0)))
}

/// Returns the fraction in [0.5, 1) and the exponent; zero, infinity and NaN pass with exponent 0.
#[inline(always)]
fn frexp(a: u32) -> (u32, i32) {
    let (sign, magnitude) = (a & 0x8000, a & 0x7fff);
    if magnitude == 0 || magnitude >= 0x7c00 {
        return (a & 0xffff | if magnitude > 0x7c00 { 0x200 } else { 0 }, 0);
    }
    // Converted to f32, the magnitude is normal.
    let bits = to_f32(magnitude).to_bits();
    (sign | 0x3800 | bits >> 13 & 0x3ff, (bits >> 23) as i32 - 126)
}

/// Returns a·2^b, rounded once.
#[inline(always)]
fn ldexp(a: u32, b: u32) -> u32 {
    // f32 represents every product that is neither 0 nor infinite as f16.
    let power = f32::from_bits(((i32::from(b as i16).clamp(-100, 100) + 127) as u32) << 23);
    from_f32(to_f32(a) * power)
}

/// f16 result of f16 sources.
macro_rules! map_f16 {
    (|$($s:ident),+| $value:expr) => {
        map!(|$($s),+| { $(let $s = to_f32($s);)+ from_f32($value) })
    };
}

/// f16 result of f16 sources, given as bits.
macro_rules! map_h {
    (|$($s:ident),+| $value:expr) => {
        map!(|$($s),+| { $(let $s = $s as u16;)+ let value: u16 = $value; u32::from(value) })
    };
}

/// V_DIV_FIXUP_F16: handles the special cases of n/d; otherwise returns the quotient with the right
/// sign.
#[inline(always)]
fn div_fixup(q: u32, d: u32, n: u32) -> u32 {
    let sign = (d ^ n) & 0x8000;
    let [dm, nm] = [d & 0x7fff, n & 0x7fff];
    if nm > 0x7c00 {
        (n & 0xffff) | 0x200
    } else if dm > 0x7c00 {
        (d & 0xffff) | 0x200
    } else if (nm == 0 && dm == 0) || (nm == 0x7c00 && dm == 0x7c00) {
        0xfe00
    } else if dm == 0 || nm == 0x7c00 {
        sign | 0x7c00
    } else if dm == 0x7c00 || nm == 0 {
        sign
    } else {
        q & 0x7fff | sign
    }
}

const ADD: Obeys = soft!(half, |r, a, b, _c| a.add_r(b, r).value);
const SUB: Obeys = soft!(half, |r, a, b, _c| a.sub_r(b, r).value);
const SUBREV: Obeys = soft!(half, |r, a, b, _c| b.sub_r(a, r).value);
const MUL: Obeys = soft!(half, |r, a, b, _c| a.mul_r(b, r).value);
const FMA: Obeys = soft!(half, |r, a, b, c| a.mul_add_r(b, c, r).value);
const LDEXP: Obeys = soft_bits!(true, |r, a, _b| {
    let value = Half::from_bits(u128::from(a & 0xffff));
    value.scalbn_r(i32::from((a >> 32) as i16), r).to_bits() as u64
});

const MIX: &[Ty] = &[Mix, Mix, Mix];
const MIX_FMA: Obeys = soft!(single, |r, a, b, c| a.mul_add_r(b, c, r).value);
/// The f32 result is rounded again.
const MIX_HALF: Kernel = map!(|a, b, c| {
    let [a, b, c] = [a, b, c].map(f32::from_bits);
    from_f32(a.mul_add(b, c))
});
const MIX_HALF_FMA: Obeys = {
    fn kernel(input: &In<'_>, out: &mut Out) {
        let (round, wide) = (input.mode.round(false), input.mode.round(true));
        for l in 0..64 {
            let [a, b, c] = [0, 1, 2].map(|n| Single::from_bits(input.r[n][l].into()));
            let value = a.mul_add_r(b, c, round).value;
            let half = FloatConvert::<Half>::convert_r(value, wide, &mut false).value;
            out.r[0][l] = half.to_bits() as u32;
        }
    }
    Obeys::Rounding(kernel)
};

/// Builds a VOP3 opcode that keeps the other half of its destination.
const fn keeps(name: &'static str, sources: &'static [Ty], kernel: Kernel, obeys: Obeys) -> Entry {
    vector(
        name,
        VectorOp {
            target: Some(F16),
            sources,
            keeps_high: true,
            obeys,
            kernel,
            ..PLAIN
        },
    )
}

pub(super) const OPS: &[Entry] = &[
    rounds("v_add_f16", F16, H2, map_f16!(|a, b| a + b), ADD),
    rounds("v_sub_f16", F16, H2, map_f16!(|a, b| a - b), SUB),
    rounds("v_subrev_f16", F16, H2, map_f16!(|a, b| b - a), SUBREV),
    rounds("v_mul_f16", F16, H2, map_f16!(|a, b| a * b), MUL),
    float("v_min_f16", F16, H2, map_h!(|a, b| min(a, b))),
    float("v_max_f16", F16, H2, map_h!(|a, b| max(a, b))),
    keeps("v_min3_f16", H3, map_h!(|a, b, c| min(min(a, b), c)), Obeys::Denormals),
    keeps("v_max3_f16", H3, map_h!(|a, b, c| max(max(a, b), c)), Obeys::Denormals),
    keeps("v_med3_f16", H3, map_h!(|a, b, c| med3(a, b, c)), Obeys::Denormals),
    keeps("v_fma_f16", H3, map!(|a, b, c| fma(a, b, c)), FMA),
    rounds("v_fma_legacy_f16", F16, H3, map!(|a, b, c| fma(a, b, c)), FMA),
    float("v_ceil_f16", F16, H1, map_f16!(|a| a.ceil())),
    float("v_floor_f16", F16, H1, map_f16!(|a| a.floor())),
    float("v_trunc_f16", F16, H1, map_f16!(|a| a.trunc())),
    float("v_rndne_f16", F16, H1, map_f16!(|a| a.round_ties_even())),
    float(
        "v_fract_f16",
        F16,
        H1,
        // Below 1, even where rounding would give 1
        map!(|a| {
            let value = to_f32(a);
            let bits = from_f32(value - value.floor());
            if bits == 0x3c00 { 0x3bff } else { bits }
        }),
    ),
    // Approximations on the hardware (0.51 ULP); correctly rounded here.
    float("v_rcp_f16", F16, H1, map_f16!(|a| 1.0 / a)),
    float("v_rsq_f16", F16, H1, map_f16!(|a| 1.0 / a.sqrt())),
    float("v_sqrt_f16", F16, H1, map_f16!(|a| a.sqrt())),
    float("v_exp_f16", F16, H1, map_f16!(|a| f64::from(a).exp2() as f32)),
    float("v_log_f16", F16, H1, map_f16!(|a| f64::from(a).log2() as f32)),
    float("v_sin_f16", F16, H1, map_f16!(|a| turns(a, 0))),
    float("v_cos_f16", F16, H1, map_f16!(|a| turns(a, 1))),
    float("v_frexp_mant_f16", F16, H1, map!(|a| frexp(a).0)),
    float(
        "v_frexp_exp_i16_f16",
        B16,
        H1,
        map!(|a| u32::from(frexp(a).1 as i16 as u16)),
    ),
    rounds("v_ldexp_f16", F16, &[F16, B16], map!(|a, b| ldexp(a, b)), LDEXP),
    keeps(
        "v_div_fixup_f16",
        H3,
        map!(|q, d, n| div_fixup(q, d, n)),
        Obeys::Denormals,
    ),
    float("v_div_fixup_legacy_f16", F16, H3, map!(|q, d, n| div_fixup(q, d, n))),
    rounds("v_fma_mix_f32", F32, MIX, map_f32!(|a, b, c| a.mul_add(b, c)), MIX_FMA),
    keeps("v_fma_mixlo_f16", MIX, MIX_HALF, MIX_HALF_FMA),
    // The driver writes the high half.
    keeps("v_fma_mixhi_f16", MIX, MIX_HALF, MIX_HALF_FMA),
];

#[cfg(test)]
mod tests {
    use ::half::f16;

    use super::{from_f32, to_f32};

    #[test]
    fn conversions_agree_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            let ours = to_f32(bits.into());
            assert!(
                value.is_nan() && ours.is_nan() || ours.to_bits() == value.to_f32().to_bits(),
                "{bits:#x}"
            );
        }
        for bits in (0..=u32::MAX).step_by(997) {
            let value = f32::from_bits(bits);
            let (ours, theirs) = (f16::from_bits(from_f32(value) as u16), f16::from_f32(value));
            assert!(
                ours.is_nan() && theirs.is_nan() || ours.to_bits() == theirs.to_bits(),
                "{bits:#x}"
            );
        }
    }
}
