//! What pool and worker say to each other.
//!
//! The pool sends one [`Setup`] and gets a [`Ready`]; then each [`Request`] gets an [`Answer`] with
//! its number. Paths are bytes: they need not be UTF-8.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::compiler::{CompileError, CompileRequest, Compiler, Statistics, error::chain};

/// A path as it travels.
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

/// What a worker is to be.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The compiler's library.
    pub(super) library: Bytes,
    /// Which build of it the pool's results are filed under.
    pub(super) identity: String,
    /// Bytes of data that the worker may have.
    pub(super) memory_bytes: u64,
}

/// The compiler as [`describe`](crate::compiler::Compiler::describe) has it, or why there is none.
pub(super) type Ready = Result<String, Failure>;

/// One [`CompileRequest`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Tells it from all others of the pool.
    pub(super) number: u64,
    mlir: String,
    name: String,
    flags: Vec<String>,
    dump_executables: Option<Bytes>,
}

impl Request {
    /// Takes a request along. A relative directory is one of this process, not of the worker.
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

    /// Compiles it.
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

/// What came of a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The request's.
    pub(super) number: u64,
    /// Whether the worker ends now.
    pub(super) is_last: bool,
    pub(super) result: Result<Output, Failure>,
}

/// A [`Compiled`](crate::compiler::Compiled).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) vmfb: Vec<u8>,
    pub(super) statistics: Statistics,
    pub(super) diagnostics: String,
}

/// A [`CompileError`], as far as another process can tell it.
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
    /// Another build of the library than the pool has.
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
                // What the loader says is at the end of the chain.
                reason: match &source {
                    None => reason,
                    Some(source) => format!("{reason}: {}", chain(Some(source))),
                },
            },
            other => Self::Other(other.to_string()),
        }
    }
}
