//! Round trips of engine configs, details and predictions through bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

use proptest::prelude::*;
use rotini_wire::KnobValue;
use rotini_wire::candidate_page::{Candidate, CandidatePage};
use rotini_wire::engine_config::{self, EngineConfig};
use rotini_wire::engine_details::{self, BehaviorNote, EngineDetails, Knob, KnobConstraint};
use rotini_wire::prediction::{self, Kind, Prediction, Status};

fn value() -> impl Strategy<Value = KnobValue> {
    prop_oneof![
        any::<i64>().prop_map(KnobValue::Integer),
        (-1e300..1e300).prop_map(KnobValue::Float),
        ".{0,9}".prop_map(KnobValue::Text),
    ]
}

fn constraint() -> impl Strategy<Value = KnobConstraint> {
    prop_oneof![
        (any::<[i64; 3]>(), prop::collection::vec(any::<i64>(), 0..4)).prop_map(|([min, max, step], valid_values)| {
            KnobConstraint::Integer {
                min,
                max,
                step,
                valid_values,
            }
        }),
        (-1e9..1e9, -1e9..1e9).prop_map(|(min, max)| KnobConstraint::Float { min, max }),
        (any::<i32>(), prop::collection::vec(".{0,9}", 0..4)).prop_map(|(max_length, valid_values)| {
            KnobConstraint::Text {
                max_length,
                valid_values,
            }
        }),
    ]
}

prop_compose! {
    fn knob()(
        id in ".{0,9}",
        description in ".{0,9}",
        default in value(),
        constraint in prop::option::of(constraint()),
        deprecated: bool,
    ) -> Knob {
        Knob { id, description, default, constraint, deprecated }
    }
}

fn notes() -> impl Strategy<Value = Vec<BehaviorNote>> {
    prop::sample::subsequence(
        vec![
            BehaviorNote::RuntimeCompilation,
            BehaviorNote::LayoutTransform,
            BehaviorNote::GraphCapture,
            BehaviorNote::ExternalLibrary,
            BehaviorNote::PlanSerialization,
        ],
        0..=5,
    )
}

prop_compose! {
    fn page()(
        texts: [String; 5],
        total: u64,
        offset: u64,
        candidates in prop::collection::vec((".{0,9}", prop::collection::vec((".{0,9}", value()), 0..3), ".{0,9}"), 0..4),
        engine_name in ".{0,9}",
    ) -> CandidatePage {
        let [graph_id, device_id, device_arch, problem_features, device_features] = texts;
        let candidates = candidates.into_iter().map(|(id, knobs, features)| Candidate { id, knobs, features }).collect();
        CandidatePage {
            graph_id, device_id, device_arch, problem_features, device_features, total, offset, candidates, engine_name,
        }
    }
}

prop_compose! {
    fn prediction()(
        engine_id: i64,
        kind in prop::sample::select(vec![Kind::Engine, Kind::Configuration]),
        status in prop::sample::select(vec![Status::Unavailable, Status::Available, Status::Invalid]),
        value in -1e300..1e300,
        texts: [String; 4],
        knobs in prop::option::of(prop::collection::vec((".{0,9}", value()), 0..3)),
    ) -> Prediction {
        let [metric, reason, binding, features] = texts;
        let config = knobs.map(|knobs| EngineConfig { engine_id, knobs, ..EngineConfig::default() });
        Prediction { engine_id, kind, status, value, metric, reason, config, binding, features }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn configs(engine_id: i64, knobs in prop::collection::vec((".{0,9}", value()), 0..4)) {
        let ranking_metric = "time".to_owned();
        let config = EngineConfig { engine_id, knobs, unreadable: vec!["newer".to_owned()], ranking_metric };
        prop_assert_eq!(engine_config::decode(&engine_config::encode(&config)), Ok(config));
    }

    #[test]
    fn details(
        engine_id: i64,
        name in ".{0,9}",
        knobs in prop::collection::vec(knob(), 0..4),
        behavior_notes in notes(),
        candidate_page in prop::option::of(page()),
    ) {
        let details = EngineDetails { engine_id, name, knobs, behavior_notes, candidate_page };
        prop_assert_eq!(engine_details::decode(&engine_details::encode(&details)), Ok(details));
    }

    #[test]
    fn noise(bytes: Vec<u8>) {
        let _ = engine_config::decode(&bytes);
        let _ = engine_details::decode(&bytes);
        let _ = prediction::decode(&bytes);
    }

    #[test]
    fn predictions(wanted in prediction()) {
        prop_assert_eq!(prediction::decode(&prediction::encode(&wanted)), Ok(wanted));
    }
}

/// Returns the position of field `id` of the table at `at`, found through the table's vtable as
/// FlatBuffers' format defines it; `None` if the field is absent.
fn field(bytes: &[u8], at: usize, id: usize) -> Option<usize> {
    let vtable = at - usize::try_from(i32::from_le_bytes(bytes[at..][..4].try_into().unwrap())).unwrap();
    let word = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    (4 + 2 * id < word(vtable))
        .then(|| word(vtable + 4 + 2 * id))
        .filter(|offset| *offset != 0)
        .map(|offset| at + offset)
}

fn follow(bytes: &[u8], at: usize) -> usize {
    at + u32::from_le_bytes(bytes[at..][..4].try_into().unwrap()) as usize
}

/// Checks hipDNN's field ids and numbers of engine details, stated independently of the schema.
#[test]
fn details_lie_where_hosts_look() {
    let bytes = engine_details::encode(&EngineDetails {
        engine_id: 0x1122_3344_5566_7788,
        name: "NAME".to_owned(),
        knobs: vec![Knob {
            id: "ID".to_owned(),
            description: "TEXT".to_owned(),
            default: KnobValue::Float(0.5),
            constraint: Some(KnobConstraint::Text {
                max_length: 7,
                valid_values: vec!["VALID".to_owned()],
            }),
            deprecated: true,
        }],
        behavior_notes: vec![BehaviorNote::RuntimeCompilation, BehaviorNote::PlanSerialization],
        candidate_page: None,
    });
    let text = |at: usize| {
        let at = follow(&bytes, at);
        let length = u32::from_le_bytes(bytes[at..][..4].try_into().unwrap()) as usize;
        std::str::from_utf8(&bytes[at + 4..][..length]).unwrap()
    };
    let root = follow(&bytes, 0);
    let id = field(&bytes, root, 0).unwrap();
    assert_eq!(bytes[id..][..8], 0x1122_3344_5566_7788_i64.to_le_bytes());
    let notes = follow(&bytes, field(&bytes, root, 2).unwrap());
    assert_eq!(bytes[notes..][..12], [2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(text(field(&bytes, root, 3).unwrap()), "NAME");

    let knobs = follow(&bytes, field(&bytes, root, 1).unwrap());
    let knob = follow(&bytes, knobs + 4);
    assert_eq!(text(field(&bytes, knob, 0).unwrap()), "ID");
    assert_eq!(text(field(&bytes, knob, 1).unwrap()), "TEXT");
    assert_eq!(bytes[field(&bytes, knob, 2).unwrap()], 2, "FloatValue");
    let default = follow(&bytes, field(&bytes, knob, 3).unwrap());
    assert_eq!(bytes[field(&bytes, default, 0).unwrap()..][..8], 0.5_f64.to_le_bytes());
    assert_eq!(bytes[field(&bytes, knob, 4).unwrap()], 3, "StringConstraint");
    let constraint = follow(&bytes, field(&bytes, knob, 5).unwrap());
    assert_eq!(bytes[field(&bytes, constraint, 0).unwrap()..][..4], [7, 0, 0, 0]);
    assert_eq!(text(follow(&bytes, field(&bytes, constraint, 1).unwrap()) + 4), "VALID");
    assert_eq!(bytes[field(&bytes, knob, 6).unwrap()], 1);
}

/// A config as hosts write it if no knob is set: 24 bytes, a table with only an id.
#[test]
fn the_smallest_config() {
    let bytes = [
        12, 0, 0, 0, // where the root is
        0, 0, // padding
        6, 0, 12, 0, 4, 0, // vtable: its size, the table's size, where the id is
        6, 0, 0, 0, // how far back the vtable is
        0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0x80, // the id
    ];
    let expected = EngineConfig {
        engine_id: i64::from_le_bytes([0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0x80]),
        ..EngineConfig::default()
    };
    assert_eq!(engine_config::decode(&bytes), Ok(expected));
    for length in 0..bytes.len() {
        assert!(engine_config::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
}

/// Checks the field ids of the tables of engine API 1.5.0, stated independently of the schema.
#[test]
fn candidates_and_predictions_lie_where_hosts_look() {
    let config = EngineConfig {
        engine_id: 7,
        ranking_metric: "time".to_owned(),
        ..EngineConfig::default()
    };
    let bytes = prediction::encode(&Prediction {
        engine_id: 0x1122_3344_5566_7788,
        kind: Kind::Configuration,
        status: Status::Available,
        value: 2.5,
        metric: "METRIC".to_owned(),
        reason: "REASON".to_owned(),
        config: Some(config),
        binding: "BINDING".to_owned(),
        features: "FEATURES".to_owned(),
    });
    let root = follow(&bytes, 0);
    let text = |bytes: &[u8], at: usize| {
        let at = follow(bytes, at);
        let length = u32::from_le_bytes(bytes[at..][..4].try_into().unwrap()) as usize;
        String::from_utf8(bytes[at + 4..][..length].to_vec()).unwrap()
    };
    let at = |id: usize| field(&bytes, root, id).unwrap();
    assert_eq!(bytes[at(0)..][..8], 0x1122_3344_5566_7788_i64.to_le_bytes());
    assert_eq!((bytes[at(1)], bytes[at(2)]), (1, 1));
    assert_eq!(bytes[at(3)..][..8], 2.5_f64.to_le_bytes());
    assert_eq!(field(&bytes, root, 4), None);
    assert_eq!(text(&bytes, at(5)), "REASON");
    let config = follow(&bytes, at(6));
    assert_eq!(bytes[field(&bytes, config, 0).unwrap()..][..8], 7_i64.to_le_bytes());
    assert_eq!(text(&bytes, field(&bytes, config, 2).unwrap()), "time");
    assert_eq!(text(&bytes, at(7)), "BINDING");
    assert_eq!(text(&bytes, at(8)), "FEATURES");
    assert_eq!(text(&bytes, at(9)), "METRIC");

    let bytes = engine_details::encode(&EngineDetails {
        candidate_page: Some(CandidatePage {
            graph_id: "GRAPH".to_owned(),
            device_id: "DEVICE".to_owned(),
            device_arch: "ARCH".to_owned(),
            problem_features: "PROBLEM".to_owned(),
            device_features: "OF DEVICE".to_owned(),
            total: 9,
            offset: 5,
            candidates: vec![Candidate {
                id: "ID".to_owned(),
                knobs: vec![("KNOB".to_owned(), KnobValue::Text("VALUE".to_owned()))],
                features: "KERNEL".to_owned(),
            }],
            engine_name: "NAME".to_owned(),
        }),
        ..EngineDetails::default()
    });
    let page = follow(&bytes, field(&bytes, follow(&bytes, 0), 4).unwrap());
    let at = |id: usize| field(&bytes, page, id).unwrap();
    let words = [0, 1, 2, 3, 4, 8].map(|id| text(&bytes, at(id)));
    assert_eq!(words, ["GRAPH", "DEVICE", "ARCH", "PROBLEM", "OF DEVICE", "NAME"]);
    assert_eq!((bytes[at(5)], bytes[at(6)]), (9, 5));
    // A vector of one table.
    let candidate = follow(&bytes, follow(&bytes, at(7)) + 4);
    let at = |id: usize| field(&bytes, candidate, id).unwrap();
    assert_eq!(text(&bytes, at(0)), "ID");
    assert_eq!(text(&bytes, at(2)), "KERNEL");
    let setting = follow(&bytes, follow(&bytes, at(1)) + 4);
    assert_eq!(text(&bytes, field(&bytes, setting, 0).unwrap()), "KNOB");
}
