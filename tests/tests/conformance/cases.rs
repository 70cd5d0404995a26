//! Every case is right on the CPU, through the C ABI of the shared library, within the bounds of its types and one rounding. Its workspace
//! is known, and nothing outside its buffers is touched.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_emit::{Target, emit};
use rotini_graph::Graph;
use rotini_reference::Profile;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;

fn all_right(cases: &[Case], alignment: usize) {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_all(cases, alignment);
}

#[test]
fn every_case_is_right() {
    let cases = cases::all();
    all_right(&cases, 64);
    rotini_tests::operations::record("cpu", &cases);
}

/// Bytes of an encoder that shares nothing with the plugin's decoder.
#[test]
fn graphs_of_a_second_encoder_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_encoded(&cases::second().expect("the second encoder runs"));
}

/// NaN, infinities, routings: what the usual buffers do not have.
#[test]
fn unusual_data_is_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_data(&cases::with_data().expect("the reference fills them"));
}

/// Relative bounds, units in the last place, over all magnitudes of both signs (`docs/semantics.md`).
#[test]
fn functions_are_right_everywhere() {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_data(&cases::functions(true).expect("the reference fills them"));
}

/// Errors of sums grow like the logarithm of the number of terms.
#[test]
fn long_sums_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_data(&cases::long_sums().expect("the reference fills them"));
}

/// With NaN, infinities, denormals and zeros of both signs among the elements: some sums have one, others none.
#[test]
fn special_values_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.filled_with(Profile::FewEdges).expect_all(&cases::edges(), 64);
}

/// hipDNN promises 16 bytes, compiled code wants 64.
#[test]
fn pointers_need_only_sixteen_bytes() {
    let some: Vec<Case> = cases::all().into_iter().step_by(43).collect();
    all_right(&some, 16);
}

/// Tensors may promise less than hipDNN does by default, down to nothing: what is not aligned as compiled code wants it is copied.
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

/// A case of kernels of our own that got none would prove nothing of them.
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
            let mut graph = case.graph.clone();
            graph.validate().expect("the graph is valid");
            let emitted = emit(&graph.normalise().0, &target).expect("the graph is supported");
            count += usize::from(emitted.mlir.contains(kernel));
        }
        assert!(count >= least, "{start}: {count} cases");
    }
}

/// Whether this CPU has the registers that kernels of our own for CPUs need.
fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The same on CPUs with AVX-512.
#[test]
fn products_have_kernels_of_their_own_on_cpus() {
    for (start, kernel, least) in [
        ("matmul_long_", "@dots_", 5),
        ("matmul_lines_", "@lines_", 4),
        ("sdpa_lanes_", "@attention_", 15),
        ("sdpa_stats_lanes_", "@attention_", 15),
    ] {
        let mut count = 0;
        for case in cases::all().into_iter().filter(|case| case.name.starts_with(start)) {
            let mut graph = case.graph.clone();
            graph.validate().expect("the graph is valid");
            let emitted = emit(&graph.normalise().0, &Target::Cpu).expect("the graph is supported");
            count += usize::from(emitted.mlir.contains(kernel));
        }
        if has_avx512() {
            assert!(count >= least, "{start}: {count} cases");
        } else {
            assert_eq!(count, 0, "{start}");
        }
    }
}

/// On CPUs with AVX-512 these convolutions have the kernel that reads filters as they lie, and their near misses have not. Other CPUs pack all.
#[test]
fn filters_are_read_as_they_lie() {
    let is_wide = has_avx512();
    let mut counts = [0, 0];
    for case in cases::all() {
        let is_meant = ["conv_unpacked_", "dgrad_unpacked_"]
            .iter()
            .any(|start| case.name.starts_with(start));
        if is_meant || case.name.starts_with("conv_packed_") {
            let mut graph = case.graph.clone();
            graph.validate().expect("the graph is valid");
            let emitted = emit(&graph.normalise().0, &Target::Cpu).expect("the graph is supported");
            let has_kernel = emitted.mlir.contains("func.func @dots_");
            assert_eq!(has_kernel, is_meant && is_wide, "{}", case.name);
            counts[usize::from(is_meant)] += 1;
        }
    }
    assert_eq!(counts, [16, 65]);
    if !is_wide {
        eprintln!("this CPU has no AVX-512: the kernel is not tried");
    }
}

/// Few long rows are several kernels: one for each reduction that needs the one before, and one that makes the result.
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
        let mut graph = cases::named(&format!("rows_{name}")).expect("the case is there").graph;
        graph.validate().expect("the graph is valid");
        let emitted = emit(&graph.normalise().0, &target).expect("the graph is supported");
        assert_eq!(emitted.mlir.matches("func.func @rows_").count(), kernels, "{name}");
    }
}

/// Quotients by a value of the row are products if they are only rounded to 16 bits.
#[test]
fn rounded_quotients_are_products() {
    let target = Target::parse("mi300x").expect("it is known");
    let divisions = |mut graph: Graph| {
        graph.validate().expect("the graph is valid");
        let emitted = emit(&graph.normalise().0, &target).expect("the graph is supported");
        assert!(emitted.mlir.contains("func.func @rows_"), "{}", graph.name);
        let is_of_elements = |line: &&str| line.contains("\"arith.divf\"") && line.contains("vector<4x");
        emitted.mlir.lines().filter(is_of_elements).count()
    };
    for data in cases::quotients().expect("the reference fills them") {
        let name = &data.case.name;
        let is_rounded = ["f16", "bf16"].iter().any(|dtype| name.ends_with(dtype));
        assert_eq!(divisions(data.case.graph) == 0, is_rounded, "{}", data.case.name);
    }
    // A short row, an odd one, and one that is cut into parts.
    for name in ["softmax_100x64_f16", "softmax_9x129_bf16", "softmax_3x50257_f16"] {
        let graph = cases::named(&format!("rows_{name}")).expect("the case is there").graph;
        assert_eq!(divisions(graph), 0, "{name}");
    }
}

/// Attention has the kernels that its cases are named for. Gradients of few heads with many steps of their own are faster in memory: they are listed,
/// as are columns that no kernel of gradients has.
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
        let mut graph = case.graph.clone();
        graph.validate().expect("the graph is valid");
        let emitted = emit(&graph.normalise().0, &target).expect("the graph is supported");
        let [is_of_few, is_of_many] = ["decode_", "prefill_"].map(|kind| name.starts_with(kind));
        let found = [
            "func.func @decode_",
            "func.func @prefill_",
            "func.func @gradients_of_queries_",
            "func.func @gradients_of_keys_",
        ]
        .map(|part| emitted.mlir.contains(part));
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
