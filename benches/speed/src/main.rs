//! Predicts the times of suites of graphs on an MI300X, and fails if a suite became slower. It
//! measures nothing.
//!
//! The plugin compiles each graph for the emulated MI300X, the emulator counts the work of a sample
//! of each launch's workgroups, and `rotini-time` converts the counts to microseconds.
//!
//! | Module | Contents |
//! |---|---|
//! | `suites` | the graphs |
//! | `graph` | the prediction of one graph on the emulated MI300X |
//! | `predecessor` | the same in the form of rotini's predecessor |
//! | `peers` | predictions next to published times, by the kernel that was measured |
//! | `found` | selection of schedules by prediction |
//! | `table` | rows, sums, and their form in the documents |

mod found;
mod graph;
mod peers;
mod predecessor;
mod suites;
mod table;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use graph::Machine;
use rotini_inspect::emulate::{EmulateError, SAMPLE};
use rotini_inspect::is_like_the_measured;
use rotini_time::{MI300X, Predicted};
use rotini_workloads::Workload;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use table::Row;

/// Predicts the time of suites on an MI300X.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// A few graphs of each suite: two minutes
    #[arg(long)]
    short: bool,
    /// Only suites whose names begin like this
    #[arg(long = "suite")]
    suites: Vec<String>,
    /// Only graphs with these names
    #[arg(long = "graph")]
    only: Vec<String>,
    /// ResNet-50 in the form of rotini's predecessor, by IREE's own programs
    #[arg(long, requires_all = ["compile", "run"])]
    predecessor: bool,
    /// The program iree-compile
    #[arg(long, env = "ROTINI_IREE_COMPILE")]
    compile: Option<PathBuf>,
    /// The program iree-run-module
    #[arg(long, env = "ROTINI_IREE_RUN")]
    run: Option<PathBuf>,
    /// Where the table is written as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// A table to compare with: a suite whose sum is more than 3 % above it there is a failure
    #[arg(long)]
    kept: Option<PathBuf>,
    /// Predicts nothing: shows tables that --json wrote
    #[arg(long, conflicts_with_all = ["short", "suites", "only"])]
    from: Vec<PathBuf>,
    /// The document that gets the sums: docs/performance.md
    #[arg(long)]
    document: Option<PathBuf>,
    /// A directory that gets the graphs as files, for `rotini inspect`; nothing is predicted
    #[arg(long, conflicts_with_all = ["json", "kept", "from", "document"])]
    graphs: Option<PathBuf>,
    /// A file that gets the schedules that are found: --from names tables that were predicted with
    /// `ROTINI_TARGET=mi300x:cut-0`, `cut-1`, …
    #[arg(long, requires_all = ["from", "emulator", "plugin", "rotini"], conflicts_with_all = ["json", "kept", "document"])]
    schedules: Option<PathBuf>,
    /// The program rotini, which executes graphs strictly
    #[arg(long)]
    rotini: Option<PathBuf>,
    /// The emulator's library
    #[arg(long, env = "ROTINI_HIP_EMULATOR", required_unless_present_any = ["from", "graphs"])]
    emulator: Option<PathBuf>,
    /// The plugin's library
    #[arg(long, env = "ROTINI_PLUGIN", required_unless_present_any = ["from", "graphs"])]
    plugin: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(directory) = &args.graphs {
        write_graphs(&args, directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &args.schedules {
        let (Some(rotini), Some(plugin), Some(emulator)) = (&args.rotini, &args.plugin, &args.emulator) else {
            bail!("schedules are executed before they are kept");
        };
        let tables: Vec<_> = args.from.iter().map(|path| table::read(path)).collect::<Result<_>>()?;
        let strictly = found::Strictly {
            program: rotini.clone(),
            plugin,
            emulator,
        };
        found::write(file, &tables, &suites::suites(false)?, &strictly)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Read before the predictions, because --json may name the same file.
    let kept = args.kept.as_deref().map(table::read).transpose()?.unwrap_or_default();
    let (rows, failed) = if args.from.is_empty() {
        predict(&args)?
    } else {
        let tables = args.from.iter().map(|path| table::read(path));
        (tables.collect::<Result<Vec<_>>>()?.concat(), Vec::new())
    };
    let was_kept = |(suite, graph): &(String, String)| {
        let is_it = |row: &Row| row.suite == *suite && row.graph == *graph;
        kept.is_empty() || kept.iter().any(is_it)
    };
    let lost: Vec<_> = failed.iter().filter(|name| was_kept(name)).collect();
    let (sums, is_worse) = table::sums(&rows, &kept);
    let peers = peers::table(&rows, &suites::suites(false)?);
    writeln!(std::io::stdout(), "\n{sums}\n{peers}")?;
    if let (Some(path), false) = (&args.json, args.from.is_empty()) {
        table::write(&rows, path)?;
    }
    if let Some(path) = &args.document {
        let document = fs::read_to_string(path)?;
        fs::write(path, table::into_document(&document, &format!("{sums}\n{peers}"))?)?;
    }
    // Without these graphs the sums are not comparable.
    for (suite, graph) in &lost {
        writeln!(std::io::stderr(), "no prediction for {graph} of {suite}")?;
    }
    Ok(if is_worse || !lost.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the selected suites.
fn wanted(args: &Args) -> Result<Vec<(String, Vec<Workload>)>> {
    let is_wanted = |name: &str| args.suites.is_empty() || args.suites.iter().any(|start| name.starts_with(start));
    let mut suites = suites::suites(args.short)?;
    suites.retain(|(name, _)| is_wanted(name) && (!args.predecessor || name.starts_with("resnet50")));
    for (_, graphs) in &mut suites {
        graphs.retain(|graph| args.only.is_empty() || args.only.contains(&graph.name));
    }
    Ok(suites)
}

/// Writes the graphs as `SUITE/GRAPH.bin` below a directory.
fn write_graphs(args: &Args, directory: &Path) -> Result<()> {
    for (suite, workloads) in wanted(args)? {
        let directory = directory.join(suite.replace(' ', "_"));
        fs::create_dir_all(&directory)?;
        for workload in workloads {
            fs::write(directory.join(format!("{}.bin", workload.name)), &workload.graph)?;
        }
    }
    Ok(())
}

/// The names of a suite and of one of its graphs.
type Name = (String, String);

/// Predicts the suites and prints a row for each graph. Also returns the graphs that could not be
/// predicted, except those for which the emulator has too little memory.
fn predict(args: &Args) -> Result<(Vec<Row>, Vec<Name>)> {
    let (Some(emulator), Some(plugin)) = (&args.emulator, &args.plugin) else {
        bail!("predictions need an emulator and a plugin");
    };
    let directory = tempfile::tempdir()?;
    let reports = directory.path().join("reports");
    for (name, value) in [
        ("HIPEMU_SAMPLE", SAMPLE.as_ref()),
        ("HIPEMU_REPORT", reports.as_os_str()),
        ("ROTINI_DEVICE", "hip".as_ref()),
        ("ROTINI_HIP_LIBRARY", emulator.as_os_str()),
    ] {
        // SAFETY: nothing reads the environment yet: this is the only thread.
        unsafe { std::env::set_var(name, value) };
    }
    let mut machine = Machine::new(args, [emulator, plugin], reports)?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    let mut out = std::io::stdout();
    writeln!(
        out,
        "Predicted for an MI300X, not measured. Least: bytes and operations at the data sheet's rates. Published: measured by AMD.\n"
    )?;
    writeln!(
        out,
        "| suite | graph | dispatches | time | by | least µs | published µs |\n|---|---|--:|--:|---|--:|--:|"
    )?;
    let started = Instant::now();
    let mut longest = (0.0, String::new());
    for (name, workloads) in wanted(args)? {
        for workload in workloads {
            let began = Instant::now();
            match row(&mut machine, &name, &workload) {
                Ok((row, line)) => {
                    writeln!(out, "{line}")?;
                    rows.push(row);
                }
                Err(error) => {
                    writeln!(out, "| {name} | {} | | no prediction: {error:#} | | | |", workload.name)?;
                    if !matches!(error.downcast_ref(), Some(EmulateError::Memory(_))) {
                        failed.push((name.clone(), workload.name.clone()));
                    }
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            if seconds > longest.0 {
                longest = (seconds, workload.name);
            }
        }
        // Written after each suite, so that an interrupted run keeps its results.
        if let Some(path) = &args.json {
            table::write(&rows, path)?;
        }
    }
    let dispatches: usize = rows.iter().map(|row| row.dispatches).sum();
    let seconds = started.elapsed().as_secs_f64();
    let (most, graph) = longest;
    writeln!(
        out,
        "\nIt took {seconds:.0} s for {} graphs with {dispatches} kernels, {most:.1} s for {graph}.",
        rows.len()
    )?;
    Ok((rows, failed))
}

/// Returns a graph's row, and its printed form.
fn row(machine: &mut Machine, suite: &str, workload: &Workload) -> Result<(Row, String)> {
    let dispatches = machine.predict(&workload.graph)?;
    let total = Predicted::in_sequence(dispatches.iter().map(|one| one.time));
    let warm = Predicted::in_sequence(dispatches.iter().map(|one| one.warm));
    let slowest = dispatches
        .iter()
        .max_by(|a, b| a.time.microseconds().total_cmp(&b.time.microseconds()));
    let by = slowest.context("it launches nothing")?.bound.0.to_string();
    let graph = rotini_wire::decode(&workload.graph)?;
    let summary = rotini_bench::summarise(&graph);
    let least = MI300X.least(summary.bytes as f64, summary.flops.unwrap_or(0.0), summary.bits);
    let published = workload.published.first().map(|time| time.microseconds);
    let row = Row {
        suite: suite.to_owned(),
        graph: workload.name.clone(),
        times: suites::times(suite, &workload.name),
        dispatches: dispatches.len(),
        predicted_us: table::rounded(total.microseconds()),
        warm_us: Some(table::rounded(warm.microseconds())),
        by,
        extrapolated: !is_like_the_measured(&graph) || dispatches.iter().any(|one| !one.outside.is_empty()),
        least_us: table::rounded(least),
        published_us: published,
        operations: published.and(summary.flops),
    };
    let note = if row.extrapolated { ", extrapolated" } else { "" };
    let theirs = published.map(|time| format!("{time:.1}")).unwrap_or_default();
    let line = format!(
        "| {suite} | {} | {} | {total}{note} | {} | {least:.1} | {theirs} |",
        row.graph, row.dispatches, row.by
    );
    Ok((row, line))
}
