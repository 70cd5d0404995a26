//! Checks that encoding and decoding returns the same graph, for random graphs of every operation.

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
use std::collections::BTreeMap;

proptest! {
    // A failure prints its seed, which determines its graph.
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

/// Checks that the generator sets and omits every optional field; a field that it forgot would
/// silently go untested.
#[test]
fn every_optional_field_is_there_and_is_not() {
    let mut optional = 0;
    for kind in 0..common::OPERATIONS {
        for full in [false, true] {
            // For each field, whether it was seen absent and present. There are enough seeds for
            // every mode of pointwise operations to occur.
            let mut seen = BTreeMap::<String, [bool; 2]>::new();
            for seed in 0..1000 {
                let graph = common::graph(seed, &[kind], full);
                let op = serde_json::to_value(&graph.nodes[0].op).unwrap();
                let fields = op.as_object().unwrap().values().next().unwrap().as_object().unwrap();
                for (field, value) in fields {
                    seen.entry(field.clone()).or_default()[usize::from(!value.is_null())] = true;
                }
            }
            for (field, [absent, present]) in seen {
                assert!(present, "operation {kind} never has {field}");
                optional += usize::from(absent && !full);
            }
        }
    }
    // The number of optional fields of the operations' structs: a field that is never absent is not
    // fully tested.
    assert_eq!(optional, 76);
}
