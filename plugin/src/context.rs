//! An execution context: loaded code, and which of the caller's uids fills which of its arguments.

use crate::device::{Buffers, Executable, ExecuteError, Stream};
use crate::error::Error;
use crate::serialized::Portable;
use rotini_graph::Bindings;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// One entry of the caller's variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    /// The tensor's uid.
    pub uid: i64,
    /// Its data.
    pub pointer: *mut c_void,
}

/// Arguments that are looked up without allocating.
const INLINE_ARGUMENTS: usize = 16;

/// Loaded code, which all contexts of its graph on its device share, and what another process needs to load it.
pub struct Code {
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) portable: Portable,
}

/// A graph that is ready to execute, from any thread.
pub struct ExecutionContext {
    /// The code's, without the way through it at every execution.
    executable: Arc<dyn Executable>,
    code: Arc<Code>,
    /// Uids with their argument, sorted by uid.
    arguments: Box<[(i64, usize)]>,
    labels: Vec<String>,
}

impl ExecutionContext {
    pub(crate) fn new(code: Arc<Code>, bindings: Bindings) -> Self {
        let mut arguments: Vec<(i64, usize)> = bindings.uids.iter().copied().zip(0..).collect();
        arguments.sort_unstable();
        ExecutionContext {
            executable: Arc::clone(&code.executable),
            code,
            arguments: arguments.into_boxed_slice(),
            labels: bindings.labels,
        }
    }

    /// Bytes of workspace that one execution needs, exactly.
    #[must_use]
    pub fn workspace_bytes(&self) -> u64 {
        self.executable.workspace_bytes()
    }

    /// The context as bytes, which another process can load without a compiler.
    ///
    /// # Errors
    ///
    /// Only if memory runs out.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        let mut tensors: Vec<(usize, i64)> = self.arguments.iter().map(|&(uid, argument)| (argument, uid)).collect();
        tensors.sort_unstable();
        let tensors = tensors.into_iter().map(|(argument, uid)| (uid, self.label(argument)));
        self.code.portable.encode(tensors.collect())
    }

    /// Executes the graph on the caller's buffers, found by uid. Uids that the graph does not use are ignored.
    ///
    /// # Errors
    ///
    /// A buffer that is missing, null, given twice or overlaps where it must not; a missing workspace; the runtime's reports.
    ///
    /// # Safety
    ///
    /// The buffers of the graph's uids are valid for the span of their tensors in the device's memory until the work is done, the
    /// workspace for [`workspace_bytes`](Self::workspace_bytes); no other execution uses this workspace meanwhile.
    pub unsafe fn execute(
        &self,
        stream: Stream,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
    ) -> Result<(), Error> {
        let mut pointers: SmallVec<[*mut c_void; INLINE_ARGUMENTS]> = SmallVec::new();
        pointers.resize(self.arguments.len(), std::ptr::null_mut());
        for buffer in buffers {
            let Ok(found) = self.arguments.binary_search_by_key(&buffer.uid, |&(uid, _)| uid) else {
                continue;
            };
            let Some(&(_, argument)) = self.arguments.get(found) else {
                continue;
            };
            let Some(pointer) = pointers.get_mut(argument) else {
                continue;
            };
            if !pointer.is_null() && *pointer != buffer.pointer {
                return Err(Error::TwoBuffers(self.label(argument)));
            }
            *pointer = buffer.pointer;
        }
        // SAFETY: by this function's contract.
        unsafe {
            self.executable.execute(
                stream,
                &Buffers {
                    pointers: &pointers,
                    workspace,
                },
            )
        }
        .map_err(|error| match error {
            ExecuteError::Null(argument) => Error::MissingBuffer(self.label(argument)),
            ExecuteError::Overlap(a, b) => Error::Overlap(self.label(a), self.label(b)),
            ExecuteError::Misaligned(argument, alignment) => Error::Misaligned(self.label(argument), alignment),
            ExecuteError::MissingWorkspace(bytes) => Error::MissingWorkspace(bytes),
            ExecuteError::MisalignedWorkspace(alignment) => Error::Misaligned("the workspace".to_owned(), alignment),
            ExecuteError::NoMemory(bytes) => Error::NoMemory(bytes),
            ExecuteError::WorkspaceOverlap(argument) => {
                Error::Overlap(self.label(argument), "the workspace".to_owned())
            }
            ExecuteError::OtherGpu { code, stream } => Error::OtherGpu { context: code, stream },
            ExecuteError::Driver(error) => Error::Driver(error),
            ExecuteError::Runtime(error) => Error::runtime("the execution failed")(error),
        })
    }

    fn label(&self, argument: usize) -> String {
        self.labels
            .get(argument)
            .cloned()
            .unwrap_or_else(|| format!("argument {argument}"))
    }
}
