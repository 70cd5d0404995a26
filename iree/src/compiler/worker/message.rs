//! The messages between pool and worker.
//!
//! The pool sends one [`Setup`] and gets a [`Ready`]; then each [`Request`] gets an [`Answer`] with
//! the same number. Paths are sent as bytes, since they need not be UTF-8.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::compiler::{CompileError, CompileRequest, Compiler, Statistics, error::chain};

/// A path in a message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Bytes(Vec<u8>);

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<Bytes> for PathBuf {
    fn from(Bytes(bytes): Bytes) -> Self {
        OsString::from_vec(bytes).into()
    }
}

/// The configuration of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The compiler's library.
    pub(super) library: Bytes,
    /// The build of the library under which the pool's results are cached.
    pub(super) identity: String,
    /// Bytes of data that the worker may have, without its stacks.
    pub(super) memory_bytes: u64,
}

/// The compiler's [`describe`](crate::compiler::Compiler::describe) text, or the reason why there
/// is no compiler.
pub(super) type Ready = Result<String, Failure>;

/// A [`CompileRequest`] in a message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The request's number, unique in the pool.
    pub(super) number: u64,
    mlir: String,
    name: String,
    flags: Vec<String>,
    dump_executables: Option<Bytes>,
}

impl Request {
    /// Copies a request. A relative directory is resolved here, since it is relative to this
    /// process, not to the worker.
    pub(super) fn new(number: u64, request: &CompileRequest<'_>) -> Result<Self, CompileError> {
        let directory = request
            .dump_executables
            .map(|directory| std::path::absolute(directory).map_err(CompileError::io("resolve", directory)))
            .transpose()?;
        Ok(Self {
            number,
            mlir: request.mlir.to_owned(),
            name: request.name.to_owned(),
            flags: request.flags.to_vec(),
            dump_executables: directory.as_deref().map(Bytes::from),
        })
    }

    /// Compiles the module of the request.
    pub(super) fn compile(self, compiler: &dyn Compiler) -> Answer {
        let directory = self.dump_executables.map(PathBuf::from);
        let compiled = compiler.compile(&CompileRequest {
            mlir: &self.mlir,
            name: &self.name,
            flags: &self.flags,
            dump_executables: directory.as_deref(),
        });
        Answer {
            number: self.number,
            is_last: false,
            result: compiled.map_err(Failure::from).map(|compiled| Output {
                vmfb: compiled.vmfb,
                statistics: compiled.statistics,
                diagnostics: compiled.diagnostics,
            }),
        }
    }
}

/// The result of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The request's number.
    pub(super) number: u64,
    /// Whether the worker ends after this answer.
    pub(super) is_last: bool,
    pub(super) result: Result<Output, Failure>,
}

/// A [`Compiled`](crate::compiler::Compiled) in a message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) vmfb: Vec<u8>,
    pub(super) statistics: Statistics,
    pub(super) diagnostics: String,
}

/// A [`CompileError`] in a message, as far as it can be sent to another process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    Rejected {
        diagnostics: String,
    },
    Request(String),
    Library {
        path: Bytes,
        reason: String,
    },
    /// The library is another build than the pool expects; its identity.
    Identity(String),
    Other(String),
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Rejected { diagnostics } => Self::Rejected { diagnostics },
            CompileError::Request(reason) => Self::Request(reason),
            CompileError::Library { path, reason, source } => Self::Library {
                path: path.as_path().into(),
                // The loader's message is at the end of the chain.
                reason: match &source {
                    None => reason,
                    Some(source) => format!("{reason}: {}", chain(Some(source))),
                },
            },
            other => Self::Other(other.to_string()),
        }
    }
}
