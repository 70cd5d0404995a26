//! Checks that every attribute of every operation is part of a graph's identity and survives the
//! wire.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod common;

use rotini_graph::{Graph, Op};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Members of all enums except the modes of pointwise operations; each is tried for every enum
/// field.
const MEMBERS: &str = "Convolution CrossCorrelation Inference Training Add Mul Min Max Amax Avg Norm1 Norm2 MulNoZeros Maxpool \
                       AvgpoolExcludePadding AvgpoolIncludePadding NotSet NegInf Zero TopLeft BottomRight Auto Composite \
                       Unified None Gather Scatter F32 F16 F64";

fn key(graph: &Graph) -> Vec<u8> {
    graph.normalise().0.canonical_bytes().unwrap()
}

/// Returns values near `value`, of which at least one is a different value of the same field.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) if number.is_f64() => vec![json!(number.as_f64().unwrap() + 1.0)],
        Value::Number(number) => vec![json!(number.as_i64().unwrap() ^ 1)],
        Value::String(text) => {
            let members = MEMBERS.split_whitespace().map(|member| json!(member));
            let text_itself = json!(format!("{text}x"));
            members.chain([text_itself]).filter(|other| other != value).collect()
        }
        Value::Array(list) => {
            let mut others = vec![json!(&list[1..])];
            for index in 0..list.len() {
                for other in self::others(&list[index]) {
                    let mut list = list.clone();
                    list[index] = other;
                    others.push(Value::Array(list));
                }
            }
            others
        }
        other => panic!("{other}"),
    }
}

/// Changes the field at `path` in every way and returns the number of changes that its type
/// accepts. Each must change the key and survive the wire.
fn change(graph: &Graph, op: &Value, path: &str) -> usize {
    let mut changes = 0;
    for other in others(op.pointer(path).unwrap()) {
        let mut changed = op.clone();
        *changed.pointer_mut(path).unwrap() = other.clone();
        let Ok(op) = serde_json::from_value::<Op>(changed) else {
            continue;
        };
        let mut graph_2 = graph.clone();
        graph_2.nodes[0].op = op;
        assert_ne!(key(graph), key(&graph_2), "{path} = {other}");
        let encoded = rotini_wire::encode(&graph_2);
        assert_ne!(encoded, rotini_wire::encode(graph), "{path} = {other}");
        // A graph that validation refuses, such as a convolution whose output would be larger,
        // cannot be decoded; for it, only the bytes are compared.
        if graph_2.validate().is_ok() {
            assert_eq!(rotini_wire::decode(&encoded).as_ref(), Ok(&graph_2), "{path} = {other}");
        }
        changes += 1;
    }
    changes
}

#[test]
fn each_counts() {
    let mut attributes = BTreeSet::new();
    for kind in 0..common::OPERATIONS {
        // Enough seeds for every mode of pointwise operations to occur.
        for seed in 0..200 {
            let graph = common::graph(seed, &[kind], true);
            let mut tensors = BTreeSet::new();
            graph.nodes[0]
                .op
                .for_each_input(&mut |field, _| _ = tensors.insert(field));
            graph.nodes[0]
                .op
                .for_each_output(&mut |field, _| _ = tensors.insert(field));

            let op = serde_json::to_value(&graph.nodes[0].op).unwrap();
            let (name, fields) = op.as_object().unwrap().iter().next().unwrap();
            for (field, value) in fields.as_object().unwrap() {
                // Parameters without a meaning for this pointwise mode are absent, and validation
                // refuses them if set.
                if tensors.contains(field.as_str()) || value.is_null() {
                    continue;
                }
                let paths = match value {
                    Value::Object(geometry) => geometry
                        .keys()
                        .map(|inner| format!("/{name}/{field}/{inner}"))
                        .collect(),
                    _ => vec![format!("/{name}/{field}")],
                };
                for path in paths {
                    assert!(change(&graph, &op, &path) > 0, "{path} has no other value");
                    attributes.insert(path);
                }
            }
        }
    }
    // The number of attributes of all operations, including each pointwise parameter: fewer means
    // that some were not tried.
    assert_eq!(attributes.len(), 73, "{attributes:#?}");
}
