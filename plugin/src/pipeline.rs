//! From bytes to an execution context: the only place that joins decoding, lowering, compiling,
//! caching and loading.

use crate::code::Code;
use crate::compile;
use crate::context::{ExecutionContext, Variable};
use crate::device::Device;
use crate::error::Error;
use crate::knobs::Knobs;
use crate::own_thread::on_own_thread;
use crate::prepared::{Prepared, Source, check};
use crate::runtime::Runtime;
use crate::serialized::{Portable, Serialized};
use crate::tuned;
use crate::tuning;
use rotini_cache::{CompiledFor, Entry, Key, Origin};
use rotini_emit::{Choices, Target};
use rotini_graph::{Bindings, Graph};
use std::sync::Arc;

/// Largest workspace, in bytes, that is taken from the plugin's own memory rather than requested
/// from the host: some hosts pass memory that the GPU cannot access.
const LITTLE: u64 = 16 << 10;

/// Checks whether a graph can be compiled. Compiles nothing.
///
/// # Errors
///
/// The first reason found: the error of [`check`], no compiler for a graph that is not cached, or
/// an earlier failure to compile.
pub fn applicable(runtime: &Runtime, bytes: &[u8], compiled_for: &CompiledFor<Target>) -> Result<Prepared, Error> {
    let prepared = check(bytes, &compiled_for.target)?;
    if runtime.is_unsettled() {
        // A temporary shortage is no reason to decline.
        return Ok(prepared);
    }
    let keys = compile::keys(runtime, &prepared.graph, compiled_for, &Choices::default())?;
    match runtime.compiler() {
        Ok(_) => match keys.iter().find_map(|key| runtime.cache.failure(key)) {
            Some(failure) => Err(Error::FailedBefore(failure.reason.clone())),
            None => Ok(prepared),
        },
        Err(_) if keys.iter().any(|key| runtime.cache.peek(key).is_some()) => Ok(prepared),
        Err(error) => Err(error),
    }
}

/// Returns the workspace to request for a graph: exact if its code is cached and its shapes are
/// fixed, else an upper bound.
///
/// # Errors
///
/// If the graph cannot be executed, or not with the schedule that is demanded.
pub fn workspace_bytes(runtime: &Runtime, device: &dyn Device, bytes: &[u8], knobs: &Knobs) -> Result<u64, Error> {
    let compiled_for = device.compiled_for();
    let prepared = check(bytes, &compiled_for.target)?;
    let choices = choices(runtime, device, (&prepared, bytes), knobs);
    let cached = compile::cached(runtime, &prepared.graph, compiled_for, &choices);
    let exact = cached.map(|entry| entry.metadata.facts.workspace_bytes);
    let needed = prepared.workspace_bytes(&compiled_for.target, &choices, exact)?;
    Ok(asked(runtime, needed))
}

/// Returns the choices to lower a graph with: those that a knob demands, else those measured to be
/// the fastest.
fn choices(runtime: &Runtime, device: &dyn Device, (prepared, bytes): (&Prepared, &[u8]), knobs: &Knobs) -> Choices {
    match &knobs.schedule {
        Some(demanded) => demanded.clone(),
        None if knobs.uses_measured => {
            tuning::tune(runtime, device, (&prepared.graph, bytes));
            tuned::winner(runtime, &prepared.graph, device)
        }
        None => Choices::default(),
    }
}

/// Returns the workspace to request from the host for an execution that needs `needed` bytes: zero
/// if that is little, because the plugin's own memory is used then.
fn asked(runtime: &Runtime, needed: u64) -> u64 {
    if needed <= LITTLE.min(runtime.config.own_workspace) {
        0
    } else {
        needed
    }
}

/// Returns a context that executes the graph, with code that is loaded already, cached, or compiled
/// now.
///
/// # Errors
///
/// If the graph is malformed or unsupported, does not compile, or cannot be loaded.
pub fn create_context(
    runtime: &Runtime,
    device: &Arc<dyn Device>,
    bytes: &[u8],
    knobs: &Knobs,
) -> Result<ExecutionContext, Error> {
    let target = &device.compiled_for().target;
    let prepared = check(bytes, target)?;
    let mut choices = choices(runtime, device.as_ref(), (&prepared, bytes), knobs);
    let of = |choices: &Choices| {
        let wanted = Wanted {
            runtime,
            device,
            prepared: &prepared,
            bytes,
            choices,
        };
        wanted.code()
    };
    let (mut code, mut is_new) = match of(&choices) {
        // Measured choices are no demand of the caller, and what compiled once may fail to compile
        // now: fall back to the usual form.
        Err(error) if knobs.schedule.is_none() && !choices.is_usual() && !error.is_about_devices() => {
            tracing::warn!("measured choices ({choices}) are not used: {error}");
            choices = Choices::default();
            of(&choices)?
        }
        found => found?,
    };
    let needed = |code: &Code, choices: &Choices| {
        prepared.workspace_bytes(target, choices, Some(code.executable.workspace_bytes()))
    };
    let mut workspace_bytes = needed(&code, &choices)?;
    // A workspace limit selects among the forms, unless the caller demanded one.
    if knobs.schedule.is_none()
        && asked(runtime, workspace_bytes) > knobs.workspace_limit
        && let Some(smaller) = within(runtime, &prepared, target, knobs.workspace_limit)
    {
        choices = smaller;
        (code, is_new) = of(&choices)?;
        workspace_bytes = needed(&code, &choices)?;
    }
    if is_new {
        prepared.expect_reported(target, &choices, code.executable.workspace_bytes())?;
    }
    let graph = prepared.overridable.clone();
    let variable = graph.map(|graph| Variable::new(Arc::clone(device), graph, bytes, workspace_bytes));
    Ok(context(runtime, code, prepared.bindings, variable))
}

/// Returns the first promising choices with which at most `limit` bytes of workspace are requested
/// from the host. This lowers the graph several times.
fn within(runtime: &Runtime, prepared: &Prepared, target: &Target, limit: u64) -> Option<Choices> {
    const MOST: usize = 24;
    let graph = &prepared.graph;
    let fits = |choices: &Choices| {
        let needed = prepared.workspace_bytes(target, choices, None);
        !choices.is_usual() && needed.is_ok_and(|needed| asked(runtime, needed) <= limit)
    };
    let found = || {
        let places = rotini_emit::places(graph, target, &Choices::default()).ok()?;
        rotini_emit::promising(&places, MOST).into_iter().find(fits)
    };
    // Lowering needs a large stack, so it does not run on a host thread.
    on_own_thread(found).ok().flatten()
}

/// Returns the code of a valid graph whose shapes were overridden: loaded already, cached, or
/// compiled now.
///
/// # Errors
///
/// As [`create_context`].
pub(crate) fn specialised(runtime: &Runtime, device: &Arc<dyn Device>, graph: Graph) -> Result<Arc<Code>, Error> {
    let bytes = rotini_wire::encode(&graph);
    let prepared = Prepared::new(graph);
    prepared.check(&device.compiled_for().target)?;
    let wanted = Wanted {
        runtime,
        device,
        prepared: &prepared,
        bytes: &bytes,
        // A schedule that was demanded for the declared shapes need not fit other shapes.
        choices: &Choices::default(),
    };
    wanted.code().map(|(code, _)| code)
}

/// Returns a context from serialized bytes. Uses neither a compiler nor the cache.
///
/// # Errors
///
/// [`Error::DamagedContext`] if the bytes were changed since they were written,
/// [`Error::ForeignContext`] if they are intact but their code is for another device or another
/// runtime.
pub fn load_context(runtime: &Runtime, device: &Arc<dyn Device>, bytes: &[u8]) -> Result<ExecutionContext, Error> {
    let Serialized {
        portable,
        bindings,
        shapes,
    } = Serialized::decode(bytes)?;
    let CompiledFor { target, features } = device.compiled_for().to_text();
    let made_for = &portable.facts.compiled_for;
    // Only the device part of the targets is compared: it does not matter who chose the schedules.
    if Target::device(&made_for.target) != Target::device(&target) {
        return Err(Error::ForeignContext(format!(
            "it is for {}, and this is {target}",
            made_for.target
        )));
    }
    if made_for.features != features {
        return Err(Error::ForeignContext(format!("it is for another model of {target}")));
    }
    let code = load_portable(runtime, device, portable)?;
    let variable = match shapes {
        None => None,
        Some(shapes) => {
            let graph = rotini_wire::decode(&shapes.graph)
                .map_err(|error| Error::ForeignContext(format!("its graph cannot be read: {error}")))?;
            let variable = Variable::new(Arc::clone(device), graph, &shapes.graph, shapes.workspace_bytes);
            for (overrides, portable) in shapes.known {
                variable.add(&overrides, load_portable(runtime, device, portable)?);
            }
            Some(variable)
        }
    };
    Ok(context(runtime, code, bindings, variable))
}

fn context(runtime: &Runtime, code: Arc<Code>, bindings: Bindings, variable: Option<Variable>) -> ExecutionContext {
    let needed = ExecutionContext::needed(&code, variable.as_ref());
    ExecutionContext::new(code, bindings, variable, asked(runtime, needed))
}

fn load_portable(runtime: &Runtime, device: &Arc<dyn Device>, portable: Portable) -> Result<Arc<Code>, Error> {
    let key = portable.key()?;
    match runtime.codes.get(device, &key) {
        Some(code) => Ok(code),
        None => runtime.codes.load(device, &key, portable).map_err(|error| match error {
            refused if refused.is_refused_code() => Error::ForeignContext(refused.to_string()),
            other => other,
        }),
    }
}

/// A request for the code of a graph on a device.
struct Wanted<'a> {
    runtime: &'a Runtime,
    device: &'a Arc<dyn Device>,
    prepared: &'a Prepared,
    /// The graph as the host gave it.
    bytes: &'a [u8],
    /// The choices to lower the graph with.
    choices: &'a Choices,
}

impl Wanted<'_> {
    /// Returns the code, and whether it is new, that is, was not in the cache before. Code that is
    /// loaded under any of the keys comes first, else the first key under which code is found or
    /// can be compiled.
    fn code(&self) -> Result<(Arc<Code>, bool), Error> {
        let keys = compile::keys(
            self.runtime,
            &self.prepared.graph,
            self.device.compiled_for(),
            self.choices,
        )?;
        if let Some(code) = keys.iter().find_map(|key| self.runtime.codes.get(self.device, key)) {
            return Ok((code, false));
        }
        let mut last = Error::NoCompiler("none is known".to_owned());
        for key in &keys {
            match self.under(key) {
                Ok(code) => return Ok(code),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Returns the code under a key, and whether it was not in the cache before. If the device
    /// refuses a cached entry, the entry is rejected and created again, once.
    fn under(&self, key: &Key) -> Result<(Arc<Code>, bool), Error> {
        let (entry, origin) = self.find(key)?;
        match self.load(key, &entry) {
            // The entry is intact, but this device cannot use it.
            Err(error) if error.is_refused_code() && !matches!(origin, Origin::Created { .. }) => {
                self.runtime.cache.reject(key, &error);
                let (entry, origin) = self.find(key)?;
                Ok((self.load(key, &entry)?, is_new(origin)))
            }
            result => Ok((result?, is_new(origin))),
        }
    }

    /// Finds the entry of a key, or compiles it if there is a compiler.
    fn find(&self, key: &Key) -> Result<(Arc<Entry>, Origin), Error> {
        match self.runtime.compiler() {
            Ok(_) => {
                let source = Source {
                    choices: Some(self.choices),
                    ..self.prepared.source(self.bytes, self.device.compiled_for())
                };
                compile::compiled(self.runtime, key, &source)
            }
            Err(error) => {
                let entry = self.runtime.cache.peek(key).ok_or(error)?;
                Ok((entry, Origin::Disk))
            }
        }
    }

    fn load(&self, key: &Key, entry: &Entry) -> Result<Arc<Code>, Error> {
        let graph = &self.prepared.graph;
        let portable = Portable {
            facts: entry.metadata.facts.clone(),
            operations: rotini_emit::operations(graph),
            signature: rotini_emit::signature(graph).map_err(|error| Error::Internal(error.to_string()))?,
            code: entry.payload.clone(),
        };
        self.runtime.codes.load(self.device, key, portable)
    }
}

/// Returns true if an entry was not in the cache when it was requested.
const fn is_new(origin: Origin) -> bool {
    !matches!(origin, Origin::Memory | Origin::Disk)
}
