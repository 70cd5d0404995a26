//! Clocks that one instruction occupies its SIMD, by mnemonic.

use crate::Operands;

/// Returns the clocks of a vector instruction. 64 lanes on 16-lane hardware take 4 clocks; 32-bit
/// products and transcendental functions have a quarter of that rate, 64-bit shifts half.
#[must_use]
pub fn vector(mnemonic: &str) -> u8 {
    const QUARTER: &[&str] = &[
        "v_mul_lo_u32",
        "v_mul_hi_u32",
        "v_mul_hi_i32",
        "v_mad_u64_u32",
        "v_mad_i64_i32",
        "v_rcp_",
        "v_rsq_",
        "v_sqrt_",
        "v_exp_",
        "v_log_",
        "v_sin_",
        "v_cos_",
    ];
    const HALF: &[&str] = &["v_lshlrev_b64", "v_lshrrev_b64", "v_ashrrev_i64", "v_lshl_add_u64"];
    let is = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
    match () {
        () if is(QUARTER) => 16,
        () if is(HALF) => 8,
        () => 4,
    }
}

/// Returns true if a vector instruction works on pairs of f32 or is a dot product: these never run
/// concurrently with a matrix instruction. Source: LLVM's pull request 233721, by thread traces of
/// gfx942. Instructions on pairs of 16 bits behave like ordinary ones.
#[must_use]
pub fn is_packed(mnemonic: &str) -> bool {
    const PACKED: &[&str] = &["v_pk_add_f32", "v_pk_fma_f32", "v_pk_mul_f32", "v_pk_mov_b32", "v_dot"];
    PACKED.iter().any(|name| mnemonic.starts_with(name))
}

/// Returns the clocks of a matrix instruction of `operations` operations (a multiply-add is two),
/// at least 8, from the operations per clock of a SIMD's matrix unit. Source: AMD's peaks (f16
/// 1307, f8 and i8 2615, f32 and f64 163 TFLOP/s at 2.1 GHz on 304 compute units of four SIMDs),
/// which agree with the tables of ROCm/rocm-libraries `shared/origami`.
#[must_use]
pub fn matrix(mnemonic: &str, operations: u64) -> u16 {
    let name = mnemonic.strip_suffix("_1k").unwrap_or(mnemonic);
    let rate = match () {
        () if name.ends_with("_xf32") => 256,
        () if name.ends_with("f64") || name.ends_with("_f32") || name.ends_with("x1f32") => 64,
        () if name.ends_with("_i8") || name.ends_with("fp8") || name.ends_with("bf8") => 1024,
        () => 512,
    };
    // A sparse product does two operations in the time of one dense operation.
    let rate = if mnemonic.starts_with("v_smfmac") {
        2 * rate
    } else {
        rate
    };
    u16::try_from(operations.div_ceil(rate).max(8)).unwrap_or(u16::MAX)
}

/// Returns the type of a matrix instruction's operands.
#[must_use]
pub fn operands(mnemonic: &str) -> Operands {
    let name = mnemonic.strip_suffix("_1k").unwrap_or(mnemonic);
    match () {
        () if name.ends_with("bf16") => Operands::Bf16,
        () if name.ends_with("f16") => Operands::F16,
        () if name.ends_with("_i8") || name.ends_with("fp8") || name.ends_with("bf8") => Operands::Byte,
        () => Operands::Wide,
    }
}

/// Returns the operations per clock of a SIMD's matrix unit.
pub(crate) const fn rate(operands: Operands) -> f64 {
    match operands {
        Operands::Bf16 | Operands::F16 => 512.0,
        Operands::Byte => 1024.0,
        Operands::Wide => 64.0,
    }
}
