//! The gradient with respect to a depthwise filter on CPUs. This file has the kernel for pixels
//! innermost: products of neighbouring pixels are summed in the lanes of a vector.
//!
//! ```text
//! for each channel and each row of taps:
//!     for each vector of a row of dy, each image and each row of dy:
//!         sums[tap] += dy · (x moved by the tap)
//! ```
//!
//! Masked loads read zeros outside the image. Sums within an image are in f32; the images' sums are
//! added in f64.

use super::code::{Code, Int, Ssa};
use super::panels::Registers;
use crate::ir::IntegerPredicate;
use crate::mlir::{Attribute, Float, Name, Type};

/// Maximum number of taps per row of the filter: each has a register.
const MOST: i64 = 16;

/// The gradient with respect to the filter of a depthwise convolution over two axes, with one
/// filter per channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taps {
    pub(crate) batch: i64,
    pub(crate) channels: i64,
    /// Extents of both axes of x, of dy and of the filter.
    pub(crate) input: [i64; 2],
    pub(crate) output: [i64; 2],
    pub(crate) window: [i64; 2],
    /// Padding before x, strides and dilations.
    pub(crate) pre: [i64; 2],
    pub(crate) stride: [i64; 2],
    pub(crate) dilation: [i64; 2],
    pub(crate) registers: Registers,
    /// Whether channels are innermost; otherwise pixels are.
    pub(crate) is_last: bool,
}

impl Taps {
    /// Returns whether there is a kernel for these sizes.
    pub(crate) fn is_possible(&self) -> bool {
        const FAR: i64 = 1 << 24;
        let extents = [self.input, self.output, self.window, self.stride, self.dilation];
        let are_near = extents.iter().flatten().all(|extent| (1..FAR).contains(extent));
        let are_zeros = self.pre.iter().all(|pre| (0..FAR).contains(pre));
        let is_counted = |image: [i64; 2]| {
            [self.batch, self.channels, image[0], image[1]]
                .into_iter()
                .try_fold(1_i64, i64::checked_mul)
                .is_some_and(|count| (1..1 << 40).contains(&count))
        };
        let all = [self.input, self.output, self.window].into_iter().all(is_counted);
        // Kernels compare coordinates in 32 bits.
        let reach =
            |axis: usize| (self.output[axis] - 1) * self.stride[axis] + (self.window[axis] - 1) * self.dilation[axis];
        let are_reached = are_near && [0, 1].into_iter().all(|axis| reach(axis) < 1 << 31);
        let has_vectors = !self.is_last || self.channels >= self.registers.lanes;
        self.window[1] <= MOST && are_reached && are_zeros && all && has_vectors
    }

    pub(super) fn name(&self) -> String {
        let [height, width] = self.output;
        let [down, across] = self.window;
        let layout = if self.is_last { "_nhwc" } else { "" };
        format!(
            "depthwise_wgrad_{}x{}x{height}x{width}_{down}x{across}{layout}_f32",
            self.batch, self.channels
        )
    }

    /// Returns the number of elements of x, dy and the filter.
    pub(super) fn elements(&self) -> [i64; 3] {
        let count = |batch: i64, [height, width]: [i64; 2]| batch * self.channels * height * width;
        [
            count(self.batch, self.input),
            count(self.batch, self.output),
            count(1, self.window),
        ]
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        if self.is_last {
            return self.write_channels_last(code);
        }
        let float = Type::float(code.context(), Float::F32);
        let writer = Writer {
            code,
            of: self,
            float,
            vector: float.vector(&[self.registers.lanes]),
            buffers: code.buffers(),
        };
        let (channel, out) = (code.workgroup(), code.buffer(2));
        let [down, across] = self.window;
        code.each([0.into(), down.into(), 1.into()], |row| {
            let sums = writer.row_of_taps(channel, row);
            let first = (channel * down + row) * across;
            for (tap, sum) in (0..).zip(sums) {
                let sum = sum.truncf(float);
                let place = code.index(first + tap);
                code.write(sum, out, place);
            }
        });
        self.channels
    }
}

struct Writer<'k, 'c> {
    code: &'k Code<'c>,
    of: &'k Taps,
    float: Type<'c>,
    vector: Type<'c>,
    /// x and dy.
    buffers: [Ssa<'c>; 2],
}

/// A vector of dy's columns.
struct Lanes<'c> {
    first: Int<'c>,
    /// The lanes that have a column, as a mask.
    mask: Ssa<'c>,
    /// The lanes whose element of x is inside the image, for each tap: one mask for each vector
    /// that is read, in memory order.
    inside: Vec<Vec<Ssa<'c>>>,
}

impl<'c> Writer<'_, 'c> {
    fn constant(&self, text: &str, r#type: Type<'c>) -> Ssa<'c> {
        let value = Attribute::text(&format!("dense<{text}> : {}", r#type));
        self.code.literal(value, r#type)
    }

    fn words(&self) -> Type<'c> {
        Type::integer(self.code.context(), 32).vector(&[self.of.registers.lanes])
    }

    /// Returns a mask of the lanes for which `first + lane · step` is at least 0 and below `end`.
    fn below(&self, first: Int<'c>, step: i64, end: i64) -> Ssa<'c> {
        let (code, words) = (self.code, self.words());
        let numbers: Vec<String> = (0..self.of.registers.lanes)
            .map(|lane| (lane * step).to_string())
            .collect();
        let numbers = self.constant(&format!("[{}]", numbers.join(", ")), words);
        let first = code.word(first).broadcast(words);
        let numbers = first + numbers;
        let end = self.constant(&end.to_string(), words);
        code.compare_integers(IntegerPredicate::Below, numbers, end)
    }

    fn masked(&self, buffer: Ssa<'c>, place: Int<'c>, mask: Ssa<'c>) -> Ssa<'c> {
        let operands = [buffer, self.code.index(place), mask, self.code.zeros(self.vector)];
        self.code.one(Name::VectorMaskedload, &operands, self.vector, &[])
    }

    /// Returns the masks of the vector with this number in a row of dy.
    fn lanes(&self, number: Int<'c>) -> Lanes<'c> {
        let of = self.of;
        let count = of.registers.lanes;
        let first = number * count;
        let mask = self.below(first, 1, of.output[1]);
        let mut inside = Vec::new();
        for tap in 0..of.window[1] {
            let start = self.start(first, tap);
            inside.push(match of.stride[1] {
                1 => vec![self.below(start, 1, of.input[1]) & mask],
                2 => vec![
                    self.below(start, 1, of.input[1]),
                    self.below(start + count, 1, of.input[1]),
                ],
                stride => vec![self.below(start, stride, of.input[1]) & mask],
            });
        }
        Lanes { first, mask, inside }
    }

    /// Returns the index in a row of x of the element under a tap, for a column of dy.
    fn start(&self, column: Int<'c>, tap: i64) -> Int<'c> {
        let of = self.of;
        column * of.stride[1] + (tap * of.dilation[1] - of.pre[1])
    }

    /// Returns the elements of a row of x under a tap.
    fn under(&self, row: Int<'c>, lanes: &Lanes<'c>, (tap, inside): (i64, &[Ssa<'c>])) -> Ssa<'c> {
        let (code, of) = (self.code, self.of);
        let count = of.registers.lanes;
        let place = row + self.start(lanes.first, tap);
        match *inside {
            [first, second] => {
                let first = self.masked(self.buffers[0], place, first);
                let second = self.masked(self.buffers[0], place + count, second);
                let evens: Vec<i64> = (0..count).map(|lane| 2 * lane).collect();
                let elements = code.shuffle([first, second], &evens);
                if of.output[1] % count == 0 {
                    return elements;
                }
                let operands = [lanes.mask, elements, code.zeros(self.vector)];
                code.one(Name::ArithSelect, &operands, self.vector, &[])
            }
            [mask] if of.stride[1] == 1 => self.masked(self.buffers[0], place, mask),
            [mask] => {
                let places: Vec<String> = (0..count).map(|lane| (lane * of.stride[1]).to_string()).collect();
                let places = self.constant(&format!("[{}]", places.join(", ")), self.words());
                let operands = [
                    self.buffers[0],
                    code.index(place),
                    places,
                    mask,
                    code.zeros(self.vector),
                ];
                code.one(Name::VectorGather, &operands, self.vector, &[])
            }
            _ => unreachable!("a tap without lanes"),
        }
    }

    /// Returns the sums of a row of taps, in f64.
    fn row_of_taps(&self, channel: Int<'c>, row: Int<'c>) -> Vec<Ssa<'c>> {
        let (code, of) = (self.code, self.of);
        let wide = Type::float(code.context(), Float::F64);
        let taps = of.window[1];
        let none = (0..taps).map(|_| code.float_text("0.0", wide)).collect::<Vec<_>>();
        let zeros = (0..taps).map(|_| code.zeros(self.vector)).collect::<Vec<_>>();
        // Reassociation is allowed; otherwise the lanes would be added one after the other.
        let added = [
            ("kind", Attribute::text("#vector.kind<add>")),
            ("fastmath", Attribute::text("#arith.fastmath<reassoc>")),
        ];
        // The rows of dy for which the row of x under this row of taps is inside the image.
        let moved = of.pre[0] - row * of.dilation[0];
        let first = (moved + (of.stride[0] - 1)).max(0) / of.stride[0];
        let first = first.min(of.output[0]);
        let end = moved + (of.input[0] - 1 + of.stride[0]);
        let end = end.max(0) / of.stride[0];
        let end = end.min(of.output[0]).max(first);
        let vectors = (of.output[1] + of.registers.lanes - 1) / of.registers.lanes;
        code.repeat([0.into(), vectors.into(), 1.into()], &none, |number, totals| {
            let lanes = self.lanes(number);
            code.repeat([0.into(), of.batch.into(), 1.into()], totals, |image, totals| {
                let plane = image * of.channels + channel;
                let of_x = plane * (of.input[0] * of.input[1]);
                let of_dy = plane * (of.output[0] * of.output[1]);
                let dy = |row: Int<'c>| {
                    let place = of_dy + row * of.output[1] + lanes.first;
                    self.masked(self.buffers[1], place, lanes.mask)
                };
                // Outside, dy is multiplied by zeros.
                let outside = |[first, end]: [Int<'c>; 2], sums: &[Ssa<'c>]| {
                    code.repeat([first, end, 1.into()], sums, |row, sums| {
                        let dy = dy(row);
                        let zero = code.zeros(self.vector);
                        let next = |&sum: &Ssa<'c>| dy.vector_fma(zero, sum);
                        sums.iter().map(next).collect()
                    })
                };
                let sums = outside([0.into(), first], &zeros);
                let sums = code.repeat([first, end, 1.into()], &sums, |row, sums| {
                    let dy = dy(row);
                    let of_row = row * of.stride[0] - moved;
                    let of_row = of_x + of_row * of.input[1];
                    let mut next = Vec::new();
                    for ((tap, inside), &sum) in (0..).zip(&lanes.inside).zip(sums) {
                        let x = self.under(of_row, &lanes, (tap, inside));
                        next.push(dy.vector_fma(x, sum));
                    }
                    next
                });
                let sums = outside([end, of.output[0].into()], &sums);
                let pairs = totals.iter().zip(sums);
                pairs
                    .map(|(&total, sum)| {
                        let sum = code.one(Name::VectorReduction, &[sum], self.float, &added);
                        total + sum.extf(wide)
                    })
                    .collect()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    /// Coordinates are compared in 32 bits: a padded row must not be longer.
    #[test]
    fn windows_stay_within_32_bits() {
        let registers = Target::parse("x86-64-v4").and_then(|target| target.registers());
        let taps = |output, stride| Taps {
            batch: 1,
            channels: 2,
            input: [3, 10],
            output: [3, output],
            window: [3, 3],
            pre: [1, 1],
            stride: [1, stride],
            dilation: [1, 1],
            registers: registers.expect("there are registers"),
            is_last: false,
        };
        assert!(taps(10, 1).is_possible());
        assert!(taps(2048, 1 << 20).is_possible());
        assert!(!taps(65_537, 1 << 20).is_possible());
    }
}
