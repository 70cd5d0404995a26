//! Scheduled code compiles as it is, with fallback flags at most. If the compiler rejected one of
//! rotini's kernels, the plugin would compile the graph without schedules: the result would be
//! right, only slower, so no other test would notice.

use rayon::prelude::*;
use rotini_emit::{Target, emit};
use rotini_iree::compiler::{Program, find_program};
use rotini_plugin::attempts::compile_for;
use rotini_tests::cases::{self, Case};

/// Sampling interval of the cases, in a usual run and in a full run; the sample changes each time.
const EVERY: [usize; 2] = [120, 2];

#[test]
fn what_is_scheduled_compiles_as_it_is() {
    let target = Target::parse("mi300x").expect("it is known");
    let plain = target.unscheduled().expect("an MI300 has schedules");
    let program = find_program().unwrap_or_else(|error| panic!("{error}"));
    // In a separate process: the compiler crashes on code that needs fallback flags (the quirk
    // `PaddedTiles`).
    let compiler = Program::new(&program).unwrap_or_else(|error| panic!("{error}"));
    let every = rotini_tests::scaled(EVERY);
    let first = usize::try_from(rotini_tests::seed() % every as u64).expect("it is small");
    let chosen: Vec<_> = cases::all().into_iter().skip(first).step_by(every).collect();
    let compiled = |case: &Case| {
        let mut graph = case.graph.clone();
        graph.validate().expect("the graph is valid");
        let normal = graph.normalise().0;
        let (Ok(emitted), Ok(plain)) = (emit(&normal, &target), emit(&normal, &plain)) else {
            return None;
        };
        if emitted.mlir == plain.mlir {
            return None;
        }
        Some(match compile_for(&compiler, &emitted, &target, None) {
            Ok(compiled) if compiled.statistics.allocated_bytes == 0 => None,
            Ok(_) => Some(format!("{}: allocates", case.name)),
            Err(error) => Some(format!("{}: {error}", case.name)),
        })
    };
    let results: Vec<_> = chosen.par_iter().filter_map(compiled).collect();
    assert!(results.len() > 3, "{} of the cases have schedules", results.len());
    let failures: Vec<_> = results.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
