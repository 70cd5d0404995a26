//! Why a compilation failed.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A failed compilation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The compiler did not accept the module or a flag.
    #[error("the compiler rejected the module: {}", first_error(.diagnostics))]
    Rejected {
        /// Everything it said.
        diagnostics: String,
    },

    /// The compiler process was ended by a signal: a bug in the compiler, or not enough memory.
    #[error("the compiler crashed with signal {signal}: {}", first_error(.diagnostics))]
    Crashed {
        /// The signal's number.
        signal: i32,
        /// Everything it said.
        diagnostics: String,
    },

    /// The request cannot be handed to a compiler.
    #[error("invalid compile request: {0}")]
    Request(String),

    /// The compiler's library cannot be used.
    #[error("cannot use the compiler library {path}: {reason}")]
    Library {
        /// The library.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The loader's report.
        source: Option<libloading::Error>,
    },

    /// The compiler reported success without the statistics it was asked for.
    #[error("the compiler's statistics cannot be read: {0}")]
    Statistics(#[source] serde_json::Error),

    /// A file or process operation around the compiler failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's report.
        source: io::Error,
    },
}

impl CompileError {
    /// Everything the compiler said; empty when it never ran.
    #[must_use]
    pub fn diagnostics(&self) -> &str {
        match self {
            Self::Rejected { diagnostics } | Self::Crashed { diagnostics, .. } => diagnostics,
            _ => "",
        }
    }

    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            what,
            path: path.to_owned(),
            source,
        }
    }
}

/// The first line that says `error:`, from there on its location included; else the first line with anything in it.
fn first_error(diagnostics: &str) -> &str {
    diagnostics
        .lines()
        .find(|line| line.contains("error:"))
        .or_else(|| diagnostics.lines().find(|line| !line.trim().is_empty()))
        .map_or("no diagnostics", str::trim)
}

#[cfg(test)]
mod tests {
    use super::first_error;

    #[test]
    fn first_error_skips_what_comes_before() {
        let text = "\nx.mlir:1:1: warning: odd\nx.mlir:2:7: error: bad op\n  ^\nx.mlir:9:9: error: later";
        assert_eq!(first_error(text), "x.mlir:2:7: error: bad op");
        assert_eq!(
            first_error("\n iree-compile: Unknown flag\n"),
            "iree-compile: Unknown flag"
        );
        assert_eq!(first_error(" \n"), "no diagnostics");
    }
}
