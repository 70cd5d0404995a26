//! The command as scripts see it: exit codes and JSON, for graphs that are right, declined and malformed.
//!
//! What executes needs the compiler and the plugin's library. Where one of them is missing a test says so on stderr and ends, unless
//! `ROTINI_TEST_REQUIRE_ALL` is set: then it fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and one that is skipped says so"
)]

use rotini_graph::{ConvGeometry, CustomOp, DataType, GraphBuilder, PointwiseMode};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const OK: i32 = 0;
const WRONG: i32 = 1;
const USAGE: i32 = 2;
const ENVIRONMENT: i32 = 3;

/// A folder with graphs, and a cache of its own.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench { folder };
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

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, on the CPU, with this bench's cache.
    fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rotini"));
        command
            .args(arguments)
            .env("ROTINI_DEVICE", "cpu")
            .env("ROTINI_CACHE_DIR", self.path("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Finished::new(
            self.command(arguments)
                .current_dir(self.folder.path())
                .output()
                .unwrap(),
        )
    }
}

/// What a command left behind.
struct Finished {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Finished {
    fn new(output: Output) -> Self {
        Finished {
            code: output.status.code().expect("the command was ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The document, after the exit code was compared.
    fn json(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        let document: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout));
        assert_eq!(document["ok"], code == OK);
        document
    }
}

/// 8 channels of 6x6 to 16 of the same size.
fn conv_bias_relu() -> rotini_graph::Graph {
    let mut graph = GraphBuilder::new("good");
    let x = graph.buffer("x", DataType::F32, &[1, 8, 6, 6]);
    let w = graph.buffer("w", DataType::F32, &[16, 8, 3, 3]);
    let bias = graph.buffer("bias", DataType::F32, &[1, 16, 1, 1]);
    let conv = graph.virtual_tensor("conv", DataType::F32, &[1, 16, 6, 6]);
    let biased = graph.virtual_tensor("biased", DataType::F32, &[1, 16, 6, 6]);
    let y = graph.buffer("y", DataType::F32, &[1, 16, 6, 6]);
    graph.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 1));
    graph.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
    graph.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[biased], y);
    graph.build()
}

/// Well formed, with an operation of somebody else's plugin.
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

/// The plugin's library, if it was built and there is a compiler.
fn plugin(bench: &Bench) -> Option<PathBuf> {
    let skip = |reason: String| {
        assert!(std::env::var_os("ROTINI_TEST_REQUIRE_ALL").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
        None
    };
    // Beside the command, where run looks too; else what scripts/build leaves.
    let beside = Path::new(env!("CARGO_BIN_EXE_rotini")).with_file_name("librotini_plugin.so");
    let release = beside
        .parent()
        .and_then(Path::parent)
        .map(|target| target.join("release/librotini_plugin.so"));
    let Some(plugin) = std::env::var_os("ROTINI_PLUGIN")
        .map(PathBuf::from)
        .into_iter()
        .chain([beside])
        .chain(release)
        .find(|path| path.is_file())
    else {
        return skip("librotini_plugin.so was not built (scripts/build)".to_owned());
    };
    let doctor = Finished::new(
        bench
            .command(["doctor", "--json", "--plugin"])
            .arg(&plugin)
            .output()
            .unwrap(),
    );
    if doctor.code == OK {
        Some(plugin)
    } else {
        skip(format!("rotini doctor: {}", doctor.stdout))
    }
}

fn has_compiler(bench: &Bench) -> bool {
    let doctor: Value = serde_json::from_str(&bench.run(&["doctor", "--json"]).stdout).unwrap();
    let compiler = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["item"] == "IREE compiler")
        .unwrap();
    let found = compiler["state"] == "ok";
    if !found {
        assert!(std::env::var_os("ROTINI_TEST_REQUIRE_ALL").is_none(), "{compiler}");
        eprintln!("skipped: {compiler}");
    }
    found
}

#[test]
fn check_tells_graphs_apart_and_names_the_node() {
    let bench = Bench::new();
    // None of them is applicable, so no compiler is needed.
    let document = bench
        .run(&[
            "check",
            "--json",
            "declined.fb",
            "malformed.fb",
            "noise.fb",
            "nowhere.fb",
        ])
        .json(WRONG);
    let verdicts: Vec<_> = document["graphs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|graph| graph["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["declined", "malformed", "malformed", "failed"]);
    let reason = |index: usize| document["graphs"][index]["reason"].as_str().unwrap().to_owned();
    assert!(reason(0).contains("'foreign'"), "{}", reason(0));
    assert!(reason(1).contains("cycle"), "{}", reason(1));
    assert!(reason(3).contains("nowhere.fb"), "{}", reason(3));
}

#[test]
fn check_accepts_for_any_target() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    for target in ["cpu", "gfx942"] {
        let document = bench.run(&["check", "--json", "--target", target, "good.fb"]).json(OK);
        assert_eq!(document["target"], target);
        assert_eq!(document["graphs"][0]["verdict"], "applicable");
    }
}

#[test]
fn check_does_not_accept_without_a_compiler() {
    let bench = Bench::new();
    let output = bench
        .command(["check", "--json"])
        .arg(bench.path("good.fb"))
        .env("ROTINI_COMPILER", "program")
        .env("ROTINI_IREE_COMPILE", bench.path("no-compiler"))
        .output()
        .unwrap();
    let document = Finished::new(output).json(ENVIRONMENT);
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("no-compiler"), "{error}");
}

#[test]
fn emit_writes_mlir_and_its_arguments() {
    let bench = Bench::new();
    let document = bench.run(&["emit", "--json", "--target", "gfx942", "good.fb"]).json(OK);
    let arguments = document["arguments"].as_array().unwrap();
    let roles: Vec<_> = arguments
        .iter()
        .map(|argument| argument["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["input", "input", "input", "output"]);
    assert_eq!(arguments[3]["shape"], serde_json::json!([1, 16, 6, 6]));
    let text = bench.run(&["emit", "--target", "gfx942", "good.fb"]);
    assert_eq!((text.code, text.stderr.as_str()), (OK, ""));
    assert_eq!(document["mlir"].as_str().unwrap().trim_end(), text.stdout.trim_end());

    let declined = bench.run(&["emit", "declined.fb"]);
    assert_eq!((declined.code, declined.stdout.as_str()), (WRONG, ""));
    assert_eq!(declined.stderr.lines().count(), 1, "{}", declined.stderr);
}

#[test]
fn compile_writes_what_it_says() {
    let bench = Bench::new();
    if !has_compiler(&bench) {
        return;
    }
    let compile = ["compile", "--json", "--target", "gfx942", "good.fb"];
    let document = bench.run(&[&compile[..], &["-o", "one.vmfb"]].concat()).json(OK);
    let graph = &document["graphs"][0];
    let vmfb = std::fs::read(bench.path("one.vmfb")).unwrap();
    assert_eq!(graph["bytes"], vmfb.len());
    assert_eq!(graph["dispatches"], 1);
    assert_eq!(graph["origin"], "compiled");

    // Again into a folder, beside one that cannot be compiled.
    let document = bench
        .run(&[&compile[..], &["declined.fb", "-o", "all"]].concat())
        .json(WRONG);
    assert_eq!(document["graphs"][0]["origin"], "cache");
    assert_eq!(std::fs::read(bench.path("all/good.vmfb")).unwrap(), vmfb);
    assert!(document["graphs"][1]["error"].as_str().unwrap().contains("'foreign'"));
    assert!(!bench.path("all/declined.vmfb").exists());
}

#[test]
fn run_executes_through_the_library_and_judges() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let plugin = plugin.to_str().unwrap();
    let document = bench.run(&["run", "--json", "--plugin", plugin, "good.fb"]).json(OK);
    let first = &document["graphs"][0];
    assert_eq!(
        (&first["verdict"], &first["origin"]),
        (&"right".into(), &"compiled".into())
    );
    assert_eq!(first["engine"], "ROTINI_ENGINE");
    assert!(first["dispatches"].as_u64().unwrap() >= 1);
    assert!(first["workspace"].as_u64().unwrap() <= first["workspace_estimate"].as_u64().unwrap());
    assert_eq!(first["outputs"].as_array().unwrap().len(), 1);
    assert!(first["outputs"][0]["ratio"].as_f64().unwrap() <= 1.0);

    // The second process finds the code, and knows the workspace before.
    let graphs = ["good.fb", "declined.fb", "malformed.fb", "noise.fb", "nowhere.fb"];
    let document = bench
        .run(&[&["run", "--json", "--plugin", plugin][..], &graphs].concat())
        .json(WRONG);
    let graphs = document["graphs"].as_array().unwrap();
    let verdicts: Vec<_> = graphs.iter().map(|graph| graph["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["right", "declined", "malformed", "malformed", "failed"]);
    assert_eq!(graphs[0]["origin"], "cache");
    assert_eq!(graphs[0]["workspace"], graphs[0]["workspace_estimate"]);
    assert!(graphs[1]["reason"].as_str().unwrap().contains("'foreign'"));
}

#[test]
fn demo_is_all_right_and_leaves_its_graphs() {
    let bench = Bench::new();
    let Some(plugin) = plugin(&bench) else { return };
    let demo = bench.run(&["demo", "--plugin", plugin.to_str().unwrap(), "--save", "graphs"]);
    assert_eq!(demo.code, OK, "{}{}", demo.stdout, demo.stderr);
    let saved = std::fs::read_dir(bench.path("graphs")).unwrap().count();
    assert!(saved >= 8);
    assert!(
        demo.stdout.ends_with(&format!("{saved} of {saved} right\n")),
        "{}",
        demo.stdout
    );
    assert!(!demo.stdout.contains('\x1b'), "colours go to terminals alone");
}

#[test]
fn what_is_missing_is_told_as_such() {
    let bench = Bench::new();
    for arguments in [&["run", "good.fb"][..], &["demo"], &["doctor"]] {
        let output = bench
            .command(arguments)
            .args(["--json", "--plugin", "nowhere.so"])
            .output()
            .unwrap();
        let text = Finished::new(output).json(ENVIRONMENT).to_string();
        assert!(text.contains("nowhere.so"), "{text}");
    }
}

#[test]
fn a_library_that_is_no_plugin_is_refused() {
    let bench = Bench::new();
    // Any library that is already there: the C library is loaded by this test too.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("/libc.so"));
    let Some(library) = library else {
        panic!("no C library among the maps")
    };
    let document = bench.run(&["doctor", "--json", "--plugin", library]).json(ENVIRONMENT);
    assert!(document.to_string().contains("hipdnnPluginGet"), "{document}");
}

#[test]
fn usage_errors_have_a_code_of_their_own() {
    let bench = Bench::new();
    for arguments in [
        &["run"][..],
        &["frobnicate"],
        &["check", "--target", "--flag", "good.fb"],
        &["compile", "good.fb"],
        &["run", "--repeat", "0", "good.fb"],
    ] {
        assert_eq!(bench.run(arguments).code, USAGE, "{arguments:?}");
    }
    assert_eq!(bench.run(&["--help"]).code, OK);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let bench = Bench::new();
    let command = bench
        .command(["emit", "--target", "cpu"])
        .arg(bench.path("good.fb"))
        .get_args()
        .map(OsStr::to_owned)
        .collect::<Vec<_>>();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = bench.command(command).stdout(writer).output().unwrap();
    let finished = Finished::new(output);
    assert_eq!((finished.code, finished.stderr.as_str()), (141, ""));
}
