//! Problems in a program's log: command lines that MIOpen logs with `MIOPEN_ENABLE_LOGGING_CMD=1`,
//! and graphs in hipDNN's JSON form.

mod objects;

use crate::{Workload, WorkloadError, from_miopen, json};
use objects::Objects;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, BufRead};

/// The problems found in a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogContents {
    /// The distinct problems, in the order of their first occurrences.
    pub problems: Vec<Problem>,
    /// Lines that name the driver or begin a graph but cannot be read: the line's number, and the
    /// error. At most a hundred.
    pub not_understood: Vec<(usize, WorkloadError)>,
}

/// A problem in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The graph.
    pub workload: Workload,
    /// Number of command lines or JSON objects that describe the problem.
    pub occurrences: usize,
}

/// Reads a log.
///
/// Graphs that differ only in names and uids are one problem.
///
/// # Errors
///
/// Errors of the reader. Invalid UTF-8 in a line is replaced and is no error.
pub fn from_log(mut text: impl BufRead) -> io::Result<LogContents> {
    let mut found = Found::default();
    let mut objects = Objects::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if line.contains("MIOpenDriver") {
            match from_miopen(line.trim_end()) {
                Ok(workloads) => workloads.into_iter().for_each(|workload| found.add(workload)),
                Err(error) => found.fail(number, error),
            }
        }
        for (begin, object) in objects.read(number, &line) {
            // Other programs log JSON objects too, so an object that is not a graph is no error.
            if let Ok(Value::Object(object)) = serde_json::from_str(&object)
                && json::is_graph(&object)
            {
                match json::from_object(object) {
                    Ok(workload) => found.add(workload),
                    Err(error) => found.fail(begin, error),
                }
            }
        }
    }
    if let Some(number) = objects.unfinished_graph() {
        found.fail(number, json::unfinished());
    }
    found.contents.not_understood.sort_by_key(|(number, _)| *number);
    Ok(found.contents)
}

#[derive(Default)]
struct Found {
    contents: LogContents,
    /// The index of each problem, by the canonical bytes of its graph.
    places: HashMap<Vec<u8>, usize>,
}

impl Found {
    fn add(&mut self, workload: Workload) {
        let computed = rotini_wire::decode(&workload.graph)
            .ok()
            .and_then(|graph| graph.normalise().0.canonical_bytes().ok());
        let key = computed.unwrap_or_else(|| workload.graph.clone());
        let problems = &mut self.contents.problems;
        let place = *self.places.entry(key).or_insert(problems.len());
        match problems.get_mut(place) {
            Some(problem) => problem.occurrences += 1,
            None => problems.push(Problem {
                workload,
                occurrences: 1,
            }),
        }
    }

    fn fail(&mut self, line: usize, error: WorkloadError) {
        /// Maximum number of unreadable lines that are reported.
        const MOST: usize = 100;
        if self.contents.not_understood.len() < MOST {
            self.contents.not_understood.push((line, error));
        }
    }
}
