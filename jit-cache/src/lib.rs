//! A cache of compiled kernels, addressed by the hash of every input of the compilation.
//!
//! The crate owns the [`Key`], the format of an [`Entry`], and the storage of entries: a memory
//! tier bounded by bytes and shared by all threads, a directory bounded by bytes and shared by all
//! processes of a user, and read-only directories. It knows nothing of graphs or compilers. The
//! data flow is
//!
//! ```text
//! KeyInputs ─ Key::of ─> Key ─ Cache::get_or_create ─> Arc<Entry>
//!                                       │
//!                                       v
//!     memory ─ miss ─> directories ─ miss ─> key's lock ─> the caller's closure
//!       ^                   │ verified                              │
//!       └───────────────────┴───────────────────────────────────────┤
//!                                      temporary file, rename <─────┘
//! ```
//!
//! An entry is created once, however many threads and processes ask for its key: the others wait
//! for that key alone, and one of them takes over if the creator dies. A failure whose error says
//! that it would recur is remembered for a while, in memory and in the directory.
//!
//! A cache never makes anything fail that would work without it: a problem with the disk causes one
//! warning, and from then on only the memory tier is used. An entry is verified each time it is
//! loaded from disk, against damage by its checksums and against other users by the owner and the
//! mode of file and directory; an entry that fails verification is renamed aside, reported and
//! created again.
//!
//! ```
//! use rotini_cache::{
//!     Cache, CacheConfig, CodeFacts, CompiledFor, Key, KeyInputs, NewEntry, Origin,
//! };
//!
//! let cache = Cache::open(CacheConfig { dir: None, ..CacheConfig::default() });
//! let compiled_for = CompiledFor::from("gfx942".to_owned());
//! let key = Key::of(&KeyInputs {
//!     graph: b"canonical bytes",
//!     compiled_for: &compiled_for,
//!     emitter: "1",
//!     flags: &[],
//!     compiler: "iree 3.13.0",
//! });
//! let compile = || {
//!     Ok::<_, std::io::Error>(NewEntry {
//!         facts: CodeFacts {
//!             producer: "rotini 0.1.0, iree 3.13.0".to_owned(),
//!             compiled_for: compiled_for.clone(),
//!             workspace_bytes: 0,
//!             dispatches: 1,
//!         },
//!         content: None,
//!         compile_micros: 400_000,
//!         payload: vec![1, 2, 3].into(),
//!     })
//! };
//! let (entry, origin) = cache.get_or_create(&key, compile, |_| None)?;
//! assert_eq!(origin, Origin::Created { on_disk: false });
//! assert_eq!(entry.payload.as_ref(), [1, 2, 3]);
//! assert_eq!(cache.peek(&key).map(|entry| entry.metadata.facts.workspace_bytes), Some(0));
//! # Ok::<_, rotini_cache::CreateError<std::io::Error>>(())
//! ```

pub mod admin;
mod cache;
mod directory;
mod disk;
mod entry;
mod facts;
mod failure;
mod flight;
mod key;
mod late;
mod lock;
mod memory;
mod note;
mod stats;
mod sweep;
#[cfg(test)]
mod testing;
mod trust;

pub use cache::{Busy, Cache, CacheConfig, CreateError, Creation, NewEntry, Origin, default_dir};
pub use directory::LoadError;
pub use entry::{DecodeError, ENTRY_FORMAT, EncodeError, Entry, Metadata};
pub use facts::{CodeFacts, CompiledFor};
pub use failure::Failure;
pub use key::{ContentInputs, ContentKey, Key, KeyError, KeyInputs};
pub use lock::Lock;
pub use note::{MAX_NOTE, NotesError, notes};
pub use stats::Stats;
pub use sweep::Swept;
pub use trust::{DirectoryError, Distrust};
