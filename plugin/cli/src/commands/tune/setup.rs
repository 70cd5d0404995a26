//! The state that all graphs of one `rotini tune` share.

use crate::args::Tune;
use crate::commands::bench::launch;
use crate::failure::Failure;
use crate::plugin;
use anyhow::{Result, bail};
use rotini_bench::Launch;
use rotini_plugin::config::{Config, DeviceChoice};
use rotini_plugin::device::Device;
use rotini_plugin::runtime::Runtime;
use std::path::PathBuf;
use std::sync::Arc;

/// The state that all graphs of a run share.
pub(super) struct Setup {
    pub(super) runtime: Runtime,
    pub(super) device: Arc<dyn Device>,
    pub(super) launch: Launch,
    pub(super) plugin: PathBuf,
    /// The cache directory, which holds records and code.
    pub(super) cache: PathBuf,
}

impl Setup {
    pub(super) fn new(args: &Tune) -> Result<Self> {
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

    /// Returns the device with its driver, as named in records.
    pub(super) fn measured_on(&self) -> String {
        self.device.measured_on()
    }

    /// Returns the size of the rotating buffers in bytes: more than a core's private caches, and
    /// small enough to fill in milliseconds.
    pub(super) fn rotate() -> u64 {
        64 << 20
    }
}
