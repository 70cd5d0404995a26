//! Computes truncated fused dot products on 16 elements of D at once.
//!
//! Where nothing is rounded, integers give the result ([`exact`]). Elsewhere [`Planes`] holds an
//! operand's values as f32 and their exponents, and operands with an infinity, a NaN, or (bf16,
//! xf32) an exponent beyond [`REACH`] are left to `portable`. For the others every step is exact:
//!
//! - A product has at most 22 significant bits and an exponent of at most 2·[`REACH`] in magnitude:
//!   an f32 holds it. Scaled by the power of two that puts the largest exponent at 2^24 it stays
//!   below 2^26, and the conversion to i32 is the cut. (Where the scaled product underflows, the
//!   cut gives 0 all the same.)
//! - 16 such numbers are below 2^30 and add up in i32.
//! - The sum with the accumulator is an i32 in units of 2^(g−24) and a fraction of 8 bits.
//!   Normalised to 31 bits with the next one as a sticky bit (round to odd) it has the 32 bits that
//!   are kept, and the conversion to f32 rounds it as if it were exact.
//!
//! The exponents are maximised as bytes, 4 rows of 16 columns at once. A zero has exponent −128, so
//! that its products lie below every other one: −128 + [`REACH`] < [`NOTHING`]. [`REACH`] is also
//! small enough that every power of two that scales is a normal f32.

mod exact;
mod lanes;
mod planes;

use std::arch::x86_64::*;

use crate::Register;
use crate::dot;
use crate::form::Form;
use lanes::{BIAS, FIELD, REACH, ROWS, corner, each, load, quads, store};
use planes::Planes;

/// Largest exponent of a sum whose products are all zero: above a zero product's, below every other
/// product's.
const NOTHING: i8 = -2 * REACH - 1;

/// Computes D = A·B + D. Returns `false`, with D unchanged, if the operands are outside the fast
/// path.
///
/// # Safety
///
/// The CPU has the features that [`Isa::Avx512`](crate::isa::Isa) stands for.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,fma")]
pub(crate) unsafe fn execute(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) -> bool {
    if exact::execute(form, a, b, d) {
        return true;
    }
    let (mut a_planes, mut b_planes) = (Planes::EMPTY, Planes::EMPTY);
    a_planes.decode(form.a, a);
    b_planes.decode(form.b, b);
    a_planes.align(form.a, form.a_per_lane())
        && b_planes.align(form.b, form.b_per_lane())
        && dense(form, &a_planes, &b_planes, d)
}

/// Computes D = A·B + D. Returns `false` if this module does not have the form.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,fma")]
fn dense(form: &Form, a: &Planes, b: &Planes, d: &mut [Register]) -> bool {
    // M, N, K, blocks, elements per lane along k, products per dot product, two groups of
    // exponents.
    match (form.m, form.k, form.blocks) {
        (16, 16, 1) => tiles::<16, 16, 16, 1, 4, 8, false>(a, b, d),
        (32, 8, 1) => tiles::<32, 32, 8, 1, 4, 8, false>(a, b, d),
        (16, 8, 1) => tiles::<16, 16, 8, 1, 2, 4, false>(a, b, d),
        (32, 4, 1) => tiles::<32, 32, 4, 1, 2, 4, false>(a, b, d),
        (32, 4, 2) => tiles::<32, 32, 4, 2, 4, 4, false>(a, b, d),
        (16, 4, 4) => tiles::<16, 16, 4, 4, 4, 4, false>(a, b, d),
        (4, 4, 16) => tiles::<4, 4, 4, 16, 4, 4, false>(a, b, d),
        (16, 32, 1) => tiles::<16, 16, 32, 1, 8, 16, true>(a, b, d),
        (32, 16, 1) => tiles::<32, 32, 16, 1, 8, 16, true>(a, b, d),
        _ => return false,
    }
    true
}

/// Computes all of D, four rows of 16 columns at a time (for 4 × 4 forms: all four rows of four
/// blocks).
///
/// `KPER` elements along k lie in a lane (the operands have as many planes), `LENGTH` products form
/// a dot product, and `GROUPED` means that even and odd k are aligned separately.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,fma")]
fn tiles<
    const M: usize,
    const N: usize,
    const K: usize,
    const BLOCKS: usize,
    const KPER: usize,
    const LENGTH: usize,
    const GROUPED: bool,
>(
    a: &Planes,
    b: &Planes,
    d: &mut [Register],
) {
    for (quad, d) in d.chunks_exact_mut(ROWS).enumerate() {
        for lane in (0..64).step_by(16) {
            let (a_lane, b_lane) = corner::<M, N>(quad, lane);
            let mut sums = each(|row| _mm512_castsi512_ps(load(&d[row], lane)));
            for first in (0..K).step_by(LENGTH) {
                sums = tile::<M, N, BLOCKS, KPER, LENGTH, GROUPED>(a, b, a_lane, b_lane, first, sums);
            }
            for (register, sum) in d.iter_mut().zip(sums) {
                store(register, lane, _mm512_castps_si512(sum));
            }
        }
    }
}

/// Returns the plane and the lane of element `k` of a row of A or a column of B. `lane` is that of
/// the first element, and `stride` lanes apart there are `KPER` elements each.
#[inline(always)]
fn place<const KPER: usize>(k: usize, lane: usize, stride: usize) -> (usize, usize) {
    (k % KPER, lane + stride * (k / KPER))
}

/// Returns element `k` of row `row` of A for each of 16 columns.
#[target_feature(enable = "avx512f")]
#[inline]
fn spread<const N: usize>(a: &Planes, plane: usize, lane: usize, row: usize) -> __m512 {
    if N < 16 {
        quads(a.sixteen_values(plane, lane), row)
    } else {
        _mm512_set1_ps(a.value(plane, lane + row))
    }
}

/// Computes one dot product for four rows, each a vector of 16 columns, from `first` along k.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,fma")]
#[inline]
fn tile<
    const M: usize,
    const N: usize,
    const BLOCKS: usize,
    const KPER: usize,
    const LENGTH: usize,
    const GROUPED: bool,
>(
    a: &Planes,
    b: &Planes,
    a_lane: usize,
    b_lane: usize,
    first: usize,
    c: [__m512; ROWS],
) -> [__m512; ROWS] {
    let a_at = |k: usize| place::<KPER>(k, a_lane, M * BLOCKS);
    let b_at = |k: usize| place::<KPER>(k, b_lane, N * BLOCKS);

    // Shuffle that assigns the bytes of A's exponents to 4 rows × 16 columns.
    let pattern = if N < 16 {
        let row = |row: i64| (0x0101_0101 * row) | ((0x0101_0101 * (row + 4)) << 32);
        _mm512_set_epi64(row(11), row(3), row(10), row(2), row(9), row(1), row(8), row(0))
    } else {
        let row = |row: i64| 0x0101_0101_0101_0101 * row;
        _mm512_set_epi64(row(3), row(3), row(2), row(2), row(1), row(1), row(0), row(0))
    };
    // The pattern is hidden from the compiler, which would split a shuffle by a known constant into
    // two.
    let pattern = std::hint::black_box(pattern);
    let mut largest = [_mm512_set1_epi8(NOTHING); 2];
    for k in first..first + LENGTH {
        let (plane, lane) = a_at(k);
        let rows = if N < 16 {
            a.sixteen_exponents(plane, lane)
        } else {
            a.four_exponents(plane, lane)
        };
        let (plane, lane) = b_at(k);
        let columns = b.sixteen_exponents(plane, lane);
        let exponent = _mm512_adds_epi8(_mm512_shuffle_epi8(rows, pattern), columns);
        let group = if GROUPED { k % 2 } else { 0 };
        largest[group] = _mm512_max_epi8(largest[group], exponent);
    }
    // From here on the exponent is held as an f32's exponent field, in place.
    let mut nothing = u64::MAX;
    let largest = largest.map(|largest| {
        nothing &= _mm512_cmpeq_epi8_mask(largest, _mm512_set1_epi8(NOTHING));
        let fields = _mm512_add_epi8(largest, _mm512_set1_epi8(BIAS as i8));
        let row = |fields: __m128i| _mm512_slli_epi32::<FIELD>(_mm512_cvtepu8_epi32(fields));
        [
            row(_mm512_castsi512_si128(fields)),
            row(_mm512_extracti32x4_epi32::<1>(fields)),
            row(_mm512_extracti32x4_epi32::<2>(fields)),
            row(_mm512_extracti32x4_epi32::<3>(fields)),
        ]
    });

    let columns: [__m512; LENGTH] = std::array::from_fn(|k| {
        let (plane, lane) = b_at(first + k);
        b.sixteen_values(plane, lane)
    });
    let scale = each(|row| [0, 1].map(|group| inverse(largest[group][row])));
    let mut total = [[_mm512_setzero_si512(); 2]; ROWS];
    for (k, &column) in columns.iter().enumerate() {
        let (plane, lane) = a_at(first + k);
        let group = if GROUPED { k % 2 } else { 0 };
        for row in 0..ROWS {
            let value = spread::<N>(a, plane, lane, row);
            let scaled = _mm512_mul_ps(_mm512_mul_ps(value, column), scale[row][group]);
            total[row][group] = _mm512_add_epi32(total[row][group], _mm512_cvttps_epi32(scaled));
        }
    }
    if !GROUPED {
        return accumulate::<GROUPED>(each(|row| total[row][0]), largest[0], nothing, c);
    }
    let fields = each(|row| _mm512_max_epi32(largest[0][row], largest[1][row]));
    let sums = each(|row| {
        let down = [0, 1].map(|group| {
            let distance = _mm512_sub_epi32(fields[row], largest[group][row]);
            _mm512_srav_epi32(total[row][group], _mm512_srli_epi32::<FIELD>(distance))
        });
        _mm512_add_epi32(down[0], down[1])
    });
    accumulate::<GROUPED>(sums, fields, nothing, c)
}

/// Returns 2^(24 − exponent) for an exponent given as a field.
#[target_feature(enable = "avx512f")]
#[inline]
fn inverse(field: __m512i) -> __m512 {
    const UNIT: u32 = ((24 + 2 * BIAS) as u32) << FIELD;
    _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(UNIT as i32), field))
}

/// Returns `sum` · 2^(exponent − 24) + `c` as the matrix core rounds it, where `field` is the
/// exponent's field in an f32 and `nothing` has the lanes without a product; see `dot::accumulate`.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,fma")]
#[inline]
fn accumulate<const GROUPED: bool>(
    sum: [__m512i; ROWS],
    field: [__m512i; ROWS],
    nothing: u64,
    c: [__m512; ROWS],
) -> [__m512; ROWS] {
    const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    let infinity = _mm512_set1_epi32(0x7f80_0000);
    let c_field = each(|row| _mm512_and_si512(_mm512_castps_si512(c[row]), infinity));
    let top = each(|row| _mm512_max_epi32(field[row], c_field[row]));

    // C in units of 2^(top − 24), rounded down, also where the product underflows.
    let c_scaled = each(|row| _mm512_mul_round_ps::<DOWN>(c[row], inverse(top[row])));
    let c_units = each(|row| _mm512_cvt_roundps_epi32::<DOWN>(c_scaled[row]));
    let c_units = each(|row| {
        if !GROUPED {
            return c_units[row];
        }
        let least = _mm512_sub_epi32(top[row], _mm512_set1_epi32(25 << FIELD));
        _mm512_maskz_mov_epi32(_mm512_cmpge_epi32_mask(c_field[row], least), c_units[row])
    });
    // The sum in the same units, rounded down, and its fraction at the upper end of a register.
    // Beyond a distance of 30 the sum is less than half a unit, and C, of 24 bits and a zero, is
    // unchanged, whatever the fraction. The fraction may have more than the 8 bits that the
    // hardware keeps: with a distance above 8 nothing cancels, and C leaves at least 24 of the 32
    // bits of the result above it.
    let distance = each(|row| _mm512_srli_epi32::<FIELD>(_mm512_sub_epi32(top[row], field[row])));
    let distance = each(|row| _mm512_min_epu32(distance[row], _mm512_set1_epi32(31)));
    let fraction = each(|row| _mm512_shrdv_epi32(_mm512_setzero_si512(), sum[row], distance[row]));
    let units = each(|row| _mm512_add_epi32(_mm512_srav_epi32(sum[row], distance[row]), c_units[row]));

    // 31 bits, and the 32nd, which is the next bit of the fraction, as the sticky bit.
    let magnitude = each(|row| _mm512_xor_si512(units[row], _mm512_srai_epi32::<31>(units[row])));
    let zeros = each(|row| _mm512_lzcnt_epi32(magnitude[row]));
    let shift = each(|row| _mm512_sub_epi32(zeros[row], _mm512_set1_epi32(1)));
    let normal = each(|row| _mm512_shldv_epi32(units[row], fraction[row], shift[row]));
    let next = each(|row| _mm512_rolv_epi32(fraction[row], zeros[row]));
    const A_OR_B_AND_C: i32 = 0xf8;
    let one = _mm512_set1_epi32(1);
    let odd = each(|row| _mm512_ternarylogic_epi32::<A_OR_B_AND_C>(normal[row], next[row], one));
    let rounded = each(|row| _mm512_cvtepi32_ps(odd[row]));
    // 2^(top − 24 − shift)
    let unit = each(|row| _mm512_sub_epi32(top[row], _mm512_set1_epi32((24 - 1) << FIELD)));
    let scale = each(|row| _mm512_sub_epi32(unit[row], _mm512_slli_epi32::<FIELD>(zeros[row])));
    let mut result = each(|row| _mm512_mul_ps(rounded[row], _mm512_castsi512_ps(scale[row])));

    if nothing != 0 {
        // With only zero products, C is unchanged (and −0 becomes +0).
        for row in 0..ROWS {
            let lanes = (nothing >> (16 * row)) as u16;
            result[row] = _mm512_mask_add_ps(result[row], lanes, c[row], _mm512_setzero_ps());
        }
    }
    let special = each(|row| _mm512_cmpeq_epi32_mask(c_field[row], infinity));
    if special != [0; ROWS] {
        // All products are finite: an infinite C is unchanged, a NaN becomes the canonical NaN.
        for row in 0..ROWS {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(c[row], c[row]);
            let c = _mm512_mask_mov_ps(c[row], nan, _mm512_castsi512_ps(_mm512_set1_epi32(dot::NAN as i32)));
            result[row] = _mm512_mask_mov_ps(result[row], special[row], c);
        }
    }
    result
}
