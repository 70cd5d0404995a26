//! Truncated fused dot products on 16 elements of D at once.
//!
//! [`decode`] turns the operands into planes: per element along k that a lane holds, the 64 values as f32 and their exponents as i8.
//! It declines operands with an infinity, a NaN, or (bf16, xf32) an exponent beyond [`REACH`]; `portable` takes those. For the others
//! every step is exact:
//!
//! - A product has at most 22 significant bits and an exponent of at most 2·[`REACH`] in magnitude: an f32 holds it. Scaled by the
//!   power of two that puts the largest exponent at 2^24 it stays below 2^26, and the conversion to i32 is the cut. (Where the
//!   scaled product underflows, the cut gives 0 all the same.)
//! - 16 such numbers are below 2^30 and add up in i32.
//! - The sum with the accumulator is an i32 in units of 2^(g−24) and a fraction of 8 bits. Normalised to 31 bits with the next one as
//!   a sticky bit (round to odd) it has the 32 bits that are kept, and the conversion to f32 rounds it as if it were exact.
//!
//! The exponents are maximised as bytes, 4 rows of 16 columns at once. A zero has exponent −128, so that its products lie below every
//! other one: −128 + [`REACH`] < [`NOTHING`]. [`REACH`] is also small enough that every power of two that scales is a normal f32.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use crate::Register;
use crate::dot;
use crate::form::{Element, Form};

/// The largest magnitude of an exponent on the fast path. f16, fp8 and bf8 are always within.
const REACH: i8 = 35;
/// Exponent of an operand that is zero.
const ZERO: i8 = -128;
/// Largest exponent of a sum without a product other than zero: above theirs, below every other product's.
const NOTHING: i8 = -2 * REACH - 1;
/// Bias of an f32's exponent.
const BIAS: i32 = 127;
/// What the exponent of an f32 is shifted by.
const FIELD: u32 = 23;
/// Rows that are computed together, their steps interleaved: one's latency is another's work.
const ROWS: usize = 4;
/// Elements along k that the registers of a lane hold, at most.
const PLANES: usize = 8;

/// An operand: `value[k][lane]`, and its exponent where a denormal counts as the smallest normal number.
///
/// [`decode`] writes all lanes of the planes that the operand has, which is as many as it has elements along k in a lane; the others
/// are never read. (Zeroing them takes a tenth of the time of an instruction.)
#[repr(C, align(64))]
struct Planes {
    value: [[MaybeUninit<f32>; 64]; PLANES],
    exponent: [[MaybeUninit<i8>; 64]; PLANES],
}

impl Planes {
    const UNWRITTEN: Self = Planes {
        value: [[MaybeUninit::uninit(); 64]; PLANES],
        exponent: [[MaybeUninit::uninit(); 64]; PLANES],
    };
}

/// Whether the CPU has what this module uses: Intel since Ice Lake, AMD since Zen 4.
#[inline]
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
}

/// D = A·B + D. `false`, and D unchanged, if the operands are beyond the fast path.
///
/// # Safety
///
/// [`available`] must have been true.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,fma")]
pub(crate) unsafe fn execute(form: &Form, a: &[Register], b: &[Register], d: &mut [Register]) -> bool {
    let (mut a_planes, mut b_planes) = (Planes::UNWRITTEN, Planes::UNWRITTEN);
    if !decode(form.a, a, &mut a_planes) || !decode(form.b, b, &mut b_planes) {
        return false;
    }
    let (a, b) = (&a_planes, &b_planes);
    // M, N, K, blocks, elements of a lane along k, products of a dot product, two groups of exponents.
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

/// 16 lanes of a register from `lane`, a multiple of 16.
#[target_feature(enable = "avx512f")]
fn load(register: &Register, lane: usize) -> __m512i {
    let lanes: &[u32; 16] = &register.as_chunks().0[lane / 16];
    // SAFETY: `lanes` is 64 readable bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

/// Fills the planes with the operand. `false` if it is beyond the fast path.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,fma")]
fn decode(element: Element, registers: &[Register], planes: &mut Planes) -> bool {
    match element {
        Element::F16 => decode_f16(registers, planes),
        Element::Bf16 => decode_bf16(registers, planes),
        Element::Xf32 => decode_xf32(registers, planes),
        Element::Fp8 => decode_fnuz::<20, 8>(registers, planes),
        Element::Bf8 => decode_fnuz::<21, 16>(registers, planes),
        Element::F64 | Element::F32 | Element::I8 => false,
    }
}

impl Planes {
    /// 16 values from `lane`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn set_values(&mut self, k: usize, lane: usize, values: __m512) {
        let lanes: &mut [MaybeUninit<f32>; 16] = &mut self.value[k].as_chunks_mut().0[lane / 16];
        // SAFETY: `lanes` is 64 writable bytes.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr().cast(), values) };
    }

    /// 64 exponents of plane `k`, of which each 32-bit lane of `exponents` has one in the byte `byte`.
    #[target_feature(enable = "avx512f,avx512vbmi")]
    #[inline]
    fn set_exponents(&mut self, k: usize, byte: i8, exponents: [__m512i; 4]) {
        let lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        // In each 32-bit lane the numbers of four bytes, of four consecutive lanes of one of two vectors.
        let four = _mm512_add_epi32(
            _mm512_mullo_epi32(lane, _mm512_set1_epi32(0x1010_1010)),
            _mm512_set1_epi32(0x0c08_0400),
        );
        let index = _mm512_add_epi8(four, _mm512_set1_epi8(byte));
        let low = _mm512_permutex2var_epi8(exponents[0], index, exponents[1]);
        let high = _mm512_permutex2var_epi8(exponents[2], index, exponents[3]);
        let all = _mm512_inserti64x4::<1>(low, _mm512_castsi512_si256(high));
        // SAFETY: the array is 64 writable bytes.
        unsafe { _mm512_storeu_si512(self.exponent[k].as_mut_ptr().cast(), all) };
    }
}

/// Reading. `k` is below the elements along k that the operand has in a lane, so that [`decode`] wrote that plane.
impl Planes {
    #[inline(always)]
    fn value(&self, k: usize, lane: usize) -> f32 {
        // SAFETY: the plane is written.
        unsafe { self.value[k][lane].assume_init() }
    }

    /// 16 values from `lane`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn sixteen_values(&self, k: usize, lane: usize) -> __m512 {
        let values: &[MaybeUninit<f32>; 16] = &self.value[k].as_chunks().0[lane / 16];
        // SAFETY: `values` is 64 readable bytes, and the plane is written.
        unsafe { _mm512_loadu_ps(values.as_ptr().cast()) }
    }

    /// 16 exponents from `lane`, four times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn sixteen_exponents(&self, k: usize, lane: usize) -> __m512i {
        let bytes: &[MaybeUninit<i8>; 16] = &self.exponent[k].as_chunks().0[lane / 16];
        // SAFETY: `bytes` is 16 readable bytes, and the plane is written.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    /// Four exponents from `lane`, 16 times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn four_exponents(&self, k: usize, lane: usize) -> __m512i {
        let bytes: &[MaybeUninit<i8>; 4] = &self.exponent[k].as_chunks().0[lane / 4];
        // SAFETY: `bytes` is 4 readable bytes, and the plane is written.
        _mm512_set1_epi32(unsafe { bytes.as_ptr().cast::<i32>().read_unaligned() })
    }
}

/// Two f16 in each lane: none may be an infinity or NaN.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vl")]
#[inline]
fn decode_f16(registers: &[Register], planes: &mut Planes) -> bool {
    let mut beyond = 0;
    for (index, register) in registers.iter().enumerate() {
        let mut exponents = [_mm512_setzero_si512(); 4];
        for (part, exponents) in exponents.iter_mut().enumerate() {
            let bits = load(register, 16 * part);
            let magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff));
            let field = _mm512_max_epi16(_mm512_srli_epi16::<10>(magnitude), _mm512_set1_epi16(1));
            let exponent = _mm512_sub_epi16(field, _mm512_set1_epi16(15));
            let zero = _mm512_testn_epi16_mask(magnitude, magnitude);
            *exponents = _mm512_mask_mov_epi16(exponent, zero, _mm512_set1_epi16(ZERO.into()));
            beyond |= _mm512_cmpeq_epi16_mask(field, _mm512_set1_epi16(31));
            let upper = _mm512_srli_epi32::<16>(bits);
            planes.set_values(2 * index, 16 * part, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)));
            planes.set_values(2 * index + 1, 16 * part, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(upper)));
        }
        planes.set_exponents(2 * index, 0, exponents);
        planes.set_exponents(2 * index + 1, 2, exponents);
    }
    beyond == 0
}

/// Two bf16 in each lane.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vl")]
#[inline]
fn decode_bf16(registers: &[Register], planes: &mut Planes) -> bool {
    let mut beyond = 0;
    for (index, register) in registers.iter().enumerate() {
        let mut exponents = [_mm512_setzero_si512(); 4];
        for (part, exponents) in exponents.iter_mut().enumerate() {
            let bits = load(register, 16 * part);
            let magnitude = _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff));
            let exponent = _mm512_sub_epi16(_mm512_srli_epi16::<7>(magnitude), _mm512_set1_epi16(BIAS as i16));
            let zero = _mm512_testn_epi16_mask(magnitude, magnitude);
            let reach = _mm512_abs_epi16(exponent);
            beyond |= !zero & _mm512_cmpgt_epi16_mask(reach, _mm512_set1_epi16(REACH.into()));
            *exponents = _mm512_mask_mov_epi16(exponent, zero, _mm512_set1_epi16(ZERO.into()));
            let upper = _mm512_and_si512(bits, _mm512_set1_epi32(0xffff_0000_u32 as i32));
            planes.set_values(2 * index, 16 * part, _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)));
            planes.set_values(2 * index + 1, 16 * part, _mm512_castsi512_ps(upper));
        }
        planes.set_exponents(2 * index, 0, exponents);
        planes.set_exponents(2 * index + 1, 2, exponents);
    }
    beyond == 0
}

/// An xf32 in each lane.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vl")]
#[inline]
fn decode_xf32(registers: &[Register], planes: &mut Planes) -> bool {
    let mut beyond = 0;
    for (index, register) in registers.iter().enumerate() {
        let mut exponents = [_mm512_setzero_si512(); 4];
        for (part, exponents) in exponents.iter_mut().enumerate() {
            let seen = _mm512_and_si512(load(register, 16 * part), _mm512_set1_epi32(0xffff_e000_u32 as i32));
            let magnitude = _mm512_and_si512(seen, _mm512_set1_epi32(0x7fff_ffff));
            let exponent = _mm512_sub_epi32(_mm512_srli_epi32::<FIELD>(magnitude), _mm512_set1_epi32(BIAS));
            let zero = _mm512_testn_epi32_mask(magnitude, magnitude);
            let reach = _mm512_abs_epi32(exponent);
            beyond |= !zero & _mm512_cmpgt_epi32_mask(reach, _mm512_set1_epi32(REACH.into()));
            *exponents = _mm512_mask_mov_epi32(exponent, zero, _mm512_set1_epi32(ZERO.into()));
            planes.set_values(index, 16 * part, _mm512_castsi512_ps(seen));
        }
        planes.set_exponents(index, 0, exponents);
    }
    beyond == 0
}

/// Four FNUZ bytes in each lane: none may be NaN. Their exponent and fraction, moved up by `SHIFT`, are those of an f32 with `BIAS8`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vl")]
#[inline]
fn decode_fnuz<const SHIFT: u32, const BIAS8: i8>(registers: &[Register], planes: &mut Planes) -> bool {
    let rebias = _mm512_set1_ps(f32::from_bits(((BIAS + BIAS - BIAS8 as i32) as u32) << FIELD));
    let mut beyond = 0;
    for (index, register) in registers.iter().enumerate() {
        let mut exponents = [_mm512_setzero_si512(); 4];
        for (part, exponents) in exponents.iter_mut().enumerate() {
            let bits = load(register, 16 * part);
            beyond |= _mm512_cmpeq_epi8_mask(bits, _mm512_set1_epi8(-128));
            let magnitude = _mm512_and_si512(bits, _mm512_set1_epi8(0x7f));
            // In 16-bit lanes: what comes from the upper byte into the lower one is masked away.
            let field = match SHIFT {
                20 => _mm512_srli_epi16::<3>(magnitude),
                _ => _mm512_srli_epi16::<2>(magnitude),
            };
            let field = _mm512_and_si512(field, _mm512_set1_epi8((0x7f >> (FIELD - SHIFT)) as i8));
            let field = _mm512_max_epi8(field, _mm512_set1_epi8(1));
            let zero = _mm512_testn_epi8_mask(magnitude, magnitude);
            let exponent = _mm512_sub_epi8(field, _mm512_set1_epi8(BIAS8));
            *exponents = _mm512_mask_mov_epi8(exponent, zero, _mm512_set1_epi8(ZERO));
            let mut rest = bits;
            for byte in 0..4 {
                let sign = _mm512_slli_epi32::<24>(_mm512_and_si512(rest, _mm512_set1_epi32(0x80)));
                let low = _mm512_and_si512(rest, _mm512_set1_epi32(0x7f));
                let moved = _mm512_or_si512(_mm512_slli_epi32::<SHIFT>(low), sign);
                let value = _mm512_mul_ps(_mm512_castsi512_ps(moved), rebias);
                planes.set_values(4 * index + byte, 16 * part, value);
                rest = _mm512_srli_epi32::<8>(rest);
            }
        }
        for byte in 0..4 {
            planes.set_exponents(4 * index + byte, byte as i8, exponents);
        }
    }
    beyond == 0
}

/// All of D, four rows of 16 columns at a time (of 4 × 4 forms: all four rows of four blocks).
///
/// `KPER` elements along k lie in a lane (the operands have as many planes), `LENGTH` products make a dot product, `GROUPED` says that even and odd k are aligned apart.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,fma")]
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
            let (a_lane, b_lane) = if N < 16 {
                (lane, lane)
            } else {
                let group = lane / N + 64 / N * quad;
                let (row, block) = (4 * (group % (M / 4)), group / (M / 4));
                (row + M * block, lane % N + N * block)
            };
            let mut sums = each(|row| _mm512_castsi512_ps(load(&d[row], lane)));
            for first in (0..K).step_by(LENGTH) {
                sums = tile::<M, N, BLOCKS, KPER, LENGTH, GROUPED>(a, b, a_lane, b_lane, first, sums);
            }
            for (register, sum) in d.iter_mut().zip(sums) {
                let lanes: &mut [u32; 16] = &mut register.as_chunks_mut().0[lane / 16];
                // SAFETY: `lanes` is 64 writable bytes.
                unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), _mm512_castps_si512(sum)) };
            }
        }
    }
}

/// One dot product of four rows, of which each is a vector of 16 columns, from `first` along k.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,fma")]
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
    let a_at = |k: usize| (k % KPER, a_lane + M * BLOCKS * (k / KPER));
    let b_at = |k: usize| (k % KPER, b_lane + N * BLOCKS * (k / KPER));

    // Which byte of A's exponents belongs to which of 4 rows × 16 columns.
    let spread = if N < 16 {
        let row = |row: i64| (0x0101_0101 * row) | ((0x0101_0101 * (row + 4)) << 32);
        _mm512_set_epi64(row(11), row(3), row(10), row(2), row(9), row(1), row(8), row(0))
    } else {
        let row = |row: i64| 0x0101_0101_0101_0101 * row;
        _mm512_set_epi64(row(3), row(3), row(2), row(2), row(1), row(1), row(0), row(0))
    };
    // Known as a constant, the shuffle would become two.
    let spread = std::hint::black_box(spread);
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
        let exponent = _mm512_adds_epi8(_mm512_shuffle_epi8(rows, spread), columns);
        let group = if GROUPED { k % 2 } else { 0 };
        largest[group] = _mm512_max_epi8(largest[group], exponent);
    }
    // From here as the exponent field of an f32, in place.
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
            let value = if N < 16 {
                quads(a.sixteen_values(plane, lane), row)
            } else {
                _mm512_set1_ps(a.value(plane, lane + row))
            };
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

/// A step's results for all rows.
#[inline(always)]
fn each<T>(step: impl FnMut(usize) -> T) -> [T; ROWS] {
    std::array::from_fn(step)
}

/// The value of `row` in each four lanes, for all four.
#[target_feature(enable = "avx512f")]
#[inline]
fn quads(values: __m512, row: usize) -> __m512 {
    match row {
        0 => _mm512_permute_ps::<0x00>(values),
        1 => _mm512_permute_ps::<0x55>(values),
        2 => _mm512_permute_ps::<0xaa>(values),
        _ => _mm512_permute_ps::<0xff>(values),
    }
}

/// 2^(24 − exponent) for the exponent whose field is given.
#[target_feature(enable = "avx512f")]
#[inline]
fn inverse(field: __m512i) -> __m512 {
    const UNIT: u32 = ((24 + 2 * BIAS) as u32) << FIELD;
    _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(UNIT as i32), field))
}

/// `sum` · 2^(exponent − 24) + `c` as the matrix core rounds it, where `field` is the exponent's field in an f32 and `nothing` are the
/// lanes without a product; see `dot::accumulate`.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vbmi,avx512vbmi2,avx512vl,fma")]
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
    // The sum in the same units and a fraction at the upper end of a register, rounded down. Beyond a distance of 30 the sum is less
    // than half a unit, and C, of 24 bits and a zero, stays what it is, whatever the fraction. The fraction may have more than the
    // 8 bits that are kept: with a distance above 8 nothing cancels, C leaves at least 24 of the 32 bits of the result above it.
    let distance = each(|row| _mm512_srli_epi32::<FIELD>(_mm512_sub_epi32(top[row], field[row])));
    let distance = each(|row| _mm512_min_epu32(distance[row], _mm512_set1_epi32(31)));
    let fraction = each(|row| _mm512_shrdv_epi32(_mm512_setzero_si512(), sum[row], distance[row]));
    let units = each(|row| _mm512_add_epi32(_mm512_srav_epi32(sum[row], distance[row]), c_units[row]));

    // 31 bits and, as the sticky bit, the 32nd, which is the next of the fraction.
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
        // Without a product other than zero C stays (and −0 becomes +0).
        for row in 0..ROWS {
            let lanes = (nothing >> (16 * row)) as u16;
            result[row] = _mm512_mask_add_ps(result[row], lanes, c[row], _mm512_setzero_ps());
        }
    }
    let special = each(|row| _mm512_cmpeq_epi32_mask(c_field[row], infinity));
    if special != [0; ROWS] {
        // All products are finite: an infinite C stays, a NaN becomes the one NaN.
        for row in 0..ROWS {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(c[row], c[row]);
            let c = _mm512_mask_mov_ps(c[row], nan, _mm512_castsi512_ps(_mm512_set1_epi32(dot::NAN as i32)));
            result[row] = _mm512_mask_mov_ps(result[row], special[row], c);
        }
    }
    result
}
