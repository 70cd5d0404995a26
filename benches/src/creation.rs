//! Creating a context for conv+bias+relu: compiled, from disk and from memory.
//!
//! The first process that meets a graph compiles it, and waits for the compiler and little else: the peer is the bare compiler on the
//! same MLIR. Every later process finds the code on disk, and may not notice that there is a compiler. Each sample of these is a process
//! of its own, since a process has all of it in memory after its first time; the times are the child's, without its start.
//! In the same process, a second context shares what is loaded; the peer is the answer whether the graph is applicable, which has to be
//! found again on the way.

use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Subject, conv_bias_relu};
use anyhow::{Context as _, Result, ensure};
use iree_sys::compiler::{CompileRequest, Compiler, Program, find_program};
use rotini_emit::Target;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let graph = folder.path().join("graph.fb");
    let bytes = rotini_wire::encode(&conv_bias_relu());
    std::fs::write(&graph, &bytes)?;
    let cold = || process(&graph, TempDir::new()?.path());
    let warm_folder = folder.path().join("cache");
    process(&graph, &warm_folder)?;
    let warm = || process(&graph, &warm_folder);

    let compiler = Program::new(&find_program()?)?;
    let plan = rotini_plugin::pipeline::decode(&bytes)?;
    let mlir = rotini_emit::emit(&plan.graph, &Target::Cpu)?.mlir;
    let flags = Target::Cpu.flags();
    let request = CompileRequest { mlir: &mlir, name: "bench.mlir", flags: &flags, dump_executables: None };
    let compile = timed(1, || Ok(drop(compiler.compile(&request)?)));

    let compiled = interleave(10, || Ok(cold()?.create), compile)?;
    let second = interleave(10, || Ok(warm()?.create), || Ok(cold()?.create))?;
    let whole = interleave(10, || Ok(warm()?.whole()), || Ok(cold()?.whole()))?;

    let subject = Subject::new()?;
    let applicable = || timed(10, || subject.expect_applicable(&bytes));
    let again = || timed(10, || Ok(drop(subject.context(&bytes)?)));
    let alone = {
        // The plugin has the code in memory, but not loaded.
        drop(subject.context(&bytes)?);
        interleave(100, again(), applicable())?
    };
    let first = subject.context(&bytes)?;
    let shared = interleave(100, again(), applicable())?;
    drop(first);

    let disk = Bar::Most(Duration::from_millis(5));
    Ok(vec![
        Row::new("create in a first process: compiled", "bare iree-compile", &compiled, None),
        Row::new("create in a second process: from disk", "in a first process", &second, Some(disk)),
        Row::new("load, handle and create in a second process", "in a first process", &whole, None),
        Row::new("create again, nothing loaded: from memory", "applicability", &alone, None),
        Row::new("create again, the first one alive: shared", "applicability", &shared, None),
    ])
}

/// What a process waited for.
#[derive(Debug, Serialize, Deserialize)]
struct Times {
    /// Loading the library and creating a handle.
    handle: Duration,
    /// Creating a context.
    create: Duration,
}

impl Times {
    fn whole(&self) -> Duration {
        self.handle + self.create
    }
}

/// Creates a context in another process.
fn process(graph: &Path, cache: &Path) -> Result<Times> {
    let output = Command::new(std::env::current_exe()?)
        .arg("--create")
        .arg(graph)
        .env("ROTINI_CACHE_DIR", cache)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("this program cannot be started again")?;
    ensure!(output.status.success(), "the other process failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("the other process told no times")
}

/// The other process.
pub(crate) fn child(graph: &Path) -> Result<()> {
    let bytes = std::fs::read(graph)?;
    let started = Instant::now();
    let subject = Subject::new()?;
    let handle = started.elapsed();
    let started = Instant::now();
    let context = subject.context(&bytes)?;
    let create = started.elapsed();
    drop(context);
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&Times { handle, create })?)?)
}
