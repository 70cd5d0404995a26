//! Many processes and threads that request the same graphs at once, with nothing compiled yet.

use crate::{counted, directory, expect_right, files, logging, small, warnings};
use rotini_tests::process::{Notes, command, finish, part, wait_until};
use rustix::fs::inotify;
use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// Extent of the graph whose compilation can be held, and the marker for it in its module.
const HELD: i64 = 977;
const MARKER: &str = "1x977xf32";

/// Starts a process for a part of a test, with the cache, the notes and the compilation log in a
/// directory.
fn start(part: &str, directory: &Path, prepare: impl FnOnce(&mut Command)) -> Child {
    let mut command = command(part, &directory.join("cache")).unwrap();
    command
        .env("ROTINI_TEST_DIRECTORY", directory)
        .env("ROTINI_TEST_COMPILER_GATE", directory.join("gate"));
    prepare(&mut command);
    command.spawn().unwrap()
}

fn notes(directory: &Path) -> Notes {
    Notes::new(directory.join("notes"))
}

fn compilations(directory: &Path) -> Notes {
    Notes::new(directory.join("compilations"))
}

/// In a child: once all processes are ready, requests graphs from all threads at once, each thread
/// in another order.
fn meet(threads: usize, graphs: usize) {
    let runner = logging();
    notes(&directory()).add("ready").unwrap();
    wait_until("all processes are ready", || directory().join("go").exists()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let runner = &runner;
            scope.spawn(move || {
                for round in 0..graphs {
                    let turned = (round + 7 * thread) % graphs;
                    let number = if thread % 2 == 0 { turned } else { graphs - 1 - turned };
                    expect_right(runner, &small(100 + i64::try_from(number).unwrap()));
                }
            });
        }
    });
    assert_eq!(warnings(), [""; 0]);
}

/// Starts processes that meet, and checks the results.
fn cold_start(processes: usize, graphs: usize, directory: &Path, prepare: impl Fn(&mut Command)) {
    let children: Vec<_> = (0..processes).map(|_| start("meet", directory, &prepare)).collect();
    wait_until("all processes are ready", || {
        notes(directory).count("ready") == processes
    })
    .unwrap();
    fs::write(directory.join("go"), "").unwrap();
    for child in children {
        finish(child).unwrap();
    }
    let cache = directory.join("cache");
    assert_eq!(files(&cache, ".entry").len(), graphs);
    assert!(files(&cache, ".lock").is_empty() && files(&cache, ".tmp").is_empty());
}

#[test]
fn eight_processes_of_eight_threads_compile_each_graph_once() {
    const GRAPHS: usize = 40;
    if part().is_some() {
        return meet(8, GRAPHS);
    }
    let directory = tempfile::tempdir().unwrap();
    let log = compilations(directory.path());
    cold_start(8, GRAPHS, directory.path(), |command| {
        counted(command, log.path());
    });
    let compiled = log.lines();
    assert_eq!(
        compiled.iter().collect::<BTreeSet<_>>().len(),
        GRAPHS,
        "a graph was not compiled"
    );
    assert_eq!(compiled.len(), GRAPHS, "a graph was compiled twice");
}

/// The same with workers, for which no counting program can be substituted: the entries in the
/// directory are counted.
#[test]
fn workers_of_several_processes_compile_each_graph_once() {
    const GRAPHS: usize = 12;
    if part().is_some() {
        return meet(4, GRAPHS);
    }
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).unwrap();
    let events = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&events, &cache, inotify::WatchFlags::MOVED_TO).unwrap();
    cold_start(3, GRAPHS, directory.path(), |command| {
        command.env("ROTINI_COMPILER", "worker");
    });
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(events, &mut buffer);
    let mut published = Vec::new();
    while let Ok(event) = events.next() {
        assert!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW));
        let name = event.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".entry") {
            published.push(name);
        }
    }
    assert_eq!(published.iter().collect::<BTreeSet<_>>().len(), GRAPHS, "{published:?}");
    assert_eq!(published.len(), GRAPHS, "a graph was compiled twice: {published:?}");
}

/// In a child: one thread requests the graph whose compilation is held, the others request other
/// graphs.
fn ask(name: &str) {
    let notes = notes(&directory());
    let runner = logging();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            notes.add(&format!("{name} asks")).unwrap();
            expect_right(&runner, &small(HELD));
            notes.add(&format!("{name} has it")).unwrap();
        });
        for thread in 0..4 {
            let (runner, notes) = (&runner, &notes);
            scope.spawn(move || {
                for round in 0..4 {
                    expect_right(runner, &small(200 + (thread + round) % 4));
                }
                notes.add(&format!("{name} has others")).unwrap();
            });
        }
    });
    assert_eq!(warnings(), [""; 0]);
}

/// The test does not depend on time: the held compilation ends only after all other graphs have
/// been delivered.
#[test]
fn nobody_waits_for_a_graph_that_is_not_theirs() {
    if let Some(part) = part() {
        return ask(&part);
    }
    let directory = tempfile::tempdir().unwrap();
    let (notes, log) = (notes(directory.path()), compilations(directory.path()));
    let begin = |name: &str| {
        start(name, directory.path(), |command| {
            counted(command, log.path()).env("ROTINI_TEST_COMPILER_FAULT", format!("{MARKER}=hold"));
        })
    };
    let names = ["first", "second", "third"];
    let children = names.map(begin);
    for name in names {
        let has = |what: &str, times| notes.count(&format!("{name} {what}")) == times;
        wait_until("they have what is not held", || has("asks", 1) && has("has others", 4)).unwrap();
        assert!(has("has it", 0), "nothing was held");
    }
    fs::write(directory.path().join("gate"), "").unwrap();
    for child in children {
        finish(child).unwrap();
    }
    let compiled = log.lines();
    assert_eq!(compiled.len(), 5, "{compiled:?}");
    assert_eq!(compiled.iter().collect::<BTreeSet<_>>().len(), 5, "{compiled:?}");
}

#[test]
fn a_waiter_takes_over_from_a_leader_that_is_killed() {
    const WAITERS: usize = 3;
    if part().is_some() {
        let runner = logging();
        notes(&directory()).add("asks").unwrap();
        expect_right(&runner, &small(HELD));
        assert_eq!(warnings(), [""; 0]);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (notes, log) = (notes(directory.path()), compilations(directory.path()));
    // Directory for files that a compiler leaves when its host is killed.
    let temporary = directory.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut leader = start("lead", directory.path(), |command| {
        counted(command, log.path())
            .env("ROTINI_TEST_COMPILER_FAULT", format!("{MARKER}=hold"))
            .env("TMPDIR", &temporary);
    });
    wait_until("the leader's compiler runs", || log.lines().len() == 1).unwrap();
    let waiters: Vec<_> = (0..WAITERS)
        .map(|_| {
            start("wait", directory.path(), |command| {
                counted(command, log.path());
            })
        })
        .collect();
    wait_until("all have asked", || notes.count("asks") == 1 + WAITERS).unwrap();
    // Long enough to reach the compiler if they did not wait.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(log.lines().len(), 1, "somebody did not wait");
    leader.kill().unwrap();
    leader.wait().unwrap();
    for waiter in waiters {
        finish(waiter).unwrap();
    }
    let compiled = log.lines();
    assert_eq!(
        compiled.len(),
        2,
        "not one waiter, and one alone, has taken over: {compiled:?}"
    );
}
