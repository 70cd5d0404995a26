//! What this project needs of a GPU vendor's driver library, as one trait, so that everything above is written once.

use crate::device::Stream;
use iree_sys::runtime::{Error as RuntimeError, Instance, Launch};
use rotini_emit::Target;
use std::ffi::c_void;
use thiserror::Error;

/// A driver library.
///
/// Ordinals count the GPUs that the process sees, from 0.
pub(super) trait Driver: Send + Sync + Sized + 'static {
    /// Makes a device current on the calling thread until it is dropped, if it was not.
    type Current<'a>;

    /// Lets the calling thread load code while streams are being captured, until it is dropped.
    type Relaxed<'a>;

    /// The number of GPUs, at least 1.
    fn count(&self) -> u32;

    /// The library, by the name or path under which the loader finds it again.
    fn library(&self) -> &str;

    /// IREE's own device of a GPU.
    fn device(&self, instance: &Instance, ordinal: u32) -> Result<iree_sys::runtime::Device, RuntimeError>;

    /// What the driver says of a GPU.
    fn describe(&self, ordinal: u32) -> Result<Description, DriverError>;

    /// What to compile for; the reason if it is nothing that is known.
    fn target(&self, description: &Description) -> Result<Target, String>;

    /// Whether code that was compiled for `target` is this vendor's.
    fn is_target(target: &Target) -> bool;

    /// The GPU that a stream is on; for the null stream the calling thread's current one.
    fn stream_ordinal(&self, stream: *mut c_void) -> Result<u32, DriverError>;

    /// Makes a GPU the calling thread's current one.
    fn enter(&self, ordinal: u32) -> Result<Self::Current<'_>, DriverError>;

    /// Makes a GPU current if launching on the stream needs it.
    fn enter_for(&self, stream: Stream) -> Result<Option<Self::Current<'_>>, DriverError>;

    /// Relaxes the calling thread's capture mode.
    fn relax_capture(&self) -> Self::Relaxed<'_>;

    /// Waits for all work of the current GPU.
    fn synchronize(&self) -> Result<(), DriverError>;

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// The kernel is loaded; `parameters` has a pointer to each of its parameters' values, and they are what it expects.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        stream: *mut c_void,
        parameters: *mut *mut c_void,
    ) -> Result<(), DriverError>;

    /// Writes an element of 1, 2 or 4 bytes `count` times.
    ///
    /// # Safety
    ///
    /// The memory is valid until the work is done.
    unsafe fn fill(
        &self,
        target: u64,
        pattern: u32,
        pattern_bytes: u8,
        count: usize,
        stream: *mut c_void,
    ) -> Result<(), DriverError>;

    /// Copies within the GPU's memory.
    ///
    /// # Safety
    ///
    /// The memory is valid until the work is done, and the ranges do not overlap.
    unsafe fn copy(&self, source: u64, target: u64, bytes: usize, stream: *mut c_void) -> Result<(), DriverError>;
}

/// A kernel and its grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// `hipFunction_t` or `CUfunction`.
    pub(super) function: *mut c_void,
    /// Workgroups.
    pub(super) grid: [u32; 3],
    /// Threads per workgroup.
    pub(super) block: [u32; 3],
    /// Dynamic shared memory.
    pub(super) shared_bytes: u32,
}

// SAFETY: a handle of the driver's, which may be launched from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl From<&Launch> for Kernel {
    fn from(launch: &Launch) -> Self {
        Kernel {
            function: launch.function.0,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
        }
    }
}

/// What a driver says of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// The product's name.
    pub(super) name: String,
    /// The architecture, as the vendor spells it.
    pub(super) arch: String,
    /// Compute units or multiprocessors.
    pub(super) compute_units: u32,
}

/// A failed call into a driver library, with the vendor's name for what happened.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{function} failed: {name} ({text})")]
pub struct DriverError {
    /// The function.
    pub function: &'static str,
    /// The vendor's name of the code: `hipErrorInvalidValue`.
    pub name: String,
    /// The vendor's text.
    pub text: String,
    /// Whether memory ran out.
    pub out_of_memory: bool,
}

/// What the system's loader says, which libloading has as the source.
pub(super) fn loader_words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
