//! NVIDIA GPUs: the functions of `libcuda.so` that are used here. IREE works in the primary context
//! of a GPU, and so do programs that use CUDA's runtime API, which the caller's streams and
//! pointers come from.

use super::driver::{Calls, Description, Driver, Status, Vendor, loader_words, refusal, text_in};
use super::driver_error::DriverError;
use super::target;
use crate::device::Stream;
use crate::error::Error;
use libloading::os::unix::Library;
use rotini_emit::Target;
use rotini_iree::runtime::{Error as RuntimeError, GpuOptions, HalDevice, Instance};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The name that IREE also uses, then the one that every driver installs.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: c_int = 2;

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSOR_COUNT: c_int = 16;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const CAPABILITY_MAJOR: c_int = 75;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const CAPABILITY_MINOR: c_int = 76;

/// `CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS`.
const PAGEABLE_ACCESS: c_int = 88;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: c_int = 2;

/// `CU_POINTER_ATTRIBUTE_IS_MANAGED`.
const IS_MANAGED: c_int = 8;

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const DEVICE_ORDINAL: c_int = 9;

/// `CU_MEMORYTYPE_DEVICE`: GPU memory, either a GPU's own or managed.
const ON_GPU: c_uint = 2;

type CuContext = *mut c_void;

/// The table of functions. A symbol's name includes the version of its signature.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*);)+) => {
        #[allow(non_snake_case, reason = "CUDA's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> Status,)+
        }

        impl Functions {
            /// # Safety
            ///
            /// The library is a CUDA driver, and stays open as long as the functions are called.
            unsafe fn resolve(library: &Library) -> Result<Self, Error> {
                Ok(Functions {
                    $($name: {
                        // SAFETY: CUDA's header declares the symbol like this.
                        let symbol = unsafe { library.get($symbol) };
                        *symbol.map_err(|_| missing($symbol))?
                    },)+
                })
            }
        }
    };
}

functions! {
    cuInit = "cuInit": fn(c_uint);
    cuDriverGetVersion = "cuDriverGetVersion": fn(*mut c_int);
    cuDeviceGetCount = "cuDeviceGetCount": fn(*mut c_int);
    cuDeviceGet = "cuDeviceGet": fn(*mut c_int, c_int);
    cuDeviceGetName = "cuDeviceGetName": fn(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain": fn(*mut CuContext, c_int);
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2": fn(c_int);
    cuCtxGetCurrent = "cuCtxGetCurrent": fn(*mut CuContext);
    cuCtxPushCurrent = "cuCtxPushCurrent_v2": fn(CuContext);
    cuCtxPopCurrent = "cuCtxPopCurrent_v2": fn(*mut CuContext);
    cuStreamGetCtx = "cuStreamGetCtx": fn(*mut c_void, *mut CuContext);
    cuPointerGetAttribute = "cuPointerGetAttribute": fn(*mut c_void, c_int, u64);
    cuGetErrorName = "cuGetErrorName": fn(Status, *mut *const c_char);
    cuGetErrorString = "cuGetErrorString": fn(Status, *mut *const c_char);
}

fn missing(function: &str) -> Error {
    Error::NoDevice(format!("the CUDA driver has no `{function}`"))
}

/// A GPU's primary context.
struct Primary {
    device: c_int,
    context: CuContext,
}

/// The CUDA driver.
pub(super) struct Cuda {
    functions: Functions,
    calls: Calls,
    name: &'static str,
    /// The primary contexts, by ordinal.
    gpus: Vec<Primary>,
}

// SAFETY: contexts are handles of the driver, which may be used from any thread.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

impl Cuda {
    /// Opens the driver and retains the primary context of each GPU.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is no driver or it finds no GPU.
    pub(super) fn new() -> Result<Self, Error> {
        let mut tried = Vec::new();
        let library = NAMES.into_iter().find_map(|name| {
            // SAFETY: loading a driver runs its initialisers, which using a GPU requires.
            unsafe { Library::new(name) }
                .map_err(|error| tried.push(loader_words(&error)))
                .map(|library| (library, name))
                .ok()
        });
        let (library, name) =
            library.ok_or_else(|| Error::NoDevice(format!("no CUDA driver: {}", tried.join("; "))))?;
        // SAFETY: a library of this name is a CUDA driver, or lacks the functions. It is never
        // closed once the functions are resolved.
        let (functions, calls) = unsafe {
            let functions = Functions::resolve(&library)?;
            (functions, Calls::resolve(&library, Vendor::Cuda).map_err(missing)?)
        };
        // Never closed: the library's threads and exit handlers outlive everything here, and the
        // host uses the library anyway.
        std::mem::forget(library);
        let mut cuda = Cuda {
            functions,
            calls,
            name,
            gpus: Vec::new(),
        };
        let contexts = cuda.retain_contexts();
        contexts.map_err(refusal)?;
        if cuda.gpus.is_empty() {
            return Err(Error::NoDevice("the CUDA driver finds no GPU".to_owned()));
        }
        Ok(cuda)
    }

    fn retain_contexts(&mut self) -> Result<(), DriverError> {
        let mut count = 0;
        // SAFETY: the arguments are those that CUDA's header declares.
        unsafe {
            self.check("cuInit", (self.functions.cuInit)(0))?;
            self.check("cuDeviceGetCount", (self.functions.cuDeviceGetCount)(&mut count))?;
        }
        for ordinal in 0..count {
            let (mut device, mut context) = (0, std::ptr::null_mut());
            // SAFETY: as above; a retained context is released in `drop`.
            unsafe {
                self.check("cuDeviceGet", (self.functions.cuDeviceGet)(&mut device, ordinal))?;
                let status = (self.functions.cuDevicePrimaryCtxRetain)(&mut context, device);
                self.check("cuDevicePrimaryCtxRetain", status)?;
            }
            self.gpus.push(Primary { device, context });
        }
        Ok(())
    }

    fn primary(&self, ordinal: u32) -> Result<&Primary, DriverError> {
        self.gpus.get(ordinal as usize).ok_or_else(|| DriverError {
            function: "cuDeviceGet",
            name: "CUDA_ERROR_INVALID_DEVICE".to_owned(),
            text: format!("there is no GPU {ordinal}"),
            out_of_memory: false,
        })
    }

    fn current(&self) -> Result<CuContext, DriverError> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the place is valid for the call.
        self.check("cuCtxGetCurrent", unsafe {
            (self.functions.cuCtxGetCurrent)(&mut context)
        })?;
        Ok(context)
    }

    fn attribute(&self, attribute: c_int, device: c_int) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: the place is valid for the call.
        let status = unsafe { (self.functions.cuDeviceGetAttribute)(&mut value, attribute, device) };
        self.check("cuDeviceGetAttribute", status)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        for gpu in &self.gpus {
            // SAFETY: each context was retained once, in `retain_contexts`.
            let status = unsafe { (self.functions.cuDevicePrimaryCtxRelease)(gpu.device) };
            if let Err(error) = self.check("cuDevicePrimaryCtxRelease", status) {
                tracing::info!("{error}");
            }
        }
    }
}

/// Restores the previously current context when it is dropped.
pub(super) struct Current<'a>(&'a Cuda);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the place is valid for the call; `enter` has pushed a context.
        let status = unsafe { (self.0.functions.cuCtxPopCurrent)(&mut popped) };
        if let Err(error) = self.0.check("cuCtxPopCurrent", status) {
            tracing::error!("the current context cannot be restored: {error}");
        }
    }
}

impl Driver for Cuda {
    type Current<'a> = Current<'a>;

    fn count(&self) -> u32 {
        u32::try_from(self.gpus.len()).unwrap_or(u32::MAX)
    }

    fn library(&self) -> &str {
        self.name
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }

    #[cold]
    fn error(&self, function: &'static str, status: Status) -> DriverError {
        let text = |get: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = std::ptr::null();
            // SAFETY: the functions accept any number. For an unknown one they leave the place
            // unchanged or write null.
            let known = unsafe { get(status, &mut text) } == 0;
            if !known || text.is_null() {
                return format!("error {status}");
            }
            // SAFETY: not null, and CUDA's texts are static.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        DriverError {
            function,
            name: text(self.functions.cuGetErrorName),
            text: text(self.functions.cuGetErrorString),
            out_of_memory: status == OUT_OF_MEMORY,
        }
    }

    fn device(&self, instance: &Instance, ordinal: u32) -> Result<HalDevice, RuntimeError> {
        let options = GpuOptions {
            ordinal: ordinal as usize,
            ..GpuOptions::default()
        };
        HalDevice::cuda(instance, &options)
    }

    fn describe(&self, ordinal: u32) -> Result<Description, DriverError> {
        let device = self.primary(ordinal)?.device;
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the array has the length that is passed.
        let status = unsafe { (self.functions.cuDeviceGetName)(name.as_mut_ptr(), 256, device) };
        self.check("cuDeviceGetName", status)?;
        let capability = [CAPABILITY_MAJOR, CAPABILITY_MINOR].map(|attribute| self.attribute(attribute, device));
        let [major, minor] = capability;
        Ok(Description {
            name: text_in(&name),
            arch: format!("{}.{}", major?, minor?),
            compute_units: self.attribute(MULTIPROCESSOR_COUNT, device)?,
        })
    }

    fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the place is valid for the call.
        let status = unsafe { (self.functions.cuDriverGetVersion)(&mut version) };
        // If the version cannot be found out, -1 stands for it, so that measurements are not mixed
        // with those of a known version.
        format!("CUDA {}", if status == 0 { version } else { -1 })
    }

    fn target(&self, description: &Description) -> Result<Target, String> {
        let capability = description
            .arch
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor) = capability.ok_or_else(|| format!("'{}' is no compute capability", description.arch))?;
        target::cuda(major, minor)
    }

    fn is_target(target: &Target) -> bool {
        matches!(target, Target::Cuda { .. })
    }

    fn reaches(&self, ordinal: u32, pointer: *mut c_void) -> Result<bool, DriverError> {
        let attribute = |attribute| {
            let mut value: c_uint = 0;
            // SAFETY: the attributes are numbers of this size, or one byte; the pointer is only
            // looked up.
            let status = unsafe {
                (self.functions.cuPointerGetAttribute)((&raw mut value).cast(), attribute, pointer.addr() as u64)
            };
            (status == 0).then_some(value)
        };
        // For memory that it does not know, CUDA reports an invalid value. All known memory except
        // a GPU's own has the same address on the host and on the GPUs.
        match attribute(MEMORY_TYPE) {
            Some(ON_GPU) if attribute(IS_MANAGED) == Some(0) => return Ok(attribute(DEVICE_ORDINAL) == Some(ordinal)),
            Some(_) => return Ok(true),
            None => {}
        }
        Ok(self.attribute(PAGEABLE_ACCESS, self.primary(ordinal)?.device)? != 0)
    }

    fn stream_ordinal(&self, stream: *mut c_void) -> Result<u32, DriverError> {
        if self.gpus.len() == 1 {
            return Ok(0);
        }
        let context = if stream.is_null() {
            self.current()?
        } else {
            let mut context = std::ptr::null_mut();
            // SAFETY: the stream is the caller's, and the place valid for the call.
            self.check("cuStreamGetCtx", unsafe {
                (self.functions.cuStreamGetCtx)(stream, &mut context)
            })?;
            context
        };
        // A thread without a current context would use the first GPU.
        if context.is_null() {
            return Ok(0);
        }
        let ordinal = self.gpus.iter().position(|gpu| gpu.context == context);
        ordinal
            .and_then(|ordinal| u32::try_from(ordinal).ok())
            .ok_or_else(|| DriverError {
                function: "cuStreamGetCtx",
                name: "CUDA_ERROR_INVALID_CONTEXT".to_owned(),
                text: "the stream is in no GPU's primary context".to_owned(),
                out_of_memory: false,
            })
    }

    fn enter(&self, ordinal: u32) -> Result<Current<'_>, DriverError> {
        let context = self.primary(ordinal)?.context;
        // SAFETY: the context is retained.
        self.check("cuCtxPushCurrent", unsafe {
            (self.functions.cuCtxPushCurrent)(context)
        })?;
        Ok(Current(self))
    }

    fn enter_for(&self, stream: Stream) -> Result<Option<Current<'_>>, DriverError> {
        // A launch happens in the current context, and a thread may have none.
        if self.current()? == self.primary(stream.ordinal)?.context {
            return Ok(None);
        }
        self.enter(stream.ordinal).map(Some)
    }
}
