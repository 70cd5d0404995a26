//! `rotini tune`: records are measured once, used by later processes, moved between machines, and
//! survive interruptions; a candidate that computes wrong results is never used.

use super::bench::{Bench, Finished, OK, WRONG, built_library, has_worker, plugin};
use rotini_cache::NewEntry;
use rotini_emit::Choices;
use rotini_graph::{ConvGeometry, DataType, GraphBuilder, PointwiseMode};
use rotini_plugin::compile::{cached, keys, tuned_keys};
use rotini_plugin::config::Config;
use rotini_plugin::prepared::{Prepared, decode};
use rotini_plugin::runtime::Runtime;
use rotini_plugin::tuned::{self, Outcome, Record};
use rotini_workloads::blocks::attention;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns a bench with the graphs `conv.fb` and `other.fb`, and the plugin; `None` if nothing can
/// be executed.
fn ready() -> Option<(Bench, String)> {
    let bench = Bench::new();
    let plugin = plugin(&bench)?;
    if !has_worker(&bench) {
        return None;
    }
    for (name, mode) in [("conv", PointwiseMode::Add), ("other", PointwiseMode::Sub)] {
        std::fs::write(bench.path(&format!("{name}.fb")), biased(mode)).unwrap();
    }
    Some((bench, plugin.display().to_string()))
}

/// Returns a convolution whose bias is added or subtracted.
fn biased(mode: PointwiseMode) -> Vec<u8> {
    let mut graph = GraphBuilder::new("biased");
    let x = graph.buffer_channels_last("x", DataType::F32, &[1, 16, 12, 12]);
    let w = graph.buffer_channels_last("w", DataType::F32, &[16, 16, 3, 3]);
    let bias = graph.buffer_channels_last("bias", DataType::F32, &[1, 16, 1, 1]);
    let conv = graph.virtual_tensor("conv", DataType::F32, &[1, 16, 12, 12]);
    let y = graph.buffer_channels_last("y", DataType::F32, &[1, 16, 12, 12]);
    graph.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 1));
    graph.pointwise(DataType::F32, mode, &[conv, bias], y);
    rotini_wire::encode(&graph.build())
}

fn arguments<'a>(plugin: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["tune", "--plugin", plugin, "--device", "cpu"];
    all.extend(["--turns", "6", "--turn", "1", "--most", "5"]);
    all.extend(more);
    all
}

/// Returns the plugin's runtime on this bench's cache, to read its contents.
fn runtime(bench: &Bench, cache: &str) -> Runtime {
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let set = [("ROTINI_CACHE_DIR", bench.path(cache)), ("ROTINI_DEVICE", "cpu".into())];
    variables.retain(|(name, _)| set.iter().all(|(other, _)| name != other));
    variables.extend(set.map(|(name, value)| (name.into(), value.into())));
    Runtime::new(Config::read(variables, false)).unwrap()
}

fn prepared(bench: &Bench, name: &str) -> Prepared {
    decode(&std::fs::read(bench.path(name)).unwrap()).unwrap()
}

/// Returns the record of `conv.fb`, and the choices that a new context uses.
fn kept(bench: &Bench, cache: &str) -> (Option<Record>, Choices) {
    let runtime = runtime(bench, cache);
    let device = runtime.default_device().unwrap();
    let prepared = prepared(bench, "conv.fb");
    let key = tuned_keys(&runtime, &prepared.graph, device.as_ref()).unwrap()[0];
    let winner = tuned::winner(&runtime, &prepared.graph, device.as_ref());
    (tuned::read(&runtime, &key), winner)
}

fn fine(finished: &Finished) {
    assert_eq!(finished.code, OK, "{}{}", finished.stdout, finished.stderr);
}

#[test]
fn a_graph_is_measured_once_and_the_winner_is_used() {
    let Some((bench, plugin)) = ready() else { return };
    let first = bench.run(&arguments(&plugin, &["--json", "conv.fb"]));
    fine(&first);
    let document: Value = serde_json::from_str(&first.stdout).unwrap();
    let record = Record::read(document["records"][0].to_string().as_bytes()).unwrap();
    let right: Vec<_> = record
        .tried
        .iter()
        .filter(|tried| tried.outcome == Outcome::Right)
        .collect();
    assert!(right.len() > 1, "{record:?}");
    assert_eq!(record.tried[0].choices, "usual");
    assert!(record.tried.iter().any(|tried| tried.choices == "iree"));
    assert!(
        right
            .iter()
            .all(|tried| tried.time.is_some_and(|time| time.median_us > 0.0))
    );
    let winner = Choices::parse(record.winner.as_deref().unwrap()).unwrap();
    let (read, used) = kept(&bench, "cache");
    assert_eq!(read, Some(record.clone()));
    assert_eq!(used, if winner.is_usual() { Choices::default() } else { winner });
    // In another process nothing is measured again, and the graph still runs.
    let again = bench.run(&arguments(&plugin, &["--json", "conv.fb"]));
    fine(&again);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(Record::read(document["records"][0].to_string().as_bytes()), Ok(record));
    let text = bench.run(&arguments(&plugin, &["conv.fb"]));
    assert!(text.stdout.contains("measured before"), "{}", text.stdout);
    fine(&bench.run(&["run", "--plugin", &plugin, "conv.fb"]));
}

#[test]
fn what_is_known_moves_to_another_machine() {
    let Some((bench, plugin)) = ready() else { return };
    fine(&bench.run(&arguments(&plugin, &["conv.fb", "--export", "tuned.json"])));
    let elsewhere = |words: &[&str]| {
        let mut command = bench.command(arguments(&plugin, words));
        command.env("ROTINI_CACHE_DIR", bench.path("elsewhere"));
        Finished::new(command.output().unwrap())
    };
    let read = elsewhere(&["--import", "tuned.json", "conv.fb"]);
    fine(&read);
    assert!(read.stdout.contains("measured before"), "{}", read.stdout);
    assert_eq!(kept(&bench, "cache"), kept(&bench, "elsewhere"));
    // A record of another device is stored but not used, with a warning.
    let text = std::fs::read_to_string(bench.path("tuned.json")).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let records = file["records"].as_object_mut().unwrap();
    let record = records.values_mut().next().unwrap();
    record["device"] = "CPU, 999 threads".into();
    std::fs::write(bench.path("foreign.json"), file.to_string()).unwrap();
    let read = elsewhere(&["--import", "foreign.json"]);
    fine(&read);
    assert!(read.stderr.contains("not used here"), "{}", read.stderr);
    for bad in ["{}", "{\"version\": 2, \"records\": {}}", "no JSON"] {
        std::fs::write(bench.path("bad.json"), bad).unwrap();
        assert_eq!(elsewhere(&["--import", "bad.json"]).code, WRONG, "{bad}");
    }
}

/// Stores the code of another graph under the keys of candidates of `conv.fb`.
fn plant(bench: &Bench, plugin: &str, bad: &[&Choices]) {
    fine(&bench.run(&["run", "--plugin", plugin, "other.fb"]));
    let runtime = runtime(bench, "cache");
    let device = runtime.default_device().unwrap();
    let compiled_for = device.compiled_for();
    let other = prepared(bench, "other.fb");
    let entry = cached(&runtime, &other.graph, compiled_for, &Choices::default()).unwrap();
    let own = prepared(bench, "conv.fb");
    for choices in bad {
        let key = keys(&runtime, &own.graph, compiled_for, choices).unwrap()[0];
        let planted = || {
            Ok::<_, std::io::Error>(NewEntry {
                facts: entry.metadata.facts.clone(),
                content: None,
                compile_micros: 1,
                payload: entry.payload.clone(),
            })
        };
        runtime.cache.get_or_create(&key, planted, |_| None).unwrap();
    }
}

#[test]
fn a_wrong_candidate_never_wins_and_is_remembered() {
    let Some((bench, plugin)) = ready() else { return };
    let bad = Choices::iree();
    plant(&bench, &plugin, &[&bad]);
    let is_told = |again: bool| {
        let more: &[&str] = if again { &["conv.fb", "--again"] } else { &["conv.fb"] };
        let tuned = bench.run(&arguments(&plugin, more));
        assert_eq!(tuned.code, WRONG, "{}{}", tuned.stdout, tuned.stderr);
        assert!(tuned.stdout.contains("computes wrong results"), "{}", tuned.stdout);
        let (record, used) = kept(&bench, "cache");
        let record = record.unwrap();
        let wrong = record
            .tried
            .iter()
            .find(|tried| tried.choices == bad.to_string())
            .unwrap();
        assert!(matches!(wrong.outcome, Outcome::Wrong(_)) && wrong.time.is_none());
        assert_ne!(record.winner.as_deref(), Some("iree"));
        assert_ne!(used, bad);
    };
    is_told(false);
    // The candidate stays wrong, although its code was removed.
    let cleared = bench.run(&["cache", "clear"]);
    fine(&cleared);
    is_told(true);
}

/// Where the reference would take too long, the usual form verifies the others, unless it is wrong.
#[test]
fn a_wrong_usual_form_verifies_no_candidate() {
    let Some((bench, plugin)) = ready() else { return };
    let [usual, bad] = [Choices::usual(), Choices::iree()];
    let tuned = |more: &[&str]| {
        let tuned = bench.run(&arguments(&plugin, more));
        assert_eq!(tuned.code, WRONG, "{}{}", tuned.stdout, tuned.stderr);
        kept(&bench, "cache").0.unwrap()
    };
    let is_wrong = |record: &Record, choices: &Choices| {
        let text = choices.to_string();
        let tried = record.tried.iter().find(|tried| tried.choices == text);
        matches!(tried.unwrap().outcome, Outcome::Wrong(_))
    };
    plant(&bench, &plugin, &[&usual]);
    let record = tuned(&["conv.fb"]);
    assert!(is_wrong(&record, &usual) && !is_wrong(&record, &bad), "{record:?}");
    fine(&bench.run(&["cache", "clear"]));
    plant(&bench, &plugin, &[&bad]);
    let record = tuned(&["conv.fb", "--again", "--judge", "0"]);
    assert!(is_wrong(&record, &usual) && is_wrong(&record, &bad), "{record:?}");
    assert!(record.by_reference && record.winner.as_deref() != Some("iree"));
}

#[test]
fn a_program_measures_on_request_of_its_environment() {
    let Some((bench, plugin)) = ready() else { return };
    let run = |program: &Path| {
        let mut command = bench.command(["run", "--plugin", &plugin, "conv.fb"]);
        command.env("ROTINI_DEVICE", "cpu").env("ROTINI_TUNE", program);
        Finished::new(command.output().unwrap())
    };
    fine(&run(&bench.path("missing")));
    assert_eq!(kept(&bench, "cache").0, None);
    fine(&run(Path::new(env!("CARGO_BIN_EXE_rotini"))));
    let record = kept(&bench, "cache").0.unwrap();
    assert!(record.winner.is_some(), "{record:?}");
    // Nothing is measured twice.
    fine(&run(Path::new(env!("CARGO_BIN_EXE_rotini"))));
    assert_eq!(kept(&bench, "cache").0, Some(record));
}

/// Checks that every note was written completely or not at all.
fn are_whole(cache: &Path) {
    let Ok(notes) = rotini_cache::notes(cache) else { return };
    let files = std::fs::read_dir(cache).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".note")).count(), notes.len());
    for (_, note) in notes {
        Record::read(&note).unwrap();
    }
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_was() {
    let Some((bench, plugin)) = ready() else { return };
    for milliseconds in [0, 30, 150, 400, 900, 1500] {
        let mut command = bench.command(arguments(&plugin, &["conv.fb", "other.fb"]));
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(milliseconds) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        are_whole(&bench.path("cache"));
    }
    fine(&bench.run(&arguments(&plugin, &["conv.fb", "other.fb"])));
    are_whole(&bench.path("cache"));
    assert!(kept(&bench, "cache").0.unwrap().winner.is_some());
}

/// Only small inputs have NaN in keys that no query sees. Candidates and the reference have to use
/// the same inputs.
#[test]
fn large_attention_is_judged_with_its_own_inputs() {
    let Some((bench, plugin)) = ready() else { return };
    let graph = attention("attention", [1, 2, 4, 64], [2, 8192], true, DataType::F32);
    std::fs::write(bench.path("attention.fb"), rotini_wire::encode(&graph)).unwrap();
    let tuned = bench.run(&arguments(&plugin, &["--json", "attention.fb"]));
    fine(&tuned);
    let document: Value = serde_json::from_str(&tuned.stdout).unwrap();
    let record = Record::read(document["records"][0].to_string().as_bytes()).unwrap();
    assert!(record.winner.is_some(), "{record:?}");
}

/// The CPU has no model, and an emulated GPU has no measured times.
#[test]
fn what_has_no_times_or_no_model_is_not_calibrated() {
    let Some((bench, plugin)) = ready() else { return };
    let mut cases = vec![("cpu", None, "for GPUs alone")];
    if let Some(emulator) = built_library("libamdhip64.so") {
        cases.push(("hip", Some(emulator), "emulated GPU"));
    }
    for (device, emulator, reason) in cases {
        let mut command = bench.command(["tune", "--plugin", &plugin, "--calibrate", "--device", device]);
        command.envs(emulator.map(|emulator| ("ROTINI_HIP_LIBRARY", emulator)));
        let refused = Finished::new(command.output().unwrap());
        assert!(
            refused.code != OK && refused.stderr.contains(reason),
            "{}",
            refused.stderr
        );
        assert_eq!(refused.stdout, "");
    }
}
