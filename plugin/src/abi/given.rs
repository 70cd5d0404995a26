//! Objects that the plugin gives to the host and takes back: boxed objects, and bytes.

use super::guard::{Place, place, reference};
use super::types::Bytes;
use crate::error::Error;
use crate::fork::{Made, Process};
use std::ffi::c_void;

/// Destroys an object that was given to the host. In a forked child of the process that made it,
/// the object's threads may not exist and its locks may be held for ever, so it is leaked there.
///
/// # Safety
///
/// The pointer is null or came from [`Box::into_raw`], and is not used any more.
pub(super) unsafe fn destroy<T: Made>(pointer: *mut T, what: &'static str) -> Result<(), Error> {
    // SAFETY: by this function's contract.
    if unsafe { reference(pointer.cast_const(), what) }?.made_in() == Process::current() {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(pointer) });
    }
    Ok(())
}

/// Passes ownership of bytes to the caller, who returns them to [`take_back`].
pub(super) fn give(place: &Place<Bytes>, bytes: Vec<u8>) {
    let bytes = bytes.into_boxed_slice();
    let length = bytes.len();
    place.write(Bytes {
        pointer: Box::into_raw(bytes).cast::<c_void>().cast_const(),
        length,
    });
}

/// Frees the bytes that [`give`] wrote, and zeroes the caller's struct.
///
/// # Safety
///
/// `bytes` is null or what [`give`] wrote, unchanged, or zeroed.
pub(super) unsafe fn take_back(bytes: *mut Bytes, what: &'static str) -> Result<(), Error> {
    // SAFETY: by this function's contract.
    let (given, place) = unsafe { (*reference(bytes.cast_const(), what)?, place(bytes, what)?) };
    place.write(Bytes::EMPTY);
    if !given.pointer.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(given.pointer.cast_mut().cast::<u8>(), given.length);
        // SAFETY: pointer and length came from `Box::into_raw` of a boxed slice of this length.
        drop(unsafe { Box::from_raw(slice) });
    }
    Ok(())
}
