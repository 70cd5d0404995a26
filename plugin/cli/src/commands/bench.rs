//! `rotini bench`: engines of hipDNN side by side.

mod constants;
mod within;

#[cfg(test)]
pub(super) use constants::tests::of_a_device;
pub(super) use constants::{COLUMNS, Constant, constants, measured, show, table};
pub(super) use within::{measure_constants, quick};

use super::answer::Answer;
use super::workloads::workloads;
use crate::args::{Bench, EngineArg, SERVE_ENGINE};
use crate::failure::Failure;
use crate::output::{BAD, Output};
use crate::plugin;
use crate::report;
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rotini_bench::results::{Clock, Measurement, Outcome, Results, Row, VERSION};
use rotini_bench::verdict::{comparison, verdict};
use rotini_bench::{Device, EngineSpec, Launch, Observer, Plan, Values};
use rotini_host::gpu::{Api, Driver};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) fn bench(args: &Bench, output: &Output) -> Result<Answer> {
    if let Some([before, after]) = args.compare.as_deref() {
        return compare(before, after, output);
    }
    let plan = plan(args, output)?;
    if let Some(directory) = &args.output {
        // Created now, so that a bad path fails before minutes of measuring.
        std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    }
    let mut watcher = Watcher::new(&plan, output)?;
    let results = rotini_bench::run(&plan, &mut watcher)?;
    drop(watcher);
    if let Some(directory) = &args.output {
        write(&results, directory)?;
    }
    if output.json {
        output.document(&results)?;
    } else {
        summary(&results, output)?;
    }
    Ok(Answer::of(is_fine(&results)))
}

/// Writes the files of a run.
fn write(results: &Results, directory: &Path) -> Result<()> {
    let files = [
        ("results.json", serde_json::to_string_pretty(results)?),
        ("results.csv", rotini_bench::csv::csv(results)?),
        ("index.html", rotini_bench::page::page(results)),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// Reports the differences between two runs.
fn compare(before: &Path, after: &Path, output: &Output) -> Result<Answer> {
    let [before, after] = [read(before)?, read(after)?];
    let changes = rotini_bench::compare::compare(&before, &after);
    if output.json {
        output.document(&changes)?;
    } else {
        output.line(&changes.to_string())?;
    }
    Ok(Answer::of(!changes.is_regression()))
}

fn read(path: &Path) -> Result<Results> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_of = |what: &serde_json::Value| what.get("version").and_then(serde_json::Value::as_u64);
    let any: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    match is_of(&any) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(version) => bail!("{} is of form {version}; this program reads {VERSION}", path.display()),
        None => bail!("{} is not what `rotini bench` writes", path.display()),
    }
    serde_json::from_value(any).with_context(|| format!("{} is not what `rotini bench` writes", path.display()))
}

/// Serves one engine to another process of this program.
pub(super) fn serve() -> Result<Answer> {
    rotini_bench::serve().context("the bench is gone")?;
    Ok(Answer::Yes)
}

fn plan(args: &Bench, output: &Output) -> Result<Plan> {
    let workloads = workloads(&args.workloads, output)?;
    if workloads.is_empty() {
        bail!(Failure::Usage("there is nothing to run".to_owned()));
    }
    let of_constants = args.workloads.suites.iter().any(|name| name == constants::SUITE);
    let usual = if of_constants { Turns::CONSTANTS } else { Turns::USUAL };
    Ok(Plan {
        workloads,
        engines: engines(args)?,
        launch: launch(args.device, cores(args.cores)?, args.patience)?,
        seed: args.seed,
        values: if args.gaussian { Values::Gaussian } else { usual.values },
        visits: args.visits.unwrap_or(usual.visits),
        rounds: args.rounds.unwrap_or(usual.rounds),
        turn: f64::from(args.turn.unwrap_or(usual.milliseconds)) * 1e3,
        rotate: !args.no_rotate,
        most_judged: args.judge * 1e9,
        command: std::env::args().collect(),
    })
}

/// Number and length of the turns of each engine, and the values of the inputs.
struct Turns {
    values: Values,
    visits: u32,
    rounds: u32,
    milliseconds: u32,
}

impl Turns {
    const USUAL: Self = Self {
        values: Values::Exact,
        visits: 5,
        rounds: 3,
        milliseconds: 10,
    };
    /// Turns of one second on values like a network's, so that the clock settles at what the power
    /// limit allows.
    const CONSTANTS: Self = Self {
        values: Values::Gaussian,
        visits: 2,
        rounds: 3,
        milliseconds: 1000,
    };
}

/// Returns the settings by which this program starts engines.
pub(super) fn launch(device: Option<Device>, cores: Vec<usize>, patience: u64) -> Result<Launch> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    Ok(Launch {
        command: vec![program.into(), SERVE_ENGINE.into()],
        device: device.unwrap_or_else(found_device),
        library: std::env::var("ROTINI_HIP_LIBRARY").ok(),
        gpu: 0,
        cores,
        patience: Duration::from_secs(patience),
    })
}

/// Returns the engine specification of rotini with default settings.
pub(super) fn own(plugin: PathBuf) -> EngineSpec {
    EngineSpec {
        label: "rotini".to_owned(),
        plugin,
        settings: Vec::new(),
        knobs: Vec::new(),
    }
}

/// Returns the engines on the command line; without any, rotini and the engines of the installed
/// ROCm.
fn engines(args: &Bench) -> Result<Vec<EngineSpec>> {
    let mut asked: Vec<(PathBuf, Vec<(String, String)>)> = Vec::new();
    for EngineArg { plugin, settings } in &args.plugins {
        let plugin = std::path::absolute(plugin).with_context(|| format!("{} is no path", plugin.display()))?;
        asked.push((plugin, settings.clone()));
    }
    if asked.is_empty() {
        asked.push((
            plugin::locate(std::env::var_os("ROTINI_PLUGIN").as_deref().map(Path::new))?,
            Vec::new(),
        ));
        asked.extend(
            installed(args.rocm.as_deref())
                .into_iter()
                .map(|plugin| (plugin, Vec::new())),
        );
    }
    Ok(labelled(asked))
}

/// Gives each engine a unique label.
fn labelled(asked: Vec<(PathBuf, Vec<(String, String)>)>) -> Vec<EngineSpec> {
    let mut labels = HashSet::new();
    asked
        .into_iter()
        .map(|(plugin, settings)| {
            let stem = plugin.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = stem.trim_start_matches("lib").trim_end_matches("_plugin").to_owned();
            let words: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let base = [vec![name], words].concat().join(" ");
            let mut label = base.clone();
            let mut number = 2;
            while !labels.insert(label.clone()) {
                label = format!("{base} ({number})");
                number += 1;
            }
            // Names of knobs contain a point; names of environment variables do not.
            let (knobs, settings) = settings.into_iter().partition(|(name, _)| name.contains('.'));
            EngineSpec {
                label,
                plugin,
                settings,
                knobs,
            }
        })
        .collect()
}

/// Returns the engine plugins of an installed ROCm, except for rotini itself.
fn installed(rocm: Option<&Path>) -> Vec<PathBuf> {
    let root = rocm
        .map(Path::to_owned)
        .or_else(|| std::env::var_os("ROCM_PATH").map(PathBuf::from));
    let directory = root
        .unwrap_or_else(|| "/opt/rocm".into())
        .join("lib/hipdnn_plugins/engines");
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| {
        let is_rotini = path.file_name() == Some(OsStr::new(plugin::FILE));
        path.extension() == Some(OsStr::new("so")) && !is_rotini
    });
    found.sort();
    found
}

/// Returns the device of `ROTINI_DEVICE`; if it names none, AMD GPUs if any exist, else the CPU.
/// The plugin chooses in the same way.
fn found_device() -> Device {
    let named = std::env::var("ROTINI_DEVICE");
    match named.as_deref() {
        Ok("cpu") => return Device::Cpu,
        Ok("hip") => return Device::Hip,
        Ok("cuda") => return Device::Cuda,
        _ => (),
    }
    let library = std::env::var_os("ROTINI_HIP_LIBRARY");
    // SAFETY: the library is HIP's, or the one that the user named as such.
    let driver = unsafe { Driver::load(Api::Hip, library.as_deref()) };
    match driver.and_then(|driver| driver.devices()) {
        Ok(1..) => Device::Hip,
        _ => Device::Cpu,
    }
}

/// Returns the last `count` cores that this process may use, because interrupts tend to be handled
/// by the first ones. Without a count, returns an empty list, which means all cores.
fn cores(count: Option<usize>) -> Result<Vec<usize>> {
    let Some(count) = count else { return Ok(Vec::new()) };
    let allowed = rustix::thread::sched_getaffinity(None).context("the affinity mask cannot be read")?;
    let all = (0..rustix::thread::CpuSet::MAX_CPU)
        .rev()
        .filter(|&core| allowed.is_set(core));
    let cores: Vec<usize> = all.take(count).collect();
    if cores.len() < count {
        bail!(Failure::Usage(format!("there are {} cores, not {count}", cores.len())));
    }
    Ok(cores)
}

/// Returns true if every engine could be used and none crashed, hung, failed or gave wrong results.
fn is_fine(results: &Results) -> bool {
    let bad = |outcome: &Outcome| {
        matches!(
            outcome,
            Outcome::Wrong(_) | Outcome::Failed(_) | Outcome::Crashed(_) | Outcome::Hung(_)
        )
    };
    results.engines.iter().all(|engine| engine.unusable.is_none())
        && !results
            .rows
            .iter()
            .flat_map(|row| &row.measurements)
            .any(|m| bad(&m.outcome))
}

/// Prints each row when it is complete, and shows a progress bar.
struct Watcher<'a> {
    output: &'a Output,
    bar: ProgressBar,
    columns: Vec<usize>,
    clock: Clock,
}

/// Widths of the columns, in characters.
const NAME: usize = 44;
const COLUMN: usize = 22;

impl<'a> Watcher<'a> {
    fn new(plan: &Plan, output: &'a Output) -> Result<Self> {
        /// The bar counts in thousandths.
        const LENGTH: u64 = 1000;
        let bar = if output.json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(LENGTH)
        };
        bar.set_style(ProgressStyle::with_template(
            "{bar:30} {percent}%, {eta} left: {wide_msg}",
        )?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let columns = plan
            .engines
            .iter()
            .map(|engine| engine.label.chars().count().max(COLUMN));
        Ok(Watcher {
            output,
            bar,
            columns: columns.collect(),
            clock: Clock::Cpu,
        })
    }

    fn line(&self, text: &str) {
        if !self.output.json {
            // A closed stdout is reported at the end of the run.
            self.bar.suspend(|| _ = self.output.line(text));
        }
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watcher<'_> {
    fn begins(&mut self, results: &Results) {
        self.clock = results.machine.clock;
        let device = &results.machine.device;
        self.line(&match self.clock {
            Clock::Cpu => format!("on the CPU, {device}: times by its clock"),
            Clock::Gpu => format!("on the GPU, {device}: times by its events"),
            Clock::Emulated => format!("on the {device}: times are the emulator's and say nothing about speed"),
        });
        for engine in &results.engines {
            let what = match &engine.unusable {
                Some(reason) => format!("{BAD}takes no part{BAD:#}: {reason}"),
                None => format!(
                    "{} {}, engine {}, API {}",
                    engine.name, engine.version, engine.engine, engine.api_version
                ),
            };
            self.line(&format!("{}: {what}", engine.label));
        }
        let labels = results.engines.iter().zip(&self.columns);
        let labels: Vec<String> = labels
            .map(|(engine, &width)| format!("{:>width$}", engine.label))
            .collect();
        self.line(&format!("\n{:<NAME$} {}", "graph", labels.join(" ")));
    }

    fn stage(&mut self, graph: &str, what: &str, done: f64) {
        self.bar.set_position((done * 1000.0) as u64);
        self.bar.set_message(format!("{graph}: {what}"));
    }

    fn row(&mut self, row: &Row) {
        let name: String = row.graph.chars().take(NAME).collect();
        let cells: Vec<String> = row
            .measurements
            .iter()
            .zip(&self.columns)
            .enumerate()
            .map(|(index, (measurement, &width))| format!("{:>width$}", cell(row, index, measurement, self.clock)))
            .collect();
        self.line(&format!("{name:<NAME$} {}", cells.join(" ")));
        for (measurement, engine) in row.measurements.iter().zip(0_usize..) {
            if let Outcome::Wrong(reason) | Outcome::Failed(reason) | Outcome::Crashed(reason) | Outcome::Hung(reason) =
                &measurement.outcome
            {
                self.line(&format!("  engine {}: {}", engine + 1, report::plain(reason)));
            }
        }
    }
}

/// Returns the cell of an engine in a row: its time or its outcome.
fn cell(row: &Row, index: usize, measurement: &Measurement, clock: Clock) -> String {
    let word = match &measurement.outcome {
        Outcome::Right | Outcome::Unjudged(_) => "",
        Outcome::Wrong(_) => return "WRONG".to_owned(),
        Outcome::Declined(_) => return "declined".to_owned(),
        Outcome::Failed(_) => return "FAILED".to_owned(),
        Outcome::Crashed(_) => return "CRASHED".to_owned(),
        Outcome::Hung(_) => return "HUNG".to_owned(),
    };
    let Some(hot) = &measurement.hot else {
        return word.to_owned();
    };
    let time = report::time(Duration::from_secs_f64(hot.median / 1e6));
    if clock == Clock::Emulated {
        return format!("right ({time} emulated)");
    }
    let unjudged = match (&measurement.outcome, measurement.captured) {
        (Outcome::Unjudged(_), Some(false)) => "?*",
        (Outcome::Unjudged(_), _) => "?",
        (_, Some(false)) => "*",
        _ => "",
    };
    match comparison(row, index) {
        Some(comparison) if comparison.is_difference() => format!("{time}{unjudged} ({:.2} ×)", comparison.ratio),
        Some(_) => format!("{time}{unjudged} (no diff.)"),
        None => format!("{time}{unjudged}"),
    }
}

/// Prints the summary of all engines.
fn summary(results: &Results, output: &Output) -> Result<()> {
    output.line("")?;
    let mut measurements = results.rows.iter().flat_map(|row| &row.measurements);
    if measurements.any(|measurement| measurement.captured == Some(false)) {
        output.line("*: not timed in captured graphs, so the host's calls are in it")?;
    }
    if results.machine.clock != Clock::Emulated && results.engines.len() > 1 {
        output.line(
            "(n ×): its time divided by the first engine's; (no diff.): the 95 % interval of that holds 1; ?: not judged",
        )?;
    }
    for (index, engine) in results.engines.iter().enumerate() {
        let verdict = verdict(results, index);
        output.line(&format!("{}: {}", engine.label, verdict.outcomes()))?;
        if let (Some(against), Some(first)) = (&verdict.against, results.engines.first()) {
            output.line(&format!("  {} against it: {}", first.label, against.sentence()))?;
        }
    }
    constants::show(results, output)
}
