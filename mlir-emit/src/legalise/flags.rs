//! Compiler flags that avoid defects.

use crate::quirks::{Quirk, Quirks};

/// Flags of the second attempt to compile a graph for GPUs, each of which turns one feature off.
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
    /// Returns the flags for all code for NVIDIA GPUs. [`Quirk::CudaMatmuls`]: they turn two
    /// pipelines for matmuls off.
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
