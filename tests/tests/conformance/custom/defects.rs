//! Bodies and the compiler's defects: each quirk of the register is avoided or declined, or no body
//! can express it.

use super::{normal, of_one};
use rotini_emit::{Backend, Quirk, Quirks, REGISTER, Target, check, emit_avoiding};
use rotini_graph::{CustomOp, DataType, GraphBuilder, Scalar};
use rotini_tests::cases;

enum Meets {
    /// The case's code differs without the quirk. It is executed with the other cases.
    Built(&'static str),
    /// A test here shows that it is declined.
    Declined,
    /// The reason why no body meets it.
    Never(&'static str),
}

const CONVOLUTIONS: Meets = Meets::Never("maps of bodies have no sums of loops, so there is no convolution");
const FLAGS: Meets = Meets::Never("a flag of the compiler avoids it, whatever the graph is");

fn meets(quirk: Quirk) -> Meets {
    use Meets::{Built, Declined, Never};
    match quirk {
        Quirk::FoldedTranspose
        | Quirk::PaddingOfUnitLoops
        | Quirk::PaddingOfMixedFactors
        | Quirk::DroppedUnits
        | Quirk::BlocksAfterRows
        | Quirk::DilatedMultiplier
        | Quirk::UnreachedInput => CONVOLUTIONS,
        Quirk::LostSums | Quirk::UnspreadReductions | Quirk::SignedExtremes => Declined,
        Quirk::UnsettledFactors => Built("custom_settled_product"),
        Quirk::PackedReductions => Built("custom_centred_products"),
        Quirk::InnerLoops => Never("an element of a body has no loop inside"),
        Quirk::MixedFactors => Built("custom_products_f16_by_bf16_3x3x7x5"),
        Quirk::NarrowedFactors => Never("what narrows a factor of a body is a dispatch of its own"),
        Quirk::MixedProducts => Built("custom_weighted_rows"),
        Quirk::UnsignedBytes => Built("custom_products_u8_1x5x7x9"),
        Quirk::OddHalves => Built("custom_odd_halves_1x72x7x2"),
        Quirk::MaskedBatches => Built("custom_products_f16_4x17x33x19"),
        Quirk::StoredSums => Built("custom_products_stored"),
        Quirk::FoldedSums => Built("custom_product_and_more"),
        Quirk::NegatedTerms => Built("custom_negated_rows"),
        Quirk::RepeatedFactors => Built("custom_repeated_weights"),
        Quirk::ForgottenFunctions => Built("custom_products_of_magnitudes_4x5x7x6"),
        Quirk::MissingFmax => Built("custom_larger_number_f16"),
        Quirk::FoldedBf16 => Built("custom_ramp"),
        Quirk::LostNan => Built("custom_two_outputs"),
        Quirk::CopiedSign => Built("custom_sign_of_f64"),
        Quirk::ConstantSums => Built("custom_ones_summed_12"),
        Quirk::ConstantTransposed => Built("custom_nothing_turned"),
        Quirk::WideBf16 => Built("custom_between_bf16"),
        Quirk::SumsInPlace => Built("custom_row_sums_and_more"),
        Quirk::GatheredScales => Never("bodies have no blocks"),
        Quirk::MixedFnuz | Quirk::SingleFnuz | Quirk::ThinFnuz | Quirk::MaskedCodes => {
            Never("bodies have no such types")
        }
        Quirk::SelectedSingle => Never("a body clamps no integers by itself"),
        Quirk::ConstantFolds => Never("each loop of a body is one of a tensor"),
        Quirk::YieldedOperand => Never("the compiler sees soon that such an operation of a body yields its operand"),
        Quirk::RoundedTwice => Never("a body says each rounding"),
        Quirk::SingleTile | Quirk::SharedGather => Never("a body reads at no computed index"),
        Quirk::UntiledAttention => Never("a body has no such operation"),
        Quirk::ImplicitGemm | Quirk::PaddedTiles | Quirk::AggressiveFusion | Quirk::CudaMatmuls => FLAGS,
    }
}

fn target(backend: Backend) -> Target {
    let name = match backend {
        Backend::Cpu => "cpu",
        Backend::Amd => "mi300x",
        Backend::Nvidia => "sm_80",
    };
    Target::parse(name).unwrap()
}

#[test]
fn each_quirk_that_a_body_can_meet_is_avoided() {
    let mut all = cases::all();
    all.extend(cases::with_data().unwrap().into_iter().map(|data| data.case));
    for description in REGISTER {
        let quirk = description.quirk;
        let case = match meets(quirk) {
            Meets::Built(case) => all.iter().find(|one| one.name == case).unwrap(),
            Meets::Declined => continue,
            Meets::Never(reason) => {
                assert!(!reason.is_empty());
                continue;
            }
        };
        let graph = normal(&case.graph);
        for &backend in description.backends {
            let target = target(backend);
            check(&graph, &target).unwrap_or_else(|refusal| panic!("{quirk:?}, {backend:?}: {refusal}"));
            let of = |quirks| emit_avoiding(&graph, &target, quirks).unwrap().mlir;
            let quirks = Quirks::of(&target);
            assert!(
                of(quirks) != of(quirks.without(quirk)),
                "{quirk:?} is not avoided for {backend:?}"
            );
        }
    }
}

fn sums_of(rows: i64, columns: i64, lines: &str) -> String {
    format!(
        "func.func @f(%a: tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{rows}xf32> {{\n  %c = arith.constant 0.0 : f32\n  \
         %e = tensor.empty() : tensor<{rows}x{rows}xf32>\n  \
         %z = linalg.fill ins(%c : f32) outs(%e : tensor<{rows}x{rows}xf32>) -> tensor<{rows}x{rows}xf32>\n  \
         %y = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], \
         iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}} ins(%a, %a : tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xf32>) \
         outs(%z : tensor<{rows}x{rows}xf32>) {{\n  ^bb0(%x: f32, %w: f32, %s: f32):\n{lines}    %r = arith.addf %s, %t : f32\n    \
         linalg.yield %r : f32\n  }} -> tensor<{rows}x{rows}xf32>\n  return %y : tensor<{rows}x{rows}xf32>\n}}\n"
    )
}

/// The compiler would sum the products themselves instead of the functions of them.
#[test]
fn a_sum_of_functions_of_products_is_declined_on_gpus() {
    let graph = |lines: &str| of_one(DataType::F32, [&[5, 7], &[5, 5]], sums_of(5, 7, lines));
    let magnitudes = "    %p = arith.mulf %x, %w : f32\n    %t = math.absf %p : f32\n";
    for backend in [Backend::Amd, Backend::Nvidia] {
        let refused = check(&graph(magnitudes), &target(backend)).unwrap_err();
        assert!(refused.reason.contains("math.absf of products"), "{refused}");
    }
    check(&graph(magnitudes), &Target::Cpu).unwrap();
    for fine in [
        "    %t = arith.mulf %x, %w : f32\n",
        "    %p = arith.subf %x, %w : f32\n    %t = math.absf %p : f32\n",
        "    %p = math.absf %x : f32\n    %t = arith.mulf %p, %w : f32\n",
    ] {
        check(&graph(fine), &target(Backend::Amd)).unwrap();
    }
}

/// A reduction's initial value may be infinite or NaN, whatever the caller promises of the
/// elements.
#[test]
fn promises_do_not_hold_for_what_a_reduction_starts_from() {
    for (combiner, flags, kept) in [
        ("maximumf", "nnan", None),
        ("maxnumf", "nnan,ninf", None),
        ("minnumf", "fast", Some("fastmath<reassoc,nsz,arcp,contract,afn>")),
        ("addf", "ninf,contract", Some("fastmath<contract>")),
    ] {
        let data = format!(
            "func.func @f(%a: tensor<4x8xf32>) -> tensor<4xf32> {{\n  %e = tensor.empty() : tensor<4xf32>\n  \
             %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], \
             iterator_types = [\"parallel\", \"reduction\"]}} ins(%a : tensor<4x8xf32>) outs(%e : tensor<4xf32>) {{\n  ^bb0(%x: f32, %s: f32):\n    \
             %w = math.absf %x fastmath<ninf> : f32\n    %r = arith.{combiner} %s, %w fastmath<{flags}> : f32\n    \
             linalg.yield %r : f32\n  }} -> tensor<4xf32>\n  return %y : tensor<4xf32>\n}}\n"
        );
        let graph = of_one(DataType::F32, [&[4, 8], &[4]], data);
        for backend in [Backend::Cpu, Backend::Amd] {
            let target = target(backend);
            check(&graph, &target).unwrap();
            let text = emit_avoiding(&graph, &target, Quirks::of(&target)).unwrap().mlir;
            let lines = || text.lines().filter(|line| line.contains("fastmath"));
            assert!(
                lines().any(|line| line.contains("absf") && line.contains("fastmath<ninf>")),
                "{text}"
            );
            let others: Vec<&str> = lines().filter(|line| !line.contains("absf")).collect();
            assert!(
                others.iter().all(|line| kept.is_some_and(|kept| line.contains(kept))),
                "{others:?}"
            );
            assert!(kept.is_none() || !others.is_empty() || combiner != "addf", "{text}");
        }
    }
}

/// The compiler would evaluate such an output and copy the result.
#[test]
fn an_output_of_constants_alone_is_declined() {
    let body = |second: &str| {
        format!(
            "#all = affine_map<(i) -> (i)>\nfunc.func @f(%a: tensor<4xf32>, %b: tensor<1xf32>) -> (tensor<4xf32>, tensor<1xf32>) {{\n  \
             %e = tensor.empty() : tensor<4xf32>\n  %g = tensor.empty() : tensor<1xf32>\n  \
             %y = linalg.generic {{indexing_maps = [#all, #all], iterator_types = [\"parallel\"]}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {{\n  \
             ^bb0(%x: f32, %o: f32):\n    %r = math.absf %x : f32\n    linalg.yield %r : f32\n  }} -> tensor<4xf32>\n  {second}  \
             return %y, %z : tensor<4xf32>, tensor<1xf32>\n}}\n"
        )
    };
    let of = |source: &str, ty: &str, map: &str| {
        body(&format!(
            "%z = linalg.generic {{indexing_maps = [affine_map<(i) -> ({map})>, #all], iterator_types = [\"parallel\"]}} ins(%{source} : {ty}) \
             outs(%g : tensor<1xf32>) {{\n  ^bb0(%x: f32, %o: f32):\n    %r = math.absf %x : f32\n    linalg.yield %r : f32\n  }} -> tensor<1xf32>\n"
        ))
    };
    let graph = |body: String| {
        let mut b = GraphBuilder::new("custom");
        let a = b.buffer("a", DataType::F32, &[4]);
        let one = b.constant("b", DataType::F32, &[1], Scalar::float(1.5));
        let (y, z) = (b.buffer("y", DataType::F32, &[4]), b.buffer("z", DataType::F32, &[1]));
        let op = CustomOp {
            custom_op_id: "rotini.mlir".to_owned(),
            inputs: vec![a, one],
            outputs: vec![y, z],
            data: body.into_bytes(),
        };
        b.node("custom", DataType::F32, op);
        normal(&b.build())
    };
    for target in [Target::Cpu, target(Backend::Amd)] {
        let refused = check(&graph(of("b", "tensor<1xf32>", "i")), &target).unwrap_err();
        assert!(refused.reason.contains("depends on no buffer"), "{refused}");
        check(&graph(of("a", "tensor<4xf32>", "2")), &target).unwrap();
    }
}

/// The runtime supports no more buffers per kernel.
#[test]
fn more_tensors_than_a_kernel_takes_are_declined() {
    let graph = |count: usize| {
        let mut b = GraphBuilder::new("custom");
        let inputs: Vec<_> = (0..count).map(|_| b.buffer("x", DataType::F32, &[4])).collect();
        let arguments: Vec<String> = (0..count).map(|index| format!("%a{index}: tensor<4xf32>")).collect();
        let outputs = vec![b.buffer("y", DataType::F32, &[4])];
        let data = format!(
            "func.func @f({}) -> tensor<4xf32> {{\n  %e = tensor.empty() : tensor<4xf32>\n  \
             %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} \
             ins(%a0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {{\n  ^bb0(%x: f32, %o: f32):\n    %r = math.absf %x : f32\n    \
             linalg.yield %r : f32\n  }} -> tensor<4xf32>\n  return %y : tensor<4xf32>\n}}\n",
            arguments.join(", ")
        )
        .into_bytes();
        let custom_op_id = "rotini.mlir".to_owned();
        b.node(
            "custom",
            DataType::F32,
            CustomOp {
                custom_op_id,
                inputs,
                outputs,
                data,
            },
        );
        normal(&b.build())
    };
    for (backend, most) in [(Backend::Cpu, 23), (Backend::Amd, 11), (Backend::Nvidia, 11)] {
        check(&graph(most), &target(backend)).unwrap();
        for count in [most + 1, 300] {
            let refused = check(&graph(count), &target(backend)).unwrap_err();
            assert!(refused.reason.contains("that one kernel takes"), "{refused}");
        }
    }
}
