//! Every case is right on the emulated MI300: the code objects that the compiler makes for gfx942, executed instruction by instruction
//! in strict mode, through the C ABI of the shared library and IREE's own HIP driver.
//!
//! `ROTINI_TEST_DEVICE=cuda` runs the same on an NVIDIA GPU, `=hip` on an AMD GPU; `ROTINI_CASE` names the cases to run.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;

fn all_right(cases: &[Case], alignment: usize) {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    runner.expect_all(cases, alignment);
}

#[test]
fn every_case_is_right() {
    all_right(&cases::all(), 64);
}

/// hipDNN promises 16 bytes.
#[test]
fn pointers_need_only_sixteen_bytes() {
    let some: Vec<Case> = cases::all().into_iter().step_by(7).collect();
    all_right(&some, 16);
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

/// What the CPU declines in f64 for want of a math library, GPUs have. Sine and tangent take an instruction that the emulator has not,
/// `v_trig_preop_f64`: `gfx942` compiles them.
#[test]
fn f64_functions_are_right() {
    let executed: Vec<Case> = cases::declined()
        .into_iter()
        .filter(|(case, mode)| case.name == "f64" && !["SIN", "TAN"].contains(&mode.as_str()))
        .map(|(case, _)| case)
        .collect();
    assert_eq!(executed.len(), cases::WITHOUT_F64.len() - 2);
    all_right(&executed, 64);
}
