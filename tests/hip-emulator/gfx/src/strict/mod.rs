//! Strict mode: behaviour that the hardware leaves undefined becomes a fault.
//!
//! - Initialised bits of rows and scalar registers are propagated with the data, as in
//!   MemorySanitizer's shadow memory. Reading an uninitialised register is no fault by itself,
//!   since compilers keep undefined lanes; using it as an address, a condition, EXEC or the data of
//!   a store to device memory is. Loads that fill half of a register count as filling it.
//! - The target registers of an outstanding load are pending until an `s_waitcnt` covers the load:
//!   accessing them before is a fault, except for a further load of the same kind, which completes
//!   after the first.
//!
//! Nearly always all reads of an instruction are initialised. [`before`] checks this with bit sets
//! computed at decode (`registers::Footprint`), and calls `flow` only otherwise. The non-strict
//! instance of the interpreter loop has none of this.

mod flow;
mod footprint;
mod tracker;

pub(crate) use footprint::footprint;
pub(crate) use tracker::Tracker;

use crate::{
    error::Trap,
    inst::{Code, Inst, Uses},
    registers::Range,
    wave::{Context, Wave},
};

/// Checks an instruction that is about to run and updates the shadow state.
#[inline]
pub(crate) fn before(wave: &mut Wave, context: &mut Context<'_>, inst: &Inst, uses: &Uses) -> Result<(), Trap> {
    if let Code::Wait { vector, scalar } = inst.code {
        wave.tracker.wait(vector, scalar);
        return Ok(());
    }
    let footprint = &uses.footprint;
    if wave.tracker.waits_for(footprint) {
        missing_wait(wave, uses)?;
    }
    let exec = if footprint.all_lanes { u64::MAX } else { wave.exec() };
    if !(wave.tracker.knows(footprint) && wave.tracker.define(footprint, exec)) {
        flow::flow(wave, context, inst, uses, exec)?;
    }
    if let Some(counters) = footprint.counters {
        wave.tracker.issue(counters, uses.writes.first().copied());
    }
    Ok(())
}

/// Reports an access to a pending register.
#[cold]
fn missing_wait(wave: &Wave, uses: &Uses) -> Result<(), Trap> {
    let fault = |range: &Range| {
        Err(Trap::MissingWait {
            vector: range.vector,
            register: range.first,
        })
    };
    for range in uses.reads.iter().chain(&uses.data) {
        if wave.tracker.pending(*range) {
            return fault(range);
        }
    }
    for range in &uses.writes {
        if wave.tracker.pending_but_for(*range, uses.footprint.counters) {
            return fault(range);
        }
    }
    Ok(())
}
