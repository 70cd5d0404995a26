//! Engine configs and details: what a host writes is read, and the other way round.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

use proptest::prelude::*;
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{self, EngineConfig};
use rotini_wire::engine_details::{self, BehaviorNote, EngineDetails, Knob, KnobConstraint};

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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn configs(engine_id: i64, knobs in prop::collection::vec((".{0,9}", value()), 0..4)) {
        let config = EngineConfig { engine_id, knobs, unreadable: vec!["newer".to_owned()] };
        prop_assert_eq!(engine_config::decode(&engine_config::encode(&config)), Ok(config));
    }

    #[test]
    fn details(
        engine_id: i64,
        name in ".{0,9}",
        knobs in prop::collection::vec(knob(), 0..4),
        behavior_notes in notes(),
    ) {
        let details = EngineDetails { engine_id, name, knobs, behavior_notes };
        prop_assert_eq!(engine_details::decode(&engine_details::encode(&details)), Ok(details));
    }

    #[test]
    fn noise(bytes: Vec<u8>) {
        let _ = engine_config::decode(&bytes);
        let _ = engine_details::decode(&bytes);
    }
}

/// A table at `at`, by its vtable, as FlatBuffers' format lays it.
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

/// The ids and numbers that hipDNN gives to the fields, stated apart from the schema.
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

/// A config as hosts write it when no knob is set: 24 bytes, a table with an id alone.
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
