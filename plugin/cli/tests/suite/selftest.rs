//! `rotini selftest`: on the plugin, on engines that are wrong or crash, and interrupted at several
//! points.

use super::bench::{Bench, ENVIRONMENT, OK, WRONG, built_library, has_worker, plugin};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of items that a test tries.
const MOST: usize = 24;

fn arguments(plugin: &Path) -> Vec<String> {
    let most = MOST.to_string();
    let plugin = plugin.display().to_string();
    let words = [
        "selftest",
        "--device",
        "cpu",
        "--no-bench",
        "--random",
        "3",
        "--most",
        &most,
        "--jobs",
        "2",
        "-o",
        "out",
        "--plugin",
        &plugin,
    ];
    words.map(str::to_owned).to_vec()
}

fn document(bench: &Bench) -> Value {
    let text = std::fs::read_to_string(bench.path("out/selftest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_plugin_is_right_however_often_the_run_is_cut_off() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    if !has_worker(&bench) {
        return;
    }
    let state = bench.path("out/state.jsonl");
    let lines = || std::fs::read_to_string(&state).unwrap_or_default().lines().count();
    for _ in 0..3 {
        let before = lines();
        let mut child = bench.command(arguments(&plugin)).spawn().unwrap();
        let started = Instant::now();
        // Waits for no more lines than there are items, because the run then ends by itself.
        while lines() < (before + 3).min(MOST) && started.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let kept = lines();
    assert!(kept > 3, "{kept} lines");
    let arguments = arguments(&plugin);
    let finished = bench.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(finished.code, OK, "{}{}", finished.stdout, finished.stderr);
    let document = document(&bench);
    assert_eq!(document["ok"], true);
    assert_eq!(document["tried"], MOST);
    assert_eq!(document["left"], 0);
    // The file has a header, and each item once.
    assert_eq!(lines(), MOST + 1);
    let page = std::fs::read_to_string(bench.path("out/index.html")).unwrap();
    assert!(page.contains("Right: nothing wrong in all 24"), "{page}");
}

#[test]
fn a_bad_plugin_is_told_as_such() {
    for (fault, outcome) in [("wrong", "wrong"), ("crash", "crashed"), ("fails", "failed")] {
        let bench = Bench::new();
        let Some(plugin) = built_library("libfaulty_engine.so") else {
            return;
        };
        let mut command = bench.command(arguments(&plugin));
        let finished = command.env("FAULTY_ENGINE", fault).output().unwrap();
        assert_eq!(finished.status.code(), Some(WRONG), "{fault}");
        let document = document(&bench);
        assert_eq!(document["ok"], false);
        let bad = document["bad"].as_array().unwrap();
        assert!(bad.iter().any(|found| found["outcome"] == outcome), "{fault}: {bad:?}");
        let page = std::fs::read_to_string(bench.path("out/index.html")).unwrap();
        assert!(page.contains("WRONG"), "{fault}");
    }
}

#[test]
fn what_the_machine_lacks_is_told_once() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let finished = bench
        .command(arguments(&plugin))
        .env("ROTINI_IREE_COMPILER_LIB", "/nowhere/libIREECompiler.so")
        .env("ROTINI_IREE_COMPILE", "/nowhere/iree-compile")
        .output()
        .unwrap();
    let text = String::from_utf8(finished.stderr).unwrap();
    assert_eq!(finished.status.code(), Some(ENVIRONMENT), "{text}");
    assert_eq!(text.matches("/nowhere/libIREECompiler.so").count(), 1, "{text}");
}
