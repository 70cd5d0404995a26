//! Predicts how long suites of graphs take on an MI300X, and fails if a suite got slower. It measures nothing.
//!
//! The plugin compiles each graph for the emulated MI300X; the emulator counts what a sample of each launch's workgroups does;
//! `rotini-time` makes microseconds of it.

mod graph;

use anyhow::{Context as _, Result};
use clap::Parser;
use graph::Machine;
use rotini_graph::{DataType, Graph, Op};
use rotini_time::{MI300X, Predicted};
use rotini_workloads::Workload;
use rotini_workloads::blocks::{Direction, Layout};
use rotini_workloads::suites::{SuiteOptions, suite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Predicts the time of suites on an MI300X.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// A few suites: two minutes
    #[arg(long)]
    short: bool,
    /// Where the table is written as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// A table to compare with: a suite whose sum is more than 3 % above it there is a failure
    #[arg(long)]
    kept: Option<PathBuf>,
    /// The emulator's library
    #[arg(long, env = "ROTINI_HIP_EMULATOR")]
    emulator: PathBuf,
    /// The plugin's library
    #[arg(long, env = "ROTINI_PLUGIN")]
    plugin: PathBuf,
}

/// A graph's row. Microseconds of ours are predicted, as the field's name says; those of others are measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    suite: String,
    graph: String,
    dispatches: usize,
    predicted_us: f64,
    extrapolated: bool,
    least_us: f64,
    published_us: Option<f64>,
}

/// How much worse a suite's sum may be.
const SLACK: f64 = 1.03;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let directory = tempfile::tempdir()?;
    let reports = directory.path().join("reports");
    for (name, value) in [
        ("HIPEMU_SAMPLE", "64".as_ref()),
        ("HIPEMU_REPORT", reports.as_os_str()),
        ("ROTINI_DEVICE", "hip".as_ref()),
        ("ROTINI_HIP_LIBRARY", args.emulator.as_os_str()),
    ] {
        // SAFETY: nothing reads the environment yet: this is the only thread.
        unsafe { std::env::set_var(name, value) };
    }
    let mut machine = Machine::new(&args.emulator, &args.plugin, reports)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "Predicted for an MI300X, not measured. Least: bytes and operations at the data sheet's rates. MIOpen: measured by AMD.\n"
    )?;
    writeln!(
        out,
        "| suite | graph | dispatches | time | by | least µs | MIOpen µs |\n|---|---|--:|--:|---|--:|--:|"
    )?;
    for (name, workloads) in suites(args.short)? {
        for workload in workloads {
            match row(&mut machine, &name, &workload) {
                Ok((row, line)) => {
                    writeln!(out, "{line}")?;
                    rows.push(row);
                }
                // Named, not dropped: a sum without it is another sum.
                Err(error) => writeln!(out, "| {name} | {} | | no prediction: {error:#} | | | |", workload.name)?,
            }
        }
    }
    let is_worse = sums(&rows, args.kept.as_deref())?;
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n").context("the table cannot be written")?;
    }
    Ok(if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The suites, by name.
fn suites(short: bool) -> Result<Vec<(String, Vec<Workload>)>> {
    let mut all = Vec::new();
    let mut add = |label: String, name: &str, options: SuiteOptions, every: usize| -> Result<()> {
        all.push((label, suite(name, &options)?.into_iter().step_by(every).collect()));
        Ok(())
    };
    let directions: &[(&str, Direction)] = &[
        ("forward", Direction::Forward),
        ("dgrad", Direction::Dgrad),
        ("wgrad", Direction::Wgrad),
    ];
    for (layout_name, layout) in [("NHWC", Layout::Last), ("NCHW", Layout::First)] {
        for &(direction_name, direction) in &directions[..if short { 1 } else { 3 }] {
            for &batch in &[32, 64][..if short { 1 } else { 2 }] {
                for &dtype in &[DataType::F16, DataType::Bf16][..if short { 1 } else { 2 }] {
                    let options = SuiteOptions {
                        batch: Some(batch),
                        layout: Some(layout),
                        dtype: Some(dtype),
                        direction: Some(direction),
                    };
                    let label = format!("resnet50 {direction_name} {layout_name} {batch} {dtype}");
                    add(label, "resnet50", options, 1)?;
                }
            }
        }
    }
    for name in ["bert", "llama"] {
        add(name.to_owned(), name, SuiteOptions::default(), 1)?;
    }
    add(
        "miopen".to_owned(),
        "miopen",
        SuiteOptions::default(),
        if short { 40 } else { 1 },
    )?;
    Ok(all)
}

/// A graph's row, and as it is printed.
fn row(machine: &mut Machine, suite: &str, workload: &Workload) -> Result<(Row, String)> {
    let dispatches = machine.predict(&workload.graph)?;
    let total: Predicted = dispatches.iter().map(|one| one.time).sum();
    let slowest = dispatches
        .iter()
        .max_by(|a, b| a.time.microseconds().total_cmp(&b.time.microseconds()));
    let bound = slowest.map(|one| one.bound.0.to_string()).unwrap_or_default();
    let graph = rotini_wire::decode(&workload.graph)?;
    let summary = rotini_bench::summarise(&graph);
    let moving = summary.bytes as f64 / (1e3 * MI300X.peak_memory);
    let least = moving.max(summary.flops.unwrap_or(0.0) / (1e6 * MI300X.peak_f16));
    let published = workload.published.first().map(|time| time.microseconds);
    let row = Row {
        suite: suite.to_owned(),
        graph: workload.name.clone(),
        dispatches: dispatches.len(),
        predicted_us: total.microseconds(),
        extrapolated: !is_like_the_measured(&graph) || dispatches.iter().any(|one| !one.outside.is_empty()),
        least_us: least,
        published_us: published,
    };
    let note = if row.extrapolated { ", extrapolated" } else { "" };
    let theirs = published.map(|time| format!("{time:.1}")).unwrap_or_default();
    let line = format!(
        "| {suite} | {} | {} | {total}{note} | {bound} | {least:.1} | {theirs} |",
        row.graph, row.dispatches
    );
    Ok((row, line))
}

/// Whether kernels of such graphs were held against hardware: forward convolutions with channels innermost, and products.
fn is_like_the_measured(graph: &Graph) -> bool {
    let is_last = |x| graph.tensor(x).is_some_and(|tensor| tensor.strides.get(1) == Some(&1));
    graph.nodes.iter().all(|node| match &node.op {
        Op::ConvFprop(conv) => is_last(conv.x),
        Op::Matmul(_) | Op::Pointwise(_) => true,
        _ => false,
    })
}

/// Prints the suites' sums beside those of the kept table; whether one is worse.
fn sums(rows: &[Row], kept: Option<&std::path::Path>) -> Result<bool> {
    let kept: Vec<Row> = match kept {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path).context("the kept table cannot be read")?)?,
        None => Vec::new(),
    };
    let before: BTreeMap<(&str, &str), f64> = kept
        .iter()
        .map(|row| ((row.suite.as_str(), row.graph.as_str()), row.predicted_us))
        .collect();
    let mut by_suite: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    for row in rows {
        let sum = by_suite.entry(&row.suite).or_default();
        sum.0 += row.predicted_us;
        // Of the graphs that both tables have.
        if let Some(before) = before.get(&(row.suite.as_str(), row.graph.as_str())) {
            sum.1 += row.predicted_us;
            sum.2 += before;
        }
    }
    let mut out = std::io::stdout();
    writeln!(out, "\n| suite | sum | of what was kept |\n|---|--:|--:|")?;
    let mut is_worse = false;
    for (suite, (sum, now, before)) in by_suite {
        let change = if before > 0.0 {
            format!("{:+.1} %", 100.0 * (now / before - 1.0))
        } else {
            String::new()
        };
        is_worse |= before > 0.0 && now > SLACK * before;
        writeln!(out, "| {suite} | predicted {sum:.0} µs | {change} |")?;
    }
    Ok(is_worse)
}
