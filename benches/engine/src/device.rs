//! A GPU, with copies between its buffers and the host.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rotini_host::gpu::{Api, Driver, Gpu, GpuError};
use std::ffi::{OsStr, c_int, c_void};

/// The names of HIP's library, in the order in which they are tried.
const HIP: [&str; 3] = ["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"];

type Upload = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int;
type Download = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int;
type Wait = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The first GPU of an API.
pub(crate) struct Device {
    gpu: Gpu,
    upload: Upload,
    download: Download,
    wait: Wait,
}

impl Device {
    /// Returns the GPU that the environment selects; `None` if it selects the CPU.
    ///
    /// # Errors
    ///
    /// Fails if the selected GPU does not exist.
    pub(crate) fn of_environment() -> Result<Option<Self>, String> {
        let device = std::env::var("ROTINI_DEVICE").unwrap_or_default();
        let (api, library) = match device.as_str() {
            "cpu" => return Ok(None),
            "hip" => (Api::Hip, hip()),
            "cuda" => (Api::Cuda, None),
            "" | "auto" => match hip() {
                Some(library) => (Api::Hip, Some(library)),
                None => return Ok(None),
            },
            other => return Err(format!("ROTINI_DEVICE={other} is no device")),
        };
        Self::load(api, library.as_deref())
            .map(Some)
            .map_err(|error| error.to_string())
    }

    fn load(api: Api, library: Option<&str>) -> Result<Self, GpuError> {
        let [upload, download, wait] = match api {
            Api::Hip => ["hipMemcpyHtoD", "hipMemcpyDtoH", "hipStreamSynchronize"],
            Api::Cuda => ["cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuStreamSynchronize"],
        };
        // SAFETY: the library of this name is the API's, by default or by the environment's word;
        // the types are those of its header, where device pointers have the width of host pointers.
        unsafe {
            let driver = Driver::load(api, library.map(OsStr::new))?;
            Ok(Device {
                gpu: driver.gpu(0)?,
                upload: driver.function(upload)?,
                download: driver.function(download)?,
                wait: driver.function(wait)?,
            })
        }
    }

    fn call(&self, what: &str, call: impl FnOnce() -> c_int) -> Result<(), String> {
        self.gpu.select().map_err(|error| error.to_string())?;
        match call() {
            0 => Ok(()),
            code => Err(format!("{what} failed with error {code} of the GPU's library")),
        }
    }

    /// Waits for the work on a stream.
    ///
    /// # Safety
    ///
    /// The stream must be null, or belong to the device and be alive.
    pub(crate) unsafe fn wait(&self, stream: *mut c_void) -> Result<(), String> {
        // SAFETY: by this function's contract.
        self.call("waiting for the stream", || unsafe { (self.wait)(stream) })
    }

    /// Copies bytes from the device.
    ///
    /// # Safety
    ///
    /// `from` must point to at least `bytes.len()` bytes on the device.
    pub(crate) unsafe fn read(&self, from: *const c_void, bytes: &mut [u8]) -> Result<(), String> {
        // SAFETY: `from` is valid by this function's contract; `bytes` is borrowed mutably.
        self.call("copying from the GPU", || unsafe {
            (self.download)(bytes.as_mut_ptr().cast(), from, bytes.len())
        })
    }

    /// Copies bytes to the device.
    ///
    /// # Safety
    ///
    /// `to` must point to at least `bytes.len()` bytes on the device, which nothing else uses.
    pub(crate) unsafe fn write(&self, to: *mut c_void, bytes: &[u8]) -> Result<(), String> {
        // SAFETY: `to` is valid by this function's contract; `bytes` is borrowed.
        self.call("copying to the GPU", || unsafe {
            (self.upload)(to, bytes.as_ptr().cast(), bytes.len())
        })
    }
}

/// Returns HIP's library: the configured one, or one that is already loaded.
fn hip() -> Option<String> {
    const NO_LOAD: c_int = 4;
    if let Ok(library) = std::env::var("ROTINI_HIP_LIBRARY") {
        return Some(library);
    }
    // SAFETY: RTLD_NOLOAD loads nothing, so no code of the library runs.
    let is_loaded = |name: &str| unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL | NO_LOAD) }.is_ok();
    HIP.into_iter().find(|name| is_loaded(name)).map(str::to_owned)
}
