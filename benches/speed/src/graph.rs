//! One graph on the emulated MI300X: compiled by the plugin, sampled by the emulator, predicted from the records.

use anyhow::{Context as _, Result, ensure};
use rotini_graph::TensorKind;
use rotini_host::gpu::{Api, Driver, Gpu};
use rotini_host::{DeviceBuffer, Handle, Plugin, engine_config};
use rotini_reference::span_bytes;
use rotini_time::{MI300X, Parameters, Prediction, Record, predict};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that no suite's graph exceeds, so that the emulator's memory is not asked for more than the machine has.
const MOST_BYTES: usize = 3 << 30;

/// A plugin on an emulated MI300X whose launches are sampled.
pub(crate) struct Machine {
    gpu: Gpu,
    handle: Handle,
    engine: i64,
    reports: PathBuf,
    read: usize,
}

/// A line of the emulator's reports, of which the record matters here.
#[derive(Deserialize)]
struct Line {
    record: Record,
}

impl Machine {
    /// Loads the emulator, which writes to `reports`, and the plugin.
    pub(crate) fn new(emulator: &Path, plugin: &Path, reports: PathBuf) -> Result<Self> {
        // SAFETY: the files are the emulator and the plugin that this workspace builds, or what the user named in their stead.
        let (driver, plugin) = unsafe {
            (
                Driver::load(Api::Hip, Some(emulator.as_os_str()))?,
                Plugin::load(OsStr::new(plugin))?,
            )
        };
        ensure!(
            driver.is_emulated(),
            "{} is no emulator: nothing is predicted from a GPU",
            emulator.display()
        );
        let engine = *plugin.engine_ids()?.first().context("the plugin has no engine")?;
        Ok(Self {
            gpu: driver.gpu(0)?,
            handle: plugin.handle()?,
            engine,
            reports,
            read: 0,
        })
    }

    /// What each dispatch of a graph is predicted to take.
    pub(crate) fn predict(&mut self, bytes: &[u8]) -> Result<Vec<Prediction>> {
        let graph = rotini_wire::decode(bytes)?;
        let context = self.handle.context(&engine_config(self.engine), bytes)?;
        let mut memory = Vec::new();
        let mut scalars: Vec<(i64, [u64; 2])> = Vec::new();
        let mut total = context.workspace()?;
        for tensor in &graph.tensors {
            match tensor.kind {
                TensorKind::Buffer => {
                    let bytes = span_bytes(tensor)?;
                    total = total.saturating_add(bytes);
                    ensure!(total <= MOST_BYTES, "more than 3 GiB of tensors");
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
        // SAFETY: each tensor has a buffer of its span, the workspace has its size, and all live until the device has finished.
        unsafe { context.execute(workspace.pointer(), &buffers) }?;
        self.gpu.synchronize()?;
        self.records()?
            .iter()
            .map(|record| Ok(predict(record, &MI300X, &Parameters::default())))
            .collect()
    }

    /// The records of the launches since the last call.
    fn records(&mut self) -> Result<Vec<Record>> {
        let text = fs::read_to_string(&self.reports).context("the emulator wrote no reports")?;
        let new = text.get(self.read..).unwrap_or_default();
        let records = new
            .lines()
            .map(|line| Ok(serde_json::from_str::<Line>(line)?.record))
            .collect();
        self.read = text.len();
        records
    }
}
