//! Recently logged messages, so that a host that repeats a request in a loop gets one message.

use crate::error::Error;
use crate::fork::Process;
use crate::prepared;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError, TryLockError};
use tracing::Level;

/// Number of messages that are remembered: the most recent ones.
const CAPACITY: usize = 1024;

/// Hashes of recently logged messages, in a ring buffer of fixed size.
pub(crate) struct Told(Mutex<Recent>);

struct Recent {
    /// A hash of 0 marks an empty slot.
    hashes: [u64; CAPACITY],
    /// Index of the slot that is written next.
    next: usize,
}

impl Told {
    pub(crate) const fn new() -> Self {
        Told(Mutex::new(Recent {
            hashes: [0; CAPACITY],
            next: 0,
        }))
    }

    /// Records a message as logged. Returns true if it was not among the most recent ones.
    pub(crate) fn is_news(&self, what: &[u8]) -> bool {
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(what).as_bytes();
        let hash = u64::from_le_bytes([a, b, c, d, e, f, g, h]).max(1);
        let mut recent = match self.0.try_lock() {
            Ok(recent) => recent,
            Err(TryLockError::Poisoned(recent)) => recent.into_inner(),
            // After a fork, the thread that holds the lock may not exist in this process.
            Err(TryLockError::WouldBlock) if Process::current().forks() > 0 => return true,
            Err(TryLockError::WouldBlock) => self.0.lock().unwrap_or_else(PoisonError::into_inner),
        };
        if recent.hashes.contains(&hash) {
            return false;
        }
        let next = recent.next;
        if let Some(place) = recent.hashes.get_mut(next) {
            *place = hash;
        }
        recent.next = next.wrapping_add(1) % CAPACITY;
        true
    }
}

/// Logs why a graph is declined. hipDNN tells its user only that no engine is left, so each
/// declined graph is logged once at a level that is on by default. Graphs that differ only in
/// labels and ids count as the same.
pub(crate) fn declined(bytes: &[u8], reason: &Error) {
    static DECLINED: Told = Told::new();
    let reason = reason.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let is_news = tracing::enabled!(Level::WARN) && {
        // The reason may be a panic, which would come again.
        let canonical = catch_unwind(|| prepared::decode(bytes).ok()?.graph.canonical_bytes().ok());
        DECLINED.is_news(canonical.ok().flatten().as_deref().unwrap_or(bytes))
    };
    if is_news {
        tracing::warn!("declined: {reason}");
    } else {
        tracing::info!("declined: {reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_no_news_until_much_else_was_told() {
        let told = Told::new();
        let text = |number: usize| format!("message {number}").into_bytes();
        for number in 0..CAPACITY {
            assert!(told.is_news(&text(number)));
        }
        for number in 0..CAPACITY {
            assert!(!told.is_news(&text(number)));
        }
        assert!(told.is_news(&text(CAPACITY)));
        // The new message has replaced the oldest one.
        assert!(!told.is_news(&text(1)) && told.is_news(&text(0)));
    }
}
