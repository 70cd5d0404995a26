//! The functions of an engine plugin, as hipDNN's headers declare them and its loader resolves them.

use super::HostError;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_void};

/// Bytes of either side (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ConstData {
    pub(super) pointer: *const c_void,
    pub(super) size: usize,
}

impl ConstData {
    pub(super) const EMPTY: ConstData = ConstData { pointer: std::ptr::null(), size: 0 };

    pub(super) fn of(bytes: &[u8]) -> Self {
        ConstData { pointer: bytes.as_ptr().cast(), size: bytes.len() }
    }
}

/// One entry of a variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct DeviceBuffer {
    pub(crate) uid: i64,
    pub(crate) pointer: *mut c_void,
}

/// `hipdnnEnginePluginHandle_t`.
pub(super) type HandlePointer = *mut c_void;
/// `hipdnnEnginePluginExecutionContext_t`.
pub(super) type ContextPointer = *mut c_void;
/// `hipdnnCallback_t`.
pub(super) type LogCallback = extern "C" fn(i32, *const c_char);

macro_rules! api {
    ($($field:ident = $symbol:literal: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        /// The functions of a loaded plugin. They are valid for as long as its library is open.
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Api {
            /// Resolves every function.
            ///
            /// # Errors
            ///
            /// [`HostError::Symbol`] for the first that is missing.
            ///
            /// # Safety
            ///
            /// The library's functions of these names have the types that hipDNN's headers declare.
            pub(super) unsafe fn resolve(library: &Library) -> Result<Self, HostError> {
                Ok(Api {
                    $(
                        // SAFETY: the type is the header's, and so is the function's by this function's contract.
                        $field: *unsafe { library.get($symbol) }.map_err(missing($symbol))?,
                    )+
                })
            }
        }
    };
}

fn missing(symbol: &'static CStr) -> impl FnOnce(libloading::Error) -> HostError {
    move |source| HostError::Symbol { symbol: symbol.to_string_lossy().into_owned(), source }
}

api! {
    plugin_name = c"hipdnnPluginGetName": fn(*mut *const c_char) -> i32;
    plugin_version = c"hipdnnPluginGetVersion": fn(*mut *const c_char) -> i32;
    plugin_api_version = c"hipdnnPluginGetApiVersion": fn(*mut *const c_char) -> i32;
    plugin_type = c"hipdnnPluginGetType": fn(*mut i32) -> i32;
    last_error = c"hipdnnPluginGetLastErrorString": fn(*mut *const c_char);
    set_logging_callback = c"hipdnnPluginSetLoggingCallback": fn(LogCallback) -> i32;
    set_log_level = c"hipdnnPluginSetLogLevel": fn(i32) -> i32;
    all_engine_ids = c"hipdnnEnginePluginGetAllEngineIds": fn(*mut i64, u32, *mut u32) -> i32;
    engine_name = c"hipdnnEnginePluginGetEngineName": fn(i64, *mut *const c_char) -> i32;
    create = c"hipdnnEnginePluginCreate": fn(*mut HandlePointer) -> i32;
    destroy = c"hipdnnEnginePluginDestroy": fn(HandlePointer) -> i32;
    applicable_engine_ids = c"hipdnnEnginePluginGetApplicableEngineIds":
        fn(HandlePointer, *const ConstData, *mut i64, u32, *mut u32) -> i32;
    engine_details = c"hipdnnEnginePluginGetEngineDetails":
        fn(HandlePointer, i64, *const ConstData, *mut ConstData) -> i32;
    destroy_engine_details = c"hipdnnEnginePluginDestroyEngineDetails": fn(HandlePointer, *mut ConstData) -> i32;
    workspace_size = c"hipdnnEnginePluginGetWorkspaceSize":
        fn(HandlePointer, *const ConstData, *const ConstData, *mut usize) -> i32;
    create_context = c"hipdnnEnginePluginCreateExecutionContext":
        fn(HandlePointer, *const ConstData, *const ConstData, *mut ContextPointer) -> i32;
    destroy_context = c"hipdnnEnginePluginDestroyExecutionContext": fn(HandlePointer, ContextPointer) -> i32;
    context_workspace_size = c"hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext":
        fn(HandlePointer, ContextPointer, *mut usize) -> i32;
    execute = c"hipdnnEnginePluginExecuteOpGraph":
        fn(HandlePointer, ContextPointer, *mut c_void, *const DeviceBuffer, u32) -> i32;
}
