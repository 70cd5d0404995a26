//! One visit of one graph: contexts, turns, and what is judged.

use crate::job::Job;
use crate::judge::{Judgement, OutputError, Reference};
use crate::plan::{Plan, RunError};
use crate::protocol::{Answer, Request, split};
use crate::results::{Error, Measurement, Outcome};
use crate::runner::Runner;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::path::Path;

/// One visit of one graph.
pub(crate) struct Visit<'a, 'b> {
    pub(crate) plan: &'b Plan,
    pub(crate) job: &'b mut Job<'a>,
    pub(crate) engines: &'b mut [Runner<'a>],
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// Bytes of buffers that take turns; 0: none.
    pub(crate) rotate: u64,
    pub(crate) stage: &'b mut dyn FnMut(&str, &str),
}

impl Visit<'_, '_> {
    pub(crate) fn run(&mut self, rng: &mut ChaCha8Rng) -> Result<(), RunError> {
        let mut ready = Vec::new();
        for index in 0..self.engines.len() {
            match self.prepare(index)? {
                Ok(()) => ready.push(index),
                Err(outcome) => self.ends(index, outcome),
            }
        }
        if self.is_first {
            self.judge(&ready);
        }
        // Also after wrong results: they are told, and cost little.
        for round in 0..self.plan.rounds {
            self.tell(&format!("round {} of {}", round + 1, self.plan.rounds));
            ready.shuffle(rng);
            for &index in &ready {
                if self.takes_part(index)
                    && let Err(outcome) = self.turn(index)?
                {
                    self.ends(index, outcome);
                }
            }
        }
        if self.is_last {
            let mut again = Vec::new();
            for &index in &ready {
                if self.takes_part(index) {
                    match self.conclude(index)? {
                        Ok(true) => (),
                        // Something else came out than the first time.
                        Ok(false) => again.push(index),
                        Err(outcome) => self.ends(index, outcome),
                    }
                }
            }
            self.judge(&again);
        }
        for index in ready {
            if let Some(engine) = self.engines.get_mut(index)
                && engine.process.is_some()
            {
                let _ = engine.ask(&Request::Drop)?;
            }
        }
        Ok(())
    }

    pub(crate) fn tell(&mut self, what: &str) {
        (self.stage)(&self.job.workload.name, what);
    }

    pub(crate) fn takes_part(&self, index: usize) -> bool {
        let measurement = self.job.measurements.get(index);
        measurement.is_some_and(|m| m.outcome.times_count())
    }

    pub(crate) fn ends(&mut self, index: usize, outcome: Outcome) {
        if let Some(measurement) = self.job.measurements.get_mut(index) {
            measurement.outcome = outcome;
        }
    }

    /// Makes the context of an engine, and executes once.
    pub(crate) fn prepare(&mut self, index: usize) -> Result<Result<(), Outcome>, RunError> {
        let (Some(engine), Some(measurement)) = (self.engines.get_mut(index), self.job.measurements.get_mut(index))
        else {
            return Ok(Err(Outcome::Failed("there is no such engine".to_owned())));
        };
        if let Some(reason) = &engine.facts.unusable {
            return Ok(Err(Outcome::Failed(reason.clone())));
        }
        if !measurement.outcome.times_count() {
            return Ok(Err(measurement.outcome.clone()));
        }
        (self.stage)(
            &self.job.workload.name,
            &format!("{} creates a context", engine.spec.label),
        );
        let create = Request::Create {
            graph: self.job.file.clone(),
            engine: engine.id,
        };
        let (microseconds, workspace) = match engine.ask(&create)? {
            Ok(Answer::Created {
                microseconds,
                workspace,
            }) => (microseconds, workspace),
            Ok(_) => return Ok(Err(Outcome::Failed("its process answers something else".to_owned()))),
            Err(outcome) => return Ok(Err(outcome)),
        };
        if self.is_first {
            measurement.create_cold = Some(microseconds);
            measurement.workspace = Some(workspace);
            measurement.create_warm = engine.create_warm(&self.job.file)?;
        }
        let (time, bytes) = match execute(engine, &self.job.file, self.plan.seed)? {
            Ok(done) => done,
            Err(outcome) => return Ok(Err(outcome)),
        };
        if self.is_first {
            measurement.first = Some(time);
            if let Some(results) = self.job.results.get_mut(index) {
                *results = bytes;
            }
        }
        Ok(Ok(()))
    }

    /// One turn of an engine.
    pub(crate) fn turn(&mut self, index: usize) -> Result<Result<(), Outcome>, RunError> {
        let Some(engine) = self.engines.get_mut(index) else {
            return Ok(Ok(()));
        };
        let round = |rotate| Request::Round {
            seed: self.plan.seed,
            rotate,
            microseconds: self.plan.turn,
        };
        let kinds = [(0, &mut self.job.hot), (self.rotate, &mut self.job.rotating)];
        for (kind, (rotate, samples)) in kinds.into_iter().enumerate() {
            if kind == 1 && rotate == 0 {
                continue;
            }
            match engine.ask(&round(rotate))? {
                Ok(Answer::Round { microseconds }) => {
                    if let Some(samples) = samples.get_mut(index) {
                        samples.push(microseconds);
                    }
                }
                Ok(_) => return Ok(Err(Outcome::Failed("its process answers something else".to_owned()))),
                Err(outcome) => return Ok(Err(outcome)),
            }
        }
        Ok(Ok(()))
    }

    /// Times single calls, and executes once more: whether the results are those of the first time.
    pub(crate) fn conclude(&mut self, index: usize) -> Result<Result<bool, Outcome>, RunError> {
        /// Of calls, at most.
        const MOST_CALLS: f64 = 1000.0;
        let (Some(engine), Some(measurement)) = (self.engines.get_mut(index), self.job.measurements.get_mut(index))
        else {
            return Ok(Ok(true));
        };
        let time = self.job.hot.get(index).and_then(|samples| samples.last()).copied();
        // As long as some turns.
        let calls = (10.0 * self.plan.turn / time.unwrap_or(1.0).max(0.01)).clamp(1.0, MOST_CALLS);
        let request = Request::Calls {
            seed: self.plan.seed,
            calls: calls as u32,
        };
        match engine.ask(&request)? {
            Ok(Answer::Calls { p50, p99 }) => {
                measurement.host_p50 = Some(p50);
                // Of fewer calls, the 99th percentile is the longest.
                measurement.host_p99 = (calls >= 100.0).then_some(p99);
            }
            Ok(_) => return Ok(Err(Outcome::Failed("its process answers something else".to_owned()))),
            Err(outcome) => return Ok(Err(outcome)),
        }
        let bytes = match execute(engine, &self.job.file, self.plan.seed)? {
            Ok((_, bytes)) => bytes,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let Some(first) = self.job.results.get_mut(index) else {
            return Ok(Ok(true));
        };
        let is_same = *first == bytes;
        *first = bytes;
        Ok(Ok(is_same))
    }

    /// Holds the results of engines against the reference, or against each other where that takes too long.
    pub(crate) fn judge(&mut self, engines: &[usize]) {
        if engines.is_empty() {
            return;
        }
        self.tell("the reference is computed");
        let (graph, seed) = (&self.job.graph, self.plan.seed);
        let inputs = match rotini_reference::fill_all(graph, seed) {
            Ok(inputs) => inputs,
            Err(error) => {
                for &index in engines {
                    set(
                        &mut self.job.measurements,
                        index,
                        Outcome::Unjudged(error.to_string()),
                        &[],
                    );
                }
                return;
            }
        };
        let is_large = self.job.summary.flops.unwrap_or(0.0) > self.plan.most_judged;
        let buffers = |index: usize| {
            self.job
                .results
                .get(index)
                .map(|bytes| split(graph, bytes))
                .unwrap_or_default()
        };
        let (reference, peer) = if is_large {
            let peer = engines.first().copied().unwrap_or_default();
            (Reference::of_results(graph, &inputs, buffers(peer)), Some(peer))
        } else {
            (Reference::new(graph, &inputs), None)
        };
        let mut judged = Vec::new();
        for &index in engines {
            let got = buffers(index);
            let (outcome, errors) = match reference.judge(|uid| got.get(&uid).map(Vec::as_slice)) {
                Ok((judgement, errors)) => (outcome(judgement, peer, index, self.engines), errors),
                Err(error) => (Outcome::Unjudged(error.to_string()), Vec::new()),
            };
            judged.push((index, outcome, errors));
        }
        for (index, outcome, errors) in judged {
            set(&mut self.job.measurements, index, outcome, &errors);
        }
    }
}

/// What a judgement means for an engine, where `peer` is the engine that took the reference's place.
pub(crate) fn outcome(judgement: Judgement, peer: Option<usize>, index: usize, engines: &[Runner<'_>]) -> Outcome {
    const LARGE: &str = "the reference would take too long";
    let peer_name = peer
        .and_then(|peer| engines.get(peer))
        .map(|engine| engine.spec.label.as_str());
    match (judgement, peer_name) {
        (Judgement::Right, None) => Outcome::Right,
        (Judgement::Wrong(reason), None) => Outcome::Wrong(reason),
        (Judgement::Unchecked(reason), _) => Outcome::Unjudged(reason),
        (_, Some(_)) if peer == Some(index) => Outcome::Unjudged(LARGE.to_owned()),
        (Judgement::Right, Some(name)) => Outcome::Unjudged(format!("{LARGE}; it agrees with {name}")),
        (Judgement::Wrong(reason), Some(name)) => {
            Outcome::Wrong(format!("{LARGE}, and it does not agree with {name}: {reason}"))
        }
    }
}

pub(crate) fn set(measurements: &mut [Measurement], index: usize, outcome: Outcome, errors: &[OutputError]) {
    if let Some(measurement) = measurements.get_mut(index) {
        measurement.outcome = outcome;
        let worst = errors.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        measurement.error = worst.map(|worst| Error {
            tensor: worst.tensor.clone(),
            max_absolute: worst.max_absolute,
            ratio: worst.ratio,
        });
    }
}

/// Executes once: the time and the bytes of all buffers.
pub(crate) fn execute(
    engine: &mut Runner<'_>,
    file: &Path,
    seed: u64,
) -> Result<Result<(f64, Vec<u8>), Outcome>, RunError> {
    let results = file.with_extension("results");
    let request = Request::Execute {
        seed,
        inputs: None,
        results: results.clone(),
    };
    Ok(match engine.ask(&request)? {
        Ok(Answer::Executed { microseconds }) => Ok((microseconds, std::fs::read(&results)?)),
        Ok(_) => Err(Outcome::Failed("its process answers something else".to_owned())),
        Err(outcome) => Err(outcome),
    })
}
