//! Entries under their content keys: they are found if the emitter changed but its output did not.

use std::convert::Infallible;
use std::fs;
use std::path::Path;

use crate::common::{entry_path, key, names, never, new_entry, open, payload, warnings};
use rotini_cache::{Cache, CompiledFor, ContentInputs, ContentKey, Creation, NewEntry, Origin};

fn content(number: u64) -> ContentKey {
    ContentKey::of(&ContentInputs {
        mlir: &number.to_le_bytes(),
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        flags: &[],
        compiler: "test",
    })
}

fn content_path(dir: &Path, number: u64) -> std::path::PathBuf {
    dir.join(format!("{}.content", content(number)))
}

/// Gets entry `number`, whose module is `module`, as the pipeline does.
fn compile(cache: &Cache, number: u64, module: u64) -> Origin {
    let create = || {
        Ok::<Creation, Infallible>(match cache.find_content(&content(module)) {
            Some(same) => Creation::Same(same),
            None => Creation::New(NewEntry {
                content: Some(content(module)),
                ..new_entry(module, 1000)
            }),
        })
    };
    let (entry, origin) = cache.get_or_create(&key(number), create, never).expect("infallible");
    assert_eq!(entry.key, key(number));
    assert_eq!(entry.content, Some(content(module)));
    assert_eq!(entry.payload, payload(module, 1000));
    origin
}

const CREATED: Origin = Origin::Created { on_disk: true };

#[test]
fn same_module_is_not_compiled_again() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(compile(&open(directory.path()), 1, 1), CREATED);
    let cache = open(directory.path());
    assert_eq!(compile(&cache, 2, 1), Origin::Content);
    assert_eq!(compile(&cache, 3, 3), CREATED);
    assert_eq!((cache.stats().created, cache.stats().content_hits), (1, 1));
    // From now on the entry is found like any other.
    assert_eq!(compile(&cache, 2, 1), Origin::Memory);
    assert_eq!(compile(&open(directory.path()), 2, 1), Origin::Disk);
    assert_eq!(names(directory.path(), "content").len(), 2);
}

#[test]
fn damaged_or_swapped_contents_are_set_aside() {
    let directory = tempfile::tempdir().expect("a directory");
    compile(&open(directory.path()), 1, 1);
    compile(&open(directory.path()), 2, 2);
    // Stores the code of another module under this module's name.
    fs::remove_file(content_path(directory.path(), 1)).expect("a link");
    fs::copy(entry_path(directory.path(), 2), content_path(directory.path(), 1)).expect("a copy");
    let cache = open(directory.path());
    assert_eq!(warnings(|| assert!(cache.find_content(&content(1)).is_none())), 1);
    assert_eq!(cache.stats().bad_entries, 1);
    assert_eq!(names(directory.path(), "bad").len(), 1);
    assert_eq!(compile(&cache, 11, 1), CREATED);
    assert_eq!(compile(&cache, 12, 1), Origin::Content);
}

/// A damaged file is reported once, whatever names it has.
#[test]
fn damage_is_reported_once() {
    let directory = tempfile::tempdir().expect("a directory");
    compile(&open(directory.path()), 1, 1);
    let entry = entry_path(directory.path(), 1);
    let mut bytes = fs::read(&entry).expect("an entry");
    *bytes.last_mut().expect("not empty") ^= 1;
    // Written in place, so the damage is under both names.
    fs::write(&entry, bytes).expect("our own file");
    let cache = open(directory.path());
    assert_eq!(warnings(|| assert_eq!(compile(&cache, 1, 1), CREATED)), 1);
    assert_eq!(
        (cache.stats().bad_entries, names(directory.path(), "bad").len()),
        (1, 1)
    );
    assert_eq!(compile(&open(directory.path()), 2, 1), Origin::Content);
}

/// What was rejected under one key must not come back through the other.
#[test]
fn rejecting_an_entry_rejects_its_content() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open(directory.path());
    compile(&cache, 1, 1);
    cache.reject(&key(1), &std::io::Error::other("the runtime does not load it"));
    assert!(cache.find_content(&content(1)).is_none());
    assert_eq!(compile(&cache, 1, 1), CREATED);
    assert!(cache.find_content(&content(1)).is_some());
}
