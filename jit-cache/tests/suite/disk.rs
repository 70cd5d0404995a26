//! Tests of the disk tier from outside: persistence, trust and removal.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{entry_path, fetch, key, memory_only, names, never, new_entry, open, warnings};
use rotini_cache::{Cache, CacheConfig, DirectoryError, Distrust, Origin};

const CREATED: Origin = Origin::Created { on_disk: true };

fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}

#[test]
fn second_cache_finds_what_the_first_stored() {
    let directory = tempdir();
    let dir = directory.path().join("missing/rotini");
    assert_eq!(fetch(&open(&dir), 1), CREATED);
    assert_eq!(fs::metadata(&dir).expect("made").mode() & 0o7777, 0o700);
    assert_eq!(
        fs::metadata(entry_path(&dir, 1)).expect("stored").mode() & 0o7777,
        0o600
    );

    let cache = open(&dir);
    assert_eq!(fetch(&cache, 1), Origin::Disk);
    assert_eq!(fetch(&cache, 1), Origin::Memory);
    let stats = cache.stats();
    assert_eq!((stats.disk_hits, stats.memory_hits, stats.created), (1, 1, 0));
}

#[test]
fn peek_reads_memory_and_disk_and_creates_nothing() {
    let directory = tempdir();
    let cache = open(directory.path());
    assert!(cache.peek(&key(1)).is_none());
    fetch(&cache, 1);
    assert!(cache.peek(&key(1)).is_some());

    let cache = open(directory.path());
    let entry = cache.peek(&key(1)).expect("on disk");
    assert_eq!(entry.metadata.facts.workspace_bytes, 1);
    assert!(entry.metadata.created_unix > 1_700_000_000);
    assert_eq!(fetch(&cache, 1), Origin::Memory);
    assert_eq!(names(directory.path(), "entry").len(), 1);
}

/// Damages every byte of the file in turn, so that each region is hit: magic, format, lengths,
/// metadata, checksums, payload.
#[test]
fn damaged_entries_are_set_aside_with_one_warning_and_made_again() {
    let directory = tempdir();
    let path = entry_path(directory.path(), 1);
    fetch(&open(directory.path()), 1);
    let intact = fs::read(&path).expect("stored");
    for position in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[position] ^= 0x10;
        fs::write(&path, damaged).expect("our own file");
        let cache = open(directory.path());
        let warned = warnings(|| assert_eq!(fetch(&cache, 1), CREATED, "byte {position}"));
        assert_eq!(warned, 1, "byte {position}");
        assert_eq!(cache.stats().bad_entries, 1);
        assert_eq!(names(directory.path(), "bad"), [format!("{}.bad", key(1))]);
    }
    assert_eq!(fetch(&open(directory.path()), 1), Origin::Disk);
}

#[test]
fn truncated_and_extended_entries_are_made_again() {
    let directory = tempdir();
    let path = entry_path(directory.path(), 1);
    fetch(&open(directory.path()), 1);
    let intact = fs::read(&path).expect("stored");
    for length in [0, 7, 8, 15, 16, 40, intact.len() - 1001, intact.len() - 1] {
        fs::write(&path, &intact[..length]).expect("our own file");
        assert_eq!(fetch(&open(directory.path()), 1), CREATED, "{length} bytes");
    }
    fs::write(&path, [&intact[..], b"x"].concat()).expect("our own file");
    assert_eq!(fetch(&open(directory.path()), 1), CREATED);
}

#[test]
fn entry_under_another_name_is_not_believed() {
    let directory = tempdir();
    fetch(&open(directory.path()), 1);
    fs::copy(entry_path(directory.path(), 1), entry_path(directory.path(), 2)).expect("our own file");
    assert_eq!(fetch(&open(directory.path()), 2), CREATED);
    assert_eq!(fetch(&open(directory.path()), 1), Origin::Disk);
}

/// Only a plain file of this user is read as an entry: not a link, not a pipe that would block for
/// ever, not a directory, and not a file that others can write.
#[test]
fn only_plain_files_that_nobody_else_can_write_are_loaded() {
    let directory = tempdir();
    let path = entry_path(directory.path(), 1);
    let aside = directory.path().join("good");
    fetch(&open(directory.path()), 1);
    fs::rename(&path, &aside).expect("our own file");

    let plant: [(&str, &dyn Fn()); 4] = [
        ("link", &|| symlink(&aside, &path).expect("a link")),
        ("pipe", &|| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .expect("a pipe");
        }),
        ("directory", &|| fs::create_dir(&path).expect("a directory")),
        ("writable", &|| {
            fs::copy(&aside, &path).expect("a copy");
            set_mode(&path, 0o606);
        }),
    ];
    for (what, plant) in plant {
        let _ = fs::remove_file(&path);
        plant();
        let cache = open(directory.path());
        assert_eq!(fetch(&cache, 1), CREATED, "{what}");
        assert_eq!(cache.stats().bad_entries, 1, "{what}");
        assert_eq!(fetch(&open(directory.path()), 1), Origin::Disk, "{what}");
        // A directory cannot be replaced by the next file that is set aside.
        let bad = directory.path().join(format!("{}.bad", key(1)));
        let _ = fs::remove_dir(&bad).or_else(|_| fs::remove_file(&bad));
    }
}

#[test]
fn directory_that_others_can_write_is_refused() {
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        let directory = tempdir();
        let dir = directory.path().join("cache");
        fs::create_dir(&dir).expect("a directory");
        set_mode(&dir, mode);
        let mut cache = None;
        assert_eq!(warnings(|| cache = Some(open(&dir))), 1);
        let cache = cache.expect("opened");
        match cache.disk_error() {
            Some(DirectoryError::Untrusted {
                path,
                source: Distrust::Writable { mode: found },
            }) => {
                assert_eq!(*path, dir.canonicalize().expect("exists"));
                assert_eq!(*found, mode);
            }
            other => panic!("{other:?}"),
        }
        // Only the memory tier is used, and that suffices.
        assert_eq!(cache.dir(), None);
        assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
        assert_eq!(fetch(&cache, 1), Origin::Memory);
        assert!(names(&dir, "entry").is_empty());
    }
}

/// A user who can write a directory above can replace the cache's directory.
#[test]
fn directory_below_one_that_others_can_write_is_refused_unless_sticky() {
    let directory = tempdir();
    let above = directory.path().join("above");
    fs::create_dir(&above).expect("a directory");
    set_mode(&above, 0o777);
    assert!(matches!(
        open(&above.join("cache")).disk_error(),
        Some(DirectoryError::Untrusted { path, .. }) if *path == above.canonicalize().expect("exists")
    ));
    set_mode(&above, 0o1777);
    assert!(open(&above.join("cache")).disk_error().is_none());
}

#[test]
fn directory_of_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let directory = tempdir();
    let dir = directory.path().join("cache");
    fs::create_dir(&dir).expect("a directory");
    std::os::unix::fs::chown(&dir, Some(12_345), None).expect("root may");
    assert!(matches!(
        open(&dir).disk_error(),
        Some(DirectoryError::Untrusted {
            source: Distrust::Owner { owner: 12_345 },
            ..
        })
    ));
}

/// A link is followed once, when the cache is opened, and the directory that it leads to is
/// examined.
#[test]
fn link_to_a_directory_is_as_good_as_the_directory() {
    let directory = tempdir();
    let (good, bad) = (directory.path().join("good"), directory.path().join("bad"));
    for dir in [&good, &bad] {
        fs::create_dir(dir).expect("a directory");
    }
    set_mode(&bad, 0o777);
    let link = directory.path().join("link");
    symlink(&good, &link).expect("a link");
    let cache = open(&link);
    assert_eq!(cache.dir(), good.canonicalize().ok().as_deref());
    fs::remove_file(&link).expect("our own link");
    symlink(&bad, &link).expect("a link");
    assert_eq!(fetch(&cache, 1), CREATED);
    assert!(names(&bad, "entry").is_empty());
    assert!(open(&link).disk_error().is_some());
}

#[test]
fn unusable_directories_degrade_to_memory_with_one_warning() {
    let directory = tempdir();
    let file = directory.path().join("file");
    fs::write(&file, "not a directory").expect("our own file");
    for dir in [
        file.clone(),
        file.join("below"),
        PathBuf::from("/proc/rotini"),
        PathBuf::new(),
    ] {
        let warned = warnings(|| {
            let cache = open(&dir);
            assert!(cache.disk_error().is_some(), "{}", dir.display());
            for number in 0..10 {
                assert_eq!(fetch(&cache, number), Origin::Created { on_disk: false });
            }
        });
        assert_eq!(warned, 1, "{}", dir.display());
    }
}

/// The directory becomes unusable after it was opened: a file replaces it, so that even root cannot
/// write into it.
#[test]
fn directory_lost_while_running_is_one_warning_and_recovers() {
    let directory = tempdir();
    let dir = directory.path().join("cache");
    let cache = open(&dir);
    assert_eq!(fetch(&cache, 1), CREATED);

    // A removed directory is created again without a warning.
    fs::remove_dir_all(&dir).expect("our own directory");
    assert_eq!(warnings(|| assert_eq!(fetch(&cache, 2), CREATED)), 0);

    fs::remove_dir_all(&dir).expect("our own directory");
    fs::write(&dir, "in the way").expect("our own file");
    let warned = warnings(|| {
        for number in 3..10 {
            assert_eq!(fetch(&cache, number), Origin::Created { on_disk: false });
        }
    });
    assert_eq!(warned, 1);
    assert!(cache.stats().disk_errors >= 7);

    fs::remove_file(&dir).expect("our own file");
    assert_eq!(fetch(&cache, 10), CREATED);
}

#[test]
fn rejected_entries_are_made_again() {
    let directory = tempdir();
    let cache = open(directory.path());
    fetch(&cache, 1);
    let reason = io::Error::other("the runtime does not load it");
    assert_eq!(warnings(|| cache.reject(&key(1), &reason)), 1);
    assert!(cache.peek(&key(1)).is_none());
    assert_eq!(fetch(&cache, 1), CREATED);
    assert_eq!(cache.stats().bad_entries, 1);
}

/// Returns the size on disk of an entry that [`fetch`] creates.
fn entry_size() -> u64 {
    let directory = tempdir();
    fetch(&open(directory.path()), 1);
    let file = fs::metadata(entry_path(directory.path(), 1));
    file.expect("stored").len()
}

#[test]
fn least_recently_used_files_leave_first() {
    let directory = tempdir();
    let config = CacheConfig {
        dir: Some(directory.path().to_owned()),
        // Nothing fits into memory, so each use is a use of the disk.
        memory_bytes: 0,
        disk_bytes: 10 * entry_size() + entry_size() / 2,
        ..memory_only()
    };
    let cache = Cache::open(config.clone());
    for number in 0..10 {
        assert_eq!(fetch(&cache, number), CREATED);
    }
    assert_eq!(cache.stats().disk_evictions, 0);
    assert_eq!(fetch(&cache, 0), Origin::Disk);
    assert_eq!(fetch(&cache, 10), CREATED);
    assert_eq!(cache.stats().disk_evictions, 1);
    assert!(!entry_path(directory.path(), 1).exists());
    assert!(entry_path(directory.path(), 0).exists());

    // The first publication of another process keeps the bound too, whatever the directory holds.
    for number in 100..130 {
        fetch(&Cache::open(config.clone()), number);
        let sizes = names(directory.path(), "entry").len() as u64 * entry_size();
        assert!(sizes <= config.disk_bytes, "{sizes}");
    }
}

#[test]
fn bad_entries_leave_before_good_ones() {
    let directory = tempdir();
    let size = entry_size();
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        memory_bytes: 0,
        disk_bytes: 3 * size + size / 2,
        ..memory_only()
    });
    fetch(&cache, 1);
    fetch(&cache, 2);
    cache.reject(&key(2), &io::Error::other("bad"));
    fetch(&cache, 3);
    assert_eq!(names(directory.path(), "bad").len(), 1);
    fetch(&cache, 4);
    assert_eq!(names(directory.path(), "bad").len(), 0);
    assert_eq!(names(directory.path(), "entry").len(), 3);
}

#[test]
fn entry_larger_than_the_disk_tier_is_not_stored() {
    let directory = tempdir();
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        memory_bytes: 1 << 20,
        disk_bytes: 2000,
        ..memory_only()
    });
    assert_eq!(fetch(&cache, 1), CREATED);
    let (_, origin) = cache
        .get_or_create(&key(2), || Ok::<_, Infallible>(new_entry(2, 2000)), never)
        .expect("infallible");
    assert_eq!(origin, Origin::Created { on_disk: false });
    assert!(entry_path(directory.path(), 1).exists());
}

#[test]
fn sweep_takes_old_temporary_files_and_nothing_that_is_not_ours() {
    let directory = tempdir();
    let make = |name: &str, age: Duration| {
        let path = directory.path().join(name);
        let file = fs::File::create(&path).expect("a file");
        file.set_modified(SystemTime::now() - age).expect("a time");
        path
    };
    const HOUR: Duration = Duration::from_secs(3600);
    let old = make(".publish-abc123.tmp", 25 * HOUR);
    let kept = [
        make(".publish-def456.tmp", HOUR),
        make("notes.txt", 1000 * HOUR),
        make("other.entry", 1000 * HOUR),
        make(".tmp", 1000 * HOUR),
    ];
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        memory_bytes: 0,
        disk_bytes: entry_size(),
        ..memory_only()
    });
    fetch(&cache, 1);
    fetch(&cache, 2);
    assert!(!old.exists());
    for path in kept {
        assert!(path.exists(), "{}", path.display());
    }
}

/// Processes that start at the same time on a machine without a cache directory may all create it.
#[test]
fn several_may_make_the_directory_at_once() {
    for _ in 0..50 {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = directory.path().join("home/cache/rotini");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(open(&dir).dir().is_some()));
            }
        });
    }
}

/// If nothing can be stored, no process waits for another: there would be nothing to find
/// afterwards.
#[test]
fn nobody_waits_for_what_will_not_be_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let impatient = |dir: &Path, disk_bytes| {
        Cache::open(CacheConfig {
            dir: Some(dir.to_owned()),
            disk_bytes,
            patience: Duration::from_millis(200),
            ..memory_only()
        })
    };
    let lock = |dir: &Path, number: u64| {
        let file = fs::File::create(dir.join(format!("{}.lock", key(number)))).expect("a file");
        file.lock().expect("a lock");
        file
    };
    let (nothing, broken) = (directory.path().join("nothing"), directory.path().join("broken"));
    let cache = impatient(&nothing, 0);
    let _theirs = lock(&nothing, 1);
    assert_eq!(
        warnings(|| assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false })),
        0
    );

    let cache = impatient(&broken, 64 << 20);
    // Directories that are not empty block the file's name and the name for setting it aside.
    for extension in ["entry", "bad"] {
        fs::create_dir_all(broken.join(format!("{}.{extension}/full", key(1)))).expect("a directory");
    }
    let _theirs = [lock(&broken, 2), lock(&broken, 3)];
    assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
    let waits = |number, on_disk| warnings(|| assert_eq!(fetch(&cache, number), Origin::Created { on_disk }));
    assert_eq!(waits(2, true), 0);
    // Key 2 was stored, so this process waits for the lock of key 3 again, until its patience ends
    // with a warning.
    assert_eq!(waits(3, true), 1);
}
