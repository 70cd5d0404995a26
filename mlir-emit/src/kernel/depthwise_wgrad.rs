//! [Depthwise](super::depthwise) products of few rows and long sums, such as the gradient of a
//! depthwise convolution with respect to its filter.
//!
//! Example: dw\[c, r, s\] = Σ dy\[n, c, p, q\] x\[n, c, p + r - 1, q + s - 1\] over n, p and q. A
//! lane has some channels and a share of the positions, and each of its positions contributes to
//! all taps. Then the lanes of a workgroup add their sums, and a second kernel adds the partial
//! sums of the workgroups.
//!
//! Where channels are contiguous, neighbouring lanes have neighbouring channels, otherwise
//! neighbouring positions.

use super::code::{Code, Int, Ssa};
use super::depthwise::{Elements, LANES, Moved};
use super::epilogue::Epilogue;
use super::gemm::xcd_remap;
use super::merged::Axes;
use super::places::{coordinates, known_coordinates, offset};
use super::problem::{Factor, Product};
use crate::counts::{ceil_div, exactly, unsigned};
use crate::mlir::{Float, Type};
use rotini_schedule::{Machine, gemm};

/// Lanes of a subgroup.
const SUBGROUP: i64 = gemm::LANES.cast_signed();
/// Maximum number of sums per lane: with more, the registers leave room for one subgroup at a time.
const SUMS: i64 = 98;
/// Maximum number of results.
const RESULTS: i64 = 1 << 20;

const MISSING: &str = "an axis that a product lacks";

/// The distribution of a product over the lanes of a workgroup.
struct Share {
    /// Columns per lane.
    width: i64,
    /// Lanes along the columns; the other lanes share the sum.
    across: i64,
    /// A cell: the neighbouring terms along the sum's last axis that a lane takes at once.
    cell: i64,
    /// Cells along each axis of the sum.
    counts: Vec<i64>,
}

impl Share {
    fn new(product: &Product) -> Self {
        let (rows, columns) = extents(product);
        let are_neighbours = product.factors[1].strides.own.last() == Some(&1);
        let (width, across) = if are_neighbours && columns > 1 {
            let width = [4, 2].into_iter().find(|width| width * rows <= SUMS).unwrap_or(1);
            let lanes = ceil_div(columns, width);
            let across = [1, 2, 4, 8].into_iter().find(|&across| across >= lanes);
            (width, across.unwrap_or(16))
        } else {
            (1, 1)
        };
        let last = product.sum.last().copied().expect(MISSING);
        let most = if width > 1 { 4 } else { 8 };
        let cell = (1..=most).rev().find(|cell| last % cell == 0).unwrap_or(1);
        let mut counts = product.sum.clone();
        *counts.last_mut().expect("no axis") /= cell;
        Share {
            width,
            across,
            cell,
            counts,
        }
    }

    /// Returns the number of workgroups for `columns` columns.
    fn groups(&self, columns: i64) -> i64 {
        let each = self.width * self.across;
        ceil_div(columns, each)
    }
}

/// Returns the number of rows and of columns of a product.
fn extents(product: &Product) -> (i64, i64) {
    (product.rows.iter().product(), product.columns.iter().product())
}

/// Returns the number of workgroups that share a sum of this product (its split-K parts); `None` if
/// there is no kernel for it.
pub(crate) fn parts(product: &Product, machine: &Machine) -> Option<u64> {
    /// Workgroups per compute unit.
    const RESIDENT: i64 = 4;
    let share = Share::new(product);
    let (rows, columns) = extents(product);
    let cells: i64 = share.counts.iter().product();
    let wanted = RESIDENT * machine.units.cast_signed() / share.groups(columns).max(1);
    // At least two iterations per lane.
    let most = cells / (2 * LANES / share.across).max(1);
    // The kernel that adds the parts loads several at once if their number has such a divisor, and
    // the workspace bound assumes one of the numbers in `PARTS`.
    let most = wanted.min(most).unsigned_abs();
    let results = product.shape().iter().product::<i64>().unsigned_abs();
    let bound = gemm::most_shared(machine, results);
    let fits = |parts: &u64| *parts <= most && parts.saturating_mul(results) <= bound;
    let parts = gemm::PARTS.into_iter().rev().find(fits).unwrap_or(2);
    let is_possible = rows.saturating_mul(columns) <= RESULTS && product.can_be_shared(parts);
    is_possible.then_some(parts)
}

/// Writes the body of the kernel that stores the partial sums, and returns the number of
/// workgroups. The buffers are those of [`gemm`](super::gemm).
pub(super) fn write<'c>(
    code: &Code<'c>,
    buffers: &[Ssa<'c>],
    (product, _): (&Product, &Axes),
    factors: &[Factor; 2],
    epilogue: &Epilogue<'c>,
) -> i64 {
    let context = code.context();
    let share = Share::new(product);
    let (taps, columns) = extents(product);
    let Share {
        width, across, cell, ..
    } = share;
    let parts = product.schedule.parts.cast_signed();
    let groups = share.groups(columns);
    let workgroups = groups * parts;
    let number = xcd_remap(code.workgroup(), workgroups);
    let (group, part) = (number % groups, number / groups);
    let lane = code.lane();
    let (block, slice) = (lane % across, lane / across);
    let group_column = group * (across * width);
    let column = group_column + block * width;
    let cells: i64 = share.counts.iter().product();
    let each = ceil_div(cells, parts);
    let start = part * each;
    let end = start + each;
    let end = end.is_below(cells).select(end, cells);

    let [a, b, stored] = exactly(buffers);
    let float = Type::float(context, Float::F32);
    let vector = float.vector(&[width]);
    let count = unsigned(taps);
    let zeros = vec![code.zeros(vector); count];
    let [first, second] = factors;
    let bounds = [start + slice, end, Int::Known(LANES / across)];
    let sums = code.repeat(bounds, &zeros, |number, sums| {
        let mut indices = coordinates(number, &share.counts);
        let last = indices.last_mut().expect("no axis");
        *last = *last * cell;
        let last = product.sum.len().saturating_sub(1);
        let moved = |factor: &Factor, stride: i64| {
            let along = vec![0; factor.windows.len()];
            let of_column = Moved {
                first: column,
                extent: columns,
                step: width,
                stride,
                along,
            };
            let of_sum = indices.iter().zip(&product.sum).enumerate();
            let of_sum = of_sum.map(|(axis, (&first, &extent))| Moved {
                first,
                extent,
                step: if axis == last { cell } else { 1 },
                stride: factor.strides.sum[axis],
                along: factor.windows.iter().map(|window| step(window.sum, axis)).collect(),
            });
            [of_column].into_iter().chain(of_sum).collect::<Vec<_>>()
        };
        let [of_a, of_b] = [&first.strides.other, &second.strides.own].map(|strides| strides[strides.len() - 1]);
        let mut x = Elements::new(code, first, a, &moved(first, of_a));
        let mut dy = Elements::new(code, second, b, &moved(second, of_b));
        let mut sums = sums.to_vec();
        let along_last = |factor: &Factor| factor.strides.sum[last];
        for term in 0..cell {
            let loaded = (0..width)
                .map(|next| dy.element(second.first + term * along_last(second) + next * of_b, Vec::new()))
                .collect::<Vec<_>>();
            let weights = code.vector(&loaded, vector);
            for (tap, sum) in (0..).zip(&mut sums) {
                let indices = known_coordinates(tap, &product.rows);
                let of_tap: i64 = indices
                    .iter()
                    .zip(&first.strides.own)
                    .map(|(index, stride)| index * stride)
                    .sum();
                let along = first.windows.iter().map(|window| {
                    let (axis, step_of_tap) = window.own;
                    term * step(window.sum, last) + step_of_tap * indices[axis]
                });
                let along: Vec<i64> = along.collect();
                let from = first.first + term * along_last(first) + of_tap;
                let loaded = (0..width)
                    .map(|next| x.element(from + next * of_a, along.clone()))
                    .collect::<Vec<_>>();
                let elements = code.vector(&loaded, vector);
                *sum = elements.fma(weights, *sum);
            }
        }
        sums
    });

    // In LDS each subgroup has the sums of its lanes: for each block of columns, the sums of each
    // tap. Behind them, every lane has space for a store that is never read, so that all lanes can
    // store.
    let of_subgroup = across * taps * width;
    let subgroups = LANES / SUBGROUP;
    let memory = code.shared(subgroups * of_subgroup + LANES * width, float);
    let (own, subgroup) = (lane % SUBGROUP, lane / SUBGROUP);
    let is_first = own.is_below(across);
    let beside = lane * width + subgroups * of_subgroup;
    for (tap, &sum) in (0..).zip(&sums) {
        let mut elements = Vec::new();
        for next in 0..width {
            let mut element = code.extract(sum, next, float);
            let mut distance = across;
            while distance < SUBGROUP {
                element = element + code.exchanged(element, distance);
                distance *= 2;
            }
            elements.push(element);
        }
        let place = subgroup * of_subgroup + (block * taps + tap) * width;
        let place = is_first.select(place, beside);
        code.write_vector(code.vector(&elements, vector), memory, place);
    }
    code.barrier();
    let (_, tensor) = &epilogue.stored[0];
    let spread = &tensor.spread;
    for pass in 0..ceil_div(of_subgroup, LANES) {
        let number = lane + pass * LANES;
        let is_sum = number.is_below(of_subgroup);
        let number = is_sum.select(number, 0);
        let (local, tap) = (number / taps, number % taps);
        let (block, next) = (local / width, local % width);
        let place = (block * taps + tap) * width + next;
        let mut total: Option<Ssa<'c>> = None;
        for subgroup in 0..subgroups {
            let read = code.read(memory, place + subgroup * of_subgroup);
            total = Some(match total {
                Some(total) => total + read,
                None => read,
            });
        }
        let column = group_column + local;
        let exists = is_sum & column.is_below(columns);
        let to = Int::sum([
            offset(&[part], &spread.batch),
            offset(&[column], &spread.columns),
            offset(&coordinates(tap, &product.rows), &spread.rows),
        ]);
        let to = code.masked(exists, to, stored);
        code.store(total.expect(MISSING), stored, to);
    }
    workgroups
}

/// Returns the distance along a window of a step along `axis`. `along`: the axis that moves the
/// window, and the distance of one step.
fn step(along: (usize, i64), axis: usize) -> i64 {
    if along.0 == axis { along.1 } else { 0 }
}
