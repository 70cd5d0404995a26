//! The gradient with respect to a depthwise filter on CPUs. This file has the kernel for pixels
//! innermost: products of neighbouring pixels are summed in the lanes of a vector.
//!
//! ```text
//! for each channel:
//!     for each image, each vector of a row of dy and each row of taps:
//!         for each row of dy:
//!             sums[tap] += dy · (x moved by the tap)
//! ```
//!
//! A channel of an image stays in the cache for all of its vectors and rows of taps. Elements
//! outside the image are masked to zero. Sums over the rows of an image are in f32; these are added
//! in f64.

use super::code::{Code, Int, Ssa};
use super::panels::Registers;
use crate::counts::ceil_div;
use crate::ir::IntegerPredicate;
use crate::mlir::{Attribute, Float, Type};

/// Maximum number of taps per row of the filter: each has a register.
const MOST: i64 = 16;
/// Maximum bytes of the totals on the stack; IREE allows 32 KiB in all.
const STACK: i64 = 31 << 10;

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
        let totals = || self.window[0] * self.window[1] * self.registers.lanes * 8;
        self.window[1] <= MOST && are_reached && are_zeros && all && has_vectors && (self.is_last || totals() <= STACK)
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
        let [down, across] = self.window;
        let lanes = self.registers.lanes;
        let float = Type::float(code.context(), Float::F32);
        let wide = Type::float(code.context(), Float::F64);
        let writer = Writer {
            code,
            of: self,
            vector: float.vector(&[lanes]),
            buffers: code.buffers(),
        };
        let (channel, out) = (code.workgroup(), code.buffer(2));
        let totals = code.stack(down * across * lanes, wide);
        let vector = wide.vector(&[lanes]);
        let taps = [0.into(), (down * across).into(), 1.into()];
        code.each(taps, |tap| code.write_vector(code.zeros(vector), totals, tap * lanes));
        code.each([0.into(), self.batch.into(), 1.into()], |image| {
            let plane = image * self.channels + channel;
            let [first, end] = self.whole_planes();
            if first == end {
                return writer.plane(plane, Loads::Masked, totals);
            }
            // An unsigned comparison: planes before the first one are above the number too.
            let is_whole = (plane - first).is_below(end - first);
            let is_partial = Int::Known(end - first - 1).is_below(plane - first);
            code.when(is_whole, || writer.plane(plane, Loads::Whole, totals));
            code.when(is_partial, || writer.plane(plane, Loads::Masked, totals));
        });
        code.each(taps, |tap| {
            let sum = code.sum_of_lanes(code.read_vector(totals, tap * lanes, vector));
            let place = channel * (down * across) + tap;
            code.write(sum.truncf(float), out, place);
        });
        self.channels
    }

    /// Returns the range of planes (images' channels) of x and dy in which every vector may be
    /// loaded whole: its lanes outside a row are elements of neighbouring rows and planes. It is
    /// empty where masked loads cost no more (AVX-512), and where vectors are gathered.
    fn whole_planes(&self) -> [i64; 2] {
        let lanes = self.registers.lanes;
        if lanes >= 16 || self.stride[1] > 2 {
            return [0, 0];
        }
        let planes = self.batch * self.channels;
        let plane = |[height, width]: [i64; 2]| height * width;
        let columns = ceil_div(self.output[1], lanes) * lanes;
        let last_row = |[height, width]: [i64; 2]| (height - 1) * width;
        // The elements from a plane's first to its last loaded one.
        let of_x = last_row(self.input) + columns * self.stride[1] + (self.window[1] - 1) * self.dilation[1];
        let of_dy = last_row(self.output) + columns;
        let missing = |span: i64, plane: i64| ceil_div((span - plane).max(0), plane);
        let first = ceil_div(self.pre[1], plane(self.input));
        let after = missing(of_x, plane(self.input)).max(missing(of_dy, plane(self.output)));
        let end = planes - after;
        if first < end { [first, end] } else { [0, 0] }
    }
}

/// How vectors of a plane are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// By masked loads, which access no element outside the image.
    Masked,
    /// Whole, and masked afterwards. Without AVX-512, masked loads take several times as long on
    /// some CPUs.
    Whole,
}

struct Writer<'k, 'c> {
    code: &'k Code<'c>,
    of: &'k Taps,
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
        let numbers = code.multiples(step, self.of.registers.lanes);
        let first = code.word(first).broadcast(words);
        let numbers = first + numbers;
        let end = self.constant(&end.to_string(), words);
        code.compare_integers(IntegerPredicate::Below, numbers, end)
    }

    fn masked(&self, loads: Loads, buffer: Ssa<'c>, place: Int<'c>, mask: Ssa<'c>) -> Ssa<'c> {
        let code = self.code;
        match loads {
            Loads::Masked => code.read_masked(buffer, place, Some(mask), self.vector),
            Loads::Whole => {
                let zeros = code.zeros(self.vector);
                mask.select(code.read_vector(buffer, place, self.vector), zeros)
            }
        }
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
    fn under(&self, loads: Loads, row: Int<'c>, lanes: &Lanes<'c>, (tap, inside): (i64, &[Ssa<'c>])) -> Ssa<'c> {
        let (code, of) = (self.code, self.of);
        let count = of.registers.lanes;
        let place = row + self.start(lanes.first, tap);
        match *inside {
            [first, second] => {
                let first = self.masked(loads, self.buffers[0], place, first);
                let second = self.masked(loads, self.buffers[0], place + count, second);
                let evens: Vec<i64> = (0..count).map(|lane| 2 * lane).collect();
                let elements = code.shuffle([first, second], &evens);
                if of.output[1] % count == 0 {
                    return elements;
                }
                lanes.mask.select(elements, code.zeros(self.vector))
            }
            [mask] if of.stride[1] == 1 => self.masked(loads, self.buffers[0], place, mask),
            [mask] => {
                let lanes = [code.multiples(of.stride[1], count), mask];
                code.gather(self.buffers[0], place, lanes, self.vector)
            }
            _ => unreachable!("a tap without lanes"),
        }
    }

    /// Adds the products of a plane of dy to the totals of all taps.
    fn plane(&self, plane: Int<'c>, loads: Loads, totals: Ssa<'c>) {
        let (code, of) = (self.code, self.of);
        let [down, across] = of.window;
        let count = of.registers.lanes;
        let wide = Type::float(code.context(), Float::F64).vector(&[count]);
        let vectors = ceil_div(of.output[1], count);
        code.each([0.into(), vectors.into(), 1.into()], |number| {
            let lanes = self.lanes(number);
            code.each([0.into(), down.into(), 1.into()], |row| {
                for (tap, sum) in (0..).zip(self.row_of_taps(plane, loads, &lanes, row)) {
                    let place = (row * across + tap) * count;
                    let total = code.read_vector(totals, place, wide);
                    code.write_vector(total + sum.extf(wide), totals, place);
                }
            });
        });
    }

    /// Returns the sums of a row of taps over the rows of a plane of dy, for a vector of columns.
    fn row_of_taps(&self, plane: Int<'c>, loads: Loads, lanes: &Lanes<'c>, row: Int<'c>) -> Vec<Ssa<'c>> {
        let (code, of) = (self.code, self.of);
        let zeros = (0..of.window[1]).map(|_| code.zeros(self.vector)).collect::<Vec<_>>();
        // The rows of dy for which the row of x under this row of taps is inside the image.
        let moved = of.pre[0] - row * of.dilation[0];
        let first = (moved + (of.stride[0] - 1)).max(0) / of.stride[0];
        let first = first.min(of.output[0]);
        let end = moved + (of.input[0] - 1 + of.stride[0]);
        let end = end.max(0) / of.stride[0];
        let end = end.min(of.output[0]).max(first);
        let of_x = plane * (of.input[0] * of.input[1]);
        let of_dy = plane * (of.output[0] * of.output[1]);
        let dy = |row: Int<'c>| {
            let place = of_dy + row * of.output[1] + lanes.first;
            self.masked(loads, self.buffers[1], place, lanes.mask)
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
                let x = self.under(loads, of_row, lanes, (tap, inside));
                next.push(dy.vector_fma(x, sum));
            }
            next
        });
        outside([end, of.output[0].into()], &sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    /// Coordinates are compared in 32 bits: a padded row must not be longer.
    #[test]
    fn windows_and_totals_have_limits() {
        let registers = Target::parse("x86-64-v4").and_then(|target| target.registers());
        let taps = |output, stride, down| Taps {
            batch: 1,
            channels: 2,
            input: [3, 10],
            output: [3, output],
            window: [down, 3],
            pre: [1, 1],
            stride: [1, stride],
            dilation: [1, 1],
            registers: registers.expect("there are registers"),
            is_last: false,
        };
        assert!(taps(10, 1, 3).is_possible());
        assert!(taps(2048, 1 << 20, 3).is_possible());
        assert!(!taps(65_537, 1 << 20, 3).is_possible());
        // The totals of all taps are on the stack.
        assert!(taps(10, 1, 80).is_possible());
        assert!(!taps(10, 1, 90).is_possible());
        assert!(!taps(10, 1, 1 << 23).is_possible());
    }
}
