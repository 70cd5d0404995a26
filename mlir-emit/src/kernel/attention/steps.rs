//! The steps of a [prefill](Prefill) over keys and values, as the lanes compute them, and the
//! stores at the end.

use super::again::Matrix;
use super::prefill::Prefill;
use super::softmax::Sums;
use super::streamed::{BLOCKS, Copied, Streamed};
use super::tile::Tile;
use super::{HIDDEN, INFINITE, LEAST_OF_MASK, Mask, SIXTEEN, of_query, product};
use crate::counts::unsigned;
use crate::ir::FloatPredicate;
use crate::kernel::code::{Int, Ssa, gathered};
use crate::kernel::epilogue::RUN;
use crate::kernel::gemm::element;
use crate::kernel::places::offset;
use crate::mlir::Name;
use rotini_graph::DataType;
use std::f64::consts::LOG2_E;

/// The state of the lanes of a workgroup.
pub(super) struct Lanes<'a, 'c> {
    pub(super) tile: &'a Tile<'a, 'c>,
    pub(super) prefill: &'a Prefill,
    /// The mask that is added to scores, and its buffer.
    pub(super) mask: Option<(Mask, Ssa<'c>)>,
    /// Indices of the batch and of the head of q.
    pub(super) head: [Int<'c>; 2],
    /// The queries.
    pub(super) q: Matrix<'c>,
    /// Keys and values.
    pub(super) streamed: Streamed<'a, 'c>,
}

impl<'c> Lanes<'_, 'c> {
    /// Goes over the keys of a head.
    pub(super) fn sums(&self, q: &[Vec<Ssa<'c>>], numbers: [Int<'c>; 2]) -> Vec<Sums<'c>> {
        let (code, float) = (self.tile.code, self.tile.float);
        let [_, values] = &self.streamed.copied;
        let width = unsigned(values.width());
        let none = Sums::none(code, float, width);
        let flat = |sums: &[Sums<'c>]| -> Vec<Ssa<'c>> { sums.iter().flat_map(Sums::flat).collect() };
        let apart = |carried: &[Ssa<'c>]| -> Vec<Sums<'c>> { carried.chunks(2 + width).map(Sums::of).collect() };
        let seen = self.tile.seen();
        let none = flat(&vec![none; q.len()]);
        let carried = self.streamed.walk(
            numbers,
            &none,
            |first| self.mask(first),
            |(key, mask), carried| flat(&self.step(q, apart(carried), (key, mask, &seen))),
        );
        apart(&carried)
    }

    /// Adds the contributions of the keys of a step.
    fn step(
        &self,
        q: &[Vec<Ssa<'c>>],
        mut sums: Vec<Sums<'c>>,
        (first, mask, seen): (Int<'c>, &[Ssa<'c>], &[[Int<'c>; 2]]),
    ) -> Vec<Sums<'c>> {
        let code = self.tile.code;
        let scores = self.tile.hidden(self.scores(q, mask), (first, seen), &[HIDDEN]);
        let mut weights = Vec::new();
        for (scores, sums) in scores.iter().zip(&mut sums) {
            weights.push(self.weights(scores, sums));
        }
        let [_, values] = &self.streamed.copied;
        for (number, block) in (0..BLOCKS).enumerate() {
            let rows = values.columns(self.tile, block);
            for (at, column) in (0..values.width()).enumerate() {
                let own = gathered(code, &rows, values.width(), column);
                for (weights, sums) in weights.iter().zip(&mut sums) {
                    let (weights, sum) = (weights[number], &mut sums.weighted[at]);
                    *sum = code.mfma([own, weights], *sum);
                }
            }
        }
        sums
    }

    /// Loads the mask of the step that begins with the key `first`, in its type in memory: for each
    /// block of queries, the elements of four keys of each block of keys. Without a mask the list
    /// is empty.
    fn mask(&self, first: Int<'c>) -> Vec<Ssa<'c>> {
        let Some((mask, buffer)) = &self.mask else {
            return Vec::new();
        };
        let (code, tile) = (self.tile.code, self.tile);
        let [of_batch, of_head, of_query, of_key] = mask.strides;
        let ([batch, head], end) = (self.head, tile.range.any[1]);
        let shared = Int::sum([batch * of_batch, head * of_head, first * of_key]);
        let element = element(code.context(), mask.dtype);
        let run = element.vector(&[RUN]);
        let load = |block: i64, own: Int<'c>| {
            let key = tile.quarter * RUN + block * SIXTEEN;
            let mut place = own + key * of_key;
            if !tile.own.is_plain() {
                place = code.masked((first + key).is_below(end), place, *buffer);
            }
            if mask.has_runs(&self.prefill.of.visible) {
                code.load_uniform(*buffer, place, shared, run)
            } else if of_key == 0 {
                let one = code.load_uniform(*buffer, place, shared, element);
                one.broadcast(run)
            } else {
                let own: Vec<_> = (0..RUN)
                    .map(|key| {
                        let place = place + key * of_key;
                        code.load_uniform(*buffer, place, shared, element)
                    })
                    .collect();
                code.vector(&own, run)
            }
        };
        let mut loaded = Vec::new();
        for block in 0..tile.own.blocks() {
            let query = tile.row(block);
            let own = code.masked(tile.exists(query), query * of_query, *buffer);
            for block in 0..BLOCKS {
                loaded.push(load(block, own));
            }
        }
        loaded
    }

    /// Converts the elements of a mask to powers of 2. Finite elements stay finite, so that a query
    /// whose keys all have very low mask elements still has weights.
    fn powers(&self, dtype: DataType, mut elements: Ssa<'c>) -> Ssa<'c> {
        let (code, float) = (self.tile.code, self.tile.float);
        let run = float.vector(&[RUN]);
        let all = |number: &str| {
            let number = code.float_text(number, float);
            number.broadcast(run)
        };
        if dtype != DataType::F32 {
            elements = elements.extf(run);
        }
        let powers = elements * all(&format!("{LOG2_E:e}"));
        if dtype == DataType::F16 {
            return powers;
        }
        let least = LEAST_OF_MASK * LOG2_E;
        let raised = code.limited(powers, all(&format!("{least:e}")), false);
        let finite = code.limited(raised, all(&format!("{:e}", -least)), true);
        let magnitudes = elements.absf();
        let is_infinite = code.compare_floats(FloatPredicate::Equal, magnitudes, all(INFINITE));
        is_infinite.select(elements, finite)
    }

    /// Computes the scores of a step: for each block of queries, four keys of each block of keys.
    fn scores(&self, q: &[Vec<Ssa<'c>>], mask: &[Ssa<'c>]) -> Vec<Vec<Ssa<'c>>> {
        let code = self.tile.code;
        let [keys, _] = &self.streamed.copied;
        let run = self.tile.float.vector(&[RUN]);
        let zeros = code.zeros(run);
        let scale = code.float(self.prefill.of.scale * LOG2_E, self.tile.float);
        let scale = scale.broadcast(run);
        let blocks = unsigned(BLOCKS);
        let mut scores = vec![Vec::new(); q.len()];
        for block in 0..BLOCKS {
            let read = keys.rows(self.tile, block);
            for (at, (q, scores)) in q.iter().zip(&mut scores).enumerate() {
                let sum = product(code, [&read, q], zeros);
                let added = mask.get(at * blocks + scores.len());
                scores.push(match (added, &self.mask) {
                    (Some(&added), Some((mask, _))) => {
                        let added = self.powers(mask.dtype, added);
                        sum.fma(scale, added)
                    }
                    _ => sum * scale,
                });
            }
        }
        scores
    }

    /// Returns the exponentials of a query's scores as operands of the second product, and updates
    /// the query's sums.
    fn weights(&self, scores: &[Ssa<'c>], sums: &mut Sums<'c>) -> Vec<Ssa<'c>> {
        let (code, float) = (self.tile.code, self.tile.float);
        let run = float.vector(&[RUN]);
        let subtracted = sums.raise(code, scores, float, Name::RocdlExp2);
        let mut weights = Vec::new();
        let mut all = code.zeros(run);
        for &scores in scores {
            let powers = scores - subtracted;
            let own: Vec<_> = (0..RUN)
                .map(|number| {
                    let power = code.extract(powers, number, float);
                    code.same(Name::RocdlExp2, &[power])
                })
                .collect();
            let own = code.vector(&own, run);
            all = all + own;
            weights.push(own.truncf(self.tile.half.vector(&[RUN])));
        }
        for number in 0..RUN {
            sums.total = sums.total + code.extract(all, number, float);
        }
        weights
    }

    /// Returns the weighted sums of a block's query. If any is NaN, they are recomputed from only
    /// the visible keys.
    fn mended(&self, (block, seen): (i64, [Int<'c>; 2]), sums: &Sums<'c>, total: Ssa<'c>) -> Vec<Ssa<'c>> {
        let (code, tile, of) = (self.tile.code, self.tile, &self.prefill.of);
        let again = tile.again();
        let [batch, head] = self.head;
        let head_of_keys = head / of.group;
        let [keys, values] = self.streamed.copied.each_ref().map(Copied::matrix);
        let (query, columns) = (tile.row(block), values.columns);
        // If the sum of weights is NaN, a visible score is NaN.
        let is_meant = tile.exists(query) & again.is_number(total);
        let scale = code.float(of.scale * LOG2_E, tile.float);
        again.mended(&sums.weighted, is_meant, || {
            let q = self.q.row([batch, head, query]);
            let [from, end] = seen;
            code.repeat([from, end, Int::Known(1)], &again.none(columns), |key, weighted| {
                let k = keys.row([batch, head_of_keys, key]);
                let score = again.dot([q, k], keys.columns);
                let mut power = score * scale;
                if let Some((mask, buffer)) = &self.mask {
                    let place = offset(&[batch, head, query, key], &mask.strides);
                    let element = element(code.context(), mask.dtype);
                    let added = code.load(*buffer, place, element);
                    let added = added.broadcast(element.vector(&[RUN]));
                    let added = code.extract(self.powers(mask.dtype, added), 0, tile.float);
                    power = power + added;
                }
                let power = power - sums.greatest;
                let weight = code.same(Name::RocdlExp2, &[power]);
                let v = values.row([batch, head_of_keys, key]);
                again.added(weighted, weight, (v, columns))
            })
        })
    }

    /// Stores the results.
    pub(super) fn store(
        &self,
        sums: &[Sums<'c>],
        out: Ssa<'c>,
        [to_greatest, to_total]: [Ssa<'c>; 2],
        [batch, head]: [Int<'c>; 2],
    ) {
        let (code, tile) = (self.tile.code, self.tile);
        let of = &self.prefill.of;
        let zero = code.float_text("0.0", tile.float);
        let seen = tile.seen();
        for ((block, sums), seen) in (0..).zip(sums).zip(seen) {
            let total = of_query(code, Name::ArithAddf, sums.total);
            let weighted = if of.visible.is_bounded() {
                self.mended((block, seen), sums, total)
            } else {
                sums.weighted.clone()
            };
            let nothing = code.compare_floats(FloatPredicate::Equal, total, zero);
            let (dtype, strides) = of.out;
            tile.store(block, &weighted, (out, dtype, strides), [batch, head], |sum| {
                let quotient = sum / total;
                // If all weights are 0, the output is zero: the sum is 0 v, which may be NaN.
                nothing.select(zero, quotient)
            });
            let query = tile.row(block);
            // The statistics lie in the order of batches, heads and queries.
            let row = (batch * (of.heads * of.group) + head) * of.queries;
            let is_first = tile.quarter.is_below(1) & tile.exists(query);
            let place = code.masked(is_first, row + query, to_greatest);
            code.store(sums.greatest, to_greatest, place);
            code.store(total, to_total, place);
        }
    }
}
