//! Writes graphs in JSON as hipDNN does, by code that shares nothing with the reader.

use rotini_graph::{DataType, Graph, Op, Scalar, TensorKind};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

/// The JSON form of a version of hipDNN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// Fields in groups; names in lower case where hipDNN writes them so.
    Grouped,
    /// All fields in the node, all names in upper case.
    Flat,
}

fn type_name(dtype: DataType) -> &'static str {
    match dtype {
        DataType::F32 => "float",
        DataType::F16 => "half",
        DataType::Bf16 => "bfloat16",
        DataType::F64 => "double",
        DataType::U8 => "uint8",
        DataType::I32 => "int32",
        DataType::I8 => "int8",
        DataType::F8E4M3 => "fp8_e4m3",
        DataType::F8E5M2 => "fp8_e5m2",
        DataType::F8E8M0 => "fp8_e8m0",
        DataType::F4E2M1 => "fp4_e2m1",
        DataType::F6E2M3 => "fp6_e2m3",
        DataType::F6E3M2 => "fp6_e3m2",
        DataType::I4 => "int4",
        DataType::I64 => "int64",
        DataType::Bool => "boolean",
        DataType::F8E4M3Fnuz => "fp8_e4m3_fnuz",
        DataType::F8E5M2Fnuz => "fp8_e5m2_fnuz",
    }
}

fn table(op: &Op) -> &'static str {
    match op {
        Op::BatchnormInference(_) => "BatchnormInferenceAttributes",
        Op::Pointwise(_) => "PointwiseAttributes",
        Op::BatchnormBackward(_) => "BatchnormBackwardAttributes",
        Op::Batchnorm(_) => "BatchnormAttributes",
        Op::ConvFprop(_) => "ConvolutionFwdAttributes",
        Op::ConvDgrad(_) => "ConvolutionBwdAttributes",
        Op::ConvWgrad(_) => "ConvolutionWrwAttributes",
        Op::BatchnormInferenceVariance(_) => "BatchnormInferenceAttributesVarianceExt",
        Op::Matmul(_) => "MatmulAttributes",
        Op::RmsNorm(_) => "RMSNormAttributes",
        Op::Layernorm(_) => "LayernormAttributes",
        Op::Sdpa(_) => "SdpaAttributes",
        Op::BlockScaleDequantize(_) => "BlockScaleDequantizeAttributes",
        Op::BlockScaleQuantize(_) => "BlockScaleQuantizeAttributes",
        Op::SdpaBackward(_) => "SdpaBackwardAttributes",
        Op::CustomOp(_) => "CustomOpAttributes",
        Op::RmsNormBackward(_) => "RMSNormBackwardAttributes",
        Op::Reduction(_) => "ReductionAttributes",
        Op::ResampleFwd(_) => "ResampleFwdAttributes",
        Op::LayernormBackward(_) => "LayernormBackwardAttributes",
        Op::ResampleBwd(_) => "ResampleBwdAttributes",
        Op::MoeGroupedMatmul(_) => "MoeGroupedMatmulAttributes",
        Op::MoeGroupedMatmulBwd(_) => "MoeGroupedMatmulBwdAttributes",
    }
}

/// Converts `CrossCorrelation` to `CROSS_CORRELATION`.
fn member(name: &str) -> String {
    match name {
        "NegInf" => return "NEG_INF_PAD".to_owned(),
        "Zero" => return "ZERO_PAD".to_owned(),
        _ => (),
    }
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_uppercase());
    }
    snake
}

fn node(graph: &Graph, op: &Op, form: Form) -> Map<String, Value> {
    let mut reads: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let mut writes: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let uid = |id| graph.tensor(id).unwrap().uid;
    op.for_each_input(&mut |name, id| reads.entry(name).or_default().push(uid(id)));
    op.for_each_output(&mut |name, id| writes.entry(name).or_default().push(uid(id)));
    let tensors = |of: BTreeMap<&str, Vec<i64>>| -> Map<String, Value> {
        of.into_iter()
            .map(|(name, uids)| match name {
                "peer_stats" => ("peer_stats_tensor_uid".to_owned(), json!(uids)),
                "inputs" => ("input_tensor_uids".to_owned(), json!(uids)),
                "outputs" => ("output_tensor_uids".to_owned(), json!(uids)),
                "input" => ("in_tensor_uid".to_owned(), json!(uids[0])),
                "output" if matches!(op, Op::Reduction(_)) => ("out_tensor_uid".to_owned(), json!(uids[0])),
                "d_o" => ("do_tensor_uid".to_owned(), json!(uids[0])),
                _ => (format!("{name}_tensor_uid"), json!(uids[0])),
            })
            .collect()
    };
    let names: HashSet<&str> = reads.keys().chain(writes.keys()).copied().collect();
    // Other fields have the IR's names.
    let Value::Object(all) = serde_json::to_value(op).unwrap() else {
        panic!("{op:?}")
    };
    let Some((_, Value::Object(all))) = all.into_iter().next() else {
        panic!("{op:?}")
    };
    let mut parameters = Map::new();
    let mut rest: Vec<(String, Value)> = all.into_iter().collect();
    while let Some((name, value)) = rest.pop() {
        let text = value.as_str().map(str::to_owned);
        let is_conv = matches!(op, Op::ConvFprop(_) | Op::ConvDgrad(_) | Op::ConvWgrad(_));
        match (name.as_str(), text) {
            (name, _) if names.contains(name) || value.as_array().is_some_and(|_| name == "peer_stats") => (),
            ("geometry", _) => rest.extend(value.as_object().unwrap().clone()),
            ("mode", Some(text)) if is_conv => drop(parameters.insert("conv_mode".to_owned(), json!(member(&text)))),
            ("mode", Some(text)) if matches!(op, Op::Pointwise(_)) => {
                let text = match form {
                    Form::Grouped => member(&text).to_ascii_lowercase(),
                    Form::Flat => member(&text),
                };
                parameters.insert("operation".to_owned(), json!(text));
            }
            ("axis", _) if matches!(op, Op::Pointwise(_)) => {
                parameters.insert("axis_tensor_uid".to_owned(), value);
            }
            // hipDNN writes layernorm's phase as a number.
            ("phase", Some(text)) => {
                let phase = match form {
                    Form::Grouped => json!(if text == "Inference" { 1 } else { 2 }),
                    Form::Flat => json!(member(&text)),
                };
                parameters.insert("forward_phase".to_owned(), phase);
            }
            ("custom_op_id", _) => drop(parameters.insert(name, value)),
            (_, Some(text)) => drop(parameters.insert(name, json!(member(&text)))),
            _ => drop(parameters.insert(name, value)),
        }
    }
    let groups = [
        ("inputs", tensors(reads)),
        ("outputs", tensors(writes)),
        ("parameters", parameters),
    ];
    match form {
        Form::Grouped => groups
            .into_iter()
            .map(|(name, group)| (name.to_owned(), json!(group)))
            .collect(),
        Form::Flat => groups.into_iter().flat_map(|(_, group)| group).collect(),
    }
}

pub(super) fn written(graph: &Graph, form: Form) -> Value {
    let type_name = |dtype| match form {
        Form::Grouped => type_name(dtype).to_owned(),
        Form::Flat => type_name(dtype).to_ascii_uppercase(),
    };
    let tensors = graph.tensors.iter().map(|tensor| {
        let mut object = json!({
            "uid": tensor.uid, "name": tensor.name, "data_type": type_name(tensor.dtype), "dims": tensor.dims,
            "strides": tensor.strides, "virtual": tensor.kind == TensorKind::Virtual, "alignment": tensor.alignment,
            "is_runtime_pass_by_value": tensor.kind == TensorKind::RuntimeScalar,
        });
        if let Some(offset) = tensor.ragged_offset {
            object["ragged_offset_tensor_uid"] = json!(graph.tensor(offset).unwrap().uid);
        }
        if let TensorKind::Constant(scalar) = tensor.kind {
            let (form, value) = match scalar {
                Scalar::Float(bits) => ("Float64Value", json!(f64::from_bits(bits))),
                Scalar::Integer(value) => ("Int64Value", json!(value)),
            };
            object["value_type"] = json!(form);
            object["value"] = value;
        }
        object
    });
    let nodes = graph.nodes.iter().map(|of| {
        let mut object = node(graph, &of.op, form);
        object.insert("name".to_owned(), json!(of.name));
        object.insert("type".to_owned(), json!(table(&of.op)));
        object.insert("compute_data_type".to_owned(), json!(type_name(of.compute)));
        object
    });
    let [major, minor, patch] = graph.min_api_version;
    json!({
        "name": graph.name, "compute_data_type": "unset", "io_data_type": "unset", "intermediate_data_type": "unset",
        "tensors": tensors.collect::<Vec<_>>(), "nodes": nodes.collect::<Vec<_>>(),
        "is_override_shape_enabled": graph.override_shapes, "preferred_engine_id": 7,
        "min_required_engine_api_version": {"major": major, "minor": minor, "patch": patch},
    })
}
