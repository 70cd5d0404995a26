//! The gradient with respect to a depthwise filter on CPUs, channels innermost: the products of a
//! channel are summed over the pixels, with a lane for each channel.
//!
//! ```text
//! for each span of channels and each group of rows of taps:
//!     for each image, each band of rows of dy and each block of channels of the span:
//!         for each row of the band and each pixel of the row:
//!             sums[tap] += dy · (x moved by the tap)
//! ```
//!
//! A span has whole lines of the cache, and a band of it stays in the cache for all of its blocks:
//! so each line comes from memory once. Outside the image, dy is multiplied by zero. Sums within a
//! band are in f32; the bands' sums are added in f64.

use super::code::{Code, Int, Ssa};
use super::taps::Taps;
use crate::counts::ceil_div;
use crate::mlir::{Float, Type};

/// Channels of a span, if there are enough: a line of the cache.
const SPAN: i64 = 16;
/// Pixels of a band: an f32 sum has at most this number of terms, or those of a row if it is
/// longer.
const BAND: i64 = 256;
/// Registers for an element of dy, an element of x, and addresses.
const OTHERS: i64 = 4;

/// The part of the filter whose sums are in registers at the same time.
#[derive(Clone, Copy)]
struct Block {
    /// Rows of taps: all of the filter, or one.
    rows: i64,
    /// Vectors of channels.
    vectors: i64,
}

impl Block {
    fn of(taps: &Taps) -> Self {
        let fits = |block: &Self| {
            let sums = block.rows * taps.window[1] * block.vectors;
            sums + OTHERS <= taps.registers.count && block.vectors * taps.registers.lanes <= taps.channels
        };
        let blocks = [(taps.window[0], 2), (taps.window[0], 1), (1, 2)];
        let blocks = blocks.map(|(rows, vectors)| Block { rows, vectors });
        blocks.into_iter().find(fits).unwrap_or(Block { rows: 1, vectors: 1 })
    }
}

/// Pixels of a row of dy for which the same taps are inside the image.
struct Segment {
    first: i64,
    end: i64,
    is_inside: Vec<bool>,
}

impl Taps {
    /// Writes the body, and returns the number of workgroups. The buffers are x, dy and the filter.
    pub(super) fn write_channels_last<'c>(&self, code: &Code<'c>) -> i64 {
        let float = Type::float(code.context(), Float::F32);
        let block = Block::of(self);
        let channels = block.vectors * self.registers.lanes;
        let writer = Writer {
            code,
            of: self,
            block,
            vector: float.vector(&[self.registers.lanes]),
            buffers: code.buffers(),
            segments: self.segments(),
        };
        let groups = self.window[0] / block.rows;
        // The last workgroup also takes the remaining channels, so that no two workgroups write the
        // same channel.
        let span = (SPAN.min(self.channels) / channels).max(1) * channels;
        let spans = self.channels / span;
        let number = code.workgroup();
        let (group, own) = (number % groups, number / groups);
        let first = own * span;
        let end = own.is_below(spans - 1).select(first + span, self.channels);
        // The remaining channels are fewer than a span.
        let blocks = ceil_div(self.channels - (spans - 1) * span, channels);
        writer.span([first, end], blocks, group * block.rows);
        spans * groups
    }

    /// Returns the pixels of a row of dy, split where a tap enters or leaves the image.
    fn segments(&self) -> Vec<Segment> {
        let ceil = |number: i64| (number + self.stride[1] - 1).div_euclid(self.stride[1]);
        let inside: Vec<[i64; 2]> = (0..self.window[1])
            .map(|tap| {
                let moved = self.pre[1] - tap * self.dilation[1];
                let ends = [ceil(moved), ceil(moved + self.input[1])];
                ends.map(|pixel| pixel.clamp(0, self.output[1]))
            })
            .collect();
        let mut ends: Vec<i64> = inside.iter().flatten().copied().chain([0, self.output[1]]).collect();
        ends.sort_unstable();
        ends.dedup();
        let segment = |ends: &[i64]| Segment {
            first: ends[0],
            end: ends[1],
            is_inside: inside
                .iter()
                .map(|[first, end]| *first <= ends[0] && ends[1] <= *end)
                .collect(),
        };
        ends.windows(2).map(segment).collect()
    }
}

struct Writer<'k, 'c> {
    code: &'k Code<'c>,
    of: &'k Taps,
    block: Block,
    vector: Type<'c>,
    /// x, dy and the filter.
    buffers: [Ssa<'c>; 3],
    segments: Vec<Segment>,
}

impl<'c> Writer<'_, 'c> {
    /// Computes the sums of at most this number of blocks of channels, for the rows of taps from
    /// `row` on.
    fn span(&self, [first, end]: [Int<'c>; 2], blocks: i64, row: Int<'c>) {
        let (code, of) = (self.code, self.of);
        let lanes = of.registers.lanes;
        let channels = self.block.vectors * lanes;
        let sums = self.block.rows * of.window[1] * self.block.vectors;
        let wide = Type::float(code.context(), Float::F64);
        let vector = wide.vector(&[lanes]);
        let totals = code.stack(blocks * sums * lanes, wide);
        code.each([0.into(), (blocks * sums).into(), 1.into()], |number| {
            code.write_vector(code.zeros(vector), totals, number * lanes);
        });
        // The last block begins earlier if there are no more channels, and repeats some of them.
        let each_block = |body: &dyn Fn(Int<'c>, Int<'c>)| {
            code.each([first, end, channels.into()], |channel| {
                let own = (channel - first) / channels * (sums * lanes);
                body(channel.min(of.channels - channels), own);
            });
        };
        let rows = (BAND / of.output[1]).clamp(1, of.output[0]);
        code.each([0.into(), of.batch.into(), 1.into()], |image| {
            code.each([0.into(), of.output[0].into(), rows.into()], |line| {
                let band = [line, (line + rows).min(of.output[0])];
                each_block(&|channel, own| {
                    for (number, sum) in (0..).zip(self.band(image, band, channel, row)) {
                        let place = own + number * lanes;
                        let total = code.read_vector(totals, place, vector);
                        code.write_vector(total + sum.extf(vector), totals, place);
                    }
                });
            });
        });
        // The filter has its taps innermost.
        let taps = of.window[0] * of.window[1];
        each_block(&|channel, own| {
            code.each([0.into(), lanes.into(), 1.into()], |lane| {
                for number in 0..sums {
                    let (tap, within) = (number / self.block.vectors, number % self.block.vectors);
                    let total = code.read(totals, own + lane + number * lanes);
                    let place = (channel + within * lanes + lane) * taps + row * of.window[1] + tap;
                    code.write(
                        total.truncf(Type::float(code.context(), Float::F32)),
                        self.buffers[2],
                        place,
                    );
                }
            });
        });
    }

    /// Returns the sums of a band of an image's rows of dy: for each row of taps, each tap and each
    /// vector of channels.
    fn band(&self, image: Int<'c>, [first, end]: [Int<'c>; 2], channel: Int<'c>, row: Int<'c>) -> Vec<Ssa<'c>> {
        let (code, of) = (self.code, self.of);
        let per_row = of.window[1] * self.block.vectors;
        let zeros = (0..self.block.rows * per_row).map(|_| code.zeros(self.vector));
        let zeros: Vec<_> = zeros.collect();
        let per_row = usize::try_from(per_row).expect("a filter without taps");
        code.repeat([first, end, 1.into()], &zeros, |line, sums| {
            let of_dy = (image * of.output[0] + line) * of.output[1];
            let mut next = Vec::new();
            for (number, sums) in (0..).zip(sums.chunks(per_row)) {
                let height = line * of.stride[0] + (row + number) * of.dilation[0] - of.pre[0];
                let of_x = (image * of.input[0] + height) * of.input[1];
                let is_inside = height.is_below(of.input[0]);
                let is_outside = Int::Known(of.input[0] - 1).is_below(height);
                let sums = code.replaced(is_inside, sums, || self.row(of_dy, Some(of_x), channel, sums));
                next.extend(code.replaced(is_outside, &sums, || self.row(of_dy, None, channel, &sums)));
            }
            next
        })
    }

    /// Returns the sums of a row of taps with the products of a row of dy added. `of_dy`: the index
    /// of the first pixel of the row of dy; `of_x`: the index of the first pixel of the row of x
    /// under the taps, if that row is inside the image.
    fn row(&self, of_dy: Int<'c>, of_x: Option<Int<'c>>, channel: Int<'c>, sums: &[Ssa<'c>]) -> Vec<Ssa<'c>> {
        let (code, of) = (self.code, self.of);
        let read = |buffer: Ssa<'c>, pixel: Int<'c>, number: i64| {
            let place = pixel * of.channels + channel + number * of.registers.lanes;
            code.read_vector(buffer, place, self.vector)
        };
        let [x, dy, _] = self.buffers;
        let outside = Segment {
            first: 0,
            end: of.output[1],
            is_inside: vec![false; self.segments[0].is_inside.len()],
        };
        let segments = match of_x {
            Some(_) => self.segments.as_slice(),
            None => std::slice::from_ref(&outside),
        };
        segments.iter().fold(sums.to_vec(), |sums, segment| {
            let bounds = [segment.first.into(), segment.end.into(), 1.into()];
            code.repeat(bounds, &sums, |pixel, sums| {
                let gradients: Vec<_> = (0..self.block.vectors)
                    .map(|number| read(dy, of_dy + pixel, number))
                    .collect();
                let mut next = Vec::new();
                let mut sums = sums.iter();
                for (tap, is_inside) in (0..).zip(&segment.is_inside) {
                    for ((number, gradient), &sum) in (0..).zip(&gradients).zip(&mut sums) {
                        let moved = pixel * of.stride[1] + (tap * of.dilation[1] - of.pre[1]);
                        let element = match of_x {
                            Some(of_x) if *is_inside => read(x, of_x + moved, number),
                            _ => code.zeros(self.vector),
                        };
                        next.push(gradient.vector_fma(element, sum));
                    }
                }
                next
            })
        })
    }
}
