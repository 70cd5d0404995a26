//! Measures creating a context for conv+bias+relu: compiled, from disk, from memory and from bytes.
//!
//! - The first process compiles the graph in a compile worker, which stays. The peer is the bare
//!   compiler on the same MLIR, which starts anew for each graph.
//! - Each later process finds the code on disk, or in the bytes of a serialized context, and does
//!   not look for a compiler. The peer is reading and loading the same vmfb with IREE alone.
//! - In the same process again, a second context shares the loaded code. The peer is the query
//!   whether the graph is applicable, which creation includes.
//!
//! Each sample of a later process comes from a new process, because after the first creation
//! everything is in memory. The processes measure the times themselves, without their own start.

use crate::report::{Bar, Row};
use crate::sampling::{Samples, interleave, timed};
use crate::subject::{Subject, conv_bias_relu};
use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use rotini_emit::Target;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_iree::compiler::{CompileRequest, Compiler, Program, find_program};
use rotini_iree::runtime::{HalDevice, Instance, Module, Session};
use rotini_tests::cases::{Conv, Order};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Limit of a memory hit.
const MEMORY: Bar = Bar::Most(Duration::from_micros(20));
/// Limit of a disk hit and of loading from bytes.
const DISK: Bar = Bar::Most(Duration::from_millis(3));

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut rows = compiled_for_mi300()?;
    rows.extend(on_the_cpu()?);
    Ok(rows)
}

/// Measures the first process on an MI300. The device is emulated, which adds to the plugin's time
/// but not to the bare compiler's.
fn compiled_for_mi300() -> Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let graph = Conv::new(1, 64, 64, 56, 3, 1, DataType::F16, Order::Last).fused(PointwiseMode::ReluFwd, false);
    let compiler = Peer::new(&graph, Target::parse("gfx942").context("gfx942 is no target")?)?;
    let graph = write(directory.path(), "graph.fb", &rotini_wire::encode(&graph))?;
    let emulator = rotini_tests::plugin::emulator()?;
    let create = |part: Part| {
        let cache = TempDir::new()?;
        let mut command = part.command(&graph, cache.path())?;
        command.env("ROTINI_DEVICE", "hip").env("ROTINI_HIP_LIBRARY", &emulator);
        Ok(times(&mut command)?.create)
    };
    let cold = interleave(10, || create(Part::Create), timed(1, || compiler.compile()))?;
    let warm = interleave(10, || create(Part::CreateAnother), timed(1, || compiler.compile()))?;
    let row = |what, samples, bar| Row::new(what, "bare iree-compile", samples, Some(Bar::Times(bar)));
    Ok(vec![
        row("create for gfx942 in a first process: compiled", &cold, 1.1),
        row("create for gfx942, another graph before it", &warm, 1.0),
    ])
}

fn on_the_cpu() -> Result<Vec<Row>> {
    let directory = tempfile::tempdir()?;
    let bytes = rotini_wire::encode(&conv_bias_relu());
    let compiler = Peer::new(&conv_bias_relu(), Target::Cpu)?;
    let graph = write(directory.path(), "graph.fb", &bytes)?;
    let vmfb = write(directory.path(), "graph.vmfb", &compiler.compile()?)?;
    let cache = directory.path().join("cache");
    let create = |cache: &Path| times(&mut Part::Create.command(&graph, cache)?);
    let load = || times(&mut Part::Load.command(&vmfb, &cache)?);

    let cold = || Ok(create(TempDir::new()?.path())?.create);
    let compiled = interleave(10, cold, timed(1, || compiler.compile()))?;
    // The warm-up fills the cache.
    let disk = interleave(50, || Ok(create(&cache)?.create), || Ok(load()?.create))?;
    let whole = interleave(50, || Ok(create(&cache)?.whole()), || Ok(load()?.whole()))?;

    let subject = Subject::new()?;
    let context = write(
        directory.path(),
        "graph.context",
        &subject.context(&bytes)?.serialize(None)?,
    )?;
    let nothing = directory.path().join("nothing");
    let from_bytes = || times(&mut Part::Deserialize.command(&context, &nothing)?);
    let serialized = interleave(50, || Ok(from_bytes()?.create), || Ok(load()?.create))?;
    ensure!(!nothing.exists(), "loading from bytes made a cache directory");

    let again = |samples| -> Result<(Samples, Samples)> {
        interleave(
            samples,
            timed(10, || subject.context(&bytes)),
            timed(10, || subject.expect_applicable(&bytes)),
        )
    };
    // Each context is destroyed before the next is created.
    let alone = again(100)?;
    let first = subject.context(&bytes)?;
    let shared = again(100)?;
    drop(first);

    let bare = "bare load of the vmfb";
    Ok(vec![
        Row::new(
            "create in a first process: compiled",
            "bare iree-compile",
            &compiled,
            None,
        ),
        Row::new("create in a second process: from disk", bare, &disk, Some(DISK)),
        Row::new("create in a second process: from bytes", bare, &serialized, Some(DISK)),
        Row::new(
            "load, handle and create in a second process",
            "device and bare load",
            &whole,
            None,
        ),
        Row::new(
            "create again, the first one gone: from memory",
            "applicability",
            &alone,
            Some(MEMORY),
        ),
        Row::new(
            "create again, the first one alive: shared",
            "applicability",
            &shared,
            Some(MEMORY),
        ),
    ])
}

/// The bare compiler, with the MLIR and the flags that the plugin would pass to it.
struct Peer {
    compiler: Program,
    mlir: String,
    flags: Vec<String>,
}

impl Peer {
    fn new(graph: &Graph, target: Target) -> Result<Self> {
        let plan = rotini_plugin::prepared::decode(&rotini_wire::encode(graph))?;
        let emitted = rotini_emit::emit(&plan.graph, &target)?;
        Ok(Peer {
            compiler: Program::new(&find_program()?)?,
            mlir: emitted.mlir,
            flags: emitted.flags,
        })
    }

    fn compile(&self) -> Result<Vec<u8>> {
        let request = CompileRequest {
            mlir: &self.mlir,
            name: "bench.mlir",
            flags: &self.flags,
            dump_executables: None,
        };
        Ok(self.compiler.compile(&request)?.vmfb)
    }
}

fn write(directory: &Path, name: &str, content: &[u8]) -> Result<PathBuf> {
    let path = directory.join(name);
    std::fs::write(&path, content)?;
    Ok(path)
}

/// What another process does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Part {
    /// The plugin creates a context for a graph.
    Create,
    /// The same, after one for another graph.
    CreateAnother,
    /// The plugin creates a context from the bytes of one.
    Deserialize,
    /// IREE loads a vmfb.
    Load,
}

impl Part {
    /// Returns the command that runs this program as another process.
    fn command(self, file: &Path, cache: &Path) -> Result<Command> {
        let name = self.to_possible_value().context("the part has no name")?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--part", name.get_name(), "--file"])
            .arg(file)
            .env("ROTINI_CACHE_DIR", cache)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        Ok(command)
    }

    /// Runs the task, as the other process's main function.
    pub(crate) fn play(self, file: &Path) -> Result<()> {
        let bytes = std::fs::read(file)?;
        match self {
            Part::Create => tell(Subject::new, |subject| subject.context(&bytes)),
            Part::CreateAnother => {
                let after_another = || {
                    let subject = Subject::new()?;
                    drop(subject.context(&rotini_wire::encode(&relu()))?);
                    Ok(subject)
                };
                tell(after_another, |subject| subject.context(&bytes))
            }
            Part::Deserialize => tell(Subject::new, |subject| {
                Ok(subject.handle.context_from_serialized(&bytes)?)
            }),
            Part::Load => {
                let device = || {
                    let instance = Instance::new()?;
                    Ok((HalDevice::local_sync(&instance)?, instance))
                };
                tell(device, |(device, instance)| {
                    // Reading is included, because the plugin reads its file too.
                    let code = std::fs::read(file)?;
                    // SAFETY: the process that started this one has just had the vmfb compiled.
                    let executable = unsafe { Module::load(instance, code.into()) }?;
                    Ok(Session::new(device, &executable)?)
                })
            }
        }
    }
}

/// Returns a small graph in half precision.
fn relu() -> Graph {
    let mut builder = GraphBuilder::new("relu");
    let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F16, &[64]));
    builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
    builder.build()
}

/// The times of the steps of a task.
#[derive(Debug, Serialize, Deserialize)]
struct Times {
    /// Time to load the library and create a handle, or to create a device.
    handle: Duration,
    /// Time to create a context, or to read and load a vmfb.
    create: Duration,
}

impl Times {
    fn whole(&self) -> Duration {
        self.handle + self.create
    }
}

fn times(command: &mut Command) -> Result<Times> {
    let output = command.output().context("this program cannot be started again")?;
    ensure!(output.status.success(), "the other process failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("the other process told no times")
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
