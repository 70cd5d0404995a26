//! The pool against workers that misbehave in one way each. They are this test program, run again by a script.

use std::{
    env,
    fs::{self, File},
    io::{Read, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Command, exit},
    sync::OnceLock,
};

use super::*;
use crate::compiler::Blame;
use frame::Incoming;

/// Names the file that says how the worker misbehaves.
const FAKE: &str = "ROTINI_TEST_FAKE_WORKER";
/// No test waits longer for anything that is to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a fault may take beyond its limit. On a machine with nothing else to do it is 2 s.
const PROMPT: Duration = Duration::from_secs(20);

/// The script that all fake workers are, written before any of them is started: a program that is being written cannot be run, and
/// another test's process may hold it open for a moment.
fn script() -> &'static Path {
    static SCRIPT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = SCRIPT.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        let program = env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\ndirectory=${{0%/*}}\necho $$ >>$directory/pids\n\
             case $(cat $directory/mode) in\n\
             start:words) echo only words; echo hello >&0; sleep 100;;\n\
             start:exit) echo no such interpreter >&2; exit 127;;\n\
             start:hang) exec sleep 100;;\n\
             esac\n\
             {FAKE}=$directory/mode exec '{}' --exact compiler::worker::tests::fake --nocapture\n",
            program.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    });
    path
}

/// A pool of fake workers.
struct Fakes {
    worker: Option<Worker>,
    directory: tempfile::TempDir,
}

impl Fakes {
    fn new(workers: usize, timeout: Duration, idle: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("worker");
        symlink(script(), &program).unwrap();
        fs::write(directory.path().join("pids"), "").unwrap();
        let options = WorkerOptions {
            program,
            library: "/no/library".into(),
            workers,
            timeout,
            memory_bytes: 1 << 30,
            idle,
        };
        let worker = Some(Worker::with_identity(options, "fake".into()).unwrap());
        Self { worker, directory }
    }

    /// What the next process does.
    fn mode(&self, mode: &str) {
        fs::write(self.directory.path().join("mode"), mode).unwrap();
    }

    fn compile(&self, mlir: &str) -> Result<Compiled, CompileError> {
        self.worker.as_ref().unwrap().compile(&CompileRequest {
            mlir,
            name: "fake.mlir",
            flags: &[],
            dump_executables: None,
        })
    }

    /// A well-behaved worker's answer, and which process gave it.
    fn good(&self) -> String {
        self.mode("good");
        let compiled = self.compile("module").unwrap();
        assert_eq!(compiled.vmfb, b"module");
        self.pids().pop().unwrap()
    }

    fn pids(&self) -> Vec<String> {
        let pids = fs::read_to_string(self.directory.path().join("pids")).unwrap();
        pids.lines().map(str::to_owned).collect()
    }
}

impl Drop for Fakes {
    /// Nothing is left of any process.
    fn drop(&mut self) {
        let start = Instant::now();
        drop(self.worker.take());
        assert!(start.elapsed() < PROMPT, "ending took {:?}", start.elapsed());
        for pid in self.pids() {
            assert!(is_gone(&pid), "process {pid} is left");
        }
    }
}

/// Whether there is neither a process nor a zombie of that number.
fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Not a test: what a fake worker does after its script.
#[test]
fn fake() {
    let Some(path) = env::var_os(FAKE) else {
        return;
    };
    let mode = fs::read_to_string(path).unwrap();
    if mode == "start:segv" {
        std::io::stderr().write_all(b"loading\n").unwrap();
        raise(libc::SIGSEGV);
    }
    let mut channel = File::from(rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).unwrap());
    let mut incoming = Incoming::default();
    let mut receive = |channel: &mut File| loop {
        if let Some(payload) = incoming.next().unwrap() {
            break payload;
        }
        let mut buffer = [0; 4096];
        match channel.read(&mut buffer).unwrap() {
            0 => exit(0),
            count => incoming.push(&buffer[..count]),
        }
    };
    let _setup: Setup = frame::decode(&receive(&mut channel)).unwrap();
    if mode == "start:version" {
        channel.write_all(b"rtcw\x63\0\0\0\0\0\0\0\0\0\0\0").unwrap();
        exit(0);
    }
    if mode == "start:library" {
        let failure = Failure::Library {
            path: Path::new("/no/library").into(),
            reason: "it is not there".into(),
        };
        channel
            .write_all(&frame::encode(&Ready::Err(failure)).unwrap())
            .unwrap();
        exit(0);
    }
    let ready = Ready::Ok("a fake".into());
    channel.write_all(&frame::encode(&ready).unwrap()).unwrap();
    loop {
        let request: Request = frame::decode(&receive(&mut channel)).unwrap();
        let answer = frame::encode(&request.compile(&Echo)).unwrap();
        misbehave(&mode, &mut channel, &answer);
        channel.write_all(&answer).unwrap();
    }
}

/// Ends this process by a signal, without the handler that Rust has installed and the mask of the pool's thread.
fn raise(signal: i32) {
    // SAFETY: only this process is affected, which is a fake worker; the set is initialised before it is used.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Instead of an answer, or before it.
#[expect(clippy::zombie_processes, reason = "the pool ends it with this process")]
fn misbehave(mode: &str, channel: &mut File, answer: &[u8]) {
    let say = |text: &str| std::io::stderr().write_all(text.as_bytes()).unwrap();
    match mode {
        "good" => {}
        "slow" => thread::sleep(Duration::from_millis(100)),
        "says" => say("a remark\n"),
        "segv" => {
            say("error: last words\n");
            raise(libc::SIGSEGV);
        }
        "killed" => raise(libc::SIGKILL),
        "abort" => {
            say("LLVM ERROR: cannot go on\n");
            raise(libc::SIGABRT);
        }
        "memory" => {
            say("memory allocation of 77 bytes failed\n");
            raise(libc::SIGABRT);
        }
        "flood" => {
            say(&"all kinds of words\n".repeat(1 << 19));
            say("the very last words\n");
            raise(libc::SIGABRT);
        }
        "exit" => {
            say("fatal: gives up\n");
            exit(3);
        }
        "silent" => exit(0),
        "garbage" => channel.write_all(b"\x7fELF and so on").unwrap(),
        "payload" => channel.write_all(b"rtcw\x01\0\0\0\x02\0\0\0\0\0\0\0\xff\xff").unwrap(),
        "huge" => channel
            .write_all(b"rtcw\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff")
            .unwrap(),
        // With or soon after the one that the caller sends.
        "twice" => channel.write_all(answer).unwrap(),
        "twice at once" => {
            channel.write_all(&[answer, answer].concat()).unwrap();
            thread::sleep(PATIENCE);
        }
        // The second one while the next request is waited for.
        "twice late" => {
            channel.write_all(answer).unwrap();
            let mut next = [PollFd::new(&*channel, PollFlags::IN)];
            poll(&mut next, None).unwrap();
        }
        "truncated" => {
            channel.write_all(&answer[..answer.len() - 1]).unwrap();
            exit(0);
        }
        "closed" => {
            rustix::net::shutdown(&channel, rustix::net::Shutdown::Both).unwrap();
            thread::sleep(Duration::from_secs(100));
        }
        "hang" => {
            say("warning: this may take a while\n");
            // As the compiler's linker, it belongs to the same group.
            let linker = Command::new("sleep").arg("100").spawn().unwrap();
            let pids = Path::new(&env::var_os(FAKE).unwrap()).with_file_name("pids");
            let mut pids = File::options().append(true).open(pids).unwrap();
            writeln!(pids, "{}", linker.id()).unwrap();
            thread::sleep(Duration::from_secs(100));
        }
        other => panic!("no such way: {other}"),
    }
}

/// Its output is its input.
struct Echo;

impl Compiler for Echo {
    fn identity(&self) -> &str {
        "fake"
    }

    fn describe(&self) -> String {
        "a fake".into()
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        Ok(Compiled {
            vmfb: request.mlir.as_bytes().to_vec(),
            statistics: super::super::Statistics::default(),
            diagnostics: String::new(),
        })
    }
}

type Expected = fn(&CompileError) -> bool;

/// Whether a worker failed in this way before it had a module, which is then not to blame.
fn failed_at_first(error: &CompileError, how: Expected) -> bool {
    matches!(error, CompileError::Setup { source } if how(source))
}

/// Each fault once, each followed by a request that works.
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
        // And the good one ends, for the next mode to be read.
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
        // A fake that is to answer has to start within this, on a busy machine too.
        Duration::from_secs(5),
    );
}

/// The second answer may come with the first, before the next request, or after it: each time nobody gets it, and the worker goes.
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
    // One after the other needs no second.
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

/// A forked process has none of the threads. It is told so, and its end leaves the workers alone.
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
