//! Executions of a graph on an emulated GPU, through the plugin's C interface as a host uses it,
//! and the emulator's reports of the launches.
//!
//! Environment variables tell the plugin and the emulator where to look. `HIPEMU_REPORT` names the
//! file of the reports; the caller must set it before the emulator is loaded.

use rotini_graph::TensorKind;
use rotini_host::gpu::{Api, Driver, Gpu, GpuError};
use rotini_host::{DeviceBuffer, Handle, HostError, Plugin, engine_config, engine_config_with};
use rotini_time::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The reason why a graph cannot be executed on an emulator.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The library is for a GPU, not an emulator
    #[error("{0} is no emulator: nothing is predicted from a GPU")]
    Gpu(PathBuf),
    /// The plugin has no engine
    #[error("the plugin has no engine")]
    Engine,
    /// The graph's tensors take too much memory
    #[error("its tensors and workspace take more than {0} bytes")]
    Memory(usize),
    /// The graph cannot be read
    #[error("{0}")]
    Graph(String),
    /// The plugin reported an error
    #[error(transparent)]
    Host(#[from] HostError),
    /// The emulator reported an error
    #[error(transparent)]
    Device(#[from] GpuError),
    /// The file of the reports cannot be read
    #[error("the emulator's reports cannot be read")]
    Reports(#[source] io::Error),
    /// A report cannot be parsed
    #[error("a report of the emulator is not understood")]
    Report(#[from] serde_json::Error),
}

/// Number of workgroups of a launch that are sampled (`HIPEMU_SAMPLE`), as in the table that the
/// model was compared with.
pub const SAMPLE: &str = "152";

/// A launch, as reported by the emulator.
#[derive(Clone, Debug, Deserialize)]
pub struct Launch {
    /// The kernel
    pub kernel: String,
    /// The counts of the workgroups that ran
    #[serde(flatten)]
    pub counts: Counts,
    /// The record of a sampled launch, from which times are predicted
    pub record: Option<Record>,
}

/// Counts of the work of the workgroups that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Workgroups
    pub workgroups: u64,
    /// Waves
    pub waves: u64,
    /// Instructions of all waves, by class
    pub instructions: BTreeMap<String, u64>,
    /// Operations of matrix instructions: a multiply-add is two
    pub mfma_operations: u64,
    /// Bytes that lanes loaded from device memory, whether from caches or not
    pub bytes_read: u64,
    /// Bytes that lanes stored
    pub bytes_written: u64,
    /// Turns of LDS that bank conflicts added
    pub lds_bank_conflicts: u64,
}

/// A plugin on an emulated GPU.
pub struct Emulator {
    gpu: Gpu,
    handle: Handle,
    engine: i64,
    /// The engine config for new contexts.
    config: Vec<u8>,
    reports: PathBuf,
    read: usize,
    most_bytes: usize,
}

impl Emulator {
    /// Loads a plugin, and an emulator that writes to `reports`. Graphs that need more than
    /// `most_bytes` of memory are not executed.
    ///
    /// # Errors
    ///
    /// If one of them cannot be loaded, or if `emulator` is no emulator.
    ///
    /// # Safety
    ///
    /// Both files are loaded as libraries into this process, so they must be what their names say.
    pub unsafe fn load(
        emulator: &Path,
        plugin: &Path,
        reports: PathBuf,
        most_bytes: usize,
    ) -> Result<Self, EmulateError> {
        // SAFETY: by this function's contract.
        let (driver, plugin) = unsafe {
            (
                Driver::load(Api::Hip, Some(emulator.as_os_str()))?,
                Plugin::load(plugin.as_os_str())?,
            )
        };
        if !driver.is_emulated() {
            return Err(EmulateError::Gpu(emulator.to_owned()));
        }
        let engine = *plugin.engine_ids()?.first().ok_or(EmulateError::Engine)?;
        Ok(Self {
            gpu: driver.gpu(0)?,
            handle: plugin.handle()?,
            config: engine_config(engine),
            engine,
            reports,
            read: 0,
            most_bytes,
        })
    }

    /// Sets a knob for the contexts that are created from now on. It replaces all other knobs.
    pub fn set_knob(&mut self, name: &str, text: &str) {
        self.config = engine_config_with(self.engine, &[(name.to_owned(), text.to_owned())]);
    }

    /// Executes a graph once, with uninitialised inputs, and returns the launches of the execution.
    ///
    /// # Errors
    ///
    /// If the graph cannot be executed, or the reports cannot be read.
    pub fn launches(&mut self, bytes: &[u8]) -> Result<Vec<Launch>, EmulateError> {
        // An earlier graph that failed may have left reports, which are skipped.
        self.read = match fs::metadata(&self.reports) {
            Ok(file) => usize::try_from(file.len()).unwrap_or(usize::MAX),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(EmulateError::Reports(error)),
        };
        let graph = rotini_wire::decode(bytes).map_err(|error| EmulateError::Graph(error.to_string()))?;
        let context = self.handle.context(&self.config, bytes)?;
        let mut memory = Vec::new();
        let mut scalars: Vec<(i64, [u64; 2])> = Vec::new();
        let mut total = context.workspace()?;
        for tensor in &graph.tensors {
            match tensor.kind {
                TensorKind::Buffer => {
                    let bytes =
                        rotini_reference::span_bytes(tensor).map_err(|error| EmulateError::Graph(error.to_string()))?;
                    total = total.saturating_add(bytes);
                    if total > self.most_bytes {
                        return Err(EmulateError::Memory(self.most_bytes));
                    }
                    memory.push((tensor.uid, self.gpu.allocate(bytes)?));
                }
                TensorKind::RuntimeScalar => scalars.push((tensor.uid, [0; 2])),
                _ => {}
            }
        }
        let workspace = self.gpu.allocate(context.workspace()?)?;
        let on_device = memory.iter().map(|(uid, memory)| (*uid, memory.pointer()));
        let on_host = scalars.iter_mut().map(|(uid, value)| (*uid, value.as_mut_ptr().cast()));
        let buffers: Vec<DeviceBuffer> = on_device
            .chain(on_host)
            .map(|(uid, ptr)| DeviceBuffer { uid, ptr })
            .collect();
        // SAFETY: each tensor has a buffer of its span, the workspace has the required size, and
        // all of them live until the device has finished.
        unsafe { context.execute(workspace.pointer(), &buffers) }?;
        self.gpu.synchronize()?;
        self.new_launches()
    }

    /// Returns the launches that were reported since `launches` began.
    fn new_launches(&mut self) -> Result<Vec<Launch>, EmulateError> {
        let text = fs::read_to_string(&self.reports).map_err(EmulateError::Reports)?;
        let new = text.get(self.read..).unwrap_or_default();
        let launches = read(new)?;
        self.read = text.len();
        Ok(launches)
    }
}

/// Parses an emulator's reports, one launch per line.
///
/// # Errors
///
/// If a line is not one of its reports.
pub fn read(reports: &str) -> Result<Vec<Launch>, serde_json::Error> {
    reports.lines().map(serde_json::from_str).collect()
}
