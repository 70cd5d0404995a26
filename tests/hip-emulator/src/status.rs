//! Names and describes HIP's errors.

use crate::sys::{self, hipError_t};
use std::ffi::CStr;

/// Result of the emulator's functions; the error is one of HIP's codes.
pub(crate) type Result<T = (), E = hipError_t> = std::result::Result<T, E>;

/// Returns HIP's name of an error, the first where a value has two.
pub(crate) fn name(error: hipError_t) -> &'static CStr {
    sys::ERRORS
        .iter()
        .find(|(value, _)| *value == error)
        .map_or(c"hipErrorUnknown", |(_, name)| name)
}

/// Returns the error with this name.
pub(crate) fn by_name(name: &str) -> Option<hipError_t> {
    sys::ERRORS
        .iter()
        .find(|(_, other)| other.to_str() == Ok(name))
        .map(|(value, _)| *value)
}

/// Describes an error; for those that the emulator itself never returns, the description is the
/// name.
pub(crate) fn description(error: hipError_t) -> &'static CStr {
    match error {
        sys::hipSuccess => c"no error",
        sys::hipErrorInvalidValue => c"invalid argument",
        sys::hipErrorOutOfMemory => c"out of memory",
        sys::hipErrorNotInitialized => c"initialization error",
        sys::hipErrorInvalidConfiguration => c"invalid configuration argument",
        sys::hipErrorInvalidMemcpyDirection => c"invalid copy direction for memcpy",
        sys::hipErrorNoDevice => c"no ROCm-capable device is detected",
        sys::hipErrorInvalidDevice => c"invalid device ordinal",
        sys::hipErrorInvalidImage => c"device kernel image is invalid",
        sys::hipErrorInvalidContext => c"invalid device context",
        sys::hipErrorNoBinaryForGpu => c"no kernel image is available for execution on the device",
        sys::hipErrorInvalidHandle => c"invalid resource handle",
        sys::hipErrorNotFound => c"named symbol not found",
        sys::hipErrorNotReady => c"device not ready",
        sys::hipErrorIllegalAddress => c"an illegal memory access was encountered",
        sys::hipErrorLaunchFailure => c"unspecified launch failure",
        sys::hipErrorNotSupported => c"operation not supported",
        sys::hipErrorStreamCaptureUnsupported => c"operation not permitted when stream is capturing",
        sys::hipErrorStreamCaptureInvalidated => c"operation failed due to a previous error during capture",
        sys::hipErrorStreamCaptureUnjoined => c"capture was ended with work that did not join its origin stream",
        sys::hipErrorStreamCaptureIsolation => c"dependency created on uncaptured work in another stream",
        sys::hipErrorStreamCaptureImplicit => {
            c"operation would make the legacy stream depend on a capturing blocking stream"
        }
        sys::hipErrorCapturedEvent => c"operation not permitted on an event last recorded in a capturing stream",
        sys::hipErrorUnknown => c"unknown error",
        other => name(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_header() {
        assert_eq!(name(0), c"hipSuccess");
        assert_eq!(name(2), c"hipErrorOutOfMemory");
        assert_eq!(name(100), c"hipErrorNoDevice");
        assert_eq!(name(719), c"hipErrorLaunchFailure");
        assert_eq!(name(123_456), c"hipErrorUnknown");
        assert_eq!(by_name("hipErrorMemoryAllocation"), Some(2));
        assert_eq!(by_name("hipErrorNoSuchThing"), None);
    }
}
