//! What the emitter schedules compiles as it is. Example: the compiler rejects a kernel of our own. Then the plugin compiles the graph without
//! schedules. The result is right, only slower, so no other test tells.

use iree_sys::compiler::{CompileRequest, Compiler as _, InProcess, find_library};
use rayon::prelude::*;
use rotini_emit::{Target, emit};
use rotini_tests::cases::{self, Case};

/// One in so many cases, others each time: usually, and in a full run.
const EVERY: [usize; 2] = [120, 2];
/// Bytes of a thread's stack, as compile workers have them.
const STACK: usize = 64 << 20;

#[test]
fn what_is_scheduled_compiles_as_it_is() {
    let target = Target::parse("mi300x").expect("it is known");
    let plain = target.unscheduled().expect("an MI300 has schedules");
    let library = find_library().unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: what is found as IREE's compiler is IREE's compiler.
    let compiler = unsafe { InProcess::open(&library) }.unwrap_or_else(|error| panic!("{error}"));
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
        // On some gradients of attention with scores in memory IREE's compiler recurses without an end, which would end this process. A compile
        // worker ends instead, and the plugin compiles the graph without schedules.
        let may_be_endless = case.name.starts_with("sdpa_backward") && !emitted.mlir.contains("@gradients_of_");
        if may_be_endless || emitted.mlir == plain.mlir {
            return None;
        }
        let request = CompileRequest {
            mlir: &emitted.mlir,
            name: "scheduled.mlir",
            flags: &emitted.flags,
            dump_executables: None,
        };
        Some(match compiler.compile(&request) {
            Ok(compiled) if compiled.statistics.allocated_bytes == 0 => None,
            Ok(_) => Some(format!("{}: allocates", case.name)),
            Err(error) => Some(format!("{}: {error}", case.name)),
        })
    };
    // The compiler recurses along its input.
    let threads = rayon::ThreadPoolBuilder::new().stack_size(STACK).build();
    let results: Vec<_> = threads
        .expect("threads start")
        .install(|| chosen.par_iter().filter_map(compiled).collect());
    assert!(results.len() > 3, "{} of the cases have schedules", results.len());
    let failures: Vec<_> = results.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
