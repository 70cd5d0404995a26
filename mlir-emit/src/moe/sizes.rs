//! The numbers of rows, tiles and matrices of a grouped matmul.

use crate::quirks::Quirks;
use rotini_graph::{MoeGroupedMatmul, MoeGroupedMatmulBwd, NormalGraph, TensorId};

/// Rows of the smallest tile: the rows of a matrix instruction.
const LEAST_TILE: i64 = 16;

/// Rows of the largest tile of the forward pass: larger tiles would have more unused rows, and are
/// no faster.
const LARGEST_TILE: i64 = 128;

/// Rows of the largest tile of the backward pass, where each tile's product is stored before the
/// products are added.
const LARGEST_TILE_BACKWARD: i64 = 512;

/// The sizes of a grouped matmul.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) groups: i64,
    /// Routed rows.
    pub(super) rows: i64,
    pub(super) inner: i64,
    pub(super) columns: i64,
    /// Rows of a tile.
    pub(super) tile: i64,
    /// Tiles.
    pub(super) tiles: i64,
}

impl Sizes {
    pub(super) fn forward(graph: &NormalGraph, op: &MoeGroupedMatmul, quirks: Quirks) -> Option<Self> {
        let (output, weight) = (&graph.tensor(op.output)?.dims, &graph.tensor(op.weight)?.dims);
        let (&[_, rows, columns], &[_, inner, _]) = (output.as_slice(), weight.as_slice()) else {
            return None;
        };
        let offset = op.first_token_offset;
        Self::new(graph, offset, [rows, inner, columns], LARGEST_TILE, quirks)
    }

    pub(super) fn backward(graph: &NormalGraph, op: &MoeGroupedMatmulBwd, quirks: Quirks) -> Option<Self> {
        let (token, dweight) = (&graph.tensor(op.token)?.dims, &graph.tensor(op.dweight)?.dims);
        let (&[_, rows, _], &[_, inner, columns]) = (token.as_slice(), dweight.as_slice()) else {
            return None;
        };
        Self::new(
            graph,
            op.first_token_offset,
            [rows, inner, columns],
            LARGEST_TILE_BACKWARD,
            quirks,
        )
    }

    pub(super) fn new(
        graph: &NormalGraph,
        offset: TensorId,
        [rows, inner, columns]: [i64; 3],
        largest: i64,
        quirks: Quirks,
    ) -> Option<Self> {
        let groups = *graph.tensor(offset)?.dims.first()?;
        // The average number of rows of a group.
        let average = rows.checked_div(groups)?.clamp(LEAST_TILE, largest);
        let tile = i64::try_from(u64::try_from(average).ok()?.next_power_of_two()).ok()?;
        // Each non-empty group begins one tile with its first row; at worst, the remaining rows
        // fill whole tiles.
        let begun = groups.min(rows);
        Some(Sizes {
            groups,
            rows,
            inner,
            columns,
            tile,
            tiles: begun
                .checked_add((rows - begun).checked_div(tile)?)?
                .max(quirks.least_tiles()),
        })
    }

    /// Returns the number of rows of all tiles.
    pub(super) fn tile_rows(&self) -> Option<i64> {
        self.tiles.checked_mul(self.tile)
    }

    pub(super) fn elements(&self) -> Option<u64> {
        let of_tiles = |rows: i64, columns: i64| {
            let elements = self.tiles.checked_mul(rows)?.checked_mul(columns)?;
            u64::try_from(elements).ok()
        };
        // Lists with one element per group, per tile, per row of a tile and per row of the output.
        let lists = u64::try_from(self.groups.checked_add(self.tiles)?.checked_add(self.rows)?).ok()?;
        of_tiles(self.tile, self.inner)?
            .checked_add(of_tiles(self.inner, self.columns)?)?
            .checked_add(of_tiles(self.tile, self.columns)?)?
            .checked_add(of_tiles(self.tile, 1)?)?
            .checked_add(lists.checked_mul(3)?)
    }
}
