//! Operations on whole rows that every instruction needs: masked copies, extents, comparison of
//! distances.

use crate::lanes::Row;

/// Calls the AVX-512 function where the CPU has it, else the portable one.
macro_rules! dispatch {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has AVX-512F.
            return unsafe { avx512::$name($($argument),*) };
        }
        portable::$name($($argument),*)
    }};
}

/// Writes `source` to the lanes of `mask` in `target`.
#[inline]
pub(crate) fn blend(target: &mut Row, source: &Row, mask: u64) {
    dispatch!(blend(target, source, mask))
}

/// Returns the lowest and highest value of the lanes of `mask`, which must not be empty.
#[inline]
pub(crate) fn extent(row: &Row, mask: u64) -> (u32, u32) {
    dispatch!(extent(row, mask))
}

/// Returns true if each lane of `mask` differs from `first` by its entry in `distances`.
#[inline]
pub(crate) fn has_distances(row: &Row, first: u32, distances: &Row, mask: u64) -> bool {
    dispatch!(has_distances(row, first, distances, mask))
}

mod portable {
    use crate::lanes::Row;

    pub(super) fn blend(target: &mut Row, source: &Row, mask: u64) {
        for (lane, (target, &source)) in target.iter_mut().zip(source).enumerate() {
            *target = if mask >> lane & 1 != 0 { source } else { *target };
        }
    }

    pub(super) fn extent(row: &Row, mask: u64) -> (u32, u32) {
        let lanes = row.iter().enumerate().filter(|(lane, _)| mask >> lane & 1 != 0);
        lanes.fold((u32::MAX, 0), |(low, high), (_, &value)| {
            (low.min(value), high.max(value))
        })
    }

    pub(super) fn has_distances(row: &Row, first: u32, distances: &Row, mask: u64) -> bool {
        let mut lanes = row.iter().zip(distances).enumerate();
        lanes.all(|(lane, (&value, &distance))| mask >> lane & 1 == 0 || value.wrapping_sub(first) == distance)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use crate::lanes::Row;

    /// Returns 16 lanes of a row.
    #[target_feature(enable = "avx512f")]
    fn part(row: &Row, number: usize) -> __m512i {
        // SAFETY: 16 lanes from 16 * number, at most 48, are in the row.
        unsafe { _mm512_loadu_si512(row.as_ptr().add(16 * (number & 3)).cast()) }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn blend(target: &mut Row, source: &Row, mask: u64) {
        for number in 0..4 {
            let lanes = (mask >> (16 * number)) as __mmask16;
            // SAFETY: 16 lanes from 16 * number are in the row.
            unsafe {
                let place = target.as_mut_ptr().add(16 * number).cast();
                _mm512_mask_storeu_epi32(place, lanes, part(source, number));
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn extent(row: &Row, mask: u64) -> (u32, u32) {
        let (mut low, mut high) = (_mm512_set1_epi32(-1), _mm512_setzero_si512());
        for number in 0..4 {
            let lanes = (mask >> (16 * number)) as __mmask16;
            let values = part(row, number);
            low = _mm512_mask_min_epu32(low, lanes, low, values);
            high = _mm512_mask_max_epu32(high, lanes, high, values);
        }
        (_mm512_reduce_min_epu32(low), _mm512_reduce_max_epu32(high))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn has_distances(row: &Row, first: u32, distances: &Row, mask: u64) -> bool {
        let first = _mm512_set1_epi32(first as i32);
        let mut differing = 0;
        for number in 0..4 {
            let lanes = (mask >> (16 * number)) as __mmask16;
            let distance = _mm512_sub_epi32(part(row, number), first);
            differing |= _mm512_mask_cmpneq_epu32_mask(lanes, distance, part(distances, number));
        }
        differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{blend, extent, has_distances, portable};
    use crate::lanes::Row;

    const MASKS: [u64; 6] = [
        u64::MAX,
        1,
        1 << 63,
        0x8000_0001_0000_8001,
        0xffff_0000,
        0x5555_5555_5555_5555,
    ];

    #[test]
    fn only_lanes_of_the_mask_count() {
        let row: Row = std::array::from_fn(|lane| (lane as u32).wrapping_mul(0x9e37_79b9));
        for mask in MASKS {
            let lanes = || (0..64).filter(|lane| mask >> lane & 1 != 0);
            let expected: Row = std::array::from_fn(|lane| if mask >> lane & 1 != 0 { row[lane] } else { 7 });
            for blend in [blend, portable::blend] {
                let mut target = [7; 64];
                blend(&mut target, &row, mask);
                assert_eq!(target, expected);
            }
            let values = || lanes().map(|lane| row[lane]);
            for extent in [extent, portable::extent] {
                assert_eq!(Some(extent(&row, mask)), values().min().zip(values().max()));
            }
            let distances = row.map(|value| value.wrapping_sub(99));
            for has_distances in [has_distances, portable::has_distances] {
                assert!(has_distances(&row, 99, &distances, mask));
                for lane in 0..64 {
                    let mut other = distances;
                    other[lane] ^= 1;
                    assert_eq!(has_distances(&row, 99, &other, mask), mask >> lane & 1 == 0);
                }
            }
        }
    }
}
