//! The text of the last error, per thread.

use std::cell::UnsafeCell;
use std::ffi::c_char;

/// Maximum bytes of a text with its terminating zero, as hipDNN recommends.
const CAPACITY: usize = 2048;

thread_local! {
    // A plain array, because a thread-local with a destructor would keep the library mapped after
    // it is closed.
    static TEXT: UnsafeCell<[u8; CAPACITY]> = const { UnsafeCell::new([0; CAPACITY]) };
}

/// Stores the text of an error, truncated to the capacity.
pub(super) fn set(message: &str) {
    let mut end = message.len().min(CAPACITY - 1);
    while !message.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    // A zero inside the text would end it early, so it is replaced.
    let bytes = message
        .bytes()
        .take(end)
        .map(|byte| if byte == 0 { b'?' } else { byte })
        .chain([0]);
    let _ = TEXT.try_with(|text| {
        // SAFETY: the array belongs to this thread, and no reference to it outlives this closure; C
        // code reads it between calls.
        let text = unsafe { &mut *text.get() };
        for (slot, byte) in text.iter_mut().zip(bytes) {
            *slot = byte;
        }
    });
}

/// Returns the text as a C string, which is never null.
pub(super) fn pointer() -> *const c_char {
    TEXT.try_with(|text| text.get().cast_const().cast())
        .unwrap_or(c"".as_ptr())
}
