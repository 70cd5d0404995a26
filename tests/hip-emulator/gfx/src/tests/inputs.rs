//! Generates deterministic operands: edge values of their type, values near other operands, random
//! bits.

use crate::table::Ty;

/// A small generator (splitmix64).
pub(super) struct Generator(pub(super) u64);

impl Generator {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }

    /// Returns an operand of a type, given the operands before it.
    pub(super) fn operand(&mut self, ty: Ty, before: &[u64]) -> u64 {
        let near = before.last().copied().unwrap_or(0);
        match ty {
            Ty::B32 => match self.next() % 8 {
                0..=2 => self.pick(WORDS).into(),
                3 => near.wrapping_add(self.next() % 3).wrapping_sub(1) & 0xffff_ffff,
                4 => self.next() % 70,
                // Byte selectors
                5 => (self.next() & 0x0f0f_0f0f) | (self.next() & 0x8080 & self.next()),
                _ => self.next() >> 32,
            },
            Ty::B64 => match self.next() % 6 {
                0 => self.pick(LONGS),
                1 => near,
                2 => near ^ 1 << (self.next() % 64),
                3 => near.wrapping_neg(),
                _ => self.next(),
            },
            Ty::F32 | Ty::Mix => self.single(near as u32, before).into(),
            Ty::F64 => self.double(near, before),
            // The high half is not part of the operand: its contents must not matter.
            Ty::F16 => u64::from(self.half(near as u16)) | (self.next() & 0xffff) << 16,
            Ty::B16 => self.short(near as u16) | (self.next() & 0xffff) << 16,
            Ty::PkF16 => u64::from(self.half(near as u16)) | u64::from(self.half((near >> 16) as u16)) << 16,
            Ty::PkB16 => self.short(near as u16) | self.short((near >> 16) as u16) << 16,
            Ty::PkF32 => {
                let low: Vec<u64> = before.iter().map(|v| v & 0xffff_ffff).collect();
                let high: Vec<u64> = before.iter().map(|v| v >> 32).collect();
                u64::from(self.single(near as u32, &low)) | u64::from(self.single((near >> 32) as u32, &high)) << 32
            }
        }
    }

    fn short(&mut self, near: u16) -> u64 {
        u64::from(match self.next() % 6 {
            0 | 1 => self.pick(SHORTS),
            2 => near.wrapping_add((self.next() % 3) as u16).wrapping_sub(1),
            3 => (self.next() % 20) as u16,
            _ => self.next() as u16,
        })
    }

    fn half(&mut self, near: u16) -> u16 {
        match self.next() % 8 {
            0..=2 => self.pick(HALVES) | (self.next() as u16 & 0x8000),
            3 => near ^ (self.next() as u16 & 0x8001),
            // A form of this size with other operands
            4 | 5 => (0x3000 + (self.next() % 0x1800) as u16) | (self.next() as u16 & 0x8000),
            _ => self.next() as u16,
        }
    }

    fn single(&mut self, near: u32, before: &[u64]) -> u32 {
        match self.next() % 9 {
            0..=2 => self.pick(SINGLES) | (self.next() as u32 & 0x8000_0000),
            3 => near ^ (self.next() as u32 & 0x8000_0001),
            // The negated product of the operands before, which cancels in a fused operation
            4 if before.len() == 2 => {
                let [a, b] = [before[0], before[1]].map(|v| f32::from_bits(v as u32));
                (-(a * b)).to_bits() ^ (self.next() & 1) as u32
            }
            4 | 5 => (0x3c80_0000 + (self.next() % 0x0600_0000) as u32) | (self.next() as u32 & 0x8000_0000),
            // Numbers near the limits of integers
            6 => f32::to_bits((self.next() as i32 >> (self.next() % 31)) as f32 * 0.5),
            _ => self.next() as u32,
        }
    }

    fn double(&mut self, near: u64, before: &[u64]) -> u64 {
        match self.next() % 9 {
            0..=2 => self.pick(DOUBLES) | (self.next() & 1 << 63),
            3 => near ^ (self.next() & (1 << 63 | 1)),
            4 if before.len() == 2 => {
                let [a, b] = [before[0], before[1]].map(f64::from_bits);
                (-(a * b)).to_bits() ^ (self.next() & 1)
            }
            4 | 5 => (0x3fc0_0000_0000_0000 + (self.next() >> 4) % 0x0080_0000_0000_0000) | (self.next() & 1 << 63),
            6 => f64::to_bits((self.next() as i64 >> (self.next() % 60)) as f64 * 0.5),
            _ => self.next(),
        }
    }
}

const WORDS: &[u32] = &[
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x100_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    0x0102_0304,
    0xff80_7f01,
    0xffff_ff6a,
    0x96,
    0x400,
];

const SHORTS: &[u16] = &[
    0, 1, 2, 15, 16, 17, 0x7f, 0x80, 0xff, 0x100, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0xfff0,
];

const LONGS: &[u64] = &[
    0,
    1,
    63,
    64,
    0xffff_ffff,
    1 << 32,
    0x7fff_ffff_ffff_ffff,
    1 << 63,
    u64::MAX,
    0xffff_ffff_0000_0000,
    0x8000_0000,
    0x8000_0000_8000_0000,
];

/// Zero, denormals, the ends of the normal numbers, integers and ties, infinity, NaNs (quiet and
/// signalling).
const HALVES: &[u16] = &[
    0, 1, 2, 0x1ff, 0x200, 0x3ff, 0x400, 0x401, 0x3bff, 0x3c00, 0x3c01, 0x3800, 0x3e00, 0x4100, 0x4248, 0x5640, 0x5bf8,
    0x7800, 0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7dff, 0x7e00, 0x7fff,
];

const SINGLES: &[u32] = &[
    0,
    1,
    2,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x0100_0000,
    0x3300_0000,
    0x3380_0000,
    0x387f_c000,
    0x3880_0000,
    0x3e80_0000,
    0x3eff_ffff,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3fc0_0000,
    0x4000_0000,
    0x4020_0000,
    0x4049_0fdb,
    0x42fe_0000,
    0x4300_0000,
    0x4316_0000,
    0x4370_0000,
    0x4378_0000,
    0x437f_0000,
    0x4380_0000,
    0x4380_8000,
    0x4760_0000,
    0x4768_0000,
    0x477f_e000,
    0x477f_efff,
    0x477f_f000,
    0x4780_0000,
    0x4b00_0000,
    0x4b00_0001,
    0x4b7f_ffff,
    0x4b80_0000,
    0x4eff_ffff,
    0x4f00_0000,
    0x4f7f_ffff,
    0x4f80_0000,
    0x7e80_0000,
    0x7f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fa0_0000,
    0x7fc0_0000,
    0x7fff_ffff,
];

const DOUBLES: &[u64] = &[
    0,
    1,
    0x0008_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x3690_0000_0000_0000,
    0x3800_0000_0000_0000,
    0x380f_ffff_f000_0000,
    0x3fe0_0000_0000_0000,
    0x3fdf_ffff_ffff_ffff,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3ff0_0000_1000_0000,
    0x3ff8_0000_0000_0000,
    0x4000_0000_0000_0000,
    0x4004_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41df_ffff_ffff_ffff,
    0x41e0_0000_0000_0000,
    0x41ef_ffff_ffe0_0000,
    0x41f0_0000_0000_0000,
    0x4330_0000_0000_0000,
    0x4340_0000_0000_0000,
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_f000_0000,
    0x7fd0_0000_0000_0000,
    0x7fe0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff8_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
];
