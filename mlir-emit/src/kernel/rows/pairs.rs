//! Rows that begin at any element, loaded and stored in pairs of elements.
//!
//! Example: rows of 129 elements of f16. Every other row begins in the middle of a word of four
//! bytes, so lanes that count from the row's beginning would load each element by itself. Here they
//! count from the beginning of the word: the first pair of such a row has one element of the row,
//! and the row has a shift of one.

use super::problem::Rows;
use crate::counts::exactly;
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::{RUN, Spot, Tensor};
use crate::kernel::places::offset;
use rotini_schedule::rows::Schedule;

/// Elements per pair.
pub(super) const PAIR: i64 = 2;
/// Bytes per word. The hardware loads only aligned words.
const WORD: i64 = 4;

const MISSING: &str = "a pair that is missing";

/// The tensors that are loaded and stored in pairs.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The row strides that give a row's shift: those of the first 16-bit tensor with an odd one,
    /// else of the first 16-bit tensor. Empty without 16-bit tensors.
    rows: Vec<i64>,
    length: i64,
}

impl Pairs {
    /// Returns the pairs for rows that are not loaded in longer runs; `None` if no tensor has
    /// pairs.
    pub(super) fn of(rows: &Rows<'_>, schedule: &Schedule) -> Option<Self> {
        let &[length] = rows.columns.as_slice() else {
            return None;
        };
        // With other lengths, a lane's last run has room for the shift.
        if length % RUN == 0 || schedule.each > 1 {
            return None;
        }
        let has_rows = |tensor: &&Tensor<'_>| tensor.spread.rows.iter().any(|&stride| stride != 0);
        let is_half = |tensor: &&Tensor<'_>| is_dense(tensor) && tensor.bytes() * PAIR == WORD;
        let halves = || rows.tensors().filter(has_rows).filter(is_half);
        let is_shifted = |tensor: &&Tensor<'_>| tensor.spread.rows.iter().any(|stride| stride % PAIR != 0);
        let first = halves().find(is_shifted).or_else(|| halves().next());
        let pairs = Pairs {
            rows: first.map(|tensor| tensor.spread.rows.clone()).unwrap_or_default(),
            length,
        };
        rows.tensors().any(|tensor| pairs.have(tensor)).then_some(pairs)
    }

    /// Returns whether a tensor is loaded or stored in pairs. In all such tensors each row has the
    /// same shift.
    pub(super) fn have(&self, tensor: &Tensor<'_>) -> bool {
        let same = |(a, b): (&i64, &i64)| (a - b) % PAIR == 0;
        let has_shift = tensor.spread.rows.iter().zip(&self.rows).all(same);
        is_dense(tensor) && has_shift && [WORD, WORD / PAIR].contains(&tensor.bytes())
    }

    /// Returns the shift of a row: 0 or 1.
    pub(super) fn shift<'c>(&self, row: &[Int<'c>]) -> Int<'c> {
        if self.rows.iter().all(|stride| stride % PAIR == 0) {
            return Int::Known(0);
        }
        offset(row, &self.rows) % PAIR
    }

    /// Loads the last element of the row, if the tensor ends within a pair: of a load that is
    /// partly beyond the end the hardware may read nothing. Returns `None` if no pair can lose an
    /// element.
    pub(super) fn last<'c>(
        &self,
        code: &Code<'c>,
        (tensor, buffer): (&Tensor<'c>, Ssa<'c>),
        row: &[Int<'c>],
    ) -> Option<Ssa<'c>> {
        if !self.have(tensor) || tensor.elements() % PAIR == 0 {
            return None;
        }
        let place = offset(row, &tensor.spread.rows) + (self.length - 1);
        Some(code.load(buffer, place, tensor.element))
    }

    /// Returns whether only the first half of a pair has an element, the row's last, and whether
    /// only the second half has one, the row's first.
    fn halves<'c>(&self, spot: &Spot<'_, 'c>, pair: i64) -> [Int<'c>; 2] {
        let (element, [first, second]) = (element(spot, pair), exist(spot, pair));
        let is_last = match second {
            Int::Known(1) => Int::Known(0),
            _ => first & Int::Known(self.length - PAIR).is_below(element),
        };
        let is_first = match first {
            Int::Known(1) => Int::Known(0),
            // As an unsigned number, -1 is above all others.
            _ => second & Int::Known(self.length).is_below(element),
        };
        [is_last, is_first]
    }

    /// Loads a run of a tensor. `last`: the result of [`last`](Self::last).
    pub(super) fn load<'c>(
        &self,
        code: &Code<'c>,
        (tensor, buffer, last): (&Tensor<'c>, Ssa<'c>, Option<Ssa<'c>>),
        spot: &Spot<'_, 'c>,
    ) -> Ssa<'c> {
        let base = offset(spot.rows, &tensor.spread.rows);
        let vector = tensor.element.vector(&[PAIR]);
        let mut pairs = Vec::new();
        for pair in 0..RUN / PAIR {
            let [first, second] = exist(spot, pair);
            let place = base + element(spot, pair);
            let place = code.masked(first | second, place, buffer);
            let mut loaded = code.load(buffer, place, vector);
            let [is_last, _] = self.halves(spot, pair);
            if let (Some(last), Int::Made(is_last)) = (last, is_last) {
                let elements = [0, 1].map(|number| code.extract(loaded, number, tensor.element));
                let [own, next] = elements;
                let own = is_last.select(last, own);
                loaded = code.vector(&[own, next], vector);
            }
            pairs.push(loaded);
        }
        let [a, b] = exactly(&pairs);
        code.shuffle([a, b], &[0, 1, 2, 3])
    }

    /// Stores a run of a tensor.
    pub(super) fn store<'c>(
        &self,
        code: &Code<'c>,
        (value, tensor, buffer): (Ssa<'c>, &Tensor<'c>, Ssa<'c>),
        spot: &Spot<'_, 'c>,
    ) {
        let base = offset(spot.rows, &tensor.spread.rows);
        for pair in 0..RUN / PAIR {
            let [first, second] = exist(spot, pair);
            let place = base + element(spot, pair);
            let both = code.shuffle([value, value], &[pair * PAIR, pair * PAIR + 1]);
            code.store(both, buffer, code.masked(first & second, place, buffer));
            let [is_last, is_first] = self.halves(spot, pair);
            for (number, is_there) in [(0, is_last), (1, is_first)] {
                // Few lanes have such a pair, and most subgroups have none.
                code.when(is_there, || {
                    let element = code.extract(value, pair * PAIR + number, tensor.element);
                    let place = code.masked(is_there, place + number, buffer);
                    code.store(element, buffer, place);
                });
            }
        }
    }
}

/// Returns the index in its row of a pair's first element: -1 before the row.
fn element<'c>(spot: &Spot<'_, 'c>, pair: i64) -> Int<'c> {
    let number = usize::try_from(pair * PAIR).ok();
    let element = number.and_then(|number| spot.run.get(number)?.first());
    element.copied().expect(MISSING)
}

/// Returns whether each element of a pair exists.
fn exist<'c>(spot: &Spot<'_, 'c>, pair: i64) -> [Int<'c>; 2] {
    let number = usize::try_from(pair * PAIR).ok();
    let exists = number.and_then(|number| spot.exists.get(number..)?.first_chunk());
    exists.copied().expect(MISSING)
}

/// Returns whether elements of a row are contiguous in memory.
fn is_dense(tensor: &Tensor<'_>) -> bool {
    tensor.spread.columns == [1]
}
