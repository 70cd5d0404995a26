//! `rotini run`: executes graphs through the plugin's C ABI and checks the results.

use super::Answer;
use crate::args::{Execution, PluginArgs, Run};
use crate::execution::{Executor, Options, Outcome, Verdict};
use crate::failure::Failure;
use crate::host::Plugin;
use crate::input::GraphFile;
use crate::output::{BAD, Output};
use crate::progress::Progress;
use crate::report::{self, GraphOutcome};
use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use std::env;
use std::path::PathBuf;

/// The file name that hipDNN looks for in its plugin folder.
const PLUGIN_FILE: &str = "librotini_plugin.so";

pub(super) fn run(args: &Run, output: &Output) -> Result<Answer> {
    let files: Vec<GraphFile> = args.graphs.iter().map(|path| GraphFile::read(path)).collect();
    let path = plugin_path(&args.execution.plugin)?;
    let plugin = load(&path, output)?;
    let executor = Executor::new(&plugin, options(&args.execution))?;
    let outcomes = execute_all(&executor, files, output)?;
    conclude(&path, &outcomes, output)
}

/// Where the plugin is: where it is said to be, or beside this program.
///
/// # Errors
///
/// If it is not there.
pub(super) fn plugin_path(args: &PluginArgs) -> Result<PathBuf> {
    if let Some(path) = &args.plugin {
        // dlopen would look for a name without a folder in the system's folders.
        return std::path::absolute(path).with_context(|| format!("{} is no path", path.display()));
    }
    let program = env::current_exe().context("this program's own path is not known")?;
    let path = program.with_file_name(PLUGIN_FILE);
    if path.is_file() {
        return Ok(path);
    }
    Err(anyhow!(Failure::Environment(format!(
        "there is no plugin at {}; scripts/build makes it, and --plugin names another one",
        path.display()
    ))))
}

/// Loads the plugin.
pub(super) fn load(path: &std::path::Path, output: &Output) -> Result<Plugin> {
    // SAFETY: the file is this project's own plugin, or what the user named as a plugin to be run.
    unsafe { Plugin::load(path, output.verbose) }.context("no plugin")
}

pub(super) fn options(args: &Execution) -> Options {
    Options { seed: args.seed, repeat: args.repeat }
}

/// Executes graphs one after the other.
pub(super) fn execute_all(
    executor: &Executor<'_>,
    files: Vec<GraphFile>,
    output: &Output,
) -> Result<Vec<GraphOutcome>> {
    let progress = Progress::new(files.len(), output)?;
    let execute = |file: GraphFile| {
        progress.graph(&file.name);
        let outcome = match &file.bytes {
            Ok(bytes) => executor.execute(bytes, &progress),
            Err(error) => Outcome::failed(error),
        };
        progress.advance();
        GraphOutcome { graph: file.path, name: file.name, outcome }
    };
    Ok(files.into_iter().map(execute).collect())
}

/// Tells the outcomes.
pub(super) fn conclude(plugin: &std::path::Path, outcomes: &[GraphOutcome], output: &Output) -> Result<Answer> {
    let right = outcomes.iter().filter(|graph| graph.outcome.verdict == Verdict::Right).count();
    let answer = Answer::of(right == outcomes.len());
    if output.json {
        #[derive(Serialize)]
        struct Document<'a> {
            ok: bool,
            plugin: String,
            graphs: &'a [GraphOutcome],
        }
        output.document(&Document {
            ok: answer == Answer::Yes,
            plugin: plugin.display().to_string(),
            graphs: outcomes,
        })?;
        return Ok(answer);
    }
    output.line(&report::outcomes(outcomes).to_string())?;
    for GraphOutcome { name, outcome, .. } in outcomes {
        if let Some(reason) = &outcome.reason {
            output.line(&format!("{BAD}{name}{BAD:#}: {reason}"))?;
        }
    }
    output.line(&format!("{right} of {} right", outcomes.len()))?;
    Ok(answer)
}
