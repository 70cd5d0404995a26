//! A graph of a run: its measurements so far, and its row of results.

use crate::plan::RunError;
use crate::results::{Comparison, Measurement, Outcome, Row};
use crate::statistics::{interval, times};
use crate::summary::{Summary, summarise};
use rotini_graph::Graph;
use rotini_workloads::Workload;
use std::path::PathBuf;

/// A graph of a run, and its measurements so far.
pub(crate) struct Job<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) file: PathBuf,
    pub(crate) graph: Graph,
    pub(crate) summary: Summary,
    pub(crate) measurements: Vec<Measurement>,
    /// By engine and visit.
    pub(crate) hot: Vec<Vec<Vec<f64>>>,
    pub(crate) rotating: Vec<Vec<Vec<f64>>>,
    /// The results of the first execution, by engine.
    pub(crate) first: Vec<Vec<u8>>,
    /// The engine whose first results serve as the reference where computing it would take too
    /// long.
    pub(crate) peer: Option<usize>,
}

impl<'a> Job<'a> {
    pub(crate) fn new(workload: &'a Workload, file: PathBuf, engines: usize) -> Result<Self, RunError> {
        let graph = rotini_wire::decode(&workload.graph).map_err(|source| RunError::Graph {
            name: workload.name.clone(),
            source,
        })?;
        std::fs::write(&file, &workload.graph)?;
        Ok(Job {
            summary: summarise(&graph),
            workload,
            file,
            graph,
            measurements: vec![Measurement::of(Outcome::Right); engines],
            hot: vec![Vec::new(); engines],
            rotating: vec![Vec::new(); engines],
            first: vec![Vec::new(); engines],
            peer: None,
        })
    }

    /// Returns the row of results.
    pub(crate) fn row(&self) -> Row {
        let mut measurements = self.measurements.clone();
        for (index, measurement) in measurements.iter_mut().enumerate() {
            if measurement.outcome.times_count() {
                measurement.hot = self.hot.get(index).and_then(|visits| times(visits));
                measurement.rotating = self.rotating.get(index).and_then(|visits| times(visits));
            } else {
                measurement.host_p50 = None;
                measurement.host_p99 = None;
            }
        }
        let compare = |index: usize| {
            let counted = |index: usize| self.measurements.get(index).is_some_and(|m| m.outcome.times_count());
            if !counted(0) || !counted(index) {
                return None;
            }
            let (first, other) = (self.hot.first()?, self.hot.get(index)?);
            // Round by round: what slows both down is in both.
            let of_visit = |(first, other): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> {
                first.iter().zip(other).map(|(first, other)| other / first).collect()
            };
            let ratios: Vec<Vec<f64>> = first.iter().zip(other).map(of_visit).collect();
            let (ratio, low, high) = interval(&ratios)?;
            Some(Comparison {
                engine: index,
                ratio,
                low,
                high,
            })
        };
        Row {
            graph: self.workload.name.clone(),
            origin: self.workload.origin.clone(),
            summary: self.summary.words.clone(),
            dtype: self.summary.dtype.clone(),
            flops: self.summary.flops,
            bytes: self.summary.bytes,
            predicted: None,
            published: self.workload.published.clone(),
            comparisons: (1..self.measurements.len()).filter_map(compare).collect(),
            measurements,
        }
    }
}
