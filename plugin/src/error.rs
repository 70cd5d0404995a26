//! Errors and the statuses that the ABI knows.

use crate::device::gpu::DriverError;
use std::sync::Arc;
use thiserror::Error;

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

/// Why a call of the ABI failed. The text starts with what matters most: hipDNN's front end cuts it at 256 characters.
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
    /// No workspace, though one is needed.
    #[error("the workspace is null, but {0} bytes are needed")]
    MissingWorkspace(u64),
    /// A context of one GPU, and a stream of another.
    #[error("the context was created for GPU {context}, and the handle's stream is on GPU {stream}")]
    OtherGpu {
        /// The context's.
        context: u32,
        /// The stream's.
        stream: u32,
    },
    /// No device that can be used.
    #[error("{0}")]
    NoDevice(String),
    /// The GPU's driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// No compiler on this machine.
    #[error("no compiler: {0}")]
    NoCompiler(String),
    /// The compiler refused the graph.
    #[error("{first_line} (compiling for {target})")]
    Compile {
        /// The first error of the compiler.
        first_line: String,
        /// What it was compiled for.
        target: String,
    },
    /// The device or the runtime refused.
    #[error("{what}: {source}")]
    Runtime {
        /// What was attempted.
        what: &'static str,
        /// The runtime's report.
        source: Arc<iree_sys::runtime::Error>,
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
            | Error::OtherGpu { .. } => Status::InvalidValue,
            Error::Unsupported(_) | Error::ForeignEngine(_) => Status::NotApplicable,
            Error::Driver(error) if error.out_of_memory => Status::AllocFailed,
            Error::Driver(_)
            | Error::NoDevice(_)
            | Error::NoCompiler(_)
            | Error::Compile { .. }
            | Error::Runtime { .. }
            | Error::BadCode(_)
            | Error::Internal(_) => Status::InternalError,
        }
    }

    pub(crate) fn runtime(what: &'static str) -> impl FnOnce(iree_sys::runtime::Error) -> Error {
        move |source| Error::Runtime {
            what,
            source: Arc::new(source),
        }
    }
}
