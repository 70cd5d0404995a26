//! Counts how often each instruction of a kernel is executed.
//!
//! There is no counter per instruction: [`Executions`] records where a wave enters and leaves a
//! straight run of instructions, and derives each instruction's count at the end of the launch.

use crate::{
    inst::{Code, Program},
    report::Report,
};

/// Execution counts, stored as the difference between each instruction and the one before.
pub(crate) struct Executions(Vec<i64>);

impl Executions {
    pub(crate) fn new(program: &Program) -> Self {
        Self(vec![0; program.insts.len() + 1])
    }

    /// Records that a wave has run the instructions from `first` up to `end`.
    #[inline]
    pub(crate) fn ran(&mut self, first: usize, end: usize) {
        if let Some(entered) = self.0.get_mut(first) {
            *entered += 1;
        }
        if let Some(left) = self.0.get_mut(end) {
            *left -= 1;
        }
    }

    /// Adds the execution counts to a report.
    pub(crate) fn report(&self, program: &Program, report: &mut Report) {
        let mut count = 0;
        for (inst, difference) in program.insts.iter().zip(&self.0) {
            count += difference;
            let count = u64::try_from(count).unwrap_or(0);
            report.instructions[inst.class as usize] += count;
            if let Code::Mfma(mfma) = &inst.code {
                report.mfma_operations += count * mfma.opcode.operations();
            }
        }
    }
}
