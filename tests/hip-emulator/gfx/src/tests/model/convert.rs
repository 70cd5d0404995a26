//! Conversions.

use rustc_apfloat::{
    Float, FloatConvert, Round,
    ieee::{Double, Half, Single},
};

use super::{
    Lane,
    Result::{self, Bits, NaN},
    float::bits_of,
    s, u,
};

const EVEN: Round = Round::NearestTiesToEven;

/// Returns the exact value of a float's bits.
pub(super) fn to_f64(value: u64, bits: u32) -> f64 {
    let wide: Double = match bits {
        16 => Half::from_bits(u128::from(value & 0xffff)).convert(&mut false).value,
        32 => {
            Single::from_bits(u128::from(value & 0xffff_ffff))
                .convert(&mut false)
                .value
        }
        _ => Double::from_bits(value.into()),
    };
    f64::from_bits(wide.to_bits() as u64)
}

/// Converts a float to an integer of `bits` bits, rounded by `round` and saturated.
fn integer(value: f64, bits: u32, signed: bool, round: fn(f64) -> f64) -> Result {
    let (least, most) = if signed {
        (-(2_f64.powi(bits as i32 - 1)), 2_f64.powi(bits as i32 - 1) - 1.0)
    } else {
        (0.0, 2_f64.powi(bits as i32) - 1.0)
    };
    let value = if value.is_nan() {
        0.0
    } else {
        round(value).clamp(least, most)
    };
    Bits(value as i128 as u64 & (u64::MAX >> (64 - bits)))
}

/// Converts f32 to f16.
fn narrow(value: u64, round: Round) -> Half {
    Single::from_bits(u128::from(value & 0xffff_ffff))
        .convert_r(round, &mut false)
        .value
}

pub(super) fn result(name: &str, lane: Lane) -> Option<Result> {
    let a = lane.s[0];
    let float = |bits| to_f64(a, bits);
    Some(match name {
        "cvt_f32_f16" => {
            let wide: Single = Half::from_bits(u128::from(a & 0xffff)).convert(&mut false).value;
            bits_of(wide, 32)
        }
        "cvt_f16_f32" => bits_of(narrow(a, EVEN), 16),
        "cvt_pkrtz_f16_f32" => {
            let part = |v| match bits_of(narrow(v, Round::TowardZero), 16) {
                Bits(bits) => bits,
                _ => Half::NAN.to_bits() as u64,
            };
            Bits(part(lane.s[0]) | part(lane.s[1]) << 16)
        }
        "cvt_f32_f64" => {
            let narrow: Single = Double::from_bits(a.into()).convert(&mut false).value;
            bits_of(narrow, 32)
        }
        "cvt_f64_f32" => {
            let wide: Double = Single::from_bits(u128::from(a & 0xffff_ffff)).convert(&mut false).value;
            bits_of(wide, 64)
        }
        "cvt_f32_i32" => bits_of(Single::from_i128_r(s(a, 32), EVEN).value, 32),
        "cvt_f32_u32" => bits_of(Single::from_i128_r(u(a, 32), EVEN).value, 32),
        "cvt_f64_i32" => bits_of(Double::from_i128_r(s(a, 32), EVEN).value, 64),
        "cvt_f64_u32" => bits_of(Double::from_i128_r(u(a, 32), EVEN).value, 64),
        "cvt_f16_i16" => bits_of(Half::from_i128_r(s(a, 16), EVEN).value, 16),
        "cvt_f16_u16" => bits_of(Half::from_i128_r(u(a, 16), EVEN).value, 16),
        "cvt_f32_ubyte0" => bits_of(Single::from_i128_r(u(a, 8), EVEN).value, 32),
        "cvt_f32_ubyte1" => bits_of(Single::from_i128_r(u(a >> 8, 8), EVEN).value, 32),
        "cvt_f32_ubyte2" => bits_of(Single::from_i128_r(u(a >> 16, 8), EVEN).value, 32),
        "cvt_f32_ubyte3" => bits_of(Single::from_i128_r(u(a >> 24, 8), EVEN).value, 32),
        "cvt_off_f32_i4" => bits_of(Single::from_i128_r(s(a, 4), EVEN).value.scalbn(-4), 32),
        "cvt_i32_f32" => integer(float(32), 32, true, f64::trunc),
        "cvt_u32_f32" => integer(float(32), 32, false, f64::trunc),
        "cvt_flr_i32_f32" => integer(float(32), 32, true, f64::floor),
        "cvt_i32_f64" => integer(float(64), 32, true, f64::trunc),
        "cvt_u32_f64" => integer(float(64), 32, false, f64::trunc),
        "cvt_i16_f16" => integer(float(16), 16, true, f64::trunc),
        "cvt_u16_f16" => integer(float(16), 16, false, f64::trunc),
        "fma_mixlo_f16" | "fma_mixhi_f16" => {
            let [a, b, c] = lane.s.map(|v| Single::from_bits(u128::from(v & 0xffff_ffff)));
            let value = a.mul_add_r(b, c, EVEN).value.to_bits() as u64;
            bits_of(narrow(value, EVEN), 16)
        }
        "cvt_f32_fp8" => byte(a, 3),
        "cvt_f32_bf8" => byte(a, 2),
        "cvt_pk_f32_fp8" => two_bytes(a, 3),
        "cvt_pk_f32_bf8" => two_bytes(a, 2),
        "cvt_pk_fp8_f32" => Bits(to_byte(lane.s[0], 3) | to_byte(lane.s[1], 3) << 8),
        "cvt_pk_bf8_f32" => Bits(to_byte(lane.s[0], 2) | to_byte(lane.s[1], 2) << 8),
        _ => return None,
    })
}

/// Returns the value of an FNUZ byte whose fraction has this many bits; `None` for the NaN.
fn value_of(byte: u64, fraction: u32) -> Option<f64> {
    let byte = byte & 0xff;
    if byte == 0x80 {
        return None;
    }
    let bias = if fraction == 3 { 8 } else { 16 };
    let exponent = (byte & 0x7f) >> fraction;
    let mantissa = (byte % (1 << fraction)) as f64 / f64::from(1 << fraction);
    let magnitude = if exponent == 0 {
        mantissa * 2_f64.powi(1 - bias)
    } else {
        (1.0 + mantissa) * 2_f64.powi(exponent as i32 - bias)
    };
    Some(if byte & 0x80 != 0 { -magnitude } else { magnitude })
}

fn byte(byte: u64, fraction: u32) -> Result {
    value_of(byte, fraction).map_or(NaN(32), |value| Bits((value as f32).to_bits().into()))
}

fn two_bytes(bytes: u64, fraction: u32) -> Result {
    let part = |byte| value_of(byte, fraction).map_or(0x7fc0_0000, |value| u64::from((value as f32).to_bits()));
    Bits(part(bytes) | part(bytes >> 8) << 32)
}

/// Returns the nearest byte, found by comparing with all of them; of two equally near the even one.
/// From half a step beyond the largest on: the NaN.
fn to_byte(value: u64, fraction: u32) -> u64 {
    let value = to_f64(value, 32);
    if !value.is_finite() {
        return 0x80;
    }
    let most = value_of(0x7f, fraction).unwrap();
    let step = most - value_of(0x7e, fraction).unwrap();
    if value.abs() >= most + step / 2.0 {
        return 0x80;
    }
    let distance = |code: u64| (value_of(code, fraction).unwrap() - value.abs()).abs();
    let nearest = (0..0x80_u64)
        .min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2))))
        .unwrap();
    if nearest == 0 {
        0
    } else if value < 0.0 {
        nearest | 0x80
    } else {
        nearest
    }
}
