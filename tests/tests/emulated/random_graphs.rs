//! Random graphs on the emulated MI300, as in `random_graphs` on the CPU. They are fewer, because every instruction is emulated.

use rotini_tests::harness::Runner;
use rotini_tests::random::{Settings, run};

#[test]
fn random_graphs_are_right() {
    let runner = Runner::gpu().expect("the GPU and the plugin are there");
    run(&runner, Settings::from_environment([40, 2000]));
}
