//! Counters of what a cache did, for its tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of a cache since it was opened, and its current memory usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries found in memory.
    pub memory_hits: u64,
    /// Entries found on disk, in this user's directory or a read-only one.
    pub disk_hits: u64,
    /// Entries that another process created while this one waited.
    pub other_process: u64,
    /// Entries found under the key of their module.
    pub content_hits: u64,
    /// Entries created.
    pub created: u64,
    /// Creations that returned an error.
    pub failed: u64,
    /// Calls that ended at once because an earlier creation had failed for good.
    pub remembered: u64,
    /// Calls that waited for another thread's creation of the same key.
    pub joined: u64,
    /// Entries on disk that were damaged or not trusted, or that the caller rejected.
    pub bad_entries: u64,
    /// Failed reads, writes and removals in the cache directory.
    pub disk_errors: u64,
    /// Entries that left memory to make room.
    pub memory_evictions: u64,
    /// Entries removed from the cache directory to make room, each counted once however many names
    /// its file has.
    pub disk_evictions: u64,
    /// Entries in memory now.
    pub memory_entries: u64,
    /// The weight of the entries in memory, in bytes.
    pub memory_bytes: u64,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) memory_hits: Counter,
    pub(crate) disk_hits: Counter,
    pub(crate) other_process: Counter,
    pub(crate) content_hits: Counter,
    pub(crate) created: Counter,
    pub(crate) failed: Counter,
    pub(crate) remembered: Counter,
    pub(crate) joined: Counter,
    pub(crate) bad_entries: Counter,
    pub(crate) disk_errors: Counter,
    pub(crate) memory_evictions: Counter,
    pub(crate) disk_evictions: Counter,
}
