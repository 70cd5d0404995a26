//! The state that all handles of a process share: the settings, the cache, the compiler, the
//! devices and the code that is loaded.

use crate::code::Codes;
use crate::compiler::Chosen;
use crate::config::{Config, DeviceChoice};
use crate::device::host::Host;
use crate::device::{Device, Gpus, Settled, gpu, make_once};
use crate::error::Error;
use crate::fork::{self, Process};
use crate::known_compilers;
use crate::winners::Winners;
use rotini_cache::{Cache, CacheConfig};
use rotini_emit::Target;
use rotini_iree::compiler::Compiler;
use rotini_iree::runtime::Instance;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Extra time to wait for another process that compiles the same graph, beyond the longest that the
/// compilation may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state that all handles of a process share. It is dropped with the last handle, so that
/// nothing keeps running after the library is closed.
pub struct Runtime {
    /// The settings.
    pub config: Config,
    /// The cache of compiled graphs. Opened on first use, because serialized contexts do not need
    /// it.
    pub cache: LazyLock<Cache, Box<dyn FnOnce() -> Cache + Send>>,
    instance: Instance,
    compiler: OnceLock<Result<Arc<dyn Compiler>, Error>>,
    /// The compiler builds whose code is looked up in the cache: the build of the compiler on this
    /// machine, or else the builds that filled the cache.
    builds: OnceLock<Result<Vec<String>, Error>>,
    /// Set once this process has recorded the compiler's build in the cache directory, or failed
    /// to.
    noted: OnceLock<()>,
    host: Settled<Arc<dyn Device>>,
    gpus: Settled<Option<Arc<dyn Gpus>>>,
    pub(crate) codes: Codes,
    pub(crate) winners: Winners,
}

/// Number of process generations that can use the library: the process that loaded it, and its
/// nested forks.
const PROCESSES: usize = 16;

/// The shared state, by process generation. A forked child must not reuse its parent's slot: a
/// thread that does not exist in the child may have held that lock during the fork.
static SHARED: [Mutex<Weak<Runtime>>; PROCESSES] = [const { Mutex::new(Weak::new()) }; PROCESSES];

impl Runtime {
    /// Returns this process's state, and creates it if no handle is alive.
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

    /// Creates a separate state.
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
            // The other process may call the compiler twice: the second time with fallback flags.
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
            codes: Codes::default(),
            winners: Winners::default(),
        })
    }

    /// Returns the device of a new handle: the calling thread's current GPU, or the CPU.
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

    /// Returns the GPUs, or `None` if graphs run on the CPU.
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
                    // There are GPUs, so the host's buffers are in GPU memory, and the CPU cannot
                    // replace them.
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

    /// Returns the runtime instance that devices are created with.
    #[must_use]
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Returns the CPU device.
    ///
    /// # Errors
    ///
    /// If the runtime refuses.
    pub fn host(&self) -> Result<Arc<dyn Device>, Error> {
        make_once(&self.host, || {
            Host::new(&self.config, &self.instance).map(|host| Arc::new(host) as Arc<dyn Device>)
        })
    }

    /// Returns the compiler.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`], which lists the places that were searched.
    pub fn compiler(&self) -> Result<Arc<dyn Compiler>, Error> {
        if let Some(settled) = self.compiler.get() {
            return settled.clone();
        }
        let found = match Chosen::new(&self.config) {
            Ok(compiler) => Ok(Arc::new(compiler) as Arc<dyn Compiler>),
            // A temporary failure is not stored: the next call searches again.
            Err(error) if error.passes => return Err(Error::NoCompiler(error.reason)),
            Err(error) => Err(Error::NoCompiler(error.reason)),
        };
        self.compiler.get_or_init(|| found).clone()
    }

    /// Returns true if the search for the compiler cannot be completed now, because a system
    /// resource is exhausted.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.compiler().is_err() && self.compiler.get().is_none()
    }

    /// Returns the compiler builds whose code is looked up: the build of the compiler on this
    /// machine, or, without a compiler, the builds that filled the cache.
    ///
    /// # Errors
    ///
    /// [`Error::NoCompiler`] if there is no compiler and no such build is known.
    pub fn builds(&self) -> Result<&[String], Error> {
        if let Err(error) = self.compiler()
            && self.compiler.get().is_none()
        {
            return Err(error);
        }
        // The compiler is settled now, even if this thread got an error above: another thread may
        // have found it since.
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

    /// Records the compiler's build in the cache directory, so that machines without a compiler can
    /// find its entries there.
    pub(crate) fn note_compiler(&self) {
        self.noted.get_or_init(|| {
            if let (Some(directory), Ok(compiler)) = (self.cache.dir(), self.compiler())
                && let Err(error) = known_compilers::note(directory, compiler.identity())
            {
                tracing::info!(
                    "machines without a compiler will not find what is in {}: {error}",
                    directory.display()
                );
            }
        });
    }
}
