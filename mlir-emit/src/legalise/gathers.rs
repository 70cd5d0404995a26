//! Gathers: reads at computed indices.

use crate::lowering::Lowering;
use crate::quirks::{Quirk, Quirks};
use rotini_graph::{Layout, NormalKind, TensorId};

impl Quirks {
    /// Returns true if the compiler gathers rows of this length from matrices wrongly.
    /// [`Quirk::SharedGather`]: rows of a single element, which fail in 16 bits.
    pub(crate) fn shares_gathers(self, length: i64) -> bool {
        length == 1 && self.avoids(Quirk::SharedGather)
    }

    /// Returns the least number of tiles in a list. [`Quirk::SingleTile`]: the compiler would read
    /// the only entry of a list on the host.
    pub(crate) const fn least_tiles(self) -> i64 {
        if self.avoids(Quirk::SingleTile) { 2 } else { 1 }
    }
}

impl Lowering<'_, '_> {
    /// Prepares the scales of blocks. [`Quirk::GatheredScales`]: scales that are stored with gaps
    /// are gathered in a separate dispatch.
    pub(crate) fn settle_gathered(&mut self, scales: TensorId) {
        let tensor = self.tensor(scales);
        let has_gaps = tensor.kind == NormalKind::Input && Layout::of(&tensor.dims, &tensor.strides) == Layout::Strided;
        if has_gaps && self.quirks().avoids(Quirk::GatheredScales) {
            self.settle(scales);
        }
    }
}
