//! The tiled kernel of a product: tiles in LDS, matrix instructions and the epilogue.

mod sums;

use super::code::{Code, Int, Ssa};
use super::epilogue::{Epilogue, RUN, Spot};
use super::merged::Axes;
use super::places::coordinates;
use super::problem::{Factor, Product};
use super::reader::{Reader, terms};
use crate::counts::{ceil_div, signed};
use crate::kernel::problem::bytes;
use crate::mlir::{Context, Float, Type};
use rotini_graph::DataType;
use rotini_schedule::gemm::{INTRINSIC, LANES, Schedule};

/// Dies (XCDs) of an MI300, to which workgroups go in turn.
const DIES: i64 = 8;
/// Rows of tiles in a group of the grouped tile order (GROUP_M in Triton).
const BAND: i64 = 8;

/// The state that all parts of the kernel share.
struct Kernel<'a, 'c> {
    code: &'a Code<'c>,
    axes: &'a Axes,
    schedule: Schedule,
    /// The tile's first row and first column.
    corner: [Int<'c>; 2],
    lane: Int<'c>,
    /// The subgroup's coordinates among the subgroups of its workgroup.
    subgroup: [Int<'c>; 2],
}

/// Returns the type of elements in memory. FNUZ floats are bytes until they are multiplied.
pub(super) fn element(context: &Context, dtype: DataType) -> Type<'_> {
    match dtype {
        DataType::F8E4M3Fnuz | DataType::F8E5M2Fnuz => Type::integer(context, 8),
        DataType::F16 => Type::float(context, Float::F16),
        DataType::Bf16 => Type::float(context, Float::Bf16),
        DataType::F32 => Type::float(context, Float::F32),
        _ => unreachable!("no kernel has elements of {dtype}"),
    }
}

/// Writes the body of the kernel of a product, and returns the number of workgroups. The buffers
/// are the operands, the list of chosen matrices if it exists, the epilogue's operands and its
/// results.
pub(super) fn write<'c>(
    code: &Code<'c>,
    buffers: &[Ssa<'c>],
    (product, axes): (&Product, &Axes),
    factors: &[Factor; 2],
    epilogue: &Epilogue<'c>,
) -> i64 {
    let context = code.context();
    let batches: i64 = axes.batch.iter().product();
    let read = factors.len() + usize::from(product.chosen.is_some());
    let schedule = product.schedule;
    let [rows, columns] = schedule.tile.map(u64::cast_signed);
    let [down, across] = [axes.rows.iter().product::<i64>(), axes.columns.iter().product()];
    let [tall, wide] = [ceil_div(down, rows), ceil_div(across, columns)];
    let parts = schedule.parts.cast_signed();
    let workgroups = batches * parts * tall * wide;

    let workgroup = code.workgroup();
    let each = tall * wide;
    let number = numbered(workgroup, [batches, each * parts], &product.terms);
    let (outer, tile) = (number / each, number % each);
    let (batch, part) = (outer / parts, outer % parts);
    let [row, column] = grouped_tile_order(tile, [tall, wide]);
    let lane = code.lane();
    let across_subgroups = schedule.subgroups[1].cast_signed();
    let subgroup = lane / LANES.cast_signed();
    let kernel = Kernel {
        code,
        axes,
        schedule,
        corner: [row * rows, column * columns],
        lane: lane % LANES.cast_signed(),
        subgroup: [subgroup / across_subgroups, subgroup % across_subgroups],
    };
    let count = counted(batch, &product.terms);
    let chosen = match (product.chosen, buffers.get(factors.len())) {
        (Some(_), Some(&list)) => {
            let number = code.load(list, batch, Type::integer(context, 32));
            let number = number.index_cast(code.index_type());
            Some(vec![Int::Made(number)])
        }
        _ => None,
    };
    let batch = coordinates(batch, &axes.batch);
    let own = [&axes.rows, &axes.columns];
    let readers = [0, 1].map(|side: usize| {
        let factor = &factors[side];
        let r#type = element(context, factor.dtype);
        let tile = schedule.tile[side].cast_signed();
        let memory = code.shared(
            tile * terms(bytes(factor.dtype)) * schedule.buffers.cast_signed(),
            r#type,
        );
        let taken = chosen.as_ref().filter(|_| side == 1).unwrap_or(&batch);
        Reader::new(
            (factor, buffers[side], r#type),
            (own[side], &axes.sum),
            (kernel.corner[side], tile, taken),
            (memory, lane, schedule.lanes().cast_signed()),
        )
    });
    let sums = kernel.sums(readers.each_ref(), (part, count));
    kernel.store(product, epilogue, (&batch, part), &sums, &buffers[read..]);
    workgroups
}

/// Returns the number of terms of the product with this index; `None` if all products have all
/// terms.
fn counted<'c>(batch: Int<'c>, terms: &[i64]) -> Option<Int<'c>> {
    let (&last, others) = terms.split_last()?;
    let mut count = Int::Known(last);
    for (number, &terms) in others.iter().enumerate().rev() {
        let next = signed(number + 1);
        count = batch.is_below(next).select(terms, count);
    }
    Some(count)
}

/// Returns the number of a workgroup's tile among `each` tiles of each of `batches` products.
///
/// `terms`: the products' numbers of terms, if these differ. Each die has neighbouring tiles. If
/// one product has at least twice the terms of another, each die has neighbouring tiles of every
/// product, so that no die has only long ones. Then the order of the products is reversed if the
/// last has more terms than the first, so that long products begin first.
fn numbered<'c>(workgroup: Int<'c>, [batches, each]: [i64; 2], terms: &[i64]) -> Int<'c> {
    let (Some(first), Some(last)) = (terms.first(), terms.last()) else {
        return xcd_remap(workgroup, batches * each);
    };
    let (most, least) = (terms.iter().max(), terms.iter().min());
    if most < least.map(|least| 2 * least).as_ref() {
        return xcd_remap(workgroup, batches * each);
    }
    let (batch, tile) = (workgroup / each, workgroup % each);
    let batch = if last > first {
        Int::Known(batches - 1) - batch
    } else {
        batch
    };
    batch * each + xcd_remap(tile, each)
}

/// Renumbers workgroups so that each die has neighbouring tiles (XCD remap).
pub(super) fn xcd_remap<'c>(workgroup: Int<'c>, workgroups: i64) -> Int<'c> {
    if workgroups < 2 * DIES {
        return workgroup;
    }
    let (die, turn) = (workgroup % DIES, workgroup / DIES);
    let (each, more) = (workgroups / DIES, workgroups % DIES);
    let before = if more == 0 {
        Int::Known(0)
    } else {
        die.is_below(more).select(die, more)
    };
    die * each + before + turn
}

/// Returns the row and the column of a tile in grouped order: down a band of rows, then to the next
/// column.
fn grouped_tile_order<'c>(tile: Int<'c>, [tall, wide]: [i64; 2]) -> [Int<'c>; 2] {
    if tall <= BAND {
        return [tile % tall, tile / tall];
    }
    let band = tile / (BAND * wide);
    let within = tile % (BAND * wide);
    let first = band * BAND;
    if tall % BAND == 0 {
        return [first + within % BAND, within / BAND];
    }
    let left = tall - first;
    let height = left.is_below(BAND).select(left, BAND);
    [first + within % height, within / height]
}

impl<'c> Kernel<'_, 'c> {
    /// Returns the number of matrix instructions of a subgroup along rows and along columns.
    fn instructions(&self) -> [i64; 2] {
        let Schedule { tile, subgroups, .. } = self.schedule;
        [0, 1].map(|side| (tile[side] / (subgroups[side] * INTRINSIC)).cast_signed())
    }

    /// Returns the subgroup's first row, or first column, in the tile.
    fn first(&self, side: usize) -> Int<'c> {
        let each = self.instructions()[side] * INTRINSIC.cast_signed();
        let place = self.subgroup[side];
        place * each
    }

    /// Applies the epilogue to the sums and stores its results.
    fn store(
        &self,
        product: &Product,
        epilogue: &Epilogue<'c>,
        (batch, part): (&[Int<'c>], Int<'c>),
        sums: &[Ssa<'c>],
        buffers: &[Ssa<'c>],
    ) {
        let code = self.code;
        let Axes { rows, columns, .. } = self.axes;
        let batch = if product.schedule.parts > 1 {
            [&[part], batch].concat()
        } else {
            batch.to_vec()
        };
        let sixteen = INTRINSIC.cast_signed();
        let (own, quarter) = (self.lane % sixteen, self.lane / sixteen);
        let run = quarter * RUN;
        let along = self.axes.ends_with_columns;
        let [row, column] = if along { [own, run] } else { [run, own] };
        let first = [
            self.corner[0] + self.first(0) + row,
            self.corner[1] + self.first(1) + column,
        ];
        let [tall, wide] = self.instructions();
        let [down, across] = [rows.iter().product::<i64>(), columns.iter().product()];
        let [tile_rows, tile_columns] = self.schedule.tile.map(u64::cast_signed);
        let is_below = |number: Int<'c>, all: i64, tile: i64| number.is_below_unless(all % tile == 0, all);
        let pairs = (0..tall).flat_map(|i| (0..wide).map(move |j| (i, j)));
        for ((i, j), &sum) in pairs.zip(sums) {
            let (row, column) = (first[0] + i * sixteen, first[1] + j * sixteen);
            let (mut indices, mut exists) = (Vec::new(), Vec::new());
            for next in 0..RUN {
                let (row, column) = if along {
                    (row, column + next)
                } else {
                    (row + next, column)
                };
                let there = is_below(row, down, tile_rows) & is_below(column, across, tile_columns);
                exists.push(there);
                let (number, extents) = if along { (column, columns) } else { (row, rows) };
                indices.push(coordinates(number, extents));
            }
            let spot = Spot {
                batch: &batch,
                rows: &coordinates(row, rows),
                columns: &coordinates(column, columns),
                run: &indices,
                goes_along_columns: along,
                exists: &exists,
            };
            let extent = if along { columns.last() } else { rows.last() };
            epilogue.write(code, (sum, *extent.expect("a side has no axes")), &spot, buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the number of each workgroup's tile.
    fn numbers(shape: [i64; 2], terms: &[i64]) -> Vec<i64> {
        let number = |workgroup: i64| match numbered(Int::Known(workgroup), shape, terms) {
            Int::Known(number) => number,
            Int::Made(_) => unreachable!("a number of numbers"),
        };
        (0..shape[0] * shape[1]).map(number).collect()
    }

    #[test]
    fn each_tile_has_a_workgroup() {
        for each in [1, 15, 16, 50] {
            for terms in [&[][..], &[64, 0, 0, 0], &[16, 12, 12, 9], &[1, 2, 2, 4]] {
                let all: BTreeSet<i64> = numbers([4, each], terms).into_iter().collect();
                assert!(all.into_iter().eq(0..4 * each), "{each} tiles, terms {terms:?}");
            }
        }
    }

    #[test]
    fn dies_share_the_longest_product() {
        for (terms, longest) in [([64, 0, 0, 0], 0), ([1, 2, 2, 4], 3)] {
            let mut counts = [0; 8];
            for (workgroup, number) in numbers([4, 50], &terms).into_iter().enumerate() {
                if number / 50 == longest {
                    assert!(workgroup < 50, "the longest product is not the first");
                    counts[workgroup % 8] += 1;
                }
            }
            assert!(counts.iter().all(|count| (6..=7).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn products_of_about_the_same_length_are_apart() {
        let numbers = numbers([4, 50], &[16, 12, 12, 9]);
        let of_die = |die: usize| numbers.iter().skip(die).step_by(8).map(|number| number / 50);
        assert!(of_die(0).all(|product| product == 0));
        assert!(of_die(7).all(|product| product == 3));
    }
}
