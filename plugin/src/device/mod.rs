//! Devices: where kernels run, behind one trait.
//!
//! A device loads compiled code into an [`Executable`] and executes it on buffers of the caller. Host memory (`host`) is complete; AMD
//! GPUs (`hip`) go through the same trait.

pub mod hip;
pub mod host;

use crate::error::Error;
use iree_sys::runtime::{ElementType, Parameter, TensorType};
use rotini_emit::{Argument, Signature, Target};
use rotini_graph::DataType;
use std::ffi::c_void;
use std::sync::Arc;

/// A stream of the caller (`hipStream_t`); null is the default stream. Host devices have none and ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub *mut c_void);

/// The buffers of one execution, in the order of the signature's arguments.
#[derive(Debug)]
pub struct Buffers<'a> {
    /// One pointer per argument.
    pub pointers: &'a [*mut c_void],
    /// The caller's workspace.
    pub workspace: *mut c_void,
}

/// Where kernels run.
pub trait Device: Send + Sync {
    /// What to compile for.
    fn target(&self) -> Target;

    /// The features of the target that the compiled code may depend on, for the cache key.
    fn features(&self) -> &str;

    /// A name for people.
    fn describe(&self) -> String;

    /// Loads compiled code.
    ///
    /// # Errors
    ///
    /// If the runtime refuses it.
    ///
    /// # Safety
    ///
    /// `code` was made by the compiler for this device's target: it runs with all rights of this process.
    unsafe fn load(&self, code: &[u8], signature: &Signature, work: Work) -> Result<Arc<dyn Executable>, Error>;
}

/// Loaded code, for any number of threads.
pub trait Executable: Send + Sync {
    /// Bytes of workspace that one execution needs.
    fn workspace_bytes(&self) -> u64;

    /// Executes on the stream. Host devices return when the work is done, GPUs when it is enqueued.
    ///
    /// # Errors
    ///
    /// Null or overlapping buffers, by position; whatever the runtime reports.
    ///
    /// # Safety
    ///
    /// Every pointer is valid for its argument's bytes in this device's memory until the work is done, and so is the workspace.
    unsafe fn execute(&self, stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError>;
}

/// How much one execution does, to choose between one thread and several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Multiplications and other operations on elements, roughly.
    pub operations: u64,
}

/// Why an execution failed, with positions of arguments: the context knows their names.
#[derive(Debug)]
pub enum ExecuteError {
    /// The argument's pointer is null.
    Null(usize),
    /// Two written arguments overlap.
    Overlap(usize, usize),
    /// The workspace is null, though this many bytes are needed.
    MissingWorkspace(u64),
    /// The runtime's report.
    Runtime(iree_sys::runtime::Error),
}

impl From<iree_sys::runtime::Error> for ExecuteError {
    fn from(error: iree_sys::runtime::Error) -> Self {
        ExecuteError::Runtime(error)
    }
}

/// The runtime's type of an argument.
fn tensor_type(argument: &Argument) -> Result<TensorType, iree_sys::runtime::Error> {
    let element = match argument.dtype {
        DataType::F32 => ElementType::F32,
        DataType::F16 => ElementType::F16,
        DataType::Bf16 => ElementType::Bf16,
        DataType::F64 => ElementType::F64,
        DataType::I32 => ElementType::I32,
        DataType::I64 => ElementType::I64,
        // What is narrower than a byte is declined by the lowering; a byte is a byte, whatever it means.
        _ => ElementType::I8,
    };
    TensorType::new(element, &argument.shape)
}

/// The parameters of the compiled function: its tensors, then the workspace and the fences.
fn parameters(signature: &Signature) -> Result<Vec<Parameter>, iree_sys::runtime::Error> {
    let tensors = signature
        .arguments
        .iter()
        .map(|argument| tensor_type(argument).map(Parameter::Tensor));
    let rest = [Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence];
    tensors.chain(rest.into_iter().map(Ok)).collect()
}
