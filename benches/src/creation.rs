//! Creating a context for conv+bias+relu: compiled, from disk and from memory.
//!
//! The first process that meets a graph compiles it, and waits for the compiler and little else: the peer is the bare compiler on the
//! same MLIR. Every later process finds the code on disk, and must not notice that there is a compiler: the peer is reading and loading
//! the same vmfb with IREE alone. Each sample of these is a process of its own, since a process has all of it in memory after its first
//! time; the times are those that the process tells, without its start.
//! In the same process, a second context shares what is loaded; the peer is the answer whether the graph is applicable, which has to be
//! found again on the way.

use crate::report::{Bar, Row};
use crate::sampling::{interleave, timed};
use crate::subject::{Subject, conv_bias_relu};
use anyhow::{Context as _, Result, ensure};
use iree_sys::compiler::{CompileRequest, Compiler, Program, find_program};
use iree_sys::runtime::{Device, Executable, Instance, Session};
use rotini_emit::Target;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) fn run() -> Result<Vec<Row>> {
    let bytes = rotini_wire::encode(&conv_bias_relu());
    let compiler = Program::new(&find_program()?)?;
    let plan = rotini_plugin::pipeline::decode(&bytes)?;
    let mlir = rotini_emit::emit(&plan.graph, &Target::Cpu)?.mlir;
    let flags = Target::Cpu.flags();
    let request = CompileRequest {
        mlir: &mlir,
        name: "bench.mlir",
        flags: &flags,
        dump_executables: None,
    };

    let folder = tempfile::tempdir()?;
    let (graph, vmfb) = (folder.path().join("graph.fb"), folder.path().join("graph.vmfb"));
    std::fs::write(&graph, &bytes)?;
    std::fs::write(&vmfb, compiler.compile(&request)?.vmfb)?;
    let cache = folder.path().join("cache");
    let create = |cache: &Path| process("--create", &graph, cache);
    let load = || process("--load", &vmfb, &cache);

    let cold = || Ok(create(TempDir::new()?.path())?.create);
    let compiled = interleave(10, cold, timed(1, || Ok(compiler.compile(&request)?)))?;
    // The warm-up fills the cache.
    let second = interleave(50, || Ok(create(&cache)?.create), || Ok(load()?.create))?;
    let whole = interleave(50, || Ok(create(&cache)?.whole()), || Ok(load()?.whole()))?;

    let subject = Subject::new()?;
    let applicable = || timed(10, || subject.expect_applicable(&bytes));
    let again = || timed(10, || subject.context(&bytes));
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
        Row::new(
            "create in a first process: compiled",
            "bare iree-compile",
            &compiled,
            None,
        ),
        Row::new(
            "create in a second process: from disk",
            "bare load of the vmfb",
            &second,
            Some(disk),
        ),
        Row::new(
            "load, handle and create in a second process",
            "device and bare load",
            &whole,
            None,
        ),
        Row::new(
            "create again, nothing loaded: from memory",
            "applicability",
            &alone,
            None,
        ),
        Row::new(
            "create again, the first one alive: shared",
            "applicability",
            &shared,
            None,
        ),
    ])
}

/// What a process waited for.
#[derive(Debug, Serialize, Deserialize)]
struct Times {
    /// Loading the library and creating a handle; creating a device.
    handle: Duration,
    /// Creating a context; reading and loading a vmfb.
    create: Duration,
}

impl Times {
    fn whole(&self) -> Duration {
        self.handle + self.create
    }
}

/// Starts this program as another process.
fn process(flag: &str, file: &Path, cache: &Path) -> Result<Times> {
    let output = Command::new(std::env::current_exe()?)
        .arg(flag)
        .arg(file)
        .env("ROTINI_CACHE_DIR", cache)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("this program cannot be started again")?;
    ensure!(output.status.success(), "the other process failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("the other process told no times")
}

/// The other process: the plugin creates a context for a graph.
pub(crate) fn create(graph: &Path) -> Result<()> {
    let bytes = std::fs::read(graph)?;
    tell(Subject::new, |subject| subject.context(&bytes))
}

/// The other process: IREE loads a vmfb.
pub(crate) fn load(vmfb: &Path) -> Result<()> {
    let device = || {
        let instance = Instance::new()?;
        Ok((Device::local_sync(&instance)?, instance))
    };
    tell(device, |(device, instance)| {
        let code = std::fs::read(vmfb)?;
        // SAFETY: the process that started this one has just had it compiled.
        let executable = unsafe { Executable::load(instance, code.into()) }?;
        Ok(Session::new(device, &executable)?)
    })
}

fn tell<H, C>(handle: impl FnOnce() -> Result<H>, create: impl FnOnce(&H) -> Result<C>) -> Result<()> {
    let started = Instant::now();
    let made = handle()?;
    let handle = started.elapsed();
    let started = Instant::now();
    let context = create(&made)?;
    let create = started.elapsed();
    drop(context);
    Ok(writeln!(
        std::io::stdout(),
        "{}",
        serde_json::to_string(&Times { handle, create })?
    )?)
}
