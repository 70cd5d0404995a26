//! What the emitter schedules compiles as it is. Example: the compiler rejects a kernel of our own. Then the plugin compiles the graph without
//! schedules. The result is right, only slower, so no other test tells.

use iree_sys::compiler::{CompileRequest, Compiler as _, InProcess, find_library};
use rotini_emit::{Target, emit};
use rotini_tests::cases;

/// One in so many cases, others each time: usually, and in a full run.
const EVERY: [usize; 2] = [120, 2];

#[test]
fn what_is_scheduled_compiles_as_it_is() {
    let target = Target::parse("mi300x").expect("it is known");
    let plain = target.unscheduled().expect("an MI300 has schedules");
    let library = find_library().unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: what is found as IREE's compiler is IREE's compiler.
    let compiler = unsafe { InProcess::open(&library) }.unwrap_or_else(|error| panic!("{error}"));
    let every = rotini_tests::scaled(EVERY);
    let first = usize::try_from(rotini_tests::seed() % every as u64).expect("it is small");
    let (mut scheduled, mut failures) = (0, Vec::new());
    for case in cases::all().into_iter().skip(first).step_by(every) {
        let mut graph = case.graph;
        graph.validate().expect("the graph is valid");
        let normal = graph.normalise().0;
        let (Ok(emitted), Ok(plain)) = (emit(&normal, &target), emit(&normal, &plain)) else {
            continue;
        };
        if emitted.mlir == plain.mlir {
            continue;
        }
        scheduled += 1;
        let request = CompileRequest {
            mlir: &emitted.mlir,
            name: "scheduled.mlir",
            flags: &emitted.flags,
            dump_executables: None,
        };
        match compiler.compile(&request) {
            Ok(compiled) if compiled.statistics.allocated_bytes == 0 => {}
            Ok(_) => failures.push(format!("{}: allocates", case.name)),
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(scheduled > 3, "{scheduled} of the cases have schedules");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
