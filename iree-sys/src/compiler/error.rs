//! Why a compilation failed.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::ExitStatus,
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

    /// The compiler's process ended before it had an answer: a signal after a bug, or an exit that it took by itself.
    #[error("the compiler crashed{}: {}", how(*.status), first_error(.diagnostics))]
    Crashed {
        /// How it ended. `None` if the host has left that to no one: it ignores `SIGCHLD`, or waits for all children itself.
        status: Option<ExitStatus>,
        /// Its last words.
        diagnostics: String,
    },

    /// The compiler had no answer within the time limit, and its process was ended.
    #[error("the compiler took longer than {seconds} s and was stopped")]
    Timeout {
        /// The limit.
        seconds: f64,
        /// What it had said by then.
        diagnostics: String,
    },

    /// The compiler needed more memory than its process may have.
    #[error("the compiler ran out of memory, of which it may have {} MiB: {}", .limit >> 20, first_error(.diagnostics))]
    Memory {
        /// The limit, in bytes.
        limit: u64,
        /// Its last words.
        diagnostics: String,
    },

    /// The compile worker answered with what is no answer, or is of another version or with another library than was asked for.
    #[error("the compile worker does not keep to the protocol: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
        /// What it wrote elsewhere.
        diagnostics: String,
    },

    /// The compile worker failed before it was given a module, in a way that all other variants but the next are for.
    #[error("the compile worker cannot be set up: {source}")]
    Setup {
        /// How.
        source: Box<CompileError>,
    },

    /// A process to compile in cannot be started: use another [`Compiler`](super::Compiler).
    #[error("cannot start {}: {reason}", program.display())]
    Unavailable {
        /// The program.
        program: PathBuf,
        /// Why not.
        reason: String,
        /// The system's report, if there is one.
        source: Option<io::Error>,
    },

    /// Something around the compiler failed in the compile worker: a full disk, for example.
    #[error("the compile worker {reason}")]
    Worker {
        /// What failed, and why.
        reason: String,
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
        /// The loader's report, if it is at hand.
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
            Self::Rejected { diagnostics }
            | Self::Crashed { diagnostics, .. }
            | Self::Timeout { diagnostics, .. }
            | Self::Memory { diagnostics, .. }
            | Self::Protocol { diagnostics, .. } => diagnostics,
            Self::Setup { source } => source.diagnostics(),
            _ => "",
        }
    }

    /// Whether the module is to blame, as far as one can tell, so that the same compiler would fail again. Worth remembering for a
    /// while and no longer: time and memory also depend on what else the machine does.
    #[must_use]
    pub fn blames_module(&self) -> bool {
        match self {
            // The linker is a program of its own: there may be no place for its files, or no programs allowed.
            Self::Rejected { diagnostics } => !["failed to link executable", "iree-lld execute fail"]
                .iter()
                .any(|text| diagnostics.contains(text)),
            Self::Timeout { .. } | Self::Memory { .. } | Self::Protocol { .. } => true,
            // Nobody kills themselves with these two.
            Self::Crashed { status, .. } => !status
                .and_then(|status| status.signal())
                .is_some_and(|signal| [libc::SIGKILL, libc::SIGTERM].contains(&signal)),
            _ => false,
        }
    }

    /// Whether this way of calling the compiler is of no use, while another one may be: a process cannot be started, or an installation
    /// was changed while it was in use. The compiler's own failures and limits are not among that.
    #[must_use]
    pub fn blames_installation(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Library { .. } => true,
            Self::Setup { source } => matches!(**source, Self::Protocol { .. }),
            _ => false,
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

/// How a process ended, as part of a sentence.
fn how(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) if status.signal() == Some(libc::SIGKILL) => {
            format!(" ({status}, from outside; the system does that when memory runs out)")
        }
        Some(status) => format!(" ({status})"),
        None => String::new(),
    }
}

/// The first line that says `error:`, from there on its location included; else the first line with anything in it.
pub(super) fn first_error(diagnostics: &str) -> &str {
    diagnostics
        .lines()
        .find(|line| line.contains("error:"))
        .or_else(|| diagnostics.lines().find(|line| !line.trim().is_empty()))
        .map_or("no diagnostics", str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_linker_that_cannot_run_blames_no_module() {
        let rejected = |diagnostics: &str| CompileError::Rejected {
            diagnostics: diagnostics.to_owned(),
        };
        assert!(rejected("x.mlir:2:7: error: bad op").blames_module());
        assert!(!rejected("x.mlir:2:7: error: failed to link executable and generate target dylib").blames_module());
        assert!(!rejected("x.mlir:2:7: error: iree-lld execute fail:posix_spawn failed").blames_module());
    }

    #[test]
    fn a_kill_from_outside_blames_no_module() {
        let crashed = |signal| CompileError::Crashed {
            status: Some(ExitStatus::from_raw(signal)),
            diagnostics: String::new(),
        };
        assert!(crashed(libc::SIGSEGV).blames_module());
        assert!(!crashed(libc::SIGKILL).blames_module());
        assert!(crashed(libc::SIGKILL).to_string().contains("from outside"));
    }
}
