//! The types of the ABI, laid out as in the header.

use std::ffi::c_void;

/// Bytes that cross the C boundary (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bytes {
    /// Pointer to the first byte; any value if the length is zero.
    pub pointer: *const c_void,
    /// Number of bytes.
    pub length: usize,
}

impl Bytes {
    /// No bytes.
    pub(super) const EMPTY: Bytes = Bytes {
        pointer: std::ptr::null(),
        length: 0,
    };

    /// Returns the bytes as a slice.
    ///
    /// # Safety
    ///
    /// `pointer` is null or valid for reads of `length` bytes for `'a`.
    pub(super) unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        if self.pointer.is_null() || self.length == 0 || isize::try_from(self.length).is_err() {
            return &[];
        }
        // SAFETY: not null, and valid by this function's contract; the length fits an `isize`.
        unsafe { std::slice::from_raw_parts(self.pointer.cast(), self.length) }
    }
}

/// Severities of log messages (`hipdnnSeverity_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum LogSeverity {
    /// An event.
    Info = 0,
    /// A request that succeeds, but not as asked.
    Warn = 1,
    /// A failed operation.
    Error = 2,
    /// A failure after which nothing can go on.
    Fatal = 3,
    /// Only as a level: no messages.
    Off = 4,
}

impl LogSeverity {
    /// Returns the severity with the C enum's value.
    #[must_use]
    pub const fn from_raw(value: i32) -> Option<Self> {
        Some(match value {
            0 => LogSeverity::Info,
            1 => LogSeverity::Warn,
            2 => LogSeverity::Error,
            3 => LogSeverity::Fatal,
            4 => LogSeverity::Off,
            _ => return None,
        })
    }
}
