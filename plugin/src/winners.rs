//! The measured choices that this process has looked up, and the lock that serializes measurements.

use rotini_cache::Key;
use rotini_emit::Choices;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of graphs whose choices are kept in memory. Beyond it, all are dropped.
const MOST: usize = 4096;

#[derive(Default)]
pub(crate) struct Winners {
    /// The choices, by the keys of their [records](crate::tuned::Record).
    choices: Mutex<HashMap<Key, Choices>>,
    /// Held during a measurement. It is part of a process's own state: a child after a `fork` has a
    /// new one, so a lock that a thread of the parent held does not block the child.
    turn: Mutex<()>,
}

impl Winners {
    /// Waits for a measurement that is under way, and locks out others: two at a time would disturb
    /// each other.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Choices> {
        let choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
        choices.get(key).cloned()
    }

    pub(crate) fn insert(&self, key: Key, choices: Choices) {
        let mut winners = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
        if winners.len() >= MOST {
            winners.clear();
        }
        winners.insert(key, choices);
    }
}
