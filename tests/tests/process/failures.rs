//! Graphs that do not compile. Their hosts survive.

use crate::{
    INTERNAL_ERROR, NOT_APPLICABLE, UNPROVEN, bytes, counted, create, expect_right, expect_status, files, logged,
    logging, logging_library, small, warnings,
};
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run, small_graph, without_compiler};
use std::fs;
use std::path::Path;

/// Extent of the graph that does not compile, and the marker for it in its module.
const BAD: i64 = 77;
const MARKER: &str = "1x77xf32";

fn bad_graph(fault: &str, said: &str) {
    let Some(part) = part() else {
        let directory = tempfile::tempdir().unwrap();
        let (cache, runs) = (directory.path().join("cache"), directory.path().join("runs"));
        for part in ["first", "second"] {
            let mut command = command(part, &cache).unwrap();
            run(counted(&mut command, &runs).env("ROTINI_TEST_COMPILER_FAULT", format!("{MARKER}={fault}"))).unwrap();
        }
        let runs = fs::read_to_string(runs).unwrap();
        // The first process tries the bad graph, and again with other flags. Each process compiles
        // one good graph.
        assert_eq!(runs.lines().count(), 4, "{runs}");
        reproducer(&cache, said);
        return;
    };
    let runner = logging();
    let bad = small(BAD);
    if part == "first" {
        assert_eq!(runner.handle().applicable(&bytes(&bad)).unwrap(), [runner.engine()]);
        let text = expect_status(create(&runner, &bad), INTERNAL_ERROR);
        assert!(text.contains(said) && text.contains("node 'ADD'"), "{text}");
        let errors = logged(said);
        assert!(
            errors
                .iter()
                .any(|(severity, text)| *severity == 2 && text.contains("node 'ADD'")),
            "{errors:?}"
        );
        assert_eq!(logged("rotini replay").len(), 1);
    }
    // Declined from now on, in all processes; the log states the reason once, where users see it.
    for _ in 0..3 {
        assert!(runner.handle().applicable(&bytes(&bad)).unwrap().is_empty());
    }
    let declined = logged("declined: ").into_iter().filter(|(severity, _)| *severity == 1);
    let declined: Vec<_> = declined.collect();
    assert!(
        matches!(&declined[..], [(_, one)] if one.contains(said) && one.contains("node 'ADD'") && !one.contains('\n')),
        "{declined:?}"
    );
    let text = expect_status(create(&runner, &bad), NOT_APPLICABLE);
    assert!(text.contains(said), "{text}");
    expect_right(&runner, &small(if part == "first" { 30 } else { 31 }));
}

/// The saved reproducer suffices to repeat the compilation.
fn reproducer(cache: &Path, said: &str) {
    let directories = files(&cache.join("reproducers"), "");
    let [directory] = directories.as_slice() else {
        panic!("{directories:?}")
    };
    let kept = rotini_plugin::reproducer::Reproducer::read(directory).unwrap();
    assert!(kept.versions.error.contains(said), "{:?}", kept.versions);
    assert_eq!(kept.graph, rotini_wire::encode(&small_graph(BAD)));
    let program = rotini_iree::compiler::find_program().unwrap();
    let shell = fs::read_to_string(directory.join("command.txt")).unwrap();
    let shell = shell.replacen("iree-compile", program.to_str().unwrap(), 1);
    let status = std::process::Command::new("sh")
        .arg("-c")
        .arg(shell)
        .current_dir(directory)
        .status()
        .unwrap();
    // The real compiler accepts it.
    assert!(status.success());
}

#[test]
fn a_rejected_graph_is_declined_from_then_on() {
    bad_graph("reject", "rotini.mlir:7:3: error: this test rejects the module");
}

#[test]
fn a_graph_that_crashes_the_compiler_is_declined_from_then_on() {
    bad_graph("crash", "the compiler crashed");
}

/// A compiler of another build is used, with a single warning about it. The proven one is used
/// without a warning.
#[test]
fn a_compiler_that_is_not_the_proven_one_is_told() {
    let Some(part) = part() else {
        for part in ["proven", "another"] {
            let directory = tempfile::tempdir().unwrap();
            let mut command = command(part, &directory.path().join("cache")).unwrap();
            if part == "another" {
                counted(&mut command, &directory.path().join("runs"));
            }
            run(&mut command).unwrap();
        }
        return;
    };
    let _library = logging_library();
    for elements in 30..32 {
        // Each graph has a new plugin state.
        expect_right(&Runner::cpu().unwrap(), &small(elements));
    }
    let told = logged(UNPROVEN);
    assert_eq!(told.len(), if part == "another" { 1 } else { 0 }, "{told:?}");
    assert!(told.iter().all(|(severity, _)| *severity == 1), "{told:?}");
}

/// A missing way of compiling is replaced by an available one, with one warning each.
#[test]
fn a_missing_way_of_compiling_is_replaced() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command("fallback", directory.path()).unwrap();
        run(command.env("ROTINI_COMPILE_WORKER", "/nonexistent")).unwrap();
        return;
    }
    let runner = logging();
    for elements in 40..42 {
        expect_right(&runner, &small(elements));
    }
    let warnings = warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("/nonexistent"), "{warnings:?}");
}

/// A missing compiler is a clear error, and nothing is recorded about the graph.
#[test]
fn no_compiler_is_a_clear_error() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        run(without_compiler(&mut command("without", directory.path()).unwrap())).unwrap();
        assert!(files(directory.path(), ".failed").is_empty());
        return;
    }
    let runner = logging();
    assert!(runner.handle().applicable(&bytes(&small(8))).unwrap().is_empty());
    let text = expect_status(create(&runner, &small(8)), INTERNAL_ERROR);
    assert!(text.contains("no compiler") && text.contains("ROTINI_"), "{text}");
}

#[test]
fn settings_that_do_not_exist_are_reported() {
    if part().is_none() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command("typo", directory.path()).unwrap();
        run(command.env("ROTINI_CASH_DIR", "/").env("ROTINI_CACHE_SIZE", "big")).unwrap();
        return;
    }
    let _runner = logging();
    assert_eq!(logged("ROTINI_CASH_DIR").len(), 1);
    assert_eq!(logged("ROTINI_CACHE_SIZE=big").len(), 1);
    assert!(
        logged("ROTINI_").iter().all(|(severity, _)| *severity == 1),
        "{:?}",
        logged("ROTINI_")
    );
}
