//! The functions of a GPU vendor's driver library that rotini needs, as one trait, so that
//! everything above is written once.
//!
//! HIP and CUDA differ in how a GPU becomes the current one and in how a GPU is described. The
//! functions that do the work ([`Calls`]) have the same arguments under other names, so one
//! implementation calls both.

use super::driver_error::DriverError;
use crate::device::Stream;
use libloading::os::unix::Library;
use rotini_emit::Target;
use rotini_iree::runtime::{Error as RuntimeError, Function, HalDevice, Instance, Launch};
use std::ffi::{c_char, c_int, c_uint, c_ushort, c_void};

/// The status that every function of both vendors returns; 0 is success.
pub(super) type Status = c_int;

/// `hipStreamCaptureModeRelaxed`, `CU_STREAM_CAPTURE_MODE_RELAXED`.
const CAPTURE_RELAXED: c_int = 2;

/// `hipStreamCaptureStatusNone`, `CU_STREAM_CAPTURE_STATUS_NONE`.
const NOT_CAPTURED: c_int = 0;

/// `hipEventDisableTiming`, `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: c_uint = 2;

/// The vendor of a library.
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
        /// Functions of a driver library, with their names. HIP types an address of device memory
        /// as a pointer and CUDA as an integer; both are passed the same way.
        pub(super) struct Calls {
            $($field: (&'static str, unsafe extern "C" fn($($argument),*) -> Status),)+
        }

        impl Calls {
            /// Resolves all functions. The error is the name of the first that is missing.
            ///
            /// # Safety
            ///
            /// If the library has these functions, it is the vendor's. It stays open as long as
            /// they are called.
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
    /// Keeps a GPU current on the calling thread, and restores the previous one when it is dropped.
    type Current<'a>;

    /// Returns the number of GPUs, at least 1.
    fn count(&self) -> u32;

    /// Returns the name or path under which the loader finds the library again.
    fn library(&self) -> &str;

    /// Returns the functions that do the work.
    fn calls(&self) -> &Calls;

    /// Converts a function's status, which is not success, to an error.
    fn error(&self, function: &'static str, status: Status) -> DriverError;

    /// Creates IREE's device for a GPU.
    fn device(&self, instance: &Instance, ordinal: u32) -> Result<HalDevice, RuntimeError>;

    /// Returns the driver's description of a GPU.
    fn describe(&self, ordinal: u32) -> Result<Description, DriverError>;

    /// Returns the driver and its version, for people and for keys.
    fn version(&self) -> String;

    /// Returns the target to compile for, or the reason why none is known.
    fn target(&self, description: &Description) -> Result<Target, String>;

    /// Returns true if code for `target` runs on this vendor's GPUs.
    fn is_target(target: &Target) -> bool;

    /// Returns the GPU that a stream is on; for the null stream, the calling thread's current GPU.
    fn stream_ordinal(&self, stream: *mut c_void) -> Result<u32, DriverError>;

    /// Makes a GPU current on the calling thread.
    fn enter(&self, ordinal: u32) -> Result<Self::Current<'_>, DriverError>;

    /// Makes the stream's GPU current if launches on the stream need that.
    fn enter_for(&self, stream: Stream) -> Result<Option<Self::Current<'_>>, DriverError>;

    /// Makes a GPU current for loading and unloading. Both allocate and free memory, which would
    /// break other threads' captures, so the capture mode is relaxed too.
    fn enter_to_load(&self, ordinal: u32) -> Result<Entered<'_, Self>, DriverError> {
        let current = self.enter(ordinal)?;
        Ok((self.relax_capture(), current))
    }

    /// Returns true if kernels on a GPU can access the memory at a pointer: the GPU's own memory,
    /// or host memory that the GPU can see. Another GPU's memory does not count, because whether it
    /// is mapped here cannot be found out.
    fn reaches(&self, ordinal: u32, pointer: *mut c_void) -> Result<bool, DriverError>;

    /// Converts a status to a result.
    #[inline]
    fn check(&self, function: &'static str, status: Status) -> Result<(), DriverError> {
        if status == 0 {
            Ok(())
        } else {
            Err(self.error(function, status))
        }
    }

    /// Sets the calling thread's capture mode, and returns the previous one.
    fn exchange_capture_mode(&self, mut mode: c_int) -> Result<c_int, DriverError> {
        let (name, function) = self.calls().exchange_capture_mode;
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut mode) })?;
        Ok(mode)
    }

    /// Relaxes the calling thread's capture mode until the result is dropped.
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
        // SAFETY: the function takes no arguments.
        self.check(name, unsafe { function() })
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// The kernel is loaded; `parameters` has a pointer to the value of each of its parameters,
    /// and the values are what the kernel expects.
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

    /// Fills memory with `count` copies of a pattern of 1, 2 or 4 bytes.
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

    /// Allocates memory of the current GPU.
    fn allocate(&self, bytes: usize) -> Result<*mut c_void, DriverError> {
        let ((name, function), mut pointer) = (self.calls().allocate, std::ptr::null_mut());
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut pointer, bytes) })?;
        Ok(pointer)
    }

    /// Frees memory. Does nothing if the pointer is null.
    ///
    /// # Safety
    ///
    /// The pointer is from [`allocate`](Self::allocate), and nothing uses the memory any more.
    unsafe fn free(&self, pointer: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().free;
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: by this function's contract.
        self.check(name, unsafe { function(pointer) })
    }

    /// Creates an event of the current GPU, for ordering only.
    fn event(&self) -> Result<*mut c_void, DriverError> {
        let ((name, function), mut event) = (self.calls().event_create, std::ptr::null_mut());
        // SAFETY: the place is valid for the call.
        self.check(name, unsafe { function(&mut event, WITHOUT_TIME) })?;
        Ok(event)
    }

    /// Destroys an event. Does nothing if it is null.
    ///
    /// # Safety
    ///
    /// The event is from [`event`](Self::event), and is not used any more.
    unsafe fn destroy_event(&self, event: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().event_destroy;
        if event.is_null() {
            return Ok(());
        }
        // SAFETY: by this function's contract.
        self.check(name, unsafe { function(event) })
    }

    /// Returns true if all work that an event was recorded behind is done. A failed query counts as
    /// not done.
    fn is_done(&self, event: *mut c_void) -> bool {
        let (_, function) = self.calls().event_query;
        // SAFETY: the event is from `event`.
        unsafe { function(event) == 0 }
    }

    /// Records an event behind all work that is enqueued on a stream.
    fn record(&self, event: *mut c_void, stream: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().event_record;
        // SAFETY: the event is from `event`; the stream is the caller's.
        self.check(name, unsafe { function(event, stream) })
    }

    /// Makes all work that is enqueued on a stream from now on wait for an event.
    fn wait(&self, stream: *mut c_void, event: *mut c_void) -> Result<(), DriverError> {
        let (name, function) = self.calls().stream_wait;
        // SAFETY: as above; there are no flags.
        self.check(name, unsafe { function(stream, event, 0) })
    }

    /// Returns the id of the capture that a stream takes part in, if any.
    fn capture(&self, stream: *mut c_void) -> Result<Option<u64>, DriverError> {
        let ((name, function), mut status, mut id) = (self.calls().capture_info, NOT_CAPTURED, 0);
        let none = std::ptr::null_mut();
        // SAFETY: the places are valid for the call; null results are not written.
        self.check(name, unsafe {
            function(stream, &mut status, &mut id, none, none, none)
        })?;
        Ok((status != NOT_CAPTURED).then_some(id))
    }
}

/// The guards of [`Driver::enter_to_load`], which restore the calling thread's state.
pub(super) type Entered<'a, D> = (Relaxed<'a, D>, <D as Driver>::Current<'a>);

/// Lets the calling thread load code while streams are being captured. Restores the previous
/// capture mode when it is dropped.
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

/// A kernel and its launch dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// The driver's handle of the kernel.
    pub(super) function: Function,
    /// Workgroups in x, y and z.
    pub(super) grid: [u32; 3],
    /// Threads per workgroup in x, y and z.
    pub(super) block: [u32; 3],
    /// Bytes of dynamic shared memory.
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

/// A driver's description of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// The product's name.
    pub(super) name: String,
    /// The architecture, as the vendor spells it.
    pub(super) arch: String,
    /// Number of compute units or multiprocessors.
    pub(super) compute_units: u32,
}

/// Converts an error during the set-up of a driver library. Out of memory is temporary; any other
/// error means that the library can never be used.
pub(super) fn refusal(error: DriverError) -> crate::error::Error {
    if error.out_of_memory {
        crate::error::Error::Driver(error)
    } else {
        crate::error::Error::NoDevice(error.to_string())
    }
}

/// Returns the message of the system's loader, which libloading keeps as the source.
pub(super) fn loader_words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the text of a zero-terminated array.
pub(super) fn text_in(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|&character| character.cast_unsigned())
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
