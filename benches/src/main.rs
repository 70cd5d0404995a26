//! Latencies that a user of rotini sees, each next to a peer in the same run.
//!
//! A duration alone says more about the machine than about rotini. So every row has a peer: the
//! minimum that the same result can cost. Rows with a bar say whether it is met. The exit code is 1
//! if any bar is missed.
//!
//! | File | What it measures |
//! |---|---|
//! | `applicability` | the query that a host makes to every engine for every graph |
//! | `execution` | the plugin's overhead per execution |
//! | `creation` | creating a context: compiled, from disk, from memory |
//!
//! All of them use the C ABI of the shared library's release build. `scripts/bench` builds and runs
//! this program. Engines are compared by `rotini bench`.

mod applicability;
mod creation;
mod execution;
mod report;
mod sampling;
mod subject;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use report::{Report, Row};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures the plugin beside it (or the one that ROTINI_PLUGIN names) on the CPU, and what it
/// compiles for an MI300.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The benches to run; all by default
    names: Vec<String>,

    /// Writes the results with their quartiles to this file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// What `creation` starts other processes for: makes something of a file and tells the times
    #[arg(long, value_name = "PART", requires = "file", hide = true)]
    part: Option<creation::Part>,

    /// The file
    #[arg(long, value_name = "FILE", hide = true)]
    file: Option<PathBuf>,
}

type Bench = fn() -> Result<Vec<Row>>;

const BENCHES: [(&str, Bench); 3] = [
    ("applicability", applicability::run),
    ("execution", execution::run),
    ("creation", creation::run),
];

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let (Some(part), Some(file)) = (args.part, &args.file) {
        return part.play(file).map(|()| ExitCode::SUCCESS);
    }
    if let Some(unknown) = args
        .names
        .iter()
        .find(|name| BENCHES.iter().all(|(known, _)| known != name))
    {
        bail!(
            "no bench is called {unknown}; there are {}",
            BENCHES.map(|(name, _)| name).join(", ")
        );
    }

    let cache = tempfile::tempdir().context("no temporary directory")?;
    // SAFETY: this is the only thread, and the plugin, which reads these, is not loaded yet.
    unsafe {
        std::env::set_var("ROTINI_DEVICE", "cpu");
        std::env::set_var("ROTINI_CACHE_DIR", cache.path());
    }
    let mut report = Report::new(rotini_tests::plugin::path()?);
    for (name, bench) in BENCHES {
        if args.names.is_empty() || args.names.iter().any(|wanted| wanted == name) {
            writeln!(std::io::stderr(), "measuring: {name}")?;
            report
                .rows
                .extend(bench().with_context(|| format!("the bench {name} failed"))?);
        }
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    writeln!(std::io::stdout(), "{report}")?;
    Ok(if report.all_met() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
