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
