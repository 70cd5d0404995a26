//! Holds operands as planes: for each element along k of a lane, 64 values as f32, and for the
//! general path their exponents as i8.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::lanes::{BIAS, FIELD, REACH, ZERO, load};
use crate::Register;
use crate::form::Element;

/// Maximum number of elements along k in the registers of a lane.
const PLANES: usize = 8;

/// An operand: `value[k][lane]`, and its exponent, with which a denormal counts as the smallest
/// normal number.
///
/// [`Planes::decode`] writes the values of the planes that the operand has, and [`Planes::align`]
/// their exponents; the other planes are never read. (Zeroing them takes a tenth of the time of an
/// instruction.)
#[repr(C, align(64))]
pub(super) struct Planes {
    value: [[MaybeUninit<f32>; 64]; PLANES],
    exponent: [[MaybeUninit<i8>; 64]; PLANES],
}

/// Writing.
impl Planes {
    /// Planes with no plane written.
    pub(super) const EMPTY: Self = Planes {
        value: [[MaybeUninit::uninit(); 64]; PLANES],
        exponent: [[MaybeUninit::uninit(); 64]; PLANES],
    };

    /// Sets the values of an operand of `element`, infinities and NaNs included.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn decode(&mut self, element: Element, registers: &[Register]) {
        let per_register = 32 / element.bits();
        for (index, register) in registers.iter().enumerate() {
            let first = per_register * index;
            for lane in (0..64).step_by(16) {
                let bits = load(register, lane);
                match element {
                    Element::F16 => {
                        let upper = _mm512_srli_epi32::<16>(bits);
                        self.set(first, lane, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)));
                        self.set(first + 1, lane, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(upper)));
                    }
                    Element::Bf16 => {
                        let upper = _mm512_and_si512(bits, _mm512_set1_epi32(0xffff_0000_u32 as i32));
                        self.set(first, lane, _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)));
                        self.set(first + 1, lane, _mm512_castsi512_ps(upper));
                    }
                    Element::Fp8 => self.set_bytes::<20, 8>(first, lane, bits),
                    Element::Bf8 => self.set_bytes::<21, 16>(first, lane, bits),
                    // A NaN whose fraction bits are all below those that the matrix core sees
                    // counts as an infinity.
                    _ => {
                        let seen = _mm512_and_si512(bits, _mm512_set1_epi32(0xffff_e000_u32 as i32));
                        self.set(first, lane, _mm512_castsi512_ps(seen));
                    }
                }
            }
        }
    }

    /// Sets the values of four FNUZ bytes in each lane. Their exponent and fraction, shifted left
    /// by `SHIFT`, are those of an f32 with `BIAS8`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn set_bytes<const SHIFT: u32, const BIAS8: i32>(&mut self, first: usize, lane: usize, bits: __m512i) {
        let rebias = _mm512_set1_ps(f32::from_bits(((BIAS + BIAS - BIAS8) as u32) << FIELD));
        let mut rest = bits;
        for byte in 0..4 {
            let sign = _mm512_slli_epi32::<24>(_mm512_and_si512(rest, _mm512_set1_epi32(0x80)));
            let low = _mm512_and_si512(rest, _mm512_set1_epi32(0x7f));
            let moved = _mm512_or_si512(_mm512_slli_epi32::<SHIFT>(low), sign);
            let value = _mm512_mul_ps(_mm512_castsi512_ps(moved), rebias);
            // The encoding of a negative zero is NaN.
            let nan = _mm512_cmpeq_epi32_mask(moved, _mm512_set1_epi32(i32::MIN));
            self.set(
                first + byte,
                lane,
                _mm512_mask_mov_ps(value, nan, _mm512_set1_ps(f32::NAN)),
            );
            rest = _mm512_srli_epi32::<8>(rest);
        }
    }

    /// Sets 16 values from `lane`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn set(&mut self, k: usize, lane: usize, values: __m512) {
        let lanes: &mut [MaybeUninit<f32>; 16] = &mut self.value[k].as_chunks_mut().0[lane / 16];
        // SAFETY: `lanes` is 64 writable bytes.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr().cast(), values) };
    }

    /// Sets the exponents of the first `count` planes, which [`decode`](Self::decode) wrote.
    /// Returns `false` if one is beyond [`REACH`], as that of an infinity or NaN is.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn align(&mut self, element: Element, count: usize) -> bool {
        let least = match element {
            Element::F16 => -14,
            Element::Fp8 => -7,
            Element::Bf8 => -15,
            _ => 1 - BIAS,
        };
        let mut beyond = 0;
        for k in 0..count {
            for lane in (0..64).step_by(16) {
                let magnitude = _mm512_slli_epi32::<1>(_mm512_castps_si512(self.sixteen_values(k, lane)));
                let field = _mm512_srli_epi32::<{ FIELD + 1 }>(magnitude);
                let exponent = _mm512_sub_epi32(field, _mm512_set1_epi32(BIAS));
                let exponent = _mm512_max_epi32(exponent, _mm512_set1_epi32(least));
                let some = _mm512_test_epi32_mask(magnitude, magnitude);
                let reach = _mm512_abs_epi32(exponent);
                beyond |= _mm512_mask_cmpgt_epi32_mask(some, reach, _mm512_set1_epi32(REACH.into()));
                let exponent = _mm512_mask_mov_epi32(_mm512_set1_epi32(ZERO.into()), some, exponent);
                let lanes: &mut [MaybeUninit<i8>; 16] = &mut self.exponent[k].as_chunks_mut().0[lane / 16];
                // SAFETY: `lanes` is 16 writable bytes.
                unsafe { _mm_storeu_si128(lanes.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(exponent)) };
            }
        }
        beyond == 0
    }
}

/// Reading. `k` must be below the operand's number of elements along k per lane, so that the plane
/// is written.
impl Planes {
    #[inline(always)]
    pub(super) fn value(&self, k: usize, lane: usize) -> f32 {
        // SAFETY: the plane is written.
        unsafe { self.value[k][lane].assume_init() }
    }

    /// Returns 16 values from `lane`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn sixteen_values(&self, k: usize, lane: usize) -> __m512 {
        let values: &[MaybeUninit<f32>; 16] = &self.value[k].as_chunks().0[lane / 16];
        // SAFETY: `values` is 64 readable bytes, and the plane is written.
        unsafe { _mm512_loadu_ps(values.as_ptr().cast()) }
    }

    /// Returns 16 exponents from `lane`, repeated four times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn sixteen_exponents(&self, k: usize, lane: usize) -> __m512i {
        let bytes: &[MaybeUninit<i8>; 16] = &self.exponent[k].as_chunks().0[lane / 16];
        // SAFETY: `bytes` is 16 readable bytes, and the plane is written.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    /// Returns four exponents from `lane`, repeated 16 times.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn four_exponents(&self, k: usize, lane: usize) -> __m512i {
        let bytes: &[MaybeUninit<i8>; 4] = &self.exponent[k].as_chunks().0[lane / 4];
        // SAFETY: `bytes` is 4 readable bytes, and the plane is written.
        _mm512_set1_epi32(unsafe { bytes.as_ptr().cast::<i32>().read_unaligned() })
    }
}
