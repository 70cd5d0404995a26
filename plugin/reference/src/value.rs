//! A tensor's elements during computation: packed, in logical row-major order.

use crate::element::{Codec, Number};
use std::borrow::Cow;

/// Elements in the arithmetic of the node that made them.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    /// Values of a float tensor, kept in binary64.
    Float(Vec<f64>),
    /// Values of an integer tensor, exact.
    Integer(Vec<i64>),
}

/// The elements of one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) dims: Vec<usize>,
    pub(crate) numbers: Numbers,
    /// For each element, a bound on its distance from the value in a kernel that keeps the graph's
    /// meaning. `None` unless bounds were asked for.
    pub(crate) errors: Option<Vec<f64>>,
}

/// An operand in the arithmetic of the node that reads it.
pub(crate) struct Operand<'a, T: Clone> {
    pub(crate) dims: &'a [usize],
    pub(crate) numbers: Cow<'a, [T]>,
    pub(crate) errors: Option<Cow<'a, [f64]>>,
}

impl Numbers {
    pub(crate) fn iter(&self) -> Box<dyn ExactSizeIterator<Item = Number> + '_> {
        match self {
            Numbers::Float(values) => Box::new(values.iter().map(|&value| Number::Float(value))),
            Numbers::Integer(values) => Box::new(values.iter().map(|&value| Number::Integer(value))),
        }
    }
}

impl Value {
    /// Returns the elements as a node of this float type reads them. With `rounded`, they are
    /// rounded to the type.
    pub(crate) fn floats(&self, compute: Codec, rounded: bool) -> Operand<'_, f64> {
        let errors = self.errors.as_ref().map(|errors| {
            let sum = |(number, error): (Number, &f64)| error + rounding_error(compute, number.to_f64(), *error == 0.0);
            Cow::Owned(self.numbers.iter().zip(errors).map(sum).collect())
        });
        let numbers = match &self.numbers {
            Numbers::Float(values) if !rounded => Cow::Borrowed(values.as_slice()),
            numbers => Cow::Owned(
                numbers
                    .iter()
                    .map(|number| {
                        if rounded {
                            compute.round(number.to_f64())
                        } else {
                            number.to_f64()
                        }
                    })
                    .collect(),
            ),
        };
        Operand {
            dims: &self.dims,
            numbers,
            errors,
        }
    }

    /// Returns the elements as a node of this integer type reads them.
    pub(crate) fn integers(&self, compute: Codec) -> Operand<'_, i64> {
        let numbers = self.numbers.iter().map(|number| match compute.convert(number) {
            Number::Integer(value) => value,
            Number::Float(value) => value as i64,
        });
        Operand {
            dims: &self.dims,
            numbers: Cow::Owned(numbers.collect()),
            errors: self
                .errors
                .as_ref()
                .map(|errors| Cow::Owned(conversion_errors(&self.numbers, errors, compute))),
        }
    }

    /// Returns the elements converted to `codec`.
    pub(crate) fn convert(self, codec: Codec) -> Value {
        let errors = self
            .errors
            .as_ref()
            .map(|errors| conversion_errors(&self.numbers, errors, codec));
        let numbers = if codec.precision().is_some() {
            Numbers::Float(
                self.numbers
                    .iter()
                    .map(|number| codec.convert(number).to_f64())
                    .collect(),
            )
        } else {
            Numbers::Integer(self.integers(codec).numbers.into_owned())
        };
        Value {
            dims: self.dims,
            numbers,
            errors,
        }
    }
}

/// Returns the errors of the converted elements. Conversions are monotone, so the converted ends of
/// the interval bound everything between them. The conversion to a truth value is not monotone: 0,
/// which alone is false, may lie between the ends.
fn conversion_errors(numbers: &Numbers, errors: &[f64], codec: Codec) -> Vec<f64> {
    let converted = |value: f64| codec.convert(Number::Float(value)).to_f64();
    numbers
        .iter()
        .zip(errors)
        .map(|(number, &error)| {
            if error == 0.0 {
                return 0.0;
            }
            let value = number.to_f64();
            if codec == Codec::Bool {
                return f64::from(u8::from(value.abs() <= error));
            }
            let middle = codec.convert(number).to_f64();
            distance(converted(value - error), middle).max(distance(converted(value + error), middle))
        })
        .collect()
}

/// Returns the distance of two results: 0 for two equal infinities or two NaN, infinite if only one
/// of them is special.
pub(crate) fn distance(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// Returns the maximum error of rounding a value near `value` to `codec`. If `exactly`, it is
/// `value` itself that is rounded, so the error is 0 where the type represents it.
pub(crate) fn rounding_error(codec: Codec, value: f64, exactly: bool) -> f64 {
    let Some(precision) = codec.precision() else {
        return 0.0;
    };
    let rounded = codec.round(value);
    if !value.is_finite() || (exactly && rounded == value) {
        return 0.0;
    }
    if rounded.is_infinite() {
        return f64::INFINITY;
    }
    value.abs().max(least_normal(codec)) * 2.0_f64.powi(-precision)
}

/// Returns the distance from a number of this magnitude to the next one in a float type; infinite
/// beyond the type's largest number.
pub(crate) fn ulp(codec: Codec, magnitude: f64) -> f64 {
    let Some(precision) = codec.precision() else {
        return 0.0;
    };
    let magnitude = magnitude.abs().max(least_normal(codec));
    if !codec.round(magnitude).is_finite() {
        return f64::INFINITY;
    }
    // Clearing the fraction bits leaves the power of two at or below the magnitude.
    let power = f64::from_bits(magnitude.to_bits() & !((1 << 52) - 1));
    power * 2.0_f64.powi(1 - precision)
}

/// Returns the error if `value` is flushed to zero because it is subnormal. f16 is computed in f32,
/// in which its subnormals are normal.
pub(crate) fn flushed(codec: Codec, value: f64) -> f64 {
    let is_subnormal = codec != Codec::F16 && codec.precision().is_some() && value.abs() < least_normal(codec);
    if is_subnormal { value.abs() } else { 0.0 }
}

/// Returns the least magnitude that is not subnormal.
pub(crate) fn least_normal(codec: Codec) -> f64 {
    match codec {
        Codec::F16 => 2.0_f64.powi(-14),
        Codec::F64 => f64::MIN_POSITIVE,
        _ => f32::MIN_POSITIVE.into(),
    }
}

/// Returns the maximum error of a kernel's `sum` / `count` if its sum is off by `error`. Dividing
/// by a power of two loses nothing; for other counts, devices multiply by a rounded reciprocal.
pub(crate) fn division_error(codec: Codec, sum: f64, error: f64, count: usize) -> f64 {
    let quotient = sum / count as f64;
    let rounding = if count.is_power_of_two() {
        rounding_error(codec, quotient, error == 0.0)
    } else {
        4.0 * rounding_error(codec, quotient, false)
    };
    error / count as f64 + rounding.max(flushed(codec, quotient))
}

/// The largest of several numbers, with its error bound. NaN is ignored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extreme {
    /// The largest value; negative infinity before the first one.
    pub(crate) value: f64,
    low: f64,
    high: f64,
}

impl Default for Extreme {
    fn default() -> Self {
        Extreme {
            value: f64::NEG_INFINITY,
            low: f64::NEG_INFINITY,
            high: f64::NEG_INFINITY,
        }
    }
}

impl Extreme {
    pub(crate) fn add(&mut self, value: f64, error: f64) {
        // `f64::max` passes over NaN.
        self.value = self.value.max(value);
        self.low = self.low.max(value - error);
        self.high = self.high.max(value + error);
        // A special value with an unbounded error may be any number.
        if error.is_infinite() && !value.is_finite() {
            self.high = f64::INFINITY;
        }
    }

    pub(crate) fn error(&self) -> f64 {
        distance(self.high, self.value).max(distance(self.value, self.low))
    }
}
