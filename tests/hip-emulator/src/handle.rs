//! Owns the handles that HIP's opaque pointers point to.
//!
//! A handle's memory is never given back: a destroyed stream or event is recognised when it is used
//! again, where HIP would crash or, worse, not notice. What a handle holds that is large is dropped
//! when it is destroyed.

use crate::status::Result;
use crate::sys::{self, hipError_t};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kind of handle.
pub(crate) trait Kind: Sync + 'static {
    /// Tells the kinds apart when a caller mixes them up.
    const MAGIC: u64;
    /// What the use of a handle gives that is none, or no more.
    const INVALID: hipError_t = sys::hipErrorInvalidHandle;
}

/// What an opaque pointer points to.
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

    /// The handle that a pointer of the caller's is.
    ///
    /// # Safety
    ///
    /// The pointer is null or was made by [`Handle::raw`] of a handle of any kind.
    pub(crate) unsafe fn from_raw<R>(raw: *mut R) -> Result<&'static Self> {
        if raw.is_null() || !raw.cast::<u64>().is_aligned() {
            return Err(T::INVALID);
        }
        // SAFETY: handles of all kinds begin with their magic number, and none is ever freed.
        if unsafe { raw.cast::<u64>().read() } != T::MAGIC {
            return Err(T::INVALID);
        }
        // SAFETY: the magic number says that this is what it points to.
        let handle = unsafe { &*raw.cast::<Self>() };
        if handle.is_alive() { Ok(handle) } else { Err(T::INVALID) }
    }

    /// What the caller gets.
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
    /// If it was already.
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
