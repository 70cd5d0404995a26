//! `rotini bench`: compares engines, some of which are slow, wrong, crash or hang.
//!
//! The engines are those of `benches/`: the reference engine, and the engine with faults.

use super::bench::{Bench, OK, USAGE, WRONG, built_library, each};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Returns the argument of an engine: its library, followed by settings.
fn engine(name: &str, settings: &str) -> Option<String> {
    let path = built_library(name)?;
    Some(format!("{}{settings}", path.display()))
}

/// Performs a short run on these engines. Returns the document and the exit code.
fn run(bench: &Bench, engines: &[String], more: &[&str]) -> (Value, i32) {
    let mut arguments = vec![
        "--json", "bench", "--device", "cpu", "--visits", "6", "--rounds", "3", "--turn", "5",
    ];
    arguments.extend(["--no-rotate", "--patience", "4", "good.fb"]);
    for engine in engines {
        arguments.extend(["--plugin", engine]);
    }
    arguments.extend(more);
    let finished = bench.run(&arguments);
    let document = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    (document, finished.code)
}

fn outcomes(document: &Value) -> Vec<&str> {
    each(&document["rows"][0]["measurements"], "outcome")
}

#[test]
fn a_bad_engine_is_told_and_spoils_nothing() {
    let bench = Bench::new();
    let (Some(good), Some(bad)) = (engine("libreference_engine.so", ""), engine("libfaulty_engine.so", "")) else {
        return;
    };
    let faults = [
        "wrong",
        "wrong-later",
        "crash",
        "crash-create",
        "hang",
        "fails",
        "exits",
        "writes-input",
        "none",
    ];
    let mut engines = vec![good];
    engines.extend(faults.map(|fault| format!("{bad},FAULTY_ENGINE={fault}")));
    let (document, code) = run(&bench, &engines, &[]);
    assert_eq!(code, WRONG);
    assert_eq!(
        outcomes(&document),
        [
            "right", "wrong", "wrong", "crashed", "crashed", "hung", "failed", "crashed", "wrong", "right"
        ]
    );
    let measurements = document["rows"][0]["measurements"].as_array().unwrap();
    for (measurement, engine) in measurements.iter().zip(&engines) {
        let is_right = measurement["outcome"] == "right";
        assert_eq!(measurement["hot"].is_object(), is_right, "{engine}: {measurement}");
        if is_right {
            assert_eq!(measurement["hot"]["samples"].as_array().unwrap().len(), 18, "{engine}");
        } else {
            assert!(!measurement["reason"].as_str().unwrap().is_empty(), "{engine}");
        }
    }
    // The other engines have no time to compare.
    let comparisons = document["rows"][0]["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 1, "{comparisons:?}");
}

#[test]
fn a_slow_engine_is_slower_and_an_equal_one_is_not() {
    let bench = Bench::new();
    let Some(bad) = engine("libfaulty_engine.so", "") else {
        return;
    };
    let engines = ["none", "slow"].map(|fault| format!("{bad},FAULTY_ENGINE={fault}"));
    let (document, code) = run(&bench, &engines, &[]);
    assert_eq!(code, OK);
    let comparison = &document["rows"][0]["comparisons"][0];
    // The slow engine sleeps for 20 ms, and the other one takes less than that.
    assert!(comparison["low"].as_f64().unwrap() > 1.0, "{comparison}");
    let hot = document["rows"][0]["measurements"][1]["hot"]["median"]
        .as_f64()
        .unwrap();
    assert!((20_000.0..200_000.0).contains(&hot), "{hot} µs");
}

#[test]
fn normally_distributed_inputs_are_recorded_and_results_are_judged() {
    let bench = Bench::new();
    let Some(good) = engine("libreference_engine.so", "") else {
        return;
    };
    let (document, code) = run(&bench, std::slice::from_ref(&good), &["--gaussian"]);
    assert_eq!(code, OK);
    assert_eq!(document["values"], "gaussian");
    assert_eq!(outcomes(&document), ["right"]);
    let (document, _) = run(&bench, &[good], &[]);
    assert_eq!(document["values"], "exact");
}

#[test]
fn an_engine_that_cannot_be_loaded_takes_no_part() {
    let bench = Bench::new();
    let Some(good) = engine("libreference_engine.so", "") else {
        return;
    };
    let missing = bench.path("missing.so").display().to_string();
    let (document, code) = run(&bench, &[good, missing], &[]);
    assert_eq!(code, WRONG);
    assert_eq!(outcomes(&document), ["right", "failed"]);
    assert!(
        document["engines"][1]["unusable"]
            .as_str()
            .unwrap()
            .contains("missing.so")
    );
}

#[test]
fn a_run_writes_its_files_and_two_runs_are_compared() {
    let bench = Bench::new();
    let Some(bad) = engine("libfaulty_engine.so", "") else {
        return;
    };
    let results = |fault: &str, directory: &str| -> PathBuf {
        let engine = format!("{bad},FAULTY_ENGINE={fault}");
        run(&bench, &[engine], &["-o", directory]);
        let directory = bench.path(directory);
        let page = std::fs::read_to_string(directory.join("index.html")).unwrap();
        assert!(page.contains("good"), "the page names the graph");
        assert_eq!(
            std::fs::read_to_string(directory.join("results.csv"))
                .unwrap()
                .lines()
                .count(),
            2
        );
        directory.join("results.json")
    };
    let [fast, slow] = [results("none", "a"), results("slow", "b")];
    // The labels of the engines contain their settings. They are made equal here, so that the
    // comparison treats both as one engine, before and after.
    let text = std::fs::read_to_string(&slow)
        .unwrap()
        .replace("FAULTY_ENGINE=slow", "FAULTY_ENGINE=none");
    std::fs::write(&slow, text).unwrap();
    let compare = |before: &PathBuf, after: &PathBuf| {
        let arguments = ["bench", "--compare", before.to_str().unwrap(), after.to_str().unwrap()];
        let finished = bench.run(&arguments);
        (finished.code, finished.stdout)
    };
    let (code, text) = compare(&fast, &slow);
    assert_eq!(code, WRONG, "{text}");
    assert!(text.contains("slower"), "{text}");
    let (code, text) = compare(&slow, &fast);
    assert_eq!(code, OK, "{text}");
    assert!(text.contains("faster"), "{text}");
    assert_eq!(compare(&fast, &fast).0, OK);
    std::fs::write(bench.path("other.json"), r#"{"version": 99}"#).unwrap();
    let finished = bench.run(&["bench", "--compare", "other.json", "other.json"]);
    assert!(finished.stderr.contains("99"), "{}", finished.stderr);
    assert_ne!(finished.code, OK);
}

#[test]
fn what_makes_no_sense_is_a_mistake_of_the_command_line() {
    let bench = Bench::new();
    let code = |arguments: &[&str]| bench.run(arguments).code;
    assert_eq!(code(&["bench"]), USAGE);
    assert_eq!(code(&["bench", "--suite", "nothing"]), USAGE);
    assert_eq!(code(&["bench", "--plugin", "a.so,no-setting", "good.fb"]), USAGE);
    assert_eq!(code(&["bench", "--cores", "100000", "good.fb"]), USAGE);
}

/// No process of the command is left after the command was killed.
#[test]
fn engines_end_with_the_command() {
    let bench = Bench::new();
    let Some(bad) = engine("libfaulty_engine.so", ",FAULTY_ENGINE=hang") else {
        return;
    };
    let mut command: Command = bench.command([
        "bench",
        "--device",
        "cpu",
        "--plugin",
        &bad,
        "--patience",
        "600",
        "good.fb",
    ]);
    let mut child = command.spawn().unwrap();
    let children = || {
        let id = child.id();
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default()
    };
    let started = std::time::Instant::now();
    let served: u32 = loop {
        assert!(started.elapsed().as_secs() < 60, "no engine was started");
        if let Some(id) = children().split_whitespace().next() {
            break id.parse().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    // By then the engine hangs in its execution.
    std::thread::sleep(std::time::Duration::from_secs(2));
    child.kill().unwrap();
    child.wait().unwrap();
    let is_there = || {
        let status = std::fs::read_to_string(format!("/proc/{served}/stat")).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    };
    let started = std::time::Instant::now();
    while is_there() {
        assert!(started.elapsed().as_secs() < 20, "the engine's process lives on");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
