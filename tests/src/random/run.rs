//! The run: accepted graphs are right, and declined graphs have a reason.

use super::{Recipe, recipe};
use crate::cases::Case;
use crate::harness::{Outcome, Runner, Watch};
use anyhow::{Context as _, Result, bail, ensure};
use rayon::prelude::*;
use rotini_graph::Graph;
use rotini_host::{HostError, engine_config};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

/// The plugin's status for a graph that it does not run.
const NOT_APPLICABLE: i32 = 5;
/// Number of failures that are shrunk, and number of graphs that are tried for each; other failures
/// are reported by their seeds.
const SHRUNK: usize = 3;
const ATTEMPTS: usize = 150;

/// The graphs of a run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seed of the first graph.
    pub seed: u64,
    /// Number of graphs.
    pub count: u64,
}

impl Settings {
    /// Returns the settings of `ROTINI_SEED` and `ROTINI_GRAPHS`, or else the seed 0 and `count`,
    /// whose second number is for a full run.
    ///
    /// # Panics
    ///
    /// If one of them is not a number, or there are no graphs.
    #[expect(clippy::panic, reason = "a test that cannot be set up has failed")]
    #[must_use]
    pub fn from_environment(count: [u64; 2]) -> Self {
        let number = |name: &str, otherwise| match std::env::var(name) {
            Ok(text) => u64::from_str(&text).unwrap_or_else(|error| panic!("{name}={text}: {error}")),
            Err(_) => otherwise,
        };
        let settings = Settings {
            seed: number("ROTINI_SEED", 0),
            count: number("ROTINI_GRAPHS", crate::scaled(count)),
        };
        let end = settings.seed.checked_add(settings.count);
        assert!(settings.count > 0 && end.is_some(), "{settings:?} has no graphs");
        settings
    }
}

/// The outcome of a graph without a failure.
enum Answer {
    Right(Outcome),
    Declined(String),
}

/// Runs random graphs, shrinks those that fail and prints how many were declined, and why.
///
/// # Panics
///
/// If any is wrong, takes much longer to compile than the others, crashes, is declined without the
/// name of a node or tensor, or is accepted and does not compile; if too few are accepted, or too
/// many results have loose bounds, whatever the number of graphs: a declined graph was not tested.
#[expect(clippy::print_stdout, reason = "what was not run is told")]
pub fn run(runner: &Runner, settings: Settings) {
    let Settings { seed, count } = settings;
    let results: Vec<(u64, Result<Answer>)> = (seed..seed + count)
        .into_par_iter()
        .map(|seed| (seed, answer(runner, seed, &recipe(seed))))
        .collect();
    let (mut right, mut elements, mut blunt, mut worst) = (0_u64, 0, 0, 0.0_f64);
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let mut failures = Vec::new();
    let watch = Watch::default();
    for (seed, result) in results {
        match result {
            Ok(Answer::Right(outcome)) => {
                watch.note(&format!("seed {seed}"), outcome.creation);
                right += 1;
                elements += outcome.elements;
                blunt += outcome.blunt;
                worst = worst.max(outcome.worst);
            }
            Ok(Answer::Declined(reason)) => *reasons.entry(reason).or_default() += 1,
            Err(error) => failures.push((seed, error)),
        }
    }
    println!(
        "{count} graphs from seed {seed}: {right} right, {} failed; {elements} elements, {blunt} of them with bounds that say \
         nothing, none farther out than {worst:.3} of what is allowed; declined:",
        failures.len()
    );
    for (reason, count) in &reasons {
        println!("{count:6} {reason}");
    }
    // Printed before shrinking, which takes minutes that a run may not have.
    for (seed, error) in &failures {
        println!("seed {seed} failed: {error:#}");
    }
    assert!(failures.is_empty(), "{}", told(runner, failures));
    watch.expect_none_slow();
    assert!(right * 100 >= count * 60, "only {right} of {count} graphs are accepted");
    assert!(
        blunt * 10 <= elements,
        "nothing is known about {blunt} of {elements} elements"
    );
}

/// Describes every failure with its seed, the first ones shrunk.
fn told(runner: &Runner, failures: Vec<(u64, anyhow::Error)>) -> String {
    let mut text = format!("{} graphs failed\n", failures.len());
    for (index, (seed, error)) in failures.into_iter().enumerate() {
        _ = writeln!(text, "\nROTINI_SEED={seed} ROTINI_GRAPHS=1: {error:#}");
        if index < SHRUNK {
            let (recipe, error) = shrunk(runner, seed, error);
            _ = writeln!(text, "shrunk: {error:#}\n{recipe:?}\n{}", described(&recipe.graph()));
        }
    }
    text
}

/// Returns the smallest failing recipe that was found by simplifying step by step.
fn shrunk(runner: &Runner, seed: u64, error: anyhow::Error) -> (Recipe, anyhow::Error) {
    let mut smallest = (recipe(seed), error);
    let mut attempts = 0;
    loop {
        let found = smallest.0.simpler().find_map(|recipe| {
            attempts += 1;
            if attempts > ATTEMPTS {
                return None;
            }
            let error = answer(runner, seed, &recipe).err()?;
            (cause(&error) == cause(&smallest.1)).then_some((recipe, error))
        });
        match found {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

/// Returns the part that all failures of one cause share: the beginning of the text, without names
/// and numbers.
fn cause(error: &anyhow::Error) -> String {
    let text = without_names(&format!("{error:#}"));
    text.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .take(100)
        .collect()
}

/// Returns the plugin's answer to the graph of a recipe.
fn answer(runner: &Runner, seed: u64, recipe: &Recipe) -> Result<Answer> {
    let graph = recipe.graph();
    graph
        .clone()
        .validate()
        .with_context(|| format!("the generator made what is not valid\n{}", described(&graph)))?;
    let bytes = rotini_wire::encode(&graph);
    if runner.handle().applicable(&bytes)?.is_empty() {
        let reason = match runner.handle().context(&engine_config(runner.engine()), &bytes) {
            Ok(_) => bail!("declined, and compiled"),
            Err(HostError::Status { status, text, .. }) if status == NOT_APPLICABLE => text,
            Err(error) => return Err(error).context("declined, and not for a reason"),
        };
        // A failure of an earlier run that the cache has recorded.
        ensure!(!reason.contains("failed to compile"), "{reason}");
        let names_one = graph
            .nodes
            .iter()
            .any(|node| reason.contains(&format!("'{}'", node.name)))
            || graph
                .tensors
                .iter()
                .any(|tensor| reason.contains(&format!("'{}'", tensor.name)));
        ensure!(names_one, "declined without the name of a node or tensor: {reason}");
        return Ok(Answer::Declined(without_names(&reason)));
    }
    let alignment = if seed.is_multiple_of(2) { 64 } else { 16 };
    let case = Case {
        name: format!("seed {seed}"),
        graph,
    };
    Ok(Answer::Right(runner.run(&case, alignment)?))
}

/// Returns a reason without the names of nodes and tensors, so that reasons of different graphs
/// compare equal.
fn without_names(reason: &str) -> String {
    // Names are between quotes: every other part.
    let parts: Vec<&str> = reason.split('\'').step_by(2).collect();
    let mut text = parts.join("_");
    while let Some(start) = text.find(" (uid") {
        let end = text[start..].find(')').map_or(text.len(), |length| start + length + 1);
        text.replace_range(start..end, "");
    }
    text
}

/// Describes the tensors and nodes of a graph, one per line.
fn described(graph: &Graph) -> String {
    let mut text = String::new();
    for (index, tensor) in graph.tensors.iter().enumerate() {
        _ = writeln!(
            text,
            "{index}: {} {} {:?} strides {:?} {:?}",
            tensor.name, tensor.dtype, tensor.dims, tensor.strides, tensor.kind
        );
    }
    for node in &graph.nodes {
        _ = writeln!(text, "{} in {}: {:?}", node.name, node.compute, node.op);
    }
    text
}
