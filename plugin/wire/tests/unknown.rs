//! Numbers that the schema does not know, which a newer hipDNN may send: such a graph counts as
//! unsupported, neither as malformed nor as another graph.
//!
//! The fields are taken from the schema's text, so that no enumeration is left out.
//! `process::abi::unknown` shows what a host receives for such graphs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

mod common;
mod enumerations;
#[path = "../examples/upstream/fbs.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod fbs;

use enumerations::{fields, places, schema};
use rotini_wire::{DecodeError, KnobValue, decode, encode, engine_config};
use std::collections::BTreeSet;

/// Number of graphs that are tried for each operation.
const SEEDS: u64 = 24;

#[test]
fn unknown_numbers_of_every_enumeration_are_not_supported() {
    let schema = schema();
    let mut tried = BTreeSet::new();
    for (kind, seed) in (0..common::OPERATIONS).flat_map(|kind| (0..SEEDS).map(move |seed| (kind, seed))) {
        let bytes = encode(&common::graph(seed, &[kind], true));
        for place in places(&schema, "Graph", &bytes) {
            for byte in place.unknown() {
                let mut changed = bytes.clone();
                changed[place.at] = byte;
                let number = place.number(byte);
                let Err(error) = decode(&changed) else {
                    panic!("{} = {number} is read as if it were known", place.field)
                };
                assert!(
                    matches!(&error, DecodeError::Unknown { value, .. } if *value == number),
                    "{} = {number}: {error:?}",
                    place.field
                );
                assert!(!error.is_malformed(), "{}: {error}", place.field);
                let text = error.to_string();
                assert!(text.ends_with(&format!("{number} is not known")), "{text}");
            }
            tried.insert(place.field);
        }
    }
    // `encode` leaves no type to the graph's defaults; graphs that do are in `decode`'s own tests.
    let defaults = ["compute", "intermediate", "io"].map(|which| format!("Graph.{which}_data_type"));
    let expected: BTreeSet<String> = fields(&schema, "Graph").into_iter().collect();
    assert_eq!(&expected - &tried, defaults.into(), "fields that were not tried");
}

/// A knob of an unknown kind is meant for another engine: the config is read without it, and the
/// plugin warns.
#[test]
fn unknown_kinds_of_knobs_are_told_apart() {
    let schema = schema();
    let config = engine_config::EngineConfig {
        engine_id: 7,
        knobs: vec![("a.b".to_owned(), KnobValue::Integer(3))],
        ..engine_config::EngineConfig::default()
    };
    let bytes = engine_config::encode(&config);
    let places = places(&schema, "EngineConfig", &bytes);
    let found: Vec<_> = places.iter().map(|place| place.field.as_str()).collect();
    assert_eq!(found, fields(&schema, "EngineConfig"));
    for byte in places.iter().flat_map(enumerations::Place::unknown) {
        let mut changed = bytes.clone();
        changed[places[0].at] = byte;
        let read = engine_config::decode(&changed).unwrap();
        assert_eq!((read.knobs, read.unreadable), (Vec::new(), vec!["a.b".to_owned()]));
    }
}
