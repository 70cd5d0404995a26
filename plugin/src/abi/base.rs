//! The functions that every plugin of hipDNN has (`PluginApi.h`).

use super::guard::{guard, place};
use super::logging::{self, Callback};
use super::types::LogSeverity;
use super::{API_VERSION, last_error};
use crate::error::Error;
use crate::neighbours;
use std::ffi::{CStr, c_char};

const NAME: &CStr = c"rotini";

/// The crate's version, with a terminating zero.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// [`API_VERSION`] as text.
const API_VERSION_TEXT: &CStr = c"1.5.0";

/// `hipdnnPluginGetType`'s value for an engine plugin, as opposed to a heuristic one.
const TYPE_ENGINE: i32 = 1;

const _: () = assert!(matches!(API_VERSION, [1, 5, 0]), "the text above has to follow");

/// Returns the plugin's name.
///
/// # Safety
///
/// `name` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnPluginGetName(name: *mut *const c_char) -> i32 {
    guard("hipdnnPluginGetName", || {
        // SAFETY: by this function's contract.
        unsafe { place(name, "name") }?.write(NAME.as_ptr());
        Ok(())
    })
}

/// Returns the plugin's own version.
///
/// # Safety
///
/// `version` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnPluginGetVersion(version: *mut *const c_char) -> i32 {
    guard("hipdnnPluginGetVersion", || {
        // SAFETY: by this function's contract.
        unsafe { place(version, "version") }?.write(VERSION.as_ptr());
        Ok(())
    })
}

/// Returns the version of the engine API that is implemented.
///
/// # Safety
///
/// `version` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnPluginGetApiVersion(version: *mut *const c_char) -> i32 {
    guard("hipdnnPluginGetApiVersion", || {
        // SAFETY: by this function's contract.
        unsafe { place(version, "version") }?.write(API_VERSION_TEXT.as_ptr());
        Ok(())
    })
}

/// Returns the plugin's type: an engine plugin.
///
/// # Safety
///
/// `type_` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnPluginGetType(type_: *mut i32) -> i32 {
    guard("hipdnnPluginGetType", || {
        // SAFETY: by this function's contract.
        unsafe { place(type_, "type") }?.write(TYPE_ENGINE);
        Ok(())
    })
}

/// Returns the text of this thread's last error. It is valid until the thread's next call that
/// fails.
///
/// # Safety
///
/// `text` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipdnnPluginGetLastErrorString(text: *mut *const c_char) {
    // SAFETY: by this function's contract.
    if let Ok(text) = unsafe { place(text, "text") } {
        text.write(last_error::pointer());
    }
}

/// Sets the host's logging function; null turns logging off.
#[unsafe(no_mangle)]
pub extern "C" fn hipdnnPluginSetLoggingCallback(callback: Option<Callback>) -> i32 {
    guard("hipdnnPluginSetLoggingCallback", || {
        logging::set_callback(callback);
        if callback.is_some() {
            neighbours::tell();
        }
        Ok(())
    })
}

/// Sets the lowest severity that is logged.
#[unsafe(no_mangle)]
pub extern "C" fn hipdnnPluginSetLogLevel(severity: i32) -> i32 {
    guard("hipdnnPluginSetLogLevel", || {
        let level = LogSeverity::from_raw(severity)
            .ok_or_else(|| Error::InvalidArgument(format!("{severity} is no severity")))?;
        logging::set_level(level);
        Ok(())
    })
}
