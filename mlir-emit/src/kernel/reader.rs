//! The copies of an operand's part of a step from memory to registers, and from there to LDS.
//!
//! In LDS each row of the tile has the terms of a step contiguously, 128 bytes in chunks of 16. The
//! chunks of a row are XOR-swizzled, so that lanes that access the same chunk of several rows have
//! no bank conflicts.
//!
//! | Contiguous in memory | A lane copies |
//! |---|---|
//! | terms | chunks of a row |
//! | rows | a block of rows and terms, which it transposes in registers |
//! | neither | such a block, one row at a time |

use super::code::{Code, Int, Ssa};
use super::merged::along_the_sum;
use super::places::{Place, Side, is_there, offset, windows};
use super::problem::{Factor, Product, Strides};
use crate::counts::{signed, unsigned};
use crate::kernel::problem::bytes;
use crate::mlir::Type;
use rotini_schedule::gemm::{STEP_BYTES, Schedule};

/// Bytes per chunk.
const CHUNK: i64 = 16;

/// The copies of one operand.
pub(super) struct Reader<'c> {
    pub(super) factor: Factor,
    buffer: Ssa<'c>,
    element: Type<'c>,
    /// The LDS of the tile.
    pub(super) memory: Ssa<'c>,
    /// Rows of the tile.
    rows: i64,
    sum: Vec<i64>,
    /// Whether the address of a step is uniform over the lanes: no step crosses the end of the
    /// innermost summed axis, and no window moves along it.
    is_uniform: bool,
    /// Whether the terms of a block differ in their index along the last axis only.
    has_neighbours: bool,
    blocks: Vec<Block<'c>>,
    /// Elements per load, along rows or terms.
    width: i64,
    /// Whether a lane copies chunks of terms of one row; otherwise it copies blocks of rows and
    /// terms.
    is_deep: bool,
    /// Terms per block.
    depth: i64,
}

/// The terms that a lane copies at once: of one row, or of a run of rows.
struct Block<'c> {
    /// The first row.
    row: Place<'c>,
    /// The first term, relative to the step.
    term: Int<'c>,
    /// The places in LDS, one for each row.
    places: Vec<Int<'c>>,
}

/// Returns the number of terms per step for elements of this size.
pub(super) fn terms(bytes: i64) -> i64 {
    STEP_BYTES.cast_signed() / bytes
}

/// Returns the index in the LDS tile at which a chunk of a row begins: chunks are XOR-swizzled.
pub(super) fn swizzled<'c>(row: Int<'c>, chunk: Int<'c>, bytes: i64) -> Int<'c> {
    let swizzle = (row ^ (row / 8)) % 8;
    let moved = chunk ^ swizzle;
    row * terms(bytes) + moved * (CHUNK / bytes)
}

/// Returns the number of contiguous and aligned elements of an operand along an axis: as many as
/// fill 16, 8 or 4 bytes, or else 1.
fn run(extents: &[i64], along: &[i64], across: &[i64], first: i64, bytes: i64) -> i64 {
    let (Some(&extent), Some((&1, outer))) = (extents.last(), along.split_last()) else {
        return 1;
    };
    let all = || outer.iter().chain(across).copied().chain([extent, first]);
    let fits = |width: &i64| all().all(|number| number % width == 0);
    let widths = [CHUNK / bytes, 8 / bytes, 4 / bytes];
    widths.into_iter().filter(|&width| width > 1).find(fits).unwrap_or(1)
}

/// Adjusts a schedule to a product. If lanes load bytes one by one, the schedule gets the smallest
/// tiles, because with larger tiles a lane would have more loads in flight than the hardware
/// counts. If no kernel can add split-K parts, it gets one part.
pub(crate) fn fitted(product: &Product, schedule: Schedule) -> Schedule {
    let [a, b] = &product.factors;
    let is_single =
        is_of_single_bytes(a, &product.rows, &product.sum) || is_of_single_bytes(b, &product.columns, &product.sum);
    let cut = if is_single { Schedule::default() } else { schedule };
    let parts = if product.can_be_shared(schedule.parts) {
        schedule.parts
    } else {
        1
    };
    Schedule { parts, ..cut }
}

/// Returns whether lanes load the operand's bytes one by one, both along its own axes with these
/// extents and along the sum.
fn is_of_single_bytes(factor: &Factor, own: &[i64], sum: &[i64]) -> bool {
    let Strides {
        batch,
        own: along_own,
        sum: along_sum,
        ..
    } = &factor.strides;
    let beside = |others: &[i64]| [batch.as_slice(), others].concat();
    let is_single =
        |extents: &[i64], along: &[i64], others: &[i64]| run(extents, along, &beside(others), factor.first, 1) == 1;
    factor.dtype.bytes() == Some(1) && is_single(sum, along_sum, along_own) && is_single(own, along_own, along_sum)
}

impl<'c> Reader<'c> {
    /// Prepares the copies of a tile whose first row is `first`, of an operand whose own axes have
    /// the extents `own`. `batch`: the index of the product along each axis of the batch. `lane`:
    /// the lane's index in the workgroup, of `lanes`.
    pub(super) fn new(
        (factor, buffer, element): (&Factor, Ssa<'c>, Type<'c>),
        (own, sum): (&[i64], &[i64]),
        (first, rows, batch): (Int<'c>, i64, &[Int<'c>]),
        (memory, lane, lanes): (Ssa<'c>, Int<'c>, i64),
    ) -> Self {
        let bytes = bytes(factor.dtype);
        let (factor, sum) = along_the_sum(factor, sum);
        let [own_windows, _] = windows(&factor);
        let side = Side {
            extents: own,
            strides: &factor.strides.own,
            windows: &own_windows,
        };
        let strides = &factor.strides;
        let base = offset(batch, &strides.batch);
        let starts: Vec<_> = factor
            .windows
            .iter()
            .map(|window| {
                let (axis, step) = window.batch;
                // Without a batch there is no index along its axes.
                batch.get(axis).map_or(Int::Known(0), |&index| index * step)
            })
            .collect();
        let batch = &strides.batch;
        let outer: Vec<i64> = batch.iter().chain(&strides.own).copied().collect();
        let last_term = sum.len().saturating_sub(1);
        let deep = if factor.windows.iter().any(|window| window.sum.0 == last_term) {
            1
        } else {
            run(&sum, &strides.sum, &outer, factor.first, bytes)
        };
        let outer: Vec<i64> = batch.iter().chain(&strides.sum).copied().collect();
        let last = own.len().saturating_sub(1);
        let moves = factor
            .windows
            .iter()
            .any(|window| window.own.0 == last && window.own.1 != 0);
        let wide = if moves {
            1
        } else {
            run(own, &strides.own, &outer, factor.first, bytes)
        };
        let is_deep = deep > 1 && deep >= wide || strides.sum.last() == Some(&1) && wide == 1;
        let is_whole = side.count() % rows == 0;
        let mut blocks = Vec::new();
        let place_of = |row: Int<'c>| {
            let number = first + row;
            let mut place = side.place(number, is_whole);
            place.offset = place.offset + base + Int::Known(factor.first);
            for (along, &start) in place.along.iter_mut().zip(&starts) {
                *along = *along + start;
            }
            place
        };
        let (width, depth);
        if is_deep {
            (width, depth) = (deep, CHUNK / bytes);
            let chunks = STEP_BYTES.cast_signed() / CHUNK;
            let (row, chunk) = (lane / chunks, lane % chunks);
            for pass in 0..rows * chunks / lanes {
                let row = row + pass * lanes / chunks;
                blocks.push(Block {
                    row: place_of(row),
                    term: chunk * depth,
                    places: vec![swizzled(row, chunk, bytes)],
                });
            }
        } else {
            let each = rows * terms(bytes) / lanes;
            width = wide.min((each / 4).max(1));
            depth = (each / width).min(CHUNK / bytes);
            let across = rows / width;
            let row = lane % across * width;
            let group = lane / across;
            let place_of_row = place_of(row);
            for pass in 0..each / (width * depth) {
                let group = group + pass * lanes / across;
                let term = group * depth;
                let (chunk, within) = (term / (CHUNK / bytes), term % (CHUNK / bytes));
                let places = (0..width).map(|next| {
                    let row = row + next;
                    swizzled(row, chunk, bytes) + within
                });
                blocks.push(Block {
                    row: place_of_row.clone(),
                    term,
                    places: places.collect(),
                });
            }
        }
        let step = terms(bytes);
        let goes_along = factor
            .windows
            .iter()
            .any(|window| window.sum.0 == last_term && window.sum.1 != 0);
        let is_uniform = !goes_along && (sum.len() == 1 || sum.last().is_some_and(|extent| extent % step == 0));
        let has_neighbours = sum.last().is_some_and(|extent| extent % depth == 0);
        Reader {
            factor,
            buffer,
            element,
            memory,
            rows,
            sum,
            is_uniform,
            has_neighbours,
            blocks,
            width,
            is_deep,
            depth,
        }
    }

    /// Returns the number of elements of one step in LDS.
    pub(super) fn size(&self) -> i64 {
        self.rows * terms(self.bytes())
    }

    /// Returns the number of vectors that a step occupies in registers.
    pub(super) fn load_count(&self) -> usize {
        self.blocks.len() * self.runs()
    }

    /// Returns the number of loads per block.
    fn runs(&self) -> usize {
        let runs = if self.is_deep {
            self.depth / self.width
        } else {
            self.depth
        };
        unsigned(runs)
    }

    fn bytes(&self) -> i64 {
        bytes(self.factor.dtype)
    }

    /// Loads the terms from `step` on, and below `end`, to registers.
    pub(super) fn load(&self, code: &Code<'c>, step: Int<'c>, end: Option<Int<'c>>) -> Vec<Ssa<'c>> {
        let [_, sum_windows] = windows(&self.factor);
        let side = Side {
            extents: &self.sum,
            strides: &self.factor.strides.sum,
            windows: &sum_windows,
        };
        let last = self.factor.strides.sum[self.sum.len() - 1];
        let shared = if self.is_uniform {
            Some(side.place(step, true))
        } else {
            None
        };
        // The hardware adds the shared part of the address as an unsigned number.
        let is_forward = self.factor.strides.sum.iter().all(|&stride| stride >= 0);
        let vector = if self.width == 1 {
            self.element
        } else {
            self.element.vector(&[self.width])
        };
        let mut loaded = Vec::new();
        for block in &self.blocks {
            // The first term of the block, if the others are its neighbours along the last axis.
            let first = match &shared {
                None if self.has_neighbours => Some(side.place(step + block.term, true)),
                _ => None,
            };
            for run in (0..).take(self.runs()) {
                let further = run * if self.is_deep { self.width } else { 1 };
                let term = block.term + further;
                let number = step + term;
                let mut place = match (&shared, &first) {
                    (Some(shared), _) => shared.clone(),
                    (None, Some(first)) => side.further(first, further),
                    (None, None) => side.place(number, true),
                };
                if let Some(end) = end {
                    place.exists = number.is_below(end);
                }
                let own = match &shared {
                    Some(_) => block.row.offset + term * last,
                    None => block.row.offset,
                };
                let there = is_there(&self.factor, &block.row, &place);
                let (lane, shared) = match there {
                    Int::Known(1) if shared.is_some() && is_forward => (own, place.offset),
                    there => {
                        let here = own + place.offset;
                        (code.masked(there, here, self.buffer), Int::Known(0))
                    }
                };
                loaded.push(code.load_uniform(self.buffer, lane, shared, vector));
            }
        }
        loaded
    }

    /// Stores the loaded terms to LDS, to the step's buffer that begins at element `start`.
    pub(super) fn keep(&self, code: &Code<'c>, loaded: &[Ssa<'c>], start: Int<'c>) {
        for (block, loaded) in self.blocks.iter().zip(loaded.chunks(self.runs())) {
            for (row, &place) in (0..).zip(&block.places) {
                let chunk = if self.is_deep || self.width == 1 {
                    joined(code, loaded, self.width)
                } else {
                    let pairs: Vec<Ssa<'c>> = loaded
                        .chunks(2)
                        .map(|pair| match pair {
                            &[a, b] => code.shuffle([a, b], &[row, self.width + row]),
                            _ => unreachable!("an odd block"),
                        })
                        .collect();
                    joined(code, &pairs, 2)
                };
                code.write_vector(chunk, self.memory, place + start);
            }
        }
    }
}

/// Concatenates vectors, or elements, into one vector.
fn joined<'c>(code: &Code<'c>, parts: &[Ssa<'c>], width: i64) -> Ssa<'c> {
    match parts {
        [] => unreachable!("an empty block"),
        &[part] if width > 1 => part,
        parts if width == 1 => {
            let first = parts.first().map(|part| part.r#type());
            let count = signed(parts.len());
            let vector = first.expect("an empty block").vector(&[count]);
            code.vector(parts, vector)
        }
        parts => {
            let (a, b) = parts.split_at(parts.len() / 2);
            let half = width * signed(a.len());
            let (a, b) = (joined(code, a, width), joined(code, b, width));
            let all: Vec<i64> = (0..2 * half).collect();
            code.shuffle([a, b], &all)
        }
    }
}
