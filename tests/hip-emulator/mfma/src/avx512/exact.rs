//! Multiplies 16-bit operands of few bits in integers.
//!
//! Tests fill tensors with numbers of few bits, so that results do not depend on the order of
//! summation. Operands that are multiples of 2^(e−[`DEPTH`]), where e is the operand's largest
//! exponent, convert to integers, and integer instructions add up their products in pairs exactly.
//! If the accumulator is a multiple of the products' unit u and below 2^22·u, every sum is below
//! 2^24·u: an f32 holds it. Such numbers are also multiples of 2^(g−24), whatever the largest
//! exponent g, so the matrix core does not round either, and both agree. This takes a third of the
//! time of the general path.

use std::arch::x86_64::*;

use super::lanes::{BIAS, FIELD, REACH, ROWS, corner, each, load, quads, store};
use crate::Register;
use crate::form::{Element, Form};

/// Bits of an operand below its largest exponent. 16 products of two operands of [`DEPTH`] + 1 bits
/// are below 2^22.
const DEPTH: i32 = 8;

/// Computes D = A·B + D if nothing rounds. Returns `false`, with D unchanged, if that is not
/// certain.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn execute(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) -> bool {
    let ([a0, a1], [b0, b1]) = (a, b) else {
        return false;
    };
    let (mut a, mut b) = ([[0; 64]; 2], [[0; 64]; 2]);
    let Some(a_unit) = integers(form.a, [a0, a1], &mut a) else {
        return false;
    };
    let Some(b_unit) = integers(form.b, [b0, b1], &mut b) else {
        return false;
    };
    let unit = a_unit + b_unit;
    if !are_multiples(d, unit) {
        return false;
    }
    match (form.m, form.k, form.blocks) {
        (16, 16, 1) => tiles::<16, 16, 16, 1>(&a, &b, unit, d),
        (32, 8, 1) => tiles::<32, 32, 8, 1>(&a, &b, unit, d),
        (32, 4, 2) => tiles::<32, 32, 4, 2>(&a, &b, unit, d),
        (16, 4, 4) => tiles::<16, 16, 4, 4>(&a, &b, unit, d),
        (4, 4, 16) => tiles::<4, 4, 4, 16>(&a, &b, unit, d),
        _ => return false,
    }
    true
}

/// Returns 2^`exponent`.
fn power(exponent: i32) -> f32 {
    f32::from_bits(((BIAS + exponent) as u32) << FIELD)
}

/// Returns an addend that rounds an f32 below 2^(`unit` + 22) in magnitude to a multiple of
/// 2^`unit`; the lowest bits of the sum are then that multiple.
fn rounder(unit: i32) -> f32 {
    1.5 * power(unit + FIELD as i32)
}

/// Converts each half of the operand to an integer, in units of 2 to the returned power. Returns
/// `None` if a value is not such an integer, or the operand has another type.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn integers(element: Element, registers: [&Register; 2], integers: &mut [Register; 2]) -> Option<i32> {
    match element {
        Element::F16 => integers_of::<10>(registers, integers),
        Element::Bf16 => integers_of::<7>(registers, integers),
        _ => None,
    }
}

/// [`integers`] of a type with `FRACTION` fraction bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn integers_of<const FRACTION: u32>(registers: [&Register; 2], integers: &mut [Register; 2]) -> Option<i32> {
    let bias = (1 << (14 - FRACTION)) - 1;
    let magnitude = _mm512_set1_epi16(0x7fff);
    let mut largest = _mm512_setzero_si512();
    for register in registers {
        for lane in (0..64).step_by(16) {
            largest = _mm512_max_epu16(largest, _mm512_and_si512(load(register, lane), magnitude));
        }
    }
    let halves = _mm512_max_epu32(_mm512_slli_epi32::<16>(largest), largest);
    let field = (_mm512_reduce_max_epu32(halves) >> (16 + FRACTION)) as i32;
    // If all values are denormals, this is an upper bound of their exponents too.
    let exponent = field - bias;
    let special = field == 2 * bias + 1;
    if special || exponent.abs() > REACH.into() {
        return None;
    }
    let unit = exponent - DEPTH;

    // Widened to f32, a value is scaled by the difference of the biases: denormals keep their
    // value.
    let rounder = _mm512_set1_ps(rounder(unit - (BIAS - bias)));
    let mut lost = _mm512_setzero_si512();
    for (register, integers) in registers.into_iter().zip(integers) {
        for lane in (0..64).step_by(16) {
            let bits = load(register, lane);
            let low = widen::<FRACTION>(_mm512_slli_epi32::<16>(bits));
            let high = widen::<FRACTION>(bits);
            let (low_sum, high_sum) = (_mm512_add_ps(low, rounder), _mm512_add_ps(high, rounder));
            lost = difference(lost, low, _mm512_sub_ps(low_sum, rounder));
            lost = difference(lost, high, _mm512_sub_ps(high_sum, rounder));
            let upper = _mm512_slli_epi32::<16>(_mm512_castps_si512(high_sum));
            let pair = _mm512_mask_mov_epi16(upper, 0x5555_5555, _mm512_castps_si512(low_sum));
            store(integers, lane, pair);
        }
    }
    // Only the sign of a zero may be lost.
    (_mm512_test_epi32_mask(lost, _mm512_set1_epi32(i32::MAX)) == 0).then_some(unit)
}

/// Widens the halves in the upper ends to f32, scaled by the difference of the biases.
#[target_feature(enable = "avx512f")]
#[inline]
fn widen<const FRACTION: u32>(halves: __m512i) -> __m512 {
    let shift = FRACTION - (FIELD - 16);
    let kept = 0x8000_0000_u32 | 0x7fff_0000 >> shift;
    let moved = _mm512_srav_epi32(halves, _mm512_set1_epi32(shift as i32));
    _mm512_castsi512_ps(_mm512_and_si512(moved, _mm512_set1_epi32(kept as i32)))
}

/// Adds to `lost` the bits in which the two differ.
#[target_feature(enable = "avx512f")]
#[inline]
fn difference(lost: __m512i, before: __m512, after: __m512) -> __m512i {
    const A_OR_B_XOR_C: i32 = 0xf6;
    _mm512_ternarylogic_epi32::<A_OR_B_XOR_C>(lost, _mm512_castps_si512(before), _mm512_castps_si512(after))
}

/// Returns true if all numbers are multiples of 2^`unit` and below 2^(`unit` + 22) in magnitude.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn are_multiples(registers: &[Register], unit: i32) -> bool {
    let rounder = _mm512_set1_ps(rounder(unit));
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let (mut largest, mut lost) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    for register in registers {
        for lane in (0..64).step_by(16) {
            let bits = load(register, lane);
            largest = _mm512_max_epi32(largest, _mm512_and_si512(bits, magnitude));
            let value = _mm512_castsi512_ps(bits);
            lost = difference(lost, value, _mm512_sub_ps(_mm512_add_ps(value, rounder), rounder));
        }
    }
    // As integers, magnitudes have the same order.
    _mm512_test_epi32_mask(lost, magnitude) == 0
        && _mm512_reduce_max_epi32(largest) < power(unit + FIELD as i32 - 1).to_bits() as i32
}

/// Computes all of D, as `super::tiles` does, two elements along k at once.
#[target_feature(enable = "avx512f,avx512dq,avx512vnni")]
fn tiles<const M: usize, const N: usize, const K: usize, const BLOCKS: usize>(
    a: &[Register; 2],
    b: &[Register; 2],
    unit: i32,
    d: &mut [Register],
) {
    let scale = _mm512_set1_ps(power(unit));
    for (quad, d) in d.chunks_exact_mut(ROWS).enumerate() {
        for lane in (0..64).step_by(16) {
            let (a_lane, b_lane) = corner::<M, N>(quad, lane);
            let mut sums = [_mm512_setzero_si512(); ROWS];
            for pair in 0..K / 2 {
                let (register, group) = (pair % 2, pair / 2);
                let (a, a_lane) = (&a[register], a_lane + M * BLOCKS * group);
                let column = load(&b[register], b_lane + N * BLOCKS * group);
                sums = each(|row| {
                    let value = if N < 16 {
                        _mm512_castps_si512(quads(_mm512_castsi512_ps(load(a, a_lane)), row))
                    } else {
                        _mm512_set1_epi32(a[a_lane + row] as i32)
                    };
                    _mm512_dpwssd_epi32(sums[row], value, column)
                });
            }
            for (register, sum) in d.iter_mut().zip(sums) {
                let c = _mm512_castsi512_ps(load(register, lane));
                let result = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, c);
                store(register, lane, _mm512_castps_si512(result));
            }
        }
    }
}
