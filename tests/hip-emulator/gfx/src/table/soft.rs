//! Floats computed in software, rounded as MODE says: slow, and used only where MODE does not round
//! to nearest even.

use rustc_apfloat::{
    Float, Round,
    ieee::{Double, Half, Single},
};

use crate::lanes::{In, Out, put_wide, wide};

/// A float operation of one to three operands; absent operands are 0.
type Soft<F> = fn([F; 3], Round) -> F;

/// A kernel for other modes: evaluates `$value` of the soft floats `$a`, `$b`, `$c` with the
/// rounding `$r`, through a function of this module.
macro_rules! soft {
    ($float:ident, |$r:ident, $a:ident, $b:ident, $c:ident| $value:expr) => {{
        fn kernel(input: &$crate::lanes::In<'_>, out: &mut $crate::lanes::Out) {
            $crate::table::soft::$float(input, out, |[$a, $b, $c], $r| $value);
        }
        $crate::table::entry::Obeys::Rounding(kernel)
    }};
}

/// Applies an operation to f32 operands.
pub(super) fn single(input: &In<'_>, out: &mut Out, value: Soft<Single>) {
    let round = input.mode.round(false);
    for l in 0..64 {
        let sources = [0, 1, 2].map(|n| Single::from_bits(input.r[n][l].into()));
        out.r[0][l] = value(sources, round).to_bits() as u32;
    }
}

/// Applies an operation to f16 operands.
pub(super) fn half(input: &In<'_>, out: &mut Out, value: Soft<Half>) {
    let round = input.mode.round(true);
    for l in 0..64 {
        let sources = [0, 1, 2].map(|n| Half::from_bits(u128::from(input.r[n][l] & 0xffff)));
        out.r[0][l] = value(sources, round).to_bits() as u32;
    }
}

/// Applies an operation to f64 operands.
pub(super) fn double(input: &In<'_>, out: &mut Out, value: Soft<Double>) {
    let round = input.mode.round(true);
    for l in 0..64 {
        let sources = [0, 2, 4].map(|n| Double::from_bits(wide(input.r[n], input.r[n + 1], l).into()));
        let bits = value(sources, round).to_bits() as u64;
        put_wide(&mut out.r, l, bits);
    }
}

/// Applies an operation to operands of two f16 each.
pub(super) fn halves(input: &In<'_>, out: &mut Out, value: Soft<Half>) {
    let round = input.mode.round(true);
    for l in 0..64 {
        let each = [0, 16].map(|shift| {
            let sources = [0, 1, 2].map(|n| Half::from_bits(u128::from(input.r[n][l] >> shift & 0xffff)));
            value(sources, round).to_bits() as u32
        });
        out.r[0][l] = each[0] | each[1] << 16;
    }
}

/// Applies an operation to operands of two f32 each.
pub(super) fn singles(input: &In<'_>, out: &mut Out, value: Soft<Single>) {
    let round = input.mode.round(false);
    for h in 0..2 {
        for l in 0..64 {
            let sources = [0, 2, 4].map(|n| Single::from_bits(input.r[n + h][l].into()));
            out.r[h][l] = value(sources, round).to_bits() as u32;
        }
    }
}

/// A kernel from bits to bits, such as a conversion: `value` of the first 64 and the second 32
/// source bits.
macro_rules! soft_bits {
    ($wide:expr, |$r:ident, $a:ident, $b:ident| $value:expr) => {{
        fn kernel(input: &$crate::lanes::In<'_>, out: &mut $crate::lanes::Out) {
            let $r = input.mode.round($wide);
            for l in 0..64 {
                let $a = $crate::lanes::wide(input.r[0], input.r[1], l);
                let $b = input.r[2][l];
                let _ = $b;
                let value: u64 = $value;
                $crate::lanes::put_wide(&mut out.r, l, value);
            }
        }
        $crate::table::entry::Obeys::Rounding(kernel)
    }};
}

pub(super) use {soft, soft_bits};
