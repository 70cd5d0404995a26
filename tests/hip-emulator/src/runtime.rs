//! What there is once: devices, memory, the scheduler.

use crate::calls;
use crate::config;
use crate::device::Device;
use crate::memory::Memory;
use crate::scheduler::Scheduler;
use crate::status::Result;
use crate::sys;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The emulator.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) devices: Vec<&'static Device>,
    pub(crate) memory: Memory,
    pub(crate) scheduler: Scheduler,
    /// Kernels do nothing.
    pub(crate) noop: AtomicBool,
}

static RUNTIME: OnceLock<Option<&'static Runtime>> = OnceLock::new();

/// The emulator, which starts with the first call that needs it: a program need not call `hipInit`.
///
/// # Errors
///
/// `hipErrorNotInitialized` if the set-up is wrong, which is told on stderr, and `hipErrorNoDevice` if there is no device.
pub(crate) fn get() -> Result<&'static Runtime> {
    let runtime = match RUNTIME.get() {
        Some(runtime) => *runtime,
        None => start(),
    };
    let runtime = runtime.ok_or(sys::hipErrorNotInitialized)?;
    if runtime.devices.is_empty() {
        return Err(sys::hipErrorNoDevice);
    }
    Ok(runtime)
}

/// The calling thread's current device.
pub(crate) fn current() -> Result<&'static Device> {
    let ordinal = calls::thread(|thread| thread.device.get())?;
    get()?.devices.get(ordinal).copied().ok_or(sys::hipErrorInvalidDevice)
}

#[cold]
fn start() -> Option<&'static Runtime> {
    *RUNTIME.get_or_init(|| match Runtime::new() {
        Ok(runtime) => {
            let runtime: &'static Runtime = Box::leak(Box::new(runtime));
            if let Some(seed) = config::get().seed {
                runtime.scheduler.set_seed(Some(seed));
            }
            Some(runtime)
        }
        Err(error) => {
            config::warn(&error);
            None
        }
    })
}

impl Runtime {
    fn new() -> Result<Self, String> {
        let config = config::get();
        if let Some(error) = &config.error {
            return Err(error.clone());
        }
        let devices = config
            .devices
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .enumerate()
            .map(|(ordinal, text)| Device::parse(ordinal, text, config.memory))
            .collect::<Result<Vec<_>, String>>()
            .map_err(|error| format!("HIPEMU_DEVICES: {error}"))?;
        Ok(Runtime {
            devices: devices
                .into_iter()
                .map(|device| &*Box::leak(Box::new(device)))
                .collect(),
            memory: Memory::new(config.quarantine)?,
            scheduler: Scheduler::new(),
            noop: AtomicBool::new(config.noop),
        })
    }

    /// A device by its ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Result<&'static Device> {
        usize::try_from(ordinal)
            .ok()
            .and_then(|ordinal| self.devices.get(ordinal))
            .copied()
            .ok_or(sys::hipErrorInvalidDevice)
    }

    pub(crate) fn is_noop(&self) -> bool {
        self.noop.load(Ordering::Relaxed)
    }
}
