//! Checks that graphs serialized by hipDNN's own schema decode to their descriptions.
//!
//! This is independent evidence for the schema in `schema/`: neither the bytes nor the descriptions
//! come from this repository.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail"
)]

use rotini_graph::{
    ConvGeometry, ConvMode, DataType, DiagonalAlignment, Graph, NormPhase, Op, ReductionMode, Scalar, Tensor,
    TensorKind,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/hipdnn")
}

/// Returns the name, bytes and description of every sample.
fn samples() -> Vec<(String, Vec<u8>, Value)> {
    let mut samples: Vec<_> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "fb"))
        .map(|path| {
            let description = std::fs::read_to_string(path.with_extension("json")).unwrap();
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
                serde_json::from_str(&description).unwrap(),
            )
        })
        .collect();
    samples.sort_by(|a, b| a.0.cmp(&b.0));
    samples
}

fn dtype_name(dtype: DataType) -> &'static str {
    match dtype {
        DataType::F32 => "FLOAT",
        DataType::F16 => "HALF",
        DataType::Bf16 => "BFLOAT16",
        other => panic!("no sample has {other}"),
    }
}

/// Describes a decoded tensor in the descriptions' form, without its role.
fn describe_tensor(tensor: &Tensor) -> Value {
    let mut description = json!({
        "uid": tensor.uid,
        "name": tensor.name,
        "data_type": dtype_name(tensor.dtype),
        "dims": tensor.dims,
        "strides": tensor.strides,
        "virtual": tensor.kind == TensorKind::Virtual,
    });
    if let TensorKind::Constant(Scalar::Float(bits)) = tensor.kind {
        description["value"] = json!(f64::from_bits(bits));
    }
    description
}

fn geometry(geometry: &ConvGeometry) -> Value {
    json!({
        "pre_padding": geometry.pre_padding,
        "post_padding": geometry.post_padding,
        "stride": geometry.stride,
        "dilation": geometry.dilation,
        "conv_mode": match geometry.mode {
            ConvMode::CrossCorrelation => "CROSS_CORRELATION",
            ConvMode::Convolution => "CONVOLUTION",
        },
    })
}

fn phase(phase: NormPhase) -> &'static str {
    match phase {
        NormPhase::Inference => "INFERENCE",
        NormPhase::Training => "TRAINING",
    }
}

/// Returns the schema's name of an operation, and its attributes in the descriptions' form.
fn describe_op(op: &Op) -> (&'static str, Value) {
    match op {
        Op::ConvFprop(op) => ("ConvolutionFwdAttributes", geometry(&op.geometry)),
        Op::ConvDgrad(op) => ("ConvolutionBwdAttributes", geometry(&op.geometry)),
        Op::ConvWgrad(op) => ("ConvolutionWrwAttributes", geometry(&op.geometry)),
        Op::BatchnormInference(_) => ("BatchnormInferenceAttributes", Value::Null),
        Op::Matmul(_) => ("MatmulAttributes", Value::Null),
        Op::Pointwise(op) => {
            let mut attributes = json!({ "mode": op.mode.name() });
            if let Some(beta) = op.swish_beta {
                attributes["swish_beta"] = json!(f64::from(beta));
            }
            assert_eq!(
                op.parameters().count(),
                usize::from(op.swish_beta.is_some()),
                "no sample sets others"
            );
            ("PointwiseAttributes", attributes)
        }
        Op::Layernorm(op) => (
            "LayernormAttributes",
            json!({ "normalized_dim_count": op.normalized_dim_count, "forward_phase": phase(op.phase) }),
        ),
        Op::RmsNorm(op) => ("RMSNormAttributes", json!({ "forward_phase": phase(op.phase) })),
        Op::Reduction(op) => (
            "ReductionAttributes",
            json!({
                "mode": match op.mode {
                    ReductionMode::Add => "ADD",
                    ReductionMode::Amax => "AMAX",
                    other => panic!("no sample has {other:?}"),
                },
                "is_deterministic": op.is_deterministic,
            }),
        ),
        Op::Sdpa(op) => {
            let mut attributes = json!({
                "causal_mask": op.causal_mask,
                "causal_mask_bottom_right": op.causal_mask_bottom_right,
                "diagonal_alignment": match op.diagonal_alignment {
                    DiagonalAlignment::TopLeft => "TOP_LEFT",
                    DiagonalAlignment::BottomRight => "BOTTOM_RIGHT",
                },
            });
            for (name, value) in [
                (
                    "attn_scale_value",
                    op.attn_scale_value.map(|scale| json!(f64::from(scale))),
                ),
                ("right_bound", op.right_bound.map(|bound| json!(bound))),
                ("left_bound", op.left_bound.map(|bound| json!(bound))),
            ] {
                if let Some(value) = value {
                    attributes[name] = value;
                }
            }
            ("SdpaAttributes", attributes)
        }
        other => panic!("no sample has {}", other.kind()),
    }
}

/// Returns the uids of tensors by the schema's names of their fields.
fn uids(graph: &Graph, visit: impl FnOnce(&mut dyn FnMut(&'static str, rotini_graph::TensorId))) -> Value {
    let mut uids = Map::new();
    visit(&mut |field, id| {
        let field = match field {
            "input" => "in",
            "output" => "out",
            same => same,
        };
        uids.insert(field.to_owned(), json!(graph.tensor(id).unwrap().uid));
    });
    Value::Object(uids)
}

fn describe(graph: &Graph) -> (Vec<Value>, Vec<Value>) {
    let nodes = graph.nodes.iter().map(|node| {
        let (op, attributes) = describe_op(&node.op);
        json!({
            "name": node.name,
            "op": op,
            "compute_data_type": dtype_name(node.compute),
            "inputs": uids(graph, |visit| node.op.for_each_input(visit)),
            "outputs": uids(graph, |visit| node.op.for_each_output(visit)),
            "attributes": attributes,
        })
    });
    (nodes.collect(), graph.tensors.iter().map(describe_tensor).collect())
}

fn without_role(tensor: &Value) -> Value {
    let mut tensor = tensor.clone();
    tensor.as_object_mut().unwrap().remove("role");
    tensor
}

fn sorted(mut list: Vec<Value>) -> Vec<Value> {
    list.sort_by_key(|tensor| tensor["uid"].as_i64());
    list
}

#[test]
fn samples_decode_to_what_they_are() {
    let mut operations = BTreeSet::new();
    for (name, bytes, description) in samples() {
        if description["expect"] == "reject" {
            continue;
        }
        let graph = rotini_wire::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(graph.name, description["name"].as_str().unwrap(), "{name}");
        assert_eq!(
            graph.override_shapes,
            description["is_override_shape_enabled"].as_bool().unwrap(),
            "{name}"
        );
        let (nodes, tensors) = describe(&graph);
        assert_eq!(nodes, *description["nodes"].as_array().unwrap(), "{name}");
        let declared = description["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(without_role)
            .collect();
        assert_eq!(sorted(tensors), sorted(declared), "{name}");
        operations.extend(graph.nodes.iter().map(|node| node.op.kind()));

        let again = rotini_wire::decode(&rotini_wire::encode(&graph)).unwrap();
        assert_eq!(again, graph, "{name}: encoding and decoding changes it");
    }
    // The samples cover 10 operations; fewer means that files are missing.
    assert_eq!(operations.len(), 10, "{operations:?}");
}

#[test]
fn bad_samples_are_malformed_and_say_why() {
    let mut reasons = Vec::new();
    for (name, bytes, description) in samples() {
        if description["expect"] == "reject" {
            let error = rotini_wire::decode(&bytes).expect_err(&name);
            assert!(error.is_malformed(), "{name}: {error}");
            reasons.push((name, error.to_string()));
        }
    }
    let expected = [
        ("neg_cycle", "node 'Pointwise_ADD' (pointwise) is part of a cycle"),
        (
            "neg_dangling_uid",
            "node 'Pointwise_RELU_FWD' (PointwiseAttributes): in_0 names uid 777, which no tensor has",
        ),
        ("neg_dim_huge", "tensor 'IN_0' (uid 0): its size in bytes overflows"),
        ("neg_empty_graph", "the graph has no nodes"),
    ]
    .map(|(name, reason)| (name.to_owned(), reason.to_owned()));
    assert_eq!(reasons, expected);
}
