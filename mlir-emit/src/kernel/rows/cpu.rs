//! Fused row reductions on CPUs.
//!
//! A workgroup handles some rows, one after the other. Each reduction is a pass over a row, in
//! vectors, and the last pass stores the results.
//!
//! ```text
//! for each block of 64 vectors:
//!     four vectors of partial results, each of every fourth vector of the block
//!     the four combined, and then with what the blocks before found
//! ```
//!
//! Four vectors keep the additions of a pass from waiting for one another. The sums of a block are
//! in f32, the sums over several blocks in f64. A value with a function of the `math` dialect, such
//! as the exponentials of a softmax, is computed once: the pass that sums it keeps it in the memory
//! of the result.

use super::lanes::combine;
use super::problem::{Kind, Rows, Step};
use crate::counts::{ceil_div, exactly, unsigned};
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::{Source, Tensor, written};
use crate::kernel::places::{coordinates, offset};
use crate::mlir::{Attribute, Float, Name, Type};
use std::collections::HashMap;

const MISSING: &str = "a value that a kernel of rows lacks";

/// Number of vectors of partial results.
const PARTIAL: i64 = 4;
/// Iterations per block, each over [`PARTIAL`] vectors.
const TURNS: i64 = 16;
/// Target number of elements per workgroup. Longer rows have a workgroup each.
const ENOUGH: i64 = 8192;

/// A row's vectors, by their sources.
type Values<'c> = HashMap<Source, Ssa<'c>>;

/// A vector of a row: its offset, and the lanes that have an element if not all do.
#[derive(Clone, Copy)]
struct Spot<'c> {
    place: Int<'c>,
    mask: Option<Ssa<'c>>,
}

struct Writer<'a, 'c> {
    code: Code<'c>,
    rows: &'a Rows<'c>,
    buffers: Vec<Ssa<'c>>,
    /// Lanes per vector.
    lanes: i64,
    /// The step whose elements are kept in a result's memory, and the buffer index of that result.
    kept: Option<(usize, usize)>,
}

/// The state of a row.
struct Row<'c> {
    /// The offset of the row in each tensor.
    first: Vec<Int<'c>>,
    /// Values with one element per row.
    made: Values<'c>,
    /// Whether the elements of the kept step are in memory already.
    is_kept: bool,
}

/// Writes the body, and returns the number of workgroups. The buffers are the operands and the
/// results.
pub(super) fn write<'c>((code, buffers): (&Code<'c>, &[Ssa<'c>]), rows: &Rows<'c>, lanes: i64) -> i64 {
    let workgroup = code.workgroup();
    let count = rows.rows.iter().product::<i64>();
    let each = (ENOUGH / rows.length().max(1)).clamp(1, count.max(1));
    let writer = Writer {
        code: *code,
        rows,
        buffers: buffers.to_vec(),
        lanes,
        kept: kept(rows),
    };
    let code = &writer.code;
    let first = workgroup * each;
    let end = (first + each).min(count);
    code.each([first, end, 1.into()], |number| {
        writer.row(number);
    });
    ceil_div(count, each)
}

/// Returns the last elementwise step with a function of the `math` dialect that a reduction reads,
/// and the buffer index of a result that can hold its elements.
fn kept(rows: &Rows<'_>) -> Option<(usize, usize)> {
    let is_costly = |number: &usize| {
        let step = rows.steps.get(*number).filter(|step| step.kind == Kind::Element);
        step.is_some_and(|step| step.body.iter().any(|operation| operation.name().is_of("math")))
    };
    let of_reductions = rows
        .steps
        .iter()
        .filter_map(|step| match (&step.kind, step.sources.as_slice()) {
            (Kind::Reduction(_), &[Source::Step(number), _]) => Some(number),
            _ => None,
        });
    let step = of_reductions.rev().find(is_costly)?;
    let is_whole = |(_, tensor): &&(Source, Tensor<'_>)| !tensor.is_same(true) && !tensor.element.is_integer();
    let result = rows.stored.iter().position(|stored| is_whole(&stored))?;
    Some((step, rows.operands.len() + result))
}

impl<'c> Writer<'_, 'c> {
    /// Computes one row and stores its results.
    fn row(&self, number: Int<'c>) {
        let code = &self.code;
        let indices = coordinates(number, &self.rows.rows);
        let first = self.rows.tensors().map(|tensor| offset(&indices, &tensor.spread.rows));
        let mut row = Row {
            first: first.collect(),
            made: HashMap::new(),
            is_kept: false,
        };
        for (number, tensor) in self.rows.operands.iter().enumerate() {
            if tensor.is_same(true) {
                let (buffer, place) = self.place(&row, number);
                let loaded = code.read(buffer, place);
                row.made.insert(Source::Operand(number), loaded);
            }
        }
        for (number, step) in self.rows.steps.iter().enumerate() {
            let made = match &step.kind {
                Kind::Element => continue,
                Kind::Row => {
                    let known = step.known(|source| row.made[&source]);
                    written(code, &step.body, known, None)
                }
                Kind::Reduction(start) => self.reduce(&mut row, step, start),
            };
            row.made.insert(Source::Step(number), made);
        }
        self.store(&row)
    }

    /// Returns the buffer of a tensor, and the offset of the row in it.
    fn place(&self, row: &Row<'c>, number: usize) -> (Ssa<'c>, Int<'c>) {
        let buffer = self.buffers[number];
        (buffer, row.first[number])
    }

    /// Computes a reduction of the row.
    fn reduce(&self, row: &mut Row<'c>, step: &Step, start: &Attribute) -> Ssa<'c> {
        let [source, _] = exactly(&step.sources);
        let code = &self.code;
        let single = code.context().value(*step.arguments.last().expect(MISSING)).r#type();
        let constant = |element: Type<'c>, number: &Attribute| {
            let vector = element.vector(&[self.lanes]);
            let value = number.splat(vector);
            code.literal(value, vector)
        };
        let nothing = constant(single, start);
        let keeps = self
            .kept
            .filter(|&(kept, _)| source == Source::Step(kept) && !row.is_kept);
        let add = |found: Ssa<'c>, spot: Spot<'c>| {
            let mut value = self.element(row, source, spot, &mut HashMap::new());
            if let Some((_, result)) = keeps {
                self.write(row, result, spot, value);
            }
            if let Some(mask) = spot.mask {
                value = mask.select(value, nothing);
            }
            combine(code, step, [found, value], Some(self.lanes))
        };
        // Computes the partial result of a block.
        let block = |first: Int<'c>, turns: i64, rest: &[Spot<'c>]| {
            let mut partial = vec![nothing; unsigned(PARTIAL)];
            if turns > 0 {
                let bounds = [0, turns, 1].map(Int::Known);
                partial = code.repeat(bounds, &partial, |turn, partial| {
                    let next = (0..PARTIAL).zip(partial).map(|(number, &found)| {
                        let vector = turn * PARTIAL + number;
                        let place = first + vector * self.lanes;
                        add(found, Spot { place, mask: None })
                    });
                    next.collect()
                });
            }
            for (found, &spot) in partial.iter_mut().zip(rest) {
                *found = add(*found, spot);
            }
            while partial.len() > 1 {
                let pairs = partial.chunks(2).map(|pair| match *pair {
                    [a, b] => combine(code, step, [a, b], Some(self.lanes)),
                    _ => unreachable!("{MISSING}"),
                });
                partial = pairs.collect();
            }
            partial.pop().expect(MISSING)
        };
        let (whole, rest) = self.cut();
        let of_block = TURNS * PARTIAL * self.lanes;
        let (blocks, turns) = (whole / TURNS, whole % TURNS);
        let found = if blocks == 0 || whole == TURNS && rest.is_empty() {
            block(Int::Known(0), whole, &rest)
        } else {
            let is_sum = step.body.iter().any(|operation| operation.name() == Name::ArithAddf);
            let double = Type::float(code.context(), Float::F64);
            let and = |so_far: Ssa<'c>, found: Ssa<'c>| {
                if !is_sum {
                    return combine(code, step, [so_far, found], Some(self.lanes));
                }
                let wide = found.extf(so_far.r#type());
                so_far + wide
            };
            let so_far = if is_sum {
                constant(double, &Attribute::scalar("0.0", double))
            } else {
                nothing
            };
            let bounds = [0, blocks, 1].map(Int::Known);
            let so_far = code.repeat(bounds, &[so_far], |number, so_far| {
                let [so_far] = exactly(so_far);
                let found = block(number * of_block, TURNS, &[]);
                vec![and(so_far, found)]
            });
            let [so_far] = exactly(&so_far);
            if turns == 0 && rest.is_empty() {
                so_far
            } else {
                and(so_far, block(Int::Known(blocks * of_block), turns, &rest))
            }
        };
        row.is_kept |= keeps.is_some();
        self.across(step, found, single)
    }

    /// Combines the lanes of a vector.
    fn across(&self, step: &Step, found: Ssa<'c>, single: Type<'c>) -> Ssa<'c> {
        let code = &self.code;
        let (_, element) = found.r#type().as_vector();
        let is_wide = element != single;
        let (mut found, mut width) = (found, self.lanes);
        while width > 1 {
            width /= 2;
            let half = |from: i64| code.shuffle([found, found], &(from..from + width).collect::<Vec<_>>());
            let (low, high) = (half(0), half(width));
            found = if is_wide {
                low + high
            } else {
                combine(code, step, [low, high], Some(width))
            };
        }
        let found = code.extract(found, 0, element);
        if is_wide { found.truncf(single) } else { found }
    }

    /// Returns the number of iterations over [`PARTIAL`] vectors, and the vectors after them. These
    /// are fewer than [`PARTIAL`], or as many if the last one is not whole.
    fn cut(&self) -> (i64, Vec<Spot<'c>>) {
        let (length, code) = (self.rows.length(), &self.code);
        let of_turn = PARTIAL * self.lanes;
        let turns = length / of_turn;
        let mut rest = Vec::new();
        let mut place = turns * of_turn;
        while place < length {
            let there = length - place;
            let mask = (there < self.lanes).then(|| code.first_lanes(there, self.lanes));
            rest.push(Spot {
                place: place.into(),
                mask,
            });
            place += self.lanes;
        }
        (turns, rest)
    }

    /// Returns a vector of a value's elements. `made`: the values already computed for the same
    /// vector.
    fn element(&self, row: &Row<'c>, source: Source, spot: Spot<'c>, made: &mut Values<'c>) -> Ssa<'c> {
        if let Some(&value) = made.get(&source) {
            return value;
        }
        let code = &self.code;
        let value = if let Some(&one) = row.made.get(&source) {
            one.broadcast(one.r#type().vector(&[self.lanes]))
        } else {
            match source {
                Source::Operand(number) => {
                    let tensor = &self.rows.operands[number];
                    self.read(row, (number, tensor), spot)
                }
                Source::Step(number) => {
                    if let Some((kept, result)) = self.kept.filter(|_| row.is_kept)
                        && kept == number
                    {
                        let stored = self.rows.stored.get(result - self.rows.operands.len());
                        let (_, tensor) = stored.expect(MISSING);
                        self.read(row, (result, tensor), spot)
                    } else {
                        let step = self.rows.steps.get(number).filter(|step| step.kind == Kind::Element);
                        let step = step.expect(MISSING);
                        let known = step.known(|source| self.element(row, source, spot, made));
                        written(code, &step.body, known, Some(self.lanes))
                    }
                }
                Source::Sums | Source::Unused => unreachable!("{MISSING}"),
            }
        };
        made.insert(source, value);
        value
    }

    /// Reads a vector of a tensor; lanes without an element are zero.
    fn read(&self, row: &Row<'c>, (number, tensor): (usize, &Tensor<'c>), spot: Spot<'c>) -> Ssa<'c> {
        let vector = tensor.element.vector(&[self.lanes]);
        let (buffer, first) = self.place(row, number);
        self.code.read_masked(buffer, first + spot.place, spot.mask, vector)
    }

    /// Writes a vector to a tensor.
    fn write(&self, row: &Row<'c>, number: usize, spot: Spot<'c>, value: Ssa<'c>) {
        let (buffer, first) = self.place(row, number);
        self.code.write_masked(value, buffer, first + spot.place, spot.mask)
    }

    /// Stores the elements of the row, and the values with one element per row.
    fn store(&self, row: &Row<'c>) {
        let code = &self.code;
        let outputs = || (self.rows.operands.len()..).zip(&self.rows.stored);
        let elements: Vec<_> = outputs().filter(|(_, (_, tensor))| !tensor.is_same(true)).collect();
        let write = |spot: Spot<'c>| {
            let mut made = HashMap::new();
            // All values are read before any is written: the memory of a result may hold the
            // operands of other results.
            let values: Vec<_> = elements
                .iter()
                .map(|(_, (source, _))| self.element(row, *source, spot, &mut made))
                .collect();
            for ((number, _), value) in elements.iter().zip(values) {
                self.write(row, *number, spot, value);
            }
        };
        if !elements.is_empty() {
            let (turns, rest) = self.cut();
            if turns > 0 {
                let bounds = [0, turns, 1].map(Int::Known);
                code.each(bounds, |turn| {
                    for number in 0..PARTIAL {
                        let vector = turn * PARTIAL + number;
                        let place = vector * self.lanes;
                        write(Spot { place, mask: None });
                    }
                });
            }
            rest.into_iter().for_each(write);
        }
        for (number, (source, _)) in outputs().filter(|(_, (_, tensor))| tensor.is_same(true)) {
            let value = row.made[source];
            let (buffer, place) = self.place(row, number);
            code.write(value, buffer, place);
        }
    }
}
