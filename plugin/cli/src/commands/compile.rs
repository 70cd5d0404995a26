//! `rotini compile`: compiles graphs to vmfb files, or into a cache directory that can be shipped.

use super::answer::Answer;
use super::target_choice::chosen;
use crate::args::Compile;
use crate::failure::{Failure, chain};
use crate::input::GraphFile;
use crate::outcome::Origin;
use crate::output::{BAD, Output};
use crate::progress::Progress;
use crate::report::{self, bytes, number, short, time};
use anyhow::{Context as _, Result, anyhow, bail};
use comfy_table::Cell;
use rayon::prelude::*;
use rotini_cache::{Cache, CacheConfig, CompiledFor, admin};
use rotini_emit::Target;
use rotini_plugin::compile::{compiled, key};
use rotini_plugin::config::Config;
use rotini_plugin::prepared::check;
use rotini_plugin::runtime::Runtime;
use rotini_workloads::Workload;
use rotini_workloads::suites::{SuiteOptions, suite};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// A compiled graph.
#[derive(Debug, Serialize)]
struct Compiled {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    key: String,
    bytes: usize,
    dispatches: u32,
    workspace: u64,
    origin: Origin,
    /// Compile time, of this run or of the run that stored the entry.
    compile_us: u64,
}

/// The result of compiling one graph for one target.
#[derive(Debug, Serialize)]
struct GraphResult {
    graph: String,
    name: String,
    target: String,
    #[serde(flatten)]
    compiled: Option<Compiled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A graph to compile.
enum Source {
    File(PathBuf),
    Suite(Workload),
}

impl Source {
    fn all(args: &Compile) -> Result<Vec<Self>> {
        let mut sources: Vec<_> = args.graphs.iter().cloned().map(Source::File).collect();
        for name in &args.suites {
            sources.extend(suite(name, &SuiteOptions::default())?.into_iter().map(Source::Suite));
        }
        Ok(sources)
    }

    fn read(&self) -> GraphFile {
        match self {
            Source::File(path) => GraphFile::read(path),
            Source::Suite(workload) => GraphFile {
                path: workload.origin.clone(),
                name: workload.name.clone(),
                bytes: Ok(workload.graph.clone()),
            },
        }
    }
}

pub(super) fn compile(args: &Compile, output: &Output) -> Result<Answer> {
    if args.output.is_some() && args.targets.len() > 1 {
        bail!(Failure::Usage(
            "a vmfb is for one target; --into takes several".to_owned()
        ));
    }
    let jobs = jobs(args.jobs);
    let runtime = runtime(args, jobs)?;
    let choices = choices(&runtime, &args.targets)?;
    runtime.compiler()?;
    let sources = Source::all(args)?;
    let places = match &args.output {
        Some(place) => places(&args.graphs, place)?.into_iter().map(Some).collect(),
        None => vec![None; sources.len()],
    };
    let started = Instant::now();
    let mut graphs = compile_all(&runtime, &choices, &sources, &places, jobs, output)?;
    if args.into.is_some() {
        confirm(&runtime, &mut graphs)?;
    }
    tell(&runtime, args, graphs, started.elapsed(), output)
}

fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked
        .or_else(|| thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN)
}

/// Creates the runtime, with the cache in the directory of `--into`, if given.
fn runtime(args: &Compile, jobs: NonZeroUsize) -> Result<Runtime> {
    let mut config = Config::from_env();
    config.compile_workers = jobs.get();
    let mut runtime = Runtime::new(config)?;
    if let Some(directory) = &args.into {
        // The directory must be complete without other cache directories, unlimited in size, and
        // readable by every user of the image that it becomes part of.
        let cache = CacheConfig {
            dir: Some(directory.clone()),
            system_dirs: Vec::new(),
            disk_bytes: u64::MAX,
            readable_by_all: true,
            ..CacheConfig::default()
        };
        runtime.cache = LazyLock::new(Box::new(|| Cache::open(cache)));
        if let Some(error) = runtime.cache.disk_error() {
            bail!(Failure::Environment(chain(error)));
        }
    }
    Ok(runtime)
}

/// Returns the targets to compile for: the requested ones without duplicates, or that of the device
/// in use.
fn choices(runtime: &Runtime, targets: &[Target]) -> Result<Vec<CompiledFor<Target>>> {
    if targets.is_empty() {
        return Ok(vec![chosen(runtime, None)?]);
    }
    let mut choices: Vec<CompiledFor<Target>> = Vec::new();
    for target in targets {
        let choice = chosen(runtime, Some(target))?;
        if choices.iter().all(|other| other.target != choice.target) {
            choices.push(choice);
        }
    }
    Ok(choices)
}

/// Returns the file to write for each graph.
fn places(graphs: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>> {
    if graphs.len() == 1 && !output.is_dir() {
        return Ok(vec![output.to_owned()]);
    }
    fs::create_dir_all(output).with_context(|| format!("{} is no directory for several graphs", output.display()))?;
    let mut taken = HashSet::new();
    let place = |graph: &PathBuf| {
        let name = graph.file_stem().unwrap_or(graph.as_os_str());
        if !taken.insert(name.to_owned()) {
            return Err(anyhow!(Failure::Usage(format!(
                "two graphs are called {}",
                name.display()
            ))));
        }
        let mut file = name.to_owned();
        file.push(".vmfb");
        Ok(output.join(file))
    };
    graphs.iter().map(place).collect()
}

/// Compiles each graph for each target, `jobs` at a time. A failure does not stop the others.
fn compile_all(
    runtime: &Runtime,
    choices: &[CompiledFor<Target>],
    graphs: &[Source],
    places: &[Option<PathBuf>],
    jobs: NonZeroUsize,
    output: &Output,
) -> Result<Vec<GraphResult>> {
    let work: Vec<_> = graphs
        .iter()
        .zip(places)
        .flat_map(|(graph, place)| choices.iter().map(move |choice| (graph, place.as_deref(), choice)))
        .collect();
    let progress = Progress::bar(work.len(), output)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.get().min(work.len().max(1)))
        .build()
        .context("no threads")?;
    let compile = |(graph, place, choice): &(&Source, Option<&Path>, &CompiledFor<Target>)| {
        // Files are read only when their turn comes: all of them together may not fit into memory.
        let file = graph.read();
        progress.stage(format!("{} for {}", file.name, choice.target));
        let result = file
            .bytes
            .and_then(|bytes| compile_one(runtime, choice, &bytes, *place));
        progress.advance();
        let (compiled, error) = match result {
            Ok(compiled) => (Some(compiled), None),
            Err(error) => (None, Some(chain(error.as_ref()))),
        };
        GraphResult {
            graph: file.path,
            name: file.name,
            target: choice.target.to_string(),
            compiled,
            error,
        }
    };
    // Threads take single items, because compile times are not known in advance.
    Ok(pool.install(|| work.par_iter().with_max_len(1).map(compile).collect()))
}

fn compile_one(
    runtime: &Runtime,
    choice: &CompiledFor<Target>,
    graph: &[u8],
    place: Option<&Path>,
) -> Result<Compiled> {
    let plan = check(graph, &choice.target)?;
    let key = key(runtime, &plan.graph, choice)?;
    let (entry, origin) = compiled(runtime, &key, &plan.source(graph, choice))?;
    if let Some(place) = place {
        fs::write(place, &entry.payload).with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(Compiled {
        output: place.map(|place| place.display().to_string()),
        key: key.to_string(),
        bytes: entry.payload.len(),
        dispatches: entry.metadata.facts.dispatches,
        workspace: entry.metadata.facts.workspace_bytes,
        origin: match origin {
            rotini_cache::Origin::Created { .. } => Origin::Compiled,
            rotini_cache::Origin::Memory
            | rotini_cache::Origin::Disk
            | rotini_cache::Origin::Joined
            | rotini_cache::Origin::OtherProcess
            | rotini_cache::Origin::Content => Origin::Cache,
        },
        compile_us: entry.metadata.compile_micros,
    })
}

/// Checks that all compiled graphs are stored in the directory. For a cache a failed write is not
/// an error; for this command it is.
fn confirm(runtime: &Runtime, graphs: &mut [GraphResult]) -> Result<()> {
    let directory = runtime.cache.dir().context("there is no directory")?;
    let stored: HashSet<String> = admin::list(directory)?
        .into_iter()
        .map(|entry| entry.key.to_string())
        .collect();
    for graph in graphs {
        if graph
            .compiled
            .take_if(|compiled| !stored.contains(&compiled.key))
            .is_some()
        {
            graph.error = Some(format!("compiled, but not stored in {}", directory.display()));
        }
    }
    Ok(())
}

fn tell(
    runtime: &Runtime,
    args: &Compile,
    graphs: Vec<GraphResult>,
    elapsed: Duration,
    output: &Output,
) -> Result<Answer> {
    let directory = args.into.is_some().then(|| runtime.cache.dir()).flatten();
    let answer = Answer::of(graphs.iter().all(|graph| graph.compiled.is_some()));
    if output.json {
        #[derive(Serialize)]
        struct Document {
            ok: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            directory: Option<String>,
            graphs: Vec<GraphResult>,
        }
        output.document(&Document {
            ok: answer == Answer::Yes,
            directory: directory.map(|directory| directory.display().to_string()),
            graphs,
        })?;
        return Ok(answer);
    }
    let mut table = report::table(&[
        "graph",
        "target",
        "size",
        "dispatches",
        "workspace",
        "compile",
        "code from",
        if args.output.is_some() { "vmfb" } else { "key" },
    ]);
    for GraphResult {
        name, target, compiled, ..
    } in &graphs
    {
        if let Some(compiled) = compiled {
            table.add_row([
                Cell::new(name),
                Cell::new(target),
                number(Some(bytes(compiled.bytes as u64))),
                number(Some(compiled.dispatches.to_string())),
                number(Some(bytes(compiled.workspace))),
                number(Some(time(Duration::from_micros(compiled.compile_us)))),
                Cell::new(report::origin(compiled.origin)),
                Cell::new(compiled.output.as_deref().unwrap_or(short(&compiled.key))),
            ]);
        }
    }
    if !table.is_empty() {
        output.line(&table.to_string())?;
    }
    for GraphResult {
        graph, target, error, ..
    } in &graphs
    {
        if let Some(error) = error {
            output.note(&format!("{BAD}{graph}{BAD:#} for {target}: {error}"))?;
        }
    }
    if let Some(directory) = directory {
        output.line(&summary(&graphs, directory, elapsed))?;
    }
    Ok(answer)
}

/// Returns the summary of all graphs in one line.
fn summary(graphs: &[GraphResult], directory: &Path, elapsed: Duration) -> String {
    let count = |origin| {
        graphs
            .iter()
            .filter_map(|graph| graph.compiled.as_ref())
            .filter(|compiled| compiled.origin == origin)
            .count()
    };
    let failed = graphs.iter().filter(|graph| graph.error.is_some()).count();
    format!(
        "{}: {} compiled, {} there already, {failed} failed, in {}",
        directory.display(),
        count(Origin::Compiled),
        count(Origin::Cache),
        time(elapsed)
    )
}
