//! Random graphs on the CPU, through the C ABI of the shared library: none is wrong, crashes, or is
//! accepted and does not compile.
//!
//! `ROTINI_GRAPHS` sets their number, `ROTINI_SEED` the first seed. With `ROTINI_FAMILY=attention`
//! they have attention only.

use rotini_graph::Op;
use rotini_tests::harness::Runner;
use rotini_tests::random::{Settings, recipe, run, run_second};
use std::collections::BTreeSet;

#[test]
fn random_graphs_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    run(&runner, Settings::from_environment([100, 8000]));
}

/// Truth values and FNUZ, from an encoder that shares no code with the plugin's decoder.
#[test]
fn random_types_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    run_second(&runner, Settings::from_environment([24, 500]));
}

/// Every recipe gives a valid graph, and every operation occurs.
#[test]
fn the_generator_makes_valid_graphs_of_every_operation() {
    let mut kinds = BTreeSet::new();
    let (mut longest, mut outputs) = (0, 0);
    // In the graph of the last seed, a node once read a result of an abandoned step.
    for seed in (0..4000).chain([33681]) {
        let mut graph = recipe(seed).graph();
        let validated = graph.validate();
        assert!(validated.is_ok(), "seed {seed}: {validated:?}");
        kinds.extend(graph.nodes.iter().map(|node| node.op.kind()));
        longest = longest.max(graph.nodes.len());
        outputs = outputs.max(
            rotini_tests::harness::stored(&graph)
                .iter()
                .filter(|(_, written)| *written)
                .count(),
        );
    }
    let all: BTreeSet<&str> = Op::KINDS.iter().copied().collect();
    assert_eq!(kinds, all);
    assert!(longest >= 20, "no graph has more than {longest} nodes");
    assert!(outputs >= 5, "no graph stores more than {outputs} tensors");
}
