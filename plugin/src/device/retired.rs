//! Code whose last context is gone. It stays loaded for a while, because it may be wanted again,
//! and on a GPU it may still be running.

use rotini_cache::Key;
use std::collections::VecDeque;

/// Maximum bytes of the programs that stay loaded on a device after their last context: code,
/// constants, and the memory of captured executions.
const MAX_BYTES: usize = 256 << 20;

/// Programs in the order in which they were retired.
#[derive(Debug)]
pub(super) struct Retired<T> {
    entries: VecDeque<Entry<T>>,
    /// Maximum number of programs.
    limit: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: Key,
    bytes: usize,
    code: T,
}

impl<T> Retired<T> {
    pub(super) fn new(limit: usize) -> Self {
        Retired {
            entries: VecDeque::new(),
            limit,
            bytes: 0,
        }
    }

    /// Adds a program whose last context is gone.
    pub(super) fn push(&mut self, key: Key, bytes: usize, code: T) {
        self.entries.push_back(Entry { key, bytes, code });
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns true if there are too many programs, or too many bytes of them.
    pub(super) fn is_excess(&self) -> bool {
        self.entries.len() > self.limit || self.bytes > MAX_BYTES
    }

    /// If there are too many programs, takes the oldest of them until half the limits is left. The
    /// caller unloads them once the device has finished with them. Many are taken at a time,
    /// because on a GPU the cost is in waiting.
    pub(super) fn excess(&mut self) -> Vec<(Key, usize, T)> {
        let mut batch = Vec::new();
        if self.is_excess() {
            while self.entries.len() > self.limit / 2 || self.bytes > MAX_BYTES / 2 {
                let Some(entry) = self.entries.pop_front() else { break };
                self.bytes = self.bytes.saturating_sub(entry.bytes);
                batch.push((entry.key, entry.bytes, entry.code));
            }
        }
        batch
    }

    /// Puts back programs that cannot be unloaded yet.
    pub(super) fn put_back(&mut self, batch: Vec<(Key, usize, T)>) {
        for (key, bytes, code) in batch.into_iter().rev() {
            self.bytes = self.bytes.saturating_add(bytes);
            self.entries.push_front(Entry { key, bytes, code });
        }
    }

    /// Takes a program out, to use it again.
    pub(super) fn take(&mut self, key: &Key) -> Option<T> {
        let index = self.entries.iter().position(|entry| entry.key == *key)?;
        let entry = self.entries.remove(index)?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Some(entry.code)
    }

    /// Takes all programs.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.bytes = 0;
        self.entries.drain(..).map(|entry| entry.code).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_cache::{CompiledFor, KeyInputs};

    const LIMIT: usize = 64;

    fn key(number: usize) -> Key {
        Key::of(&KeyInputs {
            graph: &number.to_le_bytes(),
            compiled_for: &CompiledFor::from(String::new()),
            emitter: "",
            flags: &[],
            compiler: "",
        })
    }

    fn push(retired: &mut Retired<usize>, key: Key, bytes: usize, code: usize) -> Vec<(Key, usize, usize)> {
        retired.push(key, bytes, code);
        retired.excess()
    }

    #[test]
    fn the_older_half_goes_at_once() {
        let mut retired = Retired::new(LIMIT);
        for number in 0..LIMIT {
            assert!(push(&mut retired, key(number), 1, number).is_empty());
        }
        assert_eq!(retired.take(&key(5)), Some(5));
        assert_eq!(retired.take(&key(5)), None);
        assert!(push(&mut retired, key(5), 1, 5).is_empty());
        let batch = push(&mut retired, key(LIMIT), 1, LIMIT);
        let numbers: Vec<_> = batch.iter().map(|(_, _, number)| *number).collect();
        let expected: Vec<_> = (0..LIMIT / 2 + 2).filter(|&number| number != 5).collect();
        assert_eq!(numbers, expected);
        // What could not be unloaded comes first the next time.
        retired.put_back(batch);
        let batch = push(&mut retired, key(1000), 1, 1000);
        assert_eq!(batch.first().map(|(_, _, number)| *number), Some(0));
    }

    #[test]
    fn bytes_count_too() {
        let mut retired = Retired::new(LIMIT);
        assert!(push(&mut retired, key(0), MAX_BYTES / 2 + 1, 0).is_empty());
        assert_eq!(push(&mut retired, key(1), MAX_BYTES / 2, 1).len(), 1);
        assert_eq!(retired.drain(), [1]);
        assert_eq!(push(&mut retired, key(2), MAX_BYTES + 1, 2).len(), 1);
    }
}
