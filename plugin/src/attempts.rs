//! The attempts at compiling a graph, and the rule that selects one of their results.
//!
//! | Attempt | Module | Flags | Condition |
//! |---|---|---|---|
//! | 1 | as emitted | those emitted with it | |
//! | 2 | the same | also the fallback flags | the compiler crashed in 1, or rejected the module |
//! | 3 | without schedules | those emitted with it | 1 and 2 made no good code: see below |
//! | 4 | the same | also the fallback flags | the compiler crashed in 3, or rejected the module |
//!
//! Attempt 3 is made if the module or a limit is to blame for the failure of 1 and 2, or if their
//! code allocates.
//!
//! The last attempt's result counts, unless it is a failure that blames the module: then the result
//! that counted before still counts. A reproducer has the flags of the first attempt. A temporary
//! failure or a limit does not blame the module, which might compile later with the same flags.
//!
//! Emitted modules are valid, so a rejection means that one pass could not finish what another
//! began. The code of every attempt is right, so the cache's key need not record which attempt made
//! it.

use crate::reproducer::SOURCE_NAME;
use rotini_emit::{Emitted, Target};
use rotini_graph::NormalGraph;
use rotini_iree::compiler::{Blame, CompileError, CompileRequest, Compiled, Compiler};
use std::borrow::Cow;
use std::path::Path;

type Outcome = Result<Compiled, CompileError>;

/// The change that a further attempt makes.
enum Change {
    FallbackFlags,
    NoSchedules,
}

/// The changes of attempts 2 to 4.
const CHANGES: [Change; 3] = [Change::FallbackFlags, Change::NoSchedules, Change::FallbackFlags];

/// Makes all attempts at compiling a graph's emitted module. The argument `call` makes one attempt,
/// as the function [`call`] does.
///
/// # Errors
///
/// The error of the attempt that counts.
pub fn compile_graph(
    graph: &NormalGraph,
    target: &Target,
    emitted: &Emitted,
    call: impl Fn(&Emitted) -> Outcome,
) -> Outcome {
    let plain = || {
        let target = target.unscheduled()?;
        let plain = rotini_emit::emit(graph, &target).ok()?;
        (plain.mlir != emitted.mlir).then_some((plain, target))
    };
    attempt(emitted, target, plain, call)
}

/// Makes the attempts that need only the module and not its graph: 1 and 2. If `dump_executables`
/// is set, the kernels are also written to that directory.
///
/// # Errors
///
/// The error of the attempt that counts.
pub fn compile_for(
    compiler: &dyn Compiler,
    emitted: &Emitted,
    target: &Target,
    dump_executables: Option<&Path>,
) -> Outcome {
    attempt(
        emitted,
        target,
        || None,
        |module| call(compiler, module, dump_executables),
    )
}

/// Calls the compiler once. If `dump_executables` is set, the kernels are also written to that
/// directory.
///
/// # Errors
///
/// The compiler's error.
pub fn call(compiler: &dyn Compiler, module: &Emitted, dump_executables: Option<&Path>) -> Outcome {
    compiler.compile(&CompileRequest {
        mlir: &module.mlir,
        name: SOURCE_NAME,
        flags: &module.flags,
        dump_executables,
    })
}

/// Makes the attempts. `plain` returns the module without schedules and its target, if that module
/// differs.
fn attempt(
    emitted: &Emitted,
    target: &Target,
    plain: impl Fn() -> Option<(Emitted, Target)>,
    call: impl Fn(&Emitted) -> Outcome,
) -> Outcome {
    let (mut module, mut target) = (Cow::Borrowed(emitted), Cow::Borrowed(target));
    let mut counts = call(&module);
    let mut refusal = refusal(&counts);
    for change in CHANGES {
        match change {
            Change::FallbackFlags => {
                let Some(error) = refusal else { continue };
                tracing::warn!(%target, "{error}; the compiler is called again with fallback flags");
                module.to_mut().flags.extend(target.fallback_flags());
            }
            Change::NoSchedules => {
                let Some((plain, unscheduled)) = may_do_better(&counts).then(&plain).flatten() else {
                    break;
                };
                (module, target) = (Cow::Owned(plain), Cow::Owned(unscheduled));
                tracing::warn!(%target, "the compiler is called again without schedules");
            }
        }
        let last = call(&module);
        refusal = self::refusal(&last);
        counts = last.or_else(|error| {
            if error.blame() == Blame::Module {
                counts
            } else {
                Err(error)
            }
        });
    }
    counts
}

/// Returns the error of an attempt if the fallback flags may help. They make slower code, which is
/// kept, so they are not tried after a failure with another cause, such as a linker without disk
/// space.
fn refusal(outcome: &Outcome) -> Option<String> {
    match outcome {
        Err(error @ (CompileError::Crashed { .. } | CompileError::Rejected { .. }))
            if error.blame() == Blame::Module =>
        {
            Some(error.to_string())
        }
        _ => None,
    }
}

/// Returns true if the graph without schedules may compile, or may compile to better code.
fn may_do_better(outcome: &Outcome) -> bool {
    match outcome {
        Ok(compiled) => compiled.statistics.allocated_bytes != 0,
        Err(error) => matches!(error.blame(), Blame::Module | Blame::Limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_iree::compiler::Statistics;
    use std::cell::RefCell;

    /// Returns the outcome that a letter stands for: `c`ode, code that `a`llocates, `r`ejected,
    /// `l`ate (a timeout), or `-`, a crash without diagnostics.
    fn outcome(letter: u8, diagnostics: String) -> Outcome {
        Err(match letter {
            b'r' => CompileError::Rejected { diagnostics },
            b'l' => CompileError::Timeout {
                seconds: 1.0,
                diagnostics,
            },
            b'-' => CompileError::Crashed {
                status: None,
                diagnostics: String::new(),
            },
            _ => {
                return Ok(Compiled {
                    vmfb: vec![1],
                    statistics: Statistics {
                        allocated_bytes: u64::from(letter == b'a'),
                        ..Statistics::default()
                    },
                    diagnostics,
                });
            }
        })
    }

    /// Returns the numbers of the attempts that are made, and the diagnostics of the one that
    /// counts, which are its number unless it crashed. `outcomes` has the outcome of each of the
    /// four attempts.
    fn made(outcomes: &[u8; 4], has_schedules: bool) -> (Vec<usize>, String) {
        let module = |mlir: &str| Emitted {
            mlir: mlir.to_owned(),
            flags: Vec::new(),
            signature: rotini_emit::Signature { arguments: Vec::new() },
        };
        let target = Target::parse("gfx942").unwrap();
        let made = RefCell::new(Vec::new());
        let call = |module: &Emitted| {
            let number = 1 + usize::from(!module.flags.is_empty()) + 2 * usize::from(module.mlir == "plain");
            made.borrow_mut().push(number);
            outcome(outcomes[number - 1], number.to_string())
        };
        let plain = || has_schedules.then(|| (module("plain"), target.clone()));
        let counts = attempt(&module("emitted"), &target, plain, call);
        let counts = counts.map_or_else(|error| error.diagnostics().to_owned(), |compiled| compiled.diagnostics);
        (made.into_inner(), counts)
    }

    #[test]
    fn attempts_are_made_in_order() {
        for (outcomes, attempts, counts) in [
            (b"c---", &[1][..], "1"),
            (b"-ccc", &[1], ""),
            (b"rc--", &[1, 2], "2"),
            (b"r-cc", &[1, 2], ""),
            (b"rrc-", &[1, 2, 3], "3"),
            (b"rlc-", &[1, 2, 3], "3"),
            (b"rac-", &[1, 2, 3], "3"),
            (b"l-c-", &[1, 3], "3"),
            (b"a-l-", &[1, 3], "3"),
            (b"rrrc", &[1, 2, 3, 4], "4"),
            (b"rrrl", &[1, 2, 3, 4], "4"),
            (b"rrrr", &[1, 2, 3, 4], "1"),
            (b"rlrr", &[1, 2, 3, 4], "2"),
            (b"a-rr", &[1, 3, 4], "1"),
        ] {
            assert_eq!(made(outcomes, true), (attempts.to_vec(), counts.to_owned()));
        }
        assert_eq!(made(b"lccc", false), (vec![1], "1".to_owned()));
        assert_eq!(made(b"rrcc", false), (vec![1, 2], "1".to_owned()));
    }

    /// A limit stopped the attempt with fallback flags, so nothing is known about the module.
    #[test]
    fn a_second_call_that_passes_is_no_verdict_on_the_module() {
        assert_eq!(made(b"rlcc", false), (vec![1, 2], "2".to_owned()));
    }

    /// No graph is declined because of its schedule.
    #[test]
    fn what_does_not_compile_with_a_schedule_is_compiled_without() {
        let mut b = rotini_graph::GraphBuilder::new("matmul");
        let half = rotini_graph::DataType::F16;
        let a = b.buffer("a", half, &[2048, 128]);
        let columns = b.tensor("b", half, &[128, 1024], &[1, 128], rotini_graph::TensorKind::Buffer);
        let c = b.buffer("c", half, &[2048, 1024]);
        b.node(
            "matmul",
            rotini_graph::DataType::F32,
            rotini_graph::Matmul { a, b: columns, c },
        );
        let mut graph = b.build();
        graph.validate().unwrap();
        let graph = graph.normalise().0;
        let target = Target::parse("mi300x").unwrap();
        let emitted = rotini_emit::emit(&graph, &target).unwrap();
        let compiled = |scheduled, plain, target| {
            compile_graph(&graph, target, &emitted, |module| {
                let has_schedules = module.mlir.contains("flow.dispatch");
                outcome(if has_schedules { scheduled } else { plain }, String::new())
            })
        };
        for failure in [b'r', b'l'] {
            assert!(compiled(failure, failure, &target).is_err());
            assert!(compiled(failure, b'c', &target).is_ok());
        }
        // A temporary second failure says nothing about the module. If both failures do, the first
        // is reported.
        let blame = |scheduled, plain| compiled(scheduled, plain, &target).err().map(|error| error.blame());
        assert_eq!(blame(b'r', b'-'), Some(Blame::Moment));
        assert_eq!(blame(b'l', b'r'), Some(Blame::Limit));
        assert_eq!(blame(b'-', b'c'), Some(Blame::Moment));
        // A target without schedules is not compiled a second time.
        let plain = target.unscheduled().unwrap();
        assert!(compiled(b'r', b'c', &plain).is_err());
    }
}
