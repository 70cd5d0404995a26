//! A limit of the workspace affects the choice of schedules.

use rotini_emit::{Choices, Target, plan_chosen, workspace_bound};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul};
use rotini_host::{Plugin, engine_config, engine_config_with};
use rotini_tests::harness::{Runner, gpu};
use rotini_tests::plugin;
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};

/// Builds a product of `extent` rows and columns with sums of `depth` terms.
fn product(extent: i64, depth: i64) -> Graph {
    let mut b = GraphBuilder::new("long sums");
    let (x, w) = (
        b.buffer("a", DataType::F16, &[extent, depth]),
        b.buffer("b", DataType::F16, &[depth, extent]),
    );
    let y = b.buffer("c", DataType::F16, &[extent, extent]);
    b.node("matmul", DataType::F32, Matmul { a: x, b: w, c: y });
    b.build()
}

/// Encodes an engine config with a limit of the workspace.
fn limited(engine: i64, bytes: usize) -> Vec<u8> {
    encode(&EngineConfig {
        engine_id: engine,
        knobs: vec![(
            "global.workspace_size_limit".to_owned(),
            KnobValue::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)),
        )],
        ..EngineConfig::default()
    })
}

#[test]
fn a_limit_of_the_workspace_picks_a_schedule_that_needs_less() {
    let harness = Runner::gpu().unwrap_or_else(|error| panic!("{error}"));
    let (handle, engine) = (harness.handle(), harness.engine());
    let bytes = rotini_wire::encode(&product(64, 8192));
    let needed = |config: &[u8]| {
        let context = handle.context(config, &bytes).unwrap_or_else(|error| panic!("{error}"));
        context.workspace().unwrap_or_else(|error| panic!("{error}"))
    };
    let usual = needed(&engine_config(engine));
    let mut graph = product(64, 8192);
    graph.validate().expect("the graph is valid");
    let (normal, target) = (graph.normalise().0, Target::parse("mi300x").expect("it is known"));
    let bound = workspace_bound(&normal, &target).expect("it is supported");
    assert!(usual > 0 && usual as u64 <= bound, "{usual} of {bound}");
    let limited = |bytes| limited(engine, bytes);
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

/// The host is asked for no workspace if a graph needs little, so no limit excludes its schedule.
#[test]
fn a_limit_of_zero_admits_a_graph_that_asks_for_nothing() {
    // Without the harness, which demands that any workspace is asked for.
    let _gpu = gpu().expect("there is a GPU, real or emulated");
    // SAFETY: the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().expect("it was built")) }.expect("it can be loaded");
    let (handle, engine) = (
        plugin.handle().expect("a handle"),
        plugin.engine_ids().expect("an engine")[0],
    );
    let target = Target::parse("mi300x").expect("it is known");
    // Split-K needs workspace for its partial sums.
    let needs_little = |graph: &Graph| {
        let mut graph = graph.clone();
        graph.validate().expect("the graph is valid");
        let bound = workspace_bound(&graph.normalise().0, &target).expect("it is supported");
        (1..=16 << 10).contains(&bound)
    };
    let graphs = [8192, 4096, 2048, 1024].map(|depth| product(16, depth));
    let graph = graphs
        .into_iter()
        .find(needs_little)
        .expect("a product with little workspace");
    let bytes = rotini_wire::encode(&graph);
    let code = |config: &[u8]| {
        let context = handle.context(config, &bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(context.workspace().unwrap_or(1), 0);
        context.serialize(None).unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(code(&limited(engine, 0)) == code(&engine_config(engine)));
}
