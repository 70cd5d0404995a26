//! Float arithmetic, to nearest even.

use std::sync::LazyLock;

use num_bigint::{BigInt, BigUint};
use rustc_apfloat::{
    Category, Float, Round,
    ieee::{Double, Half, Single},
};

use super::{
    Lane,
    Result::{self, Bits, Flag, NaN, Near},
    s,
};

const EVEN: Round = Round::NearestTiesToEven;

pub(super) fn result(name: &str, lane: Lane) -> Option<Result> {
    if let Some(rest) = name.strip_prefix("cmp_") {
        let (op, ty) = rest.rsplit_once('_')?;
        return match ty {
            "f16" => compare::<Half>(op, lane, 16),
            "f32" => compare::<Single>(op, lane, 32),
            "f64" => compare::<Double>(op, lane, 64),
            _ => None,
        };
    }
    match name {
        "fmaak_f32" | "fmamk_f32" | "fmac_f32" => return arithmetic::<Single>("fma", lane, 32),
        "fmac_f64" => return arithmetic::<Double>("fma", lane, 64),
        "pk_fmac_f16" => return packed::<Half>("fma", lane, 16),
        "fma_legacy_f16" => return arithmetic::<Half>("fma", lane, 16),
        "div_fixup_legacy_f16" => return divide::<Half>("div_fixup", lane, 16),
        "frexp_exp_i32_f32" => return Some(exponent(Single::from_bits(low(lane.s[0], 32)), 32)),
        "frexp_exp_i32_f64" => return Some(exponent(Double::from_bits(low(lane.s[0], 64)), 32)),
        "frexp_exp_i16_f16" => return Some(exponent(Half::from_bits(low(lane.s[0], 16)), 16)),
        "mul_legacy_f32" => {
            let zero = [lane.s[0], lane.s[1]].iter().any(|v| v & 0x7fff_ffff == 0);
            return if zero {
                Some(Bits(0))
            } else {
                arithmetic::<Single>("mul", lane, 32)
            };
        }
        "trig_preop_f64" => return Some(trig_preop(lane)),
        "rcp_iflag_f32" => return approximate("rcp", lane, 32),
        "fma_mix_f32" => return arithmetic::<Single>("fma", lane, 32),
        _ => {}
    }
    let (op, ty) = name.rsplit_once('_')?;
    if let Some(op) = op.strip_prefix("pk_") {
        return match ty {
            "f16" => packed::<Half>(op, lane, 16),
            "f32" => packed::<Single>(op, lane, 32),
            _ => None,
        };
    }
    let bits = match ty {
        "f16" => 16,
        "f32" => 32,
        "f64" => 64,
        _ => return None,
    };
    let of = match bits {
        16 => arithmetic::<Half>(op, lane, 16).or_else(|| divide::<Half>(op, lane, 16)),
        32 => arithmetic::<Single>(op, lane, 32).or_else(|| divide::<Single>(op, lane, 32)),
        _ => arithmetic::<Double>(op, lane, 64).or_else(|| divide::<Double>(op, lane, 64)),
    };
    of.or_else(|| approximate(op, lane, bits))
}

fn low(value: u64, bits: u32) -> u128 {
    u128::from(value) & ((1 << bits) - 1)
}

/// Returns the bits of a float; all NaNs are equal.
pub(super) fn bits_of<F: Float>(value: F, bits: u32) -> Result {
    if value.is_nan() {
        NaN(bits)
    } else {
        Bits(value.to_bits() as u64)
    }
}

fn quiet<F: Float>(value: F, bits: u32) -> Result {
    let bit = 1 << (F::PRECISION - 2);
    Bits((value.to_bits() as u64 | bit) & (u64::MAX >> (64 - bits)))
}

/// Returns minNum or maxNum in IEEE mode.
fn extreme<F: Float>(a: F, b: F, least: bool) -> F {
    let quieted = |f: F| F::from_bits(f.to_bits() | 1 << (F::PRECISION - 2));
    if a.is_signaling() {
        return quieted(a);
    }
    if b.is_signaling() {
        return quieted(b);
    }
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let below = a < b || (a.is_zero() && b.is_zero() && a.is_negative() && !b.is_negative());
    let same = a.to_bits() == b.to_bits();
    if below == least || same { a } else { b }
}

fn arithmetic<F: Float>(op: &str, lane: Lane, bits: u32) -> Option<Result> {
    let [a, b, c] = lane.s.map(|v| F::from_bits(low(v, bits)));
    let value = match op {
        "add" => a.add_r(b, EVEN).value,
        "sub" => a.sub_r(b, EVEN).value,
        "subrev" => b.sub_r(a, EVEN).value,
        "mul" => a.mul_r(b, EVEN).value,
        "fma" => a.mul_add_r(b, c, EVEN).value,
        "min" | "max" => return Some(Bits(extreme(a, b, op == "min").to_bits() as u64)),
        "min3" | "max3" => {
            let least = op == "min3";
            return Some(Bits(extreme(extreme(a, b, least), c, least).to_bits() as u64));
        }
        "med3" => {
            if a.is_nan() || b.is_nan() || c.is_nan() {
                return Some(Bits(extreme(extreme(a, b, true), c, true).to_bits() as u64));
            }
            // The ISA's definition: the largest is removed, and the larger of the others is the
            // result.
            let largest = extreme(extreme(a, b, false), c, false).to_bits();
            let rest = if a.to_bits() == largest {
                (b, c)
            } else if b.to_bits() == largest {
                (a, c)
            } else {
                (a, b)
            };
            return Some(Bits(extreme(rest.0, rest.1, false).to_bits() as u64));
        }
        "ceil" => a.round_to_integral(Round::TowardPositive).value,
        "floor" => a.round_to_integral(Round::TowardNegative).value,
        "trunc" => a.round_to_integral(Round::TowardZero).value,
        "rndne" => a.round_to_integral(EVEN).value,
        "fract" => {
            let floor = a.round_to_integral(Round::TowardNegative).value;
            let fraction = a.sub_r(floor, EVEN).value;
            let one = F::from_u128(1).value;
            if fraction < one || fraction.is_nan() {
                fraction
            } else {
                F::from_bits(one.to_bits() - 1)
            }
        }
        "ldexp" => {
            let by = if bits == 16 { s(lane.s[1], 16) } else { s(lane.s[1], 32) };
            a.scalbn_r(by as i32, EVEN)
        }
        "frexp_mant" => {
            if a.is_finite_non_zero() {
                a.scalbn_r(-a.ilogb() - 1, EVEN)
            } else {
                a
            }
        }
        _ => return None,
    };
    Some(bits_of(value, bits))
}

/// Returns 53 bits of 2/π, from π by Machin's formula.
fn trig_preop(lane: Lane) -> Result {
    static TWO_OVER_PI: LazyLock<BigUint> = LazyLock::new(|| {
        let one: BigUint = BigUint::from(1_u32) << 1400_u32;
        let arctan_of_one_over = |x: u32| -> BigInt {
            let (mut power, mut sum) = (BigInt::from(one.clone()) / x, BigInt::ZERO);
            for n in 0_i32.. {
                let term: BigInt = &power / (2 * n + 1);
                if term == BigInt::ZERO {
                    break;
                }
                sum += if n % 2 == 0 { term } else { -term };
                power /= x * x;
            }
            sum
        };
        let pi: BigInt = 4 * (4 * arctan_of_one_over(5) - arctan_of_one_over(239));
        (one << 1202_u32) / pi.to_biguint().unwrap()
    });
    let exponent = (lane.s[0] >> 52 & 0x7ff) as i32;
    let shift = 53 * (lane.s[1] & 31) as i32 + if exponent > 1077 { exponent - 1077 } else { 0 };
    let bits = (1148 - shift..=1200 - shift).rev().fold(0_u64, |bits, position| {
        let bit = u64::try_from(position).is_ok_and(|position| TWO_OVER_PI.bit(position));
        bits << 1 | u64::from(bit)
    });
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    bits_of(Double::from_u128(bits.into()).value.scalbn_r(scale, EVEN), 64)
}

fn exponent<F: Float>(a: F, bits: u32) -> Result {
    let exponent = if a.is_finite_non_zero() { a.ilogb() + 1 } else { 0 };
    Bits(exponent as u64 & (u64::MAX >> (64 - bits)))
}

fn packed<F: Float>(op: &str, lane: Lane, bits: u32) -> Option<Result> {
    let mut value = 0;
    for shift in [0, bits] {
        let part = Lane {
            s: lane.s.map(|v| v >> shift),
            ..lane
        };
        // A NaN's payload is not compared: the default NaN represents all.
        value |= match arithmetic::<F>(op, part, bits)? {
            Bits(part) => part << shift,
            _ => (F::NAN.to_bits() as u64) << shift,
        };
    }
    Some(Bits(value))
}

/// Computes a step of a division: scale, fused multiply-add, fix-up.
fn divide<F: Float>(op: &str, lane: Lane, bits: u32) -> Option<Result> {
    let [a, b, c] = lane.s.map(|v| F::from_bits(low(v, bits)));
    let (step, apart, tiny) = if bits == 32 { (64, 96, 23) } else { (128, 768, 53) };
    let fraction = F::PRECISION as u32 - 1;
    let field = |f: F| ((f.to_bits() >> fraction) & ((1 << (bits - 1 - fraction)) - 1)) as i32;
    match op {
        "div_scale" => {
            let (value, d, n) = (a, b, c);
            let by = |exponent| match exponent {
                0 => Bits(value.to_bits() as u64),
                _ => bits_of(value.scalbn_r(exponent, EVEN), bits),
            };
            let same = |other: F| value.to_bits() == other.to_bits();
            let one = F::from_u128(1).value;
            let (reciprocal, quotient) = (one.div_r(d, EVEN).value, n.div_r(d, EVEN).value);
            let (result, flag) = if d.is_zero() || n.is_zero() {
                (NaN(bits), false)
            } else if field(n) - field(d) >= apart {
                (if same(d) { by(step) } else { by(0) }, true)
            } else if d.is_denormal() {
                (by(step), false)
            } else if reciprocal.is_denormal() && quotient.is_denormal() {
                (if same(d) { by(-step) } else { by(0) }, true)
            } else if reciprocal.is_denormal() {
                (by(-step), false)
            } else if quotient.is_denormal() {
                (if same(n) { by(step) } else { by(0) }, true)
            } else if field(n) <= tiny {
                (by(step), false)
            } else {
                (by(0), false)
            };
            Some(match result {
                Bits(bits) => Flag(bits, flag),
                // The flag that accompanies a NaN is not compared.
                other => other,
            })
        }
        "div_fmas" => {
            let value = a.mul_add_r(b, c, EVEN).value;
            let two = F::from_u128(2).value;
            let large = c.abs() >= two;
            let by = if large { step } else { -step };
            Some(bits_of(if lane.mask { value.scalbn_r(by, EVEN) } else { value }, bits))
        }
        "div_fixup" => {
            let (q, d, n) = (a, b, c);
            let negative = d.is_negative() != n.is_negative();
            let signed = |f: F| Bits((if negative { -f } else { f }).to_bits() as u64);
            let kinds = (n.category(), d.category());
            Some(match kinds {
                (Category::NaN, _) => quiet(n, bits),
                (_, Category::NaN) => quiet(d, bits),
                (Category::Zero, Category::Zero) | (Category::Infinity, Category::Infinity) => {
                    Bits((-F::NAN).to_bits() as u64)
                }
                (_, Category::Zero) | (Category::Infinity, _) => signed(F::INFINITY),
                (Category::Zero, _) | (_, Category::Infinity) => signed(F::ZERO),
                // The quotient is below half the smallest number.
                _ if bits == 32 && field(n) - field(d) < -150 => signed(F::ZERO),
                _ if bits == 64 && field(n) - field(d) < -1075 => signed(F::ZERO),
                // The quotient overflowed during the refinement.
                _ if bits != 16 && !q.is_finite() => signed(F::INFINITY),
                _ => signed(q.abs()),
            })
        }
        _ => None,
    }
}

/// Computes the hardware's approximations in f64, by another method than the table's; f32 denormals
/// are flushed.
fn approximate(op: &str, lane: Lane, bits: u32) -> Option<Result> {
    use std::f64::consts::{LN_2, TAU};
    let source = super::convert::to_f64(lane.s[0], bits);
    let denormal = bits == 32 && source != 0.0 && source.abs() < f64::from(f32::MIN_POSITIVE);
    let x = if denormal { 0.0_f64.copysign(source) } else { source };
    let (value, ulps) = match op {
        "rcp" if bits == 64 => return Some(bits_of(reciprocal(lane.s[0]), 64)),
        "sqrt" if bits == 64 => (x.sqrt(), 0.01),
        "rsq" if bits == 64 => {
            // One compensated step of Newton's method, starting from a quotient
            let first = x.sqrt() / x;
            let product = x * first;
            let lost = x.mul_add(first, -product);
            let residual = (-product).mul_add(first, 1.0) - lost * first;
            (first + 0.5 * first * residual, 1.05)
        }
        "rcp" => (1.0 / x, 0.501),
        "sqrt" => ((0.5 * x.ln()).exp(), if bits == 16 { 0.51 } else { 0.501 }),
        "rsq" => (if x == 0.0 { 1.0 / x } else { x.sqrt() / x }, 0.501),
        "exp" => ((x * LN_2).exp(), 0.501),
        "log" => (x.ln() / LN_2, 0.501),
        "sin" | "cos" => {
            let turns = if x.abs() > 256.0 && x.is_finite() { 0.0 } else { x };
            // One period around 0; cos is the sine of a quarter turn more
            let turns = turns - turns.round();
            let turns = if op == "cos" { 0.25 - turns.abs() } else { turns };
            // The sign of a zero of the cosine is arbitrary.
            let value = (turns * TAU).sin();
            (if op == "cos" && value == 0.0 { 1e-300 } else { value }, 0.501)
        }
        _ => return None,
    };
    let value = match op {
        "sqrt" if x == 0.0 || x == f64::INFINITY => x,
        "sqrt" if bits != 64 => {
            // One step of Newton's method after the logarithm's result
            0.5 * (value + x / value)
        }
        "rsq" if x == f64::INFINITY => 0.0,
        "rsq" if x == 0.0 => 1.0 / x,
        _ => value,
    };
    let value = if bits == 32 && value.abs() < f64::from(f32::MIN_POSITIVE) && ["rcp", "exp"].contains(&op) {
        0.0_f64.copysign(value)
    } else {
        value
    };
    Some(if value.is_nan() {
        NaN(bits)
    } else {
        Near { value, bits, ulps }
    })
}

fn reciprocal(bits: u64) -> Double {
    Double::from_u128(1)
        .value
        .div_r(Double::from_bits(bits.into()), EVEN)
        .value
}

fn compare<F: Float>(op: &str, lane: Lane, bits: u32) -> Option<Result> {
    let [a, b] = [lane.s[0], lane.s[1]].map(|v| F::from_bits(low(v, bits)));
    if op == "class" {
        let negative = a.is_negative();
        let either = |n, p| if negative { n } else { p };
        let class = match a.category() {
            Category::NaN => u32::from(!a.is_signaling()),
            Category::Infinity => either(2, 9),
            Category::Zero => either(5, 6),
            Category::Normal if a.is_denormal() => either(4, 7),
            Category::Normal => either(3, 8),
        };
        return Some(Flag(0, lane.s[1] >> class & 1 != 0));
    }
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = a.partial_cmp(&b);
    let flag = match op {
        "f" => false,
        "tru" => true,
        "lt" => order == Some(Less),
        "eq" => order == Some(Equal),
        "le" => matches!(order, Some(Less | Equal)),
        "gt" => order == Some(Greater),
        "lg" => matches!(order, Some(Less | Greater)),
        "ge" => matches!(order, Some(Greater | Equal)),
        "o" => order.is_some(),
        "u" => order.is_none(),
        "nge" => !matches!(order, Some(Greater | Equal)),
        "nlg" => !matches!(order, Some(Less | Greater)),
        "ngt" => order != Some(Greater),
        "nle" => !matches!(order, Some(Less | Equal)),
        "neq" => order != Some(Equal),
        "nlt" => order != Some(Less),
        _ => return None,
    };
    Some(Flag(0, flag))
}
