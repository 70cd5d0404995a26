//! Creations that failed and would fail again. The cache remembers them, so that they are not
//! repeated on every request.
//!
//! The number of remembered failures is bounded, and each expires: after the lifetime that its
//! reporter gave, at most an hour in memory and a day in the directory. So a compiler that was
//! repaired in place, or that did fail because of an exhausted resource, gets another chance.
//!
//! On disk a failure is a small file: a record in postcard, followed by its BLAKE3.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::directory::{Directory, Kind, LoadError, name};
use crate::key::Key;

/// Maximum number of remembered failures, in memory and in a directory each.
pub(crate) const MAX_FAILURES: usize = 1024;
const MEMORY_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Maximum length of a reason in bytes. Longer texts are cut: a reason is meant for a line of a
/// log.
const MAX_REASON: usize = 2048;
const MAX_FILE: u64 = 4096;
const FORMAT: u32 = 2;

/// A creation that failed, and would fail again for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The text of the error, cut after some 2,000 bytes.
    pub reason: String,
    /// Time of the failure.
    pub since: SystemTime,
    /// How long the failure counts from `since` on.
    pub lifetime: Duration,
}

impl Failure {
    /// The longest lifetime of a failure: a day.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns a failure that happened now and counts for `lifetime`, at most for
    /// [`LONGEST`](Self::LONGEST).
    #[must_use]
    pub fn new(mut reason: String, lifetime: Duration) -> Self {
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        Self {
            reason,
            since: SystemTime::now(),
            lifetime: lifetime.min(Self::LONGEST),
        }
    }

    /// Returns how much longer the failure counts.
    fn left(&self) -> Duration {
        self.lifetime.min(Self::LONGEST).saturating_sub(age(self.since))
    }
}

/// The failures that this process remembers.
#[derive(Default)]
pub(crate) struct Failures {
    /// Each failure with the moment at which it expires.
    known: Mutex<HashMap<Key, (Instant, Arc<Failure>)>>,
}

impl Failures {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Failure>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, failure) = known.get(key)?;
        if Instant::now() < *until {
            return Some(Arc::clone(failure));
        }
        known.remove(key);
        None
    }

    pub(crate) fn insert(&self, key: Key, failure: Arc<Failure>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // If the clock cannot represent the expiry, the failure is not remembered.
        let until = now.checked_add(failure.left().min(MEMORY_LIFETIME)).unwrap_or(now);
        known.insert(key, (until, failure));
        while known.len() > MAX_FAILURES {
            let first = known.iter().min_by_key(|(_, (until, _))| *until).map(|(&key, _)| key);
            let Some(first) = first else { break };
            known.remove(&first);
        }
    }

    pub(crate) fn remove(&self, key: &Key) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(key);
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    key: [u8; Key::LEN],
    reason: String,
    since_unix: u64,
    lifetime_seconds: u64,
}

/// Stores a failure for other processes.
pub(crate) fn store(directory: &Directory, key: &Key, failure: &Failure) -> std::io::Result<()> {
    let record = Record {
        format: FORMAT,
        key: *key.as_bytes(),
        reason: failure.reason.clone(),
        since_unix: failure
            .since
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs()),
        lifetime_seconds: failure.lifetime.as_secs(),
    };
    let record = postcard::to_stdvec(&record).map_err(std::io::Error::other)?;
    let hash = blake3::hash(&record);
    directory.write(&name(key, Kind::Failed), &[&record, hash.as_bytes()], None)
}

/// Returns the failure that a process has stored, if it still counts. A damaged record counts as
/// none.
pub(crate) fn load(directory: &Directory, key: &Key) -> Result<Option<Failure>, LoadError> {
    let bytes = match directory.read(&name(key, Kind::Failed), MAX_FILE) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(decode(key, &bytes).filter(|failure| !failure.left().is_zero()))
}

fn decode(key: &Key, bytes: &[u8]) -> Option<Failure> {
    let (record, hash) = bytes.split_last_chunk::<{ blake3::OUT_LEN }>()?;
    if blake3::hash(record) != blake3::Hash::from_bytes(*hash) {
        return None;
    }
    let record: Record = postcard::from_bytes(record).ok()?;
    (record.format == FORMAT && record.key == *key.as_bytes()).then_some(())?;
    Some(Failure {
        reason: record.reason,
        since: UNIX_EPOCH.checked_add(Duration::from_secs(record.since_unix))?,
        lifetime: Duration::from_secs(record.lifetime_seconds),
    })
}

/// Returns the distance of `time` from now, in either direction: a time in the future must age too,
/// or a clock that was set back would keep a file for ever.
pub(crate) fn age(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_else(|future| future.duration())
}
