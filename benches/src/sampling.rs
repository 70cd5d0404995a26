//! Takes samples of two things in turn.
//!
//! Divan and criterion take all samples of one function and then all of the next. If clocks and
//! neighbours change meanwhile, the ratio of the two blocks says little. Here each sample of ours
//! has one of its peer beside it.

use anyhow::Result;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Durations of one call, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The duration that this share of the samples is below.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        // Rounded to the nearest sample.
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Samples of ours and of its peer, in turn and in changing order, after a tenth more that is
/// thrown away.
///
/// # Errors
///
/// The first of either.
pub(crate) fn interleave(
    count: usize,
    mut ours: impl FnMut() -> Result<Duration>,
    mut peer: impl FnMut() -> Result<Duration>,
) -> Result<(Samples, Samples)> {
    let warm_up = count.div_ceil(10);
    let mut samples = (Vec::with_capacity(count), Vec::with_capacity(count));
    for round in 0..warm_up + count {
        // What runs second finds the caches as the first left them: each has that half of the time.
        let pair = if round % 2 == 0 {
            let ours = ours()?;
            (ours, peer()?)
        } else {
            let peer = peer()?;
            (ours()?, peer)
        };
        if round >= warm_up {
            samples.0.push(pair.0);
            samples.1.push(pair.1);
        }
    }
    samples.0.sort_unstable();
    samples.1.sort_unstable();
    Ok((Samples(samples.0), Samples(samples.1)))
}

/// A sample that is the mean of `batch` calls, for what is short beside reading the clock. What the
/// calls return is dropped in that time.
pub(crate) fn timed<T>(batch: u32, mut call: impl FnMut() -> Result<T>) -> impl FnMut() -> Result<Duration> {
    move || {
        let started = Instant::now();
        for _ in 0..batch {
            drop(black_box(call()?));
        }
        Ok(started.elapsed() / batch)
    }
}
