//! Owns the decision whether the gradient with respect to x of a convolution with steps is summed up phase by phase.
//!
//! The other form multiplies dy by the whole filter, writes the products of each window in single precision, and collects them.

use crate::Machine;
use crate::repack::copying;

/// Billion multiplications and additions in a microsecond, of one large product and of a phase with tiles of ours.
const PRODUCTS: [f64; 2] = [0.45, 0.25];
/// Bytes in a microsecond that are collected from windows where dx has its pixels innermost: channels are read one by one.
const GATHERED: f64 = 2.0e6;
/// The same where rows divide into eights: the compiler cuts squares of 8 × 8 pixels, which share no channel.
const GATHERED_IN_SQUARES: f64 = 0.75e6;
/// Phases have to be so much faster by this estimate.
const GAIN: f64 = 0.9;

/// The gradient of a convolution with steps with respect to x, of 16-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// Images.
    pub images: u64,
    /// Channels of dx.
    pub channels: u64,
    /// Channels of dy.
    pub filters: u64,
    /// Positions of windows in all images.
    pub positions: u64,
    /// Taps of a window.
    pub taps: u64,
    /// Elements of dx.
    pub elements: u64,
    /// Phases.
    pub phases: u64,
    /// Pixels of a row of dx, if they lie innermost; else channels do.
    pub row: Option<u64>,
}

/// Whether it is summed up phase by phase.
#[must_use]
pub fn pays(machine: &Machine, problem: &Gradient) -> bool {
    // Else the phases have no tiles of ours.
    if !problem.images.is_multiple_of(16) || !problem.channels.is_multiple_of(32) || !problem.filters.is_multiple_of(64)
    {
        return false;
    }
    let product = |extents: &[u64]| {
        extents
            .iter()
            .fold(1, |product: u64, &extent| product.saturating_mul(extent))
    };
    let shares = product(&[problem.positions, problem.taps, problem.channels]);
    let operations = product(&[2, shares, problem.filters]) as f64 / 1e9;
    let dx = problem.elements.saturating_mul(2);
    let [whole, by_phases] = PRODUCTS.map(|rate| operations / rate);
    let shares = shares.saturating_mul(4);
    let (collecting, exchanging) = match problem.row {
        None => (machine.moving(shares), 0.0),
        Some(row) => {
            let rate = if row.is_multiple_of(8) {
                GATHERED_IN_SQUARES
            } else {
                GATHERED
            };
            (shares as f64 / rate, copying(machine, dx, problem.channels))
        }
    };
    let collected = 2.0 * machine.launch + whole + machine.moving(shares) + collecting + machine.moving(dx);
    // The filters, the phases, and what puts them side by side.
    let launches = problem.phases.saturating_add(2) as f64;
    let phases = launches * machine.launch + by_phases + machine.moving(dx.saturating_mul(3)) + exchanging;
    phases < GAIN * collected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_for_large_gradients() {
        let machine = Machine::of("mi300x").expect("it is known");
        // Stride 2 both ways, as the predictions of both forms have it.
        let chosen = |images: u64, channels: u64, filters: u64, side: u64, window: u64, is_last: bool| {
            let problem = Gradient {
                images,
                channels,
                filters,
                positions: images * side * side / 4,
                taps: window * window,
                elements: images * channels * side * side,
                phases: 4,
                row: (!is_last).then_some(side),
            };
            pays(machine, &problem)
        };
        assert!(chosen(32, 128, 128, 56, 3, true));
        assert!(chosen(32, 128, 128, 56, 3, false));
        assert!(chosen(16, 128, 128, 56, 3, false));
        assert!(chosen(128, 96, 192, 56, 2, false));
        assert!(chosen(256, 256, 256, 28, 3, false));
        assert!(!chosen(32, 256, 256, 28, 3, true));
        assert!(!chosen(32, 256, 256, 28, 3, false));
        assert!(!chosen(32, 512, 512, 14, 3, true));
        assert!(!chosen(64, 512, 512, 14, 3, false));
        assert!(!chosen(128, 192, 384, 28, 2, false));
        assert!(!chosen(32, 1280, 1280, 16, 3, false));
        assert!(!chosen(32, 3, 64, 224, 7, true));
    }
}
