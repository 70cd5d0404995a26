//! The bits of constants.

use crate::body::Element;
use crate::refusal::Fault;
use crate::syntax::Literal;

/// Returns the bits of a number of this type.
///
/// The syntax is MLIR's: floats are decimal with a point, or hexadecimal bits; integers are decimal
/// or hexadecimal, within the signed or the unsigned range of their width.
pub(crate) fn bits(literal: &Literal<'_>, element: Element) -> Result<u64, Fault> {
    let text = literal.digits.text;
    let too_large = || {
        literal
            .digits
            .fault(format!("a number that {} does not hold", element.name()))
    };
    let width = element.bits();
    let mask = u64::MAX >> 64_u32.saturating_sub(width);
    if let Some(digits) = text.strip_prefix("0x") {
        if literal.is_negative {
            return Err(literal.digits.fault("a sign before a number of bits"));
        }
        let bits = u64::from_str_radix(digits, 16).map_err(|_| too_large())?;
        return if bits <= mask { Ok(bits) } else { Err(too_large()) };
    }
    if element.is_float() {
        if !text.contains('.') {
            return Err(literal.digits.fault("a float without a point"));
        }
        let magnitude: f64 = text.parse().map_err(|_| too_large())?;
        let value = if literal.is_negative { -magnitude } else { magnitude };
        let (bits, is_finite) = match element {
            Element::F16 => {
                let rounded = half::f16::from_f32(to_odd(value));
                (u64::from(rounded.to_bits()), rounded.is_finite())
            }
            Element::Bf16 => {
                let rounded = half::bf16::from_f32(to_odd(value));
                (u64::from(rounded.to_bits()), rounded.is_finite())
            }
            Element::F32 => {
                let rounded = value as f32;
                (u64::from(rounded.to_bits()), rounded.is_finite())
            }
            _ => (value.to_bits(), value.is_finite()),
        };
        return if is_finite { Ok(bits) } else { Err(too_large()) };
    }
    let magnitude: u64 = text.parse().map_err(|_| {
        literal
            .digits
            .fault(format!("no whole number that {} holds", element.name()))
    })?;
    if !literal.is_negative {
        return if magnitude <= mask {
            Ok(magnitude)
        } else {
            Err(too_large())
        };
    }
    // The magnitude of the smallest number equals the type's highest bit.
    if magnitude <= (mask >> 1).saturating_add(1) {
        Ok(magnitude.wrapping_neg() & mask)
    } else {
        Err(too_large())
    }
}

/// Rounds a number to f32, such that rounding the f32 to fewer bits gives the same result as
/// rounding the number itself. Rounding to odd keeps the last bit set whenever bits were cut off.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    // The bit patterns of magnitudes are in numerical order, so this is the next smaller magnitude.
    let bits = nearest.to_bits();
    let truncated = if back.abs() > value.abs() {
        bits.saturating_sub(1)
    } else {
        bits
    };
    f32::from_bits(truncated | 1)
}

#[cfg(test)]
mod tests {
    use super::bits;
    use crate::body::Element::{self, Bf16, F16, F32, F64, I1, I8, I32, I64, Index};
    use crate::syntax::{Literal, Word};

    fn of(text: &str, element: Element) -> Option<u64> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = Word { text, offset: 0 };
        bits(&Literal { is_negative, digits }, element).ok()
    }

    #[test]
    fn floats() {
        assert_eq!(of("1.0", F32), Some(0x3F80_0000));
        assert_eq!(of("-1.5e2", F32), Some(u64::from((-150_f32).to_bits())));
        assert_eq!(of("-0.0", F64), Some(1 << 63));
        assert_eq!(of("1.", F16), Some(0x3C00));
        assert_eq!(of("1.0", Bf16), Some(0x3F80));
        assert_eq!(of("65519.0", F16), Some(0x7BFF));
        assert_eq!(of("65520.0", F16), None);
        assert_eq!(of("3.5e38", F32), None);
        assert_eq!(of("1.0e400", F64), None);
        assert_eq!(of("0x7F800000", F32), Some(0x7F80_0000));
        assert_eq!(of("0xFFC00001", F32), Some(0xFFC0_0001));
        assert_eq!(of("0x100000000", F32), None);
        assert_eq!(of("-0x1", F32), None);
        assert_eq!(of("1", F32), None);
        assert_eq!(of("0x7C00", F16), Some(0x7C00));
        assert_eq!(of("0x17C00", F16), None);
    }

    #[test]
    fn integers() {
        assert_eq!(of("-1", I8), Some(0xFF));
        assert_eq!(of("255", I8), Some(0xFF));
        assert_eq!(of("256", I8), None);
        assert_eq!(of("-128", I8), Some(0x80));
        assert_eq!(of("-129", I8), None);
        assert_eq!(of("1", I1), Some(1));
        assert_eq!(of("-1", I1), Some(1));
        assert_eq!(of("2", I1), None);
        assert_eq!(of("4294967295", I32), Some(0xFFFF_FFFF));
        assert_eq!(of("-9223372036854775808", I64), Some(1 << 63));
        assert_eq!(of("-9223372036854775809", I64), None);
        assert_eq!(of("18446744073709551616", Index), None);
        assert_eq!(of("1.0", I32), None);
        assert_eq!(of("0xFF", I8), Some(0xFF));
    }

    /// A decimal number is rounded once, not first to f32 and then to fewer digits.
    #[test]
    fn half_precision_is_rounded_once() {
        assert_eq!(of("1.000488281250001", F16), Some(0x3c01));
        assert_eq!(of("1.00390625000001", Bf16), Some(0x3f81));
        assert_eq!(of("65519.9999999999", F16), Some(0x7bff));
        assert_eq!(of("65520.0", F16), None);
        assert_eq!(of("1.0", Bf16), Some(0x3f80));
    }
}
