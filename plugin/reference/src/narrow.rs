//! Floats of up to eight bits. A code's value is that of the format's table; a number is stored as
//! the nearest code.
//!
//! The formats are those of the OCP specifications (8-bit floating point, revision 1.0;
//! microscaling formats, version 1.0). Where these leave a choice, the rules are those of hipDNN's
//! types (`data_sdk/…/types/Fp8E4M3.hpp`, `Fp8E5M2.hpp`, `Fp8E8M0.hpp`, `Fp4E2M1.hpp`,
//! `Fp6E2M3.hpp`):
//!
//! - Numbers that are too large, including infinities, become the largest number.
//! - NaN stays NaN; if the format has none, it becomes zero.
//! - A scale (E8M0) is rounded toward zero. Zero, negative numbers and numbers below the least
//!   scale become the least scale.
//!
//! The first versions of hipDNN's conversions to the two FP8 types differ: both flush subnormal
//! results to zero, and E4M3 saturates from 256, its largest power of two. The specification rounds
//! to nearest everywhere, as hipDNN's own FP4 and FP6 do and this module does.
//!
//! The FNUZ formats are those of `Fp8E4M3Fnuz.hpp` and `Fp8E5M2Fnuz.hpp` of hipDNN: the bias is
//! greater by one, there is no infinity, and the code of the negative zero is NaN, so a negative
//! zero is stored as zero.

/// A float format of at most 256 codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    E4M3,
    E5M2,
    E8M0,
    E2M1,
    E2M3,
    E3M2,
    E4M3Fnuz,
    E5M2Fnuz,
}

impl Format {
    /// Returns the bits of an element.
    pub(crate) fn bits(self) -> usize {
        match self {
            Format::E4M3 | Format::E5M2 | Format::E8M0 | Format::E4M3Fnuz | Format::E5M2Fnuz => 8,
            Format::E2M3 | Format::E3M2 => 6,
            Format::E2M1 => 4,
        }
    }

    /// Returns the bits of the fraction.
    fn fraction_bits(self) -> u32 {
        match self {
            Format::E8M0 => 0,
            Format::E2M1 => 1,
            Format::E5M2 | Format::E3M2 | Format::E5M2Fnuz => 2,
            Format::E4M3 | Format::E2M3 | Format::E4M3Fnuz => 3,
        }
    }

    /// Returns the bits of the significand, including the implicit one.
    pub(crate) fn precision(self) -> i32 {
        self.fraction_bits() as i32 + 1
    }

    fn bias(self) -> i32 {
        match self {
            Format::E4M3 => 7,
            Format::E5M2 => 15,
            Format::E8M0 => 127,
            Format::E2M1 | Format::E2M3 => 1,
            Format::E3M2 => 3,
            Format::E4M3Fnuz => 8,
            Format::E5M2Fnuz => 16,
        }
    }

    /// Returns the mask of the sign bit; 0 for a scale, which has none.
    fn sign(self) -> u8 {
        match self {
            Format::E8M0 => 0,
            _ => 1 << (self.bits() - 1),
        }
    }

    /// Returns the code of the largest number.
    fn last(self) -> u8 {
        match self {
            Format::E4M3 => 0x7E,
            Format::E5M2 => 0x7B,
            Format::E8M0 => 0xFE,
            Format::E2M1 => 0x07,
            Format::E2M3 | Format::E3M2 => 0x1F,
            Format::E4M3Fnuz | Format::E5M2Fnuz => 0x7F,
        }
    }

    /// Returns true if zero has no sign and its negative code is NaN.
    fn is_fnuz(self) -> bool {
        matches!(self, Format::E4M3Fnuz | Format::E5M2Fnuz)
    }

    /// Returns the value of a code.
    pub(crate) fn value(self, code: u8) -> f64 {
        let (negative, magnitude) = (code & self.sign() != 0, code & !self.sign());
        let exponent = i32::from(magnitude >> self.fraction_bits());
        let steps = f64::from(1_u16 << self.fraction_bits());
        let fraction = f64::from(magnitude) % steps / steps;
        let value = match self {
            _ if self.is_fnuz() && code == self.sign() => return f64::NAN,
            Format::E8M0 if magnitude == 0xFF => f64::NAN,
            Format::E8M0 => 2.0_f64.powi(exponent - self.bias()),
            Format::E5M2 if magnitude == 0x7C => f64::INFINITY,
            _ if magnitude > self.last() => f64::NAN,
            _ if exponent == 0 => fraction * 2.0_f64.powi(1 - self.bias()),
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - self.bias()),
        };
        if negative { -value } else { value }
    }

    /// Returns the code that a number is stored as.
    pub(crate) fn code(self, value: f64) -> u8 {
        let numbers = || (0..=self.last()).map(|code| self.value(code));
        if self == Format::E8M0 {
            return match numbers().filter(|&number| number <= value).count() {
                _ if value.is_nan() => 0xFF,
                count => u8::try_from(count.saturating_sub(1)).unwrap_or(self.last()),
            };
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        if value.is_nan() {
            return match self {
                Format::E4M3 | Format::E5M2 => sign | 0x7F,
                Format::E4M3Fnuz | Format::E5M2Fnuz => self.sign(),
                _ => 0,
            };
        }
        // All codes have few bits, so the distances to the two nearest ones are exact.
        let magnitude = value.abs().min(self.largest());
        let distance = |code: u8| (self.value(code) - magnitude).abs();
        let above = numbers().position(|number| number >= magnitude);
        let above = above.and_then(|code| u8::try_from(code).ok()).unwrap_or(self.last());
        let below = above.saturating_sub(1);
        let nearest = match distance(below).total_cmp(&distance(above)) {
            std::cmp::Ordering::Less => below,
            std::cmp::Ordering::Equal if below % 2 == 0 => below,
            _ => above,
        };
        if nearest == 0 && self.is_fnuz() {
            return 0;
        }
        sign | nearest
    }

    /// Returns the largest number.
    pub(crate) fn largest(self) -> f64 {
        self.value(self.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specifications' tables of values.
    #[test]
    fn codes_mean_what_the_specifications_say() {
        let is = |format: Format, pairs: &[(u8, f64)]| {
            for &(code, value) in pairs {
                assert_eq!(format.value(code).to_bits(), value.to_bits(), "{format:?} {code:#x}");
                assert_eq!(format.code(value), code, "{format:?} {value}");
            }
        };
        let exp = |exponent| 2.0_f64.powi(exponent);
        is(
            Format::E4M3,
            &[(0x7E, 448.0), (0x08, exp(-6)), (0x07, 0.875 * exp(-6)), (0x01, exp(-9))],
        );
        is(Format::E4M3, &[(0x80, -0.0), (0xBC, -1.5), (0x78, 256.0)]);
        is(
            Format::E5M2,
            &[
                (0x7B, 57344.0),
                (0x04, exp(-14)),
                (0x03, 0.75 * exp(-14)),
                (0x01, exp(-16)),
            ],
        );
        is(Format::E8M0, &[(0, exp(-127)), (127, 1.0), (254, exp(127))]);
        let e2m1 = [
            0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
        ];
        is(Format::E2M1, &(0..).zip(e2m1).collect::<Vec<_>>());
        is(
            Format::E2M3,
            &[(0x1F, 7.5), (0x08, 1.0), (0x07, 0.875), (0x01, 0.125), (0x3F, -7.5)],
        );
        is(
            Format::E3M2,
            &[
                (0x1F, 28.0),
                (0x04, 0.25),
                (0x03, 0.1875),
                (0x01, 0.0625),
                (0x3F, -28.0),
            ],
        );
        // E4M3: hipDNN's table (`Fp8E4M3Fnuz.hpp`). E5M2: the specification's values with a bias
        // greater by one.
        is(
            Format::E4M3Fnuz,
            &[
                (0x7F, 240.0),
                (0xFF, -240.0),
                (0x40, 1.0),
                (0x08, exp(-7)),
                (0x07, 0.0068359375),
                (0x01, exp(-10)),
            ],
        );
        is(
            Format::E5M2Fnuz,
            &[
                (0x7F, 57344.0),
                (0xC0, -1.0),
                (0x04, exp(-15)),
                (0x03, 0.75 * exp(-15)),
                (0x01, exp(-17)),
            ],
        );
        for format in [Format::E4M3Fnuz, Format::E5M2Fnuz] {
            assert!(format.value(0x80).is_nan());
            assert_eq!(format.code(-f64::NAN), 0x80);
            assert_eq!((format.code(-0.0), format.code(-exp(-30))), (0, 0), "zero has no sign");
        }
        assert!([0x7F, 0xFF].into_iter().all(|code| Format::E4M3.value(code).is_nan()));
        assert!((0x7D..=0x7F).all(|code| Format::E5M2.value(code).is_nan()));
        assert_eq!(Format::E5M2.value(0xFC), f64::NEG_INFINITY);
        assert!(Format::E8M0.value(0xFF).is_nan());
    }

    #[test]
    fn numbers_become_the_nearest_code_and_ties_the_even_one() {
        let cases = [
            // Between 1 and 1.125: below, at and above the midpoint; then the midpoint of the next
            // gap, where the upper code is even.
            (Format::E4M3, 1.062, 0x38),
            (Format::E4M3, 1.0625, 0x38),
            (Format::E4M3, 1.063, 0x39),
            (Format::E4M3, 1.1875, 0x3A),
            // Subnormals: half of the least one is a tie with zero.
            (Format::E4M3, 2.0_f64.powi(-10), 0x00),
            (Format::E4M3, 1.01 * 2.0_f64.powi(-10), 0x01),
            (Format::E4M3, 300.0, 0x79),
            (Format::E5M2, 1.125, 0x3C),
            (Format::E5M2, -1.375, 0xBE),
            (Format::E4M3Fnuz, -1.0625, 0xC0),
            (Format::E4M3Fnuz, 1.1875, 0x42),
            (Format::E4M3Fnuz, 2.0_f64.powi(-11), 0x00),
            (Format::E4M3Fnuz, -1.01 * 2.0_f64.powi(-11), 0x81),
            (Format::E5M2Fnuz, 1.125, 0x40),
            (Format::E2M1, 5.0, 0x06),
            (Format::E2M1, 0.25, 0x00),
            (Format::E2M1, -0.75, 0x0A),
            (Format::E2M3, 7.3, 0x1F),
            // Scales are rounded down to a power of two.
            (Format::E8M0, 3.99, 128),
            (Format::E8M0, 0.99, 126),
        ];
        for (format, value, code) in cases {
            assert_eq!(format.code(value), code, "{format:?} {value}");
        }
    }

    #[test]
    fn too_large_is_the_largest_and_nan_stays_where_it_can() {
        let all = [
            Format::E4M3,
            Format::E5M2,
            Format::E8M0,
            Format::E2M1,
            Format::E2M3,
            Format::E3M2,
            Format::E4M3Fnuz,
            Format::E5M2Fnuz,
        ];
        for format in all {
            assert_eq!(format.code(f64::INFINITY), format.last(), "{format:?}");
            assert_eq!(format.code(1e300), format.last(), "{format:?}");
            if format != Format::E8M0 {
                assert_eq!(
                    format.code(f64::NEG_INFINITY),
                    format.sign() | format.last(),
                    "{format:?}"
                );
            }
        }
        assert_eq!(Format::E4M3.code(f64::NAN), 0x7F);
        assert_eq!(Format::E5M2.code(-f64::NAN), 0xFF);
        assert_eq!(Format::E8M0.code(f64::NAN), 0xFF);
        assert_eq!(Format::E2M1.code(f64::NAN), 0);
        for nothing in [0.0, -0.0, -1.0, f64::NEG_INFINITY] {
            assert_eq!(Format::E8M0.code(nothing), 0, "{nothing}");
        }
    }
}
