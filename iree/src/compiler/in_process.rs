//! The compiler's C API, in this process.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    fmt::Write,
    fs, iter,
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    ptr::{self, NonNull},
    slice,
    sync::{Mutex, PoisonError},
};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::{CompileError, CompileRequest, Compiled, Compiler, Statistics, discover};
use iree_sys::compiler as sys;

/// Serialises opening the library: initialising the compiler is not documented to be safe from
/// several threads.
static OPENING: Mutex<()> = Mutex::new(());

/// A compiler that calls `libIREECompiler.so`.
///
/// The compiler can crash on bad input, which ends this process: use it for modules that are known
/// to be well formed, or in a process that may die.
///
/// The library stays loaded until the process ends: its global shutdown cannot be undone.
#[derive(Debug)]
pub struct InProcess {
    api: sys::Api,
    path: PathBuf,
    identity: String,
}

impl InProcess {
    /// Opens the library at `path`.
    ///
    /// # Errors
    ///
    /// [`CompileError::Library`] when it cannot be opened, lacks a symbol or has another API
    /// version.
    ///
    /// # Safety
    ///
    /// The file is IREE's compiler library: opening it runs its code.
    pub unsafe fn open(path: &Path) -> Result<Self, CompileError> {
        let failed = |reason: String, source| CompileError::Library {
            path: path.to_owned(),
            reason,
            source,
        };
        let _guard = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        // The compiler looks for its other files beside the path that it was opened by; a link to
        // the library does not have them beside it.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // `RTLD_LOCAL`, so that none of its LLVM symbols clash with those of this process.
        // SAFETY: the caller vouches for the library.
        let library = unsafe { Library::open(Some(&real), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|source| failed("it cannot be opened".into(), Some(source)))?;
        // Never closed: the compiler starts threads and cannot be shut down twice.
        let library = ManuallyDrop::new(libloading::Library::from(library));
        // SAFETY: the library is IREE's by this function's contract, and never closed.
        let api = unsafe { sys::Api::resolve(&library) }
            .map_err(|source| failed("a symbol is missing".into(), Some(source)))?;
        // SAFETY: may be called before initialisation.
        let version = unsafe { (api.ireeCompilerGetAPIVersion)() };
        if version >> 16 != 1 {
            let version = format!("API version {}.{}, not 1", version >> 16, version & 0xffff);
            return Err(failed(version, None));
        }
        // SAFETY: further initialisations only increment a counter.
        unsafe { (api.ireeCompilerGlobalInitialize)() };
        Ok(Self {
            api,
            path: path.to_owned(),
            identity: discover::identity(path)?,
        })
    }

    /// Part of the diagnostics of a request with a flag that is not valid for a single compilation.
    pub(super) const UNKNOWN_FLAG: &str = "Error parsing flags: option not found";

    /// Returns whether a flag is not valid for a single compilation. It may be a flag of the whole
    /// process then.
    pub(super) fn is_for_process(&self, flag: &str) -> Result<bool, CompileError> {
        let flag = CString::new(flag).map_err(|_| CompileError::Request("a flag contains a NUL".into()))?;
        let session = self.session()?;
        Ok(self
            .set_flags(&session, &[flag.as_ptr()])?
            .is_err_and(|text| text.contains(Self::UNKNOWN_FLAG)))
    }

    fn session(&self) -> Result<Owned<sys::iree_compiler_session_t>, CompileError> {
        // SAFETY: the compiler is initialised; cannot fail short of ending the process.
        Owned::new(
            unsafe { (self.api.ireeCompilerSessionCreate)() },
            self.api.ireeCompilerSessionDestroy,
        )
    }

    /// Sets the flags of a session. The flags must be valid C strings; the inner error is the
    /// compiler's message.
    fn set_flags(
        &self,
        session: &Owned<sys::iree_compiler_session_t>,
        flags: &[*const c_char],
    ) -> Result<Result<(), String>, CompileError> {
        let count = c_int::try_from(flags.len()).map_err(|_| CompileError::Request("too many flags".into()))?;
        // SAFETY: the session is live; the flags are copied during the call.
        Ok(self.check(unsafe { (self.api.ireeCompilerSessionSetFlags)(session.get(), count, flags.as_ptr()) }))
    }

    /// Sets flags for everything that this process compiles from now on. May be called at most once
    /// in a process, and not while something is compiled.
    ///
    /// The compiler ends the process if it does not know one of the flags.
    pub(super) fn set_global_flags(&self, flags: &[String]) -> Result<(), CompileError> {
        let nul = |_| CompileError::Request("a flag contains a NUL".into());
        let flags = iter::once("iree-compile")
            .chain(flags.iter().map(String::as_str))
            .map(CString::new)
            .collect::<Result<Vec<_>, _>>()
            .map_err(nul)?;
        let mut arguments: Vec<_> = flags.iter().map(|flag| flag.as_ptr()).chain([ptr::null()]).collect();
        let count = flags
            .len()
            .try_into()
            .map_err(|_| CompileError::Request("too many flags".into()))?;
        // SAFETY: the compiler is initialised; the arguments are read during the call, and end with
        // a null pointer like those of a program.
        unsafe { (self.api.ireeCompilerSetupGlobalCL)(count, arguments.as_mut_ptr(), c"iree-compile".as_ptr(), false) };
        Ok(())
    }

    /// Returns `Ok` for null, else the error's text, and destroys the error.
    fn check(&self, error: *mut sys::iree_compiler_error_t) -> Result<(), String> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the error is live, came from this library and is destroyed once; the text is
        // copied before.
        unsafe {
            let text = CStr::from_ptr((self.api.ireeCompilerErrorGetMessage)(error));
            // The text is a heading and an indented detail: joined into one line.
            let text = text.to_string_lossy();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            (self.api.ireeCompilerErrorDestroy)(error);
            Err(text)
        }
    }
}

impl Compiler for InProcess {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        // SAFETY: the compiler is initialised; the text is valid while it is, and copied.
        let revision = unsafe { CStr::from_ptr((self.api.ireeCompilerGetRevision)()) };
        format!("{}, in process, {}", self.path.display(), revision.to_string_lossy())
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, CompileError> {
        let text = |what: &str, text: &str| {
            CString::new(text).map_err(|_| CompileError::Request(format!("{what} contains a NUL")))
        };
        let statistics =
            tempfile::NamedTempFile::new().map_err(CompileError::io("make a file in", &std::env::temp_dir()))?;
        let statistics_path = statistics
            .path()
            .to_str()
            .ok_or_else(|| CompileError::Request("the directory for temporary files is not UTF-8".into()))?;
        let flags = request
            .flags(statistics_path)?
            .iter()
            .map(|flag| text("a flag", flag))
            .collect::<Result<Vec<_>, _>>()?;
        let flags: Vec<_> = flags.iter().map(|flag| flag.as_ptr()).collect();
        let name = text("the name", request.name)?;
        let mlir = text("the module", request.mlir)?;
        let api = &self.api;
        let rejected = |diagnostics| CompileError::Rejected { diagnostics };

        // Locals drop in reverse order: output and invocation are dropped before the source and the
        // diagnostics that they refer to, and the session last.
        let session = self.session()?;
        self.set_flags(&session, &flags)?
            .map_err(|text| rejected(format!("error: {text}")))?;

        let mut source = ptr::null_mut();
        let mlir_bytes = mlir.as_bytes_with_nul();
        // SAFETY: the session is live; name and text outlive the source; the length includes the
        // NUL, as the API requires.
        self.check(unsafe {
            (api.ireeCompilerSourceWrapBuffer)(
                session.get(),
                name.as_ptr(),
                mlir_bytes.as_ptr().cast(),
                mlir_bytes.len(),
                true,
                &mut source,
            )
        })
        .map_err(rejected)?;
        let source = Owned::new(source, api.ireeCompilerSourceDestroy)?;

        let diagnostics = Mutex::new(String::new());
        // SAFETY: the session is live.
        let invocation = Owned::new(
            unsafe { (api.ireeCompilerInvocationCreate)(session.get()) },
            api.ireeCompilerInvocationDestroy,
        )?;
        // SAFETY: the invocation is live. `diagnostics` outlives it and is not moved. The source is
        // live, and is parsed into the invocation before the pipeline runs.
        let compiled = unsafe {
            (api.ireeCompilerInvocationEnableCallbackDiagnostics)(
                invocation.get(),
                0,
                collect,
                (&raw const diagnostics).cast_mut().cast(),
            );
            (api.ireeCompilerInvocationParseSource)(invocation.get(), source.get())
                && (api.ireeCompilerInvocationPipeline)(invocation.get(), sys::IREE_COMPILER_PIPELINE_STD)
        };
        let said = || {
            let mut text = diagnostics.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *text)
        };
        if !compiled {
            return Err(rejected(said()));
        }

        let mut output = ptr::null_mut();
        // SAFETY: stores an output on success.
        self.check(unsafe { (api.ireeCompilerOutputOpenMembuffer)(&mut output) })
            .map_err(rejected)?;
        let output = Owned::new(output, api.ireeCompilerOutputDestroy)?;
        let mut contents = ptr::null_mut();
        let mut size = 0;
        // SAFETY: invocation and output are live; the output is mapped after it was written.
        let written = unsafe {
            self.check((api.ireeCompilerInvocationOutputVMBytecode)(
                invocation.get(),
                output.get(),
            ))
            .and_then(|()| {
                self.check((api.ireeCompilerOutputMapMemory)(
                    output.get(),
                    &mut contents,
                    &mut size,
                ))
            })
        };
        written.map_err(|text| rejected(format!("{}error: {text}", said())))?;
        let size =
            usize::try_from(size).map_err(|_| CompileError::Request("the output does not fit into memory".into()))?;
        let vmfb = if size == 0 {
            Vec::new()
        } else {
            // SAFETY: the mapping has `size` bytes and lives as long as the output; the bytes are
            // copied.
            unsafe { slice::from_raw_parts(contents.cast::<u8>(), size) }.to_vec()
        };
        let report = fs::read(statistics.path()).map_err(CompileError::io("read", statistics.path()))?;
        Ok(Compiled {
            vmfb,
            statistics: Statistics::parse(&report)?,
            diagnostics: said(),
        })
    }
}

/// An object of the C API and the function that destroys it.
struct Owned<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Owned<T> {
    fn new(object: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> Result<Self, CompileError> {
        let object = NonNull::new(object).ok_or_else(|| CompileError::Rejected {
            diagnostics: "error: the compiler returned a null object".into(),
        })?;
        Ok(Self { object, destroy })
    }

    fn get(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `object` is live and owned; `destroy` is the API's function for its type.
        unsafe { (self.destroy)(self.object.as_ptr()) }
    }
}

/// Appends one diagnostic to the string behind `target`. Called by the compiler, from any of its
/// threads.
unsafe extern "C" fn collect(severity: c_uint, message: *const c_char, length: usize, target: *mut c_void) {
    // Nothing here may panic: unwinding into C++ would end the process.
    if message.is_null() || target.is_null() {
        return;
    }
    // SAFETY: the API passes `length` bytes that are valid for this call, and the pointer that
    // `compile` registered, whose target outlives the invocation.
    let (text, target) = unsafe {
        (
            String::from_utf8_lossy(slice::from_raw_parts(message.cast::<u8>(), length)),
            &*target.cast_const().cast::<Mutex<String>>(),
        )
    };
    let severity = match severity {
        sys::IREE_COMPILER_DIAGNOSTIC_SEVERITY_NOTE => "note",
        sys::IREE_COMPILER_DIAGNOSTIC_SEVERITY_WARNING => "warning",
        sys::IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR => "error",
        sys::IREE_COMPILER_DIAGNOSTIC_SEVERITY_REMARK => "remark",
        _ => "diagnostic",
    };
    let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
    // Writing to a string cannot fail.
    let _ = writeln!(target, "{severity}: {text}");
}
