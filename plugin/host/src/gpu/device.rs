//! One GPU, and the objects created on it: memory, streams, events and captured graphs.

use super::api::{Dialect, Functions, GpuError, Raw, Result};
use super::driver::Driver;
use std::ffi::{CStr, c_int, c_uint, c_void};

/// One GPU.
#[derive(Clone)]
pub struct Gpu {
    driver: Driver,
    ordinal: c_int,
    /// CUDA's primary context; null with HIP.
    context: Raw,
}

// SAFETY: both APIs allow any thread to use a context or a device; the raw pointer is CUDA's
// context, which is never released.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    pub(super) fn new(driver: Driver, ordinal: c_int, context: Raw) -> Result<Self> {
        let gpu = Gpu {
            driver,
            ordinal,
            context,
        };
        gpu.select()?;
        Ok(gpu)
    }

    /// Makes this GPU the current one of the calling thread.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn select(&self) -> Result<()> {
        // SAFETY: the device exists, and the context is never released.
        let code = unsafe {
            match self.driver.dialect() {
                Dialect::Hip { set_device, .. } => set_device(self.ordinal),
                Dialect::Cuda { set_current, .. } => set_current(self.context),
            }
        };
        self.driver.check("hipSetDevice", code)
    }

    /// Returns the API through which the GPU is used.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the product's name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn name(&self) -> Result<String> {
        const SIZE: u8 = 255;
        // One byte more than the size passed to the driver, so that a terminator always remains.
        let mut name = [0_u8; SIZE as usize + 1];
        let buffer = name.as_mut_ptr().cast();
        // SAFETY: the buffer is larger than the size passed; the device exists.
        self.call("hipDeviceGetName", |f| unsafe {
            (f.device_name)(buffer, c_int::from(SIZE), self.ordinal)
        })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// Calls a function with this GPU as the current one.
    fn call(&self, function: &'static str, call: impl FnOnce(&Functions) -> c_int) -> Result<()> {
        self.select()?;
        self.driver.check(function, call(self.driver.functions()))
    }

    /// Creates an object on this GPU that `destroy` releases.
    fn create(
        &self,
        function: &'static str,
        call: impl FnOnce(&Functions, *mut Raw) -> c_int,
        destroy: impl FnOnce(&Functions) -> Destroy,
    ) -> Result<Owned> {
        let mut raw = std::ptr::null_mut();
        self.call(function, |functions| call(functions, &mut raw))?;
        Ok(Owned {
            gpu: self.clone(),
            raw,
            destroy: destroy(self.driver.functions()),
        })
    }

    /// Allocates device memory, at least one byte.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if there is not enough memory.
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        // SAFETY: the pointer is valid for a write.
        let allocate = |f: &Functions, out| unsafe { (f.allocate)(out, bytes.max(1)) };
        let memory = self.create("hipMalloc", allocate, |f| f.free)?;
        Ok(Allocation { memory, bytes })
    }

    /// Waits until all work on this GPU is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if the call or earlier asynchronous work failed.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the function takes no arguments.
        self.call("hipDeviceSynchronize", |f| unsafe { (f.synchronize)() })
    }

    /// Creates a stream that does not synchronise with the null stream.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn stream(&self) -> Result<Stream> {
        const NON_BLOCKING: c_uint = 1;
        // SAFETY: the pointer is valid for a write.
        let create = |f: &Functions, out| unsafe { (f.stream_create)(out, NON_BLOCKING) };
        self.create("hipStreamCreateWithFlags", create, |f| f.stream_destroy)
            .map(Stream)
    }

    /// Creates an event; if not `timed`, it serves only to order work.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn event(&self, timed: bool) -> Result<Event> {
        const DISABLE_TIMING: c_uint = 2;
        let flags = if timed { 0 } else { DISABLE_TIMING };
        // SAFETY: the pointer is valid for a write.
        let create = |f: &Functions, out| unsafe { (f.event_create)(out, flags) };
        self.create("hipEventCreateWithFlags", create, |f| f.event_destroy)
            .map(Event)
    }
}

/// A function that releases an object of the API.
type Destroy = unsafe extern "C" fn(Raw) -> c_int;

/// An object of the API that is released on drop.
struct Owned {
    gpu: Gpu,
    raw: Raw,
    destroy: Destroy,
}

// SAFETY: the pointer is never dereferenced here; it is only passed to API calls, which any thread
// may make.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // Errors are ignored: if the device has failed, releasing its objects is pointless.
        if self.gpu.select().is_ok() {
            // SAFETY: created by `Gpu::create` and released only here; the API completes pending
            // work that uses a stream, an event or a graph.
            unsafe { (self.destroy)(self.raw) };
        }
    }
}

/// Memory of a GPU.
pub struct Allocation {
    memory: Owned,
    bytes: usize,
}

impl Allocation {
    /// Returns the address in device memory.
    #[must_use]
    pub fn pointer(&self) -> *mut c_void {
        self.memory.raw
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn range(&self, start: usize, length: usize) -> Result<Raw> {
        let end = start.saturating_add(length);
        if end > self.bytes {
            return Err(GpuError::Range {
                start,
                end,
                bytes: self.bytes,
            });
        }
        Ok(self.memory.raw.wrapping_byte_add(start))
    }

    /// Copies bytes to the allocation from `start` on, and returns when the copy is complete.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`] if the range ends beyond the allocation; [`GpuError::Call`] if the copy
    /// fails.
    pub fn write(&self, start: usize, bytes: &[u8]) -> Result<()> {
        let to = self.range(start, bytes.len())?;
        // SAFETY: both sides are valid for the length: the device range was checked, the host slice
        // is borrowed.
        self.memory.gpu.call("hipMemcpyHtoD", |f| unsafe {
            (f.upload)(to, bytes.as_ptr().cast(), bytes.len())
        })?;
        // CUDA's copy returns once pageable memory is staged, and the streams of this crate do not
        // wait for the null stream: without this wait, a late copy could overwrite results.
        // SAFETY: the null stream always exists.
        self.memory.gpu.call("hipStreamSynchronize", |f| unsafe {
            (f.stream_synchronize)(std::ptr::null_mut())
        })
    }

    /// Copies bytes from the allocation, beginning at `start`, after the work of the null stream.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`] if the range ends beyond the allocation; [`GpuError::Call`] if the copy
    /// fails.
    pub fn read(&self, start: usize, bytes: &mut [u8]) -> Result<()> {
        let from = self.range(start, bytes.len())?;
        // SAFETY: both sides are valid for the length: the device range was checked, the host slice
        // is borrowed.
        self.memory.gpu.call("hipMemcpyDtoH", |f| unsafe {
            (f.download)(bytes.as_mut_ptr().cast(), from, bytes.len())
        })
    }
}

/// A stream of a GPU.
pub struct Stream(Owned);

impl Stream {
    /// Returns the API's stream pointer.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.0.raw
    }

    /// Waits until the work of the stream is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if the call or earlier asynchronous work failed.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive, here and in the calls that follow.
        self.0.gpu.call("hipStreamSynchronize", |f| unsafe {
            (f.stream_synchronize)(self.0.raw)
        })
    }

    /// Enqueues a copy of the first `bytes` bytes of an allocation to another.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`] if the range ends beyond an allocation; [`GpuError::Call`] if the copy
    /// cannot be enqueued, or earlier asynchronous work failed.
    ///
    /// # Safety
    ///
    /// Both allocations must live until the copy is done.
    pub unsafe fn copy(&self, to: &Allocation, from: &Allocation, bytes: usize) -> Result<()> {
        let (to, from) = (to.range(0, bytes)?, from.range(0, bytes)?);
        // SAFETY: both ranges were checked, and by this function's contract both allocations live
        // until the copy is done.
        self.0.gpu.call("hipMemcpyDtoDAsync", |f| unsafe {
            (f.copy)(to, from, bytes, self.0.raw)
        })
    }

    /// Makes work that is enqueued later wait for an event.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn wait(&self, event: &Event) -> Result<()> {
        // SAFETY: both are alive.
        self.0.gpu.call("hipStreamWaitEvent", |f| unsafe {
            (f.stream_wait)(self.0.raw, event.0.raw, 0)
        })
    }

    /// Captures the operations that `work` enqueues on this stream, instead of running them.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if an operation cannot be captured; the error of `work`.
    pub fn capture<E: From<GpuError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        const THREAD_LOCAL: c_uint = 1;
        let gpu = &self.0.gpu;
        // SAFETY: the stream is alive.
        gpu.call("hipStreamBeginCapture", |f| unsafe {
            (f.capture_begin)(self.0.raw, THREAD_LOCAL)
        })?;
        let done = work();
        // SAFETY: the pointer is valid for a write.
        let end = |f: &Functions, out| unsafe { (f.capture_end)(self.0.raw, out) };
        let graph = gpu.create("hipStreamEndCapture", end, |f| f.graph_destroy);
        done?;
        let graph = graph?;
        // SAFETY: the graph is alive, the pointer valid for a write. The executable graph does not
        // need the captured one any more.
        let instantiate = |f: &Functions, out| unsafe { (f.graph_instantiate)(out, graph.raw, 0) };
        let executable = gpu.create("hipGraphInstantiateWithFlags", instantiate, |f| {
            f.graph_executable_destroy
        })?;
        Ok(Graph(executable))
    }
}

/// A point in the work of a stream.
pub struct Event(Owned);

impl Event {
    /// Records the event after the work that is on the stream now.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive.
        self.0.gpu.call("hipEventRecord", |f| unsafe {
            (f.event_record)(self.0.raw, stream.0.raw)
        })
    }

    /// Waits until the event is reached.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is alive.
        self.0
            .gpu
            .call("hipEventSynchronize", |f| unsafe { (f.event_synchronize)(self.0.raw) })
    }

    /// Returns the milliseconds from another event to this one.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if one of the events is not timed or not reached.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: both are alive, the pointer is valid for a write.
        self.0.gpu.call("hipEventElapsedTime", |f| unsafe {
            (f.event_elapsed)(&mut milliseconds, start.0.raw, self.0.raw)
        })?;
        Ok(milliseconds)
    }
}

/// Captured work, ready to run again.
pub struct Graph(Owned);

impl Graph {
    /// Enqueues the captured work.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    ///
    /// # Safety
    ///
    /// The memory and the code that the captured work uses must live until the work is done. No two
    /// threads may launch the graph at the same time.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive; the rest by this function's contract.
        self.0.gpu.call("hipGraphLaunch", |f| unsafe {
            (f.graph_launch)(self.0.raw, stream.0.raw)
        })
    }
}
