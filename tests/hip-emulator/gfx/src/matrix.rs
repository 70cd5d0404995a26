//! Matrix instructions: hands registers to `rotini_mfma`, which owns their arithmetic.

use rotini_mfma::Source;

use crate::{
    error::Trap,
    inst::{Addend, Mfma},
    lanes::Row,
    wave::{Context, Wave},
};

const BEYOND: Trap = Trap::Unsupported("a register beyond the kernel's");

/// Runs a matrix instruction, which ignores EXEC (CDNA3 ISA, matrix arithmetic).
pub(crate) fn mfma(wave: &mut Wave, context: &mut Context<'_>, inst: &Mfma) -> Result<(), Trap> {
    let (a_count, b_count, c_count, d_count) = inst.opcode.registers();
    let rows = &mut wave.rows;
    let range = |first: u16, count: usize| usize::from(first)..usize::from(first) + count;
    let (a, b, d) = (range(inst.a, a_count), range(inst.b, b_count), range(inst.d, d_count));
    // If D overlaps A or B, the sources are copied first.
    let apart = rows.get_disjoint_mut([a.clone(), b.clone(), d.clone()]).is_ok();
    let copies = &mut *context.matrix;
    if !apart {
        for (range, copy) in [a.clone(), b.clone()].into_iter().zip(&mut *copies) {
            let source = rows.get(range).ok_or(BEYOND)?;
            copy.get_mut(..source.len()).ok_or(BEYOND)?.copy_from_slice(source);
        }
    }
    let index;
    let source = match inst.c {
        Addend::Rows(first) if inst.opcode.is_sparse() => {
            index = *rows.get(usize::from(first)).ok_or(BEYOND)?;
            Source::Registers(std::slice::from_ref(&index))
        }
        Addend::Rows(first) => {
            let c = range(first, c_count);
            if c.end > rows.len() || d.end > rows.len() {
                return Err(BEYOND);
            }
            if c != d {
                rows.copy_within(c, d.start);
            }
            Source::Destination
        }
        Addend::Constant(value) => Source::Constant(value),
    };
    let (a, b, d): (&[Row], &[Row], _) = if apart {
        let [a, b, d] = rows.get_disjoint_mut([a, b, d]).map_err(|_| BEYOND)?;
        (a, b, d)
    } else {
        let [a, b] = &*copies;
        (&a[..a_count], &b[..b_count], rows.get_mut(d).ok_or(BEYOND)?)
    };
    rotini_mfma::execute(inst.opcode, a, b, source, d, inst.control).map_err(|error| Trap::Matrix(error.to_string()))
}
