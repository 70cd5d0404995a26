//! Elements of tensors: decoding bytes to numbers, and rounding numbers to stored elements.

use crate::narrow::Format;
use half::{bf16, f16};
use rotini_graph::DataType;

/// The storage format of an element type.
///
/// Elements of less than eight bits are packed, starting at the lowest bit of the first byte
/// (`PackedFp4Tensor.hpp` and `PackedFp6Tensor.hpp` of hipDNN; it has no such class for int4, for
/// which the same order is assumed).
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
    /// A byte: any value but 0 reads as true; true is stored as 1.
    Bool,
    Narrow(Format),
}

/// The value of an element, decoded from memory or about to be stored.
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

    /// Returns the codec of a type that nodes can compute in; `None` for types that are only for
    /// storage.
    pub(crate) fn of_compute(dtype: DataType) -> Option<Codec> {
        match Codec::of(dtype) {
            Codec::I4 | Codec::Bool | Codec::Narrow(_) => None,
            codec => Some(codec),
        }
    }

    /// Returns `U8` in place of `Bool`, so that a stored byte other than 0 and 1 shows; other types
    /// unchanged.
    pub(crate) fn of_byte(self) -> Codec {
        match self {
            Codec::Bool => Codec::U8,
            codec => codec,
        }
    }

    /// Returns the number of bits of one element.
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

    /// Returns the number of bytes of `elements` contiguous elements; `None` if it overflows.
    pub(crate) fn bytes(self, elements: usize) -> Option<usize> {
        Some(elements.checked_mul(self.bits())?.div_ceil(8))
    }

    /// Returns the range of bytes that hold at least one bit of the element at an offset in
    /// elements.
    pub(crate) fn range(self, offset: usize) -> std::ops::Range<usize> {
        offset * self.bits() / 8..((offset + 1) * self.bits()).div_ceil(8)
    }

    /// Returns the element at an offset in elements; `None` if the buffer ends before the element
    /// does.
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

    /// Stores the element at an offset in elements and leaves the neighbouring bits unchanged. Does
    /// nothing if the buffer ends before the element does.
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

    /// Returns the element at the start of `bytes`, where an element narrower than a byte occupies
    /// a whole byte; `None` if `bytes` is too short.
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
            // Shifting left moves the nibble's sign bit to the sign bit of the byte; the arithmetic
            // shift back extends it.
            Codec::I4 => Number::Integer((i8::from_le_bytes([*bytes.first()? << 4]) >> 4).into()),
            Codec::Bool => Number::Integer((*bytes.first()? != 0).into()),
            Codec::Narrow(format) => Number::Float(format.value(*bytes.first()?)),
        })
    }

    /// Stores a number as an element: the only place where one is encoded. `bytes` beyond the
    /// element are left unchanged.
    ///
    /// - float to float: nearest, ties to even; overflow is infinite, but see [`crate::narrow`]
    /// - float to integer: toward zero, saturating; NaN becomes 0
    /// - integer to float: nearest, ties to even
    /// - integer to integer: saturating
    ///
    /// As a truth value, everything but 0 is stored as 1.
    ///
    /// In C, converting a float outside an integer's range is undefined, so a rule has to be
    /// chosen. Saturation is what the hardware's conversions do, and it is monotone, so a small
    /// error before the conversion stays small. Narrowing integers saturates too, though C would
    /// wrap: so an integer result does not depend on whether its node computes in floats.
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

    /// Returns the number that [`store`](Self::store) followed by [`load`](Self::load) gives.
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

    /// Returns `value` rounded to this type. Integer types return `value` itself: they represent
    /// their values exactly.
    pub(crate) fn round(self, value: f64) -> f64 {
        match self {
            Codec::F64 | Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 | Codec::I4 | Codec::Bool => value,
            Codec::F32 | Codec::F16 | Codec::Bf16 | Codec::Narrow(_) => self.convert(Number::Float(value)).to_f64(),
        }
    }

    /// Returns the bits of the significand, including the implicit one; `None` for integers.
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

    /// Returns the largest finite number; for 64-bit integers, the maximum rounded to a binary64.
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

    /// Returns the result of integer arithmetic wrapped to this width in two's complement; `None`
    /// for floats and truth values.
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
    /// Returns the value as a binary64; integers beyond 2^53 round to the nearest.
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

    /// Returns true if the number is not 0, by C's rule: NaN is true.
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

/// Returns `value` as a binary32, rounded to odd: toward zero, with the last bit set if any bits
/// were lost.
///
/// A second rounding to a type with at least two bits less then gives the same as one rounding of
/// `value`. The crate `half` itself narrows a binary64 through a binary32 that is rounded to
/// nearest (with F16C) or truncated by 32 bits, which gives wrong results near a tie.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || nearest.is_nan() {
        return nearest;
    }
    // Bit patterns order floats by magnitude, whatever the sign, so subtracting 1 moves toward
    // zero.
    let beyond = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(beyond)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the finite elements of a 16-bit type in ascending order, by decoding every bit
    /// pattern.
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
        // The last nibble belongs to no element.
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
