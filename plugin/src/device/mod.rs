//! Devices that kernels run on, behind one trait.
//!
//! A device loads compiled code into an [`Executable`] and executes it on buffers of the caller: in
//! the memory of the process (`host`), or in GPU memory (`gpu`), where executions are ordered by
//! the caller's stream.

pub mod gpu;
pub mod host;
mod retired;

use crate::error::Error;
use gpu::DriverError;
use rotini_cache::{CompiledFor, Key};
use rotini_emit::{Argument, Signature, Target};
use rotini_graph::{SlotRole, Storage};
use rotini_iree::runtime::{ElementType, Parameter, TensorType};
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

/// A stream of the caller. Host devices ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// `hipStream_t` or `CUstream`; null is the GPU's default stream.
    pub pointer: *mut c_void,
    /// Ordinal of the GPU that the stream is on.
    pub ordinal: u32,
}

/// The GPUs of this process.
pub trait Gpus: Send + Sync {
    /// Returns the GPU that a stream is on; for the null stream, the calling thread's current GPU.
    ///
    /// # Errors
    ///
    /// The driver's error, if it is not a stream.
    fn of_stream(&self, stream: *mut c_void) -> Result<u32, Error>;

    /// Returns the name or path under which the loader finds the driver's library again.
    fn library(&self) -> &str;

    /// Returns a one-line description of each GPU, by ordinal. Sets up no GPU.
    fn list(&self) -> Vec<String>;

    /// Returns the GPU with this ordinal, and sets it up on first use.
    ///
    /// # Errors
    ///
    /// If there is no such GPU, or none that code can be compiled for.
    fn device(&self, ordinal: u32) -> Result<Arc<dyn Device>, Error>;
}

/// The arguments of one execution.
#[derive(Debug)]
pub struct Buffers<'a> {
    /// One pointer per argument of the signature; null for scalars.
    pub pointers: &'a [*mut c_void],
    /// The bits of the scalars, in the signature's order.
    pub scalars: &'a [u64],
    /// The caller's workspace. If it is null, an execution that needs little workspace uses the
    /// plugin's own memory.
    pub workspace: *mut c_void,
}

/// A device that kernels run on.
pub trait Device: Send + Sync {
    /// Returns the target and features to compile for.
    fn compiled_for(&self) -> &CompiledFor<Target>;

    /// Returns a description for people.
    fn describe(&self) -> String;

    /// Returns everything besides [`Self::compiled_for`] that the run time of code depends on:
    /// product, number of threads or compute units, driver. Measurements on one device are not used
    /// on another.
    fn measured_on(&self) -> String;

    /// Returns whether executions can be captured into a graph of the driver, to be replayed.
    fn can_be_captured(&self) -> bool;

    /// Loads compiled code. Code with the same key is identical, and may still be loaded.
    ///
    /// # Errors
    ///
    /// If the runtime refuses it.
    ///
    /// # Safety
    ///
    /// `code` was made by the compiler for this device's target: it runs with all rights of this
    /// process.
    unsafe fn load(
        &self,
        key: &Key,
        code: &[u8],
        signature: &Signature,
        work: Work,
    ) -> Result<Arc<dyn Executable>, Error>;
}

/// Loaded code, which any number of threads may execute.
pub trait Executable: Send + Sync {
    /// Returns the bytes of workspace that one execution needs.
    fn workspace_bytes(&self) -> u64;

    /// Returns whether the stream is being captured, so that executions on it run later. Also true
    /// if that is unknown.
    fn is_captured(&self, _stream: Stream) -> bool {
        false
    }

    /// Executes the code on the stream. Host devices return when the work is done, GPUs when it is
    /// enqueued.
    ///
    /// # Errors
    ///
    /// If buffers are null or overlap, with their positions, and if the runtime reports an error.
    ///
    /// # Safety
    ///
    /// Every pointer is valid for its argument's bytes in this device's memory until the work is
    /// done, and so is the workspace. There are as many scalars as in the signature. The stream is
    /// on the GPU that it names.
    unsafe fn execute(&self, stream: Stream, buffers: &Buffers<'_>) -> Result<(), ExecuteError>;
}

/// The amount of work of one execution, which decides between one thread and several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Multiplications and other operations on elements, roughly.
    pub operations: u64,
}

/// The reason why an execution failed. Arguments are given by position, because only the context
/// knows their names.
#[derive(Debug)]
pub enum ExecuteError {
    /// The argument's pointer is null.
    Null(usize),
    /// Two arguments overlap, and the second one is written.
    Overlap(usize, usize),
    /// The argument's pointer is no multiple of this many bytes.
    Misaligned(usize, usize),
    /// The workspace is null, though this many bytes are needed.
    MissingWorkspace(u64),
    /// The workspace's pointer is no multiple of this many bytes.
    MisalignedWorkspace(usize),
    /// This many bytes of memory cannot be allocated.
    NoMemory(usize),
    /// The workspace overlaps an argument.
    WorkspaceOverlap(usize),
    /// The workspace is memory that the GPU cannot access, as far as that is known.
    HostWorkspace,
    /// The code is loaded on another GPU than that of the stream.
    OtherGpu {
        /// Ordinal of the GPU that has the code.
        code: u32,
        /// Ordinal of the stream's GPU.
        stream: u32,
    },
    /// An error of the GPU's driver.
    Driver(DriverError),
    /// An error of the runtime.
    Runtime(rotini_iree::runtime::Error),
}

impl From<DriverError> for ExecuteError {
    fn from(error: DriverError) -> Self {
        ExecuteError::Driver(error)
    }
}

impl From<rotini_iree::runtime::Error> for ExecuteError {
    fn from(error: rotini_iree::runtime::Error) -> Self {
        ExecuteError::Runtime(error)
    }
}

/// A value that is made once, or the reason why it can never be made.
pub(crate) type Settled<T> = OnceLock<Result<T, Error>>;

/// Returns the settled result. If there is none, tries to make the value, and stores the result
/// unless it is a temporary failure.
///
/// # Errors
///
/// The reason why the value cannot be made, now or ever.
pub(crate) fn make_once<T: Clone>(settled: &Settled<T>, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if let Some(settled) = settled.get() {
        return settled.clone();
    }
    match make() {
        Err(error) if !error.is_about_devices() => Err(error),
        // Another thread may have settled the value meanwhile.
        made => settled.get_or_init(|| made).clone(),
    }
}

/// Returns the runtime's type of an argument.
fn tensor_type(argument: &Argument) -> Result<TensorType, rotini_iree::runtime::Error> {
    let element = match argument.dtype.storage() {
        Storage::F32 => ElementType::F32,
        Storage::F16 => ElementType::F16,
        Storage::Bf16 => ElementType::Bf16,
        Storage::F64 => ElementType::F64,
        Storage::I32 => ElementType::I32,
        Storage::I64 => ElementType::I64,
        // Bytes are only moved, so their meaning does not matter.
        Storage::I8 => ElementType::I8,
    };
    TensorType::new(element, &argument.shape)
}

/// Returns the parameters of the compiled function: its tensors and scalars, then the workspace and
/// the fences.
fn parameters(signature: &Signature) -> Result<Vec<Parameter>, rotini_iree::runtime::Error> {
    let arguments = signature.arguments.iter().map(|argument| match argument.role {
        SlotRole::Scalar => Ok(Parameter::Number {
            bytes: argument
                .dtype
                .bytes()
                .and_then(|bytes| bytes.try_into().ok())
                .unwrap_or(1),
        }),
        SlotRole::Input | SlotRole::Output => tensor_type(argument).map(Parameter::Tensor),
    });
    let rest = [Parameter::Workspace, Parameter::WaitFence, Parameter::SignalFence];
    arguments.chain(rest.into_iter().map(Ok)).collect()
}
