//! The tuning of one graph: verifies and measures its candidates, and writes the record.

use super::predicted;
use super::setup::Setup;
use crate::args::Tune;
use crate::progress::Progress;
use anyhow::{Context as _, Result};
use rotini_bench::race::{Raced, Rules, race, verify};
use rotini_bench::{EngineSpec, Reference, Session, results, summarise};
use rotini_cache::Key;
use rotini_emit::{Choices, emit_chosen, estimated_us, places, promising};
use rotini_graph::Graph;
use rotini_plugin::compile::{cached, tuned_keys};
use rotini_plugin::knobs::SCHEDULE;
use rotini_plugin::prepared::{Prepared, check};
use rotini_plugin::tuned::{self, Clock, FORMAT, Outcome, Record, Time, Tried};
use rotini_workloads::Workload;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The outcome for one graph.
pub(super) enum Found {
    /// It was measured before.
    Known(Record),
    /// It was measured now.
    Measured(Record),
    /// Another process is measuring it.
    Busy(String),
    /// The engine declines it.
    Declined {
        /// The graph.
        graph: String,
        /// The reason.
        reason: String,
    },
}

impl Found {
    pub(super) fn record(&self) -> Option<&Record> {
        match self {
            Found::Known(record) | Found::Measured(record) => Some(record),
            Found::Busy(_) | Found::Declined { .. } => None,
        }
    }

    /// Returns true if a candidate computed wrong results.
    pub(super) fn is_bad(&self) -> bool {
        let is_wrong = |tried: &Tried| matches!(tried.outcome, Outcome::Wrong(_));
        self.record().is_some_and(|record| record.tried.iter().any(is_wrong))
    }
}

/// The tuning of one graph.
pub(super) struct Contest<'a> {
    setup: &'a Setup,
    args: &'a Tune,
    workload: &'a Workload,
}

/// A supported graph, with the key of its record.
struct Problem {
    graph: Graph,
    prepared: Prepared,
    key: Key,
}

impl<'a> Contest<'a> {
    pub(super) fn new(setup: &'a Setup, args: &'a Tune, workload: &'a Workload) -> Self {
        Contest { setup, args, workload }
    }

    /// Measures the graph, unless it was measured before or another process is measuring it.
    pub(super) fn run(&self, progress: &Progress) -> Result<Found> {
        let Setup { runtime, device, .. } = self.setup;
        let graph = self.workload.name.clone();
        let prepared = match check(&self.workload.graph, &device.compiled_for().target) {
            Ok(prepared) => prepared,
            Err(error) => {
                let reason = error.to_string();
                return Ok(Found::Declined { graph, reason });
            }
        };
        let keys = tuned_keys(runtime, &prepared.graph, device.as_ref())?;
        let key = *keys.first().context("no compiler is known")?;
        let problem = Problem {
            graph: rotini_wire::decode(&self.workload.graph)?,
            prepared,
            key,
        };
        let known = |record: &Record| record.winner.is_some() && !self.args.again;
        if let Some(record) = tuned::read(runtime, &key).filter(known) {
            return Ok(Found::Known(record));
        }
        let Ok(_lock) = runtime.cache.lock_note(&key) else {
            return Ok(Found::Busy(graph));
        };
        // Another process may have measured the graph just before the lock was taken.
        let earlier = tuned::read(runtime, &key);
        if let Some(record) = earlier.clone().filter(known) {
            return Ok(Found::Known(record));
        }
        let record = self.begin(&problem, earlier)?;
        self.measure(&problem, record, progress).map(Found::Measured)
    }

    /// Returns a new record with the candidates to try. Wrong candidates of an earlier record stay
    /// wrong; those that failed are tried again only with `--again`.
    fn begin(&self, problem: &Problem, earlier: Option<Record>) -> Result<Record> {
        let Setup { runtime, device, .. } = self.setup;
        let (normal, target) = (&problem.prepared.graph, &device.compiled_for().target);
        let places = places(normal, target, &Choices::default())?;
        let before: HashMap<String, Outcome> = earlier
            .into_iter()
            .flat_map(|record| record.tried)
            .map(|tried| (tried.choices, tried.outcome))
            .collect();
        let mut texts: HashMap<(String, Vec<String>), String> = HashMap::new();
        let mut tried = Vec::new();
        for choices in promising(&places, usize::from(self.args.most)) {
            let text = choices.to_string();
            let outcome = match before.get(&text) {
                Some(wrong @ Outcome::Wrong(_)) => wrong.clone(),
                Some(failed @ Outcome::Failed(_)) if !self.args.again => failed.clone(),
                _ => match emit_chosen(normal, target, &choices) {
                    Ok(emitted) => match texts.get(&(emitted.mlir.clone(), emitted.flags.clone())) {
                        Some(same) => Outcome::Same(same.clone()),
                        None => {
                            texts.insert((emitted.mlir, emitted.flags), text.clone());
                            Outcome::Untried
                        }
                    },
                    Err(error) => Outcome::Failed(error.to_string()),
                },
            };
            tried.push(Tried {
                estimated_us: estimated_us(&places, &choices),
                choices: text,
                outcome,
                time: None,
            });
        }
        let flops = summarise(&problem.graph).flops;
        let compiler = runtime.builds()?.first().cloned().unwrap_or_default();
        Ok(Record {
            format: FORMAT,
            graph: self.workload.name.clone(),
            target: target.to_string(),
            device: self.setup.measured_on(),
            compiler,
            rotini: env!("CARGO_PKG_VERSION").to_owned(),
            changed_unix: 0,
            clock: Clock::Measured,
            by_reference: flops.unwrap_or(0.0) <= self.args.judge * 1e9,
            flops,
            is_extrapolated: false,
            tried,
            winner: None,
        })
    }

    /// Verifies and measures the candidates, and stores the record after each step.
    fn measure(&self, problem: &Problem, mut record: Record, progress: &Progress) -> Result<Record> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let file = directory.path().join("graph");
        std::fs::write(&file, &self.workload.graph)?;
        let specs: Vec<EngineSpec> = record.tried.iter().map(|tried| self.spec(&tried.choices)).collect();
        let mut right = Vec::new();
        let mut codes: Vec<(Option<blake3::Hash>, usize)> = Vec::new();
        let mut sessions = Vec::new();
        let inputs = rotini_reference::fill_all(&problem.graph, self.args.seed)?;
        progress.stage("computing the reference");
        let mut reference = record.by_reference.then(|| Reference::new(&problem.graph, &inputs));
        let unknown = Reference::unknown(&problem.graph, &inputs);
        let count = record.tried.len();
        for (index, spec) in specs.iter().enumerate() {
            if record.tried[index].outcome != Outcome::Untried {
                continue;
            }
            progress.stage(format!("candidate {} of {count}: {}", index + 1, spec.label));
            let home = directory.path().join(format!("candidate-{index}"));
            if index > 0 && reference.is_none() {
                // The usual form has no results that could verify the others.
                record.by_reference = true;
                reference = Some(Reference::new(&problem.graph, &inputs));
            }
            let judge = reference.as_ref().unwrap_or(&unknown);
            let outcome = match Session::start(&self.setup.launch, spec, home)? {
                Err(outcome) => Err(outcome),
                Ok(mut session) => {
                    let verified = verify(&mut session, (&file, &problem.graph), judge, self.args.seed)?;
                    verified.map(|bytes| (session, bytes))
                }
            };
            record.tried[index].outcome = match outcome {
                Ok((session, bytes)) => {
                    if session.about().emulated {
                        record.clock = Clock::Predicted;
                    }
                    if reference.is_none() {
                        let results = rotini_bench::buffers(&problem.graph, &bytes);
                        reference = Some(Reference::of_results(&problem.graph, &inputs, results));
                    }
                    let code = self.code(problem, &spec.label);
                    match codes.iter().find(|(known, _)| code.is_some() && *known == code) {
                        // Different choices can give the same code, e.g. by a flag without effect.
                        Some((_, same)) => Outcome::Same(record.tried[*same].choices.clone()),
                        None => {
                            codes.push((code, index));
                            right.push(index);
                            sessions.push(session);
                            Outcome::Right
                        }
                    }
                }
                Err(results::Outcome::Wrong(reason)) => Outcome::Wrong(reason),
                Err(outcome) => Outcome::Failed(outcome.reason().unwrap_or_default().to_owned()),
            };
            self.store(&problem.key, &mut record)?;
        }
        let times = if record.clock == Clock::Predicted {
            drop(sessions);
            let predict = |index: &usize| {
                progress.stage(format!("predicting {}", record.tried[*index].choices));
                predicted::time(self.setup, &file, &record.tried[*index].choices)
            };
            let all: Vec<_> = right.iter().map(predict).collect();
            let is_outside = all.iter().flatten().any(|one| one.is_extrapolated);
            record.is_extrapolated = is_outside || !rotini_inspect::is_like_the_measured(&problem.graph);
            all.into_iter().map(|one| one.map(|one| one.time)).collect::<Vec<_>>()
        } else {
            let rules = Rules {
                seed: self.args.seed,
                turn: f64::from(self.args.turn) * 1e3,
                rotate: Setup::rotate(),
                most_rounds: self.args.turns,
            };
            let show = |round: u32, left: usize| {
                progress.stage(format!(
                    "round {} of at most {}: {left} candidates",
                    round + 1,
                    rules.most_rounds
                ));
            };
            let time = |Raced { times, is_beaten }: Raced| Time {
                median_us: times.median,
                interval_us: [times.low, times.high],
                turns: u32::try_from(times.samples.len()).unwrap_or(u32::MAX),
                is_beaten,
            };
            let failed = |outcome: results::Outcome| outcome.reason().unwrap_or_default().to_owned();
            let raced = race(&mut sessions, &rules, show)?;
            raced.into_iter().map(|raced| raced.map(time).map_err(failed)).collect()
        };
        for (index, time) in right.into_iter().zip(times) {
            match time {
                Ok(time) => record.tried[index].time = Some(time),
                Err(reason) => record.tried[index].outcome = Outcome::Failed(reason),
            }
        }
        record.winner = record.best().map(|best| best.choices.clone());
        self.store(&problem.key, &mut record)?;
        Ok(record)
    }

    /// Returns the hash of a candidate's compiled code, if the cache has it.
    fn code(&self, problem: &Problem, choices: &str) -> Option<blake3::Hash> {
        let Setup { runtime, device, .. } = self.setup;
        let choices = Choices::parse(choices).ok()?;
        let entry = cached(runtime, &problem.prepared.graph, device.compiled_for(), &choices)?;
        Some(blake3::hash(&entry.payload))
    }

    /// Returns the settings for running the plugin with these choices and with the cache that
    /// programs use.
    fn spec(&self, choices: &str) -> EngineSpec {
        EngineSpec {
            label: choices.to_owned(),
            plugin: self.setup.plugin.clone(),
            settings: vec![(
                "ROTINI_CACHE_DIR".to_owned(),
                self.setup.cache.to_string_lossy().into_owned(),
            )],
            knobs: vec![(SCHEDULE.to_owned(), choices.to_owned())],
        }
    }

    fn store(&self, key: &Key, record: &mut Record) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        record.changed_unix = now.map_or(0, |now| now.as_secs());
        let is_stored = tuned::store(&self.setup.runtime, key, record)?;
        anyhow::ensure!(is_stored, "{} cannot be written", self.setup.cache.display());
        Ok(())
    }
}
