//! Properties of the code for MI300 (gfx942): the number of kernels and their instructions. Nothing
//! is executed here; `emulated` does that.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use rayon::prelude::*;
use rotini_emit::{Target, emit};
use rotini_graph::DataType;
use rotini_iree::compiler::{Compiler as _, Program, Statistics, find_program};
use rotini_plugin::attempts::compile_for;
use rotini_tests::cases::{self, Case};
use rotini_tests::code_object::{Kernel, kernels};
use rotini_tests::share_of;
use std::path::Path;
use std::sync::OnceLock;

fn compiler() -> &'static Program {
    static COMPILER: OnceLock<Program> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let path = find_program().unwrap_or_else(|error| panic!("{error}"));
        Program::new(&path).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Sources that affect the statistics of a module, besides the module itself.
const READERS: [&str; 2] = [
    include_str!("../../src/code_object.rs"),
    include_str!("../../../plugin/src/attempts.rs"),
];

/// Compiles a case; returns its counts and its kernels. `ROTINI_TEST_CACHE` caches them, under the
/// hash of all inputs.
fn compile(case: &Case, target: &Target) -> Result<(Statistics, Vec<Kernel>), String> {
    let mut graph = case.graph.clone();
    graph.validate().map_err(|error| error.to_string())?;
    let emitted = emit(&graph.normalise().0, target).map_err(|error| error.to_string())?;
    let decides = (&emitted.mlir, &emitted.flags, compiler().identity(), READERS);
    let decides = serde_json::to_vec(&decides).map_err(|error| error.to_string())?;
    let kept = std::env::var_os("ROTINI_TEST_CACHE").map(|directory| {
        Path::new(&directory)
            .join("kernels")
            .join(blake3::hash(&decides).to_string())
    });
    let known = kept.as_ref().and_then(|path| std::fs::read(path).ok());
    if let Some(known) = known.and_then(|text| serde_json::from_slice(&text).ok()) {
        return Ok(known);
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let compiled =
        compile_for(compiler(), &emitted, target, Some(directory.path())).map_err(|error| error.to_string())?;
    let kernels = kernels(directory.path()).map_err(|error| format!("{error:#}"))?;
    let found = (compiled.statistics, kernels);
    if let Some(path) = kept {
        keep(&path, &found).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(found)
}

/// Writes a file atomically: two tests may compile the same case at once.
fn keep(path: &Path, found: &(Statistics, Vec<Kernel>)) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    std::fs::create_dir_all(directory)?;
    let mut part = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer(&mut part, found)?;
    part.persist(path)?;
    Ok(())
}

fn gfx942() -> Target {
    Target::parse("gfx942").expect("a known target")
}

/// Compiles all cases and reports the faults that `fault` finds.
fn none_has(cases: &[Case], fault: impl Fn(&Statistics, &[Kernel]) -> Option<String> + Sync) {
    let target = gfx942();
    let faults: Vec<String> = cases
        .par_iter()
        .filter_map(|case| {
            let fault = match compile(case, &target) {
                Ok((statistics, kernels)) => fault(&statistics, &kernels),
                Err(error) => Some(error),
            };
            fault.map(|fault| format!("{}: {fault}", case.name))
        })
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {} cases:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

/// Checks for one dispatch with matrix instructions, without spills, scratch memory or workspace.
fn is_one_good_kernel(statistics: &Statistics, kernels: &[Kernel]) -> Option<String> {
    if statistics.dispatches != 1 || statistics.fills != 0 || statistics.copies != 0 || statistics.allocated_bytes != 0
    {
        return Some(format!("{statistics:?}"));
    }
    match kernels {
        [kernel] if kernel.mfma == 0 => Some("no MFMA".to_owned()),
        [kernel] if kernel.spilled_vgprs + kernel.spilled_sgprs + kernel.scratch_bytes > 0 => {
            Some(format!("{kernel:?}"))
        }
        [_] => None,
        _ => Some(format!("{} kernels", kernels.len())),
    }
}

/// Checks for one dispatch with matrix instructions and the complete epilogue. Beside it there may
/// be copies of the operands with channels innermost, and a kernel that adds the partial sums of
/// split-K. Nothing is spilled, and there is no scratch memory.
fn is_one_good_product(statistics: &Statistics, kernels: &[Kernel]) -> Option<String> {
    const COPIES: u64 = 2;
    let is_clean = statistics.fills + statistics.copies + statistics.allocated_bytes == 0;
    let products = kernels.iter().filter(|kernel| kernel.mfma > 0).count();
    let spills = |kernel: &Kernel| kernel.spilled_vgprs + kernel.spilled_sgprs + kernel.scratch_bytes > 0;
    let is_good = is_clean && statistics.dispatches <= COPIES + 2 && products == 1 && !kernels.iter().any(spills);
    (!is_good).then(|| format!("{statistics:?} {kernels:?}"))
}

/// Checks a share of the cases: 16-bit floats must be one good product, others one good kernel.
fn are_fused(cases: Vec<Case>, one_in: u64) {
    let (half, others): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.name.ends_with("f16"));
    assert!(!half.is_empty() && !others.is_empty());
    none_has(&share_of(half, one_in), is_one_good_product);
    none_has(&share_of(others, one_in), is_one_good_kernel);
}

/// The 24 fused layers of ResNet-50 in both layouts and three types: a third of them, chosen by the
/// seed.
#[test]
fn resnet50_layers_are_one_product_each() {
    are_fused(cases::resnet50(1), 3);
}

/// A third of the same layers for a batch of 32 in f16.
#[test]
fn resnet50_layers_are_one_product_each_in_batches() {
    let mut half = cases::resnet50(32);
    half.retain(|case| case.name.ends_with("_f16"));
    assert_eq!(half.len(), 48);
    none_has(&share_of(half, 3), is_one_good_product);
}

/// Convolution with batchnorm and relu (and a residual), matmul with bias and gelu: half of them,
/// chosen by the seed.
#[test]
fn fusions_are_one_product_each() {
    are_fused(cases::fusions(), 2);
}

/// One kernel; another one if the sum is stored in a rounded type.
#[test]
fn layernorm_with_its_residual_is_one_kernel() {
    let (stored, alone): (Vec<Case>, Vec<Case>) = cases::residual_layernorms()
        .into_iter()
        .partition(|case| case.name.contains("stored"));
    let at_most = |bar: u64| {
        move |statistics: &Statistics, kernels: &[Kernel]| {
            let is_clean = statistics.fills + statistics.copies == 0 && statistics.dispatches <= bar;
            let spills = |kernel: &Kernel| kernel.spilled_vgprs + kernel.spilled_sgprs + kernel.scratch_bytes > 0;
            (!is_clean || kernels.iter().any(spills)).then(|| format!("{statistics:?} {kernels:?}"))
        }
    };
    none_has(&alone, at_most(1));
    none_has(&stored, at_most(2));
}

/// One kernel of each gradient has matrix instructions, and none spills.
#[test]
fn gradients_of_convolutions_use_matrix_instructions() {
    none_has(&cases::conv_gradients(), |statistics, kernels| {
        let spilled = kernels
            .iter()
            .any(|kernel| kernel.spilled_vgprs + kernel.spilled_sgprs > 0);
        let matrix = kernels.iter().any(|kernel| kernel.mfma > 0);
        (!matrix || spilled).then(|| format!("{:?} {kernels:?}", statistics))
    });
}

/// Attention of 128 queries and keys in f16 and bf16: plain, with an additive mask, causal.
#[test]
fn attention_is_one_kernel() {
    none_has(&cases::flash_attention(), is_one_good_kernel);
}

/// Products of gfx942's own 8-bit floats use their codes directly.
#[test]
fn fnuz_products_use_the_matrix_instructions_of_their_type() {
    let types = [DataType::F8E4M3Fnuz, DataType::F8E5M2Fnuz];
    let mut cases: Vec<Case> = cases::all()
        .into_iter()
        .filter(|case| {
            case.name.contains("fnuz_conv_wide_1x1") || case.name.starts_with("lp_matmul_e4m3fnuz_to_f32_70")
        })
        .filter(|case| !case.name.ends_with("grad"))
        .collect();
    assert_eq!(cases.len(), 1 + types.len() * cases::Order::BOTH.len());
    let mut product = rotini_graph::GraphBuilder::new("product");
    let [a, b] = [("a", [256, 512]), ("b", [512, 128])].map(|(name, dims)| product.buffer(name, types[0], &dims));
    let c = product.buffer("c", DataType::F32, &[256, 128]);
    product.node("product", DataType::F32, rotini_graph::Matmul { a, b, c });
    cases.push(Case {
        name: "fnuz_product".to_owned(),
        graph: product.build(),
    });
    none_has(&cases, |_, kernels| {
        let is_of_type = kernels
            .iter()
            .any(|kernel| kernel.mfma_f8 > 0 && kernel.mfma_f8 == kernel.mfma);
        (!is_of_type).then(|| format!("{kernels:?}"))
    });
}

/// Functions that the CPU declines for lack of a math library are not declined here, and compile.
#[test]
fn f64_functions_compile() {
    let mut graphs: Vec<Case> = cases::declined().into_iter().map(|(case, _)| case).collect();
    graphs.retain(|case| case.name == "f64");
    assert_eq!(graphs.len(), cases::WITHOUT_F64.len());
    none_has(&graphs, |statistics, _| {
        (statistics.dispatches != 1).then(|| format!("{:?}", statistics))
    });
}

/// IREE 3.13 folds a transpose of the input into a convolution and computes wrong addresses if the
/// input is an NCHW view of NHWC data. This cannot happen if no convolution ever reads a transposed
/// value, and every transposed value is behind a barrier.
#[test]
fn no_transpose_reaches_a_convolution() {
    let mut barriers = 0;
    for case in cases::all().into_iter().filter(|case| case.name.contains("conv")) {
        let mut graph = case.graph.clone();
        graph.validate().expect("cases are valid");
        let emitted = emit(&graph.normalise().0, &gfx942()).expect("cases are supported");
        barriers += emitted.mlir.matches("compute_barrier.start").count();
        if let Some(fault) = foldable_transpose(&emitted.mlir) {
            panic!("{}: {fault}", case.name);
        }
    }
    assert!(barriers > 0, "no case needs a copy: this test tests nothing");
}

/// The text check detects its target: the very form that IREE folds, behind padding, and with mixed
/// layouts.
#[test]
fn a_transpose_in_front_of_a_convolution_is_seen() {
    let kind = |reduced: usize| {
        let kinds = (0..4 + reduced).map(|index| if index < 4 { "parallel" } else { "reduction" });
        let kinds: Vec<_> = kinds.map(|kind| format!("#linalg.iterator_type<{kind}>")).collect();
        kinds.join(", ")
    };
    let (four, seven) = (kind(0), kind(3));
    let module = |source: &str, filter: &str| {
        let loops = "(d0, d1, d2, d3, d4, d5, d6)";
        let x = format!("affine_map<{loops} -> (d0, d4, d2 + d5, d3 + d6)>");
        let w = format!("affine_map<{loops} -> {filter}>");
        let y = format!("affine_map<{loops} -> (d0, d1, d2, d3)>");
        let permuted =
            "affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>";
        format!(
            "%0 = \"linalg.generic\"(%100, %101) ({{\n\
             }}) {{indexing_maps = [{permuted}], iterator_types = [{four}]}} : (t, t) -> (t)\n\
             %1 = \"iree_tensor_ext.compute_barrier.start\"(%0) : (t) -> (t)\n\
             %3 = \"tensor.pad\"({source}) ({{\n\
             }}) {{static_low = array<i64: 0>}} : (t) -> (t)\n\
             %2 = \"linalg.generic\"(%3, %102, %103) ({{\n\
             }}) {{indexing_maps = [{x}, {w}, {y}], iterator_types = [{seven}]}} : (t, t, t) -> (t)\n"
        )
    };
    let (kcrs, krsc) = ("(d1, d4, d5, d6)", "(d1, d5, d6, d4)");
    assert_eq!(foldable_transpose(&module("%1", kcrs)), None, "behind a barrier");
    assert!(foldable_transpose(&module("%0", kcrs)).is_some(), "without one");
    assert!(
        foldable_transpose(&module("%1", krsc)).is_some(),
        "NCHW input with a KRSC filter"
    );
}

/// Returns a part of a module that IREE could fold into wrong addresses: a convolution that reads a
/// transposed value, or whose input and filter have their channels in different positions.
fn foldable_transpose(mlir: &str) -> Option<String> {
    let sums = convolutions(mlir).into_iter();
    // A sum with one operand is no product: packed bits, or a statistic.
    let mut products = sums.filter(|sum| sum.maps.len() != 2);
    products.find_map(|convolution| {
        let transposed = convolution.operands.iter().find_map(|operand| {
            let origin = origin(mlir, operand);
            let bad = origin.contains("linalg.transpose") || is_permuting(&origin);
            bad.then(|| format!("{operand} of a convolution is {origin}"))
        });
        transposed.or_else(|| (!convolution.layouts_agree()).then_some(convolution.line))
    })
}

/// A convolution in the module's text: a structured operation that reduces over more than its
/// operands' shared axes.
struct Convolution {
    line: String,
    operands: Vec<String>,
    maps: Vec<Vec<String>>,
}

impl Convolution {
    /// Returns true if input and filter have their channels in the same position, first or last.
    fn layouts_agree(&self) -> bool {
        let channel_is_last = |map: &[String], partner: &[String]| {
            map.last()
                .is_some_and(|last| !last.contains('+') && partner.contains(last))
        };
        let [x, w, _] = self.maps.as_slice() else { return false };
        let windowed = |map: &[String]| map.iter().any(|result| result.contains('+'));
        if !windowed(x) {
            return true;
        }
        let (x_last, w_last) = (channel_is_last(x, w), channel_is_last(w, x));
        x_last == w_last
    }
}

fn convolutions(mlir: &str) -> Vec<Convolution> {
    operations(mlir)
        .into_iter()
        .filter(|line| line.contains("linalg.generic") && line.contains("<reduction>"))
        .map(|line| {
            let maps: Vec<Vec<String>> = line
                .split("affine_map<")
                .skip(1)
                .filter_map(|map| map.split_once("-> (")?.1.split_once(")>"))
                .map(|(results, _)| results.split(", ").map(str::to_owned).collect())
                .collect();
            let mut operands = operands(&line);
            // The last one is the initial value of the result.
            operands.pop();
            Convolution { line, operands, maps }
        })
        .collect()
}

/// Returns the operations of a module, each on one line: one with regions has its operands before
/// them and its attributes behind them.
fn operations(mlir: &str) -> Vec<String> {
    let lines: Vec<&str> = mlir.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let begins = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains('"') && line.contains('('));
    begins
        .filter(|(_, line)| !line.trim_start().starts_with('}'))
        .map(|(index, line)| {
            let end = if line.ends_with("({") {
                let ends = |other: &&&str| indent(other) == indent(line) && other.trim_start().starts_with("})");
                lines.iter().skip(index).find(ends).copied().unwrap_or_default()
            } else {
                ""
            };
            format!("{}{}", line.trim(), end.trim())
        })
        .collect()
}

/// Returns the operands of an operation.
fn operands(operation: &str) -> Vec<String> {
    operation
        .split_once("\"(")
        .and_then(|(_, rest)| rest.split_once(')'))
        .map(|(operands, _)| operands.split(", ").map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Returns the operation that defines a value, looking through padding and reshapes.
fn origin(mlir: &str, value: &str) -> String {
    let definition = operations(mlir)
        .into_iter()
        .find(|line| line.starts_with(&format!("{value} = ")))
        .unwrap_or_else(|| "an argument".to_owned());
    for through in [
        "\"tensor.pad\"",
        "\"tensor.extract_slice\"",
        "\"tensor.expand_shape\"",
        "\"tensor.collapse_shape\"",
        "\"tensor.bitcast\"",
    ] {
        if definition.contains(through)
            && let Some(source) = operands(&definition).first()
        {
            return origin(mlir, source);
        }
    }
    definition
}

/// Returns true if an elementwise operation reads its operand in another order than it writes.
fn is_permuting(definition: &str) -> bool {
    let Some(convolution) = convolutions(&definition.replace("<parallel>]", "<reduction>]")).pop() else {
        return false;
    };
    let mut sorted = convolution.maps.first().cloned().unwrap_or_default();
    // A constant is an axis of extent 1, and may be in any position.
    sorted.retain(|result| result.starts_with('d'));
    let given = sorted.clone();
    sorted.sort();
    definition.contains("linalg.generic") && !definition.contains("<reduction>") && given != sorted
}

/// The statistics and the registers come from the compiled code, not from the request: a kernel
/// that spills is detected.
#[test]
fn the_reader_sees_what_is_there() {
    let depthwise = cases::Conv::new(1, 64, 64, 14, 3, 1, DataType::F16, cases::Order::Last).groups(64);
    let case = Case {
        name: "depthwise".to_owned(),
        graph: depthwise.alone(),
    };
    let (_, kernels) = compile(&case, &gfx942()).expect("it compiles");
    assert!(!kernels.is_empty());
    assert!(
        kernels.iter().all(|kernel| kernel.mfma == 0 && kernel.vgprs > 0),
        "depthwise has no matrix: {kernels:?}"
    );
}
