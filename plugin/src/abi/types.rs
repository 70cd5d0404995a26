//! The types of the ABI, with the header's layout.

use std::ffi::c_void;

/// Bytes of somebody else (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bytes {
    /// The first byte; anything if there are none.
    pub pointer: *const c_void,
    /// How many.
    pub length: usize,
}

impl Bytes {
    /// None.
    pub(super) const EMPTY: Bytes = Bytes {
        pointer: std::ptr::null(),
        length: 0,
    };

    /// The bytes as a slice.
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
    /// What happened.
    Info = 0,
    /// What works, but not as asked.
    Warn = 1,
    /// What failed.
    Error = 2,
    /// What cannot go on.
    Fatal = 3,
    /// As a level: nothing.
    Off = 4,
}

impl LogSeverity {
    /// The severity of a C enum's value.
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
