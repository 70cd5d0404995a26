//! A lane's elements: their positions in the row, and their values.

use super::{MISSING, Run, Writer};
use crate::kernel::code::{Int, Ssa};
use crate::kernel::epilogue::{RUN, Source, Spot, load, written_with};
use crate::kernel::places::coordinates;
use crate::kernel::rows::pairs;
use crate::kernel::rows::parts::Cut;
use crate::kernel::rows::problem::Kind;
use crate::kernel::rows::quotient::products;
use crate::mlir::Type;

impl<'c> Writer<'_, 'c> {
    /// Returns one of the lane's runs, by its index.
    pub(super) fn run(&self, number: Int<'c>) -> Run<'c> {
        let (lanes, Cut { parts, length, .. }) = (self.schedule.lanes.cast_signed(), self.cut);
        let rest = self.rows.length() - (parts - 1) * length;
        let last = self.row.shift + rest;
        let end = if rest == *length {
            last
        } else {
            self.row.part.is_below(parts - 1).select(*length, last)
        };
        let first_of_part = self.row.part * *length;
        let is_side_by_side = self.extent % RUN == 0;
        let mut run = Run::default();
        for next in 0..RUN {
            // A lane has `width` contiguous elements, and then others further on.
            let width = match self.pairs {
                _ if is_side_by_side => RUN,
                Some(_) => pairs::PAIR,
                None => 1,
            };
            let group = number * (RUN / width) + next / width;
            let first = (group * lanes + self.within) * width;
            let element = first + next % width;
            // All runs but the last are whole, and the last may be.
            let is_whole = match number {
                Int::Known(number) => (number + 1) * lanes * RUN <= rest,
                Int::Made(_) => false,
            };
            let is_in_row = element.is_below_unless(is_whole, end);
            let place = element + first_of_part;
            // The first pair may begin before the row.
            let may_be_before = next == 0 && !matches!(number, Int::Known(1..));
            let is_begun = match self.row.shift {
                shift @ Int::Made(_) if may_be_before => shift.is_below(place + 1),
                _ => Int::Known(1),
            };
            let exists = self.row.exists & (is_begun & is_in_row);
            run.exists.push(exists);
            let place = place - self.row.shift;
            run.indices.push(coordinates(place, &self.rows.columns));
        }
        run
    }

    /// Returns the elements of a value in a run.
    pub(super) fn element(&self, source: Source, run: &mut Run<'c>) -> Ssa<'c> {
        if let Some(&made) = run.made.get(&source) {
            return made;
        }
        let code = &self.code;
        let made = if let Some(&one) = self.row.made.get(&source) {
            one.broadcast(one.r#type().vector(&[RUN]))
        } else {
            match source {
                Source::Operand(number) => {
                    let tensor = &self.rows.operands[number];
                    let buffer = self.buffers[number];
                    match self.pairs.as_ref().filter(|pairs| pairs.have(tensor)) {
                        Some(pairs) => {
                            let last = self.row.lasts.get(number).copied().flatten();
                            pairs.load(code, (tensor, buffer, last), &self.spot(run))
                        }
                        None => load(code, tensor, buffer, &self.spot(run), self.extent),
                    }
                }
                Source::Step(number) => {
                    let step = self.rows.steps.get(number).filter(|step| step.kind == Kind::Element);
                    let step = step.expect(MISSING);
                    let known = step.known(|source| self.element(source, run));
                    let division = self.divisions.get(&number);
                    let division = division.and_then(|one| Some((one.result, *self.row.made.get(&one.divisor)?)));
                    written_with(code, &step.body, known, Some(RUN), |result, operands| {
                        let (_, divisor) = division.filter(|(division, _)| *division == result)?;
                        Some(products(code, *operands.first()?, divisor))
                    })
                }
                Source::Sums | Source::Unused => unreachable!("{MISSING}"),
            }
        };
        run.made.insert(source, made);
        made
    }

    /// Replaces the elements outside the row by those of `otherwise`.
    pub(super) fn if_there(&self, value: Ssa<'c>, otherwise: Ssa<'c>, exists: &[Int<'c>]) -> Ssa<'c> {
        // All elements are known to exist, as in whole runs.
        if exists.iter().all(|exists| matches!(exists, Int::Known(1))) {
            return value;
        }
        let code = &self.code;
        let bit = Type::integer(code.context(), 1);
        let truth = |exists: &Int<'c>| match *exists {
            Int::Made(value) => value,
            Int::Known(known) => code.integer(known, bit),
        };
        let exists = exists.iter().map(truth).collect::<Vec<_>>();
        let condition = if self.extent % RUN == 0 {
            exists[0]
        } else {
            code.vector(&exists, bit.vector(&[RUN]))
        };
        condition.select(value, otherwise)
    }

    pub(super) fn spot<'a>(&'a self, run: &'a Run<'c>) -> Spot<'a, 'c> {
        Spot {
            batch: &[],
            rows: &self.row.indices,
            columns: &run.indices[0],
            run: &run.indices,
            goes_along_columns: true,
            exists: &run.exists,
        }
    }
}
