//! Compares (VOPC): a lane mask. The `v_cmpx` forms, which also write EXEC, are derived at decode.

#![allow(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "the opcodes are named for negated comparisons: a NaN makes them true"
)]

use super::{
    entry::{Entry, Obeys, Ty::*, compare},
    half::to_f32,
};
use crate::lanes::{kernel, pack, test, test64, wide};

/// The six integer compares of one type.
macro_rules! integers {
    ($ty:expr, $test:ident, $as:ty, $($name:literal $op:tt),+) => {
        [$(compare($name, &[$ty, $ty], Obeys::Nothing, $test!(|a, b| (a as $as) $op (b as $as)))),+]
    };
}

/// The fourteen float compares of one type; `$of` converts the bits to the value.
macro_rules! floats {
    ($ty:expr, $test:ident, $of:expr, $suffix:literal) => {
        [
            compare(
                concat!("v_cmp_lt_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) < $of(b)),
            ),
            compare(
                concat!("v_cmp_eq_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) == $of(b)),
            ),
            compare(
                concat!("v_cmp_le_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) <= $of(b)),
            ),
            compare(
                concat!("v_cmp_gt_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) > $of(b)),
            ),
            compare(
                concat!("v_cmp_lg_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) < $of(b) || $of(a) > $of(b)),
            ),
            compare(
                concat!("v_cmp_ge_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) >= $of(b)),
            ),
            compare(
                concat!("v_cmp_o_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !$of(a).is_nan() && !$of(b).is_nan()),
            ),
            compare(
                concat!("v_cmp_u_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a).is_nan() || $of(b).is_nan()),
            ),
            compare(
                concat!("v_cmp_nge_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !($of(a) >= $of(b))),
            ),
            compare(
                concat!("v_cmp_nlg_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !($of(a) < $of(b) || $of(a) > $of(b))),
            ),
            compare(
                concat!("v_cmp_ngt_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !($of(a) > $of(b))),
            ),
            compare(
                concat!("v_cmp_nle_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !($of(a) <= $of(b))),
            ),
            compare(
                concat!("v_cmp_neq_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| $of(a) != $of(b)),
            ),
            compare(
                concat!("v_cmp_nlt_", $suffix),
                &[$ty, $ty],
                Obeys::Denormals,
                $test!(|a, b| !($of(a) < $of(b))),
            ),
        ]
    };
}

const U32: [Entry; 6] = integers!(B32, test, u32,
    "v_cmp_lt_u32" <, "v_cmp_eq_u32" ==, "v_cmp_le_u32" <=, "v_cmp_gt_u32" >, "v_cmp_ne_u32" !=, "v_cmp_ge_u32" >=);
const I32: [Entry; 6] = integers!(B32, test, i32,
    "v_cmp_lt_i32" <, "v_cmp_eq_i32" ==, "v_cmp_le_i32" <=, "v_cmp_gt_i32" >, "v_cmp_ne_i32" !=, "v_cmp_ge_i32" >=);
const U16: [Entry; 6] = integers!(B16, test, u16,
    "v_cmp_lt_u16" <, "v_cmp_eq_u16" ==, "v_cmp_le_u16" <=, "v_cmp_gt_u16" >, "v_cmp_ne_u16" !=, "v_cmp_ge_u16" >=);
const I16: [Entry; 6] = integers!(B16, test, i16,
    "v_cmp_lt_i16" <, "v_cmp_eq_i16" ==, "v_cmp_le_i16" <=, "v_cmp_gt_i16" >, "v_cmp_ne_i16" !=, "v_cmp_ge_i16" >=);
const U64: [Entry; 6] = integers!(B64, test64, u64,
    "v_cmp_lt_u64" <, "v_cmp_eq_u64" ==, "v_cmp_le_u64" <=, "v_cmp_gt_u64" >, "v_cmp_ne_u64" !=, "v_cmp_ge_u64" >=);
const I64: [Entry; 6] = integers!(B64, test64, i64,
    "v_cmp_lt_i64" <, "v_cmp_eq_i64" ==, "v_cmp_le_i64" <=, "v_cmp_gt_i64" >, "v_cmp_ne_i64" !=, "v_cmp_ge_i64" >=);
const SINGLES: [Entry; 14] = floats!(F32, test, f32::from_bits, "f32");
const HALVES: [Entry; 14] = floats!(F16, test, to_f32, "f16");
const DOUBLES: [Entry; 14] = floats!(F64, test64, f64::from_bits, "f64");

/// Returns a float's class as V_CMP_CLASS numbers it, from sign, exponent and fraction.
#[inline(always)]
fn class(negative: bool, exponent: u32, top: u32, quiet: bool, fraction: bool) -> u32 {
    let side = |n: u32, p: u32| if negative { n } else { p };
    if exponent == top && fraction {
        u32::from(quiet)
    } else if exponent == top {
        side(2, 9)
    } else if exponent != 0 {
        side(3, 8)
    } else if fraction {
        side(4, 7)
    } else {
        side(5, 6)
    }
}

/// The compares that are always false or always true.
macro_rules! constants {
    ($(($ty:expr, $never:literal, $always:literal)),+) => {
        [$(
            compare($never, &[$ty, $ty], Obeys::Nothing, kernel!(|_input, out| { out.mask = 0; })),
            compare($always, &[$ty, $ty], Obeys::Nothing, kernel!(|_input, out| { out.mask = u64::MAX; }))
        ),+]
    };
}

const CONSTANTS: [Entry; 18] = constants!(
    (F16, "v_cmp_f_f16", "v_cmp_tru_f16"),
    (F32, "v_cmp_f_f32", "v_cmp_tru_f32"),
    (F64, "v_cmp_f_f64", "v_cmp_tru_f64"),
    (B16, "v_cmp_f_i16", "v_cmp_t_i16"),
    (B16, "v_cmp_f_u16", "v_cmp_t_u16"),
    (B32, "v_cmp_f_i32", "v_cmp_t_i32"),
    (B32, "v_cmp_f_u32", "v_cmp_t_u32"),
    (B64, "v_cmp_f_i64", "v_cmp_t_i64"),
    (B64, "v_cmp_f_u64", "v_cmp_t_u64")
);

const CLASSES: [Entry; 3] = [
    compare(
        "v_cmp_class_f16",
        &[F16, B32],
        Obeys::Nothing,
        test!(|a, b| {
            let class = class(a >> 15 & 1 != 0, a >> 10 & 0x1f, 0x1f, a & 0x200 != 0, a & 0x3ff != 0);
            b >> class & 1 != 0
        }),
    ),
    compare(
        "v_cmp_class_f32",
        &[F32, B32],
        Obeys::Nothing,
        test!(|a, b| {
            b >> class(
                a >> 31 != 0,
                a >> 23 & 0xff,
                0xff,
                a & 0x40_0000 != 0,
                a & 0x7f_ffff != 0,
            ) & 1
                != 0
        }),
    ),
    compare(
        "v_cmp_class_f64",
        &[F64, B32],
        Obeys::Nothing,
        kernel!(|input, out| {
            let mut flags = [0_u8; 64];
            for l in 0..64 {
                let a = wide(input.r[0], input.r[1], l);
                let exponent = (a >> 52) as u32 & 0x7ff;
                let class = class(
                    a >> 63 != 0,
                    exponent,
                    0x7ff,
                    a >> 51 & 1 != 0,
                    a & 0xf_ffff_ffff_ffff != 0,
                );
                flags[l] = (input.r[2][l] >> class) as u8 & 1;
            }
            out.mask = pack(&flags);
        }),
    ),
];

pub(super) const OPS: &[Entry] = &all();

/// Concatenates the tables above.
const fn all() -> [Entry; 99] {
    let parts: [&[Entry]; 11] = [
        &U32, &I32, &U16, &I16, &U64, &I64, &SINGLES, &HALVES, &DOUBLES, &CLASSES, &CONSTANTS,
    ];
    let mut entries = [U32[0]; 99];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            entries[at] = parts[part][index];
            (at, index) = (at + 1, index + 1);
        }
        part += 1;
    }
    assert!(at == entries.len());
    entries
}
