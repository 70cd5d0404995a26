//! A run: every graph on every engine, in turns.
//!
//! Each graph is visited several times, so that its samples are spread over the run: load that
//! comes and goes widens the intervals. In a visit, each engine creates its context anew, and the
//! engines take turns in random order.
//!
//! | Visit | What happens besides |
//! |---|---|
//! | the first | cold and warm creation, first execution, results held against the reference |
//! | the last | times of single calls, results once more |

use crate::job::Job;
use crate::machine::machine;
use crate::plan::{Observer, Plan, RunError};
use crate::results::{Results, VERSION};
use crate::runner::Runner;
use crate::visit::Visit;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::time::Instant;

/// Runs a plan.
///
/// # Errors
///
/// [`RunError`], before anything is measured. Failures of an engine are in the results.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<Results, RunError> {
    let started = Instant::now();
    let directory = tempfile::tempdir()?;
    let mut engines = Vec::new();
    let mut device = None;
    for (index, spec) in plan.engines.iter().enumerate() {
        let home = directory.path().join(format!("engine-{index}"));
        let runner = Runner::new(plan, spec, home)?;
        if let Some(session) = &runner.session {
            let about = session.about();
            device.get_or_insert((about.device.clone(), about.emulated));
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
        values: plan.values,
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
        if visit > 0 {
            // Where a process has its memory moves its times as well.
            for engine in &mut engines {
                engine.renew()?;
            }
        }
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
                // Twice as much: some caches keep old data rather than new.
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

/// Returns the present moment in RFC 3339, in UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
