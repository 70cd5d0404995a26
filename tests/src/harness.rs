//! Runs a case through the plugin's C ABI, as a hipDNN host would, and judges its outputs.

mod company;
mod environment;
mod memory;
pub(crate) mod selection;
mod watch;

pub use environment::{cpu_only, gpu};
pub use memory::{Memory, poison};
pub use watch::Watch;

use crate::cases::{Case, Data, Encoded};
use crate::proven::{Trial, Verdicts};
use anyhow::{Context as _, Result, bail, ensure};
use memory::Place;
use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, Plugin, ShapeOverride, engine_config};
use rotini_reference::{Buffers, Evaluation, Profile, evaluate, fill_all, fill_all_with};
use std::collections::HashMap;
use std::ffi::c_void;
use std::time::{Duration, Instant};

/// Cases whose bounds say little of most elements: attention may round weights to the type of v, of which a step is a quarter of the
/// value or more.
const COARSE: [&str; 2] = ["lp_f8e5m2_sdpa", "lp_f4e2m1_sdpa"];

/// The plugin on a device, with a cache directory of the tests' own.
pub struct Runner {
    handle: Handle,
    engine: i64,
    place: Place,
    /// What inputs are filled with, if not with what their consumers ask for.
    profile: Option<Profile>,
    /// How often a context is executed.
    executions: usize,
}

/// What executes a graph: a context of the plugin, or one that a test puts in front of it.
pub trait Subject {
    /// Bytes of workspace of an execution.
    ///
    /// # Errors
    ///
    /// The plugin's.
    fn workspace(&self) -> Result<usize, HostError>;

    /// Executes the graph with the shapes of its buffers, if they are others than were declared.
    ///
    /// # Errors
    ///
    /// The plugin's.
    ///
    /// # Safety
    ///
    /// As [`Context::execute_with_overrides`].
    unsafe fn execute(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError>;
}

impl Subject for Context {
    fn workspace(&self) -> Result<usize, HostError> {
        Context::workspace(self)
    }

    unsafe fn execute(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError> {
        // SAFETY: by this function's contract.
        unsafe {
            match overrides {
                [] => Context::execute(self, workspace, buffers),
                _ => self.execute_with_overrides(workspace, buffers, overrides),
            }
        }
    }
}

/// What one run told besides that it was right.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Bytes of workspace asked for before anything was compiled.
    pub estimate: usize,
    /// Bytes of workspace of the context.
    pub exact: usize,
    /// Bytes of workspace asked for again, when the graph was cached.
    pub estimate_cached: usize,
    /// The largest share of what was allowed that any element used up.
    pub worst: f64,
    /// Elements that were judged.
    pub elements: usize,
    /// Those of them whose bounds say little.
    pub blunt: usize,
    /// How long the context took to create: to compile, if nothing like it was compiled before.
    pub creation: Duration,
}

impl Runner {
    /// Loads the plugin.
    ///
    /// # Errors
    ///
    /// If it is not there, or does not behave as a plugin.
    pub fn cpu() -> Result<Self> {
        environment::cpu_with(environment::Workspace::TheTests)?;
        Self::new(Place::Host)
    }

    /// Loads the plugin for the GPU that the tests are to use: [`gpu`].
    ///
    /// # Errors
    ///
    /// As [`Runner::cpu`]; without the GPU or its library.
    pub fn gpu() -> Result<Self> {
        Self::new(Place::Gpu(environment::gpu_with(environment::Workspace::TheTests)?))
    }

    /// On the host a context is executed twice, since the second execution takes other ways than the first: what was bound is bound
    /// already. On a GPU once: an execution replays a launch plan and leaves nothing behind for the next, as those cases prove that are
    /// executed [more often](Self::executing_twice).
    fn new(place: Place) -> Result<Self> {
        // SAFETY: the file is the plugin that this workspace builds.
        let plugin = unsafe { Plugin::load(crate::plugin::path()?) }?;
        let engines = plugin.engine_ids()?;
        let &[engine] = engines.as_slice() else {
            bail!("{} engines, not one", engines.len())
        };
        Ok(Runner {
            handle: plugin.handle()?,
            engine,
            executions: match place {
                Place::Host => 2,
                Place::Gpu(_) => 1,
            },
            place,
            profile: None,
        })
    }

    /// The same with inputs filled by a profile.
    #[must_use]
    pub fn filled_with(self, profile: Profile) -> Self {
        Runner {
            profile: Some(profile),
            ..self
        }
    }

    /// The same, but every context is executed twice, on the same memory.
    #[must_use]
    pub fn executing_twice(self) -> Self {
        Runner { executions: 2, ..self }
    }

    /// Runs cases, or those of them whose name contains `ROTINI_CASE`, and tells which fail and why.
    ///
    /// # Panics
    ///
    /// If any fails, or takes much longer to compile than others of its family.
    pub fn expect_all(&self, cases: &[Case], alignment: usize) {
        let watch = Watch::default();
        let run = |case: &Case| {
            let outcome = self.run(case, alignment)?;
            let Outcome { elements, blunt, .. } = outcome;
            // Special values have bounds that say little.
            ensure!(
                self.profile.is_some() || COARSE.contains(&case.name.as_str()) || blunt * 4 <= elements,
                "only {} of {elements} elements are judged sharply",
                elements - blunt
            );
            watch.note(&case.name, outcome.creation);
            Ok(())
        };
        self.expect(cases, |case| self.trial(case, alignment), run);
        watch.expect_none_slow();
    }

    /// The same for graphs that somebody else encoded; what their bytes mean must be what they were made of.
    ///
    /// # Panics
    ///
    /// If any fails.
    pub fn expect_encoded<'a>(&self, encoded: &'a [Encoded]) {
        let run = |Encoded { case, bytes }: &Encoded| {
            let mut graph = case.graph.clone();
            graph.validate().context("the case is not valid")?;
            let decoded = rotini_wire::decode(bytes)?;
            ensure!(decoded == graph, "decoded as {decoded:?}, not {graph:?}");
            self.run_encoded(case, bytes, 64).map(drop)
        };
        let trial = |encoded: &'a Encoded| Trial {
            bytes: encoded.bytes.clone(),
            ..self.trial(&encoded.case, 64)
        };
        self.expect(encoded, trial, run);
    }

    /// The same for cases on given buffers.
    ///
    /// # Panics
    ///
    /// If any fails.
    pub fn expect_data<'a>(&self, data: &'a [Data]) {
        let run = |data: &Data| self.run_on(data);
        let trial = |data: &'a Data| Trial {
            inputs: Some(&data.inputs),
            has_meaning: data.has_meaning,
            ..self.trial(&data.case, 64)
        };
        self.expect(data, trial, run);
    }

    /// Runs what is not proven.
    #[expect(clippy::panic, reason = "a test that cannot be set up has failed")]
    fn expect<'a, T: Sync>(
        &self,
        all: &'a [T],
        trial: impl Fn(&'a T) -> Trial<'a> + Sync,
        run: impl Fn(&'a T) -> Result<()> + Sync,
    ) {
        let verdicts = Verdicts::of_this_process(self.is_on_gpu());
        let verdicts = verdicts.unwrap_or_else(|error| panic!("nothing can be said of verdicts: {error:#}"));
        selection::expect(all, trial, self.is_on_gpu(), verdicts.as_ref(), run);
    }

    /// What is tried of a case, on the buffers that this fills in.
    fn trial<'a>(&self, case: &'a Case, alignment: usize) -> Trial<'a> {
        Trial {
            case,
            bytes: rotini_wire::encode(&case.graph),
            inputs: None,
            profile: self.profile,
            alignment,
            executions: self.executions,
            has_meaning: true,
        }
    }

    fn is_on_gpu(&self) -> bool {
        matches!(self.place, Place::Gpu(_))
    }

    /// The handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The engine's id.
    #[must_use]
    pub fn engine(&self) -> i64 {
        self.engine
    }

    /// Runs a case from its bytes to its outputs, on buffers whose addresses are multiples of `alignment` and of nothing larger, and
    /// judges them.
    ///
    /// # Errors
    ///
    /// Whatever is not as it must be.
    pub fn run(&self, case: &Case, alignment: usize) -> Result<Outcome> {
        self.run_encoded(case, &rotini_wire::encode(&case.graph), alignment)
    }

    /// [`run`](Self::run) with bytes that somebody else encoded.
    fn run_encoded(&self, case: &Case, bytes: &[u8], alignment: usize) -> Result<Outcome> {
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let engines = self.handle.applicable(bytes)?;
        ensure!(engines == [self.engine], "declined");
        let config = engine_config(self.engine);
        let inputs = self.inputs(&graph)?;
        let execution = Execution::new(&graph, &inputs, alignment)?;
        self.executing(|| {
            let estimate = self.handle.workspace_estimate(&config, bytes)?;
            let started = Instant::now();
            let context = self.handle.context(&config, bytes)?;
            let creation = started.elapsed();
            let exact = context.workspace()?;
            let estimate_cached = self.handle.workspace_estimate(&config, bytes)?;
            ensure!(
                estimate >= exact,
                "the estimate of {estimate} bytes is below the {exact} that are needed"
            );
            ensure!(
                estimate_cached == exact,
                "the estimate of a cached graph is {estimate_cached}, not {exact}"
            );
            let judged = self.execute(&context, &execution)?;
            Ok(Outcome {
                estimate,
                exact,
                estimate_cached,
                worst: judged.worst,
                elements: judged.elements,
                blunt: judged.blunt,
                creation,
            })
        })
    }

    /// What a case is executed on.
    fn inputs(&self, graph: &Graph) -> Result<Buffers> {
        Ok(match self.profile {
            Some(profile) => fill_all_with(graph, SEED, profile)?,
            None => fill_all(graph, SEED)?,
        })
    }

    /// Executes a context of a case, however it was made, and judges its outputs.
    ///
    /// # Errors
    ///
    /// Whatever is not as it must be.
    pub fn judge(&self, case: &Case, subject: &dyn Subject, alignment: usize) -> Result<f64> {
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let inputs = self.inputs(&graph)?;
        let execution = Execution::new(&graph, &inputs, alignment)?;
        self.executing(|| self.execute(subject, &execution))
            .map(|judged| judged.worst)
    }

    /// Executes a context with other shapes, which make a graph of its own, on data of a seed, and judges its outputs.
    ///
    /// # Errors
    ///
    /// Whatever is not as it must be.
    pub fn judge_shapes(
        &self,
        graph: &Graph,
        context: &Context,
        overrides: &[ShapeOverride],
        seed: u64,
    ) -> Result<f64> {
        let inputs = fill_all(graph, seed)?;
        let execution = Execution {
            overrides,
            ..Execution::new(graph, &inputs, 16)?
        };
        self.executing(|| self.execute(context, &execution))
            .map(|judged| judged.worst)
    }

    /// Runs a case on given buffers. Its outputs are judged if the reference gives the case a meaning on them; that nothing else is read
    /// or written holds in any case.
    ///
    /// # Errors
    ///
    /// Whatever is not as it must be.
    pub fn run_on(&self, data: &Data) -> Result<()> {
        let mut graph = data.case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let bytes = rotini_wire::encode(&data.case.graph);
        let execution = Execution {
            evaluation: data.has_meaning.then(|| evaluate(&graph, &data.inputs)).transpose()?,
            graph: &graph,
            inputs: &data.inputs,
            overrides: &[],
            alignment: 64,
        };
        self.executing(|| {
            let context = self.handle.context(&engine_config(self.engine), &bytes)?;
            self.execute(&context, &execution).map(drop)
        })
    }

    /// Executes a context, each time on outputs and a workspace of other bytes, and judges each time what its buffers are then. Nothing
    /// but the outputs has changed.
    fn execute(&self, subject: &dyn Subject, execution: &Execution<'_>) -> Result<Judged> {
        let &Execution {
            graph,
            inputs,
            overrides,
            alignment,
            ..
        } = execution;
        let is_scalar = |uid: i64| {
            let mut tensors = graph.tensors.iter();
            tensors.any(|tensor| tensor.uid == uid && tensor.kind == TensorKind::RuntimeScalar)
        };
        let mut memory: HashMap<i64, Memory> = inputs
            .iter()
            .map(|(&uid, bytes)| {
                // Scalars are on the host whatever the device is, and nobody promises where.
                let memory = if is_scalar(uid) {
                    Memory::new(bytes, 1)
                } else {
                    self.place.memory(bytes, alignment)?
                };
                Ok((uid, memory))
            })
            .collect::<Result<_>>()?;
        let stored = stored(graph);
        let workspace = subject.workspace()?;
        let mut scratch = self.place.memory(&vec![0; workspace], alignment)?;
        let mut judged = Judged::default();
        for turn in 0..self.executions {
            scratch.put(&poison(workspace, turn))?;
            for &(id, _) in stored.iter().filter(|(_, is_output)| *is_output) {
                let memory = buffer_of(graph, id, &mut memory)?;
                memory.put(&poison(memory.bytes().len(), turn))?;
            }
            let mut buffers: Vec<DeviceBuffer> = memory
                .iter_mut()
                .map(|(&uid, memory)| DeviceBuffer {
                    uid,
                    ptr: memory.pointer().cast(),
                })
                .collect();
            buffers.push(DeviceBuffer {
                uid: i64::MAX,
                ptr: std::ptr::null_mut(),
            });
            let workspace = if workspace == 0 {
                std::ptr::null_mut()
            } else {
                scratch.pointer().cast()
            };
            // SAFETY: the buffers have the spans of their tensors, the workspace its size.
            unsafe { subject.execute(workspace, &buffers, overrides) }?;
            if let Place::Gpu(gpu) = &self.place {
                gpu.synchronize()?;
            }
            for memory in memory.values_mut().chain([&mut scratch]) {
                memory.fetch()?;
            }
            ensure!(scratch.is_guarded(), "something was written outside the workspace");
            for &(id, is_output) in &stored {
                let tensor = graph.tensor(id).context("a tensor that is not there")?;
                let memory = buffer_of(graph, id, &mut memory)?;
                ensure!(memory.is_guarded(), "something was written outside {tensor}");
                if is_output {
                    judged.add(execution, id, memory.bytes(), turn)?;
                } else {
                    let is_changed = inputs.get(&tensor.uid).is_none_or(|before| before != memory.bytes());
                    ensure!(!is_changed, "the input {tensor} was changed");
                }
            }
        }
        Ok(judged)
    }
}

/// What a context is executed on.
struct Execution<'a> {
    graph: &'a Graph,
    inputs: &'a Buffers,
    /// What the outputs are to be, if there is a meaning to them.
    evaluation: Option<Evaluation<'a>>,
    overrides: &'a [ShapeOverride],
    /// Of the buffers' addresses.
    alignment: usize,
}

impl<'a> Execution<'a> {
    fn new(graph: &'a Graph, inputs: &'a Buffers, alignment: usize) -> Result<Self> {
        Ok(Execution {
            graph,
            inputs,
            evaluation: Some(evaluate(graph, inputs)?),
            overrides: &[],
            alignment,
        })
    }
}

/// A tensor's buffer.
fn buffer_of<'a>(graph: &Graph, id: TensorId, memory: &'a mut HashMap<i64, Memory>) -> Result<&'a mut Memory> {
    let tensor = graph.tensor(id).context("a tensor that is not there")?;
    let memory = memory.get_mut(&tensor.uid);
    memory.with_context(|| format!("{tensor} has no buffer"))
}

/// What the outputs of all executions told.
#[derive(Default)]
struct Judged {
    worst: f64,
    /// Of one execution.
    elements: usize,
    blunt: usize,
}

impl Judged {
    /// Judges an output of the execution that began with what [`poison`] gives for its `turn`.
    fn add(&mut self, execution: &Execution<'_>, id: TensorId, bytes: &[u8], turn: usize) -> Result<()> {
        let Some(evaluation) = &execution.evaluation else {
            return Ok(());
        };
        let report = evaluation
            .judge(id, bytes, &poison(bytes.len(), turn))
            .with_context(|| format!("execution {}", turn + 1))?;
        self.worst = self.worst.max(report.ratio);
        if turn == 0 {
            self.elements += report.elements;
            self.blunt += report.blunt;
        }
        Ok(())
    }
}

const SEED: u64 = 7;

/// The tensors in buffers, and whether a node writes them.
#[must_use]
pub fn stored(graph: &Graph) -> Vec<(TensorId, bool)> {
    let mut written = std::collections::HashSet::new();
    for node in &graph.nodes {
        node.op.for_each_output(&mut |_, id| {
            written.insert(id);
        });
    }
    (0..)
        .zip(&graph.tensors)
        .map(|(index, tensor)| (TensorId(index), tensor))
        .filter(|(_, tensor)| tensor.kind == TensorKind::Buffer)
        .map(|(id, _)| (id, written.contains(&id)))
        .collect()
}

/// Fills what a graph reads and writes, as the harness does.
///
/// # Errors
///
/// For types that the reference does not have.
pub fn fill(graph: &Graph) -> Result<Buffers> {
    Ok(fill_all(graph, SEED)?)
}
