//! minNum, maxNum and medians of floats by their bits, as in IEEE mode, for f16, f32 and f64.
//!
//! A signalling NaN is returned quieted; otherwise a NaN gives the other operand (of two NaNs the
//! second); −0 is below +0.

macro_rules! orders {
    ($name:ident, $bits:ty, $signed:ty, $infinity:expr, $quiet:expr $(, $med3:ident)?) => {
        pub(super) mod $name {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);

            #[inline(always)]
            fn nan(a: $bits) -> bool {
                a & !SIGN > $infinity
            }

            #[inline(always)]
            fn signals(a: $bits) -> bool {
                nan(a) && a & $quiet == 0
            }

            /// Maps a float to an integer with the same order.
            #[inline(always)]
            fn key(a: $bits) -> $signed {
                if a & SIGN == 0 { a as $signed } else { (!a | SIGN) as $signed }
            }

            /// Returns one of two by a comparison of numbers, after handling NaNs.
            #[inline(always)]
            fn choose(a: $bits, b: $bits, first: bool) -> $bits {
                let number = if nan(b) || (first && !nan(a)) { a } else { b };
                let number = if nan(a) { b } else { number };
                let number = if signals(b) { b | $quiet } else { number };
                if signals(a) { a | $quiet } else { number }
            }

            #[inline(always)]
            pub(in super::super) fn min(a: $bits, b: $bits) -> $bits {
                choose(a, b, key(a) < key(b))
            }

            #[inline(always)]
            pub(in super::super) fn max(a: $bits, b: $bits) -> $bits {
                choose(a, b, key(a) > key(b))
            }

            $(
                /// Returns the median of three numbers; the smallest if one is a NaN.
                #[inline(always)]
                pub(in super::super) fn $med3(a: $bits, b: $bits, c: $bits) -> $bits {
                    if nan(a) || nan(b) || nan(c) {
                        min(min(a, b), c)
                    } else {
                        max(min(a, b), min(max(a, b), c))
                    }
                }
            )?
        }
    };
}

orders!(f16, u16, i16, 0x7c00, 0x200, med3);
orders!(f32, u32, i32, 0x7f80_0000, 0x40_0000, med3);
orders!(f64, u64, i64, 0x7ff0_0000_0000_0000, 1 << 51);
