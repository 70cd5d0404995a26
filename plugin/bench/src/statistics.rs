//! Medians, and how sure they are.
//!
//! Two things move a figure: from round to round, and from visit to visit, each of which has its
//! own process and buffers. The interval holds both: it is the wider of
//! - from one sample to another, chosen so that the true median lies between them with 95 %
//!   confidence (the binomial distribution of how many samples lie below it; nothing is assumed of
//!   the times);
//! - Student's interval of the logarithms of the visits' medians.

use crate::results::Times;

/// The median of the samples of some visits, and its interval. `None` without samples.
#[must_use]
pub(crate) fn times(visits: &[Vec<f64>]) -> Option<Times> {
    let (median, low, high) = interval(visits)?;
    Some(Times {
        median,
        low,
        high,
        samples: visits.concat(),
    })
}

/// The median of all samples and the interval that holds the true median with 95 % confidence. With
/// one visit of fewer than six samples, no interval has that confidence: then it is all of them.
#[must_use]
pub(crate) fn interval(visits: &[Vec<f64>]) -> Option<(f64, f64, f64)> {
    let (median, low, high) = ranks(&visits.concat())?;
    let medians: Vec<f64> = visits.iter().filter_map(|visit| Some(ranks(visit)?.0)).collect();
    Some(match between(&medians) {
        Some((least, most)) => (median, low.min(least), high.max(most)),
        None => (median, low, high),
    })
}

/// Student's interval of the mean of logarithms. `None` for fewer than two figures.
fn between(medians: &[f64]) -> Option<(f64, f64)> {
    /// The 97.5 % quantiles of Student's distribution, by degrees of freedom from 1.
    const QUANTILES: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    let freedom = medians.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
    let quantile = QUANTILES.get(freedom - 1).unwrap_or(&QUANTILES[QUANTILES.len() - 1]);
    let count = medians.len() as f64;
    let logarithms: Vec<f64> = medians.iter().map(|median| median.ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / count;
    let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
    let half = quantile * (squares / freedom as f64 / count).sqrt();
    Some(((mean - half).exp(), (mean + half).exp()))
}

/// The median of some samples, and the samples between which the true median lies with 95 %
/// confidence.
fn ranks(samples: &[f64]) -> Option<(f64, f64, f64)> {
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
        // Ranks of the tables of order statistics: for 10 samples the 2nd and the 9th, for 20 the
        // 6th and the 15th.
        let samples = |count: i32| vec![(1..=count).map(f64::from).collect::<Vec<_>>()];
        assert_eq!(interval(&samples(10)), Some((5.5, 2.0, 9.0)));
        assert_eq!(interval(&samples(20)), Some((10.5, 6.0, 15.0)));
        assert_eq!(interval(&samples(15)), Some((8.0, 4.0, 12.0)));
        assert_eq!(interval(&samples(6)), Some((3.5, 1.0, 6.0)));
        assert_eq!(interval(&samples(1)), Some((1.0, 1.0, 1.0)));
        assert_eq!(interval(&[]), None);
        // With three visits, the mean of the logarithms is 0, their deviation 0.1, and 4.303 × 0.1
        // / √3 = 0.2484.
        let visits: Vec<Vec<f64>> = [-0.1_f64, 0.0, 0.1].map(|log| vec![log.exp(); 5]).into();
        let (median, low, high) = interval(&visits).unwrap();
        assert!((median - 1.0).abs() < 1e-12);
        assert!((low.ln() + 0.2484).abs() < 1e-4 && (high.ln() - 0.2484).abs() < 1e-4);
    }

    /// The part of 2000 runs whose interval holds the true median.
    fn share(visits: usize, rounds: usize, of_visit: f64) -> f64 {
        use rand_chacha::ChaCha8Rng;
        use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
        const RUNS: u32 = 2000;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut uniform = move || (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
        let mut inside = 0_u32;
        for _ in 0..RUNS {
            let run: Vec<Vec<f64>> = (0..visits)
                .map(|_| {
                    let visit: f64 = of_visit * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0);
                    // Skewed, as times are; the median is where the exponential distribution has
                    // it.
                    let mut round = || visit.exp() * (1.0 - 0.1 * uniform().ln());
                    (0..rounds).map(|_| round()).collect()
                })
                .collect();
            let (_, low, high) = interval(&run).unwrap();
            inside += u32::from((low..=high).contains(&(1.0 + 0.1 * std::f64::consts::LN_2)));
        }
        f64::from(inside) / f64::from(RUNS)
    }

    #[test]
    fn the_true_median_is_inside_as_often_as_is_said() {
        // One visit; visits that are alike; visits that differ by more than rounds do.
        for (visits, rounds, of_visit) in [(1, 15, 0.0), (5, 3, 0.0), (5, 3, 0.2), (3, 5, 0.2)] {
            let share = share(visits, rounds, of_visit);
            assert!(share >= 0.945, "{visits} visits, deviation {of_visit}: {share}");
        }
    }
}
