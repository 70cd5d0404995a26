//! One GPU, and what is made on it: memory, streams, events and captured graphs.

use super::api::{Dialect, Functions, GpuError, Raw, Result};
use super::driver::Driver;
use std::ffi::{CStr, c_int, c_uint, c_void};

/// One GPU.
#[derive(Clone)]
pub struct Gpu {
    driver: Driver,
    ordinal: c_int,
    /// CUDA's primary context.
    context: Raw,
}

// SAFETY: a context is used from any thread, as is everything of HIP's.
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
        // SAFETY: the device exists, the context is alive.
        let code = unsafe {
            match self.driver.dialect() {
                Dialect::Hip { set_device, .. } => set_device(self.ordinal),
                Dialect::Cuda { set_current, .. } => set_current(self.context),
            }
        };
        self.driver.check("hipSetDevice", code)
    }

    /// The API.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The product's name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn name(&self) -> Result<String> {
        const SIZE: u8 = 255;
        // One byte more than the driver is given, so that there is always a terminator.
        let mut name = [0_u8; SIZE as usize + 1];
        let buffer = name.as_mut_ptr().cast();
        // SAFETY: the buffer has more bytes than the given size; the device exists.
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

    /// Makes something on this GPU that `destroy` gives back.
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

    /// Device memory, at least one byte.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] without enough of it.
    pub fn allocate(&self, bytes: usize) -> Result<Allocation> {
        // SAFETY: the pointer is valid for a write.
        let allocate = |f: &Functions, out| unsafe { (f.allocate)(out, bytes.max(1)) };
        let memory = self.create("hipMalloc", allocate, |f| f.free)?;
        Ok(Allocation { memory, bytes })
    }

    /// Waits for all work of this GPU.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`], also for work that failed.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: takes nothing.
        self.call("hipDeviceSynchronize", |f| unsafe { (f.synchronize)() })
    }

    /// A stream that does not wait for the null stream.
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

    /// An event, with a time unless it is only for order.
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

/// Gives back something of the API's.
type Destroy = unsafe extern "C" fn(Raw) -> c_int;

/// Something of the API's that is given back when it is dropped.
struct Owned {
    gpu: Gpu,
    raw: Raw,
    destroy: Destroy,
}

// SAFETY: the pointer is a number here; what is behind it is reached through calls that any thread
// may make.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // A device that has failed has nothing to say that matters now.
        if self.gpu.select().is_ok() {
            // SAFETY: made by `Gpu::create`, given back here alone; work that uses a stream, an
            // event or a graph goes on to its end.
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
    /// Its address on the device.
    #[must_use]
    pub fn pointer(&self) -> *mut c_void {
        self.memory.raw
    }

    /// Its size.
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

    /// Copies bytes here and returns when they are there.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`]; [`GpuError::Call`].
    pub fn write(&self, start: usize, bytes: &[u8]) -> Result<()> {
        let to = self.range(start, bytes.len())?;
        // SAFETY: both are valid for the length: checked, and borrowed.
        self.memory.gpu.call("hipMemcpyHtoD", |f| unsafe {
            (f.upload)(to, bytes.as_ptr().cast(), bytes.len())
        })?;
        // CUDA returns once pageable memory is staged, and streams of this crate do not wait for
        // the null stream: without this wait, late bytes overwrite results.
        // SAFETY: the null stream is always there.
        self.memory.gpu.call("hipStreamSynchronize", |f| unsafe {
            (f.stream_synchronize)(std::ptr::null_mut())
        })
    }

    /// Copies bytes from here, when the work of the null stream is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`]; [`GpuError::Call`].
    pub fn read(&self, start: usize, bytes: &mut [u8]) -> Result<()> {
        let from = self.range(start, bytes.len())?;
        // SAFETY: both are valid for the length: checked, and borrowed.
        self.memory.gpu.call("hipMemcpyDtoH", |f| unsafe {
            (f.download)(bytes.as_mut_ptr().cast(), from, bytes.len())
        })
    }
}

/// A stream of a GPU.
pub struct Stream(Owned);

impl Stream {
    /// The API's stream.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.0.raw
    }

    /// Waits for its work.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`], also for work that failed.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive, here and in the calls that follow.
        self.0.gpu.call("hipStreamSynchronize", |f| unsafe {
            (f.stream_synchronize)(self.0.raw)
        })
    }

    /// Enqueues a copy of the first `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`GpuError::Range`]; [`GpuError::Call`].
    ///
    /// # Safety
    ///
    /// Both live until the copy is done.
    pub unsafe fn copy(&self, to: &Allocation, from: &Allocation, bytes: usize) -> Result<()> {
        let (to, from) = (to.range(0, bytes)?, from.range(0, bytes)?);
        // SAFETY: both are valid for the length, and by this function's contract for long enough.
        self.0.gpu.call("hipMemcpyDtoDAsync", |f| unsafe {
            (f.copy)(to, from, bytes, self.0.raw)
        })
    }

    /// Lets what follows wait for an event.
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

    /// Records what `work` enqueues on this stream instead of running it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if something cannot be captured; the error of `work`.
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
        // SAFETY: the graph is alive, the pointer valid for a write. What is instantiated does not
        // need the graph any more.
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
    /// Puts it after what is on the stream now.
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

    /// Waits until it is reached.
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

    /// Milliseconds from another event to this one.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if one of them is not timed or not reached.
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
    /// The memory and the code that the captured work uses live until it is done. No two threads
    /// launch it at the same time.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive; the rest by this function's contract.
        self.0.gpu.call("hipGraphLaunch", |f| unsafe {
            (f.graph_launch)(self.0.raw, stream.0.raw)
        })
    }
}
