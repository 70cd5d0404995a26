//! `rotini compile`: graphs to vmfb files.

use super::{Answer, TargetChoice};
use crate::args::Compile;
use crate::execution::Origin;
use crate::failure::{Failure, chain};
use crate::input::GraphFile;
use crate::output::{BAD, Output};
use crate::progress::Progress;
use crate::report::{self, bytes, number, time};
use anyhow::{Context as _, Result, anyhow};
use comfy_table::Cell;
use rotini_plugin::config::Config;
use rotini_plugin::pipeline::{self, Runtime};
use serde::Serialize;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A compiled graph.
#[derive(Debug, Serialize)]
struct Compiled {
    output: String,
    bytes: usize,
    dispatches: u32,
    workspace: u64,
    origin: Origin,
    /// How long the compiler took, now or when the code came into the cache.
    compile_us: u64,
}

#[derive(Debug, Serialize)]
struct GraphResult {
    graph: String,
    name: String,
    #[serde(flatten)]
    compiled: Option<Compiled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn compile(args: &Compile, output: &Output) -> Result<Answer> {
    let runtime = Runtime::new(Config::from_env())?;
    let choice = TargetChoice::new(&runtime, args.target.target.as_ref())?;
    runtime.compiler()?;
    let places = places(&args.graphs, &args.output)?;
    let progress = Progress::new(args.graphs.len(), output)?;
    let mut graphs = Vec::new();
    for (path, place) in args.graphs.iter().zip(&places) {
        let file = GraphFile::read(path);
        progress.graph(&file.name);
        progress.stage("compiling");
        let result = file
            .bytes
            .and_then(|bytes| compile_one(&runtime, &choice, &bytes, place));
        let (compiled, error) = match result {
            Ok(compiled) => (Some(compiled), None),
            Err(error) => (None, Some(chain(error.as_ref()))),
        };
        graphs.push(GraphResult {
            graph: file.path,
            name: file.name,
            compiled,
            error,
        });
        progress.advance();
    }
    drop(progress);
    tell(&choice, graphs, output)
}

/// The file to write for each graph.
fn places(graphs: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>> {
    if graphs.len() == 1 && !output.is_dir() {
        return Ok(vec![output.to_owned()]);
    }
    fs::create_dir_all(output).with_context(|| format!("{} is no folder for several graphs", output.display()))?;
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

fn compile_one(runtime: &Runtime, choice: &TargetChoice, graph: &[u8], place: &Path) -> Result<Compiled> {
    let plan = pipeline::check(graph, &choice.target)?;
    let key = runtime.key(&plan.graph, &choice.target, &choice.features)?;
    let (entry, origin) = runtime.compiled(&key, &plan.graph, &choice.target)?;
    fs::write(place, &entry.payload).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(Compiled {
        output: place.display().to_string(),
        bytes: entry.payload.len(),
        dispatches: entry.metadata.dispatches,
        workspace: entry.metadata.workspace_bytes,
        origin: match origin {
            rotini_cache::Origin::Created { .. } => Origin::Compiled,
            rotini_cache::Origin::Memory | rotini_cache::Origin::Disk | rotini_cache::Origin::Joined => Origin::Cache,
        },
        compile_us: entry.metadata.compile_micros,
    })
}

fn tell(choice: &TargetChoice, graphs: Vec<GraphResult>, output: &Output) -> Result<Answer> {
    let answer = Answer::of(graphs.iter().all(|graph| graph.compiled.is_some()));
    if output.json {
        #[derive(Serialize)]
        struct Document {
            ok: bool,
            target: String,
            graphs: Vec<GraphResult>,
        }
        let target = choice.target.to_string();
        output.document(&Document {
            ok: answer == Answer::Yes,
            target,
            graphs,
        })?;
        return Ok(answer);
    }
    let mut table = report::table(&[
        "graph",
        "vmfb",
        "size",
        "dispatches",
        "workspace",
        "compile",
        "code from",
    ]);
    for GraphResult { name, compiled, .. } in &graphs {
        if let Some(compiled) = compiled {
            table.add_row([
                Cell::new(name),
                Cell::new(&compiled.output),
                number(Some(bytes(compiled.bytes))),
                number(Some(compiled.dispatches.to_string())),
                number(Some(bytes(usize::try_from(compiled.workspace)?))),
                number(Some(time(Duration::from_micros(compiled.compile_us)))),
                Cell::new(report::origin(compiled.origin)),
            ]);
        }
    }
    if !table.is_empty() {
        output.line(&table.to_string())?;
    }
    for GraphResult { graph, error, .. } in &graphs {
        if let Some(error) = error {
            output.note(&format!("{BAD}{graph}{BAD:#}: {error}"))?;
        }
    }
    Ok(answer)
}
