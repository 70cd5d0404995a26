//! What an engine is to the skeleton.

use rotini_graph::{Graph, Tensor};
use std::ffi::{CStr, c_void};

pub use rotini_wire::engine_details::BehaviorNote;

/// An engine on one hipDNN handle.
pub trait Engine: Send + Sync + Sized + 'static {
    /// The plugin's name.
    const PLUGIN: &'static CStr;
    /// The plugin's version.
    const VERSION: &'static CStr;
    /// The engine's name. Its id follows from it.
    const NAME: &'static CStr;
    /// What a host can expect of it.
    const NOTES: &'static [BehaviorNote] = &[];

    /// The engine for a new handle.
    ///
    /// # Errors
    ///
    /// Why there can be no handle.
    fn new() -> Result<Self, String>;

    /// Whether it runs a graph, which is valid. This is asked often: it is cheap.
    ///
    /// # Errors
    ///
    /// Why it does not.
    fn applicable(&self, graph: &Graph) -> Result<(), String>;

    /// Bytes of workspace that a graph will need, at most. This is asked before anything is made.
    fn workspace(&self, _graph: &Graph) -> usize {
        0
    }

    /// What executes a graph that is [applicable](Self::applicable).
    ///
    /// # Errors
    ///
    /// What failed.
    fn context(&self, graph: &Graph) -> Result<Box<dyn Execution>, String>;
}

/// What executes one graph.
pub trait Execution: Send + Sync {
    /// Bytes of workspace of an execution.
    fn workspace(&self) -> usize {
        0
    }

    /// Executes the graph behind what is on the stream, and returns when that is done.
    ///
    /// # Errors
    ///
    /// What failed.
    ///
    /// # Safety
    ///
    /// The buffers have the spans of the graph's tensors, the workspace has its size, and all are
    /// where the engine works. Nothing else writes them meanwhile.
    unsafe fn execute(&self, buffers: Buffers<'_>, workspace: *mut c_void, stream: *mut c_void) -> Result<(), String>;
}

/// One entry of a variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    uid: i64,
    pointer: *mut c_void,
}

/// Where the tensors of an execution are.
#[derive(Clone, Copy, Debug)]
pub struct Buffers<'a>(&'a [DeviceBuffer]);

impl<'a> Buffers<'a> {
    pub(crate) fn new(entries: &'a [DeviceBuffer]) -> Self {
        Buffers(entries)
    }

    /// Where a tensor's first element is.
    ///
    /// # Errors
    ///
    /// If the host gave none.
    pub fn pointer(self, tensor: &Tensor) -> Result<*mut c_void, String> {
        self.0
            .iter()
            .find(|buffer| buffer.uid == tensor.uid)
            .map(|buffer| buffer.pointer)
            .filter(|pointer| !pointer.is_null())
            .ok_or_else(|| format!("{tensor} has no buffer"))
    }
}

/// The id that hipDNN derives from an engine's name: FNV-1a of 64 bits, read as a signed number.
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
