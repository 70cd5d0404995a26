//! No bytes whatever make decoding, normalising or keying a graph panic.
//!
//! 100,000 graphs are damaged as a careless or hostile host could damage them, from fixed seeds; a
//! failure prints the round, and the same round fails again. What still decodes must survive
//! encoding, so that damage never yields a graph of unclear meaning.

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

/// hipDNN's samples, and graphs that together have every operation with every field.
fn originals() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/hipdnn");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fb"))
        .collect();
    paths.sort();
    let samples = paths.iter().map(|path| std::fs::read(path).unwrap());
    // Several of each, because some fields exclude others, and with and without what is optional.
    let seeds = (0..common::OPERATIONS).flat_map(|kind| (0..8).map(move |seed| (kind, seed)));
    let generated = seeds.map(|(kind, seed)| encode(&common::graph(seed, &[kind, 1], seed % 2 == 0)));
    samples.chain(generated).collect()
}

/// Everything that happens to a graph before lowering. Tells how far it came.
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
            // Not the graphs: a NaN among the parameters differs from itself.
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
    // Damage of each depth was done: a test that only meets the verifier would show little.
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
