//! The interpreter loop: runs a wave's instructions until a barrier or the end.

use crate::{
    error::Trap,
    inst::{Code, Condition, sgpr},
    lanes::Mode,
    matrix, memory, plain,
    profile::Profile,
    scalar, strict, vector,
    wave::{Context, Wave},
};

/// The reason why a wave stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// After the barrier with this number
    Barrier(usize),
    End,
}

/// Runs `wave` to its next barrier or its end. A sampled run counts for the time model and omits
/// matrix arithmetic.
pub(crate) fn run<const STRICT: bool, const SAMPLED: bool>(
    wave: &mut Wave,
    context: &mut Context<'_>,
    mut profile: Option<&mut Profile>,
) -> Result<Stop, Trap> {
    let program = context.program;
    // Start of the current straight run of instructions.
    let mut begin = wave.pc;
    let stop = loop {
        let pc = wave.pc;
        let Some(inst) = program.insts.get(pc) else {
            return Err(Trap::Unsupported("the end of the kernel without s_endpgm"));
        };
        wave.pc = pc + 1;
        if STRICT {
            strict::before(wave, context, inst, &program.uses[pc])?;
        }
        if SAMPLED && let Some(profile) = &mut profile {
            profile.before(wave, program, pc);
        }
        match &inst.code {
            Code::Mfma(_) if SAMPLED => {}
            Code::Valu(valu) if plain::is(valu, wave) => plain::valu(wave, context, valu),
            Code::Valu(valu) => vector::valu(wave, context, valu),
            Code::Salu {
                function,
                target,
                wide,
                a,
                b,
                scc,
            } => {
                scalar::salu(wave, *function, *target, *wide, [*a, *b], *scc);
            }
            Code::SaveExec {
                function,
                target,
                source,
            } => scalar::save_exec(wave, *function, *target, *source),
            Code::Branch { condition, target } => {
                if taken(wave, *condition) {
                    context.executions.ran(begin, pc + 1);
                    begin = *target as usize;
                    jump(wave, context, begin)?;
                }
            }
            Code::GetPc { target, address } => wave.set_pair(*target, *address),
            Code::SetPc { source } => {
                let found = program.addresses.binary_search(&wave.pair(*source));
                let target = found.map_err(|_| Trap::Unsupported("a jump to where the kernel has no instruction"))?;
                context.executions.ran(begin, pc + 1);
                begin = target;
                jump(wave, context, begin)?;
            }
            Code::Mfma(mfma) => matrix::mfma(wave, context, mfma)?,
            Code::Ds(ds) => {
                let before = context.report.lds_bank_conflicts;
                memory::ds::<STRICT>(wave, context, ds, pc)?;
                if SAMPLED && let Some(profile) = &mut profile {
                    profile.add_conflicts(pc, context.report.lds_bank_conflicts - before);
                }
            }
            Code::Vmem(vmem) => memory::vmem::<STRICT>(wave, context, vmem)?,
            Code::Smem(load) => memory::smem(wave, context, load)?,
            Code::Lanes(op) => vector::lanes(wave, *op),
            // Memory accesses complete immediately: only strict mode models waits.
            Code::Wait { .. } | Code::Nop => {}
            Code::Barrier => break Stop::Barrier(pc),
            Code::End => break Stop::End,
            Code::Trap => return Err(Trap::Raised),
            Code::IndexOn { index, operands } => {
                // The rows beyond the kernel's exist and are uninitialised (see `decode`).
                let offset = wave.scalar(*index) as u16 & 0xff;
                wave.index = Some((offset, *operands));
                let m0 = wave.scalars[usize::from(sgpr::M0)];
                wave.scalars[usize::from(sgpr::M0)] = m0 & !0xf0ff | u32::from(offset) | u32::from(*operands) << 12;
            }
            Code::IndexOff => wave.index = None,
            Code::SetMode { offset, width, value } => {
                let mask = field(*offset, *width);
                wave.mode = Mode(wave.mode.0 & !mask | wave.scalar(*value) << offset & mask);
            }
            Code::GetMode { offset, width, target } => {
                wave.scalars[usize::from(target & 0x7f)] = (wave.mode.0 & field(*offset, *width)) >> offset;
            }
            Code::Time { target } => {
                // The clock advances by one tick per reading.
                context.clock += 1;
                wave.set_pair(*target, context.clock);
            }
        }
    };
    context.executions.ran(begin, wave.pc);
    Ok(stop)
}

/// Continues at `target`.
#[inline]
fn jump(wave: &mut Wave, context: &Context<'_>, target: usize) -> Result<(), Trap> {
    // Only a loop jumps backward.
    if target < wave.pc {
        wave.steps += (wave.pc - target) as u64;
        if wave.steps > context.limit {
            return Err(Trap::Endless(context.limit));
        }
    }
    wave.pc = target;
    Ok(())
}

/// Returns the mask of a hardware register's field.
const fn field(offset: u8, width: u8) -> u32 {
    let ones = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
    ones << offset
}

#[inline]
fn taken(wave: &Wave, condition: Condition) -> bool {
    match condition {
        Condition::Always => true,
        Condition::Scc(set) => wave.scc == set,
        Condition::VccZero(zero) => (wave.pair(sgpr::VCC) == 0) == zero,
        Condition::ExecZero(zero) => (wave.exec() == 0) == zero,
    }
}
