//! A run: every graph on every engine, in turns.
//!
//! Each graph is visited several times, so that its samples lie all over the run: what a machine does in one minute and not in the next
//! is in the intervals. In a visit, each engine makes its context anew, and the engines take turns in an order that chance decides.
//!
//! | Visit | What happens besides |
//! |---|---|
//! | the first | cold and warm creation, first execution, results held against the reference |
//! | the last | times of single calls, results once more |

use crate::client::{EngineSpec, Launch, LaunchError, Process};
use crate::judge::{Judgement, OutputError, Reference};
use crate::machine::machine;
use crate::protocol::{Answer, Request, contents};
use crate::results::{Comparison, Engine, Error, Measurement, Outcome, Results, Row, VERSION};
use crate::statistics::{interval, times};
use crate::summary::{Summary, summarise};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use rotini_graph::Graph;
use rotini_reference::Buffers;
use rotini_workloads::Workload;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graphs.
    pub workloads: Vec<Workload>,
    /// The engines. The others are compared with the first.
    pub engines: Vec<EngineSpec>,
    /// How their processes are started.
    pub launch: Launch,
    /// The seed of the inputs and of the order of turns.
    pub seed: u64,
    /// How often each graph is visited.
    pub visits: u32,
    /// Turns of each engine in a visit.
    pub rounds: u32,
    /// How long one turn takes, in microseconds. 0: one execution.
    pub turn: f64,
    /// Whether buffers that do not fit into the last cache are measured too.
    pub rotate: bool,
    /// The most operations that the reference is asked for: it takes about a second for a hundred million.
    pub most_judged: f64,
    /// The arguments that repeat the run.
    pub command: Vec<String>,
}

/// Who watches a run.
pub trait Observer {
    /// The machine and the engines are known.
    fn begins(&mut self, results: &Results);
    /// Something is done with a graph; `done` is the share of the run that lies behind.
    fn stage(&mut self, graph: &str, what: &str, done: f64);
    /// A row is complete.
    fn row(&mut self, row: &Row);
    /// Whether to stop early. What was measured is kept.
    fn stops(&self) -> bool {
        false
    }
}

/// What kept a run from beginning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No process of an engine.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The temporary directory.
    #[error("the temporary directory of the run: {0}")]
    Io(#[from] std::io::Error),
    /// A graph that is none.
    #[error("{name}: {source}")]
    Graph {
        /// The graph.
        name: String,
        /// Why.
        source: rotini_wire::DecodeError,
    },
}

/// Runs a plan.
///
/// # Errors
///
/// [`RunError`], before anything is measured. What goes wrong with an engine is in the results.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<Results, RunError> {
    let started = Instant::now();
    let directory = tempfile::tempdir()?;
    let mut engines = Vec::new();
    let mut device = None;
    for (index, spec) in plan.engines.iter().enumerate() {
        let home = directory.path().join(format!("engine-{index}"));
        std::fs::create_dir(&home)?;
        let mut runner = Runner::new(plan, spec, home);
        if let Some(found) = runner.introduce()? {
            device.get_or_insert(found);
        }
        engines.push(runner);
    }
    let (name, emulated) = device.unwrap_or_default();
    let mut results = Results {
        version: VERSION,
        started: now(),
        seconds: 0.0,
        command: plan.command.clone(),
        seed: plan.seed,
        machine: machine(plan.launch.device, &name, emulated, &plan.launch.cores),
        engines: engines.iter().map(|engine| engine.facts.clone()).collect(),
        rows: Vec::new(),
    };
    let mut jobs = plan
        .workloads
        .iter()
        .enumerate()
        .map(|(index, workload)| Job::new(workload, directory.path().join(format!("{index}")), plan.engines.len()))
        .collect::<Result<Vec<_>, _>>()?;
    observer.begins(&results);
    let cache = results.machine.last_cache.unwrap_or(32 << 20);
    let mut rng = ChaCha8Rng::seed_from_u64(plan.seed);
    for visit in 0..plan.visits {
        for (index, job) in jobs.iter_mut().enumerate() {
            if observer.stops() {
                break;
            }
            let done = (visit as usize * plan.workloads.len() + index) as f64
                / (plan.visits as usize * plan.workloads.len().max(1)) as f64;
            let mut visit = Visit {
                plan,
                job,
                engines: &mut engines,
                is_first: visit == 0,
                is_last: visit + 1 == plan.visits,
                // Twice as much: some caches keep what is old rather than what is new.
                rotate: if plan.rotate { 2 * cache } else { 0 },
                stage: &mut |graph, what| observer.stage(graph, what, done),
            };
            visit.run(&mut rng)?;
            if visit.is_last {
                let row = job.row();
                observer.row(&row);
                results.rows.push(row);
            }
        }
    }
    results.engines = engines.into_iter().map(|engine| engine.facts).collect();
    results.seconds = started.elapsed().as_secs_f64();
    Ok(results)
}

/// Now, as RFC 3339 has it, in UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An engine with its processes.
struct Runner<'a> {
    plan: &'a Plan,
    spec: &'a EngineSpec,
    home: PathBuf,
    facts: Engine,
    id: i64,
    /// What executes.
    process: Option<Process>,
    /// What has never made the contexts that it is asked for: they come from what the other has left on disk.
    second: Option<Process>,
}

impl<'a> Runner<'a> {
    fn new(plan: &'a Plan, spec: &'a EngineSpec, home: PathBuf) -> Self {
        Runner {
            plan,
            spec,
            home,
            facts: Engine {
                label: spec.label.clone(),
                plugin: spec
                    .plugin
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                name: String::new(),
                version: String::new(),
                api_version: String::new(),
                engine: String::new(),
                settings: spec.settings.clone(),
                unusable: None,
            },
            id: 0,
            process: None,
            second: None,
        }
    }

    /// Starts a process and loads the plugin in it.
    fn start(&self) -> Result<Result<(Process, Answer), Outcome>, RunError> {
        let mut process = Process::start(&self.plan.launch, self.spec, &self.home)?;
        let load = Request::Load {
            plugin: self.spec.plugin.clone(),
            device: self.plan.launch.device,
            library: self.plan.launch.library.clone(),
        };
        Ok(process.ask(&load).map(|answer| (process, answer)))
    }

    /// Learns who the engine is: the device and whether it is emulated. Nothing if it takes no part.
    fn introduce(&mut self) -> Result<Option<(String, bool)>, RunError> {
        match self.start()? {
            Ok((
                process,
                Answer::Loaded {
                    name,
                    version,
                    api_version,
                    engines,
                    device,
                    emulated,
                },
            )) => {
                self.facts.name = name;
                self.facts.version = version;
                self.facts.api_version = api_version;
                match engines.first() {
                    Some((id, name)) => {
                        self.id = *id;
                        self.facts.engine.clone_from(name);
                        self.process = Some(process);
                    }
                    None => self.facts.unusable = Some("the plugin has no engine".to_owned()),
                }
                Ok(Some((device, emulated)))
            }
            Ok(_) => {
                self.facts.unusable = Some("its process answers something else".to_owned());
                Ok(None)
            }
            Err(outcome) => {
                self.facts.unusable = Some(reason(&outcome).to_owned());
                Ok(None)
            }
        }
    }

    /// Asks the process that executes, starting it again if it is gone.
    fn ask(&mut self, request: &Request) -> Result<Result<Answer, Outcome>, RunError> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => match self.start()? {
                Ok((process, _)) => process,
                Err(outcome) => return Ok(Err(outcome)),
            },
        };
        let answer = process.ask(request);
        if is_alive(&answer) {
            self.process = Some(process);
        }
        Ok(answer)
    }

    /// How long another process takes to make a context that this engine has made before.
    fn create_warm(&mut self, graph: &Path) -> Result<Option<f64>, RunError> {
        let mut process = match self.second.take() {
            Some(process) => process,
            None => match self.start()? {
                Ok((process, _)) => process,
                Err(_) => return Ok(None),
            },
        };
        let answer = process.ask(&Request::Create {
            graph: graph.to_owned(),
            engine: self.id,
        });
        let dropped = process.ask(&Request::Drop);
        if is_alive(&answer) && is_alive(&dropped) {
            self.second = Some(process);
        }
        Ok(match answer {
            Ok(Answer::Created { microseconds, .. }) => Some(microseconds),
            _ => None,
        })
    }
}

fn is_alive(answer: &Result<Answer, Outcome>) -> bool {
    !matches!(answer, Err(Outcome::Crashed(_) | Outcome::Hung(_)))
}

/// Why an engine takes no part in a row.
fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Right => "",
        Outcome::Unjudged(reason)
        | Outcome::Wrong(reason)
        | Outcome::Declined(reason)
        | Outcome::Failed(reason)
        | Outcome::Crashed(reason)
        | Outcome::Hung(reason) => reason,
    }
}

/// A graph of a run, and what was measured until now.
struct Job<'a> {
    workload: &'a Workload,
    file: PathBuf,
    graph: Graph,
    summary: Summary,
    measurements: Vec<Measurement>,
    hot: Vec<Vec<f64>>,
    rotating: Vec<Vec<f64>>,
    /// The bytes that came of the first execution, by engine.
    results: Vec<Vec<u8>>,
}

impl<'a> Job<'a> {
    fn new(workload: &'a Workload, file: PathBuf, engines: usize) -> Result<Self, RunError> {
        let graph = rotini_wire::decode(&workload.graph).map_err(|source| RunError::Graph {
            name: workload.name.clone(),
            source,
        })?;
        std::fs::write(&file, &workload.graph)?;
        let measurement = Measurement {
            outcome: Outcome::Right,
            create_cold: None,
            create_warm: None,
            first: None,
            hot: None,
            rotating: None,
            host_p50: None,
            host_p99: None,
            workspace: None,
            error: None,
        };
        Ok(Job {
            summary: summarise(&graph),
            workload,
            file,
            graph,
            measurements: vec![measurement; engines],
            hot: vec![Vec::new(); engines],
            rotating: vec![Vec::new(); engines],
            results: vec![Vec::new(); engines],
        })
    }

    /// What was measured, as it is reported.
    fn row(&self) -> Row {
        let counts = |outcome: &Outcome| matches!(outcome, Outcome::Right | Outcome::Unjudged(_));
        let mut measurements = self.measurements.clone();
        for (index, measurement) in measurements.iter_mut().enumerate() {
            if counts(&measurement.outcome) {
                measurement.hot = self.hot.get(index).cloned().and_then(times);
                measurement.rotating = self.rotating.get(index).cloned().and_then(times);
            } else {
                measurement.host_p50 = None;
                measurement.host_p99 = None;
            }
        }
        let compare = |index: usize| {
            let counted = |index: usize| self.measurements.get(index).is_some_and(|m| counts(&m.outcome));
            if !counted(0) || !counted(index) {
                return None;
            }
            let (first, other) = (self.hot.first()?, self.hot.get(index)?);
            let ratios: Vec<f64> = first.iter().zip(other).map(|(first, other)| other / first).collect();
            let (ratio, low, high) = interval(&ratios)?;
            Some(Comparison {
                engine: index,
                ratio,
                low,
                high,
            })
        };
        Row {
            graph: self.workload.name.clone(),
            origin: self.workload.origin.clone(),
            summary: self.summary.words.clone(),
            dtype: self.summary.dtype.clone(),
            flops: self.summary.flops,
            bytes: self.summary.bytes,
            predicted: None,
            published: self.workload.published.clone(),
            comparisons: (1..self.measurements.len()).filter_map(compare).collect(),
            measurements,
        }
    }
}

/// One visit of one graph.
struct Visit<'a, 'b> {
    plan: &'b Plan,
    job: &'b mut Job<'a>,
    engines: &'b mut [Runner<'a>],
    is_first: bool,
    is_last: bool,
    /// Bytes of buffers that take turns; 0: none.
    rotate: u64,
    stage: &'b mut dyn FnMut(&str, &str),
}

impl Visit<'_, '_> {
    fn run(&mut self, rng: &mut ChaCha8Rng) -> Result<(), RunError> {
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

    fn tell(&mut self, what: &str) {
        (self.stage)(&self.job.workload.name, what);
    }

    fn takes_part(&self, index: usize) -> bool {
        let measurement = self.job.measurements.get(index);
        measurement.is_some_and(|m| matches!(m.outcome, Outcome::Right | Outcome::Unjudged(_)))
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
        if let Some(reason) = &engine.facts.unusable {
            return Ok(Err(Outcome::Failed(reason.clone())));
        }
        if !matches!(measurement.outcome, Outcome::Right | Outcome::Unjudged(_)) {
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
    fn turn(&mut self, index: usize) -> Result<Result<(), Outcome>, RunError> {
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
    fn conclude(&mut self, index: usize) -> Result<Result<bool, Outcome>, RunError> {
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
    fn judge(&mut self, engines: &[usize]) {
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
fn outcome(judgement: Judgement, peer: Option<usize>, index: usize, engines: &[Runner<'_>]) -> Outcome {
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

fn set(measurements: &mut [Measurement], index: usize, outcome: Outcome, errors: &[OutputError]) {
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
fn execute(engine: &mut Runner<'_>, file: &Path, seed: u64) -> Result<Result<(f64, Vec<u8>), Outcome>, RunError> {
    let results = file.with_extension("results");
    let request = Request::Execute {
        seed,
        results: results.clone(),
    };
    Ok(match engine.ask(&request)? {
        Ok(Answer::Executed { microseconds }) => Ok((microseconds, std::fs::read(&results)?)),
        Ok(_) => Err(Outcome::Failed("its process answers something else".to_owned())),
        Err(outcome) => Err(outcome),
    })
}

/// The buffers of a file of results.
fn split(graph: &Graph, mut bytes: &[u8]) -> Buffers {
    let mut buffers = Buffers::new();
    for (uid, size) in contents(graph) {
        let Some((buffer, rest)) = bytes.split_at_checked(size) else {
            break;
        };
        buffers.insert(uid, buffer.to_vec());
        bytes = rest;
    }
    buffers
}
