//! Owns the loop of a workgroup over a sum, step by step: from memory to registers, to LDS, to
//! matrix instructions.
//!
//! With one buffer in LDS one step is being loaded from memory while the step before it is
//! multiplied. With two buffers, two steps are being loaded:
//!
//! ```text
//! copy step 0 to buffer 0; begin to copy the steps 1 and 2 to registers
//! for each further pair of steps:
//!     multiply buffer 0; put the odd step into buffer 1; begin to copy the next odd step
//!     multiply buffer 1; put the even step into buffer 0; begin to copy the next even step
//! multiply what is left
//! ```
//!
//! Odd and even steps have separate registers. A loop over single steps would have to move values
//! that are still being loaded from one set of registers to another, and so would wait for the
//! loads.

use super::{Kernel, element};
use crate::counts::{ceil_div, unsigned};
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::RUN;
use crate::kernel::problem::bytes;
use crate::kernel::reader::{Reader, swizzled, terms};
use crate::mlir::{Float, Name, Type};
use rotini_schedule::gemm::INTRINSIC;

/// The data that all steps have in common.
struct Steps<'a, 'c> {
    kernel: &'a Kernel<'a, 'c>,
    readers: [&'a Reader<'c>; 2],
    /// The offsets in LDS at which a lane reads its terms, for each side, for each half of a step,
    /// and for each matrix instruction.
    places: [[Vec<Int<'c>>; 2]; 2],
    /// The end of the sum, if a step can go beyond it.
    end: Option<Int<'c>>,
}

/// The steps of a workgroup's split-K part.
struct Share<'c> {
    /// The first term.
    first: Int<'c>,
    /// The end of the terms.
    last: Int<'c>,
    /// Terms per step.
    step: i64,
    /// The number of steps; the maximum number if `is_counted`.
    count: i64,
    /// Whether the number of terms is known only at run time. Terms beyond it are zero.
    is_counted: bool,
}

impl<'c> Kernel<'_, 'c> {
    /// Computes the sums of the workgroup's tile over its split-K part.
    pub(super) fn sums(&self, readers: [&Reader<'c>; 2], (part, count): (Int<'c>, Option<Int<'c>>)) -> Vec<Ssa<'c>> {
        let bytes = bytes(readers[0].factor.dtype);
        let step = terms(bytes);
        let all: i64 = self.axes.sum.iter().product();
        let parts = self.schedule.parts.cast_signed();
        let steps = ceil_div(all, step);
        let each = ceil_div(steps, parts);
        let first = part * (each * step);
        let mut last = first + each * step;
        if let Some(count) = count {
            last = last.is_below(count).select(last, count);
        }
        let share = Share {
            first,
            last,
            step,
            count: each,
            is_counted: count.is_some(),
        };
        let steps = Steps {
            kernel: self,
            readers,
            places: [self.places(0, bytes), self.places(1, bytes)],
            end: count.or((all % step != 0 || steps % parts != 0).then_some(Int::Known(all))),
        };
        if self.schedule.buffers == 1 || each == 1 {
            steps.one_by_one(&share)
        } else {
            steps.in_pairs(&share)
        }
    }

    /// Returns the offsets in LDS at which a lane reads its terms of a side: for each half of a
    /// step, for each matrix instruction.
    fn places(&self, side: usize, bytes: i64) -> [Vec<Int<'c>>; 2] {
        let sixteen = INTRINSIC.cast_signed();
        let (own, quarter) = (self.lane % sixteen, self.lane / sixteen);
        let first = self.first(side) + own;
        let count = self.instructions()[side];
        let half = |half: i64| {
            let chunk = quarter + 4 * half;
            let rows = (0..count).map(|index| swizzled(first + index * sixteen, chunk, bytes));
            rows.collect::<Vec<_>>()
        };
        [half(0), half(1)]
    }
}

impl<'c> Steps<'_, 'c> {
    fn code(&self) -> &Code<'c> {
        self.kernel.code
    }

    /// Computes the sums with one buffer.
    fn one_by_one(&self, share: &Share<'c>) -> Vec<Ssa<'c>> {
        let code = self.code();
        self.keep(&self.load(share.first), 0);
        code.barrier();
        let bounds = [share.first + share.step, share.last, Int::Known(share.step)];
        let sums = code.repeat(bounds, &self.zeros(), |place, sums| {
            let next = self.load(place);
            code.schedule_barrier();
            let sums = self.multiply(sums, 0);
            code.schedule_barrier();
            code.barrier();
            self.keep(&next, 0);
            code.barrier();
            sums
        });
        self.multiply(&sums, 0)
    }

    /// Computes the sums of at least two steps with two buffers.
    fn in_pairs(&self, share: &Share<'c>) -> Vec<Ssa<'c>> {
        let code = self.code();
        let &Share { first, last, step, .. } = share;
        self.keep(&self.load(first), 0);
        let zeros = self.zeros();
        let odd = self.load(first + step);
        if share.count == 2 {
            code.barrier();
            let (sums, _) = self.step_of_pair(&zeros, 0, &odd, None);
            return self.multiply(&sums, 1);
        }
        let even = self.load(first + 2 * step);
        code.barrier();
        // An even number of steps leaves one step without a partner. If the number of terms is
        // known only at run time, the steps may go beyond the sum by one.
        let single = (share.count % 2 == 0 && !share.is_counted).then(|| last - step);
        let bounds = [first + 3 * step, single.unwrap_or(last), Int::Known(2 * step)];
        let (own, copies) = (zeros.len(), odd.len());
        let apart = |carried: &[Ssa<'c>]| {
            let (sums, loaded) = carried.split_at(own);
            let (odd, even) = loaded.split_at(copies);
            [sums, odd, even].map(<[_]>::to_vec)
        };
        let carried = code.repeat(bounds, &[zeros, odd, even].concat(), |place, carried| {
            let [sums, odd, even] = apart(carried);
            let (sums, odd) = self.step_of_pair(&sums, 0, &odd, Some(place));
            let (sums, even) = self.step_of_pair(&sums, 1, &even, Some(place + step));
            [sums, odd, even].concat()
        });
        let [sums, odd, even] = apart(&carried);
        let (sums, odd) = self.step_of_pair(&sums, 0, &odd, single);
        let (sums, _) = self.step_of_pair(&sums, 1, &even, None);
        if single.is_none() {
            return self.multiply(&sums, 0);
        }
        let (sums, _) = self.step_of_pair(&sums, 0, &odd, None);
        self.multiply(&sums, 1)
    }

    /// Adds the products of the step in one buffer, and issues the loads of the step from `next`
    /// on. `copies` are stored to the other buffer, and the new loads take their registers.
    fn step_of_pair(
        &self,
        sums: &[Ssa<'c>],
        buffer: i64,
        copies: &[Ssa<'c>],
        next: Option<Int<'c>>,
    ) -> (Vec<Ssa<'c>>, Vec<Ssa<'c>>) {
        let code = self.code();
        let sums = self.multiply(sums, buffer);
        code.schedule_barrier();
        self.keep(copies, 1 - buffer);
        let next = next.map(|next| self.load(next));
        code.barrier();
        code.schedule_barrier();
        (sums, next.unwrap_or_default())
    }

    fn zeros(&self) -> Vec<Ssa<'c>> {
        let code = self.code();
        let float = Type::float(code.context(), Float::F32);
        let zeros = code.zeros(float.vector(&[RUN]));
        let [tall, wide] = self.kernel.instructions();
        let instructions = unsigned(tall * wide);
        vec![zeros; instructions]
    }

    /// Loads the terms of both operands of a step to registers.
    fn load(&self, from: Int<'c>) -> Vec<Ssa<'c>> {
        let [a, b] = self.readers.map(|reader| reader.load(self.code(), from, self.end));
        [a, b].concat()
    }

    /// Stores the loaded terms to a buffer in LDS.
    fn keep(&self, loaded: &[Ssa<'c>], buffer: i64) {
        let code = self.code();
        let [a, b] = self.readers;
        let (own, other) = loaded.split_at(a.load_count());
        a.keep(code, own, Int::Known(buffer * a.size()));
        b.keep(code, other, Int::Known(buffer * b.size()))
    }

    /// Adds the products of a step in LDS to the sums.
    fn multiply(&self, sums: &[Ssa<'c>], buffer: i64) -> Vec<Ssa<'c>> {
        let code = self.code();
        let dtype = self.readers[0].factor.dtype;
        let element = element(code.context(), dtype);
        let float = Float::of_fnuz(dtype);
        let chunk = 16 / bytes(dtype);
        let vector = element.vector(&[chunk]);
        let read = |side: usize, half: usize| {
            let memory = self.readers[side].memory;
            let start = buffer * self.readers[side].size();
            let chunks = self.places[side][half].iter();
            let chunks = chunks.map(|&place| code.read_vector(memory, place + start, vector));
            chunks.collect::<Vec<_>>()
        };
        let mut sums = sums.to_vec();
        let halves = [[read(0, 0), read(1, 0)], [read(0, 1), read(1, 1)]];
        let each = chunk / 2;
        for [a, b] in &halves {
            for part in 0..2 {
                let taken: Vec<i64> = (part * each..(part + 1) * each).collect();
                let take = |chunks: &[Ssa<'c>]| {
                    let taken = chunks.iter().map(|&chunk| {
                        let taken = code.shuffle([chunk, chunk], &taken);
                        let Some(float) = float else { return taken };
                        let floats = Type::float(code.context(), float).vector(&[each]);
                        code.one(Name::VectorBitcast, &[taken], floats, &[])
                    });
                    taken.collect::<Vec<_>>()
                };
                let (a, b) = (take(a), take(b));
                let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b)));
                for ((a, b), sum) in pairs.zip(&mut sums) {
                    // The rows of the second operand of the instruction lie along lanes.
                    let factors = if self.kernel.axes.ends_with_columns {
                        [b, a]
                    } else {
                        [a, b]
                    };
                    *sum = code.mfma(factors, *sum);
                }
            }
        }
        sums
    }
}
