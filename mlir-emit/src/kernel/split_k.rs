//! The second kernel of a split-K product: adds the partial sums and applies the epilogue.
//!
//! A lane handles a run of four neighbouring results. The partial sums of one part follow those of
//! another in memory, each in the memory order of the result. If there are many parts, four lanes
//! of a subgroup share a run: each adds a quarter of the parts.

use super::code::{Code, Int, Ssa};
use super::epilogue::{Epilogue, RUN, Spot, Tensor};
use super::places::coordinates;
use super::problem::{Axis, Product};
use crate::counts::{ceil_div, exactly};
use crate::mlir::{Context, Float, Type};
use rotini_schedule::gemm::PARTS_AT_ONCE;

/// Lanes per workgroup: one subgroup, so that few results still have many workgroups.
pub(super) const LANES: i64 = 64;
/// Maximum number of parts that are loaded before the first is added.
const AT_ONCE: i64 = PARTS_AT_ONCE.cast_signed();
/// The number of parts from which on lanes share runs, and the number of lanes that share a run.
const MANY: i64 = 32;
const SHARES: i64 = 4;

/// Writes the body, and returns the number of workgroups. The buffers are the partial sums, the
/// epilogue's operands and its results.
pub(super) fn write<'c>(code: &Code<'c>, buffers: &[Ssa<'c>], product: &Product, epilogue: &Epilogue<'c>) -> i64 {
    let run = product.run_axis().expect("parts along a batch");
    let parts = product.schedule.parts.cast_signed();
    let results: i64 = product.shape().iter().product();
    let (&source, buffers) = buffers.split_first().expect("no parts");

    let extent = product.extent(run);
    let lines = results / extent;
    let runs = ceil_div(extent, RUN);
    let shares = if parts >= MANY && parts % SHARES == 0 {
        SHARES
    } else {
        1
    };
    let lane = code.lane();
    let together = LANES / shares;
    let (within, share) = match shares {
        1 => (lane, Int::Known(0)),
        _ => (lane % together, lane / together),
    };
    let number = code.workgroup() * together + within;
    let (line, first) = (number / runs, number % runs * RUN);
    let is_line = line.is_below(lines);
    let exists: Vec<_> = (0..RUN).map(|next| is_line & (first + next).is_below(extent)).collect();

    // The indices of the run's first element along each axis.
    let others: Vec<Axis> = product.axes().into_iter().filter(|&axis| axis != run).collect();
    let extents: Vec<i64> = others.iter().map(|&axis| product.extent(axis)).collect();
    let indices = coordinates(line, &extents);
    let index = |axis: Axis| {
        if axis == run {
            return first;
        }
        // An axis of extent 1 may be missing in the result's memory order.
        let position = others.iter().position(|&other| other == axis);
        position.map_or(Int::Known(0), |position| indices[position])
    };
    let along = |count: usize, axis: fn(usize) -> Axis| -> Vec<Int<'c>> {
        (0..count).map(|number| index(axis(number))).collect()
    };
    let batch = [vec![Int::Known(0)], along(product.batch.len(), Axis::Batch)].concat();
    let rows = along(product.rows.len(), Axis::Row);
    let columns = along(product.columns.len(), Axis::Column);
    let goes_along_columns = matches!(run, Axis::Column(_));
    let (own, position) = match run {
        Axis::Column(position) => (&columns, position),
        Axis::Row(position) => (&rows, position),
        Axis::Batch(_) | Axis::Group(_) => unreachable!("parts along a batch"),
    };
    let run_indices: Vec<_> = (0..RUN)
        .map(|next| {
            let mut indices = own.clone();
            indices[position] = indices[position] + next;
            indices
        })
        .collect();
    let own = parts / shares;
    let place = line * extent + first;
    let place = place + share * (own * results);
    let mut sums = sums(code, source, (place, &exists), (own, results, extent));
    for distance in [together, 2 * together] {
        if distance < LANES {
            sums = with_others(code, sums, distance);
        }
    }
    // The first of the lanes that share a run stores it.
    let is_first = share.is_below(1);
    let exists: Vec<_> = exists.iter().map(|&exists| is_first & exists).collect();
    let spot = Spot {
        batch: &batch,
        rows: &rows,
        columns: &columns,
        run: &run_indices,
        goes_along_columns,
        exists: &exists,
    };
    let last = if goes_along_columns {
        product.columns.last()
    } else {
        product.rows.last()
    };
    epilogue.write(code, (sums, *last.expect("a side has no axes")), &spot, buffers);
    ceil_div(lines * runs, together)
}

/// Adds the sums of this lane's run and those of the lane whose index differs by `distance`.
fn with_others<'c>(code: &Code<'c>, sums: Ssa<'c>, distance: i64) -> Ssa<'c> {
    let float = Type::float(code.context(), Float::F32);
    let others: Vec<_> = (0..RUN)
        .map(|number| code.exchanged(code.extract(sums, number, float), distance))
        .collect();
    let others = code.vector(&others, sums.r#type());
    sums + others
}

/// Sums `parts` partial results of a run. `place`: the offset of the first one in `source`.
fn sums<'c>(
    code: &Code<'c>,
    source: Ssa<'c>,
    (place, exists): (Int<'c>, &[Int<'c>]),
    (parts, results, extent): (i64, i64, i64),
) -> Ssa<'c> {
    let float = Type::float(code.context(), Float::F32);
    let vector = float.vector(&[RUN]);
    let load = |part: Int<'c>| {
        if extent % RUN == 0 && results % RUN == 0 {
            let there = exists[0];
            let lane = code.masked(there, place, source);
            return code.load_uniform(source, lane, part, vector);
        }
        let elements: Vec<_> = (0..)
            .zip(exists)
            .map(|(next, &there)| {
                let lane = code.masked(there, place + next, source);
                code.load_uniform(source, lane, part, float)
            })
            .collect();
        code.vector(&elements, vector)
    };
    let group = (2..=AT_ONCE).rev().find(|group| parts % group == 0).unwrap_or(1);
    let add = |start: Int<'c>, so_far: Ssa<'c>| {
        let loaded: Vec<_> = (0..group).map(|part| load(start + part * results)).collect();
        let mut sum = so_far;
        for part in loaded {
            sum = sum + part;
        }
        sum
    };
    let zeros = code.zeros(vector);
    if group == parts {
        return add(Int::Known(0), zeros);
    }
    let bounds = [0, parts * results, group * results].map(Int::Known);
    let sums = code.repeat(bounds, &[zeros], |start, so_far| {
        let [so_far] = exactly(so_far);
        vec![add(start, so_far)]
    });
    sums[0]
}

/// Returns the tensor of partial sums that the first kernel stores.
pub(super) fn parts<'c>(product: &Product, value: usize, context: &'c Context) -> Tensor<'c> {
    let results: i64 = product.shape().iter().product();
    let mut spread = super::fusion::spread(product, &product.order, &product.shape());
    spread.batch[0] = results;
    Tensor {
        value,
        element: Type::float(context, Float::F32),
        shape: vec![product.schedule.parts.cast_signed() * results],
        spread,
    }
}
