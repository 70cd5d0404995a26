//! Creations that failed and would fail again: they are remembered in memory and in the directory,
//! with a bounded number and lifetime.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::common::{fetch, key, memory_only, names, never, new_entry, open, warnings};
use rotini_cache::{Cache, CreateError, Failure, NewEntry, Origin, admin};

fn failed_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{}.failed", key(number)))
}

/// Tries to create entry `number` and returns whether the attempt was made.
fn attempt(cache: &Cache, number: u64, is_lasting: bool) -> bool {
    attempt_for(cache, number, is_lasting.then_some(Failure::LONGEST))
}

/// The same with a failure of a given lifetime.
fn attempt_for(cache: &Cache, number: u64, lifetime: Option<Duration>) -> bool {
    let fails = || Err::<NewEntry, _>(format!("error {number}"));
    let lasting = |error: &String| lifetime.map(|lifetime| Failure::new(error.clone(), lifetime));
    match cache.get_or_create(&key(number), fails, lasting) {
        Err(CreateError::Failed(_)) => true,
        Err(CreateError::Remembered(failure)) => {
            assert_eq!(failure.reason, format!("error {number}"));
            false
        }
        Ok(_) => panic!("made"),
    }
}

#[test]
fn lasting_failures_are_not_repeated_and_others_are() {
    let cache = Cache::open(memory_only());
    assert!(attempt(&cache, 1, false));
    assert!(cache.failure(&key(1)).is_none());
    assert!(attempt(&cache, 1, true));
    assert_eq!(cache.failure(&key(1)).expect("remembered").reason, "error 1");
    assert!(!attempt(&cache, 1, true));
    assert_eq!((cache.stats().failed, cache.stats().remembered), (2, 1));
    assert!(cache.failure(&key(2)).is_none());
}

#[test]
fn other_processes_know_of_a_failure_for_a_day() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(attempt(&open(directory.path()), 1, true));
    assert!(!attempt(&open(directory.path()), 1, true));
    let other = open(directory.path());
    let failure = other.failure(&key(1)).expect("remembered");
    assert_eq!(failure.reason, "error 1");
    assert!(failure.since.elapsed().expect("past") < Duration::from_secs(60));
    admin::clear(directory.path()).expect("a directory");
    assert!(attempt(&open(directory.path()), 1, true));
}

/// After the lifetime of a failure, in memory and in the directory, this process and another one
/// try again.
#[test]
fn a_failure_counts_for_as_long_as_it_says() {
    const SHORT: Duration = Duration::from_secs(2);
    let directory = tempfile::tempdir().expect("a directory");
    let (cache, other, late) = (open(directory.path()), open(directory.path()), open(directory.path()));
    let start = Instant::now();
    assert!(attempt_for(&cache, 1, Some(SHORT)));
    let is_remembered = [&cache, &other].map(|cache| cache.failure(&key(1)).is_some());
    // False only if the machine was so busy that the lifetime is over.
    assert!(is_remembered == [true; 2] || start.elapsed() >= Duration::from_secs(1));
    // The file stores whole seconds.
    std::thread::sleep(SHORT + Duration::from_secs(1));
    for cache in [&cache, &other, &late] {
        assert!(cache.failure(&key(1)).is_none());
    }
    assert!(attempt(&other, 1, true));
}

/// The time in the file counts, which is under its checksum. The file is written here by hand, as
/// the module documents it.
#[test]
fn failures_expire() {
    #[derive(serde::Serialize)]
    struct Record {
        format: u32,
        key: [u8; 32],
        reason: String,
        since_unix: u64,
        lifetime_seconds: u64,
    }
    const HOUR: i64 = 3600;
    const DAY: u64 = 24 * 3600;
    let directory = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after the epoch")
        .as_secs();
    for (age, lifetime, expected) in [
        (0, DAY, true),
        (23 * HOUR, DAY, true),
        (25 * HOUR, DAY, false),
        (-25 * HOUR, DAY, false),
        // No failure counts for longer than a day.
        (25 * HOUR, u64::MAX, false),
        (60, 300, true),
        (HOUR, 300, false),
        (-HOUR, 300, false),
    ] {
        let mut bytes = postcard::to_stdvec(&Record {
            format: 2,
            key: *key(1).as_bytes(),
            reason: "error 1".to_owned(),
            since_unix: now.checked_add_signed(-age).expect("a time"),
            lifetime_seconds: lifetime,
        })
        .expect("small");
        let hash = blake3::hash(&bytes);
        bytes.extend(hash.as_bytes());
        fs::write(failed_path(directory.path(), 1), bytes).expect("our own file");
        assert_eq!(
            open(directory.path()).failure(&key(1)).is_some(),
            expected,
            "{age}, {lifetime}"
        );
    }
}

#[test]
fn damaged_or_foreign_failures_are_ignored() {
    let directory = tempfile::tempdir().expect("a directory");
    attempt(&open(directory.path()), 1, true);
    let intact = fs::read(failed_path(directory.path(), 1)).expect("stored");
    fs::write(failed_path(directory.path(), 2), &intact).expect("our own file");
    assert!(open(directory.path()).failure(&key(2)).is_none());
    for position in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[position] ^= 4;
        fs::write(failed_path(directory.path(), 1), damaged).expect("our own file");
        assert!(open(directory.path()).failure(&key(1)).is_none(), "byte {position}");
        fs::write(failed_path(directory.path(), 1), &intact[..position]).expect("our own file");
        assert!(open(directory.path()).failure(&key(1)).is_none(), "{position} bytes");
    }
    fs::write(failed_path(directory.path(), 1), vec![0; 1 << 20]).expect("our own file");
    assert!(attempt(&open(directory.path()), 1, true));
    assert!(!attempt(&open(directory.path()), 1, true));
}

#[test]
fn an_entry_counts_more_than_a_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    attempt(&open(directory.path()), 1, true);
    let failed = fs::read(failed_path(directory.path(), 1)).expect("stored");
    fs::remove_file(failed_path(directory.path(), 1)).expect("our own file");
    fetch(&open(directory.path()), 1);
    // Simulates another process that, without locks, failed after this one had succeeded.
    fs::write(failed_path(directory.path(), 1), failed).expect("our own file");
    let cache = open(directory.path());
    assert!(cache.failure(&key(1)).is_none());
    assert_eq!(fetch(&open(directory.path()), 1), Origin::Disk);
}

#[test]
fn memory_and_directory_remember_a_bounded_number() {
    let directory = tempfile::tempdir().expect("a directory");
    attempt(&open(directory.path()), 0, true);
    let one = fs::read(failed_path(directory.path(), 0)).expect("stored");
    for number in 1..1100 {
        fs::write(failed_path(directory.path(), number), &one).expect("our own file");
    }
    attempt(&open(directory.path()), 2000, true);
    assert_eq!(names(directory.path(), "failed").len(), 1024);
    assert!(failed_path(directory.path(), 2000).exists());

    let cache = Cache::open(memory_only());
    for number in 0..1100 {
        attempt(&cache, number, true);
    }
    let known = (0..1100)
        .filter(|&number| cache.failure(&key(number)).is_some())
        .count();
    assert_eq!(known, 1024);
    assert!(cache.failure(&key(0)).is_none() && cache.failure(&key(1099)).is_some());
}

#[test]
fn reasons_are_cut_and_links_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open(directory.path());
    let victim = directory.path().join("victim");
    fs::write(&victim, "untouched").expect("our own file");
    std::os::unix::fs::symlink(&victim, failed_path(directory.path(), 1)).expect("a link");
    let long = || Err::<NewEntry, _>("\u{e4}".repeat(100_000));
    let warned = warnings(|| {
        let result = cache.get_or_create(&key(1), long, |error| {
            Some(Failure::new(error.clone(), Failure::LONGEST))
        });
        assert!(matches!(result, Err(CreateError::Failed(_))));
    });
    assert_eq!(warned, 0);
    assert_eq!(fs::read_to_string(&victim).expect("our own file"), "untouched");
    let failure = open(directory.path()).failure(&key(1)).expect("remembered");
    assert_eq!(failure.reason.len(), 2048);
    let create = || Ok::<_, Infallible>(new_entry(2, 10));
    assert!(cache.get_or_create(&key(2), create, never).is_ok());
}
