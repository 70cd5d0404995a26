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
        .filter(|case| case.name.contains("f16") && !case.name.contains("bf16"))
        .collect();
    assert_eq!(half.len(), 48);
    all_right(&half, 64);
}
