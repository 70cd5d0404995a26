//! Runs MLIR's own verifier over all emitted modules.
//!
//! Each case of the conformance suite and each of 10,000 random graphs is lowered for each target
//! of [`TARGETS`]. MLIR parses and verifies each module. The program lists the modules that MLIR
//! refuses, and then exits with 1. Before that, modules with one fault each must be refused: see
//! [`faults`].
//!
//! `ROTINI_CASE` selects the cases with a text in their names, and no random graphs. `ROTINI_SEED`
//! and `ROTINI_GRAPHS` select other random graphs.

mod faults;
mod reason;
mod shell;
mod verifier;

use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use reason::Reason;
use rotini_emit::{EmitError, Target, emit};
use rotini_plugin::prepared::check;
use rotini_tests::EMITTED_FOR as TARGETS;
use rotini_tests::cases::{self, Case};
use rotini_tests::random::{Settings, recipe};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use verifier::Verifier;

/// Number of random graphs, from the seed 0 on; `ROTINI_GRAPHS` and `ROTINI_SEED` override these.
const RANDOM: u64 = 10_000;

/// Maximum number of different refusal messages that are printed.
const LISTED: usize = 40;

/// Progress is printed every this many graphs.
const STEP: u64 = 2000;

thread_local! {
    static VERIFIER: RefCell<Verifier> = RefCell::new(Verifier::new());
}

/// A graph, built only when it is processed.
enum Work {
    Case(Box<Case>),
    Seed(u64),
}

/// Counts of verified graphs.
#[derive(Default)]
struct Outcome {
    /// Number of emitted modules.
    modules: u64,
    /// Number of modules that differ from the graph's modules for other targets.
    verified: u64,
    /// Total length of these modules in bytes.
    bytes: u64,
    /// Number of pairs of graph and target without a module.
    declined: u64,
    refused: Vec<Refusal>,
}

/// A module that MLIR refuses.
struct Refusal {
    graph: String,
    target: &'static str,
    reason: Reason,
}

impl Outcome {
    fn and(mut self, other: Outcome) -> Outcome {
        self.modules += other.modules;
        self.verified += other.verified;
        self.bytes += other.bytes;
        self.declined += other.declined;
        self.refused.extend(other.refused);
        self
    }
}

/// Returns the module of a graph; `None` if it is declined.
fn lowered(bytes: &[u8], target: &Target) -> Result<Option<String>, Reason> {
    let Ok(prepared) = check(bytes, target) else {
        return Ok(None);
    };
    match emit(&prepared.graph, target) {
        Ok(emitted) => Ok(Some(emitted.mlir)),
        Err(EmitError::Unsupported(_)) => Ok(None),
        Err(error) => Err(Reason {
            what: error.to_string(),
            place: "not emitted".to_owned(),
        }),
    }
}

/// Verifies a graph's modules for all targets.
fn verify(work: Work, targets: &[Target]) -> Outcome {
    let (name, graph) = match work {
        Work::Case(case) => (case.name.clone(), case.graph),
        Work::Seed(seed) => (format!("seed {seed}"), recipe(seed).graph()),
    };
    let bytes = rotini_wire::encode(&graph);
    let mut outcome = Outcome::default();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (target, target_name) in targets.iter().zip(TARGETS) {
        let result = lowered(&bytes, target).and_then(|module| {
            let Some(module) = module else {
                outcome.declined += 1;
                return Ok(());
            };
            outcome.modules += 1;
            if seen.contains(&module) {
                return Ok(());
            }
            outcome.verified += 1;
            outcome.bytes += module.len() as u64;
            let result = VERIFIER.with_borrow_mut(|verifier| verifier.verify(&module));
            seen.insert(module);
            result
        });
        if let Err(reason) = result {
            outcome.refused.push(Refusal {
                graph: name.clone(),
                target: target_name,
                reason,
            });
        }
    }
    outcome
}

/// Returns all graphs, or those that the environment selects.
fn all_work() -> Result<Vec<Work>> {
    let only = std::env::var("ROTINI_CASE").unwrap_or_default();
    let cases = cases::all_graphs()?;
    let chosen = cases.into_iter().filter(|case| case.name.contains(&only));
    let mut work: Vec<Work> = chosen.map(|case| Work::Case(Box::new(case))).collect();
    if only.is_empty() {
        let Settings { seed, count } = Settings::from_environment([RANDOM, RANDOM]);
        work.extend((seed..seed + count).map(Work::Seed));
    }
    ensure!(!work.is_empty(), "ROTINI_CASE={only} is in no case's name");
    Ok(work)
}

/// Prints the refusals: for each message the number of modules, and the first of them.
fn list(refused: &[Refusal]) {
    let mut messages: BTreeMap<&str, Vec<&Refusal>> = BTreeMap::new();
    for refusal in refused {
        messages.entry(&refusal.reason.what).or_default().push(refusal);
    }
    for (message, modules) in messages.iter().take(LISTED) {
        println!("{} modules: {message}", modules.len());
        if let Some(Refusal { graph, target, reason }) = modules.first() {
            println!("    {graph}, {target}, {}", reason.place);
        }
    }
    if messages.len() > LISTED {
        println!("and {} other messages", messages.len() - LISTED);
    }
}

fn main() -> Result<ExitCode> {
    let start = Instant::now();
    let faults = faults::are_refused()?;
    let targets = TARGETS.map(|name| Target::parse(name).context(name));
    let targets = targets.into_iter().collect::<Result<Vec<_>>>()?;
    let work = all_work()?;
    let graphs = work.len();
    let done = AtomicU64::new(0);
    let outcomes = work.into_par_iter().map(|work| {
        let outcome = verify(work, &targets);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(STEP) {
            eprintln!("{done} of {graphs} graphs, {} s", start.elapsed().as_secs());
        }
        outcome
    });
    let outcome = outcomes.reduce(Outcome::default, Outcome::and);
    list(&outcome.refused);
    println!(
        "{faults} faults are refused. {graphs} graphs on {} targets: {} modules, of which {} differ ({} MB) and were \
         verified; {} times declined; {} refused; {} s",
        TARGETS.len(),
        outcome.modules,
        outcome.verified,
        outcome.bytes / 1_000_000,
        outcome.declined,
        outcome.refused.len(),
        start.elapsed().as_secs()
    );
    ensure!(outcome.verified > 0, "nothing was emitted");
    Ok(if outcome.refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
