//! The register: what is known of each quirk.

use super::Effect::{Crash, Rejected, Slow, Wrong};
use super::{Backend, Description, Guard, Quirk};

const GPUS: &[Backend] = &[Backend::Amd, Backend::Nvidia];
const EVERYWHERE: &[Backend] = &[Backend::Cpu, Backend::Amd, Backend::Nvidia];

/// What most quirks have in common: seen on 3.13, everywhere, without a cost, not reported.
const UNREPORTED: Description = Description {
    quirk: Quirk::FoldedTranspose,
    backends: EVERYWHERE,
    seen_on: &["3.13"],
    effect: Wrong,
    what: "",
    instead: "",
    costs: None,
    guard: Guard::None(""),
    upstream: None,
};

/// Every quirk, in the order of [`Quirk::ALL`].
pub const REGISTER: &[Description] = &[
    Description {
        quirk: Quirk::FoldedTranspose,
        effect: Wrong,
        what: "The transpose of an operand is folded into the convolution that reads it, as wrong addresses: an NCHW view of NHWC data in the implicit GEMM. On the CPU the convolution then runs tens of times slower.",
        instead: "An operand in another order is copied behind a compute barrier.",
        costs: Some("one pass over the operand"),
        guard: Guard::Case(Backend::Amd, "conv_to_n2_g2_4x1_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::LostSums,
        backends: GPUS,
        effect: Wrong,
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
        what: "Instruction selection does not end where a byte is loaded under a mask and its bits are shifted to those of a float: FP8 in a reduction that is spread beyond the end of its rows.",
        instead: "The operand is decoded in a dispatch of its own.",
        costs: Some("one pass over the operand, of four times the size"),
        guard: Guard::Case(Backend::Amd, "largest_of_codes_7x56"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddingOfUnitLoops,
        backends: GPUS,
        effect: Wrong,
        what: "Padding that is fused into a convolution with a loop of one step is forgotten: the input is read as if it were not moved.",
        instead: "The padded input is a tensor of its own.",
        costs: Some("one pass over the padded input"),
        guard: Guard::Case(Backend::Amd, "conv_padded_point_g1_nchw_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddingOfChannels,
        backends: GPUS,
        effect: Wrong,
        what: "Padding that is fused into a convolution whose groups have several channels and one filter: registers are stored that nothing has written.",
        instead: "The padded input is a tensor of its own.",
        costs: Some("one pass over the padded input"),
        guard: Guard::None(
            "all 8 cases that it changes on AMD are right without it: a mass run decides whether it is deleted",
        ),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PaddingOfMixedFactors,
        backends: GPUS,
        effect: Wrong,
        what: "Padding that is fused into a convolution that no matrix core computes: of i32, of u8, of f32 by bf16. Where windows lie along one axis, the input is not read at all.",
        instead: "Unless both factors are floats of one type, the padded input is a tensor of its own.",
        costs: Some("one pass over the padded input"),
        guard: Guard::Case(Backend::Amd, "conv_1d_padded_i32_by_i32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnitPadding,
        backends: GPUS,
        effect: Wrong,
        what: "Padding of an axis of one element that is computed on its own: one pixel with padding 1 lands in the corner.",
        instead: "A selection by index makes the padded axis.",
        guard: Guard::None(
            "all 42 cases that it changes on AMD are right without it: a mass run decides whether it is deleted",
        ),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::DroppedUnits,
        backends: GPUS,
        effect: Wrong,
        what: "A result, channels last, with groups after an axis of extent 1, or with such an axis between two others: it is dropped, and the implicit GEMM reads x at wrong places.",
        instead: "Such a convolution is computed channels first.",
        costs: Some("copies of operands that are channels last"),
        guard: Guard::Case(Backend::Amd, "conv_to_n1_g2_4x1_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::BlocksAfterRows,
        backends: &[Backend::Amd],
        effect: Wrong,
        what: "A grouped convolution whose result has its groups after its positions, with few filters in a group: the registers of a matrix instruction of several blocks (16x16x4, 4 blocks) are taken for rows.",
        instead: "The result is stored with its groups first, and brought into order afterwards.",
        costs: Some("nothing to speak of: both are one dispatch"),
        guard: Guard::Case(Backend::Amd, "conv_to_eight_filters_g4_nhwc_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::DilatedMultiplier,
        backends: GPUS,
        effect: Wrong,
        what: "A dilated convolution with several filters for each group of one channel: wrong code of its implicit GEMM.",
        instead: "Each channel is repeated for its filters.",
        costs: Some("one pass over the repeated input"),
        guard: Guard::None(
            "all 12 cases that it changes on AMD are right without it: a mass run decides whether it is deleted",
        ),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UnreachedInput,
        backends: GPUS,
        effect: Wrong,
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
        effect: Wrong,
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
        effect: Wrong,
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
        quirk: Quirk::MaskedBatches,
        backends: &[Backend::Amd],
        effect: Wrong,
        what: "The last step of a matrix core is filled up by masks; the mask over an axis that is not the innermost is lost if the innermost is cut off too, and the next matrix of the batch is read.",
        instead: "The operand lies with the summed axis last.",
        costs: Some("one pass over the operand"),
        guard: Guard::Case(Backend::Amd, "lp_matmul_i8_by_f16_5x7x3"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::StoredSums,
        backends: &[Backend::Amd],
        effect: Wrong,
        what: "Sums that are stored beside a chain of stored tensors made of them, or beside one in another order: a tile that is cut off lies in shared memory, where threads overwrite each other's.",
        instead: "The sums are a dispatch of their own.",
        costs: Some("one pass over the sums"),
        guard: Guard::Case(Backend::Amd, "matmul_chain_stored_3x24x6"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::RepeatedFactors,
        effect: Rejected,
        what: "A sum of products is taken for a contraction, which is invalid if a factor is repeated along a reduced axis, also if the \
               product is an operation of its own: x · w summed over rows, with one w for each row.",
        instead: "Each term copies its own sign, which nothing folds before the compiler has looked for contractions. Integers are written \
                  out.",
        guard: Guard::Case(Backend::Amd, "product_with_samples_sum_of_rows_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MixedProducts,
        effect: Rejected,
        what: "A sum of products of floats of two types, neither of which is the compute type, becomes an invalid contraction.",
        instead: "Both are widened.",
        costs: Some("one pass over both operands"),
        guard: Guard::Case(Backend::Amd, "layernorm_backward_f16_by_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::NegatedTerms,
        backends: GPUS,
        effect: Rejected,
        what: "A sum of -x becomes one that subtracts x from what it has, and the compiler knows no neutral element of that.",
        instead: "-x copies its own sign, and is ~x + 1 of integers.",
        guard: Guard::Case(Backend::Amd, "add_of_negated_100x64_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ForgottenFunctions,
        backends: GPUS,
        effect: Wrong,
        what: "A sum of products is taken for a contraction whatever function of one operand a factor or the product goes through: -x or exp(x) by y becomes x by y.",
        instead: "The factor of a custom operation is a dispatch of its own; a sum of functions of products is declined.",
        costs: Some("one pass over the factor"),
        guard: Guard::Case(Backend::Amd, "custom_products_of_magnitudes_4x5x7x6"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PackedReductions,
        backends: &[Backend::Cpu],
        effect: Wrong,
        what: "The result of a reduction is packed for the epilogue of a matmul as one column of all batches; the rows of later batches are not where they are read.",
        instead: "The result is a dispatch of its own where the graph has a contraction.",
        guard: Guard::Case(Backend::Cpu, "sdpa_backward_scale_tensor"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::LooseLoops,
        backends: &[Backend::Cpu],
        effect: Crash,
        what: "A loop over no tensor in the dispatch of a convolution on packed tiles: a crash in every other run, while encodings are materialised.",
        instead: "The loop is a dispatch of its own where the graph has a contraction.",
        guard: Guard::None("the crash comes in some runs only"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::GatheredScales,
        backends: &[Backend::Amd],
        what: "Scales of blocks that are gathered from between gaps make NaN of sums if the last block is cut off.",
        instead: "The scales are a dispatch of their own.",
        guard: Guard::Case(Backend::Amd, "blocks_of_scales_with_gaps"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::MissingFmax,
        backends: &[Backend::Cpu],
        effect: Rejected,
        what: "The larger of two widened f16 becomes a call of fmaxf on x86 without arithmetic of f16, and nothing brings that function.",
        instead: "The larger one is chosen by comparison.",
        guard: Guard::None("processors with arithmetic of f16 do not show it"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::LostNan,
        backends: GPUS,
        effect: Wrong,
        what: "arith.maximumf and arith.minimumf become an instruction that passes over NaN.",
        instead: "NaN is asked for; along an axis floats are combined as integers of the same order.",
        guard: Guard::None("the conformance suite's numbers do not show it: special values do"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::CopiedSign,
        backends: &[Backend::Amd],
        effect: Crash,
        what: "The code generator crashes where it copies the sign of a single f64 to an f32.",
        instead: "erf is that of |x|, with its sign.",
        guard: Guard::Case(Backend::Amd, "pw_ERF_f64_in_f32"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ConstantFolds,
        backends: GPUS,
        effect: Rejected,
        what: "A reduction over loops that read no window is vectorised into invalid IR if what is found is the same in all iterations.",
        instead: "Each thread has one loop.",
        guard: Guard::Case(Backend::Amd, "pool_avg_exclude_one_pixel_nchw"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::YieldedOperand,
        effect: Rejected,
        what: "An operation that turns out late to yield one of its operands: the kernel that does nothing but copy is rejected.",
        instead: "The operand is the result.",
        guard: Guard::Case(Backend::Amd, "itself_or_itself_once"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ConstantSums,
        effect: Wrong,
        what: "Where all elements turn out to be the same and are summed, too few are.",
        instead: "They are a dispatch of their own in graphs that have more than pointwise operations.",
        costs: Some("one pass over the elements"),
        guard: Guard::Case(Backend::Amd, "sum_of_or_true"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ConstantTransposed,
        effect: Wrong,
        what: "What reads an operand in another order than the result's and yields a constant is taken for a transposition, and copies the operand.",
        instead: "The result is computed in the operand's order, and reordered when it is stored.",
        guard: Guard::Case(Backend::Amd, "sub_with_itself_in_i64"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::RoundedTwice,
        effect: Wrong,
        what: "An f64 is rounded to 16 bits through f32: twice, and what is subnormal in f16 becomes 0.",
        instead: "The first rounding is to odd.",
        guard: Guard::None("the conformance suite's numbers do not show it: the test `rounding` does"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SelectedBf16,
        effect: Wrong,
        what: "bf16 is selected in f32, and on the way back what is no number changes.",
        instead: "It is selected as bits.",
        guard: Guard::Case(Backend::Cpu, "gaps_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::WideBf16,
        backends: &[Backend::Cpu],
        effect: Wrong,
        what: "bf16 that is made and read in one dispatch is left in f32.",
        instead: "A custom operation's tensors of bf16 stand behind a barrier.",
        costs: Some("one pass over the tensor"),
        guard: Guard::Case(Backend::Cpu, "custom_between_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SumsInPlace,
        effect: Wrong,
        what: "A reduction that starts from a tensor sums up in its memory, which may be the caller's.",
        instead: "It starts from one number, and the tensor is combined with the result.",
        costs: Some("one pass over the result"),
        guard: Guard::Case(Backend::Amd, "custom_row_largest_numbers_and_more"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::FixedPlaces,
        effect: Wrong,
        what: "Maps with constants among their results become other code.",
        instead: "The axes that are fixed are sliced off.",
        guard: Guard::None(
            "all 13 cases that it changes on AMD are right without it: a mass run decides whether it is deleted",
        ),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SingleTile,
        effect: Rejected,
        what: "The only entry of a list of one tile is read on the host while the graph runs.",
        instead: "There are two tiles at least.",
        guard: Guard::Case(Backend::Amd, "moe_one_row_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SharedGather,
        effect: Wrong,
        what: "Single rows of 16-bit floats become a gather, in which two waves write the same shared memory.",
        instead: "The rows are widened.",
        costs: Some("one pass over the matrices"),
        guard: Guard::Case(Backend::Amd, "moe_vectors_f16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SummedRow,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "A tensor's only row that is looked up by computed indices is no gather. So it is fused with the sums over several axes that make it, which then cannot be distributed.",
        instead: "The row is a dispatch of its own.",
        costs: Some("one pass over the row"),
        guard: Guard::Case(Backend::Amd, "moe_backward_of_one_summed_row"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::UntiledAttention,
        backends: &[Backend::Amd],
        effect: Rejected,
        what: "The compiler's attention has no matrix instructions for heads that are no power of two of 16 or more, and some do not compile.",
        instead: "Attention is made of matmuls and steps.",
        costs: Some("more dispatches"),
        guard: Guard::Case(Backend::Amd, "sdpa_one_key"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ImplicitGemm,
        backends: &[Backend::Amd],
        effect: Crash,
        what: "A grouped NCHW convolution in f32 (8 channels to 12 in 2 groups, 7x7, 3x3) recurses without end in the lowering of buffer pointers after the implicit GEMM.",
        instead: "A fallback flag turns implicit GEMMs off for what does not compile with them.",
        costs: Some("slower convolutions, where the first call fails"),
        guard: Guard::None("no case is known that shows it"),
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
        quirk: Quirk::PackedTiles,
        backends: &[Backend::Cpu],
        effect: Crash,
        what: "Loops over no tensor inside a matmul's dispatch on packed tiles.",
        instead: "A fallback flag turns packed tiles off for what does not compile with them.",
        costs: Some("slower matmuls, where the first call fails"),
        guard: Guard::None("the crash comes in some runs only"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::CudaWindows,
        backends: &[Backend::Nvidia],
        effect: Rejected,
        what: "Convolutions with several windows of one element.",
        instead: "A fallback flag turns implicit GEMMs off for what does not compile with them.",
        costs: Some("slower convolutions, where the first call fails"),
        guard: Guard::None("it needs an NVIDIA GPU"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::CudaMatmuls,
        backends: &[Backend::Nvidia],
        effect: Wrong,
        what: "Both pipelines for matmuls compute wrong results where a matrix is transposed, as in a 1x1 convolution of NCHW data in f16; so does fused padding in a 1D convolution. Seen executed on an H200.",
        instead: "Flags turn both pipelines off.",
        costs: Some("slower matmuls"),
        guard: Guard::None("it needs an NVIDIA GPU"),
        ..UNREPORTED
    },
];
