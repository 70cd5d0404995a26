//! Loads and stores 16 lanes of a register, finds the rows and columns they hold, and sets the
//! bounds of the fast path.

use std::arch::x86_64::*;

use crate::Register;

/// Largest magnitude of an exponent on the fast path. f16, fp8 and bf8 never exceed it.
pub(super) const REACH: i8 = 35;
/// Exponent of an operand that is zero.
pub(super) const ZERO: i8 = -128;
/// Bias of an f32's exponent.
pub(super) const BIAS: i32 = 127;
/// Position of an f32's exponent field.
pub(super) const FIELD: u32 = 23;
/// Rows that are computed together with interleaved steps, to hide latency.
pub(super) const ROWS: usize = 4;

/// Returns the lanes of the first elements of four rows of A and of 16 columns of B, for the lanes
/// from `lane` of the `quad`-th four registers of D.
#[inline(always)]
pub(super) fn corner<const M: usize, const N: usize>(quad: usize, lane: usize) -> (usize, usize) {
    if N < 16 {
        return (lane, lane);
    }
    let group = lane / N + 64 / N * quad;
    let (row, block) = (4 * (group % (M / 4)), group / (M / 4));
    (row + M * block, lane % N + N * block)
}

/// Loads 16 lanes of a register from `lane`, a multiple of 16.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(register: &Register, lane: usize) -> __m512i {
    let lanes: &[u32; 16] = &register.as_chunks().0[lane / 16];
    // SAFETY: `lanes` is 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

/// Sets 16 lanes of a register from `lane`, a multiple of 16.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(register: &mut Register, lane: usize, values: __m512i) {
    let lanes: &mut [u32; 16] = &mut register.as_chunks_mut().0[lane / 16];
    // SAFETY: `lanes` is 64 writable bytes.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), values) };
}

/// Runs a step for all rows.
#[inline(always)]
pub(super) fn each<T>(step: impl FnMut(usize) -> T) -> [T; ROWS] {
    std::array::from_fn(step)
}

/// Broadcasts the value of `row` within each group of four lanes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn quads(values: __m512, row: usize) -> __m512 {
    match row {
        0 => _mm512_permute_ps::<0x00>(values),
        1 => _mm512_permute_ps::<0x55>(values),
        2 => _mm512_permute_ps::<0xaa>(values),
        _ => _mm512_permute_ps::<0xff>(values),
    }
}
