//! The memory tier: entries by key, bounded by their weight in bytes.
//!
//! The locks are the standard library's, as everywhere in this crate, because they leave nothing
//! behind on a thread. Other locks register a thread-local destructor, which keeps the library from
//! being unloaded while the host's thread lives.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use crate::entry::Entry;
use crate::key::Key;

/// Seconds after which a hit in memory updates the time of the entry's file, so that other
/// processes see that it is in use.
const NEWS: u64 = 60 * 60;

/// The memory tier. A hit takes a read lock, an increment of the logical clock and a reading of the
/// time.
pub(crate) struct Memory {
    held: RwLock<Held>,
    opened: Instant,
    limit: u64,
    clock: AtomicU64,
}

#[derive(Default)]
struct Held {
    slots: HashMap<Key, Slot>,
    /// Total weight of the entries in bytes.
    weight: u64,
}

struct Slot {
    entry: Arc<Entry>,
    last_used: AtomicU64,
    /// Time of the last update of the entry's file time, in seconds since `opened`.
    told: AtomicU64,
}

/// An entry that was found.
pub(crate) struct Hit {
    pub(crate) entry: Arc<Entry>,
    /// Whether the entry's file time, which shows other processes that the entry is in use, is due
    /// for an update.
    pub(crate) news: bool,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            held: RwLock::default(),
            opened: Instant::now(),
            limit,
            clock: AtomicU64::new(0),
        }
    }

    /// Returns whether there is an entry, without counting as a use of it.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.read().slots.contains_key(key)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Hit> {
        let held = self.read();
        let slot = held.slots.get(key)?;
        slot.last_used.store(self.tick(), Ordering::Relaxed);
        let now = self.opened.elapsed().as_secs();
        let told = slot.told.load(Ordering::Relaxed);
        let news = now.saturating_sub(told) >= NEWS
            && slot
                .told
                .compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        Some(Hit {
            entry: Arc::clone(&slot.entry),
            news,
        })
    }

    /// Keeps `entry`, if it fits at all, and returns the number of entries that were evicted for
    /// it.
    pub(crate) fn insert(&self, key: Key, entry: Arc<Entry>) -> u64 {
        let weight = entry.weight();
        if weight > self.limit {
            return 0;
        }
        let slot = Slot {
            entry,
            last_used: AtomicU64::new(self.tick()),
            told: AtomicU64::new(self.opened.elapsed().as_secs()),
        };
        let mut held = self.write();
        let replaced = held.remove(&key);
        held.weight = held.weight.saturating_add(weight);
        held.slots.insert(key, slot);
        let evicted = held.evict(self.limit);
        // Evicted entries are freed after the lock is released, so that no thread waits for that.
        drop(held);
        drop(replaced);
        evicted.len() as u64
    }

    pub(crate) fn remove(&self, key: &Key) {
        let removed = self.write().remove(key);
        drop(removed);
    }

    /// Returns the number of entries held and their weight in bytes.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let held = self.read();
        (held.slots.len() as u64, held.weight)
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

impl Held {
    fn remove(&mut self, key: &Key) -> Option<Slot> {
        let slot = self.slots.remove(key)?;
        self.weight = self.weight.saturating_sub(slot.entry.weight());
        Some(slot)
    }

    /// Removes the least recently used entries if their total weight exceeds `limit`.
    fn evict(&mut self, limit: u64) -> Vec<Slot> {
        if self.weight <= limit {
            return Vec::new();
        }
        let mut oldest_first: Vec<_> = self
            .slots
            .iter()
            .map(|(key, slot)| (slot.last_used.load(Ordering::Relaxed), *key))
            .collect();
        oldest_first.sort_unstable();
        // The most recently used entry is the one that was just inserted; it stays, and it fits.
        oldest_first.pop();
        // An eighth is freed at once, so that a full tier is not searched for every insertion.
        let goal = limit - limit / 8;
        let mut evicted = Vec::new();
        for (_, key) in oldest_first {
            if self.weight <= goal {
                break;
            }
            evicted.extend(self.remove(&key));
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entry, key};

    fn weight(payload: usize) -> u64 {
        entry(0, payload).weight()
    }

    #[test]
    fn least_recently_used_leaves_first() {
        let memory = Memory::new(8 * weight(100));
        for number in 0..8 {
            assert_eq!(memory.insert(key(number), entry(number, 100)), 0);
        }
        memory.get(&key(0)).expect("just inserted");
        // This is not a use.
        assert!(memory.holds(&key(1)) && !memory.holds(&key(8)));
        // One too many: evicts down to 7/8, which is seven entries of nine.
        assert_eq!(memory.insert(key(8), entry(8, 100)), 2);
        for gone in [1, 2] {
            assert!(memory.get(&key(gone)).is_none(), "{gone}");
        }
        for kept in [0, 3, 4, 5, 6, 7, 8] {
            assert!(memory.get(&key(kept)).is_some(), "{kept}");
        }
        assert_eq!(memory.usage(), (7, 7 * weight(100)));
    }

    #[test]
    fn larger_than_the_tier_is_not_kept_and_evicts_nobody() {
        let memory = Memory::new(weight(100));
        memory.insert(key(0), entry(0, 100));
        assert_eq!(memory.insert(key(1), entry(1, 101)), 0);
        assert!(memory.get(&key(0)).is_some());
        assert!(memory.get(&key(1)).is_none());
    }

    #[test]
    fn as_large_as_the_tier_is_kept() {
        let memory = Memory::new(weight(1000));
        memory.insert(key(0), entry(0, 100));
        assert_eq!(memory.insert(key(1), entry(1, 1000)), 1);
        assert!(memory.get(&key(1)).is_some());
    }

    #[test]
    fn replacing_and_removing_keep_the_sum_right() {
        let memory = Memory::new(1 << 20);
        memory.insert(key(0), entry(0, 1000));
        memory.insert(key(0), entry(0, 10));
        assert_eq!(memory.usage(), (1, weight(10)));
        memory.remove(&key(0));
        memory.remove(&key(0));
        assert_eq!(memory.usage(), (0, 0));
    }

    #[test]
    fn stays_bounded_under_threads() {
        let limit = 50 * weight(100);
        let memory = Memory::new(limit);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let memory = &memory;
                scope.spawn(move || {
                    for number in 0..500 {
                        memory.insert(key(thread * 1000 + number), entry(number, 100));
                        memory.get(&key(number));
                    }
                });
            }
        });
        let (entries, bytes) = memory.usage();
        assert!(bytes <= limit, "{bytes} of {limit}");
        assert_eq!(bytes, entries * weight(100));
    }
}
