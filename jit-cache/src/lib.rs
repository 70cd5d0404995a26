//! A cache of compiled kernels: bytes under the hash of everything that made them.
//!
//! The crate owns the [`Key`], the format of an [`Entry`], and where entries live: a memory tier bounded by bytes and shared
//! by all threads, and a disk tier bounded by bytes and shared by all processes of a user. It knows nothing of graphs or
//! compilers. What flows through is
//!
//! ```text
//! KeyInputs ─ Key::of ─> Key ─ Cache::get_or_create ─> memory ─ miss ─> disk ─ miss ─> the caller's closure
//!                                      │                 ^               │ verified        │
//!                                      v                 └───────────────┴─────────────────┤
//!                                 Arc<Entry>                  temporary file, rename <─────┘
//! ```
//!
//! A cache never makes anything fail that would work without it: trouble with the disk is one warning, and then memory is
//! all there is. An entry is verified each time it is loaded from disk, against damage by its checksums and against
//! strangers by the owner and the mode of file and folder; one that fails is renamed aside, reported and made again.
//!
//! ```
//! use rotini_cache::{Cache, CacheConfig, Key, KeyInputs, NewEntry, Origin};
//!
//! let cache = Cache::open(CacheConfig { dir: None, ..CacheConfig::default() });
//! let key = Key::of(&KeyInputs {
//!     graph: b"canonical bytes",
//!     target: "gfx942",
//!     target_features: "",
//!     emitter_version: 1,
//!     strategy: "conv",
//!     flags: &[],
//!     compiler: "iree 3.13.0",
//! });
//! let compile = || {
//!     Ok::<_, std::io::Error>(NewEntry {
//!         producer: "rotini 0.1.0, iree 3.13.0".to_owned(),
//!         target: "gfx942".to_owned(),
//!         workspace_bytes: 0,
//!         dispatches: 1,
//!         compile_micros: 400_000,
//!         payload: vec![1, 2, 3].into(),
//!     })
//! };
//! let (entry, origin) = cache.get_or_create(&key, compile)?;
//! assert_eq!(origin, Origin::Created { on_disk: false });
//! assert_eq!(entry.payload.as_ref(), [1, 2, 3]);
//! assert_eq!(cache.peek(&key).map(|entry| entry.metadata.workspace_bytes), Some(0));
//! # Ok::<_, std::sync::Arc<std::io::Error>>(())
//! ```

mod disk;
mod entry;
mod flight;
mod key;
mod memory;
mod stats;
#[cfg(test)]
mod testing;
mod trust;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

pub use entry::{DecodeError, ENTRY_FORMAT, EncodeError, Entry, Metadata};
pub use key::{Key, KeyInputs};
pub use stats::Stats;
pub use trust::{Distrust, FolderError};

use disk::Disk;
use flight::{Boarding, Flights, Landing};
use memory::Memory;
use stats::Counters;

/// Where a cache keeps its entries, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// The folder of the disk tier, made if missing. `None`: memory only.
    pub dir: Option<PathBuf>,
    /// The bound of the memory tier, in bytes.
    pub memory_bytes: u64,
    /// The bound of the disk tier, in bytes. Other processes publish into the same folder, so it may be exceeded for a
    /// short time; an entry larger than the bound is not stored.
    pub disk_bytes: u64,
}

impl Default for CacheConfig {
    /// The user's cache folder, 256 MiB of memory and 4 GiB of disk: some thousand kernels, and some ten thousand.
    fn default() -> Self {
        Self {
            dir: default_dir(),
            memory_bytes: 256 << 20,
            disk_bytes: 4 << 30,
        }
    }
}

/// The cache folder of this user as the XDG base directory specification has it: `$XDG_CACHE_HOME/rotini`, else
/// `~/.cache/rotini`. `None` where the user has no home.
pub fn default_dir() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "rotini").map(|dirs| dirs.cache_dir().to_owned())
}

/// What a creation hands to the cache.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Who made the payload: program and compiler, for people.
    pub producer: String,
    /// The target it was compiled for, for people.
    pub target: String,
    /// The device memory one execution needs besides its tensors, in bytes: exact.
    pub workspace_bytes: u64,
    /// The number of kernels one execution launches.
    pub dispatches: u32,
    /// The time the compilation took, in microseconds.
    pub compile_micros: u64,
    /// The compiled code.
    pub payload: Bytes,
}

/// Where an entry came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The memory tier.
    Memory,
    /// The disk tier, verified.
    Disk,
    /// Another thread, which was getting the same key when this one asked.
    Joined,
    /// This call's closure.
    Created {
        /// Whether the next process will find it.
        on_disk: bool,
    },
}

/// A cache of compiled kernels. Meant to be shared by reference or `Arc`: every method takes `&self` and may be called from any thread.
pub struct Cache {
    memory: Memory,
    disk: Option<Disk>,
    disk_error: Option<FolderError>,
    flights: Flights,
    counters: Counters,
}

impl Cache {
    /// Opens the cache. A folder that cannot be made or trusted is reported with one warning, and the cache is then memory
    /// only; [`Cache::disk_error`] says why.
    pub fn open(config: CacheConfig) -> Self {
        let opened = config.dir.map(|dir| Disk::open(&dir, config.disk_bytes));
        let (disk, disk_error) = match opened.transpose() {
            Ok(disk) => (disk, None),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "the cache folder is not used; compiled graphs are kept in memory only"
                );
                (None, Some(error))
            }
        };
        Self {
            memory: Memory::new(config.memory_bytes),
            disk,
            disk_error,
            flights: Flights::default(),
            counters: Counters::default(),
        }
    }

    /// The real path of the disk tier's folder, or `None` where the cache is memory only.
    pub fn dir(&self) -> Option<&Path> {
        self.disk.as_ref().map(Disk::dir)
    }

    /// Why the cache is memory only although a folder was configured.
    pub fn disk_error(&self) -> Option<&FolderError> {
        self.disk_error.as_ref()
    }

    /// The entry of `key` if there is one, from memory or verified from disk. Never creates and never waits for a creation.
    pub fn peek(&self, key: &Key) -> Option<Arc<Entry>> {
        self.find_in_memory(key).or_else(|| self.find_on_disk(key))
    }

    /// The entry of `key`: from memory, from disk, or made by `create` and then kept in both.
    ///
    /// Threads that ask for the same key at the same time share one creation: the first runs its closure, the others wait
    /// for that key alone, and no lock is held meanwhile that another key would need. `create` must not ask this cache for
    /// the same key: it would wait for itself.
    ///
    /// # Errors
    ///
    /// The error of `create`. The key decides what a creation does, so all who were waiting get the same error instead of
    /// failing one after the other; nothing is remembered, and who asks later tries again. A waiter whose own `E` is
    /// another type than the leader's runs its own closure.
    ///
    /// # Panics
    ///
    /// Only when `create` does. Its panic goes to its caller; of the waiters one takes over with its own closure.
    pub fn get_or_create<F, E>(&self, key: &Key, create: F) -> Result<(Arc<Entry>, Origin), Arc<E>>
    where
        F: FnOnce() -> Result<NewEntry, E>,
        E: Send + Sync + 'static,
    {
        loop {
            if let Some(entry) = self.find_in_memory(key) {
                return Ok((entry, Origin::Memory));
            }
            let landing = match self.flights.board(*key) {
                Boarding::Leader(leader) => {
                    let result = self.find_or_make(key, create);
                    leader.land(match &result {
                        Ok((entry, _)) => Landing::Entry(Arc::clone(entry)),
                        Err(error) => Landing::Failed(Arc::clone(error) as _),
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
                        return Err(error);
                    }
                }
                Landing::Abandoned => {}
            }
        }
    }

    /// Forgets the entry of `key` and renames its file aside, with one warning: for entries that are intact and still turn
    /// out to be useless, such as code that the runtime refuses to load.
    pub fn reject(&self, key: &Key, reason: &(dyn Error + 'static)) {
        self.memory.remove(key);
        match &self.disk {
            Some(disk) => disk.set_aside(key, reason, &self.counters),
            None => {
                self.counters.bad_entries.add(1);
                tracing::warn!(%key, reason, "a bad cache entry was dropped");
            }
        }
    }

    /// What the cache did so far and what it holds.
    pub fn stats(&self) -> Stats {
        let counters = &self.counters;
        let (memory_entries, memory_bytes) = self.memory.usage();
        Stats {
            memory_hits: counters.memory_hits.get(),
            disk_hits: counters.disk_hits.get(),
            created: counters.created.get(),
            failed: counters.failed.get(),
            joined: counters.joined.get(),
            bad_entries: counters.bad_entries.get(),
            disk_errors: counters.disk_errors.get(),
            memory_evictions: counters.memory_evictions.get(),
            disk_evictions: counters.disk_evictions.get(),
            memory_entries,
            memory_bytes,
        }
    }

    /// The leader's part of [`Cache::get_or_create`].
    fn find_or_make<F, E>(&self, key: &Key, create: F) -> Result<(Arc<Entry>, Origin), Arc<E>>
    where
        F: FnOnce() -> Result<NewEntry, E>,
    {
        // Another leader may have finished between this thread's look into memory and its lead.
        if let Some(entry) = self.find_in_memory(key) {
            return Ok((entry, Origin::Memory));
        }
        if let Some(entry) = self.find_on_disk(key) {
            return Ok((entry, Origin::Disk));
        }
        let new = create().map_err(|error| {
            self.counters.failed.add(1);
            Arc::new(error)
        })?;
        let entry = Arc::new(Entry {
            metadata: Metadata {
                producer: new.producer,
                target: new.target,
                workspace_bytes: new.workspace_bytes,
                dispatches: new.dispatches,
                compile_micros: new.compile_micros,
                created_unix: unix_seconds(),
            },
            payload: new.payload,
        });
        self.counters.created.add(1);
        self.keep(key, &entry);
        let on_disk = self
            .disk
            .as_ref()
            .is_some_and(|disk| disk.publish(key, &entry, &self.counters));
        Ok((entry, Origin::Created { on_disk }))
    }

    fn find_in_memory(&self, key: &Key) -> Option<Arc<Entry>> {
        let entry = self.memory.get(key)?;
        self.counters.memory_hits.add(1);
        Some(entry)
    }

    fn find_on_disk(&self, key: &Key) -> Option<Arc<Entry>> {
        let entry = Arc::new(self.disk.as_ref()?.load(key, &self.counters)?);
        self.counters.disk_hits.add(1);
        self.keep(key, &entry);
        Some(entry)
    }

    fn keep(&self, key: &Key, entry: &Arc<Entry>) {
        let evicted = self.memory.insert(*key, Arc::clone(entry));
        self.counters.memory_evictions.add(evicted);
    }
}

/// A clock before the epoch is the machine's mistake; nothing but the age shown to people depends on it.
fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_secs())
}
