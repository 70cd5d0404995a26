//! Kernels of rows: what is combined along rows, and what is made of the elements and the results.
//!
//! Also what is made of elements without a combination, where rows have operands in common: a batch normalization by given statistics.
//!
//! Example: a layer normalization passes a row three times: for its mean, for its variance, and for the result. The kernel loads the row
//! once. Lanes have four elements each at a time; what they find of a row is combined across them, so that each has it.
//!
//! | File | Owns |
//! |---|---|
//! | `find` | which operations are one kernel |
//! | `space` | its loops |
//! | `problem` | what a kernel of rows does |
//! | `write` | the kernel |
//! | `lanes` | the combination across lanes |

mod find;
mod lanes;
pub(super) mod problem;
mod space;
mod write;

use super::epilogue::{Source, Tensor};
use super::gemm::Written;
use crate::EmitError;
use crate::mlir::{Block, Context, Operation};
use crate::target::Target;
use rotini_schedule::Machine;
use rotini_schedule::rows::{Problem, Schedule};

/// A kernel that is written, and what it reads and stores.
pub(super) struct Made<'a, 'c> {
    pub(super) symbol: String,
    pub(super) name: String,
    /// Lanes of a workgroup.
    pub(super) lanes: u64,
    pub(super) operands: &'a [Tensor<'c>],
    pub(super) stored: &'a [(Source, Tensor<'c>)],
    pub(super) written: Written<'c>,
}

/// Whether rows of so many elements are one kernel's work on a machine.
pub(crate) fn is_possible(machine: &Machine, [rows, length]: [i64; 2]) -> bool {
    let problem = Problem {
        rows: rows.unsigned_abs(),
        length: length.unsigned_abs(),
        read: 1,
    };
    let bytes = rows.checked_mul(length).and_then(|elements| elements.checked_mul(4));
    problem.is_possible(machine) && bytes.is_some_and(|bytes| bytes < super::places::BEYOND)
}

/// Puts kernels in the place of marked reductions, of what is made of many elements, and of what belongs to them. `call` makes the call of one.
pub(super) fn place<'c>(
    context: &'c Context,
    block: &Block<'c>,
    target: &Target,
    mut call: impl FnMut(Made<'_, 'c>) -> Result<Operation, EmitError>,
) -> Result<(), EmitError> {
    for number in 0.. {
        let operations = block.take();
        let Some((found, schedule)) = next(context, &operations, target)? else {
            block.put(operations);
            break;
        };
        let problem = found.rows.problem();
        let schedule = target.cut_rows(&problem).unwrap_or(schedule);
        let written = write::write(context, &found.rows, &schedule)?;
        let Problem { rows, length, .. } = problem;
        let call = call(Made {
            symbol: format!("rotini_rows_{number}"),
            name: format!("rows_{rows}x{length}_{}_{number}", schedule.word()),
            lanes: schedule.workgroup,
            operands: &found.rows.operands,
            stored: &found.rows.stored,
            written,
        })?;
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let mut rest = operations.into_iter().enumerate();
        for (position, operation) in rest.by_ref().take(found.last + 1) {
            if found.behind.contains(&position) {
                behind.push(operation);
            } else if !found.operations.contains(&position) {
                before.push(operation);
            }
        }
        before.push(call);
        before.append(&mut behind);
        before.extend(rest.map(|(_, operation)| operation));
        block.put(before);
    }
    Ok(())
}

/// What the next kernel stands for, and its schedule: a marked reduction's before others.
fn next<'c>(
    context: &'c Context,
    operations: &[Operation],
    target: &Target,
) -> Result<Option<(find::Found<'c>, Schedule)>, EmitError> {
    let Some(machine) = target.machine() else {
        return Ok(None);
    };
    if let Some(found) = find::reduction(context, operations)? {
        let schedule = found.rows.problem().schedule();
        return Ok(Some((found, schedule)));
    }
    find::elements(context, operations, |problem| problem.of_elements(machine))
}
