//! Checks that no bytes make decoding, normalising or keying a graph panic.
//!
//! 100,000 graphs are damaged as a careless or hostile host could damage them, with fixed seeds; a
//! failure prints its round, which reproduces it. Bytes that still decode must survive encoding, so
//! that damage never yields an ambiguous graph.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod common;
#[path = "../../../tests/src/damage.rs"]
#[expect(unreachable_pub, reason = "it is public where it is a library's")]
mod damage;

use damage::damage;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rotini_wire::{DecodeError, decode, encode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

const ROUNDS: u64 = 100_000;

/// Returns hipDNN's samples, and graphs that together have every operation with every field.
fn originals() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/hipdnn");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fb"))
        .collect();
    paths.sort();
    let samples = paths.iter().map(|path| std::fs::read(path).unwrap());
    // Several graphs per operation, because some fields exclude others, and with and without
    // optional fields.
    let seeds = (0..common::OPERATIONS).flat_map(|kind| (0..8).map(move |seed| (kind, seed)));
    let generated = seeds.map(|(kind, seed)| encode(&common::graph(seed, &[kind, 1], seed % 2 == 0)));
    samples.chain(generated).collect()
}

/// Runs every step that a graph passes before lowering, and returns how far it came.
fn run(bytes: &[u8]) -> &'static str {
    match decode(bytes) {
        Err(DecodeError::NotAGraph(_)) => "not a graph",
        Err(DecodeError::Graph(_)) => "not a valid graph",
        Err(_) => "other errors",
        Ok(graph) => {
            let (normal, _) = graph.normalise();
            let key = normal.canonical_bytes().unwrap();
            let encoded = encode(&graph);
            let again = decode(&encoded).unwrap();
            assert_eq!(again.normalise().0.canonical_bytes().unwrap(), key);
            // The bytes are compared instead of the graphs, because a NaN parameter differs from
            // itself.
            assert_eq!(encode(&again), encoded);
            "decoded"
        }
    }
}

#[test]
fn damaged_graphs_do_not_panic() {
    let originals = originals();
    let mut outcomes = std::collections::BTreeMap::new();
    for round in 0..ROUNDS {
        let mut rng = ChaCha8Rng::seed_from_u64(round);
        let mut bytes = originals.choose(&mut rng).unwrap().clone();
        for _ in 0..rng.random_range(1..4) {
            damage(&mut bytes, &originals, &mut rng);
        }
        match catch_unwind(AssertUnwindSafe(|| run(&bytes))) {
            Ok(outcome) => *outcomes.entry(outcome).or_insert(0_u64) += 1,
            Err(_) => panic!("round {round} of {ROUNDS} panics"),
        }
    }
    println!("seeds 0 to {ROUNDS}: {outcomes:?}");
    // Every stage must have rejected some graphs: if only the verifier did, the test would show
    // little.
    for outcome in ["not a graph", "not a valid graph", "other errors", "decoded"] {
        assert!(
            outcomes.get(outcome).is_some_and(|count| *count > ROUNDS / 200),
            "{outcomes:?}"
        );
    }
}

#[test]
fn noise_does_not_panic() {
    for round in 0..10_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(round);
        let mut bytes = vec![0; rng.random_range(0..300)];
        rng.fill_bytes(&mut bytes);
        let outcome = catch_unwind(|| run(&bytes));
        assert!(outcome.is_ok(), "round {round} panics");
    }
}
