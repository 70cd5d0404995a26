//! Recomputation of a query's sums that are NaN on a CPU, from only the keys that are visible to
//! the query.
//!
//! A value that is visible to one query of a vector and hidden from another is multiplied by the
//! weights of both. The weight of a hidden key is 0, and 0 times NaN or an infinity is NaN.

use super::cpu::Tile;
use crate::counts::exactly;
use crate::ir::FloatPredicate;
use crate::kernel::code::{Int, Ssa};
use crate::kernel::places::offset;
use crate::mlir::{Name, Type};

impl<'c> Tile<'_, 'c> {
    /// Recomputes the sums of values of each query that has NaN among them, unless its sum of
    /// weights is NaN. `sums`: the greatest scores and the sums of exponentials. `ends`: the
    /// numbers of queries and keys of the batch, if the graph gives them.
    pub(super) fn mend(&self, sums: &[[Ssa<'c>; 2]], ends: &[Int<'c>]) {
        let code = self.lanes.code;
        let zeros = code.zeros(self.lanes.vector);
        for (vector, &[greatest, total]) in (0..).zip(sums) {
            let columns = [0.into(), self.of.columns[1].into(), 1.into()];
            let added = code.repeat(columns, &[zeros], |column, sum| {
                let [sum] = exactly(sum);
                vec![sum + self.read(2, column, vector)]
            });
            let [added] = exactly(&added);
            // If the sum of weights is NaN, a visible score is NaN.
            let is_nan = code.compare_floats(FloatPredicate::Unordered, added, added);
            let is_meant = is_nan & code.compare_floats(FloatPredicate::Ordered, total, total);
            let words = Type::integer(code.context(), 32).vector(&[self.lanes.count]);
            let flags = is_meant.extui(words);
            let flags = flags.sitofp(self.lanes.vector);
            // The memory of the scores is no longer needed.
            self.write(flags, 1, 0.into(), vector);
            self.write(greatest, 1, 1.into(), vector);
            code.each([0.into(), self.lanes.count.into(), 1.into()], |lane| {
                let flag = self.number(1, 0.into(), (vector, lane));
                let half = code.float_text("0.5", self.lanes.float);
                let is_meant = code.compare_floats(FloatPredicate::Greater, flag, half);
                code.when(Int::Made(is_meant), || {
                    self.sum_again((vector, lane), ends);
                });
            });
        }
    }

    /// Returns the offset of a query's element in a row of a matrix on the stack.
    fn place_of(&self, row: Int<'c>, (vector, lane): (i64, Int<'c>)) -> Int<'c> {
        self.lanes.place(row, vector) + lane
    }

    fn number(&self, memory: usize, row: Int<'c>, query: (i64, Int<'c>)) -> Ssa<'c> {
        self.lanes.code.read(self.memory[memory], self.place_of(row, query))
    }

    fn set_number(&self, number: Ssa<'c>, row: Int<'c>, query: (i64, Int<'c>)) {
        let place = self.place_of(row, query);
        self.lanes.code.write(number, self.memory[2], place)
    }

    /// Sums the values that are visible to one query.
    fn sum_again(&self, query: (i64, Int<'c>), ends: &[Int<'c>]) {
        let (code, of) = (self.lanes.code, self.of);
        let [batch, head, head_of_keys] = self.places;
        let [of_key, of_value] = of.columns;
        let (vector, lane) = query;
        let number = self.lanes.first + Int::Known(vector * self.lanes.count) + lane;
        let zero = code.float_text("0.0", self.lanes.float);
        let columns = [0.into(), of_value.into(), 1.into()];
        code.each(columns, |column| {
            self.set_number(zero, column, query);
        });
        let [mut from, mut end] = of.visible.keys.map(Int::from);
        if let Some(bound) = of.visible.from {
            from = (number + bound).max(from);
        }
        if let Some(bound) = of.visible.to {
            end = (number + bound.saturating_add(1)).min(end);
        }
        if let &[queries, keys] = ends {
            end = number.is_below(queries).select(end.min(keys), 0);
        }
        let load = |buffer: usize, place: Int<'c>| code.read(self.buffers[buffer], place);
        let scale = code.float(of.scale, self.lanes.float);
        let greatest = self.number(1, 1.into(), query);
        code.each([from, end, 1.into()], |key| {
            let k = of.k.strides.place([batch, head_of_keys, key]);
            let v = of.v.strides.place([batch, head_of_keys, key]);
            let sum = code.repeat([0.into(), of_key.into(), 1.into()], &[zero], |column, sum| {
                let [sum] = exactly(sum);
                let factors = [self.number(0, column, query), load(1, k + column), sum];
                vec![code.same(Name::MathFma, &factors)]
            });
            let [sum] = exactly(&sum);
            let mut score = sum * scale;
            if let Some(mask) = of.mask {
                let [of_batch, of_head, _, of_key] = mask.strides;
                let place = offset(&[batch, head, key], &[of_batch, of_head, of_key]);
                score = score + load(3, place);
            }
            let weight = (score - greatest).exp();
            code.each(columns, |column| {
                let factors = [weight, load(2, v + column), self.number(2, column, query)];
                self.set_number(code.same(Name::MathFma, &factors), column, query);
            });
        });
    }
}
