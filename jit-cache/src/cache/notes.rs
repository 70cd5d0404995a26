//! Notes about keys, which callers store beside the entries.

use super::Cache;
use crate::disk::Locking;
use crate::key::Key;
use crate::lock::Lock;

/// The error when another process holds the lock of the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another process is at it")]
pub struct Busy;

impl Cache {
    /// Returns the note about `key`, from this user's directory or else from the first read-only
    /// directory that has one.
    ///
    /// Reads files each time.
    pub fn note(&self, key: &Key) -> Option<Vec<u8>> {
        let own = self.disk().and_then(|disk| disk.note(key, &self.counters));
        own.or_else(|| self.system.note(key))
    }

    /// Stores a note about `key` of at most [`MAX_NOTE`](crate::MAX_NOTE) bytes, which replaces the
    /// previous one, and returns whether the next process will find it.
    ///
    /// Nothing is kept in memory.
    pub fn keep_note(&self, key: &Key, note: &[u8]) -> bool {
        self.disk()
            .is_some_and(|disk| disk.keep_note(key, note, &self.counters))
    }

    /// Acquires the exclusive right among all processes to create the note about `key`, until the
    /// lock is dropped.
    ///
    /// Never waits. Returns `Ok(None)` if locks are unavailable.
    ///
    /// # Errors
    ///
    /// [`Busy`] if another process holds the lock.
    pub fn lock_note(&self, key: &Key) -> Result<Option<Lock>, Busy> {
        match self.disk().map(|disk| disk.lock(key, &self.counters)) {
            Some(Locking::Held(lock)) => Ok(Some(lock)),
            Some(Locking::Busy) => Err(Busy),
            Some(Locking::Unavailable) | None => Ok(None),
        }
    }
}
