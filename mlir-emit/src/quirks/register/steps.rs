//! Quirks of sums, elementwise operations, conversions, and reads at computed indices.

use super::common::{GPUS, UNREPORTED};
use crate::quirks::Effect::{Crash, Rejected, Slow};
use crate::quirks::{Backend, Description, Guard, Quirk};

pub(super) const STEPS: &[Description] = &[
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
        quirk: Quirk::SignedExtremes,
        backends: GPUS,
        what: "The least or greatest of integers whose sign is known (of U8, magnitudes, x - x) is taken without a sign in some lanes, \
               and lanes beyond the end have the neutral element of that: -1 is the least of nothing, 0 the greatest.",
        instead: "The greatest without a sign, of integers with turned bits. Bodies of custom operations with `arith.minsi` or \
                  `arith.maxsi` along an axis are declined.",
        guard: Guard::Case(Backend::Amd, "reduce_min_of_read_40"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ForgottenFunctions,
        backends: GPUS,
        what: "A sum of products is taken for a contraction whatever function of one operand a factor or the product goes through: -x or exp(x) by y becomes x by y.",
        instead: "The factor of a custom operation is a dispatch of its own; a sum of functions of products is declined.",
        costs: Some("one pass over the factor"),
        guard: Guard::Case(Backend::Amd, "custom_products_of_magnitudes_4x5x7x6"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::PackedReductions,
        backends: &[Backend::Cpu],
        what: "The result of a reduction is packed for the epilogue of a matmul as one column of all batches; the rows of later batches are not where they are read.",
        instead: "The result is a dispatch of its own where the graph has a contraction.",
        guard: Guard::Case(Backend::Cpu, "sdpa_backward_wider_values"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::InnerLoops,
        backends: &[Backend::Amd],
        what: "Sums of a loop inside of an element, computed in the dispatch of reductions: a row in five is wrong.",
        instead: "The sums are a dispatch of their own.",
        costs: Some("one pass over them, where the graph reads them"),
        guard: Guard::Case(Backend::Amd, "layernorm_backward_of_moe_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::GatheredScales,
        backends: GPUS,
        what: "Scales of blocks that are gathered from between gaps make NaN of sums if the last block is cut off; on NVIDIA, a scale of the wrong block is stored.",
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
        guard: Guard::Compiled(
            Backend::Cpu,
            "custom_larger_number_f16",
            &["--iree-llvmcpu-target-cpu=x86-64-v3"],
        ),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::FoldedBf16,
        backends: &[Backend::Cpu],
        effect: Rejected,
        what: "An integer that becomes f32 and then bf16 is folded to one conversion, which becomes a call of __truncsfbf2 on x86 without arithmetic of bf16, and nothing brings that function.",
        instead: "0 is added to the f32.",
        guard: Guard::Compiled(Backend::Cpu, "lp_i4_to_bf16", &["--iree-llvmcpu-target-cpu=x86-64-v3"]),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::LostNan,
        backends: GPUS,
        what: "arith.maximumf and arith.minimumf become an instruction that passes over NaN.",
        instead: "NaN is asked for; along an axis floats are combined as integers of the same order.",
        guard: Guard::Case(Backend::Amd, "pw_edges_MAX_OP_f32"),
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
        what: "Where all elements turn out to be the same and are summed, too few are.",
        instead: "They are a dispatch of their own in graphs that have more than pointwise operations.",
        costs: Some("one pass over the elements"),
        guard: Guard::Case(Backend::Amd, "sum_of_or_true"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::ConstantTransposed,
        what: "What reads an operand in another order than the result's and yields a constant is taken for a transposition, and copies the operand.",
        instead: "The result is computed in the operand's order, and reordered when it is stored.",
        guard: Guard::Case(Backend::Amd, "sub_with_itself_in_i64"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::RoundedTwice,
        what: "An f64 is rounded to 16 bits through f32: twice, and what is subnormal in f16 becomes 0.",
        instead: "The first rounding is to odd.",
        guard: Guard::Case(Backend::Amd, "lp_i32_rounded_to_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SelectedSingle,
        backends: &[Backend::Amd],
        effect: Slow,
        what: "Instruction selection does not end where a thread selects one element: a clamped i64, or a single unsigned byte or result of a comparison, as an i64.",
        instead: "What is single is an i32 in a dispatch of its own.",
        guard: Guard::Case(Backend::Amd, "select_i64_or_a_byte_2x4x5"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::WideBf16,
        backends: &[Backend::Cpu],
        what: "bf16 that is made and read in one dispatch is left in f32.",
        instead: "A custom operation's tensors of bf16 stand behind a barrier.",
        costs: Some("one pass over the tensor"),
        guard: Guard::Case(Backend::Cpu, "custom_between_bf16"),
        ..UNREPORTED
    },
    Description {
        quirk: Quirk::SumsInPlace,
        what: "A reduction that starts from a tensor sums up in its memory, which may be the caller's.",
        instead: "It starts from one number, and the tensor is combined with the result.",
        costs: Some("one pass over the result"),
        guard: Guard::Case(Backend::Amd, "custom_row_largest_numbers_and_more"),
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
        what: "Single rows of 16-bit floats become a gather, in which two waves write the same shared memory.",
        instead: "The rows are widened.",
        costs: Some("one pass over the matrices"),
        guard: Guard::Case(Backend::Amd, "moe_vectors_f16"),
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
];
