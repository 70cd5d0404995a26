//! `rotini check`: checks whether graphs can be executed, and states the reason if not.

use super::answer::Answer;
use super::target_choice::chosen;
use crate::args::Check;
use crate::failure::chain;
use crate::input::GraphFile;
use crate::output::{BAD, DOUBTFUL, GOOD, Output};
use anyhow::Result;
use rotini_plugin::Error;
use rotini_plugin::config::Config;
use rotini_plugin::pipeline::applicable;
use rotini_plugin::runtime::Runtime;
use serde::Serialize;

/// The classification of a graph that was not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Applicable,
    Declined,
    Malformed,
    /// The file cannot be read.
    Failed,
}

#[derive(Debug, Serialize)]
struct Checked {
    graph: String,
    name: String,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(super) fn check(args: &Check, output: &Output) -> Result<Answer> {
    let runtime = Runtime::new(Config::from_env())?;
    let choice = chosen(&runtime, args.target.target.as_ref())?;
    let check = |path| {
        let file = GraphFile::read(path);
        let (verdict, reason) = match &file.bytes {
            Ok(bytes) => match applicable(&runtime, bytes, &choice) {
                Ok(_) => (Verdict::Applicable, None),
                Err(Error::Unsupported(reason) | Error::FailedBefore(reason)) => (Verdict::Declined, Some(reason)),
                Err(Error::Graph(reason)) => (Verdict::Malformed, Some(reason)),
                // Without a compiler the plugin declines every graph.
                Err(error @ Error::NoCompiler(_)) => return Err(error),
                Err(other) => (Verdict::Failed, Some(chain(&other))),
            },
            Err(error) => (Verdict::Failed, Some(chain(error.as_ref()))),
        };
        Ok(Checked {
            graph: file.path,
            name: file.name,
            verdict,
            reason,
        })
    };
    let graphs: Vec<Checked> = args.graphs.iter().map(|path| check(path)).collect::<Result<_, _>>()?;
    let answer = Answer::of(graphs.iter().all(|graph| graph.verdict == Verdict::Applicable));
    if output.json {
        #[derive(Serialize)]
        struct Document {
            ok: bool,
            target: String,
            graphs: Vec<Checked>,
        }
        output.document(&Document {
            ok: answer == Answer::Yes,
            target: choice.target.to_string(),
            graphs,
        })?;
        return Ok(answer);
    }
    for Checked {
        graph, verdict, reason, ..
    } in &graphs
    {
        let (style, text) = match verdict {
            Verdict::Applicable => (GOOD, "applicable"),
            Verdict::Declined => (DOUBTFUL, "declined"),
            Verdict::Malformed => (BAD, "malformed"),
            Verdict::Failed => (BAD, "failed"),
        };
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        output.line(&format!("{graph}: {style}{text}{style:#}{reason}"))?;
    }
    Ok(answer)
}
