//! Exact dyadic numbers, and their rounding to a format in any direction.

use num_bigint::{BigInt, BigUint, Sign};

/// Number of bits of a format, of its exponent and of its fraction.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) bits: u32,
    pub(super) fraction: u32,
}

pub(super) const HALF: Format = Format { bits: 16, fraction: 10 };
pub(super) const SINGLE: Format = Format { bits: 32, fraction: 23 };
pub(super) const DOUBLE: Format = Format { bits: 64, fraction: 52 };

impl Format {
    fn top(self) -> u64 {
        (1 << (self.bits - 1 - self.fraction)) - 1
    }

    /// Returns the exponent of the last place of the smallest numbers.
    fn least(self) -> i64 {
        1 - (self.top() / 2) as i64 - i64::from(self.fraction)
    }

    pub(super) fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    pub(super) fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude >> self.fraction == 0
    }
}

/// The number m · 2^e.
#[derive(Clone)]
pub(super) struct Exact {
    m: BigInt,
    e: i64,
}

impl Exact {
    /// Returns the value of a finite float's bits.
    pub(super) fn of(bits: u64, format: Format) -> Option<Self> {
        let field = bits >> format.fraction & format.top();
        if field == format.top() {
            return None;
        }
        let fraction = bits & ((1 << format.fraction) - 1);
        let magnitude = if field == 0 {
            fraction
        } else {
            fraction | 1 << format.fraction
        };
        let m = BigInt::from(magnitude) * if bits & format.sign() != 0 { -1 } else { 1 };
        let e = format.least() + field.saturating_sub(1) as i64;
        Some(Self { m, e })
    }

    pub(super) fn integer(value: i128) -> Self {
        Self { m: value.into(), e: 0 }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self {
            m: &self.m * &other.m,
            e: self.e + other.e,
        }
    }

    pub(super) fn scaled(&self, by: i64) -> Self {
        Self {
            m: self.m.clone(),
            e: self.e + by,
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let e = self.e.min(other.e);
        Self {
            m: (&self.m << (self.e - e)) + (&other.m << (other.e - e)),
            e,
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.m.sign() == Sign::NoSign
    }

    /// Returns the bits of the number rounded: 0 to nearest even, 1 up, 2 down, 3 toward zero. The
    /// sign of a zero is `negative_zero`.
    pub(super) fn round(&self, format: Format, mode: u32, negative_zero: bool) -> u64 {
        let negative = self.m.sign() == Sign::Minus;
        let sign = |negative: bool| if negative { format.sign() } else { 0 };
        if self.is_zero() {
            return sign(negative_zero);
        }
        let magnitude = self.m.magnitude();
        let precision = i64::from(format.fraction) + 1;
        let mut unit = (self.e + magnitude.bits() as i64 - precision).max(format.least());
        let shift = unit - self.e;
        let mut units: BigUint = if shift <= 0 {
            magnitude << -shift
        } else {
            magnitude >> shift
        };
        let rest = if shift <= 0 {
            BigUint::ZERO
        } else {
            magnitude - (&units << shift)
        };
        if rest != BigUint::ZERO {
            let half = BigUint::from(1_u32) << (shift - 1);
            let up = match mode {
                0 => rest > half || (rest == half && units.bit(0)),
                1 => !negative,
                2 => negative,
                _ => false,
            };
            units += u32::from(up);
        }
        if units.bits() as i64 > precision {
            units >>= 1;
            unit += 1;
        }
        let units = units.iter_u64_digits().next().unwrap_or(0);
        if units >> format.fraction == 0 {
            return sign(negative) | units;
        }
        let field = (unit - format.least() + 1) as u64;
        if field >= format.top() {
            let infinity = format.top() << format.fraction;
            let away = match mode {
                0 => true,
                1 => !negative,
                2 => negative,
                _ => false,
            };
            return sign(negative) | if away { infinity } else { infinity - 1 };
        }
        sign(negative) | field << format.fraction | (units - (1 << format.fraction))
    }
}
