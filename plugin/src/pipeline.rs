//! From bytes to an execution context: the only place that joins decoding, lowering, compiling, caching and loading.

use crate::apart::apart;
use crate::compiler::Chosen;
use crate::config::{Config, DeviceChoice};
use crate::context::{Code, ExecutionContext, Variable};
use crate::device::host::Host;
use crate::device::{Device, Gpus, Settled, Work, gpu, make_once};
use crate::error::Error;
use crate::fork::{self, Process};
use crate::known_compilers;
pub use crate::plan::{Plan, Source, check, decode};
use crate::reproducer::{Reproducer, Versions};
use crate::serialized::{Portable, Serialized};
use bytes::Bytes;
use iree_sys::compiler::{Blame, CompileError, CompileRequest, Compiled, Compiler};
use iree_sys::runtime::{Executable as Module, Instance};
use rotini_cache::{
    Cache, CacheConfig, ContentInputs, ContentKey, CreateError, Creation, Entry, Failure, Key, KeyInputs, NewEntry,
    Origin,
};
use rotini_emit::{ENTRY_POINT, Emitted, FINGERPRINT, Target};
use rotini_graph::{Graph, NormalGraph};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What every vmfb is told its source is called: the name ends up in the code, and must not vary.
pub(crate) const SOURCE_NAME: &str = "rotini.mlir";

/// Bytes of workspace that no host is asked for: some give memory that a GPU does not reach.
const LITTLE: u64 = 16 << 10;

/// How much longer than it may take another process is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state that all handles of a process share. It ends with the last of them, so that nothing runs on after the library is closed.
pub struct Runtime {
    /// The settings.
    pub config: Config,
    /// The compiled graphs. Opened when first asked: serialized contexts do without.
    pub cache: LazyLock<Cache, Box<dyn FnOnce() -> Cache + Send>>,
    instance: Instance,
    compiler: OnceLock<Result<Arc<dyn Compiler>, Error>>,
    /// The compilers whose code is looked for: the one that is here, or those that filled the cache.
    builds: OnceLock<Result<Vec<String>, Error>>,
    /// Whether the cache's directory says that the compiler's code is in it.
    noted: OnceLock<()>,
    host: Settled<Arc<dyn Device>>,
    gpus: Settled<Option<Arc<dyn Gpus>>>,
    /// Code that is loaded and in use, by device and key.
    loaded: Mutex<HashMap<(usize, Key), Weak<Code>>>,
}

/// Forks behind each other in each of which the library can be used.
const PROCESSES: usize = 16;

/// The state of each process: after a fork, the lock of the process before may be held by a thread that is not there.
static SHARED: [Mutex<Weak<Runtime>>; PROCESSES] = [const { Mutex::new(Weak::new()) }; PROCESSES];

impl Runtime {
    /// The state of this process, made if no handle is alive.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be set up.
    pub fn shared() -> Result<Arc<Self>, Error> {
        fork::watch()?;
        let process = Process::current().forks() as usize;
        let shared = SHARED
            .get(process)
            .ok_or_else(|| Error::Internal(format!("the library is {process} forks away from where it was loaded")))?;
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = shared.upgrade() {
            return Ok(runtime);
        }
        let runtime = Arc::new(Self::new(Config::from_env())?);
        *shared = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// A state of its own.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be set up.
    pub fn new(config: Config) -> Result<Self, Error> {
        for complaint in &config.complaints {
            tracing::warn!("{complaint}");
        }
        let cache_config = CacheConfig {
            dir: config.cache_dir.clone(),
            system_dirs: config.cache_path.clone(),
            disk_bytes: config.cache_size,
            // Whoever compiles may need its time twice: once more with fallback flags.
            patience: config.compile_timeout.saturating_mul(2).saturating_add(PATIENCE),
            ..CacheConfig::default()
        };
        let instance = Instance::new().map_err(Error::runtime("IREE's runtime cannot be set up"))?;
        Ok(Runtime {
            config,
            cache: LazyLock::new(Box::new(|| Cache::open(cache_config))),
            instance,
            compiler: OnceLock::new(),
            builds: OnceLock::new(),
            noted: OnceLock::new(),
            host: OnceLock::new(),
            gpus: OnceLock::new(),
            loaded: Mutex::new(HashMap::new()),
        })
    }

    /// The device of a new handle: the calling thread's current GPU, or the CPU.
    ///
    /// # Errors
    ///
    /// If the device that was asked for cannot be used.
    pub fn default_device(&self) -> Result<Arc<dyn Device>, Error> {
        match self.gpus()? {
            Some(gpus) => gpus.device(gpus.of_stream(std::ptr::null_mut())?),
            None => self.host(),
        }
    }

    /// The GPUs that are used; `None` if the CPU is.
    ///
    /// # Errors
    ///
    /// If GPUs were asked for and there are none.
    pub fn gpus(&self) -> Result<Option<Arc<dyn Gpus>>, Error> {
        make_once(&self.gpus, || {
            let gpus = match self.config.device {
                DeviceChoice::Cpu => None,
                DeviceChoice::Hip => Some(gpu::hip(&self.config, &self.instance)?),
                #[cfg(feature = "cuda")]
                DeviceChoice::Cuda => Some(gpu::cuda(&self.config, &self.instance)?),
                DeviceChoice::Auto => match gpu::hip(&self.config, &self.instance) {
                    // There are GPUs, and the host's memory is theirs.
                    Err(error @ (Error::Forked(_) | Error::Driver(_))) => return Err(error),
                    gpus => gpus
                        .inspect_err(|error| tracing::info!("no AMD GPU is used ({error}); graphs run on the CPU"))
                        .ok(),
                },
            };
            match &self.config.target {
                Some(target) if gpus.is_none() && *target != Target::Cpu => {
                    tracing::warn!("ROTINI_TARGET={target} is not used: graphs run on the CPU");
                }
                _ => {}
            }
            Ok(gpus)
        })
    }

    /// What devices are made with.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The CPU.
    ///
    /// # Errors
    ///
    /// If the runtime refuses.
    pub fn host(&self) -> Result<Arc<dyn Device>, Error> {
        make_once(&self.host, || {
            Host::new(&self.config, &self.instance).map(|host| Arc::new(host) as Arc<dyn Device>)
        })
    }

    /// The compiler.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`], saying where it was looked for.
    pub fn compiler(&self) -> Result<Arc<dyn Compiler>, Error> {
        if let Some(settled) = self.compiler.get() {
            return settled.clone();
        }
        let found = match Chosen::new(&self.config) {
            Ok(compiler) => Ok(Arc::new(compiler) as Arc<dyn Compiler>),
            // No verdict: it is looked for again.
            Err(error) if error.passes => return Err(Error::NoCompiler(error.reason)),
            Err(error) => Err(Error::NoCompiler(error.reason)),
        };
        self.compiler.get_or_init(|| found).clone()
    }

    /// Whether the compiler cannot even be looked for, because the system is short of something.
    fn is_unsettled(&self) -> bool {
        self.compiler().is_err() && self.compiler.get().is_none()
    }

    /// Says whether a graph can be had for a target with these features; if not, why. Compiles nothing.
    ///
    /// # Errors
    ///
    /// The first reason found: what [`check`] says, no compiler for a graph that is not cached, or that it failed to compile before.
    pub fn applicable(&self, bytes: &[u8], target: &Target, features: &str) -> Result<Plan, Error> {
        let plan = check(bytes, target)?;
        if self.is_unsettled() {
            // What passes is no reason to decline.
            return Ok(plan);
        }
        let keys = self.keys(&plan.graph, target, features)?;
        match self.compiler() {
            Ok(_) => match keys.iter().find_map(|key| self.cache.failure(key)) {
                Some(failure) => Err(Error::FailedBefore(failure.reason.clone())),
                None => Ok(plan),
            },
            Err(_) if keys.iter().any(|key| self.cache.peek(key).is_some()) => Ok(plan),
            Err(error) => Err(error),
        }
    }

    /// The code of a graph if it is in the cache already.
    #[must_use]
    pub fn cached(&self, graph: &NormalGraph, target: &Target, features: &str) -> Option<Arc<Entry>> {
        let keys = self.keys(graph, target, features).ok()?;
        keys.iter().find_map(|key| self.cache.peek(key))
    }

    /// The workspace to ask for, for a graph: exact if it is cached, else an upper bound, as for all shapes that an execution may have.
    ///
    /// # Errors
    ///
    /// If the graph cannot be executed.
    pub fn workspace_bytes(&self, device: &dyn Device, bytes: &[u8]) -> Result<u64, Error> {
        let target = device.target();
        let plan = check(bytes, &target)?;
        let cached = self.cached(&plan.graph, &target, device.features());
        let needed = plan.workspace_bytes(&target, cached.map(|entry| entry.metadata.workspace_bytes))?;
        Ok(self.asked(needed))
    }

    /// The workspace that the host is asked for where so much is needed: none if it is little, for which there is memory of our own.
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
        let target = device.target();
        let plan = check(bytes, &target)?;
        let code = self.code_of(device, &plan, bytes)?;
        let variable = match plan.overridable.clone() {
            None => None,
            Some(graph) => {
                let exact = Some(code.executable.workspace_bytes());
                let workspace_bytes = plan.workspace_bytes(&target, exact)?;
                Some(Variable::new(Arc::clone(device), graph, bytes, workspace_bytes))
            }
        };
        let needed = ExecutionContext::needed(&code, variable.as_ref());
        Ok(ExecutionContext::new(code, plan.bindings, variable, self.asked(needed)))
    }

    /// The code of a valid graph that is not as it was declared: from loaded code, from the cache, or compiled now.
    ///
    /// # Errors
    ///
    /// As [`create_context`](Self::create_context).
    pub(crate) fn specialised(&self, device: &Arc<dyn Device>, graph: Graph) -> Result<Arc<Code>, Error> {
        let bytes = rotini_wire::encode(&graph);
        let plan = Plan::new(graph);
        plan.check(&device.target())?;
        self.code_of(device, &plan, &bytes)
    }

    fn code_of(&self, device: &Arc<dyn Device>, plan: &Plan, bytes: &[u8]) -> Result<Arc<Code>, Error> {
        let target = device.target();
        let keys = self.keys(&plan.graph, &target, device.features())?;
        match keys.iter().find_map(|key| self.loaded(device, key)) {
            Some(code) => Ok(code),
            None => self.code(device, &keys, plan, &target, bytes),
        }
    }

    /// A context from the bytes of another. Neither asks for a compiler nor touches the cache.
    ///
    /// # Errors
    ///
    /// [`Error::DamagedContext`] if the bytes are not as they were written, [`Error::ForeignContext`] if they are and the code in them
    /// is for something else than this device or this runtime.
    pub fn load_context(&self, device: &Arc<dyn Device>, bytes: &[u8]) -> Result<ExecutionContext, Error> {
        let Serialized {
            portable,
            bindings,
            shapes,
        } = Serialized::decode(bytes)?;
        let target = device.target().to_string();
        if portable.target != target {
            let made_for = &portable.target;
            return Err(Error::ForeignContext(format!(
                "it is for {made_for}, and this is {target}"
            )));
        }
        if portable.features != device.features() {
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
        match self.loaded(device, &key) {
            Some(code) => Ok(code),
            None => self.load(device, &key, portable).map_err(|error| match error {
                refused if refused.is_refused_code() => Error::ForeignContext(refused.to_string()),
                other => other,
            }),
        }
    }

    /// The compiled code of a graph for a target, from the cache if it is there.
    ///
    /// # Errors
    ///
    /// If it does not compile, or failed to not long ago.
    pub fn compiled(&self, key: &Key, source: &Source<'_>) -> Result<(Arc<Entry>, Origin), Error> {
        // The compiler's front half runs here: not on a thread of the host's.
        let create = || {
            apart(|| self.compile(key, source)).unwrap_or_else(|error| {
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

    /// The builds of the compiler whose code is looked for: the one that is here. Where there is none, those that filled the cache.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`] if there are none either.
    pub fn builds(&self) -> Result<&[String], Error> {
        if let Err(error) = self.compiler()
            && self.compiler.get().is_none()
        {
            return Err(error);
        }
        // Settled now, whatever this thread saw before: another may have found the compiler meanwhile.
        let builds = self.builds.get_or_init(|| match self.compiler() {
            Ok(compiler) => Ok(vec![compiler.identity().to_owned()]),
            Err(error) => {
                let directories = self.cache.dir().into_iter();
                let known =
                    known_compilers::read(directories.chain(self.config.cache_path.iter().map(PathBuf::as_path)));
                if known.is_empty() {
                    return Err(error);
                }
                tracing::warn!("only graphs that are cached can be executed: {error}");
                Ok(known)
            }
        });
        builds.as_deref().map_err(Clone::clone)
    }

    /// What the code of a graph is found under: a key for each of the [`builds`](Self::builds).
    fn keys(&self, graph: &NormalGraph, target: &Target, features: &str) -> Result<Vec<Key>, Error> {
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
                strategy: target.conv_strategy().name(),
                flags: &flags,
                compiler,
            })
        };
        Ok(self.builds()?.iter().map(key).collect())
    }

    /// Lets machines without a compiler find what is in the cache's directory.
    fn note_compiler(&self) {
        if let (Some(directory), Ok(compiler)) = (self.cache.dir(), self.compiler())
            && let Err(error) = known_compilers::note(directory, compiler.identity())
        {
            tracing::info!(
                "machines without a compiler will not find what is in {}: {error}",
                directory.display()
            );
        }
    }

    /// Loads a graph's code from the cache, or compiles it.
    fn code(
        &self,
        device: &Arc<dyn Device>,
        keys: &[Key],
        plan: &Plan,
        target: &Target,
        bytes: &[u8],
    ) -> Result<Arc<Code>, Error> {
        let find = |key: &Key| match self.compiler() {
            Ok(_) => self.compiled(key, &plan.source(bytes, target, device.features())),
            Err(error) => self.cache.peek(key).map(|entry| (entry, Origin::Disk)).ok_or(error),
        };
        let signature = rotini_emit::signature(&plan.graph).map_err(|error| Error::Internal(error.to_string()))?;
        let load = |key: &Key, entry: &Entry| {
            let portable = Portable {
                producer: entry.metadata.producer.clone(),
                target: target.to_string(),
                features: device.features().to_owned(),
                operations: rotini_emit::operations(&plan.graph),
                workspace_bytes: entry.metadata.workspace_bytes,
                dispatches: entry.metadata.dispatches,
                signature: signature.clone(),
                code: entry.payload.clone(),
            };
            self.load(device, key, portable)
        };
        let mut last = Error::NoCompiler("none is known".to_owned());
        for key in keys {
            let result = find(key).and_then(|(entry, origin)| match load(key, &entry) {
                // Intact, and of no use: made again, once.
                Err(error) if error.is_refused_code() && !matches!(origin, Origin::Created { .. }) => {
                    self.cache.reject(key, &error);
                    find(key).and_then(|(entry, _)| load(key, &entry))
                }
                result => result,
            });
            match result {
                Ok(code) => return Ok(code),
                Err(error) => last = error,
            }
        }
        Err(last)
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
        let module = unsafe { Module::load(&self.instance, Arc::from(compiled.vmfb.as_slice())) }
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

    fn loaded(&self, device: &Arc<dyn Device>, key: &Key) -> Option<Arc<Code>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(&(identity(device), *key)).and_then(Weak::upgrade)
    }

    fn load(&self, device: &Arc<dyn Device>, key: &Key, portable: Portable) -> Result<Arc<Code>, Error> {
        let work = Work {
            operations: portable.operations,
        };
        // SAFETY: the code comes from the compiler: directly, through a cache that only the user can write and that is verified, or
        // through bytes that the host vouches for.
        let executable = unsafe { device.load(key, &portable.code, &portable.signature, work) }?;
        let code = Arc::new(Code { executable, portable });
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, code| code.strong_count() > 0);
        loaded.insert((identity(device), *key), Arc::downgrade(&code));
        Ok(code)
    }
}

/// Tells devices apart for as long as they live.
fn identity(device: &Arc<dyn Device>) -> usize {
    Arc::as_ptr(device).addr()
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
