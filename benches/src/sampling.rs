//! Interleaved sampling of two functions.
//!
//! Divan and criterion take all samples of one function, then all of the next. If clocks or other
//! load change in between, the ratio of the two blocks says little. Here each sample of ours is
//! taken next to one of its peer.

use anyhow::Result;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Durations of one call, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Returns the number of samples.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the quantile of the samples at `share`.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        // Rounded to the nearest sample.
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Takes `count` samples of ours and of its peer, alternating and in alternating order, after a
/// warm-up of a tenth of that number, which is discarded.
///
/// # Errors
///
/// Returns the first error of either function.
pub(crate) fn interleave(
    count: usize,
    mut ours: impl FnMut() -> Result<Duration>,
    mut peer: impl FnMut() -> Result<Duration>,
) -> Result<(Samples, Samples)> {
    let warm_up = count.div_ceil(10);
    let mut samples = (Vec::with_capacity(count), Vec::with_capacity(count));
    for round in 0..warm_up + count {
        // The second of the two finds the caches as the first left them. Each is second in half of
        // the rounds.
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

/// Returns a sampler whose samples are the mean of `batch` calls, for calls that are short compared
/// with reading the clock. Dropping the results is part of the measured time.
pub(crate) fn timed<T>(batch: u32, mut call: impl FnMut() -> Result<T>) -> impl FnMut() -> Result<Duration> {
    move || {
        let started = Instant::now();
        for _ in 0..batch {
            drop(black_box(call()?));
        }
        Ok(started.elapsed() / batch)
    }
}
