//! The first kernel of an attention whose keys are split into parts: one subgroup goes over the
//! keys of one part.

use super::again::{Again, Matrix};
use super::decode::{Decode, FOUND};
use super::softmax::Sums;
use super::{HIDDEN, MISSING, SIXTEEN, Strides, WIDE, lengths_of, of_query, product};
use crate::counts::unsigned;
use crate::kernel::code::{Code, Int, Ssa, gathered};
use crate::kernel::epilogue::RUN;
use crate::kernel::gemm::element;
use crate::mlir::{Float, Name, Type};
use std::f64::consts::LOG2_E;

/// Keys per iteration of the loop, in blocks of one matrix instruction.
const STEP: i64 = rotini_schedule::attention::STEP.cast_signed();
impl Decode {
    /// Writes the body of the kernel of the parts, and returns the number of workgroups. The
    /// buffers are q, k, v, the sequence lengths if they exist, and the [intermediate
    /// results](Self::between).
    pub(in crate::kernel) fn write_parts<'c>(&self, code: &Code<'c>) -> i64 {
        let context = code.context();
        let half = element(context, self.of.dtype);
        let float = Type::float(context, Float::F32);
        let count = self.of.visible.lengths.map_or(0, |lengths| lengths.len());
        let (lane, workgroup) = (code.lane(), code.workgroup());
        let part = workgroup % self.parts;
        let of_keys = workgroup / self.parts;
        let batch = of_keys / self.of.heads;
        let column = lane % SIXTEEN;
        let [_, _, query] = self.query(of_keys, column);
        let lengths = lengths_of(code, 3, count, batch);
        let [first, last] = self.of.visible.keys;
        let start = part * self.each + first;
        let mut end = if self.of.visible.count() % self.each == 0 {
            start + self.each
        } else {
            let is_whole = part.is_below(self.parts - 1);
            is_whole.select(start + self.each, last)
        };
        let least = |a: Int<'c>, b: Int<'c>| a.is_below(b).select(a, b);
        if let Some(&keys) = lengths.get(1) {
            end = least(end, keys);
        }
        // The range of keys that the lane's query sees.
        let mut own = [start, end];
        if let Some(from) = self.of.visible.from {
            // The sum may be negative, and comparisons of `Int` are unsigned: clamp it as signed.
            own[0] = Int::Made(code.index(query + from)).max(start);
        }
        if let Some(to) = self.of.visible.to {
            own[1] = least(end, Int::Made(code.index(query + (to + 1))).max(0));
        }
        if let Some(&queries) = lengths.first() {
            own[1] = query.is_below(queries).select(own[1], 0);
        }
        let lanes = Lanes {
            code,
            decode: self,
            half,
            float,
            column,
            quarter: lane / SIXTEEN,
            batch,
            head: of_keys % self.of.heads,
            buffers: [code.buffer(1), code.buffer(2)],
            end,
            own,
        };
        let q = lanes.queries(of_keys, code.buffer(0));
        let sums = lanes.sums(&q, start);
        let weighted = if self.of.visible.is_bounded() {
            lanes.mended(&sums, of_keys, code.buffer(0))
        } else {
            sums.weighted.clone()
        };
        let sums = Sums { weighted, ..sums };
        lanes.store(&sums, workgroup, [code.buffer(3 + count), code.buffer(4 + count)]);
        self.all()
    }
}

/// The state of the lanes of a subgroup.
struct Lanes<'a, 'c> {
    code: &'a Code<'c>,
    decode: &'a Decode,
    half: Type<'c>,
    float: Type<'c>,
    /// The lane's column of the scores, and its quarter of the rows of a matrix.
    column: Int<'c>,
    quarter: Int<'c>,
    batch: Int<'c>,
    head: Int<'c>,
    /// Keys and values.
    buffers: [Ssa<'c>; 2],
    /// The end of the part's keys.
    end: Int<'c>,
    /// The range of keys that the lane's query sees.
    own: [Int<'c>; 2],
}

/// Keys and values of a step as they are loaded. For each block: of the keys one vector per 32
/// columns, of the values one vector per key.
struct Loaded<'c> {
    keys: Vec<Vec<Ssa<'c>>>,
    values: Vec<Vec<Ssa<'c>>>,
}

impl<'c> Loaded<'c> {
    fn flat(&self) -> Vec<Ssa<'c>> {
        self.keys.iter().chain(&self.values).flatten().copied().collect()
    }
}

impl<'c> Lanes<'_, 'c> {
    /// Returns the number of loads per key: all lanes together load 32 columns of q or k at once.
    fn turns(&self) -> i64 {
        self.decode.of.columns[0] / (4 * WIDE)
    }

    /// Returns the number of columns of v that a lane has.
    fn width(&self) -> i64 {
        self.decode.of.columns[1] / SIXTEEN
    }

    /// Loads the lane's query.
    fn queries(&self, of_keys: Int<'c>, buffer: Ssa<'c>) -> Vec<Ssa<'c>> {
        let code = self.code;
        let Strides { batch, head, row } = self.decode.of.q.strides;
        let [b, h, query] = self.decode.query(of_keys, self.column);
        let place = Int::sum([b * batch, h * head, query * row, self.quarter * WIDE]);
        let exists = self.column.is_below(self.decode.columns_of_group());
        let place = code.masked(exists, place, buffer);
        let vector = self.half.vector(&[WIDE]);
        (0..self.turns())
            .map(|turn| code.load(buffer, place + turn * 4 * WIDE, vector))
            .collect()
    }

    /// Loads the keys and values from the key `first` on. Beyond the part's end they are zeros.
    fn load(&self, first: Int<'c>) -> Loaded<'c> {
        let code = self.code;
        let [keys, values] = self.buffers;
        // The shared part of the address must stay inside the buffer, even where no lane reads.
        let inside = first.is_below(self.end).select(first, 0);
        let shared = |strides: Strides| strides.place([self.batch, self.head, inside]);
        let (of_key, of_value) = (self.decode.of.k.strides, self.decode.of.v.strides);
        let (shared_key, shared_value) = (shared(of_key), shared(of_value));
        let mut loaded = Loaded {
            keys: Vec::new(),
            values: Vec::new(),
        };
        let place = |buffer, key: Int<'c>, stride: i64, column: Int<'c>| {
            let exists = (first + key).is_below(self.end);
            code.masked(exists, key * stride + column, buffer)
        };
        for block in 0..STEP / SIXTEEN {
            let key = self.column + block * SIXTEEN;
            let own = place(keys, key, of_key.row, self.quarter * WIDE);
            let vector = self.half.vector(&[WIDE]);
            let turns =
                (0..self.turns()).map(|turn| code.load_uniform(keys, own + turn * 4 * WIDE, shared_key, vector));
            loaded.keys.push(turns.collect());
        }
        for block in 0..STEP / SIXTEEN {
            let vector = self.half.vector(&[self.width()]);
            let column = self.column * self.width();
            let own = (0..RUN).map(|next| {
                let key = self.quarter * RUN + (block * SIXTEEN + next);
                code.load_uniform(values, place(values, key, of_value.row, column), shared_value, vector)
            });
            loaded.values.push(own.collect());
        }
        loaded
    }

    /// Goes over the keys of the part.
    fn sums(&self, q: &[Ssa<'c>], start: Int<'c>) -> Sums<'c> {
        let code = self.code;
        let sums = Sums::none(code, self.float, unsigned(self.width()));
        let first = self.load(start);
        let carried = [sums.flat(), first.flat()].concat();
        let bounds = [start, self.end, Int::Known(STEP)];
        let carried = code.repeat(bounds, &carried, |key, carried| {
            let (sums, loaded) = self.apart(carried);
            let next = self.load(key + STEP);
            code.schedule_barrier();
            let sums = self.step(q, &loaded, sums, key);
            // The loaded values move to the registers of the next iteration, which waits for them.
            code.schedule_barrier();
            [sums.flat(), next.flat()].concat()
        });
        self.apart(&carried).0
    }

    /// Splits the values that an iteration passes to the next.
    fn apart(&self, carried: &[Ssa<'c>]) -> (Sums<'c>, Loaded<'c>) {
        let number = |count: i64| unsigned(count);
        let (sums, rest) = carried.split_at(2 + number(self.width()));
        let blocks = number(STEP / SIXTEEN);
        let turns = number(self.turns());
        let (keys, values) = rest.split_at(blocks * turns);
        let loaded = Loaded {
            keys: keys.chunks(turns).map(<[_]>::to_vec).collect(),
            values: values.chunks(number(RUN)).map(<[_]>::to_vec).collect(),
        };
        (Sums::of(sums), loaded)
    }

    /// Adds the contributions of the keys of a step.
    fn step(&self, q: &[Ssa<'c>], loaded: &Loaded<'c>, mut sums: Sums<'c>, key: Int<'c>) -> Sums<'c> {
        let code = self.code;
        let scores: Vec<_> = (0..)
            .zip(&loaded.keys)
            .map(|(block, keys)| self.scores(q, keys, (block, key)))
            .collect();
        let subtracted = sums.raise(code, &scores, self.float, Name::MathExp2);
        for (scores, values) in scores.into_iter().zip(&loaded.values) {
            let weights = scores - subtracted;
            let weights = weights.exp2();
            for number in 0..RUN {
                sums.total = sums.total + code.extract(weights, number, self.float);
            }
            let weights = weights.truncf(self.half.vector(&[RUN]));
            for (column, sum) in (0..).zip(&mut sums.weighted) {
                let own = gathered(code, values, self.width(), column);
                *sum = code.mfma([own, weights], *sum);
            }
        }
        sums
    }

    /// Returns the scores of the lane's query and four keys of a block; -∞ for hidden keys.
    fn scores(&self, q: &[Ssa<'c>], keys: &[Ssa<'c>], (block, key): (i64, Int<'c>)) -> Ssa<'c> {
        let code = self.code;
        let run = self.float.vector(&[RUN]);
        let sum = product(code, [keys, q], code.zeros(run));
        let scale = code.float(self.decode.of.scale * LOG2_E, self.float);
        let scores = sum * scale.broadcast(run);
        let visible = &self.decode.of.visible;
        if visible.is_same_for_all() && visible.count() % STEP == 0 {
            return scores;
        }
        let [from, end] = self.own;
        let first = Int::sum([key, Int::Known(block * SIXTEEN), self.quarter * RUN]) - from;
        let count = from.is_below(end).select(end - from, 0);
        let hidden = code.float_text(HIDDEN, self.float);
        let all: Vec<_> = (0..RUN)
            .map(|number| {
                let score = code.extract(scores, number, self.float);
                let Int::Made(is_visible) = (first + number).is_below(count) else {
                    unreachable!("{MISSING}");
                };
                is_visible.select(score, hidden)
            })
            .collect();
        code.vector(&all, run)
    }

    /// Returns the weighted sums of the lane's query. If any is NaN, they are recomputed from only
    /// the visible keys.
    fn mended(&self, sums: &Sums<'c>, of_keys: Int<'c>, q: Ssa<'c>) -> Vec<Ssa<'c>> {
        let (code, of) = (self.code, &self.decode.of);
        let again = Again {
            code,
            half: self.half,
            float: self.float,
            quarter: self.quarter,
        };
        let [of_key, of_value] = of.columns;
        let matrix = |operand, buffer, columns| Matrix {
            operand,
            buffer,
            columns,
        };
        let [of_keys_buffer, of_values_buffer] = self.buffers;
        let (keys, values) = (
            matrix(of.k, of_keys_buffer, of_key),
            matrix(of.v, of_values_buffer, of_value),
        );
        let exists = self.column.is_below(self.decode.columns_of_group());
        let scale = code.float(of.scale * LOG2_E, self.float);
        // If the sum of weights is NaN, a visible score is NaN.
        let is_meant = exists & again.is_number(sums.total);
        again.mended(&sums.weighted, is_meant, || {
            let place = self.decode.query(of_keys, self.column);
            let q = matrix(of.q, q, of_key).row(place);
            let [from, end] = self.own;
            code.repeat([from, end, Int::Known(1)], &again.none(of_value), |key, weighted| {
                let k = keys.row([self.batch, self.head, key]);
                let power = again.dot([q, k], of_key) * scale;
                let weight = (power - sums.greatest).exp2();
                let v = values.row([self.batch, self.head, key]);
                again.added(weighted, weight, (v, of_value))
            })
        })
    }

    /// Stores the results of the part.
    fn store(&self, sums: &Sums<'c>, workgroup: Int<'c>, [to, found]: [Ssa<'c>; 2]) {
        let code = self.code;
        let (count, width, of_value) = (self.decode.columns_of_group(), self.width(), self.decode.of.columns[1]);
        let total = of_query(code, Name::ArithAddf, sums.total);
        let row = workgroup * count + self.column;
        let exists = self.column.is_below(count);
        for number in 0..RUN {
            let column = (self.quarter * RUN + number) * width;
            let own: Vec<_> = sums
                .weighted
                .iter()
                .map(|&sum| code.extract(sum, number, self.float))
                .collect();
            for (piece, elements) in (0..).zip(own.chunks(4)) {
                let place = row * of_value + column + Int::Known(4 * piece);
                let vector = code.vector(elements, self.float.vector(&[4]));
                code.store(vector, to, code.masked(exists, place, to));
            }
        }
        let is_first = self.quarter.is_below(1) & exists;
        let place = code.masked(is_first, row * FOUND, found);
        let pair = self.float.vector(&[FOUND]);
        let pair = code.vector(&[sums.greatest, total], pair);
        code.store(pair, found, place)
    }
}
