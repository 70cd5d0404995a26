//! Runs a case through the plugin's C ABI, as a hipDNN host would, and judges its outputs.

mod company;
mod environment;
mod execution;
pub(crate) mod inputs;
mod memory;
pub(crate) mod selection;
mod special;
mod watch;

pub use environment::{cpu_only, gpu};
pub use execution::{Subject, stored};
pub use inputs::fill;
pub use memory::{Memory, poison};
pub use watch::Watch;

use crate::cases::{Case, Data, Encoded};
use crate::proven::{Trial, Verdicts};
use anyhow::{Context as _, Result, bail, ensure};
use execution::Execution;
use inputs::SEED;
use memory::Place;
use rotini_graph::Graph;
use rotini_host::{Context, Handle, Plugin, ShapeOverride, engine_config};
use rotini_reference::{Buffers, Profile, evaluate, fill_all, fill_all_with};
use std::borrow::Borrow;
use std::time::{Duration, Instant};

/// Cases whose bounds are loose for most elements: attention may round weights to the type of v,
/// whose steps are a quarter of the value or more.
const COARSE: [&str; 2] = ["lp_f8e5m2_sdpa", "lp_f4e2m1_sdpa"];

/// The plugin on a device, with a cache directory for the tests.
pub struct Runner {
    handle: Handle,
    engine: i64,
    place: Place,
    /// Profile that inputs are filled with; `None`: the profiles that their consumers ask for.
    profile: Option<Profile>,
    /// Seed of the inputs' elements.
    seed: u64,
    /// Number of executions per context.
    executions: usize,
}

/// Measurements of one run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Bytes of workspace reported before compilation.
    pub estimate: usize,
    /// Bytes of workspace of the context.
    pub exact: usize,
    /// Bytes of workspace reported again, with the graph cached.
    pub estimate_cached: usize,
    /// The largest error of an element, as a share of its allowed error.
    pub worst: f64,
    /// Number of judged elements.
    pub elements: usize,
    /// Number of judged elements with loose bounds.
    pub blunt: usize,
    /// Time to create the context: to compile, if nothing equal was compiled before.
    pub creation: Duration,
}

impl Runner {
    /// Loads the plugin for the CPU.
    ///
    /// # Errors
    ///
    /// If it is missing, or does not behave as a plugin.
    pub fn cpu() -> Result<Self> {
        environment::cpu_with(environment::Workspace::TheTests)?;
        Self::new(Place::Host)
    }

    /// Loads the plugin for the GPU that the tests use: [`gpu`].
    ///
    /// # Errors
    ///
    /// As [`Runner::cpu`]; without the GPU or its library.
    pub fn gpu() -> Result<Self> {
        Self::new(Place::Gpu(environment::gpu_with(environment::Workspace::TheTests)?))
    }

    /// Loads the plugin as [`Runner::gpu`] does, without schedules: all kernels are the compiler's
    /// own. The process must not have another runner.
    ///
    /// # Errors
    ///
    /// The same; if the process is set up already.
    pub fn gpu_without_schedules() -> Result<Self> {
        environment::without_schedules()?;
        Self::gpu()
    }

    /// Creates a runner. On the host a context is executed twice, since the second execution takes
    /// another path: its arguments are bound already. On a GPU once: an execution replays a launch
    /// plan and leaves no state for the next, as the cases prove that are executed [more
    /// often](Self::executing_twice).
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
            seed: SEED,
        })
    }

    /// Returns the runner with inputs filled by a profile.
    #[must_use]
    pub fn filled_with(self, profile: Profile) -> Self {
        Runner {
            profile: Some(profile),
            ..self
        }
    }

    /// Returns a runner that executes every context twice, on the same memory.
    #[must_use]
    pub fn executing_twice(self) -> Self {
        Runner { executions: 2, ..self }
    }

    /// Runs cases, or those of them whose name contains `ROTINI_CASE`, and reports failures with
    /// their causes.
    ///
    /// # Panics
    ///
    /// If any fails, or takes much longer to compile than others of its family.
    pub fn expect_all(&self, cases: &[Case], alignment: usize) {
        let watch = Watch::default();
        let run = |case: &Case| {
            let outcome = self.run(case, alignment)?;
            let Outcome { elements, blunt, .. } = outcome;
            // Special values have loose bounds.
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

    /// Runs graphs from another encoder as [`expect_all`](Self::expect_all) does; their bytes must
    /// decode to the expected graphs.
    ///
    /// # Panics
    ///
    /// If any fails.
    pub fn expect_encoded<'a>(&self, encoded: &'a [Encoded]) {
        let run = |encoded: &Encoded| self.run_second(encoded, 64).map(drop);
        let trial = |encoded: &'a Encoded| Trial {
            bytes: encoded.bytes.clone(),
            ..self.trial(&encoded.case, 64)
        };
        self.expect(encoded, trial, run);
    }

    /// Runs cases with given buffers as [`expect_all`](Self::expect_all) does.
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

    /// Runs the trials that are not proven.
    #[expect(clippy::panic, reason = "a test that cannot be set up has failed")]
    fn expect<'a, T: Sync>(
        &self,
        all: &'a [T],
        trial: impl Fn(&'a T) -> Trial<'a> + Sync,
        run: impl Fn(&'a T) -> Result<()> + Sync,
    ) {
        // Verdicts hold for the usual seed only.
        let verdicts = match self.seed {
            SEED => Verdicts::of_this_process(self.is_on_gpu()),
            _ => Ok(None),
        };
        let verdicts = verdicts.unwrap_or_else(|error| panic!("nothing can be said of verdicts: {error:#}"));
        selection::expect(all, trial, self.is_on_gpu(), verdicts.as_ref(), run);
    }

    /// Returns the trial of a case on the harness's own buffers.
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

    /// Runs a case from its bytes to its outputs, on buffers whose addresses are multiples of
    /// `alignment` and of no larger power of two, and judges them.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn run(&self, case: &Case, alignment: usize) -> Result<Outcome> {
        self.run_encoded(case, &rotini_wire::encode(&case.graph), alignment)
    }

    /// Runs [`run`](Self::run) with the second encoder's bytes, which must decode to the expected
    /// graph.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn run_second(&self, Encoded { case, bytes }: &Encoded, alignment: usize) -> Result<Outcome> {
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let decoded = rotini_wire::decode(bytes)?;
        ensure!(decoded == graph, "decoded as {decoded:?}, not {graph:?}");
        self.run_encoded(case, bytes, alignment)
    }

    /// Runs [`run`](Self::run) with given bytes.
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
            let judged = execution.run(&context, &self.place, self.executions)?;
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

    /// Returns the buffers that a case is executed on.
    fn inputs(&self, graph: &Graph) -> Result<Buffers> {
        Ok(match self.profile {
            Some(profile) => fill_all_with(graph, self.seed, profile)?,
            None => fill_all(graph, self.seed)?,
        })
    }

    /// Executes a context of a case, however it was created, and judges its outputs.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn judge(&self, case: &Case, subject: &dyn Subject, alignment: usize) -> Result<f64> {
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let inputs = self.inputs(&graph)?;
        let execution = Execution::new(&graph, &inputs, alignment)?;
        self.executing(|| execution.run(subject, &self.place, self.executions))
            .map(|judged| judged.worst)
    }

    /// Executes a context with other shapes, described by a separate graph, on data of a seed, and
    /// judges its outputs.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
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
        self.executing(|| execution.run(context, &self.place, self.executions))
            .map(|judged| judged.worst)
    }

    /// Runs a case on given buffers. Its outputs are judged if the reference defines them for these
    /// inputs; accesses outside the buffers are checked in any case.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn run_on(&self, data: &Data) -> Result<()> {
        let bytes = rotini_wire::encode(&data.case.graph);
        self.judge_made(data, || Ok(self.handle.context(&engine_config(self.engine), &bytes)?))
    }

    /// Judges a context of [`run_on`](Self::run_on), however it was created.
    ///
    /// # Errors
    ///
    /// Any wrong output, failed call or write outside the buffers.
    pub fn judge_on(&self, data: &Data, context: &Context) -> Result<()> {
        self.judge_made(data, || Ok(context))
    }

    fn judge_made<C: Borrow<Context>>(&self, data: &Data, make: impl Fn() -> Result<C>) -> Result<()> {
        let mut graph = data.case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let execution = Execution {
            evaluation: data.has_meaning.then(|| evaluate(&graph, &data.inputs)).transpose()?,
            graph: &graph,
            inputs: &data.inputs,
            overrides: &[],
            alignment: 64,
        };
        self.executing(|| execution.run(make()?.borrow(), &self.place, self.executions).map(drop))
    }
}
