//! A limit of the workspace affects the choice of schedules.

use rotini_emit::{Choices, Target, plan_chosen, workspace_bound};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul};
use rotini_host::{engine_config, engine_config_with};
use rotini_tests::harness::Runner;
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};

/// Builds a product with few results and long sums, which uses split-K.
fn product() -> Graph {
    let mut b = GraphBuilder::new("long sums");
    let (x, w) = (
        b.buffer("a", DataType::F16, &[64, 8192]),
        b.buffer("b", DataType::F16, &[8192, 64]),
    );
    let y = b.buffer("c", DataType::F16, &[64, 64]);
    b.node("matmul", DataType::F32, Matmul { a: x, b: w, c: y });
    b.build()
}

#[test]
fn a_limit_of_the_workspace_picks_a_schedule_that_needs_less() {
    let harness = Runner::gpu().unwrap_or_else(|error| panic!("{error}"));
    let (handle, engine) = (harness.handle(), harness.engine());
    let bytes = rotini_wire::encode(&product());
    let needed = |config: &[u8]| {
        let context = handle.context(config, &bytes).unwrap_or_else(|error| panic!("{error}"));
        context.workspace().unwrap_or_else(|error| panic!("{error}"))
    };
    let usual = needed(&engine_config(engine));
    let mut graph = product();
    graph.validate().expect("the graph is valid");
    let (normal, target) = (graph.normalise().0, Target::parse("mi300x").expect("it is known"));
    let bound = workspace_bound(&normal, &target).expect("it is supported");
    assert!(usual > 0 && usual as u64 <= bound, "{usual} of {bound}");
    let limited = |bytes: usize| {
        encode(&EngineConfig {
            engine_id: engine,
            knobs: vec![(
                "global.workspace_size_limit".to_owned(),
                KnobValue::Integer(i64::try_from(bytes).expect("it is small")),
            )],
            ..EngineConfig::default()
        })
    };
    assert_eq!(needed(&limited(usual)), usual);
    for limit in [usual - 1, usual / 2, 0] {
        assert!(needed(&limited(limit)) <= limit, "{limit}");
    }
    // An explicitly chosen schedule is used or refused, never replaced.
    let whole = Choices::of("gemm0", "64x64_2x2_b1");
    let plan = plan_chosen(&normal, &target, &whole).expect("it fits");
    assert_eq!(plan.kernels.len(), 1);
    let demanded = [("rotini.schedule".to_owned(), whole.to_string())];
    assert_eq!(needed(&engine_config_with(engine, &demanded)), 0);
}
