//! Rules for the use of the library after a `fork`.
//!
//! A child has its parent's memory, but only the thread that called `fork`. Whatever the parent's
//! other threads were doing is never finished: thread pools have no workers, and locks that were
//! held stay locked. So nothing that was made before the fork is used after it: functions that are
//! given such a handle or context fail at once, and destroying one leaks it. New handles work, on a
//! separate state. A GPU that the parent has used cannot be used by a child, because GPU drivers do
//! not support forking.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of forks between the process that loaded the library and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Whether a fork was begun that is not counted yet. It stays set in a process that forked.
static IS_FORKING: AtomicBool = AtomicBool::new(false);
/// Number of GPU drivers that this process has set up or is setting up.
static GPUS: AtomicU32 = AtomicU32::new(0);
/// Whether an ancestor had set up a GPU driver before it forked.
static HAD_GPUS: AtomicBool = AtomicBool::new(false);

/// The process in which an object was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// Returns the process that runs this code.
    pub(crate) fn current() -> Self {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Returns the number of forks between the process that loaded the library and this one.
    pub(crate) fn forks(self) -> u32 {
        self.0
    }

    /// Checks that this is the [current](Self::current) process.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub(crate) fn check(self, what: &'static str) -> Result<(), Error> {
        if self == Self::current() {
            Ok(())
        } else {
            Err(Error::Forked(what))
        }
    }
}

/// An object that can only be used in the process that made it.
pub(crate) trait Made {
    /// Returns the process that made the object.
    fn made_in(&self) -> Process;
}

/// Registers the handlers that count forks, unless they are registered.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn watch() -> Result<(), Error> {
    if IS_WATCHED.load(Ordering::Acquire) {
        return Ok(());
    }
    // Several threads may register the handlers, which then count a fork once all the same. If one
    // went on before another has registered them, a fork could go unnoticed.
    //
    // SAFETY: the handlers do nothing but update atomics. Their registration is dropped when the
    // library is closed.
    match unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) } {
        0 => {
            IS_WATCHED.store(true, Ordering::Release);
            Ok(())
        }
        _ => Err(Error::Internal("forks cannot be noted: there is no memory".to_owned())),
    }
}

/// Sets up a GPU driver, and records that this process uses GPUs unless none is found.
///
/// # Errors
///
/// [`Error::Forked`] if an ancestor of this process has set one up; otherwise the error of
/// `set_up`.
pub(crate) fn use_gpus<T>(set_up: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if HAD_GPUS.load(Ordering::Relaxed) {
        return Err(Error::Forked("driver of the GPUs"));
    }
    // Counted before the driver is set up: if another thread forks meanwhile, the child has a half
    // initialised driver.
    GPUS.fetch_add(1, Ordering::Relaxed);
    set_up().inspect_err(|error| {
        if matches!(error, Error::NoDevice(_)) {
            GPUS.fetch_sub(1, Ordering::Relaxed);
        }
    })
}

/// Runs in the parent before a fork.
extern "C" fn before() {
    IS_FORKING.store(true, Ordering::Relaxed);
}

/// Counts the fork. Runs in the child, on its only thread.
extern "C" fn in_child() {
    if IS_FORKING.swap(false, Ordering::Relaxed) {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    HAD_GPUS.fetch_or(GPUS.load(Ordering::Relaxed) > 0, Ordering::Relaxed);
}
