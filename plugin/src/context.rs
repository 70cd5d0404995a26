//! An execution context: loaded code, and the mapping from the caller's uids to its arguments.
//!
//! A graph with dynamic shapes has code for the declared shapes, which are the largest, and code
//! for each other set of shapes that was executed. That code is specialised on the first such
//! execution, and found in the context from then on.

use crate::code::Code;
use crate::device::{Buffers, Device, Executable, ExecuteError, Stream};
use crate::error::Error;
use crate::fork::{Made, Process};
use crate::pipeline;
use crate::runtime::Runtime;
use crate::serialized::SerializedShapes;
use rotini_graph::{Bindings, Graph, MAX_RANK, OverrideError, ShapeOverride, SlotRole};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

/// One entry of the caller's variant pack (`hipdnnPluginDeviceBuffer_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceBuffer {
    /// The tensor's uid.
    pub uid: i64,
    /// Its data.
    pub pointer: *mut c_void,
}

/// Number of arguments that are looked up without allocating.
const INLINE_ARGUMENTS: usize = 16;

/// Maximum number of sets of shapes whose code a context keeps. Beyond that, the least recently
/// used set is dropped; the caches below the context still have its code.
const MAX_SHAPES: usize = 1024;

/// Length of a [`Shapes`] list that is assembled without allocating.
const INLINE_NUMBERS: usize = 128;

/// A set of shapes, as numbers: the uid, rank, extents and strides of each override.
type Shapes = SmallVec<[i64; INLINE_NUMBERS]>;

/// The state of a context whose graph has dynamic shapes.
pub(crate) struct Variable {
    device: Arc<dyn Device>,
    /// The graph with its declared shapes.
    graph: Graph,
    /// The same graph, as the host gave it.
    bytes: Vec<u8>,
    /// Bytes of workspace that every execution may use.
    workspace_bytes: u64,
    /// The code of other sets of shapes. The write lock is held for a single insertion or removal
    /// only, because executions of known shapes read the table.
    codes: RwLock<HashMap<Box<[i64]>, Known>>,
    /// Logical clock: the number of insertions and successful lookups so far.
    clock: AtomicU64,
    /// Code of captured executions. The host may launch their graphs at any time, so this code
    /// lives as long as the context.
    captured: Mutex<Vec<Arc<Code>>>,
}

/// The code of a set of shapes.
struct Known {
    code: Arc<Code>,
    /// Time of the last use, by the context's clock.
    used: AtomicU64,
}

impl Variable {
    pub(crate) fn new(device: Arc<dyn Device>, graph: Graph, bytes: &[u8], workspace_bytes: u64) -> Self {
        Variable {
            device,
            graph,
            bytes: bytes.to_vec(),
            workspace_bytes,
            codes: RwLock::default(),
            clock: AtomicU64::new(0),
            captured: Mutex::default(),
        }
    }

    /// Returns the code for these shapes. Compiles it if it is not in the context, not loaded and
    /// in no cache.
    fn code(&self, runtime: &Runtime, overrides: &[ShapeOverride<'_>]) -> Result<Arc<Code>, Error> {
        let mut shapes = Shapes::new();
        // Overrides of a rank above the maximum are refused by `with_shapes` below, without being
        // copied here.
        if overrides.iter().all(|shape| shape.dims.len() <= MAX_RANK) {
            for shape in overrides {
                shapes.push(shape.uid);
                shapes.push(shape.dims.len() as i64);
                shapes.extend_from_slice(shape.dims);
                shapes.extend_from_slice(shape.strides);
            }
            if let Some(code) = self.find(&shapes) {
                return Ok(code);
            }
        }
        let graph = self.graph.with_shapes(overrides)?;
        let code = pipeline::specialised(runtime, &self.device, graph)?;
        let needed = code.executable.workspace_bytes();
        if needed > self.workspace_bytes {
            return Err(Error::LargerWorkspace {
                needed,
                told: self.workspace_bytes,
            });
        }
        self.add(&shapes, Arc::clone(&code));
        Ok(code)
    }

    /// Returns the code for these shapes, given as numbers, if the context has it.
    fn find(&self, shapes: &[i64]) -> Option<Arc<Code>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        let known = codes.get(shapes)?;
        known.used.store(self.now(), Ordering::Relaxed);
        Some(Arc::clone(&known.code))
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds the code of a set of shapes. Returns the code that was replaced or evicted.
    pub(crate) fn add(&self, shapes: &[i64], code: Arc<Code>) -> Vec<Arc<Code>> {
        let known = Known {
            code,
            used: AtomicU64::new(self.now()),
        };
        let shapes = shapes.into();
        let mut gone = Vec::new();
        gone.extend(self.changed().insert(shapes, known));
        while let Some(oldest) = self.oldest_of_many() {
            gone.extend(self.changed().remove(&oldest));
        }
        gone.into_iter().map(|known| known.code).collect()
    }

    fn changed(&self) -> RwLockWriteGuard<'_, HashMap<Box<[i64]>, Known>> {
        self.codes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the least recently used set of shapes if there are too many. The search takes a read
    /// lock, so that executions go on: a thread that holds the write lock may be descheduled for
    /// milliseconds, and the search takes longer than all that is done under the write lock.
    fn oldest_of_many(&self) -> Option<Box<[i64]>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        if codes.len() <= MAX_SHAPES {
            return None;
        }
        let oldest = codes.iter().min_by_key(|(_, known)| known.used.load(Ordering::Relaxed));
        oldest.map(|(shapes, _)| shapes.clone())
    }

    /// Keeps code for as long as the context lives.
    fn keep(&self, code: &Arc<Code>) {
        let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
        if !captured.iter().any(|kept| Arc::ptr_eq(kept, code)) {
            captured.push(Arc::clone(code));
        }
    }

    fn serialized(&self) -> SerializedShapes {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        let mut known: Vec<_> = codes
            .iter()
            .map(|(shapes, known)| (shapes.to_vec(), known.code.portable.clone()))
            .collect();
        // Sorted, so that the same context serializes to the same bytes.
        known.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        SerializedShapes {
            graph: self.bytes.clone(),
            workspace_bytes: self.workspace_bytes,
            known,
        }
    }
}

/// A graph that is ready to execute, from any thread.
pub struct ExecutionContext {
    /// The executable of `code`, stored here to save an indirection at every execution.
    executable: Arc<dyn Executable>,
    code: Arc<Code>,
    /// The argument index of each uid, sorted by uid.
    arguments: Box<[(i64, usize)]>,
    /// The arguments that are read on the host: index and size in bytes.
    scalars: Box<[(usize, usize)]>,
    labels: Vec<String>,
    /// The state for dynamic shapes, if the graph has them.
    variable: Option<Variable>,
    /// Bytes of workspace that are requested from the host.
    asked: u64,
    made_in: Process,
}

impl Made for ExecutionContext {
    fn made_in(&self) -> Process {
        self.made_in
    }
}

impl ExecutionContext {
    /// Returns the bytes of workspace that an execution needs: exact for fixed shapes, an upper
    /// bound for dynamic shapes.
    pub(crate) fn needed(code: &Code, variable: Option<&Variable>) -> u64 {
        match variable {
            Some(variable) => variable.workspace_bytes,
            None => code.executable.workspace_bytes(),
        }
    }

    pub(crate) fn new(code: Arc<Code>, bindings: Bindings, variable: Option<Variable>, asked: u64) -> Self {
        let mut arguments: Vec<(i64, usize)> = bindings.uids.iter().copied().zip(0..).collect();
        arguments.sort_unstable();
        let scalars = code.portable.signature.arguments.iter().enumerate();
        let scalars = scalars
            .filter(|(_, argument)| argument.role == SlotRole::Scalar)
            .map(|(index, argument)| (index, argument.dtype.bytes().map_or(0, |bytes| bytes as usize)))
            .collect();
        ExecutionContext {
            executable: Arc::clone(&code.executable),
            code,
            arguments: arguments.into_boxed_slice(),
            scalars,
            labels: bindings.labels,
            variable,
            asked,
            made_in: Process::current(),
        }
    }

    /// Returns the bytes of workspace that are requested from the host: the maximum that an
    /// execution needs, or zero if that is little.
    #[must_use]
    pub fn workspace_bytes(&self) -> u64 {
        self.asked
    }

    /// Returns the context as bytes, which another process can load without a compiler.
    ///
    /// # Errors
    ///
    /// Only if memory runs out.
    pub fn serialize(&self) -> Result<Vec<u8>, Error> {
        let mut tensors: Vec<(usize, i64)> = self.arguments.iter().map(|&(uid, argument)| (argument, uid)).collect();
        tensors.sort_unstable();
        let tensors = tensors.into_iter().map(|(argument, uid)| (uid, self.label(argument)));
        let shapes = self.variable.as_ref().map(Variable::serialized);
        self.code.portable.encode(tensors.collect(), shapes.as_ref())
    }

    /// Executes the graph on the caller's buffers, found by uid. Uids that the graph does not use
    /// are ignored.
    ///
    /// # Errors
    ///
    /// If a buffer is missing, null, given twice or overlaps another where it must not; if the
    /// workspace is missing; if the runtime reports an error.
    ///
    /// # Safety
    ///
    /// The buffers of the graph's uids are valid for the span of their tensors in the device's
    /// memory until the work is done, those of scalars for one element in the memory of the process
    /// during the call, and the workspace for [`workspace_bytes`](Self::workspace_bytes); no other
    /// execution uses this workspace meanwhile.
    pub unsafe fn execute(
        &self,
        stream: Stream,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
    ) -> Result<(), Error> {
        // SAFETY: by this function's contract.
        unsafe { self.run(&*self.executable, stream, workspace, buffers) }
    }

    /// Executes the graph with other shapes of its buffers. Shapes that were not executed before
    /// may have to be compiled first.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); also if the shapes break hipDNN's rules, contradict each
    /// other or are declined.
    ///
    /// # Safety
    ///
    /// As [`execute`](Self::execute), with the spans that the tensors have with these shapes.
    pub unsafe fn execute_with_shapes(
        &self,
        runtime: &Runtime,
        stream: Stream,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
        overrides: &[ShapeOverride<'_>],
    ) -> Result<(), Error> {
        let variable = self
            .variable
            .as_ref()
            .ok_or(Error::Shapes(OverrideError::NotDeclared))?;
        let code = variable.code(runtime, overrides)?;
        if code.executable.is_captured(stream) {
            variable.keep(&code);
        }
        // SAFETY: by this function's contract.
        unsafe { self.run(&*code.executable, stream, workspace, buffers) }
    }

    /// Executes code that has this context's arguments.
    ///
    /// # Safety
    ///
    /// As [`execute`](Self::execute), with the spans that the tensors have in this code.
    unsafe fn run(
        &self,
        executable: &dyn Executable,
        stream: Stream,
        workspace: *mut c_void,
        buffers: &[DeviceBuffer],
    ) -> Result<(), Error> {
        // A host that was asked for no workspace may pass any pointer.
        let workspace = if self.asked == 0 {
            std::ptr::null_mut()
        } else {
            workspace
        };
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
        let mut scalars: SmallVec<[u64; INLINE_ARGUMENTS]> = SmallVec::new();
        for &(argument, length) in &self.scalars {
            let pointer = pointers
                .get_mut(argument)
                // The scalar's pointer is cleared, so that the device sees the same pointers
                // wherever the scalar is stored.
                .map_or(std::ptr::null_mut(), |pointer| {
                    std::mem::replace(pointer, std::ptr::null_mut())
                });
            if pointer.is_null() {
                return Err(Error::MissingBuffer(self.label(argument)));
            }
            // SAFETY: valid for one element by this function's contract; bytes need no alignment.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(bytes) {
                *to = *from;
            }
            scalars.push(u64::from_le_bytes(word));
        }
        // SAFETY: by this function's contract.
        unsafe {
            executable.execute(
                stream,
                &Buffers {
                    pointers: &pointers,
                    scalars: &scalars,
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
            ExecuteError::HostWorkspace => Error::HostWorkspace,
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

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
