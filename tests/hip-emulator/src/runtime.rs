//! Starts the emulator, holds its devices and memory, and resolves the calling thread's current
//! device and streams.

use crate::calls;
use crate::config;
use crate::device::Device;
use crate::handle::Handle;
use crate::memory::Memory;
use crate::status::Result;
use crate::stream::Stream;
use crate::sys::{self, hipStream_t};
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The emulator.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) devices: Vec<&'static Device>,
    pub(crate) memory: Memory,
    /// Whether kernels do nothing.
    pub(crate) noop: AtomicBool,
}

static RUNTIME: OnceLock<Option<&'static Runtime>> = OnceLock::new();

/// Returns the emulator, which starts with the first call that needs it: a program need not call
/// `hipInit`.
///
/// # Errors
///
/// `hipErrorNotInitialized` if the configuration is wrong, with a message on stderr, and
/// `hipErrorNoDevice` if there is no device.
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

/// Returns the calling thread's current device.
pub(crate) fn current() -> Result<&'static Device> {
    let ordinal = calls::thread(|thread| thread.device.get())?;
    get()?.devices.get(ordinal).copied().ok_or(sys::hipErrorInvalidDevice)
}

thread_local! {
    /// This thread's `hipStreamPerThread` streams, one per device.
    static PER_THREAD: RefCell<Vec<&'static Handle<Stream>>> = RefCell::default();
}

/// Resolves a caller's stream handle: the current device's null stream, the thread's own stream, or
/// a created one.
///
/// # Safety
///
/// As for [`Handle::from_raw`].
#[inline]
pub(crate) unsafe fn resolve(stream: hipStream_t) -> Result<&'static Handle<Stream>> {
    match stream.addr() {
        0 | 1 => Ok(current()?.null()),
        2 => {
            let device = current()?;
            PER_THREAD
                .try_with(|streams| {
                    let mut streams = streams.borrow_mut();
                    if let Some(own) = streams.iter().find(|own| own.device.ordinal == device.ordinal) {
                        return *own;
                    }
                    let own = Stream::new(device, sys::hipStreamDefault, 0);
                    streams.push(own);
                    own
                })
                .map_err(|_| sys::hipErrorDeinitialized)
        }
        // SAFETY: by this function's contract.
        _ => unsafe { Handle::from_raw(stream) },
    }
}

#[cold]
fn start() -> Option<&'static Runtime> {
    *RUNTIME.get_or_init(|| match Runtime::new() {
        Ok(runtime) => Some(Box::leak(Box::new(runtime))),
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
            noop: AtomicBool::new(config.noop),
        })
    }

    /// Returns a device by its ordinal.
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
