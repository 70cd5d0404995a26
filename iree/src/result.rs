//! Conversion of a C status to a `Result`.
//!
//! IREE's runtime returns a pointer whose low bits are a code and whose other bits, if not zero,
//! point to an allocated message with the source location. [`check`] consumes the status: the
//! message is copied out and freed, on every path.

use std::{ffi::c_char, fmt, ptr, slice};

use iree_sys::runtime as sys;

/// IREE's status codes (`iree_status_code_e`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The operation was cancelled.
    Cancelled,
    /// No better code was known.
    Unknown,
    /// An argument is wrong whatever the state of the system.
    InvalidArgument,
    /// A wait ran out of time.
    DeadlineExceeded,
    /// A symbol, device or file is missing.
    NotFound,
    /// The object that was to be created exists already.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// Memory or another quota is used up.
    ResourceExhausted,
    /// The system's state does not allow the operation; without a GPU, HIP reports this.
    FailedPrecondition,
    /// The operation was aborted, often by an earlier failure.
    Aborted,
    /// A value or an alignment is outside its range.
    OutOfRange,
    /// Not implemented by this driver or version.
    Unimplemented,
    /// An invariant broke, in IREE or in a library under it.
    Internal,
    /// A service or library is missing; without `libamdhip64.so`, HIP reports this.
    Unavailable,
    /// Data is lost or corrupt.
    DataLoss,
    /// No valid credentials.
    Unauthenticated,
    /// The result is not ready.
    Deferred,
    /// Versions or formats do not fit together.
    Incompatible,
    /// A code this crate does not know.
    Other(u32),
}

impl Code {
    fn from_raw(raw: u32) -> Self {
        match raw {
            sys::IREE_STATUS_CANCELLED => Self::Cancelled,
            sys::IREE_STATUS_UNKNOWN => Self::Unknown,
            sys::IREE_STATUS_INVALID_ARGUMENT => Self::InvalidArgument,
            sys::IREE_STATUS_DEADLINE_EXCEEDED => Self::DeadlineExceeded,
            sys::IREE_STATUS_NOT_FOUND => Self::NotFound,
            sys::IREE_STATUS_ALREADY_EXISTS => Self::AlreadyExists,
            sys::IREE_STATUS_PERMISSION_DENIED => Self::PermissionDenied,
            sys::IREE_STATUS_RESOURCE_EXHAUSTED => Self::ResourceExhausted,
            sys::IREE_STATUS_FAILED_PRECONDITION => Self::FailedPrecondition,
            sys::IREE_STATUS_ABORTED => Self::Aborted,
            sys::IREE_STATUS_OUT_OF_RANGE => Self::OutOfRange,
            sys::IREE_STATUS_UNIMPLEMENTED => Self::Unimplemented,
            sys::IREE_STATUS_INTERNAL => Self::Internal,
            sys::IREE_STATUS_UNAVAILABLE => Self::Unavailable,
            sys::IREE_STATUS_DATA_LOSS => Self::DataLoss,
            sys::IREE_STATUS_UNAUTHENTICATED => Self::Unauthenticated,
            sys::IREE_STATUS_DEFERRED => Self::Deferred,
            sys::IREE_STATUS_INCOMPATIBLE => Self::Incompatible,
            other => Self::Other(other),
        }
    }
}

/// A failed call into IREE's runtime: the code, and IREE's own text (source location, code and
/// message).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    code: Code,
    message: String,
}

impl Status {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns IREE's text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// Consumes a status, and returns `Ok` for OK, else the copied code and message.
///
/// # Errors
///
/// Whatever IREE reported.
///
/// # Safety
///
/// `status` came from a call into IREE's runtime and was not consumed before.
pub unsafe fn check(status: sys::iree_status_t) -> Result<(), Status> {
    // An OK status is the null pointer: the fast path is one comparison.
    if status.is_null() {
        return Ok(());
    }
    let code = Code::from_raw(status as usize as u32 & sys::IREE_STATUS_CODE_MASK);
    let mut text: *mut c_char = ptr::null_mut();
    let mut length = 0;
    // SAFETY: the status is live by this function's contract and is not used after
    // `iree_status_free`; the text was allocated by `allocator` and is freed by it, after the copy.
    let message = unsafe {
        let allocator = sys::iree_allocator_system();
        let message = if sys::iree_status_to_string(status, &allocator, &mut text, &mut length) {
            let bytes = slice::from_raw_parts(text.cast::<u8>(), length);
            let message = String::from_utf8_lossy(bytes).trim().to_owned();
            sys::iree_allocator_free(allocator, text.cast());
            message
        } else {
            format!("{code:?} (no memory for the message)")
        };
        sys::iree_status_free(status);
        message
    };
    Err(Status { code, message })
}
