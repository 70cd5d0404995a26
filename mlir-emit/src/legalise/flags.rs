//! Flags that keep the compiler from what it gets wrong.

use crate::quirks::{Quirk, Quirks};

/// Flags for what GPUs' code is not compiled with otherwise.
pub(crate) const FALLBACK: [(Quirk, &str); 3] = [
    (Quirk::ImplicitGemm, "--iree-codegen-llvmgpu-use-igemm=false"),
    (
        Quirk::PaddedTiles,
        "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false",
    ),
    (
        Quirk::AggressiveFusion,
        "--iree-dispatch-creation-enable-aggressive-fusion=false",
    ),
];

impl Quirks {
    /// Flags for all code of NVIDIA GPUs. [`Quirk::CudaMatmuls`]: without two pipelines for matmuls.
    pub(crate) const fn cuda_flags(self) -> &'static [&'static str] {
        if self.avoids(Quirk::CudaMatmuls) {
            &[
                "--iree-codegen-llvmgpu-use-tile-and-fuse-matmul=false",
                "--iree-codegen-llvmgpu-use-vector-distribution=false",
            ]
        } else {
            &[]
        }
    }
}
