//! The measured choices that this process has looked up, and whose turn it is to measure.

use rotini_cache::Key;
use rotini_emit::Choices;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most graphs whose choices are kept in memory. Beyond, all are dropped.
const MOST: usize = 4096;

#[derive(Default)]
pub(crate) struct Winners {
    /// Choices by the keys of [records](crate::tuned::Record).
    choices: Mutex<HashMap<Key, Choices>>,
    /// Held during a measurement. It belongs to a process's state: a child after a `fork` has
    /// another one, so a lock that a thread of the parent held does not block it.
    turn: Mutex<()>,
}

impl Winners {
    /// Waits for the measurement that is under way: two would disturb each other.
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
