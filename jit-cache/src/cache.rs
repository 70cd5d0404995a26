//! The cache: asks its tiers in order, and decides who creates an entry that no tier has.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::disk::{Disk, Locking, System};
use crate::entry::{Entry, Metadata};
use crate::facts::CodeFacts;
use crate::failure::{Failure, Failures};
use crate::flight::{Boarding, Flights, Landing};
use crate::key::{ContentKey, Key};
use crate::late::Late;
use crate::lock::Lock;
use crate::memory::Memory;
use crate::stats::{Counters, Stats};
use crate::trust::{DirectoryError, Purpose};

mod notes;

pub use notes::Busy;

/// First interval at which a waiting process polls; it doubles up to [`LATER_LOOKS`].
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LATER_LOOKS: Duration = Duration::from_millis(20);

/// Storage locations and size limits of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The directory of the disk tier, created if missing. `None`: memory only.
    pub dir: Option<PathBuf>,
    /// Directories that are searched after `dir`, in this order, and never written.
    pub system_dirs: Vec<PathBuf>,
    /// The bound of the memory tier, in bytes.
    pub memory_bytes: u64,
    /// The bound of the disk tier, in bytes. Other processes publish into the same directory, so it
    /// may be exceeded for a short time; an entry larger than the bound is not stored.
    pub disk_bytes: u64,
    /// Whether other users may read the entries in `dir`: for a directory that is to be shipped. A
    /// directory that exists already keeps its mode.
    pub readable_by_all: bool,
    /// The longest wait for another process that creates the same key, since that process may be
    /// stopped. After this time the waiter creates the entry itself.
    pub patience: Duration,
}

impl Default for CacheConfig {
    /// Returns the user's cache directory, 256 MiB of memory (some thousand kernels), 4 GiB of disk
    /// (some ten thousand), and ten minutes of patience, which is longer than any compilation.
    fn default() -> Self {
        Self {
            dir: default_dir(),
            system_dirs: Vec::new(),
            memory_bytes: 256 << 20,
            disk_bytes: 4 << 30,
            readable_by_all: false,
            patience: Duration::from_secs(600),
        }
    }
}

/// Returns this user's cache directory after the XDG base directory specification:
/// `$XDG_CACHE_HOME/rotini`, else `~/.cache/rotini`. `None` if the user has no home directory.
pub fn default_dir() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "rotini").map(|dirs| dirs.cache_dir().to_owned())
}

/// The result of a compilation, to be stored in the cache.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The facts about the code.
    pub facts: CodeFacts,
    /// The key of the compiled module, by which [`Cache::find_content`] finds the entry too.
    pub content: Option<ContentKey>,
    /// The time the compilation took, in microseconds.
    pub compile_micros: u64,
    /// The compiled code.
    pub payload: Bytes,
}

/// The result of a creation.
#[derive(Clone, Debug)]
pub enum Creation {
    /// A new compilation.
    New(NewEntry),
    /// The code of another graph with the same module, which is stored under the new key as well.
    Same(Arc<Entry>),
}

impl From<NewEntry> for Creation {
    fn from(new: NewEntry) -> Self {
        Self::New(new)
    }
}

/// The source of an entry that [`Cache::get_or_create`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The memory tier.
    Memory,
    /// The disk tier or a read-only directory, verified.
    Disk,
    /// Another thread, which was already loading or creating the same key.
    Joined,
    /// Another process, which was already creating the same key.
    OtherProcess,
    /// An entry of the same module under another key.
    Content,
    /// This call's closure.
    Created {
        /// Whether the entry is on disk too, so that the next process finds it.
        on_disk: bool,
    },
}

/// The reason why [`Cache::get_or_create`] returns no entry.
#[derive(Debug, thiserror::Error)]
pub enum CreateError<E> {
    /// The creation failed: this caller's own, or that of the thread that this caller waited for.
    #[error(transparent)]
    Failed(Arc<E>),
    /// An earlier creation, in any process, failed with a lasting error, so it was not repeated.
    #[error("{}", .0.reason)]
    Remembered(Arc<Failure>),
}

/// A cache of compiled kernels. Meant to be shared by reference or `Arc`: every method takes
/// `&self` and may be called from any thread.
pub struct Cache {
    memory: Memory,
    failures: Failures,
    /// `None` where no directory is configured.
    disk: Option<Late<Disk>>,
    system: System,
    patience: Duration,
    flights: Flights,
    counters: Counters,
}

/// The outcome of waiting for another process.
enum Waited {
    /// The entry exists, or its creation is known to fail.
    Over(Found),
    /// This process has to create the entry: holding the lock, if the file system has locks.
    Ours { _lock: Option<Lock> },
}

enum Found {
    Entry(Arc<Entry>),
    Failure(Arc<Failure>),
}

impl Cache {
    /// Opens the cache. A directory that cannot be created or trusted is reported with one warning,
    /// and the cache is then memory only; [`Cache::disk_error`] returns the reason. After temporary
    /// causes, such as a shortage of file descriptors, every later use tries to open it again.
    pub fn open(config: CacheConfig) -> Self {
        let mode = if config.readable_by_all { 0o755 } else { 0o700 };
        let limit = config.disk_bytes;
        let disk = config.dir.map(|dir| {
            let report = |error: &DirectoryError| {
                tracing::warn!(
                    error = error as &dyn Error,
                    "the cache directory is not used; compiled graphs are kept in memory only"
                );
            };
            Late::new(move || Disk::open(&dir, limit, Purpose::Keep { mode }), report)
        });
        Self {
            memory: Memory::new(config.memory_bytes),
            failures: Failures::default(),
            disk,
            system: System::open(&config.system_dirs),
            patience: config.patience,
            flights: Flights::default(),
            counters: Counters::default(),
        }
    }

    /// Returns the real path of the disk tier's directory, or `None` if the cache is memory only.
    pub fn dir(&self) -> Option<&Path> {
        self.disk().map(Disk::path)
    }

    /// Returns the reason why the cache is memory only although a directory was configured.
    pub fn disk_error(&self) -> Option<&DirectoryError> {
        self.disk.as_ref()?.error()
    }

    fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()?.get()
    }

    /// Returns the entry of `key` if it exists, from memory or verified from disk. Never creates an
    /// entry and never waits for a creation.
    pub fn peek(&self, key: &Key) -> Option<Arc<Entry>> {
        self.find_in_memory(key).or_else(|| self.find_on_disk(key))
    }

    /// Returns an entry that was compiled from the same module, from disk: one process has one
    /// emitter. Meant for use in a creation, which returns the entry as [`Creation::Same`].
    pub fn find_content(&self, content: &ContentKey) -> Option<Arc<Entry>> {
        let own = self.disk();
        own.and_then(|disk| disk.load_content(content, &self.counters))
            .or_else(|| self.system.load_content(content, &self.counters))
            .map(Arc::new)
    }

    /// Returns the remembered failure of `key`, if an earlier creation failed with a lasting error.
    ///
    /// Never creates or waits; for an entry that is in memory no system call is made.
    pub fn failure(&self, key: &Key) -> Option<Arc<Failure>> {
        if let Some(failure) = self.failures.get(key) {
            return Some(failure);
        }
        if self.memory.holds(key) {
            return None;
        }
        let failure = Arc::new(self.disk()?.failure(key, &self.counters)?);
        // Without locks one process may have created the entry while another failed to.
        if self.peek(key).is_some() {
            return None;
        }
        self.failures.insert(*key, Arc::clone(&failure));
        Some(failure)
    }

    /// Returns the entry of `key`: from memory, from disk, or created and then stored in both.
    ///
    /// Threads that ask for the same key at the same time share one creation: the first runs its
    /// closure, the others wait for that key alone, and no lock is held meanwhile that another key
    /// would need. The same holds for processes that share the directory, if its file system has
    /// locks; if the creating process dies, a waiting one takes over. `create` must not ask this
    /// cache for the same key: it would wait for itself.
    ///
    /// `lasting` returns a [`Failure`] for an error that the same creation would hit again, with
    /// its reason and lifetime. Such failures are remembered, at most 1024 of them, for at most an
    /// hour in memory and a day in the directory, and returned at once to every caller meanwhile.
    ///
    /// # Errors
    ///
    /// [`CreateError::Failed`] holds the error of `create`. The key decides what a creation does,
    /// so all threads that were waiting get the same error instead of failing one after the other.
    /// A waiter whose own `E` is another type than the leader's runs its own closure.
    /// [`CreateError::Remembered`] holds the failure of an earlier creation.
    ///
    /// # Panics
    ///
    /// Only if `create` or `lasting` panics. The panic propagates to its own caller; one of the
    /// waiters takes over with its own closure.
    pub fn get_or_create<F, C, E>(
        &self,
        key: &Key,
        create: F,
        lasting: impl Fn(&E) -> Option<Failure>,
    ) -> Result<(Arc<Entry>, Origin), CreateError<E>>
    where
        F: FnOnce() -> Result<C, E>,
        C: Into<Creation>,
        E: Send + Sync + 'static,
    {
        loop {
            if let Some(entry) = self.find_in_memory(key) {
                return Ok((entry, Origin::Memory));
            }
            if let Some(failure) = self.failures.get(key) {
                return Err(self.remembered(failure));
            }
            let landing = match self.flights.board(*key) {
                Boarding::Leader(leader) => {
                    let result = self.find_or_make(key, create, lasting);
                    leader.land(match &result {
                        Ok((entry, _)) => Landing::Entry(Arc::clone(entry)),
                        Err(CreateError::Failed(error)) => Landing::Failed(Arc::clone(error) as _),
                        // The waiters look for the failure themselves and find the same record.
                        Err(CreateError::Remembered(_)) => Landing::Abandoned,
                    });
                    return result;
                }
                Boarding::Passenger(landing) => landing,
            };
            self.counters.joined.add(1);
            match landing {
                Landing::Entry(entry) => return Ok((entry, Origin::Joined)),
                Landing::Failed(error) => {
                    if let Ok(error) = error.downcast() {
                        return Err(CreateError::Failed(error));
                    }
                }
                Landing::Abandoned => {}
            }
        }
    }

    /// Drops the entry of `key` and renames its file aside, with one warning.
    ///
    /// Meant for entries that are intact but turn out to be useless, such as code that the runtime
    /// refuses to load. A read-only directory's entry is ignored from now on.
    pub fn reject(&self, key: &Key, reason: &(dyn Error + 'static)) {
        let content = self.peek(key).and_then(|entry| entry.content);
        self.memory.remove(key);
        self.system.reject(key, content.as_ref());
        match self.disk() {
            Some(disk) => disk.set_aside(key, content.as_ref(), reason, &self.counters),
            None => {
                self.counters.bad_entries.add(1);
                tracing::warn!(%key, reason, "a bad cache entry was dropped");
            }
        }
    }

    /// Returns the counters of the cache and its current memory usage.
    pub fn stats(&self) -> Stats {
        let counters = &self.counters;
        let (memory_entries, memory_bytes) = self.memory.usage();
        Stats {
            memory_hits: counters.memory_hits.get(),
            disk_hits: counters.disk_hits.get(),
            other_process: counters.other_process.get(),
            content_hits: counters.content_hits.get(),
            created: counters.created.get(),
            failed: counters.failed.get(),
            remembered: counters.remembered.get(),
            joined: counters.joined.get(),
            bad_entries: counters.bad_entries.get(),
            disk_errors: counters.disk_errors.get(),
            memory_evictions: counters.memory_evictions.get(),
            disk_evictions: counters.disk_evictions.get(),
            memory_entries,
            memory_bytes,
        }
    }

    /// Finds or creates the entry: the leading thread's part of [`Cache::get_or_create`].
    fn find_or_make<F, C, E>(
        &self,
        key: &Key,
        create: F,
        lasting: impl Fn(&E) -> Option<Failure>,
    ) -> Result<(Arc<Entry>, Origin), CreateError<E>>
    where
        F: FnOnce() -> Result<C, E>,
        C: Into<Creation>,
    {
        // Another leader may have finished after this thread searched the memory tier and before it
        // took the lead.
        if let Some(entry) = self.find_in_memory(key) {
            return Ok((entry, Origin::Memory));
        }
        if let Some(entry) = self.find_on_disk(key) {
            return Ok((entry, Origin::Disk));
        }
        if let Some(failure) = self.failure(key) {
            return Err(self.remembered(failure));
        }
        // Held until the entry is published.
        let _lock = match self.wait_for_others(key) {
            Waited::Over(Found::Entry(entry)) => return Ok((entry, Origin::OtherProcess)),
            Waited::Over(Found::Failure(failure)) => return Err(self.remembered(failure)),
            Waited::Ours { _lock } => _lock,
        };
        let creation = create().map_err(|error| {
            self.counters.failed.add(1);
            if let Some(failure) = lasting(&error) {
                self.remember(key, failure);
            }
            CreateError::Failed(Arc::new(error))
        })?;
        let (entry, is_new) = match creation.into() {
            Creation::New(new) => (new.into_entry(*key), true),
            Creation::Same(entry) => {
                let entry = Entry {
                    key: *key,
                    ..Arc::unwrap_or_clone(entry)
                };
                (entry, false)
            }
        };
        let entry = Arc::new(entry);
        self.keep(key, &entry);
        self.failures.remove(key);
        let on_disk = self.disk().is_some_and(|disk| disk.publish(&entry, &self.counters));
        if is_new {
            self.counters.created.add(1);
            Ok((entry, Origin::Created { on_disk }))
        } else {
            self.counters.content_hits.add(1);
            Ok((entry, Origin::Content))
        }
    }

    /// Acquires the right to create `key`, or returns the entry or failure that another process
    /// produced meanwhile.
    fn wait_for_others(&self, key: &Key) -> Waited {
        let Some(disk) = self.disk() else {
            return Waited::Ours { _lock: None };
        };
        let started = Instant::now();
        let mut pause = FIRST_LOOK;
        loop {
            let lock = match disk.lock(key, &self.counters) {
                Locking::Held(lock) => Some(lock),
                Locking::Unavailable => return Waited::Ours { _lock: None },
                Locking::Busy => None,
            };
            // Needed even if this process now holds the lock: another process may have held it
            // until a moment ago and published the entry.
            if let Some(entry) = disk.load(key, &self.counters) {
                self.counters.other_process.add(1);
                let entry = Arc::new(entry);
                self.keep(key, &entry);
                return Waited::Over(Found::Entry(entry));
            }
            if let Some(failure) = self.failure(key) {
                return Waited::Over(Found::Failure(failure));
            }
            if lock.is_some() {
                return Waited::Ours { _lock: lock };
            }
            if started.elapsed() > self.patience {
                tracing::warn!(
                    %key,
                    seconds = started.elapsed().as_secs(),
                    "another process has not made an entry in all this time; it is made here too"
                );
                return Waited::Ours { _lock: None };
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LATER_LOOKS);
        }
    }

    fn remember(&self, key: &Key, failure: Failure) {
        let failure = Arc::new(failure);
        if let Some(disk) = self.disk() {
            disk.remember(key, &failure, &self.counters);
        }
        self.failures.insert(*key, failure);
    }

    fn remembered<E>(&self, failure: Arc<Failure>) -> CreateError<E> {
        self.counters.remembered.add(1);
        CreateError::Remembered(failure)
    }

    fn find_in_memory(&self, key: &Key) -> Option<Arc<Entry>> {
        let hit = self.memory.get(key)?;
        self.counters.memory_hits.add(1);
        if hit.news
            && let Some(disk) = self.disk.as_ref().and_then(Late::opened)
        {
            disk.touch(key);
        }
        Some(hit.entry)
    }

    fn find_on_disk(&self, key: &Key) -> Option<Arc<Entry>> {
        let own = self.disk();
        let entry = own
            .and_then(|disk| disk.load(key, &self.counters))
            .or_else(|| self.system.load(key, &self.counters))
            .map(Arc::new)?;
        self.counters.disk_hits.add(1);
        self.keep(key, &entry);
        Some(entry)
    }

    fn keep(&self, key: &Key, entry: &Arc<Entry>) {
        let evicted = self.memory.insert(*key, Arc::clone(entry));
        self.counters.memory_evictions.add(evicted);
    }
}

impl NewEntry {
    fn into_entry(self, key: Key) -> Entry {
        Entry {
            key,
            content: self.content,
            metadata: Metadata {
                facts: self.facts,
                compile_micros: self.compile_micros,
                created_unix: unix_seconds(),
            },
            payload: self.payload,
        }
    }
}

/// Returns the current Unix time in seconds, 0 if the clock is before the epoch: only the age that
/// is shown to people depends on it.
fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs())
}
