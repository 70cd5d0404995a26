//! Why a compilation failed.

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
        /// Everything it said.
        diagnostics: String,
    },

    /// The compiler's process ended before it had an answer: a signal after a bug, or an exit that
    /// it took by itself.
    #[error("the compiler crashed{}: {}", how(*.status), first_error(.diagnostics))]
    Crashed {
        /// How it ended. `None` if the host has left that to no one: it ignores `SIGCHLD`, or waits
        /// for all children itself.
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

    /// The compile worker's answer is malformed, or it is of another version or with another
    /// library than was asked for.
    #[error("the compile worker does not keep to the protocol: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
        /// What it wrote elsewhere.
        diagnostics: String,
    },

    /// The compile worker failed before it was given a module, in a way that the other variants are
    /// for.
    #[error("the compile worker cannot be set up: {source}")]
    Setup {
        /// How.
        source: Box<CompileError>,
    },

    /// A process to compile in cannot be started.
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

    /// What is to blame, as far as one can tell.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self {
            // The linker is a separate program: there may be no place for its files, or no programs
            // allowed.
            Self::Rejected { diagnostics }
                if LINKER.iter().any(|text| diagnostics.contains(text))
                    || tells_of_shortage(diagnostics)
                    || is_out_of_memory(diagnostics) =>
            {
                Blame::Moment
            }
            Self::Crashed { status, diagnostics } => match status.map(|status| status.signal()) {
                // Nobody kills themselves with these two.
                Some(Some(libc::SIGKILL | libc::SIGTERM)) => Blame::Moment,
                // A process without a limit of ours: the system had too little memory.
                _ if tells_of_shortage(diagnostics) || is_out_of_memory(diagnostics) => Blame::Moment,
                Some(_) => Blame::Module,
                // A bug leaves a last word, a kill from outside none.
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

/// What is to blame for a failed compilation, and so whether a retry helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The module: the same compiler would fail again.
    Module,
    /// The module and a limit on time or memory. What is needed of both also depends on what else
    /// the machine does.
    Limit,
    /// The way in which the compiler is called: no process can be started, or an installation was
    /// changed while it was in use. Another way of calling it may work.
    Installation,
    /// A temporary cause: the next attempt may succeed.
    Moment,
}

/// What the compiler says when its linker did not run.
const LINKER: [&str; 2] = ["failed to link executable", "iree-lld execute fail"];

/// Whether a system resource was exhausted that may be free again later: descriptors, processes,
/// memory, disk space.
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
        // A program that is being written.
        Errno::TXTBSY,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| passing.iter().any(|errno| errno.raw_os_error() == code))
}

/// The same of what another process has said, in the words of the C library.
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

/// Whether last words are those of a program that got no memory: Rust's, C++'s, LLVM's, the
/// loader's. The one about exceptions is Rust's, too: the compiler has none but those of its
/// allocator.
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

/// An error and all its causes, on one line.
pub(super) fn chain(error: Option<&dyn Error>) -> String {
    let chain: Vec<_> = iter::successors(error, |&error| error.source())
        .map(ToString::to_string)
        .collect();
    chain.join(": ")
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

/// The first line that says `error:`, from there on its location included; else the first line with
/// anything in it.
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

    /// Where a host ignores `SIGCHLD` nobody learns how a worker ended: that counts against no
    /// module for a day.
    #[test]
    fn an_end_that_nobody_saw_blames_no_module() {
        let crashed = |diagnostics: &str| CompileError::Crashed {
            status: None,
            diagnostics: diagnostics.to_owned(),
        };
        assert_eq!(crashed(" \n").blame(), Blame::Moment);
        assert_eq!(crashed("Stack dump:\n").blame(), Blame::Limit);
    }

    /// Whether the cause is temporary: an exhausted resource is, a missing program is not.
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
            // Before it had the module.
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
