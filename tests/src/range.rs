//! The range of a tensor's elements, so that the error bounds of deep random graphs stay tight.

/// Bounds of a tensor's elements, possibly loose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Range {
    pub(crate) const fn new(low: f64, high: f64) -> Self {
        Range { low, high }
    }

    /// Returns the range from -magnitude to magnitude.
    pub(crate) const fn around(magnitude: f64) -> Self {
        Range::new(-magnitude, magnitude)
    }

    pub(crate) fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    pub(crate) fn hull(self, other: Self) -> Self {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    pub(crate) fn clamp(self, least: f64, most: f64) -> Self {
        Range::new(self.low.clamp(least, most), self.high.clamp(least, most))
    }

    /// Returns the range of an increasing function.
    pub(crate) fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Range::new(function(self.low), function(self.high))
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let ends = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        Range::new(
            ends.into_iter().fold(f64::INFINITY, f64::min),
            ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}
