//! Derives an instruction's footprint from its [`Uses`], once, at decode.

use crate::{
    inst::{Address, Code, Condition, Inst, LaneOp, Uses, sgpr},
    registers::{Counters, Footprint, scalar_mask},
    report::Class,
};

/// Returns the registers that an instruction accesses.
pub(crate) fn footprint(inst: &Inst, uses: &Uses) -> Footprint {
    let mut footprint = Footprint {
        all_lanes: matches!(inst.code, Code::Mfma(_)),
        special: match &inst.code {
            Code::Lanes(op) => matches!(op, LaneOp::WriteLane(..)),
            Code::Valu(valu) => valu.dpp.is_some(),
            _ => false,
        },
        reads_scc: uses.reads_scc,
        counters: counters(inst),
        ..Footprint::default()
    };
    match inst.code {
        Code::Branch { condition, .. } => match condition {
            Condition::Scc(_) => footprint.reads_scc = true,
            Condition::VccZero(_) => footprint.scalars_read = scalar_mask(sgpr::VCC.into(), 2),
            // EXEC is always initialised: writing uninitialised bits to it is a fault.
            Condition::Always | Condition::ExecZero(_) => {}
        },
        Code::Salu { scc, .. } => footprint.writes_scc = scc,
        Code::SaveExec { .. } => footprint.writes_scc = true,
        _ => {}
    }
    for range in uses.reads.iter().chain(&uses.data) {
        footprint.add(range, false);
    }
    for range in &uses.writes {
        footprint.add(range, true);
    }
    footprint
}

/// Returns the wait counters that an instruction increments.
fn counters(inst: &Inst) -> Option<Counters> {
    let (vector, scalar, unordered) = match (inst.class, &inst.code) {
        (Class::Smem, _) => (false, true, true),
        (Class::Lds, _) => (false, true, false),
        // A flat access may go to LDS or to memory: it increments both counters, and its order
        // relative to others of either is undefined.
        (_, Code::Vmem(vmem)) if matches!(vmem.address, Address::Flat { .. }) => (true, true, true),
        (Class::Load | Class::Store | Class::Scratch, _) => (true, false, false),
        _ => return None,
    };
    Some(Counters {
        vector,
        scalar,
        unordered,
    })
}
