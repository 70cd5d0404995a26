//! Code that needs more workspace than was reported before it was compiled.

use crate::{NOT_APPLICABLE, counted, create, expect_status, logging_on};
use rotini_graph::{DataType, GraphBuilder, SdpaBackward};
use rotini_host::engine_config;
use rotini_tests::cases::Case;
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run};

/// Part of the names of the kernels that the compiler rejects here.
const KERNELS: &str = "gradients_of_";

/// The compiler rejects all gradient kernels, so the plugin lowers the graph to the form with
/// scores in memory. A host that allocated the reported workspace does not get this code. From then
/// on the actual need is reported.
#[test]
fn what_was_not_reported_is_refused_once() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (cache, runs) = (directory.path().join("cache"), directory.path().join("runs"));
        let mut command = command("refused", &cache).unwrap();
        command
            .env("ROTINI_DEVICE", "hip")
            .env("ROTINI_HIP_LIBRARY", rotini_tests::plugin::emulator().unwrap())
            .env("ROTINI_TEST_COMPILER_FAULT", format!("{KERNELS}=reject"));
        run(counted(&mut command, &runs)).unwrap();
        return;
    }
    let runner = logging_on(Runner::gpu);
    let mut b = GraphBuilder::new("gradients");
    let [q, o, d_o, dq] = ["q", "o", "do", "dq"].map(|name| b.buffer(name, DataType::F16, &[2, 6, 100, 64]));
    let [k, v, dk, dv] = ["k", "v", "dk", "dv"].map(|name| b.buffer(name, DataType::F16, &[2, 6, 60, 64]));
    let stats = b.buffer("stats", DataType::F32, &[2, 6, 100, 1]);
    let op = SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv]);
    b.node("sdpa", DataType::F32, Box::new(op));
    let case = Case {
        name: "gradients".to_owned(),
        graph: b.build(),
    };
    let bytes = rotini_wire::encode(&case.graph);
    let reported = || {
        let config = engine_config(runner.engine());
        runner.handle().workspace_estimate(&config, &bytes).unwrap()
    };
    // One number per query: too little to request a workspace for.
    assert_eq!(reported(), 0);
    let text = expect_status(create(&runner, &case), NOT_APPLICABLE);
    assert!(text.contains("bytes of workspace"), "{text}");
    let needed = reported();
    assert!(needed >= 2 * 6 * 100 * 60 * 2, "{needed}");
    assert_eq!(runner.handle().applicable(&bytes).unwrap(), [runner.engine()]);
    assert_eq!(create(&runner, &case).unwrap().workspace().unwrap(), needed);
}
