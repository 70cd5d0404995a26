//! The guard between C and Rust: no panic crosses it, and every error leaves its text.

use super::{last_error, logging};
use crate::error::{Error, Status};
use crate::fork::Made;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an exported function and converts its result to a status. Everything that an
/// export does happens inside the guard: its body, recording the text of its error, and calling the
/// host's logging function.
///
/// It is safe to continue after a panic, because state that a panicking body left half updated is
/// only read again through locks and queues that contain whole values.
pub(super) fn guard(name: &'static str, body: impl FnOnce() -> Result<(), Error>) -> i32 {
    let mut outcome = None;
    let done = catch_unwind(AssertUnwindSafe(|| {
        logging::held(|| outcome = Some(attempt(name, body)))
    }));
    if let Err(panic) = done {
        // The panic came from logging, or from dropping a panic's payload. Dropping this payload
        // may panic again, so it is leaked.
        std::mem::forget(panic);
    }
    // Set last, because a logging function may have called the plugin and changed the last error.
    match outcome {
        Some(Ok(())) => Status::Success as i32,
        Some(Err((status, text))) => {
            last_error::set(&text);
            status as i32
        }
        None => {
            last_error::set("internal error: a panic could not be told");
            Status::InternalError as i32
        }
    }
}

/// Runs a body and logs its error. The error is returned as a status and its text.
fn attempt(name: &'static str, body: impl FnOnce() -> Result<(), Error>) -> Result<(), (Status, String)> {
    caught(name, body).map_err(|error| {
        let status = error.status();
        match status {
            Status::NotApplicable => tracing::info!("{name}: {error}"),
            _ => tracing::error!("{name}: {error}"),
        }
        (status, error.to_string())
    })
}

/// Runs a body, and converts a panic to an error.
pub(super) fn caught<T>(name: &str, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(from_panic(name, panic.as_ref())))
}

fn from_panic(name: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::Internal(format!("{name} panicked: {}", text.unwrap_or("no message")))
}

/// Returns a reference to a pointer's target, or an error if the pointer is null.
///
/// # Safety
///
/// The pointer is null or valid for reads for `'a`, and nothing writes to its target meanwhile.
pub(super) unsafe fn reference<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Error> {
    // SAFETY: by this function's contract.
    unsafe { pointer.as_ref() }.ok_or(Error::Null(what))
}

/// Returns a reference as [`reference`] does, or an error if another process made the object.
///
/// # Safety
///
/// As [`reference`].
pub(super) unsafe fn own<'a, T: Made>(pointer: *const T, what: &'static str) -> Result<&'a T, Error> {
    // SAFETY: by this function's contract.
    let own = unsafe { reference(pointer, what) }?;
    own.made_in().check(what)?;
    Ok(own)
}

/// Returns a place to write a result to, or an error if the pointer is null.
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

/// Memory of the caller for a result, possibly uninitialised, so it can only be written. Nothing is
/// written before all arguments are validated: a caller of another generation may keep something
/// else there.
pub(super) struct Place<T>(*mut T);

impl<T> Place<T> {
    pub(super) fn write(&self, value: T) {
        // SAFETY: not null, and valid for writes by the contract of `place`.
        unsafe { self.0.write(value) };
    }
}
