//! GPUs. Code is loaded once per GPU and its launches are recorded. An execution replays them on
//! the caller's stream.
//!
//! ```text
//! Gpus ── one per GPU ──> Gpu ── load ──> Loaded ── execute: pointers ──> one driver call per step
//!                          └── retired programs <── last context gone
//! ```
//!
//! An execution runs on the caller's thread and returns when everything is enqueued. It allocates
//! nothing, neither on the host nor on the GPU, takes no lock and waits for nothing. Threads share
//! no state that an execution modifies, except a short list of workspaces that were checked. If the
//! execution needs the plugin's own memory (`memory`), that is allocated on first use, and a lock
//! is held while a list is searched.
//!
//! A program is not unloaded when its last context goes, but when the GPU is known to have finished
//! with it: see `Idle`. A separate thread unloads it, so contexts and code can be dropped anywhere
//! without waiting.

#[cfg(feature = "cuda")]
mod cuda;
mod driver;
mod driver_error;
mod hip;
mod launch_plan;
mod memory;
mod recorded;
mod target;

use super::retired::Retired;
use super::{Device, Executable, Gpus, Settled, Work};
use crate::config::Config;
use crate::error::Error;
use crate::fork;
use crate::own_thread::Background;
use driver::{Driver, Entered};
pub use driver_error::DriverError;
use memory::{Captured, KEPT, Pool};
use recorded::{Loaded, RecordedCode, Unit};
use rotini_cache::{CompiledFor, Key};
use rotini_emit::{Signature, Target};
use rotini_iree::runtime::{HalDevice, Instance};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Returns the AMD GPUs of this process.
///
/// # Errors
///
/// [`Error::NoDevice`] if there is no HIP library or no GPU.
pub fn hip(config: &Config, instance: &Instance) -> Result<Arc<dyn Gpus>, Error> {
    let driver = fork::use_gpus(|| hip::Hip::new(config.hip_library.as_deref()))?;
    Ok(Arc::new(All::new(driver, config, instance)))
}

/// Returns the NVIDIA GPUs of this process.
///
/// # Errors
///
/// [`Error::NoDevice`] if there is no CUDA driver or no GPU.
#[cfg(feature = "cuda")]
pub fn cuda(config: &Config, instance: &Instance) -> Result<Arc<dyn Gpus>, Error> {
    let driver = fork::use_gpus(cuda::Cuda::new)?;
    Ok(Arc::new(All::new(driver, config, instance)))
}

/// The GPUs of one driver library, each of which is set up on first use.
struct All<D> {
    driver: Arc<D>,
    instance: Instance,
    /// The target to compile for, if not the one that a GPU reports.
    target: Option<Target>,
    /// Whether all schedules are left to the compiler.
    unscheduled: bool,
    /// Maximum bytes of workspace that an execution takes from the plugin's own memory.
    own_workspace: u64,
    gpus: Box<[Slot]>,
}

/// A GPU, or the reason why it can never be used. Unset until the GPU's first use.
type Slot = Settled<Arc<dyn Device>>;

impl<D: Driver> All<D> {
    fn new(driver: D, config: &Config, instance: &Instance) -> Self {
        All {
            gpus: (0..driver.count()).map(|_| Slot::new()).collect(),
            driver: Arc::new(driver),
            instance: instance.clone(),
            target: config.target.clone(),
            unscheduled: config.unscheduled,
            own_workspace: config.own_workspace,
        }
    }
}

impl<D: Driver> Gpus for All<D> {
    fn of_stream(&self, stream: *mut c_void) -> Result<u32, Error> {
        Ok(self.driver.stream_ordinal(stream)?)
    }

    fn library(&self) -> &str {
        self.driver.library()
    }

    fn list(&self) -> Vec<String> {
        let line = |ordinal| match self.driver.describe(ordinal) {
            Ok(gpu) => format!("{} ({}, {} compute units)", gpu.name, gpu.arch, gpu.compute_units),
            Err(error) => error.to_string(),
        };
        (0..self.driver.count()).map(line).collect()
    }

    fn device(&self, ordinal: u32) -> Result<Arc<dyn Device>, Error> {
        let Some(slot) = self.gpus.get(ordinal as usize) else {
            return Err(Error::NoDevice(format!("there is no GPU {ordinal}")));
        };
        super::make_once(slot, || {
            let gpu =
                Gpu::new(self, ordinal).inspect_err(|error| tracing::warn!("GPU {ordinal} cannot be used: {error}"))?;
            Ok(Arc::new(gpu) as Arc<dyn Device>)
        })
    }
}

/// Maximum number of programs that stay loaded on a GPU after their last context.
const MAX_RETIRED: usize = 64;

/// A GPU.
struct Gpu<D: Driver>(Arc<Shared<D>>);

/// The state that a GPU shares with the programs that are loaded on it.
struct Shared<D: Driver> {
    driver: Arc<D>,
    ordinal: u32,
    description: String,
    measured_on: String,
    compiled_for: CompiledFor<Target>,
    idle: Arc<Idle<D>>,
    /// The thread on which `idle` is shrunk.
    background: Background,
    /// Maximum bytes of workspace that an execution takes from the plugin's own memory.
    own_workspace: usize,
    instance: Instance,
    /// IREE's device, which only `drop` releases.
    device: ManuallyDrop<HalDevice>,
}

/// The programs and memory that a GPU keeps for later contexts and executions.
struct Idle<D: Driver> {
    driver: Arc<D>,
    ordinal: u32,
    /// Programs whose last context is gone. Their kernels may still be running, and the same graphs
    /// may be used again.
    retired: Mutex<Retired<Unit<D>>>,
    /// The pool of the plugin's own device memory.
    pool: Pool<D>,
}

impl<D: Driver> Gpu<D> {
    fn new(all: &All<D>, ordinal: u32) -> Result<Self, Error> {
        let All { driver, instance, .. } = all;
        let description = driver.describe(ordinal)?;
        let target = match &all.target {
            Some(target) if D::is_target(target) => target.clone(),
            Some(other) => {
                return Err(Error::NoDevice(format!(
                    "ROTINI_TARGET={other} is none for {}",
                    description.name
                )));
            }
            None => driver.target(&description).map_err(|reason| {
                Error::NoDevice(format!(
                    "{} is declined: {reason}; ROTINI_TARGET can name what to compile for",
                    description.name
                ))
            })?,
        };
        let target = match target.unscheduled() {
            Some(target) if all.unscheduled => target,
            _ => target,
        };
        let device = {
            let _entered = driver.enter_to_load(ordinal)?;
            driver
                .device(instance, ordinal)
                .map_err(Error::runtime("the GPU cannot be used by IREE"))?
        };
        Ok(Gpu(Arc::new(Shared {
            driver: Arc::clone(driver),
            ordinal,
            description: format!(
                "{} ({}, GPU {ordinal}, for {target})",
                description.name, description.arch
            ),
            measured_on: format!(
                "{} ({}, {} compute units), {}",
                description.name,
                description.arch,
                description.compute_units,
                driver.version()
            ),
            // The target names everything that is compiled for, so there are no further features.
            compiled_for: target.into(),
            idle: Arc::new(Idle {
                driver: Arc::clone(driver),
                ordinal,
                retired: Mutex::new(Retired::new(MAX_RETIRED)),
                pool: Pool::new(),
            }),
            background: Background::default(),
            own_workspace: usize::try_from(all.own_workspace).unwrap_or(usize::MAX),
            instance: instance.clone(),
            device: ManuallyDrop::new(device),
        })))
    }
}

impl<D: Driver> Idle<D> {
    fn retired(&self) -> MutexGuard<'_, Retired<Unit<D>>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unloads the older half of the retired programs if there are too many, after waiting once for
    /// the GPU, and frees idle memory beyond the limit. If the GPU cannot be waited for, for
    /// instance because a stream is being captured, everything is kept.
    fn shrink(&self) {
        let batch = self.retired().excess();
        let settled = if batch.is_empty() {
            self.driver.enter_to_load(self.ordinal)
        } else {
            settle(&*self.driver, self.ordinal)
        };
        match settled {
            Ok(_entered) => {
                drop((batch, self.pool.idle(KEPT)));
            }
            Err(error) => {
                tracing::info!("{} programs stay loaded for now: {error}", batch.len());
                self.retired().put_back(batch);
            }
        }
    }
}

impl<D: Driver> Shared<D> {
    /// Keeps a program whose last context is gone. Never waits, so that a context can be dropped
    /// anywhere.
    fn retire(&self, key: Key, unit: Unit<D>) {
        let is_excess = {
            let mut retired = self.idle.retired();
            let bytes = unit.code.code_bytes.saturating_add(unit.captured.bytes());
            retired.push(key, bytes, unit);
            retired.is_excess()
        };
        if is_excess || self.idle.pool.is_excess() {
            let idle = Arc::clone(&self.idle);
            self.background.start(move || idle.shrink());
        }
    }
}

/// Waits until a GPU has finished all work, and makes it current, so that code can be unloaded.
fn settle<D: Driver>(driver: &D, ordinal: u32) -> Result<Entered<'_, D>, DriverError> {
    let entered = driver.enter_to_load(ordinal)?;
    driver.synchronize()?;
    Ok(entered)
}

impl<D: Driver> Drop for Shared<D> {
    fn drop(&mut self) {
        self.background.wait();
        let (programs, blocks) = (self.idle.retired().drain(), self.idle.pool.drain());
        // If there are no programs, no kernel of the plugin can be running. IREE waits for its own
        // work.
        let settled = if programs.is_empty() {
            self.driver.enter_to_load(self.ordinal)
        } else {
            settle(&*self.driver, self.ordinal)
        };
        match settled {
            Ok(_entered) => {
                drop((programs, blocks));
                // SAFETY: the field is not used after this. The GPU is current, as it was when the
                // device's streams and events were made.
                unsafe { ManuallyDrop::drop(&mut self.device) };
            }
            Err(error) => {
                // Leaking code is better than unloading code that may be running.
                tracing::error!("GPU {} is never given back: {error}", self.ordinal);
                std::mem::forget((programs, blocks));
            }
        }
    }
}

impl<D: Driver> Device for Gpu<D> {
    fn compiled_for(&self) -> &CompiledFor<Target> {
        &self.0.compiled_for
    }

    fn describe(&self) -> String {
        self.0.description.clone()
    }

    fn measured_on(&self) -> String {
        self.0.measured_on.clone()
    }

    fn can_be_captured(&self) -> bool {
        // An execution consists of nothing but launches, fills and copies on the caller's stream.
        true
    }

    unsafe fn load(
        &self,
        key: &Key,
        code: &[u8],
        signature: &Signature,
        _: Work,
    ) -> Result<Arc<dyn Executable>, Error> {
        let retired = self.0.idle.retired().take(key);
        let unit = match retired {
            Some(unit) => unit,
            None => Unit {
                // SAFETY: by this function's contract.
                code: Box::new(unsafe { RecordedCode::load(&self.0, code, signature)? }),
                captured: Captured::new(),
            },
        };
        Ok(Arc::new(Loaded::new(Arc::clone(&self.0), *key, unit)))
    }
}
