//! Fake workers that misbehave. A script runs this test program again as the worker.

use std::{
    env,
    fs::{self, File},
    io::{Read, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, exit},
    sync::OnceLock,
};

use super::super::*;
use frame::Incoming;

/// Variable with the path of the file that selects the worker's misbehaviour.
const FAKE: &str = "ROTINI_TEST_FAKE_WORKER";
/// Longest wait of a test for any expected event.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Time that handling a fault may take beyond its limit. On an idle machine it is 2 s.
pub(super) const PROMPT: Duration = Duration::from_secs(20);

/// Returns the script of all fake workers, written before any of them is started: a program whose
/// file is open for writing cannot be run, and a process of another test may hold it open for a
/// moment.
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
             {FAKE}=$directory/mode exec '{}' --exact compiler::worker::tests::fakes::fake --nocapture\n",
            program.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (directory, path)
    });
    path
}

/// A pool of fake workers.
pub(super) struct Fakes {
    pub(super) worker: Option<Worker>,
    pub(super) directory: tempfile::TempDir,
}

impl Fakes {
    pub(super) fn new(workers: usize, timeout: Duration, idle: Duration) -> Self {
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

    /// Selects the behaviour of the next process.
    pub(super) fn mode(&self, mode: &str) {
        fs::write(self.directory.path().join("mode"), mode).unwrap();
    }

    pub(super) fn compile(&self, mlir: &str) -> Result<Compiled, CompileError> {
        self.worker.as_ref().unwrap().compile(&CompileRequest {
            mlir,
            name: "fake.mlir",
            flags: &[],
            dump_executables: None,
        })
    }

    /// Checks the answer of a well-behaved worker, and returns the id of its process.
    pub(super) fn good(&self) -> String {
        self.mode("good");
        let compiled = self.compile("module").unwrap();
        assert_eq!(compiled.vmfb, b"module");
        self.pids().pop().unwrap()
    }

    pub(super) fn pids(&self) -> Vec<String> {
        let pids = fs::read_to_string(self.directory.path().join("pids")).unwrap();
        pids.lines().map(str::to_owned).collect()
    }
}

impl Drop for Fakes {
    /// Checks that no process is left.
    fn drop(&mut self) {
        let start = Instant::now();
        drop(self.worker.take());
        assert!(start.elapsed() < PROMPT, "ending took {:?}", start.elapsed());
        for pid in self.pids() {
            assert!(is_gone(&pid), "process {pid} is left");
        }
    }
}

/// Returns whether neither a process nor a zombie has this id.
pub(super) fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

pub(super) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Not a test: the part of a fake worker after its script.
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

/// Ends this process by a signal, without the handler that Rust has installed and the signal mask
/// of the pool's thread.
fn raise(signal: i32) {
    // SAFETY: only this process is affected, which is a fake worker; the set is initialised before
    // it is used.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Misbehaves according to `mode`, instead of an answer or before it.
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
        // The first of two answers; the caller sends the second at once.
        "twice" => channel.write_all(answer).unwrap(),
        "twice at once" => {
            channel.write_all(&[answer, answer].concat()).unwrap();
            thread::sleep(PATIENCE);
        }
        // The second answer comes after the next request has been received.
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
            // Like the compiler's linker, it belongs to the same process group.
            let linker = Command::new("sleep").arg("100").spawn().unwrap();
            let pids = Path::new(&env::var_os(FAKE).unwrap()).with_file_name("pids");
            let mut pids = File::options().append(true).open(pids).unwrap();
            writeln!(pids, "{}", linker.id()).unwrap();
            thread::sleep(Duration::from_secs(100));
        }
        other => panic!("no such way: {other}"),
    }
}

/// A compiler whose output is its input.
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
            statistics: crate::compiler::Statistics::default(),
            diagnostics: String::new(),
        })
    }
}
