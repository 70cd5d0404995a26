//! Waits for a semaphore, asleep.
//!
//! IREE's own wait spins at its end, until the thread that woke it has left a callback. On few
//! cores the thread that wakes up often takes the other one's core: then it spins until the
//! scheduler lets the other one go on. A convolution of 1.6 ms took 2.5 ms on two cores. Here the
//! callback touches nothing of the waiting thread's after what ends the wait.
//!
//! A futex, not the standard library's parking, which leaves a destructor on the thread that waits:
//! the host could not unload the plugin.

use std::{
    cell::UnsafeCell,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use rustix::thread::futex;

use crate::result::{Status, check};
use iree_sys::runtime as sys;

/// The value of a futex that nobody waits for any more.
const DONE: u32 = 1;

/// What the callback finds, on the stack of the thread that waits.
struct Waiter {
    timepoint: UnsafeCell<sys::iree_async_semaphore_timepoint_t>,
    /// The status, which is this structure's own.
    status: AtomicPtr<sys::iree_status_handle_t>,
    /// [`DONE`] when the callback is done with this structure.
    done: AtomicU32,
}

/// Waits until the semaphore has reached a value.
///
/// # Errors
///
/// What the semaphore failed with.
///
/// # Safety
///
/// The semaphore is alive, and stays so until this returns.
pub(super) unsafe fn wait(semaphore: *mut sys::iree_hal_semaphore_t, value: u64) -> Result<(), Status> {
    let waiter = Waiter {
        timepoint: UnsafeCell::default(),
        status: AtomicPtr::new(ptr::null_mut()),
        done: AtomicU32::new(0),
    };
    let timepoint = waiter.timepoint.get();
    // SAFETY: nobody else has the timepoint yet. It stays where it is until the callback has been
    // called: this function does not return before, unless IREE has not taken it. A HAL semaphore
    // begins with IREE's asynchronous one.
    unsafe {
        (*timepoint).callback = Some(reached);
        (*timepoint).user_data = (&raw const waiter).cast_mut().cast();
        check(sys::iree_async_semaphore_acquire_timepoint(
            semaphore.cast(),
            value,
            timepoint,
        ))?;
    }
    while waiter.done.load(Ordering::Acquire) != DONE {
        // Ends when woken, by a signal, or at once if the value has changed: in each case the value
        // says what to do.
        let _ = futex::wait(&waiter.done, futex::Flags::PRIVATE, 0, None);
    }
    // SAFETY: the callback got the status to keep.
    unsafe { check(waiter.status.load(Ordering::Relaxed)) }
}

/// IREE's callback: the value is reached, or the semaphore has failed.
unsafe extern "C" fn reached(
    waiter: *mut c_void,
    _: *mut sys::iree_async_semaphore_timepoint_t,
    status: sys::iree_status_t,
) {
    // SAFETY: `wait` gave its waiter, which it keeps until `done` is set: the last access.
    let address = unsafe {
        let waiter = &*waiter.cast::<Waiter>();
        waiter.status.store(status, Ordering::Relaxed);
        let address = waiter.done.as_ptr();
        waiter.done.store(DONE, Ordering::Release);
        address
    };
    // SAFETY: the kernel takes the address as the name of a queue and reads nothing there. Whoever
    // else waits there by now looks at its own value again, as after any other waking.
    unsafe {
        libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}
