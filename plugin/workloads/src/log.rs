//! Problems in the log of a program: command lines that MIOpen has logged (`MIOPEN_ENABLE_LOGGING_CMD=1`).

use crate::{Workload, WorkloadError, from_miopen};
use std::collections::HashMap;
use std::io::{self, BufRead};

/// What was found in a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogContents {
    /// Each problem once, in the order of their first lines.
    pub problems: Vec<Problem>,
    /// Lines that name the driver and are no graph: the number of the line, and why. The first hundred.
    pub not_understood: Vec<(usize, WorkloadError)>,
}

/// A problem of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The graph.
    pub workload: Workload,
    /// How many lines say it.
    pub occurrences: usize,
}

/// Reads a log.
///
/// # Errors
///
/// Those of the reader. Lines that are not UTF-8 are read as far as they are.
pub fn from_log(mut text: impl BufRead) -> io::Result<LogContents> {
    /// What is told of lines that are no graph.
    const MOST: usize = 100;
    let mut contents = LogContents::default();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if !line.contains("MIOpenDriver") {
            continue;
        }
        match from_miopen(line.trim_end()) {
            Ok(workloads) => {
                for workload in workloads {
                    let next = contents.problems.len();
                    let place = *places.entry(workload.graph.clone()).or_insert(next);
                    match contents.problems.get_mut(place) {
                        Some(problem) => problem.occurrences += 1,
                        None => contents.problems.push(Problem {
                            workload,
                            occurrences: 1,
                        }),
                    }
                }
            }
            Err(error) if contents.not_understood.len() < MOST => contents.not_understood.push((number, error)),
            Err(_) => (),
        }
    }
    Ok(contents)
}
