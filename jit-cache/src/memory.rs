//! The memory tier: entries by key, bounded by their weight in bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use dashmap::DashMap;

use crate::entry::Entry;
use crate::key::Key;

/// Seconds after which a hit here is worth telling other processes, by way of the file's time.
const NEWS: u64 = 60 * 60;

/// A hit takes the read lock of one shard, a tick of the clock and a look at the time; nothing waits for an eviction.
pub(crate) struct Memory {
    slots: DashMap<Key, Slot>,
    opened: Instant,
    limit: u64,
    used: AtomicU64,
    clock: AtomicU64,
    evicting: Mutex<()>,
}

struct Slot {
    entry: Arc<Entry>,
    last_used: AtomicU64,
    /// When its file's time was last set, in seconds since `opened`.
    told: AtomicU64,
}

/// An entry that was found.
pub(crate) struct Hit {
    pub(crate) entry: Arc<Entry>,
    /// Whether nobody told other processes for a while that it is in use.
    pub(crate) news: bool,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            slots: DashMap::new(),
            opened: Instant::now(),
            limit,
            used: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            evicting: Mutex::new(()),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Hit> {
        let slot = self.slots.get(key)?;
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

    /// Keeps `entry`, if it fits at all, and returns how many others had to leave.
    pub(crate) fn insert(&self, key: Key, entry: Arc<Entry>) -> u64 {
        let weight = entry.weight();
        if weight > self.limit {
            return 0;
        }
        // Added before the entry is there and subtracted after one is gone: the sum is never below what is held, and never
        // wraps around.
        self.used.fetch_add(weight, Ordering::Relaxed);
        let slot = Slot {
            entry,
            last_used: AtomicU64::new(self.tick()),
            told: AtomicU64::new(self.opened.elapsed().as_secs()),
        };
        if let Some(old) = self.slots.insert(key, slot) {
            self.used.fetch_sub(old.entry.weight(), Ordering::Relaxed);
        }
        self.evict()
    }

    pub(crate) fn remove(&self, key: &Key) {
        if let Some((_, old)) = self.slots.remove(key) {
            self.used.fetch_sub(old.entry.weight(), Ordering::Relaxed);
        }
    }

    /// The number of entries held and their weight in bytes.
    pub(crate) fn usage(&self) -> (u64, u64) {
        (self.slots.len() as u64, self.used.load(Ordering::Relaxed))
    }

    fn evict(&self) -> u64 {
        if self.used.load(Ordering::Relaxed) <= self.limit {
            return 0;
        }
        let _one_at_a_time = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut oldest_first: Vec<_> = self
            .slots
            .iter()
            .map(|slot| (slot.last_used.load(Ordering::Relaxed), *slot.key()))
            .collect();
        oldest_first.sort_unstable();
        // Some room is made at once, so that a full tier is not searched for every insertion.
        let goal = self.limit - self.limit / 8;
        let mut evicted = 0;
        for (last_used, key) in oldest_first {
            if self.used.load(Ordering::Relaxed) <= goal {
                break;
            }
            // One that was used meanwhile stays.
            let unused = |_: &Key, slot: &Slot| slot.last_used.load(Ordering::Relaxed) == last_used;
            if let Some((_, old)) = self.slots.remove_if(&key, unused) {
                self.used.fetch_sub(old.entry.weight(), Ordering::Relaxed);
                evicted += 1;
            }
        }
        evicted
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
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
        // One too many: goes down to 7/8, which is seven entries of nine.
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
