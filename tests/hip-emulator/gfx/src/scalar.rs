//! Runs scalar arithmetic: operand reads and result writes of SALU instructions.

use crate::{
    inst::{Scalar, sgpr},
    table::{ScalarFn, ScalarIn},
    wave::Wave,
};

fn wide(wave: &Wave, source: [Scalar; 2]) -> u64 {
    u64::from(wave.scalar(source[0])) | u64::from(wave.scalar(source[1])) << 32
}

/// Runs a SALU instruction; the high source of a 32-bit operand is the constant 0.
#[inline]
pub(crate) fn salu(
    wave: &mut Wave,
    function: ScalarFn,
    target: Option<u8>,
    is_wide: bool,
    [a, b]: [[Scalar; 2]; 2],
    writes_scc: bool,
) {
    let old = match (target, is_wide) {
        (Some(target), true) => wave.pair(target),
        (Some(target), false) => u64::from(wave.scalars[usize::from(target & 0x7f)]),
        (None, _) => 0,
    };
    let input = ScalarIn {
        a: wide(wave, a),
        b: wide(wave, b),
        old,
        scc: wave.scc,
    };
    let (value, scc) = function(input);
    match (target, is_wide) {
        (Some(target), true) => wave.set_pair(target, value),
        (Some(target), false) => wave.scalars[usize::from(target & 0x7f)] = value as u32,
        (None, _) => {}
    }
    if writes_scc {
        wave.scc = scc;
    }
}

/// Runs `s_*_saveexec`: combines EXEC with the operand and saves the old EXEC.
#[inline]
pub(crate) fn save_exec(wave: &mut Wave, function: ScalarFn, target: u8, source: [Scalar; 2]) {
    let exec = wave.exec();
    let input = ScalarIn {
        a: wide(wave, source),
        b: exec,
        old: 0,
        scc: wave.scc,
    };
    let (value, scc) = function(input);
    wave.set_pair(target, exec);
    wave.set_pair(sgpr::EXEC, value);
    wave.scc = scc;
}
