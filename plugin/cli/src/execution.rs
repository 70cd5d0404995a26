//! One graph through the plugin's C ABI: in the order of hipDNN's calls, timed, and held against the reference.

use crate::buffer::{Buffer, Place};
use crate::failure::{Failure, chain};
use crate::plugin::{Engine, Plugin};
use crate::progress::Progress;
use anyhow::{Context as _, Result, bail};
use rotini_cache::Entry;
use rotini_emit::Target;
use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_host::gpu::{Api, Driver, GpuError};
use rotini_host::{Context, DeviceBuffer, Handle, engine_config};
use rotini_plugin::Error;
use rotini_plugin::config::Config;
use rotini_plugin::device::Device;
use rotini_plugin::pipeline::{Plan, Runtime};
use rotini_reference::{Buffers, Mismatch, ReferenceError, Report, UNTOUCHED};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::subscriber::{NoSubscriber, with_default};

/// How a graph turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Executed, and every output is within its tolerance.
    Right,
    /// Executed, and something is not as it must be.
    Wrong,
    /// Executed, but the reference does not know an operation or type of it.
    Unchecked,
    /// Well formed, and not supported.
    Declined,
    /// Not a graph, or not a valid one.
    Malformed,
    /// A file that cannot be read, or a call that failed.
    Failed,
}

/// Where the code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// Compiled now.
    Compiled,
    /// Found in the cache directory.
    Cache,
}

/// What is known about one graph's execution. Times are in microseconds, sizes in bytes; what was not reached is absent.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// How it turned out.
    pub(crate) verdict: Verdict,
    /// Why, if it is not right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The engine that executed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// Time to ask whether the graph can be executed.
    #[serde(
        rename = "applicable_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) applicable: Option<Duration>,
    /// The workspace that was announced before the graph was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_estimate: Option<usize>,
    /// Where the code came from. Unknown without a cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
    /// Time to compile, or to find and load.
    #[serde(
        rename = "create_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) create: Option<Duration>,
    /// Kernels that one execution launches. Unknown without a cache directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dispatches: Option<u32>,
    /// The workspace that an execution needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<usize>,
    /// Median time of an execution.
    #[serde(
        rename = "execute_us",
        serialize_with = "micros",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) execute: Option<Duration>,
    /// How far each output is from the reference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<OutputError>,
}

/// How far an output is from the reference.
#[derive(Debug, Serialize)]
pub(crate) struct OutputError {
    /// The tensor.
    pub(crate) tensor: String,
    /// The largest difference.
    pub(crate) max_absolute: f64,
    /// The largest difference as a share of what is allowed; above 1 is wrong.
    pub(crate) ratio: f64,
}

impl Outcome {
    fn new(verdict: Verdict) -> Self {
        Outcome {
            verdict,
            reason: None,
            engine: None,
            applicable: None,
            workspace_estimate: None,
            origin: None,
            create: None,
            dispatches: None,
            workspace: None,
            execute: None,
            outputs: Vec::new(),
        }
    }

    /// A graph that did not get to be executed.
    pub(crate) fn failed(error: &anyhow::Error) -> Self {
        Outcome {
            reason: Some(chain(error.as_ref())),
            ..Outcome::new(Verdict::Failed)
        }
    }

    fn because(self, verdict: Verdict, reason: impl Into<String>) -> Self {
        Outcome {
            verdict,
            reason: Some(reason.into()),
            ..self
        }
    }

    /// The output that is furthest from the reference, relative to what is allowed.
    pub(crate) fn worst(&self) -> Option<&OutputError> {
        self.outputs.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// How graphs are executed.
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
    /// If that fails, if there is no compiler, or if the memory of the plugin's device is out of reach.
    pub(crate) fn new(plugin: &Plugin, options: Options) -> Result<Self> {
        let twin = Twin::new()?;
        // First of all, so that the GPU is the calling thread's current one.
        let place = twin.place()?;
        Ok(Executor {
            handle: plugin.handle()?,
            engines: plugin.engines.clone(),
            twin,
            place,
            options,
        })
    }

    /// Executes one graph. Whatever goes wrong is an outcome.
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

    /// Fills in what is measured. Returns a verdict, if it is not that all is right.
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
        let plan = self.twin.check(bytes);
        let (engine, plan) = match (engines.first(), plan) {
            (Some(&engine), Ok(plan)) => (engine, plan),
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

        let cached = self.twin.cached(&plan);
        progress.stage(if cached.is_some() {
            "loading from the cache"
        } else {
            "compiling"
        });
        let (context, create) = timed(|| self.handle.context(&config, bytes));
        let context = context?;
        outcome.create = Some(create);
        // Both are told by the cache directory alone: the ABI has no words for them.
        outcome.origin = self.twin.sees_cache().then_some(if cached.is_some() {
            Origin::Cache
        } else {
            Origin::Compiled
        });
        outcome.dispatches = cached
            .or_else(|| self.twin.cached(&plan))
            .map(|entry| entry.metadata.dispatches);
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

/// Bytes of buffers up to which a graph is executed here. The reference needs several times as much, and a failed allocation would be
/// the end of the process.
const MAX_MEMORY: usize = 1 << 30;

/// The memory of one graph's executions.
struct Memory<'a> {
    place: &'a Place,
    tensors: Vec<(i64, Buffer)>,
    workspace: Buffer,
}

impl<'a> Memory<'a> {
    fn new(place: &'a Place, graph: &Graph, inputs: &Buffers, workspace: usize) -> Result<Self, GpuError> {
        // Scalars are read on the host, whatever the device is.
        let is_scalar = |uid: i64| {
            let mut tensors = graph.tensors.iter();
            tensors.any(|tensor| tensor.uid == uid && tensor.kind == TensorKind::RuntimeScalar)
        };
        let place_of = |uid| if is_scalar(uid) { &Place::Host } else { place };
        Ok(Memory {
            place,
            tensors: inputs
                .iter()
                .map(|(&uid, bytes)| Ok((uid, place_of(uid).buffer(bytes)?)))
                .collect::<Result<_, GpuError>>()?,
            workspace: place.buffer(&vec![UNTOUCHED; workspace])?,
        })
    }

    /// Executes some times and tells the median time until the work is done.
    fn execute(&mut self, context: &Context, repeat: u32) -> Result<Duration> {
        let buffers: Vec<DeviceBuffer> = self
            .tensors
            .iter_mut()
            .map(|(uid, buffer)| DeviceBuffer {
                uid: *uid,
                ptr: buffer.pointer(),
            })
            .collect();
        let workspace = self.workspace.pointer();
        let mut times = Vec::new();
        for _ in 0..repeat {
            let (result, time) = timed(|| -> Result<()> {
                // SAFETY: there is a buffer for every tensor that is in one, filled by `fill_all` over the tensor's span, and a workspace
                // of the size that the context tells; all are where the plugin's device works, by `Twin::place`, and outlive the work.
                unsafe { context.execute(workspace, &buffers) }?;
                Ok(self.place.finish()?)
            });
            result?;
            times.push(time);
        }
        for buffer in self.tensors.iter_mut().map(|(_, buffer)| buffer) {
            buffer.fetch()?;
        }
        self.workspace.fetch()?;
        times.sort_unstable();
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }

    /// Holds everything that was or was not to be written against what it must be.
    fn judge(
        &self,
        graph: &Graph,
        inputs: &Buffers,
        errors: &mut Vec<OutputError>,
    ) -> Result<Option<(Verdict, String)>> {
        let wrong = |reason: String| Ok(Some((Verdict::Wrong, reason)));
        if !self.workspace.is_intact() {
            return wrong("memory around the workspace was written".to_owned());
        }
        let mut want = inputs.clone();
        let reference = rotini_reference::execute(graph, &mut want);
        let mut written = HashSet::new();
        for node in &graph.nodes {
            node.op.for_each_output(&mut |_, id| _ = written.insert(id));
        }
        let mut wrongs = Vec::new();
        for (id, tensor) in (0..).map(TensorId).zip(&graph.tensors) {
            if !matches!(tensor.kind, TensorKind::Buffer | TensorKind::RuntimeScalar) {
                continue;
            }
            let Some((_, buffer)) = self.tensors.iter().find(|(uid, _)| *uid == tensor.uid) else {
                bail!("{tensor} got no buffer");
            };
            let got = buffer.bytes();
            if !buffer.is_intact() {
                wrongs.push(format!("{tensor}: memory around it was written"));
            }
            if !written.contains(&id) {
                if inputs.get(&tensor.uid).is_none_or(|bytes| bytes != got) {
                    wrongs.push(format!("{tensor} is an input, but was written"));
                }
                continue;
            }
            if reference.is_err() {
                continue;
            }
            let want = want.get(&tensor.uid).map(Vec::as_slice).unwrap_or_default();
            let allowed = rotini_reference::tolerance(graph, id)?;
            match rotini_reference::compare(tensor, got, want, allowed) {
                Ok(report) => errors.push(OutputError::new(tensor.to_string(), &report)),
                Err(mismatch) => {
                    if let Mismatch::Values { tensor, report } = &mismatch {
                        errors.push(OutputError::new(tensor.clone(), report));
                    }
                    wrongs.push(mismatch.to_string());
                }
            }
        }
        if !wrongs.is_empty() {
            return wrong(wrongs.join("; "));
        }
        match reference {
            Ok(()) => Ok(None),
            Err(error @ (ReferenceError::Unsupported { .. } | ReferenceError::UnsupportedTensor { .. })) => {
                Ok(Some((Verdict::Unchecked, error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl OutputError {
    fn new(tensor: String, report: &Report) -> Self {
        OutputError {
            tensor,
            max_absolute: report.max_absolute,
            ratio: report.ratio,
        }
    }
}

/// The plugin's own code, linked into this program, with the same settings and the same cache directory: it knows what the ABI does not tell.
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

    /// The memory that the plugin's device works on: on GPUs that of the first, which a handle is on unless told otherwise.
    fn place(&self) -> Result<Place> {
        let api = match self.device.target() {
            Target::Cpu => return Ok(Place::Host),
            Target::Rocm { .. } => Api::Hip,
            Target::Cuda { .. } => Api::Cuda,
        };
        let Some(gpus) = self.runtime.gpus()? else {
            bail!(Failure::Environment(format!(
                "{} has no library",
                self.device.describe()
            )));
        };
        // SAFETY: the library is the one that the plugin's code, which is linked in here, has opened as this API's.
        let driver = unsafe { Driver::load(api, Some(gpus.library().as_ref())) }?;
        Ok(Place::Gpu(driver.gpu(0)?))
    }

    fn check(&self, bytes: &[u8]) -> Result<Plan, Error> {
        quietly(|| {
            self.runtime
                .applicable(bytes, &self.device.target(), self.device.features())
        })
    }

    /// Whether what the plugin keeps is seen here.
    fn sees_cache(&self) -> bool {
        self.runtime.cache.dir().is_some() || !self.runtime.config.cache_path.is_empty()
    }

    fn cached(&self, plan: &Plan) -> Option<Arc<Entry>> {
        quietly(|| {
            self.runtime
                .cached(&plan.graph, &self.device.target(), self.device.features())
        })
    }
}

/// Without log messages: the plugin logs the same.
fn quietly<T>(body: impl FnOnce() -> T) -> T {
    with_default(NoSubscriber::default(), body)
}

fn timed<T>(body: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = body();
    (result, started.elapsed())
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn micros<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    // By way of nanoseconds, so that no digits are made up.
    serializer.serialize_some(&time.map(|time| time.as_nanos() as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{DataType, GraphBuilder, PointwiseMode};

    /// y = max(x, 0) over 8 elements, with y as it must be; `spoil` gets the buffers of x and y.
    fn verdict(spoil: impl FnOnce(&mut Buffer, &mut Buffer)) -> Option<(Verdict, String)> {
        let mut builder = GraphBuilder::new("relu");
        let x = builder.buffer("x", DataType::F32, &[8]);
        let y = builder.buffer("y", DataType::F32, &[8]);
        builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
        let mut graph = builder.build();
        graph.validate().unwrap();
        let inputs = rotini_reference::fill_all(&graph, 1).unwrap();
        let mut memory = Memory::new(&Place::Host, &graph, &inputs, 0).unwrap();
        memory.tensors.sort_by_key(|(uid, _)| *uid);
        let [(_, x), (_, y)] = memory.tensors.as_mut_slice() else {
            panic!("two tensors")
        };
        let result: Vec<u8> = x
            .bytes()
            .chunks_exact(4)
            .flat_map(|element| f32::from_le_bytes(element.try_into().unwrap()).max(0.0).to_le_bytes())
            .collect();
        *y = Buffer::new(&result);
        spoil(x, y);
        memory.judge(&graph, &inputs, &mut Vec::new()).unwrap()
    }

    fn flip(buffer: &mut Buffer, offset: isize) {
        // SAFETY: the offsets of the test below are within the buffer and its guards, which are one allocation.
        unsafe { *buffer.pointer().cast::<u8>().offset(offset) ^= 0x40 };
    }

    #[test]
    fn right_results_are_right_and_any_stray_write_is_seen() {
        assert_eq!(verdict(|_, _| ()), None);
        let wrong = |spoil: fn(&mut Buffer, &mut Buffer), what: &str| {
            let (verdict, reason) = verdict(spoil).unwrap_or_else(|| panic!("{what}: not seen"));
            assert_eq!(verdict, Verdict::Wrong);
            assert!(reason.contains(what), "{reason}");
        };
        wrong(|_, y| flip(y, 3), "elements are wrong");
        wrong(|x, _| flip(x, 0), "is an input, but was written");
        wrong(|_, y| flip(y, -1), "memory around it was written");
        wrong(|x, _| flip(x, 32), "memory around it was written");
        wrong(|_, y| *y = Buffer::new(&[UNTOUCHED; 32]), "8 of 8 elements are wrong");
    }
}
