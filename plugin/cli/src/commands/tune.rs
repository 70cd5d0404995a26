//! `rotini tune`: which form of each graph is the fastest on this device.
//!
//! | Module | What it owns |
//! |---|---|
//! | `contest` | one graph: its candidates, tried and measured, and the record that comes of it |
//! | `predicted` | times on an emulated GPU: predictions |
//! | `exchange` | records in files, for other machines |
//! | `report` | what was found, for people |

mod contest;
mod exchange;
mod predicted;
mod report;

use super::answer::Answer;
use super::bench::launch;
use super::workloads::workloads;
use crate::args::Tune;
use crate::failure::Failure;
use crate::output::Output;
use crate::plugin;
use crate::progress::Progress;
use anyhow::{Result, bail};
use contest::{Contest, Found};
use rotini_bench::Launch;
use rotini_plugin::config::{Config, DeviceChoice};
use rotini_plugin::device::Device;
use rotini_plugin::runtime::Runtime;
use std::path::PathBuf;
use std::sync::Arc;

/// What all graphs of a run share.
struct Setup {
    runtime: Runtime,
    device: Arc<dyn Device>,
    launch: Launch,
    plugin: PathBuf,
    /// The cache's directory, where records and code are kept.
    cache: PathBuf,
}

pub(super) fn tune(args: &Tune, output: &Output) -> Result<Answer> {
    let workloads = workloads(&args.workloads, output)?;
    if workloads.is_empty() && args.imports.is_empty() && args.export.is_none() {
        bail!(Failure::Usage("there is nothing to tune".to_owned()));
    }
    let setup = Setup::new(args)?;
    for file in &args.imports {
        exchange::import(&setup, file, output)?;
    }
    let progress = Progress::new(workloads.len(), output)?;
    let mut all = Vec::new();
    for workload in &workloads {
        progress.graph(&workload.name);
        let found = Contest::new(&setup, args, workload).run(&progress)?;
        progress.advance();
        progress.suspend(|| report::line(&found, output))?;
        all.push(found);
    }
    drop(progress);
    if let Some(file) = &args.export {
        exchange::export(&setup, file, output)?;
    }
    report::all(&setup, &all, output)?;
    Ok(Answer::of(!all.iter().any(Found::is_bad)))
}

impl Setup {
    fn new(args: &Tune) -> Result<Self> {
        let launch = launch(args.device, Vec::new(), args.patience)?;
        let mut config = Config::from_env();
        config.device = match launch.device {
            rotini_bench::Device::Cpu => DeviceChoice::Cpu,
            rotini_bench::Device::Hip => DeviceChoice::Hip,
            #[cfg(feature = "cuda")]
            rotini_bench::Device::Cuda => DeviceChoice::Cuda,
            #[cfg(not(feature = "cuda"))]
            rotini_bench::Device::Cuda => bail!(Failure::Environment(
                "this program was built without NVIDIA GPUs".to_owned()
            )),
        };
        let runtime = Runtime::new(config)?;
        runtime.builds()?;
        let Some(cache) = runtime.cache.dir().map(PathBuf::from) else {
            bail!(Failure::Environment(
                "there is no cache directory to keep results in: ROTINI_CACHE_DIR names one".to_owned()
            ));
        };
        let device = runtime.default_device()?;
        Ok(Setup {
            device,
            launch,
            plugin: plugin::locate(args.plugin.plugin.as_deref())?,
            cache,
            runtime,
        })
    }

    /// The device with its driver, as records name it.
    fn measured_on(&self) -> String {
        self.device.measured_on()
    }

    /// Bytes of the rotating buffers: more than the caches that a core has for itself, and no more
    /// than takes milliseconds to fill.
    fn rotate() -> u64 {
        64 << 20
    }
}
