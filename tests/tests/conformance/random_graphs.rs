//! Random graphs on the CPU, through the C ABI of the shared library: none is wrong, crashes, or is
//! accepted and does not compile.
//!
//! `ROTINI_GRAPHS` says how many, `ROTINI_SEED` from which seed on. With `ROTINI_FAMILY=attention`
//! they are about attention alone.

use rotini_graph::Op;
use rotini_tests::harness::Runner;
use rotini_tests::random::{Settings, recipe, run, run_second};
use std::collections::BTreeSet;

#[test]
fn random_graphs_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    run(&runner, Settings::from_environment([100, 8000]));
}

/// Truth values and FNUZ, by an encoder that shares nothing with the plugin's decoder.
#[test]
fn random_types_are_right() {
    let runner = Runner::cpu().expect("the plugin loads");
    run_second(&runner, Settings::from_environment([24, 500]));
}

/// Every recipe makes a valid graph, and among the graphs is every operation.
#[test]
fn the_generator_makes_valid_graphs_of_every_operation() {
    let mut kinds = BTreeSet::new();
    let (mut longest, mut outputs) = (0, 0);
    // In the last, a node read a result of a step that was left out.
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
