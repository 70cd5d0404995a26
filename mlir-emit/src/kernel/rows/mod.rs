//! Fused row reductions: reductions along rows, and elementwise operations on the elements and on
//! the results.
//!
//! Elementwise operations without a reduction become such kernels too if rows have operands in
//! common. Example: a batch normalization by given statistics.
//!
//! Example: a layer normalization passes a row three times: for its mean, for its variance, and for
//! the result. The kernel loads the row once. Each lane has runs of four elements. The results of a
//! row are combined across lanes, so that every lane has them.
//!
//! | File | Owns |
//! |---|---|
//! | `find` | the operations that become one kernel |
//! | `space` | the loops of a kernel |
//! | `problem` | the description of a fused row reduction |
//! | `parts` | long rows, which several workgroups share |
//! | `write` | the kernel on GPUs |
//! | `lanes` | combining across lanes |
//! | `pairs` | rows that begin at any element, in pairs |
//! | `quotient` | divisions by a value of the row |
//! | `cpu` | the kernel on CPUs |

mod cpu;
mod find;
mod lanes;
mod pairs;
mod parts;
pub(super) mod problem;
mod quotient;
mod space;
mod write;

use super::executable::{Fusable, WorkgroupSize};
use crate::choice::{Chooser, Form};
use crate::mlir::{Context, Operation};
use crate::target::Target;
use find::Device;
use problem::Rows;
use rotini_schedule::rows::{Problem, Schedule};
use std::collections::HashSet;
use std::rc::Rc;

/// Returns whether there are GPU kernels for `rows` rows of `length` elements.
pub(crate) fn is_possible([rows, length]: [i64; 2]) -> bool {
    let problem = Problem {
        rows: rows.unsigned_abs(),
        length: length.unsigned_abs(),
        read: 1,
    };
    let bytes = rows.checked_mul(length).and_then(|elements| elements.checked_mul(4));
    problem.is_possible() && bytes.is_some_and(|bytes| bytes < super::code::BEYOND)
}

/// Returns whether there are CPU kernels for `rows` rows of `length` elements. In short rows most
/// lanes would be idle.
pub(crate) fn is_possible_on_cpus([rows, length]: [i64; 2]) -> bool {
    const LENGTHS: std::ops::RangeInclusive<i64> = 24..=1 << 24;
    let bytes = rows.checked_mul(length).and_then(|elements| elements.checked_mul(4));
    rows > 0 && LENGTHS.contains(&length) && bytes.is_some_and(|bytes| bytes < super::code::BEYOND)
}

/// Replaces marked reductions, large elementwise operations and the operations fused with them by
/// dispatches of kernels. `call` makes the dispatch of a kernel.
pub(super) fn place<'c>(
    context: &'c Context,
    operations: &mut Vec<Operation>,
    (target, chooser): (&Target, &Chooser),
    mut call: impl FnMut(Fusable<'c>, &Rows<'c>) -> Operation,
) {
    if let Some(registers) = target.registers() {
        return place_on_cpus(context, operations, registers.lanes, call);
    }
    for number in 0.. {
        let Some((found, parts, schedule)) = next(context, operations, target) else {
            break;
        };
        let mut calls = Vec::new();
        let divisions = Rc::new(quotient::divisions(context, &found.rows));
        let kernels = parts::kernels(context, found.rows, parts);
        let is_alone = kernels.len() == 1;
        for (turn, (rows, cut)) in kernels.into_iter().enumerate() {
            let rows = Rc::new(rows);
            let number = if is_alone {
                number.to_string()
            } else {
                format!("{number}_{turn}")
            };
            let across = cut.across(&rows);
            let problem = Problem {
                rows: rows.problem().rows * across.unsigned_abs(),
                // One lane is enough if the kernel reads no elements.
                length: if across == cut.parts {
                    cut.length.unsigned_abs()
                } else {
                    1
                },
                ..rows.problem()
            };
            let schedule = match schedule {
                Some(schedule) => schedule,
                None => problem.schedule(),
            };
            let forms = || {
                let candidates = schedule.others(&problem).into_iter();
                candidates
                    .map(|candidate| Form::new(candidate.word(), candidate))
                    .collect()
            };
            let fits = |schedule: &Schedule| schedule.fits(&problem);
            let parse = |word: &str| Schedule::parse(word).filter(fits);
            let schedule = chooser.choose("rows", schedule, forms, parse);
            let Problem {
                rows: count, length, ..
            } = problem;
            let kernel = Fusable {
                symbol: format!("rotini_rows_{number}"),
                name: format!("rows_{count}x{length}_{}_{number}", schedule.word()),
                lanes: WorkgroupSize::Wave64(schedule.workgroup),
                fused: rows.names(),
                body: {
                    let (rows, divisions) = (Rc::clone(&rows), Rc::clone(&divisions));
                    Box::new(move |code, buffers| write::write((code, buffers), (&rows, &divisions), &cut, &schedule))
                },
            };
            calls.push(call(kernel, &rows));
        }
        let replaced = std::mem::take(operations);
        *operations = arranged(replaced, &found.operations, &found.behind, found.last, calls);
    }
}

/// Replaces marked reductions and the operations fused with them by dispatches of kernels for CPUs.
fn place_on_cpus<'c>(
    context: &'c Context,
    operations: &mut Vec<Operation>,
    lanes: i64,
    mut call: impl FnMut(Fusable<'c>, &Rows<'c>) -> Operation,
) {
    for number in 0.. {
        let Some(found) = find::reduction(context, operations, Device::Cpu) else {
            break;
        };
        let rows = Rc::new(found.rows);
        let kernel = Fusable {
            symbol: format!("rotini_rows_{number}"),
            name: format!("rows_{}x{}_{number}", rows.problem().rows, rows.length()),
            lanes: WorkgroupSize::Single,
            fused: rows.names(),
            body: {
                let rows = Rc::clone(&rows);
                Box::new(move |code, buffers| cpu::write((code, buffers), &rows, lanes))
            },
        };
        let calls = vec![call(kernel, &rows)];
        let replaced = std::mem::take(operations);
        *operations = arranged(replaced, &found.operations, &found.behind, found.last, calls);
    }
}

/// Replaces the operations in `replaced`, the last of which is `last`, by `calls`. `late`: the
/// operations that need the kernels' results, which move behind the calls.
fn arranged(
    operations: Vec<Operation>,
    replaced: &HashSet<usize>,
    late: &HashSet<usize>,
    last: usize,
    mut calls: Vec<Operation>,
) -> Vec<Operation> {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    let mut rest = operations.into_iter().enumerate();
    for (position, operation) in rest.by_ref().take(last + 1) {
        if late.contains(&position) {
            behind.push(operation);
        } else if !replaced.contains(&position) {
            before.push(operation);
        }
    }
    before.append(&mut calls);
    before.append(&mut behind);
    before.extend(rest.map(|(_, operation)| operation));
    before
}

/// Returns the next operations to replace, the number and length of a row's parts, and the schedule
/// unless it follows from these parts. Marked reductions come before others.
fn next<'c>(context: &'c Context, operations: &[Operation], target: &Target) -> Option<Next<'c>> {
    let machine = target.machine()?;
    if let Some(found) = find::reduction(context, operations, Device::Gpu) {
        let parts = found.rows.problem().parts(machine, found.rows.makes_elements());
        let parts = parts.map(u64::cast_signed);
        return Some((found, parts, None));
    }
    let found = find::elements(context, operations, |problem| problem.of_elements(machine));
    found.map(|(found, schedule)| {
        let parts = [1, found.rows.length()];
        (found, parts, Some(schedule))
    })
}

type Next<'c> = (find::Found<'c>, [i64; 2], Option<Schedule>);
