//! Tests of the pool, with workers that misbehave in one way each.

mod fakes;

use std::{fs, os::unix::process::ExitStatusExt};

use super::*;
use crate::compiler::Blame;
use fakes::{Fakes, PATIENCE, PROMPT, is_gone, wait_until};

type Expected = fn(&CompileError) -> bool;

/// Returns whether a worker failed in this way before it had a module, which is then not to blame.
fn failed_at_first(error: &CompileError, how: Expected) -> bool {
    matches!(error, CompileError::Setup { source } if how(source))
}

/// Provokes each fault once, each followed by a request that works.
fn check(faults: &[(&str, Expected, &str)], timeout: Duration) {
    let fakes = Fakes::new(1, timeout, PATIENCE);
    for (mode, expected, text) in faults {
        fakes.mode(mode);
        let start = Instant::now();
        let error = fakes.compile("module").unwrap_err();
        let elapsed = start.elapsed();
        assert!(expected(&error), "{mode}: {error:?}");
        let said = format!("{error} {}", error.diagnostics());
        assert!(said.contains(text), "{mode}: {error}");
        let limit = if mode.ends_with("hang") {
            timeout
        } else {
            Duration::ZERO
        };
        assert!(elapsed < limit + PROMPT, "{mode}: {elapsed:?}");
        let bad = fakes.pids();
        assert_ne!(
            &fakes.good(),
            bad.last().unwrap(),
            "{mode}: the worker was not replaced"
        );
        for pid in bad {
            wait_until(&format!("{mode}: process {pid} is left"), || is_gone(&pid));
        }
        // The good worker ends too, so that a new process reads the next mode.
        end_idle(&fakes);
    }
}

/// Kills the worker that waits for work.
fn end_idle(fakes: &Fakes) {
    let pid = fakes.pids().pop().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    wait_until("an idle worker that died is not cleared away", || is_gone(&pid));
}

#[test]
fn a_fault_while_compiling_is_named_and_the_next_request_works() {
    use CompileError as E;
    check(
        &[
            (
                "segv",
                |e| matches!(e, E::Crashed { .. }) && e.blame() == Blame::Module,
                "SIGSEGV",
            ),
            ("segv", |e| matches!(e, E::Crashed { .. }), "error: last words"),
            ("abort", |e| matches!(e, E::Crashed { .. }), "LLVM ERROR: cannot go on"),
            (
                "killed",
                |e| matches!(e, E::Crashed { .. }) && e.blame() == Blame::Moment,
                "from outside",
            ),
            (
                "memory",
                |e| matches!(e, E::Memory { limit: 0x4000_0000, .. }),
                "1024 MiB",
            ),
            (
                "flood",
                |e| matches!(e, E::Crashed { diagnostics, .. } if diagnostics.len() <= 64 << 10),
                "the very last words",
            ),
            ("exit", |e| matches!(e, E::Crashed { .. }), "exit status: 3"),
            ("silent", |e| matches!(e, E::Protocol { .. }), "without an answer"),
            ("garbage", |e| matches!(e, E::Protocol { .. }), "ELF and so on"),
            ("payload", |e| matches!(e, E::Protocol { .. }), "cannot be read"),
            ("huge", |e| matches!(e, E::Protocol { .. }), "too long"),
            ("truncated", |e| matches!(e, E::Protocol { .. }), "breaks off"),
            ("closed", |e| matches!(e, E::Protocol { .. }), "closed the connection"),
        ],
        PATIENCE,
    );
}

#[test]
fn a_fault_while_starting_is_named_and_the_next_request_works() {
    use CompileError as E;
    check(
        &[
            (
                "start:words",
                |e| failed_at_first(e, |e| matches!(e, E::Protocol { .. })) && e.blame() == Blame::Installation,
                "hello",
            ),
            (
                "start:words",
                |e| failed_at_first(e, |e| matches!(e, E::Protocol { .. })) && e.blame() == Blame::Installation,
                "only words",
            ),
            (
                "start:version",
                |e| failed_at_first(e, |e| matches!(e, E::Protocol { .. })) && e.blame() == Blame::Installation,
                "version 99",
            ),
            (
                "start:exit",
                |e| matches!(e, E::Unavailable { .. }),
                "no such interpreter",
            ),
            (
                "start:segv",
                |e| {
                    failed_at_first(
                        e,
                        |e| matches!(e, E::Crashed { status: Some(status), .. } if status.signal() == Some(libc::SIGSEGV)),
                    ) && e.blame() == Blame::Moment
                },
                "loading",
            ),
            ("start:library", |e| matches!(e, E::Library { .. }), "it is not there"),
        ],
        PATIENCE,
    );
}

#[test]
fn a_worker_that_hangs_is_ended_with_its_linker() {
    use CompileError as E;
    check(
        &[
            (
                "hang",
                |e| matches!(e, E::Timeout { seconds: 5.0, .. }) && e.blame() == Blame::Limit,
                "this may take a while",
            ),
            (
                "start:hang",
                |e| failed_at_first(e, |e| matches!(e, E::Timeout { .. })) && e.blame() == Blame::Moment,
                "longer than 5 s",
            ),
        ],
        // A fake worker that is to answer has to start within this time, on a busy machine too.
        Duration::from_secs(5),
    );
}

/// The second answer may come with the first, before the next request, or after it: in each case no
/// request gets it, and the worker is replaced.
#[test]
fn an_answer_too_many_is_nobodys() {
    for mode in ["twice", "twice at once", "twice late"] {
        let fakes = Fakes::new(1, PATIENCE, PATIENCE);
        fakes.mode(mode);
        assert_eq!(fakes.compile("one").unwrap().vmfb, b"one", "{mode}");
        fakes.mode("good");
        assert_eq!(fakes.compile("two").unwrap().vmfb, b"two", "{mode}");
        let pids = fakes.pids();
        assert_eq!(pids.len(), 2, "{mode}: the worker was not replaced");
        assert!(is_gone(&pids[0]), "{mode}: it is left");
    }
}

#[test]
fn what_a_worker_writes_is_part_of_the_diagnostics() {
    let fakes = Fakes::new(1, PATIENCE, PATIENCE);
    fakes.mode("says");
    for _ in 0..2 {
        let diagnostics = fakes.compile("module").unwrap().diagnostics;
        assert_eq!(diagnostics.matches("a remark").count(), 1, "{diagnostics}");
    }
    assert!(fakes.worker.as_ref().unwrap().describe().contains("a fake"));
    assert_eq!(fakes.pids().len(), 1);
}

#[test]
fn large_messages_pass() {
    let fakes = Fakes::new(1, PATIENCE, PATIENCE);
    fakes.mode("good");
    let large = "x".repeat(20 << 20);
    assert!(fakes.compile(&large).unwrap().vmfb == large.as_bytes());
}

#[test]
fn requests_wait_for_a_free_worker() {
    let fakes = Fakes::new(2, PATIENCE, PATIENCE);
    assert_eq!(fakes.pids().len(), 0, "a worker was started for nothing");
    fakes.mode("slow");
    thread::scope(|scope| {
        for index in 0..8 {
            let fakes = &fakes;
            scope.spawn(move || {
                let module = format!("module {index}");
                assert_eq!(fakes.compile(&module).unwrap().vmfb, module.as_bytes());
            });
        }
    });
    assert_eq!(fakes.pids().len(), 2);
    // Sequential requests need no second worker.
    let fakes = Fakes::new(2, PATIENCE, PATIENCE);
    for _ in 0..4 {
        fakes.good();
    }
    assert_eq!(fakes.pids().len(), 1);
}

#[test]
fn an_idle_worker_ends() {
    let fakes = Fakes::new(1, PATIENCE, Duration::from_millis(200));
    let first = fakes.good();
    wait_until("the idle worker does not end", || is_gone(&first));
    wait_until("its thread does not end", || {
        fakes.worker.as_ref().unwrap().pool.state().live == 0
    });
    assert_ne!(fakes.good(), first);
}

#[test]
fn a_program_that_cannot_be_started_is_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "no program").unwrap();
    for (program, kind) in [
        (directory.path().join("missing"), std::io::ErrorKind::NotFound),
        (file, std::io::ErrorKind::PermissionDenied),
        (directory.path().to_owned(), std::io::ErrorKind::PermissionDenied),
    ] {
        let options = WorkerOptions {
            program: program.clone(),
            library: "/no/library".into(),
            workers: 1,
            timeout: PATIENCE,
            memory_bytes: 1 << 30,
            idle: PATIENCE,
        };
        let worker = Worker::with_identity(options, "fake".into()).unwrap();
        for _ in 0..2 {
            let Err(CompileError::Unavailable {
                source: Some(source), ..
            }) = worker.ask(Task::Describe)
            else {
                panic!("{} was started", program.display());
            };
            assert_eq!(source.kind(), kind, "{}", program.display());
        }
    }
}

/// A forked process has none of the threads. It gets an error that says so, and its end does not
/// affect the workers.
#[test]
fn a_forked_process_is_told() {
    let mut fakes = Fakes::new(1, PATIENCE, PATIENCE);
    let pid = fakes.good();
    let worker = fakes.worker.as_ref().unwrap();
    let forked = Worker {
        pool: Arc::clone(&worker.pool),
        owner: 0,
    };
    assert!(matches!(
        forked.ask(Task::Describe),
        Err(CompileError::Unavailable { .. })
    ));
    drop(forked);
    assert!(!is_gone(&pid));
    assert_eq!(fakes.good(), pid);
    fakes.worker.take();
}
