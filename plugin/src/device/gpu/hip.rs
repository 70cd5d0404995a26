//! AMD GPUs: the functions of `libamdhip64.so` that are used here, resolved when a device is first
//! requested.
//!
//! The library has to be the one that the caller's streams and pointers come from. A library that
//! is loaded already is preferred, whatever its version; otherwise `libamdhip64.so` is opened as
//! the system finds it. IREE's driver gets the same name.

use super::driver::{Calls, Description, Driver, Status, Vendor, loader_words, refusal, text_in};
use super::driver_error::DriverError;
use super::target;
use crate::device::Stream;
use crate::error::Error;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rotini_emit::Target;
use rotini_iree::runtime::{Error as RuntimeError, GpuOptions, HalDevice, Instance};
use rotini_iree::sys::hip::hipDeviceProp_tR0600;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Names under which a supported version of the HIP runtime may be loaded.
const NAMES: [&str; 3] = ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"];

/// `RTLD_NOLOAD`: opens a library only if it is loaded already.
const NO_LOAD: c_int = 4;

/// `hipErrorOutOfMemory`.
const OUT_OF_MEMORY: c_int = 2;

/// The last of the special stream handles, which stand for a stream of the calling thread's current
/// device: null and `hipStreamLegacy` for its default stream, `hipStreamPerThread` for the thread's
/// own stream.
const LAST_IMPLICIT: usize = 2;

/// `hipMemoryTypeUnregistered`: memory that HIP does not know.
const UNREGISTERED: c_int = 0;

/// `hipMemoryTypeDevice`: the memory of a GPU.
const ON_GPU: c_int = 2;

/// `hipMemoryTypeHost`: pinned memory, or host memory that was registered.
const ON_HOST: c_int = 1;

/// `hipPointerAttribute_t`, since HIP 6.
#[repr(C)]
struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
    is_managed: c_int,
    flags: c_uint,
}

/// The table of functions.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)+) => {
        #[allow(non_snake_case, reason = "HIP's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)+
        }

        impl Functions {
            /// # Safety
            ///
            /// The library is a HIP runtime, and stays open as long as the functions are called.
            unsafe fn resolve(library: &Library) -> Result<Self, Error> {
                Ok(Functions {
                    $($name: {
                        // SAFETY: HIP's header declares the function like this.
                        let symbol = unsafe { library.get(stringify!($name)) };
                        *symbol.map_err(|_| missing(stringify!($name)))?
                    },)+
                })
            }
        }
    };
}

functions! {
    hipInit: fn(c_uint) -> Status;
    hipGetDeviceCount: fn(*mut c_int) -> Status;
    hipGetDevice: fn(*mut c_int) -> Status;
    hipSetDevice: fn(c_int) -> Status;
    hipGetDevicePropertiesR0600: fn(*mut hipDeviceProp_tR0600, c_int) -> Status;
    hipStreamGetDevice: fn(*mut c_void, *mut c_int) -> Status;
    hipPointerGetAttributes: fn(*mut PointerAttributes, *const c_void) -> Status;
    hipRuntimeGetVersion: fn(*mut c_int) -> Status;
    hipGetErrorName: fn(Status) -> *const c_char;
    hipGetErrorString: fn(Status) -> *const c_char;
}

fn missing(function: &str) -> Error {
    Error::NoDevice(format!(
        "the HIP library has no `{function}`: version 6 or newer is needed"
    ))
}

/// The HIP runtime.
pub(super) struct Hip {
    functions: Functions,
    calls: Calls,
    /// The name under which IREE opens the same library.
    name: String,
    count: u32,
    /// Whether the library is this project's emulator, whose run times mean nothing.
    is_emulated: bool,
}

impl Hip {
    /// Opens the library and counts its devices.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if there is no library, if it is too old or not a HIP runtime, or if it
    /// finds no GPU.
    pub(super) fn new(library: Option<&str>) -> Result<Self, Error> {
        let (library, name) = open(library)?;
        // SAFETY: a library of this name is a HIP runtime, or lacks the functions. It is never
        // closed once the functions are resolved.
        let (functions, calls) = unsafe {
            let functions = Functions::resolve(&library)?;
            (functions, Calls::resolve(&library, Vendor::Hip).map_err(missing)?)
        };
        // SAFETY: the symbol is only looked up, not used.
        let is_emulated = unsafe { library.get::<*const ()>(b"hipemu_set") }.is_ok();
        // Never closed: the library's threads and exit handlers outlive everything here, and the
        // host uses the library anyway.
        std::mem::forget(library);
        let mut hip = Hip {
            functions,
            calls,
            name,
            count: 0,
            is_emulated,
        };
        let mut count = 0;
        // SAFETY: the arguments are those that HIP's header declares.
        let counted = unsafe {
            hip.check("hipInit", (hip.functions.hipInit)(0))
                .and_then(|()| hip.check("hipGetDeviceCount", (hip.functions.hipGetDeviceCount)(&mut count)))
        };
        counted.map_err(refusal)?;
        hip.count = u32::try_from(count).unwrap_or(0);
        if hip.count == 0 {
            return Err(Error::NoDevice("the HIP library finds no GPU".to_owned()));
        }
        Ok(hip)
    }

    fn current(&self) -> Result<c_int, DriverError> {
        let mut ordinal = 0;
        // SAFETY: the place is valid for the call.
        self.check("hipGetDevice", unsafe { (self.functions.hipGetDevice)(&mut ordinal) })?;
        Ok(ordinal)
    }

    fn properties(&self, ordinal: u32) -> Result<Box<hipDeviceProp_tR0600>, DriverError> {
        let mut properties = Box::<hipDeviceProp_tR0600>::default();
        // SAFETY: this version of the function writes this version of the structure.
        let status = unsafe { (self.functions.hipGetDevicePropertiesR0600)(&mut *properties, ordinal as c_int) };
        self.check("hipGetDeviceProperties", status)?;
        Ok(properties)
    }

    fn set_current(&self, ordinal: c_int) -> Result<(), DriverError> {
        // SAFETY: the function accepts any number.
        self.check("hipSetDevice", unsafe { (self.functions.hipSetDevice)(ordinal) })
    }
}

/// Opens the requested library, or searches for one. Returns it with the name that opens it again.
fn open(wanted: Option<&str>) -> Result<(Library, String), Error> {
    // SAFETY: loading a HIP runtime runs its initialisers, which using a GPU requires.
    let open = |name: &str, flags| unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | flags) };
    if let Some(name) = wanted {
        return match open(name, 0) {
            Ok(library) => Ok((library, name.to_owned())),
            Err(error) => Err(Error::NoDevice(format!(
                "ROTINI_HIP_LIBRARY={name}: {}",
                loader_words(&error)
            ))),
        };
    }
    let loaded = NAMES.iter().map(|name| (name, NO_LOAD));
    let found = NAMES.iter().map(|name| (name, 0));
    let mut tried = Vec::new();
    for (name, flags) in loaded.chain(found) {
        match open(name, flags) {
            Ok(library) => return Ok((library, (*name).to_owned())),
            Err(error) if flags == 0 => tried.push(loader_words(&error)),
            Err(_) => {}
        }
    }
    Err(Error::NoDevice(format!("no HIP library: {}", tried.join("; "))))
}

/// Restores the previously current device when it is dropped.
pub(super) struct Current<'a>(Option<(&'a Hip, c_int)>);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some((hip, before)) = self.0
            && let Err(error) = hip.set_current(before)
        {
            tracing::error!("the current device cannot be restored: {error}");
        }
    }
}

impl Driver for Hip {
    type Current<'a> = Current<'a>;

    fn count(&self) -> u32 {
        self.count
    }

    fn library(&self) -> &str {
        &self.name
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }

    #[cold]
    fn error(&self, function: &'static str, status: Status) -> DriverError {
        let text = |pointer: *const c_char| {
            if pointer.is_null() {
                return format!("error {status}");
            }
            // SAFETY: not null, and HIP's texts are static.
            unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
        };
        // SAFETY: both functions accept any number.
        let (name, description) = unsafe {
            (
                (self.functions.hipGetErrorName)(status),
                (self.functions.hipGetErrorString)(status),
            )
        };
        DriverError {
            function,
            name: text(name),
            text: text(description),
            out_of_memory: status == OUT_OF_MEMORY,
        }
    }

    fn device(&self, instance: &Instance, ordinal: u32) -> Result<HalDevice, RuntimeError> {
        let options = GpuOptions {
            ordinal: ordinal as usize,
            library: Some(self.name.clone()),
        };
        HalDevice::hip(instance, &options)
    }

    fn describe(&self, ordinal: u32) -> Result<Description, DriverError> {
        let properties = self.properties(ordinal)?;
        Ok(Description {
            name: text_in(&properties.name),
            arch: text_in(&properties.gcnArchName),
            compute_units: u32::try_from(properties.multiProcessorCount).unwrap_or(0),
        })
    }

    fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the place is valid for the call.
        let status = unsafe { (self.functions.hipRuntimeGetVersion)(&mut version) };
        // If the version cannot be found out, -1 stands for it, so that measurements are not mixed
        // with those of a known version.
        let version = if status == 0 { version } else { -1 };
        let emulated = if self.is_emulated { ", emulated" } else { "" };
        format!("HIP {version}{emulated}")
    }

    fn target(&self, description: &Description) -> Result<Target, String> {
        target::rocm(&description.name, &description.arch, description.compute_units)
    }

    fn is_target(target: &Target) -> bool {
        matches!(target, Target::Rocm { .. })
    }

    fn reaches(&self, ordinal: u32, pointer: *mut c_void) -> Result<bool, DriverError> {
        let mut attributes = PointerAttributes {
            kind: UNREGISTERED,
            device: 0,
            device_pointer: std::ptr::null_mut(),
            host_pointer: std::ptr::null_mut(),
            is_managed: 0,
            flags: 0,
        };
        // SAFETY: the place is valid for the call; the pointer is only looked up.
        let status = unsafe { (self.functions.hipPointerGetAttributes)(&mut attributes, pointer) };
        // For memory that it does not know, HIP 6 reports `hipMemoryTypeUnregistered`, and other
        // versions report an invalid value.
        let is_known = status == 0 && attributes.kind != UNREGISTERED;
        if is_known && attributes.kind == ON_GPU {
            return Ok(u32::try_from(attributes.device) == Ok(ordinal));
        }
        if is_known && (attributes.kind != ON_HOST || attributes.device_pointer == pointer) {
            return Ok(true);
        }
        // Some GPUs can access all memory of the process.
        Ok(self.properties(ordinal)?.pageableMemoryAccess != 0)
    }

    fn stream_ordinal(&self, stream: *mut c_void) -> Result<u32, DriverError> {
        if self.count == 1 {
            return Ok(0);
        }
        let ordinal = if is_implicit(stream) {
            self.current()?
        } else {
            let mut ordinal = 0;
            // SAFETY: the stream is the caller's, and the place valid for the call.
            let status = unsafe { (self.functions.hipStreamGetDevice)(stream, &mut ordinal) };
            self.check("hipStreamGetDevice", status)?;
            ordinal
        };
        // HIP's ordinals are not negative.
        Ok(u32::try_from(ordinal).unwrap_or(0))
    }

    fn enter(&self, ordinal: u32) -> Result<Current<'_>, DriverError> {
        if self.count == 1 {
            return Ok(Current(None));
        }
        let (before, wanted) = (self.current()?, ordinal as c_int);
        // The guard restores the device even if it is current already, because code that runs
        // meanwhile may change it.
        if before != wanted {
            self.set_current(wanted)?;
        }
        Ok(Current(Some((self, before))))
    }

    fn enter_for(&self, stream: Stream) -> Result<Option<Current<'_>>, DriverError> {
        // Any other stream determines its device.
        if self.count == 1 || !is_implicit(stream.pointer) || self.current()? == stream.ordinal as c_int {
            return Ok(None);
        }
        self.enter(stream.ordinal).map(Some)
    }
}

/// Returns true if the current device determines which stream a handle stands for.
fn is_implicit(stream: *mut c_void) -> bool {
    stream.addr() <= LAST_IMPLICIT
}
