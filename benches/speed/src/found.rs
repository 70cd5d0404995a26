//! Selection of schedules. From tables that were predicted with the closed form's first, second, …
//! schedule of each product, it takes the fastest schedule of each graph, executes it strictly, and
//! writes `mlir-emit/schedule/schedules/*.toml`.
//!
//! Only graphs with exactly one product count. An entry has to be predicted much faster than the
//! closed form's choice, and the closed form, which is independent of the prediction, must not
//! contradict it by more than its own error.

use crate::suites::Suite;
use crate::table::Row;
use anyhow::{Context as _, Result, ensure};
use rotini_emit::{Target, products};
use rotini_schedule::Machine;
use rotini_schedule::gemm::{Problem, Schedule, estimate, estimated};
use rotini_schedule::known::{FASTER, Found, Table};
use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The machine whose file is written.
const MACHINE: &str = "mi300x";

/// Largest factor by which the closed form may estimate the schedule to be slower than its own
/// choice. Its error is about 12 %.
const CONTRADICTION: f64 = 1.15;

/// Number of operations above which a graph is not executed and gets no entry, because the emulator
/// would take hours.
const MOST_OPERATIONS: f64 = 2e10;

/// The first lines of the file.
const HEAD: &str = "# Written by scripts/schedules. All times are predicted, none was measured. Each schedule was executed strictly on the emulated\n\
     # MI300X, at its product's real size, with right results.\n\n";

/// The programs and libraries that execute graphs strictly.
pub(crate) struct Strictly<'a> {
    /// The program `rotini`.
    pub(crate) program: PathBuf,
    pub(crate) plugin: &'a Path,
    pub(crate) emulator: &'a Path,
}

/// A schedule that is a candidate for the file, with its graph.
struct Winner {
    found: Found,
    bytes: Vec<u8>,
}

/// Writes to `file` the winning schedules whose results are right. `tables` are ordered by the
/// closed form's rank, its own choice first. Entries of graphs that are not in the tables are kept.
pub(crate) fn write(file: &Path, tables: &[Vec<Row>], suites: &[Suite], strictly: &Strictly<'_>) -> Result<()> {
    let old = match fs::read_to_string(file) {
        Ok(text) => Table::read(&text).with_context(|| file.display().to_string())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Table::default(),
        Err(error) => return Err(error.into()),
    };
    let estimated = tables.first().context("no tables")?;
    let tried: HashSet<String> = estimated.iter().map(name).collect();
    let mut product: Vec<Found> = old.product;
    product.retain(|found| !tried.contains(&found.graph));
    let mut known: HashSet<Problem> = product.iter().map(|found| found.problem).collect();
    let mut out = io::stdout();
    for row in estimated {
        let Some(winner) = winner(row, tables, suites)? else {
            continue;
        };
        let Winner { found, bytes } = winner;
        if !known.insert(found.problem) {
            continue;
        }
        let verdict = match strictly.execute(&found, &bytes) {
            Ok(()) => "right".to_owned(),
            Err(error) => format!("left out: {error:#}"),
        };
        let Found {
            graph,
            schedule,
            predicted_us,
            estimated_us,
            ..
        } = &found;
        writeln!(
            out,
            "{graph}: {schedule}, predicted {predicted_us} µs, with the closed form's choice {estimated_us} µs; executed strictly: {verdict}"
        )?;
        if verdict == "right" {
            product.push(found);
        }
    }
    product.sort_by(|a, b| a.graph.cmp(&b.graph));
    let text = Table { product }.text()?;
    fs::write(file, format!("{HEAD}{text}")).with_context(|| file.display().to_string())
}

fn name(row: &Row) -> String {
    format!("{} {}", row.suite, row.graph)
}

/// Returns the schedule with which a graph is predicted to be the fastest, if that is faster than
/// the closed form's choice by the factor of [`FASTER`].
fn winner(row: &Row, tables: &[Vec<Row>], suites: &[Suite]) -> Result<Option<Winner>> {
    let is_it = |other: &&Row| other.suite == row.suite && other.graph == row.graph;
    let ranked = tables.iter().enumerate();
    let ranked = ranked.filter_map(|(rank, table)| Some((rank, table.iter().find(is_it)?)));
    let Some((rank, best)) = ranked.min_by(|(_, a), (_, b)| a.predicted_us.total_cmp(&b.predicted_us)) else {
        return Ok(None);
    };
    let predicted_us = best.predicted_us;
    let [inside, outside] = FASTER;
    let factor = if row.extrapolated || best.extrapolated {
        outside
    } else {
        inside
    };
    if predicted_us * factor > row.predicted_us {
        return Ok(None);
    }
    let workloads = suites.iter().find(|(name, _)| *name == row.suite);
    let workload = workloads.and_then(|(_, all)| all.iter().find(|one| one.name == row.graph));
    let bytes = workload
        .with_context(|| format!("no graph {}", name(row)))?
        .graph
        .clone();
    let Some((problem, schedule)) = product(&bytes, &format!("{MACHINE}:cut-{rank}"))? else {
        return Ok(None);
    };
    let machine = Machine::of(MACHINE).context("an unknown machine")?;
    let first = estimated(machine, &problem).context("a product without schedules")?;
    let contradicts = estimate(machine, &problem, &schedule) > CONTRADICTION * estimate(machine, &problem, &first);
    // The copies before the product and the distribution of a split-K sum may depend on the
    // schedule, so the closed form's choice must be for the same product.
    let is_first = product(&bytes, &format!("{MACHINE}:cut-0"))? == Some((problem, first));
    let found = Found {
        graph: name(row),
        schedule: schedule.word(),
        predicted_us,
        estimated_us: row.predicted_us,
        problem,
    };
    Ok((is_first && schedule != first && !contradicts).then_some(Winner { found, bytes }))
}

/// Returns a graph's only product with its schedule; `None` if the graph has not exactly one.
fn product(bytes: &[u8], target: &str) -> Result<Option<(Problem, Schedule)>> {
    let target = Target::parse(target).context("an unknown target")?;
    let mut graph = rotini_wire::decode(bytes)?;
    graph.validate()?;
    let products = products(&graph.normalise().0, &target)?;
    Ok(match products.as_slice() {
        &[one] => Some(one),
        _ => None,
    })
}

impl Strictly<'_> {
    /// Executes a graph with a schedule, and compares the results with the reference.
    fn execute(&self, found: &Found, bytes: &[u8]) -> Result<()> {
        let operations = rotini_bench::summarise(&rotini_wire::decode(bytes)?).flops;
        ensure!(
            operations.is_none_or(|operations| operations <= MOST_OPERATIONS),
            "it is too large to be executed"
        );
        let directory = tempfile::tempdir()?;
        let graph = directory.path().join("graph.bin");
        fs::write(&graph, bytes)?;
        let mut command = Command::new(&self.program);
        command
            .args(["run", "--repeat", "1"])
            .arg(&graph)
            .env("ROTINI_TARGET", format!("{MACHINE}:cut-{}", found.schedule))
            .env("ROTINI_CACHE_DIR", directory.path().join("cache"))
            .env("ROTINI_DEVICE", "hip")
            .env("ROTINI_PLUGIN", self.plugin)
            .env("ROTINI_HIP_LIBRARY", self.emulator)
            .env("HIPEMU_STRICT", "1");
        for sampled in ["HIPEMU_SAMPLE", "HIPEMU_REPORT"] {
            command.env_remove(sampled);
        }
        let output = command.output().with_context(|| self.program.display().to_string())?;
        let said = [output.stdout, output.stderr].concat();
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said).trim());
        Ok(())
    }
}
