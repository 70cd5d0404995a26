//! A handle: what hipDNN creates once for each of its own handles.

use crate::device::{Device, Gpus, Stream};
use crate::error::Error;
use crate::fork::{Made, Process};
use crate::runtime::Runtime;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A device and the stream that executions go to.
///
/// On GPUs the device is the stream's: for the null stream the one that was current when the handle
/// was created or the stream set. A GPU that cannot be used is no error yet, because the same host
/// may have others: everything that needs it fails with the reason.
pub struct Handle {
    runtime: Arc<Runtime>,
    /// `None` on the CPU, where streams mean nothing.
    gpus: Option<Arc<dyn Gpus>>,
    device: RwLock<Result<Arc<dyn Device>, Error>>,
    /// What an execution reads, and nobody writes but [`set_stream`](Self::set_stream), which the
    /// host orders with executions.
    stream: AtomicPtr<c_void>,
    ordinal: AtomicU32,
    made_in: Process,
}

impl Made for Handle {
    fn made_in(&self) -> Process {
        self.made_in
    }
}

impl Handle {
    /// A handle on the default device and its default stream.
    ///
    /// # Errors
    ///
    /// If GPUs were asked for and there are none.
    pub fn new() -> Result<Self, Error> {
        let runtime = Runtime::shared()?;
        let gpus = runtime.gpus()?;
        let (ordinal, device) = match &gpus {
            Some(gpus) => {
                let ordinal = gpus.of_stream(std::ptr::null_mut())?;
                (ordinal, gpus.device(ordinal))
            }
            None => (0, Ok(runtime.host()?)),
        };
        Ok(Handle {
            runtime,
            gpus,
            device: RwLock::new(device),
            stream: AtomicPtr::new(std::ptr::null_mut()),
            ordinal: AtomicU32::new(ordinal),
            made_in: Process::current(),
        })
    }

    /// The state that all handles of the process share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The device.
    ///
    /// # Errors
    ///
    /// Why the GPU cannot be used.
    pub fn device(&self) -> Result<Arc<dyn Device>, Error> {
        let known = self.device.read().unwrap_or_else(PoisonError::into_inner).clone();
        match (&known, &self.gpus) {
            // What passes may have passed.
            (Err(error), Some(gpus)) if !error.is_about_devices() => {
                let device = gpus.device(self.ordinal.load(Ordering::Relaxed));
                self.device
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone_from(&device);
                device
            }
            _ => known,
        }
    }

    /// The stream of the next execution.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream {
            pointer: self.stream.load(Ordering::Acquire),
            ordinal: self.ordinal.load(Ordering::Relaxed),
        }
    }

    /// Sends the executions that follow to another stream, which may be on another GPU.
    ///
    /// # Errors
    ///
    /// The driver's, for what is no stream; the handle stays as it was.
    pub fn set_stream(&self, stream: *mut c_void) -> Result<(), Error> {
        if let Some(gpus) = &self.gpus {
            let ordinal = gpus.of_stream(stream)?;
            if ordinal != self.ordinal.load(Ordering::Relaxed) {
                *self.device.write().unwrap_or_else(PoisonError::into_inner) = gpus.device(ordinal);
                self.ordinal.store(ordinal, Ordering::Relaxed);
            }
        }
        self.stream.store(stream, Ordering::Release);
        Ok(())
    }
}
