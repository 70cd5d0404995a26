//! Every case is right on the CPU, through the C ABI of the shared library, within what its types and its one rounding allow; its
//! workspace is known, and nothing outside its buffers is touched.

#![expect(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;

fn all_right(cases: &[Case], alignment: usize) {
    let runner = Runner::cpu().expect("the plugin loads");
    runner.expect_all(cases, alignment);
}

#[test]
fn every_case_is_right() {
    all_right(&cases::all(), 64);
}

/// hipDNN promises 16 bytes, compiled code wants 64.
#[test]
fn pointers_need_only_sixteen_bytes() {
    let some: Vec<Case> = cases::all().into_iter().step_by(7).collect();
    all_right(&some, 16);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<String> = cases::all().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}
