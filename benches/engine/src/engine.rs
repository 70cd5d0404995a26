//! The traits that an engine implements.

use rotini_graph::{Graph, Tensor};
use std::ffi::{CStr, c_void};

pub use rotini_wire::engine_details::BehaviorNote;

/// An engine on one hipDNN handle.
pub trait Engine: Send + Sync + Sized + 'static {
    /// The plugin's name.
    const PLUGIN: &'static CStr;
    /// The plugin's version.
    const VERSION: &'static CStr;
    /// The engine's name, from which its id is derived.
    const NAME: &'static CStr;
    /// Notes about the engine's behaviour for hosts.
    const NOTES: &'static [BehaviorNote] = &[];

    /// Creates the engine of a new handle.
    ///
    /// # Errors
    ///
    /// Returns the reason why no handle can be created.
    fn new() -> Result<Self, String>;

    /// Checks whether the engine runs a valid graph. This must be cheap, because hosts ask often.
    ///
    /// # Errors
    ///
    /// Returns the reason why the engine does not run the graph.
    fn applicable(&self, graph: &Graph) -> Result<(), String>;

    /// Returns an upper bound in bytes of the workspace that a graph will need. Hosts ask before a
    /// context is created.
    fn workspace(&self, _graph: &Graph) -> usize {
        0
    }

    /// Creates the execution of an [applicable](Self::applicable) graph.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure.
    fn context(&self, graph: &Graph) -> Result<Box<dyn Execution>, String>;
}

/// The execution of one graph.
pub trait Execution: Send + Sync {
    /// Returns the bytes of workspace that an execution needs.
    fn workspace(&self) -> usize {
        0
    }

    /// Executes the graph after the work that is already on the stream, and returns when it is
    /// complete.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure.
    ///
    /// # Safety
    ///
    /// The buffers must have the spans of the graph's tensors and the workspace its size, all in
    /// the memory that the engine works in. Nothing else may write them during the call.
    unsafe fn execute(&self, buffers: Buffers<'_>, workspace: *mut c_void, stream: *mut c_void) -> Result<(), String>;
}

/// One entry of a variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    uid: i64,
    pointer: *mut c_void,
}

/// The buffers of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Buffers<'a>(&'a [DeviceBuffer]);

impl<'a> Buffers<'a> {
    pub(crate) fn new(entries: &'a [DeviceBuffer]) -> Self {
        Buffers(entries)
    }

    /// Returns the pointer to a tensor's first element.
    ///
    /// # Errors
    ///
    /// Fails if the host passed no buffer for the tensor.
    pub fn pointer(self, tensor: &Tensor) -> Result<*mut c_void, String> {
        self.0
            .iter()
            .find(|buffer| buffer.uid == tensor.uid)
            .map(|buffer| buffer.pointer)
            .filter(|pointer| !pointer.is_null())
            .ok_or_else(|| format!("{tensor} has no buffer"))
    }
}

/// Returns the id that hipDNN derives from an engine's name: its 64-bit FNV-1a hash, as a signed
/// number.
pub(crate) fn id(name: &CStr) -> i64 {
    let hash = name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::from_ne_bytes(hash.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_hipdnn_lists() {
        assert_eq!(id(c"MIOPEN_ENGINE"), 0x15b4_6865_c717_a122);
        assert_eq!(id(c"FUSILLI_ENGINE").cast_unsigned(), 0xd3b0_0d1f_8f0b_df92);
    }
}
