//! What this project needs of a GPU vendor's driver library, as one trait, so that everything above
//! is written once.
//!
//! HIP and CUDA differ in how a GPU becomes the current one and in what they tell about it. The
//! functions that do the work ([`Calls`]) have the same arguments under other names, and so have
//! one caller.

use super::driver_error::DriverError;
use crate::device::Stream;
use libloading::os::unix::Library;
use rotini_emit::Target;
use rotini_iree::runtime::{Error as RuntimeError, Function, HalDevice, Instance, Launch};
use std::ffi::{c_char, c_int, c_uint, c_ushort, c_void};

/// What every function of both vendors returns; 0 is success.
pub(super) type Status = c_int;

/// `hipStreamCaptureModeRelaxed`, `CU_STREAM_CAPTURE_MODE_RELAXED`.
const CAPTURE_RELAXED: c_int = 2;

/// `hipStreamCaptureStatusNone`, `CU_STREAM_CAPTURE_STATUS_NONE`.
const NOT_CAPTURED: c_int = 0;

/// `hipEventDisableTiming`, `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: c_uint = 2;

/// Whose library.
#[derive(Clone, Copy, Debug)]
pub(super) enum Vendor {
    /// `libamdhip64.so`.
    Hip,
    /// `libcuda.so`.
    #[cfg(feature = "cuda")]
    Cuda,
}

/// The table of functions that both vendors have, each with its name.
macro_rules! calls {
    ($($field:ident: $hip:literal | $cuda:literal fn($($argument:ty),*);)+) => {
        /// Functions of a driver library with their names. An address of device memory is a pointer
        /// to HIP and an integer to CUDA, and passed the same way.
        pub(super) struct Calls {
            $($field: (&'static str, unsafe extern "C" fn($($argument),*) -> Status),)+
        }

        impl Calls {
            /// Finds them all; the name of the first that is missing if there is one.
            ///
            /// # Safety
            ///
            /// The library is the vendor's, or lacks the functions. It stays open as long as they
            /// are called.
            pub(super) unsafe fn resolve(library: &Library, vendor: Vendor) -> Result<Self, &'static str> {
                Ok(Calls {
                    $($field: {
                        let name = match vendor {
                            Vendor::Hip => $hip,
                            #[cfg(feature = "cuda")]
                            Vendor::Cuda => $cuda,
                        };
                        // SAFETY: the vendor's header declares the function like this.
                        let symbol = unsafe { library.get(name) };
                        (name, *symbol.map_err(|_| name)?)
                    },)+
                })
            }
        }
    };
}

calls! {
    synchronize: "hipDeviceSynchronize" | "cuCtxSynchronize" fn();
    exchange_capture_mode: "hipThreadExchangeStreamCaptureMode" | "cuThreadExchangeStreamCaptureMode" fn(*mut c_int);
    launch: "hipModuleLaunchKernel" | "cuLaunchKernel" fn(
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void, *mut *mut c_void
    );
    fill_8: "hipMemsetD8Async" | "cuMemsetD8Async" fn(u64, u8, usize, *mut c_void);
    fill_16: "hipMemsetD16Async" | "cuMemsetD16Async" fn(u64, c_ushort, usize, *mut c_void);
    fill_32: "hipMemsetD32Async" | "cuMemsetD32Async" fn(u64, c_uint, usize, *mut c_void);
    copy: "hipMemcpyDtoDAsync" | "cuMemcpyDtoDAsync_v2" fn(u64, u64, usize, *mut c_void);
    allocate: "hipMalloc" | "cuMemAlloc_v2" fn(*mut *mut c_void, usize);
    free: "hipFree" | "cuMemFree_v2" fn(*mut c_void);
    event_create: "hipEventCreateWithFlags" | "cuEventCreate" fn(*mut *mut c_void, c_uint);
    event_destroy: "hipEventDestroy" | "cuEventDestroy_v2" fn(*mut c_void);
    event_query: "hipEventQuery" | "cuEventQuery" fn(*mut c_void);
    event_record: "hipEventRecord" | "cuEventRecord" fn(*mut c_void, *mut c_void);
    stream_wait: "hipStreamWaitEvent" | "cuStreamWaitEvent" fn(*mut c_void, *mut c_void, c_uint);
    capture_info: "hipStreamGetCaptureInfo_v2" | "cuStreamGetCaptureInfo_v2" fn(
        *mut c_void, *mut c_int, *mut u64, *mut c_void, *mut c_void, *mut c_void
    );
}

/// A driver library.
///
/// Ordinals count the GPUs that the process sees, from 0.
pub(super) trait Driver: Send + Sync + Sized + 'static {
    /// Makes a device current on the calling thread until it is dropped, if it was not.
    type Current<'a>;

    /// The number of GPUs, at least 1.
    fn count(&self) -> u32;

    /// The library, by the name or path under which the loader finds it again.
    fn library(&self) -> &str;

    /// The functions that do the work.
    fn calls(&self) -> &Calls;

    /// What a function's status means, which is not success.
    fn error(&self, function: &'static str, status: Status) -> DriverError;

    /// IREE's own device of a GPU.
    fn device(&self, instance: &Instance, ordinal: u32) -> Result<HalDevice, RuntimeError>;

    /// What the driver says of a GPU.
    fn describe(&self, ordinal: u32) -> Result<Description, DriverError>;

    /// The driver and its version, for people and for keys.
    fn version(&self) -> String;

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

    /// Makes a GPU current for loading and unloading, which allocates and frees: other threads'
    /// captures would not stand it otherwise.
    fn enter_to_load(&self, ordinal: u32) -> Result<Entered<'_, Self>, DriverError> {
        let current = self.enter(ordinal)?;
        Ok((self.relax_capture(), current))
    }

    /// Whether kernels on a GPU can work on what a pointer points to: its own memory, or the host's
    /// where it sees that. Another GPU's memory does not count, because nobody can tell whether it
    /// is mapped here.
    fn reaches(&self, ordinal: u32, pointer: *mut c_void) -> Result<bool, DriverError>;

    /// A status as a result.
    #[inline]
    fn check(&self, function: &'static str, status: Status) -> Result<(), DriverError> {
        if status == 0 {
            Ok(())
        } else {
            Err(self.error(function, status))
        }
    }

    /// Sets the calling thread's capture mode; gives the one before.
    fn exchange_capture_mode(&self, mut mode: c_int) -> Result<c_int, DriverError> {
        let (name, function) = self.calls().exchange_capture_mode;
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut mode) })?;
        Ok(mode)
    }

    /// Relaxes the calling thread's capture mode.
    fn relax_capture(&self) -> Relaxed<'_, Self> {
        match self.exchange_capture_mode(CAPTURE_RELAXED) {
            Ok(before) => Relaxed(Some((self, before))),
            Err(error) => {
                tracing::info!("the capture mode stays as it is: {error}");
                Relaxed(None)
            }
        }
    }

    /// Waits for all work of the current GPU.
    fn synchronize(&self) -> Result<(), DriverError> {
        let (name, function) = self.calls().synchronize;
        // SAFETY: no arguments.
        self.check(name, unsafe { function() })
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// The kernel is loaded; `parameters` has a pointer to each of its parameters' values, and they
    /// are what it expects.
    #[inline]
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        stream: *mut c_void,
        parameters: *mut *mut c_void,
    ) -> Result<(), DriverError> {
        let ([gx, gy, gz], [bx, by, bz]) = (kernel.grid, kernel.block);
        let (name, function) = self.calls().launch;
        // SAFETY: by this function's contract.
        let status = unsafe {
            function(
                kernel.function.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                kernel.shared_bytes,
                stream,
                parameters,
                std::ptr::null_mut(),
            )
        };
        self.check(name, status)
    }

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
    ) -> Result<(), DriverError> {
        let calls = self.calls();
        // SAFETY: by this function's contract.
        let (name, status) = unsafe {
            match pattern_bytes {
                1 => {
                    let (name, function) = calls.fill_8;
                    (name, function(target, pattern as u8, count, stream))
                }
                2 => {
                    let (name, function) = calls.fill_16;
                    (name, function(target, pattern as u16, count, stream))
                }
                _ => {
                    let (name, function) = calls.fill_32;
                    (name, function(target, pattern, count, stream))
                }
            }
        };
        self.check(name, status)
    }

    /// Copies within the GPU's memory.
    ///
    /// # Safety
    ///
    /// The memory is valid until the work is done, and the ranges do not overlap.
    unsafe fn copy(&self, source: u64, target: u64, bytes: usize, stream: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().copy;
        // SAFETY: by this function's contract.
        self.check(name, unsafe { function(target, source, bytes, stream) })
    }

    /// Memory of the current GPU.
    fn allocate(&self, bytes: usize) -> Result<*mut c_void, DriverError> {
        let ((name, function), mut pointer) = (self.calls().allocate, std::ptr::null_mut());
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut pointer, bytes) })?;
        Ok(pointer)
    }

    /// Frees memory; nothing if it is null.
    ///
    /// # Safety
    ///
    /// It is from [`allocate`](Self::allocate), and nothing uses it any more.
    unsafe fn free(&self, pointer: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().free;
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: by this function's contract.
        self.check(name, unsafe { function(pointer) })
    }

    /// An event of the current GPU, for order alone.
    fn event(&self) -> Result<*mut c_void, DriverError> {
        let ((name, function), mut event) = (self.calls().event_create, std::ptr::null_mut());
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut event, WITHOUT_TIME) })?;
        Ok(event)
    }

    /// Destroys an event; nothing if it is null.
    ///
    /// # Safety
    ///
    /// It is from [`event`](Self::event), and is not used any more.
    unsafe fn destroy_event(&self, event: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().event_destroy;
        if event.is_null() {
            return Ok(());
        }
        // SAFETY: by this function's contract.
        self.check(name, unsafe { function(event) })
    }

    /// Whether all that an event was recorded behind is done. What cannot be said is not.
    fn is_done(&self, event: *mut c_void) -> bool {
        let (_, function) = self.calls().event_query;
        // SAFETY: an event of ours.
        unsafe { function(event) == 0 }
    }

    /// Records an event behind all that is enqueued on a stream.
    fn record(&self, event: *mut c_void, stream: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().event_record;
        // SAFETY: an event of ours; the stream is the caller's.
        self.check(name, unsafe { function(event, stream) })
    }

    /// Makes what is enqueued on a stream from now on wait for an event.
    fn wait(&self, stream: *mut c_void, event: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().stream_wait;
        // SAFETY: as above; there are no flags.
        self.check(name, unsafe { function(stream, event, 0) })
    }

    /// The id of the capture that a stream takes part in.
    fn capture(&self, stream: *mut c_void) -> Result<Option<u64>, DriverError> {
        let ((name, function), mut status, mut id) = (self.calls().capture_info, NOT_CAPTURED, 0);
        let none = std::ptr::null_mut();
        // SAFETY: the places are valid for the call, and what is null is not asked for.
        self.check(name, unsafe {
            function(stream, &mut status, &mut id, none, none, none)
        })?;
        Ok((status != NOT_CAPTURED).then_some(id))
    }
}

/// What [`Driver::enter_to_load`] has changed on the calling thread.
pub(super) type Entered<'a, D> = (Relaxed<'a, D>, <D as Driver>::Current<'a>);

/// Lets the calling thread load code while streams are being captured; goes back to the capture
/// mode that was before when it is dropped.
pub(super) struct Relaxed<'a, D: Driver>(Option<(&'a D, c_int)>);

impl<D: Driver> Drop for Relaxed<'_, D> {
    fn drop(&mut self) {
        if let Some((driver, before)) = self.0
            && let Err(error) = driver.exchange_capture_mode(before)
        {
            tracing::error!("the capture mode cannot be restored: {error}");
        }
    }
}

/// A kernel and its grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// The driver's handle of it.
    pub(super) function: Function,
    /// Workgroups.
    pub(super) grid: [u32; 3],
    /// Threads per workgroup.
    pub(super) block: [u32; 3],
    /// Dynamic shared memory.
    pub(super) shared_bytes: u32,
}

impl From<&Launch> for Kernel {
    fn from(launch: &Launch) -> Self {
        Kernel {
            function: launch.function,
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

/// Why a library that is there cannot be used. That there is no memory passes.
pub(super) fn refusal(error: DriverError) -> crate::error::Error {
    if error.out_of_memory {
        crate::error::Error::Driver(error)
    } else {
        crate::error::Error::NoDevice(error.to_string())
    }
}

/// What the system's loader says, which libloading has as the source.
pub(super) fn loader_words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The text in an array that a zero ends.
pub(super) fn text_in(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|&character| character.cast_unsigned())
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
