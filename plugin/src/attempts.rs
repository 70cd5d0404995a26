//! The attempts at compiling a graph, and which of their results counts.
//!
//! | Attempt | Module | Flags | It is made if |
//! |---|---|---|---|
//! | 1 | as emitted | those emitted with it | |
//! | 2 | the same | the fallback flags too | the compiler crashed in 1, or rejected the module |
//! | 3 | without schedules | those emitted with it | the module or a limit is to blame for the failure of 1 and 2, or their code allocates |
//! | 4 | the same | the fallback flags too | the compiler crashed in 3, or rejected the module |
//!
//! The last result counts, unless it blames the module: then the one before does, and a reproducer
//! has the flags of the first. A temporary failure or a limit does not blame the module:
//! with these flags it might compile later.
//!
//! What is emitted is valid, so a rejection is a pass that could not finish what another began. All
//! attempts make right code, so the cache's key need not say which one did.

use crate::reproducer::SOURCE_NAME;
use rotini_emit::{Emitted, Target};
use rotini_graph::NormalGraph;
use rotini_iree::compiler::{Blame, CompileError, CompileRequest, Compiled, Compiler};
use std::borrow::Cow;
use std::path::Path;

type Outcome = Result<Compiled, CompileError>;

/// What each further attempt changes.
enum Change {
    FallbackFlags,
    NoSchedules,
}

/// The changes of attempts 2 to 4.
const CHANGES: [Change; 3] = [Change::FallbackFlags, Change::NoSchedules, Change::FallbackFlags];

/// Makes all attempts at the emitted module of a graph. Each is a call of a function such as
/// [`call`].
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

/// Makes the attempts at a module that are possible without its graph: 1 and 2. If
/// `dump_executables` is set, the kernels are also written to that directory.
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

/// Makes the attempts. `plain` is the module without schedules, if it is another.
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

/// Returns why an attempt failed if other flags may help. A linker without space for its files,
/// say, would keep the slower code that they make.
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

/// Whether the graph without schedules may compile, or to better code.
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

    /// Returns what a letter stands for: `c`ode, code that `a`llocates, `r`ejected, `l`ate, or `-`,
    /// gone without a word.
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

    /// Returns the numbers of the attempts that are made, and of the one that counts if it has
    /// words. `outcomes` are what all four would result in.
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

    /// The fallback flags were not given their chance, so nothing is known of the module.
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
        // What has no schedule is not compiled the same way again.
        let plain = target.unscheduled().unwrap();
        assert!(compiled(b'r', b'c', &plain).is_err());
    }
}
