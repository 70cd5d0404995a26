//! A handle: the object that hipDNN creates once for each of its own handles.

use crate::device::{Device, Gpus, Stream};
use crate::error::Error;
use crate::fork::{Made, Process};
use crate::runtime::Runtime;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A device, and the stream that executions are enqueued on.
///
/// On GPUs, the device is that of the stream. For the null stream, it is the device that was
/// current when the handle was created or the stream was set. A GPU that cannot be used is not
/// reported at that point, because the host may have other GPUs: every call that needs the GPU
/// fails with the reason.
pub struct Handle {
    runtime: Arc<Runtime>,
    /// `None` on the CPU, where streams have no meaning.
    gpus: Option<Arc<dyn Gpus>>,
    device: RwLock<Result<Arc<dyn Device>, Error>>,
    /// The stream of the next execution. Only [`set_stream`](Self::set_stream) writes it, and the
    /// host orders that call with executions.
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
    /// Creates a handle on the default device and its default stream.
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

    /// Returns the state that all handles of the process share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the device.
    ///
    /// # Errors
    ///
    /// The reason why the GPU cannot be used.
    pub fn device(&self) -> Result<Arc<dyn Device>, Error> {
        let known = self.device.read().unwrap_or_else(PoisonError::into_inner).clone();
        match (&known, &self.gpus) {
            // A temporary failure may be over: try again.
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

    /// Returns the stream of the next execution.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream {
            pointer: self.stream.load(Ordering::Acquire),
            ordinal: self.ordinal.load(Ordering::Relaxed),
        }
    }

    /// Sets the stream of later executions, which may be on another GPU.
    ///
    /// # Errors
    ///
    /// The driver's error if it is not a stream. The handle is unchanged then.
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
