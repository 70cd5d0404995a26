//! Functions over the 64 lanes of a wave, and the macros that generate them.
//!
//! A kernel ([`Kernel`]) reads and writes whole rows; the vector driver handles EXEC, source
//! modifiers and the forms of the encoding. Each kernel is compiled for several instruction sets,
//! and the best is chosen at run time.

use rustc_apfloat::Round;

/// One 32-bit register of all 64 lanes.
pub(crate) type Row = [u32; 64];

/// Rounding and denormals as the MODE register holds them: bits 3:0 rounding (f32, then f16 and
/// f64), 7:4 denormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u32);

impl Mode {
    /// Round to nearest even with denormals, for all types: the mode that the table's kernels
    /// compute in.
    pub(crate) const IEEE: Self = Self(0xf0);

    /// Bits that choose rounding and denormals.
    pub(crate) const FIELDS: u32 = 0xff;

    pub(crate) fn is_ieee(self) -> bool {
        self.0 & Self::FIELDS == Self::IEEE.0
    }

    /// Returns the rounding of f32 results (or, if `wide`, of f16 and f64 results).
    pub(crate) fn round(self, wide: bool) -> Round {
        match self.0 >> (2 * u32::from(wide)) & 3 {
            0 => Round::NearestTiesToEven,
            1 => Round::TowardPositive,
            2 => Round::TowardNegative,
            _ => Round::TowardZero,
        }
    }

    /// Returns whether denormal sources, and denormal results, of f32 (or f16 and f64) become zero.
    pub(crate) fn flushes(self, wide: bool) -> [bool; 2] {
        let allowed = self.0 >> (4 + 2 * u32::from(wide)) & 3;
        [allowed & 1 == 0, allowed & 2 == 0]
    }
}

/// Inputs of a kernel: source rows (64-bit sources are two rows, low first), a lane mask and the
/// mode.
pub(crate) struct In<'a> {
    pub(crate) r: [&'a Row; 6],
    /// Carry in, or the lane mask of a select: one bit per lane
    pub(crate) mask: u64,
    pub(crate) mode: Mode,
}

/// Outputs of a kernel: result rows and a lane mask (compare results, carry out). Outputs that an
/// opcode does not have stay unchanged.
pub(crate) struct Out {
    pub(crate) r: [Row; 2],
    pub(crate) mask: u64,
}

/// The arithmetic of a vector opcode over all lanes.
pub(crate) type Kernel = fn(&In<'_>, &mut Out);

/// Packs one byte per lane (0 or 1) into one bit per lane.
#[inline(always)]
pub(crate) fn pack(flags: &[u8; 64]) -> u64 {
    let mut mask = 0;
    for (index, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication moves each byte's lowest bit into the top byte, in order.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * index);
    }
    mask
}

/// Returns a lane's bit of a mask.
#[inline(always)]
pub(crate) fn lane(mask: u64, lane: usize) -> u32 {
    (mask >> lane) as u32 & 1
}

/// Returns a lane's 64-bit value from two rows.
#[inline(always)]
pub(crate) fn wide(low: &Row, high: &Row, lane: usize) -> u64 {
    u64::from(low[lane]) | u64::from(high[lane]) << 32
}

/// Writes 64 bits of a lane to two rows.
#[inline(always)]
pub(crate) fn put_wide(rows: &mut [Row; 2], lane: usize, value: u64) {
    rows[0][lane] = value as u32;
    rows[1][lane] = (value >> 32) as u32;
}

/// Returns the first lane of a mask; lane 0 if the mask is empty, as `v_readfirstlane` does.
#[inline]
pub(crate) fn first_lane(mask: u64) -> usize {
    mask.trailing_zeros() as usize & 63
}

/// Makes a kernel of a loop body: `kernel!(|input, out, lane| statement)`.
macro_rules! kernel {
    (|$in:ident, $out:ident| $body:block) => {{
        #[multiversion::multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx512cd+avx2+fma+f16c+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+fma+f16c+bmi1+bmi2+lzcnt+popcnt"
))]
        #[allow(clippy::needless_range_loop, reason = "lanes index several rows at once")]
        fn kernel<'a>($in: &$crate::lanes::In<'a>, $out: &mut $crate::lanes::Out) $body
        kernel as $crate::lanes::Kernel
    }};
}

/// 32-bit result of 32-bit sources: `map!(|a, b| a.wrapping_add(b))`.
macro_rules! map {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::kernel!(|input, out| {
            $crate::lanes::rows!(input, 0, $($s),+);
            for l in 0..64 { $(let $s = $s[l];)+ out.r[0][l] = $value; }
        })
    };
}

/// f32 result of f32 sources.
macro_rules! map_f32 {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::map!(|$($s),+| { $(let $s = f32::from_bits($s);)+ let value: f32 = $value; value.to_bits() })
    };
}

/// Lane mask of 32-bit sources: `test!(|a, b| a < b)`.
macro_rules! test {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::kernel!(|input, out| {
            $crate::lanes::rows!(input, 0, $($s),+);
            let mut flags = [0_u8; 64];
            for l in 0..64 { $(let $s = $s[l];)+ flags[l] = u8::from($value); }
            out.mask = $crate::lanes::pack(&flags);
        })
    };
}

/// 64-bit result of 64-bit sources, each two rows.
macro_rules! map64 {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::kernel!(|input, out| {
            $crate::lanes::pairs!(input, 0, $($s),+);
            for l in 0..64 {
                $(let $s = $crate::lanes::wide($s.0, $s.1, l);)+
                let value: u64 = $value;
                $crate::lanes::put_wide(&mut out.r, l, value);
            }
        })
    };
}

/// f64 result of f64 sources.
macro_rules! map_f64 {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::map64!(|$($s),+| { $(let $s = f64::from_bits($s);)+ let value: f64 = $value; value.to_bits() })
    };
}

/// Lane mask of 64-bit sources.
macro_rules! test64 {
    (|$($s:ident),+| $value:expr) => {
        $crate::lanes::kernel!(|input, out| {
            $crate::lanes::pairs!(input, 0, $($s),+);
            let mut flags = [0_u8; 64];
            for l in 0..64 { $(let $s = $crate::lanes::wide($s.0, $s.1, l);)+ flags[l] = u8::from($value); }
            out.mask = $crate::lanes::pack(&flags);
        })
    };
}

macro_rules! rows {
    ($in:ident, $i:expr, $s:ident) => { let $s = $in.r[$i]; };
    ($in:ident, $i:expr, $s:ident, $($t:ident),+) => { let $s = $in.r[$i]; $crate::lanes::rows!($in, $i + 1, $($t),+); };
}

macro_rules! pairs {
    ($in:ident, $i:expr, $s:ident) => { let $s = ($in.r[$i], $in.r[$i + 1]); };
    ($in:ident, $i:expr, $s:ident, $($t:ident),+) => {
        let $s = ($in.r[$i], $in.r[$i + 1]);
        $crate::lanes::pairs!($in, $i + 2, $($t),+);
    };
}

pub(crate) use {kernel, map, map_f32, map_f64, map64, pairs, rows, test, test64};
