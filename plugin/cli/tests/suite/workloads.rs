//! Workloads that users bring to `rotini bench`: rotini supports them, and their formats are read.

use crate::bench::{Bench, OK, built_library, has_compiler};
use rotini_workloads::suites::{SUITES, SuiteOptions, suite};
use rotini_workloads::{Workload, from_miopen};
use serde_json::Value;

/// Rotini supports all graphs of the suites on the CPU.
#[test]
fn suites_are_applicable() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for (name, _) in SUITES {
        let all = suite(name, &SuiteOptions::default()).unwrap();
        // The 400 graphs of MIOpen's database are one operation in three directions, so a sample
        // suffices.
        let step = all.len().div_ceil(40);
        workloads.extend(all.into_iter().step_by(step));
    }
    for line in [
        "bnorm -n 4 -c 8 -H 14 -W 14 -m 1",
        "poolfp16 -W 4x8x28x28 -y 2 -x 2 -v 2 -u 2",
        "softmax -n 4 -c 64 -H 3 -W 3",
        "layernorm -X 4x8x64 -o 2 -m 1 -F 1",
        "gemm -m 64 -k 32 -n 16",
        "reduce -D 8,16,7,7 -R 2,3 -O 5",
        "CBAInfer -F 0 -M 1 -n 2 -c 8 -H 14 -W 14 -k 8 -p 1 -q 1",
    ] {
        workloads.extend(from_miopen(line).unwrap());
    }
    let mut command = bench.command(["check", "--json", "--target", "cpu"]);
    for (number, workload) in workloads.iter().enumerate() {
        let path = bench.path(&format!("{number}.fb"));
        std::fs::write(&path, &workload.graph).unwrap();
        command.arg(path);
    }
    let document: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let checked = document["graphs"].as_array().unwrap();
    assert_eq!(checked.len(), workloads.len());
    let declined: Vec<_> = workloads
        .iter()
        .zip(checked)
        .filter(|(_, checked)| checked["verdict"] != "applicable")
        .map(|(workload, checked)| format!("{}: {}", workload.origin, checked["reason"]))
        .collect();
    assert!(declined.is_empty(), "{declined:#?}");
}

/// A graph in JSON, as hipDNN's tools write it.
const NEGATION: &str = r#"{
    "name": "negation", "compute_data_type": "float", "io_data_type": "float", "intermediate_data_type": "float",
    "tensors": [
        {"uid": 1, "name": "x", "dims": [2, 3], "strides": [3, 1], "data_type": "float", "virtual": false},
        {"uid": 2, "name": "y", "dims": [2, 3], "strides": [3, 1], "data_type": "float", "virtual": false}
    ],
    "nodes": [{
        "name": "minus", "type": "PointwiseAttributes", "compute_data_type": "float",
        "inputs": {"operation": "neg", "in_0_tensor_uid": 1}, "outputs": {"out_0_tensor_uid": 2}
    }]
}"#;

#[test]
fn graphs_in_json_are_run() {
    let bench = Bench::new();
    let Some(engine) = built_library("libreference_engine.so") else {
        return;
    };
    let engine = engine.display().to_string();
    std::fs::write(bench.path("minus.json"), NEGATION).unwrap();
    std::fs::write(bench.path("program.log"), format!("[info] {NEGATION}\n")).unwrap();
    std::fs::write(bench.path("bad.json"), NEGATION.replace("\"neg\"", "\"minus\"")).unwrap();
    let run = |arguments: &[&str]| {
        let short = [
            "--visits",
            "1",
            "--rounds",
            "2",
            "--turn",
            "1",
            "--no-rotate",
            "--plugin",
            &engine,
        ];
        let arguments = [&["--json", "bench", "--device", "cpu"][..], &short, arguments].concat();
        bench.run(&arguments)
    };
    for graph in [&["minus.json"][..], &["--from-log", "program.log"]] {
        let finished = run(graph);
        assert_eq!(finished.code, OK, "{}", finished.stderr);
        let document: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(document["rows"].as_array().unwrap().len(), 1);
        assert_eq!(document["rows"][0]["measurements"][0]["outcome"], "right", "{document}");
    }
    let finished = run(&["bad.json"]);
    assert_ne!(finished.code, OK);
    let told = format!("{}{}", finished.stdout, finished.stderr);
    assert!(told.contains("node 'minus'") && told.contains("operation"), "{told}");
}

#[test]
fn all_commands_read_graphs_in_json() {
    let bench = Bench::new();
    std::fs::write(bench.path("minus.json"), NEGATION).unwrap();
    for command in ["check", "emit"] {
        let finished = bench.run(&[command, "--target", "cpu", "minus.json"]);
        assert_eq!(finished.code, OK, "{command}: {}", finished.stderr);
    }
    std::fs::write(bench.path("bad.json"), NEGATION.replace("\"neg\"", "\"minus\"")).unwrap();
    let finished = bench.run(&["emit", "--target", "cpu", "bad.json"]);
    assert_ne!(finished.code, OK);
    assert!(finished.stderr.contains("bad.json"), "{}", finished.stderr);
}
