//! Devices: where kernels run, behind one trait.
//!
//! A device loads compiled code into an [`Executable`] and executes it on buffers of the caller: in
//! the memory of the process (`host`), or in a GPU's (`gpu`), where executions are ordered by the
//! caller's stream.

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

/// A stream of the caller. Host devices have none and ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// `hipStream_t` or `CUstream`; null is the GPU's default stream.
    pub pointer: *mut c_void,
    /// The GPU that it is on.
    pub ordinal: u32,
}

/// The GPUs of this process.
pub trait Gpus: Send + Sync {
    /// The GPU that a stream is on; for the null stream the calling thread's current one.
    ///
    /// # Errors
    ///
    /// The driver's error, if it is not a stream.
    fn of_stream(&self, stream: *mut c_void) -> Result<u32, Error>;

    /// The driver's library, by the name or path under which the loader finds it again.
    fn library(&self) -> &str;

    /// A line for people on each GPU, by ordinal. Sets none up.
    fn list(&self) -> Vec<String>;

    /// A GPU by its ordinal, set up when it is first asked for.
    ///
    /// # Errors
    ///
    /// If there is none, or none that code can be compiled for.
    fn device(&self, ordinal: u32) -> Result<Arc<dyn Device>, Error>;
}

/// What one execution is given.
#[derive(Debug)]
pub struct Buffers<'a> {
    /// One pointer per argument of the signature; null for scalars.
    pub pointers: &'a [*mut c_void],
    /// The bits of the scalars, in the signature's order.
    pub scalars: &'a [u64],
    /// The caller's workspace; where it is null, an execution that needs little uses memory of the
    /// device's.
    pub workspace: *mut c_void,
}

/// Where kernels run.
pub trait Device: Send + Sync {
    /// What to compile for.
    fn compiled_for(&self) -> &CompiledFor<Target>;

    /// A name for people.
    fn describe(&self) -> String;

    /// All that the times of code for [`Self::compiled_for`] depend on besides: product, threads or
    /// compute units, driver. What was measured on one device is not used on another.
    fn measured_on(&self) -> String;

    /// Whether executions can be captured into a graph of the driver's, to be replayed.
    fn can_be_captured(&self) -> bool;

    /// Loads compiled code. Code with the same key is the same code, and may be loaded still.
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

/// Loaded code, for any number of threads.
pub trait Executable: Send + Sync {
    /// Bytes of workspace that one execution needs.
    fn workspace_bytes(&self) -> u64;

    /// Whether executions on the stream are captured now, to be done later; true also if that is
    /// unknown.
    fn is_captured(&self, _stream: Stream) -> bool {
        false
    }

    /// Executes on the stream. Host devices return when the work is done, GPUs when it is enqueued.
    ///
    /// # Errors
    ///
    /// Null or overlapping buffers, by position; whatever the runtime reports.
    ///
    /// # Safety
    ///
    /// Every pointer is valid for its argument's bytes in this device's memory until the work is
    /// done, and so is the workspace. The scalars are as many as the signature has. The stream is
    /// on the GPU that it says it is on.
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
    /// Two arguments overlap, the second of which is written.
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
    /// The workspace is memory that the GPU cannot reach, as far as that is known.
    HostWorkspace,
    /// The code is loaded on another GPU than the stream is on.
    OtherGpu {
        /// The code's.
        code: u32,
        /// The stream's.
        stream: u32,
    },
    /// The GPU's driver's report.
    Driver(DriverError),
    /// The runtime's report.
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

/// What was made once, or the reason why it never can be.
pub(crate) type Settled<T> = OnceLock<Result<T, Error>>;

/// What is settled; else tries to make it, and keeps what lasts of the outcome.
///
/// # Errors
///
/// Why it cannot be made, now or ever.
pub(crate) fn make_once<T: Clone>(settled: &Settled<T>, make: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if let Some(settled) = settled.get() {
        return settled.clone();
    }
    match make() {
        Err(error) if !error.is_about_devices() => Err(error),
        // Another thread may have been faster.
        made => settled.get_or_init(|| made).clone(),
    }
}

/// The runtime's type of an argument.
fn tensor_type(argument: &Argument) -> Result<TensorType, rotini_iree::runtime::Error> {
    let element = match argument.dtype.storage() {
        Storage::F32 => ElementType::F32,
        Storage::F16 => ElementType::F16,
        Storage::Bf16 => ElementType::Bf16,
        Storage::F64 => ElementType::F64,
        Storage::I32 => ElementType::I32,
        Storage::I64 => ElementType::I64,
        // A byte is a byte, whatever it means.
        Storage::I8 => ElementType::I8,
    };
    TensorType::new(element, &argument.shape)
}

/// The parameters of the compiled function: its tensors and scalars, then the workspace and the
/// fences.
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
