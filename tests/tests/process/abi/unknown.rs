//! Values that rotini does not know, in every enumeration of a graph: declined, with the reason in
//! the log, and no error for the host.

use super::cpu;
use crate::{LOG, NOT_APPLICABLE, log};
use rotini_host::{HostError, engine_config};
use std::collections::BTreeSet;

#[path = "../../../../plugin/wire/tests/common/mod.rs"]
mod common;
#[path = "../../../../plugin/wire/tests/enumerations/mod.rs"]
mod enumerations;
#[path = "../../../../plugin/wire/examples/upstream/fbs.rs"]
#[allow(dead_code, reason = "a part of it is used")]
mod fbs;

const WARN: i32 = 1;

#[test]
fn unknown_numbers_are_declined_and_logged() {
    let (plugin, handle, engine) = cpu();
    plugin.set_logging(Some(log), 0).unwrap();
    let (schema, config) = (enumerations::schema(), engine_config(engine));
    let mut tried = BTreeSet::new();
    for (kind, seed) in (0..common::OPERATIONS).flat_map(|kind| (0..24).map(move |seed| (kind, seed))) {
        let bytes = rotini_wire::encode(&common::graph(seed, &[kind], true));
        for place in enumerations::places(&schema, "Graph", &bytes) {
            if !tried.insert(place.field.clone()) {
                continue;
            }
            for byte in place.unknown() {
                let mut changed = bytes.clone();
                changed[place.at] = byte;
                let reason = format!("{} is not known", place.number(byte));
                LOG.lock().unwrap().clear();
                assert!(
                    handle.applicable(&changed).unwrap().is_empty(),
                    "{}: {reason}",
                    place.field
                );
                let told = std::mem::take(&mut *LOG.lock().unwrap());
                let is_told = |(severity, text): &(i32, String)| *severity == WARN && text.contains(&reason);
                assert!(told.iter().any(is_told), "{}: {reason}: {told:?}", place.field);
                // "Not applicable" makes a host ask the next engine.
                let error = handle.context(&config, &changed).map(drop).unwrap_err();
                let HostError::Status { status, text, .. } = &error else {
                    panic!("{}: {error}", place.field)
                };
                assert_eq!(*status, NOT_APPLICABLE, "{}: {text}", place.field);
                assert!(text.contains(&reason), "{}: {text}", place.field);
            }
        }
    }
    let fields: BTreeSet<String> = enumerations::fields(&schema, "Graph").into_iter().collect();
    // The graph's defaults for tensors and nodes without a type; here all have a type.
    let defaults = ["compute", "intermediate", "io"].map(|which| format!("Graph.{which}_data_type"));
    assert_eq!(&fields - &tried, defaults.into(), "fields that were not tried");
}
