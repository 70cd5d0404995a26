//! Errors of a compilation.

use std::{
    error::Error,
    io, iter,
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
        /// Everything that the compiler reported.
        diagnostics: String,
    },

    /// The compiler's process ended without an answer: by a signal after a bug, or by its own exit.
    #[error("the compiler crashed{}: {}", how(*.status), first_error(.diagnostics))]
    Crashed {
        /// The exit status. `None` if the host does not let it be known: the host ignores
        /// `SIGCHLD`, or waits for all children itself.
        status: Option<ExitStatus>,
        /// The last output of the process.
        diagnostics: String,
    },

    /// The compiler gave no answer within the time limit, and its process was killed.
    #[error("the compiler took longer than {seconds} s and was stopped")]
    Timeout {
        /// The time limit.
        seconds: f64,
        /// The compiler's output until then.
        diagnostics: String,
    },

    /// The compiler needed more memory than its process is allowed.
    #[error("the compiler ran out of memory, of which it may have {} MiB: {}", .limit >> 20, first_error(.diagnostics))]
    Memory {
        /// The limit, in bytes.
        limit: u64,
        /// The last output of the process.
        diagnostics: String,
    },

    /// The compile worker's answer is malformed, or the worker is of another version or uses
    /// another library than requested.
    #[error("the compile worker does not keep to the protocol: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
        /// The worker's output on its standard output and standard error.
        diagnostics: String,
    },

    /// The compile worker failed before it was given a module; `source` is the failure, described
    /// by another variant.
    #[error("the compile worker cannot be set up: {source}")]
    Setup {
        /// The failure.
        source: Box<CompileError>,
    },

    /// A process for the compilation cannot be started.
    #[error("cannot start {}: {reason}", program.display())]
    Unavailable {
        /// The program.
        program: PathBuf,
        /// The reason.
        reason: String,
        /// The system's report, if there is one.
        source: Option<io::Error>,
    },

    /// Something other than the compiler failed in the compile worker, for example because of a
    /// full disk.
    #[error("the compile worker {reason}")]
    Worker {
        /// The operation that failed, with its cause.
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
        /// The fault of the library.
        reason: String,
        /// The loader's report, if it is available.
        source: Option<libloading::Error>,
    },

    /// The compiler reported success, but the statistics that were requested cannot be read.
    #[error("the compiler's statistics cannot be read: {0}")]
    Statistics(#[source] serde_json::Error),

    /// A file or process operation around the compiler failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The path that the operation was applied to.
        path: PathBuf,
        /// The system's report.
        source: io::Error,
    },
}

impl CompileError {
    /// Returns everything that the compiler reported; empty if it never ran.
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

    /// Returns what is to blame, as far as that can be determined.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            // The linker is a separate program: there may be no space for its files, or starting
            // programs may be forbidden.
            Self::Rejected { diagnostics }
                if LINKER.iter().any(|text| diagnostics.contains(text))
                    || tells_of_shortage(diagnostics)
                    || is_out_of_memory(diagnostics) =>
            {
                Blame::Moment
            }
            Self::Crashed { status, diagnostics } => match status.map(|status| status.signal()) {
                // A process does not send these two signals to itself.
                Some(Some(libc::SIGKILL | libc::SIGTERM)) => Blame::Moment,
                // `Crashed` comes from a process without a memory limit of this crate, so the
                // system was short of memory.
                _ if tells_of_shortage(diagnostics) || is_out_of_memory(diagnostics) => Blame::Moment,
                Some(_) => Blame::Module,
                // A crash of the compiler leaves output, a kill from outside does not.
                None if diagnostics.trim().is_empty() => Blame::Moment,
                None => Blame::Limit,
            },
            Self::Rejected { .. } | Self::Protocol { .. } => Blame::Module,
            Self::Timeout { .. } | Self::Memory { .. } => Blame::Limit,
            Self::Unavailable { reason, source, .. } => match source {
                Some(source) if is_shortage(source) => Blame::Moment,
                _ if tells_of_shortage(reason) => Blame::Moment,
                _ => Blame::Installation,
            },
            Self::Library { reason, source, .. } => {
                let said = chain(source.as_ref().map(|source| source as &dyn Error));
                if tells_of_shortage(reason) || tells_of_shortage(&said) {
                    Blame::Moment
                } else {
                    Blame::Installation
                }
            }
            Self::Setup { source } if matches!(**source, Self::Protocol { .. }) => Blame::Installation,
            Self::Setup { .. } | Self::Worker { .. } | Self::Request(_) | Self::Statistics(_) | Self::Io { .. } => {
                Blame::Moment
            }
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

/// The cause of a failed compilation, which decides whether a retry helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The module: the same compiler would fail on it again.
    Module,
    /// The module together with a limit on time or memory. How much of either it needs also depends
    /// on the load of the machine.
    Limit,
    /// The way in which the compiler is called: no process can be started, or an installation was
    /// changed while in use. Another way of calling it may work.
    Installation,
    /// A temporary cause: the next attempt may succeed.
    Moment,
}

/// The compiler's messages when its linker did not run.
const LINKER: [&str; 2] = ["failed to link executable", "iree-lld execute fail"];

/// Returns whether a system resource was exhausted that may become free again: descriptors,
/// processes, memory, disk space.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::INTR,
        // A program whose file is still being written.
        Errno::TXTBSY,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
}

/// Returns whether another process's output reports such a shortage, in the words of the C library.
fn tells_of_shortage(text: &str) -> bool {
    [
        "Too many open files",
        "Resource temporarily unavailable",
        "annot allocate memory",
        "No space left on device",
        "Disk quota exceeded",
    ]
    .iter()
    .any(|said| text.contains(said))
}

/// Returns whether a process's last output says that memory ran out, in the words of Rust, C++,
/// LLVM or the loader. The message about exceptions is Rust's too: the compiler throws none but
/// those of its allocator.
pub(super) fn is_out_of_memory(words: &str) -> bool {
    [
        "memory allocation of",
        "cannot catch foreign exceptions",
        "bad_alloc",
        "out of memory",
        "Allocation failed",
        "annot allocate memory",
        "failed to map segment",
    ]
    .iter()
    .any(|text| words.contains(text))
}

/// Formats an error and all its causes on one line.
pub(super) fn chain(error: Option<&dyn Error>) -> String {
    let chain: Vec<_> = iter::successors(error, |&error| error.source())
        .map(ToString::to_string)
        .collect();
    chain.join(": ")
}

/// Formats the end of a process as part of a sentence.
fn how(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) if status.signal() == Some(libc::SIGKILL) => {
            format!(" ({status}, from outside; the system does that when memory runs out)")
        }
        Some(status) => format!(" ({status})"),
        None => String::new(),
    }
}

/// Returns the first line that contains `error:`, with the location before it; else the first line
/// that is not blank.
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
        assert_eq!(rejected("x.mlir:2:7: error: bad op").blame(), Blame::Module);
        for passing in [
            "failed to link executable and generate target dylib",
            "iree-lld execute fail:posix_spawn failed",
            "cannot open `rotini.o`: Too many open files",
        ] {
            assert_eq!(
                rejected(&format!("x.mlir:2:7: error: {passing}")).blame(),
                Blame::Moment
            );
        }
    }

    #[test]
    fn a_kill_from_outside_blames_no_module() {
        let crashed = |signal, diagnostics: &str| CompileError::Crashed {
            status: Some(ExitStatus::from_raw(signal)),
            diagnostics: diagnostics.to_owned(),
        };
        assert_eq!(crashed(libc::SIGSEGV, "").blame(), Blame::Module);
        assert_eq!(crashed(libc::SIGKILL, "").blame(), Blame::Moment);
        assert!(crashed(libc::SIGKILL, "").to_string().contains("from outside"));
        let no_thread = "LLVM ERROR: pthread_create failed: Resource temporarily unavailable";
        assert_eq!(crashed(libc::SIGABRT, no_thread).blame(), Blame::Moment);
        // The program has no limit of ours, so it is the system that has no memory.
        for words in [
            "LLVM ERROR: out of memory",
            "LLVM ERROR: Allocation failed",
            "std::bad_alloc",
        ] {
            assert_eq!(crashed(libc::SIGABRT, words).blame(), Blame::Moment, "{words}");
        }
    }

    /// If a host ignores `SIGCHLD`, the exit status of a worker is unknown. Such an end must not
    /// count against a module for a day.
    #[test]
    fn an_end_that_nobody_saw_blames_no_module() {
        let crashed = |diagnostics: &str| CompileError::Crashed {
            status: None,
            diagnostics: diagnostics.to_owned(),
        };
        assert_eq!(crashed(" \n").blame(), Blame::Moment);
        assert_eq!(crashed("Stack dump:\n").blame(), Blame::Limit);
    }

    /// An exhausted resource is a temporary cause, a missing program is not.
    #[test]
    fn a_shortage_blames_the_moment_alone() {
        let unavailable = |code| CompileError::Unavailable {
            program: "worker".into(),
            reason: String::new(),
            source: Some(io::Error::from_raw_os_error(code)),
        };
        for code in [libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::ENOMEM] {
            assert_eq!(unavailable(code).blame(), Blame::Moment, "{code}");
        }
        for code in [libc::ENOENT, libc::EACCES, libc::EPERM, libc::ENOEXEC] {
            assert_eq!(unavailable(code).blame(), Blame::Installation, "{code}");
        }
        let library = |reason: &str| CompileError::Library {
            path: "lib".into(),
            reason: reason.to_owned(),
            source: None,
        };
        assert_eq!(
            library("lib: cannot open shared object file: Too many open files").blame(),
            Blame::Moment
        );
        assert_eq!(
            library("lib: cannot open shared object file: No such file").blame(),
            Blame::Installation
        );
        let limits = [
            CompileError::Timeout {
                seconds: 1.0,
                diagnostics: String::new(),
            },
            CompileError::Memory {
                limit: 1,
                diagnostics: "Cannot allocate memory".into(),
            },
        ];
        for limit in limits {
            assert_eq!(limit.blame(), Blame::Limit);
            // The worker failed before it was given the module.
            assert_eq!(
                CompileError::Setup {
                    source: Box::new(limit)
                }
                .blame(),
                Blame::Moment
            );
        }
    }
}
