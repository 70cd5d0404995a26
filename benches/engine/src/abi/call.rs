//! A call across the C boundary: its arguments, its status and the text of its error.

use super::base;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a call fails: a status (`hipdnnPluginStatus_t`) and a text.
pub(super) struct Failure {
    status: i32,
    words: String,
}

impl Failure {
    fn new(status: i32, words: impl Into<String>) -> Self {
        Failure {
            status,
            words: words.into(),
        }
    }

    pub(super) fn bad_parameter(words: impl Into<String>) -> Self {
        Self::new(1, words)
    }

    pub(super) fn invalid_value(words: impl Into<String>) -> Self {
        Self::new(2, words)
    }

    pub(super) fn internal(words: impl Into<String>) -> Self {
        Self::new(3, words)
    }

    pub(super) fn not_applicable(words: impl Into<String>) -> Self {
        Self::new(5, words)
    }
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

/// Runs the body of an exported function and returns its status. Panics are caught.
pub(super) fn call(body: impl FnOnce() -> Result<()>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().copied();
            let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let failure = Failure::internal(format!("panicked: {}", words.unwrap_or("no message")));
            // Dropping the payload may panic again.
            std::mem::forget(panic);
            failure
        }
    };
    base::log(base::ERROR, &failure.words);
    remember(&failure.words);
    failure.status
}

/// Size of the longest text that hipDNN reads, including the terminator.
const TEXT: usize = 2048;

thread_local! {
    // An array without a destructor: a thread-local with one would keep the library mapped.
    static LAST: RefCell<[u8; TEXT]> = const { RefCell::new([0; TEXT]) };
}

fn remember(words: &str) {
    let mut text = [0; TEXT];
    let bytes = words.bytes().map(|byte| if byte == 0 { b' ' } else { byte });
    // The last byte stays zero, as the terminator.
    text.iter_mut()
        .take(TEXT - 1)
        .zip(bytes)
        .for_each(|(place, byte)| *place = byte);
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// Returns this thread's last error as a C string.
pub(super) fn remembered() -> *const c_char {
    LAST.try_with(|last| last.as_ptr().cast_const().cast())
        .unwrap_or(c"".as_ptr())
}

/// Bytes with their length (`hipdnnPluginConstData_t`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bytes {
    start: *const c_void,
    length: usize,
}

/// Returns the bytes that an argument points to. A null start or an impossible length gives none.
///
/// # Safety
///
/// The argument must be null or valid, and so must the bytes that it points to.
pub(super) unsafe fn bytes<'a>(argument: *const Bytes, what: &str) -> Result<&'a [u8]> {
    // SAFETY: by this function's contract.
    let Bytes { start, length } = *unsafe { given(argument, what) }?;
    if start.is_null() || isize::try_from(length).is_err() {
        return Ok(&[]);
    }
    // SAFETY: not null and not too long; the rest by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// Returns the value that an argument points to.
///
/// # Safety
///
/// The argument must be null or valid for reads.
pub(super) unsafe fn given<'a, T>(argument: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { argument.as_ref() }.ok_or_else(|| null(what))
}

/// Returns the entries of an array.
///
/// # Safety
///
/// The array must be null or valid for reads of `count` entries.
pub(super) unsafe fn entries<'a, T>(array: *const T, count: u32, what: &str) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        _ if array.is_null() => Err(null(what)),
        // SAFETY: not null; the rest by this function's contract.
        _ => Ok(unsafe { std::slice::from_raw_parts(array, count as usize) }),
    }
}

/// Returns the pointer to a result, which may be uninitialised; fails if it is null.
pub(super) fn place<T>(argument: *mut T, what: &str) -> Result<*mut T> {
    if argument.is_null() {
        Err(null(what))
    } else {
        Ok(argument)
    }
}

fn null(what: &str) -> Failure {
    Failure::bad_parameter(format!("the {what} is null"))
}

/// Passes the ownership of bytes to the host.
///
/// # Safety
///
/// `place` must be valid for a write.
pub(super) unsafe fn give(place: *mut Bytes, bytes: Vec<u8>) {
    let bytes = Box::leak(bytes.into_boxed_slice());
    let given = Bytes {
        start: bytes.as_ptr().cast(),
        length: bytes.len(),
    };
    // SAFETY: by this function's contract.
    unsafe { place.write(given) };
}

/// Frees the bytes that [`give`] passed, and zeroes the argument.
///
/// # Safety
///
/// The argument must be null, or point to what [`give`] wrote or to zeros.
pub(super) unsafe fn take_back(argument: *mut Bytes, what: &str) -> Result<()> {
    // SAFETY: by this function's contract.
    let Bytes { start, length } = *unsafe { given(argument, what) }?;
    let nothing = Bytes {
        start: std::ptr::null(),
        length: 0,
    };
    // SAFETY: checked for null above.
    unsafe { argument.write(nothing) };
    if !start.is_null() {
        // SAFETY: start and length come from the boxed slice that `give` leaked.
        drop(unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                start.cast_mut().cast::<u8>(),
                length,
            ))
        });
    }
    Ok(())
}
