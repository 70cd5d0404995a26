//! What is read at computed places.

use crate::lowering::Lowering;
use crate::quirks::{Quirk, Quirks};
use rotini_graph::{Layout, NormalKind, TensorId};

impl Quirks {
    /// Whether rows of this length are gathered from matrices wrongly. [`Quirk::SharedGather`]:
    /// single elements of 16 bits.
    pub(crate) fn shares_gathers(self, length: i64) -> bool {
        length == 1 && self.avoids(Quirk::SharedGather)
    }

    /// The least number of tiles in a list. [`Quirk::SingleTile`]: the entry of a list of one is
    /// read on the host.
    pub(crate) const fn least_tiles(self) -> i64 {
        if self.avoids(Quirk::SingleTile) { 2 } else { 1 }
    }
}

impl Lowering<'_, '_> {
    /// Prepares the scales of blocks. [`Quirk::GatheredScales`]: those that are stored with gaps are
    /// gathered in a dispatch of their own.
    pub(crate) fn settle_gathered(&mut self, scales: TensorId) {
        let tensor = self.tensor(scales);
        let has_gaps = tensor.kind == NormalKind::Input && Layout::of(&tensor.dims, &tensor.strides) == Layout::Strided;
        if has_gaps && self.quirks().avoids(Quirk::GatheredScales) {
            self.settle(scales);
        }
    }
}
