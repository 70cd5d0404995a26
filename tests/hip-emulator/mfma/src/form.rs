//! Lists the instructions: names, shapes and operand types.

/// Type of the elements of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F64,
    F32,
    /// 32-bit floats of which the matrix core uses the sign, the exponent and the upper 10 bits of
    /// the fraction.
    Xf32,
    F16,
    Bf16,
    /// E4M3 FNUZ: bias 8, no infinity, no negative zero, `0x80` is NaN.
    Fp8,
    /// E5M2 FNUZ: bias 16, no infinity, no negative zero, `0x80` is NaN.
    Bf8,
    I8,
}

impl Element {
    /// Returns the size of an element in bits.
    pub(crate) const fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 | Element::I8 => 8,
        }
    }
}

/// One instruction: D (m × n) = A (m × k) · B (k × n) + C, once per block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) mnemonic: &'static str,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) blocks: usize,
    pub(crate) a: Element,
    pub(crate) b: Element,
    /// SMFMAC: two of every four consecutive elements of a row of A are stored; src2 has their
    /// indices.
    pub(crate) sparse: bool,
    /// `cbsz` and `abid` broadcast blocks of A.
    pub(crate) broadcast: bool,
    /// `blgp` permutes the lanes of B.
    pub(crate) permute: bool,
}

impl Form {
    /// Returns the number of products that are summed for an element of D.
    pub(crate) const fn products(&self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    /// Returns the number of consecutive elements along k in the registers of a lane of A.
    pub(crate) const fn a_per_lane(&self) -> usize {
        self.products() * self.m * self.blocks / 64
    }

    /// Returns the number of consecutive elements along k in the registers of a lane of B.
    pub(crate) const fn b_per_lane(&self) -> usize {
        self.k * self.n * self.blocks / 64
    }

    /// Returns the number of 32-bit registers of an element of C or D.
    pub(crate) const fn accumulator_registers(&self) -> usize {
        if matches!(self.a, Element::F64) { 2 } else { 1 }
    }

    /// Returns the numbers of registers of A, B and D (and C).
    pub(crate) const fn registers(&self) -> (usize, usize, usize) {
        (
            self.a_per_lane() * self.a.bits() / 32,
            self.b_per_lane() * self.b.bits() / 32,
            self.m * self.n * self.blocks / 64 * self.accumulator_registers(),
        )
    }
}

/// Meaning of a form's modifiers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modifiers {
    None,
    Blgp,
    All,
}

const fn dense(mnemonic: &'static str, shape: [usize; 4], a: Element, b: Element, modifiers: Modifiers) -> Form {
    let [m, n, k, blocks] = shape;
    Form {
        mnemonic,
        m,
        n,
        k,
        blocks,
        a,
        b,
        sparse: false,
        broadcast: matches!(modifiers, Modifiers::All),
        permute: !matches!(modifiers, Modifiers::None),
    }
}

const fn sparse(mnemonic: &'static str, shape: [usize; 3], a: Element, b: Element) -> Form {
    let [m, n, k] = shape;
    Form {
        mnemonic,
        m,
        n,
        k,
        blocks: 1,
        a,
        b,
        sparse: true,
        broadcast: false,
        permute: false,
    }
}

use Element::{Bf8, Bf16, F16, F32, F64, Fp8, I8, Xf32};
use Modifiers::{All, Blgp, None as No};

/// Every matrix instruction that LLVM 22 assembles for gfx942, by the name that its disassembler
/// prints.
#[rustfmt::skip]
pub(crate) static FORMS: [Form; 46] = [
    dense("v_mfma_f64_16x16x4_f64", [16, 16, 4, 1], F64, F64, No),
    dense("v_mfma_f64_4x4x4_4b_f64", [4, 4, 4, 4], F64, F64, No),
    dense("v_mfma_f32_32x32x1_2b_f32", [32, 32, 1, 2], F32, F32, All),
    dense("v_mfma_f32_16x16x1_4b_f32", [16, 16, 1, 4], F32, F32, All),
    dense("v_mfma_f32_4x4x1_16b_f32", [4, 4, 1, 16], F32, F32, All),
    dense("v_mfma_f32_32x32x2_f32", [32, 32, 2, 1], F32, F32, Blgp),
    dense("v_mfma_f32_16x16x4_f32", [16, 16, 4, 1], F32, F32, Blgp),
    dense("v_mfma_f32_16x16x8_xf32", [16, 16, 8, 1], Xf32, Xf32, No),
    dense("v_mfma_f32_32x32x4_xf32", [32, 32, 4, 1], Xf32, Xf32, No),
    dense("v_mfma_f32_32x32x4_2b_f16", [32, 32, 4, 2], F16, F16, All),
    dense("v_mfma_f32_16x16x4_4b_f16", [16, 16, 4, 4], F16, F16, All),
    dense("v_mfma_f32_4x4x4_16b_f16", [4, 4, 4, 16], F16, F16, All),
    dense("v_mfma_f32_32x32x8_f16", [32, 32, 8, 1], F16, F16, No),
    dense("v_mfma_f32_16x16x16_f16", [16, 16, 16, 1], F16, F16, No),
    dense("v_mfma_f32_32x32x4_2b_bf16", [32, 32, 4, 2], Bf16, Bf16, All),
    dense("v_mfma_f32_16x16x4_4b_bf16", [16, 16, 4, 4], Bf16, Bf16, All),
    dense("v_mfma_f32_4x4x4_16b_bf16", [4, 4, 4, 16], Bf16, Bf16, All),
    dense("v_mfma_f32_32x32x8_bf16", [32, 32, 8, 1], Bf16, Bf16, No),
    dense("v_mfma_f32_16x16x16_bf16", [16, 16, 16, 1], Bf16, Bf16, No),
    dense("v_mfma_f32_16x16x32_bf8_bf8", [16, 16, 32, 1], Bf8, Bf8, No),
    dense("v_mfma_f32_16x16x32_bf8_fp8", [16, 16, 32, 1], Bf8, Fp8, No),
    dense("v_mfma_f32_16x16x32_fp8_bf8", [16, 16, 32, 1], Fp8, Bf8, No),
    dense("v_mfma_f32_16x16x32_fp8_fp8", [16, 16, 32, 1], Fp8, Fp8, No),
    dense("v_mfma_f32_32x32x16_bf8_bf8", [32, 32, 16, 1], Bf8, Bf8, No),
    dense("v_mfma_f32_32x32x16_bf8_fp8", [32, 32, 16, 1], Bf8, Fp8, No),
    dense("v_mfma_f32_32x32x16_fp8_bf8", [32, 32, 16, 1], Fp8, Bf8, No),
    dense("v_mfma_f32_32x32x16_fp8_fp8", [32, 32, 16, 1], Fp8, Fp8, No),
    dense("v_mfma_i32_32x32x4_2b_i8", [32, 32, 4, 2], I8, I8, All),
    dense("v_mfma_i32_16x16x4_4b_i8", [16, 16, 4, 4], I8, I8, All),
    dense("v_mfma_i32_4x4x4_16b_i8", [4, 4, 4, 16], I8, I8, All),
    dense("v_mfma_i32_32x32x16_i8", [32, 32, 16, 1], I8, I8, No),
    dense("v_mfma_i32_16x16x32_i8", [16, 16, 32, 1], I8, I8, No),
    sparse("v_smfmac_f32_16x16x32_f16", [16, 16, 32], F16, F16),
    sparse("v_smfmac_f32_32x32x16_f16", [32, 32, 16], F16, F16),
    sparse("v_smfmac_f32_16x16x32_bf16", [16, 16, 32], Bf16, Bf16),
    sparse("v_smfmac_f32_32x32x16_bf16", [32, 32, 16], Bf16, Bf16),
    sparse("v_smfmac_i32_16x16x64_i8", [16, 16, 64], I8, I8),
    sparse("v_smfmac_i32_32x32x32_i8", [32, 32, 32], I8, I8),
    sparse("v_smfmac_f32_16x16x64_bf8_bf8", [16, 16, 64], Bf8, Bf8),
    sparse("v_smfmac_f32_16x16x64_bf8_fp8", [16, 16, 64], Bf8, Fp8),
    sparse("v_smfmac_f32_16x16x64_fp8_bf8", [16, 16, 64], Fp8, Bf8),
    sparse("v_smfmac_f32_16x16x64_fp8_fp8", [16, 16, 64], Fp8, Fp8),
    sparse("v_smfmac_f32_32x32x32_bf8_bf8", [32, 32, 32], Bf8, Bf8),
    sparse("v_smfmac_f32_32x32x32_bf8_fp8", [32, 32, 32], Bf8, Fp8),
    sparse("v_smfmac_f32_32x32x32_fp8_bf8", [32, 32, 32], Fp8, Bf8),
    sparse("v_smfmac_f32_32x32x32_fp8_fp8", [32, 32, 32], Fp8, Fp8),
];
