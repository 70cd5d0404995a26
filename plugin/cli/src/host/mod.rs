//! A small hipDNN host: loads an engine plugin's shared library and calls it as hipDNN's backend does.
//!
//! [`Plugin`] is the library, [`Handle`] one of its handles, [`Context`] one execution context. Each lives no longer than what it was made
//! of. Nothing here is shared with the plugin's own side of the ABI, so that a mistake there is seen here.

mod api;
mod buffer;

pub(crate) use api::DeviceBuffer;
pub(crate) use buffer::HostBuffer;

use api::{Api, ConstData, ContextPointer, HandlePointer};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rotini_wire::engine_config::{self, EngineConfig};
use rotini_wire::engine_details::{self, EngineDetails, EngineDetailsError};
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// `hipdnnPluginType_t` of engine plugins.
const TYPE_ENGINE: i32 = 1;
/// `HIPDNN_PLUGIN_STATUS_SUCCESS`.
const SUCCESS: i32 = 0;

/// What a host meets when it loads and calls a plugin.
#[derive(Debug, Error)]
pub(crate) enum HostError {
    /// The file is not there or is no library.
    #[error("{} cannot be loaded", path.display())]
    Open { path: PathBuf, source: libloading::Error },
    /// A function of the ABI is missing.
    #[error("the plugin lacks {symbol}")]
    Symbol { symbol: String, source: libloading::Error },
    /// A plugin of another kind.
    #[error("{} is no engine plugin, but of type {found}", path.display())]
    NotAnEngine { path: PathBuf, found: i32 },
    /// A call that failed.
    #[error("{text} (status {status} of {function})")]
    Status { function: &'static str, status: i32, text: String },
    /// A call that succeeded with a result that hipDNN would not take.
    #[error("{function}: {what}")]
    Protocol { function: &'static str, what: String },
    /// Engine details that cannot be read.
    #[error("the engine details cannot be read")]
    Details(#[from] EngineDetailsError),
    /// More bytes or buffers than the ABI can count.
    #[error("{0} is more than the ABI can count")]
    Count(usize),
}

/// An engine of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    /// The id, as it is passed around.
    pub(crate) id: i64,
    /// The name that the id is the hash of.
    pub(crate) name: String,
}

/// A loaded plugin.
pub(crate) struct Plugin {
    api: Api,
    /// What the plugin calls itself.
    pub(crate) name: String,
    /// Its own version.
    pub(crate) version: String,
    /// The engine API that it implements.
    pub(crate) api_version: String,
    /// Its engines.
    pub(crate) engines: Vec<Engine>,
    // Dropped last: the functions above are the library's.
    _library: Library,
}

impl Plugin {
    /// Loads a plugin and asks it what hipDNN asks first, in the same order.
    ///
    /// Its log messages become events of this process's log: errors, which come back as statuses too, only if `verbose`.
    ///
    /// # Errors
    ///
    /// Every reason for which hipDNN would not load it.
    ///
    /// # Safety
    ///
    /// The file is an engine plugin whose functions are as hipDNN's headers declare them: its code runs in this process.
    pub(crate) unsafe fn load(path: &Path, verbose: bool) -> Result<Self, HostError> {
        let open = |source| HostError::Open { path: path.to_owned(), source };
        // SAFETY: initialisers of a plugin are safe to run by this function's contract.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(open)?;
        // SAFETY: by this function's contract.
        let api = unsafe { Api::resolve(&library) }?;
        // SAFETY: all functions of this block are called as the headers say, with places that live until they return.
        unsafe {
            let mut found = 0;
            api.expect("GetType", (api.plugin_type)(&mut found))?;
            if found != TYPE_ENGINE {
                return Err(HostError::NotAnEngine { path: path.to_owned(), found });
            }
            let name = api.text("GetName", |out| (api.plugin_name)(out))?;
            let version = api.text("GetVersion", |out| (api.plugin_version)(out))?;
            api.expect("SetLoggingCallback", (api.set_logging_callback)(log))?;
            api.expect("SetLogLevel", (api.set_log_level)(if verbose { SEVERITY_INFO } else { SEVERITY_WARN }))?;
            let api_version = api.text("GetApiVersion", |out| (api.plugin_api_version)(out))?;
            let engines = api.engines()?;
            Ok(Plugin { api, name, version, api_version, engines, _library: library })
        }
    }

    /// Creates a handle.
    ///
    /// # Errors
    ///
    /// The plugin's report.
    pub(crate) fn handle(&self) -> Result<Handle<'_>, HostError> {
        const FUNCTION: &str = "Create";
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the place lives until the function returns.
        self.api.expect(FUNCTION, unsafe { (self.api.create)(&mut pointer) })?;
        if pointer.is_null() {
            return Err(HostError::Protocol { function: FUNCTION, what: "no handle after success".to_owned() });
        }
        Ok(Handle { plugin: self, pointer })
    }
}

impl Api {
    /// The text of a failed call. hipDNN asks right after it, on the same thread.
    fn expect(&self, function: &'static str, status: i32) -> Result<(), HostError> {
        if status == SUCCESS {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the place lives until the function returns.
        unsafe { (self.last_error)(&mut text) };
        // SAFETY: null or a terminated text that is valid until this thread's next call.
        let text = unsafe { owned(text) }.filter(|text| !text.is_empty()).unwrap_or_else(|| "no text".to_owned());
        Err(HostError::Status { function, status, text })
    }

    /// The text that a function gives.
    ///
    /// # Safety
    ///
    /// `call` stores null or a terminated text that is valid until the next call.
    unsafe fn text(
        &self,
        function: &'static str,
        call: impl FnOnce(*mut *const c_char) -> i32,
    ) -> Result<String, HostError> {
        let mut text = std::ptr::null();
        self.expect(function, call(&mut text))?;
        // SAFETY: by this function's contract.
        unsafe { owned(text) }.ok_or_else(|| HostError::Protocol { function, what: "null after success".to_owned() })
    }

    /// Counts the engines, then asks for their ids and names.
    fn engines(&self) -> Result<Vec<Engine>, HostError> {
        const FUNCTION: &str = "GetAllEngineIds";
        let protocol = |what: String| HostError::Protocol { function: FUNCTION, what };
        let mut count = 0;
        // SAFETY: no ids are written for a maximum of 0; the place of the count lives until the function returns.
        self.expect(FUNCTION, unsafe { (self.all_engine_ids)(std::ptr::null_mut(), 0, &mut count) })?;
        let mut ids = vec![0; count as usize];
        let mut filled = 0;
        // SAFETY: there is room for `count` ids.
        self.expect(FUNCTION, unsafe { (self.all_engine_ids)(ids.as_mut_ptr(), count, &mut filled) })?;
        if count == 0 || filled != count {
            return Err(protocol(format!("{count} engines, then {filled}")));
        }
        ids.into_iter()
            .map(|id| {
                // SAFETY: the name is static text of the plugin, or null.
                let name = unsafe { self.text("GetEngineName", |out| (self.engine_name)(id, out)) }?;
                Ok(Engine { id, name })
            })
            .collect()
    }
}

/// A handle on a plugin's device.
pub(crate) struct Handle<'plugin> {
    plugin: &'plugin Plugin,
    pointer: HandlePointer,
}

impl Handle<'_> {
    /// The engines that can execute a graph.
    ///
    /// # Errors
    ///
    /// The plugin's report; hipDNN would give up on all plugins.
    pub(crate) fn applicable_engines(&self, graph: &[u8]) -> Result<Vec<i64>, HostError> {
        const FUNCTION: &str = "GetApplicableEngineIds";
        let mut ids = vec![0; self.plugin.engines.len()];
        let max = u32::try_from(ids.len()).map_err(|_| HostError::Count(ids.len()))?;
        let mut count = 0;
        let api = &self.plugin.api;
        // SAFETY: the handle is alive, the graph and the places are until the function returns, and `max` ids fit.
        let status = unsafe {
            (api.applicable_engine_ids)(self.pointer, &ConstData::of(graph), ids.as_mut_ptr(), max, &mut count)
        };
        api.expect(FUNCTION, status)?;
        if count > max {
            return Err(HostError::Protocol { function: FUNCTION, what: format!("{count} of {max} engines") });
        }
        ids.truncate(count as usize);
        Ok(ids)
    }

    /// What an engine says about itself.
    ///
    /// # Errors
    ///
    /// The plugin's report, or details that cannot be read.
    pub(crate) fn engine_details(&self, engine: i64, graph: &[u8]) -> Result<EngineDetails, HostError> {
        const FUNCTION: &str = "GetEngineDetails";
        let api = &self.plugin.api;
        let mut details = ConstData::EMPTY;
        // SAFETY: the handle is alive, the graph and the place are until the function returns.
        let status = unsafe { (api.engine_details)(self.pointer, engine, &ConstData::of(graph), &mut details) };
        api.expect(FUNCTION, status)?;
        if details.pointer.is_null() || details.size == 0 {
            return Err(HostError::Protocol { function: FUNCTION, what: "no details after success".to_owned() });
        }
        // SAFETY: not null, and the plugin keeps the bytes until it is told to destroy them.
        let bytes = unsafe { std::slice::from_raw_parts(details.pointer.cast::<u8>(), details.size) }.to_vec();
        // SAFETY: the pair is what the function above wrote.
        let status = unsafe { (api.destroy_engine_details)(self.pointer, &mut details) };
        api.expect("DestroyEngineDetails", status)?;
        Ok(engine_details::decode(&bytes)?)
    }

    /// The bytes of workspace that a graph may need, before it is compiled.
    ///
    /// # Errors
    ///
    /// The plugin's report.
    pub(crate) fn workspace_estimate(&self, engine: i64, graph: &[u8]) -> Result<usize, HostError> {
        let api = &self.plugin.api;
        let config = config(engine);
        let mut size = 0;
        // SAFETY: the handle is alive, the bytes and the place are until the function returns.
        let status = unsafe {
            (api.workspace_size)(self.pointer, &ConstData::of(&config), &ConstData::of(graph), &mut size)
        };
        api.expect("GetWorkspaceSize", status)?;
        Ok(size)
    }

    /// Compiles a graph, or whatever the plugin does to be able to execute it.
    ///
    /// # Errors
    ///
    /// The plugin's report.
    pub(crate) fn context(&self, engine: i64, graph: &[u8]) -> Result<Context<'_>, HostError> {
        const FUNCTION: &str = "CreateExecutionContext";
        let api = &self.plugin.api;
        let config = config(engine);
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the handle is alive, the bytes and the place are until the function returns.
        let status = unsafe {
            (api.create_context)(self.pointer, &ConstData::of(&config), &ConstData::of(graph), &mut pointer)
        };
        api.expect(FUNCTION, status)?;
        if pointer.is_null() {
            return Err(HostError::Protocol { function: FUNCTION, what: "no context after success".to_owned() });
        }
        Ok(Context { handle: self, pointer })
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: created by this plugin and not used after; its contexts borrow it and are gone.
        let status = unsafe { (self.plugin.api.destroy)(self.pointer) };
        warn_of("Destroy", status);
    }
}

/// A graph that is ready to be executed.
pub(crate) struct Context<'handle> {
    handle: &'handle Handle<'handle>,
    pointer: ContextPointer,
}

impl Context<'_> {
    /// The bytes of workspace that an execution needs.
    ///
    /// # Errors
    ///
    /// The plugin's report.
    pub(crate) fn workspace(&self) -> Result<usize, HostError> {
        let api = &self.handle.plugin.api;
        let mut size = 0;
        // SAFETY: handle and context are alive, and the place is until the function returns.
        let status = unsafe { (api.context_workspace_size)(self.handle.pointer, self.pointer, &mut size) };
        api.expect("GetWorkspaceSizeFromExecutionContext", status)?;
        Ok(size)
    }

    /// Executes the graph. The plugin's device is the CPU, so the work is done when this returns.
    ///
    /// # Errors
    ///
    /// The plugin's report.
    ///
    /// # Safety
    ///
    /// There is a buffer for every tensor of the graph that needs one, as large as the tensor's span; the workspace has the bytes that
    /// [`workspace`](Self::workspace) tells. All is host memory, and the plugin's device works on host memory.
    pub(crate) unsafe fn execute(&self, workspace: *mut c_void, buffers: &[DeviceBuffer]) -> Result<(), HostError> {
        let api = &self.handle.plugin.api;
        let count = u32::try_from(buffers.len()).map_err(|_| HostError::Count(buffers.len()))?;
        // SAFETY: handle and context are alive; workspace and buffers are valid by this function's contract.
        let status =
            unsafe { (api.execute)(self.handle.pointer, self.pointer, workspace, buffers.as_ptr(), count) };
        api.expect("ExecuteOpGraph", status)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: created by this plugin and not used after; the handle is borrowed, so it is alive.
        let status = unsafe { (self.handle.plugin.api.destroy_context)(self.handle.pointer, self.pointer) };
        warn_of("DestroyExecutionContext", status);
    }
}

/// What cannot be returned from where things are dropped.
fn warn_of(function: &str, status: i32) {
    if status != SUCCESS {
        tracing::warn!("{function} returned status {status}");
    }
}

/// An engine config without knobs: every knob has its default.
fn config(engine: i64) -> Vec<u8> {
    engine_config::encode(&EngineConfig { engine_id: engine, knobs: Vec::new() })
}

/// A copy of a C text; `None` for null.
///
/// # Safety
///
/// `text` is null or a terminated text.
unsafe fn owned(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and terminated by this function's contract.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

const SEVERITY_INFO: i32 = 0;
const SEVERITY_WARN: i32 = 1;

/// Takes the plugin's log messages.
extern "C" fn log(severity: i32, message: *const c_char) {
    // SAFETY: the plugin passes a terminated text that is valid during the call.
    let Some(message) = (unsafe { owned(message) }) else { return };
    match severity {
        SEVERITY_INFO => tracing::info!("{message}"),
        SEVERITY_WARN => tracing::warn!("{message}"),
        // An error's text comes back with its status too, and is reported then.
        _ => tracing::info!("error: {message}"),
    }
}
