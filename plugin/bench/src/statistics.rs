//! Medians, and how sure they are.
//!
//! No distribution is assumed: the interval of a median goes from one sample to another, chosen so that the true median lies between
//! them with 95 % confidence (the binomial distribution of how many samples lie below it).

use crate::results::Times;

/// The median and its interval. `None` without samples.
#[must_use]
pub(crate) fn times(samples: Vec<f64>) -> Option<Times> {
    let (median, low, high) = interval(&samples)?;
    Some(Times {
        median,
        low,
        high,
        samples,
    })
}

/// The median of some samples and the interval that holds the true median with 95 % confidence. With fewer than six samples, no
/// interval has that confidence: then it is all of them.
#[must_use]
pub(crate) fn interval(samples: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let at = |index: usize| sorted.get(index).copied();
    let median = if count % 2 == 1 {
        at(count / 2)?
    } else {
        f64::midpoint(at((count / 2).checked_sub(1)?)?, at(count / 2)?)
    };
    let outside = ranks_outside(count);
    Some((median, at(outside)?, at(count - 1 - outside)?))
}

/// How many samples on each side are outside of the interval.
fn ranks_outside(count: usize) -> usize {
    /// On each side.
    const DOUBT: f64 = 0.025;
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = probability;
    let mut outside = 0;
    // While the chance that the true median is below the sample after the next is small enough.
    while sum <= DOUBT && 2 * (outside + 1) < count {
        probability *= (count - outside) as f64 / (outside + 1) as f64;
        if sum + probability > DOUBT {
            break;
        }
        sum += probability;
        outside += 1;
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_table() {
        // Ranks of the tables of order statistics: for 10 samples the 2nd and the 9th, for 20 the 6th and the 15th.
        let samples = |count: i32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&samples(10)), Some((5.5, 2.0, 9.0)));
        assert_eq!(interval(&samples(20)), Some((10.5, 6.0, 15.0)));
        assert_eq!(interval(&samples(15)), Some((8.0, 4.0, 12.0)));
        assert_eq!(interval(&samples(6)), Some((3.5, 1.0, 6.0)));
        assert_eq!(interval(&samples(1)), Some((1.0, 1.0, 1.0)));
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn the_true_median_is_inside_as_often_as_is_said() {
        use rand_chacha::ChaCha8Rng;
        use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let inside = (0..2000)
            .filter(|_| {
                // Skewed, as times are; the median is where the exponential distribution has it.
                let samples: Vec<f64> = (0..15)
                    .map(|_| -(1.0 - f64::from(rng.next_u32()) / 4_294_967_296.0).ln())
                    .collect();
                let (_, low, high) = interval(&samples).unwrap();
                (low..=high).contains(&std::f64::consts::LN_2)
            })
            .count();
        assert!(inside >= 1900, "{inside} of 2000");
    }
}
