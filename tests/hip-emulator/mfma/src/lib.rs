//! The arithmetic of gfx942's matrix instructions (MFMA and SMFMAC of CDNA3), bit for bit, as pure
//! functions on register slices.
//!
//! A register is `[u32; 64]`, one value per lane; that it is an architectural or an accumulation
//! register is the caller's business. [`Opcode::from_mnemonic`] takes the name that LLVM's
//! disassembler prints, [`execute`] computes D. All 64 lanes are written: the instructions ignore
//! EXEC. They also ignore MODE: rounding is to nearest even where there is rounding, and denormals
//! are kept.
//!
//! # What is computed
//!
//! | A, B | accumulator | D = A·B + C |
//! |---|---|---|
//! | f64, f32 | f64, f32 | sequential fused multiply-adds in the order of k, beginning with C |
//! | i8 | i32 | exact, wrapping |
//! | f16, bf16, xf32 | f32 | truncated fused dot products of 8 (xf32: 4), in the order of k |
//! | fp8, bf8 (FNUZ), mixed | f32 | the same with 16 products, even and odd k aligned separately |
//!
//! A **truncated fused dot product** of `L` products and an accumulator `c` is, with exact
//! intermediate values unless said:
//!
//! 1. A product's exponent is the sum of its operands' exponents, where a denormal has the exponent
//!    of the smallest normal number and its significand stays below 1. A product of magnitude 2^128
//!    or more is an infinity.
//! 2. The products are aligned to their largest exponent `e` and cut (toward zero) to multiples of
//!    2^(e−24), then added. For fp8 and bf8 that is done for even and odd k, and the two sums are
//!    rounded down to multiples of 2^(e−24) of the larger `e` and added.
//! 3. `g` is the larger of `e` and the exponent of `c`. The sum is rounded down (toward −∞) to a
//!    multiple of 2^(g−32), `c` to a multiple of 2^(g−24); for fp8 and bf8 a `c` below 2^(g−25)
//!    counts as zero. They are added.
//! 4. The result is rounded down to 32 significant bits (not below 2^−157), then to the nearest
//!    f32, ties to even. Zero is +0.
//! 5. A NaN among the operands, ∞·0 and ∞−∞ give the NaN `0x7fffffff`; otherwise an infinity stays
//!    one.
//!
//! This is what MMA-Sim (P. Xie et al., arXiv 2511.10909; PyPI `mmasim`) found to agree with MI300X
//! bit for bit. The tests hold every form that it has (f64, f32, xf32, f16, bf16, fp8, bf8) against
//! it; see `oracle/README.md`. It has no i8, whose arithmetic is exact and is held against
//! integers, and no SMFMAC.
//!
//! # What is assumed
//!
//! - SMFMAC: the stored elements of a row of A and the elements of B that belong to them form the
//!   dot products of the dense form, in stored order. No model of its rounding has been published.
//! - NaN results of f64 and f32 chains are the positive quiet NaN with an empty payload. MMA-Sim
//!   computes them on the host's CPU, where the payload is that of the host.
//! - A modifier that a form does not have ([`Control`]) is refused, although the assembler takes
//!   it.
//!
//! # How
//!
//! `portable` works on one element of D at a time in integers and is the definition. Where the CPU
//! has AVX-512 the dot products run on 16 elements at once (`avx512`), and the others through the
//! same source compiled for it (`chain`). The fast path of the dot products is taken only if every
//! finite operand lies where `f32` and `f64` represent each intermediate value exactly; other
//! instructions fall back to `portable`.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod chain;
mod dot;
mod form;
mod isa;
mod layout;
mod opcode;
mod operand;
mod portable;
mod register;

pub use opcode::{Control, MfmaError, Opcode, Operand};
pub use register::{Register, Source};

use form::{Element, Form};
use isa::Isa;

/// Executes `op` on all 64 lanes.
///
/// `a`, `b`, `c` and `d` must have the numbers of registers that [`Opcode::registers`] returns; an
/// f64 has its lower half in the lower register. For SMFMAC `c` is the one register of indices, and
/// D is accumulated in place.
///
/// # Errors
///
/// A wrong number of registers, an SMFMAC without a register of indices, a modifier that the form
/// does not have. D is then unchanged.
#[inline]
pub fn execute(
    op: Opcode,
    a: &[Register],
    b: &[Register],
    c: Source<'_>,
    d: &mut [Register],
    control: Control,
) -> Result<(), MfmaError> {
    run(op, a, b, c, d, control, Isa::detect())
}

/// Executes `op` as [`execute`] does, without any instruction that the CPU might lack: the
/// reference for the fast paths.
///
/// # Errors
///
/// Those of [`execute`].
pub fn execute_portable(
    op: Opcode,
    a: &[Register],
    b: &[Register],
    c: Source<'_>,
    d: &mut [Register],
    control: Control,
) -> Result<(), MfmaError> {
    run(op, a, b, c, d, control, Isa::Portable)
}

fn run(
    op: Opcode,
    a: &[Register],
    b: &[Register],
    c: Source<'_>,
    d: &mut [Register],
    control: Control,
    isa: Isa,
) -> Result<(), MfmaError> {
    let form = op.form();
    op.check(control)?;
    op.check_registers(a, b, &c, d)?;
    if form.sparse {
        let Source::Registers([index]) = c else {
            return Err(MfmaError::IndexSource {
                mnemonic: form.mnemonic,
            });
        };
        portable::sparse(form, a, b, index, d, control);
        return Ok(());
    }
    match c {
        Source::Registers(c) => d.copy_from_slice(c),
        Source::Constant(bits) => {
            for (index, register) in d.iter_mut().enumerate() {
                let upper = form.a == Element::F64 && index % 2 == 1;
                *register = [(if upper { bits >> 32 } else { bits }) as u32; 64];
            }
        }
        Source::Destination => {}
    }

    if control == Control::default() {
        compute(form, a, b, d, control, isa);
    } else {
        let (mut changed_a, mut changed_b) = ([[0; 64]; 2], [[0; 64]; 2]);
        let a = operand::broadcast(form, a, control, &mut changed_a);
        let b = operand::permute(form, b, control, &mut changed_b);
        compute(form, a, b, d, control, isa);
    }
    Ok(())
}

/// Computes D = A·B + D of a dense form.
fn compute(form: &Form, a: &[Register], b: &[Register], d: &mut [Register], control: Control, isa: Isa) {
    match form.a {
        Element::F64 => chain::f64(form, a, b, d, control.blgp, isa),
        Element::F32 => chain::f32(form, a, b, d, isa),
        Element::I8 => chain::i8(form, a, b, d, isa),
        Element::Xf32 | Element::F16 | Element::Bf16 | Element::Fp8 | Element::Bf8 => {
            // SAFETY: `Isa::detect` returns `Avx512` only if the CPU has the features that `avx512`
            // uses.
            #[cfg(target_arch = "x86_64")]
            if isa == Isa::Avx512 && unsafe { avx512::execute(form, a, b, d) } {
                return;
            }
            portable::dense(form, a, b, d);
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Covers the path that [`execute`] does not choose on a CPU with AVX-512.
    #[test]
    fn avx2_is_portable() {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("fma") {
            println!("skipped: this CPU has no AVX2 and FMA");
            return;
        }
        let mut state = 1u64;
        let mut register = || {
            std::array::from_fn(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 32) as u32
            })
        };
        for op in Opcode::all().filter(|op| !op.is_sparse()) {
            let (a, b, _, d) = op.registers();
            for _ in 0..100 {
                let [a, b, before] = [a, b, d].map(|count| (0..count).map(|_| register()).collect::<Vec<_>>());
                let [fast, portable] = [Isa::Avx2, Isa::Portable].map(|isa| {
                    let mut d = before.clone();
                    run(op, &a, &b, Source::Destination, &mut d, Control::default(), isa).unwrap();
                    d
                });
                assert!(fast == portable, "{op}");
            }
        }
    }
}
