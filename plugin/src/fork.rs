//! What a process may use after a `fork`.
//!
//! A child has the memory of its parent, and of its threads the one that forked. What the others were doing is never finished: pools have
//! no workers, and locks that they held stay locked. So nothing that was made before the fork is used after it: functions that are given
//! such a handle or context fail at once, and destroying one leaves it as it is. New handles work, on a state of their own. A GPU that
//! the parent has used cannot be used by a child: drivers do not take part in forks.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How many forks are between this process and the one that loaded the library.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Whether this process has set up a driver of GPUs.
static HAS_GPUS: AtomicBool = AtomicBool::new(false);
/// Whether a process before it has.
static HAD_GPUS: AtomicBool = AtomicBool::new(false);

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// The one that runs.
    pub(crate) fn current() -> Self {
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// How many forks are before it.
    pub(crate) fn forks(self) -> u32 {
        self.0
    }

    /// Checks that it is the one that runs.
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

/// Something that is of use in the process alone that made it.
pub(crate) trait Made {
    /// The process.
    fn made_in(&self) -> Process;
}

/// Notes forks from now on.
///
/// # Errors
///
/// Without memory.
pub(crate) fn watch() -> Result<(), Error> {
    if IS_WATCHED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    // SAFETY: the function does nothing but store numbers. It is forgotten when the library is closed.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        _ => {
            IS_WATCHED.store(false, Ordering::Release);
            Err(Error::Internal("forks cannot be noted: there is no memory".to_owned()))
        }
    }
}

/// Notes that a driver of GPUs is being set up.
///
/// # Errors
///
/// [`Error::Forked`] if a process before this one has done so.
pub(crate) fn use_gpus() -> Result<(), Error> {
    if HAD_GPUS.load(Ordering::Relaxed) {
        return Err(Error::Forked("driver of the GPUs"));
    }
    HAS_GPUS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Runs in a child, on its only thread.
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    HAD_GPUS.fetch_or(HAS_GPUS.load(Ordering::Relaxed), Ordering::Relaxed);
}
