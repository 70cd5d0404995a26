//! Quirks that compiler flags avoid.

use super::common::UNREPORTED;
use crate::quirks::Effect::{Crash, Rejected};
use crate::quirks::{Backend, Description, Guard, Quirk};

pub(super) const FLAGS: &[Description] = &[
    Description {
        quirk: Quirk::ImplicitGemm,
        backends: &[Backend::Amd],
        effect: Crash,
        what: "A grouped NCHW convolution in f32 (8 channels to 12 in 2 groups, 7x7, 3x3) recurses without end in the lowering of buffer pointers after the implicit GEMM.",
        instead: "A fallback flag turns implicit GEMMs off for what does not compile with them.",
        costs: Some("slower convolutions, where the first call fails"),
        guard: Guard::Case(Backend::Amd, "conv_two_groups_of_six_filters_nchw"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddedTiles,
        backends: &[Backend::Amd],
        effect: Crash,
        what: "A batched matmul of 6 or 10 rows and an even batch recurses without end on padded tiles; one that is no whole number of tiles and is stored with its batches innermost becomes a scatter that nothing lowers.",
        instead: "A fallback flag turns tiling with fusion off for what does not compile with it.",
        costs: Some("slower matmuls, where the first call fails"),
        guard: Guard::Case(Backend::Amd, "matmul_batches_innermost_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::AggressiveFusion,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "The sums of layernorm backward of a converted f64 use what is defined after them.",
        instead: "A fallback flag turns aggressive fusion off for what does not compile with it.",
        costs: Some("more dispatches, where the first call fails"),
        guard: Guard::Case(Backend::Amd, "layernorm_backward_of_narrowed_f64"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::CudaMatmuls,
        backends: &[Backend::Nvidia],
        what: "Both pipelines for matmuls compute wrong results where a matrix is transposed, as in a 1x1 convolution of NCHW data in f16; so does fused padding in a 1D convolution. Seen executed on an H200 and on an H100.",
        instead: "Flags turn both pipelines off.",
        costs: Some("slower matmuls"),
        guard: Guard::Case(Backend::Nvidia, "wgrad_nchw_f16"),
        ..UNREPORTED
    },
];
