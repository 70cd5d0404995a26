//! Creations that failed and would fail again: remembered, so that nobody repeats them all the time.
//!
//! What is remembered is bounded in number and expires: in memory after an hour, in the folder after a day, so that
//! a compiler that is mended in place, or was short of something after all, gets another chance.
//!
//! On disk a failure is a small file: postcard, and the BLAKE3 of that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::folder::{Folder, Kind, LoadError, name};
use crate::key::Key;

/// How many failures are remembered, in memory and in a folder.
pub(crate) const MAX_FAILURES: usize = 1024;
/// How long a file counts.
pub(crate) const DISK_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const MEMORY_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Longer texts are cut: a reason is for a line of a log.
const MAX_REASON: usize = 2048;
const MAX_FILE: u64 = 4096;
const FORMAT: u32 = 1;

/// A creation that failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the error said, cut after some 2,000 bytes.
    pub reason: String,
    /// When it happened.
    pub since: SystemTime,
}

impl Failure {
    pub(crate) fn now(mut reason: String) -> Self {
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        Self {
            reason,
            since: SystemTime::now(),
        }
    }
}

/// The failures that this process knows.
#[derive(Default)]
pub(crate) struct Failures {
    known: Mutex<HashMap<Key, (Instant, Arc<Failure>)>>,
}

impl Failures {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Failure>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (learnt, failure) = known.get(key)?;
        if learnt.elapsed() < MEMORY_LIFETIME {
            return Some(Arc::clone(failure));
        }
        known.remove(key);
        None
    }

    pub(crate) fn insert(&self, key: Key, failure: Arc<Failure>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, (Instant::now(), failure));
        while known.len() > MAX_FAILURES {
            let oldest = known.iter().min_by_key(|(_, (learnt, _))| *learnt).map(|(&key, _)| key);
            let Some(oldest) = oldest else { break };
            known.remove(&oldest);
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
}

/// Leaves word of a failure for other processes.
pub(crate) fn store(folder: &Folder, key: &Key, failure: &Failure) -> std::io::Result<()> {
    let record = Record {
        format: FORMAT,
        key: *key.as_bytes(),
        reason: failure.reason.clone(),
        since_unix: failure
            .since
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs()),
    };
    let record = postcard::to_stdvec(&record).map_err(std::io::Error::other)?;
    let hash = blake3::hash(&record);
    folder.write(&name(key, Kind::Failed), &[&record, hash.as_bytes()], None)
}

/// The failure that another process left word of, if it still counts. What cannot be believed is as good as nothing.
pub(crate) fn load(folder: &Folder, key: &Key) -> Result<Option<Failure>, LoadError> {
    let bytes = match folder.read(&name(key, Kind::Failed), MAX_FILE) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(decode(key, &bytes).filter(|failure| age(failure.since) < DISK_LIFETIME))
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
    })
}

/// How far `time` is from now. In the future is as far: a clock that was set back must not keep anything for ever.
pub(crate) fn age(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_else(|future| future.duration())
}
