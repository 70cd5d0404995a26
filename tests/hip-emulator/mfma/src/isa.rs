//! Detects the best instruction set of the CPU for which the arithmetic is compiled.

/// The instruction sets that are distinguished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    Portable,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 and FMA, as the module `avx512` uses them.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn detect() -> Self {
        if has_avx512() {
            Isa::Avx512
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            Isa::Avx2
        } else {
            Isa::Portable
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Self {
        Isa::Portable
    }
}

/// Returns true if the CPU has the features that `avx512` uses: Intel since Ice Lake, AMD since Zen
/// 4.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("fma")
}
