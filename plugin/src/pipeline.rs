//! From bytes to an execution context: the only place that joins decoding, lowering, compiling,
//! caching and loading.

use crate::code::Code;
pub use crate::compile::{compile_for, compile_graph};
use crate::context::{ExecutionContext, Variable};
use crate::device::Device;
use crate::error::Error;
pub use crate::prepared::{Prepared, Source, check, decode};
pub use crate::runtime::Runtime;
use crate::serialized::{Portable, Serialized};
use rotini_cache::{CompiledFor, Entry, Key, Origin};
use rotini_emit::Target;
use rotini_graph::{Graph, NormalGraph};
use std::sync::Arc;

/// Bytes of workspace that no host is asked for: some give memory that a GPU does not reach.
const LITTLE: u64 = 16 << 10;

impl Runtime {
    /// Checks whether a graph can be compiled. Compiles nothing.
    ///
    /// # Errors
    ///
    /// The first reason found: what [`check`] says, no compiler for a graph that is not cached, or
    /// that it failed to compile before.
    pub fn applicable(&self, bytes: &[u8], compiled_for: &CompiledFor<Target>) -> Result<Prepared, Error> {
        let prepared = check(bytes, &compiled_for.target)?;
        if self.is_unsettled() {
            // What passes is no reason to decline.
            return Ok(prepared);
        }
        let keys = self.keys(&prepared.graph, compiled_for)?;
        match self.compiler() {
            Ok(_) => match keys.iter().find_map(|key| self.cache.failure(key)) {
                Some(failure) => Err(Error::FailedBefore(failure.reason.clone())),
                None => Ok(prepared),
            },
            Err(_) if keys.iter().any(|key| self.cache.peek(key).is_some()) => Ok(prepared),
            Err(error) => Err(error),
        }
    }

    /// The code of a graph if it is in the cache already.
    #[must_use]
    pub fn cached(&self, graph: &NormalGraph, compiled_for: &CompiledFor<Target>) -> Option<Arc<Entry>> {
        let keys = self.keys(graph, compiled_for).ok()?;
        keys.iter().find_map(|key| self.cache.peek(key))
    }

    /// The workspace to ask for, for a graph: exact if it is cached, else an upper bound, as for
    /// all shapes that an execution may have.
    ///
    /// # Errors
    ///
    /// If the graph cannot be executed.
    pub fn workspace_bytes(&self, device: &dyn Device, bytes: &[u8]) -> Result<u64, Error> {
        let compiled_for = device.compiled_for();
        let prepared = check(bytes, &compiled_for.target)?;
        let cached = self.cached(&prepared.graph, compiled_for);
        let exact = cached.map(|entry| entry.metadata.facts.workspace_bytes);
        let needed = prepared.workspace_bytes(&compiled_for.target, exact)?;
        Ok(self.asked(needed))
    }

    /// Returns the workspace that the host is asked for if `needed` bytes are needed: none if they
    /// are few, because the plugin's own memory is used for these.
    fn asked(&self, needed: u64) -> u64 {
        if needed <= LITTLE.min(self.config.own_workspace) {
            0
        } else {
            needed
        }
    }

    /// A context that executes the graph: from loaded code, from the cache, or compiled now.
    ///
    /// # Errors
    ///
    /// If the graph is malformed or unsupported, does not compile, or cannot be loaded.
    pub fn create_context(&self, device: &Arc<dyn Device>, bytes: &[u8]) -> Result<ExecutionContext, Error> {
        let target = &device.compiled_for().target;
        let prepared = check(bytes, target)?;
        let (code, is_new) = self.code_of(device, &prepared, bytes)?;
        if is_new {
            prepared.expect_reported(target, code.executable.workspace_bytes())?;
        }
        let variable = match prepared.overridable.clone() {
            None => None,
            Some(graph) => {
                let exact = Some(code.executable.workspace_bytes());
                let workspace_bytes = prepared.workspace_bytes(target, exact)?;
                Some(Variable::new(Arc::clone(device), graph, bytes, workspace_bytes))
            }
        };
        let needed = ExecutionContext::needed(&code, variable.as_ref());
        Ok(ExecutionContext::new(
            code,
            prepared.bindings,
            variable,
            self.asked(needed),
        ))
    }

    /// The code of a graph, and whether it was made only now.
    fn code_of(&self, device: &Arc<dyn Device>, prepared: &Prepared, bytes: &[u8]) -> Result<(Arc<Code>, bool), Error> {
        let keys = self.keys(&prepared.graph, device.compiled_for())?;
        match keys.iter().find_map(|key| self.codes.get(device, key)) {
            Some(code) => Ok((code, false)),
            None => self.code(device, &keys, prepared, bytes),
        }
    }

    /// A context from the bytes of another. Neither asks for a compiler nor touches the cache.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedContext`] if the bytes are not as they were written,
    /// [`Error::ForeignContext`] if they are and the code in them is for something else than this
    /// device or this runtime.
    pub fn load_context(&self, device: &Arc<dyn Device>, bytes: &[u8]) -> Result<ExecutionContext, Error> {
        let Serialized {
            portable,
            bindings,
            shapes,
        } = Serialized::decode(bytes)?;
        let CompiledFor { target, features } = device.compiled_for().to_text();
        let made_for = &portable.facts.compiled_for;
        // Whoever chose the schedules, it is code for the same device.
        if Target::device(&made_for.target) != Target::device(&target) {
            return Err(Error::ForeignContext(format!(
                "it is for {}, and this is {target}",
                made_for.target
            )));
        }
        if made_for.features != features {
            return Err(Error::ForeignContext(format!("it is for another model of {target}")));
        }
        let code = self.load_portable(device, portable)?;
        let variable = match shapes {
            None => None,
            Some(shapes) => {
                let graph = rotini_wire::decode(&shapes.graph)
                    .map_err(|error| Error::ForeignContext(format!("its graph cannot be read: {error}")))?;
                let variable = Variable::new(Arc::clone(device), graph, &shapes.graph, shapes.workspace_bytes);
                for (overrides, portable) in shapes.known {
                    variable.add(&overrides, self.load_portable(device, portable)?);
                }
                Some(variable)
            }
        };
        let needed = ExecutionContext::needed(&code, variable.as_ref());
        Ok(ExecutionContext::new(code, bindings, variable, self.asked(needed)))
    }

    fn load_portable(&self, device: &Arc<dyn Device>, portable: Portable) -> Result<Arc<Code>, Error> {
        let key = portable.key()?;
        match self.codes.get(device, &key) {
            Some(code) => Ok(code),
            None => self.codes.load(device, &key, portable).map_err(|error| match error {
                refused if refused.is_refused_code() => Error::ForeignContext(refused.to_string()),
                other => other,
            }),
        }
    }

    /// Loads a graph's code from the cache, or compiles it. Says whether it was made only now.
    fn code(
        &self,
        device: &Arc<dyn Device>,
        keys: &[Key],
        prepared: &Prepared,
        bytes: &[u8],
    ) -> Result<(Arc<Code>, bool), Error> {
        let find = |key: &Key| match self.compiler() {
            Ok(_) => self.compiled(key, &prepared.source(bytes, device.compiled_for())),
            Err(error) => self.cache.peek(key).map(|entry| (entry, Origin::Disk)).ok_or(error),
        };
        let signature = rotini_emit::signature(&prepared.graph).map_err(|error| Error::Internal(error.to_string()))?;
        let load = |key: &Key, entry: &Entry| {
            let portable = Portable {
                facts: entry.metadata.facts.clone(),
                operations: rotini_emit::operations(&prepared.graph),
                signature: signature.clone(),
                code: entry.payload.clone(),
            };
            self.codes.load(device, key, portable)
        };
        let mut last = Error::NoCompiler("none is known".to_owned());
        for key in keys {
            let result = find(key).and_then(|(entry, origin)| match load(key, &entry) {
                // Intact, and of no use: made again, once.
                Err(error) if error.is_refused_code() && !matches!(origin, Origin::Created { .. }) => {
                    self.cache.reject(key, &error);
                    find(key).and_then(|(entry, origin)| Ok((load(key, &entry)?, is_new(origin))))
                }
                result => Ok((result?, is_new(origin))),
            });
            match result {
                Ok(code) => return Ok(code),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Whether an entry was not in the cache when it was asked for.
const fn is_new(origin: Origin) -> bool {
    !matches!(origin, Origin::Memory | Origin::Disk)
}

/// The code of a valid graph that is not as it was declared: from loaded code, from the cache, or
/// compiled now.
///
/// # Errors
///
/// As [`Runtime::create_context`].
pub(crate) fn specialised(runtime: &Runtime, device: &Arc<dyn Device>, graph: Graph) -> Result<Arc<Code>, Error> {
    let bytes = rotini_wire::encode(&graph);
    let prepared = Prepared::new(graph);
    prepared.check(&device.compiled_for().target)?;
    runtime.code_of(device, &prepared, &bytes).map(|(code, _)| code)
}
