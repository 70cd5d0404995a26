//! The functions of HIP's and CUDA's libraries, each under one name for both.

use libloading::os::unix::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use thiserror::Error;

/// The vendor's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// AMD: `libamdhip64.so`.
    Hip,
    /// NVIDIA: `libcuda.so.1`, the driver API.
    Cuda,
}

impl Api {
    pub(super) fn library(self) -> &'static str {
        match self {
            Api::Hip => "libamdhip64.so",
            Api::Cuda => "libcuda.so.1",
        }
    }
}

/// An error of a GPU call.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The library cannot be loaded, or lacks a symbol.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's error.
        source: libloading::Error,
    },
    /// A call failed.
    #[error("{function} failed with {name}")]
    Call {
        /// The function, by HIP's name if HIP has it.
        function: &'static str,
        /// The API's name for the error.
        name: String,
    },
    /// An access beyond the end of an allocation.
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

pub(super) type Result<T, E = GpuError> = std::result::Result<T, E>;
pub(super) type Raw = *mut c_void;

macro_rules! functions {
    ($($field:ident: $hip:literal | $cuda:literal fn($($ty:ty),*);)*) => {
        /// The functions that both APIs have.
        pub(super) struct Functions { $(pub(super) $field: unsafe extern "C" fn($($ty),*) -> c_int,)* }

        impl Functions {
            /// # Safety
            ///
            /// The library must be the API's.
            pub(super) unsafe fn resolve(library: &Library, api: Api) -> Result<Self, libloading::Error> {
                let name = |hip: &'static str, cuda: &'static str| match api { Api::Hip => hip, Api::Cuda => cuda };
                // SAFETY: the library is the API's, by this function's contract; the types are
                // those of its header, in which device pointers have the size of host pointers.
                Ok(unsafe { Functions { $($field: *library.get(name($hip, $cuda))?,)* } })
            }
        }
    };
}

functions! {
    init: "hipInit" | "cuInit" fn(c_uint);
    device_name: "hipDeviceGetName" | "cuDeviceGetName" fn(*mut c_char, c_int, c_int);
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

/// The functions that differ between the APIs: selecting the current device, and the names of
/// errors.
pub(super) enum Dialect {
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

impl Dialect {
    /// # Safety
    ///
    /// The library must be the API's.
    pub(super) unsafe fn resolve(library: &Library, api: Api) -> Result<Self, libloading::Error> {
        // SAFETY: the library is the API's, by this function's contract; the types are those of its
        // header.
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
