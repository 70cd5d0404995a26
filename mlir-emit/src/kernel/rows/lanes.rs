//! Reductions across the lanes of a row, so that each lane has the result.

use super::problem::Step;
use crate::counts::exactly;
use crate::kernel::code::{Code, Int, Ssa};
use crate::kernel::epilogue::written;
use crate::mlir::{Attribute, Float, Name, Type};
use rotini_schedule::gemm::LANES as SUBGROUP;
use rotini_schedule::rows::Schedule;
use std::collections::HashMap;

/// The DPP permutations that exchange values within groups of 2, 4, 8 and 16 lanes. Once all lanes
/// of each half of a group have the same value, the mirrored lane is one of the other half.
const EXCHANGES: [(u64, &str, &str); 4] = [
    (1, "quad_perm", "[1 : i32, 0 : i32, 3 : i32, 2 : i32]"),
    (2, "quad_perm", "[2 : i32, 3 : i32, 0 : i32, 1 : i32]"),
    (4, "row_half_mirror", ""),
    (8, "row_mirror", ""),
];

/// Combines two elements by a reduction's step.
pub(super) fn combine<'c>(code: &Code<'c>, step: &Step, [found, element]: [Ssa<'c>; 2], width: Option<i64>) -> Ssa<'c> {
    let [first, second] = exactly(&step.arguments);
    written(
        code,
        &step.body,
        HashMap::from([(first, element), (second, found)]),
        width,
    )
}

/// Allocates LDS through which subgroups exchange their results; `None` if a row belongs to one
/// subgroup.
///
/// Reductions alternate between two buffers. Before a subgroup writes to a buffer again, it has
/// passed the barrier of the reduction in between, which the other subgroups reach after they have
/// read.
pub(super) fn memory<'c>(code: &Code<'c>, schedule: &Schedule) -> Option<[Ssa<'c>; 2]> {
    if schedule.lanes <= SUBGROUP {
        return None;
    }
    let float = Type::float(code.context(), Float::F32);
    let memory = || code.shared(schedule.workgroup.cast_signed(), float);
    Some([memory(), memory()])
}

/// Combines the values of all lanes of a row. `lane`: the lane's index in its workgroup; `within`:
/// its index in its row.
pub(super) fn combine_all<'c>(
    code: &Code<'c>,
    step: &Step,
    schedule: &Schedule,
    (found, memory): (Ssa<'c>, Option<Ssa<'c>>),
    [lane, within]: [Int<'c>; 2],
) -> Ssa<'c> {
    let mut found = found;
    let lanes = schedule.lanes.min(SUBGROUP);
    for (distance, how, permutation) in EXCHANGES {
        if distance < lanes {
            let other = permuted(code, found, how, permutation);
            found = combine(code, step, [found, other], None);
        }
    }
    for distance in [16_u64, 32] {
        if distance < lanes {
            let other = code.exchanged(found, distance.cast_signed());
            found = combine(code, step, [found, other], None);
        }
    }
    let Some(memory) = memory else {
        return found;
    };
    // Combine the results of the subgroups through LDS.
    let element = found.r#type();
    let vector = found.broadcast(element.vector(&[1]));
    code.write_vector(vector, memory, lane);
    code.barrier();
    let first = lane - within;
    let mut all: Option<Ssa<'c>> = None;
    for subgroup in 0..schedule.lanes / SUBGROUP {
        let place = first + (subgroup * SUBGROUP).cast_signed();
        let one = code.read(memory, place);
        all = Some(match all {
            Some(all) => combine(code, step, [all, one], None),
            None => one,
        });
    }
    all.expect("a row without lanes")
}

/// Returns another lane's value, by a DPP permutation of 16 lanes.
fn permuted<'c>(code: &Code<'c>, value: Ssa<'c>, how: &str, permutation: &str) -> Ssa<'c> {
    let mut attributes = vec![
        ("kind", Attribute::text(&format!("#amdgpu.dpp_perm<{how}>"))),
        ("row_mask", Attribute::text("15 : i32")),
        ("bank_mask", Attribute::text("15 : i32")),
        ("bound_ctrl", Attribute::text("false")),
    ];
    if !permutation.is_empty() {
        attributes.push(("permArgument", Attribute::text(permutation)));
    }
    code.one(Name::AmdgpuDpp, &[value, value], value.r#type(), &attributes)
}
