//! IREE's compiler, behind one trait: MLIR text in, a vmfb out.
//!
//! | Implementation | What it is | A compiler crash |
//! |---|---|---|
//! | [`Program`] | the `iree-compile` program, one process per compilation (15 ms) | is an error |
//! | [`InProcess`] | the C API of `libIREECompiler.so`, opened at run time (up to 0.1 s once) | ends this process |
//! | [`Worker`] | the C API, in processes that are kept for the next request | is an error; so is too much time or memory |
//!
//! All make the same bytes from the same request and report the same
//! [`identity`](Compiler::identity), so what one has compiled the others need not.
//! [`find_program`], [`find_library`] and [`find_worker`] look for an installation.
//!
//! Text is what crosses over: whoever writes it needs no MLIR.

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

/// Something that compiles. All methods may be called from several threads at once.
pub trait Compiler: Send + Sync {
    /// The exact build: the library's build id, or a hash of its bytes where it has none. Two
    /// compilers with the same identity make the same vmfb, so this belongs into a cache key.
    fn identity(&self) -> &str;

    /// Path, mode and version, for people. May run the compiler for its version.
    fn describe(&self) -> String;

    /// Compiles one module.
    ///
    /// # Errors
    ///
    /// [`CompileError::Rejected`] with the compiler's diagnostics when it does not accept the
    /// module or a flag; other variants when the compiler itself fails.
    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError>;
}

/// One module and how to compile it.
#[derive(Clone, Copy, Debug)]
pub struct CompileRequest<'a> {
    /// MLIR text, UTF-8 without NUL.
    pub mlir: &'a str,
    /// What the source is called, a plain file name. It is part of the vmfb, so it must not vary
    /// where the output shall not.
    pub name: &'a str,
    /// `iree-compile` flags, one per element. Paths in them have to be absolute.
    pub flags: &'a [String],
    /// A directory that receives code objects, assembly and LLVM IR of each executable. The vmfb
    /// stays the same.
    pub dump_executables: Option<&'a Path>,
}

impl CompileRequest<'_> {
    /// The flags that all implementations add: statistics go to a file, dumps to the directory.
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

/// What a compilation made.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module, loadable by [`Module::load`](crate::runtime::Module::load).
    pub vmfb: Vec<u8>,
    /// What the compiler scheduled.
    pub statistics: Statistics,
    /// Warnings and remarks; empty as a rule.
    pub diagnostics: String,
}
