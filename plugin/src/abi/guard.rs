//! What stands between C and Rust: no panic crosses, every error leaves its text.

use super::last_error;
use crate::error::{Error, Status};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an exported function and turns its result into a status.
///
/// What a panicking body left half done is only read again through locks and queues that hold whole values, so it is safe to go on.
pub(super) fn guard(name: &'static str, body: impl FnOnce() -> Result<(), Error>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(from_panic(name, panic.as_ref())));
    let status = match result {
        Ok(()) => Status::Success,
        Err(error) => {
            last_error::set(&error.to_string());
            match error.status() {
                Status::NotApplicable => tracing::info!("{name}: {error}"),
                _ => tracing::error!("{name}: {error}"),
            }
            error.status()
        }
    };
    status as i32
}

fn from_panic(name: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::Internal(format!("{name} panicked: {}", text.unwrap_or("no message")))
}

/// A reference to what a pointer points to, or the error that it is null.
///
/// # Safety
///
/// The pointer is null or valid for reads for `'a`, and nothing writes there meanwhile.
pub(super) unsafe fn reference<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Error> {
    // SAFETY: by this function's contract.
    unsafe { pointer.as_ref() }.ok_or(Error::Null(what))
}

/// A place to write a result to, or the error that it is null.
///
/// # Safety
///
/// The pointer is null or valid for writes for as long as the returned place is used.
pub(super) unsafe fn place<T>(pointer: *mut T, what: &'static str) -> Result<Place<T>, Error> {
    if pointer.is_null() {
        Err(Error::Null(what))
    } else {
        Ok(Place(pointer))
    }
}

/// A place of the caller's, possibly uninitialised: it can only be written.
pub(super) struct Place<T>(*mut T);

impl<T> Place<T> {
    pub(super) fn write(&self, value: T) {
        // SAFETY: not null, and valid for writes by the contract of `place`.
        unsafe { self.0.write(value) };
    }
}
