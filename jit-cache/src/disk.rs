//! The disk tier: one file per entry in one flat folder.
//!
//! | Name | Content |
//! |---|---|
//! | `<key>.entry` | an entry, complete from the moment the name exists |
//! | `<key>.bad` | an entry that failed verification, kept for inspection until room is needed |
//! | `.publish-*.tmp` | an entry being written; one a day old was left by a killed process and is removed |
//!
//! Other files are never touched: the folder is the user's to choose.
//!
//! An entry is written to a temporary file in the same folder and renamed, so a reader sees all of it or none, however the
//! writer ends. Nothing is synced: after a power failure a file may be short or empty, which verification finds, and the
//! price is one compilation.
//!
//! The modification time of an entry is the time of its last use, and the least recently used leave first. Removing a file
//! takes nothing from anyone: entries are read into memory whole.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::entry::{self, DecodeError, EncodeError, Entry};
use crate::key::Key;
use crate::stats::Counters;
use crate::trust::{self, Distrust, FolderError};

const ENTRY: &str = "entry";
const BAD: &str = "bad";
const TEMPORARY_PREFIX: &str = ".publish-";
const TEMPORARY_SUFFIX: &str = ".tmp";
/// No publication takes this long.
const TEMPORARY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Entries are some hundred kilobytes. The bound keeps a file that is not one from being read into memory.
const MAX_FILE: u64 = 1 << 30;

pub(crate) struct Disk {
    dir: PathBuf,
    limit: u64,
    /// Bytes published since the folder was last searched for what to remove; too many at first, so that the first
    /// publication of a process also looks after what others left.
    unswept: AtomicU64,
    warned: AtomicBool,
}

/// Why a file did not give an entry.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("cannot be read")]
    Io(#[from] io::Error),
    #[error("is not safe to take code from")]
    Untrusted(#[from] Distrust),
    #[error("has {0} bytes, more than any entry")]
    Size(u64),
    #[error("is damaged")]
    Damaged(#[from] DecodeError),
}

#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error("the cache folder cannot be written")]
    Io(#[from] io::Error),
    #[error("the cache folder is gone and cannot be made again")]
    Folder(#[from] FolderError),
    #[error("the entry cannot be encoded")]
    Encode(#[from] EncodeError),
}

impl Disk {
    pub(crate) fn open(dir: &Path, limit: u64) -> Result<Self, FolderError> {
        Ok(Self {
            dir: trust::folder(dir)?,
            limit,
            unswept: AtomicU64::new(u64::MAX / 2),
            warned: AtomicBool::new(false),
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The entry of `key`, verified. What is there and cannot be believed is renamed aside.
    pub(crate) fn load(&self, key: &Key, counters: &Counters) -> Option<Entry> {
        let path = self.path(key, ENTRY);
        match self.read(key, &path) {
            Ok(entry) => Some(entry),
            Err(LoadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(LoadError::Io(error)) if !is_link(&error) => {
                self.warn("read", &error, counters);
                None
            }
            Err(error) => {
                self.set_aside(key, &error, counters);
                None
            }
        }
    }

    fn read(&self, key: &Key, path: &Path) -> Result<Entry, LoadError> {
        // Without `NONBLOCK` a pipe under an entry's name would hold the host for ever.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let metadata = file.metadata()?;
        trust::file(&metadata)?;
        let size = metadata.len();
        let capacity = usize::try_from(size).map_err(|_| LoadError::Size(size))?;
        if size > MAX_FILE {
            return Err(LoadError::Size(size));
        }
        let mut bytes = Vec::with_capacity(capacity);
        (&mut file).take(size).read_to_end(&mut bytes)?;
        let entry = entry::decode(key, &Bytes::from(bytes))?;
        mark_used(&file);
        Ok(entry)
    }

    /// Renames the entry of `key` aside, so that it is never loaded again, and says so.
    pub(crate) fn set_aside(&self, key: &Key, reason: &(dyn Error + 'static), counters: &Counters) {
        counters.bad_entries.add(1);
        let path = self.path(key, ENTRY);
        tracing::warn!(
            path = %path.display(),
            reason,
            "a bad cache entry was set aside and will be made again"
        );
        match fs::rename(&path, self.path(key, BAD)) {
            Ok(()) => {}
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warn("set an entry aside in", &error, counters),
        }
    }

    /// Stores `entry`, and makes room where there is too much. Returns whether it is stored: not being able to is worth a
    /// warning, once, and no more.
    pub(crate) fn publish(&self, key: &Key, entry: &Entry, counters: &Counters) -> bool {
        let size = match self.write(key, entry) {
            Ok(Some(size)) => size,
            Ok(None) => return false,
            Err(error) => {
                self.warn("write to", &error, counters);
                return false;
            }
        };
        let slack = self.slack();
        let unswept = self.unswept.fetch_add(size, Ordering::Relaxed);
        if unswept.saturating_add(size) > slack {
            self.unswept.store(0, Ordering::Relaxed);
            if let Err(error) = self.sweep(counters) {
                self.warn("make room in", &error, counters);
            }
        }
        true
    }

    /// Writes the file and returns its size in bytes, or nothing where the file alone would exceed the limit.
    fn write(&self, key: &Key, entry: &Entry) -> Result<Option<u64>, PublishError> {
        let header = entry::encode_header(key, entry)?;
        let size = (header.len() as u64).saturating_add(entry.payload.len() as u64);
        if size > self.limit.min(MAX_FILE) {
            tracing::debug!(%key, size, limit = self.limit, "too large for the disk cache");
            return Ok(None);
        }
        let temporary = || {
            tempfile::Builder::new()
                .prefix(TEMPORARY_PREFIX)
                .suffix(TEMPORARY_SUFFIX)
                .tempfile_in(&self.dir)
        };
        let mut file = match temporary() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Somebody removed the folder while we run: it gets the same scrutiny as at first.
                trust::folder(&self.dir)?;
                temporary()?
            }
            other => other?,
        };
        file.write_all(&header)?;
        file.write_all(&entry.payload)?;
        mark_used(file.as_file());
        file.persist(self.path(key, ENTRY)).map_err(|error| error.error)?;
        Ok(Some(size))
    }

    /// How much may be published between two sweeps: the folder stays within its limit although nobody counts in between.
    fn slack(&self) -> u64 {
        self.limit / 64
    }

    /// Removes what is left over, and then as much as the limit demands: bad entries first, then the least recently used.
    fn sweep(&self, counters: &Counters) -> io::Result<()> {
        let now = SystemTime::now();
        let mut total: u64 = 0;
        let mut removable = Vec::new();
        for item in fs::read_dir(&self.dir)? {
            let item = item?;
            let path = item.path();
            let Some(kind) = FileKind::of(&path) else {
                continue;
            };
            // One that another process removed since is no longer of interest.
            let Ok(metadata) = item.metadata() else {
                continue;
            };
            let used = metadata.modified()?;
            if kind == FileKind::Temporary {
                if now.duration_since(used).unwrap_or_default() > TEMPORARY_LIFETIME {
                    remove(&path)?;
                }
                continue;
            }
            total = total.saturating_add(metadata.len());
            removable.push((kind == FileKind::Entry, used, path, metadata.len()));
        }
        removable.sort_unstable();
        let goal = self.limit.saturating_sub(self.slack());
        for (_, _, path, size) in removable {
            if total <= goal {
                break;
            }
            remove(&path)?;
            counters.disk_evictions.add(1);
            total = total.saturating_sub(size);
        }
        Ok(())
    }

    fn path(&self, key: &Key, extension: &str) -> PathBuf {
        self.dir.join(format!("{key}.{extension}"))
    }

    /// Reports trouble with the folder once: a full disk stays full, and the host's log is not the place to count that.
    fn warn(&self, what: &str, error: &(dyn Error + 'static), counters: &Counters) {
        counters.disk_errors.add(1);
        let dir = self.dir.display();
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%dir, error, "cannot {what} the cache folder");
        } else {
            tracing::warn!(
                %dir, error,
                "cannot {what} the cache folder; what cannot be stored is kept in memory only, and this is not reported again"
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Entry,
    Bad,
    Temporary,
}

impl FileKind {
    /// What the name says, or nothing where the file is not ours.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        if name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX) {
            return Some(Self::Temporary);
        }
        let (key, extension) = name.split_once('.')?;
        let is_key = key.len() == 2 * Key::LEN && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        match extension {
            ENTRY if is_key => Some(Self::Entry),
            BAD if is_key => Some(Self::Bad),
            _ => None,
        }
    }
}

/// Makes `file` the most recently used one. The clock of the file system is too coarse to order two publications.
fn mark_used(file: &File) {
    if let Err(error) = file.set_modified(SystemTime::now()) {
        // A read-only folder, say: what is lost is only the order of eviction, which does not take place there either.
        tracing::trace!(%error, "cannot note the use of a cache entry");
    }
}

/// Whether opening failed because `NOFOLLOW` met a symbolic link, which is no entry.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // Another process sweeps too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
