//! A wait for a semaphore that sleeps and does not spin.
//!
//! IREE's own wait ends with a spin until the waking thread has returned from its callback. On few
//! cores the woken thread often preempts the waking one, and then spins until the scheduler lets
//! the waking thread go on: a convolution of 1.6 ms took 2.5 ms on two cores. Here the callback
//! touches no memory of the waiting thread after the store that ends the wait.
//!
//! The wait uses a futex, not the standard library's parking, which registers a thread-local
//! destructor on the waiting thread: the host could not unload the plugin.

use std::{
    cell::UnsafeCell,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use rustix::thread::futex;

use crate::result::{Status, check};
use iree_sys::runtime as sys;

/// The value of the futex when the wait is over.
const DONE: u32 = 1;

/// The data of the callback, on the stack of the waiting thread.
struct Waiter {
    timepoint: UnsafeCell<sys::iree_async_semaphore_timepoint_t>,
    /// The status that the callback received, owned by this structure.
    status: AtomicPtr<sys::iree_status_handle_t>,
    /// [`DONE`] once the callback no longer uses this structure.
    done: AtomicU32,
}

/// Waits until the semaphore has reached a value.
///
/// # Errors
///
/// The failure of the semaphore.
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
    // SAFETY: no other code has the timepoint yet. It stays at its address until the callback has
    // been called: this function does not return before, unless IREE refused the timepoint. A HAL
    // semaphore begins with IREE's asynchronous semaphore, so the cast is valid.
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
        // The call returns when woken, on a signal, or at once if the value has changed: in each
        // case the loop checks the value again.
        let _ = futex::wait(&waiter.done, futex::Flags::PRIVATE, 0, None);
    }
    // SAFETY: the callback received the status as its own, and it is consumed here only.
    unsafe { check(waiter.status.load(Ordering::Relaxed)) }
}

/// IREE's callback, called when the semaphore has reached the value or has failed.
unsafe extern "C" fn reached(
    waiter: *mut c_void,
    _: *mut sys::iree_async_semaphore_timepoint_t,
    status: sys::iree_status_t,
) {
    // SAFETY: `wait` passed its waiter, which stays alive until `done` is set; setting `done` is
    // the last access.
    let address = unsafe {
        let waiter = &*waiter.cast::<Waiter>();
        waiter.status.store(status, Ordering::Relaxed);
        let address = waiter.done.as_ptr();
        waiter.done.store(DONE, Ordering::Release);
        address
    };
    // SAFETY: the kernel uses the address as the name of a queue and reads no memory there. Another
    // thread that waits on the same address by now checks its own value again, as after any
    // spurious wake-up.
    unsafe {
        libc::syscall(libc::SYS_futex, address, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
}
