//! Every case is right on the emulated MI300. The emulator executes the compiler's gfx942 code
//! objects instruction by instruction in strict mode, through the C ABI of the shared library and
//! IREE's own HIP driver.
//!
//! `ROTINI_TEST_DEVICE=cuda` runs the same on an NVIDIA GPU, `=hip` on an AMD GPU. `ROTINI_CASE`
//! names the cases to run.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_graph::{DataType, GraphBuilder, PointwiseMode, TensorKind};
use rotini_host::{DeviceBuffer, HostError, engine_config};
use rotini_reference::Profile;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::{Memory, Runner};
use rotini_tests::{harness, shapes};

fn all_right(cases: &[Case], alignment: usize) {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_all(cases, alignment);
}

#[test]
fn every_case_is_right() {
    let mut cases = cases::all();
    cases.extend(f64_functions());
    all_right(&cases, 64);
    rotini_tests::operations::record("gfx942", &cases);
}

/// Functions that the CPU declines in f64 for lack of a math library, which GPUs have.
fn f64_functions() -> Vec<Case> {
    let executed: Vec<Case> = cases::declined()
        .into_iter()
        .filter(|(case, _)| case.name == "f64")
        .map(|(case, _)| case)
        .collect();
    assert_eq!(executed.len(), cases::WITHOUT_F64.len());
    executed
}

/// The bytes come from an encoder that shares no code with the plugin's decoder.
#[test]
fn graphs_of_a_second_encoder_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_encoded(&cases::second().expect("the second encoder runs"));
}

/// NaN, infinities, routings: inputs that the default fill does not generate.
#[test]
fn unusual_data_is_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_data(&cases::with_data().expect("the reference fills them"));
    runner.expect_data(&cases::quotients().expect("the reference fills them"));
}

/// Bounds are relative, in units in the last place, over all magnitudes of both signs
/// (`docs/semantics.md`).
#[test]
fn functions_are_right_everywhere() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_data(&cases::functions(false).expect("the reference fills them"));
}

/// NaN, infinities, denormals and zeros of both signs are among the elements; some sums contain
/// one, others none.
#[test]
fn special_values_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.filled_with(Profile::FewEdges).expect_all(&cases::edges(), 64);
}

/// The same with values that each run chooses anew: a single seed covers too little.
#[test]
fn other_special_values_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_other_special_values();
}

/// hipDNN guarantees 16 bytes. A launch plan keeps no state of an execution: the second one must be
/// as right as the first.
#[test]
fn pointers_need_only_sixteen_bytes() {
    let some: Vec<Case> = cases::all().into_iter().step_by(43).collect();
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.executing_twice().expect_all(&some, 16);
}

/// The 24 fused layers of ResNet-50, f16, in both layouts.
#[test]
fn resnet50_layers_are_right() {
    let half: Vec<Case> = cases::resnet50(1)
        .into_iter()
        .filter(|case| case.name.ends_with("_f16"))
        .collect();
    assert_eq!(half.len(), 48);
    all_right(&half, 64);
}

/// One context, with other values at each execution.
#[test]
fn scalars_may_change() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    let names = [
        "scalars_of_all_sizes",
        "scalar_of_scalars",
        "scalar_gemm_f16",
        "scalar_MUL_i64",
    ];
    for case in names.map(|name| cases::named(name).expect("the case is there")) {
        let bytes = rotini_wire::encode(&case.graph);
        let graph = rotini_wire::decode(&bytes).expect("the case is a graph");
        let context = runner.handle().context(&engine_config(runner.engine()), &bytes);
        let context = context.expect("the case compiles");
        for seed in 0..4 {
            let judged = runner.judge_shapes(&graph, &context, &[], seed);
            judged.unwrap_or_else(|error| panic!("{}, seed {seed}: {error:#}", case.name));
        }
    }
}

/// A capture keeps the value at that time: the host's memory need not outlive the call.
#[test]
fn captured_scalars_stay() {
    let gpu = harness::gpu().expect("the GPU is there");
    let runner = Runner::gpu().expect("the plugin is there");
    let mut b = GraphBuilder::new("product");
    let x = b.buffer("x", DataType::F32, &[64]);
    let s = b.tensor("s", DataType::F64, &[1], &[1], TensorKind::RuntimeScalar);
    let y = b.buffer("y", DataType::F32, &[64]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, s], y);
    let bytes = rotini_wire::encode(&b.build());
    let context = runner.handle().context(&engine_config(runner.engine()), &bytes);
    let context = context.expect("the graph compiles");
    let ones: Vec<u8> = [1.0_f32; 64].iter().flat_map(|value| value.to_le_bytes()).collect();
    let [mut x, mut y] = [(); 2].map(|()| Memory::on_gpu(&gpu, &ones, 16).expect("there is memory"));
    let stream = gpu.stream().expect("there is a stream");
    // SAFETY: the stream outlives the handle's work.
    unsafe { runner.handle().set_stream(stream.raw()) }.expect("it is a stream");
    let captured = stream.capture(|| -> Result<(), rotini_host::gpu::GpuError> {
        let mut value = 2.5_f64;
        let pack = [
            (1, x.pointer().cast()),
            (2, (&raw mut value).cast()),
            (3, y.pointer().cast()),
        ];
        let pack = pack.map(|(uid, ptr)| DeviceBuffer { uid, ptr });
        // SAFETY: the buffers have 64 elements and one scalar, and no workspace is needed.
        unsafe { context.execute(std::ptr::null_mut(), &pack) }.expect("it can be captured");
        value = f64::NAN;
        assert!(std::hint::black_box(value).is_nan());
        Ok(())
    });
    // SAFETY: what was captured is alive.
    unsafe { captured.expect("it is captured").launch(&stream) }.expect("it can be launched");
    stream.synchronize().expect("the work is done");
    y.fetch().expect("the memory can be read");
    let expected: Vec<u8> = [2.5_f32; 64].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(y.bytes(), expected);
}

/// One context, with other shapes at each execution.
#[test]
fn shapes_may_change() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    for family in shapes::all() {
        let judged = family.judge(&runner);
        judged.unwrap_or_else(|error| panic!("{}: {error:#}", family.name));
    }
}

/// Nothing is copied on a GPU, so its kernels must support the alignment that the caller
/// guarantees.
#[test]
fn tensors_have_to_promise_sixteen_bytes() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    let mut case = cases::named("pw_ADD_f32").expect("the case is there");
    case.graph.tensors[1].alignment = 8;
    let bytes = rotini_wire::encode(&case.graph);
    assert!(
        runner
            .handle()
            .applicable(&bytes)
            .expect("graphs never fail")
            .is_empty()
    );
    match runner.handle().context(&engine_config(runner.engine()), &bytes) {
        Err(HostError::Status { status: 5, text, .. }) => {
            let (before, after) = (
                "'in_1' (uid 2): its buffers are aligned to 8 bytes, and kernels on ",
                " need 16",
            );
            assert!(text.contains(before) && text.ends_with(after), "{text}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the graph is accepted"),
    }
}
