//! Encoding and decoding gives the graph back, for random graphs of every operation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod common;

use proptest::prelude::*;
use rotini_wire::{decode, encode};

proptest! {
    // A failure prints its seed, which is all that its graph is made of.
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph(seed: u64, kinds in prop::collection::vec(0..common::OPERATIONS, 1..8)) {
        let graph = common::graph(seed, &kinds, false);
        prop_assert_eq!(decode(&encode(&graph)), Ok(graph));
    }
}

#[test]
fn the_generator_makes_every_operation() {
    let all: Vec<usize> = (0..common::OPERATIONS).collect();
    let graph = common::graph(1, &all, true);
    let kinds: std::collections::BTreeSet<_> = graph.nodes.iter().map(|node| node.op.kind()).collect();
    assert_eq!(kinds.len(), common::OPERATIONS);
    assert_eq!(decode(&encode(&graph)), Ok(graph));
}
