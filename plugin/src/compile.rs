//! From a graph to its compiled code: the keys that the code is cached under, and the call of the
//! compiler on a cache miss.
//!
//! A compilation runs on a separate thread, and is one or more [attempts](crate::attempts). If it
//! fails because of the module or a limit, a reproducer is kept.

use crate::attempts::{call, compile_graph};
use crate::device::Device;
use crate::error::Error;
use crate::own_thread::on_own_thread;
use crate::prepared::Source;
use crate::reproducer::{Reproducer, Versions};
use crate::runtime::Runtime;
use bytes::Bytes;
use rotini_cache::{
    CodeFacts, CompiledFor, ContentInputs, ContentKey, CreateError, Creation, Entry, Failure, Key, KeyInputs, NewEntry,
    Origin,
};
use rotini_emit::{Choices, ENTRY_POINT, Emitted, FINGERPRINT, Target};
use rotini_graph::NormalGraph;
use rotini_iree::compiler::{Blame, CompileError};
use rotini_iree::runtime::Module;
use std::sync::Arc;
use std::time::Instant;

/// Returns the first of a graph's [`keys`] with the usual choices: the hash of everything that
/// decides the graph's code.
///
/// # Errors
///
/// [`Error::NoCompiler`].
pub fn key(runtime: &Runtime, graph: &NormalGraph, compiled_for: &CompiledFor<Target>) -> Result<Key, Error> {
    let keys = keys(runtime, graph, compiled_for, &Choices::default())?;
    keys.first()
        .copied()
        .ok_or_else(|| Error::NoCompiler("none is known".to_owned()))
}

/// Returns the keys under which the code of a graph with these choices is cached: one for each of
/// the [`builds`](Runtime::builds).
///
/// # Errors
///
/// [`Error::NoCompiler`].
pub fn keys(
    runtime: &Runtime,
    graph: &NormalGraph,
    compiled_for: &CompiledFor<Target>,
    choices: &Choices,
) -> Result<Vec<Key>, Error> {
    let chosen = (!choices.is_usual()).then(|| format!("choices: {choices}"));
    keys_with(runtime, graph, compiled_for, chosen)
}

/// Returns the keys under which the record of a graph's [measured choices](crate::tuned) on a
/// device is stored: one for each of the [`builds`](Runtime::builds).
///
/// # Errors
///
/// [`Error::NoCompiler`].
pub fn tuned_keys(runtime: &Runtime, graph: &NormalGraph, device: &dyn Device) -> Result<Vec<Key>, Error> {
    let measured_on = format!("measured on: {}", device.measured_on());
    keys_with(runtime, graph, device.compiled_for(), Some(measured_on))
}

/// Returns the keys of a graph. `more` is hashed in addition.
fn keys_with(
    runtime: &Runtime,
    graph: &NormalGraph,
    compiled_for: &CompiledFor<Target>,
    more: Option<String>,
) -> Result<Vec<Key>, Error> {
    let graph = graph
        .canonical_bytes()
        .map_err(|error| Error::Internal(error.to_string()))?;
    let target = &compiled_for.target;
    let (compiled_for, mut flags) = (compiled_for.to_text(), all_flags(target.flags(), target));
    flags.extend(more);
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

/// Returns the code of a graph with these choices if it is in the cache.
#[must_use]
pub fn cached(
    runtime: &Runtime,
    graph: &NormalGraph,
    compiled_for: &CompiledFor<Target>,
    choices: &Choices,
) -> Option<Arc<Entry>> {
    let keys = keys(runtime, graph, compiled_for, choices).ok()?;
    keys.iter().find_map(|key| runtime.cache.peek(key))
}

/// Returns the compiled code of a graph: from the cache, or else from the compiler.
///
/// # Errors
///
/// If the graph does not compile, or failed to compile recently.
pub fn compiled(runtime: &Runtime, key: &Key, source: &Source<'_>) -> Result<(Arc<Entry>, Origin), Error> {
    // The compiler's front half runs in this process, and must not run on a host thread.
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
    let usual = Choices::default();
    let choices = source.choices.filter(|choices| !choices.is_usual()).unwrap_or(&usual);
    let emitted = rotini_emit::emit_chosen(graph, target, choices)?;
    let content = ContentKey::of(&ContentInputs {
        mlir: emitted.mlir.as_bytes(),
        compiled_for: &compiled_for,
        flags: &all_flags(emitted.flags.clone(), target),
        compiler: compiler.identity(),
    });
    if let Some(same) = runtime.cache.find_content(&content) {
        return Ok(Creation::Same(same));
    }
    let call = |module: &Emitted| call(compiler.as_ref(), module, None);
    // The caller asked for this form, so no other flags and no other form are tried.
    let compiled = if choices.is_usual() {
        compile_graph(graph, target, &emitted, call)
    } else {
        call(&emitted)
    };
    let compiled = compiled.map_err(|error| failed(runtime, key, source, emitted, &error))?;
    // An allocation means that a result is not computed in place: it would be allocated and copied
    // at every execution.
    if compiled.statistics.allocated_bytes != 0 {
        return Err(Error::BadCode(
            "it allocates device memory while it executes".to_owned(),
        ));
    }
    // SAFETY: the compiler has just made this module; it is only queried for its attributes.
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

/// Reports a graph that does not compile, and keeps a reproducer if the module or a limit is to
/// blame.
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

/// Returns all flags that the code may be compiled with: the given ones, then the fallback flags.
fn all_flags(flags: Vec<String>, target: &Target) -> Vec<String> {
    [flags, target.fallback_flags()].concat()
}

/// Returns the labels of a graph's first few nodes, as text.
fn describe(nodes: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = nodes.iter().take(SHOWN).map(String::as_str).collect();
    match nodes.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
