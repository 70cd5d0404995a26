//! Grouped matmuls of mixtures of experts: one batched matmul over tiles of rows, each tile with
//! the matrix of its expert.
//!
//! Only the device knows which rows belong to an expert, so the rows are rearranged on the device:
//! each group begins a new tile. There are as many tiles as any routing can need, a few more than
//! the rows fill. Forward, a kernel of rotini (on an MI300, with f16 or bf16) reads each tile's
//! matrix in place. Elsewhere the matrices are gathered, which the compiler fuses into the matmul
//! on AMD GPUs. Backward, the product of each tile is computed, and the products of an expert's
//! tiles, which are neighbours, are added.
//!
//! Offsets that decrease or exceed the rows, and indices that are not rows, have no meaning in
//! hipDNN. They are clamped before they are used, so that nothing outside of a buffer is read or
//! written.

use crate::contract::{check_product, contract, contract_chosen};
mod sizes;
mod tiles;

use crate::Unsupported;
use crate::convert::{checked_compute_type, compute_type};
use crate::ir::IndexMap;
use crate::ir::IntegerPredicate as I;
use crate::lowering::Lowering;
use crate::quirks::Quirks;
use crate::value::{Ordered, Value, extent, extents, position};
use rotini_graph::{DataType, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, NormalGraph, TensorId};
use sizes::Sizes;
use tiles::{Body, Tiles, list, tiles_of};

/// Checks whether the grouped matmul can be lowered.
pub(crate) fn check(graph: &NormalGraph, compute: DataType, op: &MoeGroupedMatmul) -> Result<(), Unsupported> {
    check_product(graph, compute, [op.token, op.weight])?;
    check_tiles(Sizes::forward(graph, op, Quirks::ALL))
}

/// Checks whether the gradient can be lowered.
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

/// Checks that the rows of all tiles can be counted in i32.
fn check_tiles(sizes: Option<Sizes>) -> Result<(), Unsupported> {
    match sizes {
        Some(sizes) if sizes.tile_rows().is_some_and(|rows| rows < i64::from(i32::MAX)) => Ok(()),
        _ => Err(Unsupported::new("more than 2^31 rows")),
    }
}

/// Returns the number of elements of intermediate tensors: rows in tiles, matrices of tiles,
/// products.
pub(crate) fn elements(graph: &NormalGraph, op: &MoeGroupedMatmul) -> Option<u64> {
    Sizes::forward(graph, op, Quirks::ALL)?.elements()
}

/// Returns the number of elements of the gradient's intermediate tensors.
pub(crate) fn backward_elements(graph: &NormalGraph, op: &MoeGroupedMatmulBwd) -> Option<u64> {
    Sizes::backward(graph, op, Quirks::ALL)?.elements()
}

/// Lowers the grouped matmul.
pub(crate) fn lower(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &MoeGroupedMatmul) {
    let compute = checked_compute_type(compute);
    let at = lowering.emitter();
    let sizes = Sizes::forward(lowering.graph(), op, lowering.quirks()).expect("tiles without end");
    let tiles = Tiles::new(lowering, op.first_token_offset, sizes);
    let list = |id: Option<TensorId>| match id {
        Some(id) => list(lowering, id),
        None => unreachable!("no routing"),
    };
    let groups = tiles.not_above(sizes.tiles, tiles.tiles);
    let token = rows_of(lowering, op.token);
    let (index, taken) = match op.mode {
        MoeMode::None => (None, None),
        MoeMode::Gather => (Some(list(op.token_index)), None),
        MoeMode::Scatter => {
            let taken = tiles.taken(list(op.token_index), list(op.token_ks), i64::from(op.top_k));
            (None, Some(taken))
        }
    };
    let sources = tiles.sources(groups, index, extent(&token.dims, 1));
    let rows = tiles.rows(&token, sources);
    let weight = if lowering.quirks().shares_gathers(sizes.inner) {
        lowering.settled_as(op.weight, compute)
    } else {
        lowering.settled(op.weight)
    };
    let chosen = tiles.experts(groups, extent(&weight.dims, 0));
    let dims = [sizes.tiles, sizes.tile, sizes.columns];
    let product = match contract_chosen(lowering, &rows, (&weight, chosen), &dims, compute) {
        Some(product) => product,
        None => {
            let matrices = tiles.matrices(chosen, &weight);
            contract(lowering, &rows, &matrices, &dims, &[0, 1, 2], compute)
        }
    };

    let out = &lowering.tensor(op.output).dims;
    let order = lowering
        .stored_order(op.output)
        .unwrap_or_else(|| (0..out.len()).collect());
    let (row, column) = (position(&order, 1), position(&order, 2));
    let dtype = lowering.carried_type(op.output, compute);
    let input = (tiles.slots(taken), IndexMap::select(3, [row]));
    let ssa = at.elementwise(&extents(out, &order), compute, &[input], |elements| {
        let body = Body(at);
        let slot = elements[0];
        let is_there = body.compare(I::GreaterEqual, slot, body.number(0));
        let slot = body.as_index(is_there.select(slot, body.number(0)));
        let tile = body.index(sizes.tile);
        let indices = [slot.divui(tile), slot.remui(tile), at.loop_index(column)];
        let element = product.element(&at, &indices);
        is_there.select(element, at.zero(compute))
    });
    let output = Ordered::new(ssa, order, compute, out.clone());
    let carried = lowering.carry(output, dtype);
    lowering.define(op.output, Value::of(carried));
}

/// Lowers the gradient with respect to the weights.
pub(crate) fn lower_backward(lowering: &mut Lowering<'_, '_>, compute: DataType, op: &MoeGroupedMatmulBwd) {
    let compute = checked_compute_type(compute);
    let at = lowering.emitter();
    let sizes = Sizes::backward(lowering.graph(), op, lowering.quirks()).expect("tiles without end");
    let tiles = Tiles::new(lowering, op.first_token_offset, sizes);
    let groups = tiles.not_above(sizes.tiles, tiles.tiles);
    let sources = tiles.sources(groups, None, sizes.rows);
    let token = tiles.rows(&rows_of(lowering, op.token), sources);
    // Transposed: tile, column, row.
    let token = Ordered {
        order: vec![0, 2, 1],
        dims: vec![sizes.tiles, sizes.inner, sizes.tile],
        ..token
    };
    let doutput = tiles.rows(&rows_of(lowering, op.doutput), sources);
    let dims = &lowering.tensor(op.dweight).dims;
    let order = lowering
        .stored_order(op.dweight)
        .unwrap_or_else(|| (0..dims.len()).collect());
    let matrix: Vec<usize> = std::iter::once(0)
        .chain(order.iter().copied().filter(|&axis| axis != 0))
        .collect();
    let product_dims = [sizes.tiles, sizes.inner, sizes.columns];
    let product = contract(lowering, &token, &doutput, &product_dims, &matrix, compute);
    let product = product.apart(&at);
    let ssa = at.tabulate(&extents(dims, &order), compute, || {
        let body = Body(at);
        let along = |axis| at.loop_index(position(&order, axis));
        let group = along(0);
        let from = body.entry(tiles.tiles, group);
        // The list has no entry for the end of the last group's tiles, so they are counted.
        let own = tiles_of(
            &body,
            body.entry(tiles.starts, group),
            tiles.end(&body, group),
            sizes.tile,
        );
        let to = from + own;
        let bounds = [body.as_index(from), body.as_index(to)];
        let (row, column) = (along(1), along(2));
        at.fold(bounds, at.zero(compute), |tile, so_far| {
            let indices = [tile, row, column];
            let element = product.element(&at, &indices);
            so_far + element
        })
    });
    let ssa = lowering.inner_sums(op.dweight, ssa);
    let dweight = Ordered::new(ssa, order, compute, dims.clone());
    lowering.define_sums(op.dweight, dweight, compute)
}

/// Returns a tensor whose rows are looked up by index.
fn rows_of<'c>(lowering: &Lowering<'_, 'c>, id: TensorId) -> Ordered<'c> {
    lowering.value(id).materialise(&lowering.emitter())
}
