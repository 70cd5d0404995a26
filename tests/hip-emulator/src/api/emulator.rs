//! The emulator's functions beyond HIP's, for tests: `hipemu_*`.

use super::text;
use crate::calls::{self, Failure};
use crate::config;
use crate::device::Submitter;
use crate::runtime::{self, current};
use crate::scheduler;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Runs a function and returns the default value if it panics: nothing may unwind into the caller.
fn guard<T: Default>(body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_default()
}

/// Sets a `HIPEMU_*` variable, overriding the environment. Returns 0, or 1 if it is too late (a HIP
/// function was called) or no variable has that name.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipemu_set(name: *const c_char, value: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's C strings.
        let set = match unsafe { (text(name), text(value)) } {
            (Ok(name), Ok(value)) => config::set(name, value),
            _ => false,
        };
        c_int::from(!set)
    })
}

/// Resets the call counts to zero: the total of all threads, and the calling thread's.
#[unsafe(no_mangle)]
extern "C" fn hipemu_calls_reset() {
    guard(calls::reset);
}

/// Calls of a HIP function by all threads since the last reset; `UINT64_MAX` if there is no such
/// function.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipemu_calls(name: *const c_char) -> u64 {
    // SAFETY: the caller's C string.
    guard(|| unsafe { text(name) }.map_or(u64::MAX, |name| calls::count(Some(name), false)))
}

/// Calls of all HIP functions by all threads since the last reset.
#[unsafe(no_mangle)]
extern "C" fn hipemu_calls_total() -> u64 {
    guard(|| calls::count(None, false))
}

/// [`hipemu_calls`] for the calling thread only.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipemu_thread_calls(name: *const c_char) -> u64 {
    // SAFETY: the caller's C string.
    guard(|| unsafe { text(name) }.map_or(u64::MAX, |name| calls::count(Some(name), true)))
}

/// [`hipemu_calls_total`] for the calling thread only.
#[unsafe(no_mangle)]
extern "C" fn hipemu_thread_calls_total() -> u64 {
    guard(|| calls::count(None, true))
}

thread_local! {
    /// Keeps the text that was last returned to this thread alive.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Returns text to the caller; it stays valid until the thread's next call that returns text.
fn give(text: String) -> *const c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    TEXT.try_with(|last| {
        *last.borrow_mut() = text;
        last.borrow().as_ptr()
    })
    .unwrap_or(c"".as_ptr())
}

/// The functions that were called since the last reset, one `name count` a line.
#[unsafe(no_mangle)]
extern "C" fn hipemu_calls_summary() -> *const c_char {
    catch_unwind(|| give(calls::summary())).unwrap_or(c"".as_ptr())
}

/// Returns the text of the current device's first failure since its reset that no thread has taken;
/// empty if there is none.
#[unsafe(no_mangle)]
extern "C" fn hipemu_last_fault() -> *const c_char {
    catch_unwind(|| give(current().ok().and_then(|device| device.fault()).unwrap_or_default())).unwrap_or(c"".as_ptr())
}

/// Waits until the current device is idle, then takes the first failure of the commands that the
/// calling thread submitted; empty if there is none. The device keeps its error state.
#[unsafe(no_mangle)]
extern "C" fn hipemu_take_thread_fault() -> *const c_char {
    let take = || {
        let device = current().ok()?;
        scheduler::get().wait_device(device);
        device.take_fault(Submitter::current())
    };
    catch_unwind(|| give(take().unwrap_or_default())).unwrap_or(c"".as_ptr())
}

/// Forgets the failures of all devices.
#[unsafe(no_mangle)]
extern "C" fn hipemu_clear_fault() {
    guard(|| {
        for device in runtime::get().iter().flat_map(|runtime| &runtime.devices) {
            device.forgive();
        }
    });
}

/// Waits until all devices are idle, then schedules adversarially from this seed.
#[unsafe(no_mangle)]
extern "C" fn hipemu_set_seed(seed: u64) {
    guard(|| {
        if runtime::get().is_ok() {
            scheduler::get().set_seed(Some(seed));
        }
    });
}

/// Waits until all devices are idle, then returns to plain scheduling: streams run side by side.
#[unsafe(no_mangle)]
extern "C" fn hipemu_clear_seed() {
    guard(|| {
        if runtime::get().is_ok() {
            scheduler::get().set_seed(None);
        }
    });
}

/// Identifies the order in which commands have run since the seed was set: equal orders give equal
/// numbers.
#[unsafe(no_mangle)]
extern "C" fn hipemu_order() -> u64 {
    guard(|| runtime::get().map_or(0, |_| scheduler::get().order()))
}

/// Sets whether kernels do nothing from now on.
#[unsafe(no_mangle)]
extern "C" fn hipemu_set_noop(noop: c_int) {
    guard(|| {
        if let Ok(runtime) = runtime::get() {
            runtime.noop.store(noop != 0, Ordering::Relaxed);
        }
    });
}

/// Makes functions fail as `HIPEMU_FAIL` does; an empty text ends this. Returns 0, or 1 if the text
/// cannot be parsed.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipemu_fail(failures: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's C string.
        let failures = unsafe { text(failures) }.map_err(|_| "not a C string".to_owned());
        match failures.and_then(Failure::parse) {
            Ok(failures) => {
                calls::inject(failures);
                0
            }
            Err(error) => {
                config::warn(&error);
                1
            }
        }
    })
}
