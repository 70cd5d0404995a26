//! Queries that need no handle, and logging to the host.

use super::call::{Failure, call, place, remembered};
use crate::engine::{Engine, id};
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

/// The API version that adds shape overrides, runtime values and engine names. Ragged tensors and
/// other features that an engine cannot run are declined by the engine.
const API_VERSION: &CStr = c"1.4.0";

/// `HIPDNN_PLUGIN_TYPE_ENGINE`.
const ENGINE: i32 = 1;

pub(super) const INFO: i32 = 0;
pub(super) const WARN: i32 = 1;
pub(super) const ERROR: i32 = 2;
/// The highest severity; as a log level, it turns logging off.
const OFF: i32 = 4;

/// The host's logging function (`hipdnnCallback_t`).
pub type LogCallback = unsafe extern "C" fn(severity: i32, message: *const c_char);

static CALLBACK: Mutex<Option<LogCallback>> = Mutex::new(None);
static LEVEL: AtomicI32 = AtomicI32::new(INFO);

/// Sends a line to the host's log.
pub(super) fn log(severity: i32, line: &str) {
    if severity < LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let callback = *CALLBACK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let (Some(callback), Ok(line)) = (callback, CString::new(line.replace('\0', " "))) {
        // SAFETY: the host registered the function for this purpose.
        unsafe { callback(severity, line.as_ptr()) };
    }
}

/// Writes a static string to `text`.
///
/// # Safety
///
/// `text` must be null or valid for a write.
unsafe fn tell(text: *mut *const c_char, words: &'static CStr) -> i32 {
    call(|| {
        let text = place(text, "place for a text")?;
        // SAFETY: not null; the rest by this function's contract.
        unsafe { text.write(words.as_ptr()) };
        Ok(())
    })
}

/// Returns the plugin's name.
pub unsafe fn name<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract, here and in the functions that follow.
    unsafe { tell(text, E::PLUGIN) }
}

/// Returns the plugin's version.
pub unsafe fn version<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract.
    unsafe { tell(text, E::VERSION) }
}

/// Returns the version of the engine API.
pub unsafe fn api_version<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract.
    unsafe { tell(text, API_VERSION) }
}

/// Returns the plugin's type: a plugin with engines.
pub unsafe fn kind<E: Engine>(kind: *mut i32) -> i32 {
    call(|| {
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place(kind, "place for the type")?.write(ENGINE) };
        Ok(())
    })
}

/// Returns the text of this thread's last error.
pub unsafe fn last_error(text: *mut *const c_char) {
    if let Ok(text) = place(text, "place for a text") {
        // SAFETY: not null; the rest by the module's contract.
        unsafe { text.write(remembered()) };
    }
}

/// Sets the function that receives log lines; null for none.
pub unsafe fn set_callback<E: Engine>(callback: Option<LogCallback>) -> i32 {
    call(|| {
        *CALLBACK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = callback;
        Ok(())
    })
}

/// Sets the lowest severity that is logged.
pub unsafe fn set_log_level<E: Engine>(severity: i32) -> i32 {
    call(|| {
        if !(INFO..=OFF).contains(&severity) {
            return Err(Failure::invalid_value(format!("{severity} is no severity")));
        }
        LEVEL.store(severity, Ordering::Relaxed);
        Ok(())
    })
}

/// Returns the ids of all engines: there is one.
pub unsafe fn all_ids<E: Engine>(ids: *mut i64, max: u32, count: *mut u32) -> i32 {
    call(|| {
        let count = place(count, "place for the count")?;
        if max > 0 {
            // SAFETY: not null; the rest by the module's contract.
            unsafe { place(ids, "places for ids")?.write(id(E::NAME)) };
        }
        // SAFETY: as above.
        unsafe { count.write(1) };
        Ok(())
    })
}

/// Returns the engine's name.
pub unsafe fn engine_name<E: Engine>(engine: i64, text: *mut *const c_char) -> i32 {
    call(|| {
        let text = place(text, "place for a text")?;
        if engine != id(E::NAME) {
            return Err(Failure::not_applicable(format!("there is no engine {engine:#x}")));
        }
        // SAFETY: not null; the rest by the module's contract.
        unsafe { text.write(E::NAME.as_ptr()) };
        Ok(())
    })
}
