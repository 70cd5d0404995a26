//! Grouped matmuls of mixtures of experts: one batched matmul over tiles of rows, each tile with the matrix of its expert.
//!
//! Which rows an expert has is known only to the device. So the rows are laid out anew there: each group begins a new tile, and there are
//! as many tiles as any routing can need, few more than the rows fill. Forward, a tile takes its expert's matrix where it lies (for AMD
//! GPUs in the matmul's own dispatch, on matrix cores). Backward, each tile gives the product of its rows, and each expert's tiles, which
//! are neighbours, are added.
//!
//! Offsets that fall or leave the rows, and indices that are no rows, have no meaning in hipDNN. They are bent into range before they are
//! used, so that whatever they are, nothing is read or written outside of a buffer.

use crate::contract::{check_product, contract};
use crate::convert::{IntegerPredicate as I, compare_integer, compute_type};
use crate::ir::{Emitter, Loop, MISSING, Relation, affine_map, dim, first};
use crate::lowering::Lowering;
use crate::math::Scalar;
use crate::quirks::{Quirk, Quirks};
use crate::target::Target;
use crate::value::{Ordered, Value, extent, extents};
use crate::{EmitError, Unsupported};
use melior::ir::Value as Ssa;
use rotini_graph::{DataType, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, NormalGraph, TensorId};

/// Rows of the smallest tile: those of a matrix instruction.
const LEAST_TILE: i64 = 16;

/// Rows of the largest tile forward: more would leave more of them empty, and are no faster.
const LARGEST_TILE: i64 = 128;

/// The same backward, where each tile's product is stored before it is added.
const LARGEST_TILE_BACKWARD: i64 = 512;

/// Says whether the operation can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &MoeGroupedMatmul) -> Result<(), Unsupported> {
    check_product(graph, compute, [op.token, op.weight])?;
    check_tiles(Sizes::forward(graph, op, Quirks::ALL))
}

/// Says whether the gradient can be lowered.
pub(crate) fn check_backward(
    graph: &NormalGraph,
    compute: DataType,
    op: &MoeGroupedMatmulBwd,
) -> Result<(), Unsupported> {
    check_product(graph, compute, [op.token, op.doutput])?;
    if compute_type(compute).is_some_and(DataType::is_integer) {
        return Err(Unsupported::new(format!("a gradient has no meaning in {compute}")));
    }
    check_tiles(Sizes::backward(graph, op, Quirks::ALL))
}

/// Rows are counted in i32.
fn check_tiles(sizes: Option<Sizes>) -> Result<(), Unsupported> {
    match sizes {
        Some(sizes) if sizes.tile_rows().is_some_and(|rows| rows < i64::from(i32::MAX)) => Ok(()),
        _ => Err(Unsupported::new("more than 2^31 rows")),
    }
}

/// The elements of what the lowering makes on the way: rows in tiles, matrices of tiles, products.
pub(crate) fn elements(graph: &NormalGraph, op: &MoeGroupedMatmul) -> Option<u64> {
    Sizes::forward(graph, op, Quirks::ALL)?.elements()
}

/// The same for the gradient.
pub(crate) fn backward_elements(graph: &NormalGraph, op: &MoeGroupedMatmulBwd) -> Option<u64> {
    Sizes::backward(graph, op, Quirks::ALL)?.elements()
}

/// How many there are of everything.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    groups: i64,
    /// Routed rows.
    rows: i64,
    inner: i64,
    columns: i64,
    /// Rows of a tile.
    tile: i64,
    /// Tiles.
    tiles: i64,
}

impl Sizes {
    fn forward(graph: &NormalGraph, op: &MoeGroupedMatmul, quirks: Quirks) -> Option<Self> {
        let (output, weight) = (&graph.tensor(op.output)?.dims, &graph.tensor(op.weight)?.dims);
        let (&[_, rows, columns], &[_, inner, _]) = (output.as_slice(), weight.as_slice()) else {
            return None;
        };
        let offset = op.first_token_offset;
        Self::new(graph, offset, [rows, inner, columns], LARGEST_TILE, quirks)
    }

    fn backward(graph: &NormalGraph, op: &MoeGroupedMatmulBwd, quirks: Quirks) -> Option<Self> {
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

    fn new(
        graph: &NormalGraph,
        offset: TensorId,
        [rows, inner, columns]: [i64; 3],
        largest: i64,
        quirks: Quirks,
    ) -> Option<Self> {
        let groups = *graph.tensor(offset)?.dims.first()?;
        // As many rows as a group has on average.
        let average = rows.checked_div(groups)?.clamp(LEAST_TILE, largest);
        let tile = i64::try_from(u64::try_from(average).ok()?.next_power_of_two()).ok()?;
        // Each group that is not empty begins a tile with one row, the others fill tiles.
        let begun = groups.min(rows);
        let least = if quirks.avoids(Quirk::SingleTile) { 2 } else { 1 };
        Some(Sizes {
            groups,
            rows,
            inner,
            columns,
            tile,
            tiles: begun.checked_add((rows - begun).checked_div(tile)?)?.max(least),
        })
    }

    /// Rows of all tiles.
    fn tile_rows(&self) -> Option<i64> {
        self.tiles.checked_mul(self.tile)
    }

    fn elements(&self) -> Option<u64> {
        let of_tiles = |rows: i64, columns: i64| {
            let elements = self.tiles.checked_mul(rows)?.checked_mul(columns)?;
            u64::try_from(elements).ok()
        };
        // Of groups, tiles, the rows of tiles and those of the output.
        let lists = u64::try_from(self.groups.checked_add(self.tiles)?.checked_add(self.rows)?).ok()?;
        of_tiles(self.tile, self.inner)?
            .checked_add(of_tiles(self.inner, self.columns)?)?
            .checked_add(of_tiles(self.tile, self.columns)?)?
            .checked_add(of_tiles(self.tile, 1)?)?
            .checked_add(lists.checked_mul(3)?)
    }
}

/// Indices and i32, inside the body of a structured operation.
#[derive(Clone, Copy)]
struct Body<'c, 'r>(Emitter<'c, 'r>);

impl<'c, 'r> Body<'c, 'r> {
    fn index(&self, value: i64) -> Scalar<'c, 'r> {
        self.0.integer(value, self.0.index_type())
    }

    fn number(&self, value: i64) -> Scalar<'c, 'r> {
        self.0.integer(value, self.0.element_type(DataType::I32)?)
    }

    fn as_index(&self, number: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        self.0.one("arith.index_cast", &[number], self.0.index_type(), &[])
    }

    fn as_number(&self, index: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        let ty = self.0.element_type(DataType::I32)?;
        self.0.one("arith.index_cast", &[index], ty, &[])
    }

    /// Arithmetic on two of one type.
    fn op(&self, name: &str, x: Ssa<'c, 'r>, y: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        self.0.same(name, &[x, y])
    }

    fn compare(&self, predicate: I, x: Ssa<'c, 'r>, y: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        compare_integer(&self.0, predicate, x, y)
    }

    fn select(&self, condition: Ssa<'c, 'r>, yes: Ssa<'c, 'r>, no: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        use melior::ir::ValueLike as _;
        self.0.one("arith.select", &[condition, yes, no], yes.r#type(), &[])
    }

    /// An element of a list of i32.
    fn entry<'b>(&self, at: &Emitter<'c, 'b>, list: Ssa<'c, 'b>, position: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        self.0.extract(at.captured(list), &[position], DataType::I32)
    }
}

/// A list of i32 with as many elements as `count`: each combines, from `start`, what `body` makes of its own position, of a position in
/// the list `over`, of the element there and of what came before.
fn combine<'c, 'b>(
    at: &Emitter<'c, 'b>,
    count: i64,
    over: Ssa<'c, 'b>,
    start: f64,
    body: impl for<'r> FnOnce(&Body<'c, 'r>, [Ssa<'c, 'r>; 2], Ssa<'c, 'r>, Ssa<'c, 'r>) -> Scalar<'c, 'r>,
) -> Result<Ssa<'c, 'b>, EmitError> {
    let init = (
        at.filled(&[count], DataType::I32, start)?,
        DataType::I32,
        affine_map(2, &[dim(0)]),
    );
    let input = (over, DataType::I32, affine_map(2, &[dim(1)]));
    at.generic(&[Loop::Parallel, Loop::Reduction], &[input], init, |inner, elements| {
        let &[element, so_far] = elements else {
            return Err(MISSING);
        };
        let positions = [inner.loop_index(0)?, inner.loop_index(1)?];
        body(&Body(*inner), positions, element, so_far)
    })
}

/// Where rows lie.
struct Tiles<'l, 'g, 'c, 'b> {
    lowering: &'l Lowering<'g, 'c, 'b>,
    sizes: Sizes,
    /// The first row of each group: rising, and none behind the last row.
    starts: Ssa<'c, 'b>,
    /// The first tile of each group.
    tiles: Ssa<'c, 'b>,
}

impl<'l, 'g, 'c, 'b> Tiles<'l, 'g, 'c, 'b> {
    fn new(lowering: &'l Lowering<'g, 'c, 'b>, offset: TensorId, sizes: Sizes) -> Result<Self, EmitError> {
        let at = lowering.emitter();
        let offsets = list(lowering, offset)?;
        let starts = combine(
            &at,
            sizes.groups,
            offsets,
            0.0,
            |body, [group, other], offset, so_far| {
                let capped = body.op("arith.minsi", offset, body.number(sizes.rows)?)?;
                let counts = body.0.compare_indices(Relation::AtMost, other, group)?;
                let counted = body.select(counts, capped, body.number(0)?)?;
                body.op("arith.maxsi", so_far, counted)
            },
        )?;
        let tiles = combine(&at, sizes.groups, starts, 0.0, |body, [group, other], start, so_far| {
            let next = body.op("arith.addi", other, body.index(1)?)?;
            let last = body.index(sizes.groups - 1)?;
            let end = body.entry(&at, starts, body.op("arith.minui", next, last)?)?;
            let tiles = tiles_of(body, start, end, sizes.tile)?;
            let counts = body.0.compare_indices(Relation::AtMost, next, group)?;
            let counted = body.select(counts, tiles, body.number(0)?)?;
            body.op("arith.addi", so_far, counted)
        })?;
        Ok(Tiles {
            lowering,
            sizes,
            starts,
            tiles,
        })
    }

    /// For each of so many positions, how many of the rising list's elements are not above it.
    fn not_above(&self, count: i64, list: Ssa<'c, 'b>) -> Result<Ssa<'c, 'b>, EmitError> {
        combine(
            &self.lowering.emitter(),
            count,
            list,
            0.0,
            |body, [position, _], element, so_far| {
                let is_not_above = body.compare(I::LessEqual, element, body.as_number(position)?)?;
                let ty = body.0.element_type(DataType::I32)?;
                body.op(
                    "arith.addi",
                    so_far,
                    body.0.one("arith.extui", &[is_not_above], ty, &[])?,
                )
            },
        )
    }

    /// Where a group's rows end.
    fn end<'r>(&self, body: &Body<'c, 'r>, group: Ssa<'c, 'r>) -> Scalar<'c, 'r> {
        self.next(body, self.starts, group, body.number(self.sizes.rows)?)
    }

    /// The next group's entry, or what comes after the last one's.
    fn next<'r>(
        &self,
        body: &Body<'c, 'r>,
        list: Ssa<'c, 'b>,
        group: Ssa<'c, 'r>,
        last: Ssa<'c, 'r>,
    ) -> Scalar<'c, 'r> {
        let last_group = body.index(self.sizes.groups - 1)?;
        let is_last = body.0.compare_indices(Relation::AtMost, last_group, group)?;
        let next = body.op("arith.addi", group, body.index(1)?)?;
        let entry = body.entry(
            &self.lowering.emitter(),
            list,
            body.op("arith.minui", next, last_group)?,
        )?;
        body.select(is_last, last, entry)
    }

    /// For each row of each tile, the row that it takes, of which there are `tokens`; -1 for none. Rows are looked up in `index` if there
    /// is one.
    fn sources(&self, groups: Ssa<'c, 'b>, index: Option<Ssa<'c, 'b>>, tokens: i64) -> Result<Ssa<'c, 'b>, EmitError> {
        let (at, sizes) = (self.lowering.emitter(), self.sizes);
        at.tabulate(&[sizes.tiles, sizes.tile], DataType::I32, |inner| {
            let body = Body(*inner);
            let (tile, within) = (inner.loop_index(0)?, inner.loop_index(1)?);
            let group = group(&at, &body, groups, tile)?;
            let first_tile = body.entry(&at, self.tiles, group)?;
            let tiles_before = body.op("arith.subi", body.as_number(tile)?, first_tile)?;
            let rows_before = body.op("arith.muli", tiles_before, body.number(sizes.tile)?)?;
            let rows_before = body.op("arith.addi", rows_before, body.as_number(within)?)?;
            let row = body.op("arith.addi", body.entry(&at, self.starts, group)?, rows_before)?;
            let mut is_there = body.compare(I::Less, row, self.end(&body, group)?)?;
            let source = match index {
                None => row,
                Some(index) => {
                    let row = body.select(is_there, row, body.number(0)?)?;
                    let source = body.entry(&at, index, body.as_index(row)?)?;
                    let last = body.index(tokens - 1)?;
                    let is_row = inner.compare_indices(Relation::AtMost, body.as_index(source)?, last)?;
                    is_there = body.op("arith.andi", is_there, is_row)?;
                    source
                }
            };
            body.select(is_there, source, body.number(-1)?)
        })
    }

    /// The rows of a tensor (1, rows, columns) as tiles (tile, row, column), zero where there is none.
    fn rows(&self, tensor: &Ordered<'c, 'b>, sources: Ssa<'c, 'b>) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = self.lowering.emitter();
        let dims = vec![self.sizes.tiles, self.sizes.tile, extent(&tensor.dims, 2)?];
        let input = (sources, DataType::I32, affine_map(3, &[dim(0), dim(1)]));
        let identity = affine_map(3, &[dim(0), dim(1), dim(2)]);
        let init = (at.empty(&dims, tensor.dtype)?, tensor.dtype, identity);
        let ssa = at.generic(&[Loop::Parallel; 3], &[input], init, |inner, elements| {
            let body = Body(*inner);
            let row = elements.first().copied().ok_or(MISSING)?;
            let is_there = body.compare(I::GreaterEqual, row, body.number(0)?)?;
            let row = body.as_index(body.select(is_there, row, body.number(0)?)?)?;
            let indices = [body.index(0)?, row, inner.loop_index(2)?];
            let element = tensor.element(&at, inner, &indices)?;
            body.select(is_there, element, inner.zero(tensor.dtype)?)
        })?;
        Ok(Ordered {
            ssa: at.barrier(ssa)?,
            order: vec![0, 1, 2],
            dtype: tensor.dtype,
            dims,
        })
    }

    /// The matrix of each tile's group.
    fn matrices(&self, groups: Ssa<'c, 'b>, weight: &Ordered<'c, 'b>) -> Result<Ordered<'c, 'b>, EmitError> {
        let at = self.lowering.emitter();
        let weight = match weight.order.first() {
            Some(0) => weight.clone(),
            _ => weight.in_order(&at, &[0, 1, 2])?,
        };
        let experts = extent(&weight.dims, 0)?;
        let chosen = at.tabulate(&[self.sizes.tiles], DataType::I32, |inner| {
            let body = Body(*inner);
            let group = group(&at, &body, groups, inner.loop_index(0)?)?;
            body.as_number(body.op("arith.remui", group, body.index(experts)?)?)
        })?;
        let mut dims = weight.dims.clone();
        if let Some(first) = dims.first_mut() {
            *first = self.sizes.tiles;
        }
        let init = at.empty(&extents(&dims, &weight.order)?, weight.dtype)?;
        let ty = at.tensor_type(&extents(&dims, &weight.order)?, weight.dtype)?;
        let along = [("dimension_map", at.i64_array(&[0]))];
        // An operation that the compiler fuses into a matmul, unlike a loop of its own.
        let ssa = first(at.op(
            "iree_linalg_ext.gather",
            &[weight.ssa, chosen, init],
            &[ty],
            &along,
            Vec::new(),
        )?)?;
        let ssa = match self.lowering.target() {
            Target::Rocm { .. } => ssa,
            Target::Cpu | Target::Cuda { .. } => at.barrier(ssa)?,
        };
        Ok(Ordered {
            ssa,
            dims,
            order: weight.order,
            dtype: weight.dtype,
        })
    }

    /// For each row of the output, the row of the tiles (counted through all of them) that it is; -1 for none. `taken` has the routed row
    /// of each row of the output, if that is not itself.
    fn slots(&self, taken: Option<Ssa<'c, 'b>>) -> Result<Ssa<'c, 'b>, EmitError> {
        let (at, sizes) = (self.lowering.emitter(), self.sizes);
        let begun = self.not_above(sizes.rows, self.starts)?;
        at.tabulate(&[sizes.rows], DataType::I32, |inner| {
            let body = Body(*inner);
            let (here, zero) = (inner.loop_index(0)?, body.number(0)?);
            let row = match taken {
                Some(taken) => body.entry(&at, taken, here)?,
                None => body.as_number(here)?,
            };
            let safe = body.op("arith.maxsi", row, zero)?;
            let begun = body.entry(&at, begun, body.as_index(safe)?)?;
            let group = body.op("arith.subi", begun, body.number(1)?)?;
            let none = body.compare(I::Less, body.op("arith.minsi", row, group)?, zero)?;
            let group = body.as_index(body.op("arith.maxsi", group, zero)?)?;
            let before = body.op("arith.subi", safe, body.entry(&at, self.starts, group)?)?;
            let tile_rows = body.op(
                "arith.muli",
                body.entry(&at, self.tiles, group)?,
                body.number(sizes.tile)?,
            )?;
            body.select(none, body.number(-1)?, body.op("arith.addi", tile_rows, before)?)
        })
    }

    /// The routed row that each row of the output takes: the last one that is routed there; -1 for none.
    fn taken(&self, index: Ssa<'c, 'b>, ks: Ssa<'c, 'b>, top_k: i64) -> Result<Ssa<'c, 'b>, EmitError> {
        let at = self.lowering.emitter();
        combine(&at, self.sizes.rows, index, -1.0, |body, [here, row], index, so_far| {
            let slot = body.as_index(body.entry(&at, ks, row)?)?;
            let is_slot = body.0.compare_indices(Relation::AtMost, slot, body.index(top_k - 1)?)?;
            let place = body.op("arith.muli", body.as_index(index)?, body.index(top_k)?)?;
            let place = body.op("arith.addi", place, slot)?;
            let is_here = body.0.compare_indices(Relation::Equal, place, here)?;
            let first = body.entry(&at, self.starts, body.index(0)?)?;
            let row = body.as_number(row)?;
            let is_routed = body.compare(I::GreaterEqual, row, first)?;
            let counts = body.op("arith.andi", is_here, body.op("arith.andi", is_slot, is_routed)?)?;
            body.op("arith.maxsi", so_far, body.select(counts, row, body.number(-1)?)?)
        })
    }
}

/// As many tiles as these rows need.
fn tiles_of<'c, 'r>(body: &Body<'c, 'r>, start: Ssa<'c, 'r>, end: Ssa<'c, 'r>, tile: i64) -> Scalar<'c, 'r> {
    let rows = body.op("arith.subi", end, start)?;
    let rounded = body.op("arith.addi", rows, body.number(tile - 1)?)?;
    body.op("arith.divui", rounded, body.number(tile)?)
}

/// The group of a tile, of which `groups` has how many have begun there.
fn group<'c, 'b, 'r>(
    at: &Emitter<'c, 'b>,
    body: &Body<'c, 'r>,
    groups: Ssa<'c, 'b>,
    tile: Ssa<'c, 'r>,
) -> Scalar<'c, 'r> {
    let begun = body.op("arith.maxsi", body.entry(at, groups, tile)?, body.number(1)?)?;
    body.as_index(body.op("arith.subi", begun, body.number(1)?)?)
}

/// A tensor of i32 with one axis that is not 1 as a list.
fn list<'c, 'b>(lowering: &Lowering<'_, 'c, 'b>, id: TensorId) -> Result<Ssa<'c, 'b>, EmitError> {
    let at = lowering.emitter();
    let value = lowering.value(id)?.clone();
    let entries = value.dims.iter().product();
    Ok(value.with_dims(&at, &[entries])?.materialise(&at)?.ssa)
}

/// Lowers the operation.
pub(crate) fn lower(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &MoeGroupedMatmul,
) -> Result<(), EmitError> {
    let compute = compute_type(compute).ok_or(EmitError::Internal("a compute type that check declines"))?;
    let at = lowering.emitter();
    let sizes =
        Sizes::forward(lowering.graph(), op, lowering.quirks()).ok_or(EmitError::Internal("tiles without end"))?;
    let tiles = Tiles::new(lowering, op.first_token_offset, sizes)?;
    let list = |id: Option<TensorId>| match id {
        Some(id) => list(lowering, id),
        None => Err(EmitError::Internal("no routing")),
    };
    let groups = tiles.not_above(sizes.tiles, tiles.tiles)?;
    let token = lowering.value(op.token)?.materialise(&at)?;
    let (index, taken) = match op.mode {
        MoeMode::None => (None, None),
        MoeMode::Gather => (Some(list(op.token_index)?), None),
        MoeMode::Scatter => {
            let taken = tiles.taken(list(op.token_index)?, list(op.token_ks)?, i64::from(op.top_k))?;
            (None, Some(taken))
        }
    };
    let sources = tiles.sources(groups, index, extent(&token.dims, 1)?)?;
    let rows = tiles.rows(&token, sources)?;
    let weight = if sizes.inner == 1 && lowering.quirks().avoids(Quirk::SharedGather) {
        lowering.settled_as(op.weight, compute)?
    } else {
        lowering.settled(op.weight)?
    };
    let matrices = tiles.matrices(groups, &weight)?;
    let dims = [sizes.tiles, sizes.tile, sizes.columns];
    let product = contract(lowering, &rows, &matrices, &dims, &[0, 1, 2], compute)?;

    let out = &lowering.tensor(op.output)?.dims;
    let order = lowering
        .stored_order(op.output)
        .unwrap_or_else(|| (0..out.len()).collect());
    let position = |axis: usize| order.iter().position(|&other| other == axis).ok_or(MISSING);
    let (row, column) = (position(1)?, position(2)?);
    let dtype = lowering.carried_type(op.output, compute)?;
    let input = (tiles.slots(taken)?, DataType::I32, affine_map(3, &[dim(row)]));
    let init = (
        at.empty(&extents(out, &order)?, compute)?,
        compute,
        affine_map(3, &[dim(0), dim(1), dim(2)]),
    );
    let ssa = at.generic(&[Loop::Parallel; 3], &[input], init, |inner, elements| {
        let body = Body(*inner);
        let slot = elements.first().copied().ok_or(MISSING)?;
        let is_there = body.compare(I::GreaterEqual, slot, body.number(0)?)?;
        let slot = body.as_index(body.select(is_there, slot, body.number(0)?)?)?;
        let tile = body.index(sizes.tile)?;
        let indices = [
            body.op("arith.divui", slot, tile)?,
            body.op("arith.remui", slot, tile)?,
            inner.loop_index(column)?,
        ];
        let element = product.element(&at, inner, &indices)?;
        body.select(is_there, element, inner.zero(compute)?)
    })?;
    let output = lowering.apart(Ordered {
        ssa,
        order,
        dtype: compute,
        dims: out.clone(),
    })?;
    let carried = lowering.carry(output, dtype)?;
    lowering.define(op.output, Value::of(carried));
    Ok(())
}

/// Lowers the gradient with respect to the weights.
pub(crate) fn lower_backward(
    lowering: &mut Lowering<'_, '_, '_>,
    compute: DataType,
    op: &MoeGroupedMatmulBwd,
) -> Result<(), EmitError> {
    let compute = compute_type(compute).ok_or(EmitError::Internal("a compute type that check declines"))?;
    let at = lowering.emitter();
    let sizes =
        Sizes::backward(lowering.graph(), op, lowering.quirks()).ok_or(EmitError::Internal("tiles without end"))?;
    let tiles = Tiles::new(lowering, op.first_token_offset, sizes)?;
    let groups = tiles.not_above(sizes.tiles, tiles.tiles)?;
    let sources = tiles.sources(groups, None, sizes.rows)?;
    let token = tiles.rows(&lowering.value(op.token)?.materialise(&at)?, sources)?;
    // Transposed: tile, column, row.
    let token = Ordered {
        order: vec![0, 2, 1],
        dims: vec![sizes.tiles, sizes.inner, sizes.tile],
        ..token
    };
    let doutput = tiles.rows(&lowering.value(op.doutput)?.materialise(&at)?, sources)?;
    let dims = &lowering.tensor(op.dweight)?.dims;
    let order = lowering
        .stored_order(op.dweight)
        .unwrap_or_else(|| (0..dims.len()).collect());
    let matrix: Vec<usize> = std::iter::once(0)
        .chain(order.iter().copied().filter(|&axis| axis != 0))
        .collect();
    let product_dims = [sizes.tiles, sizes.inner, sizes.columns];
    let product = contract(lowering, &token, &doutput, &product_dims, &matrix, compute)?;
    let product = Ordered {
        ssa: at.barrier(product.ssa)?,
        ..product
    };
    let ssa = at.tabulate(&extents(dims, &order)?, compute, |inner| {
        let body = Body(*inner);
        let along = |axis: usize| {
            let position = order.iter().position(|&other| other == axis);
            inner.loop_index(position.ok_or(MISSING)?)
        };
        let group = along(0)?;
        let from = body.entry(&at, tiles.tiles, group)?;
        // What follows the last group's tiles is not in the list.
        let own = tiles_of(
            &body,
            body.entry(&at, tiles.starts, group)?,
            tiles.end(&body, group)?,
            sizes.tile,
        )?;
        let to = body.op("arith.addi", from, own)?;
        let bounds = [body.as_index(from)?, body.as_index(to)?];
        let (row, column) = (along(1)?, along(2)?);
        inner.fold(bounds, (inner.zero(compute)?, compute), |inside, tile, so_far| {
            let indices = [tile, inner.captured(row), inner.captured(column)];
            let element = product.element(&at, inside, &indices)?;
            inside.same("arith.addf", &[so_far, element])
        })
    })?;
    let dweight = lowering.apart(Ordered {
        ssa,
        order,
        dtype: compute,
        dims: dims.clone(),
    })?;
    lowering.define_sums(op.dweight, dweight, compute)
}
