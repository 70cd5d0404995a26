//! Owns one execution of a graph on an emulated GPU, through the plugin as a host calls it, and the
//! reports of its launches.
//!
//! The environment decides where the plugin and the emulator look: `HIPEMU_REPORT` names the file
//! of the reports, and whoever calls this has set it before the emulator was loaded.

use rotini_graph::TensorKind;
use rotini_host::gpu::{Api, Driver, Gpu, GpuError};
use rotini_host::{DeviceBuffer, Handle, HostError, Plugin, engine_config, engine_config_with};
use rotini_time::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Why a graph cannot be executed on an emulator.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The library is one of a GPU
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
    /// The plugin
    #[error(transparent)]
    Host(#[from] HostError),
    /// The emulator
    #[error(transparent)]
    Device(#[from] GpuError),
    /// The reports are not there
    #[error("the emulator's reports cannot be read")]
    Reports(#[source] io::Error),
    /// The reports are not understood
    #[error("a report of the emulator is not understood")]
    Report(#[from] serde_json::Error),
}

/// Workgroups of a launch in a sample (`HIPEMU_SAMPLE`), as in the table that the model was held
/// against.
pub const SAMPLE: &str = "152";

/// A launch, as the emulator reports it.
#[derive(Clone, Debug, Deserialize)]
pub struct Launch {
    /// The kernel
    pub kernel: String,
    /// What was counted
    #[serde(flatten)]
    pub counts: Counts,
    /// The record of a sampled launch, which predictions are based on
    pub record: Option<Record>,
}

/// What the workgroups that ran did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Workgroups
    pub workgroups: u64,
    /// Waves
    pub waves: u64,
    /// Instructions of waves, by class
    pub instructions: BTreeMap<String, u64>,
    /// Operations of matrix instructions: a multiply-add is two
    pub mfma_operations: u64,
    /// Bytes that lanes loaded from device memory, caches or not
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
    /// The engine config of contexts.
    config: Vec<u8>,
    reports: PathBuf,
    read: usize,
    most_bytes: usize,
}

impl Emulator {
    /// Loads an emulator, which writes to `reports`, and a plugin. Graphs of more than `most_bytes`
    /// are not executed.
    ///
    /// # Errors
    ///
    /// If one of them cannot be loaded, and if the first is no emulator.
    ///
    /// # Safety
    ///
    /// Both are loaded into this process: they have to be what their names say.
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

    /// Sets a knob of the contexts that are created from now on, in place of all others.
    pub fn set_knob(&mut self, name: &str, text: &str) {
        self.config = engine_config_with(self.engine, &[(name.to_owned(), text.to_owned())]);
    }

    /// Executes a graph once, with inputs that nobody set: the launches that this took.
    ///
    /// # Errors
    ///
    /// If it cannot be executed, and if the reports cannot be read.
    pub fn launches(&mut self, bytes: &[u8]) -> Result<Vec<Launch>, EmulateError> {
        // A graph that failed before may have left reports, which are not this one's.
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
        // SAFETY: each tensor has a buffer of its span, the workspace has its size, and all live
        // until the device has finished.
        unsafe { context.execute(workspace.pointer(), &buffers) }?;
        self.gpu.synchronize()?;
        self.new_launches()
    }

    /// The launches since `launches` began.
    fn new_launches(&mut self) -> Result<Vec<Launch>, EmulateError> {
        let text = fs::read_to_string(&self.reports).map_err(EmulateError::Reports)?;
        let new = text.get(self.read..).unwrap_or_default();
        let launches = read(new)?;
        self.read = text.len();
        Ok(launches)
    }
}

/// The launches of an emulator's reports.
///
/// # Errors
///
/// If a line is not one of its reports.
pub fn read(reports: &str) -> Result<Vec<Launch>, serde_json::Error> {
    reports.lines().map(serde_json::from_str).collect()
}
