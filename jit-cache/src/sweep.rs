//! Keeps a directory within its bounds. Leftovers are removed first, then the least recently used
//! entries.
//!
//! The modification time of a file is the time of its last use. Removing an entry harms no process:
//! entries are read into memory whole, and an entry that is in use was touched within the last
//! hour, so it is removed last. An entry whose lock is held stays, and so does the lock.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use crate::directory::{Directory, Kind, SWEEP_LOCK, name};
use crate::failure::{self, Failure, MAX_FAILURES};
use crate::key::Key;
use crate::lock::Lock;
use serde::Serialize;

/// Age from which a temporary file counts as abandoned: no publication takes this long.
const TEMPORARY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Entries removed, good or bad.
    pub entries: u64,
    /// The size of the removed entries, in bytes.
    pub bytes: u64,
    /// Temporary files of killed processes removed.
    pub temporaries: u64,
    /// Lock files of killed processes removed.
    pub locks: u64,
    /// Remembered failures removed: expired, or too many.
    pub failures: u64,
    /// The size of the entries that are left, in bytes.
    pub left_bytes: u64,
}

/// One file with all its names. An entry usually has two: a key and a content key.
struct Candidate {
    /// Bad entries go first.
    good: bool,
    used: SystemTime,
    size: u64,
    names: Vec<(String, Option<Key>)>,
}

/// Removes leftovers, and then, if the entries have more than `limit` bytes, entries until at most
/// `goal` bytes are left.
///
/// Returns `None` if another process is sweeping.
///
/// # Errors
///
/// If the directory cannot be listed; or, once everything that can be removed was removed, the
/// first error of a removal.
pub(crate) fn sweep(directory: &Arc<Directory>, limit: u64, goal: u64) -> io::Result<Option<Swept>> {
    // Two concurrent sweeps would each free the full amount. Where locks do not work that may
    // happen.
    let _alone = match Lock::try_acquire(directory, SWEEP_LOCK.to_owned()) {
        Ok(None) => return Ok(None),
        Ok(lock) => lock,
        Err(error) => {
            tracing::debug!(%error, "the cache directory is swept without a lock");
            None
        }
    };
    let mut swept = Swept::default();
    let mut trouble = None;
    let mut remove = |name: &str| match directory.remove(name) {
        Ok(()) => true,
        Err(error) => {
            trouble.get_or_insert(error);
            false
        }
    };
    let mut files: HashMap<(u64, u64), Candidate> = HashMap::new();
    let mut failures = Vec::new();
    let mut held = HashSet::new();
    for (name, kind, key) in directory.names()? {
        if kind == Kind::Lock {
            // The query acquires and releases a free lock, which removes its file.
            if Lock::is_held(directory, &name) {
                held.extend(key);
            } else {
                swept.locks += 1;
            }
            continue;
        }
        // A file that another process has removed since is no longer of interest.
        let Some(stat) = directory.examine(&name)? else {
            continue;
        };
        let used = modified(&stat);
        match kind {
            Kind::Temporary => {
                if failure::age(used) > TEMPORARY_LIFETIME && remove(&name) {
                    swept.temporaries += 1;
                }
            }
            Kind::Failed => failures.push((used, name)),
            Kind::Note => {}
            Kind::Entry | Kind::Content | Kind::Bad | Kind::Lock => {
                let file = files.entry((stat.st_dev, stat.st_ino)).or_insert(Candidate {
                    good: true,
                    used,
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    names: Vec::new(),
                });
                file.good &= kind != Kind::Bad;
                file.names.push((name, key));
            }
        }
    }

    failures.sort_unstable();
    let too_many = failures.len().saturating_sub(MAX_FAILURES);
    for (position, (since, name)) in failures.into_iter().enumerate() {
        if (position < too_many || failure::age(since) > Failure::LONGEST) && remove(&name) {
            swept.failures += 1;
        }
    }

    let mut total = files
        .values()
        .fold(0_u64, |total, file| total.saturating_add(file.size));
    if total > limit {
        let mut files: Vec<_> = files.into_values().collect();
        files.sort_unstable_by(|a, b| (a.good, a.used, &a.names).cmp(&(b.good, b.used, &b.names)));
        for file in files {
            if total <= goal {
                break;
            }
            let wanted = |(name, key): &(String, Option<Key>)| {
                key.is_some_and(|key| held.contains(&key)) || was_used(directory, name, file.used)
            };
            if file.names.iter().any(wanted) {
                continue;
            }
            let mut gone = true;
            for (name, _) in &file.names {
                gone &= remove(name);
            }
            if gone {
                swept.entries += 1;
                swept.bytes = swept.bytes.saturating_add(file.size);
                total = total.saturating_sub(file.size);
            }
        }
    }
    swept.left_bytes = total;
    match trouble {
        Some(error) => Err(error),
        None => Ok(Some(swept)),
    }
}

/// Removes every entry, bad entry and failure whose lock is free, and all that a sweep would
/// remove.
pub(crate) fn clear(directory: &Arc<Directory>) -> io::Result<Swept> {
    let mut cleared = Swept::default();
    let mut seen = HashSet::new();
    for (file, kind, key) in directory.names()? {
        if !matches!(kind, Kind::Entry | Kind::Content | Kind::Bad | Kind::Failed) {
            continue;
        }
        let in_the_making = key.map(|key| name(&key, Kind::Lock));
        if let Some(lock) = in_the_making
            && directory.examine(&lock)?.is_some()
            && Lock::is_held(directory, &lock)
        {
            continue;
        }
        let Some(stat) = directory.examine(&file)? else {
            continue;
        };
        directory.remove(&file)?;
        if kind == Kind::Failed {
            cleared.failures += 1;
        } else if seen.insert((stat.st_dev, stat.st_ino)) {
            cleared.entries += 1;
            cleared.bytes = cleared.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        }
    }
    if let Some(rest) = sweep(directory, u64::MAX, u64::MAX)? {
        cleared.temporaries = rest.temporaries;
        cleared.locks = rest.locks;
        cleared.left_bytes = rest.left_bytes;
    }
    Ok(cleared)
}

/// Returns whether a file was used or replaced since it was listed.
fn was_used(directory: &Directory, name: &str, then: SystemTime) -> bool {
    matches!(directory.examine(name), Ok(Some(stat)) if modified(&stat) != then)
}

/// Returns the time of a file's last use. A time that no clock can have counts as never.
pub(crate) fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    UNIX_EPOCH
        .checked_add(Duration::from_secs(seconds))
        .and_then(|time| time.checked_add(Duration::from_nanos(stat.st_mtime_nsec)))
        .unwrap_or(UNIX_EPOCH)
}
