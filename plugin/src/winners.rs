//! The measured choices that this process has looked up.

use rotini_cache::Key;
use rotini_emit::Choices;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most graphs whose choices are kept in memory. Beyond, all are dropped.
const MOST: usize = 4096;

/// Choices by the keys of [records](crate::tuned::Record).
#[derive(Default)]
pub(crate) struct Winners(Mutex<HashMap<Key, Choices>>);

impl Winners {
    pub(crate) fn get(&self, key: &Key) -> Option<Choices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(crate) fn insert(&self, key: Key, choices: Choices) {
        let mut winners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if winners.len() >= MOST {
            winners.clear();
        }
        winners.insert(key, choices);
    }
}
