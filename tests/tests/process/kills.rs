//! Kills processes at any moment of their work in one directory: while they compile, publish or
//! evict.

use crate::{counted, directory, expect_right, files, logging, logging_library, small, warnings};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rotini_cache::admin;
use rotini_tests::harness::Runner;
use rotini_tests::process::{Notes, command, finish, part, run, running_with, wait_until};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

/// Number of kills in a usual and in a full run.
const KILLS: [usize; 2] = [40, 300];
const AT_ONCE: usize = 5;
/// One in this many processes compiles in workers, with the real compiler. The others get copies of
/// its earlier outputs.
const WORKERS: usize = 15;
const GRAPHS: i64 = 24;
/// Cache size for roughly half of the graphs.
const ROOM: u64 = 90_000;

fn graph(number: i64) -> i64 {
    300 + number % GRAPHS
}

fn start(part: &str, directory: &Path, cache: &str) -> Command {
    let mut command = command(part, &directory.join(cache)).unwrap();
    command
        .env("ROTINI_TEST_DIRECTORY", directory)
        .env("ROTINI_TEST_COMPILER_MEMO", directory.join("memo"))
        // Directory for files that compilers leave when their host is killed.
        .env("TMPDIR", directory.join("temporary"));
    counted(&mut command, &directory.join("compilations")).env("ROTINI_IREE_COMPILE", directory.join("iree-compile"));
    command
}

/// Copies the substitute compiler next to the compiler's library, so that the cache treats both as
/// the same compiler.
fn install(directory: &Path) {
    fs::copy(
        env!("CARGO_BIN_EXE_rotini-test-compiler"),
        directory.join("iree-compile"),
    )
    .unwrap();
    let library = rotini_iree::compiler::find_library().unwrap();
    symlink(&library, directory.join(library.file_name().unwrap())).unwrap();
    for name in ["memo", "temporary"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
}

/// In a child that will be killed: requests graphs endlessly, and judges them.
fn work(number: i64) {
    let notes = Notes::new(directory().join("ready"));
    let _library = logging_library();
    for round in 0.. {
        // The directory is opened anew each time, with room for half of the graphs: the first
        // publication also evicts.
        let runner = Runner::cpu().unwrap();
        if round == 0 {
            notes.add(&number.to_string()).unwrap();
        }
        for step in 0..6 {
            expect_right(&runner, &small(graph(5 * number + 6 * round + step)));
        }
        assert_eq!(warnings(), [""; 0]);
    }
}

/// In a child: requests all graphs, and expects no warning.
fn all() {
    let runner = logging();
    for number in 0..GRAPHS {
        expect_right(&runner, &small(graph(number)));
    }
    assert_eq!(warnings(), [""; 0]);
}

/// Runs processes in a directory, kills a random one at random moments and replaces it. Returns how
/// often workers were seen before a kill.
fn kill_and_replace(directory: &Path) -> usize {
    let mut seen = 0;
    let mut random = ChaCha8Rng::seed_from_u64(rotini_tests::seed());
    let ready = Notes::new(directory.join("ready"));
    let begin = |number: usize| {
        let mut command = start(&number.to_string(), directory, "cache");
        command.env("ROTINI_CACHE_SIZE", ROOM.to_string());
        if number.is_multiple_of(WORKERS) {
            command.env("ROTINI_COMPILER", "worker");
        }
        (number, command.spawn().unwrap())
    };
    let mut running: Vec<(usize, Child)> = (0..AT_ONCE).map(begin).collect();
    let kills = rotini_tests::scaled(KILLS);
    for killed in 0..kills + AT_ONCE {
        let victim = random.random_range(0..running.len());
        let (number, mut child) = running.swap_remove(victim);
        wait_until("it is at work", || ready.count(&number.to_string()) == 1).unwrap();
        let most = if number.is_multiple_of(WORKERS) {
            300_000
        } else {
            30_000
        };
        std::thread::sleep(Duration::from_micros(random.random_range(0..most)));
        if number.is_multiple_of(WORKERS) {
            let running = running_with(&directory.join("cache")).unwrap();
            seen += usize::from(running.iter().any(|command| command.contains("rotini-compile-worker")));
        }
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            panic!("{status}: {}", String::from_utf8_lossy(&output.stderr));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if killed < kills {
            running.push(begin(AT_ONCE + killed));
        }
    }
    seen
}

#[test]
fn kills_leave_nothing_wrong() {
    match part().as_deref() {
        None => {}
        Some("all") => return all(),
        Some(number) => return work(number.parse().unwrap()),
    }
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    run(&mut start("all", directory.path(), "other")).unwrap();
    let cache = directory.path().join("cache");
    let workers = kill_and_replace(directory.path());
    assert!(workers > 0, "nobody was killed while a worker ran");

    // Neither workers nor compilers outlive their hosts for long.
    wait_until("all processes have ended", || running_with(&cache).unwrap().is_empty()).unwrap();
    let verified = admin::verify(&cache).unwrap();
    for verdict in &verified {
        assert!(verdict.result.is_ok(), "{verdict:?}");
    }
    let (temporaries, locks) = (files(&cache, ".tmp").len(), files(&cache, ".lock").len());
    let directories = files(&directory.path().join("temporary"), "");
    let of_workers = directories
        .iter()
        .filter(|directory| directory.to_string_lossy().contains("rotini-worker-"));
    println!(
        "left: {} entries, {temporaries} temporaries, {locks} locks, {} directories of {workers} workers",
        verified.len(),
        of_workers.count()
    );
    assert!(!verified.is_empty(), "nobody came as far as publishing");
    assert!(verified.len() < usize::try_from(GRAPHS).unwrap(), "nothing was evicted");
    assert!(files(&cache, ".bad").is_empty() && files(&cache, ".failed").is_empty());

    // With a stuck lock this would take minutes, and cause a warning.
    let started = Instant::now();
    finish(start("all", directory.path(), "cache").spawn().unwrap()).unwrap();
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(admin::verify(&cache).unwrap().len(), usize::try_from(GRAPHS).unwrap());

    // The temporary files are made to look a day old.
    for file in files(&cache, ".tmp") {
        let yesterday = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        let file = File::options().write(true).open(file).unwrap();
        file.set_modified(yesterday).unwrap();
    }
    admin::gc(&cache, u64::MAX).unwrap().unwrap();
    let known = ["entry", "content"];
    let kinds: BTreeSet<PathBuf> = files(&cache, "")
        .into_iter()
        .filter(|file| {
            !file
                .extension()
                .is_some_and(|kind| known.iter().any(|&known| kind == known))
        })
        .collect();
    assert_eq!(kinds, BTreeSet::from([cache.join("compilers")]));
}
