//! Owns the handles that HIP's opaque pointers point to.
//!
//! A handle's memory is never freed: the use of a destroyed stream or event is detected, where HIP
//! would crash or, worse, not notice. Large contents of a handle are dropped when it is destroyed.

use crate::status::Result;
use crate::sys::{self, hipError_t};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kind of handle.
pub(crate) trait Kind: Sync + 'static {
    /// Distinguishes the kinds of handles when a caller mixes them up.
    const MAGIC: u64;
    /// The error for an invalid or destroyed handle.
    const INVALID: hipError_t = sys::hipErrorInvalidHandle;
}

/// The target of an opaque pointer.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Handle<T> {
    magic: u64,
    alive: AtomicBool,
    value: T,
}

impl<T: Kind> Handle<T> {
    pub(crate) fn new(value: T) -> &'static Self {
        Box::leak(Box::new(Handle {
            magic: T::MAGIC,
            alive: AtomicBool::new(true),
            value,
        }))
    }

    /// Returns the handle that a caller's pointer refers to.
    ///
    /// # Safety
    ///
    /// The pointer is null or was returned by [`Handle::raw`] of a handle of any kind.
    pub(crate) unsafe fn from_raw<R>(raw: *mut R) -> Result<&'static Self> {
        if raw.is_null() || !raw.cast::<u64>().is_aligned() {
            return Err(T::INVALID);
        }
        // SAFETY: handles of all kinds begin with their magic number, and none is ever freed.
        if unsafe { raw.cast::<u64>().read() } != T::MAGIC {
            return Err(T::INVALID);
        }
        // SAFETY: the magic number proves that the pointer's target is a handle of this kind.
        let handle = unsafe { &*raw.cast::<Self>() };
        if handle.is_alive() { Ok(handle) } else { Err(T::INVALID) }
    }

    /// Returns the pointer that the caller gets.
    pub(crate) fn raw<R>(&'static self) -> *mut R {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Marks the handle as destroyed.
    ///
    /// # Errors
    ///
    /// If it already was.
    pub(crate) fn retire(&self) -> Result {
        if self.alive.swap(false, Ordering::AcqRel) {
            Ok(())
        } else {
            Err(T::INVALID)
        }
    }
}

impl<T> Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
