//! The error bound of a sum that a kernel accumulates in its compute type, in any order and with
//! fused multiplications.

use crate::element::Codec;
use crate::value::least_normal;

/// Bounds for the sums of one node.
///
/// A sum of n products that are added one after the other is off by at most n u times the sum of
/// their magnitudes, where u is the unit roundoff. This is allowed for few terms only: for many,
/// the bound grows like log n, as in a tree, so that a kernel which adds up a million elements in
/// one register is caught.
///
/// The sum is exact if every term and partial sum is a multiple of one power of two and the largest
/// still fits the significand above that power: integers in disguise, as [`fill`](crate::fill())
/// makes them. Subnormal terms may be rounded once more or flushed to zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    compute: Codec,
    roundoff: f64,
    exact_below: f64,
    underflow: f64,
}

/// Returns the number of roundings by which a sum of `terms` terms may be off.
fn growth(terms: usize) -> f64 {
    let terms = terms as f64;
    // Four for each level of a tree, because each lane adds up a few terms before the lanes are
    // combined.
    terms.min(4.0 * (terms.max(1.0).log2() + 1.0))
}

impl Sums {
    /// Returns the bounds of sums of at most `terms` terms, all multiples of 2^`grid` if it is
    /// known.
    pub(crate) fn new(compute: Codec, terms: usize, grid: Option<i32>) -> Self {
        let precision = compute.precision().unwrap_or(53);
        // f16 is computed in f32, in which its subnormals are normal.
        let least = match compute {
            Codec::F16 => 2.0_f64.powi(-24),
            _ => least_normal(compute),
        };
        let is_normal = grid.is_some_and(|grid| 2.0_f64.powi(grid) >= least);
        Sums {
            underflow: if is_normal { 0.0 } else { terms as f64 * least },
            compute,
            roundoff: growth(terms) * 2.0_f64.powi(-precision),
            exact_below: grid
                .filter(|_| is_normal)
                .map_or(0.0, |grid| 2.0_f64.powi(grid.saturating_add(precision))),
        }
    }

    /// Returns the bound for a sum whose terms' magnitudes add up to `magnitude` and whose terms'
    /// errors add up to `propagated`.
    pub(crate) fn bound(&self, magnitude: f64, propagated: f64) -> f64 {
        // An exact zero times an unbounded error.
        if propagated.is_nan() {
            return f64::INFINITY;
        }
        if magnitude <= self.exact_below {
            return propagated;
        }
        let most = magnitude + propagated;
        // A sum that may overflow on the way has no bound.
        if most.is_finite() && self.compute.round(most).is_infinite() {
            return f64::INFINITY;
        }
        propagated + self.roundoff * most + self.underflow
    }
}

/// Returns the grid of the products of two exact operands: the sum of their grids' exponents.
pub(crate) fn product_grid(a: &[f64], b: &[f64]) -> Option<i32> {
    Some(grid(a)?.saturating_add(grid(b)?))
}

/// Returns the exponent of the largest power of two of which all values are multiples; `None` if a
/// value is not finite.
pub(crate) fn grid(values: &[f64]) -> Option<i32> {
    values
        .iter()
        .try_fold(i32::MAX, |least, &value| {
            if value == 0.0 {
                return Some(least);
            }
            Some(least.min(odd_part(value)?.1))
        })
        // All zeros: any grid will do.
        .map(|least| if least == i32::MAX { 0 } else { least })
}

/// Returns a nonzero number as an odd integer (without its sign) and the exponent of the power of
/// two that it is multiplied by; `None` if it is not finite.
pub(crate) fn odd_part(value: f64) -> Option<(u64, i32)> {
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7FF).ok()?;
    let significand = (bits & ((1 << 52) - 1)) | if exponent == 0 { 0 } else { 1 << 52 };
    let lowest = significand.trailing_zeros();
    let odd = significand.checked_shr(lowest)?;
    (exponent != 0x7FF).then_some((odd, exponent.max(1) - 1075 + i32::try_from(lowest).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_values() {
        assert_eq!(grid(&[1.0, 0.5, -0.75, 0.0]), Some(-2));
        assert_eq!(grid(&[6.0, 4.0]), Some(1));
        assert_eq!(grid(&[0.0]), Some(0));
        assert_eq!(grid(&[f64::from_bits(1)]), Some(-1074));
        assert_eq!(grid(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn odd_parts() {
        assert_eq!(odd_part(-6.0), Some((3, 1)));
        assert_eq!(odd_part(0.625), Some((5, -3)));
        assert_eq!(odd_part(f64::INFINITY), None);
    }

    #[test]
    fn many_terms_are_allowed_the_logarithm_of_their_number() {
        assert_eq!([1, 4, 16].map(growth), [1.0, 4.0, 16.0]);
        assert_eq!(growth(1 << 20), 84.0);
        // The error of adding 0.1 a million times in one f32 register.
        let tenth = 0.1_f32;
        let wrong = (0..1 << 20).fold(0.0_f32, |sum, _| sum + tenth);
        let right = f64::from(tenth) * f64::from(1 << 20);
        let sums = Sums::new(Codec::F32, 1 << 20, grid(&[tenth.into()]));
        assert!((f64::from(wrong) - right).abs() > 100.0 * sums.bound(right, 0.0));
    }

    #[test]
    fn what_is_subnormal_may_be_lost() {
        let least = f64::from(f32::from_bits(1));
        let sums = Sums::new(Codec::F32, 2, grid(&[least]));
        assert!(sums.bound(least, 0.0) >= least, "either term may be taken for zero");
        assert!(sums.bound(least, 0.0) < 1e-37);
    }

    #[test]
    fn sums_on_a_grid_are_exact_until_they_outgrow_it() {
        let sums = Sums::new(Codec::F32, 4, Some(0));
        assert_eq!(sums.bound(f64::from(1 << 24), 0.0), 0.0);
        assert_eq!(sums.bound(f64::from(1 << 25), 0.0), 8.0, "4 terms, 2^25, u = 2^-24");
        assert_eq!(sums.bound(1e39, 0.0), f64::INFINITY);
        assert_eq!(sums.bound(1.0, f64::NAN), f64::INFINITY);
        assert_eq!(
            Sums::new(Codec::F64, 1, None).bound(1e39, 0.0),
            1e39 * 2.0_f64.powi(-53)
        );
    }
}
