//! What is asked of a plugin before there is a handle, and what it tells the host's log.

use super::call::{Failure, call, place, remembered};
use crate::engine::{Engine, id};
use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

/// The version with overrides of shapes, values that come at execution, and names of engines.
/// Ragged tensors and others that an engine cannot run are declined by it.
const API_VERSION: &CStr = c"1.4.0";

/// `HIPDNN_PLUGIN_TYPE_ENGINE`.
const ENGINE: i32 = 1;

pub(super) const INFO: i32 = 0;
pub(super) const WARN: i32 = 1;
pub(super) const ERROR: i32 = 2;
/// The highest severity. As a level, it turns logging off.
const OFF: i32 = 4;

/// The host's logging function (`hipdnnCallback_t`).
pub type LogCallback = unsafe extern "C" fn(severity: i32, message: *const c_char);

static CALLBACK: Mutex<Option<LogCallback>> = Mutex::new(None);
static LEVEL: AtomicI32 = AtomicI32::new(INFO);

/// Tells the host's log one line.
pub(super) fn log(severity: i32, line: &str) {
    if severity < LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let callback = *CALLBACK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let (Some(callback), Ok(line)) = (callback, CString::new(line.replace('\0', " "))) {
        // SAFETY: the host gave the function for this.
        unsafe { callback(severity, line.as_ptr()) };
    }
}

/// # Safety
///
/// `text` is null or valid for a write.
unsafe fn tell(text: *mut *const c_char, words: &'static CStr) -> i32 {
    call(|| {
        let text = place(text, "place for a text")?;
        // SAFETY: not null; the rest by this function's contract.
        unsafe { text.write(words.as_ptr()) };
        Ok(())
    })
}

/// Tells the plugin's name.
pub unsafe fn name<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract, here and in the functions that follow.
    unsafe { tell(text, E::PLUGIN) }
}

/// Tells the plugin's version.
pub unsafe fn version<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract.
    unsafe { tell(text, E::VERSION) }
}

/// Tells the version of the engine API.
pub unsafe fn api_version<E: Engine>(text: *mut *const c_char) -> i32 {
    // SAFETY: by the module's contract.
    unsafe { tell(text, API_VERSION) }
}

/// Tells that it is a plugin with engines.
pub unsafe fn kind<E: Engine>(kind: *mut i32) -> i32 {
    call(|| {
        // SAFETY: not null; the rest by the module's contract.
        unsafe { place(kind, "place for the type")?.write(ENGINE) };
        Ok(())
    })
}

/// Tells the text of this thread's last error.
pub unsafe fn last_error(text: *mut *const c_char) {
    if let Ok(text) = place(text, "place for a text") {
        // SAFETY: not null; the rest by the module's contract.
        unsafe { text.write(remembered()) };
    }
}

/// Sets the function that gets log lines; null for none.
pub unsafe fn set_callback<E: Engine>(callback: Option<LogCallback>) -> i32 {
    call(|| {
        *CALLBACK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = callback;
        Ok(())
    })
}

/// Sets the least severity that is logged.
pub unsafe fn set_log_level<E: Engine>(severity: i32) -> i32 {
    call(|| {
        if !(INFO..=OFF).contains(&severity) {
            return Err(Failure::invalid_value(format!("{severity} is no severity")));
        }
        LEVEL.store(severity, Ordering::Relaxed);
        Ok(())
    })
}

/// Tells the ids of all engines: one.
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

/// Tells the engine's name.
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
