//! Checks that graphs written in hipDNN's JSON form, by separate code, are read back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

mod others;
mod written;

use others::others;
use proptest::prelude::*;
use rotini_graph::{DataType, Graph, Op};
use rotini_workloads::suites::{SuiteOptions, suite};
use rotini_workloads::{from_json, from_log, from_miopen};
use std::collections::HashSet;
use std::path::Path;
use written::{Form, written};

const F32: DataType = DataType::F32;

/// Returns graphs of hipDNN's samples, of the suites and of MIOpen's command lines.
fn graphs() -> Vec<Graph> {
    let mut graphs = Vec::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/hipdnn");
    for entry in std::fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "fb") {
            // Some samples are invalid on purpose and do not decode.
            graphs.extend(rotini_wire::decode(&std::fs::read(path).unwrap()));
        }
    }
    assert!(graphs.len() > 30, "{} samples", graphs.len());
    let mut workloads = Vec::new();
    for name in ["quick", "resnet50", "bare", "everyday", "unet", "bert", "llama"] {
        workloads.extend(suite(name, &SuiteOptions::default()).unwrap());
    }
    let lines = include_str!("../miopen_lines.txt").lines();
    workloads.extend(lines.filter_map(|line| from_miopen(line).ok()).flatten());
    graphs.extend(
        workloads
            .iter()
            .map(|workload| rotini_wire::decode(&workload.graph).unwrap()),
    );
    // Passed through the wire, as the other graphs were.
    graphs.extend(others().iter().map(|graph| {
        rotini_wire::decode(&rotini_wire::encode(graph)).unwrap_or_else(|error| panic!("{}: {error}", graph.name))
    }));
    graphs
}

#[test]
fn what_is_written_is_read() {
    let mut kinds = HashSet::new();
    for mut graph in graphs() {
        if graph.name.is_empty() {
            graph.name = "graph".to_owned();
        }
        kinds.extend(graph.nodes.iter().map(|node| node.op.kind()));
        for form in [Form::Grouped, Form::Flat] {
            let text = written(&graph, form).to_string();
            let read = from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(rotini_wire::decode(&read.graph).unwrap(), graph, "{text}");
        }
    }
    let missing: Vec<_> = Op::KINDS.iter().filter(|kind| !kinds.contains(*kind)).collect();
    assert!(missing.is_empty(), "no graph has {missing:?}");
}

/// A graph in the form that hipDNN's measurement tool stores.
const ACTIVATION: &str = r#"{
    "name": "relu6", "_comment": "clipped", "compute_data_type": "float", "io_data_type": "half",
    "intermediate_data_type": "float",
    "tensors": [
        {"uid": 1, "name": "x", "dims": [2, 3], "strides": [3, 1], "data_type": "unset", "virtual": false},
        {"uid": 2, "name": "y", "dims": [2, 3], "strides": [3, 1], "data_type": "half", "virtual": false}
    ],
    "nodes": [{
        "name": "relu", "type": "PointwiseAttributes", "compute_data_type": "unset",
        "inputs": {
            "operation": "relu_fwd", "relu_upper_clip": 6.0, "axis_tensor_uid": null, "in_0_tensor_uid": 1,
            "in_1_tensor_uid": null, "elu_alpha": null
        },
        "outputs": {"out_0_tensor_uid": 2}
    }]
}"#;

#[test]
fn types_come_from_the_graph() {
    let workload = from_json(ACTIVATION).unwrap();
    assert_eq!(workload.name, "relu6");
    let graph = rotini_wire::decode(&workload.graph).unwrap();
    assert_eq!(graph.tensors[0].dtype, DataType::F16);
    assert_eq!(graph.nodes[0].compute, F32);
    let Op::Pointwise(relu) = &graph.nodes[0].op else {
        panic!("{graph:?}")
    };
    assert_eq!((relu.relu_upper_clip, relu.in_1), (Some(6.0), None));
}

#[test]
fn types_have_all_names_that_hipdnn_gives_them() {
    for (name, dtype) in [
        ("boolean", DataType::Bool),
        ("BOOLEAN", DataType::Bool),
        ("bool", DataType::Bool),
        ("float16", DataType::F16),
        ("Float16", DataType::F16),
        ("float32", DataType::F32),
        ("float64", DataType::F64),
        ("fp8_e4m3_fnuz", DataType::F8E4M3Fnuz),
        ("fp8_e5m2_fnuz", DataType::F8E5M2Fnuz),
    ] {
        let text = ACTIVATION.replacen("\"half\", \"virtual\"", &format!("\"{name}\", \"virtual\""), 1);
        assert_ne!(text, ACTIVATION);
        let graph = rotini_wire::decode(&from_json(&text).unwrap().graph).unwrap();
        assert_eq!(graph.tensors[1].dtype, dtype, "{name}");
    }
    for (number, dtype) in [
        (16, DataType::Bool),
        (17, DataType::F8E4M3Fnuz),
        (18, DataType::F8E5M2Fnuz),
    ] {
        let text = ACTIVATION.replacen("\"half\", \"virtual\"", &format!("{number}, \"virtual\""), 1);
        let graph = rotini_wire::decode(&from_json(&text).unwrap().graph).unwrap();
        assert_eq!(graph.tensors[1].dtype, dtype, "{number}");
    }
}

#[test]
fn mistakes_are_named() {
    for (from, to, what) in [
        ("\"nodes\"", "\"knots\"", "the graph: has no nodes"),
        (
            "\"relu_fwd\"",
            "\"relu_forward\"",
            "node 'relu' (PointwiseAttributes): operation is \"relu_forward\"",
        ),
        ("\"relu_fwd\"", "127", "operation is 127, which is not known"),
        ("\"operation\": \"relu_fwd\",", "", "has no operation"),
        (
            "PointwiseAttributes",
            "LrnAttributes",
            "node 'relu' (LrnAttributes): the type is not known",
        ),
        (
            "\"in_0_tensor_uid\": 1",
            "\"in_0_tensor_uid\": 9",
            "in_0_tensor_uid is 9, which no tensor has",
        ),
        ("\"in_0_tensor_uid\": 1,", "", "has no in_0_tensor_uid"),
        (
            "\"elu_alpha\": null",
            "\"window\": [2]",
            "the field window is not known",
        ),
        ("6.0", "\"six\"", "relu_upper_clip is \"six\", which is no number"),
        (
            "\"half\",\n    \"inter",
            "\"unset\",\n    \"inter",
            "the tensor with uid 1: has no data_type",
        ),
        (
            "\"dims\": [2, 3], \"strides\": [3, 1], \"data_type\": \"half\"",
            "\"dims\": 6",
            "the tensor with uid 2: dims is 6",
        ),
        (
            "\"uid\": 2,",
            "\"uid\": 2, \"value\": 1.0,",
            "has a value and no value_type",
        ),
        (
            "\"uid\": 2,",
            "\"uid\": 2, \"value_type\": \"Float32Value\", \"value\": null,",
            "and no value",
        ),
        ("\"uid\": 2,", "\"uid\": 1,", "the graph: two tensors have the uid 1"),
        (
            "\"data_type\": \"half\", \"virtual\": false",
            "\"data_type\": \"mxfp4\", \"virtual\": false",
            "data_type is \"mxfp4\"",
        ),
        (
            "\"outputs\": {",
            "\"outputs\": {\"in_0_tensor_uid\": 2, ",
            "has in_0_tensor_uid twice",
        ),
        ("{\n", "", "the text: "),
    ] {
        let text = ACTIVATION.replacen(from, to, 1);
        assert_ne!(text, ACTIVATION, "{from}");
        let error = from_json(&text).expect_err(what).to_string();
        assert!(error.contains(what), "{error}, not {what}");
    }
    assert!(from_json("[]").unwrap_err().to_string().contains("is no object"));
}

#[test]
fn a_log_has_graphs_too() {
    let line =
        "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 2 -c 3 -H 8 -W 8 -k 4 -y 3 -x 3 -F 1\n";
    let conv = rotini_wire::decode(&from_miopen(line).unwrap()[0].graph).unwrap();
    // The same graph with other names and uids.
    let mut renamed = conv.clone();
    renamed.name = "other".to_owned();
    for tensor in &mut renamed.tensors {
        tensor.uid += 100;
        tensor.name = "{\"".to_owned();
    }
    let log = [
        line.to_owned(),
        "step {0} of {\"loss\": 1.5} and {\n".to_owned(),
        format!("[info] [tid 3] graph: {} done\n", written(&conv, Form::Grouped)),
        format!("[info] {:#}\n", written(&renamed, Form::Flat)),
        format!("{ACTIVATION}{ACTIVATION}\n"),
        ACTIVATION.replace("relu_fwd", "relu_forward"),
        "\n{\"nodes\": [\n".to_owned(),
        line.to_owned(),
    ];
    let contents = from_log(log.concat().as_bytes()).unwrap();
    let found: Vec<_> = contents
        .problems
        .iter()
        .map(|problem| (problem.workload.name.as_str(), problem.occurrences))
        .collect();
    assert_eq!(found, [(conv.name.as_str(), 4), ("relu6", 2)]);
    let lines: Vec<&str> = contents
        .not_understood
        .iter()
        .map(|(number, _)| {
            let text = log.concat();
            let at = text.lines().nth(number - 1).unwrap().to_owned();
            if at.contains("nodes") { "unfinished" } else { "begins" }
        })
        .collect();
    assert_eq!(lines, ["begins", "unfinished"], "{:?}", contents.not_understood);
    assert!(contents.not_understood[0].1.to_string().contains("relu_forward"));
    assert!(contents.not_understood[1].1.to_string().contains("does not end"));
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in ".{0,200}") {
        let _ = from_json(&text);
        let _ = from_log(text.as_bytes());
    }

    #[test]
    fn no_part_need_be_there(from in 0..ACTIVATION.len(), length in 0..40_usize, with in "[0-9\\[\\]{}\",:a-z]{0,8}") {
        let to = (from + length).min(ACTIVATION.len());
        let text = format!("{}{with}{}", &ACTIVATION[..from], &ACTIVATION[to..]);
        if let Ok(workload) = from_json(&text) {
            rotini_wire::decode(&workload.graph).unwrap();
        }
        from_log(text.as_bytes()).unwrap();
    }
}
