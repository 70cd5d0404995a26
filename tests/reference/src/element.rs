//! Numbers as elements: what bytes mean, and what a number becomes when it is stored.

use half::{bf16, f16};
use rotini_graph::DataType;

/// How one element type lies in memory. `None` of [`Codec::of`] are the types that the reference does not read.
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
}

/// A number between memory and computation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Float(f64),
    Integer(i64),
}

impl Codec {
    pub(crate) fn of(dtype: DataType) -> Option<Codec> {
        match dtype {
            DataType::F64 => Some(Codec::F64),
            DataType::F32 => Some(Codec::F32),
            DataType::F16 => Some(Codec::F16),
            DataType::Bf16 => Some(Codec::Bf16),
            DataType::I64 => Some(Codec::I64),
            DataType::I32 => Some(Codec::I32),
            DataType::I8 => Some(Codec::I8),
            DataType::U8 => Some(Codec::U8),
            DataType::F8E4M3
            | DataType::F8E5M2
            | DataType::F8E8M0
            | DataType::F4E2M1
            | DataType::F6E2M3
            | DataType::F6E3M2
            | DataType::I4 => None,
        }
    }

    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Codec::F64 | Codec::I64 => 8,
            Codec::F32 | Codec::I32 => 4,
            Codec::F16 | Codec::Bf16 => 2,
            Codec::I8 | Codec::U8 => 1,
        }
    }

    /// The element at the start of `bytes`; `None` if it is cut off.
    pub(crate) fn load(self, bytes: &[u8]) -> Option<Number> {
        Some(match self {
            Codec::F64 => Number::Float(f64::from_le_bytes(*bytes.first_chunk()?)),
            Codec::F32 => Number::Float(f32::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::F16 => Number::Float(f16::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::Bf16 => Number::Float(bf16::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::I64 => Number::Integer(i64::from_le_bytes(*bytes.first_chunk()?)),
            Codec::I32 => Number::Integer(i32::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::I8 => Number::Integer(i8::from_le_bytes(*bytes.first_chunk()?).into()),
            Codec::U8 => Number::Integer(u8::from_le_bytes(*bytes.first_chunk()?).into()),
        })
    }

    /// The one place where a number becomes an element; `bytes` beyond the element are left alone.
    ///
    /// | From | To float | To integer |
    /// |---|---|---|
    /// | float | nearest, ties to even; overflow is infinite | toward zero, saturating; NaN becomes 0 |
    /// | integer | nearest, ties to even | saturating |
    ///
    /// C leaves a float outside an integer's range undefined, so something has to be chosen: saturation is what the hardware's
    /// conversions do and is monotone, so that a small error before the conversion stays small. Narrowing integers saturates too,
    /// though C would wrap: then an integer result does not depend on whether its node computes in floats.
    pub(crate) fn store(self, number: Number, bytes: &mut [u8]) {
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
        }
    }

    /// `value` rounded to this type. The value itself for integer types, which round nothing that they can hold.
    pub(crate) fn round(self, value: f64) -> f64 {
        match self {
            Codec::F64 | Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 => value,
            Codec::F32 | Codec::F16 | Codec::Bf16 => self.convert(Number::Float(value)).to_f64(),
        }
    }

    /// Bits of the significand, the implicit one included; `None` for integers.
    pub(crate) fn precision(self) -> Option<i32> {
        match self {
            Codec::F64 => Some(53),
            Codec::F32 => Some(24),
            Codec::F16 => Some(11),
            Codec::Bf16 => Some(8),
            Codec::I64 | Codec::I32 | Codec::I8 | Codec::U8 => None,
        }
    }

    /// The result of integer arithmetic in this width: two's complement, wrapping. `None` for floats.
    pub(crate) fn wrap(self, value: i64) -> Option<i64> {
        match self {
            Codec::I64 => Some(value),
            Codec::I32 => Some((value as i32).into()),
            Codec::I8 => Some((value as i8).into()),
            Codec::U8 => Some((value as u8).into()),
            Codec::F64 | Codec::F32 | Codec::F16 | Codec::Bf16 => None,
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
/// A second rounding to a type with at least two bits less then gives what one rounding of `value` would. `half` itself narrows
/// a binary64 through a binary32 rounded to nearest (with F16C) or without its low 32 bits, which is wrong beside a tie.
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
                    bytes[codec.size()..].iter().all(|&byte| byte == 0xEE),
                    "{codec:?} writes too far"
                );
                assert_eq!(codec.load(&bytes[..codec.size() - 1]), None);
            }
        }
    }
}
