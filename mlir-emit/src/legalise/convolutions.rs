//! Convolutions in forms that the compiler gets right.

use crate::conv::shape::{Shape, product};
use crate::quirks::{Quirk, Quirks};
use rotini_graph::DataType;

impl Quirks {
    /// Whether a convolution is computed channels first, whatever its operands' orders are.
    /// [`Quirk::DroppedUnits`]: with an axis of extent 1 in a result that has groups, or positions
    /// along three axes.
    pub(crate) fn is_channels_first(self, shape: &Shape<'_>) -> bool {
        let follows_units = shape.groups > 1 || shape.spatial() > 2;
        self.avoids(Quirk::DroppedUnits) && follows_units && shape.output.contains(&1)
    }

    /// Whether groups are looped over before positions, and the result brought into order
    /// afterwards. [`Quirk::BlocksAfterRows`]: few filters or few positions, which alone are computed
    /// with matrix instructions of several blocks (`deduceMMASchedule` in IREE's
    /// `GPUHeuristics.cpp`).
    pub(crate) fn puts_groups_first(self, shape: &Shape<'_>) -> bool {
        const FEW: i64 = 8;
        let rows = product(&shape.output).and_then(|rows| rows.checked_mul(u64::try_from(shape.batch).ok()?));
        let are_few = shape.filters <= FEW || rows.is_some_and(|rows| rows <= FEW as u64);
        self.avoids(Quirk::BlocksAfterRows) && are_few
    }

    /// Whether padding may become part of the convolution's dispatch. [`Quirk::PaddingOfUnitLoops`]:
    /// not where a loop of the convolution has one step, an axis of the output or a padded axis of
    /// the window; convolutions of networks have none of that. [`Quirk::PaddingOfMixedFactors`]: nor
    /// where the factors are no floats of one type, which matrix cores would multiply.
    pub(crate) fn may_fuse_padding(self, shape: &Shape<'_>, [x, w]: [DataType; 2], padding: &[(i64, i64)]) -> bool {
        let are_floats = x == w && !x.is_integer();
        let mut axes = shape.output.iter().zip(&shape.window).zip(padding);
        let has_steps = axes.all(|((&output, &window), &amount)| output > 1 && (window > 1 || amount == (0, 0)));
        (has_steps || !self.avoids(Quirk::PaddingOfUnitLoops))
            && (are_floats || !self.avoids(Quirk::PaddingOfMixedFactors))
    }

    /// Whether each channel is repeated for its filters. [`Quirk::DilatedMultiplier`]: in dilated
    /// convolutions of several filters for each group of one channel.
    pub(crate) fn repeats_channels(self, shape: &Shape<'_>) -> bool {
        self.avoids(Quirk::DilatedMultiplier) && shape.is_dilated_multiplier()
    }

    /// The elements to leave out at the end of each spatial axis of the input.
    /// [`Quirk::UnreachedInput`]: those that no window reaches.
    pub(crate) fn unread(self, shape: &Shape<'_>) -> Vec<i64> {
        if self.avoids(Quirk::UnreachedInput) {
            shape.surplus()
        } else {
            vec![0; shape.spatial()]
        }
    }
}
