//! Sums of products on CPUs, of tensors that are read by strides: convolutions and their gradients
//! without patches in memory.
//!
//! ```text
//! for each tile of columns:
//!     for each block of terms:
//!         copy right[terms, columns] to the stack: a panel
//!         for each tile of rows:
//!             out[rows, columns] += left[rows, terms] · panel
//! ```
//!
//! A vector has neighbouring columns. The left operand is read one element at a time, and each
//! element is multiplied by the vectors of a tile. A panel fits into the first-level cache, and is
//! copied once for all rows of a workgroup. So nothing is materialised, whatever the size of a
//! window.
//!
//! Example: a 1×1 convolution, channels first: rows are filters, columns are the positions of an
//! image, terms are channels. In a gradient with respect to the filter, rows are filters, columns
//! are the filter's other axes, and terms are images and their positions.

mod lanes;
mod write;

use crate::counts::ceil_div;
use crate::kernel::code::Int;

/// Maximum bytes of a panel, and of the table beside it. The parts of a kernel share both, and the
/// compiler allows a kernel 32 KiB on the stack.
const PANEL: i64 = 27 << 10;
const TABLE: i64 = 4 << 10;
/// Bytes per entry of the table of terms.
const ENTRY: i64 = 8;
/// Number of workgroups that is enough for the cores of a CPU.
const ENOUGH: i64 = 64;
/// Minimum and maximum number of rows per workgroup. With that many rows, the copy of a panel costs
/// little in comparison, and the sums fit into the second-level cache.
const ROWS: [i64; 2] = [64, 1024];
/// Minimum number of rows per workgroup if vectors are gathered: one gather costs as much as the
/// products of some 40 rows.
const ROWS_OF_GATHERED: i64 = 128;
/// Maximum number of terms per iteration.
const UNROLLED: i64 = 8;
/// Maximum number of elements of a tensor.
const MOST: i64 = 1 << 40;

/// The vector registers of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// 32-bit lanes per register.
    pub(crate) lanes: i64,
    pub(crate) count: i64,
}

/// A loop: its extent, and its strides in the left tensor, the right tensor and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) extent: i64,
    pub(crate) strides: [i64; 3],
}

/// Some of the results: sums over `terms` for each batch, row and column.
///
/// The right tensor does not vary along rows, and the result not along terms. If the left tensor
/// varies along columns, the products are elementwise, and the left tensor is read in vectors too.
/// Example: channels with a filter each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Offsets of the first elements in the three tensors.
    pub(crate) first: [i64; 3],
    pub(crate) batch: Vec<Along>,
    pub(crate) rows: Vec<Along>,
    pub(crate) columns: Vec<Along>,
    pub(crate) terms: Vec<Along>,
}

/// Sums of products in f32. Together the parts compute all results, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panels {
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
    /// Numbers of elements of the three tensors.
    pub(crate) elements: [i64; 3],
    pub(crate) registers: Registers,
}

/// Returns the number of steps of some loops; `None` if it overflows.
fn count(axes: &[Along]) -> Option<i64> {
    axes.iter()
        .try_fold(1_i64, |product, axis| product.checked_mul(axis.extent))
}

/// Merges loops: loops of one step are dropped, and neighbours with a common stride in all tensors
/// become one loop.
fn merged(axes: &[Along]) -> Vec<Along> {
    let mut merged: Vec<Along> = Vec::new();
    for &axis in axes.iter().filter(|axis| axis.extent != 1) {
        match merged.last_mut() {
            Some(last) if (0..3).all(|tensor| last.strides[tensor] == axis.strides[tensor] * axis.extent) => {
                *last = Along {
                    extent: last.extent * axis.extent,
                    strides: axis.strides,
                };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// Returns the stride of all loops as one loop, in one of the tensors; `None` if they have no
/// common stride.
fn single(axes: &[Along], tensor: usize) -> Option<i64> {
    let axes: Vec<_> = axes
        .iter()
        .map(|axis| Along {
            extent: axis.extent,
            strides: [axis.strides[tensor]; 3],
        })
        .collect();
    match merged(&axes).as_slice() {
        [] => Some(0),
        [axis] => Some(axis.strides[0]),
        _ => None,
    }
}

/// Returns whether the left tensor varies along columns.
fn varies(columns: &[Along]) -> bool {
    columns.iter().any(|axis| axis.strides[LEFT] != 0)
}

impl Part {
    /// Returns whether no vector crosses the end of a run along the innermost columns. The elements
    /// of a run are contiguous in the right tensor, or are every other one, as in windows with a
    /// stride of two. Lanes after the end of a run are idle, so runs must be long enough.
    fn has_runs(&self, lanes: i64) -> bool {
        match self.columns.as_slice() {
            [.., inner] if matches!(inner.strides[RIGHT], 1 | 2) => {
                let wide = inner.extent.saturating_add(lanes - 1) / lanes * lanes;
                self.columns.len() == 1 || wide.saturating_mul(10) <= inner.extent.saturating_mul(13)
            }
            _ => false,
        }
    }

    /// Returns the same part with its loops merged.
    fn merged(&self) -> Part {
        Part {
            first: self.first,
            batch: merged(&self.batch),
            rows: merged(&self.rows),
            columns: merged(&self.columns),
            terms: merged(&self.terms),
        }
    }
}

/// The tiling of a part.
#[derive(Clone, Copy, Debug)]
struct Tiling {
    /// Whether vectors end with runs ([`Part::has_runs`]).
    has_runs: bool,
    /// Vectors of all columns, and vectors per tile.
    all: i64,
    vectors: i64,
    /// Rows in all, and rows per tile.
    rows: i64,
    down: i64,
    /// Tiles of rows per workgroup, and the number of workgroups that share the rows.
    each: i64,
    chunks: i64,
    terms: i64,
    /// Terms per block.
    block: i64,
    /// Terms per iteration if each term is read once: the terms along the innermost loop, so that
    /// an iteration computes one address. Divides `terms` and `block`.
    unrolled: i64,
    /// Whether the offsets of terms in the left tensor are kept in a table.
    has_table: bool,
    batches: i64,
}

impl Tiling {
    /// Returns the tiling of a part whose loops are [merged](Part::merged); `None` if numbers
    /// overflow.
    fn of(part: &Part, registers: Registers) -> Option<Tiling> {
        let Registers {
            lanes,
            count: registers,
        } = registers;
        let (columns, rows) = (count(&part.columns)?, count(&part.rows)?);
        let (terms, batches) = (count(&part.terms)?, count(&part.batch)?);
        let has_runs = part.has_runs(lanes);
        let all = match part.columns.as_slice() {
            [outer @ .., inner] if has_runs => count(outer)?.checked_mul(ceil_div(inner.extent, lanes))?,
            _ => ceil_div(columns, lanes),
        };
        let is_wide = registers >= 32;
        let vectors = match all {
            1 | 2 => all,
            // With one row, only more vectors give more sums. With fewer than six sums, an FMA
            // waits for the one before it.
            _ if rows == 1 && !varies(&part.columns) => ceil_div(all, ceil_div(all, if is_wide { 8 } else { 6 })),
            4 if is_wide => 4,
            _ if is_wide && !varies(&part.columns) => 3,
            _ => 2,
        };
        let most = match (vectors, is_wide) {
            (1, true) => 16,
            (2, true) => 12,
            (3, true) => 8,
            (_, true) => 6,
            (1, false) => 8,
            _ => 6,
        };
        let down = ceil_div(rows, ceil_div(rows, most));
        let tiles = ceil_div(rows, down);
        let shared = batches.checked_mul(ceil_div(all, vectors))?;
        let fewest = ceil_div(rows, ROWS[1]);
        let least = if has_runs { ROWS[0] } else { ROWS_OF_GATHERED };
        let wanted = ceil_div(ENOUGH, shared.max(1)).min(rows / least);
        let each = ceil_div(tiles, wanted.max(fewest).max(1));
        let has_table = single(&part.terms, 0).is_none();
        let most = if has_table { TABLE / ENTRY } else { terms };
        let block = terms.min(PANEL / (vectors * lanes * 4)).min(most);
        let unrolled = match part.terms.last() {
            Some(inner) if rows <= down && inner.extent <= UNROLLED.min(block) => inner.extent.max(1),
            _ => 1,
        };
        Some(Tiling {
            has_runs,
            all,
            vectors,
            rows,
            down,
            each,
            chunks: ceil_div(tiles, each),
            terms,
            block: block / unrolled * unrolled,
            unrolled,
            has_table,
            batches,
        })
    }

    /// Returns whether all rows are one tile, which reads each element of the right tensor once: a
    /// panel would save nothing.
    fn is_read_once(&self) -> bool {
        self.rows <= self.down
    }

    /// Returns the number of tiles of columns.
    fn across(&self) -> i64 {
        ceil_div(self.all, self.vectors)
    }

    fn workgroups(&self) -> Option<i64> {
        self.batches.checked_mul(self.across())?.checked_mul(self.chunks)
    }
}

impl Panels {
    /// Returns whether there is a kernel for these sums: sizes do not overflow, and lanes reach
    /// their elements with 31-bit offsets.
    pub(crate) fn is_possible(&self) -> bool {
        const FAR: i64 = 1 << 31;
        let is_near = |part: &Part| {
            (0..3).all(|tensor| {
                let far = part.columns.iter().try_fold(0_i64, |far, axis| {
                    far.checked_add(axis.strides[tensor].checked_abs()?.checked_mul(axis.extent)?)
                });
                far.is_some_and(|far| far < FAR)
            })
        };
        let is_counted = |part: &Part| {
            let loops = [&part.batch, &part.rows, &part.columns, &part.terms];
            let are_there = loops[..3].iter().all(|axes| axes.iter().all(|axis| axis.extent > 0));
            let has_tiling = Tiling::of(&part.merged(), self.registers).and_then(|tiling| tiling.workgroups());
            are_there && has_tiling.is_some_and(|count| count < FAR)
        };
        let are_sizes = self.elements.iter().all(|count| (1..MOST).contains(count));
        are_sizes && !self.parts.is_empty() && self.parts.iter().all(|part| is_near(part) && is_counted(part))
    }
}

/// The indices of the tensors.
const LEFT: usize = 0;
const RIGHT: usize = 1;
const OUT: usize = 2;

/// An offset in each tensor.
type Places<'c> = [Int<'c>; 3];

#[cfg(test)]
mod tests {
    use super::{Along, ENTRY, PANEL, Part, Registers, TABLE, Tiling, merged, single};

    fn along(extent: i64, strides: [i64; 3]) -> Along {
        Along { extent, strides }
    }

    #[test]
    fn loops_that_move_alike_are_one() {
        let image = [
            along(2, [0, 300, 200]),
            along(5, [0, 60, 40]),
            along(1, [7, 7, 7]),
            along(4, [0, 15, 10]),
        ];
        assert_eq!(merged(&image), [along(40, [0, 15, 10])]);
        let padded = [along(5, [0, 17, 10]), along(10, [0, 1, 1])];
        assert_eq!(merged(&padded), padded);
        assert_eq!(single(&padded, 2), Some(1));
        assert_eq!(single(&padded, 1), None);
    }

    /// Kernels stay within the stack that the compiler allows, and all rows and columns have a
    /// tile.
    #[test]
    fn panels_fit_onto_the_stack() {
        const { assert!(PANEL + TABLE < 32 << 10) };
        for registers in [Registers { lanes: 16, count: 32 }, Registers { lanes: 8, count: 16 }] {
            for (rows, columns, terms) in [
                (1, 1, 1),
                (64, 49, 4608),
                (1000, 196, 9),
                (7, 3136, 160),
                (2048, 17, 100_000),
            ] {
                for strides in [1, 3] {
                    let part = Part {
                        first: [0; 3],
                        batch: Vec::new(),
                        rows: vec![along(rows, [terms, 0, columns])],
                        columns: vec![along(columns, [0, strides, 1])],
                        terms: vec![along(terms, [1, columns, 0]), along(2, [terms * 2, 1, 0])],
                    };
                    let tiling = Tiling::of(&part.merged(), registers).unwrap();
                    assert_eq!([tiling.block % tiling.unrolled, tiling.terms % tiling.unrolled], [0, 0]);
                    assert!(tiling.block * tiling.vectors * registers.lanes * 4 <= PANEL);
                    assert!(!tiling.has_table || tiling.block * ENTRY <= TABLE);
                    assert!(tiling.across() * tiling.vectors * registers.lanes >= columns);
                    assert!(tiling.chunks * tiling.each * tiling.down >= rows);
                    assert!((tiling.down + 1) * tiling.vectors < registers.count, "{tiling:?}");
                }
            }
        }
    }
}
