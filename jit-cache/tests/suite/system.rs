//! Directories that come with a system: searched after the user's own, never written, trusted no
//! more than any other.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use crate::common::{entry_path, fetch, key, memory_only, names, never, new_entry, open, warnings};
use rotini_cache::{Cache, CacheConfig, CompiledFor, ContentInputs, ContentKey, NewEntry, Origin};

const CREATED: Origin = Origin::Created { on_disk: true };

fn over(own: &Path, system: &[&Path]) -> Cache {
    Cache::open(CacheConfig {
        dir: Some(own.to_owned()),
        system_dirs: system.iter().map(|&dir| dir.to_owned()).collect(),
        ..memory_only()
    })
}

/// Returns the properties of the files in a directory that writing would change.
fn look(dir: &Path) -> Vec<(String, u64, SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("the directory")
        .map(|item| {
            let item = item.expect("an item");
            let metadata = item.metadata().expect("a file");
            let name = item.file_name().into_string().expect("a name of ours");
            (name, metadata.ino(), metadata.modified().expect("a time"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn own_directory_then_system_directories_in_order() {
    let directories: Vec<_> = (0..3).map(|_| tempfile::tempdir().expect("a directory")).collect();
    let [own, first, second] = [0, 1, 2].map(|index: usize| directories[index].path());
    fetch(&open(first), 1);
    fetch(&open(second), 1);
    fetch(&open(second), 2);
    let before = [look(first), look(second)];

    let cache = over(own, &[first, second]);
    assert_eq!(fetch(&cache, 1), Origin::Disk);
    assert_eq!(fetch(&cache, 2), Origin::Disk);
    assert_eq!(fetch(&cache, 3), CREATED);
    assert_eq!(names(own, "entry").len(), 1);
    assert_eq!([look(first), look(second)], before);

    // Without a directory of the user the result is the same.
    let cache = Cache::open(CacheConfig {
        system_dirs: vec![second.to_owned()],
        ..memory_only()
    });
    assert_eq!(fetch(&cache, 2), Origin::Disk);
    assert_eq!(fetch(&cache, 3), Origin::Created { on_disk: false });
}

#[test]
fn bad_entries_of_a_system_directory_stay_and_are_made_in_the_own() {
    let (own, system) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    for number in 1..5 {
        fetch(&open(system.path()), number);
        let path = entry_path(system.path(), number);
        let mut bytes = fs::read(&path).expect("stored");
        *bytes.last_mut().expect("bytes") ^= 1;
        fs::write(&path, bytes).expect("our own file");
    }
    let before = look(system.path());
    let cache = over(own.path(), &[system.path()]);
    let warned = warnings(|| {
        for number in 1..5 {
            assert_eq!(fetch(&cache, number), CREATED);
        }
    });
    assert_eq!(warned, 1);
    assert_eq!(cache.stats().bad_entries, 4);
    assert_eq!(look(system.path()), before);
    assert_eq!(fetch(&over(own.path(), &[system.path()]), 1), Origin::Disk);
}

#[test]
fn system_directories_are_trusted_like_any_other_and_never_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let (own, missing, open_to_all) = (
        directory.path().join("own"),
        directory.path().join("missing"),
        directory.path().join("open"),
    );
    fetch(&open(&open_to_all), 1);
    fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o777)).expect("our own directory");
    let warned = warnings(|| {
        assert_eq!(fetch(&over(&own, &[&missing, &open_to_all]), 1), CREATED);
    });
    assert_eq!(warned, 2);
    assert!(!missing.exists());
}

/// A directory that is to be shipped can be read by all, whatever the umask of the process that
/// fills it.
#[test]
fn directories_to_be_shipped_are_readable_by_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let above = directory.path().join("above");
    let dir = above.join("shipped");
    let cache = Cache::open(CacheConfig {
        dir: Some(dir.clone()),
        readable_by_all: true,
        ..memory_only()
    });
    fetch(&cache, 1);
    let mode = |path: &Path| fs::metadata(path).expect("made").mode() & 0o7777;
    assert_eq!(mode(&dir), 0o755);
    let plain = directory.path().join("plain");
    fs::DirBuilder::new().mode(0o755).create(&plain).expect("made");
    assert_eq!(mode(&above), mode(&plain));
    assert_eq!(mode(&entry_path(&dir, 1)), 0o644);
    assert!(over(&directory.path().join("own"), &[&dir]).peek(&key(1)).is_some());
}

/// A rejected entry that cannot be moved aside must not be returned again, neither under its key
/// nor under its content key.
#[test]
fn rejected_entries_of_system_directories_are_passed_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let (own, shipped) = (directory.path().join("own"), directory.path().join("shipped"));
    let content = ContentKey::of(&ContentInputs {
        mlir: b"module {}",
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        flags: &[],
        compiler: "test",
    });
    let make = || {
        Ok::<_, std::convert::Infallible>(NewEntry {
            content: Some(content),
            ..new_entry(1, 1000)
        })
    };
    open(&shipped).get_or_create(&key(1), make, never).expect("infallible");
    let before = look(&shipped);
    for own in [Some(own), None] {
        let config = CacheConfig {
            dir: own,
            system_dirs: vec![shipped.clone()],
            ..memory_only()
        };
        let cache = Cache::open(config.clone());
        assert_eq!(fetch(&cache, 1), Origin::Disk);
        cache.reject(&key(1), &std::io::Error::other("not for this runtime"));
        assert!(cache.peek(&key(1)).is_none() && cache.find_content(&content).is_none());
        let on_disk = config.dir.is_some();
        assert_eq!(fetch(&cache, 1), Origin::Created { on_disk });
        assert_eq!(fetch(&cache, 1), Origin::Memory);
    }
    assert_eq!(look(&shipped), before);
}
