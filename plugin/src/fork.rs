//! What a process may use after a `fork`.
//!
//! A child has the memory of its parent, and of its threads the one that forked. What the others
//! were doing is never finished: pools have no workers, and locks that they held stay locked. So
//! nothing that was made before the fork is used after it: functions that are given such a handle
//! or context fail at once, and destroying one leaves it as it is. New handles work, on a separate
//! state. A GPU that the parent has used cannot be used by a child: drivers do not take part in
//! forks.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How many forks are between this process and the one that loaded the library.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// The drivers of GPUs that this process has set up, or is setting up.
static GPUS: AtomicU32 = AtomicU32::new(0);
/// Whether a process had set up a driver of GPUs before it forked this one.
static HAD_GPUS: AtomicBool = AtomicBool::new(false);

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// The process that runs this code.
    pub(crate) fn current() -> Self {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// How many forks are before it.
    pub(crate) fn forks(self) -> u32 {
        self.0
    }

    /// Checks that it is the [current](Self::current) process.
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

/// Something that can only be used in the process that made it.
pub(crate) trait Made {
    /// The process.
    fn made_in(&self) -> Process;
}

/// Notes forks from now on.
///
/// # Errors
///
/// If there is no memory.
pub(crate) fn watch() -> Result<(), Error> {
    if IS_WATCHED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: the function does nothing but store numbers. It is forgotten when the library is
    // closed.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        _ => {
            IS_WATCHED.store(false, Ordering::Release);
            Err(Error::Internal("forks cannot be noted: there is no memory".to_owned()))
        }
    }
}

/// Sets up a driver of GPUs, and notes that this process uses them unless there are none.
///
/// # Errors
///
/// [`Error::Forked`] if a process before this one has set one up; else what the function says.
pub(crate) fn use_gpus<T>(set_up: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    if HAD_GPUS.load(Ordering::Relaxed) {
        return Err(Error::Forked("driver of the GPUs"));
    }
    // Before the driver is set up: if another thread forks meanwhile, the child has half of it.
    GPUS.fetch_add(1, Ordering::Relaxed);
    set_up().inspect_err(|error| {
        if matches!(error, Error::NoDevice(_)) {
            GPUS.fetch_sub(1, Ordering::Relaxed);
        }
    })
}

/// Runs in a child, on its only thread.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    HAD_GPUS.fetch_or(GPUS.load(Ordering::Relaxed) > 0, Ordering::Relaxed);
}
