//! Processes that share a directory: one creation per key, no process waits for another's key, and
//! a waiter takes over if its leader dies or hangs.
//!
//! The processes are this test program, started again with a role in the environment.

use std::convert::Infallible;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{fetch, key, memory_only, names, never, new_entry, open, payload, warnings};
use rotini_cache::{Cache, CacheConfig, CreateError, Failure, NewEntry, Origin};

const ROLE: &str = "ROTINI_TEST_ROLE";
const DIRECTORY: &str = "ROTINI_TEST_DIRECTORY";
const PATIENCE: Duration = Duration::from_secs(60);

const KEYS: u64 = 40;
const THREADS: u64 = 8;
const PROCESSES: usize = 8;

#[test]
#[ignore = "not a test: what `start` starts"]
fn role() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("started by `start`"));
    match std::env::var(ROLE).expect("started by `start`").as_str() {
        "publish" => crate::kill::publish(&directory),
        "fill" => crate::mounted::fill(&directory),
        "full" => crate::mounted::full(&directory),
        "read-only" => crate::mounted::read_only(&directory),
        "all" => make_all(&directory),
        "stuck" => stick(&directory),
        "wait" => wait(&directory),
        "fail" => fail(&directory),
        other => panic!("no role {other}"),
    }
}

/// Returns the command that plays `role` with `directory`.
pub(crate) fn command(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--ignored", "--exact", "processes::role", "--nocapture"])
        .env(ROLE, role)
        .env(DIRECTORY, directory)
        .stdout(Stdio::null());
    command
}

pub(crate) fn start(role: &str, directory: &Path) -> Child {
    command(role, directory).spawn().expect("this program again")
}

/// Waits until `condition` holds, and fails after a time that no machine needs.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of a process, and kills it if that takes too long.
pub(crate) fn end_of(mut child: Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().expect("a child of ours");
            panic!("a process did not end");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the directory of the cache, beside the notes that the processes leave.
fn cache_of(directory: &Path) -> PathBuf {
    directory.join("cache")
}

/// Notes a creation in a file that all processes can see. A small append is a single write, so
/// notes do not mix.
fn note(directory: &Path, text: &str) {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("notes"))
        .and_then(|mut notes| notes.write_all(format!("{text}\n").as_bytes()))
        .expect("a note");
}

fn notes(directory: &Path) -> Vec<String> {
    fs::read_to_string(directory.join("notes"))
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Creates entry `number` in some milliseconds, and notes it.
fn make(directory: &Path, number: u64) -> Result<NewEntry, Infallible> {
    note(directory, &number.to_string());
    thread::sleep(Duration::from_millis(3));
    Ok(new_entry(number, 5000))
}

fn make_all(directory: &Path) {
    note(directory, "ready");
    wait_until("everybody is ready", || directory.join("go").exists());
    let cache = open(&cache_of(directory));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..KEYS {
                    // Each thread uses another order, and each order covers all keys.
                    let number = (round * (2 * thread + 1) + 7 * thread) % KEYS;
                    let (entry, _) = cache
                        .get_or_create(&key(number), || make(directory, number), never)
                        .expect("infallible");
                    assert_eq!(entry.payload, payload(number, 5000));
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.created + stats.disk_hits + stats.other_process, KEYS, "{stats:?}");
    assert_eq!((stats.bad_entries, stats.disk_errors), (0, 0));
}

#[test]
fn eight_processes_of_eight_threads_make_each_key_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let children: Vec<_> = (0..PROCESSES).map(|_| start("all", directory.path())).collect();
    wait_until("all processes are ready", || notes(directory.path()).len() == PROCESSES);
    fs::write(directory.path().join("go"), "").expect("a file");
    for child in children {
        assert!(end_of(child).success());
    }
    let mut made: Vec<u64> = notes(directory.path())
        .iter()
        .filter_map(|note| note.parse().ok())
        .collect();
    made.sort_unstable();
    assert_eq!(made, (0..KEYS).collect::<Vec<_>>());
    assert!(names(&cache_of(directory.path()), "lock").is_empty());
    assert!(names(&cache_of(directory.path()), "tmp").is_empty());
}

/// Starts to create key 1 and never finishes.
fn stick(directory: &Path) {
    let create = || -> Result<NewEntry, Infallible> {
        note(directory, "stuck");
        loop {
            thread::sleep(PATIENCE);
        }
    };
    let _ = open(&cache_of(directory)).get_or_create(&key(1), create, never);
}

fn start_stuck(directory: &Path) -> Child {
    let child = start("stuck", directory);
    wait_until("the leader leads", || notes(directory) == ["stuck"]);
    child
}

fn wait(directory: &Path) {
    note(directory, "waiting");
    let cache = open(&cache_of(directory));
    let (entry, origin) = cache
        .get_or_create(&key(1), || make(directory, 1), never)
        .expect("infallible");
    assert_eq!(entry.payload, payload(1, 5000));
    note(directory, &format!("{origin:?}"));
}

#[test]
fn another_key_of_another_process_is_not_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut stuck = start_stuck(directory.path());
    let cache = open(&cache_of(directory.path()));
    // If any of these calls waited for key 1, this test would hang.
    for number in 2..100 {
        assert_eq!(fetch(&cache, number), Origin::Created { on_disk: true });
    }
    assert!(cache.peek(&key(1)).is_none());
    assert!(cache.failure(&key(1)).is_none());
    stuck.kill().expect("a child of ours");
    stuck.wait().expect("a child of ours");
}

#[test]
fn one_of_those_who_wait_takes_over_from_a_leader_that_is_killed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut stuck = start_stuck(directory.path());
    let waiters: Vec<_> = (0..4).map(|_| start("wait", directory.path())).collect();
    let count = |text: &str| notes(directory.path()).iter().filter(|note| *note == text).count();
    wait_until("all wait", || count("waiting") == 4);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(count("1"), 0, "somebody did not wait");

    stuck.kill().expect("a child of ours");
    stuck.wait().expect("a child of ours");
    let killed = Instant::now();
    for waiter in waiters {
        assert!(end_of(waiter).success());
    }
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    assert_eq!(count("1"), 1);
    assert_eq!(count("Created { on_disk: true }"), 1);
    assert_eq!(count("OtherProcess"), 3);
    assert!(names(&cache_of(directory.path()), "lock").is_empty());
}

/// A stopped process keeps its lock. No process waits for it without end.
#[test]
fn patience_with_a_leader_that_is_stopped_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut stuck = start_stuck(directory.path());
    let pid = rustix::process::Pid::from_child(&stuck);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("a child of ours");
    let cache = Cache::open(CacheConfig {
        dir: Some(cache_of(directory.path())),
        patience: Duration::from_millis(100),
        ..memory_only()
    });
    let started = Instant::now();
    let warned = warnings(|| assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: true }));
    assert!(started.elapsed() >= Duration::from_millis(100));
    assert_eq!(warned, 1);
    // The other process still holds the lock, and the published entry is found by everyone.
    assert_eq!(names(&cache_of(directory.path()), "lock").len(), 1);
    assert_eq!(fetch(&open(&cache_of(directory.path())), 1), Origin::Disk);
    stuck.kill().expect("a child of ours");
    stuck.wait().expect("a child of ours");
}

/// Tries to create key 1, which crashes the compiler.
fn fail(directory: &Path) {
    let create = || -> Result<NewEntry, String> {
        note(directory, "crash");
        thread::sleep(Duration::from_millis(50));
        Err("the compiler crashed".to_owned())
    };
    let cache = open(&cache_of(directory));
    note(directory, "ready");
    wait_until("everybody is ready", || directory.join("go").exists());
    match cache.get_or_create(&key(1), create, |error| {
        Some(Failure::new(error.clone(), Failure::LONGEST))
    }) {
        Err(CreateError::Failed(error)) => assert_eq!(*error, "the compiler crashed"),
        Err(CreateError::Remembered(failure)) => assert_eq!(failure.reason, "the compiler crashed"),
        Ok(_) => panic!("it cannot be made"),
    }
    assert!(cache.failure(&key(1)).is_some());
}

#[test]
fn one_process_finds_out_for_all_that_a_key_cannot_be_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let children: Vec<_> = (0..PROCESSES).map(|_| start("fail", directory.path())).collect();
    wait_until("all processes are ready", || notes(directory.path()).len() == PROCESSES);
    fs::write(directory.path().join("go"), "").expect("a file");
    for child in children {
        assert!(end_of(child).success());
    }
    let crashes = notes(directory.path()).iter().filter(|note| *note == "crash").count();
    assert_eq!(crashes, 1);
}

/// Two caches on one directory in one process treat each other like two processes.
#[test]
fn caches_of_one_process_wait_for_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = (open(directory.path()), open(directory.path()));
    let started = Barrier::new(2);
    let origin = thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let create = || {
                started.wait();
                thread::sleep(Duration::from_millis(50));
                Ok::<_, Infallible>(new_entry(1, 1000))
            };
            first.get_or_create(&key(1), create, never).expect("infallible").1
        });
        started.wait();
        let origin = fetch(&second, 1);
        assert_eq!(leader.join().expect("no panic"), Origin::Created { on_disk: true });
        origin
    });
    assert_eq!(origin, Origin::OtherProcess);
    assert_eq!(second.stats().other_process, 1);
}
