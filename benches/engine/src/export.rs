//! The exported symbols of a plugin.

/// Turns a crate into a plugin's library: exports every function of the engine plugin ABI for one
/// [`Engine`](crate::Engine).
#[macro_export]
macro_rules! export_engine {
    ($engine:ty) => {
        $crate::export_engine! { @functions $engine;
            hipdnnPluginGetName => name(text: *mut *const ::std::ffi::c_char);
            hipdnnPluginGetVersion => version(text: *mut *const ::std::ffi::c_char);
            hipdnnPluginGetApiVersion => api_version(text: *mut *const ::std::ffi::c_char);
            hipdnnPluginGetType => kind(kind: *mut i32);
            hipdnnPluginSetLoggingCallback => set_callback(callback: ::std::option::Option<$crate::abi::LogCallback>);
            hipdnnPluginSetLogLevel => set_log_level(severity: i32);
            hipdnnEnginePluginGetAllEngineIds => all_ids(ids: *mut i64, max: u32, count: *mut u32);
            hipdnnEnginePluginGetEngineName => engine_name(id: i64, text: *mut *const ::std::ffi::c_char);
            hipdnnEnginePluginCreate => create(handle: *mut *mut $crate::abi::Handle<$engine>);
            hipdnnEnginePluginDestroy => destroy(handle: *mut $crate::abi::Handle<$engine>);
            hipdnnEnginePluginSetStream => set_stream(
                handle: *const $crate::abi::Handle<$engine>, stream: *mut ::std::ffi::c_void);
            hipdnnEnginePluginGetApplicableEngineIds => applicable(
                handle: *const $crate::abi::Handle<$engine>, graph: *const $crate::abi::Bytes,
                ids: *mut i64, max: u32, count: *mut u32);
            hipdnnEnginePluginGetEngineDetails => details(
                handle: *const $crate::abi::Handle<$engine>, id: i64, graph: *const $crate::abi::Bytes,
                details: *mut $crate::abi::Bytes);
            hipdnnEnginePluginDestroyEngineDetails => destroy_details(
                handle: *const $crate::abi::Handle<$engine>, details: *mut $crate::abi::Bytes);
            hipdnnEnginePluginGetWorkspaceSize => workspace(
                handle: *const $crate::abi::Handle<$engine>, config: *const $crate::abi::Bytes,
                graph: *const $crate::abi::Bytes, size: *mut usize);
            hipdnnEnginePluginCreateExecutionContext => create_context(
                handle: *const $crate::abi::Handle<$engine>, config: *const $crate::abi::Bytes,
                graph: *const $crate::abi::Bytes, context: *mut *mut $crate::abi::Context);
            hipdnnEnginePluginDestroyExecutionContext => destroy_context(
                handle: *const $crate::abi::Handle<$engine>, context: *mut $crate::abi::Context);
            hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext => context_workspace(
                handle: *const $crate::abi::Handle<$engine>, context: *const $crate::abi::Context, size: *mut usize);
            hipdnnEnginePluginSerializeExecutionContext => serialize(
                handle: *const $crate::abi::Handle<$engine>, context: *const $crate::abi::Context,
                bytes: *mut $crate::abi::Bytes);
            hipdnnEnginePluginSerializeExecutionContextWithEngineId => serialize_with_id(
                handle: *const $crate::abi::Handle<$engine>, id: i64, context: *const $crate::abi::Context,
                bytes: *mut $crate::abi::Bytes);
            hipdnnEnginePluginDestroySerializedExecutionContext => destroy_serialized(
                handle: *const $crate::abi::Handle<$engine>, bytes: *mut $crate::abi::Bytes);
            hipdnnEnginePluginCreateExecutionContextFromSerialized => context_from_serialized(
                handle: *const $crate::abi::Handle<$engine>, bytes: *const $crate::abi::Bytes,
                context: *mut *mut $crate::abi::Context);
            hipdnnEnginePluginExecuteOpGraph => execute(
                handle: *const $crate::abi::Handle<$engine>, context: *const $crate::abi::Context,
                workspace: *mut ::std::ffi::c_void, buffers: *const $crate::abi::DeviceBuffer, count: u32);
            hipdnnEnginePluginExecuteOpGraphWithOverrides => execute_with_overrides(
                handle: *const $crate::abi::Handle<$engine>, context: *const $crate::abi::Context,
                workspace: *mut ::std::ffi::c_void, buffers: *const $crate::abi::DeviceBuffer, count: u32,
                overrides: u32, uids: *const i64, ranks: *const u32, shapes: *const *const i64,
                strides: *const *const i64);
        }

        /// Returns the text of this thread's last error.
        ///
        /// # Safety
        ///
        /// `text` must be null or valid for a write.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hipdnnPluginGetLastErrorString(text: *mut *const ::std::ffi::c_char) {
            // SAFETY: by this function's contract.
            unsafe { $crate::abi::last_error(text) }
        }
    };
    (@functions $engine:ty; $($symbol:ident => $body:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        $(
            #[doc = concat!("See [`", stringify!($body), "`](", stringify!($crate), "::abi::", stringify!($body), ").")]
            ///
            /// # Safety
            ///
            /// The contract of hipDNN's header: pointers are null or valid; handles and contexts
            /// were created by this plugin and are alive.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $symbol($($argument: $type),*) -> i32 {
                // SAFETY: by this function's contract.
                unsafe { $crate::abi::$body::<$engine>($($argument),*) }
            }
        )*
    };
}
