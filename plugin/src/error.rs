//! Errors and the statuses that the ABI knows.

use crate::device::gpu::DriverError;
use rotini_cache::Failure;
use rotini_graph::OverrideError;
use rotini_iree::compiler::Blame;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How long a graph counts as one that exceeds the limits of the compiler.
const LIMITS_LAST: Duration = Duration::from_secs(5 * 60);

/// The ABI's status codes (`hipdnnPluginStatus_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// All is well.
    Success = 0,
    /// An argument is null or malformed.
    BadParam = 1,
    /// An argument is there and wrong.
    InvalidValue = 2,
    /// Anything else.
    InternalError = 3,
    /// No memory.
    AllocFailed = 4,
    /// Declined.
    NotApplicable = 5,
}

/// Why a call of the ABI failed. The text starts with what matters most: hipDNN's front end cuts it
/// at 256 characters.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A pointer that must not be null.
    #[error("{0} is null")]
    Null(&'static str),
    /// An argument with a value that makes no sense.
    #[error("{0}")]
    InvalidArgument(String),
    /// Another engine's id.
    #[error("engine id {0:#018x} is not rotini's")]
    UnknownEngine(i64),
    /// A question about another engine, which is no mistake.
    #[error("engine id {0:#018x} is not rotini's but another plugin's")]
    ForeignEngine(i64),
    /// Bytes that are no engine config.
    #[error("the engine config cannot be read: {0}")]
    EngineConfig(String),
    /// The graph is malformed or uses what the wire format does not define.
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
    /// Two buffers in one place, the second of which is written.
    #[error("{0} and {1} overlap, and {1} is written")]
    Overlap(String, String),
    /// A pointer that is less aligned than needed.
    #[error("{0} is not aligned to {1} bytes")]
    Misaligned(String, usize),
    /// Shapes of an execution that the graph cannot have.
    #[error(transparent)]
    Shapes(#[from] OverrideError),
    /// Shapes of an execution that need more workspace than was reported.
    #[error("with these shapes {needed} bytes of workspace are needed, more than the {told} of the context")]
    LargerWorkspace {
        /// What is needed.
        needed: u64,
        /// What the caller knows of.
        told: u64,
    },
    /// New code that needs more workspace than was reported before it was compiled.
    #[error(
        "the graph is not supported this time: its code needs {needed} bytes of workspace, more than the {reported} that were reported before it \
         was compiled; from now on {needed} are reported"
    )]
    UnreportedWorkspace {
        /// What is needed.
        needed: u64,
        /// What the caller may know of.
        reported: u64,
    },
    /// No workspace, though one is needed.
    #[error("the workspace is null, but {0} bytes are needed")]
    MissingWorkspace(u64),
    /// A workspace that kernels cannot use.
    #[error(
        "the workspace is memory of the host or of another GPU, which this GPU cannot reach: it has to be its own, as from hipMalloc"
    )]
    HostWorkspace,
    /// The plugin cannot allocate memory.
    #[error("{0} bytes of memory cannot be had")]
    NoMemory(usize),
    /// A context of one GPU, and a stream of another.
    #[error("the context was created for GPU {context}, and the handle's stream is on GPU {stream}")]
    OtherGpu {
        /// The context's.
        context: u32,
        /// The stream's.
        stream: u32,
    },
    /// Something of a process before the `fork` that made this one.
    #[error("the {0} is of a process before the fork of this one, and cannot be used in it")]
    Forked(&'static str),
    /// No device that can be used.
    #[error("{0}")]
    NoDevice(String),
    /// The GPU's driver refused.
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
        /// The graph, by its nodes.
        graph: String,
        /// What it was compiled for.
        target: String,
        /// What is to blame.
        blame: Blame,
    },
    /// The graph has failed to compile not long ago.
    #[error("the graph is declined for now, because it failed to compile: {0}")]
    FailedBefore(String),
    /// Bytes that are no serialized execution context, or not as they were written.
    #[error("the serialized execution context is damaged: {0}")]
    DamagedContext(&'static str),
    /// A serialized execution context that is intact, and of no use here.
    #[error("the serialized execution context cannot be loaded here: {0}")]
    ForeignContext(String),
    /// The device or the runtime refused.
    #[error("{what}: {source}")]
    Runtime {
        /// What was attempted.
        what: &'static str,
        /// The runtime's report.
        source: Arc<rotini_iree::runtime::Error>,
    },
    /// The compiled code is not what it must be.
    #[error("the compiled graph cannot be used: {0}")]
    BadCode(String),
    /// A defect of rotini.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// The status that the caller sees.
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
            // The host's next engine may need what it has.
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

    /// Returns how long the failure is remembered: to create the same code again is expected to
    /// fail for that long. `None` if it may succeed at once.
    #[must_use]
    pub const fn lasts(&self) -> Option<Duration> {
        match self {
            Error::BadCode(_)
            | Error::Compile {
                blame: Blame::Module, ..
            } => Some(Failure::LONGEST),
            // Time and memory also depend on what else the machine does.
            Error::Compile {
                blame: Blame::Limit, ..
            } => Some(LIMITS_LAST),
            _ => None,
        }
    }

    /// Whether the runtime refuses the code as such, so that it is of no use to anyone here.
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

    /// Whether a device can never be set up in this process. Other failures, such as a lack of
    /// memory, pass.
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
            // Who chose gave what cannot be.
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
