//! Max pooling on CPUs of images in f32, in vectors along the innermost axis, pixels or channels.
//!
//! An element outside the image is replaced by the nearest one inside, which the window contains
//! too. So each window is a chain of comparisons in the order of its elements, `v > m ? v : m`,
//! each of which is one instruction. The result is NaN only if the first element of a window is
//! NaN, as no comparison with NaN is true.

use super::code::{Code, Int, Ssa};
use super::panels::Registers;
use crate::counts::ceil_div;
use crate::ir::FloatPredicate;
use crate::mlir::{Float, Type};

/// Maximum number of elements of a window: each is an instruction.
const MOST: i64 = 64;
/// Results that make a workgroup worth its cost, and the number of workgroups that is enough for
/// the cores of a CPU.
const RESULTS: i64 = 2048;
const ENOUGH: i64 = 32;

/// Max pooling over two axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// The number of images and of channels.
    pub(crate) batch: [i64; 2],
    /// Extents of both axes of the image, of the result and of a window; padding before the image;
    /// and strides of the windows.
    pub(crate) input: [i64; 2],
    pub(crate) output: [i64; 2],
    pub(crate) window: [i64; 2],
    pub(crate) pre: [i64; 2],
    pub(crate) stride: [i64; 2],
    /// Whether channels are innermost; otherwise pixels are.
    pub(crate) is_last: bool,
    pub(crate) registers: Registers,
}

impl Pool {
    /// Returns whether there is a kernel for these sizes.
    pub(crate) fn is_possible(&self) -> bool {
        const FAR: i64 = 1 << 30;
        let taps = self.window[0].saturating_mul(self.window[1]);
        let extents = [self.batch, self.input, self.output, self.window, self.stride];
        let are_there = extents.iter().flatten().all(|extent| (1..FAR).contains(extent));
        let are_zeros = self.pre.iter().all(|pre| (0..FAR).contains(pre));
        // The offsets of a vector's elements are literals of 32 bits.
        let is_gathered = self.stride[1] < FAR / self.registers.lanes;
        let product = |image: [i64; 2]| {
            [self.batch[0], self.batch[1], image[0], image[1]]
                .into_iter()
                .try_fold(1_i64, i64::checked_mul)
                .is_some_and(|count| count < 1 << 40)
        };
        taps <= MOST && are_there && is_gathered && are_zeros && product(self.input) && product(self.output)
    }

    pub(super) fn name(&self) -> String {
        let [images, channels] = self.batch;
        let [height, width] = self.output;
        format!(
            "maxpool_{images}x{channels}x{height}x{width}_{}x{}_f32",
            self.window[0], self.window[1]
        )
    }

    /// Returns the number of planes per workgroup if pixels are innermost: several if they are
    /// small, since a workgroup costs tens of nanoseconds.
    fn planes(&self) -> i64 {
        let most = (self.batch[0] * self.batch[1] / ENOUGH).max(1);
        (RESULTS / (self.output[0] * self.output[1])).clamp(1, most)
    }

    /// Returns whether a row of results is one vector, and a row of an image at most two, so that
    /// constant shuffles select the elements of all windows of a row.
    fn has_narrow_rows(&self) -> bool {
        self.output[1] <= self.registers.lanes && self.input[1] <= 2 * self.registers.lanes
    }

    /// Returns the number of elements of the images and of the result.
    pub(super) fn elements(&self) -> [i64; 2] {
        let all = self.batch[0] * self.batch[1];
        [self.input, self.output].map(|[height, width]| all * height * width)
    }

    /// Writes the body, and returns the number of workgroups.
    pub(super) fn write<'c>(&self, code: &Code<'c>) -> i64 {
        let float = Type::float(code.context(), Float::F32);
        let writer = Writer {
            code,
            of: self,
            vector: float.vector(&[self.registers.lanes]),
            x: code.buffer(0),
            y: code.buffer(1),
        };
        let workgroup = code.workgroup();
        if self.is_last {
            writer.row_of_pixels(workgroup);
            self.batch[0] * self.output[0]
        } else {
            let (planes, each) = (self.batch[0] * self.batch[1], self.planes());
            let first = workgroup * each;
            let end = (first + each).min(planes);
            code.each([first, end, 1.into()], |plane| writer.plane(plane));
            ceil_div(planes, each)
        }
    }
}

struct Writer<'k, 'c> {
    code: &'k Code<'c>,
    of: &'k Pool,
    vector: Type<'c>,
    x: Ssa<'c>,
    y: Ssa<'c>,
}

impl<'c> Writer<'_, 'c> {
    /// Returns the indices of a window's elements along an axis: for elements outside, the nearest
    /// index inside.
    fn taps(&self, axis: usize, place: Int<'c>) -> Vec<Int<'c>> {
        let of = self.of;
        let first = place * of.stride[axis] - of.pre[axis];
        let tap = |tap: i64| (first + tap).max(0).min(of.input[axis] - 1);
        (0..of.window[axis]).map(tap).collect()
    }

    /// Returns the greatest of the values, compared in their order.
    fn greatest(&self, values: impl IntoIterator<Item = Ssa<'c>>) -> Ssa<'c> {
        let greater = |so_far, value| {
            let is_greater = self.code.compare_floats(FloatPredicate::Greater, value, so_far);
            is_greater.select(value, so_far)
        };
        let greatest = values.into_iter().reduce(greater);
        greatest.expect("a window without elements")
    }

    /// Returns a mask of the first `count` lanes; `None` if these are all.
    fn mask(&self, count: i64) -> Option<Ssa<'c>> {
        let lanes = self.of.registers.lanes;
        (count < lanes).then(|| self.code.first_lanes(count, lanes))
    }

    /// Loads `count` elements from `place` on; at most one vector.
    fn load(&self, place: Int<'c>, count: i64) -> Ssa<'c> {
        self.code.read_masked(self.x, place, self.mask(count), self.vector)
    }

    fn store(&self, value: Ssa<'c>, place: Int<'c>, count: i64) {
        self.code.write_masked(value, self.y, place, self.mask(count))
    }

    /// Loads `count` elements whose distance is the windows' stride along the innermost axis; at
    /// most one vector.
    fn apart(&self, place: Int<'c>, count: i64) -> Ssa<'c> {
        let (code, lanes, stride) = (self.code, self.of.registers.lanes, self.of.stride[1]);
        match stride {
            1 => self.load(place, count),
            2 => {
                // The second vector ends at the last element that is needed.
                let reached = 2 * (count - 1) + 1;
                let first = self.load(place, reached);
                if reached <= lanes {
                    let evens: Vec<i64> = (0..lanes).map(|lane| (2 * lane).min(lanes - 1)).collect();
                    return code.shuffle([first, first], &evens);
                }
                let second = self.load(place + (lanes - 1), reached - lanes + 1);
                let evens: Vec<i64> = (0..lanes)
                    .map(|lane| if 2 * lane < lanes { 2 * lane } else { 2 * lane + 1 })
                    .collect();
                code.shuffle([first, second], &evens)
            }
            _ => {
                let lanes = [code.multiples(stride, lanes), code.first_lanes(count, lanes)];
                code.gather(self.x, place, lanes, self.vector)
            }
        }
    }

    /// Computes one image of one channel, pixels innermost.
    fn plane(&self, plane: Int<'c>) {
        let (code, of) = (self.code, self.of);
        let lanes = of.registers.lanes;
        // The windows that are inside the image along the innermost axis.
        let first = ceil_div(of.pre[1], of.stride[1]).min(of.output[1]);
        let end = (of.input[1] + of.pre[1] - of.window[1]).div_euclid(of.stride[1]) + 1;
        let end = end.clamp(first, of.output[1]);
        let from = plane * (of.input[0] * of.input[1]);
        let to = plane * (of.output[0] * of.output[1]);
        code.each([0.into(), of.output[0].into(), 1.into()], |row| {
            let rows = self.taps(0, row);
            let rows: Vec<_> = rows.into_iter().map(|row| from + row * of.input[1]).collect();
            let to = to + row * of.output[1];
            if of.has_narrow_rows() {
                self.narrow_row(&rows, to);
                return;
            }
            for edge in [[0, first], [end, of.output[1]]] {
                if edge[0] == edge[1] {
                    continue;
                }
                code.each([edge[0].into(), edge[1].into(), 1.into()], |column| {
                    let columns = self.taps(1, column);
                    let places = rows
                        .iter()
                        .flat_map(|&row| columns.iter().map(move |&column| (row, column)));
                    let greatest = self.greatest(places.map(|(row, column)| code.read(self.x, row + column)));
                    code.write(greatest, self.y, to + column);
                });
            }
            let inside = |column: Int<'c>, count: i64| {
                let start = column * of.stride[1] - of.pre[1];
                let places = rows
                    .iter()
                    .flat_map(|&row| (0..of.window[1]).map(move |tap| (row, tap)));
                let greatest = self.greatest(places.map(|(row, tap)| {
                    let place = row + start + tap;
                    self.apart(place, count)
                }));
                self.store(greatest, to + column, count)
            };
            let whole = first + (end - first) / lanes * lanes;
            code.each([first.into(), whole.into(), lanes.into()], |column| {
                inside(column, lanes);
            });
            if whole < end {
                inside(whole.into(), end - whole);
            }
        });
    }

    /// Computes one row of results of a plane with narrow rows. `rows`: the offsets of the image's
    /// rows under the windows; `to`: the offset of the results.
    fn narrow_row(&self, rows: &[Int<'c>], to: Int<'c>) {
        let (code, of) = (self.code, self.of);
        let (lanes, width) = (of.registers.lanes, of.input[1]);
        let mut values = Vec::new();
        for &row in rows {
            let first = self.load(row, width);
            let second = match width - lanes {
                ..=0 => first,
                rest => self.load(row + lanes, rest),
            };
            for tap in 0..of.window[1] {
                let nearest = |lane: i64| (lane * of.stride[1] - of.pre[1] + tap).clamp(0, width - 1);
                let selected: Vec<i64> = (0..lanes).map(nearest).collect();
                values.push(code.shuffle([first, second], &selected));
            }
        }
        self.store(self.greatest(values), to, of.output[1]);
    }

    /// Computes one row of results of an image, channels innermost.
    fn row_of_pixels(&self, number: Int<'c>) {
        let (code, of) = (self.code, self.of);
        let (lanes, channels) = (of.registers.lanes, of.batch[1]);
        let (image, row) = (number / of.output[0], number % of.output[0]);
        let rows: Vec<_> = self
            .taps(0, row)
            .into_iter()
            .map(|row| {
                let row = image * of.input[0] + row;
                row * (of.input[1] * channels)
            })
            .collect();
        let to = number * (of.output[1] * channels);
        code.each([0.into(), of.output[1].into(), 1.into()], |column| {
            let columns = self.taps(1, column).into_iter();
            let columns = columns.map(|column| column * channels).collect::<Vec<_>>();
            let to = to + column * channels;
            let places = rows
                .iter()
                .flat_map(|&row| columns.iter().map(move |&column| (row, column)));
            let places: Vec<_> = places.map(|(row, column)| row + column).collect();
            let some = |channel: Int<'c>, count: i64| {
                let loaded = places.iter().map(|&place| self.load(place + channel, count));
                self.store(self.greatest(loaded), to + channel, count)
            };
            let whole = channels / lanes * lanes;
            code.each([0.into(), whole.into(), lanes.into()], |channel| {
                some(channel, lanes);
            });
            if whole < channels {
                some(whole.into(), channels - whole);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    /// Offsets of a vector's elements are literals of 32 bits, even if only one element is read.
    #[test]
    fn offsets_stay_within_32_bits() {
        let registers = Target::parse("x86-64-v4").and_then(|target| target.registers());
        let pool = |stride| Pool {
            batch: [1, 2],
            input: [3, 40],
            output: [1, 1],
            window: [3, 3],
            pre: [0, 0],
            stride: [1, stride],
            is_last: false,
            registers: registers.expect("there are registers"),
        };
        assert!(pool(3).is_possible());
        assert!(!pool(1 << 29).is_possible());
    }
}
