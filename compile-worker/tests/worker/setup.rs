//! A separate worker for each test, and the modules that it compiles.

use rotini_iree::compiler::{CompileRequest, Compiler, Worker, WorkerOptions, find_library};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rotini-compile-worker");
/// A module of two dispatches.
pub(crate) const MODULE: &str = include_str!("../../../iree/tests/shell.mlir");
/// A module on which the compiler crashes.
pub(crate) const CRASHING: &str = include_str!("grouped.mlir");
/// Longest wait of a test for any expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Time that handling a fault may take beyond its limit. On an idle machine it is 2 s, most of it
/// for starting a new worker.
pub(crate) const PROMPT: Duration = Duration::from_secs(20);

/// A separate worker program for one test, so that its processes can be distinguished from those of
/// other tests.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        symlink(PROGRAM, directory.path().join("worker")).unwrap();
        Self { directory }
    }

    pub(crate) fn options(&self) -> WorkerOptions {
        options(self.directory.path())
    }

    pub(crate) fn worker(&self) -> Worker {
        Worker::new(self.options()).unwrap()
    }

    /// Returns the processes of this worker program, zombies included.
    pub(crate) fn processes(&self) -> Vec<i32> {
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

pub(crate) fn options(directory: &Path) -> WorkerOptions {
    WorkerOptions {
        program: directory.join("worker"),
        library: find_library().unwrap(),
        workers: 2,
        timeout: PATIENCE,
        memory_bytes: 4 << 30,
        idle: PATIENCE,
    }
}

pub(crate) fn gfx942() -> Vec<String> {
    [
        "--iree-hal-target-device=hip",
        "--iree-rocm-target=gfx942",
        "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",
    ]
    .map(String::from)
    .to_vec()
}

pub(crate) fn request<'a>(mlir: &'a str, flags: &'a [String]) -> CompileRequest<'a> {
    CompileRequest {
        mlir,
        name: "module.mlir",
        flags,
        dump_executables: None,
    }
}

/// Returns a module with enough different kernels for its compilation to take many seconds.
pub(crate) fn long() -> String {
    let mut functions = String::new();
    for n in 0..1600 {
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

/// Compiles a module that always compiles.
pub(crate) fn assert_works(worker: &Worker) {
    let compiled = worker.compile(&request(MODULE, &gfx942())).unwrap();
    assert_eq!(compiled.statistics.dispatches, 2);
}

pub(crate) fn wait_until(what: &str, limit: Duration, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}
