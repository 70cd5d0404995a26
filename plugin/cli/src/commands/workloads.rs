//! The graphs that a command works on.

use crate::args::Workloads;
use crate::input::GraphFile;
use crate::output::Output;
use crate::report;
use anyhow::{Context as _, Result};
use rotini_workloads::suites::{SuiteOptions, suite};
use rotini_workloads::{Problem, Workload, from_log, from_miopen};
use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads all graphs. A repeated name gets a number appended.
pub(super) fn workloads(args: &Workloads, output: &Output) -> Result<Vec<Workload>> {
    let mut workloads = Vec::new();
    for path in &args.graphs {
        workloads.push(graph(path)?);
    }
    let options = SuiteOptions {
        batch: args.batch,
        layout: args.layout,
        dtype: args.dtype,
        direction: args.direction,
    };
    for name in &args.suites {
        workloads.extend(suite(name, &options)?);
    }
    for line in &args.miopen {
        workloads.extend(from_miopen(line)?);
    }
    if let Some(path) = &args.from_log {
        workloads.extend(logged(path, output)?);
    }
    let mut names = HashSet::new();
    for workload in &mut workloads {
        let name = workload.name.clone();
        let mut number = 2;
        while !names.insert(workload.name.clone()) {
            workload.name = format!("{name} ({number})");
            number += 1;
        }
    }
    Ok(workloads)
}

fn graph(path: &Path) -> Result<Workload> {
    let file = GraphFile::read(path);
    Ok(Workload {
        name: file.name,
        origin: file.path,
        graph: file.bytes?,
        published: Vec::new(),
    })
}

/// Returns the problems of a log, the most frequent first, and reports the lines that are not
/// understood.
fn logged(path: &Path, output: &Output) -> Result<Vec<Workload>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut contents = from_log(BufReader::new(file)).with_context(|| format!("cannot read {}", path.display()))?;
    for (line, error) in &contents.not_understood {
        output.note(&report::plain(&format!("{}:{line}: {error}", path.display())))?;
    }
    contents
        .problems
        .sort_by_key(|problem| std::cmp::Reverse(problem.occurrences));
    let workload = |problem: Problem| Workload {
        origin: format!("{} ({} in the log)", problem.workload.origin, problem.occurrences),
        ..problem.workload
    };
    Ok(contents.problems.into_iter().map(workload).collect())
}
