//! Common parts of the suites: a directory with graphs, the command run in it, and its output.
//!
//! Executing graphs needs the compiler and the plugin's library. If one of them is missing, a test
//! reports that on stderr and ends, unless `ROTINI_TEST_REQUIRE_ALL` is set: then it fails.

use rotini_graph::{CustomOp, DataType, GraphBuilder, PointwiseMode};
use rotini_workloads::blocks::{Convolution, Direction, Epilogue, Layout};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) const OK: i32 = 0;
pub(crate) const WRONG: i32 = 1;
pub(crate) const USAGE: i32 = 2;
pub(crate) const ENVIRONMENT: i32 = 3;

/// A directory with graphs and a separate cache.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let bench = Bench { directory };
        std::fs::write(bench.path("good.fb"), rotini_wire::encode(&conv_bias_relu())).unwrap();
        std::fs::write(bench.path("declined.fb"), rotini_wire::encode(&custom_op())).unwrap();
        let mut cycle = GraphBuilder::new("cycle");
        let x = cycle.buffer("x", DataType::F32, &[4]);
        let a = cycle.virtual_tensor("a", DataType::F32, &[4]);
        let b = cycle.virtual_tensor("b", DataType::F32, &[4]);
        cycle.pointwise(DataType::F32, PointwiseMode::Add, &[x, b], a);
        cycle.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[a], b);
        std::fs::write(bench.path("malformed.fb"), rotini_wire::encode(&cycle.build())).unwrap();
        std::fs::write(bench.path("noise.fb"), b"this is not a FlatBuffer").unwrap();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the command in this directory, set to the CPU and to the directory's cache.
    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rotini"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("ROTINI_DEVICE", "cpu")
            .env("ROTINI_CACHE_DIR", self.path("cache"));
        // Cargo builds programs of other packages only on demand.
        if let Some(worker) = built("rotini-compile-worker", "ROTINI_COMPILE_WORKER") {
            command.env("ROTINI_COMPILE_WORKER", worker);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Finished::new(self.command(arguments).output().unwrap())
    }
}

/// The exit code and the output of a command.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    pub(crate) fn new(output: Output) -> Self {
        Finished {
            code: output.status.code().expect("the command was ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the JSON document, after checking the exit code.
    pub(crate) fn json(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        let document: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout));
        assert_eq!(document["ok"], code == OK);
        document
    }
}

/// Returns a text field of each item of a list.
pub(crate) fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().unwrap();
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

/// Returns a convolution of 8 channels of 6x6 to 16 channels of the same size, with bias and ReLU.
fn conv_bias_relu() -> rotini_graph::Graph {
    let conv = Convolution::square(1, 8, 16, 6, 3, 1, Layout::First, DataType::F32);
    let relu = Epilogue::Activation(PointwiseMode::ReluFwd);
    conv.graph("good", Direction::Forward, relu).unwrap()
}

/// Returns a well-formed graph with a custom operation of another plugin.
fn custom_op() -> rotini_graph::Graph {
    let mut graph = GraphBuilder::new("declined");
    let x = graph.buffer("x", DataType::F32, &[4]);
    let y = graph.buffer("y", DataType::F32, &[4]);
    let op = CustomOp {
        inputs: vec![x],
        outputs: vec![y],
        custom_op_id: "other.op".to_owned(),
        data: Vec::new(),
    };
    graph.node("foreign", DataType::F32, op);
    graph.build()
}

/// Locates a file that was built besides the command: named by the variable, beside the command, or
/// left by scripts/build.
fn built(file: &str, variable: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_rotini")).with_file_name(file);
    let release = beside
        .parent()
        .and_then(Path::parent)
        .map(|target| target.join("release").join(file));
    std::env::var_os(variable)
        .map(PathBuf::from)
        .into_iter()
        .chain([beside])
        .chain(release)
        .find(|path| path.is_file())
}

/// Locates a shared library of this workspace, such as an engine of `benches/`.
pub(crate) fn built_library(file: &str) -> Option<PathBuf> {
    let found = built(file, "");
    if found.is_none() {
        skip(&format!("{file} was not built (cargo build --workspace)"));
    }
    found
}

/// Reports that a test is skipped; fails if `ROTINI_TEST_REQUIRE_ALL` is set.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("ROTINI_TEST_REQUIRE_ALL").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// Returns true if the compiler can run in a separate process.
pub(crate) fn has_worker(bench: &Bench) -> bool {
    let found = built("rotini-compile-worker", "ROTINI_COMPILE_WORKER").is_some();
    if !found {
        skip("rotini-compile-worker was not built (scripts/build)");
    }
    found && has_compiler(bench)
}

/// Returns the plugin's library, if it was built and a compiler is available.
pub(crate) fn plugin(bench: &Bench) -> Option<PathBuf> {
    let Some(plugin) = built("librotini_plugin.so", "ROTINI_PLUGIN") else {
        skip("librotini_plugin.so was not built (scripts/build)");
        return None;
    };
    let doctor = Finished::new(
        bench
            .command(["doctor", "--json", "--plugin"])
            .arg(&plugin)
            .output()
            .unwrap(),
    );
    if doctor.code != OK {
        skip(&format!("rotini doctor: {}", doctor.stdout));
        return None;
    }
    Some(plugin)
}

pub(crate) fn has_compiler(bench: &Bench) -> bool {
    let doctor: Value = serde_json::from_str(&bench.run(&["doctor", "--json"]).stdout).unwrap();
    let compiler = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["item"] == "IREE compiler")
        .unwrap();
    let found = compiler["state"] == "ok";
    if !found {
        skip(&compiler.to_string());
    }
    found
}
