//! `rotini run`: executes graphs through the plugin's C ABI and checks the results.

use super::answer::Answer;
use crate::args::{Execution, Run};
use crate::execution::{Executor, Options};
use crate::input::GraphFile;
use crate::outcome::{Outcome, Verdict};
use crate::output::{BAD, Output};
use crate::plugin::Plugin;
use crate::progress::Progress;
use crate::report::{self, GraphOutcome};
use anyhow::Result;
use serde::Serialize;

pub(super) fn run(args: &Run, output: &Output) -> Result<Answer> {
    let files: Vec<GraphFile> = args.graphs.iter().map(|path| GraphFile::read(path)).collect();
    let plugin = Plugin::load(&args.execution.plugin, output.verbose)?;
    let executor = Executor::new(&plugin, options(&args.execution))?;
    let outcomes = execute_all(&executor, files, output)?;
    conclude(&plugin, &outcomes, output)
}

pub(super) fn options(args: &Execution) -> Options {
    Options {
        seed: args.seed,
        repeat: args.repeat,
    }
}

/// Executes graphs one after another.
pub(super) fn execute_all(executor: &Executor, files: Vec<GraphFile>, output: &Output) -> Result<Vec<GraphOutcome>> {
    let progress = Progress::new(files.len(), output)?;
    let execute = |file: GraphFile| {
        progress.graph(&file.name);
        let outcome = match &file.bytes {
            Ok(bytes) => executor.execute(bytes, &progress),
            Err(error) => Outcome::failed(error),
        };
        progress.advance();
        GraphOutcome {
            graph: file.path,
            name: file.name,
            outcome,
        }
    };
    Ok(files.into_iter().map(execute).collect())
}

/// Reports the outcomes.
pub(super) fn conclude(plugin: &Plugin, outcomes: &[GraphOutcome], output: &Output) -> Result<Answer> {
    let right = outcomes
        .iter()
        .filter(|graph| graph.outcome.verdict == Verdict::Right)
        .count();
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
            plugin: plugin.path.display().to_string(),
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
