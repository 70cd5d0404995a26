//! From a graph to its compiled code: the keys that it is found under, and the compiler if it is not found.
//!
//! A compilation runs on a thread of its own, tries fallback flags if the compiler crashes or rejects the module, and keeps a reproducer of
//! what does not compile.

use crate::error::Error;
use crate::own_thread::on_own_thread;
use crate::prepared::Source;
use crate::reproducer::{Reproducer, SOURCE_NAME, Versions};
use crate::runtime::Runtime;
use bytes::Bytes;
use iree_sys::compiler::{Blame, CompileError, CompileRequest, Compiled, Compiler};
use iree_sys::runtime::Module;
use rotini_cache::{
    ContentInputs, ContentKey, CreateError, Creation, Entry, Failure, Key, KeyInputs, NewEntry, Origin,
};
use rotini_emit::{ENTRY_POINT, Emitted, FINGERPRINT, Target};
use rotini_graph::NormalGraph;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl Runtime {
    /// Everything that decides what code a graph becomes, with the compiler that is here.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`].
    pub fn key(&self, graph: &NormalGraph, target: &Target, features: &str) -> Result<Key, Error> {
        let keys = self.keys(graph, target, features)?;
        keys.first()
            .copied()
            .ok_or_else(|| Error::NoCompiler("none is known".to_owned()))
    }

    /// What the code of a graph is found under: a key for each of the [`builds`](Self::builds).
    pub(crate) fn keys(&self, graph: &NormalGraph, target: &Target, features: &str) -> Result<Vec<Key>, Error> {
        let graph = graph
            .canonical_bytes()
            .map_err(|error| Error::Internal(error.to_string()))?;
        let (target_name, flags) = (target.to_string(), all_flags(target.flags(), target));
        let key = |compiler: &String| {
            Key::of(&KeyInputs {
                graph: &graph,
                target: &target_name,
                target_features: features,
                emitter: FINGERPRINT,
                flags: &flags,
                compiler,
            })
        };
        Ok(self.builds()?.iter().map(key).collect())
    }

    /// The compiled code of a graph for a target, from the cache if it is there.
    ///
    /// # Errors
    ///
    /// If it does not compile, or failed to not long ago.
    pub fn compiled(&self, key: &Key, source: &Source<'_>) -> Result<(Arc<Entry>, Origin), Error> {
        // The compiler's front half runs here: not on a thread of the host's.
        let create = || {
            on_own_thread(|| self.compile(key, source)).unwrap_or_else(|error| {
                Err(Error::Internal(format!(
                    "there can be no thread to compile on: {error}"
                )))
            })
        };
        let lasting = |error: &Error| Some(Failure::new(error.to_string(), error.lasts()?));
        let (entry, origin) = self
            .cache
            .get_or_create(key, create, lasting)
            .map_err(|error| match error {
                CreateError::Failed(error) => error.as_ref().clone(),
                CreateError::Remembered(failure) => Error::FailedBefore(failure.reason.clone()),
            })?;
        if matches!(origin, Origin::Created { on_disk: true }) {
            self.noted.get_or_init(|| self.note_compiler());
        }
        Ok((entry, origin))
    }

    fn compile(&self, key: &Key, source: &Source<'_>) -> Result<Creation, Error> {
        let Source {
            graph,
            target,
            features,
            ..
        } = *source;
        let compiler = self.compiler()?;
        let started = Instant::now();
        let emitted = rotini_emit::emit(graph, target).map_err(|error| Error::Internal(error.to_string()))?;
        let content = ContentKey::of(&ContentInputs {
            mlir: emitted.mlir.as_bytes(),
            target: &target.to_string(),
            target_features: features,
            flags: &all_flags(emitted.flags.clone(), target),
            compiler: compiler.identity(),
        });
        if let Some(same) = self.cache.find_content(&content) {
            return Ok(Creation::Same(same));
        }
        let compiled = compile_for(compiler.as_ref(), &emitted, target, None)
            .map_err(|error| self.failed(key, source, emitted, &error))?;
        // A result that is not computed in place would be allocated and copied at every execution.
        if compiled.statistics.allocated_bytes != 0 {
            return Err(Error::BadCode(
                "it allocates device memory while it executes".to_owned(),
            ));
        }
        // SAFETY: the compiler made it just now; it is only asked for its attributes.
        let module = unsafe { Module::load(self.instance(), Arc::from(compiled.vmfb.as_slice())) }
            .map_err(Error::runtime("the compiled graph cannot be loaded"))?;
        let workspace_bytes = module
            .workspace_bytes(ENTRY_POINT)
            .map_err(Error::runtime("the compiled graph tells no workspace"))?;
        Ok(Creation::New(NewEntry {
            producer: format!("rotini {} with {}", env!("CARGO_PKG_VERSION"), compiler.identity()),
            target: target.to_string(),
            target_features: features.to_owned(),
            content: Some(content),
            workspace_bytes: workspace_bytes as u64,
            dispatches: u32::try_from(compiled.statistics.dispatches).unwrap_or(u32::MAX),
            compile_micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            payload: Bytes::from(compiled.vmfb),
        }))
    }

    /// Reports a graph that does not compile, and keeps what is needed to try again.
    fn failed(&self, key: &Key, source: &Source<'_>, emitted: Emitted, error: &CompileError) -> Error {
        let (first_line, target) = (error.to_string(), source.target.to_string());
        let graph = describe(source.nodes);
        let blame = error.blame();
        tracing::error!("{first_line} (compiling {graph} for {target})");
        if matches!(blame, Blame::Module | Blame::Limit)
            && let Some(parent) = &self.config.reproducers
        {
            let reproducer = Reproducer {
                graph: source.bytes.to_vec(),
                mlir: emitted.mlir,
                diagnostics: error.diagnostics().to_owned(),
                versions: Versions {
                    rotini: env!("CARGO_PKG_VERSION").to_owned(),
                    emitter: FINGERPRINT.to_owned(),
                    compiler: self
                        .compiler()
                        .map_or_else(|error| error.to_string(), |found| found.identity().to_owned()),
                    target: target.clone(),
                    features: source.features.to_owned(),
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
}

/// Compiles a module for a target. If the compiler crashes on it or rejects it, it is called once more with the target's fallback flags:
/// what is emitted is valid, so a rejection is a pass that could not finish what another began. Either way the code is right, so the
/// cache's key need not tell which it was. The kernels are also written to the directory `dump_executables`, if there is one, for who looks
/// at them.
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
            // A reproducer has the flags of the first call. What passes, or a limit, is no verdict on the module: these flags might do.
            compile(&flags).map_err(|second| if second.blame() == Blame::Module { error } else { second })
        }
        result => result,
    }
}

/// Whether other flags may help. A linker without space for its files, say, would keep the slower code that they make.
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
}
