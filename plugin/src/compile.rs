//! From a graph to its compiled code: the keys that it is found under, and the compiler if it is
//! not found.
//!
//! A compilation runs on a separate thread. If the compiler crashes or rejects the module, it tries
//! fallback flags and then, for a graph with schedules, the graph without them. It keeps a
//! reproducer of what does not compile.

use crate::error::Error;
use crate::own_thread::on_own_thread;
use crate::prepared::Source;
use crate::reproducer::{Reproducer, SOURCE_NAME, Versions};
use crate::runtime::Runtime;
use bytes::Bytes;
use iree_sys::compiler::{Blame, CompileError, CompileRequest, Compiled, Compiler};
use iree_sys::runtime::Module;
use rotini_cache::{
    CodeFacts, CompiledFor, ContentInputs, ContentKey, CreateError, Creation, Entry, Failure, Key, KeyInputs, NewEntry,
    Origin,
};
use rotini_emit::{ENTRY_POINT, Emitted, FINGERPRINT, Target};
use rotini_graph::NormalGraph;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Returns the hash of everything that decides what code a graph becomes, with the compiler that is
/// here.
///
/// # Errors
///
/// [`Error::NoCompiler`].
pub fn key(runtime: &Runtime, graph: &NormalGraph, compiled_for: &CompiledFor<Target>) -> Result<Key, Error> {
    let keys = keys(runtime, graph, compiled_for)?;
    keys.first()
        .copied()
        .ok_or_else(|| Error::NoCompiler("none is known".to_owned()))
}

/// Returns what the code of a graph is found under: a key for each of the
/// [`builds`](Runtime::builds).
pub(crate) fn keys(
    runtime: &Runtime,
    graph: &NormalGraph,
    compiled_for: &CompiledFor<Target>,
) -> Result<Vec<Key>, Error> {
    let graph = graph
        .canonical_bytes()
        .map_err(|error| Error::Internal(error.to_string()))?;
    let target = &compiled_for.target;
    let (compiled_for, flags) = (compiled_for.to_text(), all_flags(target.flags(), target));
    let key = |compiler: &String| {
        Key::of(&KeyInputs {
            graph: &graph,
            compiled_for: &compiled_for,
            emitter: FINGERPRINT,
            flags: &flags,
            compiler,
        })
    };
    Ok(runtime.builds()?.iter().map(key).collect())
}

/// Returns the code of a graph if it is in the cache already.
#[must_use]
pub fn cached(runtime: &Runtime, graph: &NormalGraph, compiled_for: &CompiledFor<Target>) -> Option<Arc<Entry>> {
    let keys = keys(runtime, graph, compiled_for).ok()?;
    keys.iter().find_map(|key| runtime.cache.peek(key))
}

/// Returns the compiled code of a graph for a target, from the cache if it is there.
///
/// # Errors
///
/// If it does not compile, or failed to not long ago.
pub fn compiled(runtime: &Runtime, key: &Key, source: &Source<'_>) -> Result<(Arc<Entry>, Origin), Error> {
    // The compiler's front half runs here: not on a thread of the host's.
    let create = || {
        on_own_thread(|| compile(runtime, key, source)).unwrap_or_else(|error| {
            Err(Error::Internal(format!(
                "there can be no thread to compile on: {error}"
            )))
        })
    };
    let lasting = |error: &Error| Some(Failure::new(error.to_string(), error.lasts()?));
    let (entry, origin) = runtime
        .cache
        .get_or_create(key, create, lasting)
        .map_err(|error| match error {
            CreateError::Failed(error) => error.as_ref().clone(),
            CreateError::Remembered(failure) => Error::FailedBefore(failure.reason.clone()),
        })?;
    if matches!(origin, Origin::Created { on_disk: true }) {
        runtime.note_compiler();
    }
    Ok((entry, origin))
}

fn compile(runtime: &Runtime, key: &Key, source: &Source<'_>) -> Result<Creation, Error> {
    let (graph, target) = (source.graph, &source.compiled_for.target);
    let compiled_for = source.compiled_for.to_text();
    let compiler = runtime.compiler()?;
    let started = Instant::now();
    let emitted = rotini_emit::emit(graph, target).map_err(|error| Error::Internal(error.to_string()))?;
    let content = ContentKey::of(&ContentInputs {
        mlir: emitted.mlir.as_bytes(),
        compiled_for: &compiled_for,
        flags: &all_flags(emitted.flags.clone(), target),
        compiler: compiler.identity(),
    });
    if let Some(same) = runtime.cache.find_content(&content) {
        return Ok(Creation::Same(same));
    }
    let compile = |emitted: &Emitted, target: &Target| compile_for(compiler.as_ref(), emitted, target, None);
    let compiled = compile_graph(graph, target, &emitted, compile)
        .map_err(|error| failed(runtime, key, source, emitted, &error))?;
    // A result that is not computed in place would be allocated and copied at every execution.
    if compiled.statistics.allocated_bytes != 0 {
        return Err(Error::BadCode(
            "it allocates device memory while it executes".to_owned(),
        ));
    }
    // SAFETY: the compiler made it just now; it is only asked for its attributes.
    let module = unsafe { Module::load(runtime.instance(), Arc::from(compiled.vmfb.as_slice())) }
        .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
    let workspace_bytes = module
        .workspace_bytes(ENTRY_POINT)
        .map_err(Error::runtime("the compiled graph tells no workspace"))?;
    Ok(Creation::New(NewEntry {
        facts: CodeFacts {
            producer: format!("rotini {} with {}", env!("CARGO_PKG_VERSION"), compiler.identity()),
            compiled_for,
            workspace_bytes: workspace_bytes as u64,
            dispatches: u32::try_from(compiled.statistics.dispatches).unwrap_or(u32::MAX),
        },
        content: Some(content),
        compile_micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        payload: Bytes::from(compiled.vmfb),
    }))
}

/// Reports a graph that does not compile, and keeps what is needed to try again.
fn failed(runtime: &Runtime, key: &Key, source: &Source<'_>, emitted: Emitted, error: &CompileError) -> Error {
    let (first_line, CompiledFor { target, features }) = (error.to_string(), source.compiled_for.to_text());
    let graph = describe(source.nodes);
    let blame = error.blame();
    tracing::error!("{first_line} (compiling {graph} for {target})");
    if matches!(blame, Blame::Module | Blame::Limit)
        && let Some(parent) = &runtime.config.reproducers
    {
        let reproducer = Reproducer {
            graph: source.bytes.to_vec(),
            mlir: emitted.mlir,
            diagnostics: error.diagnostics().to_owned(),
            versions: Versions {
                rotini: env!("CARGO_PKG_VERSION").to_owned(),
                emitter: FINGERPRINT.to_owned(),
                compiler: runtime
                    .compiler()
                    .map_or_else(|error| error.to_string(), |found| found.identity().to_owned()),
                target: target.clone(),
                features,
                flags: emitted.flags,
                error: first_line.clone(),
            },
        };
        match reproducer.write(parent, key.to_string().get(..16).unwrap_or_default()) {
            Ok(directory) => tracing::error!("rotini replay {} tries again", directory.display()),
            Err(error) => tracing::warn!("nothing is kept of the graph in {}: {error}", parent.display()),
        }
    }
    Error::Compile {
        first_line,
        graph,
        target,
        blame,
    }
}

/// Compiles a module for a target. If the compiler crashes on it or rejects it, it is called once
/// more with the target's fallback flags: what is emitted is valid, so a rejection is a pass that
/// could not finish what another began. Either way the code is right, so the cache's key need not
/// say which flags were used. If `dump_executables` is set, the kernels are also written to that
/// directory.
///
/// # Errors
///
/// The first call's, or the second's where that says nothing of the module.
pub fn compile_for(
    compiler: &dyn Compiler,
    emitted: &Emitted,
    target: &Target,
    dump_executables: Option<&Path>,
) -> Result<Compiled, CompileError> {
    let mut flags = emitted.flags.clone();
    let compile = |flags: &[String]| {
        compiler.compile(&CompileRequest {
            mlir: &emitted.mlir,
            name: SOURCE_NAME,
            flags,
            dump_executables,
        })
    };
    match compile(&flags) {
        Err(error) if is_worth_another_way(&error) => {
            tracing::warn!(%target, "{error}; the compiler is called again with fallback flags");
            flags.extend(target.fallback_flags());
            // A reproducer has the flags of the first call. What passes, or a limit, is no verdict
            // on the module: these flags might do.
            compile(&flags).map_err(|second| if second.blame() == Blame::Module { error } else { second })
        }
        result => result,
    }
}

/// Compiles the emitted module of a graph by a function such as [`compile_for`]. If the compiler
/// does not take a schedule, needs too much for it, or makes code that allocates, it is called once
/// more for the graph without schedules, which makes the same results.
///
/// # Errors
///
/// The first call's, or the second's where that says nothing of the module.
pub fn compile_graph(
    graph: &NormalGraph,
    target: &Target,
    emitted: &Emitted,
    compile: impl Fn(&Emitted, &Target) -> Result<Compiled, CompileError>,
) -> Result<Compiled, CompileError> {
    let first = compile(emitted, target);
    let may_do_better = match &first {
        Ok(compiled) => compiled.statistics.allocated_bytes != 0,
        Err(error) => matches!(error.blame(), Blame::Module | Blame::Limit),
    };
    let plain = target
        .unscheduled()
        .filter(|_| may_do_better)
        .and_then(|target| Some((rotini_emit::emit(graph, &target).ok()?, target)));
    let Some((plain, target)) = plain.filter(|(plain, _)| plain.mlir != emitted.mlir) else {
        return first;
    };
    tracing::warn!(%target, "the compiler is called again without schedules");
    compile(&plain, &target).or_else(|second| {
        if second.blame() == Blame::Module {
            first
        } else {
            Err(second)
        }
    })
}

/// Whether other flags may help. A linker without space for its files, say, would keep the slower
/// code that they make.
fn is_worth_another_way(error: &CompileError) -> bool {
    matches!(error, CompileError::Crashed { .. } | CompileError::Rejected { .. }) && error.blame() == Blame::Module
}

/// The flags that may decide what code there is.
fn all_flags(flags: Vec<String>, target: &Target) -> Vec<String> {
    [flags, target.fallback_flags()].concat()
}

/// A graph by the labels of its nodes, the first few of them.
fn describe(nodes: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = nodes.iter().take(SHOWN).map(String::as_str).collect();
    match nodes.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rejects the first call, and runs out of time in the second.
    #[derive(Default)]
    struct Busy(AtomicUsize);

    impl Compiler for Busy {
        fn identity(&self) -> &str {
            "busy"
        }

        fn describe(&self) -> String {
            "busy".to_owned()
        }

        fn compile(&self, _: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
            let diagnostics = String::new();
            Err(match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => CompileError::Rejected { diagnostics },
                _ => CompileError::Timeout {
                    seconds: 1.0,
                    diagnostics,
                },
            })
        }
    }

    /// The fallback flags were not given their chance, so nothing is known of the module.
    #[test]
    fn a_second_call_that_passes_is_no_verdict_on_the_module() {
        let emitted = Emitted {
            mlir: String::new(),
            flags: Vec::new(),
            signature: rotini_emit::Signature { arguments: Vec::new() },
        };
        let target = Target::parse("gfx942").unwrap();
        let error = compile_for(&Busy::default(), &emitted, &target, None).unwrap_err();
        assert_eq!(error.blame(), Blame::Limit);
    }

    /// Rejects what has tiles of ours.
    /// Takes no schedules, and what has none if there is no error for that.
    struct Plain([Option<fn() -> CompileError>; 2]);

    impl Compiler for Plain {
        fn identity(&self) -> &str {
            "plain"
        }

        fn describe(&self) -> String {
            "plain".to_owned()
        }

        fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
            let [scheduled, plain] = self.0;
            let error = if request.mlir.contains("flow.dispatch") {
                scheduled
            } else {
                plain
            };
            if let Some(error) = error {
                return Err(error());
            }
            Ok(Compiled {
                vmfb: vec![1],
                statistics: Default::default(),
                diagnostics: String::new(),
            })
        }
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
        let rejected: fn() -> CompileError = || CompileError::Rejected {
            diagnostics: String::new(),
        };
        let late: fn() -> CompileError = || CompileError::Timeout {
            seconds: 1.0,
            diagnostics: String::new(),
        };
        let gone: fn() -> CompileError = || CompileError::Crashed {
            status: None,
            diagnostics: String::new(),
        };
        let compiled = |errors, target| {
            compile_graph(&graph, target, &emitted, |emitted, target| {
                compile_for(&Plain(errors), emitted, target, None)
            })
        };
        for error in [rejected, late] {
            assert!(compile_for(&Plain([Some(error), None]), &emitted, &target, None).is_err());
            assert!(compiled([Some(error), None], &target).is_ok());
        }
        // A temporary second failure says nothing about the module. If both failures do, the first
        // is reported.
        let blame = |errors| compiled(errors, &target).err().map(|error| error.blame());
        assert_eq!(blame([Some(rejected), Some(gone)]), Some(Blame::Moment));
        assert_eq!(blame([Some(late), Some(rejected)]), Some(Blame::Limit));
        assert_eq!(blame([Some(gone), None]), Some(Blame::Moment));
        // What has no schedule is not compiled the same way again.
        let plain = target.unscheduled().unwrap();
        assert!(compiled([Some(rejected), None], &plain).is_err());
    }
}
