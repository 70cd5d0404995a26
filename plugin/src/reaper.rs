//! Code that nobody needs any more, dropped where nobody waits for it: unloading may wait for a GPU, and an execution must not.

use crate::apart::{self, Thread};
use crate::context::Code;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So much code is worth a thread.
const BATCH: usize = 32;

/// Drops code on a thread of its own.
#[derive(Default)]
pub(crate) struct Reaper {
    pending: Arc<Pending>,
    /// The last thread, which may have ended.
    thread: Mutex<Option<Thread>>,
}

#[derive(Default)]
struct Pending {
    codes: Mutex<Vec<Code>>,
    is_running: AtomicBool,
}

impl Reaper {
    /// Takes code if nobody else has it.
    pub(crate) fn take(&self, code: Arc<Code>) {
        let Some(code) = Arc::into_inner(code) else { return };
        let count = {
            let mut codes = lock(&self.pending.codes);
            codes.push(code);
            codes.len()
        };
        if count < BATCH || self.pending.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let pending = Arc::clone(&self.pending);
        let started = apart::start(move || {
            let codes = std::mem::take(&mut *lock(&pending.codes));
            drop(codes);
            pending.is_running.store(false, Ordering::Release);
        });
        match started {
            // The one before has ended: waiting for it is short.
            Ok(thread) => drop(lock(&self.thread).replace(thread)),
            // It is tried again with the next.
            Err(_) => self.pending.is_running.store(false, Ordering::Release),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::code_of;
    use crate::device::{Buffers, Executable, ExecuteError, Stream};
    use std::thread::ThreadId;

    /// Notes the thread that it is dropped on.
    struct Noted(Arc<Mutex<Vec<ThreadId>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            lock(&self.0).push(std::thread::current().id());
        }
    }

    impl Executable for Noted {
        fn workspace_bytes(&self) -> u64 {
            0
        }

        unsafe fn execute(&self, _: Stream, _: &Buffers<'_>) -> Result<(), ExecuteError> {
            Ok(())
        }
    }

    #[test]
    fn code_is_dropped_elsewhere_and_in_time() {
        let (reaper, dropped) = (Reaper::default(), Arc::default());
        let code = || code_of(Arc::new(Noted(Arc::clone(&dropped))));
        let shared = code();
        reaper.take(Arc::clone(&shared));
        for _ in 0..BATCH {
            reaper.take(code());
        }
        // Waits for the thread.
        drop(lock(&reaper.thread).take());
        let here = std::thread::current().id();
        assert_eq!(lock(&dropped).len(), BATCH, "what others have is theirs");
        assert!(lock(&dropped).iter().all(|&thread| thread != here));
        // Few wait for more, or for the end.
        reaper.take(shared);
        assert_eq!(lock(&dropped).len(), BATCH);
        drop(reaper);
        assert_eq!(lock(&dropped).len(), BATCH + 1);
    }
}
