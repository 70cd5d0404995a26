//! A loaded library of HIP or CUDA.

use super::api::{Api, Dialect, Functions, GpuError, Result};
use super::device::Gpu;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_int};
use std::path::PathBuf;
use std::sync::Arc;

/// A loaded GPU API. Clones share the library.
#[derive(Clone)]
pub struct Driver(Arc<DriverInner>);

struct DriverInner {
    api: Api,
    functions: Functions,
    dialect: Dialect,
    // Never unloaded, because the library's threads outlive all objects of this crate.
    library: std::mem::ManuallyDrop<Library>,
}

impl Driver {
    /// Loads an API from a file, or from the loader's search path. IREE later uses the same library
    /// in this process, because the loader identifies a library by its name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Load`] if the library cannot be loaded or lacks a symbol; [`GpuError::Call`] if
    /// initialisation fails, as without a GPU.
    ///
    /// # Safety
    ///
    /// The file must be the API's library: its code runs with all rights of this process.
    pub unsafe fn load(api: Api, path: Option<&OsStr>) -> Result<Self> {
        let path = path.unwrap_or(OsStr::new(api.library()));
        let failed = |source| GpuError::Load {
            path: PathBuf::from(path),
            source,
        };
        // An emulator in place of HIP links its own LLVM, whose symbols must not clash with those
        // of another LLVM in the process.
        let visibility = match api {
            Api::Hip => RTLD_LOCAL,
            Api::Cuda => RTLD_GLOBAL,
        };
        // SAFETY: by this function's contract; the types are those of the API's headers.
        let (library, functions, dialect) = unsafe {
            let library = Library::open(Some(path), RTLD_NOW | visibility).map_err(failed)?;
            let functions = Functions::resolve(&library, api).map_err(failed)?;
            let dialect = Dialect::resolve(&library, api).map_err(failed)?;
            (library, functions, dialect)
        };
        let driver = Driver(Arc::new(DriverInner {
            api,
            functions,
            dialect,
            library: std::mem::ManuallyDrop::new(library),
        }));
        // SAFETY: the function takes only flags, and 0 sets none.
        driver.check("hipInit", unsafe { (driver.functions().init)(0) })?;
        Ok(driver)
    }

    /// Returns the API of the library.
    #[must_use]
    pub fn api(&self) -> Api {
        self.0.api
    }

    /// Returns true if the library emulates GPUs: only this project's emulator exports
    /// `hipemu_set`.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        // SAFETY: the symbol is looked up but never called.
        unsafe { self.function::<*const ()>("hipemu_set") }.is_ok()
    }

    /// Returns a function of the library that this module does not declare, such as one of the
    /// emulator's own.
    ///
    /// # Errors
    ///
    /// [`GpuError::Load`] if the library has no function of this name.
    ///
    /// # Safety
    ///
    /// `T` must be the function's type.
    pub unsafe fn function<T: Copy>(&self, name: &str) -> Result<T> {
        // SAFETY: by this function's contract.
        unsafe { self.0.library.get::<T>(name) }
            .map(|symbol| *symbol)
            .map_err(|source| GpuError::Load {
                path: self.0.api.library().into(),
                source,
            })
    }

    /// Returns the number of GPUs.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`].
    pub fn devices(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the pointer is valid for a write.
        self.check("hipGetDeviceCount", unsafe {
            (self.functions().device_count)(&mut count)
        })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns the GPU with this ordinal.
    ///
    /// # Errors
    ///
    /// [`GpuError::Call`] if no GPU has this ordinal.
    pub fn gpu(&self, ordinal: usize) -> Result<Gpu> {
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let mut context = std::ptr::null_mut();
        if let Dialect::Cuda { retain, .. } = &self.0.dialect {
            // SAFETY: the pointer is valid for a write. The context is never released, so it lives
            // until the process ends.
            self.check("cuDevicePrimaryCtxRetain", unsafe { retain(&mut context, ordinal) })?;
        }
        Gpu::new(self.clone(), ordinal, context)
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.0.functions
    }

    pub(super) fn check(&self, function: &'static str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: both functions take any number, and the text that they return is static; `name`
        // is valid for a write.
        unsafe {
            match &self.0.dialect {
                Dialect::Hip { error_name, .. } => name = error_name(code),
                Dialect::Cuda { error_name, .. } => {
                    error_name(code, &mut name);
                }
            }
        }
        let name = if name.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: the API returns null or a terminated text, and it is not null.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        Err(GpuError::Call { function, name })
    }

    pub(super) fn dialect(&self) -> &Dialect {
        &self.0.dialect
    }
}
