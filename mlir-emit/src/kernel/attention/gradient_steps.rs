//! What the lanes of a kernel of gradients do: the steps over passing rows.

use super::passing::{self, BLOCKS, Copied, Passing, subtracted};
use super::tile::Tile;
use super::{MISSING, product};
use crate::EmitError;
use crate::kernel::code::{Int, Ssa, gathered};
use crate::kernel::epilogue::RUN;
use crate::kernel::gemm::matrix;
use crate::kernel::places::BEYOND;
use crate::mlir::Attribute;
use std::f64::consts::LOG2_E;

/// What the lanes of a workgroup have.
///
/// Sums are carried as a list: for each block of own rows, and of it for each tensor of which columns are summed, and of it for each column that a
/// lane reads at once, the sums of four columns.
pub(super) struct Lanes<'a, 'c> {
    pub(super) tile: &'a Tile<'a, 'c>,
    /// Of scores.
    pub(super) scale: f64,
    /// What scores are made of, and what their gradients are made of.
    pub(super) passing: Passing<'a, 'c>,
    /// The same of the lane's own rows, for each block.
    pub(super) factors: [Vec<Vec<Ssa<'c>>>; 2],
    /// Both numbers of the lane's query of each block, in all elements of a vector. Without them, passing rows have them.
    pub(super) numbers: Vec<[Ssa<'c>; 2]>,
    /// Which rows the lane's row of each block sees.
    pub(super) seen: Vec<[Int<'c>; 2]>,
}

impl<'c> Lanes<'_, 'c> {
    /// Both numbers of the lane's query of each block, of a head whose first query this is.
    pub(super) fn own_numbers(&self, buffers: [Ssa<'c>; 2], first: Int<'c>) -> Result<Vec<[Ssa<'c>; 2]>, EmitError> {
        let (code, tile) = (self.tile.code, self.tile);
        let run = tile.float.vector(&[RUN])?;
        let block = |block: i64| {
            let query = tile.row(block)?;
            let place = code.select(tile.exists(query)?, code.add(first, query)?, BEYOND / 4)?;
            let [statistic, other] = buffers.map(|buffer| code.load(buffer, (place, Int::Known(0)), tile.float));
            let both = [subtracted(tile, statistic?)?, other?];
            let [statistic, other] = both.map(|number| code.one("vector.broadcast", &[number], run, &[]));
            Ok([statistic?, other?])
        };
        (0..tile.own.blocks()).map(block).collect()
    }

    /// The tensors of which columns are summed: where passing rows are queries, both.
    fn summed(&self) -> &[Copied<'c>] {
        let count = if self.passing.numbers.is_some() { 2 } else { 1 };
        self.passing.copied.get(..count).unwrap_or(&self.passing.copied)
    }

    /// No sums.
    pub(super) fn none(&self) -> Result<Vec<Ssa<'c>>, EmitError> {
        let zeros = self.tile.code.zeros(self.tile.float.vector(&[RUN])?)?;
        let width: i64 = self.summed().iter().map(Copied::width).sum();
        let count = usize::try_from(self.tile.own.blocks() * width).map_err(|_| MISSING)?;
        Ok(vec![zeros; count])
    }

    /// Sums apart: for each block, those of each tensor.
    pub(super) fn apart(&self, sums: &[Ssa<'c>]) -> Result<Vec<Vec<Vec<Ssa<'c>>>>, EmitError> {
        let mut rest = sums.iter().copied();
        let block = |_| {
            let of_tensor = |copied: &Copied<'c>| {
                let width = usize::try_from(copied.width()).map_err(|_| MISSING)?;
                Ok(rest.by_ref().take(width).collect())
            };
            self.summed().iter().map(of_tensor).collect()
        };
        (0..self.tile.own.blocks()).map(block).collect()
    }

    /// Adds what the rows of a head have.
    pub(super) fn sums(&self, head: [Int<'c>; 2], sums: &[Ssa<'c>]) -> Result<Vec<Ssa<'c>>, EmitError> {
        self.passing
            .walk(head, sums, |first, sums, numbers| self.step((first, numbers), sums))
    }

    fn step(&self, step: (Int<'c>, &[Ssa<'c>]), sums: &[Ssa<'c>]) -> Result<Vec<Ssa<'c>>, EmitError> {
        let code = self.tile.code;
        let factors = self.weights(step)?;
        let mut sums = self.apart(sums)?;
        for (number, block) in (0..BLOCKS).enumerate() {
            for (tensor, copied) in self.summed().iter().enumerate() {
                let rows = copied.columns(self.tile, block)?;
                for (at, column) in (0..copied.width()).enumerate() {
                    let own = gathered(code, &rows, copied.width(), column)?;
                    for (factors, sums) in factors.iter().zip(&mut sums) {
                        let factor = factors.get(tensor).and_then(|factors| factors.get(number));
                        let sum = sums.get_mut(tensor).and_then(|sums| sums.get_mut(at));
                        let (Some(&factor), Some(sum)) = (factor, sum) else {
                            return Err(MISSING);
                        };
                        *sum = matrix(code, [own, factor], *sum)?;
                    }
                }
            }
        }
        Ok(sums.into_iter().flatten().flatten().collect())
    }

    /// Of a step, for each block of own rows: the gradients of scores, and the weights, of four rows of each block of passing rows.
    fn weights(&self, (first, of_rows): (Int<'c>, &[Ssa<'c>])) -> Result<Vec<[Vec<Ssa<'c>>; 2]>, EmitError> {
        let (code, tile) = (self.tile.code, self.tile);
        let run = tile.float.vector(&[RUN])?;
        let zeros = code.zeros(run)?;
        let scale = Attribute::float(self.scale * LOG2_E, tile.float)?;
        let scale = code.one("arith.constant", &[], tile.float, &[("value", scale)])?;
        let scale = code.one("vector.broadcast", &[scale], run, &[])?;
        let mut numbers = vec![[Vec::new(), Vec::new()]; self.factors[0].len()];
        for block in 0..BLOCKS {
            let [of_scores, of_gradients] = &self.passing.copied;
            let rows = [of_scores.rows(tile, block)?, of_gradients.rows(tile, block)?];
            let passing = match of_rows {
                &[statistic, level] => Some([
                    passing::of_rows(tile, statistic, block)?,
                    passing::of_rows(tile, level, block)?,
                ]),
                _ => None,
            };
            for (at, made) in numbers.iter_mut().enumerate() {
                let [score, gradient] = [0, 1].map(|side: usize| {
                    let own = self
                        .factors
                        .get(side)
                        .and_then(|factors| factors.get(at))
                        .ok_or(MISSING)?;
                    product(code, [rows.get(side).ok_or(MISSING)?, own], zeros)
                });
                let [statistic, level] = passing.or_else(|| self.numbers.get(at).copied()).ok_or(MISSING)?;
                let powers = code.same("math.fma", &[score?, scale, statistic])?;
                let weights = (0..RUN).map(|number| {
                    let power = code.extract(powers, number, tile.float)?;
                    code.same("rocdl.exp2", &[power])
                });
                let weights = weights.collect::<Result<Vec<_>, EmitError>>()?;
                let weights = code.one("vector.from_elements", &weights, run, &[])?;
                let gradient = code.same("arith.subf", &[gradient?, level])?;
                let [gradients, own] = made;
                gradients.push(code.same("arith.mulf", &[weights, gradient])?);
                own.push(weights);
            }
        }
        let blocks = usize::try_from(BLOCKS).map_err(|_| MISSING)?;
        let numbers = numbers
            .into_iter()
            .map(|[gradients, weights]| [gradients, weights].concat());
        // What a row does not see weighs nothing, whatever it is.
        let seen = tile.hidden(numbers.collect(), (first, &self.seen), &["0.0", "0.0"])?;
        let narrow = tile.half.vector(&[RUN])?;
        let narrowed = |numbers: &[Ssa<'c>]| {
            let own = numbers
                .iter()
                .map(|&number| code.one("arith.truncf", &[number], narrow, &[]));
            own.collect::<Result<Vec<_>, EmitError>>()
        };
        let block = |numbers: Vec<Ssa<'c>>| {
            let (gradients, weights) = numbers.split_at_checked(blocks).ok_or(MISSING)?;
            Ok([narrowed(gradients)?, narrowed(weights)?])
        };
        seen.into_iter().map(block).collect()
    }
}
