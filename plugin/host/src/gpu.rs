//! A GPU as a host of the plugin uses it: memory, streams, events and captured graphs, through HIP's library or CUDA's.
//!
//! The two APIs have the same functions under other names, and what is used here has the same arguments: one table serves both. Objects
//! own what they hold and give it back when they are dropped. Every call first makes its device the current one of the calling thread.

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Whose library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// AMD: `libamdhip64.so`.
    Hip,
    /// NVIDIA: `libcuda.so.1`, the driver API.
    Cuda,
}

impl Api {
    fn library(self) -> &'static str {
        match self {
            Api::Hip => "libamdhip64.so",
            Api::Cuda => "libcuda.so.1",
        }
    }
}

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The library cannot be loaded, or lacks a symbol.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's words.
        source: libloading::Error,
    },
    /// A call failed.
    #[error("{function} failed with {name}")]
    Call {
        /// What was called, by HIP's name.
        function: &'static str,
        /// The API's name of the error.
        name: String,
    },
    /// More bytes than the allocation has.
    #[error("bytes {start} to {end} of an allocation of {bytes}")]
    Range {
        /// The first byte.
        start: usize,
        /// One after the last.
        end: usize,
        /// The size of the allocation.
        bytes: usize,
    },
}

type Result<T, E = GpuError> = std::result::Result<T, E>;
type Raw = *mut c_void;

macro_rules! functions {
    ($($field:ident: $hip:literal | $cuda:literal fn($($ty:ty),*);)*) => {
        /// The functions that both APIs have.
        struct Functions { $($field: unsafe extern "C" fn($($ty),*) -> c_int,)* }

        impl Functions {
            /// # Safety
            ///
            /// The library is the API's.
            unsafe fn resolve(library: &Library, api: Api) -> Result<Self, libloading::Error> {
                let name = |hip: &'static str, cuda: &'static str| match api { Api::Hip => hip, Api::Cuda => cuda };
                // SAFETY: the types are those of the API's header, where pointers of the device are as wide as any.
                Ok(unsafe { Functions { $($field: *library.get(name($hip, $cuda))?,)* } })
            }
        }
    };
}

functions! {
    init: "hipInit" | "cuInit" fn(c_uint);
    device_count: "hipGetDeviceCount" | "cuDeviceGetCount" fn(*mut c_int);
    allocate: "hipMalloc" | "cuMemAlloc_v2" fn(*mut Raw, usize);
    free: "hipFree" | "cuMemFree_v2" fn(Raw);
    upload: "hipMemcpyHtoD" | "cuMemcpyHtoD_v2" fn(Raw, *const c_void, usize);
    download: "hipMemcpyDtoH" | "cuMemcpyDtoH_v2" fn(*mut c_void, Raw, usize);
    copy: "hipMemcpyDtoDAsync" | "cuMemcpyDtoDAsync_v2" fn(Raw, Raw, usize, Raw);
    synchronize: "hipDeviceSynchronize" | "cuCtxSynchronize" fn();
    stream_create: "hipStreamCreateWithFlags" | "cuStreamCreate" fn(*mut Raw, c_uint);
    stream_destroy: "hipStreamDestroy" | "cuStreamDestroy_v2" fn(Raw);
    stream_synchronize: "hipStreamSynchronize" | "cuStreamSynchronize" fn(Raw);
    stream_wait: "hipStreamWaitEvent" | "cuStreamWaitEvent" fn(Raw, Raw, c_uint);
    event_create: "hipEventCreateWithFlags" | "cuEventCreate" fn(*mut Raw, c_uint);
    event_destroy: "hipEventDestroy" | "cuEventDestroy_v2" fn(Raw);
    event_record: "hipEventRecord" | "cuEventRecord" fn(Raw, Raw);
    event_synchronize: "hipEventSynchronize" | "cuEventSynchronize" fn(Raw);
    event_elapsed: "hipEventElapsedTime" | "cuEventElapsedTime" fn(*mut f32, Raw, Raw);
    capture_begin: "hipStreamBeginCapture" | "cuStreamBeginCapture_v2" fn(Raw, c_uint);
    capture_end: "hipStreamEndCapture" | "cuStreamEndCapture" fn(Raw, *mut Raw);
    graph_instantiate: "hipGraphInstantiateWithFlags" | "cuGraphInstantiateWithFlags" fn(*mut Raw, Raw, u64);
    graph_launch: "hipGraphLaunch" | "cuGraphLaunch" fn(Raw, Raw);
    graph_destroy: "hipGraphDestroy" | "cuGraphDestroy" fn(Raw);
    graph_executable_destroy: "hipGraphExecDestroy" | "cuGraphExecDestroy" fn(Raw);
}

/// Where the APIs differ: whose device is current, and the names of errors.
enum Dialect {
    Hip {
        set_device: unsafe extern "C" fn(c_int) -> c_int,
        error_name: unsafe extern "C" fn(c_int) -> *const c_char,
    },
    Cuda {
        retain: unsafe extern "C" fn(*mut Raw, c_int) -> c_int,
        set_current: unsafe extern "C" fn(Raw) -> c_int,
        error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    },
}

/// A loaded API.
#[derive(Clone)]
pub struct Driver(Arc<DriverInner>);

struct DriverInner {
    api: Api,
    functions: Functions,
    dialect: Dialect,
    // Never closed: its threads outlive any object here.
    library: std::mem::ManuallyDrop<Library>,
}

impl Driver {
    /// Loads an API from a file, or from where the loader finds it. What is loaded here is also what IREE finds later in this process,
    /// for the loader knows a library by its name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Load`]; [`GpuError::Call`] without a GPU.
    ///
    /// # Safety
    ///
    /// The file is the API's library: its code runs with all rights of this process.
    pub unsafe fn load(api: Api, path: Option<&OsStr>) -> Result<Self> {
        let path = path.unwrap_or(OsStr::new(api.library()));
        let failed = |source| GpuError::Load {
            path: PathBuf::from(path),
            source,
        };
        // An emulator in the place of HIP brings an LLVM of its own, which must not meet another.
        let visibility = match api {
            Api::Hip => RTLD_LOCAL,
            Api::Cuda => RTLD_GLOBAL,
        };
        // SAFETY: by this function's contract; the types are those of the API's headers.
        let (library, functions, dialect) = unsafe {
            let library = Library::open(Some(path), RTLD_NOW | visibility).map_err(failed)?;
            let functions = Functions::resolve(&library, api).map_err(failed)?;
            let dialect = Dialect::resolve(&library, api).map_err(failed)?;
            (library, functions, dialect)
        };
        let driver = Driver(Arc::new(DriverInner {
            api,
            functions,
            dialect,
            library: std::mem::ManuallyDrop::new(library),
        }));
        // SAFETY: takes flags, of which there are none.
        driver.check("hipInit", unsafe { (driver.functions().init)(0) })?;
        Ok(driver)
    }

    /// Whose library it is.
    #[must_use]
    pub fn api(&self) -> Api {
        self.0.api
    }

    /// A function of the library that this module does not know, such as the emulator's own.
    ///
    /// # Errors
    ///
    /// [`GpuError::Load`] if there is none of the name.
    ///
    /// # Safety
    ///
    /// `T` is the function's type.
    pub unsafe fn function<T: Copy>(&self, name: &str) -> Result<T> {
        // SAFETY: by this function's contract.
        unsafe { self.0.library.get::<T>(name) }
            .map(|symbol| *symbol)
            .map_err(|source| GpuError::Load {
                path: self.0.api.library().into(),
                source,
            })
    }

    /// How many GPUs there are.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn devices(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the pointer is valid for a write.
        self.check("hipGetDeviceCount", unsafe {
            (self.functions().device_count)(&mut count)
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// A GPU.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if there is none of the ordinal.
    pub fn gpu(&self, ordinal: usize) -> Result<Gpu> {
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let mut context = std::ptr::null_mut();
        if let Dialect::Cuda { retain, .. } = &self.0.dialect {
            // SAFETY: the pointer is valid for a write. The context is kept until the process ends.
            self.check("cuDevicePrimaryCtxRetain", unsafe { retain(&mut context, ordinal) })?;
        }
        let gpu = Gpu {
            driver: self.clone(),
            ordinal,
            context,
        };
        gpu.select()?;
        Ok(gpu)
    }

    fn functions(&self) -> &Functions {
        &self.0.functions
    }

    fn check(&self, function: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: both take any number; the text is static.
        unsafe {
            match &self.0.dialect {
                Dialect::Hip { error_name, .. } => name = error_name(code),
                Dialect::Cuda { error_name, .. } => {
                    error_name(code, &mut name);
                }
            }
        }
        let name = if name.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: a text with a terminator, by the API.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        Err(GpuError::Call { function, name })
    }
}

impl Dialect {
    /// # Safety
    ///
    /// The library is the API's.
    unsafe fn resolve(library: &Library, api: Api) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those of the API's header.
        unsafe {
            Ok(match api {
                Api::Hip => Dialect::Hip {
                    set_device: *library.get("hipSetDevice")?,
                    error_name: *library.get("hipGetErrorName")?,
                },
                Api::Cuda => Dialect::Cuda {
                    retain: *library.get("cuDevicePrimaryCtxRetain")?,
                    set_current: *library.get("cuCtxSetCurrent")?,
                    error_name: *library.get("cuGetErrorName")?,
                },
            })
        }
    }
}

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
    /// Makes this GPU the current one of the calling thread.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn select(&self) -> Result<()> {
        // SAFETY: the device exists, the context is alive.
        let code = unsafe {
            match &self.driver.0.dialect {
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

// SAFETY: the pointer is a number here; what is behind it is reached through calls that any thread may make.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // A device that has failed has nothing to say that matters now.
        if self.gpu.select().is_ok() {
            // SAFETY: made by `Gpu::create`, given back here alone; work that uses a stream, an event or a graph goes on to its end.
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
        // SAFETY: the graph is alive, the pointer valid for a write. What is instantiated does not need the graph any more.
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
    /// The memory and the code that the captured work uses live until it is done. No two threads launch it at the same time.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive; the rest by this function's contract.
        self.0.gpu.call("hipGraphLaunch", |f| unsafe {
            (f.graph_launch)(self.0.raw, stream.0.raw)
        })
    }
}
