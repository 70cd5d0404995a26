//! Random graphs on the emulated MI300, as in `random_graphs` on the CPU. They are fewer, because
//! every instruction is emulated.

use rotini_plugin::config::Config;
use rotini_tests::harness::Runner;
use rotini_tests::random::{Settings, run, run_second};

#[test]
fn random_graphs_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    run(&runner, Settings::from_environment([36, 1800]));
}

/// Uses `ROTINI_SCHEDULES=compiler`: other forms, which expose other defects of the compiler.
#[test]
fn random_graphs_without_schedules_are_right() {
    let runner = Runner::gpu_without_schedules().expect("the GPU and the plugin are there");
    assert!(Config::from_env().unscheduled, "the setting has another name");
    run(&runner, Settings::from_environment([6, 200]));
}

/// Truth values and FNUZ, from an encoder that shares no code with the plugin's decoder.
#[test]
fn random_types_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    run_second(&runner, Settings::from_environment([8, 500]));
}
