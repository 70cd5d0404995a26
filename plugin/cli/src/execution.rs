//! Executes one graph through the plugin's C ABI: in the order of hipDNN's calls, timed, and
//! compared with the reference.

use crate::failure::{Failure, chain};
use crate::memory::{Memory, timed};
use crate::outcome::{Origin, Outcome, Verdict};
use crate::plugin::{Engine, Plugin};
use crate::progress::Progress;
use anyhow::{Context as _, Result, bail};
use rotini_bench::Place;
use rotini_cache::Entry;
use rotini_emit::Target;
use rotini_graph::TensorKind;
use rotini_host::gpu::{Api, Driver};
use rotini_host::{Handle, engine_config};
use rotini_plugin::Error;
use rotini_plugin::config::Config;
use rotini_plugin::device::Device;
use rotini_plugin::prepared::Prepared;
use rotini_plugin::runtime::Runtime;
use rotini_plugin::{compile, pipeline, tuned};
use std::sync::Arc;
use tracing::subscriber::{NoSubscriber, with_default};

/// Limit of a graph's buffers in bytes, beyond which it is not executed. The reference needs
/// several times as much memory, and a failed allocation would abort the process.
const MAX_MEMORY: usize = 1 << 30;

/// The settings of executions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Seed of the inputs.
    pub(crate) seed: u64,
    /// Executions per graph.
    pub(crate) repeat: u32,
}

/// Executes graphs on one handle of a plugin.
pub(crate) struct Executor {
    handle: Handle,
    engines: Vec<Engine>,
    twin: Twin,
    place: Place,
    options: Options,
}

impl Executor {
    /// Creates a handle.
    ///
    /// # Errors
    ///
    /// Fails if the plugin creates no handle, if there is no compiler, or if the memory of the
    /// plugin's device cannot be accessed.
    pub(crate) fn new(plugin: &Plugin, options: Options) -> Result<Self> {
        let twin = Twin::new()?;
        // This comes first, so that the GPU becomes the calling thread's current device.
        let place = twin.place()?;
        Ok(Executor {
            handle: plugin.handle()?,
            engines: plugin.engines.clone(),
            twin,
            place,
            options,
        })
    }

    /// Executes one graph. Any error becomes an outcome.
    pub(crate) fn execute(&self, bytes: &[u8], progress: &Progress) -> Outcome {
        let mut outcome = Outcome::new(Verdict::Right);
        match self.try_execute(bytes, &mut outcome, progress) {
            Ok(None) => outcome,
            Ok(Some((verdict, reason))) => outcome.because(verdict, reason),
            Err(error) => {
                let reason = chain(error.as_ref());
                outcome.because(Verdict::Failed, reason)
            }
        }
    }

    /// Measures the steps into `outcome`. Returns a verdict with its reason, unless the graph is
    /// right.
    fn try_execute(
        &self,
        bytes: &[u8],
        outcome: &mut Outcome,
        progress: &Progress,
    ) -> Result<Option<(Verdict, String)>> {
        progress.stage("asking whether it can be executed");
        let (engines, applicable) = timed(|| self.handle.applicable(bytes));
        let engines = engines?;
        outcome.applicable = Some(applicable);
        let prepared = self.twin.check(bytes);
        let (engine, prepared) = match (engines.first(), prepared) {
            (Some(&engine), Ok(prepared)) => (engine, prepared),
            (None, Err(Error::Unsupported(reason) | Error::FailedBefore(reason))) => {
                return Ok(Some((Verdict::Declined, reason)));
            }
            (None, Err(Error::Graph(reason))) => return Ok(Some((Verdict::Malformed, reason))),
            (None, Err(error)) => return Err(error.into()),
            (None, Ok(_)) => bail!("the plugin declines what this program would accept: are they of one build?"),
            (Some(_), Err(error)) => {
                return Err(error)
                    .context("the plugin accepts what this program would decline: are they of one build?");
            }
        };
        let details = self.handle.details(engine, bytes)?;
        if details.engine_id != engine {
            bail!(
                "the details of engine {engine:#x} say that they are of {:#x}",
                details.engine_id
            );
        }
        outcome.engine = self
            .engines
            .iter()
            .find(|known| known.id == engine)
            .map(|known| known.name.clone());
        let config = engine_config(engine);
        let estimate = self.handle.workspace_estimate(&config, bytes)?;
        outcome.workspace_estimate = Some(estimate);

        let cached = self.twin.cached(&prepared);
        progress.stage(if cached.is_some() {
            "loading from the cache"
        } else {
            "compiling"
        });
        let (context, create) = timed(|| self.handle.context(&config, bytes));
        let context = context?;
        outcome.create = Some(create);
        // The ABI cannot report the origin and the dispatches, so they come from the cache
        // directory.
        outcome.origin = self.twin.sees_cache().then_some(if cached.is_some() {
            Origin::Cache
        } else {
            Origin::Compiled
        });
        outcome.dispatches = cached
            .or_else(|| self.twin.cached(&prepared))
            .map(|entry| entry.metadata.facts.dispatches);
        let workspace = context.workspace()?;
        outcome.workspace = Some(workspace);
        if workspace > estimate {
            bail!("{estimate} bytes of workspace were announced, but {workspace} are needed");
        }

        let graph = rotini_wire::decode(bytes)?;
        let needed = graph
            .tensors
            .iter()
            .filter(|tensor| tensor.kind == TensorKind::Buffer)
            .filter_map(|tensor| rotini_reference::span_bytes(tensor).ok())
            .fold(workspace, usize::saturating_add);
        if needed > MAX_MEMORY {
            let reason = format!("it was not executed: its buffers have {needed} bytes, more than {MAX_MEMORY}");
            return Ok(Some((Verdict::Unchecked, reason)));
        }
        let inputs = match rotini_reference::fill_all(&graph, self.options.seed) {
            Ok(inputs) => inputs,
            Err(error) => return Ok(Some((Verdict::Unchecked, format!("it was not executed: {error}")))),
        };
        progress.stage("executing");
        let mut memory = Memory::new(&self.place, &graph, &inputs, workspace)?;
        outcome.execute = Some(memory.execute(&context, self.options.repeat)?);
        progress.stage("computing the reference");
        memory.judge(&graph, &inputs, &mut outcome.outputs)
    }
}

/// The plugin's own code, linked into this program, with the same settings and the same cache
/// directory. It provides what the ABI does not report.
struct Twin {
    runtime: Runtime,
    device: Arc<dyn Device>,
}

impl Twin {
    fn new() -> Result<Self> {
        quietly(|| {
            let runtime = Runtime::new(Config::from_env())?;
            runtime.builds()?;
            let device = runtime.default_device()?;
            Ok(Twin { runtime, device })
        })
    }

    /// Returns the memory that the plugin's device uses. For GPUs this is the first GPU's, which a
    /// handle uses by default.
    fn place(&self) -> Result<Place> {
        let api = match self.device.compiled_for().target {
            Target::Cpu | Target::X86(_) => return Ok(Place::Host),
            Target::Rocm { .. } => Api::Hip,
            Target::Cuda { .. } => Api::Cuda,
        };
        let Some(gpus) = self.runtime.gpus()? else {
            bail!(Failure::Environment(format!(
                "{} has no library",
                self.device.describe()
            )));
        };
        // SAFETY: the library is the one that the plugin's code, which is linked into this program,
        // opened as this API's.
        let driver = unsafe { Driver::load(api, Some(gpus.library().as_ref())) }?;
        Ok(Place::Gpu(driver.gpu(0)?))
    }

    fn check(&self, bytes: &[u8]) -> Result<Prepared, Error> {
        quietly(|| pipeline::applicable(&self.runtime, bytes, self.device.compiled_for()))
    }

    /// Returns true if a cache directory is configured, where this program sees the plugin's
    /// entries.
    fn sees_cache(&self) -> bool {
        self.runtime.cache.dir().is_some() || !self.runtime.config.cache_path.is_empty()
    }

    fn cached(&self, prepared: &Prepared) -> Option<Arc<Entry>> {
        quietly(|| {
            let choices = tuned::winner(&self.runtime, &prepared.graph, self.device.as_ref());
            compile::cached(&self.runtime, &prepared.graph, self.device.compiled_for(), &choices)
        })
    }
}

/// Runs `body` without log messages, because the plugin logs the same ones.
fn quietly<T>(body: impl FnOnce() -> T) -> T {
    with_default(NoSubscriber::default(), body)
}
