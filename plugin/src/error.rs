//! Errors and the statuses that the ABI knows.

use crate::device::gpu::DriverError;
use rotini_cache::Failure;
use rotini_graph::OverrideError;
use rotini_iree::compiler::Blame;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Time for which a graph that exceeded the compiler's limits is remembered as failed.
const LIMITS_LAST: Duration = Duration::from_secs(5 * 60);

/// The ABI's status codes (`hipdnnPluginStatus_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Success.
    Success = 0,
    /// An argument is null or malformed.
    BadParam = 1,
    /// An argument has an invalid value.
    InvalidValue = 2,
    /// Any other failure.
    InternalError = 3,
    /// Memory ran out.
    AllocFailed = 4,
    /// The graph is not supported here.
    NotApplicable = 5,
}

/// The reason why a call of the ABI failed. The text starts with the most important part, because
/// hipDNN's front end truncates it at 256 characters.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A pointer is null that must not be.
    #[error("{0} is null")]
    Null(&'static str),
    /// An argument with a value that makes no sense.
    #[error("{0}")]
    InvalidArgument(String),
    /// An id of another engine, where only this engine's is valid.
    #[error("engine id {0:#018x} is not rotini's")]
    UnknownEngine(i64),
    /// A query about another engine, which is no mistake of the host.
    #[error("engine id {0:#018x} is not rotini's but another plugin's")]
    ForeignEngine(i64),
    /// Bytes that are no engine config.
    #[error("the engine config cannot be read: {0}")]
    EngineConfig(String),
    /// The graph is malformed or uses something that the wire format does not define.
    #[error("the graph is not valid: {0}")]
    Graph(String),
    /// The graph is well formed, but not supported.
    #[error("the graph is not supported: {0}")]
    Unsupported(String),
    /// A tensor without a buffer.
    #[error("{0} has no buffer")]
    MissingBuffer(String),
    /// A tensor with two buffers.
    #[error("{0} is given two different buffers")]
    TwoBuffers(String),
    /// Two buffers overlap, and the second one is written.
    #[error("{0} and {1} overlap, and {1} is written")]
    Overlap(String, String),
    /// A pointer that is less aligned than needed.
    #[error("{0} is not aligned to {1} bytes")]
    Misaligned(String, usize),
    /// Shapes of an execution that the graph does not allow.
    #[error(transparent)]
    Shapes(#[from] OverrideError),
    /// Shapes of an execution that need more workspace than was reported for the context.
    #[error("with these shapes {needed} bytes of workspace are needed, more than the {told} of the context")]
    LargerWorkspace {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that were reported to the caller.
        told: u64,
    },
    /// Newly compiled code that needs more workspace than was reported before it was compiled.
    #[error(
        "the graph is not supported this time: its code needs {needed} bytes of workspace, more than the {reported} that were reported before it \
         was compiled; from now on {needed} are reported"
    )]
    UnreportedWorkspace {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that may have been reported to the caller.
        reported: u64,
    },
    /// A null workspace, though one is needed.
    #[error("the workspace is null, but {0} bytes are needed")]
    MissingWorkspace(u64),
    /// A workspace that the GPU's kernels cannot access.
    #[error(
        "the workspace is memory of the host or of another GPU, which this GPU cannot reach: it has to be its own, as from hipMalloc"
    )]
    HostWorkspace,
    /// The plugin cannot allocate this many bytes.
    #[error("{0} bytes of memory cannot be had")]
    NoMemory(usize),
    /// A context of one GPU was executed on a stream of another.
    #[error("the context was created for GPU {context}, and the handle's stream is on GPU {stream}")]
    OtherGpu {
        /// Ordinal of the context's GPU.
        context: u32,
        /// Ordinal of the stream's GPU.
        stream: u32,
    },
    /// An object that was made before the `fork` that created this process.
    #[error("the {0} is of a process before the fork of this one, and cannot be used in it")]
    Forked(&'static str),
    /// No usable device.
    #[error("{0}")]
    NoDevice(String),
    /// The GPU's driver reported an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// No compiler on this machine.
    #[error("no compiler: {0}")]
    NoCompiler(String),
    /// The graph does not compile.
    #[error("{first_line} (compiling {graph} for {target})")]
    Compile {
        /// The first error of the compiler.
        first_line: String,
        /// The graph, described by its nodes.
        graph: String,
        /// The target that it was compiled for.
        target: String,
        /// The cause of the failure.
        blame: Blame,
    },
    /// The graph failed to compile recently.
    #[error("the graph is declined for now, because it failed to compile: {0}")]
    FailedBefore(String),
    /// Bytes that are no serialized execution context, or were changed since they were written.
    #[error("the serialized execution context is damaged: {0}")]
    DamagedContext(&'static str),
    /// A serialized execution context that is intact, but cannot be used here.
    #[error("the serialized execution context cannot be loaded here: {0}")]
    ForeignContext(String),
    /// The device or the runtime reported an error.
    #[error("{what}: {source}")]
    Runtime {
        /// The operation that was attempted.
        what: &'static str,
        /// The runtime's report.
        source: Arc<rotini_iree::runtime::Error>,
    },
    /// The compiled code violates a requirement.
    #[error("the compiled graph cannot be used: {0}")]
    BadCode(String),
    /// A defect of rotini.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// Returns the status that the caller gets.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Error::Null(_) | Error::EngineConfig(_) => Status::BadParam,
            Error::InvalidArgument(_)
            | Error::UnknownEngine(_)
            | Error::Graph(_)
            | Error::MissingBuffer(_)
            | Error::TwoBuffers(_)
            | Error::Overlap(..)
            | Error::Misaligned(..)
            | Error::MissingWorkspace(_)
            | Error::HostWorkspace
            | Error::Shapes(_)
            | Error::DamagedContext(_)
            | Error::OtherGpu { .. } => Status::InvalidValue,
            Error::Unsupported(_)
            | Error::ForeignEngine(_)
            | Error::ForeignContext(_)
            | Error::FailedBefore(_)
            // The host may have another engine that needs no more workspace than was reported.
            | Error::UnreportedWorkspace { .. } => Status::NotApplicable,
            Error::NoMemory(_) => Status::AllocFailed,
            Error::Driver(error) if error.out_of_memory => Status::AllocFailed,
            Error::Driver(_)
            | Error::Forked(_)
            | Error::NoDevice(_)
            | Error::NoCompiler(_)
            | Error::Compile { .. }
            | Error::Runtime { .. }
            | Error::BadCode(_)
            | Error::LargerWorkspace { .. }
            | Error::Internal(_) => Status::InternalError,
        }
    }

    /// Returns how long the failure is remembered, because creating the same code again is expected
    /// to fail; `None` if a retry may succeed at once.
    #[must_use]
    pub const fn lasts(&self) -> Option<Duration> {
        match self {
            Error::BadCode(_)
            | Error::Compile {
                blame: Blame::Module, ..
            } => Some(Failure::LONGEST),
            // The time and memory that a compilation needs also depend on what else the machine
            // does.
            Error::Compile {
                blame: Blame::Limit, ..
            } => Some(LIMITS_LAST),
            _ => None,
        }
    }

    /// Returns true if the runtime refuses the code itself, so that it is of no use on this device.
    pub(crate) fn is_refused_code(&self) -> bool {
        let Error::Runtime { source, .. } = self else {
            return false;
        };
        match &**source {
            rotini_iree::runtime::Error::Load(_) => true,
            // Code for another device. Other failures, such as a lack of memory, may pass.
            rotini_iree::runtime::Error::Session { source, .. } => {
                source.code() == rotini_iree::result::Code::Incompatible
            }
            _ => false,
        }
    }

    /// Returns true if the device can never be set up in this process. Other failures, such as a
    /// lack of memory, are temporary.
    pub(crate) const fn is_about_devices(&self) -> bool {
        matches!(self, Error::NoDevice(_) | Error::Forked(_))
    }

    pub(crate) fn runtime(what: &'static str) -> impl FnOnce(rotini_iree::runtime::Error) -> Error {
        move |source| Error::Runtime {
            what,
            source: Arc::new(source),
        }
    }
}

impl From<rotini_emit::EmitError> for Error {
    fn from(error: rotini_emit::EmitError) -> Self {
        match error {
            // The caller chose a form that does not exist.
            rotini_emit::EmitError::Choice { .. } => Error::InvalidArgument(error.to_string()),
            error => Error::Internal(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_fail_again_lasts_and_limits_for_minutes() {
        let lasts = |blame| {
            let error = Error::Compile {
                first_line: String::new(),
                graph: String::new(),
                target: String::new(),
                blame,
            };
            error.lasts().map(|lifetime| lifetime.as_secs())
        };
        assert_eq!(lasts(Blame::Module), Some(24 * 60 * 60));
        assert_eq!(lasts(Blame::Limit), Some(5 * 60));
        assert_eq!((lasts(Blame::Moment), lasts(Blame::Installation)), (None, None));
        assert_eq!(Error::NoCompiler(String::new()).lasts(), None);
    }
}
