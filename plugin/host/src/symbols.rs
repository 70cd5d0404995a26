//! The functions of a plugin's library and their types, as hipDNN's header declares them.

use libloading::os::unix::Library;
use std::ffi::{c_char, c_void};

/// Borrowed bytes (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ConstData {
    pub(super) ptr: *const c_void,
    pub(super) size: usize,
}

impl ConstData {
    pub(super) fn of(bytes: &[u8]) -> Self {
        ConstData {
            ptr: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

/// One entry of a variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    /// The tensor's uid.
    pub uid: i64,
    /// The tensor's data, in device memory.
    pub ptr: *mut c_void,
}

/// The host's logging callback, with severity and message.
pub type LogCallback = unsafe extern "C" fn(i32, *const c_char);

/// `hipdnnEnginePluginEnumerateCandidates`.
pub(super) type Candidates =
    unsafe extern "C" fn(*mut c_void, *const ConstData, *const ConstData, u64, u64, *mut ConstData) -> i32;
/// `hipdnnEnginePluginGetPrediction`.
pub(super) type GetPrediction =
    unsafe extern "C" fn(*mut c_void, *const ConstData, *const ConstData, i32, i32, *mut ConstData) -> i32;

macro_rules! symbols {
    ($($(#[$doc:meta])* $field:ident: $name:literal fn($($ty:ty),* $(,)?);)*) => {
        #[derive(Clone, Copy)]
        pub(super) struct Symbols {
            $($(#[$doc])* pub(super) $field: unsafe extern "C" fn($($ty),*) -> i32,)*
            pub(super) last_error: unsafe extern "C" fn(*mut *const c_char),
            /// Functions of engine API 1.5.0, which older plugins lack.
            pub(super) candidates: Option<Candidates>,
            pub(super) prediction: Option<GetPrediction>,
        }

        impl Symbols {
            /// # Safety
            ///
            /// The library must be a plugin of this ABI.
            pub(super) unsafe fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the library is a plugin of this ABI, by this function's contract; the
                // types are those of the header.
                unsafe {
                    Ok(Symbols {
                        $($field: *library.get($name)?,)*
                        last_error: *library.get(b"hipdnnPluginGetLastErrorString\0")?,
                        candidates: library
                            .get(b"hipdnnEnginePluginEnumerateCandidates\0")
                            .ok()
                            .map(|symbol| *symbol),
                        prediction: library
                            .get(b"hipdnnEnginePluginGetPrediction\0")
                            .ok()
                            .map(|symbol| *symbol),
                    })
                }
            }
        }
    };
}

symbols! {
    name: b"hipdnnPluginGetName\0" fn(*mut *const c_char);
    version: b"hipdnnPluginGetVersion\0" fn(*mut *const c_char);
    api_version: b"hipdnnPluginGetApiVersion\0" fn(*mut *const c_char);
    kind: b"hipdnnPluginGetType\0" fn(*mut i32);
    set_callback: b"hipdnnPluginSetLoggingCallback\0" fn(Option<LogCallback>);
    set_log_level: b"hipdnnPluginSetLogLevel\0" fn(i32);
    all_ids: b"hipdnnEnginePluginGetAllEngineIds\0" fn(*mut i64, u32, *mut u32);
    engine_name: b"hipdnnEnginePluginGetEngineName\0" fn(i64, *mut *const c_char);
    create: b"hipdnnEnginePluginCreate\0" fn(*mut *mut c_void);
    destroy: b"hipdnnEnginePluginDestroy\0" fn(*mut c_void);
    set_stream: b"hipdnnEnginePluginSetStream\0" fn(*mut c_void, *mut c_void);
    applicable: b"hipdnnEnginePluginGetApplicableEngineIds\0" fn(*mut c_void, *const ConstData, *mut i64, u32, *mut u32);
    details: b"hipdnnEnginePluginGetEngineDetails\0" fn(*mut c_void, i64, *const ConstData, *mut ConstData);
    destroy_details: b"hipdnnEnginePluginDestroyEngineDetails\0" fn(*mut c_void, *mut ConstData);
    workspace: b"hipdnnEnginePluginGetWorkspaceSize\0" fn(*mut c_void, *const ConstData, *const ConstData, *mut usize);
    create_context: b"hipdnnEnginePluginCreateExecutionContext\0"
        fn(*mut c_void, *const ConstData, *const ConstData, *mut *mut c_void);
    destroy_context: b"hipdnnEnginePluginDestroyExecutionContext\0" fn(*mut c_void, *mut c_void);
    context_workspace: b"hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext\0" fn(*mut c_void, *mut c_void, *mut usize);
    serialize: b"hipdnnEnginePluginSerializeExecutionContext\0" fn(*mut c_void, *mut c_void, *mut ConstData);
    serialize_with_id: b"hipdnnEnginePluginSerializeExecutionContextWithEngineId\0"
        fn(*mut c_void, i64, *mut c_void, *mut ConstData);
    destroy_serialized: b"hipdnnEnginePluginDestroySerializedExecutionContext\0" fn(*mut c_void, *mut ConstData);
    context_from_serialized: b"hipdnnEnginePluginCreateExecutionContextFromSerialized\0"
        fn(*mut c_void, *const ConstData, *mut *mut c_void);
    execute: b"hipdnnEnginePluginExecuteOpGraph\0" fn(*mut c_void, *mut c_void, *mut c_void, *const DeviceBuffer, u32);
    execute_with_overrides: b"hipdnnEnginePluginExecuteOpGraphWithOverrides\0"
        fn(*mut c_void, *mut c_void, *mut c_void, *const DeviceBuffer, u32, u32, *const i64, *const u32, *const *const i64, *const *const i64);
}
