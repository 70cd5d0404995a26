//! Numbers with a bound on the error of a kernel, and the arithmetic that propagates the bound.
//!
//! Operations that are more than a sum of products are implemented once, in this arithmetic. Values
//! are computed in binary64; with each step, the bound grows by the rounding errors that a kernel
//! makes in its compute type.

use crate::ReferenceError;
use crate::context::Context;
use crate::element::Codec;
use crate::sums::{Sums, grid, product_grid};
use crate::value::{Numbers, Value, flushed, rounding_error};
use rotini_graph::TensorId;

/// A number with a bound on its distance from a kernel's value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Real {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Real {
    /// Returns a number that every kernel represents exactly.
    pub(crate) const fn exactly(value: f64) -> Self {
        Real { value, error: 0.0 }
    }

    /// Returns true if some kernels may have zero here and others not.
    fn may_be_zero(&self) -> bool {
        self.error > 0.0 && self.value.abs() <= self.error
    }
}

/// The arithmetic of a node that computes in floats.
///
/// Additions, multiplications and sums have the errors of their roundings. Devices may use
/// approximations of division and square root that are off by a few units, and exponentials whose
/// error grows with their argument, because the argument is first multiplied by log2(e).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arithmetic {
    compute: Codec,
    /// Whether errors are computed; they are 0 otherwise.
    bounds: bool,
}

impl Arithmetic {
    pub(crate) fn add(&self, a: Real, b: Real) -> Real {
        let value = a.value + b.value;
        if !value.is_finite() {
            return self.special(value, is_unknown(&[a, b]));
        }
        self.rounded(value, a.error + b.error, 1.0)
    }

    pub(crate) fn sub(&self, a: Real, b: Real) -> Real {
        self.add(a, Real { value: -b.value, ..b })
    }

    pub(crate) fn mul(&self, a: Real, b: Real) -> Real {
        let value = a.value * b.value;
        if !value.is_finite() {
            return self.special(value, is_unknown_product(a, b));
        }
        self.rounded(value, product_error(a, b), 1.0)
    }

    pub(crate) fn div(&self, a: Real, b: Real) -> Real {
        let value = a.value / b.value;
        if !value.is_finite() {
            let is_unknown = is_unknown(&[a, b]) || b.may_be_zero() || (b.value == 0.0 && a.may_be_zero());
            return self.special(value, is_unknown);
        }
        let least = b.value.abs() - b.error;
        let propagated = match a.error + value.abs() * b.error {
            0.0 => 0.0,
            _ if least <= 0.0 => f64::INFINITY,
            numerator => numerator / least,
        };
        self.rounded(value, propagated, 4.0)
    }

    /// Returns 1 / sqrt(a).
    pub(crate) fn rsqrt(&self, a: Real) -> Real {
        let value = 1.0 / a.value.sqrt();
        if !value.is_finite() {
            return self.special(value, a.may_be_zero());
        }
        let propagated = match a.error {
            0.0 => 0.0,
            error if a.value <= error => f64::INFINITY,
            error => 1.0 / (a.value - error).sqrt() - value,
        };
        self.rounded(value, propagated, 8.0)
    }

    pub(crate) fn exp(&self, a: Real) -> Real {
        let value = a.value.exp();
        let propagated = if a.error == 0.0 {
            0.0
        } else {
            (a.value + a.error).exp() - value
        };
        // Beyond 1000 the exponential has underflowed, so a larger argument adds no error.
        let argument = a.value.abs().min(1000.0) + a.error.min(1000.0);
        self.rounded(value, propagated, 16.0 + 2.0 * argument)
    }

    /// Returns the natural logarithm.
    pub(crate) fn ln(&self, a: Real) -> Real {
        let value = a.value.ln();
        let propagated = match a.error {
            0.0 => 0.0,
            error if a.value <= error => f64::INFINITY,
            error => value - (a.value - error).ln(),
        };
        // Devices start from the logarithm of base 2, which near 1 has a small absolute error but
        // not a small relative one.
        let own = if a.value.is_finite() && a.value > 0.0 {
            4.0 * self.unit()
        } else {
            0.0
        };
        self.rounded(value, propagated + own, 4.0)
    }

    /// Returns the sum; the bound holds for any order of summation.
    pub(crate) fn sum(&self, terms: &[Real]) -> Real {
        let value: f64 = terms.iter().map(|term| term.value).sum();
        if !self.bounds {
            return Real::exactly(value);
        }
        if !value.is_finite() {
            return self.special(value, is_unknown(terms));
        }
        let propagated: f64 = terms.iter().map(|term| term.error).sum();
        let magnitude: f64 = terms.iter().map(|term| term.value.abs()).sum();
        let grid = (propagated == 0.0).then(|| grid(&values(terms))).flatten();
        self.summed(value, magnitude, propagated, terms.len().saturating_sub(1), grid)
    }

    /// Returns the sum of products; the bound holds for any order of summation.
    pub(crate) fn dot(&self, a: &[Real], b: &[Real]) -> Real {
        let pairs = || a.iter().zip(b);
        let value: f64 = pairs().map(|(a, b)| a.value * b.value).sum();
        if !self.bounds {
            return Real::exactly(value);
        }
        if !value.is_finite() {
            let is_certain_nan = pairs().any(|(&a, &b)| (a.value * b.value).is_nan() && !is_unknown_product(a, b));
            let is_unknown = pairs().any(|(&a, &b)| is_unknown_product(a, b));
            return self.special(value, is_unknown && !is_certain_nan);
        }
        let magnitude: f64 = pairs().map(|(a, b)| (a.value * b.value).abs()).sum();
        let propagated: f64 = pairs()
            .map(|(&a, &b)| product_error(a, b).max(flushed(self.compute, a.value * b.value)))
            .sum();
        let grid = (propagated == 0.0)
            .then(|| product_grid(&values(a), &values(b)))
            .flatten();
        self.summed(value, magnitude, propagated, a.len(), grid)
    }

    /// Returns the mean of the terms.
    pub(crate) fn mean(&self, terms: &[Real]) -> Real {
        self.div(self.sum(terms), Real::exactly(terms.len() as f64))
    }

    /// Returns the number with its relative error increased by this many units.
    pub(crate) fn blurred(&self, a: Real, units: f64) -> Real {
        if !self.bounds || !a.value.is_finite() {
            return a;
        }
        Real {
            value: a.value,
            error: a.error + units * self.unit() * (a.value.abs() + a.error),
        }
    }

    /// Returns the number with the error of a possible rounding to a narrower type.
    pub(crate) fn narrowed(&self, a: Real, codec: Codec) -> Real {
        if !self.bounds || codec == self.compute {
            return a;
        }
        Real {
            value: a.value,
            error: a.error + rounding_error(codec, a.value.abs() + a.error, a.error == 0.0),
        }
    }

    /// Returns a NaN or infinite result. Its error is 0, or infinite if `is_unknown`: if a kernel
    /// may flush an operand to zero and so get another result.
    const fn special(&self, value: f64, is_unknown: bool) -> Real {
        Real {
            value,
            error: if self.bounds && is_unknown { f64::INFINITY } else { 0.0 },
        }
    }

    fn summed(&self, value: f64, magnitude: f64, propagated: f64, roundings: usize, grid: Option<i32>) -> Real {
        // The kernel's f64 sum and the reference's own binary64 sum may be off in opposite
        // directions.
        let roundings = if self.compute == Codec::F64 {
            2 * roundings
        } else {
            roundings
        };
        let error = Sums::new(self.compute, roundings, grid).bound(magnitude, propagated);
        Real {
            value,
            error: finite_or_infinite(error.max(flushed(self.compute, value))),
        }
    }

    /// Returns a result with the error `propagated` of its operands and `units` roundings of its
    /// own.
    fn rounded(&self, value: f64, propagated: f64, units: f64) -> Real {
        if !self.bounds {
            return Real::exactly(value);
        }
        // A result that the compute type represents is exact, except in f64: there a fused
        // operation may keep bits that the reference's own binary64 result has already lost.
        let exactly = propagated == 0.0 && self.compute != Codec::F64;
        let units = if self.compute == Codec::F64 { 2.0 * units } else { units };
        let rounding = rounding_error(self.compute, value.abs() + propagated, exactly);
        let error = propagated + (units * rounding).max(flushed(self.compute, value));
        Real {
            value,
            error: finite_or_infinite(error),
        }
    }

    /// Returns the unit roundoff; 0 without bounds.
    fn unit(&self) -> f64 {
        if self.bounds {
            rounding_error(self.compute, 1.0, false)
        } else {
            0.0
        }
    }
}

fn values(reals: &[Real]) -> Vec<f64> {
    reals.iter().map(|real| real.value).collect()
}

/// Returns true if the sum of these terms has no bound: one term has none, and no term is NaN for
/// certain.
fn is_unknown(terms: &[Real]) -> bool {
    let is_nan = |term: &Real| term.value.is_nan() && term.error == 0.0;
    terms.iter().any(|term| term.error.is_infinite()) && !terms.iter().any(is_nan)
}

/// Returns true if the product of two factors has no bound: one of them has none, or one is
/// infinite and the other may be flushed to zero, which gives NaN instead of an infinity. A certain
/// NaN gives a certain NaN.
fn is_unknown_product(a: Real, b: Real) -> bool {
    let is_nan = |factor: Real| factor.value.is_nan() && factor.error == 0.0;
    let meets = |infinite: Real, other: Real| infinite.value.is_infinite() && other.may_be_zero();
    !is_nan(a) && !is_nan(b) && (is_unknown(&[a, b]) || meets(a, b) || meets(b, a))
}

fn product_error(a: Real, b: Real) -> f64 {
    let part = |factor: f64, error: f64| if error == 0.0 { 0.0 } else { factor.abs() * error };
    finite_or_infinite(part(a.value, b.error) + part(b.value, a.error) + part(a.error, b.error))
}

/// Replaces a NaN bound, which arises from infinities, by infinity.
fn finite_or_infinite(error: f64) -> f64 {
    if error.is_nan() { f64::INFINITY } else { error }
}

impl Context<'_> {
    /// Returns the arithmetic of the node.
    pub(crate) fn arithmetic(&self) -> Result<Arithmetic, ReferenceError> {
        if self.compute.precision().is_none() {
            return Err(self.unsupported("this operation in integers"));
        }
        Ok(Arithmetic {
            compute: self.compute,
            bounds: self.bounds,
        })
    }

    /// Returns the elements of a tensor, packed in logical order. Their errors allow for devices
    /// that flush subnormal elements to zero.
    pub(crate) fn reals(&self, id: TensorId) -> Result<Vec<Real>, ReferenceError> {
        let operand = self.floats(id)?;
        let numbers = operand.numbers.iter();
        Ok(match &operand.errors {
            Some(errors) => numbers
                .zip(errors.iter())
                .map(|(&value, &error)| Real {
                    value,
                    error: error.max(flushed(self.compute, value)),
                })
                .collect(),
            None => numbers.map(|&value| Real::exactly(value)).collect(),
        })
    }

    /// Returns the only element of a tensor.
    pub(crate) fn real(&self, id: TensorId) -> Result<Real, ReferenceError> {
        match self.reals(id)?.as_slice() {
            &[real] => Ok(real),
            _ => Err(ReferenceError::not_validated("a single value has several elements")),
        }
    }

    /// Returns a result of the node as a tensor's value.
    pub(crate) fn result(&self, id: TensorId, reals: &[Real]) -> Result<(TensorId, Value), ReferenceError> {
        let dims = self.dims(id)?;
        if dims.iter().product::<usize>() != reals.len() {
            return Err(ReferenceError::not_validated(format!(
                "{} elements for dims {dims:?}",
                reals.len()
            )));
        }
        let value = Value {
            dims,
            numbers: Numbers::Float(values(reals)),
            errors: self.bounds.then(|| reals.iter().map(|real| real.error).collect()),
        };
        Ok((id, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Arithmetic = Arithmetic {
        compute: Codec::F32,
        bounds: true,
    };
    const U: f64 = 1.0 / 16_777_216.0;

    #[test]
    fn what_the_type_holds_is_exact_and_anything_else_is_rounded() {
        let [one, third] = [1.0, f64::from(1.0_f32 / 3.0)].map(Real::exactly);
        assert_eq!(F32.add(one, one).error, 0.0);
        assert_eq!(F32.mul(third, third).error, U * third.value * third.value);
        assert_eq!(F32.sum(&[one; 5]).error, 0.0);
        let thirds = F32.dot(&[third; 4], &[third; 4]);
        assert_eq!(
            (thirds.value, thirds.error),
            (4.0 * third.value * third.value, 4.0 * U * thirds.value)
        );
        assert!(F32.exp(Real::exactly(0.0)).error == 0.0);
    }

    #[test]
    fn errors_propagate_as_far_as_they_can() {
        let uncertain = |value, error| Real { value, error };
        let close = |real: Real, error: f64| {
            assert!((real.error / error - 1.0).abs() < 1e-3, "{real:?} instead of {error}");
        };
        close(
            F32.mul(uncertain(2.0, 0.1), uncertain(-3.0, 0.2)),
            0.1 * 3.0 + 0.2 * 2.0 + 0.02,
        );
        close(F32.div(uncertain(6.0, 0.5), uncertain(2.0, 1.0)), 6.5 - 3.0);
        close(F32.rsqrt(uncertain(1.0, 0.75)), 1.0);
        close(F32.exp(uncertain(1.0, 1.0)), 2.0_f64.exp() - 1.0_f64.exp());
        close(F32.ln(uncertain(2.0, 1.0)), 2.0_f64.ln());
        assert_eq!(F32.rsqrt(uncertain(1.0, 1.0)).error, f64::INFINITY);
        assert_eq!(F32.div(Real::exactly(1.0), uncertain(1.0, 2.0)).error, f64::INFINITY);
        assert_eq!(F32.exp(uncertain(-2000.0, 1.0)).error, 0.0);
        assert_eq!(F32.exp(uncertain(f64::NEG_INFINITY, 0.0)).error, 0.0);
    }

    #[test]
    fn nothing_is_known_of_what_is_made_of_the_unknown() {
        let unknown = Real {
            value: 2.0,
            error: f64::INFINITY,
        };
        for known in [0.0, 0.5].map(Real::exactly) {
            assert_eq!(F32.mul(known, unknown).error, f64::INFINITY);
            assert_eq!(F32.dot(&[known], &[unknown]).error, f64::INFINITY);
            assert_eq!(F32.dot(&[unknown], &[known]).error, f64::INFINITY);
        }
        assert_eq!(F32.sum(&[unknown, Real::exactly(1.0)]).error, f64::INFINITY);
    }

    #[test]
    fn infinities_are_certain_unless_they_meet_what_may_be_zero() {
        let infinity = Real::exactly(f64::INFINITY);
        let tiny = Real {
            value: 1e-45,
            error: 1e-45,
        };
        let certain = [
            F32.mul(infinity, Real::exactly(2.0)),
            F32.mul(infinity, Real::exactly(0.0)),
            F32.add(infinity, tiny),
            F32.sub(infinity, infinity),
            F32.sum(&[infinity, tiny]),
            F32.dot(&[infinity, tiny], &[Real::exactly(1.0); 2]),
            F32.mul(Real::exactly(f64::NAN), tiny),
        ];
        assert!(certain.iter().all(|real| real.error == 0.0), "{certain:?}");
        let unknown = F32.mul(infinity, tiny);
        for real in [
            unknown,
            F32.add(unknown, Real::exactly(1.0)),
            F32.dot(&[infinity, tiny], &[tiny, tiny]),
            F32.div(infinity, tiny),
            F32.rsqrt(Real { value: 0.0, ..tiny }),
        ] {
            assert_eq!(real.error, f64::INFINITY);
        }
        let nan = Real::exactly(f64::NAN);
        assert_eq!((F32.add(unknown, nan).error, F32.mul(unknown, nan).error), (0.0, 0.0));
    }

    #[test]
    fn without_bounds_nothing_is_off() {
        let plain = Arithmetic {
            compute: Codec::F32,
            bounds: false,
        };
        let third = Real::exactly(1.0 / 3.0);
        for real in [
            plain.mul(third, third),
            plain.exp(third),
            plain.ln(third),
            plain.mean(&[third; 3]),
        ] {
            assert_eq!(real.error, 0.0);
        }
    }
}
