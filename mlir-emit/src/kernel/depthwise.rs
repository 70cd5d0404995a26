//! Products of few terms, computed without matrix instructions: each sum in one lane. Examples are
//! convolutions with few channels, or one channel, per group: matrix instructions would have few
//! columns to compute, or operands that both vary along the columns.
//!
//! Example: y\[n, c, p, q\] = Σ x\[n, c, p + r - 1, q + s - 1\] w\[c, r, s\]. A lane computes the
//! sums of a block: runs of four elements that are contiguous in the result, in up to four lines.
//! It loads each element of x that the block needs once, and neighbouring lanes load neighbouring
//! elements.

use super::code::{Code, Int, Ssa};
use super::epilogue::{Epilogue, RUN, Spot};
use super::gemm::{element, xcd_remap};
use super::merged::Axes;
use super::places::{coordinates, known_coordinates};
use super::problem::{Axis, Factor, Product, Window};
use crate::counts::{ceil_div, unsigned};
use crate::mlir::{Float, Name, Type};
use std::collections::HashMap;

/// Lanes per workgroup.
pub(super) const LANES: i64 = 256;
/// Maximum number of terms of a sum: the loop over them is unrolled.
pub(crate) const TERMS: i64 = 64;
/// Maximum number of lines of a block.
const LINES: i64 = 4;

const MISSING: &str = "an axis that a product lacks";

/// An axis of a product, and the step along it from block to block.
struct Steps {
    axis: Axis,
    extent: i64,
    step: i64,
}

/// The blocks into which a product is divided.
struct Blocks {
    /// The axes in the memory order of the result.
    sides: Vec<Steps>,
    /// The axis of the run, and the axis of the lines.
    run: Axis,
    line: Option<Axis>,
}

impl Blocks {
    fn new(product: &Product) -> Self {
        let run = product.run_axis().expect(MISSING);
        // Windows overlap along the spatial axes, which are all axes of the rows but the first.
        let lines = (1..product.rows.len()).rev().map(Axis::Row);
        let line = lines.into_iter().find(|&axis| axis != run && product.extent(axis) > 1);
        let sides = product.axes().into_iter().map(|axis| {
            let extent = product.extent(axis);
            let step = match axis {
                axis if axis == run => RUN,
                axis if Some(axis) == line => extent.min(LINES),
                _ => 1,
            };
            Steps { axis, extent, step }
        });
        Blocks {
            sides: sides.collect(),
            run,
            line,
        }
    }

    fn step(&self, axis: Axis) -> i64 {
        let side = self.sides.iter().find(|side| side.axis == axis);
        side.map_or(1, |side| side.step)
    }

    fn counts(&self) -> Vec<i64> {
        let counts = self.sides.iter().map(|side| ceil_div(side.extent, side.step));
        counts.collect()
    }
}

/// Returns an operand's stride along an axis of the product.
fn stride(factor: &Factor, axis: Axis, is_first: bool) -> i64 {
    let (rows, columns) = if is_first {
        (&factor.strides.own, &factor.strides.other)
    } else {
        (&factor.strides.other, &factor.strides.own)
    };
    let (strides, index) = match axis {
        Axis::Batch(index) => (&factor.strides.batch, index),
        Axis::Row(index) => (rows, index),
        Axis::Column(index) => (columns, index),
        Axis::Group(_) => return 0,
    };
    // An operand has no stride along an axis that only the other operand has.
    strides.get(index).copied().unwrap_or(0)
}

/// An operand, and what a lane has loaded of it.
pub(super) struct Elements<'a, 'c> {
    code: &'a Code<'c>,
    factor: &'a Factor,
    buffer: Ssa<'c>,
    element: Type<'c>,
    /// The offset of the element that the first term of the block's first result reads, without the
    /// constant part of the offset.
    base: Int<'c>,
    /// Elements per load. Each load starts at a multiple of `width`.
    width: i64,
    /// The position of `base` along each window.
    along: Vec<Int<'c>>,
    loaded: HashMap<i64, Ssa<'c>>,
    inside: HashMap<(usize, i64), Int<'c>>,
    elements: HashMap<(i64, Vec<i64>), Ssa<'c>>,
}

/// An axis along which a block starts at an index that is computed at run time.
pub(super) struct Moved<'c> {
    pub(super) first: Int<'c>,
    pub(super) extent: i64,
    pub(super) step: i64,
    /// The operand's stride along the axis, and the distance of one step along each of its windows.
    pub(super) stride: i64,
    pub(super) along: Vec<i64>,
}

impl<'a, 'c> Elements<'a, 'c> {
    pub(super) fn new(code: &'a Code<'c>, factor: &'a Factor, buffer: Ssa<'c>, moved: &[Moved<'c>]) -> Self {
        let element = element(code.context(), factor.dtype);
        let fits = |width: i64| {
            let is_even = |axis: &Moved<'_>| axis.extent <= axis.step || (axis.step * axis.stride) % width == 0;
            factor.elements % width == 0 && moved.iter().all(is_even)
        };
        let mut along = Vec::new();
        for (number, window) in factor.windows.iter().enumerate() {
            let steps: Vec<_> = moved.iter().map(|axis| axis.first * axis.along[number]).collect();
            along.push(Int::sum(steps.into_iter().chain([Int::Known(window.start)])));
        }
        let offsets = moved.iter().map(|axis| axis.first * axis.stride);
        Elements {
            code,
            factor,
            buffer,
            element,
            base: Int::sum(offsets.collect::<Vec<_>>()),
            width: [RUN, RUN / 2].into_iter().find(|&width| fits(width)).unwrap_or(1),
            along,
            loaded: HashMap::new(),
            inside: HashMap::new(),
            elements: HashMap::new(),
        }
    }

    /// Returns the element at `offset` from the base, in f32. `along`: its offset along each
    /// window. Outside of any window the element is zero.
    pub(super) fn element(&mut self, offset: i64, along: Vec<i64>) -> Ssa<'c> {
        let key = (offset, along);
        if let Some(&known) = self.elements.get(&key) {
            return known;
        }
        let code = self.code;
        let mut exists = Int::Known(1);
        for (number, &further) in key.1.iter().enumerate() {
            exists = exists & self.is_inside(number, further);
        }
        let value = self.load(offset);
        let value = match exists {
            Int::Known(0) => self.zero(),
            Int::Known(_) => value,
            Int::Made(exists) => exists.select(value, self.zero()),
        };
        let float = Type::float(code.context(), Float::F32);
        let value = if self.element == float {
            value
        } else {
            value.extf(float)
        };
        self.elements.insert(key, value);
        value
    }

    fn zero(&self) -> Ssa<'c> {
        self.code.float_text("0.0", self.element)
    }

    fn is_inside(&mut self, number: usize, further: i64) -> Int<'c> {
        if let Some(&known) = self.inside.get(&(number, further)) {
            return known;
        }
        let (window, along) = (&self.factor.windows[number], self.along[number]);
        let inside = (along + further).is_below(window.extent);
        self.inside.insert((number, further), inside);
        inside
    }

    /// Loads the element at `offset` from the base. Beyond the buffer the element is zero.
    fn load(&mut self, offset: i64) -> Ssa<'c> {
        let place = offset - offset.rem_euclid(self.width);
        let r#type = if self.width > 1 {
            self.element.vector(&[self.width])
        } else {
            self.element
        };
        let loaded = if let Some(&known) = self.loaded.get(&place) {
            known
        } else {
            let from = self.base + place;
            let loaded = self.code.load(self.buffer, from, r#type);
            self.loaded.insert(place, loaded);
            loaded
        };
        if self.width > 1 {
            self.code.extract(loaded, offset - place, self.element)
        } else {
            loaded
        }
    }
}

/// Returns the distance along a window of one step along an axis of the result.
fn step_of(window: &Window, axis: Axis, is_first: bool) -> i64 {
    let (index, step, is_along) = match axis {
        Axis::Batch(index) => (index, window.batch, true),
        Axis::Row(index) => (index, window.own, is_first),
        Axis::Column(index) => (index, window.own, !is_first),
        Axis::Group(_) => return 0,
    };
    if is_along && step.0 == index { step.1 } else { 0 }
}

/// Writes the body of the kernel of a product, and returns the number of workgroups. The buffers
/// are those of [`gemm`](super::gemm).
pub(super) fn write<'c>(
    code: &Code<'c>,
    buffers: &[Ssa<'c>],
    (product, _): (&Product, &Axes),
    factors: &[Factor; 2],
    epilogue: &Epilogue<'c>,
) -> i64 {
    let blocks = Blocks::new(product);
    let counts = blocks.counts();
    let count: i64 = counts.iter().product();
    let workgroups = ceil_div(count, LANES);
    let workgroup = xcd_remap(code.workgroup(), workgroups);
    let number = workgroup * LANES + code.lane();
    let is_block = number.is_below_unless(count % LANES == 0, count);
    let firsts = coordinates(number, &counts)
        .into_iter()
        .zip(&blocks.sides)
        .map(|(index, side)| index * side.step)
        .collect::<Vec<_>>();
    let (&[a, b], rest) = buffers.split_first_chunk().expect(MISSING);
    let [first, second] = factors;
    let moved = |factor: &Factor, is_first: bool| -> Vec<Moved<'c>> {
        let axes = blocks.sides.iter().zip(&firsts);
        axes.map(|(side, &first)| Moved {
            first,
            extent: side.extent,
            step: side.step,
            stride: stride(factor, side.axis, is_first),
            along: factor
                .windows
                .iter()
                .map(|window| step_of(window, side.axis, is_first))
                .collect(),
        })
        .collect()
    };
    let mut readers = [
        Elements::new(code, first, a, &moved(first, true)),
        Elements::new(code, second, b, &moved(second, false)),
    ];
    let lines = blocks.line.map_or(1, |line| blocks.step(line));
    let sums = sums(code, product, &blocks, lines, &mut readers);

    let place = |axis: Axis| {
        let at = blocks.sides.iter().zip(&firsts).find(|(side, _)| side.axis == axis);
        at.map_or(Int::Known(0), |(_, &first)| first)
    };
    let batch: Vec<Int<'c>> = (0..product.batch.len())
        .map(|index| place(Axis::Batch(index)))
        .collect();
    let columns: Vec<Int<'c>> = (0..product.columns.len())
        .map(|index| place(Axis::Column(index)))
        .collect();
    let along = matches!(blocks.run, Axis::Column(_));
    let is_below = |index: Int<'c>, axis: Axis| {
        let extent = product.extent(axis);
        index.is_below_unless(extent % blocks.step(axis) == 0, extent)
    };
    for (line, &sum) in (0..lines).zip(&sums) {
        let mut rows: Vec<Int<'c>> = (0..product.rows.len()).map(|index| place(Axis::Row(index))).collect();
        let mut is_there = is_block;
        if let Some(Axis::Row(index)) = blocks.line
            && let Some(row) = rows.get_mut(index)
        {
            *row = *row + line;
            is_there = is_there & is_below(*row, Axis::Row(index));
        }
        let (mut run, mut exists) = (Vec::new(), Vec::new());
        for next in 0..RUN {
            let mut indices = if along { columns.clone() } else { rows.clone() };
            let last = indices.last_mut().expect(MISSING);
            *last = *last + next;
            exists.push(is_there & is_below(*last, blocks.run));
            run.push(indices);
        }
        let spot = Spot {
            batch: &batch,
            rows: &rows,
            columns: &columns,
            run: &run,
            goes_along_columns: along,
            exists: &exists,
        };
        epilogue.write(code, (sum, product.extent(blocks.run)), &spot, rest);
    }
    drop(readers);
    workgroups
}

/// Computes the sums of a block: a vector for each line.
fn sums<'c>(
    code: &Code<'c>,
    product: &Product,
    blocks: &Blocks,
    lines: i64,
    readers: &mut [Elements<'_, 'c>; 2],
) -> Vec<Ssa<'c>> {
    let vector = Type::float(code.context(), Float::F32).vector(&[RUN]);
    let mut sums = vec![code.zeros(vector); unsigned(lines)];
    let terms: i64 = product.sum.iter().product();
    for term in 0..terms {
        let indices = known_coordinates(term, &product.sum);
        for (line, sum) in (0..).zip(&mut sums) {
            let mut operands = Vec::new();
            for (reader, is_first) in readers.iter_mut().zip([true, false]) {
                let factor = reader.factor;
                let elements: Vec<_> = (0..RUN)
                    .map(|next| {
                        let moves = [(Some(blocks.run), next), (blocks.line, line)];
                        let moves: Vec<(Axis, i64)> = moves
                            .into_iter()
                            .filter_map(|(axis, count)| Some((axis?, count)))
                            .collect();
                        let own: i64 = moves
                            .iter()
                            .map(|&(axis, count)| count * stride(factor, axis, is_first))
                            .sum();
                        let of_term: i64 = indices
                            .iter()
                            .zip(&factor.strides.sum)
                            .map(|(index, stride)| index * stride)
                            .sum();
                        let along = factor.windows.iter().map(|window| {
                            let own: i64 = moves
                                .iter()
                                .map(|&(axis, count)| count * step_of(window, axis, is_first))
                                .sum();
                            let (axis, step) = window.sum;
                            own + step * indices[axis]
                        });
                        reader.element(factor.first + own + of_term, along.collect())
                    })
                    .collect();
                operands.push(code.vector(&elements, vector));
            }
            operands.push(*sum);
            *sum = code.same(Name::MathFma, &operands);
        }
    }
    sums
}
