//! Helpers of the tests: keys and entries by number, directories, and a count of warnings.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rotini_cache::{Cache, CacheConfig, CodeFacts, CompiledFor, Failure, Key, KeyInputs, NewEntry, Origin};
use tracing::span;

pub(crate) fn key(number: u64) -> Key {
    Key::of(&KeyInputs {
        graph: &number.to_le_bytes(),
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        emitter: "1",
        flags: &[],
        compiler: "test",
    })
}

pub(crate) fn payload(number: u64, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

pub(crate) fn new_entry(number: u64, bytes: usize) -> NewEntry {
    NewEntry {
        facts: CodeFacts {
            producer: "test".to_owned(),
            compiled_for: "gfx942".to_owned().into(),
            workspace_bytes: number,
            dispatches: 1,
        },
        content: None,
        compile_micros: 2,
        payload: payload(number, bytes).into(),
    }
}

/// Classifies no error as lasting.
pub(crate) fn never<E>(_: &E) -> Option<Failure> {
    None
}

/// Returns a configuration without a directory, whatever the environment says.
pub(crate) fn memory_only() -> CacheConfig {
    CacheConfig {
        dir: None,
        ..CacheConfig::default()
    }
}

/// Opens a cache on `dir` with room for everything.
pub(crate) fn open(dir: &Path) -> Cache {
    Cache::open(CacheConfig {
        dir: Some(dir.to_owned()),
        memory_bytes: 64 << 20,
        disk_bytes: 64 << 20,
        ..memory_only()
    })
}

/// Gets or creates entry `number` with a payload of 1000 bytes, checks the payload, and returns the
/// entry's origin.
pub(crate) fn fetch(cache: &Cache, number: u64) -> Origin {
    let create = || Ok::<_, Infallible>(new_entry(number, 1000));
    let (entry, origin) = cache.get_or_create(&key(number), create, never).expect("infallible");
    assert_eq!(entry.payload, payload(number, 1000));
    assert_eq!(entry.metadata.facts.workspace_bytes, number);
    origin
}

pub(crate) fn entry_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{}.entry", key(number)))
}

/// Returns the names in `dir` with this extension.
pub(crate) fn names(dir: &Path, extension: &str) -> Vec<String> {
    std::fs::read_dir(dir)
        .expect("the directory")
        .map(|item| item.expect("an item").file_name())
        .map(|name| name.into_string().expect("a name of ours"))
        .filter(|name| name.rsplit_once('.').is_some_and(|(_, end)| end == extension))
        .collect()
}

/// Runs `work` on this thread and returns the number of its warnings.
pub(crate) fn warnings(work: impl FnOnce()) -> u64 {
    let counter = Arc::new(AtomicU64::new(0));
    tracing::subscriber::with_default(WarningCounter(Arc::clone(&counter)), work);
    counter.load(Ordering::Relaxed)
}

struct WarningCounter(Arc<AtomicU64>);

impl tracing::Subscriber for WarningCounter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
