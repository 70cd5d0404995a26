//! Runs that have to end in time: what `rotini selftest` measures.

use super::{Turns, installed, labelled};
use anyhow::Result;
use rotini_bench::results::{Results, Row};
use rotini_bench::{EngineSpec, Launch, Observer, Plan};
use rotini_workloads::suites::{SuiteOptions, suite};
use std::path::Path;
use std::time::{Duration, Instant};

/// Ends in time, and says nothing.
struct Until(Instant);

impl Observer for Until {
    fn begins(&mut self, _: &Results) {}
    fn stage(&mut self, _: &str, _: &str, _: f64) {}
    fn row(&mut self, _: &Row) {}
    fn stops(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// The suite `quick` on rotini and on what the installed ROCm has, within about this time.
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
        // One visit: what is done when the time is up is complete.
        visits: 1,
        rounds: if emulated { 1 } else { 10 },
        turn: if emulated { 0.0 } else { 10e3 },
        rotate: !emulated,
        most_judged: 20e9,
        command: std::env::args().collect(),
    };
    Ok(rotini_bench::run(&plan, &mut Until(Instant::now() + limit))?)
}

/// The suite `constants` on rotini, within about this time. Results of large graphs are not judged.
pub(crate) fn measure_constants(launch: &Launch, own: &EngineSpec, limit: Duration, seed: u64) -> Result<Results> {
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
    Ok(rotini_bench::run(&plan, &mut Until(Instant::now() + limit))?)
}
