//! The loop over the keys of a workgroup of attention on a CPU.

use super::cpu::Tile;
use super::cpu_lanes::BLOCK;
use super::{HIDDEN, MISSING};
use crate::counts::{signed, unsigned};
use crate::ir::{FloatPredicate, IntegerPredicate};
use crate::kernel::code::{Int, Ssa};
use crate::kernel::places::offset;
use crate::mlir::{Name, Type};

impl<'c> Tile<'_, 'c> {
    /// Returns for each vector the first visible key and the number of visible keys of each query;
    /// `None` if they are the same for all queries.
    fn bounds(&self, [first, end]: [Int<'c>; 2], ends: &[Int<'c>]) -> Option<Vec<[Ssa<'c>; 2]>> {
        let (code, visible) = (self.lanes.code, &self.of.visible);
        if visible.is_same_for_all() {
            return None;
        }
        let words = Type::integer(code.context(), 32).vector(&[self.lanes.count]);
        let lanes = code.multiples(1, self.lanes.count);
        let all = |number: Int<'c>| code.word(number).broadcast(words);
        let mut own = Vec::new();
        for vector in 0..self.lanes.vectors {
            let queries = all(self.lanes.first + vector * self.lanes.count);
            let queries = queries + lanes;
            let moved = |by: i64| {
                let by = by.clamp(-i64::from(i32::MAX) / 2, i64::from(i32::MAX) / 2);
                queries + all(by.into())
            };
            let mut from = all(first);
            if let Some(bound) = visible.from {
                from = moved(bound).maxsi(from);
            }
            let mut to = all(end);
            if let Some(bound) = visible.to {
                to = moved(bound.saturating_add(1)).minsi(to);
            }
            if let Some(&count) = ends.first() {
                let is_real = code.compare_integers(IntegerPredicate::Less, queries, all(count));
                to = is_real.select(to, all(0.into()));
            }
            let count = to - from;
            own.push([from, count.maxsi(all(0.into()))]);
        }
        Some(own)
    }

    /// Goes over the keys, and sums the weighted values. Returns for each vector the greatest
    /// scores and the sums of exponentials.
    pub(super) fn sums(&self, ends: &[Int<'c>]) -> Vec<[Ssa<'c>; 2]> {
        let (code, visible) = (self.lanes.code, &self.of.visible);
        let [mut first, mut end] = visible.keys.map(Int::from);
        if let Some(&keys) = ends.get(1) {
            end = end.min(keys);
        }
        let bounds = self.bounds([first, end], ends);
        // Skip keys that none of these queries sees.
        if let Some(from) = visible.from {
            first = (self.lanes.first + from).max(first);
        }
        if let Some(to) = visible.to {
            let last = self.lanes.first + to.saturating_add(self.lanes.vectors * self.lanes.count);
            end = last.max(0).min(end);
        }
        let vectors = unsigned(self.lanes.vectors);
        let (least, zeros) = (self.lanes.all(HIDDEN), code.zeros(self.lanes.vector));
        let start = [vec![least; vectors], vec![zeros; vectors]].concat();
        let found = code.repeat([first, end, BLOCK.into()], &start, |key, so_far| {
            let rest = end - key;
            let count = rest.min(BLOCK);
            let (so_far, totals) = so_far.split_at(vectors);
            let greatest = self.scores(key, count, so_far, bounds.as_deref());
            self.weigh(key, count, [so_far, &greatest, totals])
        });
        let (greatest, totals) = found.split_at(vectors);
        greatest.iter().zip(totals).map(|(&a, &b)| [a, b]).collect()
    }

    /// Computes the scores of a block; returns the greatest scores so far.
    fn scores(
        &self,
        key: Int<'c>,
        count: Int<'c>,
        greatest: &[Ssa<'c>],
        bounds: Option<&[[Ssa<'c>; 2]]>,
    ) -> Vec<Ssa<'c>> {
        let code = self.lanes.code;
        let each = self.accumulators / self.lanes.vectors;
        let whole = count - count % each;
        let greatest = code.repeat([0.into(), whole, each.into()], greatest, |number, greatest| {
            self.scores_of(each, [key, number], greatest, bounds)
        });
        code.repeat([whole, count, 1.into()], &greatest, |number, greatest| {
            self.scores_of(1, [key, number], greatest, bounds)
        })
    }

    /// Computes the scores of some keys of a block; returns the greatest scores so far.
    fn scores_of(
        &self,
        keys: i64,
        [key, number]: [Int<'c>; 2],
        greatest: &[Ssa<'c>],
        bounds: Option<&[[Ssa<'c>; 2]]>,
    ) -> Vec<Ssa<'c>> {
        let of = self.of;
        let [batch, head, head_of_keys] = self.places;
        let key = key + number;
        let place = of.k.strides.place([batch, head_of_keys, key]);
        let sums = self.lanes.summed(
            (self.memory[0], of.columns[0].into()),
            (self.buffers[1], place, [1, of.k.strides.row]),
            keys,
        );
        let scale = self.lanes.scale(of.scale);
        let mut greatest = greatest.to_vec();
        let mut sums = sums.into_iter();
        for next in 0..keys {
            let key = key + next;
            let added = of.mask.map(|mask| {
                let [of_batch, of_head, _, of_key] = mask.strides;
                let place = offset(&[batch, head, key], &[of_batch, of_head, of_key]);
                self.lanes.broadcast(self.buffers[3], place)
            });
            for (vector, greatest) in (0..).zip(&mut greatest) {
                let sum = sums.next().expect(MISSING);
                let mut score = sum * scale;
                if let Some(added) = added {
                    score = score + added;
                }
                if let Some(bounds) = bounds {
                    score = self.seen(score, key, &bounds[vector]);
                }
                *greatest = (*greatest).maxnumf(score);
                let vector = signed(vector);
                self.write(score, 1, number + next, vector);
            }
        }
        greatest
    }

    /// Returns the scores of a key, -∞ where the key is hidden from the query.
    fn seen(&self, score: Ssa<'c>, key: Int<'c>, [from, count]: &[Ssa<'c>; 2]) -> Ssa<'c> {
        let code = self.lanes.code;
        let key = code.word(key).broadcast(from.r#type());
        let number = key - *from;
        let is_seen = code.compare_integers(IntegerPredicate::Below, number, *count);
        let hidden = self.lanes.all(HIDDEN);
        is_seen.select(score, hidden)
    }

    /// Replaces a block's scores by their exponentials, and adds these and the values weighted by
    /// them to the sums. Returns the greatest scores and the sums of exponentials.
    fn weigh(&self, key: Int<'c>, count: Int<'c>, [so_far, greatest, totals]: [&[Ssa<'c>]; 3]) -> Vec<Ssa<'c>> {
        let code = self.lanes.code;
        let (hidden, zeros) = (self.lanes.all(HIDDEN), code.zeros(self.lanes.vector));
        let (mut references, mut factors) = (Vec::new(), Vec::new());
        for (&so_far, &greatest) in so_far.iter().zip(greatest) {
            // If no key is visible, the weight must be 0 and not exp(-∞ + ∞).
            let is_nothing = code.compare_floats(FloatPredicate::Equal, greatest, hidden);
            let reference = is_nothing.select(zeros, greatest);
            references.push(reference);
            factors.push((so_far - reference).exp());
        }
        let none = vec![zeros; references.len()];
        let added = code.repeat([0.into(), count, 1.into()], &none, |number, sums| {
            let mut next = Vec::new();
            for ((vector, &reference), &sum) in (0..).zip(&references).zip(sums) {
                let score = self.read(1, number, vector);
                let weight = (score - reference).exp();
                self.write(weight, 1, number, vector);
                next.push(sum + weight);
            }
            next
        });
        let [batch, _, head] = self.places;
        let v = self.of.v.strides;
        let first = v.place([batch, head, key]);
        let each = (self.accumulators / self.lanes.vectors).min(self.lanes.count);
        code.each([0.into(), self.of.columns[1].into(), each.into()], |column| {
            let place = first + column;
            let sums = self
                .lanes
                .summed((self.memory[1], count), (self.buffers[2], place, [v.row, 1]), each);
            let mut sums = sums.into_iter();
            for next in 0..each {
                let column = column + next;
                for (vector, &factor) in (0..).zip(&factors) {
                    let sum = [self.read(2, column, vector), factor, sums.next().expect(MISSING)];
                    self.write(code.same(Name::MathFma, &sum), 2, column, vector);
                }
            }
        });
        let totals = totals.iter().zip(&factors).zip(added);
        let totals = totals.map(|((&total, &factor), added)| total.fma(factor, added));
        let mut found = greatest.to_vec();
        found.extend(totals.collect::<Vec<_>>());
        found
    }
}
