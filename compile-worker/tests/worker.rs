//! The real worker with the real compiler. Other runs of this program play hosts that misbehave or die.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Write as _},
    os::{
        fd::AsRawFd,
        unix::{fs::symlink, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use iree_sys::compiler::{
    Blame, CompileError, CompileRequest, Compiler, Program, Worker, WorkerOptions, find_library, find_program,
};
use rustix::process::{Pid, Signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rotini-compile-worker");
/// Two dispatches.
const MODULE: &str = include_str!("../../iree-sys/tests/shell.mlir");
/// The compiler crashes on it.
const CRASHING: &str = include_str!("grouped.mlir");
/// No test waits longer for anything that is to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a fault may take beyond its limit. On a machine with nothing else to do it is 2 s, of which most is for a new worker.
const PROMPT: Duration = Duration::from_secs(20);
/// Names what a run of this program plays, and its directory.
const HOST: &str = "ROTINI_TEST_HOST";

/// A worker program of a test's own, so that its processes can be told from those of others.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        symlink(PROGRAM, directory.path().join("worker")).unwrap();
        Self { directory }
    }

    fn options(&self) -> WorkerOptions {
        options(self.directory.path())
    }

    fn worker(&self) -> Worker {
        Worker::new(self.options()).unwrap()
    }

    /// Its processes, zombies included.
    fn processes(&self) -> Vec<i32> {
        let program = self.directory.path().join("worker");
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| {
                let line = fs::read(entry.path().join("cmdline")).ok()?;
                (line.strip_suffix(b"\0")? == program.as_os_str().as_encoded_bytes())
                    .then(|| entry.file_name().to_str()?.parse().ok())?
            })
            .collect()
    }
}

fn options(directory: &Path) -> WorkerOptions {
    WorkerOptions {
        program: directory.join("worker"),
        library: find_library().unwrap(),
        workers: 2,
        timeout: PATIENCE,
        memory_bytes: 4 << 30,
        idle: PATIENCE,
    }
}

fn gfx942() -> Vec<String> {
    [
        "--iree-hal-target-device=hip",
        "--iree-rocm-target=gfx942",
        "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    ]
    .map(String::from)
    .to_vec()
}

fn request<'a>(mlir: &'a str, flags: &'a [String]) -> CompileRequest<'a> {
    CompileRequest {
        mlir,
        name: "module.mlir",
        flags,
        dump_executables: None,
    }
}

/// A module of so many different kernels that compiling it takes many seconds.
fn long() -> String {
    let mut functions = String::new();
    for n in 0..400 {
        let n = 16 + n;
        let (a, b, c) = (
            format!("tensor<{n}x64xf32>"),
            format!("tensor<64x{n}xf32>"),
            format!("tensor<{n}x{n}xf32>"),
        );
        writeln!(
            functions,
            "func.func @f{n}(%a: {a}, %b: {b}, %c: {c}) -> {c} {{\n\
             %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}\n return %r : {c}\n}}"
        )
        .unwrap();
    }
    functions
}

/// Compiles what always works.
fn assert_works(worker: &Worker) {
    let compiled = worker.compile(&request(MODULE, &gfx942())).unwrap();
    assert_eq!(compiled.statistics.dispatches, 2);
}

fn wait_until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn same_bytes_as_the_program() {
    let place = Place::new();
    let worker = place.worker();
    let program = Program::new(&find_program().unwrap()).unwrap();
    assert_eq!(worker.identity(), program.identity());
    assert!(place.processes().is_empty(), "a worker was started for nothing");
    assert!(worker.describe().contains("3.13.0"), "{}", worker.describe());
    let cpu = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ];
    for flags in [gfx942(), cpu.map(String::from).to_vec()] {
        let request = request(MODULE, &flags);
        let [a, b, c] =
            [&program as &dyn Compiler, &worker, &worker].map(|compiler| compiler.compile(&request).unwrap());
        assert!(a.vmfb == b.vmfb && b.vmfb == c.vmfb);
        assert_eq!(a.statistics, b.statistics);
        assert_eq!(b.diagnostics, "");
        let dumps = place.directory.path().join("dumps");
        let dumping = CompileRequest {
            dump_executables: Some(&dumps),
            ..request
        };
        assert!(worker.compile(&dumping).unwrap().vmfb == a.vmfb);
        assert!(fs::read_dir(dumps).unwrap().count() > 0);
    }
    assert_eq!(place.processes().len(), 1);
}

#[test]
fn the_compiler_s_errors_are_passed_on() {
    let place = Place::new();
    let worker = place.worker();
    for (mlir, flag, says) in [
        ("module { func.func @f() { foo } }", "--iree-input-type=none", "'foo'"),
        (MODULE, "--iree-no-such-flag", "iree-no-such-flag"),
    ] {
        let flags = [gfx942(), vec![flag.to_owned()]].concat();
        let error = worker.compile(&request(mlir, &flags)).unwrap_err();
        assert!(matches!(error, CompileError::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = worker.compile(&request("a\0b", &[])).unwrap_err();
    assert!(matches!(error, CompileError::Request(_)), "{error}");
    assert_works(&worker);
    // A rejected module is no reason for another process.
    assert_eq!(place.processes().len(), 1);
}

#[test]
fn a_crash_of_the_compiler_is_an_error() {
    let place = Place::new();
    let worker = place.worker();
    assert_works(&worker);
    let before = place.processes();
    let start = Instant::now();
    let error = worker.compile(&request(CRASHING, &gfx942())).unwrap_err();
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    assert!(
        matches!(error, CompileError::Crashed { .. }) && error.blame() == Blame::Module,
        "{error:?}"
    );
    assert!(error.to_string().contains("overflow"), "{error}");
    assert!(place.processes().is_empty(), "the crashed worker is left");
    let fallback = [gfx942(), vec!["--iree-codegen-llvmgpu-use-igemm=false".into()]].concat();
    // A flag for a process, which therefore compiles nothing else.
    let compiled = worker.compile(&request(CRASHING, &fallback)).unwrap();
    assert!(place.processes().is_empty(), "the worker goes on with the flag");
    let program = Program::new(&find_program().unwrap()).unwrap();
    assert!(compiled.vmfb == program.compile(&request(CRASHING, &fallback)).unwrap().vmfb);
    assert_works(&worker);
    assert_ne!(place.processes(), before);
}

#[test]
fn too_much_memory_is_an_error() {
    let place = Place::new();
    let worker = Worker::new(WorkerOptions {
        // Enough to open the library and to parse a little, and not to compile.
        memory_bytes: 20 << 20,
        ..place.options()
    })
    .unwrap();
    for _ in 0..2 {
        let start = Instant::now();
        let error = worker.compile(&request(&long(), &gfx942())).unwrap_err();
        // It takes some of its time until it has used the memory up.
        assert!(start.elapsed() < PROMPT * 4, "{:?}", start.elapsed());
        assert!(
            matches!(error, CompileError::Memory { limit: 0x140_0000, .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("20 MiB"), "{error}");
        let error = worker.compile(&request("foo", &gfx942())).unwrap_err();
        assert!(matches!(error, CompileError::Rejected { .. }), "{error:?}");
    }
}

#[test]
fn too_much_time_is_an_error() {
    let place = Place::new();
    let timeout = Duration::from_secs(3);
    let worker = Worker::new(WorkerOptions {
        timeout,
        ..place.options()
    })
    .unwrap();
    let start = Instant::now();
    let error = worker.compile(&request(&long(), &gfx942())).unwrap_err();
    assert!(start.elapsed() < timeout + PROMPT, "{:?}", start.elapsed());
    assert!(matches!(error, CompileError::Timeout { seconds: 3.0, .. }), "{error:?}");
    assert!(place.processes().is_empty(), "the worker is left");
    assert_works(&worker);
}

#[test]
fn a_library_that_is_missing_or_another_is_named() {
    let place = Place::new();
    let library = place.directory.path().join("library.so");
    let at = |library: &Path| WorkerOptions {
        library: library.to_owned(),
        ..place.options()
    };
    let error = Worker::new(at(&library)).unwrap_err();
    assert!(
        matches!(error, CompileError::Io { .. }) && error.to_string().contains("library.so"),
        "{error}"
    );

    fs::write(&library, "no library").unwrap();
    let worker = Worker::new(at(&library)).unwrap();
    let error = worker.compile(&request(MODULE, &gfx942())).unwrap_err();
    // The loader's words.
    assert!(
        matches!(error, CompileError::Library { .. }) && error.to_string().contains("file too short"),
        "{error}"
    );
    fs::remove_file(&library).unwrap();
    let error = worker.compile(&request(MODULE, &gfx942())).unwrap_err();
    assert!(
        matches!(error, CompileError::Library { .. }) && error.to_string().contains("No such file"),
        "{error}"
    );

    // An update while the host runs: what it makes must not be filed under the old compiler's name.
    symlink(find_library().unwrap(), &library).unwrap();
    let error = worker.compile(&request(MODULE, &gfx942())).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, CompileError::Setup { .. }) && error.blame() == Blame::Installation,
        "{error:?}"
    );
    assert!(text.contains("build-id:") && text.contains("blake3:"), "{text}");
    assert_works(&Worker::new(at(&library)).unwrap());
}

#[test]
fn a_worker_inherits_nothing_and_is_limited() {
    let place = Place::new();
    let file = fs::File::open(env::current_exe().unwrap()).unwrap();
    // SAFETY: duplicates a descriptor, without the flag that would close it in the child.
    let leaked = unsafe { libc::dup(file.as_raw_fd()) };
    assert!(leaked > 2);
    let worker = place.worker();
    assert_works(&worker);
    // SAFETY: it is this test's own.
    unsafe { libc::close(leaked) };
    let [pid] = place.processes()[..] else {
        panic!("not one process");
    };
    let proc = Path::new("/proc").join(pid.to_string());
    let open: BTreeSet<_> = fs::read_dir(proc.join("fd"))
        .unwrap()
        .map(|entry| {
            fs::read_link(entry.unwrap().path())
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        // The compiler leaves what it has linked open.
        .filter(|target| !target.ends_with(".hsaco (deleted)"))
        .map(|target| target.split(':').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        open,
        ["/dev/null", "anon_inode", "pipe", "socket"].map(String::from).into()
    );
    let own = rustix::process::getpgrp();
    let group = rustix::process::getpgid(Pid::from_raw(pid)).unwrap();
    assert!(group.as_raw_nonzero().get() == pid && group != own, "group {group:?}");
    let read = |name: &str| fs::read_to_string(proc.join(name)).unwrap();
    assert_eq!(read("oom_score_adj").trim(), "1000");
    let limits = read("limits");
    let limit = |name: &str| -> u64 {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert_eq!(limit("Max core file size"), 1);
    assert!((4 << 30..6 << 30).contains(&limit("Max data size")), "{limits}");
    // Only the signal that it waits for is blocked.
    let status = read("status");
    assert!(status.contains("SigBlk:\t0000000000004000\n"), "{status}");
    drop(worker);
    assert!(place.processes().is_empty());
}

#[test]
fn a_person_is_told_what_the_program_is() {
    let output = Command::new(PROGRAM).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("rotini's plugin"),
        "{output:?}"
    );
}

/// Another run of this program, which plays the host.
struct Host(Child);

impl Host {
    fn start(role: &str, place: &Place) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "host", "--nocapture"])
            .env(HOST, role)
            .env("ROTINI_TEST_DIRECTORY", place.directory.path())
            .env("TMPDIR", place.directory.path())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Runs the role to its end.
    fn finish(mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Not a test: what other runs of this program play.
#[test]
fn host() {
    let Ok(role) = env::var(HOST) else {
        return;
    };
    let directory = PathBuf::from(env::var_os("ROTINI_TEST_DIRECTORY").unwrap());
    let worker = Worker::new(options(&directory)).unwrap();
    match role.as_str() {
        // Compiles, for longer than it lives.
        "compiles" | "forks" => {
            assert_works(&worker);
            if role == "forks" {
                // SAFETY: the child only waits.
                unsafe {
                    if libc::fork() == 0 {
                        loop {
                            libc::pause();
                        }
                    }
                }
            }
            println!("\nready");
            std::io::stdout().flush().unwrap();
            let _ = worker.compile(&request(&long(), &gfx942()));
            panic!("that was too short");
        }
        "exits" => {
            assert_works(&worker);
            println!("\nready");
            std::process::exit(0);
        }
        // Has the system clear away its children, so that no one learns how they ended.
        "ignores" => {
            // SAFETY: concerns this process, which is this test's own.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
            assert_works(&worker);
            let error = worker.compile(&request(CRASHING, &gfx942())).unwrap_err();
            assert!(matches!(error, CompileError::Crashed { status: None, .. }), "{error:?}");
            assert!(error.to_string().contains("overflow"), "{error}");
            assert_works(&worker);
        }
        // A sandbox that refuses to start programs, or ends whoever tries.
        "refused" | "ended" => {
            forbid_programs(role == "ended");
            for _ in 0..2 {
                let error = worker.compile(&request(MODULE, &gfx942())).unwrap_err();
                assert!(matches!(error, CompileError::Unavailable { .. }), "{error:?}");
                println!("{error}");
            }
        }
        other => panic!("no such role: {other}"),
    }
}

/// Has the system refuse `execve` to this process from now on, or end the process that calls it.
fn forbid_programs(end: bool) {
    let action = if end {
        libc::SECCOMP_RET_KILL_PROCESS
    } else {
        libc::SECCOMP_RET_ERRNO | libc::EPERM as u32
    };
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    // The number of the system call is the first word.
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_execve as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, action),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter outlives the calls, of which the second applies it to all threads of this process.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// In the middle of a compilation, without its linker, its directory or itself being left.
#[test]
fn a_worker_ends_with_its_host() {
    // With the second role, a child of the host still has the connection.
    for role in ["compiles", "forks", "exits"] {
        let place = Place::new();
        let mut host = Host::start(role, &place);
        let lines = BufReader::new(host.0.stdout.take().unwrap()).lines();
        assert!(
            lines.map_while(Result::ok).any(|line| line == "ready"),
            "{role}: no start"
        );
        if role != "exits" {
            assert_eq!(place.processes().len(), 1, "{role}");
            thread::sleep(Duration::from_millis(200));
            host.0.kill().unwrap();
        }
        host.0.wait().unwrap();
        wait_until("the worker outlives its host", PROMPT, || place.processes().is_empty());
        let left = || {
            let entries = fs::read_dir(place.directory.path()).unwrap().flatten();
            entries
                .map(|entry| entry.file_name())
                .filter(|name| name != "worker")
                .collect::<Vec<_>>()
        };
        wait_until("its directory is left", PROMPT, || left().is_empty());
    }
}

#[test]
fn a_host_that_ignores_its_children_is_served() {
    Host::start("ignores", &Place::new()).finish();
}

#[test]
fn a_sandbox_without_programs_is_reported() {
    Host::start("refused", &Place::new()).finish();
    Host::start("ended", &Place::new()).finish();
}
