//! The steps over streamed rows of a gradient kernel, as each lane computes them.

use super::again::Matrix;
use super::streamed::{BLOCKS, Copied, Streamed};
use super::tile::Tile;
use super::{GREATEST, MISSING, SIXTEEN, product};
use crate::counts::unsigned;
use crate::kernel::code::{Int, Ssa, gathered};
use crate::kernel::epilogue::RUN;
use crate::mlir::Name;
use std::f64::consts::LOG2_E;

/// The state of the lanes of a workgroup.
///
/// Sums are carried as one list: for each block of own rows, for each tensor whose columns are
/// summed, and for each column that a lane reads at once, the sums of four columns.
pub(super) struct Lanes<'a, 'c> {
    /// The tensors of the lane's own rows.
    pub(super) own: [Matrix<'c>; 2],
    pub(super) tile: &'a Tile<'a, 'c>,
    /// The scale of the scores.
    pub(super) scale: f64,
    /// The streamed operand of the scores, and that of the gradients of scores.
    pub(super) streamed: Streamed<'a, 'c>,
    /// The lane's own operands of the scores and of their gradients, for each block.
    pub(super) factors: [Vec<Vec<Ssa<'c>>>; 2],
    /// The softmax statistic of each query, and its sum of dO · O.
    pub(super) numbers: Numbers<'c>,
    /// The range of rows that the lane's row of each block sees.
    pub(super) seen: Vec<[Int<'c>; 2]>,
}

/// Two f32 numbers per query: the statistic, as it is [subtracted], and the sum of dO · O.
pub(super) enum Numbers<'c> {
    /// The numbers of the lane's own row of each block, broadcast to vectors.
    Own(Vec<[Ssa<'c>; 2]>),
    /// The buffers with the numbers of streamed rows. `extents`: heads per batch, rows per head. In
    /// each step a lane loads the numbers of one row: the 16 lanes of a quarter hold all the
    /// numbers that the quarter needs.
    Streamed { buffers: [Ssa<'c>; 2], extents: [i64; 2] },
}

impl<'c> Numbers<'c> {
    /// Loads both numbers of the lane's query in each block. `first`: the offset of the head's
    /// first query.
    pub(super) fn own(tile: &Tile<'_, 'c>, buffers: [Ssa<'c>; 2], first: Int<'c>) -> Self {
        let code = tile.code;
        let run = tile.float.vector(&[RUN]);
        let block = |block: i64| {
            let query = tile.row(block);
            let place = code.masked(tile.exists(query), first + query, buffers[0]);
            let [statistic, other] = buffers.map(|buffer| code.load(buffer, place, tile.float));
            [subtracted(tile, statistic), other].map(|number| number.broadcast(run))
        };
        let numbers = (0..tile.own.blocks()).map(block);
        Numbers::Own(numbers.collect())
    }
}

impl<'c> Lanes<'_, 'c> {
    /// Returns the streamed tensors whose columns are summed: both, if the streamed rows are
    /// queries.
    fn summed(&self) -> &[Copied<'c>] {
        let [first, _] = &self.streamed.copied;
        match self.numbers {
            Numbers::Own(_) => std::slice::from_ref(first),
            Numbers::Streamed { .. } => &self.streamed.copied,
        }
    }

    /// Returns zeroed sums.
    pub(super) fn none(&self) -> Vec<Ssa<'c>> {
        let zeros = self.tile.code.zeros(self.tile.float.vector(&[RUN]));
        let width: i64 = self.summed().iter().map(Copied::width).sum();
        let count = unsigned(self.tile.own.blocks() * width);
        vec![zeros; count]
    }

    /// Splits the list of sums: for each block, the sums of each tensor.
    pub(super) fn apart(&self, sums: &[Ssa<'c>]) -> Vec<Vec<Vec<Ssa<'c>>>> {
        let mut rest = sums.iter().copied();
        let block = |_| {
            let of_tensor = |copied: &Copied<'c>| {
                let width = unsigned(copied.width());
                rest.by_ref().take(width).collect()
            };
            self.summed().iter().map(of_tensor).collect()
        };
        (0..self.tile.own.blocks()).map(block).collect()
    }

    /// Returns the sums. Those of rows with NaN are recomputed from only the rows that are visible
    /// to them. The streamed rows are those of the heads from `first_head` to before `end_head`.
    pub(super) fn mended(
        &self,
        sums: &[Ssa<'c>],
        [batch, own_head]: [Int<'c>; 2],
        [first_head, end_head]: [Int<'c>; 2],
    ) -> Vec<Ssa<'c>> {
        let (code, tile) = (self.tile.code, self.tile);
        let again = tile.again();
        let streamed = self.streamed.copied.each_ref().map(Copied::matrix);
        let scale = code.float(self.scale * LOG2_E, tile.float);
        let mut all = Vec::new();
        for ((number, block), &[from, end]) in (0..).zip(self.apart(sums)).zip(&self.seen) {
            let row = tile.row(number);
            let both = block.concat();
            all.extend(again.mended(&both, tile.exists(row), || {
                let [own_scores, own_gradients] = self.own.map(|own| own.row([batch, own_head, row]));
                let mut none = Vec::new();
                for copied in self.summed() {
                    none.extend(again.none(copied.columns));
                }
                let heads = [first_head, end_head, Int::Known(1)];
                code.repeat(heads, &none, |head, sums| {
                    code.repeat([from, end, Int::Known(1)], sums, |other, sums| {
                        let [scores, gradients] = streamed.map(|matrix| matrix.row([batch, head, other]));
                        let score = again.dot([own_scores, scores], streamed[0].columns);
                        let reached = again.dot([own_gradients, gradients], streamed[1].columns);
                        let [statistic, level] = self.numbers_of([batch, head, other], number);
                        let weight = score.fma(scale, statistic);
                        let weight = code.same(Name::RocdlExp2, &[weight]);
                        let gradient = reached - level;
                        let gradient = weight * gradient;
                        let each = unsigned(RUN);
                        let rows = [(gradient, scores), (weight, gradients)];
                        let mut next = Vec::new();
                        for ((sums, copied), (factor, row)) in sums.chunks(each).zip(self.summed()).zip(rows) {
                            next.extend(again.added(sums, factor, (row, copied.columns)));
                        }
                        next
                    })
                })
            }));
        }
        all
    }

    /// Returns both numbers of a query: of the lane's own row in a block, or of a streamed row.
    fn numbers_of(&self, [batch, head, row]: [Int<'c>; 3], block: i64) -> [Ssa<'c>; 2] {
        let (code, tile) = (self.tile.code, self.tile);
        match &self.numbers {
            Numbers::Own(numbers) => numbers[unsigned(block)].map(|number| code.extract(number, 0, tile.float)),
            &Numbers::Streamed {
                buffers,
                extents: [heads, count],
            } => {
                let place = (batch * heads + head) * count + row;
                let [statistic, level] = buffers.map(|buffer| code.load(buffer, place, tile.float));
                [subtracted(tile, statistic), level]
            }
        }
    }

    /// Adds the contributions of the streamed rows of a head.
    pub(super) fn sums(&self, head: [Int<'c>; 2], sums: &[Ssa<'c>]) -> Vec<Ssa<'c>> {
        let numbers = |first| self.streamed_numbers(head, first);
        self.streamed
            .walk(head, sums, numbers, |step, sums| self.step(step, sums))
    }

    /// Loads both numbers of one row of the step that begins with the row `first`, if the streamed
    /// rows are queries.
    fn streamed_numbers(&self, [batch, head]: [Int<'c>; 2], first: Int<'c>) -> Vec<Ssa<'c>> {
        let &Numbers::Streamed {
            buffers,
            extents: [heads, count],
        } = &self.numbers
        else {
            return Vec::new();
        };
        let (code, tile) = (self.tile.code, self.tile);
        let shared = (batch * heads + head) * count + first;
        let row = tile.column / RUN * SIXTEEN;
        let mut row = Int::sum([row, tile.quarter * RUN, tile.column % RUN]);
        if !tile.own.is_plain() {
            row = code.masked((first + row).is_below(tile.range.any[1]), row, buffers[0]);
        }
        let [statistic, other] = buffers.map(|buffer| code.load_uniform(buffer, row, shared, tile.float));
        vec![subtracted(tile, statistic), other]
    }

    fn step(&self, step: (Int<'c>, &[Ssa<'c>]), sums: &[Ssa<'c>]) -> Vec<Ssa<'c>> {
        let code = self.tile.code;
        let factors = self.weights(step);
        let mut sums = self.apart(sums);
        for (number, block) in (0..BLOCKS).enumerate() {
            for (tensor, copied) in self.summed().iter().enumerate() {
                let rows = copied.columns(self.tile, block);
                for (at, column) in (0..copied.width()).enumerate() {
                    let own = gathered(code, &rows, copied.width(), column);
                    for (factors, sums) in factors.iter().zip(&mut sums) {
                        let sum = &mut sums[tensor][at];
                        *sum = code.mfma([own, factors[tensor][number]], *sum);
                    }
                }
            }
        }
        sums.into_iter().flatten().flatten().collect()
    }

    /// Computes the gradients of the scores and the probabilities of one step: for each block of
    /// own rows, those of four rows of each block of streamed rows.
    fn weights(&self, (first, kept): (Int<'c>, &[Ssa<'c>])) -> Vec<[Vec<Ssa<'c>>; 2]> {
        let (code, tile) = (self.tile.code, self.tile);
        let run = tile.float.vector(&[RUN]);
        let zeros = code.zeros(run);
        let scale = code.float(self.scale * LOG2_E, tile.float).broadcast(run);
        let mut numbers = vec![[Vec::new(), Vec::new()]; self.factors[0].len()];
        for block in 0..BLOCKS {
            let [of_scores, of_gradients] = &self.streamed.copied;
            let rows = [of_scores.rows(tile, block), of_gradients.rows(tile, block)];
            let streamed = match kept {
                &[statistic, level] => Some([of_rows(tile, statistic, block), of_rows(tile, level, block)]),
                _ => None,
            };
            for (at, made) in numbers.iter_mut().enumerate() {
                let [score, gradient] =
                    [0, 1].map(|side: usize| product(code, [&rows[side], &self.factors[side][at]], zeros));
                let own = match &self.numbers {
                    Numbers::Own(numbers) => numbers.get(at).copied(),
                    Numbers::Streamed { .. } => streamed,
                };
                let [statistic, level] = own.expect(MISSING);
                let powers = score.fma(scale, statistic);
                let weights: Vec<_> = (0..RUN)
                    .map(|number| {
                        let power = code.extract(powers, number, tile.float);
                        code.same(Name::RocdlExp2, &[power])
                    })
                    .collect();
                let weights = code.vector(&weights, run);
                let gradient = gradient - level;
                let [gradients, own] = made;
                gradients.push(weights * gradient);
                own.push(weights);
            }
        }
        let blocks = unsigned(BLOCKS);
        let numbers = numbers
            .into_iter()
            .map(|[gradients, weights]| [gradients, weights].concat());
        // Masked positions get the weight 0, whatever their values are.
        let seen = tile.hidden(numbers.collect(), (first, &self.seen), &["0.0", "0.0"]);
        let narrow = tile.half.vector(&[RUN]);
        let narrowed = |numbers: &[Ssa<'c>]| {
            let own = numbers.iter().map(|&number| number.truncf(narrow));
            own.collect::<Vec<_>>()
        };
        let block = |numbers: Vec<Ssa<'c>>| {
            let (gradients, weights) = numbers.split_at(blocks);
            [narrowed(gradients), narrowed(weights)]
        };
        seen.into_iter().map(block).collect()
    }
}

/// Converts a statistic to the summand of scores in powers of 2. It is finite, so that exponentials
/// are 0, not exp(-∞ + ∞), where a row's statistic and scores are -∞.
fn subtracted<'c>(tile: &Tile<'_, 'c>, statistic: Ssa<'c>) -> Ssa<'c> {
    let code = tile.code;
    let factor = code.float(-LOG2_E, tile.float);
    let subtracted = statistic * factor;
    code.limited(subtracted, code.float_text(GREATEST, tile.float), true)
}

/// Gathers the numbers of the lane's four rows of a block from the 16 lanes that each hold the
/// number of one row.
fn of_rows<'c>(tile: &Tile<'_, 'c>, number: Ssa<'c>, block: i64) -> Ssa<'c> {
    let own: Vec<_> = (0..RUN)
        .map(|row| tile.code.broadcast_of_sixteen(number, block * RUN + row))
        .collect();
    tile.code.vector(&own, tile.float.vector(&[RUN]))
}
