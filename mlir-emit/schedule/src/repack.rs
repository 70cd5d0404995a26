//! Owns the decision whether an operand is copied first, so that what is summed over lies innermost.
//!
//! Matrix cores take several terms of a sum from each lane. Where these are not side by side in memory, the compiler reads them from LDS one
//! by one.

use crate::Machine;

/// Bytes of a matrix that is worth a launch.
const LARGE: u64 = 1 << 20;
/// Microseconds that reading terms one by one takes, for a billion products of a window of several taps.
const SEVERAL_TAPS: f64 = 12.0;
/// The same for a window of one tap in small images.
const SMALL: f64 = 12.0;
/// The same for a window of one tap where windows are apart, or many channels make few filters: the compiler takes small tiles there.
const DEEP: f64 = 30.0;
/// A copy has to be so much faster than what it saves.
const GAIN: f64 = 0.8;

/// Microseconds of a copy of so many bytes that exchanges two axes, one of which has this extent and lies innermost.
pub(crate) fn copying(machine: &Machine, bytes: u64, innermost: u64) -> f64 {
    // The compiler's copies pass through LDS only where they divide into its tiles.
    let rate = match innermost {
        row if row.is_multiple_of(32) => 3.4e6,
        512.. => 2.4e6,
        128.. => 1.2e6,
        _ => 0.5e6,
    };
    machine.launch + bytes.saturating_mul(2) as f64 / rate
}

/// Whether a matrix of so many bytes is copied before a vector is multiplied by it. The compiler sums up each column in one thread, eight
/// workgroups in all for 4096 columns; from a copy it sums up rows in all lanes. Products of more rows are as fast without.
#[must_use]
pub fn for_a_vector(bytes: u64, rows: u64) -> bool {
    rows == 1 && bytes >= LARGE
}

/// A convolution with its pixels innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Bytes of x that windows reach.
    pub bytes: u64,
    /// Pixels of an image.
    pub innermost: u64,
    /// Bytes of the filter.
    pub filter: u64,
    /// Taps of the window.
    pub taps: u64,
    /// Channels and filters.
    pub channels: u64,
    /// Filters.
    pub filters: u64,
    /// Steps of windows are apart.
    pub is_strided: bool,
    /// Products.
    pub products: u64,
}

/// How such a convolution reads its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As the compiler does it.
    Default,
    /// Where they are, with tiles of ours.
    InPlace,
    /// From copies whose channels lie innermost.
    Copied,
}

/// How a convolution with its pixels innermost reads its operands.
#[must_use]
pub fn reading(machine: &Machine, problem: &Pixels) -> Reading {
    let x = copying(machine, problem.bytes, problem.innermost);
    let saved = |rate: f64| GAIN * rate * problem.products as f64 / 1e9;
    if problem.taps > 1 {
        let copies = x + copying(machine, problem.filter, problem.taps);
        let pays = problem.channels >= 128 && copies < saved(SEVERAL_TAPS);
        return if pays { Reading::Copied } else { Reading::Default };
    }
    let is_long = problem.innermost >= 128;
    if !problem.is_strided && is_long && problem.filters <= 256 && problem.channels >= 2 * problem.filters {
        return Reading::InPlace;
    }
    let is_deep = is_long && (problem.channels >= 4 * problem.filters || problem.channels >= 1024);
    // Small images do not fill the compiler's tiles.
    let rate = if problem.is_strided || is_deep {
        DEEP
    } else if problem.innermost < 64 {
        SMALL
    } else {
        return Reading::Default;
    };
    if x < saved(rate) {
        Reading::Copied
    } else {
        Reading::Default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_matrices_are_copied_for_vectors_alone() {
        assert!(for_a_vector(2 << 24, 1));
        assert!(!for_a_vector(2 << 24, 16));
        assert!(!for_a_vector(1 << 12, 1));
    }

    #[test]
    fn convolutions_with_pixels_innermost_are_read_as_is_best() {
        let machine = Machine::of("mi300x").expect("it is known");
        let read = |channels: u64, filters: u64, taps: u64, innermost: u64, is_strided: bool| {
            let pixels = 32 * innermost;
            let problem = Pixels {
                bytes: 2 * pixels * channels,
                innermost,
                filter: 2 * channels * filters * taps,
                taps,
                channels,
                filters,
                is_strided,
                products: pixels * channels * filters * taps,
            };
            reading(machine, &problem)
        };
        // Layers of ResNet-50, as the predictions of all three ways have it.
        assert_eq!(read(128, 128, 9, 784, false), Reading::Copied);
        assert_eq!(read(64, 64, 9, 3136, false), Reading::Default);
        assert_eq!(read(512, 128, 1, 784, false), Reading::InPlace);
        assert_eq!(read(1024, 512, 1, 196, false), Reading::Copied);
        assert_eq!(read(64, 256, 1, 3136, false), Reading::Default);
        assert_eq!(read(512, 2048, 1, 49, false), Reading::Copied);
        assert_eq!(read(2048, 512, 1, 49, false), Reading::Default);
        assert_eq!(read(1024, 2048, 1, 49, true), Reading::Copied);
    }
}
