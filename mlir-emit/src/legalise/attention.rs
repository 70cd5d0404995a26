//! Conditions for IREE's attention operation.

use crate::quirks::{Quirk, Quirks};

/// The least number of rows and columns of a tile.
const TILE: i64 = 16;

impl Quirks {
    /// Returns true if the compiler's attention is used for these sequence lengths and columns per
    /// head, which must not exceed `widest`. [`Quirk::UntiledAttention`]: only if they are whole
    /// tiles.
    pub(crate) fn tiles_attention(self, lengths: [i64; 2], columns: [i64; 2], widest: i64) -> bool {
        let has_tiles = |columns: i64| (TILE..=widest).contains(&columns) && columns & (columns - 1) == 0;
        let are_whole = lengths.iter().all(|length| length % TILE == 0) && columns.into_iter().all(has_tiles);
        are_whole || !self.avoids(Quirk::UntiledAttention)
    }
}
