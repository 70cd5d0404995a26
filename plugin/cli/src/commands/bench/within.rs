//! Runs with a time limit, for `rotini selftest` and `rotini tune --calibrate`.

use super::{Turns, Watcher, installed, labelled};
use crate::output::Output;
use anyhow::Result;
use rotini_bench::results::{Results, Row};
use rotini_bench::{EngineSpec, Launch, Observer, Plan};
use rotini_workloads::suites::{SuiteOptions, suite};
use std::path::Path;
use std::time::{Duration, Instant};

/// An observer that stops the run at a point in time, and shows it if it has a watcher.
struct Until<'a> {
    end: Instant,
    watcher: Option<Watcher<'a>>,
}

impl Until<'_> {
    fn silent(limit: Duration) -> Self {
        Until {
            end: Instant::now() + limit,
            watcher: None,
        }
    }
}

impl Observer for Until<'_> {
    fn begins(&mut self, results: &Results) {
        if let Some(watcher) = &mut self.watcher {
            watcher.begins(results);
        }
    }

    fn stage(&mut self, graph: &str, what: &str, done: f64) {
        if let Some(watcher) = &mut self.watcher {
            watcher.stage(graph, what, done);
        }
    }

    fn row(&mut self, row: &Row) {
        if let Some(watcher) = &mut self.watcher {
            watcher.row(row);
        }
    }

    fn stops(&self) -> bool {
        Instant::now() >= self.end
    }
}

/// Runs the suite `quick` on rotini and on the engines of the installed ROCm, in about the time
/// `limit`.
pub(crate) fn quick(
    launch: &Launch,
    own: &EngineSpec,
    rocm: Option<&Path>,
    limit: Duration,
    seed: u64,
    emulated: bool,
) -> Result<Results> {
    let mut engines = vec![own.clone()];
    let others = installed(rocm).into_iter().map(|plugin| (plugin, Vec::new()));
    engines.extend(labelled(others.collect()));
    let plan = Plan {
        workloads: suite("quick", &SuiteOptions::default())?,
        engines,
        launch: launch.clone(),
        seed,
        values: Turns::USUAL.values,
        // A single visit, so that every graph measured by the time limit is complete.
        visits: 1,
        rounds: if emulated { 1 } else { 10 },
        turn: if emulated { 0.0 } else { 10e3 },
        rotate: !emulated,
        most_judged: 20e9,
        command: std::env::args().collect(),
    };
    Ok(rotini_bench::run(&plan, &mut Until::silent(limit))?)
}

/// Measures the suite `constants` on rotini. Stops after the graph during which `limit` passes.
/// Graphs with products are not compared with the reference. The run is shown on `output`, if
/// given.
pub(crate) fn measure_constants(
    launch: &Launch,
    own: &EngineSpec,
    limit: Duration,
    seed: u64,
    output: Option<&Output>,
) -> Result<Results> {
    let turns = Turns::CONSTANTS;
    let plan = Plan {
        workloads: suite(super::constants::SUITE, &SuiteOptions::default())?,
        engines: vec![own.clone()],
        launch: launch.clone(),
        seed,
        values: turns.values,
        visits: 1,
        rounds: turns.rounds,
        turn: f64::from(turns.milliseconds) * 1e3,
        rotate: true,
        most_judged: 0.0,
        command: std::env::args().collect(),
    };
    let mut until = Until {
        watcher: output.map(|output| Watcher::new(&plan, output)).transpose()?,
        ..Until::silent(limit)
    };
    Ok(rotini_bench::run(&plan, &mut until)?)
}
