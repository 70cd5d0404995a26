//! Quirks of convolutions, products of matrices, and the spreading of reductions.

use super::common::{GPUS, UNREPORTED};
use crate::quirks::Effect::{Rejected, Slow};
use crate::quirks::{Backend, Description, Guard, Quirk};

pub(super) const PRODUCTS: &[Description] = &[
    Description {
        quirk: Quirk::FoldedTranspose,
        what: "The transpose of an operand is folded into the convolution that reads it, as wrong addresses: an NCHW view of NHWC data in the implicit GEMM. On the CPU the convolution then runs tens of times slower.",
        instead: "An operand in another order is copied behind a compute barrier.",
        costs: Some("one pass over the operand"),
        guard: Guard::Case(Backend::Amd, "conv_to_n2_g2_4x1_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::LostSums,
        backends: GPUS,
        what: "Where loops of a reduction do not become one, the innermost may be given to more subgroups than are added up, and parts of the sum are left out: 64 x 28 on gfx942, 14 x 16 on an H200. So are all but the first of 16 subgroups where eight lanes lie along the innermost loop.",
        instead: "Two reductions: the last axis, then the rest as one loop. Eight subgroups there.",
        costs: Some("one more dispatch, and its intermediate tensor"),
        guard: Guard::Case(Backend::Amd, "sum_around_257x2x8_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnspreadReductions,
        backends: &[Backend::Amd],
        effect: Slow,
        what: "A reduction whose innermost loop is no whole number of subgroups is one thread's work; several of them in one dispatch are unrolled until the compiler has no end: layernorm of 4 x 300.",
        instead: "The operation says how it is spread, in a dispatch of its own.",
        costs: Some("a dispatch of its own, and the operand in the order of the loops"),
        guard: Guard::Case(Backend::Amd, "rows_layernorm-training_4x1000_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MaskedCodes,
        backends: &[Backend::Amd],
        effect: Slow,
        what: "Instruction selection does not end where a byte is loaded under a mask and its bits are shifted to those of a float, or its magnitude is taken: FP8, or the magnitudes of int8, in a reduction that is spread beyond the end of its rows.",
        instead: "The operand is decoded in a dispatch of its own.",
        costs: Some("one pass over the operand, of four times the size"),
        guard: Guard::Case(Backend::Amd, "largest_of_codes_7x56"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddingOfUnitLoops,
        backends: GPUS,
        what: "Padding that is fused into a convolution with a loop of one step is forgotten: the input is read as if it were not moved.",
        instead: "The padded input is a tensor of its own.",
        costs: Some("one pass over the padded input"),
        guard: Guard::Case(Backend::Amd, "conv_padded_point_g1_nchw_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddingOfMixedFactors,
        backends: GPUS,
        what: "Padding that is fused into a convolution that no matrix core computes: of i32, of u8, of f32 by bf16. Where windows lie along one axis, the input is not read at all.",
        instead: "Unless both factors are floats of one type, the padded input is a tensor of its own.",
        costs: Some("one pass over the padded input"),
        guard: Guard::Case(Backend::Amd, "conv_1d_padded_i32_by_i32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::DroppedUnits,
        backends: GPUS,
        what: "A result, channels last, with groups after an axis of extent 1, or with such an axis between two others: it is dropped, and the implicit GEMM reads x at wrong places.",
        instead: "Such a convolution is computed channels first.",
        costs: Some("copies of operands that are channels last"),
        guard: Guard::Case(Backend::Amd, "conv_to_n1_g2_4x1_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::BlocksAfterRows,
        backends: &[Backend::Amd],
        what: "A grouped convolution whose result has its groups after its positions, with few filters in a group: the registers of a matrix instruction of several blocks (16x16x4, 4 blocks) are taken for rows.",
        instead: "The result is stored with its groups first, and brought into order afterwards.",
        costs: Some("nothing to speak of: both are one dispatch"),
        guard: Guard::Case(Backend::Amd, "conv_to_eight_filters_g4_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::DilatedMultiplier,
        backends: GPUS,
        what: "A dilated convolution with several filters for each group of one channel: wrong code of its implicit GEMM.",
        instead: "Each channel is repeated for its filters.",
        costs: Some("one pass over the repeated input"),
        guard: Guard::Case(Backend::Amd, "conv_dilated_multiplier_of_columns"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnreachedInput,
        backends: GPUS,
        what: "Code for GPUs assumes that the last window ends where the input does.",
        instead: "What no window reaches is cut off.",
        guard: Guard::Case(Backend::Amd, "conv_one_window_nchw"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnsettledFactors,
        effect: Rejected,
        what: "What is computed on the way to a factor of a contraction is fused into its reads, which code generation does not always survive.",
        instead: "The factor is a dispatch of its own.",
        costs: Some("one pass over the factor"),
        guard: Guard::Case(Backend::Amd, "lp_f8e4m3_conv_nchw"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MixedFactors,
        what: "Floats of two types, neither of which is the compute type, are widened for a product only where the shape is a lucky one.",
        instead: "Both factors are converted to the compute type.",
        costs: Some("one pass over both factors"),
        guard: Guard::Case(Backend::Amd, "matmul_f16_by_bf16_in_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::NarrowedFactors,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "Factors of f64 that are multiplied in a narrower type: the matrix core of f64 is chosen, whose sums are f64 too.",
        instead: "Both factors are converted to the compute type.",
        costs: Some("one pass over both factors"),
        guard: Guard::Case(Backend::Amd, "matmul_narrowed_f64_48x4x16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MixedFnuz,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "A product of both FNUZ types is rejected where a matrix ends within a tile.",
        instead: "Both are widened to f16.",
        costs: Some("one pass over both factors"),
        guard: Guard::Case(Backend::Amd, "lp_matmul_e4m3fnuz_by_e5m2fnuz_1x33x9"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SingleFnuz,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "A factor of one FNUZ element, which is a byte until it is multiplied: the bitcast becomes a kernel of its own that is not bufferized.",
        instead: "Both factors are widened to f16.",
        guard: Guard::Case(Backend::Amd, "matmul_single_e4m3fnuz_1x1x5"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnsignedBytes,
        what: "Unsigned bytes are multiplied as signed ones.",
        instead: "They are widened to i32.",
        costs: Some("one pass over the factor, of four times the size"),
        guard: Guard::Case(Backend::Amd, "lp_matmul_u8_by_u8_32x64x48"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::OddHalves,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "Products of f16 that threads sum 5 or 7 at a time, where there are few rows or columns, do not compile.",
        instead: "Both factors are widened.",
        costs: Some("one pass over both factors"),
        guard: Guard::Case(Backend::Amd, "matmul_thin_72x7x2_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ThinFnuz,
        backends: &[Backend::Amd],
        what: "Products of FNUZ codes with two to four rows or columns, whose sums are no multiple of four: code reads shared memory beyond the workgroup's.",
        instead: "Both factors are widened.",
        costs: Some("one pass over both factors, of four times the size"),
        guard: Guard::Case(Backend::Amd, "matmul_thin_2x7x132_fnuz"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MaskedBatches,
        backends: &[Backend::Amd],
        what: "The last step of a matrix core is filled up by masks; the mask over an axis that is not the innermost is lost if the innermost is cut off too, and the next matrix of the batch is read.",
        instead: "The operand lies with the summed axis last.",
        costs: Some("one pass over the operand"),
        guard: Guard::Case(Backend::Amd, "lp_matmul_i8_by_f16_5x7x3"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::StoredSums,
        backends: &[Backend::Amd],
        what: "Sums that are stored beside a chain of stored tensors made of them, or beside one in another order: a tile that is cut off lies in shared memory, where threads overwrite each other's.",
        instead: "The sums are a dispatch of their own.",
        costs: Some("one pass over the sums"),
        guard: Guard::Case(Backend::Amd, "matmul_chain_stored_3x24x6"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::FoldedSums,
        what: "What is added to a sum of products becomes what the sum starts from, if all its products are one step: it is rounded with each of them, and what cancelled exactly does not.",
        instead: "The sum copies its own sign before it is added to, which nothing folds before the compiler has looked for contractions.",
        guard: Guard::Case(Backend::Amd, "matmul_beside_its_gelu_6x2x9"),
        ..UNREPORTED
    },
];
