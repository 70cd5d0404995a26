//! Types in which elements are stored but never calculated: floats of four, six and eight bits, and
//! int4.
//!
//! While a graph is lowered, each such element is a code in one byte (an int4 is its value).
//! [`decode`] and [`encode`] convert between codes and f32 or f64 in integer arithmetic: no target
//! of the compiler has all of these formats, and gfx942's own 8-bit floats are different ones.
//! Elements of less than a byte are unpacked where a tensor is read, and packed where it is
//! written.
//!
//! The formats are those of the OCP specifications (8-bit floating point, revision 1.0;
//! microscaling formats, version 1.0). Where these leave a choice, hipDNN's types are followed
//! (`data_sdk/…/types/Fp8E4M3.hpp`, `Fp8E5M2.hpp`, `Fp8E8M0.hpp`, `Fp4E2M1.hpp`, `Fp6E2M3.hpp`,
//! `Fp6E3M2.hpp`):
//!
//! | Value | Result |
//! |---|---|
//! | too large or infinite | the largest finite number, in E5M2 too |
//! | NaN | NaN; 0 in FP4 and FP6, which have no NaN |
//! | converted to E8M0 | the next power of two below; for 0 and negative values the least power |
//!
//! The FNUZ formats are those of gfx942's matrix cores. They have no infinity, one NaN and no
//! negative zero, whose code is the NaN. Conversions to them round and saturate in the same way (as
//! hipDNN's `Fp8E4M3Fnuz.hpp` and `Fp8E5M2Fnuz.hpp` do).
//!
//! Everything else is rounded to nearest even. The first versions of hipDNN's `Fp8E4M3.hpp` and
//! `Fp8E5M2.hpp` differ: both flush subnormal results to 0, and E4M3, whose largest number is 448,
//! saturates from 256. This module does neither: the specification has no such exceptions, nor have
//! hipDNN's own FP4 and FP6.

use crate::convert::convert;
use crate::ir::Emitter;
use crate::ir::IntegerPredicate;
use crate::mlir::{Float, Name, Type, Value as Ssa};
use rotini_graph::DataType;

/// A float format with a sign, an exponent and a fraction. The exponent 0 has the subnormal
/// numbers.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// Bits of an element.
    bits: i64,
    /// Bits of the fraction.
    fraction: i64,
    /// The exponent bias.
    bias: i64,
    /// The code of the largest number.
    largest: i64,
    /// The code of infinity, if there is one.
    infinity: Option<i64>,
    /// The encoding of NaN.
    nan: Nan,
}

/// The way in which a format encodes NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nan {
    /// It has no NaN.
    None,
    /// All codes above infinity, or above the largest number if there is none. This code is
    /// written.
    Above(i64),
    /// The code that would be the negative zero.
    NegativeZero,
}

/// Returns the format of a narrow float; `None` for E8M0, which has only an exponent, and for all
/// other types.
const fn format(dtype: DataType) -> Option<Format> {
    let (bits, fraction, bias, largest, infinity, nan) = match dtype {
        DataType::F8E4M3 => (8, 3, 7, 0x7E, None, Nan::Above(0x7F)),
        DataType::F8E5M2 => (8, 2, 15, 0x7B, Some(0x7C), Nan::Above(0x7F)),
        DataType::F4E2M1 => (4, 1, 1, 0x07, None, Nan::None),
        DataType::F6E2M3 => (6, 3, 1, 0x1F, None, Nan::None),
        DataType::F6E3M2 => (6, 2, 3, 0x1F, None, Nan::None),
        DataType::F8E4M3Fnuz => (8, 3, 8, 0x7F, None, Nan::NegativeZero),
        DataType::F8E5M2Fnuz => (8, 2, 16, 0x7F, None, Nan::NegativeZero),
        _ => return None,
    };
    Some(Format {
        bits,
        fraction,
        bias,
        largest,
        infinity,
        nan,
    })
}

/// Returns the largest number of a float of eight bits or less; `None` for other types.
pub(crate) fn largest(dtype: DataType) -> Option<f64> {
    let format = format(dtype)?;
    let (exponent, fraction) = (
        format.largest >> format.fraction,
        format.largest & ((1 << format.fraction) - 1),
    );
    let significand = 1.0 + fraction as f64 / (1_i64 << format.fraction) as f64;
    Some(significand * power(exponent - format.bias))
}

/// Returns 2 to an exponent that must be in the range of normal f64.
pub(crate) fn power(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Returns a factor of a contraction as the compiler must see it: FNUZ codes, which are bytes
/// everywhere else, become floats of their own type.
pub(crate) fn multiplied<'c>(at: &Emitter<'c>, factor: Ssa<'c>, dtype: DataType) -> Ssa<'c> {
    let Some(float) = Float::of_fnuz(dtype) else {
        return factor;
    };
    let (shape, byte) = factor.r#type().as_tensor();
    if byte != Type::integer(at.context(), 8) {
        unreachable!("codes that are no bytes");
    }
    let floats = Type::float(at.context(), float).tensor(&shape);
    at.one(Name::TensorBitcast, &[factor], floats, &[])
}

/// The layout of the IEEE formats of 32 and 64 bits.
struct Wide<'c> {
    /// The integer type with as many bits.
    bits: Type<'c>,
    width: i64,
    fraction: i64,
    bias: i64,
}

impl<'c> Wide<'c> {
    fn of(at: &Emitter<'c>, dtype: DataType) -> Self {
        let (integer, width, fraction, bias) = match dtype {
            DataType::F32 => (DataType::I32, 32, 23, 127),
            DataType::F64 => (DataType::I64, 64, 52, 1023),
            _ => unreachable!("a narrow float made of neither f32 nor f64"),
        };
        Wide {
            bits: at.element_type(integer),
            width,
            fraction,
            bias,
        }
    }

    /// Returns the bits of 2 to an exponent.
    const fn power(&self, exponent: i64) -> i64 {
        (exponent + self.bias) << self.fraction
    }

    const fn infinity(&self) -> i64 {
        self.power(self.bias + 1)
    }
}

/// Returns the f32 that a code stands for, which is exact for every narrow float.
pub(crate) fn decode<'c>(at: &Emitter<'c>, code: Ssa<'c>, dtype: DataType) -> Ssa<'c> {
    let wide = Wide::of(at, DataType::F32);
    let float = at.element_type(DataType::F32);
    if !code.r#type().is_integer() {
        // The code was converted to a float by [`multiplied`].
        return code.extf(float);
    }
    let bits = Bits { at, ty: wide.bits };
    let code = code.extui(wide.bits);
    let Some(format) = format(dtype) else {
        let number = bits.with(Name::ArithShli, code, wide.fraction);
        // The least scale is subnormal in f32.
        let is_least = bits.compare(IntegerPredicate::Equal, code, 0);
        let number = is_least.select(bits.constant(1 << (wide.fraction - 1)), number);
        let is_nan = bits.compare(IntegerPredicate::Equal, code, 0xFF);
        let number = is_nan.select(bits.constant(wide.infinity() | 1 << (wide.fraction - 1)), number);
        return number.bitcast(float);
    };
    let sign_bit = 1 << (format.bits - 1);
    let magnitude = bits.with(Name::ArithAndi, code, sign_bit - 1);
    let shifted = bits.with(Name::ArithShli, magnitude, wide.fraction - format.fraction);
    let normal = bits.with(Name::ArithAddi, shifted, wide.power(-format.bias));
    // Subnormals are whole multiples of the least number. They are computed from the integer, since
    // f32 arithmetic may flush its own subnormals.
    let count = magnitude.sitofp(float);
    let least = at.float(power(1 - format.bias - format.fraction), float);
    let subnormal = count * least;
    let subnormal = subnormal.bitcast(wide.bits);
    let is_subnormal = bits.compare(IntegerPredicate::Less, magnitude, 1 << format.fraction);
    let mut number = is_subnormal.select(subnormal, normal);
    if let Some(infinity) = format.infinity {
        let is_infinite = bits.compare(IntegerPredicate::Equal, magnitude, infinity);
        number = is_infinite.select(bits.constant(wide.infinity()), number);
    }
    let is_nan = match format.nan {
        Nan::None => None,
        Nan::Above(_) => {
            let last = format.infinity.unwrap_or(format.largest);
            Some(bits.compare(IntegerPredicate::Greater, magnitude, last))
        }
        Nan::NegativeZero => Some(bits.compare(IntegerPredicate::Equal, code, sign_bit)),
    };
    if let Some(is_nan) = is_nan {
        number = is_nan.select(bits.constant(wide.infinity() | 1 << (wide.fraction - 1)), number);
    }
    let sign = bits.with(Name::ArithAndi, code, sign_bit);
    let sign = bits.with(Name::ArithShli, sign, wide.width - format.bits);
    let number = number | sign;
    number.bitcast(float)
}

/// Returns the code of an f32 or f64.
pub(crate) fn encode<'c>(at: &Emitter<'c>, value: Ssa<'c>, from: DataType, to: DataType) -> Ssa<'c> {
    let wide = Wide::of(at, from);
    let bits = Bits { at, ty: wide.bits };
    let byte = at.element_type(DataType::U8);
    let whole = value.bitcast(wide.bits);
    let sign = bits.with(Name::ArithShrui, whole, wide.width - 1);
    let magnitude = bits.with(Name::ArithAndi, whole, i64::MAX >> (64 - wide.width));
    let is_nan = bits.compare(IntegerPredicate::Greater, magnitude, wide.infinity());
    let Some(format) = format(to) else {
        let exponent = bits.with(Name::ArithShrui, magnitude, wide.fraction);
        let exponent = bits.with(Name::ArithSubi, exponent, wide.bias - 127);
        let exponent = bits.with(Name::ArithMaxsi, exponent, 0);
        let exponent = bits.with(Name::ArithMinsi, exponent, 0xFE);
        let is_negative = bits.compare(IntegerPredicate::NotEqual, sign, 0);
        let code = is_negative.select(bits.constant(0), exponent);
        let code = is_nan.select(bits.constant(0xFF), code);
        return code.trunci(byte);
    };
    // Round to nearest even: add half a unit, less the least bit unless the last kept bit is odd.
    // The sum may carry into the exponent.
    let cut = wide.fraction - format.fraction;
    let odd = bits.with(Name::ArithAndi, bits.with(Name::ArithShrui, magnitude, cut), 1);
    let rounded = bits.with(Name::ArithAddi, magnitude, (1 << (cut - 1)) - 1);
    let rounded = rounded + odd;
    let rounded = bits.with(Name::ArithShrui, rounded, cut);
    let normal = bits.with(Name::ArithSubi, rounded, (wide.bias - format.bias) << format.fraction);
    // Added to a power of two whose unit in the last place is the least subnormal, a number is
    // rounded to multiples of it.
    let anchor = 1 - format.bias - format.fraction + wide.fraction;
    let float = value.r#type();
    let absolute = magnitude.bitcast(float);
    let sum = absolute + at.float(power(anchor), float);
    let sum = sum.bitcast(wide.bits);
    let subnormal = bits.with(Name::ArithSubi, sum, wide.power(anchor));
    let is_subnormal = bits.compare(IntegerPredicate::Less, magnitude, wide.power(1 - format.bias));
    let code = is_subnormal.select(subnormal, normal);
    let code = bits.with(Name::ArithMinsi, code, format.largest);
    let code = match format.nan {
        Nan::Above(nan) => is_nan.select(bits.constant(nan), code),
        Nan::None | Nan::NegativeZero => code,
    };
    let sign_bit = bits.with(Name::ArithShli, sign, format.bits - 1);
    let signed = code | sign_bit;
    let code = match format.nan {
        Nan::Above(_) => signed,
        // NaN becomes 0, without its sign.
        Nan::None => is_nan.select(bits.constant(0), signed),
        Nan::NegativeZero => {
            let is_zero = bits.compare(IntegerPredicate::Equal, code, 0);
            let number = is_zero.select(bits.constant(0), signed);
            is_nan.select(bits.constant(1 << (format.bits - 1)), number)
        }
    };
    code.trunci(byte)
}

/// Converts a code to another type, or a value to a code.
pub(crate) fn convert_code<'c>(at: &Emitter<'c>, value: Ssa<'c>, from: DataType, to: DataType) -> Ssa<'c> {
    if from.is_code() {
        return convert(at, decode(at, value, from), DataType::F32, to);
    }
    // In f32, wide integers would be rounded twice.
    let between = match from {
        DataType::F64 | DataType::I32 | DataType::I64 => DataType::F64,
        _ => DataType::F32,
    };
    encode(at, convert(at, value, from, between), between, to)
}

/// Integer arithmetic with constants.
pub(crate) struct Bits<'e, 'c> {
    pub(crate) at: &'e Emitter<'c>,
    pub(crate) ty: Type<'c>,
}

impl<'c> Bits<'_, 'c> {
    pub(crate) fn constant(&self, value: i64) -> Ssa<'c> {
        self.at.integer(value, self.ty)
    }

    pub(crate) fn with(&self, name: Name, value: Ssa<'c>, constant: i64) -> Ssa<'c> {
        self.at.same(name, &[value, self.constant(constant)])
    }

    pub(crate) fn compare(&self, predicate: IntegerPredicate, value: Ssa<'c>, with: i64) -> Ssa<'c> {
        self.at.compare_integers(predicate, value, self.constant(with))
    }
}
