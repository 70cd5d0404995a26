//! Random graphs of the second encoder, with truth values and FNUZ: nothing else states their wire
//! numbers a second time.

use super::Settings;
use crate::cases::{Encoded, second_random};
use crate::harness::Runner;
use rayon::prelude::*;
use rotini_graph::DataType;
use std::collections::BTreeMap;

/// The types that the graphs cover.
const TYPES: [DataType; 3] = [DataType::Bool, DataType::F8E4M3Fnuz, DataType::F8E5M2Fnuz];

/// Runs random graphs of the second encoder and prints how many have each of the types.
///
/// # Panics
///
/// If the encoder does not run, or any graph is declined, decoded as another one, wrong, or does
/// not compile.
#[expect(clippy::print_stdout, reason = "what was run is told")]
#[expect(clippy::panic, reason = "a test that cannot be set up has failed")]
pub fn run_second(runner: &Runner, settings: Settings) {
    let Settings { seed, count } = settings;
    let all = second_random(seed, count).unwrap_or_else(|error| panic!("the second encoder: {error:#}"));
    let mut with: BTreeMap<DataType, usize> = BTreeMap::new();
    for Encoded { case, .. } in &all {
        for dtype in TYPES {
            let has = case.graph.tensors.iter().any(|tensor| tensor.dtype == dtype);
            *with.entry(dtype).or_default() += usize::from(has);
        }
    }
    let results: Vec<_> = all
        .par_iter()
        .map(|encoded| (&encoded.case.name, runner.run_second(encoded, 64)))
        .collect();
    let (mut elements, mut blunt, mut failures) = (0, 0, Vec::new());
    for (name, result) in results {
        match result {
            Ok(outcome) => {
                elements += outcome.elements;
                blunt += outcome.blunt;
            }
            // The encoder names a graph by its seed.
            Err(error) => failures.push(format!("{name}: {error:#}")),
        }
    }
    println!(
        "{} graphs from seed {seed}, with types {with:?}: {} failed; {elements} elements, {blunt} of them with bounds that say nothing",
        all.len(),
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} graphs failed\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(
        blunt * 4 <= elements,
        "nothing is known about {blunt} of {elements} elements"
    );
}
