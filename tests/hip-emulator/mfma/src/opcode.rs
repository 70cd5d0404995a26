//! The public interface of a form: finds it by name, counts its registers, and checks operands
//! before execution.

use std::fmt;

use crate::form::{Element, FORMS, Form};
use crate::{Register, Source};

/// A matrix instruction of gfx942.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(u8);

/// The modifiers of an instruction, all 0 if its text has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// Blocks of A form groups of 2^`cbsz`, and block `abid` of each group is used for the whole
    /// group. For SMFMAC: if 0, `abid` selects among the sets of indices in the register, otherwise
    /// the lowest set is used.
    pub cbsz: u8,
    /// See `cbsz`.
    pub abid: u8,
    /// Lane permutation of B: 1 uses the lower half for both halves, 2 the upper half for both, 3
    /// rotates down by 16, 4 to 7 use the 16 lanes from 16·(`blgp` − 4) for all. For f64 forms,
    /// bits 0, 1 and 2 negate A, B and C (`neg:[a,b,c]` in the text).
    pub blgp: u8,
}

/// The operand that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// src0
    A,
    /// src1
    B,
    /// src2
    C,
    /// The destination
    D,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why an instruction was not executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MfmaError {
    /// An operand has too few or too many registers.
    #[error("{mnemonic}: {operand} has {given} registers, not {expected}")]
    Registers {
        /// The instruction.
        mnemonic: &'static str,
        /// The operand.
        operand: Operand,
        /// The number that [`Opcode::registers`] returns.
        expected: usize,
        /// The number that was passed.
        given: usize,
    },
    /// An SMFMAC whose `c` is not a register.
    #[error("{mnemonic}: the indices are not in a register")]
    IndexSource {
        /// The instruction.
        mnemonic: &'static str,
    },
    /// A modifier that this instruction does not have, or an undefined value of it.
    #[error("{mnemonic}: {field}:{value} is not defined for it")]
    Control {
        /// The instruction.
        mnemonic: &'static str,
        /// `cbsz`, `abid` or `blgp`.
        field: &'static str,
        /// Its value.
        value: u8,
    },
}

/// Results of [`Opcode::registers`]: computing them would take a noticeable part of an
/// instruction's time.
static REGISTERS: [(usize, usize, usize, usize); FORMS.len()] = {
    let mut all = [(0, 0, 0, 0); FORMS.len()];
    let mut index = 0;
    while index < FORMS.len() {
        let form = &FORMS[index];
        let (a, b, d) = form.registers();
        all[index] = (a, b, if form.sparse { 1 } else { d }, d);
        index += 1;
    }
    all
};

impl Opcode {
    /// Returns the instruction that LLVM's disassembler prints as `mnemonic`, such as
    /// `v_mfma_f32_16x16x16_f16`; `None` if gfx942 has no such matrix instruction.
    pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        let index = FORMS.iter().position(|form| form.mnemonic == mnemonic)?;
        u8::try_from(index).ok().map(Self)
    }

    /// Iterates over all instructions.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..FORMS.len() as u8).map(Self)
    }

    #[inline]
    pub(crate) fn form(self) -> &'static Form {
        // Only `from_mnemonic` and `all` create opcodes, so the index is valid.
        &FORMS[usize::from(self.0)]
    }

    /// Returns the name that LLVM's disassembler prints.
    pub fn mnemonic(self) -> &'static str {
        self.form().mnemonic
    }

    /// Returns the numbers of registers of A, B, C and D. For SMFMAC, C is the register of indices.
    #[inline]
    pub fn registers(self) -> (usize, usize, usize, usize) {
        REGISTERS[usize::from(self.0)]
    }

    /// Returns true if it is an SMFMAC: D is then accumulated in place and C is the register of
    /// indices.
    pub fn is_sparse(self) -> bool {
        self.form().sparse
    }

    /// Returns true if the accumulator, and with it an inline constant of C, is f64.
    pub fn is_f64(self) -> bool {
        self.form().a == Element::F64
    }

    /// Returns the number of operations of one execution: two per multiply-add, including those
    /// with the zeros that SMFMAC skips, as AMD counts them.
    pub fn operations(self) -> u64 {
        let form = self.form();
        2 * (form.m * form.n * form.k * form.blocks) as u64
    }

    /// Checks that the instruction has these modifiers.
    ///
    /// # Errors
    ///
    /// [`MfmaError::Control`] names the first that it does not have.
    #[inline]
    pub fn check(self, control: Control) -> Result<(), MfmaError> {
        if control == Control::default() {
            return Ok(());
        }
        let form = self.form();
        let Control { cbsz, abid, blgp } = control;
        let refuse = |field, value| {
            Err(MfmaError::Control {
                mnemonic: form.mnemonic,
                field,
                value,
            })
        };
        let (cbsz_end, abid_end) = if form.sparse {
            (8, if cbsz != 0 { 8 } else { form.a.bits() as u8 / 4 })
        } else if form.broadcast {
            // Checked in this order: a `cbsz` that is too large is refused before it is used as a
            // shift.
            (form.blocks.ilog2() as u8 + 1, 1u8.checked_shl(cbsz.into()).unwrap_or(0))
        } else {
            (1, 1)
        };
        if cbsz >= cbsz_end {
            return refuse("cbsz", cbsz);
        }
        if abid >= abid_end {
            return refuse("abid", abid);
        }
        if blgp >= if form.permute || form.a == Element::F64 { 8 } else { 1 } {
            return refuse("blgp", blgp);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn check_registers(
        self,
        a: &[Register],
        b: &[Register],
        c: &Source<'_>,
        d: &[Register],
    ) -> Result<(), MfmaError> {
        let (a_count, b_count, c_count, d_count) = self.registers();
        let c_given = match c {
            Source::Registers(c) => c.len(),
            Source::Constant(_) | Source::Destination => c_count,
        };
        let counts = [
            (Operand::A, a_count, a.len()),
            (Operand::B, b_count, b.len()),
            (Operand::C, c_count, c_given),
            (Operand::D, d_count, d.len()),
        ];
        for (operand, expected, given) in counts {
            if expected != given {
                return Err(MfmaError::Registers {
                    mnemonic: self.mnemonic(),
                    operand,
                    expected,
                    given,
                });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic())
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mnemonic())
    }
}
