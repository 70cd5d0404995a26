//! The disk tier: the directory that entries are kept in, and the directories that are only read.

use std::collections::HashSet;
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::directory::{self, Directory, Kind, LoadError, MAX_FILE, content_name, mark_used, name};
use crate::entry::{EncodeError, Entry};
use crate::failure::{self, Failure};
use crate::key::{ContentKey, Key};
use crate::late::Late;
use crate::lock::Lock;
use crate::note;
use crate::stats::Counters;
use crate::sweep::sweep;
use crate::trust::{DirectoryError, Purpose};

/// The cache directory of this user, which is read and written.
pub(crate) struct Disk {
    path: PathBuf,
    /// Opened again if another process removed the directory.
    directory: RwLock<Arc<Directory>>,
    purpose: Purpose,
    limit: u64,
    /// Bytes published since the last sweep. The initial value exceeds the slack of every limit, so
    /// that the first publication of a process also removes leftovers of other processes.
    unswept: AtomicU64,
    /// Whether other processes will find the entries of this one. False if nothing is to be stored
    /// (a limit of 0), and after a failed write, for example to a full disk.
    shares: AtomicBool,
    warned: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error("the cache directory cannot be written")]
    Io(#[from] io::Error),
    #[error("the cache directory is gone and cannot be made again")]
    Directory(#[from] DirectoryError),
    #[error("the entry cannot be encoded")]
    Encode(#[from] EncodeError),
}

/// The outcome of an attempt to take a lock.
pub(crate) enum Locking {
    /// This process holds the lock.
    Held(Lock),
    /// Another process holds the lock.
    Busy,
    /// Locks do not work here or are of no use: a read-only directory, a full disk, or a file
    /// system without locks.
    Unavailable,
}

impl Disk {
    pub(crate) fn open(dir: &Path, limit: u64, purpose: Purpose) -> Result<Self, DirectoryError> {
        let directory = Directory::open(dir, purpose)?;
        Ok(Self {
            path: directory.path().to_owned(),
            directory: RwLock::new(Arc::new(directory)),
            purpose,
            limit,
            unswept: AtomicU64::new(u64::MAX / 2),
            shares: AtomicBool::new(limit > 0),
            warned: AtomicBool::new(false),
        })
    }

    /// Returns the real path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn directory(&self) -> Arc<Directory> {
        Arc::clone(&self.directory.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Creates and opens the directory again, after it was removed while this process runs, with
    /// the same checks as the first time.
    fn reopen(&self) -> Result<Arc<Directory>, DirectoryError> {
        let mut directory = self.directory.write().unwrap_or_else(PoisonError::into_inner);
        *directory = Arc::new(Directory::open(&self.path, self.purpose)?);
        Ok(Arc::clone(&directory))
    }

    /// Runs `work`, which creates a file; if the directory is missing, creates it again and runs
    /// `work` once more.
    fn make<T>(&self, work: impl Fn(&Arc<Directory>) -> io::Result<T>) -> Result<T, PublishError> {
        match work(&self.directory()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(work(&self.reopen()?)?),
            other => Ok(other?),
        }
    }

    /// Returns the entry of `key`, verified. A file that fails verification is renamed aside.
    pub(crate) fn load(&self, key: &Key, counters: &Counters) -> Option<Entry> {
        let directory = self.directory();
        let loaded = directory.load(key);
        self.loaded(&directory, &name(key, Kind::Entry), key, loaded, counters)
    }

    /// Returns an entry that was compiled from the module of `content`, verified.
    pub(crate) fn load_content(&self, content: &ContentKey, counters: &Counters) -> Option<Entry> {
        let (directory, name) = (self.directory(), content_name(content));
        let loaded = directory.load_content(content);
        // Nearly always the file is also linked under its key. A fault of the file itself is
        // reported once, when it is loaded under that name.
        let has_other_name = || matches!(directory.examine(&name), Ok(Some(stat)) if stat.st_nlink > 1);
        match &loaded {
            Err(error) if error.is_of_file() && has_other_name() => {
                tracing::debug!(
                    name,
                    error = error as &dyn Error,
                    "a bad cache entry is not looked for by its content"
                );
                if let Err(error) = directory.remove(&name) {
                    self.warn("remove an entry from", &error, counters);
                }
                None
            }
            _ => {
                let aside = Key::from_bytes(*content.as_bytes());
                self.loaded(&directory, &name, &aside, loaded, counters)
            }
        }
    }

    fn loaded(
        &self,
        directory: &Directory,
        name: &str,
        key: &Key,
        loaded: Result<(Entry, File), LoadError>,
        counters: &Counters,
    ) -> Option<Entry> {
        match loaded {
            Ok((entry, file)) => {
                mark_used(&file);
                Some(entry)
            }
            Err(error) if error.is_missing() => None,
            Err(error) if error.is_system() => {
                self.warn("read", &error, counters);
                None
            }
            Err(error) => {
                self.move_aside(directory, name, key, &error, counters);
                None
            }
        }
    }

    /// Renames the entry of `key` aside, so that it is never loaded again, and reports it.
    pub(crate) fn set_aside(
        &self,
        key: &Key,
        content: Option<&ContentKey>,
        reason: &(dyn Error + 'static),
        counters: &Counters,
    ) {
        let directory = self.directory();
        if let Some(content) = content
            && let Err(error) = directory.remove(&content_name(content))
        {
            self.warn("remove an entry from", &error, counters);
        }
        self.move_aside(&directory, &name(key, Kind::Entry), key, reason, counters);
    }

    fn move_aside(
        &self,
        directory: &Directory,
        from: &str,
        key: &Key,
        reason: &(dyn Error + 'static),
        counters: &Counters,
    ) {
        counters.bad_entries.add(1);
        tracing::warn!(
            path = %directory.path().join(from).display(),
            reason,
            "a bad cache entry was set aside and will be made again"
        );
        match directory.rename(from, &name(key, Kind::Bad)) {
            Ok(()) => {}
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warn("set an entry aside in", &error, counters),
        }
    }

    /// Tries to acquire the lock for creating `key`, exclusive among all processes. Never waits.
    pub(crate) fn lock(&self, key: &Key, counters: &Counters) -> Locking {
        // Waiting processes would take the lock one after the other and never find an entry.
        if !self.shares.load(Ordering::Relaxed) {
            return Locking::Unavailable;
        }
        match self.make(|directory| Lock::try_acquire(directory, name(key, Kind::Lock))) {
            Ok(Some(lock)) => Locking::Held(lock),
            Ok(None) => Locking::Busy,
            Err(error) => {
                self.warn("lock a file in", &error, counters);
                Locking::Unavailable
            }
        }
    }

    /// Stores `entry`, and sweeps the directory if it may exceed its limit. Returns whether the
    /// entry is stored.
    ///
    /// A failure to store is worth one warning and nothing more.
    pub(crate) fn publish(&self, entry: &Entry, counters: &Counters) -> bool {
        let size = match self.write(entry) {
            Ok(Some(size)) => size,
            Ok(None) => return false,
            Err(error) => {
                self.shares.store(false, Ordering::Relaxed);
                self.warn("write to", &error, counters);
                return false;
            }
        };
        self.shares.store(true, Ordering::Relaxed);
        let unswept = self.unswept.fetch_add(size, Ordering::Relaxed);
        if unswept.saturating_add(size) > self.slack() {
            self.sweep(counters);
        }
        true
    }

    /// Writes the entry's file and returns its size in bytes, or `None` if the file alone would
    /// exceed the limit.
    fn write(&self, entry: &Entry) -> Result<Option<u64>, PublishError> {
        let header = entry.encode_header()?;
        let size = (header.len() as u64).saturating_add(entry.payload.len() as u64);
        if size > self.limit.min(MAX_FILE) {
            tracing::debug!(key = %entry.key, size, limit = self.limit, "too large for the disk cache");
            return Ok(None);
        }
        let content = entry.content.as_ref().map(content_name);
        self.make(|directory| {
            directory.write(
                &name(&entry.key, Kind::Entry),
                &[&header, &entry.payload],
                content.as_deref(),
            )
        })?;
        // The entry was created after all, so a remembered failure is obsolete.
        if let Err(error) = self.directory().remove(&name(&entry.key, Kind::Failed)) {
            tracing::debug!(%error, "cannot remove a remembered failure");
        }
        Ok(Some(size))
    }

    /// Marks the entry of `key` as used now, for all processes.
    pub(crate) fn touch(&self, key: &Key) {
        if let Err(error) = self.directory().touch(&name(key, Kind::Entry)) {
            // Evicted, or read-only: both are fine.
            tracing::trace!(%error, "cannot note the use of a cache entry");
        }
    }

    /// Returns the failure that is remembered for `key`.
    pub(crate) fn failure(&self, key: &Key, counters: &Counters) -> Option<Failure> {
        match failure::load(&self.directory(), key) {
            Ok(failure) => failure,
            Err(error) if error.is_system() => {
                self.warn("read", &error, counters);
                None
            }
            // A file that is damaged or not trusted, whoever wrote it, deserves a debug message
            // only: the next creation replaces it.
            Err(error) => {
                tracing::debug!(%key, error = &error as &dyn Error, "a remembered failure is ignored");
                None
            }
        }
    }

    /// Records that creating `key` fails.
    pub(crate) fn remember(&self, key: &Key, failure: &Failure, counters: &Counters) {
        match self.make(|directory| failure::store(directory, key, failure)) {
            // Failures are rare and cost a compilation each: counting them is cheap in comparison.
            Ok(()) => self.sweep(counters),
            Err(error) => self.warn("write to", &error, counters),
        }
    }

    /// Returns the note about `key`. A note that cannot be read is reported and treated as missing.
    pub(crate) fn note(&self, key: &Key, counters: &Counters) -> Option<Vec<u8>> {
        note::load(&self.directory(), key).unwrap_or_else(|error| {
            self.warn("read a note in", &error, counters);
            None
        })
    }

    /// Stores the note about `key`, and returns whether it is stored.
    pub(crate) fn keep_note(&self, key: &Key, note: &[u8], counters: &Counters) -> bool {
        let stored = self.make(|directory| note::store(directory, key, note));
        stored
            .inspect_err(|error| self.warn("write a note to", error, counters))
            .is_ok()
    }

    fn sweep(&self, counters: &Counters) {
        let unswept = self.unswept.swap(0, Ordering::Relaxed);
        match sweep(&self.directory(), self.limit, self.limit.saturating_sub(self.slack())) {
            Ok(Some(swept)) => counters.disk_evictions.add(swept.entries),
            // The process that is sweeping may have listed the directory before this process's file
            // existed.
            Ok(None) => {
                self.unswept.fetch_add(unswept, Ordering::Relaxed);
            }
            Err(error) => self.warn("make room in", &error, counters),
        }
    }

    /// Returns how many bytes may be published between two sweeps. A sweep leaves this much room,
    /// so the directory stays within its limit although nothing is counted in between.
    fn slack(&self) -> u64 {
        self.limit / 64
    }

    /// Reports a problem with the directory once: a full disk stays full, and the host's log is not
    /// the place to count that.
    fn warn(&self, what: &str, error: &(dyn Error + 'static), counters: &Counters) {
        counters.disk_errors.add(1);
        let dir = self.path.display();
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%dir, error, "cannot {what} the cache directory");
        } else {
            tracing::warn!(
                %dir, error,
                "cannot {what} the cache directory; what cannot be stored is kept in memory only, and this is not reported again"
            );
        }
    }
}

/// Read-only directories that come with a system or an image, in search order.
pub(crate) struct System {
    directories: Vec<Late<Directory>>,
    /// Names of rejected files, which cannot be moved aside in a read-only directory.
    rejected: Mutex<HashSet<String>>,
    warned: AtomicBool,
}

impl System {
    /// Opens the directories that can be trusted.
    ///
    /// An untrusted one is worth a warning, since somebody configured it.
    pub(crate) fn open(dirs: &[impl AsRef<Path>]) -> Self {
        let open = |dir: PathBuf| {
            let report = |error: &DirectoryError| {
                tracing::warn!(
                    error = error as &dyn Error,
                    "a directory of compiled graphs is not used"
                );
            };
            Late::new(move || Directory::open(&dir, Purpose::Read), report)
        };
        Self {
            directories: dirs.iter().map(|dir| open(dir.as_ref().to_owned())).collect(),
            rejected: Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    /// Excludes this entry from now on, under both of its keys.
    pub(crate) fn reject(&self, key: &Key, content: Option<&ContentKey>) {
        if self.directories.is_empty() {
            return;
        }
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.insert(name(key, Kind::Entry));
        rejected.extend(content.map(content_name));
    }

    pub(crate) fn load(&self, key: &Key, counters: &Counters) -> Option<Entry> {
        self.find(counters, &name(key, Kind::Entry), |directory| directory.load(key))
    }

    pub(crate) fn load_content(&self, content: &ContentKey, counters: &Counters) -> Option<Entry> {
        self.find(counters, &content_name(content), |directory| {
            directory.load_content(content)
        })
    }

    /// Returns the note about `key` from the first directory that has one.
    pub(crate) fn note(&self, key: &Key) -> Option<Vec<u8>> {
        let mut directories = self.directories.iter().filter_map(Late::get);
        directories.find_map(|directory| note::load(directory, key).ok()?)
    }

    fn find(
        &self,
        counters: &Counters,
        name: &str,
        load: impl Fn(&Directory) -> Result<(Entry, File), directory::LoadError>,
    ) -> Option<Entry> {
        if self.directories.is_empty() {
            return None;
        }
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if rejected.contains(name) {
            return None;
        }
        drop(rejected);
        self.directories
            .iter()
            .filter_map(Late::get)
            .find_map(|directory| match load(directory) {
                Ok((entry, _)) => Some(entry),
                Err(error) if error.is_missing() => None,
                Err(error) => {
                    counters.bad_entries.add(1);
                    let path = directory.path().join(name);
                    let path = path.display();
                    let error = &error as &dyn Error;
                    // The file cannot be moved aside, so it would be reported on every load; and if
                    // one entry cannot be read, none of the directory can.
                    if self.warned.swap(true, Ordering::Relaxed) {
                        tracing::debug!(%path, error, "an entry of a read-only directory is not used");
                    } else {
                        tracing::warn!(
                            %path, error,
                            "an entry of a read-only directory is not used; others like it are not reported"
                        );
                    }
                    None
                }
            })
    }
}
