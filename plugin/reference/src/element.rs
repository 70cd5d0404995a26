//! Numbers as elements: what bytes mean, and what a number becomes when it is stored.

use crate::narrow::Format;
use half::{bf16, f16};
use rotini_graph::DataType;

/// How one element type lies in memory.
///
/// Elements of less than eight bits lie one after the other from the lowest bit of the first byte
/// on (`PackedFp4Tensor.hpp` and `PackedFp6Tensor.hpp` of hipDNN, which has no such class for int4:
/// there the order is taken to be the same).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I8,
    U8,
    I4,
    /// A byte: any but 0 is true, and 1 is stored.
    Bool,
    Narrow(Format),
}

/// A number between memory and computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Float(f64),
    Integer(i64),
}

impl Codec {
    pub(crate) fn of(dtype: DataType) -> Codec {
        match dtype {
            DataType::F64 => Codec::F64,
            DataType::F32 => Codec::F32,
            DataType::F16 => Codec::F16,
            DataType::Bf16 => Codec::Bf16,
            DataType::I64 => Codec::I64,
            DataType::I32 => Codec::I32,
            DataType::I8 => Codec::I8,
            DataType::U8 => Codec::U8,
            DataType::I4 => Codec::I4,
            DataType::Bool => Codec::Bool,
            DataType::F8E4M3 => Codec::Narrow(Format::E4M3),
            DataType::F8E5M2 => Codec::Narrow(Format::E5M2),
            DataType::F8E8M0 => Codec::Narrow(Format::E8M0),
            DataType::F4E2M1 => Codec::Narrow(Format::E2M1),
            DataType::F6E2M3 => Codec::Narrow(Format::E2M3),
            DataType::F6E3M2 => Codec::Narrow(Format::E3M2),
            DataType::F8E4M3Fnuz => Codec::Narrow(Format::E4M3Fnuz),
            DataType::F8E5M2Fnuz => Codec::Narrow(Format::E5M2Fnuz),
        }
    }

    /// The type as one that nodes compute in; `None` for those that are for storage alone.
    pub(crate) fn of_compute(dtype: DataType) -> Option<Codec> {
        match Codec::of(dtype) {
            Codec::I4 | Codec::Bool | Codec::Narrow(_) => None,
            codec => Some(codec),
        }
    }

    /// The type with the same bytes in which a truth value that is neither 0 nor 1 shows; other
    /// types as they are.
    pub(crate) fn of_byte(self) -> Codec {
        match self {
            Codec::Bool => Codec::U8,
            codec => codec,
        }
    }

    /// Bits of one element.
    fn bits(self) -> usize {
        match self {
            Codec::F64 | Codec::I64 => 64,
            Codec::F32 | Codec::I32 => 32,
            Codec::F16 | Codec::Bf16 => 16,
            Codec::I8 | Codec::U8 | Codec::Bool => 8,
            Codec::I4 => 4,
            Codec::Narrow(format) => format.bits(),
        }
    }

    /// The bytes of `elements` contiguous elements; `None` if the number overflows.
    pub(crate) fn bytes(self, elements: usize) -> Option<usize> {
        Some(elements.checked_mul(self.bits())?.div_ceil(8))
    }

    /// The bytes that an element has at least a bit of.
    pub(crate) fn range(self, offset: usize) -> std::ops::Range<usize> {
        offset * self.bits() / 8..((offset + 1) * self.bits()).div_ceil(8)
    }

    /// The element at an offset in elements; `None` if it is cut off.
    pub(crate) fn load_at(self, bytes: &[u8], offset: usize) -> Option<Number> {
        let element = bytes.get(self.range(offset))?;
        if self.bits() >= 8 {
            return self.load(element);
        }
        let word = element
            .iter()
            .rev()
            .fold(0, |word: u16, &byte| word << 8 | u16::from(byte));
        let code = word >> (offset * self.bits() % 8) & ((1 << self.bits()) - 1);
        self.load(&code.to_le_bytes())
    }

    /// Stores the element at an offset in elements, and leaves the bits beside it alone; nothing if
    /// it is cut off.
    pub(crate) fn store_at(self, number: Number, bytes: &mut [u8], offset: usize) {
        let Some(element) = bytes.get_mut(self.range(offset)) else {
            return;
        };
        if self.bits() >= 8 {
            self.store(number, element);
            return;
        }
        let mut code = [0; 1];
        self.store(number, &mut code);
        let shift = offset * self.bits() % 8;
        let (mask, code) = (((1_u16 << self.bits()) - 1) << shift, u16::from(code[0]) << shift);
        for ((byte, mask), code) in element.iter_mut().zip(mask.to_le_bytes()).zip(code.to_le_bytes()) {
            *byte = *byte & !mask | code & mask;
        }
    }

    /// The element at the start of `bytes`, in a byte of its own if it is narrower; `None` if it is
    /// cut off.
    fn load(self, bytes: &[u8]) -> Option<Number> {
        Some(match self {
            Codec::F64 => Number::Float(f64::from_le_bytes(*bytes.first_chunk()?)),
            Codec::F32 => Number::Float(f32::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::F16 => Number::Float(f16::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::Bf16 => Number::Float(bf16::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::I64 => Number::Integer(i64::from_le_bytes(*bytes.first_chunk()?)),
            Codec::I32 => Number::Integer(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::I8 => Number::Integer(i8::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::U8 => Number::Integer(u8::from_le_bytes(*bytes.first_chunk()?).into()),
            // The shift brings the sign to where a byte has it.
            Codec::I4 => Number::Integer((i8::from_le_bytes([*bytes.first()? << 4]) >> 4).into()),
            Codec::Bool => Number::Integer((*bytes.first()? != 0).into()),
            Codec::Narrow(format) => Number::Float(format.value(*bytes.first()?)),
        })
    }

    /// The one place where a number becomes an element; `bytes` beyond the element are left alone.
    ///
    /// | From | To float | To integer |
    /// |---|---|---|
    /// | float | nearest, ties to even; overflow is infinite, but see [`crate::narrow`] | toward zero, saturating; NaN becomes 0 |
    /// | integer | nearest, ties to even | saturating |
    ///
    /// To a truth value, everything but 0 becomes 1.
    ///
    /// C leaves a float outside an integer's range undefined, so something has to be chosen:
    /// saturation is what the hardware's conversions do and is monotone, so that a small error
    /// before the conversion stays small. Narrowing integers saturates too, though C would wrap:
    /// then an integer result does not depend on whether its node computes in floats.
    fn store(self, number: Number, bytes: &mut [u8]) {
        let mut put = |element: &[u8]| bytes.iter_mut().zip(element).for_each(|(to, from)| *to = *from);
        match self {
            Codec::F64 => put(&number.to_f64().to_le_bytes()),
            Codec::F32 => put(&number.to_f32().to_le_bytes()),
            Codec::F16 => put(&number.to_f16().to_le_bytes()),
            Codec::Bf16 => put(&number.to_bf16().to_le_bytes()),
            Codec::I64 => put(&number.to_integer(i64::MIN, i64::MAX).to_le_bytes()),
            // Saturated to the type's range, so the low bytes are the element.
            Codec::I32 => put(&number.to_integer(i32::MIN.into(), i32::MAX.into()).to_le_bytes()[..4]),
            Codec::I8 => put(&number.to_integer(i8::MIN.into(), i8::MAX.into()).to_le_bytes()[..1]),
            Codec::U8 => put(&number.to_integer(0, u8::MAX.into()).to_le_bytes()[..1]),
            Codec::I4 => put(&[number.to_integer(-8, 7).to_le_bytes()[0] & 0xF]),
            Codec::Bool => put(&[number.is_true().into()]),
            Codec::Narrow(format) => put(&[format.code(number.to_f64())]),
        }
    }

    /// What [`store`](Self::store) followed by [`load`](Self::load) gives.
    pub(crate) fn convert(self, number: Number) -> Number {
        match self {
            Codec::F64 => Number::Float(number.to_f64()),
            Codec::F32 => Number::Float(number.to_f32().into()),
            Codec::F16 => Number::Float(number.to_f16().into()),
            Codec::Bf16 => Number::Float(number.to_bf16().into()),
            Codec::I64 => Number::Integer(number.to_integer(i64::MIN, i64::MAX)),
            Codec::I32 => Number::Integer(number.to_integer(i32::MIN.into(), i32::MAX.into())),
            Codec::I8 => Number::Integer(number.to_integer(i8::MIN.into(), i8::MAX.into())),
            Codec::U8 => Number::Integer(number.to_integer(0, u8::MAX.into())),
            Codec::I4 => Number::Integer(number.to_integer(-8, 7)),
            Codec::Bool => Number::Integer(number.is_true().into()),
            Codec::Narrow(format) => Number::Float(format.value(format.code(number.to_f64()))),
        }
    }

    /// `value` rounded to this type. The value itself for integer types, which round nothing that
    /// they can hold.
    pub(crate) fn round(self, value: f64) -> f64 {
        match self {
            Codec::F64 | Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool => value,
            Codec::F32 | Codec::F16 | Codec::Bf16 | Codec::Narrow(_) => self.convert(Number::Float(value)).to_f64(),
        }
    }

    /// Bits of the significand, the implicit one included; `None` for integers.
    pub(crate) fn precision(self) -> Option<i32> {
        match self {
            Codec::F64 => Some(53),
            Codec::F32 => Some(24),
            Codec::F16 => Some(11),
            Codec::Bf16 => Some(8),
            Codec::Narrow(format) => Some(format.precision()),
            Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool => None,
        }
    }

    /// The largest number; that of the integers of 64 bits as a binary64.
    pub(crate) fn largest(self) -> f64 {
        match self {
            Codec::F64 => f64::MAX,
            Codec::F32 => f32::MAX.into(),
            Codec::F16 => f16::MAX.into(),
            Codec::Bf16 => bf16::MAX.into(),
            Codec::Narrow(format) => format.largest(),
            Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool => {
                self.convert(Number::Integer(i64::MAX)).to_f64()
            }
        }
    }

    /// The result of integer arithmetic in this width: two's complement, wrapping. `None` for
    /// floats.
    pub(crate) fn wrap(self, value: i64) -> Option<i64> {
        match self {
            Codec::I64 => Some(value),
            Codec::I32 => Some((value as i32).into()),
            Codec::I8 => Some((value as i8).into()),
            Codec::U8 => Some((value as u8).into()),
            Codec::I4 => Some((value << 60) >> 60),
            Codec::Bool | Codec::F64 | Codec::F32 | Codec::F16 | Codec::Bf16 | Codec::Narrow(_) => None,
        }
    }
}

impl Number {
    /// The value as a binary64; integers beyond 2^53 round to the nearest.
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Float(value) => value,
            Number::Integer(value) => value as f64,
        }
    }

    fn to_f32(self) -> f32 {
        match self {
            Number::Float(value) => value as f32,
            Number::Integer(value) => value as f32,
        }
    }

    fn to_f16(self) -> f16 {
        f16::from_f32(to_odd(self.to_f64()))
    }

    fn to_bf16(self) -> bf16 {
        bf16::from_f32(to_odd(self.to_f64()))
    }

    /// Whether it is not 0, as C has it: NaN is true.
    fn is_true(self) -> bool {
        match self {
            Number::Float(value) => value != 0.0,
            Number::Integer(value) => value != 0,
        }
    }

    fn to_integer(self, least: i64, most: i64) -> i64 {
        match self {
            // `as` truncates, saturates and turns NaN into 0.
            Number::Float(value) => (value as i64).clamp(least, most),
            Number::Integer(value) => value.clamp(least, most),
        }
    }
}

/// `value` as a binary32, rounded to odd: toward zero, with the last bit set if anything was lost.
///
/// A second rounding to a type with at least two bits less then gives what one rounding of `value`
/// would. `half` itself narrows a binary64 through a binary32 rounded to nearest (with F16C) or
/// without its low 32 bits, which is wrong beside a tie.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || nearest.is_nan() {
        return nearest;
    }
    // For either sign, the bits count magnitudes.
    let beyond = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(beyond)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The finite elements of a 16-bit type in ascending order, by trying every pattern.
    fn every(codec: Codec) -> Vec<f64> {
        let mut values: Vec<f64> = (0..=u16::MAX)
            .filter_map(|bits| codec.load(&bits.to_le_bytes()))
            .map(Number::to_f64)
            .filter(|value| value.is_finite() && !(*value == 0.0 && value.is_sign_negative()))
            .collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn narrowing_rounds_once_to_the_nearest_and_ties_to_even() {
        for codec in [Codec::F16, Codec::Bf16] {
            let values = every(codec);
            for pair in values.windows(2) {
                let (low, high) = (pair[0], pair[1]);
                let middle = f64::midpoint(low, high);
                assert_eq!(
                    codec.round(middle.next_down()),
                    low,
                    "{codec:?} below the middle of {low} and {high}"
                );
                assert_eq!(
                    codec.round(middle.next_up()),
                    high,
                    "{codec:?} above the middle of {low} and {high}"
                );
                let mut even = [0; 2];
                codec.store(Number::Float(low), &mut even);
                let expected = if even[0] & 1 == 0 { low } else { high };
                assert_eq!(
                    codec.round(middle),
                    expected,
                    "{codec:?} at the middle of {low} and {high}"
                );
            }
        }
    }

    #[test]
    fn overflow_is_infinite_and_nan_stays() {
        assert_eq!(Codec::F16.round(65519.999), 65504.0);
        assert_eq!(Codec::F16.round(65520.0), f64::INFINITY);
        assert_eq!(Codec::Bf16.round(-1e300), f64::NEG_INFINITY);
        assert_eq!(Codec::F32.round(1e39), f64::INFINITY);
        for codec in [Codec::F32, Codec::F16, Codec::Bf16] {
            assert!(codec.round(f64::NAN).is_nan());
        }
    }

    #[test]
    fn integers_truncate_and_saturate() {
        let cases = [
            (Codec::I8, 2.9, 2),
            (Codec::I8, -2.9, -2),
            (Codec::I8, 128.0, 127),
            (Codec::I8, f64::NEG_INFINITY, -128),
            (Codec::U8, -0.5, 0),
            (Codec::U8, -7.0, 0),
            (Codec::U8, 300.0, 255),
            (Codec::I32, 3e9, i32::MAX.into()),
            (Codec::I64, 1e30, i64::MAX),
            (Codec::I32, f64::NAN, 0),
        ];
        for (codec, from, to) in cases {
            assert_eq!(
                codec.convert(Number::Float(from)),
                Number::Integer(to),
                "{from} to {codec:?}"
            );
        }
        assert_eq!(Codec::I8.convert(Number::Integer(-300)), Number::Integer(-128));
        assert_eq!(Codec::U8.convert(Number::Integer(-1)), Number::Integer(0));
    }

    #[test]
    fn storing_and_loading_is_converting() {
        for codec in [
            Codec::F64,
            Codec::F32,
            Codec::F16,
            Codec::Bf16,
            Codec::I64,
            Codec::I32,
            Codec::I8,
            Codec::U8,
            Codec::Bool,
        ] {
            for number in [
                Number::Float(-3.3),
                Number::Float(1e10),
                Number::Integer(77),
                Number::Integer(-1 << 40),
            ] {
                let mut bytes = [0xEE; 10];
                codec.store(number, &mut bytes);
                assert_eq!(codec.load(&bytes), Some(codec.convert(number)), "{codec:?} {number:?}");
                assert!(
                    bytes[codec.range(0).end..].iter().all(|&byte| byte == 0xEE),
                    "{codec:?} writes too far"
                );
                assert_eq!(codec.load(&bytes[..codec.range(0).end - 1]), None);
            }
        }
    }

    #[test]
    fn narrow_elements_lie_one_after_the_other() {
        let mut nibbles = [0xFF; 2];
        for (offset, value) in [-8, 7, -1].into_iter().enumerate() {
            Codec::I4.store_at(Number::Integer(value), &mut nibbles, offset);
            assert_eq!(Codec::I4.load_at(&nibbles, offset), Some(Number::Integer(value)));
        }
        // The last nibble is no element's.
        assert_eq!(nibbles, [0x78, 0xFF]);
        assert_eq!((Codec::I4.bytes(3), Codec::I4.bytes(4)), (Some(2), Some(2)));

        // Codes 1, 2, 3, 63 and 1 of six bits.
        let e2m3 = Codec::Narrow(Format::E2M3);
        let mut sixes = [0; 4];
        for (offset, value) in [0.125, 0.25, 0.375, -7.5, 0.125].into_iter().enumerate() {
            e2m3.store_at(Number::Float(value), &mut sixes, offset);
            assert_eq!(e2m3.load_at(&sixes, offset), Some(Number::Float(value)));
        }
        assert_eq!(sixes, [0b1000_0001, 0b0011_0000, 0b1111_1100, 0b0000_0001]);
        assert_eq!((e2m3.bytes(5), e2m3.bytes(8)), (Some(4), Some(6)));
        assert_eq!(e2m3.load_at(&sixes[..3], 4), None);
    }
}
