//! IREE's compiler, behind one trait: MLIR text in, a vmfb out.
//!
//! | Implementation | How it compiles | A compiler crash |
//! |---|---|---|
//! | [`Program`] | `iree-compile`, one process per compilation (15 ms) | is an error |
//! | [`InProcess`] | `libIREECompiler.so`, opened once (up to 0.1 s) | ends this process |
//! | [`Worker`] | the same library, in processes that are kept for later requests | is an error |
//!
//! With [`Worker`], exceeding a limit on time or memory is an error too.
//!
//! All produce the same bytes from the same request and report the same
//! [`identity`](Compiler::identity), so they can share cached results. [`find_program`],
//! [`find_library`] and [`find_worker`] search for an installation.
//!
//! The interface is text, so the code that produces MLIR needs no MLIR library.

mod discover;
mod error;
mod in_process;
mod program;
mod statistics;
mod trust;
pub mod worker;

use std::path::Path;

pub use discover::{NotFound, find_library, find_program, find_worker, has_raised_privileges, own_file};
pub use error::{Blame, CompileError, is_shortage};
pub use in_process::InProcess;
pub use program::Program;
pub use statistics::Statistics;
pub use worker::{Worker, WorkerOptions};

/// A compiler. All methods may be called from several threads at once.
pub trait Compiler: Send + Sync {
    /// Returns the exact build of the compiler: the library's build id, or a hash of its bytes if
    /// it has none.
    ///
    /// Two compilers with the same identity produce the same vmfb, so this belongs in a cache key.
    fn identity(&self) -> &str;

    /// Returns path, mode and version, for people. May run the compiler for its version.
    fn describe(&self) -> String;

    /// Compiles one module.
    ///
    /// # Errors
    ///
    /// [`CompileError::Rejected`] with the compiler's diagnostics if it does not accept the module
    /// or a flag; other variants if the compiler itself fails.
    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError>;
}

/// A module and the settings of its compilation.
#[derive(Clone, Copy, Debug)]
pub struct CompileRequest<'a> {
    /// MLIR text, UTF-8 without NUL.
    pub mlir: &'a str,
    /// File name of the source, without a directory. It becomes part of the vmfb, so it must be
    /// constant if the output has to be.
    pub name: &'a str,
    /// `iree-compile` flags, one per element. Paths in them have to be absolute.
    pub flags: &'a [String],
    /// A directory that receives the code object, assembly and LLVM IR of each executable. The vmfb
    /// does not depend on it.
    pub dump_executables: Option<&'a Path>,
}

impl CompileRequest<'_> {
    /// Returns the request's flags with those that all implementations add: statistics go to a
    /// file, dumps to the directory.
    fn flags(&self, statistics: &str) -> Result<Vec<String>, CompileError> {
        let mut flags = self.flags.to_vec();
        flags.push("--iree-scheduling-dump-statistics-format=json".into());
        flags.push(format!("--iree-scheduling-dump-statistics-file={statistics}"));
        if let Some(directory) = self.dump_executables {
            let directory = std::path::absolute(directory).map_err(CompileError::io("resolve", directory))?;
            std::fs::create_dir_all(&directory).map_err(CompileError::io("create", &directory))?;
            let directory = directory.to_str().ok_or_else(|| {
                CompileError::Request(format!("the dump directory {} is not UTF-8", directory.display()))
            })?;
            // Not `--iree-hal-dump-executable-files-to`: that also writes benchmarks, whose path
            // ends up in the vmfb.
            flags.push(format!("--iree-hal-dump-executable-binaries-to={directory}"));
            flags.push(format!("--iree-hal-dump-executable-intermediates-to={directory}"));
        }
        Ok(flags)
    }
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module, loadable by [`Module::load`](crate::runtime::Module::load).
    pub vmfb: Vec<u8>,
    /// The compiler's counts of what it scheduled.
    pub statistics: Statistics,
    /// Warnings and remarks; empty as a rule.
    pub diagnostics: String,
}
