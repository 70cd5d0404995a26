//! Directories that could not be opened because descriptors, memory or space were short. They are
//! opened when they are next needed.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use crate::trust::DirectoryError;

type Open<T> = Box<dyn Fn() -> Result<T, DirectoryError> + Send + Sync>;

/// A value that is opened at once if possible. Otherwise opening is tried again as long as the
/// cause of the failure is temporary.
pub(crate) struct Late<T> {
    value: OnceLock<T>,
    /// The error of the first attempt.
    error: Option<DirectoryError>,
    open: Open<T>,
    /// Whether the last attempt failed from a temporary cause.
    is_open_to_retry: AtomicBool,
    /// Held by the one that tries.
    attempt: Mutex<()>,
}

impl<T> Late<T> {
    /// Tries at once; `report` gets the error if that fails.
    pub(crate) fn new(
        open: impl Fn() -> Result<T, DirectoryError> + Send + Sync + 'static,
        report: impl Fn(&DirectoryError),
    ) -> Self {
        let (value, error) = match open() {
            Ok(value) => (OnceLock::from(value), None),
            Err(error) => {
                report(&error);
                (OnceLock::new(), Some(error))
            }
        };
        Self {
            value,
            is_open_to_retry: AtomicBool::new(error.as_ref().is_some_and(DirectoryError::is_passing)),
            error,
            open: Box::new(open),
            attempt: Mutex::new(()),
        }
    }

    /// What was opened so far. Makes no system call.
    pub(crate) fn opened(&self) -> Option<&T> {
        self.value.get()
    }

    /// What was opened, now if need be. Never waits for another thread's attempt.
    pub(crate) fn get(&self) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        if !self.is_open_to_retry.load(Ordering::Acquire) {
            return None;
        }
        let _attempt = match self.attempt.try_lock() {
            Ok(attempt) => attempt,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.value.get(),
        };
        if self.value.get().is_none() && self.is_open_to_retry.load(Ordering::Acquire) {
            match (self.open)() {
                Ok(value) => drop(self.value.set(value)),
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    self.is_open_to_retry.store(false, Ordering::Release);
                    tracing::warn!(error = &error as &dyn Error, "a cache directory is not used");
                }
            }
        }
        self.value.get()
    }

    /// Why it is not open.
    pub(crate) fn error(&self) -> Option<&DirectoryError> {
        if self.value.get().is_some() {
            return None;
        }
        self.error.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    /// Fails with each of the causes in turn, then succeeds; and the number of attempts.
    fn after(causes: &'static [Errno]) -> (Late<u8>, Arc<AtomicUsize>) {
        let attempts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&attempts);
        let open = move || match causes.get(count.fetch_add(1, Ordering::Relaxed)) {
            Some(&cause) => Err(DirectoryError::Examine {
                path: "directory".into(),
                source: cause.into(),
            }),
            None => Ok(7),
        };
        (Late::new(open, |_| {}), attempts)
    }

    #[test]
    fn causes_that_pass_are_tried_again_when_needed() {
        let (late, attempts) = after(&[Errno::MFILE, Errno::NFILE, Errno::NOMEM]);
        assert!(late.error().is_some());
        assert_eq!((late.get(), late.get()), (None, None));
        assert_eq!(late.opened(), None);
        assert_eq!((late.get(), late.get(), late.opened()), (Some(&7), Some(&7), Some(&7)));
        assert!(late.error().is_none());
        assert_eq!(attempts.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn causes_that_last_are_not() {
        for causes in [&[Errno::ACCESS][..], &[Errno::MFILE, Errno::ACCESS]] {
            let (late, attempts) = after(causes);
            assert_eq!((late.get(), late.get(), late.get()), (None, None, None));
            assert!(late.error().is_some());
            assert_eq!(attempts.load(Ordering::Relaxed), causes.len());
        }
    }
}
