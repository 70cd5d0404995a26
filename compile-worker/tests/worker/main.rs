//! Tests of the real worker with the real compiler. Other runs of this program play hosts that
//! misbehave or die.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod hosts;
mod setup;

use rotini_iree::compiler::{
    Blame, CompileError, CompileRequest, Compiler, Program, Worker, WorkerOptions, find_library, find_program,
};
use rustix::process::Pid;
use setup::{CRASHING, MODULE, PROGRAM, PROMPT, Place, assert_works, gfx942, long, request};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    // A rejected module does not make the pool start another process.
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
    // The flag applies to the whole process, which therefore compiles nothing else.
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
        // Enough to open the library and to parse a small module, but not to compile.
        memory_bytes: 20 << 20,
        ..place.options()
    })
    .unwrap();
    for _ in 0..2 {
        let start = Instant::now();
        let error = worker.compile(&request(&long(), &gfx942())).unwrap_err();
        // The compilation takes a while until it has used the memory up.
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
    // The same limit applies to the module that always compiles, on a slow machine too.
    let timeout = Duration::from_secs(10);
    let worker = Worker::new(WorkerOptions {
        timeout,
        ..place.options()
    })
    .unwrap();
    let start = Instant::now();
    let error = worker.compile(&request(&long(), &gfx942())).unwrap_err();
    assert!(start.elapsed() < timeout + PROMPT, "{:?}", start.elapsed());
    assert!(
        matches!(error, CompileError::Timeout { seconds: 10.0, .. }),
        "{error:?}"
    );
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
    // The message of the loader.
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

    // An update while the host runs: new results must not be cached under the old compiler's
    // identity.
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
    // SAFETY: the descriptor belongs to this test.
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
        // The compiler leaves the files that it has linked open.
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
    // Only the signal that the worker waits for is blocked.
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
