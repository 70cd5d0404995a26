//! Convolutions in forms that the compiler gets right.

use crate::conv::shape::Shape;
use crate::counts::product;
use crate::quirks::{Quirk, Quirks};
use rotini_graph::DataType;

impl Quirks {
    /// Returns true if a convolution is computed channels first, whatever the memory order of its
    /// operands. [`Quirk::DroppedUnits`]: if the result has an axis of extent 1 and groups or more
    /// than two spatial axes.
    pub(crate) fn is_channels_first(self, shape: &Shape<'_>) -> bool {
        let follows_units = shape.groups > 1 || shape.spatial() > 2;
        self.avoids(Quirk::DroppedUnits) && follows_units && shape.output.contains(&1)
    }

    /// Returns true if the loop over groups comes before those over positions, and the result is
    /// brought into order afterwards. [`Quirk::BlocksAfterRows`]: only few filters or few positions
    /// are affected, which are computed with matrix instructions of several blocks
    /// (`deduceMMASchedule` in IREE's `GPUHeuristics.cpp`).
    pub(crate) fn puts_groups_first(self, shape: &Shape<'_>) -> bool {
        const FEW: i64 = 8;
        let rows = product(&shape.output).and_then(|rows| rows.checked_mul(u64::try_from(shape.batch).ok()?));
        let are_few = shape.filters <= FEW || rows.is_some_and(|rows| rows <= FEW as u64);
        self.avoids(Quirk::BlocksAfterRows) && are_few
    }

    /// Returns true if padding may become part of the convolution's dispatch.
    /// [`Quirk::PaddingOfUnitLoops`]: not if a loop of the convolution has one step, along an axis
    /// of the output or a padded axis of the window; convolutions of networks have no such loops.
    /// [`Quirk::PaddingOfMixedFactors`]: nor if the operands are not floats of one type, which
    /// matrix cores would multiply.
    pub(crate) fn may_fuse_padding(self, shape: &Shape<'_>, [x, w]: [DataType; 2], padding: &[(i64, i64)]) -> bool {
        let are_floats = x == w && !x.is_integer();
        let mut axes = shape.output.iter().zip(&shape.window).zip(padding);
        let has_steps = axes.all(|((&output, &window), &amount)| output > 1 && (window > 1 || amount == (0, 0)));
        (has_steps || !self.avoids(Quirk::PaddingOfUnitLoops))
            && (are_floats || !self.avoids(Quirk::PaddingOfMixedFactors))
    }

    /// Returns true if the input's channels are repeated, once for each of their filters.
    /// [`Quirk::DilatedMultiplier`]: in dilated convolutions with groups of one channel and several
    /// filters.
    pub(crate) fn repeats_channels(self, shape: &Shape<'_>) -> bool {
        self.avoids(Quirk::DilatedMultiplier) && shape.is_dilated_multiplier()
    }

    /// Returns the number of elements to leave out at the end of each spatial axis of the input.
    /// [`Quirk::UnreachedInput`]: those that no window reaches.
    pub(crate) fn unread(self, shape: &Shape<'_>) -> Vec<i64> {
        if self.avoids(Quirk::UnreachedInput) {
            shape.surplus()
        } else {
            vec![0; shape.spatial()]
        }
    }
}
