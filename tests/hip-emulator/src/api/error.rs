//! Errors, versions and `hipInit`.

use super::put;
use crate::calls::{self, hip};
use crate::runtime;
use crate::status;
use crate::sys;
use std::ffi::{c_char, c_int, c_uint};

hip! {
    fn hipInit(flags: c_uint) {
        if flags != 0 {
            return Err(sys::hipErrorInvalidValue);
        }
        runtime::get().map(drop)
    }

    fn hipDriverGetVersion(version: *mut c_int) {
        // SAFETY: by HIP's contract.
        unsafe { put(version, version_number()) }
    }

    fn hipRuntimeGetVersion(version: *mut c_int) {
        // SAFETY: by HIP's contract.
        unsafe { put(version, version_number()) }
    }

    fn hipGetLastError() {
        match calls::last_error(true) {
            sys::hipSuccess => Ok(()),
            error => Err(error),
        }
    }

    fn hipPeekAtLastError() {
        match calls::last_error(false) {
            sys::hipSuccess => Ok(()),
            error => Err(error),
        }
    }
}

/// The version of the headers that the emulator was built with.
fn version_number() -> c_int {
    c_int::try_from(sys::HIP_VERSION_MAJOR * 10_000_000 + sys::HIP_VERSION_MINOR * 100_000 + sys::HIP_VERSION_PATCH)
        .unwrap_or(c_int::MAX)
}

#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(error: sys::hipError_t) -> *const c_char {
    status::name(error).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn hipGetErrorString(error: sys::hipError_t) -> *const c_char {
    status::description(error).as_ptr()
}
