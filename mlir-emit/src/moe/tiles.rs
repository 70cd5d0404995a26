//! Arranges rows in tiles, each with the rows of one expert, and selects each tile's matrix.

use super::sizes::Sizes;
use crate::counts::exactly;
use crate::ir::IntegerPredicate as I;
use crate::ir::{Emitter, IndexMap, IntegerPredicate, Loop, first};
use crate::lowering::Lowering;
use crate::math::Scalar;
use crate::mlir::{Attribute, Name, Value as Ssa};
use crate::target::Target;
use crate::value::{Ordered, extent, extents};
use rotini_graph::{DataType, TensorId};

/// Arithmetic with indices and i32, inside the body of a structured operation.
#[derive(Clone, Copy)]
pub(super) struct Body<'c>(pub(super) Emitter<'c>);

impl<'c> Body<'c> {
    pub(super) fn index(&self, value: i64) -> Scalar<'c> {
        self.0.integer(value, self.0.index_type())
    }

    pub(super) fn number(&self, value: i64) -> Scalar<'c> {
        self.0.integer(value, self.0.element_type(DataType::I32))
    }

    pub(super) fn as_index(&self, number: Ssa<'c>) -> Scalar<'c> {
        self.0.one(Name::ArithIndexCast, &[number], self.0.index_type(), &[])
    }

    pub(super) fn as_number(&self, index: Ssa<'c>) -> Scalar<'c> {
        let ty = self.0.element_type(DataType::I32);
        self.0.one(Name::ArithIndexCast, &[index], ty, &[])
    }

    pub(super) fn compare(&self, predicate: I, x: Ssa<'c>, y: Ssa<'c>) -> Scalar<'c> {
        self.0.compare_integers(predicate, x, y)
    }

    /// Loads an element of a list of i32.
    pub(super) fn entry(&self, list: Ssa<'c>, position: Ssa<'c>) -> Scalar<'c> {
        self.0.extract(list, &[position], DataType::I32)
    }
}

/// Returns a list of `count` elements of type i32, each of which is a reduction over the list
/// `over` that begins with `start`. `body` gets the element's own position and the position in
/// `over`, the element of `over`, and the value so far.
pub(super) fn combine<'c>(
    at: &Emitter<'c>,
    count: i64,
    over: Ssa<'c>,
    start: f64,
    body: impl FnOnce(&Body<'c>, [Ssa<'c>; 2], Ssa<'c>, Ssa<'c>) -> Scalar<'c>,
) -> Ssa<'c> {
    let init = (at.filled(&[count], DataType::I32, start), IndexMap::select(2, [0]));
    let input = (over, IndexMap::select(2, [1]));
    at.generic(&[Loop::Parallel, Loop::Reduction], &[input], init, |elements| {
        let [element, so_far] = exactly(elements);
        let positions = [at.loop_index(0), at.loop_index(1)];
        body(&Body(*at), positions, element, so_far)
    })
}

/// The arrangement of the rows in tiles.
pub(super) struct Tiles<'l, 'g, 'c> {
    pub(super) lowering: &'l Lowering<'g, 'c>,
    pub(super) sizes: Sizes,
    /// The first row of each group: ascending, and not above the number of rows.
    pub(super) starts: Ssa<'c>,
    /// The first tile of each group.
    pub(super) tiles: Ssa<'c>,
}

impl<'l, 'g, 'c> Tiles<'l, 'g, 'c> {
    pub(super) fn new(lowering: &'l Lowering<'g, 'c>, offset: TensorId, sizes: Sizes) -> Self {
        let at = lowering.emitter();
        let offsets = list(lowering, offset);
        let starts = combine(
            &at,
            sizes.groups,
            offsets,
            0.0,
            |body, [group, other], offset, so_far| {
                let capped = offset.minsi(body.number(sizes.rows));
                let counts = body.0.compare_integers(IntegerPredicate::AtMost, other, group);
                let counted = counts.select(capped, body.number(0));
                so_far.maxsi(counted)
            },
        );
        let tiles = combine(&at, sizes.groups, starts, 0.0, |body, [group, other], start, so_far| {
            let next = other + body.index(1);
            let last = body.index(sizes.groups - 1);
            let end = body.entry(starts, next.minui(last));
            let tiles = tiles_of(body, start, end, sizes.tile);
            let counts = body.0.compare_integers(IntegerPredicate::AtMost, next, group);
            let counted = counts.select(tiles, body.number(0));
            so_far + counted
        });
        Tiles {
            lowering,
            sizes,
            starts,
            tiles,
        }
    }

    /// Returns, for each of `count` positions, how many elements of the ascending list are not
    /// above it.
    pub(super) fn not_above(&self, count: i64, list: Ssa<'c>) -> Ssa<'c> {
        combine(
            &self.lowering.emitter(),
            count,
            list,
            0.0,
            |body, [position, _], element, so_far| {
                let is_not_above = body.compare(I::LessEqual, element, body.as_number(position));
                let ty = body.0.element_type(DataType::I32);
                so_far + body.0.one(Name::ArithExtui, &[is_not_above], ty, &[])
            },
        )
    }

    /// Returns the end of a group's rows, exclusive.
    pub(super) fn end(&self, body: &Body<'c>, group: Ssa<'c>) -> Scalar<'c> {
        let last = body.number(self.sizes.rows);
        let last_group = body.index(self.sizes.groups - 1);
        let is_last = body.0.compare_integers(IntegerPredicate::AtMost, last_group, group);
        let next = group + body.index(1);
        let entry = body.entry(self.starts, next.minui(last_group));
        is_last.select(last, entry)
    }

    /// Returns, for each row of each tile, the number of the row of the input that it takes, which
    /// has `tokens` rows; -1 for none. If there is an `index`, the number is looked up in it.
    pub(super) fn sources(&self, groups: Ssa<'c>, index: Option<Ssa<'c>>, tokens: i64) -> Ssa<'c> {
        let (at, sizes) = (self.lowering.emitter(), self.sizes);
        at.tabulate(&[sizes.tiles, sizes.tile], DataType::I32, || {
            let body = Body(at);
            let (tile, within) = (at.loop_index(0), at.loop_index(1));
            let group = group(&body, groups, tile);
            let first_tile = body.entry(self.tiles, group);
            let tiles_before = body.as_number(tile) - first_tile;
            let rows_before = tiles_before * body.number(sizes.tile);
            let rows_before = rows_before + body.as_number(within);
            let start = body.entry(self.starts, group);
            let row = start + rows_before;
            // In tiles beyond those of the last group, the row's number may overflow an i32, so the
            // rows within the group are compared instead.
            let rows = self.end(&body, group) - start;
            let mut is_there = body.compare(I::Less, rows_before, rows);
            let source = match index {
                None => row,
                Some(index) => {
                    let row = is_there.select(row, body.number(0));
                    let source = body.entry(index, body.as_index(row));
                    let last = body.index(tokens - 1);
                    let is_row = at.compare_integers(IntegerPredicate::AtMost, body.as_index(source), last);
                    is_there = is_there & is_row;
                    source
                }
            };
            is_there.select(source, body.number(-1))
        })
    }

    /// Gathers the rows of a tensor (1, rows, columns) into tiles (tile, row, column); rows without
    /// a source are zero.
    pub(super) fn rows(&self, tensor: &Ordered<'c>, sources: Ssa<'c>) -> Ordered<'c> {
        let at = self.lowering.emitter();
        let dims = vec![self.sizes.tiles, self.sizes.tile, extent(&tensor.dims, 2)];
        let input = (sources, IndexMap::select(3, [0, 1]));
        let ssa = at.elementwise(&dims, tensor.dtype, &[input], |elements| {
            let body = Body(at);
            let row = elements[0];
            let is_there = body.compare(I::GreaterEqual, row, body.number(0));
            let row = body.as_index(is_there.select(row, body.number(0)));
            let indices = [body.index(0), row, at.loop_index(2)];
            let element = tensor.element(&at, &indices);
            is_there.select(element, at.zero(tensor.dtype))
        });
        Ordered::new(at.barrier(ssa), vec![0, 1, 2], tensor.dtype, dims)
    }

    /// Returns the number of each tile's matrix, below `experts`.
    pub(super) fn experts(&self, groups: Ssa<'c>, experts: i64) -> Ssa<'c> {
        let at = self.lowering.emitter();
        at.tabulate(&[self.sizes.tiles], DataType::I32, || {
            let body = Body(at);
            let group = group(&body, groups, at.loop_index(0));
            body.as_number(group.remui(body.index(experts)))
        })
    }

    /// Gathers the matrix of each tile.
    pub(super) fn matrices(&self, chosen: Ssa<'c>, weight: &Ordered<'c>) -> Ordered<'c> {
        let at = self.lowering.emitter();
        let weight = match weight.order.first() {
            Some(0) => weight.clone(),
            _ => weight.in_order(&at, &[0, 1, 2]),
        };
        let mut dims = weight.dims.clone();
        dims[0] = self.sizes.tiles;
        let init = at.empty(&extents(&dims, &weight.order), weight.dtype);
        let ty = at.tensor_type(&extents(&dims, &weight.order), weight.dtype);
        let along = [("dimension_map", Attribute::i64_array(&[0]))];
        // The compiler fuses this operation into a matmul; it would not fuse a separate loop.
        let ssa = first(at.op(
            Name::IreeLinalgExtGather,
            &[weight.ssa, chosen, init],
            &[ty],
            &along,
            Vec::new(),
        ));
        let ssa = match self.lowering.target() {
            Target::Rocm { .. } => ssa,
            Target::Cpu | Target::X86(_) | Target::Cuda { .. } => at.barrier(ssa),
        };
        Ordered::new(ssa, weight.order, weight.dtype, dims)
    }

    /// Returns, for each row of the output, the row that it reads, counted through all tiles; -1
    /// for none. `taken` has the routed row of each row of the output, if they differ.
    pub(super) fn slots(&self, taken: Option<Ssa<'c>>) -> Ssa<'c> {
        let (at, sizes) = (self.lowering.emitter(), self.sizes);
        let begun = self.not_above(sizes.rows, self.starts);
        at.tabulate(&[sizes.rows], DataType::I32, || {
            let body = Body(at);
            let (here, zero) = (at.loop_index(0), body.number(0));
            let row = match taken {
                Some(taken) => body.entry(taken, here),
                None => body.as_number(here),
            };
            let safe = row.maxsi(zero);
            let begun = body.entry(begun, body.as_index(safe));
            let group = begun - body.number(1);
            let none = body.compare(I::Less, row.minsi(group), zero);
            let group = body.as_index(group.maxsi(zero));
            let before = safe - body.entry(self.starts, group);
            let tile_rows = body.entry(self.tiles, group) * body.number(sizes.tile);
            none.select(body.number(-1), tile_rows + before)
        })
    }

    /// Returns the routed row that each row of the output takes: the last one that is routed to it;
    /// -1 for none.
    pub(super) fn taken(&self, index: Ssa<'c>, ks: Ssa<'c>, top_k: i64) -> Ssa<'c> {
        let at = self.lowering.emitter();
        combine(&at, self.sizes.rows, index, -1.0, |body, [here, row], index, so_far| {
            let slot = body.as_index(body.entry(ks, row));
            let is_slot = body
                .0
                .compare_integers(IntegerPredicate::AtMost, slot, body.index(top_k - 1));
            let place = body.as_index(index) * body.index(top_k);
            let place = place + slot;
            let is_here = body.0.compare_integers(IntegerPredicate::Equal, place, here);
            let first = body.entry(self.starts, body.index(0));
            let row = body.as_number(row);
            let is_routed = body.compare(I::GreaterEqual, row, first);
            let counts = is_here & (is_slot & is_routed);
            so_far.maxsi(counts.select(row, body.number(-1)))
        })
    }
}

/// Returns the number of tiles that the rows from `start` to `end` need.
pub(super) fn tiles_of<'c>(body: &Body<'c>, start: Ssa<'c>, end: Ssa<'c>, tile: i64) -> Scalar<'c> {
    let rows = end - start;
    let rounded = rows + body.number(tile - 1);
    rounded.divui(body.number(tile))
}

/// Returns the group of a tile. `groups` has, for each tile, the number of groups that begin at it
/// or before.
pub(super) fn group<'c>(body: &Body<'c>, groups: Ssa<'c>, tile: Ssa<'c>) -> Scalar<'c> {
    let begun = body.entry(groups, tile).maxsi(body.number(1));
    body.as_index(begun - body.number(1))
}

/// Returns a tensor of i32 as a list; at most one of its extents is not 1.
pub(super) fn list<'c>(lowering: &Lowering<'_, 'c>, id: TensorId) -> Ssa<'c> {
    let at = lowering.emitter();
    let value = lowering.value(id).clone();
    let entries = value.dims.iter().product();
    value.with_dims(&at, &[entries]).materialise(&at).ssa
}
