//! Notes are kept whole, found by other caches, and refused if they are damaged.

use rotini_cache::{Busy, Cache, CacheConfig, CompiledFor, Key, KeyInputs, MAX_NOTE, notes};
use std::path::Path;

fn key(graph: &[u8]) -> Key {
    Key::of(&KeyInputs {
        graph,
        compiled_for: &CompiledFor::from("cpu".to_owned()),
        emitter: "1",
        flags: &[],
        compiler: "none",
    })
}

fn open(dir: Option<&Path>, system: &[&Path]) -> Cache {
    Cache::open(CacheConfig {
        dir: dir.map(Path::to_owned),
        system_dirs: system.iter().map(|&dir| dir.to_owned()).collect(),
        ..CacheConfig::default()
    })
}

#[test]
fn a_note_is_found_by_the_next_cache_and_replaced_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (first, key) = (open(Some(directory.path()), &[]), key(b"graph"));
    assert_eq!(first.note(&key), None);
    assert!(first.keep_note(&key, b"one"));
    assert!(first.keep_note(&key, b"another"));
    let next = open(Some(directory.path()), &[]);
    assert_eq!(next.note(&key).as_deref(), Some(&b"another"[..]));
    assert_eq!(notes(directory.path()).unwrap(), [(key, b"another".to_vec())]);
    // A note does not create an entry.
    assert!(next.peek(&key).is_none());
    // A system's directory is read too, after the user's own.
    let own = tempfile::tempdir().unwrap();
    let shipped = open(Some(own.path()), &[directory.path()]);
    assert_eq!(shipped.note(&key).as_deref(), Some(&b"another"[..]));
    assert!(shipped.keep_note(&key, b"own"));
    assert_eq!(shipped.note(&key).as_deref(), Some(&b"own"[..]));
    assert_eq!(
        open(Some(directory.path()), &[]).note(&key).as_deref(),
        Some(&b"another"[..])
    );
}

#[test]
fn a_changed_or_moved_note_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, one, other) = (open(Some(directory.path()), &[]), key(b"one"), key(b"other"));
    assert!(cache.keep_note(&one, b"something"));
    let file = |key: &Key| directory.path().join(format!("{key}.note"));
    let bytes = std::fs::read(file(&one)).unwrap();
    // A note that was copied to another key's name is refused.
    std::fs::write(file(&other), &bytes).unwrap();
    assert_eq!(cache.note(&other), None);
    for position in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[position] ^= 1;
        std::fs::write(file(&one), &changed).unwrap();
        assert_eq!(cache.note(&one), None, "byte {position}");
        std::fs::write(file(&one), &bytes[..position]).unwrap();
        assert_eq!(cache.note(&one), None, "cut at {position}");
    }
    assert!(notes(directory.path()).unwrap().is_empty());
}

#[test]
fn notes_survive_a_sweep_and_have_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, key) = (open(Some(directory.path()), &[]), key(b"graph"));
    assert!(!cache.keep_note(&key, &vec![0; MAX_NOTE + 1]));
    assert!(cache.keep_note(&key, &vec![7; MAX_NOTE]));
    rotini_cache::admin::gc(directory.path(), 0).unwrap();
    assert_eq!(cache.note(&key).map(|note| note.len()), Some(MAX_NOTE));
    assert!(!open(None, &[]).keep_note(&key, b"nowhere"));
}

#[test]
fn one_at_a_time_makes_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, other) = (open(Some(directory.path()), &[]), open(Some(directory.path()), &[]));
    let key = key(b"graph");
    let lock = cache.lock_note(&key).unwrap();
    assert!(lock.is_some());
    assert_eq!(other.lock_note(&key).err(), Some(Busy));
    drop(lock);
    assert!(other.lock_note(&key).unwrap().is_some());
    assert!(open(None, &[]).lock_note(&key).unwrap().is_none());
}
