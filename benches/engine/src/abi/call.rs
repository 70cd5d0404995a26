//! One call over the boundary: its arguments, its status and the text of its error.

use super::base;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call does not succeed: a status (`hipdnnPluginStatus_t`) and words.
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

/// Runs the body of an exported function. No panic leaves it.
pub(super) fn call(body: impl FnOnce() -> Result<()>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().copied();
            let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let failure = Failure::internal(format!("panicked: {}", words.unwrap_or("no message")));
            // Its drop may panic again.
            std::mem::forget(panic);
            failure
        }
    };
    base::log(base::ERROR, &failure.words);
    remember(&failure.words);
    failure.status
}

/// What hipDNN reads at most, with the terminator.
const TEXT: usize = 2048;

thread_local! {
    // An array: something with a destructor would keep the library mapped.
    static LAST: RefCell<[u8; TEXT]> = const { RefCell::new([0; TEXT]) };
}

fn remember(words: &str) {
    let mut text = [0; TEXT];
    let bytes = words.bytes().map(|byte| if byte == 0 { b' ' } else { byte });
    // The last place keeps the terminator.
    text.iter_mut()
        .take(TEXT - 1)
        .zip(bytes)
        .for_each(|(place, byte)| *place = byte);
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// This thread's last error as C reads it.
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

/// The bytes that an argument points to; none where they are not there.
///
/// # Safety
///
/// The argument is null or valid, as is what it points to.
pub(super) unsafe fn bytes<'a>(argument: *const Bytes, what: &str) -> Result<&'a [u8]> {
    // SAFETY: by this function's contract.
    let Bytes { start, length } = *unsafe { given(argument, what) }?;
    if start.is_null() || isize::try_from(length).is_err() {
        return Ok(&[]);
    }
    // SAFETY: not null and not too long; the rest by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), length) })
}

/// What an argument points to.
///
/// # Safety
///
/// The argument is null or valid for reads.
pub(super) unsafe fn given<'a, T>(argument: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { argument.as_ref() }.ok_or_else(|| null(what))
}

/// The entries of an array.
///
/// # Safety
///
/// The array is null or valid for reads of `count` entries.
pub(super) unsafe fn entries<'a, T>(array: *const T, count: u32, what: &str) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        _ if array.is_null() => Err(null(what)),
        // SAFETY: not null; the rest by this function's contract.
        _ => Ok(unsafe { std::slice::from_raw_parts(array, count as usize) }),
    }
}

/// A place for a result, which may not be initialised.
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

/// Gives bytes to the host.
///
/// # Safety
///
/// The place is valid for a write.
pub(super) unsafe fn give(place: *mut Bytes, bytes: Vec<u8>) {
    let bytes = Box::leak(bytes.into_boxed_slice());
    let given = Bytes {
        start: bytes.as_ptr().cast(),
        length: bytes.len(),
    };
    // SAFETY: by this function's contract.
    unsafe { place.write(given) };
}

/// Frees what [`give`] gave, and leaves nothing there.
///
/// # Safety
///
/// The argument is null or points to what [`give`] wrote or to zeros.
pub(super) unsafe fn take_back(argument: *mut Bytes, what: &str) -> Result<()> {
    // SAFETY: by this function's contract.
    let Bytes { start, length } = *unsafe { given(argument, what) }?;
    let nothing = Bytes {
        start: std::ptr::null(),
        length: 0,
    };
    // SAFETY: not null, as was seen above.
    unsafe { argument.write(nothing) };
    if !start.is_null() {
        // SAFETY: both came from a boxed slice that was leaked.
        drop(unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                start.cast_mut().cast::<u8>(),
                length,
            ))
        });
    }
    Ok(())
}
