//! The exported functions, by subject.
//!
//! Each is a thin shell: it resolves handles, calls the module that does the work, and writes the
//! results. HIP's documented requirements on a caller, such as that an output pointer is valid for
//! writes, are the safety contract of all of them.

#![allow(non_snake_case, reason = "HIP's names")]

mod copy;
mod device;
mod emulator;
mod error;
mod graph;
mod memory;
mod module;
mod stream;

use crate::calls;
use crate::capture;
use crate::handle::Handle;
use crate::scheduler;
use crate::status::Result;
use crate::stream::Stream;
use crate::sys;
use crate::work::Work;
use std::ffi::{CStr, c_char};

/// Writes a result to the caller's pointer; null is an error.
///
/// # Safety
///
/// `place` is null or valid for writes.
unsafe fn put<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    // SAFETY: not null, hence valid for writes.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes an optional result: null means that the caller does not want it.
///
/// # Safety
///
/// As for [`put`].
unsafe fn put_if<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, hence valid for writes.
        unsafe { place.write(value) };
    }
}

/// Writes text and its final zero to the caller's buffer, truncated to the buffer's length.
///
/// # Safety
///
/// `buffer` is null or valid for writes of `length` bytes.
unsafe fn put_text(buffer: *mut c_char, length: i32, text: &str) -> Result {
    let length = usize::try_from(length).map_err(|_| sys::hipErrorInvalidValue)?;
    if buffer.is_null() || length == 0 {
        return Err(sys::hipErrorInvalidValue);
    }
    let bytes = text.as_bytes().get(..length - 1).unwrap_or(text.as_bytes());
    // SAFETY: the text was cut to leave room for the zero.
    unsafe {
        buffer
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        buffer.add(bytes.len()).write(0);
    }
    Ok(())
}

/// Reads a C string of the caller's.
///
/// # Safety
///
/// The pointer is null or a C string that lives for `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(sys::hipErrorInvalidValue);
    }
    // SAFETY: not null, hence a C string.
    unsafe { CStr::from_ptr(pointer) }
        .to_str()
        .map_err(|_| sys::hipErrorInvalidValue)
}

/// Submits work to a stream, or adds it to the graph that the stream is being captured into.
fn enqueue(stream: &'static Handle<Stream>, work: Work) -> Result {
    if capture::any() && capture::append(stream, &work)? {
        return Ok(());
    }
    stream.device.check()?;
    let stream: &'static Stream = stream;
    scheduler::get().submit(stream, work, &[]);
    Ok(())
}

/// Waits until a stream has completed everything submitted so far, and returns the device's error,
/// if any.
fn synchronize(stream: &'static Stream) -> Result {
    scheduler::get().wait(stream.point());
    stream.device.check()
}

/// Makes a device the calling thread's current one.
fn make_current(ordinal: usize) -> Result {
    calls::thread(|thread| thread.device.set(ordinal))
}
