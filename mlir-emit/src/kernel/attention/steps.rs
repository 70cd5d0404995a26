//! What the lanes of a [prefill](Prefill) do: the steps over keys and values, and what is stored at the end.

use super::prefill::{Prefill, STEP};
use super::{HIDDEN, LEAST, MISSING, SIXTEEN, WIDE, greatest_of, of_query};
use crate::EmitError;
use crate::kernel::code::{Code, Int, Ssa, gathered};
use crate::kernel::epilogue::RUN;
use crate::kernel::gemm::matrix;
use crate::kernel::places::BEYOND;
use crate::mlir::{Attribute, Type};
use rotini_graph::DataType;
use std::f64::consts::LOG2_E;

/// Blocks of keys of a step.
const KEYS: i64 = STEP / SIXTEEN;

/// Where keys begin and end.
#[derive(Clone, Copy)]
pub(super) struct Range<'c> {
    /// Those that any query of the workgroup sees.
    pub(super) any: [Int<'c>; 2],
    /// Those that all of them see.
    pub(super) all: [Int<'c>; 2],
}

/// What the lanes of a workgroup know.
pub(super) struct Lanes<'a, 'c> {
    pub(super) code: &'a Code<'c>,
    pub(super) prefill: &'a Prefill,
    pub(super) half: Type<'c>,
    pub(super) float: Type<'c>,
    pub(super) lane: Int<'c>,
    /// The lane's query in a block, and which keys of a block it has.
    pub(super) column: Int<'c>,
    pub(super) quarter: Int<'c>,
    /// The workgroup's first query, and the subgroup's first block of them.
    pub(super) first: Int<'c>,
    pub(super) block: Int<'c>,
    /// Batch, head of q and head of keys.
    pub(super) numbers: [Int<'c>; 3],
    /// Keys and values in memory and in LDS.
    pub(super) buffers: [Ssa<'c>; 2],
    pub(super) memories: [Ssa<'c>; 2],
    pub(super) range: Range<'c>,
}

/// What a lane knows of one of its queries so far.
#[derive(Clone)]
pub(super) struct Sums<'c> {
    greatest: Ssa<'c>,
    /// Of the lane's own keys.
    total: Ssa<'c>,
    /// For each of the columns of v that it reads at once, the sums of four columns of the output.
    weighted: Vec<Ssa<'c>>,
}

impl<'c> Lanes<'_, 'c> {
    /// Columns of v that a lane has.
    fn width(&self) -> i64 {
        self.prefill.of.columns[1] / SIXTEEN
    }

    /// Columns of q and k that all lanes have at once.
    fn turns(&self) -> i64 {
        self.prefill.of.columns[0] / (4 * WIDE)
    }

    /// The lane's query in a block of its subgroup.
    fn query(&self, block: i64) -> Result<Int<'c>, EmitError> {
        let code = self.code;
        let block = code.mul(code.add(self.block, block)?, SIXTEEN)?;
        code.sum([self.first, block, self.column])
    }

    /// Whether there is a query with this number.
    fn exists(&self, query: Int<'c>) -> Result<Int<'c>, EmitError> {
        let queries = self.prefill.of.queries;
        if queries % self.prefill.tall() == 0 {
            Ok(Int::Known(1))
        } else {
            self.code.is_below(query, queries)
        }
    }

    /// The lane's queries: for each block, its columns.
    pub(super) fn queries(&self, buffer: Ssa<'c>) -> Result<Vec<Vec<Ssa<'c>>>, EmitError> {
        let code = self.code;
        let [batch, head, _] = self.numbers;
        let vector = self.half.vector(&[WIDE])?;
        let block = |block: i64| {
            let query = self.query(block)?;
            let place = self.prefill.of.q.strides.place(code, [batch, head, query])?;
            let place = code.add(place, code.mul(self.quarter, WIDE)?)?;
            let place = code.select(self.exists(query)?, place, BEYOND / 2)?;
            (0..self.turns())
                .map(|turn| code.load(buffer, (code.add(place, turn * 4 * WIDE)?, Int::Known(0)), vector))
                .collect()
        };
        (0..self.prefill.blocks()).map(block).collect()
    }

    /// The rows of a step and the columns in a row, counted in vectors, that a lane copies of keys (0) or values (1).
    fn copied(&self, side: usize) -> Result<(Vec<Int<'c>>, Int<'c>), EmitError> {
        let code = self.code;
        let across = self.prefill.of.columns.get(side).ok_or(MISSING)? / WIDE;
        let down = self.prefill.lanes().cast_signed() / across;
        let first = code.div(self.lane, across)?;
        let rows = (0..STEP / down).map(|number| code.add(first, number * down));
        Ok((rows.collect::<Result<_, _>>()?, code.rem(self.lane, across)?))
    }

    /// Loads the keys and values from this key on. Keys past the end are zeros. Where all steps are whole, what is loaded
    /// after the last step is the head's first keys, and nobody uses it.
    fn load(&self, first: Int<'c>) -> Result<Vec<Ssa<'c>>, EmitError> {
        let code = self.code;
        let [batch, _, head] = self.numbers;
        let end = self.range.any[1];
        // What lanes share stays inside of the buffer, also where no lane reads.
        let inside = code.select(code.is_below(first, end)?, first, 0)?;
        let vector = self.half.vector(&[WIDE])?;
        let mut loaded = Vec::new();
        let of = &self.prefill.of;
        for (side, operand) in [of.k, of.v].into_iter().enumerate() {
            let buffer = *self.buffers.get(side).ok_or(MISSING)?;
            let shared = operand.strides.place(code, [batch, head, inside])?;
            let (rows, column) = self.copied(side)?;
            let column = code.mul(column, WIDE)?;
            for row in rows {
                let own = code.add(code.mul(row, operand.strides.row)?, column)?;
                let own = if self.prefill.is_plain() {
                    own
                } else {
                    code.select(code.is_below(code.add(first, row)?, end)?, own, BEYOND / 2)?
                };
                loaded.push(code.load(buffer, (own, shared), vector)?);
            }
        }
        Ok(loaded)
    }

    /// Where a vector of keys is in LDS: lanes that read one column of neighbouring rows find them in other banks.
    fn place_of_keys(&self, row: Int<'c>, vector: Int<'c>) -> Result<Int<'c>, EmitError> {
        let code = self.code;
        let columns = self.prefill.of.columns[0];
        let vector = code.xor(vector, code.rem(row, columns / WIDE)?)?;
        code.add(code.mul(row, columns)?, code.mul(vector, WIDE)?)
    }

    /// Puts what was loaded into LDS.
    fn keep(&self, loaded: &[Ssa<'c>]) -> Result<(), EmitError> {
        let code = self.code;
        let [keys, values] = self.memories;
        let mut loaded = loaded.iter();
        let (rows, vector) = self.copied(0)?;
        for (row, &own) in rows.into_iter().zip(&mut loaded) {
            code.write_shared(own, keys, self.place_of_keys(row, vector)?)?;
        }
        let (rows, vector) = self.copied(1)?;
        let columns = self.prefill.of.columns[1];
        for (row, &own) in rows.into_iter().zip(&mut loaded) {
            let place = code.add(code.mul(row, columns)?, code.mul(vector, WIDE)?)?;
            code.write_shared(own, values, place)?;
        }
        Ok(())
    }

    /// Goes over the keys.
    pub(super) fn sums(&self, q: &[Vec<Ssa<'c>>], lengths: &[Int<'c>]) -> Result<Vec<Sums<'c>>, EmitError> {
        let code = self.code;
        let number = |count: i64| usize::try_from(count).map_err(|_| MISSING);
        let none = Sums {
            // What is finite: where every score is -∞, exponentials are 0 and not those of -∞ + ∞.
            greatest: code.float(LEAST, self.float)?,
            total: code.float("0.0", self.float)?,
            weighted: vec![code.zeros(self.float.vector(&[RUN])?)?; number(self.width())?],
        };
        let flat = |sums: &[Sums<'c>]| -> Vec<Ssa<'c>> {
            let own = |sums: &Sums<'c>| [vec![sums.greatest, sums.total], sums.weighted.clone()].concat();
            sums.iter().flat_map(own).collect()
        };
        let each = 2 + number(self.width())?;
        let apart = |carried: &[Ssa<'c>]| -> Result<Vec<Sums<'c>>, EmitError> {
            let own = |own: &[Ssa<'c>]| {
                let (&[greatest, total], weighted) = own.split_first_chunk().ok_or(MISSING)?;
                Ok(Sums {
                    greatest,
                    total,
                    weighted: weighted.to_vec(),
                })
            };
            carried.chunks(each).map(own).collect()
        };
        let visible = (0..self.prefill.blocks()).map(|block| self.visible(block, lengths));
        let visible = visible.collect::<Result<Vec<_>, _>>()?;
        let [start, end] = self.range.any;
        self.keep(&self.load(start)?)?;
        code.meet()?;
        let carried = flat(&vec![none; q.len()]);
        let carried = code.repeat([start, end, Int::Known(STEP)], &carried, |key, carried| {
            let next = self.load(code.add(key, STEP)?)?;
            code.keep_order()?;
            let sums = self.step(q, apart(carried)?, (key, &visible))?;
            code.keep_order()?;
            code.meet()?;
            self.keep(&next)?;
            code.meet()?;
            Ok(flat(&sums))
        })?;
        apart(&carried)
    }

    /// Where the keys begin and end that the lane's query of a block sees.
    fn visible(&self, block: i64, lengths: &[Int<'c>]) -> Result<[Int<'c>; 2], EmitError> {
        let code = self.code;
        let visible = &self.prefill.of.visible;
        let query = self.query(block)?;
        let mut own = self.range.any;
        if let Some(from) = visible.from {
            own[0] = code.greater(code.add(query, from)?, own[0])?;
        }
        if let Some(to) = visible.to {
            own[1] = code.lesser(code.greater(code.add(query, to + 1)?, 0)?, own[1])?;
        }
        if let Some(&queries) = lengths.first() {
            own[1] = code.select(code.is_below(query, queries)?, own[1], 0)?;
        }
        Ok(own)
    }

    /// Adds what the keys of a step have.
    fn step(
        &self,
        q: &[Vec<Ssa<'c>>],
        mut sums: Vec<Sums<'c>>,
        (key, visible): (Int<'c>, &[[Int<'c>; 2]]),
    ) -> Result<Vec<Sums<'c>>, EmitError> {
        let code = self.code;
        let scores = self.hidden(self.scores(q)?, (key, visible))?;
        let mut weights = Vec::new();
        for (scores, sums) in scores.iter().zip(&mut sums) {
            weights.push(self.weights(scores, sums)?);
        }
        let [_, values] = self.memories;
        let (width, columns) = (self.width(), self.prefill.of.columns[1]);
        let vector = self.half.vector(&[width])?;
        for block in 0..KEYS {
            let rows = (0..RUN).map(|next| {
                let row = code.add(code.mul(self.quarter, RUN)?, block * SIXTEEN + next)?;
                let place = code.add(code.mul(row, columns)?, code.mul(self.column, width)?)?;
                code.read_shared(values, place, vector)
            });
            let rows = rows.collect::<Result<Vec<_>, EmitError>>()?;
            for column in 0..width {
                let own = gathered(code, &rows, width, column)?;
                let (block, column) = (usize::try_from(block), usize::try_from(column));
                let (Ok(block), Ok(column)) = (block, column) else {
                    return Err(MISSING);
                };
                for (weights, sums) in weights.iter().zip(&mut sums) {
                    let (Some(&weights), Some(sum)) = (weights.get(block), sums.weighted.get_mut(column)) else {
                        return Err(MISSING);
                    };
                    *sum = matrix(code, [own, weights], *sum)?;
                }
            }
        }
        Ok(sums)
    }

    /// The scores of a step: for each block of queries, four keys of each block of keys.
    fn scores(&self, q: &[Vec<Ssa<'c>>]) -> Result<Vec<Vec<Ssa<'c>>>, EmitError> {
        let code = self.code;
        let [keys, _] = self.memories;
        let run = self.float.vector(&[RUN])?;
        let zeros = code.zeros(run)?;
        let scale = Attribute::float(self.prefill.of.scale * LOG2_E, self.float)?;
        let scale = code.one("arith.constant", &[], self.float, &[("value", scale)])?;
        let scale = code.one("vector.broadcast", &[scale], run, &[])?;
        let vector = self.half.vector(&[WIDE])?;
        let mut scores = vec![Vec::new(); q.len()];
        for block in 0..KEYS {
            let row = code.add(self.column, block * SIXTEEN)?;
            let read = (0..self.turns()).map(|turn| {
                let place = self.place_of_keys(row, code.add(self.quarter, 4 * turn)?)?;
                code.read_shared(keys, place, vector)
            });
            let read = read.collect::<Result<Vec<_>, EmitError>>()?;
            for (q, scores) in q.iter().zip(&mut scores) {
                let mut sum = zeros;
                for (&keys, &q) in read.iter().zip(q) {
                    for half in [[0, 1, 2, 3], [4, 5, 6, 7]] {
                        let factors = [code.shuffle([keys, keys], &half)?, code.shuffle([q, q], &half)?];
                        sum = matrix(code, factors, sum)?;
                    }
                }
                scores.push(code.same("arith.mulf", &[sum, scale])?);
            }
        }
        Ok(scores)
    }

    /// The scores with -∞ for keys that a query does not see.
    fn hidden(
        &self,
        scores: Vec<Vec<Ssa<'c>>>,
        (key, visible): (Int<'c>, &[[Int<'c>; 2]]),
    ) -> Result<Vec<Vec<Ssa<'c>>>, EmitError> {
        let code = self.code;
        if self.prefill.is_plain() {
            return Ok(scores);
        }
        let run = self.float.vector(&[RUN])?;
        let flat: Vec<_> = scores.iter().flatten().copied().collect();
        let [from, end] = self.range.all;
        let hides = code.is_below(key, from)?;
        let hides_last = code.is_below(end, code.add(key, STEP)?)?;
        let masked = || {
            // Without it the compiler makes the branch a selection, and every step compares.
            code.keep_order()?;
            let hidden = code.float(HIDDEN, self.float)?;
            let mut all = Vec::new();
            for (scores, &[from, end]) in scores.iter().zip(visible) {
                let count = code.select(code.is_below(from, end)?, code.sub(end, from)?, 0)?;
                let first = code.sub(code.add(key, code.mul(self.quarter, RUN)?)?, from)?;
                for (block, &scores) in (0..).zip(scores) {
                    let own = (0..RUN).map(|number| {
                        let score = code.extract(scores, number, self.float)?;
                        let key = code.add(first, block * SIXTEEN + number)?;
                        let Int::Made(is_visible) = code.is_below(key, count)? else {
                            return Err(MISSING);
                        };
                        code.one("arith.select", &[is_visible, score, hidden], self.float, &[])
                    });
                    let own = own.collect::<Result<Vec<_>, EmitError>>()?;
                    all.push(code.one("vector.from_elements", &own, run, &[])?);
                }
            }
            Ok(all)
        };
        let masked = code.replaced(code.or(hides, hides_last)?, &flat, masked)?;
        let each = usize::try_from(KEYS).map_err(|_| MISSING)?;
        Ok(masked.chunks(each).map(<[_]>::to_vec).collect())
    }

    /// The exponentials of a query's scores, as factors, and what is summed of them so far.
    fn weights(&self, scores: &[Ssa<'c>], sums: &mut Sums<'c>) -> Result<Vec<Ssa<'c>>, EmitError> {
        let code = self.code;
        let run = self.float.vector(&[RUN])?;
        let greatest = greatest_of(code, sums.greatest, scores, self.float)?;
        let factor = code.same("arith.subf", &[sums.greatest, greatest])?;
        let factor = code.same("rocdl.exp2", &[factor])?;
        sums.greatest = greatest;
        sums.total = code.same("arith.mulf", &[sums.total, factor])?;
        let factor = code.one("vector.broadcast", &[factor], run, &[])?;
        for sum in &mut sums.weighted {
            *sum = code.same("arith.mulf", &[*sum, factor])?;
        }
        let subtracted = code.one("vector.broadcast", &[greatest], run, &[])?;
        let mut weights = Vec::new();
        let mut all = code.zeros(run)?;
        for &scores in scores {
            let powers = code.same("arith.subf", &[scores, subtracted])?;
            let own = (0..RUN).map(|number| {
                let power = code.extract(powers, number, self.float)?;
                code.same("rocdl.exp2", &[power])
            });
            let own = own.collect::<Result<Vec<_>, EmitError>>()?;
            let own = code.one("vector.from_elements", &own, run, &[])?;
            all = code.same("arith.addf", &[all, own])?;
            weights.push(code.one("arith.truncf", &[own], self.half.vector(&[RUN])?, &[])?);
        }
        for number in 0..RUN {
            sums.total = code.same("arith.addf", &[sums.total, code.extract(all, number, self.float)?])?;
        }
        Ok(weights)
    }

    /// Stores what was found.
    pub(super) fn store(
        &self,
        sums: &[Sums<'c>],
        (out, to): (Type<'c>, Ssa<'c>),
        [to_greatest, to_total]: [Ssa<'c>; 2],
    ) -> Result<(), EmitError> {
        let code = self.code;
        let of = &self.prefill.of;
        let [batch, head, _] = self.numbers;
        let width = self.width();
        let bytes = of.out.0.bytes().unwrap_or(1).cast_signed();
        let zero = code.float("0.0", self.float)?;
        // MLIR's number of the predicate "ordered equal".
        let equal = [("predicate", Attribute::text("1 : i64"))];
        // As many elements as one instruction stores.
        let most = usize::try_from(16 / bytes).map_err(|_| MISSING)?;
        for (block, sums) in (0..).zip(sums) {
            let total = of_query(code, "arith.addf", sums.total)?;
            let nothing = code.one("arith.cmpf", &[total, zero], Type::integer(code.context(), 1), &equal)?;
            let query = self.query(block)?;
            let exists = self.exists(query)?;
            let place = of.out.1.place(code, [batch, head, query])?;
            for number in 0..RUN {
                let column = code.mul(code.add(code.mul(self.quarter, RUN)?, number)?, width)?;
                let own = sums.weighted.iter().map(|&sum| {
                    let sum = code.extract(sum, number, self.float)?;
                    let quotient = code.same("arith.divf", &[sum, total])?;
                    // Where there are no weights, the output is zero: the sum is 0 v, which may be NaN.
                    code.one("arith.select", &[nothing, zero, quotient], self.float, &[])
                });
                let own = own.collect::<Result<Vec<_>, EmitError>>()?;
                let mut next = 0;
                for elements in own.chunks(most) {
                    let count = i64::try_from(elements.len()).map_err(|_| MISSING)?;
                    let mut vector = code.one("vector.from_elements", elements, self.float.vector(&[count])?, &[])?;
                    if of.out.0 != DataType::F32 {
                        vector = code.one("arith.truncf", &[vector], out.vector(&[count])?, &[])?;
                    }
                    let place = code.sum([place, column, Int::Known(next)])?;
                    code.store(vector, to, code.select(exists, place, BEYOND / bytes)?)?;
                    next += count;
                }
            }
            // Rows lie in the order of batches, heads and queries.
            let row = code.mul(code.add(code.mul(batch, of.heads * of.group)?, head)?, of.queries)?;
            let is_first = code.and(code.is_below(self.quarter, 1)?, exists)?;
            let place = code.select(is_first, code.add(row, query)?, BEYOND / 4)?;
            code.store(sums.greatest, to_greatest, place)?;
            code.store(total, to_total, place)?;
        }
        Ok(())
    }
}
