//! A loaded plugin and the calls that need no handle.

use crate::error::HostError;
use crate::handle::Handle;
use crate::symbols::{LogCallback, Symbols};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, OsStr, c_char};
use std::path::PathBuf;
use std::sync::Arc;

/// A loaded plugin library. Clones share the library.
#[derive(Clone)]
pub struct Plugin(Arc<Inner>);

struct Inner {
    symbols: Symbols,
    // Dropped after `symbols`, which point into the library.
    _library: Library,
}

impl Plugin {
    /// Loads a plugin as hipDNN does: with all symbols resolved at once (`RTLD_NOW`) and none
    /// visible to other libraries (`RTLD_LOCAL`).
    ///
    /// # Errors
    ///
    /// [`HostError::Load`] if the library cannot be loaded or lacks a symbol.
    ///
    /// # Safety
    ///
    /// The file must be a hipDNN engine plugin: its code runs with all rights of this process.
    pub unsafe fn load(path: impl AsRef<OsStr>) -> Result<Self, HostError> {
        let failed = |source| HostError::Load {
            path: PathBuf::from(path.as_ref()),
            source,
        };
        // SAFETY: by this function's contract.
        let library = unsafe { Library::open(Some(path.as_ref()), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
        // SAFETY: by this function's contract.
        let symbols = unsafe { Symbols::resolve(&library) }.map_err(failed)?;
        Ok(Plugin(Arc::new(Inner {
            symbols,
            _library: library,
        })))
    }

    pub(super) fn symbols(&self) -> &Symbols {
        &self.0.symbols
    }

    /// Returns the text of this thread's last error.
    #[must_use]
    pub fn last_error(&self) -> String {
        let mut text = std::ptr::null();
        // SAFETY: the pointer is valid for a write.
        unsafe { (self.symbols().last_error)(&mut text) };
        // SAFETY: the text is null or terminated, and the plugin keeps it until this thread's next
        // call.
        unsafe { to_string(text) }
    }

    pub(super) fn check(&self, function: &'static str, status: i32) -> Result<(), HostError> {
        if status == 0 {
            Ok(())
        } else {
            Err(HostError::Status {
                function,
                status,
                text: self.last_error(),
            })
        }
    }

    fn text(&self, function: &'static str, call: impl FnOnce(*mut *const c_char) -> i32) -> Result<String, HostError> {
        let mut text = std::ptr::null();
        let status = call(&mut text);
        self.check(function, status)?;
        // SAFETY: after success, the pointer is to a terminated static text of the plugin.
        Ok(unsafe { to_string(text) })
    }

    /// Returns the plugin's name.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn name(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write, here and in the calls that follow.
        self.text("GetName", |text| unsafe { (self.symbols().name)(text) })
    }

    /// Returns the plugin's version.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn version(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetVersion", |text| unsafe { (self.symbols().version)(text) })
    }

    /// Returns the version of the engine API that the plugin implements.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn api_version(&self) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetApiVersion", |text| unsafe { (self.symbols().api_version)(text) })
    }

    /// Returns the plugin's type; 1 is an engine plugin.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn kind(&self) -> Result<i32, HostError> {
        let mut kind = -1;
        // SAFETY: the pointer is valid for a write.
        let status = unsafe { (self.symbols().kind)(&mut kind) };
        self.check("GetType", status).map(|()| kind)
    }

    /// Sets the logging callback and the least severity that is logged.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn set_logging(&self, callback: Option<LogCallback>, level: i32) -> Result<(), HostError> {
        // SAFETY: the callback is a function of this process, so it stays valid.
        let status = unsafe { (self.symbols().set_callback)(callback) };
        self.check("SetLoggingCallback", status)?;
        // SAFETY: the function takes only a number.
        let status = unsafe { (self.symbols().set_log_level)(level) };
        self.check("SetLogLevel", status)
    }

    /// Returns the ids of all engines: with one call for their number and one for the ids, as
    /// hipDNN does.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error, [`HostError::Protocol`] if the two
    /// calls give different numbers.
    pub fn engine_ids(&self) -> Result<Vec<i64>, HostError> {
        const NAME: &str = "GetAllEngineIds";
        let mut count = 0;
        // SAFETY: with a capacity of 0, nothing is written to the null pointer; the count is valid
        // for a write.
        let status = unsafe { (self.symbols().all_ids)(std::ptr::null_mut(), 0, &mut count) };
        self.check(NAME, status)?;
        let mut ids = vec![0; count as usize];
        let mut filled = 0;
        // SAFETY: `ids` has room for `count` ids; `filled` is valid for a write.
        let status = unsafe { (self.symbols().all_ids)(ids.as_mut_ptr(), count, &mut filled) };
        self.check(NAME, status)?;
        if filled != count {
            return Err(HostError::Protocol {
                function: NAME,
                what: format!("counted {count}, then {filled}"),
            });
        }
        Ok(ids)
    }

    /// Returns the name of an engine.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error.
    pub fn engine_name(&self, id: i64) -> Result<String, HostError> {
        // SAFETY: the pointer is valid for a write.
        self.text("GetEngineName", |text| unsafe {
            (self.symbols().engine_name)(id, text)
        })
    }

    /// Creates a handle.
    ///
    /// # Errors
    ///
    /// [`HostError::Status`] if the plugin reports an error, [`HostError::Protocol`] if the
    /// handle is null.
    pub fn handle(&self) -> Result<Handle, HostError> {
        // A dangling pointer instead of null, to find plugins that depend on the initial value.
        let mut raw = std::ptr::dangling_mut();
        // SAFETY: the pointer is valid for a write.
        let status = unsafe { (self.symbols().create)(&mut raw) };
        self.check("Create", status)?;
        if raw.is_null() {
            return Err(HostError::Protocol {
                function: "Create",
                what: "the handle is null".to_owned(),
            });
        }
        // SAFETY: the plugin has just created the handle, and nothing else destroys it.
        Ok(unsafe { Handle::new(self.clone(), raw) })
    }
}

/// # Safety
///
/// The pointer must be null or point to a text with a terminator.
unsafe fn to_string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
