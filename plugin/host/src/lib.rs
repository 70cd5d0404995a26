//! hipDNN's side of the plugin ABI: loads a plugin's shared library as a host does and drives it, for the `rotini` command, tests and
//! benches.
//!
//! It shares no code with the plugin: types and symbols are declared here again, from the header's facts, so that a mistake on one
//! side does not cancel itself on the other.

pub mod gpu;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Bytes handed over (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ConstData {
    ptr: *const c_void,
    size: usize,
}

impl ConstData {
    fn of(bytes: &[u8]) -> Self {
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
    /// Its data, in the device's memory.
    pub ptr: *mut c_void,
}

/// Another shape of a tensor in one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeOverride {
    /// The tensor's uid.
    pub uid: i64,
    /// Its extents. The ABI has one rank for these and the strides.
    pub dims: Vec<i64>,
    /// Its strides in elements.
    pub strides: Vec<i64>,
}

/// The host's logging function: severity and message.
pub type LogCallback = unsafe extern "C" fn(i32, *const c_char);

/// What the plugin answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The library cannot be loaded, or lacks a symbol.
    #[error("cannot load {path}: {source}")]
    Load {
        /// The library.
        path: PathBuf,
        /// The loader's words.
        source: libloading::Error,
    },
    /// A call did not succeed.
    #[error("{function} answered {status}: {text}")]
    Status {
        /// The function.
        function: &'static str,
        /// Its status.
        status: i32,
        /// The plugin's text of the error.
        text: String,
    },
    /// A call succeeded and broke the protocol.
    #[error("{function} succeeded, but {what}")]
    Protocol {
        /// The function.
        function: &'static str,
        /// What was wrong.
        what: String,
    },
}

macro_rules! symbols {
    ($($(#[$doc:meta])* $field:ident: $name:literal fn($($ty:ty),* $(,)?);)*) => {
        #[derive(Clone, Copy)]
        struct Symbols {
            $($(#[$doc])* $field: unsafe extern "C" fn($($ty),*) -> i32,)*
            last_error: unsafe extern "C" fn(*mut *const c_char),
        }

        impl Symbols {
            /// # Safety
            ///
            /// The library is a plugin of this ABI.
            unsafe fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of the header.
                unsafe {
                    Ok(Symbols {
                        $($field: *library.get($name)?,)*
                        last_error: *library.get(b"hipdnnPluginGetLastErrorString\0")?,
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

/// A loaded plugin.
#[derive(Clone)]
pub struct Plugin(Arc<Inner>);

struct Inner {
    symbols: Symbols,
    // Closed last: the functions are in it.
    _library: Library,
}

impl Plugin {
    /// Loads a plugin as hipDNN does: all symbols now, none for others.
    ///
    /// # Errors
    ///
    /// [`HostError::Load`].
    ///
    /// # Safety
    ///
    /// The file is a hipDNN engine plugin: its code runs with all rights of this process.
    pub unsafe fn load(path: impl AsRef<OsStr>) -> Result<Self, HostError> {
        let failed = |source| HostError::Load {
            path: PathBuf::from(path.as_ref()),
            source,
        };
        // SAFETY: by this function's contract.
        let library = unsafe { Library::open(Some(path.as_ref()), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
        // SAFETY: by this function's contract.
        let symbols = unsafe { Symbols::resolve(&library) }.map_err(failed)?;
        Ok(Plugin(Arc::new(Inner {
            symbols,
            _library: library,
        })))
    }

    fn symbols(&self) -> &Symbols {
        &self.0.symbols
    }

    /// The text of this thread's last error.
    #[must_use]
    pub fn last_error(&self) -> String {
        let mut text = std::ptr::null();
        // SAFETY: the pointer is valid for a write.
        unsafe { (self.symbols().last_error)(&mut text) };
        // SAFETY: the plugin keeps the text until this thread's next call.
        unsafe { to_string(text) }
    }

    fn check(&self, function: &'static str, status: i32) -> Result<(), HostError> {
        if status == 0 {
            Ok(())
        } else {
            Err(HostError::Status {
                function,
                status,
                text: self.last_error(),
            })
        }
    }

    fn text(&self, function: &'static str, call: impl FnOnce(*mut *const c_char) -> i32) -> Result<String, HostError> {
        let mut text = std::ptr::null();
        let status = call(&mut text);
        self.check(function, status)?;
        // SAFETY: after success, the plugin's static text.
        Ok(unsafe { to_string(text) })
    }

    /// The plugin's name.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn name(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write, here and in the calls that follow.
        self.text("GetName", |text| unsafe { (self.symbols().name)(text) })
    }

    /// The plugin's version.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn version(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetVersion", |text| unsafe { (self.symbols().version)(text) })
    }

    /// The engine API that the plugin implements.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn api_version(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetApiVersion", |text| unsafe { (self.symbols().api_version)(text) })
    }

    /// The plugin's type; 1 is an engine plugin.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn kind(&self) -> Result<i32, HostError> {
        let mut kind = -1;
        // SAFETY: the pointer is valid for a write.
        let status = unsafe { (self.symbols().kind)(&mut kind) };
        self.check("GetType", status).map(|()| kind)
    }

    /// Sets the logging function and the least severity.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn set_logging(&self, callback: Option<LogCallback>, level: i32) -> Result<(), HostError> {
        // SAFETY: the callback is a function of this process.
        let status = unsafe { (self.symbols().set_callback)(callback) };
        self.check("SetLoggingCallback", status)?;
        // SAFETY: takes a number.
        let status = unsafe { (self.symbols().set_log_level)(level) };
        self.check("SetLogLevel", status)
    }

    /// The ids of all engines: counted first, then filled, as hipDNN does.
    ///
    /// # Errors
    ///
    /// The plugin's, or two counts that differ.
    pub fn engine_ids(&self) -> Result<Vec<i64>, HostError> {
        const NAME: &str = "GetAllEngineIds";
        let mut count = 0;
        // SAFETY: no ids are asked for.
        let status = unsafe { (self.symbols().all_ids)(std::ptr::null_mut(), 0, &mut count) };
        self.check(NAME, status)?;
        let mut ids = vec![0; count as usize];
        let mut filled = 0;
        // SAFETY: `count` ids fit.
        let status = unsafe { (self.symbols().all_ids)(ids.as_mut_ptr(), count, &mut filled) };
        self.check(NAME, status)?;
        if filled != count {
            return Err(HostError::Protocol {
                function: NAME,
                what: format!("counted {count}, then {filled}"),
            });
        }
        Ok(ids)
    }

    /// The name of an engine.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn engine_name(&self, id: i64) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetEngineName", |text| unsafe {
            (self.symbols().engine_name)(id, text)
        })
    }

    /// Creates a handle.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn handle(&self) -> Result<Handle, HostError> {
        // Uninitialised for the plugin: whatever is there must not matter.
        let mut raw = std::ptr::dangling_mut();
        // SAFETY: the pointer is valid for a write.
        let status = unsafe { (self.symbols().create)(&mut raw) };
        self.check("Create", status)?;
        if raw.is_null() {
            return Err(HostError::Protocol {
                function: "Create",
                what: "the handle is null".to_owned(),
            });
        }
        Ok(Handle(Arc::new(RawHandle {
            plugin: self.clone(),
            raw,
        })))
    }
}

/// # Safety
///
/// The pointer is null or points to a text with a terminator.
unsafe fn to_string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A handle of a plugin. Destroyed with the last of its clones and contexts.
#[derive(Clone)]
pub struct Handle(Arc<RawHandle>);

struct RawHandle {
    plugin: Plugin,
    raw: *mut c_void,
}

// SAFETY: the ABI asks plugins to take calls from any thread.
unsafe impl Send for RawHandle {}
// SAFETY: as above.
unsafe impl Sync for RawHandle {}

impl Drop for RawHandle {
    fn drop(&mut self) {
        // SAFETY: created by this plugin, and destroyed here alone.
        unsafe { (self.plugin.symbols().destroy)(self.raw) };
    }
}

impl Handle {
    fn plugin(&self) -> &Plugin {
        &self.0.plugin
    }

    /// Sets the stream of the executions that follow.
    ///
    /// # Errors
    ///
    /// The plugin's.
    ///
    /// # Safety
    ///
    /// The stream is null or one of the device's, and lives while work is sent to it.
    pub unsafe fn set_stream(&self, stream: *mut c_void) -> Result<(), HostError> {
        // SAFETY: the handle is alive; the stream by this function's contract.
        let status = unsafe { (self.plugin().symbols().set_stream)(self.0.raw, stream) };
        self.plugin().check("SetStream", status)
    }

    /// The engines that can run a graph.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn applicable(&self, graph: &[u8]) -> Result<Vec<i64>, HostError> {
        let mut ids = [0_i64; 4];
        let mut count = u32::MAX;
        let graph = ConstData::of(graph);
        // SAFETY: the handle and the bytes are alive, four ids fit.
        let status =
            unsafe { (self.plugin().symbols().applicable)(self.0.raw, &graph, ids.as_mut_ptr(), 4, &mut count) };
        self.plugin().check("GetApplicableEngineIds", status)?;
        let found = usize::try_from(count).ok().and_then(|count| ids.get(..count));
        found.map(<[i64]>::to_vec).ok_or_else(|| HostError::Protocol {
            function: "GetApplicableEngineIds",
            what: format!("there are {count} engines in 4 places"),
        })
    }

    /// What an engine tells about itself.
    ///
    /// # Errors
    ///
    /// The plugin's, or details that cannot be read or are not freed as they should be.
    pub fn details(&self, engine: i64, graph: &[u8]) -> Result<rotini_wire::engine_details::EngineDetails, HostError> {
        const NAME: &str = "GetEngineDetails";
        let symbols = self.plugin().symbols();
        let bytes = self.take(
            NAME,
            // SAFETY: the handle and the bytes are alive, the details are valid for a write.
            |details| unsafe { (symbols.details)(self.0.raw, engine, &ConstData::of(graph), details) },
            // SAFETY: the handle is alive, and the pair unchanged.
            |details| unsafe { (symbols.destroy_details)(self.0.raw, details) },
        )?;
        rotini_wire::engine_details::decode(&bytes).map_err(|error| HostError::Protocol {
            function: NAME,
            what: error.to_string(),
        })
    }

    /// Copies bytes that the plugin gives and takes back.
    fn take(
        &self,
        function: &'static str,
        give: impl FnOnce(&mut ConstData) -> i32,
        destroy: impl FnOnce(&mut ConstData) -> i32,
    ) -> Result<Vec<u8>, HostError> {
        let mut given = ConstData {
            ptr: std::ptr::null(),
            size: 0,
        };
        let status = give(&mut given);
        self.plugin().check(function, status)?;
        let protocol = |what: &str| HostError::Protocol {
            function,
            what: what.to_owned(),
        };
        if given.ptr.is_null() || given.size == 0 {
            return Err(protocol("the bytes are empty"));
        }
        // SAFETY: after success, the plugin's bytes until they are destroyed.
        let bytes = unsafe { std::slice::from_raw_parts(given.ptr.cast::<u8>(), given.size) }.to_vec();
        let status = destroy(&mut given);
        self.plugin().check(function, status)?;
        if !given.ptr.is_null() || given.size != 0 {
            return Err(protocol("destroying the bytes left them as they were"));
        }
        Ok(bytes)
    }

    /// Makes a context from the bytes of another.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn context_from_serialized(&self, bytes: &[u8]) -> Result<Context, HostError> {
        let bytes = ConstData::of(bytes);
        self.new_context("CreateExecutionContextFromSerialized", |raw| {
            // SAFETY: the handle and the bytes are alive, the context is valid for a write.
            unsafe { (self.plugin().symbols().context_from_serialized)(self.0.raw, &bytes, raw) }
        })
    }

    fn new_context(
        &self,
        function: &'static str,
        create: impl FnOnce(&mut *mut c_void) -> i32,
    ) -> Result<Context, HostError> {
        // Uninitialised for the plugin: whatever is there must not matter.
        let mut raw = std::ptr::dangling_mut();
        let status = create(&mut raw);
        self.plugin().check(function, status)?;
        if raw.is_null() {
            return Err(HostError::Protocol {
                function,
                what: "the context is null".to_owned(),
            });
        }
        Ok(Context {
            handle: self.clone(),
            raw,
        })
    }

    /// The workspace that a graph will need at most.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn workspace_estimate(&self, config: &[u8], graph: &[u8]) -> Result<usize, HostError> {
        let mut size = usize::MAX;
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        // SAFETY: the handle and the bytes are alive, the size is valid for a write.
        let status = unsafe { (self.plugin().symbols().workspace)(self.0.raw, &config, &graph, &mut size) };
        self.plugin().check("GetWorkspaceSize", status).map(|()| size)
    }

    /// Makes a graph ready to execute.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn context(&self, config: &[u8], graph: &[u8]) -> Result<Context, HostError> {
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        self.new_context("CreateExecutionContext", |raw| {
            // SAFETY: the handle and the bytes are alive, the context is valid for a write.
            unsafe { (self.plugin().symbols().create_context)(self.0.raw, &config, &graph, raw) }
        })
    }
}

/// The bytes of an engine config that sets no knobs.
#[must_use]
pub fn engine_config(engine: i64) -> Vec<u8> {
    rotini_wire::engine_config::encode(&rotini_wire::engine_config::EngineConfig {
        engine_id: engine,
        ..rotini_wire::engine_config::EngineConfig::default()
    })
}

/// An execution context.
pub struct Context {
    handle: Handle,
    raw: *mut c_void,
}

// SAFETY: the ABI asks plugins to take calls from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: created by this plugin, and destroyed here alone.
        unsafe { (self.handle.plugin().symbols().destroy_context)(self.handle.0.raw, self.raw) };
    }
}

impl Context {
    /// The workspace that one execution needs.
    ///
    /// # Errors
    ///
    /// The plugin's.
    pub fn workspace(&self) -> Result<usize, HostError> {
        let plugin = self.handle.plugin();
        let mut size = usize::MAX;
        // SAFETY: handle and context are alive, the size is valid for a write.
        let status = unsafe { (plugin.symbols().context_workspace)(self.handle.0.raw, self.raw, &mut size) };
        plugin
            .check("GetWorkspaceSizeFromExecutionContext", status)
            .map(|()| size)
    }

    /// The context as bytes: with the engine's id as the newest hosts ask, or without as others do.
    ///
    /// # Errors
    ///
    /// The plugin's, or bytes that are empty or not freed as they should be.
    pub fn serialize(&self, engine: Option<i64>) -> Result<Vec<u8>, HostError> {
        let (handle, symbols) = (self.handle.0.raw, self.handle.plugin().symbols());
        self.handle.take(
            "SerializeExecutionContext",
            // SAFETY: handle and context are alive, the bytes are valid for a write.
            |bytes| unsafe {
                match engine {
                    Some(engine) => (symbols.serialize_with_id)(handle, engine, self.raw, bytes),
                    None => (symbols.serialize)(handle, self.raw, bytes),
                }
            },
            // SAFETY: the handle is alive, and the pair unchanged.
            |bytes| unsafe { (symbols.destroy_serialized)(handle, bytes) },
        )
    }

    /// Executes on the handle's stream.
    ///
    /// # Errors
    ///
    /// The plugin's.
    ///
    /// # Safety
    ///
    /// The buffers are valid for the spans of their tensors and the workspace for its size, in the device's memory, until the work is
    /// done.
    pub unsafe fn execute(&self, workspace: *mut c_void, buffers: &[DeviceBuffer]) -> Result<(), HostError> {
        let plugin = self.handle.plugin();
        let count = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        // SAFETY: handle and context are alive, `count` buffers are there; the rest by this function's contract.
        let status =
            unsafe { (plugin.symbols().execute)(self.handle.0.raw, self.raw, workspace, buffers.as_ptr(), count) };
        plugin.check("ExecuteOpGraph", status)
    }

    /// Executes on the handle's stream with other shapes, as a host does that knows API 1.1.
    ///
    /// # Errors
    ///
    /// The plugin's; an override whose extents and strides are not as many.
    ///
    /// # Safety
    ///
    /// As [`execute`](Self::execute), with the spans that the tensors have with these shapes.
    pub unsafe fn execute_with_overrides(
        &self,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride],
    ) -> Result<(), HostError> {
        const NAME: &str = "ExecuteOpGraphWithOverrides";
        if overrides.iter().any(|shape| shape.dims.len() != shape.strides.len()) {
            return Err(HostError::Protocol {
                function: NAME,
                what: "there are more extents than strides, or fewer".to_owned(),
            });
        }
        let plugin = self.handle.plugin();
        let length = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let uids: Vec<i64> = overrides.iter().map(|shape| shape.uid).collect();
        let ranks: Vec<u32> = overrides.iter().map(|shape| length(shape.dims.len())).collect();
        let dims: Vec<*const i64> = overrides.iter().map(|shape| shape.dims.as_ptr()).collect();
        let strides: Vec<*const i64> = overrides.iter().map(|shape| shape.strides.as_ptr()).collect();
        // SAFETY: handle and context are alive, all arrays are as long as is said; the rest by this function's contract.
        let status = unsafe {
            (plugin.symbols().execute_with_overrides)(
                self.handle.0.raw,
                self.raw,
                workspace,
                buffers.as_ptr(),
                length(buffers.len()),
                length(overrides.len()),
                uids.as_ptr(),
                ranks.as_ptr(),
                dims.as_ptr(),
                strides.as_ptr(),
            )
        };
        plugin.check(NAME, status)
    }
}
