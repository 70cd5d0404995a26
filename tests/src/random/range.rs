//! The range of a tensor's elements.

/// Bounds of a tensor's elements, possibly loose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    pub(super) const fn new(low: f64, high: f64) -> Self {
        Range { low, high }
    }

    /// Returns the range from -magnitude to magnitude.
    pub(super) const fn around(magnitude: f64) -> Self {
        Range::new(-magnitude, magnitude)
    }

    pub(super) fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    pub(super) fn hull(self, other: Self) -> Self {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    pub(super) fn clamp(self, least: f64, most: f64) -> Self {
        Range::new(self.low.clamp(least, most), self.high.clamp(least, most))
    }

    /// Returns the range of an increasing function.
    pub(super) fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Range::new(function(self.low), function(self.high))
    }

    pub(super) fn neg(self) -> Self {
        Range::new(-self.high, -self.low)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Range::new(self.low + other.low, self.high + other.high)
    }

    pub(super) fn times(self, other: Self) -> Self {
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
