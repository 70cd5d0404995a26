//! A handle: what hipDNN creates once per handle of its own.

use crate::device::{Device, Stream};
use crate::error::Error;
use crate::pipeline::Runtime;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A device and the stream that executions go to.
pub struct Handle {
    runtime: Arc<Runtime>,
    device: Arc<dyn Device>,
    stream: AtomicPtr<c_void>,
}

impl Handle {
    /// A handle on the default device and its default stream.
    ///
    /// # Errors
    ///
    /// If no device can be used.
    pub fn new() -> Result<Self, Error> {
        let runtime = Runtime::shared()?;
        let device = runtime.default_device()?;
        Ok(Handle {
            runtime,
            device,
            stream: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    /// The state that all handles of the process share.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The stream of the next execution.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream(self.stream.load(Ordering::Acquire))
    }

    /// Sends the executions that follow to another stream.
    pub fn set_stream(&self, stream: *mut c_void) {
        self.stream.store(stream, Ordering::Release);
    }
}
