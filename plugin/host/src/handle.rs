//! Handles of a plugin, and execution contexts.

use crate::error::HostError;
use crate::plugin::Plugin;
use crate::symbols::{ConstData, DeviceBuffer};
use std::ffi::c_void;
use std::sync::Arc;

/// A shape that replaces a tensor's own in one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeOverride {
    /// The tensor's uid.
    pub uid: i64,
    /// Extents. The ABI passes one rank for extents and strides.
    pub dims: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
}

/// A handle of a plugin. It is destroyed with the last of its clones and contexts.
#[derive(Clone)]
pub struct Handle(Arc<RawHandle>);

struct RawHandle {
    plugin: Plugin,
    raw: *mut c_void,
}

// SAFETY: the ABI requires plugins to take calls from any thread.
unsafe impl Send for RawHandle {}
// SAFETY: as above.
unsafe impl Sync for RawHandle {}

impl Drop for RawHandle {
    fn drop(&mut self) {
        // SAFETY: the handle was created by this plugin and is destroyed only here.
        unsafe { (self.plugin.symbols().destroy)(self.raw) };
    }
}

impl Handle {
    /// # Safety
    ///
    /// The plugin must have created the handle, and nothing else may destroy it.
    pub(super) unsafe fn new(plugin: Plugin, raw: *mut c_void) -> Self {
        Handle(Arc::new(RawHandle { plugin, raw }))
    }

    fn plugin(&self) -> &Plugin {
        &self.0.plugin
    }

    /// Sets the stream for later executions.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    ///
    /// # Safety
    ///
    /// The stream must be null or a stream of the device, and live as long as work is sent to it.
    pub unsafe fn set_stream(&self, stream: *mut c_void) -> Result<(), HostError> {
        // SAFETY: the handle is alive; the stream by this function's contract.
        let status = unsafe { (self.plugin().symbols().set_stream)(self.0.raw, stream) };
        self.plugin().check("SetStream", status)
    }

    /// Returns the ids of the engines that can run a graph, at most 4.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error, [`HostError::Protocol`] if it reports
    /// more than 4 engines.
    pub fn applicable(&self, graph: &[u8]) -> Result<Vec<i64>, HostError> {
        let mut ids = [0_i64; 4];
        let mut count = u32::MAX;
        let graph = ConstData::of(graph);
        // SAFETY: the handle and the bytes are alive, `ids` has room for four ids, and the count is
        // valid for a write.
        let status =
            unsafe { (self.plugin().symbols().applicable)(self.0.raw, &graph, ids.as_mut_ptr(), 4, &mut count) };
        self.plugin().check("GetApplicableEngineIds", status)?;
        let found = usize::try_from(count).ok().and_then(|count| ids.get(..count));
        found.map(<[i64]>::to_vec).ok_or_else(|| HostError::Protocol {
            function: "GetApplicableEngineIds",
            what: format!("there are {count} engines in 4 places"),
        })
    }

    /// Returns an engine's description of itself for a graph.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error; [`HostError::Protocol`] if the details
    /// cannot be decoded, or freeing them does not reset the pair of pointer and size.
    pub fn details(&self, engine: i64, graph: &[u8]) -> Result<rotini_wire::engine_details::EngineDetails, HostError> {
        const NAME: &str = "GetEngineDetails";
        let symbols = self.plugin().symbols();
        let bytes = self.take(
            NAME,
            // SAFETY: the handle and the bytes are alive, the details are valid for a write.
            |details| unsafe { (symbols.details)(self.0.raw, engine, &ConstData::of(graph), details) },
            // SAFETY: the handle is alive, and the pair of pointer and size is as the plugin set
            // it.
            |details| unsafe { (symbols.destroy_details)(self.0.raw, details) },
        )?;
        rotini_wire::engine_details::decode(&bytes).map_err(|error| HostError::Protocol {
            function: NAME,
            what: error.to_string(),
        })
    }

    /// Returns a page of the engine's configurations for a graph, by a function of engine API
    /// 1.5.0.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error; [`HostError::Missing`] if it lacks the
    /// function; [`HostError::Protocol`] if the details cannot be decoded.
    pub fn candidates(
        &self,
        config: &[u8],
        graph: &[u8],
        [offset, limit]: [u64; 2],
    ) -> Result<rotini_wire::engine_details::EngineDetails, HostError> {
        const NAME: &str = "EnumerateCandidates";
        let symbols = self.plugin().symbols();
        let candidates = symbols.candidates.ok_or(HostError::Missing { function: NAME })?;
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        let bytes = self.take(
            NAME,
            // SAFETY: the handle and the bytes are alive, the details are valid for a write.
            |details| unsafe { candidates(self.0.raw, &config, &graph, offset, limit, details) },
            // SAFETY: the handle is alive, and the pair of pointer and size is as the plugin set
            // it.
            |details| unsafe { (symbols.destroy_details)(self.0.raw, details) },
        )?;
        rotini_wire::engine_details::decode(&bytes).map_err(|error| HostError::Protocol {
            function: NAME,
            what: error.to_string(),
        })
    }

    /// Returns the engine's prediction of a graph's speed, by a function of engine API 1.5.0.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error; [`HostError::Missing`] if it lacks the
    /// function; [`HostError::Protocol`] if the prediction cannot be decoded.
    pub fn prediction(
        &self,
        config: &[u8],
        graph: &[u8],
        [kind, evaluate]: [i32; 2],
    ) -> Result<rotini_wire::prediction::Prediction, HostError> {
        const NAME: &str = "GetPrediction";
        let symbols = self.plugin().symbols();
        let predict = symbols.prediction.ok_or(HostError::Missing { function: NAME })?;
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        let bytes = self.take(
            NAME,
            // SAFETY: the handle and the bytes are alive, and `place` is valid for a write.
            |place| unsafe { predict(self.0.raw, &config, &graph, kind, evaluate, place) },
            // SAFETY: the handle is alive, and the pair of pointer and size is as the plugin set
            // it.
            |place| unsafe { (symbols.destroy_details)(self.0.raw, place) },
        )?;
        rotini_wire::prediction::decode(&bytes).map_err(|error| HostError::Protocol {
            function: NAME,
            what: error.to_string(),
        })
    }

    /// Copies bytes that the plugin allocates with `give`, and has it free them with `destroy`.
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
        // SAFETY: after success, the pair describes the plugin's bytes, which live until they are
        // destroyed.
        let bytes = unsafe { std::slice::from_raw_parts(given.ptr.cast::<u8>(), given.size) }.to_vec();
        let status = destroy(&mut given);
        self.plugin().check(function, status)?;
        if !given.ptr.is_null() || given.size != 0 {
            return Err(protocol("destroying the bytes left them as they were"));
        }
        Ok(bytes)
    }

    /// Creates a context from the serialized bytes of another.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error, [`HostError::Protocol`] if the
    /// context is null.
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
        // A dangling pointer instead of null, to find plugins that depend on the initial value.
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

    /// Returns the plugin's upper bound of a graph's workspace, in bytes.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn workspace_estimate(&self, config: &[u8], graph: &[u8]) -> Result<usize, HostError> {
        let mut size = usize::MAX;
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        // SAFETY: the handle and the bytes are alive, the size is valid for a write.
        let status = unsafe { (self.plugin().symbols().workspace)(self.0.raw, &config, &graph, &mut size) };
        self.plugin().check("GetWorkspaceSize", status).map(|()| size)
    }

    /// Creates an execution context for a graph.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error, [`HostError::Protocol`] if the
    /// context is null.
    pub fn context(&self, config: &[u8], graph: &[u8]) -> Result<Context, HostError> {
        let (config, graph) = (ConstData::of(config), ConstData::of(graph));
        self.new_context("CreateExecutionContext", |raw| {
            // SAFETY: the handle and the bytes are alive, the context is valid for a write.
            unsafe { (self.plugin().symbols().create_context)(self.0.raw, &config, &graph, raw) }
        })
    }
}

/// An execution context.
pub struct Context {
    handle: Handle,
    raw: *mut c_void,
}

// SAFETY: the ABI requires plugins to take calls from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was created by this plugin and is destroyed only here, and its handle
        // is alive.
        unsafe { (self.handle.plugin().symbols().destroy_context)(self.handle.0.raw, self.raw) };
    }
}

impl Context {
    /// Returns the bytes of workspace that one execution needs.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn workspace(&self) -> Result<usize, HostError> {
        let plugin = self.handle.plugin();
        let mut size = usize::MAX;
        // SAFETY: handle and context are alive, the size is valid for a write.
        let status = unsafe { (plugin.symbols().context_workspace)(self.handle.0.raw, self.raw, &mut size) };
        plugin
            .check("GetWorkspaceSizeFromExecutionContext", status)
            .map(|()| size)
    }

    /// Returns the context as bytes. With `engine`, it calls the function that takes an engine's
    /// id, as the newest hosts do; otherwise the older one.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error; [`HostError::Protocol`] if the bytes
    /// are empty, or freeing them does not reset the pair of pointer and size.
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
            // SAFETY: the handle is alive, and the pair of pointer and size is as the plugin set
            // it.
            |bytes| unsafe { (symbols.destroy_serialized)(handle, bytes) },
        )
    }

    /// Executes on the handle's stream.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    ///
    /// # Safety
    ///
    /// Until the work is done, the buffers must be valid for the spans of their tensors, and the
    /// workspace for its size, in device memory.
    pub unsafe fn execute(&self, workspace: *mut c_void, buffers: &[DeviceBuffer]) -> Result<(), HostError> {
        let plugin = self.handle.plugin();
        let count = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        // SAFETY: handle and context are alive, and the array has `count` entries; the rest by this
        // function's contract.
        let status =
            unsafe { (plugin.symbols().execute)(self.handle.0.raw, self.raw, workspace, buffers.as_ptr(), count) };
        plugin.check("ExecuteOpGraph", status)
    }

    /// Executes on the handle's stream with other shapes, as a host of API 1.1 does.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error; [`HostError::Protocol`] if an override
    /// has different numbers of extents and strides.
    ///
    /// # Safety
    ///
    /// As for [`execute`](Self::execute), with the spans that the tensors have in these shapes.
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
        // SAFETY: handle and context are alive, and all arrays have the lengths that are passed;
        // the rest by this function's contract.
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
