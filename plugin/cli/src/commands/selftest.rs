//! `rotini selftest`: checks the plugin's results on this machine, and compares its speed with the
//! other engines installed here.
//!
//! An [`items::Item`] is one test. Several threads, each with a process of the plugin, take items
//! until none is left or the time is up. [`state`] stores each outcome immediately, so that an
//! interrupted run continues from there. [`report`] makes one page and one JSON document from all
//! outcomes.
//!
//! | Module | Contents |
//! |---|---|
//! | `items` | the tests and their order |
//! | `state` | outcomes of earlier runs, on disk |
//! | `report` | the page, the document and the last lines of output |

mod items;
mod report;
mod state;

use super::answer::Answer;
use super::bench;
use crate::args::Selftest;
use crate::failure::Failure;
use crate::output::Output;
use crate::plugin;
use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use items::{Item, Part};
use report::{Measured, Report, Speed};
use rotini_bench::results::Outcome;
use rotini_bench::{About, Device, EngineSpec, Judgement, Launch, Session, Way, judge_sharply};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode};
use rotini_reference::Buffers;
use state::{Found, Header, State};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The share of the time for results; the rest is for the benchmark.
const FOR_RESULTS: f64 = 0.8;
/// The shares of the time on a GPU for results, and for measuring the constants of its speed.
const ON_GPUS: [f64; 2] = [0.5, 0.4];

pub(super) fn selftest(args: &Selftest, output: &Output) -> Result<Answer> {
    let started = Instant::now();
    let limit = Duration::from_secs(u64::from(args.minutes) * 60);
    std::fs::create_dir_all(&args.output).with_context(|| format!("{} cannot be made", args.output.display()))?;
    let spec = bench::own(plugin::locate(args.plugin.plugin.as_deref())?);
    let launch = bench::launch(args.device, Vec::new(), 180)?;
    let homes = tempfile::tempdir().context("no temporary directory")?;
    let about = introduce(&launch, &spec, homes.path().join("first"))?;
    let header = Header {
        plugin: format!("{} {}", about.name, about.version),
        files: fingerprint(&spec.plugin)?,
        device: about.device.clone(),
        seed: args.seed,
    };
    let state = State::open(&args.output.join("state.jsonl"), &header)?;
    output.note(&format!(
        "{}{} on {}{}",
        if state.found.is_empty() { "" } else { "goes on: " },
        header.plugin,
        if about.emulated { "the emulated " } else { "" },
        about.device
    ))?;
    let has_constants = launch.device == Device::Hip && !about.emulated;
    let for_results = limit.mul_f64(match (args.no_bench, has_constants) {
        (true, _) => 1.0,
        (false, true) => ON_GPUS[0],
        (false, false) => FOR_RESULTS,
    });
    let on = |gpu: usize| Launch { gpu, ..launch.clone() };
    let launches: Vec<Launch> = (0..about.gpus).map(on).collect();
    let run = Run {
        launch: &launch,
        launches: &launches,
        spec: &spec,
        homes: homes.path(),
        until: started + for_results,
        seed: args.seed,
    };
    let mut all = items::all(about.gpus, args.seed, args.random)?;
    all.truncate(args.most.unwrap_or(usize::MAX));
    let (found, left) = run.items(all, state, args.jobs.get(), output)?;
    let constants = if args.no_bench || !has_constants {
        None
    } else {
        let limit = limit.mul_f64(ON_GPUS[1]);
        Some(bench::measure_constants(&launch, &spec, limit, args.seed, None)?)
    };
    let speed = if args.no_bench {
        Speed::NotAsked
    } else {
        match limit.checked_sub(started.elapsed()) {
            Some(left) if left > Duration::from_secs(20) => Speed::Measured(Box::new(bench::quick(
                &launch,
                &spec,
                args.rocm.as_deref(),
                left,
                args.seed,
                about.emulated,
            )?)),
            _ => Speed::NoTime,
        }
    };
    let measured = Measured { speed, constants };
    let report = Report::new(header, &about, found, left, measured, started.elapsed());
    report.write(&args.output)?;
    if output.json {
        output.document(&report)?;
    } else {
        output.line(&report.to_string())?;
        output.line(&format!("the report: {}", args.output.join("index.html").display()))?;
    }
    Ok(Answer::of(report.is_right()))
}

/// Loads the plugin and executes the simplest graph. Returns the plugin's and device's description,
/// or an error if this machine lacks something, so that a run does not report the same reason for
/// each of a thousand items.
pub(super) fn introduce(launch: &Launch, spec: &EngineSpec, home: PathBuf) -> Result<About> {
    let lacks = |outcome: Outcome| {
        let reason = outcome.reason().unwrap_or("it does not say why").to_owned();
        Failure::Environment(format!("{}: {reason}", spec.plugin.display()))
    };
    let mut session = Session::start(launch, spec, home)?.map_err(lacks)?;
    let mut builder = GraphBuilder::new("relu");
    let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F32, &[16]));
    builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
    let mut graph = builder.build();
    graph.validate()?;
    let inputs = rotini_reference::fill_all(&graph, 0)?;
    let bytes = rotini_wire::encode(&graph);
    match session.execute(&bytes, &graph, &inputs, Way::Called)? {
        Err(outcome @ Outcome::Declined(_)) => Err(lacks(outcome).into()),
        // Any other error is reported by the run itself.
        _ => Ok(session.about().clone()),
    }
}

/// Returns a hash of everything that the outcomes depend on: the plugin, and this program, which
/// contains the cases and the reference. A version number is too coarse.
fn fingerprint(plugin: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let program = std::env::current_exe().context("this program's own path is not known")?;
    for path in [plugin, &program] {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        hasher.update(&bytes);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// The settings that all threads of a run share.
struct Run<'a> {
    launch: &'a Launch,
    /// One launch configuration for each GPU.
    launches: &'a [Launch],
    spec: &'a EngineSpec,
    homes: &'a Path,
    until: Instant,
    seed: u64,
}

impl Run<'_> {
    /// Runs items until none is left or the time is up. Returns the outcomes and the number of
    /// items left.
    fn items(&self, all: Vec<Item>, state: State, jobs: usize, output: &Output) -> Result<(Vec<Found>, usize)> {
        let todo: Vec<Item> = all
            .into_iter()
            .filter(|item| !state.has(&item.part, &item.name))
            .collect();
        let bar = if output.json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(todo.len() as u64)
        };
        let mut left = todo.len();
        bar.set_style(ProgressStyle::with_template(
            "{bar:30} {pos}/{len}, {eta} left: {wide_msg}",
        )?);
        let queue = Mutex::new(todo.into_iter());
        let (sender, receiver) = mpsc::channel();
        let mut state = state;
        std::thread::scope(|scope| -> Result<()> {
            for job in 0..jobs {
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || self.work(job, queue, &sender));
            }
            drop(sender);
            for found in receiver {
                let found = found?;
                bar.set_message(found.name.clone());
                bar.inc(1);
                left = left.saturating_sub(1);
                if found.is_bad() {
                    let text = format!(
                        "{}: {}: {}",
                        found.name,
                        found.outcome,
                        found.reason.as_deref().unwrap_or_default()
                    );
                    bar.suspend(|| _ = output.note(&crate::report::plain(&text)));
                }
                state.add(found)?;
            }
            Ok(())
        })?;
        bar.finish_and_clear();
        Ok((state.found, left))
    }

    /// Takes items from the queue and runs them in this thread's process.
    fn work(&self, job: usize, queue: &Mutex<std::vec::IntoIter<Item>>, sender: &mpsc::Sender<Result<Found>>) {
        let mut session = None;
        while Instant::now() < self.until {
            let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
            let Some(item) = next else { return };
            let found = self
                .item(job, &item, &mut session)
                .map(|outcome| Found::new(&item, outcome));
            let is_over = found.is_err();
            if sender.send(found).is_err() || is_over {
                return;
            }
        }
    }

    /// Executes with an empty cache and a compile worker that answers nonsense and exits. The
    /// plugin must fail, or compile in another way (`iree-compile`). Returns the outcome if it is
    /// wrong.
    fn fault(&self, bytes: &[u8], graph: &Graph, inputs: &Buffers, home: &Path) -> Result<Option<Outcome>> {
        match std::fs::remove_dir_all(home) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => (),
        }
        let nonsense = std::env::current_exe().context("this program's own path is not known")?;
        let mut spec = self.spec.clone();
        let worker = (
            "ROTINI_COMPILE_WORKER".to_owned(),
            nonsense.to_string_lossy().into_owned(),
        );
        spec.settings.push(worker);
        let mut session = match Session::start(self.launch, &spec, home.to_owned())? {
            Ok(session) => session,
            Err(outcome) => return Ok(Some(outcome)),
        };
        Ok(match session.execute(bytes, graph, inputs, Way::Called)? {
            Err(Outcome::Failed(_) | Outcome::Declined(_)) => None,
            Err(outcome) => Some(outcome),
            Ok(results) => match judged(graph, inputs, &results) {
                wrong @ Outcome::Wrong(_) => Some(wrong),
                _ => None,
            },
        })
    }

    fn item<'s>(&'s self, job: usize, item: &Item, session: &mut Option<Session<'s>>) -> Result<Outcome> {
        let mut graph = item.graph.clone();
        graph.validate().with_context(|| item.name.clone())?;
        let inputs = match item.inputs(&graph, self.seed) {
            Ok(inputs) => inputs,
            Err(error) => return Ok(Outcome::Unjudged(error.to_string())),
        };
        let bytes = rotini_wire::encode(&graph);
        let home = self.homes.join(format!("job-{job}"));
        if item.part == Part::FromCache {
            // Another process compiles the graph into the cache first.
            let mut first = match Session::start(self.launch, self.spec, home.clone())? {
                Ok(first) => first,
                Err(outcome) => return Ok(outcome),
            };
            if let Err(outcome) = first.execute(&bytes, &graph, &inputs, Way::Called)? {
                return Ok(outcome);
            }
            *session = None;
        }
        let home = if item.part == Part::Faults {
            let home = self.homes.join(format!("fault-{job}"));
            if let Some(outcome) = self.fault(&bytes, &graph, &inputs, &home)? {
                return Ok(outcome);
            }
            home
        } else {
            home
        };
        let launch = self.launches.get(item.gpu).unwrap_or(self.launch);
        let mut other = None;
        let session = match session {
            _ if matches!(item.part, Part::Faults | Part::OtherGpus) => {
                match Session::start(launch, self.spec, home)? {
                    Ok(new) => other.insert(new),
                    Err(outcome) => return Ok(outcome),
                }
            }
            Some(session) => session,
            None => match Session::start(self.launch, self.spec, home)? {
                Ok(new) => session.insert(new),
                Err(outcome) => return Ok(outcome),
            },
        };
        if item.part == Part::Reload
            && let Err(outcome) = session.load()?
        {
            return Ok(outcome);
        }
        let way = match item.part {
            Part::Captured => Way::Captured,
            Part::Ordered => Way::Ordered,
            Part::Threads => Way::Threads,
            _ => Way::Called,
        };
        let results = match session.execute(&bytes, &graph, &inputs, way)? {
            Ok(results) => results,
            Err(Outcome::Declined(reason)) if item.may_be_declined() => return Ok(Outcome::Declined(reason)),
            Err(Outcome::Declined(reason)) => return Ok(Outcome::Failed(format!("declined: {reason}"))),
            Err(outcome) => return Ok(outcome),
        };
        Ok(judged(&graph, &inputs, &results))
    }
}

fn judged(graph: &Graph, inputs: &Buffers, results: &Buffers) -> Outcome {
    match judge_sharply(graph, inputs, results) {
        Judgement::Right => Outcome::Right,
        Judgement::Wrong(reason) => Outcome::Wrong(reason),
        Judgement::Unchecked(reason) => Outcome::Unjudged(reason),
    }
}

/// Describes plugin and device for the report.
pub(super) fn describe(about: &About) -> String {
    let emulated = if about.emulated { "emulated " } else { "" };
    format!(
        "{} {}, engine API {}, on {emulated}{}",
        about.name, about.version, about.api_version, about.device
    )
}
