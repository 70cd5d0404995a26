//! Computes one truncated fused dot product in integers: the reference implementation of the
//! definition in the crate's documentation.

use crate::form::Element;

/// Bits that products and accumulator keep below the largest exponent.
const FRACTION: u32 = 24;
/// Additional bits that the sum of the products keeps when the accumulator is added.
const EXTRA: u32 = 8;
/// Significant bits (less one) of the result before it is rounded to f32.
const RESULT_FRACTION: i32 = 31;
/// Exponent of the smallest normal f32.
const MIN_EXPONENT: i32 = -126;
/// The NaN that a dot product returns.
pub(crate) const NAN: u32 = 0x7fff_ffff;
/// Exponent of a sum of zero products only: below every other, and far from overflow.
const NOTHING: i32 = -1000;

/// An operand: `significand` · 2^(`exponent` − fraction bits of its type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) significand: i32,
    pub(crate) exponent: i16,
    pub(crate) class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Finite,
    /// With the sign of `significand`.
    Infinite,
    Nan,
}

impl Value {
    pub(crate) const ZERO: Self = Value {
        significand: 0,
        exponent: 0,
        class: Class::Finite,
    };

    /// Decodes the element in the lowest bits of `bits`; the bits above are ignored.
    pub(crate) fn decode(bits: u32, element: Element) -> Self {
        let (exponent_bits, fraction_bits, bias) = layout(element);
        // xf32 uses the upper 19 bits of a register. A NaN whose fraction bits are all below them
        // counts as an infinity.
        let bits = if element == Element::Xf32 { bits >> 13 } else { bits };
        let negative = bits >> (exponent_bits + fraction_bits) & 1 != 0;
        let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        let fraction = bits & ((1 << fraction_bits) - 1);
        let fnuz = matches!(element, Element::Fp8 | Element::Bf8);
        let class = if fnuz {
            if negative && field == 0 && fraction == 0 {
                Class::Nan
            } else {
                Class::Finite
            }
        } else if field == (1 << exponent_bits) - 1 {
            if fraction == 0 { Class::Infinite } else { Class::Nan }
        } else {
            Class::Finite
        };
        let magnitude = (if field == 0 {
            fraction
        } else {
            fraction | 1 << fraction_bits
        }) as i32;
        Value {
            significand: if negative { -magnitude } else { magnitude },
            exponent: field.max(1) as i16 - bias,
            class,
        }
    }
}

/// Returns the number of exponent and fraction bits, and the bias.
const fn layout(element: Element) -> (u32, u32, i16) {
    match element {
        Element::F64 | Element::F32 => (8, 23, 127),
        Element::Xf32 => (8, 10, 127),
        Element::F16 => (5, 10, 15),
        Element::Bf16 => (8, 7, 127),
        Element::Fp8 => (4, 3, 8),
        Element::Bf8 => (5, 2, 16),
        Element::I8 => (0, 7, 0),
    }
}

/// Returns the number of products in one dot product of these operands.
pub(crate) const fn length(a: Element) -> usize {
    match a {
        Element::Fp8 | Element::Bf8 => 16,
        Element::Xf32 => 4,
        _ => 8,
    }
}

/// Accumulates the dot products of `a` and `b` onto the f32 `c`; all values are bits.
pub(crate) fn dot(a: &[Value], b: &[Value], types: (Element, Element), c: u32) -> u32 {
    let length = length(types.0);
    let grouped = matches!(types.0, Element::Fp8 | Element::Bf8);
    let fraction = layout(types.0).1 + layout(types.1).1;
    a.chunks(length)
        .zip(b.chunks(length))
        .fold(c, |c, (a, b)| chunk(a, b, fraction, grouped, c))
}

/// Infinities and NaNs seen so far.
#[derive(Default)]
struct Specials {
    nan: bool,
    positive: bool,
    negative: bool,
}

impl Specials {
    fn infinity(&mut self, negative: bool) {
        if negative {
            self.negative = true;
        } else {
            self.positive = true;
        }
    }

    /// Returns the result that they force, if any.
    fn result(&self) -> Option<u32> {
        match self {
            Specials { nan: true, .. }
            | Specials {
                positive: true,
                negative: true,
                ..
            } => Some(NAN),
            Specials { positive: true, .. } => Some(f32::INFINITY.to_bits()),
            Specials { negative: true, .. } => Some(f32::NEG_INFINITY.to_bits()),
            _ => None,
        }
    }
}

fn chunk(a: &[Value], b: &[Value], fraction: u32, grouped: bool, c: u32) -> u32 {
    let mut specials = Specials::default();
    let mut products = [(0i32, 0i32); 16];
    // Largest exponents of the products with even and with odd k.
    let mut largest = [NOTHING; 2];
    let count = a.len();
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        let significand = a.significand * b.significand;
        let exponent = i32::from(a.exponent) + i32::from(b.exponent);
        if a.class != Class::Finite || b.class != Class::Finite {
            if a.class == Class::Nan || b.class == Class::Nan || a.significand == 0 || b.significand == 0 {
                specials.nan = true;
            } else {
                specials.infinity((a.significand < 0) != (b.significand < 0));
            }
        } else if significand != 0 {
            let carry = i32::from(significand.unsigned_abs() >> (fraction + 1) != 0);
            if exponent + carry >= 128 {
                specials.infinity(significand < 0);
            }
            products[k] = (significand, exponent);
            largest[k % 2] = largest[k % 2].max(exponent);
        }
    }
    let accumulator = f32::from_bits(c);
    if accumulator.is_nan() {
        specials.nan = true;
    } else if accumulator.is_infinite() {
        specials.infinity(accumulator < 0.0);
    }
    if let Some(result) = specials.result() {
        return result;
    }

    let exponent = largest[0].max(largest[1]);
    if !grouped {
        largest = [exponent; 2];
    }
    let mut sums = [0i64; 2];
    for (k, &(significand, exponent)) in products.iter().enumerate().take(count) {
        // `FRACTION` fraction bits hold every bit of a product; bits that the alignment shifts out
        // are truncated.
        let magnitude = u64::from(significand.unsigned_abs()) << (FRACTION - fraction);
        let cut = (magnitude >> (largest[k % 2] - exponent).clamp(0, 63)) as i64;
        sums[k % 2] += if significand < 0 { -cut } else { cut };
    }
    let sum = if grouped {
        let down = |side: usize| sums[side] >> (exponent - largest[side]).min(63);
        down(0) + down(1)
    } else {
        sums[0] + sums[1]
    };
    accumulate(sum, exponent, accumulator, grouped)
}

/// Returns `sum` · 2^(`exponent` − [`FRACTION`]) + `c`, as the matrix core rounds it.
fn accumulate(sum: i64, exponent: i32, c: f32, grouped: bool) -> u32 {
    let field = (c.to_bits() >> 23 & 0xff) as i32;
    let magnitude = i64::from(c.to_bits() & 0x7f_ffff) | if field == 0 { 0 } else { 1 << 23 };
    let c_significand = if c.is_sign_negative() { -magnitude } else { magnitude };
    let c_exponent = field.max(1) - 127;

    let top = exponent.max(c_exponent);
    // In units of 2^(top − FRACTION − EXTRA).
    let sum_shift = exponent - top + EXTRA as i32;
    let sum = if sum_shift >= 0 {
        sum << sum_shift
    } else {
        sum >> (-sum_shift).min(63)
    };
    let c_units = if grouped && c_exponent < top - FRACTION as i32 - 1 {
        0
    } else {
        c_significand << (FRACTION - 23) >> (top - c_exponent).min(63) << EXTRA
    };
    let total = sum + c_units;
    if total == 0 {
        return 0;
    }

    let unit = top - (FRACTION + EXTRA) as i32;
    let total_exponent = (unit + total.unsigned_abs().ilog2() as i32).max(MIN_EXPONENT);
    let dropped = (total_exponent - RESULT_FRACTION - unit).max(0);
    let total = total >> dropped << dropped;
    // Both factors and the product are exact in f64: 40 bits at most, with exponents far from its
    // limits.
    let scale = f64::from_bits(((1023 + i64::from(unit)) as u64) << 52);
    ((total as f64 * scale) as f32).to_bits()
}
