//! Moves the data of 64 lanes between memory and register rows.
//!
//! Narrow data and partial masks go lane by lane; 8 and 16 bytes of all lanes are transposed in
//! registers where AVX-512 is available. Operands of matrix instructions are read in 8-byte pieces,
//! and the pieces of two lanes form 16 contiguous bytes.

use super::{Access, Half, set_lanes};
use crate::lanes::Row;

/// Loads each lane of `mask` from `base + offsets[lane]` into `target`.
///
/// # Safety
///
/// `access.bytes` bytes at `base + offsets[lane]` must be readable for each lane of `mask`.
pub(crate) unsafe fn gather(base: *const u8, offsets: &Row, mask: u64, access: Access, target: &mut [Row]) {
    #[cfg(target_arch = "x86_64")]
    if mask == u64::MAX && access.bytes >= 8 && std::arch::is_x86_feature_detected!("avx512f") {
        match (access.bytes, &mut *target) {
            // SAFETY: the caller guarantees the bytes of every lane; the CPU has AVX-512F.
            (8, [a, b, ..]) => return unsafe { avx512::gather2(base, offsets, a, b) },
            // SAFETY: as above.
            (16, [a, b, c, d, ..]) => return unsafe { avx512::gather4(base, offsets, [a, b, c, d]) },
            _ => {}
        }
    }
    // SAFETY: the caller guarantees the bytes for the lanes of the mask.
    unsafe {
        if mask == u64::MAX {
            gather_from(base, offsets, 0..64, access, target);
        } else {
            gather_from(base, offsets, set_lanes(mask), access, target);
        }
    }
}

/// # Safety
///
/// As [`gather`], for the lanes of `lanes`.
#[inline(always)]
unsafe fn gather_from(
    base: *const u8,
    offsets: &Row,
    lanes: impl Iterator<Item = usize>,
    access: Access,
    target: &mut [Row],
) {
    let at = |lane: usize| base.wrapping_add(offsets[lane & 63] as usize);
    // SAFETY: the caller guarantees `access.bytes` bytes at each lane's address; the reads are
    // unaligned and of that width.
    unsafe {
        match (access.bytes, target) {
            (1 | 2, [row, ..]) => {
                for lane in lanes {
                    let raw = match (access.bytes, access.signed) {
                        (1, false) => u32::from(at(lane).read()),
                        (1, true) => at(lane).read() as i8 as u32,
                        (_, false) => u32::from(at(lane).cast::<u16>().read_unaligned()),
                        (_, true) => at(lane).cast::<i16>().read_unaligned() as u32,
                    };
                    let row = &mut row[lane & 63];
                    *row = match access.half {
                        None => raw,
                        Some(Half::Low) => *row & 0xffff_0000 | raw & 0xffff,
                        Some(Half::High) => *row & 0xffff | raw << 16,
                    };
                }
            }
            (4, [row, ..]) => {
                for lane in lanes {
                    row[lane & 63] = at(lane).cast::<u32>().read_unaligned();
                }
            }
            (8, [a, b, ..]) => {
                for lane in lanes {
                    let [x, y] = at(lane).cast::<[u32; 2]>().read_unaligned();
                    (a[lane & 63], b[lane & 63]) = (x, y);
                }
            }
            (12, [a, b, c, ..]) => {
                for lane in lanes {
                    let [x, y, z] = at(lane).cast::<[u32; 3]>().read_unaligned();
                    (a[lane & 63], b[lane & 63], c[lane & 63]) = (x, y, z);
                }
            }
            (16, [a, b, c, d, ..]) => {
                for lane in lanes {
                    let [x, y, z, w] = at(lane).cast::<[u32; 4]>().read_unaligned();
                    (a[lane & 63], b[lane & 63], c[lane & 63], d[lane & 63]) = (x, y, z, w);
                }
            }
            _ => debug_assert!(false, "decode gives widths and rows that fit"),
        }
    }
}

/// Stores each lane of `mask` from `source` to `base + offsets[lane]`; if lanes share an address,
/// the highest lane wins.
///
/// # Safety
///
/// `access.bytes` bytes at `base + offsets[lane]` must be writable for each lane of `mask`.
pub(crate) unsafe fn scatter(base: *mut u8, offsets: &Row, mask: u64, access: Access, source: &[Row]) {
    #[cfg(target_arch = "x86_64")]
    if mask == u64::MAX && access.bytes >= 8 && std::arch::is_x86_feature_detected!("avx512f") {
        match (access.bytes, source) {
            // SAFETY: the caller guarantees the bytes of every lane; the CPU has AVX-512F.
            (8, [a, b, ..]) => return unsafe { avx512::scatter2(base, offsets, a, b) },
            // SAFETY: as above.
            (16, [a, b, c, d, ..]) => return unsafe { avx512::scatter4(base, offsets, [a, b, c, d]) },
            _ => {}
        }
    }
    let at = |lane: usize| base.wrapping_add(offsets[lane & 63] as usize);
    let shift = if access.half == Some(Half::High) { 16 } else { 0 };
    // SAFETY: the caller guarantees `access.bytes` bytes at each lane's address; the writes are
    // unaligned and of that width.
    unsafe {
        match (access.bytes, source) {
            (1, [row, ..]) => set_lanes(mask).for_each(|lane| at(lane).write((row[lane] >> shift) as u8)),
            (2, [row, ..]) => set_lanes(mask).for_each(|lane| {
                at(lane).cast::<u16>().write_unaligned((row[lane] >> shift) as u16);
            }),
            (4, [row, ..]) => set_lanes(mask).for_each(|lane| at(lane).cast::<u32>().write_unaligned(row[lane])),
            (8, [a, b, ..]) => set_lanes(mask).for_each(|lane| {
                at(lane).cast::<[u32; 2]>().write_unaligned([a[lane], b[lane]]);
            }),
            (12, [a, b, c, ..]) => set_lanes(mask).for_each(|lane| {
                at(lane).cast::<[u32; 3]>().write_unaligned([a[lane], b[lane], c[lane]]);
            }),
            (16, [a, b, c, d, ..]) => set_lanes(mask).for_each(|lane| {
                let words = [a[lane], b[lane], c[lane], d[lane]];
                at(lane).cast::<[u32; 4]>().write_unaligned(words);
            }),
            _ => debug_assert!(false, "decode gives widths and rows that fit"),
        }
    }
}

/// Transfers of all 64 lanes at once: each 128-bit part of a register holds a transposed block of
/// four lanes by four words.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::lanes::Row;

    /// Returns the address of a lane.
    macro_rules! at {
        ($base:ident, $offsets:ident, $lane:expr) => {
            $base.wrapping_add($offsets[($lane) & 63] as usize).cast()
        };
    }

    /// Loads 8 bytes of a lane and 8 bytes of the next.
    macro_rules! two {
        ($base:ident, $offsets:ident, $lane:expr) => {{
            let low = _mm_castsi128_pd(_mm_loadl_epi64(at!($base, $offsets, $lane)));
            _mm_castpd_si128(_mm_loadh_pd(low, at!($base, $offsets, $lane + 1)))
        }};
    }

    /// # Safety
    ///
    /// AVX-512F, and 16 bytes readable at each `base + offsets[lane]`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn gather4(base: *const u8, offsets: &Row, rows: [&mut Row; 4]) {
        let [r0, r1, r2, r3] = rows;
        for first in [0, 16, 32, 48] {
            // SAFETY: the caller guarantees 16 bytes at each lane's address.
            let words = unsafe { four_words(base, offsets, first) };
            for (row, word) in [&mut *r0, &mut *r1, &mut *r2, &mut *r3].into_iter().zip(words) {
                store(row, first, word);
            }
        }
    }

    /// Loads four words of each of 16 lanes from `first`.
    ///
    /// # Safety
    ///
    /// 16 bytes readable at each `base + offsets[lane]`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn four_words(base: *const u8, offsets: &Row, first: usize) -> [__m512i; 4] {
        let mut parts = [_mm512_setzero_si512(); 4];
        for (k, part) in parts.iter_mut().enumerate() {
            // SAFETY: the caller guarantees 16 bytes at each lane's address.
            unsafe {
                *part = _mm512_castsi128_si512(_mm_loadu_si128(at!(base, offsets, first + k)));
                *part = _mm512_inserti32x4::<1>(*part, _mm_loadu_si128(at!(base, offsets, first + k + 4)));
                *part = _mm512_inserti32x4::<2>(*part, _mm_loadu_si128(at!(base, offsets, first + k + 8)));
                *part = _mm512_inserti32x4::<3>(*part, _mm_loadu_si128(at!(base, offsets, first + k + 12)));
            }
        }
        transpose(parts)
    }

    /// Sets 16 lanes of a row from `first`, a multiple of 16.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn store(row: &mut Row, first: usize, words: __m512i) {
        let lanes: &mut [u32; 16] = &mut row.as_chunks_mut().0[first / 16];
        // SAFETY: `lanes` is 64 writable bytes.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), words) };
    }

    /// Returns true if the offsets of the 16 lanes from `second` are 8 bytes above those of the
    /// lanes from `first`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn are_next(offsets: &Row, first: usize, second: usize) -> bool {
        let load = |lane: usize| {
            let lanes: &[u32; 16] = &offsets.as_chunks().0[lane / 16];
            // SAFETY: `lanes` is 64 readable bytes.
            unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
        };
        _mm512_cmpneq_epi32_mask(_mm512_add_epi32(load(first), _mm512_set1_epi32(8)), load(second)) == 0
    }

    /// # Safety
    ///
    /// AVX-512F, and 8 bytes readable at each `base + offsets[lane]`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn gather2(base: *const u8, offsets: &Row, r0: &mut Row, r1: &mut Row) {
        // The layouts of matrix operands: 16 rows by four lanes each, or 32 rows by two.
        for (firsts, next) in [([0, 32], 16), ([0, 16], 32)] {
            if firsts.iter().all(|&first| are_next(offsets, first, first + next)) {
                for first in firsts {
                    // SAFETY: the caller guarantees 8 bytes at each lane's address, and the next 8
                    // are those of another lane.
                    let [a, b, c, d] = unsafe { four_words(base, offsets, first) };
                    store(r0, first, a);
                    store(r1, first, b);
                    store(r0, first + next, c);
                    store(r1, first + next, d);
                }
                return;
            }
        }
        for first in [0, 16, 32, 48] {
            let mut parts = [_mm512_setzero_ps(); 2];
            for (k, part) in parts.iter_mut().enumerate() {
                let lane = first + 2 * k;
                // SAFETY: the caller guarantees 8 bytes at each lane's address.
                unsafe {
                    let all = _mm512_castsi128_si512(two!(base, offsets, lane));
                    let all = _mm512_inserti32x4::<1>(all, two!(base, offsets, lane + 4));
                    let all = _mm512_inserti32x4::<2>(all, two!(base, offsets, lane + 8));
                    *part = _mm512_castsi512_ps(_mm512_inserti32x4::<3>(all, two!(base, offsets, lane + 12)));
                }
            }
            let [a, b] = parts;
            // SAFETY: 16 lanes from `first` are in both rows.
            unsafe {
                _mm512_storeu_ps(r0.as_mut_ptr().add(first).cast(), _mm512_shuffle_ps::<0x88>(a, b));
                _mm512_storeu_ps(r1.as_mut_ptr().add(first).cast(), _mm512_shuffle_ps::<0xdd>(a, b));
            }
        }
    }

    /// # Safety
    ///
    /// AVX-512F, and 16 bytes writable at each `base + offsets[lane]`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn scatter4(base: *mut u8, offsets: &Row, rows: [&Row; 4]) {
        for first in [0, 16, 32, 48] {
            // SAFETY: 16 lanes from `first` are in each row.
            let lanes = transpose(rows.map(|row| unsafe { _mm512_loadu_si512(row.as_ptr().add(first).cast()) }));
            // SAFETY: the caller guarantees 16 bytes at each lane's address.
            unsafe {
                for (k, four) in lanes.iter().enumerate() {
                    _mm_storeu_si128(at!(base, offsets, first + k), _mm512_castsi512_si128(*four));
                }
                for (k, four) in lanes.iter().enumerate() {
                    _mm_storeu_si128(at!(base, offsets, first + k + 4), _mm512_extracti32x4_epi32::<1>(*four));
                }
                for (k, four) in lanes.iter().enumerate() {
                    _mm_storeu_si128(at!(base, offsets, first + k + 8), _mm512_extracti32x4_epi32::<2>(*four));
                }
                for (k, four) in lanes.iter().enumerate() {
                    _mm_storeu_si128(
                        at!(base, offsets, first + k + 12),
                        _mm512_extracti32x4_epi32::<3>(*four),
                    );
                }
            }
        }
    }

    /// # Safety
    ///
    /// AVX-512F, and 8 bytes writable at each `base + offsets[lane]`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn scatter2(base: *mut u8, offsets: &Row, r0: &Row, r1: &Row) {
        for first in [0, 16, 32, 48] {
            // SAFETY: 16 lanes from `first` are in both rows.
            let (a, b) = unsafe {
                (
                    _mm512_loadu_si512(r0.as_ptr().add(first).cast()),
                    _mm512_loadu_si512(r1.as_ptr().add(first).cast()),
                )
            };
            let (low, high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let pairs = [
                [_mm512_castsi512_si128(low), _mm512_castsi512_si128(high)],
                [
                    _mm512_extracti32x4_epi32::<1>(low),
                    _mm512_extracti32x4_epi32::<1>(high),
                ],
                [
                    _mm512_extracti32x4_epi32::<2>(low),
                    _mm512_extracti32x4_epi32::<2>(high),
                ],
                [
                    _mm512_extracti32x4_epi32::<3>(low),
                    _mm512_extracti32x4_epi32::<3>(high),
                ],
            ];
            for (k, two) in pairs.as_flattened().iter().enumerate() {
                let two = _mm_castsi128_pd(*two);
                // SAFETY: the caller guarantees 8 bytes at each lane's address.
                unsafe {
                    _mm_storel_pd(at!(base, offsets, first + 2 * k), two);
                    _mm_storeh_pd(at!(base, offsets, first + 2 * k + 1), two);
                }
            }
        }
    }

    /// In each 128-bit part, word j of operand k becomes word k of result j.
    #[target_feature(enable = "avx512f")]
    fn transpose([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(ab, cd),
            _mm512_unpackhi_epi64(ab, cd),
            _mm512_unpacklo_epi64(ab_high, cd_high),
            _mm512_unpackhi_epi64(ab_high, cd_high),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads 8 bytes of all lanes, where pairs of lanes have 16 contiguous bytes in the known
    /// layouts, and where one lane deviates from them.
    #[test]
    fn pairs_of_lanes() {
        let bytes: Vec<u8> = (0..4096_u32).map(|at| (at * 167 / 8) as u8).collect();
        let rows_of =
            |lanes: usize| -> Row { std::array::from_fn(|lane| (lane % lanes * 40 + lane / lanes * 8) as u32) };
        let mut all = vec![rows_of(16), rows_of(32), rows_of(64), [24; 64]];
        for lane in [0, 15, 16, 31, 32, 47, 48, 63] {
            for lanes in [16, 32] {
                let mut offsets = rows_of(lanes);
                offsets[lane] += 16;
                all.push(offsets);
            }
        }
        for offsets in all {
            let access = Access {
                bytes: 8,
                signed: false,
                half: None,
            };
            let mut rows = [[0; 64]; 2];
            // SAFETY: all offsets are below 3000.
            unsafe { gather(bytes.as_ptr(), &offsets, u64::MAX, access, &mut rows) };
            for (lane, &offset) in offsets.iter().enumerate() {
                for (word, row) in rows.iter().enumerate() {
                    let at = offset as usize + 4 * word;
                    let expected = u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
                    assert_eq!(row[lane], expected, "lane {lane} of {offsets:?}");
                }
            }
        }
    }
}
