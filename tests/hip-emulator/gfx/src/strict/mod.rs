//! Strict mode: what the hardware leaves undefined becomes a fault.
//!
//! - Initialised bits of rows and scalar registers flow with the data (as MemorySanitizer's shadow
//!   does): reading a register that nobody wrote is no fault by itself, since compilers keep
//!   undefined lanes; using it as an address, a condition, EXEC or data of a store to device memory
//!   is. Loads that fill half of a register count as filling it.
//! - Registers that an outstanding load will write are pending until an `s_waitcnt` covers the
//!   load: touching them before is a fault, except for a further load of the same kind, which comes
//!   after the first.
//!
//! Nearly always everything that an instruction reads is initialised. [`before`] sees that from bit
//! sets made at decode (`registers::Footprint`), and only then leaves the rest to `flow`. The other
//! instance of the loop has none of this.

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

/// Checks an instruction that is about to run and moves the shadow state on.
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

/// Something that the instruction touches is pending in some counter.
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
