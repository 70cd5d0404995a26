//! Closing the library, in each way of compiling.

use crate::{expect_right, small};
use rotini_tests::cases::{self, Case};
use rotini_tests::harness::Runner;
use rotini_tests::plugin;
use rotini_tests::process::{command, part, run};
use std::fs;
use std::time::{Duration, Instant};

/// The name of the host's own threads.
const HOST: &str = "host";
const PATIENCE: Duration = Duration::from_secs(10);

/// Mappings of the plugin in this process.
fn mappings() -> usize {
    let path = fs::canonicalize(plugin::path().unwrap()).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.ends_with(path.to_str().unwrap()))
        .count()
}

/// This process's threads, by name.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // One that ends meanwhile has no name.
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .collect()
}

/// The threads when they are as before, or after the time that a thread may take to end which is
/// about to.
///
/// The scope returns when its threads' functions have, and even a thread that was joined is listed
/// until the system has cleared it away, which may be a while on a busy machine. None of that is
/// the library's, and what stays is seen all the same.
fn settled(before: &[String]) -> Vec<String> {
    let started = Instant::now();
    loop {
        let now = threads();
        if now == before || started.elapsed() > PATIENCE {
            return now;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes that this one has started, dead or alive.
fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|children| children.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// A convolution that is large enough for the pool of threads.
fn large() -> Case {
    let half = cases::resnet50(1).into_iter().find(|case| case.name.ends_with("_f32"));
    half.expect("there is one in f32")
}

#[test]
fn nothing_of_the_library_is_left() {
    let Some(mode) = part() else {
        for mode in ["worker", "cli", "in-process"] {
            let cache = tempfile::tempdir().unwrap();
            let mut command = command(mode, cache.path()).unwrap();
            // Once with everything compiled, once with everything on disk.
            for _ in 0..2 {
                println!("{}", run(command.env("ROTINI_COMPILER", mode)).unwrap());
            }
        }
        return;
    };
    let before = threads();
    for _ in 0..2 {
        let runner = Runner::cpu().unwrap();
        assert!(mappings() > 0, "the path is not the one that is mapped");
        expect_right(&runner, &small(9));
        expect_right(&runner, &large());
        // A body of a custom operation is read on the caller's thread, and nothing that stays there
        // may come with it.
        let custom = rotini_wire::encode(&cases::named("custom_example_rotary").unwrap().graph);
        assert_eq!(runner.handle().applicable(&custom).unwrap().len(), 1);
        let running = threads().len();
        // From several threads of the host's, which live on.
        std::thread::scope(|scope| {
            for elements in 10..12 {
                let runner = &runner;
                let thread = std::thread::Builder::new().name(HOST.to_owned());
                let spawned = thread.spawn_scoped(scope, move || expect_right(runner, &small(elements)));
                spawned.unwrap();
            }
        });
        drop(runner);
        println!("{mode}: {running} threads while it was open");
        assert_eq!(mappings(), 0, "the library is still mapped");
        assert_eq!(children(), [""; 0], "a process is left");
        // The compiler's library has threads of its own, and stays once it was loaded into the
        // process.
        if mode != "in-process" {
            let left = settled(&before);
            assert_eq!(left, before, "a thread is left");
        }
    }
}
