//! A temporary shortage of system resources. Calls during that time fail with the reason, and there
//! is no lasting effect.

use crate::workers::{descendants, wait_until};
use crate::{INTERNAL_ERROR, bytes, create, directory, expect_right, expect_status, files, logged, logging, small};
use rotini_tests::cases::Case;
use rotini_tests::harness::Runner;
use rotini_tests::process::{command, part, run};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Ends the idle worker, so that the next graph needs a new process.
fn end_workers() {
    let workers = descendants(std::process::id());
    for &worker in &workers {
        let worker = Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
        // It may be a process of the worker's that has ended with it.
        let _ = kill_process(worker, Signal::KILL);
    }
    let is_gone = || descendants(std::process::id()).is_empty();
    wait_until("workers are left", Duration::from_secs(20), is_gone);
}

/// Expects that a graph cannot be compiled now, without recording anything about the graph.
fn expect_trouble(runner: &Runner, case: &Case, said: &str) {
    assert_eq!(runner.handle().applicable(&bytes(case)).unwrap(), [runner.engine()]);
    let text = expect_status(create(runner, case), INTERNAL_ERROR);
    assert!(text.contains(said), "{text}");
    assert_eq!(runner.handle().applicable(&bytes(case)).unwrap(), [runner.engine()]);
}

/// Expects that after the shortage the same graph compiles, in the usual way.
fn expect_all_well(runner: &Runner, case: &Case) {
    expect_right(runner, case);
    for change in ["from now on", "is used, because"] {
        assert!(logged(change).is_empty(), "{:?}", logged(change));
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libIREECompiler"), "the compiler is in the host");
    let kept = files(&directory(), ".failed");
    assert!(kept.is_empty(), "{kept:?}");
}

fn start<'a>(command: &'a mut Command, cache: &Path) -> &'a mut Command {
    command
        .env("ROTINI_COMPILER", "worker")
        .env("ROTINI_TEST_DIRECTORY", cache)
}

/// All descriptors are in use: once from the start, before the compiler was searched for, and once
/// later.
#[test]
fn descriptors_that_are_used_up_change_nothing() {
    const MANY: u64 = 256;
    let Some(part) = part() else {
        for part in ["start", "middle"] {
            let cache = tempfile::tempdir().unwrap();
            run(start(&mut command(part, cache.path()).unwrap(), cache.path())).unwrap();
        }
        return;
    };
    let runner = logging();
    if part == "middle" {
        expect_right(&runner, &small(30));
        end_workers();
    }
    let limit = getrlimit(Resource::Nofile);
    let lower = Rlimit {
        current: Some(MANY),
        ..limit
    };
    setrlimit(Resource::Nofile, lower).unwrap();
    let used: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for elements in 31..33 {
        expect_trouble(&runner, &small(elements), "Too many open files");
    }
    drop(used);
    setrlimit(Resource::Nofile, limit).unwrap();
    for elements in 31..34 {
        expect_all_well(&runner, &small(elements));
    }
}

/// No further process or thread can start, or only one, or two: each limit is tested in turn.
#[test]
fn processes_that_cannot_be_started_change_nothing() {
    /// An unprivileged user: root has no such limit.
    const OTHER: u32 = 54_322;
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        let mut command = command("worker", cache.path()).unwrap();
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            chown(cache.path(), Some(OTHER), Some(OTHER)).unwrap();
            command.uid(OTHER).gid(OTHER);
        }
        run(start(&mut command, cache.path())).unwrap();
        return;
    }
    let runner = logging();
    expect_right(&runner, &small(30));
    let is_alone = rustix::process::getuid().as_raw() == OTHER;
    let limit = getrlimit(Resource::Nproc);
    for room in 0..3 {
        end_workers();
        // The number of this user's other processes is unknown.
        let running = if is_alone {
            fs::read_dir("/proc/self/task").unwrap().count()
        } else {
            0
        };
        let lower = Rlimit {
            current: Some(running as u64 + room),
            ..limit
        };
        let case = small(31 + i64::try_from(room).unwrap());
        setrlimit(Resource::Nproc, lower).unwrap();
        expect_trouble(&runner, &case, "Resource temporarily unavailable");
        setrlimit(Resource::Nproc, limit).unwrap();
        expect_all_well(&runner, &case);
    }
}
