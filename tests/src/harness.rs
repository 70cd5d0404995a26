//! Runs a case through the plugin's C ABI, as a hipDNN host would, and judges its outputs.

use crate::cases::{Case, Data};
use anyhow::{Context as _, Result, bail, ensure};
use rayon::prelude::*;
use rotini_graph::{Graph, Tensor, TensorId, TensorKind};
use rotini_host::gpu::{Allocation, Api, Driver, Gpu};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, ShapeOverride, engine_config};
use rotini_reference::{Buffers, Profile, UNTOUCHED, evaluate, fill_all, fill_all_with};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use tempfile::TempDir;

/// The bytes on both sides of every buffer that nothing may touch.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xA5;

/// The plugin on a device, with a cache folder of the tests' own.
pub struct Runner {
    handle: Handle,
    engine: i64,
    place: Place,
    /// What inputs are filled with, if not with what their consumers ask for.
    profile: Option<Profile>,
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
}

impl Runner {
    /// Loads the plugin.
    ///
    /// # Errors
    ///
    /// If it is not there, or does not behave as a plugin.
    pub fn cpu() -> Result<Self> {
        cpu_only()?;
        Self::new(Place::Host)
    }

    /// Loads the plugin for the GPU that the tests are to use: [`gpu`].
    ///
    /// # Errors
    ///
    /// As [`Runner::cpu`]; without the GPU or its library.
    pub fn gpu() -> Result<Self> {
        Self::new(Place::Gpu(gpu()?))
    }

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

    /// Runs cases, or those of them whose name contains `ROTINI_CASE`, and tells which fail and why.
    ///
    /// # Panics
    ///
    /// If any fails.
    pub fn expect_all(&self, cases: &[Case], alignment: usize) {
        expect(cases, |case| &case.name, |case| self.run(case, alignment).map(drop));
    }

    /// The same for cases on given buffers.
    ///
    /// # Panics
    ///
    /// If any fails.
    pub fn expect_data(&self, data: &[Data]) {
        expect(data, |data| &data.case.name, |data| self.run_on(data));
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
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let bytes = rotini_wire::encode(&case.graph);
        let engines = self.handle.applicable(&bytes)?;
        ensure!(engines == [self.engine], "declined");
        let config = engine_config(self.engine);
        let estimate = self.handle.workspace_estimate(&config, &bytes)?;
        let context = self.handle.context(&config, &bytes)?;
        let exact = context.workspace()?;
        let estimate_cached = self.handle.workspace_estimate(&config, &bytes)?;
        ensure!(
            estimate >= exact,
            "the estimate of {estimate} bytes is below the {exact} that are needed"
        );
        ensure!(
            estimate_cached == exact,
            "the estimate of a cached graph is {estimate_cached}, not {exact}"
        );
        let judged = self.executing(|| self.execute_and_judge(&graph, &context, exact, alignment))?;
        Ok(Outcome {
            estimate,
            exact,
            estimate_cached,
            worst: judged.worst,
            elements: judged.elements,
            blunt: judged.blunt,
        })
    }

    /// Executes a context of a case, however it was made, and judges its outputs.
    ///
    /// # Errors
    ///
    /// Whatever is not as it must be.
    pub fn judge(&self, case: &Case, context: &Context, alignment: usize) -> Result<f64> {
        let mut graph = case.graph.clone();
        graph.validate().context("the case is not valid")?;
        let workspace = context.workspace()?;
        self.executing(|| self.execute_and_judge(&graph, context, workspace, alignment))
            .map(|judged| judged.worst)
    }

    /// Does what executes something; on the emulator with what it found as a part of the error.
    ///
    /// A fault is the whole GPU's, as on a real one, while other threads execute too: what failed while there was one is done again
    /// alone. Without a fault a failure stands.
    fn executing<T>(&self, execute: impl Fn() -> Result<T>) -> Result<T> {
        static FAULTS: RwLock<u64> = RwLock::new(0);
        let (first, before) = {
            let faults = FAULTS.read().unwrap_or_else(PoisonError::into_inner);
            (execute(), *faults)
        };
        if first.is_ok() {
            return first;
        }
        let mut faults = FAULTS.write().unwrap_or_else(PoisonError::into_inner);
        *faults += u64::from(self.take_fault().is_some());
        if *faults == before {
            return first;
        }
        execute().map_err(|error| match self.take_fault() {
            Some(fault) => error.context(fault),
            None => error,
        })
    }

    /// What the emulator found first, if it did, and its GPU made usable again.
    fn take_fault(&self) -> Option<String> {
        let Place::Gpu(gpu) = &self.place else { return None };
        // SAFETY: the emulator declares them so; no other library has such functions.
        unsafe {
            let fault = gpu
                .driver()
                .function::<unsafe extern "C" fn() -> *const c_char>("hipemu_last_fault")
                .ok()?;
            let clear = gpu
                .driver()
                .function::<unsafe extern "C" fn()>("hipemu_clear_fault")
                .ok()?;
            let text = fault();
            if text.is_null() {
                return None;
            }
            let text = CStr::from_ptr(text).to_string_lossy().into_owned();
            clear();
            Some(text).filter(|text| !text.is_empty())
        }
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
        let execution = Execution {
            graph,
            inputs: &fill_all(graph, seed)?,
            overrides,
            workspace: context.workspace()?,
            alignment: 16,
        };
        let memory = self.executing(|| self.execute(context, &execution))?;
        Ok(execution.judge(&memory)?.worst)
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
        let context = self
            .handle
            .context(&engine_config(self.engine), &rotini_wire::encode(&data.case.graph))?;
        let execution = Execution {
            graph: &graph,
            inputs: &data.inputs,
            overrides: &[],
            workspace: context.workspace()?,
            alignment: 64,
        };
        let memory = self.executing(|| self.execute(&context, &execution))?;
        if data.has_meaning {
            execution.judge(&memory)?;
        }
        Ok(())
    }

    fn execute_and_judge(
        &self,
        graph: &Graph,
        context: &Context,
        workspace: usize,
        alignment: usize,
    ) -> Result<Judged> {
        let inputs = match self.profile {
            Some(profile) => fill_all_with(graph, SEED, profile)?,
            None => fill_all(graph, SEED)?,
        };
        let execution = Execution {
            graph,
            inputs: &inputs,
            overrides: &[],
            workspace,
            alignment,
        };
        let memory = self.execute(context, &execution)?;
        execution.judge(&memory)
    }

    /// Executes a context, and gives back what its buffers are then. Nothing but the outputs has changed.
    fn execute(&self, context: &Context, execution: &Execution<'_>) -> Result<HashMap<i64, Memory>> {
        let &Execution {
            graph,
            inputs,
            overrides,
            workspace,
            alignment,
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
        let mut scratch = self.place.memory(&vec![UNTOUCHED; workspace], alignment)?;
        // Twice, since the second execution takes other ways than the first: what was bound is bound already.
        for _ in 0..2 {
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
            unsafe {
                if overrides.is_empty() {
                    context.execute(workspace, &buffers)?;
                } else {
                    context.execute_with_overrides(workspace, &buffers, overrides)?;
                }
            }
        }
        if let Place::Gpu(gpu) = &self.place {
            gpu.synchronize()?;
        }
        for memory in memory.values_mut().chain([&mut scratch]) {
            memory.fetch()?;
        }
        ensure!(scratch.is_guarded(), "something was written outside the workspace");
        for (id, is_output) in stored(graph) {
            let tensor = graph.tensor(id).context("a tensor that is not there")?;
            let (memory, before) = buffers_of(tensor, &memory, inputs)?;
            ensure!(memory.is_guarded(), "something was written outside {tensor}");
            let is_changed = memory.bytes() != before;
            ensure!(is_output || !is_changed, "the input {tensor} was changed");
        }
        Ok(memory)
    }
}

/// Tries all that have `ROTINI_CASE` in their names.
#[expect(clippy::print_stdout, reason = "what is left out is told")]
fn expect<T: Sync>(all: &[T], name: fn(&T) -> &str, run: impl Fn(&T) -> Result<()> + Sync) {
    let only = std::env::var("ROTINI_CASE").unwrap_or_default();
    let chosen: Vec<&T> = all.iter().filter(|one| name(one).contains(&only)).collect();
    if chosen.len() < all.len() {
        println!("ROTINI_CASE={only}: {} of {} cases", chosen.len(), all.len());
    }
    let failures: Vec<String> = chosen
        .par_iter()
        .filter_map(|one| {
            let error = run(one).err()?;
            Some(format!("{}: {error:#}", name(one)))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        chosen.len(),
        failures.join("\n")
    );
}

/// What a context is executed on.
#[derive(Clone, Copy, Debug)]
struct Execution<'a> {
    graph: &'a Graph,
    inputs: &'a Buffers,
    overrides: &'a [ShapeOverride],
    workspace: usize,
    /// Of the buffers' addresses.
    alignment: usize,
}

impl Execution<'_> {
    /// Judges the outputs.
    fn judge(&self, memory: &HashMap<i64, Memory>) -> Result<Judged> {
        let evaluation = evaluate(self.graph, self.inputs)?;
        let mut judged = Judged::default();
        for (id, _) in stored(self.graph).into_iter().filter(|(_, is_output)| *is_output) {
            let tensor = self.graph.tensor(id).context("a tensor that is not there")?;
            let (memory, before) = buffers_of(tensor, memory, self.inputs)?;
            let report = evaluation
                .judge(id, memory.bytes(), before)
                .with_context(|| tensor.to_string())?;
            judged.worst = judged.worst.max(report.ratio);
            judged.elements += report.elements;
            judged.blunt += report.blunt;
        }
        Ok(judged)
    }
}

/// A tensor's buffer as it is and as it was.
fn buffers_of<'a>(
    tensor: &Tensor,
    memory: &'a HashMap<i64, Memory>,
    inputs: &'a Buffers,
) -> Result<(&'a Memory, &'a [u8])> {
    match (memory.get(&tensor.uid), inputs.get(&tensor.uid)) {
        (Some(memory), Some(before)) => Ok((memory, before)),
        _ => bail!("{tensor} has no buffer"),
    }
}

/// What the outputs of an execution told.
#[derive(Default)]
struct Judged {
    worst: f64,
    elements: usize,
    blunt: usize,
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

/// Where the buffers of an execution are.
enum Place {
    Host,
    Gpu(Gpu),
}

impl Place {
    fn memory(&self, bytes: &[u8], alignment: usize) -> Result<Memory> {
        match self {
            Place::Host => Ok(Memory::new(bytes, alignment)),
            Place::Gpu(gpu) => Memory::on_gpu(gpu, bytes, alignment),
        }
    }
}

/// Bytes at an address of a given alignment, with guards on both sides.
pub struct Memory {
    raw: Vec<u8>,
    start: usize,
    length: usize,
    /// Where the bytes really are, if not here.
    device: Option<Allocation>,
}

impl Memory {
    /// A copy of `bytes` at a multiple of `alignment` (a power of two) that is no multiple of twice that.
    #[must_use]
    pub fn new(bytes: &[u8], alignment: usize) -> Self {
        let raw = Self::around(bytes, alignment);
        let base = raw.as_ptr().addr();
        Self::at(raw, base, bytes, alignment)
    }

    /// The same on a GPU, with a copy of it here that [`fetch`](Self::fetch) renews.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn on_gpu(gpu: &Gpu, bytes: &[u8], alignment: usize) -> Result<Self> {
        let raw = Self::around(bytes, alignment);
        let device = gpu.allocate(raw.len())?;
        let mut memory = Self::at(raw, device.pointer().addr(), bytes, alignment);
        device.write(0, &memory.raw)?;
        memory.device = Some(device);
        Ok(memory)
    }

    fn around(bytes: &[u8], alignment: usize) -> Vec<u8> {
        vec![GUARD_BYTE; bytes.len() + 2 * GUARD + 4 * alignment]
    }

    fn at(mut raw: Vec<u8>, base: usize, bytes: &[u8], alignment: usize) -> Self {
        let first = base + GUARD;
        let start = GUARD + (first.next_multiple_of(2 * alignment) + alignment - first);
        raw[start..start + bytes.len()].copy_from_slice(bytes);
        Memory {
            raw,
            start,
            length: bytes.len(),
            device: None,
        }
    }

    /// The first byte, where executions find it.
    pub fn pointer(&mut self) -> *mut u8 {
        match &self.device {
            Some(device) => device.pointer().cast::<u8>().wrapping_add(self.start),
            None => self.raw[self.start..].as_mut_ptr(),
        }
    }

    /// Brings what is on the device here. The work that writes it is done.
    ///
    /// # Errors
    ///
    /// The GPU's.
    pub fn fetch(&mut self) -> Result<()> {
        match &self.device {
            Some(device) => Ok(device.read(0, &mut self.raw)?),
            None => Ok(()),
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.raw[self.start..self.start + self.length]
    }

    /// Whether the guards are as they were.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        let (before, rest) = self.raw.split_at(self.start);
        before
            .iter()
            .chain(&rest[self.length..])
            .all(|&byte| byte == GUARD_BYTE)
    }
}

/// Fills what a graph reads and writes, as the harness does.
///
/// # Errors
///
/// For types that the reference does not have.
pub fn fill(graph: &Graph) -> Result<Buffers> {
    Ok(fill_all(graph, SEED)?)
}

/// Sets the environment that the plugin reads when it is loaded: the CPU, and a cache folder that is gone when the process ends.
///
/// # Errors
///
/// Without a temporary folder; if this process is set up for a GPU.
pub fn cpu_only() -> Result<()> {
    environment("cpu", None)
}

/// The GPU that the tests use, and the environment for it: the emulated MI300, or what `ROTINI_TEST_DEVICE` names (`cuda`: an NVIDIA
/// GPU; `hip`: an AMD GPU of this machine).
///
/// # Errors
///
/// Without the GPU or its library; if this process is set up for another device.
pub fn gpu() -> Result<Gpu> {
    let device = std::env::var("ROTINI_TEST_DEVICE").unwrap_or_default();
    let (api, path) = match device.as_str() {
        "" => (Api::Hip, Some(crate::plugin::emulator()?.into_os_string())),
        "hip" => (Api::Hip, None),
        "cuda" => (Api::Cuda, None),
        other => bail!("ROTINI_TEST_DEVICE={other}"),
    };
    let name = match api {
        Api::Hip => "hip",
        Api::Cuda => "cuda",
    };
    environment(name, path.as_deref())?;
    // SAFETY: the emulator that this workspace builds, or the library of the machine's driver.
    let driver = unsafe { Driver::load(api, path.as_deref()) }?;
    Ok(driver.gpu(0)?)
}

/// Sets up this process for a device.
fn environment(device: &str, hip_library: Option<&OsStr>) -> Result<()> {
    static CHOSEN: OnceLock<std::io::Result<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        if std::env::var_os("ROTINI_TEST_CHILD").is_some_and(|child| child.to_string_lossy().contains(' ')) {
            // The process that started this one has chosen.
            return Ok(std::env::var("ROTINI_DEVICE").unwrap_or_default());
        }
        let cache = cache_folder()?;
        // SAFETY: done once, before the plugin is loaded; nothing else in these tests reads or writes the environment meanwhile. The
        // function takes nothing, and lives as long as the process.
        unsafe {
            std::env::set_var("ROTINI_DEVICE", device);
            std::env::set_var("ROTINI_CACHE_DIR", cache);
            if let Some(library) = hip_library {
                std::env::set_var("ROTINI_HIP_LIBRARY", library);
            }
            libc::atexit(remove_cache);
        }
        Ok(device.to_owned())
    });
    match chosen {
        Ok(chosen) if chosen == device => Ok(()),
        Ok(chosen) => bail!("this process is set up for {chosen}, not for {device}"),
        Err(error) => bail!("no temporary folder: {error}"),
    }
}

/// A cache folder of this process's own; or, below `ROTINI_TEST_CACHE`, the one of its test binary, whose tests may be processes apart and
/// compile the same graphs.
fn cache_folder() -> std::io::Result<PathBuf> {
    let shared = std::env::var_os("ROTINI_TEST_CACHE").filter(|parent| !parent.is_empty());
    if let Some(parent) = shared {
        let binary = std::env::current_exe()?;
        let folder = Path::new(&parent).join(binary.file_name().unwrap_or_default());
        std::fs::create_dir_all(&folder)?;
        return Ok(folder);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    *CACHE.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    Ok(path)
}

/// The cache folder of this process alone, which [`remove_cache`] removes: what is in a static is never dropped.
static CACHE: Mutex<Option<TempDir>> = Mutex::new(None);

extern "C" fn remove_cache() {
    drop(CACHE.lock().unwrap_or_else(PoisonError::into_inner).take());
}
