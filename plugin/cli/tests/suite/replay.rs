//! A failed compilation leaves a reproducer, which is replayed.

use crate::bench::{Bench, OK, WRONG, has_worker};
use std::ffi::OsStr;
use std::fs;

#[test]
fn a_failed_compilation_is_replayed() {
    let bench = Bench::new();
    if !has_worker(&bench) {
        return;
    }
    // More than the worker needs to start, and less than a compilation needs.
    let limit = ("ROTINI_COMPILE_MEMORY", "16 MiB");
    let run = |arguments: &[&OsStr], limited: bool, code| {
        let mut command = bench.command(arguments);
        command.env("ROTINI_REPRODUCERS", bench.path("failed"));
        if limited {
            command.env(limit.0, limit.1);
        }
        crate::bench::Finished::new(command.output().unwrap()).json(code)
    };
    let compile = ["compile", "--json", "--target", "gfx942", "good.fb", "-o", "good.vmfb"].map(OsStr::new);
    let failed = run(&compile, true, WRONG);
    let error = failed["graphs"][0]["error"].as_str().unwrap();
    assert!(error.contains("memory"), "{error}");
    let directories: Vec<_> = fs::read_dir(bench.path("failed"))
        .unwrap()
        .map(|directory| directory.unwrap().path())
        .collect();
    let [directory] = directories.as_slice() else {
        panic!("{directories:?}")
    };

    let replay = ["replay".as_ref(), "--json".as_ref(), directory.as_os_str()];
    let again = run(&replay, true, WRONG);
    assert_eq!(again["target"], "gfx942");
    assert_eq!(again["same_compiler"], true);
    assert_eq!(again["same_module"], true);
    // Both name the worker's memory limit as the reason.
    for said in ["error", "recorded"] {
        let text = again[said].as_str().unwrap();
        assert!(
            text.contains("ran out of memory, of which it may have 16 MiB"),
            "{text}"
        );
    }

    let now = run(&replay, false, OK);
    assert!(now["bytes"].as_u64().unwrap() > 0);

    // The compiler's diagnostics about the module are reported.
    fs::write(directory.join("rotini.mlir"), "module { \"no.such\"() : () -> () }").unwrap();
    let broken = run(&replay, false, WRONG);
    assert_eq!(broken["same_module"], false);
    assert!(broken["diagnostics"].as_str().unwrap().contains("no.such"), "{broken}");
}

#[test]
fn what_is_no_reproducer_is_told_as_such() {
    let bench = Bench::new();
    let document = bench.run(&["replay", "--json", "."]).json(WRONG);
    assert!(
        document["error"]
            .as_str()
            .unwrap()
            .contains("is not what a failed compilation leaves")
    );
}
