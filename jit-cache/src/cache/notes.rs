//! Notes about keys, for whoever keeps some.

use super::Cache;
use crate::disk::Locking;
use crate::key::Key;
use crate::lock::Lock;

/// Another process is making the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another process is at it")]
pub struct Busy;

impl Cache {
    /// The note about `key`: of this user's directory, else of the first read-only directory that
    /// has one. Reads files each time.
    pub fn note(&self, key: &Key) -> Option<Vec<u8>> {
        let own = self.disk().and_then(|disk| disk.note(key, &self.counters));
        own.or_else(|| self.system.note(key))
    }

    /// Keeps a note about `key` of at most [`MAX_NOTE`](crate::MAX_NOTE) bytes, in place of the one
    /// before; whether the next process will find it. Nothing is kept in memory.
    pub fn keep_note(&self, key: &Key, note: &[u8]) -> bool {
        self.disk()
            .is_some_and(|disk| disk.keep_note(key, note, &self.counters))
    }

    /// The right to make the note about `key`, among all processes, until it is dropped. `Ok(None)`
    /// where there are no locks. Never waits.
    ///
    /// # Errors
    ///
    /// [`Busy`] if another process has it.
    pub fn lock_note(&self, key: &Key) -> Result<Option<Lock>, Busy> {
        match self.disk().map(|disk| disk.lock(key, &self.counters)) {
            Some(Locking::Held(lock)) => Ok(Some(lock)),
            Some(Locking::Busy) => Err(Busy),
            Some(Locking::Unavailable) | None => Ok(None),
        }
    }
}
