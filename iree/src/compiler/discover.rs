//! Search for an installation of the compiler, and for the program that compiles in another
//! process.
//!
//! The PyPI wheel `iree-base-compiler` keeps both the program and the library in one directory
//! below `site-packages`; the `iree-compile` in `bin/` is a Python script around that program,
//! which would only add its own start-up time. Python is never started: the directory layout below
//! an installation prefix is fixed.

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache};
use std::{
    cell::Cell,
    env,
    ffi::{CStr, OsStr, OsString},
    fmt, fs,
    io::{self, Read, Seek},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    CompileError, is_shortage,
    trust::{Distrust, Origin, Trusted},
};

/// The library's file name.
pub(super) const LIBRARY: &str = "libIREECompiler.so";
/// The program's file name.
const PROGRAM: &str = "iree-compile";
/// The worker's file name.
const WORKER: &str = "rotini-compile-worker";
/// Directory of the wheel's program and library, below `site-packages`.
const WHEEL: &str = "iree/compiler/_mlir_libs";

/// The error when no installation of the compiler, or no worker program, was found.
#[derive(Clone, Debug)]
pub struct NotFound {
    what: &'static str,
    variable: &'static str,
    origin: Origin,
    tried: Vec<(PathBuf, Refusal)>,
    passes: bool,
}

/// The reason why a file is not used.
#[derive(Clone, Debug, thiserror::Error)]
enum Refusal {
    #[error("there is no such file")]
    Missing,
    #[error("it is a directory")]
    Directory,
    #[error("it is not an ELF program or library")]
    NotElf,
    #[error("it is not executable")]
    NotExecutable,
    #[error("{0}")]
    Distrust(#[from] Distrust),
    #[error("{0}")]
    System(String),
    /// A temporary shortage, for example of file descriptors: a retry may succeed.
    #[error("{0}")]
    Shortage(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Directory,
            // The file is shorter than the magic number.
            io::ErrorKind::UnexpectedEof => Self::NotElf,
            _ if is_shortage(&error) => Self::Shortage(error.to_string()),
            _ => Self::System(error.to_string()),
        }
    }
}

impl NotFound {
    /// Returns every path that was examined, in order.
    pub fn tried(&self) -> impl Iterator<Item = &Path> {
        self.tried.iter().map(|(path, _)| path.as_path())
    }

    /// Returns whether a system resource was exhausted, so that a later search may succeed.
    #[must_use]
    pub const fn passes(&self) -> bool {
        self.passes
    }
}

impl std::error::Error for NotFound {}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, variable) = (self.what, self.variable);
        match (self.origin, self.tried.first()) {
            (Origin::Named, Some((path, why))) => {
                return write!(f, "{variable} names {}, which is not used: {why}", path.display());
            }
            (_, None) => return write!(f, "no {what} found; set {variable} to its path"),
            _ => write!(f, "no {what} found; set {variable} to its path. Tried: ")?,
        }
        for (position, (path, why)) in self.tried.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{}", path.display())?;
            // Missing files are the normal case in a search and need no reason.
            if !matches!(why, Refusal::Missing) {
                write!(f, " (refused: {why})")?;
            }
        }
        Ok(())
    }
}

/// Returns whether this process has more privileges than the user who started it (`AT_SECURE`), for
/// example by the mode of its program's file.
///
/// In that case an untrusted user may control the programs, libraries and directories that the
/// environment names.
#[must_use]
pub fn has_raised_privileges() -> bool {
    // SAFETY: the call only reads a value.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Clears the environment of a program if privileges are raised: the compiler and its linker read
/// variables of their own.
pub(super) fn clean(command: &mut Command, is_raised: bool) -> &mut Command {
    if is_raised {
        command.env_clear();
    }
    command
}

/// Returns the value of a variable, unless an untrusted user may have set it.
fn named_by(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|_| !has_raised_privileges())
}

/// Finds the ELF program `iree-compile`.
///
/// The order is: `ROTINI_IREE_COMPILE`, and nothing else if it is set; the value of that variable
/// when this crate was built; the Python packages that this code was installed with, if any; the
/// virtual environment that `VIRTUAL_ENV` names; the installations of `iree-compile` and then
/// `python3` on `PATH`; the user's own site-packages; and `iree-compile` on `PATH` itself. If a
/// script is found, the program of its installation is used. A process with [raised
/// privileges](has_raised_privileges) reads no variable.
///
/// # Errors
///
/// The paths that were tried.
pub fn find_program() -> Result<PathBuf, NotFound> {
    let built_with = option_env!("ROTINI_IREE_COMPILE");
    find(PROGRAM, "ROTINI_IREE_COMPILE", built_with, |path| {
        let why = match expect_elf(path).and_then(|()| expect_executable(path)) {
            Ok(()) => return Ok(path.to_owned()),
            Err(why) => why,
        };
        // The path may be a script in `PREFIX/bin`.
        let prefix = path.parent().and_then(Path::parent);
        prefix
            .into_iter()
            .flat_map(|prefix| wheels(prefix, &Cell::default()))
            .map(|wheel| wheel.join(PROGRAM))
            .find(|program| expect_elf(program).is_ok())
            .ok_or(why)
    })
}

/// Finds `libIREECompiler.so`, in the same installations as [`find_program`]; the variable is
/// `ROTINI_IREE_COMPILER_LIB`.
///
/// # Errors
///
/// The paths that were tried.
pub fn find_library() -> Result<PathBuf, NotFound> {
    let built_with = option_env!("ROTINI_IREE_COMPILER_LIB");
    find(LIBRARY, "ROTINI_IREE_COMPILER_LIB", built_with, |path| {
        expect_elf(path).map(|()| path.to_owned())
    })
}

fn find(
    what: &'static str,
    variable: &'static str,
    built_with: Option<&str>,
    accept: impl Fn(&Path) -> Result<PathBuf, Refusal>,
) -> Result<PathBuf, NotFound> {
    let named = named_by(variable);
    let mut search = Search::new(what, variable, named.is_some());
    let is_short = Cell::new(false);
    let mut attempt = |path: PathBuf| search.attempt(path, &accept);
    let found = match named {
        // A user who names a compiler does not want another one.
        Some(path) => attempt(path.into()),
        None => {
            let on_path = (what == PROGRAM && !has_raised_privileges())
                .then(|| which::which(PROGRAM).ok())
                .flatten();
            let installed = prefixes().into_iter().flat_map(|prefix| {
                let wheels = wheels(&prefix, &is_short);
                if wheels.is_empty() {
                    // For the report: the directory in which the wheel would have been.
                    vec![prefix.join("lib/python3/site-packages").join(WHEEL)]
                } else {
                    wheels
                }
            });
            built_with
                .map(PathBuf::from)
                .into_iter()
                .chain(sibling().map(|wheel| wheel.join(what)))
                .chain(installed.map(|wheel| wheel.join(what)))
                .chain(on_path)
                .find_map(&mut attempt)
        }
    };
    found.ok_or_else(|| {
        search.account.passes |= is_short.get();
        search.give_up()
    })
}

/// Finds `rotini-compile-worker`, the program that [`Worker`](super::Worker) starts.
///
/// The order is: `ROTINI_COMPILE_WORKER`, and nothing else if it is set; the directory of the
/// shared library or program that contains this code; the directories `libexec` and `bin` beside
/// that directory; the directory above it; and `libexec` of the prefix that hipDNN's plugins are
/// installed in (`lib/hipdnn_plugins/engines`).
///
/// # Errors
///
/// The paths that were tried.
pub fn find_worker() -> Result<PathBuf, NotFound> {
    const VARIABLE: &str = "ROTINI_COMPILE_WORKER";
    // `..` is for tests, which Cargo keeps one directory below the programs.
    const PLACES: [&str; 5] = ["", "../libexec", "../bin", "..", "../../../libexec"];
    let named = named_by(VARIABLE);
    let mut search = Search::new(WORKER, VARIABLE, named.is_some());
    let accept = |path: &Path| expect_executable(path).map(|()| path.to_owned());
    let mut attempt = |path: PathBuf| search.attempt(path, accept);
    let found = match named {
        Some(path) => attempt(path.into()),
        None => own_file()
            .as_deref()
            .and_then(Path::parent)
            .into_iter()
            .flat_map(|directory| PLACES.map(|other| directory.join(other).join(WORKER)))
            .find_map(&mut attempt),
    };
    found.ok_or_else(|| search.give_up())
}

/// Returns the wheel's directory among the Python packages that this code is installed with, which
/// needs no variable to be found.
fn sibling() -> Option<PathBuf> {
    let own = own_file()?;
    let packages = own.ancestors().find(|directory| {
        let name = directory.file_name();
        name.is_some_and(|name| name == "site-packages" || name == "dist-packages")
    })?;
    Some(packages.join(WHEEL))
}

/// Returns the real path of the shared library or program that contains this code.
#[must_use]
pub fn own_file() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is that of this function; on success the structure is filled, and its
    // name is a string of the loader that lasts as long as this code is loaded.
    let name = unsafe {
        if libc::dladdr(own_file as *const () as *const libc::c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    // For a program the loader's name is the one that it was called by, which may be relative.
    let path = if path.is_absolute() {
        path.to_owned()
    } else {
        env::current_exe().ok()?
    };
    // Links are resolved, since the rest of an installation is beside the real file.
    fs::canonicalize(path).ok()
}

/// A search that examines paths one after the other and records them.
struct Search {
    account: NotFound,
    trusted: Trusted,
}

impl Search {
    fn new(what: &'static str, variable: &'static str, is_named: bool) -> Self {
        Self {
            account: NotFound {
                what,
                variable,
                origin: if is_named { Origin::Named } else { Origin::Searched },
                tried: Vec::new(),
                passes: false,
            },
            trusted: Trusted::with_code(own_file().as_deref()),
        }
    }

    /// Returns the real path of the file that `accept` returns for `path`, unless an untrusted user
    /// could have put it there.
    fn attempt(&mut self, path: PathBuf, accept: impl Fn(&Path) -> Result<PathBuf, Refusal>) -> Option<PathBuf> {
        match accept(&path).and_then(|found| Ok(self.examine(&found)?)) {
            Ok(real) => return Some(real),
            Err(Refusal::Shortage(why)) => {
                self.account.passes = true;
                self.account.tried.push((path, Refusal::Shortage(why)));
            }
            Err(why) if !self.account.tried.iter().any(|(tried, _)| *tried == path) => {
                self.account.tried.push((path, why));
            }
            Err(_) => {}
        }
        None
    }

    /// Returns the record of a search that found nothing.
    fn give_up(mut self) -> NotFound {
        // If directories cannot be listed and files cannot be read, nothing is found. An exhausted
        // resource may be the cause.
        self.account.passes |= fs::File::open("/").is_err_and(|error| is_shortage(&error));
        self.account
    }

    /// Returns the real path of a file, if that file and the library beside it may be executed:
    /// `iree-compile` is only a stub around the library.
    fn examine(&self, path: &Path) -> Result<PathBuf, Distrust> {
        let real = self.trusted.examine(path, self.account.origin)?;
        let library = real.with_file_name(LIBRARY);
        if library.is_file() {
            self.trusted.examine(&library, self.account.origin)?;
        }
        Ok(real)
    }
}

fn expect_executable(path: &Path) -> Result<(), Refusal> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        Err(Refusal::Directory)
    } else if metadata.mode() & 0o111 == 0 {
        Err(Refusal::NotExecutable)
    } else {
        Ok(())
    }
}

/// Returns the installation prefixes that may have the wheel, most specific first. All are derived
/// from environment variables.
fn prefixes() -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    if has_raised_privileges() {
        return prefixes;
    }
    prefixes.extend(env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    for program in [PROGRAM, "python3"] {
        for path in which::which_all(program).into_iter().flatten() {
            // Both the path as found, which is the virtual environment, and its link target, which
            // is the Python that the environment was made from.
            let real = fs::canonicalize(&path);
            for path in [Some(path), real.ok()].into_iter().flatten() {
                prefixes.extend(path.parent().and_then(Path::parent).map(Path::to_owned));
            }
        }
    }
    prefixes.extend(env::home_dir().map(|home| home.join(".local")));
    prefixes
}

/// Returns the existing directories of the wheel below `prefix`, for any Python version. Sets
/// `is_short` if a shortage keeps a directory from being listed.
fn wheels(prefix: &Path, is_short: &Cell<bool>) -> Vec<PathBuf> {
    ["lib", "lib64", "local/lib"]
        .map(|lib| prefix.join(lib))
        .into_iter()
        .flat_map(|lib| directories(&lib, is_short))
        .filter(|directory| {
            directory
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        })
        .flat_map(|python| ["site-packages", "dist-packages"].map(|site| python.join(site).join(WHEEL)))
        .filter(|wheel| wheel.is_dir())
        .collect()
}

/// Returns the directories in `directory`, sorted, so that the choice among several does not depend
/// on the file system.
fn directories(directory: &Path, is_short: &Cell<bool>) -> Vec<PathBuf> {
    let mut directories: Vec<_> = fs::read_dir(directory)
        .inspect_err(|error| is_short.set(is_short.get() || is_shortage(error)))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    directories.sort();
    directories
}

fn expect_elf(path: &Path) -> Result<(), Refusal> {
    // Only regular files are opened, since opening another kind of file may block.
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(Refusal::Directory);
    }
    let mut magic = [0; 4];
    if metadata.is_file() {
        fs::File::open(path)?.read_exact(&mut magic)?;
    }
    match &magic {
        b"\x7fELF" => Ok(()),
        _ => Err(Refusal::NotElf),
    }
}

/// Returns the identity of the compiler's library: the build id that its linker stored, else the
/// hash of its bytes.
///
/// Reading the build id takes microseconds, while running the program for its version loads a few
/// hundred megabytes.
pub(super) fn identity(library: &Path) -> Result<String, CompileError> {
    // Opened once for both methods: if a second opening for the build id could fail, the library
    // would get the hash as another identity than before.
    let file = fs::File::open(library).map_err(CompileError::io("read", library))?;
    if let Some(id) = build_id(&file) {
        return Ok(format!("build-id:{id}"));
    }
    let mut hasher = blake3::Hasher::new();
    (&file)
        .rewind()
        .and_then(|()| hasher.update_reader(&file).map(drop))
        .map_err(CompileError::io("read", library))?;
    Ok(format!("blake3:{}", hasher.finalize().to_hex()))
}

/// Returns the build id in an ELF file's notes, in hexadecimal. Reads only the program headers and
/// the notes, since the library is large.
fn build_id(file: &fs::File) -> Option<String> {
    let file = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, &file).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, &file) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc().iter().map(|byte| format!("{byte:02x}")).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_raised_privileges_programs_get_no_environment() {
        let environment = |is_raised| {
            let mut command = Command::new("env");
            let output = clean(command.env("ROTINI_TEST_CLEAN", "1"), is_raised)
                .output()
                .unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(environment(false).contains("ROTINI_TEST_CLEAN=1"));
        assert_eq!(environment(true), "");
    }
}
