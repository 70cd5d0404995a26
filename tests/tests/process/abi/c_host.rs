//! The host of `tests/host`, compiled with the system's C compiler. It runs unmodified, with
//! AddressSanitizer, and under valgrind.
//!
//! The C program checks the protocol. This test judges its outputs against the reference.

use super::buffers;
use rotini_graph::{Graph, SlotRole};
use rotini_reference::{Buffers, evaluate};
use rotini_tests::{cases, harness, plugin};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Graphs serialized by hipDNN itself, and cases of the suite: every path of the CPU (one thread, a
/// pool, copies for alignment, several outputs, a workspace).
const SAMPLES: [&str; 5] = [
    "conv_fprop_bias_relu_nchw_f32",
    "conv_fprop_nhwc_f16",
    "fe_pw_add_tanh_nchw_f32",
    "pw_ADD_bcast_channel_f32",
    "sp_uids_sparse_f32",
];
const CASES: [&str; 5] = [
    "conv_wide_nchw",
    "two_convs_nhwc",
    "diamond_f16",
    "conv_strided_nchw",
    "conv_i8_nhwc",
];
/// Cases for the slow checkers: a small one, a convolution and one with two outputs.
const FEW: [&str; 2] = ["conv_fprop_bias_relu_nchw_f32", "diamond_f16"];

/// A graph in a file, with the files of its buffers beside it.
struct Job {
    path: PathBuf,
    graph: Graph,
    initial: Buffers,
}

impl Job {
    fn write(directory: &Path, name: &str) -> Self {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("cases/hipdnn")
            .join(name)
            .with_extension("fb");
        let bytes = if SAMPLES.contains(&name) {
            std::fs::read(sample).unwrap()
        } else {
            rotini_wire::encode(&cases::named(name).unwrap().graph)
        };
        let graph = rotini_wire::decode(&bytes).unwrap();
        let initial = harness::fill(&graph).unwrap();
        let path = directory.join(format!("{name}.fb"));
        std::fs::write(&path, bytes).unwrap();
        let mut manifest = String::new();
        for (uid, _, role) in buffers(&graph) {
            let file = Self::buffer(&path, uid);
            std::fs::write(&file, &initial[&uid]).unwrap();
            let role = if role == SlotRole::Output { "out" } else { "in" };
            writeln!(manifest, "{uid} {role} {}", file.display()).unwrap();
        }
        std::fs::write(format!("{}.buffers", path.display()), manifest).unwrap();
        Job { path, graph, initial }
    }

    fn buffer(path: &Path, uid: i64) -> PathBuf {
        PathBuf::from(format!("{}.{uid}", path.display()))
    }

    /// Asserts that the host's outputs are right, and removes them so that no later run is judged
    /// by them.
    fn judge(&self) {
        let evaluation = evaluate(&self.graph, &self.initial).unwrap();
        for (uid, id, role) in buffers(&self.graph) {
            if role == SlotRole::Output {
                let file = format!("{}.out", Self::buffer(&self.path, uid).display());
                let got = std::fs::read(&file).unwrap();
                evaluation.judge(id, &got, &self.initial[&uid]).unwrap();
                std::fs::remove_file(file).unwrap();
            }
        }
    }
}

/// Compiles a source file of `tests/host` with the system's compiler.
fn compile(source: &str, program: &Path, flags: &[&str]) -> PathBuf {
    let output = Command::new("cc")
        .args([
            "-std=c11",
            "-D_POSIX_C_SOURCE=200809L",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-g",
            "-pthread",
        ])
        .args(flags)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("host").join(source))
        .args(["-ldl", "-o"])
        .arg(program)
        .output()
        .expect("cc, the system's C compiler, runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program.to_owned()
}

/// Runs the host over the jobs, after `command`, and judges their outputs.
#[track_caller]
fn run(mut command: Command, plugin: &Path, cache: &Path, jobs: &[&Job]) {
    command.arg(plugin).args(jobs.iter().map(|job| &job.path));
    let output = command
        .env("ROTINI_DEVICE", "cpu")
        .env("ROTINI_CACHE_DIR", cache)
        .output()
        .unwrap();
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}{errors}",
        output.status
    );
    for job in jobs {
        assert!(text.contains(&format!("{}: ok", job.path.display())), "{text}");
        job.judge();
    }
}

#[test]
fn a_c_host_gets_right_results() {
    let directory = tempfile::tempdir().unwrap();
    let jobs: Vec<Job> = SAMPLES
        .iter()
        .chain(&CASES)
        .map(|name| Job::write(directory.path(), name))
        .collect();
    let program = compile("host.c", &directory.path().join("host"), &[]);
    let jobs: Vec<&Job> = jobs.iter().collect();
    run(
        Command::new(program),
        &plugin::path().unwrap(),
        &directory.path().join("cache"),
        &jobs,
    );
}

/// Finds accesses outside the host's memory by library functions, use after free, and leaks on both
/// sides of the ABI: the plugin's allocations use this host's `malloc` too.
#[test]
fn address_sanitizer_finds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let jobs: Vec<Job> = FEW.iter().map(|name| Job::write(directory.path(), name)).collect();
    let program = compile(
        "host.c",
        &directory.path().join("host"),
        &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    );
    let jobs: Vec<&Job> = jobs.iter().collect();
    let mut command = Command::new(program);
    command.env("ASAN_OPTIONS", "detect_leaks=1:exitcode=9").arg("--keep");
    run(
        command,
        &plugin::path().unwrap(),
        &directory.path().join("cache"),
        &jobs,
    );
}

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        let reason = "valgrind is not installed (scripts/setup --test installs it)";
        assert!(std::env::var_os("ROTINI_TEST_REQUIRE_ALL").is_none(), "{reason}");
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let jobs: Vec<Job> = FEW.iter().map(|name| Job::write(directory.path(), name)).collect();
    let program = compile("host.c", &directory.path().join("host"), &[]);
    let cache = directory.path().join("cache");
    let compiler = baseline_compiler(directory.path());
    let plugin = without_debug_info(directory.path());
    // One graph is compiled under valgrind, the others come from the cache: both paths are checked.
    let mut command = Command::new(&program);
    command.env("ROTINI_IREE_COMPILE", &compiler);
    run(command, &plugin, &cache, &[&jobs[0]]);
    let mut command = Command::new(compile(
        "without_io_uring.c",
        &directory.path().join("without_io_uring"),
        &[],
    ));
    command
        .env("ROTINI_IREE_COMPILE", &compiler)
        .arg("valgrind")
        .args([
            "--quiet",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
            "--show-leak-kinds=definite",
        ])
        .args(["--error-exitcode=9", "--keep-debuginfo=yes"])
        .args([program.as_os_str(), "--keep".as_ref()]);
    run(command, &plugin, &cache, &jobs.iter().collect::<Vec<_>>());
}

/// Builds a compiler wrapper that avoids CPU features which valgrind does not know.
fn baseline_compiler(directory: &Path) -> PathBuf {
    let compiler = rotini_iree::compiler::find_program().unwrap();
    compile(
        "baseline_compile.c",
        &directory.join("iree-compile"),
        &[&format!("-DCOMPILER={:?}", compiler.display().to_string())],
    )
}

/// Copies the plugin without its debug information, which Debian's valgrind cannot read.
fn without_debug_info(directory: &Path) -> PathBuf {
    let copy = directory.join("librotini_plugin.so");
    let status = Command::new("strip")
        .arg("--strip-debug")
        .arg(plugin::path().unwrap())
        .arg("-o")
        .arg(&copy)
        .status();
    assert!(status.expect("strip, which comes with cc, runs").success());
    copy
}
