//! Every case is right on the CPU, through the C ABI of the shared library, within the bounds of
//! its types and one rounding. Its workspace is known, and nothing outside its buffers is accessed.
//!
//! Code is compiled for [`x86-64-v3`](LEVEL), if this machine's CPU has it, so that verdicts hold
//! on all machines. Code for this machine's CPU is tested by a [share of the
//! cases](code_for_this_cpu_is_right).

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_emit::{Level, Target, emit};
use rotini_reference::Profile;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The x86-64 level of the code that verdicts are about.
const LEVEL: Level = Level::V3;
/// One case in this many is compiled for this machine's CPU.
const SHARE: u64 = 200;
/// The same for cases whose text differs from that for [`LEVEL`].
const SHARE_OF_OTHERS: u64 = 50;

/// Loads the plugin in a process for this test alone. Its code is for [`LEVEL`], unless
/// `ROTINI_CPU` is set.
fn runner() -> Runner {
    if LEVEL.is_here() && std::env::var_os("ROTINI_CPU").is_none() {
        // SAFETY: the plugin, which reads the environment, is not loaded yet, and the test has
        // started no threads.
        unsafe { std::env::set_var("ROTINI_CPU", LEVEL.name()) };
    }
    Runner::cpu().expect("the plugin loads")
}

fn all_right(cases: &[Case], alignment: usize) {
    let runner = runner();
    runner.expect_all(cases, alignment);
}

#[test]
fn every_case_is_right() {
    let cases = cases::all();
    all_right(&cases, 64);
    rotini_tests::operations::record("cpu", &cases);
}

/// Returns the compiler's input for a case; `None` if the case is declined.
fn text(case: &Case, target: &Target) -> Option<String> {
    let mut graph = case.graph.clone();
    graph.validate().ok()?;
    Some(emit(&graph.normalise().0, target).ok()?.mlir)
}

/// Code for this machine's CPU is right: a [share](SHARE_OF_OTHERS) of the cases whose text differs
/// from that for [`LEVEL`], and a smaller [share](SHARE) of the others, chosen by
/// `ROTINI_TEST_SEED`. A full run executes all.
#[test]
fn code_for_this_cpu_is_right() {
    let seed = std::env::var("ROTINI_TEST_SEED").unwrap_or_default();
    let is_full = std::env::var("ROTINI_TEST_SCALE").is_ok_and(|scale| scale == "full");
    let is_chosen = |case: &Case| {
        let mut hasher = DefaultHasher::new();
        (&seed, &case.name).hash(&mut hasher);
        let number = hasher.finish();
        let differs = || text(case, &Target::Cpu) != text(case, &Target::X86(LEVEL));
        is_full || number.is_multiple_of(SHARE) || (number.is_multiple_of(SHARE_OF_OTHERS) && differs())
    };
    let chosen: Vec<Case> = cases::all().into_iter().filter(is_chosen).collect();
    // SAFETY: the plugin, which reads the environment, is not loaded yet, and the test has started
    // no threads.
    unsafe {
        std::env::set_var("ROTINI_CPU", "host");
        // Verdicts are about other code.
        std::env::remove_var("ROTINI_TEST_PROVEN");
    }
    println!("{} cases", chosen.len());
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_all(&chosen, 64);
}

/// The bytes come from an encoder that shares no code with the plugin's decoder.
#[test]
fn graphs_of_a_second_encoder_are_right() {
    let runner = runner();
    runner.expect_encoded(&cases::second().expect("the second encoder runs"));
}

/// NaN, infinities, routings: inputs that the default fill does not generate.
#[test]
fn unusual_data_is_right() {
    let runner = runner();
    runner.expect_data(&cases::with_data().expect("the reference fills them"));
}

/// Bounds are relative, in units in the last place, over all magnitudes of both signs
/// (`docs/semantics.md`).
#[test]
fn functions_are_right_everywhere() {
    let runner = runner();
    runner.expect_data(&cases::functions(true).expect("the reference fills them"));
}

/// The error of a sum grows like the logarithm of the number of terms.
#[test]
fn long_sums_are_right() {
    let runner = runner();
    runner.expect_data(&cases::long_sums().expect("the reference fills them"));
}

/// NaN, infinities, denormals and zeros of both signs are among the elements; some sums contain
/// one, others none.
#[test]
fn special_values_are_right() {
    let runner = runner();
    runner.filled_with(Profile::FewEdges).expect_all(&cases::edges(), 64);
}

/// The same with values that each run chooses anew: a single seed covers too little.
#[test]
fn other_special_values_are_right() {
    let runner = runner();
    runner.expect_other_special_values();
}

/// hipDNN guarantees 16 bytes, compiled code prefers 64.
#[test]
fn pointers_need_only_sixteen_bytes() {
    let some: Vec<Case> = cases::all().into_iter().step_by(43).collect();
    all_right(&some, 16);
}

/// Tensors may guarantee less alignment than hipDNN's default, down to none: tensors with too
/// little alignment for compiled code are copied.
#[test]
fn tensors_may_promise_any_alignment() {
    for alignment in [1_u8, 2, 4, 8] {
        let mut some: Vec<Case> = [
            "pw_ADD_f32",
            "pw_CMP_GT_f64",
            "conv_bias_relu_nhwc_f32",
            "two_convs_nchw",
        ]
        .map(|name| cases::named(name).expect("the case is there"))
        .to_vec();
        for tensor in some.iter_mut().flat_map(|case| &mut case.graph.tensors) {
            tensor.alignment = alignment.into();
        }
        all_right(&some, alignment.into());
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<String> = cases::all().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A case for rotini's kernels that uses none would prove nothing about them.
#[test]
fn products_have_kernels_of_their_own() {
    let target = Target::parse("mi300x").expect("it is known");
    for (start, kernel, least) in [
        ("conv_many_taps", "@conv_", 10),
        ("dgrad_kernel_", "@dgrad_", 20),
        ("dgrad_phases_", "@dgrad_", 8),
        ("wgrad_many_", "@wgrad_", 20),
    ] {
        let mut count = 0;
        for case in cases::all().into_iter().filter(|case| case.name.starts_with(start)) {
            let text = text(&case, &target).expect("the graph is supported");
            count += usize::from(text.contains(kernel));
        }
        assert!(count >= least, "{start}: {count} cases");
    }
}

/// The same on CPUs: attention with AVX2 and with AVX-512, products with AVX-512 only.
#[test]
fn products_have_kernels_of_their_own_on_cpus() {
    for (start, kernel, least) in [
        ("matmul_long_", "@matmul_", [0, 5]),
        ("matmul_lines_", "@few_rows_", [0, 4]),
        ("sdpa_lanes_", "@attention_", [16; 2]),
        ("sdpa_stats_lanes_", "@attention_", [16; 2]),
        ("sdpa_shared_keys_", "@attention_", [9; 2]),
    ] {
        let mut counts = [0, 0];
        for case in cases::all().into_iter().filter(|case| case.name.starts_with(start)) {
            for (count, level) in counts.iter_mut().zip([Level::V3, Level::V4]) {
                let text = text(&case, &Target::X86(level)).expect("the graph is supported");
                *count += usize::from(text.contains(kernel));
            }
        }
        let is_enough = |(count, least): (usize, usize)| count >= least && (least > 0 || count == 0);
        assert!(
            counts.into_iter().zip(least).all(is_enough),
            "{start}: {counts:?} cases"
        );
    }
}

/// On CPUs with AVX-512 these convolutions use the kernel that reads filters without packing, and
/// their near misses do not. Other CPUs pack all filters. Gradients with respect to x have a kernel
/// on both.
#[test]
fn filters_are_not_packed() {
    let mut counts = [0; 3];
    for case in cases::all() {
        let kinds = ["conv_packed_", "conv_unpacked_", "dgrad_unpacked_"];
        let Some(kind) = kinds.iter().position(|start| case.name.starts_with(start)) else {
            continue;
        };
        let (kernel, wanted) = match kind {
            0 => ("func.func @matmul_", [false, false]),
            1 => ("func.func @matmul_", [false, true]),
            _ => ("func.func @dgrad_", [true, true]),
        };
        let has_kernel = [Level::V3, Level::V4].map(|level| {
            let text = text(&case, &Target::X86(level)).expect("the graph is supported");
            text.contains(kernel)
        });
        assert_eq!(has_kernel, wanted, "{}", case.name);
        counts[kind] += 1;
    }
    assert_eq!(counts, [16, 61, 4]);
}

/// Few long rows are several kernels: one for each dependent reduction, and one for the result.
#[test]
fn long_rows_are_in_parts() {
    let target = Target::parse("mi300x").expect("it is known");
    for (name, kernels) in [
        ("layernorm-training_3x41000_f16", 3),
        ("rmsnorm-training_2x65539_bf16", 2),
        ("softmax_1x128256_f32", 3),
        ("softmax_3x50257_f16", 3),
        ("layernorm-training_5x12289_f32", 1),
    ] {
        let case = cases::named(&format!("rows_{name}")).expect("the case is there");
        let text = text(&case, &target).expect("the graph is supported");
        assert_eq!(text.matches("func.func @rows_").count(), kernels, "{name}");
    }
}

/// Division by one value per row becomes multiplication if the quotients are only rounded to 16
/// bits.
#[test]
fn rounded_quotients_are_products() {
    let target = Target::parse("mi300x").expect("it is known");
    let divisions = |case: &Case| {
        let text = text(case, &target).expect("the graph is supported");
        assert!(text.contains("func.func @rows_"), "{}", case.name);
        let is_of_elements = |line: &&str| line.contains("\"arith.divf\"") && line.contains("vector<4x");
        text.lines().filter(is_of_elements).count()
    };
    for data in cases::quotients().expect("the reference fills them") {
        let name = &data.case.name;
        let is_rounded = ["f16", "bf16"].iter().any(|dtype| name.ends_with(dtype));
        assert_eq!(divisions(&data.case) == 0, is_rounded, "{name}");
    }
    // A short row, one of odd length, and one that is split into parts.
    for name in ["softmax_100x64_f16", "softmax_9x129_bf16", "softmax_3x50257_f16"] {
        let case = cases::named(&format!("rows_{name}")).expect("the case is there");
        assert_eq!(divisions(&case), 0, "{name}");
    }
}

/// Each attention case uses the kernels that it is named for. Gradients of few heads with many
/// steps each are faster with scores in memory: these cases are listed, as are numbers of columns
/// that no gradient kernel supports.
#[test]
fn attentions_have_the_kernels_that_they_are_named_for() {
    const IN_MEMORY: [&str; 6] = [
        "gqa",
        "mqa_bshd",
        "causal_gqa_bshd",
        "wide_keys",
        "narrow_keys",
        "tall_rest",
    ];
    let target = Target::parse("mi300x").expect("it is known");
    let (mut count, mut wrong) = (0, Vec::new());
    for case in cases::all() {
        let (name, is_backward) = match case.name.strip_prefix("sdpa_backward_scheduled_") {
            Some(name) => (name, true),
            None => match case.name.strip_prefix("sdpa_scheduled_") {
                Some(name) => (name, false),
                None => continue,
            },
        };
        let text = text(&case, &target).expect("the graph is supported");
        let [is_of_few, is_of_many] = ["decode_", "prefill_"].map(|kind| name.starts_with(kind));
        let found = [
            "func.func @decode_",
            "func.func @prefill_",
            "func.func @gradients_of_queries_",
            "func.func @gradients_of_keys_",
        ]
        .map(|part| text.contains(part));
        let wanted = if is_backward {
            let has_kernels = !IN_MEMORY.contains(&name);
            [false, false, has_kernels, has_kernels]
        } else {
            [is_of_few, is_of_many, false, false]
        };
        if found != wanted {
            wrong.push(case.name);
        }
        count += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 90, "{count} cases");
}
