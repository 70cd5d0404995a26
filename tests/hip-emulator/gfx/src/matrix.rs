//! Matrix instructions: registers handed to `rotini_mfma`, which owns their arithmetic.

use rotini_mfma::{Control, Opcode, Source};

use crate::{
    lanes::Row,
    launch::Trap,
    wave::{Context, Wave},
};

/// A matrix instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mfma {
    pub(crate) opcode: Opcode,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: Addend,
    pub(crate) d: u16,
    pub(crate) control: Control,
}

/// The accumulator's start, or the indices of a sparse form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addend {
    Rows(u16),
    /// Bits of one element
    Constant(u64),
}

const BEYOND: Trap = Trap::Unsupported("a register beyond the kernel's");

/// Registers of a source at most
pub(crate) const SOURCE: usize = 8;

/// Runs a matrix instruction, which ignores EXEC (CDNA3 ISA, matrix arithmetic).
pub(crate) fn mfma(wave: &mut Wave, context: &mut Context<'_>, inst: &Mfma) -> Result<(), Trap> {
    let (a_count, b_count, c_count, d_count) = inst.opcode.registers();
    let rows = &mut wave.rows;
    let [a_rows, b_rows] = &mut *context.matrix;
    let a = take(rows, inst.a, a_count, a_rows)?;
    let b = take(rows, inst.b, b_count, b_rows)?;
    let d = usize::from(inst.d);
    let index;
    let source = match inst.c {
        Addend::Rows(first) if inst.opcode.is_sparse() => {
            index = *rows.get(usize::from(first)).ok_or(BEYOND)?;
            Source::Registers(std::slice::from_ref(&index))
        }
        Addend::Rows(first) => {
            let first = usize::from(first);
            if first + c_count > rows.len() || d + d_count > rows.len() {
                return Err(BEYOND);
            }
            if first != d {
                rows.copy_within(first..first + c_count, d);
            }
            Source::Destination
        }
        Addend::Constant(value) => Source::Constant(value),
    };
    let target = rows.get_mut(d..d + d_count).ok_or(BEYOND)?;
    rotini_mfma::execute(inst.opcode, a, b, source, target, inst.control)
        .map_err(|error| Trap::Matrix(error.to_string()))
}

/// Copies a source: the destination may overlap it.
fn take<'a>(rows: &[Row], first: u16, count: usize, target: &'a mut [Row; SOURCE]) -> Result<&'a [Row], Trap> {
    let first = usize::from(first);
    let source = rows.get(first..first + count).ok_or(BEYOND)?;
    let target = target.get_mut(..count).ok_or(BEYOND)?;
    target.copy_from_slice(source);
    Ok(target)
}
