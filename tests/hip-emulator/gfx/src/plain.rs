//! Runs vector instructions without modifiers, which are nearly all: the kernel gets rows
//! unchanged.

use crate::{
    inst::{Source, Valu, sgpr},
    lanes::In,
    rows::blend,
    wave::{Context, Wave},
};

/// Returns true if an instruction can take this fast path.
#[inline]
pub(crate) fn is(inst: &Valu, wave: &Wave) -> bool {
    inst.prepare.is_none()
        && inst.finish.is_none()
        && inst.dpp.is_none()
        && wave.index.is_none()
        && (inst.moded.is_none() || wave.mode.is_ieee())
}

/// Runs an instruction for which [`is`] holds, as `vector::valu` would.
#[inline]
pub(crate) fn valu(wave: &mut Wave, context: &mut Context<'_>, inst: &Valu) {
    let exec = wave.exec();
    let mut input = In::empty(wave.mode);
    for ((slot, &source), copy) in input.r.iter_mut().zip(&inst.sources).zip(context.rows.iter_mut()) {
        *slot = match source {
            Source::Row(row) => &wave.rows[usize::from(row)],
            Source::Constant(constant) => &context.program.constants[usize::from(constant)],
            Source::Scalar(register) => {
                *copy = [wave.scalars[usize::from(register & 0x7f)]; 64];
                copy
            }
        };
    }
    if let Some(pair) = inst.mask_in {
        input.mask = wave.pair(pair);
    }
    let out = &mut context.out;
    (inst.kernel)(&input, out);
    let first = usize::from(inst.row);
    for (target, result) in wave.rows[first..first + usize::from(inst.rows)].iter_mut().zip(&out.r) {
        blend(target, result, exec);
    }
    if let Some(pair) = inst.mask_out {
        wave.set_pair(pair, out.mask & exec);
        if inst.writes_exec {
            wave.set_pair(sgpr::EXEC, out.mask & exec);
        }
    }
}
