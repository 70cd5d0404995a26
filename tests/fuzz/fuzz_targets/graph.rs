//! Bytes to graph, normal form and cache key, and back: whatever the bytes, nothing panics, and a
//! graph keeps its meaning.
//!
//! It ends before the lowering, which the tests of damaged bytes reach.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rotini_wire::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = decode(bytes) else { return };
    let key = |graph: &rotini_graph::Graph| graph.normalise().0.canonical_bytes().expect("a graph has a key");
    let again = decode(&encode(&graph)).expect("a graph survives encoding");
    assert_eq!(key(&again), key(&graph));
});
