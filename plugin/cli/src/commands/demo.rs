//! `rotini demo`: builds graphs in code, executes them and shows each step on the way to correct
//! results.

use super::answer::Answer;
use super::run;
use crate::args::Demo;
use crate::execution::Executor;
use crate::input::GraphFile;
use crate::outcome::{Origin, Outcome};
use crate::output::{FAINT, GOOD, Output};
use crate::plugin::Plugin;
use crate::report::{GraphOutcome, bytes, error, time};
use crate::samples::samples;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn demo(args: &Demo, output: &Output) -> Result<Answer> {
    let temporary;
    let directory = match &args.save {
        Some(directory) => directory.as_path(),
        None => {
            temporary = tempfile::tempdir().context("no temporary directory")?;
            temporary.path()
        }
    };
    let paths = write_samples(directory)?;
    let plugin = Plugin::load(&args.execution.plugin, output.verbose)?;
    let executor = Executor::new(&plugin, run::options(&args.execution))?;
    if output.json {
        let outcomes = run::execute_all(&executor, read(&paths), output)?;
        return run::conclude(&plugin, &outcomes, output);
    }

    let steps = Steps(*output);
    steps.introduce(&plugin)?;
    if let Some(first) = paths.first() {
        let twice = [first.clone(), first.clone()];
        let outcomes = run::execute_all(&executor, read(&twice), output)?;
        if let [first, again] = outcomes.as_slice() {
            steps.follow(first, again)?;
        }
    }
    output.line("")?;
    let outcomes = run::execute_all(&executor, read(&paths), output)?;
    run::conclude(&plugin, &outcomes, output)
}

fn write_samples(directory: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let write = |(name, bytes): (String, Vec<u8>)| {
        let path = directory.join(name).with_extension("fb");
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    };
    samples()?.into_iter().map(write).collect()
}

fn read(paths: &[PathBuf]) -> Vec<GraphFile> {
    paths.iter().map(|path| GraphFile::read(path)).collect()
}

/// Prints the steps that precede the table.
struct Steps(Output);

impl Steps {
    fn introduce(&self, plugin: &Plugin) -> Result<()> {
        self.step("load", &plugin.to_string())?;
        let engines: Vec<String> = plugin
            .engines
            .iter()
            .map(|engine| format!("{} ({:#018x})", engine.name, engine.id))
            .collect();
        self.step("engines", &engines.join(", "))
    }

    /// Reports the steps of a graph that was executed twice.
    fn follow(&self, first: &GraphOutcome, again: &GraphOutcome) -> Result<()> {
        self.step("graph", &first.name)?;
        let outcome = &first.outcome;
        if let (Some(engine), Some(asked), Some(asked_again)) =
            (&outcome.engine, outcome.applicable, again.outcome.applicable)
        {
            // The first query of a process waits until the compiler has reported its version.
            let times = format!("{}, asked again {}", time(asked), time(asked_again));
            self.step("applicable", &format!("yes, with {engine}: {times}"))?;
        }
        if let Some(estimate) = outcome.workspace_estimate {
            self.step(
                "workspace",
                &format!("at most {} before compiling", bytes(estimate as u64)),
            )?;
        }
        if let Some(text) = created(outcome) {
            self.step("create", &text)?;
        }
        if let Some(workspace) = outcome.workspace {
            self.step("workspace", &format!("{}, exactly", bytes(workspace as u64)))?;
        }
        if let Some(text) = created(&again.outcome) {
            self.step("again", &text)?;
        }
        if let Some(execute) = again.outcome.execute {
            self.step("execute", &time(execute))?;
        }
        if let Some(worst) = outcome.worst() {
            let text = if worst.max_absolute == 0.0 {
                format!("every element of {} is the reference's", worst.tensor)
            } else {
                let (largest, share) = (error(worst.max_absolute), error(worst.ratio));
                format!(
                    "{} is within {largest} of the reference, {share} of what is allowed",
                    worst.tensor
                )
            };
            self.step("compare", &text)?;
        }
        Ok(())
    }

    fn step(&self, what: &str, text: &str) -> Result<()> {
        self.0
            .line(&format!("{GOOD}{what:>10}{GOOD:#} {FAINT}│{FAINT:#} {text}"))
    }
}

/// Returns whether the code of a graph was compiled or cached, and the time that this took.
fn created(outcome: &Outcome) -> Option<String> {
    let create = time(outcome.create?);
    let dispatches = outcome
        .dispatches
        .map(|count| format!(", {count} dispatch{}", if count == 1 { "" } else { "es" }));
    let dispatches = dispatches.unwrap_or_default();
    Some(match outcome.origin {
        Some(Origin::Compiled) => format!("compiled in {create}{dispatches}, now in the cache"),
        Some(Origin::Cache) => format!("found in the cache in {create}{dispatches}"),
        None => format!("in {create}"),
    })
}
