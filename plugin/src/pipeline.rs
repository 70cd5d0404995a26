//! From bytes to an execution context: the only place that joins decoding, lowering, compiling, caching and loading.

use crate::config::{CompilerChoice, Config, DeviceChoice};
use crate::context::ExecutionContext;
use crate::device::host::Host;
use crate::device::{Device, Executable, Gpus, Work, gpu};
use crate::error::Error;
use bytes::Bytes;
use iree_sys::compiler::{
    CompileError, CompileRequest, Compiled, Compiler, InProcess, Program, find_library, find_program,
};
use iree_sys::runtime::{Executable as Module, Instance};
use rotini_cache::{Cache, CacheConfig, Key, KeyInputs, NewEntry, Origin};
use rotini_emit::{EMITTER_VERSION, ENTRY_POINT, Target};
use rotini_graph::{Bindings, NormalGraph};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// What every vmfb is told its source is called: the name ends up in the code, and must not vary.
const SOURCE_NAME: &str = "rotini.mlir";

/// The state that all handles of a process share. It ends with the last of them, so that nothing runs on after the library is closed.
pub struct Runtime {
    /// The settings.
    pub config: Config,
    /// The compiled graphs.
    pub cache: Cache,
    instance: Instance,
    compiler: OnceLock<Result<Arc<dyn Compiler>, Error>>,
    host: OnceLock<Result<Arc<dyn Device>, Error>>,
    gpus: OnceLock<Result<Option<Arc<dyn Gpus>>, Error>>,
    /// Code that is loaded and in use, by device and key.
    loaded: Mutex<HashMap<(usize, Key), Weak<dyn Executable>>>,
}

static SHARED: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

/// A graph that has passed [`check`], ready to be compiled.
pub struct Plan {
    /// The graph without labels.
    pub graph: NormalGraph,
    /// The labels.
    pub bindings: Bindings,
}

/// Decodes a graph and brings it into its normal form.
///
/// # Errors
///
/// [`Error::Graph`] if it is malformed, [`Error::Unsupported`] if it uses something that rotini does not know.
pub fn decode(bytes: &[u8]) -> Result<Plan, Error> {
    let graph = rotini_wire::decode(bytes).map_err(|error| {
        if error.is_malformed() {
            Error::Graph(error.to_string())
        } else {
            Error::Unsupported(error.to_string())
        }
    })?;
    let needed = graph.min_api_version;
    if needed > crate::abi::API_VERSION {
        let [major, minor, patch] = needed;
        return Err(Error::Unsupported(format!(
            "it needs engine API {major}.{minor}.{patch}"
        )));
    }
    let (graph, bindings) = graph.normalise();
    Ok(Plan { graph, bindings })
}

/// Says whether a graph can be compiled and executed for a target; if not, why and where. Neither compiles nor touches a device.
///
/// # Errors
///
/// The first reason found.
pub fn check(bytes: &[u8], target: &Target) -> Result<Plan, Error> {
    let plan = decode(bytes)?;
    rotini_emit::check(&plan.graph, target)
        .map_err(|unsupported| Error::Unsupported(unsupported.describe(&plan.bindings)))?;
    Ok(plan)
}

impl Runtime {
    /// The state of this process, made if no handle is alive.
    ///
    /// # Errors
    ///
    /// If the runtime cannot be set up.
    pub fn shared() -> Result<Arc<Self>, Error> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
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
        let cache = Cache::open(CacheConfig {
            dir: config.cache_dir.clone(),
            ..CacheConfig::default()
        });
        let instance = Instance::new().map_err(Error::runtime("IREE's runtime cannot be set up"))?;
        Ok(Runtime {
            config,
            cache,
            instance,
            compiler: OnceLock::new(),
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
        self.gpus
            .get_or_init(|| {
                let gpus = match self.config.device {
                    DeviceChoice::Cpu => None,
                    DeviceChoice::Hip => Some(gpu::hip(&self.config, &self.instance)?),
                    #[cfg(feature = "cuda")]
                    DeviceChoice::Cuda => Some(gpu::cuda(&self.config, &self.instance)?),
                    DeviceChoice::Auto => gpu::hip(&self.config, &self.instance)
                        .inspect_err(|error| tracing::info!("no AMD GPU is used ({error}); graphs run on the CPU"))
                        .ok(),
                };
                match &self.config.target {
                    Some(target) if gpus.is_none() && *target != Target::Cpu => {
                        tracing::warn!("ROTINI_TARGET={target} is not used: graphs run on the CPU");
                    }
                    _ => {}
                }
                Ok(gpus)
            })
            .clone()
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
        self.host
            .get_or_init(|| Host::new(&self.instance).map(|host| Arc::new(host) as Arc<dyn Device>))
            .clone()
    }

    /// The compiler.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`], saying where it was looked for.
    pub fn compiler(&self) -> Result<Arc<dyn Compiler>, Error> {
        self.compiler
            .get_or_init(|| match self.config.compiler {
                CompilerChoice::Program => compiler_program(),
                CompilerChoice::InProcess => compiler_in_process(),
                CompilerChoice::Auto => compiler_program().or_else(|error| {
                    tracing::warn!("the compiler runs in this process, for want of the program ({error})");
                    compiler_in_process()
                }),
            })
            .clone()
    }

    /// The workspace that a graph needs: exact if it is cached, else an upper bound.
    ///
    /// # Errors
    ///
    /// If the graph cannot be executed.
    pub fn workspace_bytes(&self, device: &dyn Device, bytes: &[u8]) -> Result<u64, Error> {
        let plan = check(bytes, &device.target())?;
        let target = device.target();
        let cached = self
            .key(&plan.graph, &target, device.features())
            .ok()
            .and_then(|key| self.cache.peek(&key));
        match cached {
            Some(entry) => Ok(entry.metadata.workspace_bytes),
            None => {
                rotini_emit::workspace_bound(&plan.graph, &target).map_err(|error| Error::Internal(error.to_string()))
            }
        }
    }

    /// A context that executes the graph: from loaded code, from the cache, or compiled now.
    ///
    /// # Errors
    ///
    /// If the graph is malformed or unsupported, does not compile, or cannot be loaded.
    pub fn create_context(&self, device: &Arc<dyn Device>, bytes: &[u8]) -> Result<ExecutionContext, Error> {
        let Plan { graph, bindings } = check(bytes, &device.target())?;
        let target = device.target();
        let key = self.key(&graph, &target, device.features())?;
        let executable = match self.loaded(device, &key) {
            Some(executable) => executable,
            None => {
                let (entry, _) = self.compiled(&key, &graph, &target)?;
                self.load(device, &key, &graph, &entry.payload)?
            }
        };
        Ok(ExecutionContext::new(executable, bindings))
    }

    /// The compiled code of a graph for a target, from the cache if it is there.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn compiled(
        &self,
        key: &Key,
        graph: &NormalGraph,
        target: &Target,
    ) -> Result<(Arc<rotini_cache::Entry>, Origin), Error> {
        self.cache
            .get_or_create(key, || self.compile(graph, target))
            .map_err(|error| error.as_ref().clone())
    }

    /// Everything that decides what code a graph becomes.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`].
    pub fn key(&self, graph: &NormalGraph, target: &Target, features: &str) -> Result<Key, Error> {
        let compiler = self.compiler()?;
        let graph = graph
            .canonical_bytes()
            .map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Key::of(&KeyInputs {
            graph: &graph,
            target: &target.to_string(),
            target_features: features,
            emitter_version: EMITTER_VERSION,
            strategy: target.conv_strategy().name(),
            flags: &[target.flags(), target.cautious_flags().unwrap_or_default()].concat(),
            compiler: compiler.identity(),
        }))
    }

    fn compile(&self, graph: &NormalGraph, target: &Target) -> Result<NewEntry, Error> {
        let compiler = self.compiler()?;
        let started = Instant::now();
        let emitted = rotini_emit::emit(graph, target).map_err(|error| Error::Internal(error.to_string()))?;
        let compiled = compile_for(compiler.as_ref(), &emitted.mlir, target).map_err(|error| {
            tracing::error!(%target, "the compiler failed: {}", error.diagnostics());
            Error::Compile {
                first_line: error.to_string(),
                target: target.to_string(),
            }
        })?;
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
        Ok(NewEntry {
            producer: format!("rotini {} with {}", env!("CARGO_PKG_VERSION"), compiler.identity()),
            target: target.to_string(),
            workspace_bytes: workspace_bytes as u64,
            dispatches: u32::try_from(compiled.statistics.dispatches).unwrap_or(u32::MAX),
            compile_micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            payload: Bytes::from(compiled.vmfb),
        })
    }

    fn loaded(&self, device: &Arc<dyn Device>, key: &Key) -> Option<Arc<dyn Executable>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(&(identity(device), *key)).and_then(Weak::upgrade)
    }

    fn load(
        &self,
        device: &Arc<dyn Device>,
        key: &Key,
        graph: &NormalGraph,
        code: &[u8],
    ) -> Result<Arc<dyn Executable>, Error> {
        let signature = rotini_emit::signature(graph).map_err(|error| Error::Internal(error.to_string()))?;
        let work = Work {
            operations: rotini_emit::operations(graph),
        };
        // SAFETY: the code comes from the compiler, directly or through a cache that only the user can write and that is verified.
        let executable = unsafe { device.load(key, code, &signature, work) }?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, code| code.strong_count() > 0);
        loaded.insert((identity(device), *key), Arc::downgrade(&executable));
        Ok(executable)
    }
}

/// Tells devices apart for as long as they live.
fn identity(device: &Arc<dyn Device>) -> usize {
    Arc::as_ptr(device).addr()
}

/// Compiles a module for a target. If the compiler crashes, it is called once more with the target's cautious flags. Either way the code
/// is right, so the cache's key need not tell which it was.
fn compile_for(compiler: &dyn Compiler, mlir: &str, target: &Target) -> Result<Compiled, CompileError> {
    let mut flags = target.flags();
    let compile = |flags: &[String]| {
        compiler.compile(&CompileRequest {
            mlir,
            name: SOURCE_NAME,
            flags,
            dump_executables: None,
        })
    };
    match (compile(&flags), target.cautious_flags()) {
        (Err(error @ CompileError::Crashed { .. }), Some(cautious)) => {
            tracing::warn!(%target, "the compiler crashed and is called again with cautious flags: {error}");
            flags.extend(cautious);
            compile(&flags)
        }
        (result, _) => result,
    }
}

fn compiler_program() -> Result<Arc<dyn Compiler>, Error> {
    let path = find_program().map_err(|error| Error::NoCompiler(error.to_string()))?;
    let program = Program::new(&path).map_err(|error| Error::NoCompiler(error.to_string()))?;
    Ok(Arc::new(program))
}

fn compiler_in_process() -> Result<Arc<dyn Compiler>, Error> {
    let path = find_library().map_err(|error| Error::NoCompiler(error.to_string()))?;
    // SAFETY: the library is IREE's compiler, of an installation that the user or this project chose.
    let library = unsafe { InProcess::open(&path) }.map_err(|error| Error::NoCompiler(error.to_string()))?;
    Ok(Arc::new(library))
}
