//! Writes the kernel of a fused row reduction.
//!
//! Each reduction is a pass over the row, and the last pass stores the results. A pass goes through
//! a lane's runs of four elements. If a lane keeps its runs in registers, the values of each run
//! are computed once for all passes; if not, each pass is a loop that loads the runs again. A lane
//! with several rows loads all of them first, and loads their common operands once. If several
//! workgroups share a row, each has one part of it ([`Cut`]).

mod elements;

use super::lanes::{combine, combine_all, memory};
use super::pairs::Pairs;
use super::parts::Cut;
use super::problem::{Kind, Rows, Step};
use super::quotient::Division;
use crate::counts::{ceil_div, exactly};
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::{RUN, Source, Tensor, store, written};
use crate::kernel::places::{coordinates, offset};
use crate::mlir::Attribute;
use rotini_schedule::rows::Schedule;
use std::collections::HashMap;

const MISSING: &str = "a value that a kernel of rows lacks";

/// The state of a lane's run of elements.
#[derive(Default)]
struct Run<'c> {
    /// For each element, its index along each loop of a row.
    indices: Vec<Vec<Int<'c>>>,
    /// For each element, whether it is inside the row.
    exists: Vec<Int<'c>>,
    /// The values computed so far.
    made: HashMap<Source, Ssa<'c>>,
}

struct Writer<'a, 'c> {
    code: Code<'c>,
    rows: &'a Rows<'c>,
    /// Divisions that are replaced by products, by the indices of their steps.
    divisions: &'a HashMap<usize, Division>,
    cut: &'a Cut,
    schedule: &'a Schedule,
    buffers: Vec<Ssa<'c>>,
    /// The lane's index in its row.
    within: Int<'c>,
    /// The extent that decides whether runs are contiguous in memory.
    extent: i64,
    /// The tensors that are accessed in pairs, if runs are not contiguous.
    pairs: Option<Pairs>,
    /// The row that is being written.
    row: Row<'c>,
}

/// The state of a lane's row.
struct Row<'c> {
    /// The index along each loop over rows.
    indices: Vec<Int<'c>>,
    /// The part of the row that the lane has.
    part: Int<'c>,
    /// Whether the row exists.
    exists: Int<'c>,
    /// The shift of the row: the number of elements by which the first pair begins before it.
    shift: Int<'c>,
    /// The last elements of operands whose last pair may lose them.
    lasts: Vec<Option<Ssa<'c>>>,
    /// Values with one element per row.
    made: HashMap<Source, Ssa<'c>>,
    /// The runs that the lane keeps in registers.
    kept: Vec<Run<'c>>,
}

impl Row<'_> {
    /// The placeholder until the first row is written.
    fn nowhere() -> Self {
        Row {
            indices: Vec::new(),
            part: Int::Known(0),
            exists: Int::Known(0),
            shift: Int::Known(0),
            lasts: Vec::new(),
            made: HashMap::new(),
            kept: Vec::new(),
        }
    }
}

/// Writes the body, and returns the number of workgroups. The buffers are the operands and the
/// results.
pub(super) fn write<'c>(
    (code, buffers): (&Code<'c>, &[Ssa<'c>]),
    (rows, divisions): (&Rows<'c>, &HashMap<usize, Division>),
    cut: &Cut,
    schedule: &Schedule,
) -> i64 {
    let (lane, workgroup) = (code.lane(), code.workgroup());
    let (lanes, each) = (schedule.lanes.cast_signed(), schedule.each.cast_signed());
    let together = schedule.rows().cast_signed();
    let across = cut.across(rows);
    let count = rows.rows.iter().product::<i64>() * across;
    // The index of the row's part, and whether the row exists.
    let place = |turn: i64| {
        let group = workgroup * each + turn;
        let number = group * together + lane / lanes;
        (number, number.is_below_unless(count % (together * each) == 0, count))
    };
    let first = place(0);
    let within = lane % lanes;
    let mut places = vec![first];
    for turn in 1..each {
        places.push(place(turn));
    }
    // Runs are contiguous if they are contiguous in all tensors; otherwise an element's neighbours
    // are in other lanes.
    let last = rows.columns.last().copied().unwrap_or(1);
    let lies_well = |tensor: &Tensor<'_>| tensor.is_same(true) || tensor.is_run(true, last);
    let extent = if rows.tensors().all(lies_well) { last } else { 1 };
    let pairs = if extent % RUN == 0 {
        None
    } else {
        Pairs::of(rows, schedule)
    };
    let mut writer = Writer {
        code: *code,
        rows,
        divisions,
        cut,
        schedule,
        buffers: buffers.to_vec(),
        within,
        extent,
        pairs,
        row: Row::nowhere(),
    };
    writer.rows(lane, &places);
    let of_group = together * each;
    ceil_div(count, of_group)
}

impl<'c> Writer<'_, 'c> {
    /// Writes the work of a lane on its rows.
    fn rows(&mut self, lane: Int<'c>, places: &[(Int<'c>, Int<'c>)]) {
        let mut all: Vec<Row<'c>> = Vec::new();
        let across = self.cut.across(self.rows);
        for &(number, exists) in places {
            let (number, part) = (number / across, number % across);
            let indices = coordinates(number, &self.rows.rows);
            let made = self.load_rows(&indices, exists);
            let shift = self.pairs.as_ref().map(|pairs| pairs.shift(&indices));
            let operands = self.rows.operands.iter().zip(&self.buffers);
            let lasts = self.pairs.iter().flat_map(|pairs| {
                let last = |(tensor, &buffer)| pairs.last(&self.code, (tensor, buffer), &indices);
                operands.clone().map(last)
            });
            self.row = Row {
                shift: shift.unwrap_or(Int::Known(0)),
                lasts: lasts.collect(),
                indices,
                part,
                exists,
                made,
                kept: Vec::new(),
            };
            if self.schedule.at_once.is_none() {
                self.row.kept = self.kept(all.first());
            }
            all.push(std::mem::replace(&mut self.row, Row::nowhere()));
        }
        let is_found = |(number, step): (usize, &Step)| {
            let is_known = self.cut.known.contains_key(&number) || self.cut.left.contains(&number);
            matches!(step.kind, Kind::Reduction(_)) && !is_known
        };
        let memory = if self.rows.steps.iter().enumerate().any(is_found) {
            memory(&self.code, self.schedule)
        } else {
            None
        };
        let mut turns = [0, 1].into_iter().cycle();
        for row in all {
            self.row = row;
            self.passes(lane, memory, &mut turns);
        }
    }

    /// Returns the runs of a row that the lane keeps in registers. With several rows per lane, all
    /// rows are loaded before the first is used. `first`: a row that has loaded the operands that
    /// rows have in common.
    fn kept(&self, first: Option<&Row<'c>>) -> Vec<Run<'c>> {
        let numbers = 0..self.schedule.runs.cast_signed();
        let mut kept: Vec<Run<'c>> = numbers.map(|number| self.run(Int::Known(number))).collect();
        if self.schedule.each == 1 {
            return kept;
        }
        for (number, run) in kept.iter_mut().enumerate() {
            for (operand, tensor) in self.rows.operands.iter().enumerate() {
                let source = Source::Operand(operand);
                // Another part of a row has other elements.
                let is_common = self.cut.parts == 1 && tensor.spread.rows.iter().all(|&stride| stride == 0);
                let common = first
                    .filter(|_| is_common)
                    .and_then(|row| row.kept.get(number)?.made.get(&source));
                match common {
                    Some(&common) => drop(run.made.insert(source, common)),
                    None => drop(self.element(source, run)),
                }
            }
        }
        kept
    }

    /// Loads the operands with one element per row.
    fn load_rows(&self, row: &[Int<'c>], exists: Int<'c>) -> HashMap<Source, Ssa<'c>> {
        let mut made = HashMap::new();
        for (number, (tensor, &buffer)) in self.rows.operands.iter().zip(&self.buffers).enumerate() {
            if tensor.is_same(true) && !self.cut.known.values().any(|&known| known == number) {
                let place = offset(row, &tensor.spread.rows);
                let place = self.code.masked(exists, place, buffer);
                let loaded = self.code.load(buffer, place, tensor.element);
                made.insert(Source::Operand(number), loaded);
            }
        }
        made
    }

    /// Computes all steps of a row, and stores the results.
    fn passes(&mut self, lane: Int<'c>, memory: Option<[Ssa<'c>; 2]>, turns: &mut impl Iterator<Item = usize>) {
        let mut kept = std::mem::take(&mut self.row.kept);
        for (number, step) in self.rows.steps.iter().enumerate() {
            let made = match &step.kind {
                _ if self.cut.left.contains(&number) => continue,
                Kind::Element => continue,
                Kind::Row => {
                    let known = step.known(|source| self.row.made[&source]);
                    written(&self.code, &step.body, known, None)
                }
                Kind::Reduction(_) if self.cut.known.contains_key(&number) => self.known(number, step),
                Kind::Reduction(start) => {
                    let found = self.reduce(step, start, &mut kept);
                    let turn = turns.next().expect(MISSING);
                    let memory = memory.and_then(|both| both.get(turn).copied());
                    combine_all(&self.code, step, self.schedule, (found, memory), [lane, self.within])
                }
            };
            self.row.made.insert(Source::Step(number), made);
        }
        self.store_elements(&mut kept);
        self.store_rows()
    }

    /// Combines the results of all parts of the row, which an earlier kernel has stored.
    fn known(&self, number: usize, step: &Step) -> Ssa<'c> {
        let code = &self.code;
        let operand = self.cut.known[&number];
        let tensor = &self.rows.operands[operand];
        let buffer = self.buffers[operand];
        let first = offset(&self.row.indices, &tensor.spread.rows);
        let first = code.masked(self.row.exists, first, buffer);
        // The results are contiguous, and all are loaded before the first is used.
        let width = if self.cut.parts % RUN == 0 { RUN } else { 1 };
        let vector = tensor.element.vector(&[RUN]);
        let loaded = (0..self.cut.parts / width).map(|number| {
            let place = first + number * width;
            code.load(buffer, place, if width == 1 { tensor.element } else { vector })
        });
        let mut parts = Vec::new();
        for loaded in loaded.collect::<Vec<_>>() {
            if width == 1 {
                parts.push(loaded);
                continue;
            }
            for number in 0..width {
                parts.push(code.extract(loaded, number, tensor.element));
            }
        }
        let mut parts = parts.into_iter();
        let first = parts.next().expect(MISSING);
        parts.fold(first, |found, part| combine(code, step, [found, part], None))
    }

    /// Reduces the elements of a lane's runs.
    fn reduce(&self, step: &Step, start: &Attribute, kept: &mut [Run<'c>]) -> Ssa<'c> {
        let [source, _] = exactly(&step.sources);
        let code = &self.code;
        let element = code.context().value(*step.arguments.last().expect(MISSING)).r#type();
        let vector = element.vector(&[RUN]);
        let value = start.splat(vector);
        let nothing = code.literal(value, vector);
        let add = |found: Ssa<'c>, run: &mut Run<'c>| {
            let read = self.element(source, run);
            let read = self.if_there(read, nothing, &run.exists);
            combine(code, step, [found, read], Some(RUN))
        };
        let mut found = nothing;
        if let Some(count) = self.schedule.at_once {
            let found_by_all = self.turns(count, &[found], |run, found| {
                let [found] = exactly(found);
                vec![add(found, run)]
            });
            found = found_by_all[0];
        } else {
            for run in kept {
                found = add(found, run);
            }
        }
        let elements = (0..RUN).map(|number| code.extract(found, number, element));
        let mut elements = elements.collect::<Vec<_>>().into_iter();
        let first = elements.next().expect(MISSING);
        elements.fold(first, |found, element| combine(code, step, [found, element], None))
    }

    /// Loops over all runs, with `count` runs per iteration.
    fn turns(
        &self,
        count: u64,
        values: &[Ssa<'c>],
        mut body: impl FnMut(&mut Run<'c>, &[Ssa<'c>]) -> Vec<Ssa<'c>>,
    ) -> Vec<Ssa<'c>> {
        let (all, count) = (self.schedule.runs.cast_signed(), count.cast_signed());
        let bounds = [0, all, count].map(Int::Known);
        self.code.repeat(bounds, values, |first, values| {
            let runs = (0..count).map(|next| self.run(first + next));
            let mut values = values.to_vec();
            for mut run in runs.collect::<Vec<_>>() {
                values = body(&mut run, &values);
            }
            values
        })
    }

    /// Stores the values with one element per element of a row.
    fn store_elements(&self, kept: &mut [Run<'c>]) {
        let outputs = self
            .rows
            .stored
            .iter()
            .zip(self.buffers.iter().skip(self.rows.operands.len()));
        let outputs: Vec<_> = outputs.filter(|((_, tensor), _)| !tensor.is_same(true)).collect();
        if outputs.is_empty() {
            return;
        }
        let write = |run: &mut Run<'c>| {
            for ((source, tensor), buffer) in &outputs {
                let value = self.element(*source, run);
                match self.pairs.as_ref().filter(|pairs| pairs.have(tensor)) {
                    Some(pairs) => pairs.store(&self.code, (value, tensor, **buffer), &self.spot(run)),
                    None => store(&self.code, (value, tensor), **buffer, &self.spot(run), self.extent),
                }
            }
        };
        if let Some(count) = self.schedule.at_once {
            self.turns(count, &[], |run, _| {
                write(run);
                Vec::new()
            });
            return;
        }
        kept.iter_mut().for_each(write);
    }

    /// Stores the values with one element per row, from the first lane of each row.
    fn store_rows(&self) {
        let code = &self.code;
        let mut is_first = self.within.is_below(1) & self.row.exists;
        if !self.cut.finds {
            is_first = is_first & self.row.part.is_below(1);
        }
        let outputs = self
            .rows
            .stored
            .iter()
            .zip(self.buffers.iter().skip(self.rows.operands.len()));
        for ((source, tensor), &buffer) in outputs.filter(|((_, tensor), _)| tensor.is_same(true)) {
            let value = self.row.made[source];
            let mut place = offset(&self.row.indices, &tensor.spread.rows);
            if self.cut.finds {
                place = place + self.row.part;
            }
            code.store(value, buffer, code.masked(is_first, place, buffer));
        }
    }
}
