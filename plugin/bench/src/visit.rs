//! One visit of one graph: contexts, turns, and what is judged.

use crate::job::Job;
use crate::judge::{Judgement, Reference};
use crate::plan::{Plan, RunError};
use crate::protocol::{Answer, Request, Way, split};
use crate::results::{Error, Measurement, Outcome};
use crate::runner::Runner;
use crate::session::unexpected;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

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
            let first = self.job.first.clone();
            self.judge(&ready, &first);
        }
        for samples in self.job.hot.iter_mut().chain(&mut self.job.rotating) {
            samples.push(Vec::new());
        }
        for round in 0..self.plan.rounds {
            self.tell(&format!("round {} of {}", round + 1, self.plan.rounds));
            ready.shuffle(rng);
            for &index in &ready {
                if self.takes_part(index)
                    && let Err(outcome) = self.turn(index, round == 0)?
                {
                    self.ends(index, outcome);
                }
            }
        }
        if self.is_last {
            let mut last = vec![Vec::new(); self.engines.len()];
            let mut changed = Vec::new();
            for &index in &ready {
                if self.takes_part(index) {
                    match self.conclude(index)? {
                        Ok(bytes) if self.job.first.get(index) != Some(&bytes) => {
                            changed.push(index);
                            if let Some(place) = last.get_mut(index) {
                                *place = bytes;
                            }
                        }
                        Ok(_) => (),
                        Err(outcome) => self.ends(index, outcome),
                    }
                }
            }
            // Something else came out than the first time.
            self.judge(&changed, &last);
        }
        for index in ready {
            let session = self.engines.get_mut(index).and_then(|engine| engine.session.as_mut());
            if let Some(session) = session.filter(|session| session.is_running()) {
                let _ = session.ask(&Request::Drop)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, what: &str) {
        (self.stage)(&self.job.workload.name, what);
    }

    fn takes_part(&self, index: usize) -> bool {
        let measurement = self.job.measurements.get(index);
        measurement.is_some_and(|m| m.outcome.times_count())
    }

    fn ends(&mut self, index: usize, outcome: Outcome) {
        if let Some(measurement) = self.job.measurements.get_mut(index) {
            measurement.outcome = outcome;
        }
    }

    /// Makes the context of an engine, and executes once.
    fn prepare(&mut self, index: usize) -> Result<Result<(), Outcome>, RunError> {
        let (Some(engine), Some(measurement)) = (self.engines.get_mut(index), self.job.measurements.get_mut(index))
        else {
            return Ok(Err(Outcome::Failed("there is no such engine".to_owned())));
        };
        if !measurement.outcome.times_count() {
            return Ok(Err(measurement.outcome.clone()));
        }
        (self.stage)(
            &self.job.workload.name,
            &format!("{} creates a context", engine.facts.label),
        );
        let session = match engine.session() {
            Ok(session) => session,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let (microseconds, workspace) = match session.create(&self.job.file)? {
            Ok(created) => created,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let (time, bytes) = match session.execute_once(self.plan.seed, None, Way::Called)? {
            Ok(executed) => executed,
            Err(outcome) => return Ok(Err(outcome)),
        };
        if self.is_first {
            measurement.create_cold = Some(microseconds);
            measurement.workspace = Some(workspace);
            measurement.first = Some(time);
            measurement.create_warm = engine.create_warm(&self.job.file)?;
            if let Some(first) = self.job.first.get_mut(index) {
                *first = bytes;
            }
        }
        Ok(Ok(()))
    }

    /// One turn of an engine. Only the first of a visit has buffers that take turns as well: to
    /// fill them takes longer than to use them where a cache has hundreds of megabytes.
    fn turn(&mut self, index: usize, is_first: bool) -> Result<Result<(), Outcome>, RunError> {
        let Some(session) = self.engines.get_mut(index).and_then(|engine| engine.session.as_mut()) else {
            return Ok(Ok(()));
        };
        let round = |rotate| Request::Round {
            seed: self.plan.seed,
            values: self.plan.values,
            rotate,
            microseconds: self.plan.turn,
        };
        let kinds = [(0, &mut self.job.hot), (self.rotate, &mut self.job.rotating)];
        for (kind, (rotate, samples)) in kinds.into_iter().enumerate() {
            if kind == 1 && (rotate == 0 || !is_first) {
                continue;
            }
            match session.ask(&round(rotate))? {
                Ok(Answer::Round {
                    microseconds,
                    captured,
                    load,
                }) => {
                    if let Some(visit) = samples.get_mut(index).and_then(|visits| visits.last_mut()) {
                        visit.push(microseconds);
                    }
                    if let Some(measurement) = self.job.measurements.get_mut(index) {
                        // One round that was not captured is enough to say so.
                        measurement.captured = captured.map(|now| now && measurement.captured != Some(false));
                        if kind == 0 {
                            measurement.load = load.or(measurement.load);
                        }
                    }
                }
                Ok(_) => return Ok(Err(unexpected())),
                Err(outcome) => return Ok(Err(outcome)),
            }
        }
        Ok(Ok(()))
    }

    /// Times single calls, and executes once more: the bytes of all buffers.
    fn conclude(&mut self, index: usize) -> Result<Result<Vec<u8>, Outcome>, RunError> {
        /// The maximum number of calls.
        const MOST_CALLS: f64 = 1000.0;
        /// The maximum time of all calls, in microseconds.
        const LONGEST: f64 = 1e6;
        let (Some(engine), Some(measurement)) = (self.engines.get_mut(index), self.job.measurements.get_mut(index))
        else {
            return Ok(Err(Outcome::Failed("there is no such engine".to_owned())));
        };
        let session = match engine.session() {
            Ok(session) => session,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let time = self
            .job
            .hot
            .get(index)
            .and_then(|visits| visits.last()?.last())
            .copied();
        // As long as some turns, if these are short.
        let all = (10.0 * self.plan.turn).min(LONGEST);
        let calls = (all / time.unwrap_or(1.0).max(0.01)).clamp(1.0, MOST_CALLS);
        let request = Request::Calls {
            seed: self.plan.seed,
            calls: calls as u32,
        };
        match session.ask(&request)? {
            Ok(Answer::Calls { p50, p99 }) => {
                measurement.host_p50 = Some(p50);
                // With fewer calls, the 99th percentile is the longest.
                measurement.host_p99 = (calls >= 100.0).then_some(p99);
            }
            Ok(_) => return Ok(Err(unexpected())),
            Err(outcome) => return Ok(Err(outcome)),
        }
        let executed = session.execute_once(self.plan.seed, None, Way::Called)?;
        Ok(executed.map(|(_, bytes)| bytes))
    }

    /// Compares the results of engines with the reference, or with the first results of one engine
    /// where the reference would take too long.
    fn judge(&mut self, engines: &[usize], results: &[Vec<u8>]) {
        if engines.is_empty() {
            return;
        }
        self.tell("the reference is computed");
        let (graph, seed) = (&self.job.graph, self.plan.seed);
        let inputs = match rotini_reference::fill_all(graph, seed) {
            Ok(inputs) => inputs,
            Err(error) => {
                for &index in engines {
                    let outcome = Outcome::Unjudged(error.to_string());
                    set(&mut self.job.measurements, index, outcome, &[]);
                }
                return;
            }
        };
        let buffers = |all: &[Vec<u8>], index: usize| all.get(index).map(|bytes| split(graph, bytes));
        if self.job.summary.flops.unwrap_or(0.0) > self.plan.most_judged && self.job.peer.is_none() {
            self.job.peer = engines.first().copied();
        }
        let peer = self.job.peer;
        let reference = match peer {
            Some(peer) => {
                let first = buffers(&self.job.first, peer).unwrap_or_default();
                Reference::of_results(graph, &inputs, first)
            }
            None => Reference::new(graph, &inputs),
        };
        let mut judged = Vec::new();
        for &index in engines {
            let got = buffers(results, index).unwrap_or_default();
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

/// What a judgement means for an engine, where `peer` is the engine that took the reference's
/// place.
fn outcome(judgement: Judgement, peer: Option<usize>, index: usize, engines: &[Runner<'_>]) -> Outcome {
    const LARGE: &str = "the reference would take too long";
    let peer_name = peer
        .and_then(|peer| engines.get(peer))
        .map(|engine| engine.facts.label.as_str());
    match (judgement, peer_name) {
        (Judgement::Right, None) => Outcome::Right,
        (Judgement::Wrong(reason), None) => Outcome::Wrong(reason),
        (Judgement::Unchecked(reason), _) => Outcome::Unjudged(reason),
        (Judgement::Right, Some(_)) if peer == Some(index) => Outcome::Unjudged(LARGE.to_owned()),
        (Judgement::Right, Some(name)) => Outcome::Unjudged(format!("{LARGE}; it agrees with {name}")),
        (Judgement::Wrong(reason), Some(name)) => Outcome::Wrong(format!(
            "{LARGE}, and it does not agree with the first results of {name}: {reason}"
        )),
    }
}

fn set(measurements: &mut [Measurement], index: usize, outcome: Outcome, errors: &[Error]) {
    if let Some(measurement) = measurements.get_mut(index) {
        measurement.outcome = outcome;
        measurement.error = errors.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)).cloned();
    }
}
