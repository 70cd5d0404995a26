//! Closes the library, in each way of compiling.

use crate::workers::descendants;
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

/// Returns the number of mappings of the plugin in this process.
fn mappings() -> usize {
    let path = fs::canonicalize(plugin::path().unwrap()).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.ends_with(path.to_str().unwrap()))
        .count()
}

/// Returns the names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // A thread that ends meanwhile has no name.
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .collect()
}

/// Returns the threads once they are as before, or else after the time that an ending thread may
/// take.
///
/// The scope returns when its threads' functions have, and even a joined thread is listed until the
/// system has removed it, which may take a while on a busy machine. Such threads are not the
/// library's; a thread that really stays is found nevertheless.
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

/// Returns a convolution that is large enough for the thread pool.
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
            // Once compiled, and once loaded from disk.
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
        // A custom operation's body is parsed on the caller's thread, and must leave no state
        // there.
        let custom = rotini_wire::encode(&cases::named("custom_example_rotary").unwrap().graph);
        assert_eq!(runner.handle().applicable(&custom).unwrap().len(), 1);
        let running = threads().len();
        // From several threads of the host that outlive the library.
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
        assert_eq!(descendants(std::process::id()), [0; 0], "a process is left");
        // The compiler's library has its own threads, and stays once it was loaded into the
        // process.
        if mode != "in-process" {
            let left = settled(&before);
            assert_eq!(left, before, "a thread is left");
        }
    }
}
