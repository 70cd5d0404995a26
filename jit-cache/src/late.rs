//! Lazy opening of directories: if descriptors, memory or space were short, a directory is opened
//! when it is next needed.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use crate::trust::DirectoryError;

type Open<T> = Box<dyn Fn() -> Result<T, DirectoryError> + Send + Sync>;

/// A value that is opened at once if possible, or else later, as long as the cause of the failure
/// is temporary.
pub(crate) struct Late<T> {
    value: OnceLock<T>,
    /// The error of the first attempt.
    error: Option<DirectoryError>,
    open: Open<T>,
    /// Whether the last attempt failed from a temporary cause.
    is_open_to_retry: AtomicBool,
    /// Held by the thread that tries to open the value.
    attempt: Mutex<()>,
}

impl<T> Late<T> {
    /// Tries to open the value at once, and passes the error to `report` if that fails.
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

    /// Returns the value if it is open. Makes no system call.
    pub(crate) fn opened(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, and opens it first if necessary. Never waits for another thread's
    /// attempt.
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

    /// Returns the error of the first attempt if the value is not open.
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

    /// Returns a value whose opening fails with each of the causes in turn and then succeeds, and
    /// its number of attempts.
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
