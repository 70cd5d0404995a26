//! The matrix instructions of gfx942: names by opcode, operations and clocks.

/// Returns the name of the matrix instruction with a VOP3P opcode.
pub(crate) fn name(opcode: u32) -> Option<&'static str> {
    Some(match opcode {
        0x3e => "v_mfma_f32_16x16x8_xf32",
        0x3f => "v_mfma_f32_32x32x4_xf32",
        0x40 => "v_mfma_f32_32x32x1_2b_f32",
        0x41 => "v_mfma_f32_16x16x1_4b_f32",
        0x42 => "v_mfma_f32_4x4x1_16b_f32",
        0x44 => "v_mfma_f32_32x32x2_f32",
        0x45 => "v_mfma_f32_16x16x4_f32",
        0x48 => "v_mfma_f32_32x32x4_2b_f16",
        0x49 => "v_mfma_f32_16x16x4_4b_f16",
        0x4a => "v_mfma_f32_4x4x4_16b_f16",
        0x4c => "v_mfma_f32_32x32x8_f16",
        0x4d => "v_mfma_f32_16x16x16_f16",
        0x50 => "v_mfma_i32_32x32x4_2b_i8",
        0x51 => "v_mfma_i32_16x16x4_4b_i8",
        0x52 => "v_mfma_i32_4x4x4_16b_i8",
        0x56 => "v_mfma_i32_32x32x16_i8",
        0x57 => "v_mfma_i32_16x16x32_i8",
        0x5d => "v_mfma_f32_32x32x4_2b_bf16",
        0x5e => "v_mfma_f32_16x16x4_4b_bf16",
        0x5f => "v_mfma_f32_4x4x4_16b_bf16",
        0x60 => "v_mfma_f32_32x32x8_bf16",
        0x61 => "v_mfma_f32_16x16x16_bf16",
        0x62 => "v_smfmac_f32_16x16x32_f16",
        0x64 => "v_smfmac_f32_32x32x16_f16",
        0x66 => "v_smfmac_f32_16x16x32_bf16",
        0x68 => "v_smfmac_f32_32x32x16_bf16",
        0x6a => "v_smfmac_i32_16x16x64_i8",
        0x6c => "v_smfmac_i32_32x32x32_i8",
        0x6e => "v_mfma_f64_16x16x4_f64",
        0x6f => "v_mfma_f64_4x4x4_4b_f64",
        0x70 => "v_mfma_f32_16x16x32_bf8_bf8",
        0x71 => "v_mfma_f32_16x16x32_bf8_fp8",
        0x72 => "v_mfma_f32_16x16x32_fp8_bf8",
        0x73 => "v_mfma_f32_16x16x32_fp8_fp8",
        0x74 => "v_mfma_f32_32x32x16_bf8_bf8",
        0x75 => "v_mfma_f32_32x32x16_bf8_fp8",
        0x76 => "v_mfma_f32_32x32x16_fp8_bf8",
        0x77 => "v_mfma_f32_32x32x16_fp8_fp8",
        0x78 => "v_smfmac_f32_16x16x64_bf8_bf8",
        0x79 => "v_smfmac_f32_16x16x64_bf8_fp8",
        0x7a => "v_smfmac_f32_16x16x64_fp8_bf8",
        0x7b => "v_smfmac_f32_16x16x64_fp8_fp8",
        0x7c => "v_smfmac_f32_32x32x32_bf8_bf8",
        0x7d => "v_smfmac_f32_32x32x32_bf8_fp8",
        0x7e => "v_smfmac_f32_32x32x32_fp8_bf8",
        0x7f => "v_smfmac_f32_32x32x32_fp8_fp8",
        _ => return None,
    })
}

/// Returns the operations of a wave's matrix instruction, derived from its name; a multiply-add is
/// two. `v_mfma_f32_32x32x4_2b_f16` computes two blocks of 32 × 32 × 4.
pub(crate) fn operations(name: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().ok();
    let mut parts = name.split('_');
    let shape: Option<u64> = parts
        .find(|part| part.contains('x') && part.starts_with(|c: char| c.is_ascii_digit()))
        .and_then(|shape| shape.split('x').map(number).product());
    let blocks = parts
        .next()
        .and_then(|part| number(part.strip_suffix('b')?))
        .unwrap_or(1);
    2 * shape.unwrap_or(0) * blocks
}

/// Returns the clocks for which the instruction occupies its SIMD's matrix unit.
pub(crate) fn clocks(name: &str) -> u64 {
    u64::from(rotini_time::clocks::matrix(name, operations(name)))
}

#[cfg(test)]
mod tests {
    use super::{clocks, operations};

    /// The clocks are those of AMD's public tables for a SIMD (ROCm/rocm-libraries,
    /// `shared/origami`).
    #[test]
    fn operations_and_clocks_are_those_of_the_shape() {
        for (name, made, taken) in [
            ("v_mfma_f32_16x16x16_f16", 8192, 16),
            ("v_mfma_f32_32x32x8_bf16", 16384, 32),
            ("v_mfma_f32_32x32x4_2b_f16", 16384, 32),
            ("v_mfma_f32_16x16x32_fp8_bf8", 16384, 16),
            ("v_mfma_f32_16x16x4_f32", 2048, 32),
            ("v_mfma_f64_16x16x4_f64", 2048, 32),
        ] {
            assert_eq!((operations(name), clocks(name)), (made, taken), "{name}");
        }
    }
}
