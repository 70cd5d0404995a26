//! Kills processes at any moment. Each leaves only whole entries, free locks, and files that a
//! sweep removes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{entry_path, key, memory_only, names, never, new_entry, open, payload, warnings};
use crate::processes::start;
use rotini_cache::{
    Cache, CacheConfig, CompiledFor, ContentInputs, ContentKey, CreateError, Creation, Failure, NewEntry, admin,
};

const PAYLOAD: usize = 300_000;
const KEYS: u64 = 50;
const KILLS: usize = 300;
const AT_ONCE: usize = 3;

/// Returns the content key of entry `number`. Two keys share each module.
fn content(number: u64) -> ContentKey {
    ContentKey::of(&ContentInputs {
        mlir: &(number / 2).to_le_bytes(),
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        flags: &[],
        compiler: "test",
    })
}

/// Returns the code of entry `number`, which depends on its module only.
fn code(number: u64) -> Vec<u8> {
    payload(number / 2, PAYLOAD)
}

/// Publishes without end, as fast as possible: takes locks, searches content keys, writes, links,
/// remembers failures and sweeps.
pub(crate) fn publish(directory: &Path) {
    for number in 0.. {
        let number = number % KEYS;
        // Opened each time, with room for half of the entries, so that every publication also
        // sweeps.
        let cache = Cache::open(CacheConfig {
            dir: Some(directory.to_owned()),
            memory_bytes: 0,
            disk_bytes: KEYS / 2 * PAYLOAD as u64,
            ..memory_only()
        });
        if number % 10 == 9 {
            let fails = || Err::<NewEntry, _>("no");
            let failed = cache.get_or_create(&key(KEYS + number), fails, |error| {
                Some(Failure::new((*error).to_owned(), Failure::LONGEST))
            });
            assert!(matches!(
                failed,
                Err(CreateError::Failed(_) | CreateError::Remembered(_))
            ));
        }
        let create = || {
            Ok::<Creation, Infallible>(match cache.find_content(&content(number)) {
                Some(same) => Creation::Same(same),
                None => Creation::New(NewEntry {
                    content: Some(content(number)),
                    payload: code(number).into(),
                    ..new_entry(number, 0)
                }),
            })
        };
        let (entry, _) = cache.get_or_create(&key(number), create, never).expect("infallible");
        assert_eq!(entry.payload, code(number));
    }
}

#[test]
fn three_hundred_kills_leave_whole_entries_and_no_lock() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut temporaries, mut locks) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..KILLS / AT_ONCE {
        let mut writers: Vec<_> = (0..AT_ONCE).map(|_| start("publish", directory.path())).collect();
        for writer in &mut writers {
            // Intervals that have no period in common with the writers' operations.
            thread::sleep(Duration::from_micros(2_000 + 1_733 * (round as u64 % 17)));
            writer.kill().expect("a child of ours");
        }
        for mut writer in writers {
            let status = writer.wait().expect("a child of ours");
            assert_eq!(status.code(), None, "the writer ended by itself: {status}");
        }
        temporaries.extend(names(directory.path(), "tmp"));
        locks.extend(names(directory.path(), "lock"));
    }
    // Otherwise the test would not have hit the moments that it is about.
    assert!(!temporaries.is_empty(), "no writer was killed while publishing");
    assert!(!locks.is_empty(), "no writer was killed with a lock");
    let entries = names(directory.path(), "entry").len();
    assert!(entries > 0, "no writer came as far as publishing");

    let verified = admin::verify(directory.path()).expect("a directory");
    assert_eq!(verified.len(), entries);
    for verdict in verified {
        assert!(verdict.result.is_ok(), "{verdict:?}");
    }
    let cache = open(directory.path());
    let warned = warnings(|| {
        for number in 0..KEYS {
            let stored = entry_path(directory.path(), number).exists();
            let entry = cache.peek(&key(number));
            assert_eq!(entry.is_some(), stored, "{number}");
            if let Some(entry) = entry {
                assert_eq!(entry.payload, code(number));
            }
            if let Some(entry) = cache.find_content(&content(number)) {
                assert_eq!(entry.payload, code(number));
            }
        }
    });
    assert_eq!(warned, 0);
    assert_eq!(cache.stats().bad_entries, 0);
    assert!(names(directory.path(), "bad").is_empty());

    // Every lock can be acquired at once, whichever process left it.
    let started = Instant::now();
    let fresh = |number: u64| Ok::<_, Infallible>(new_entry(number, 10));
    for number in 0..KEYS {
        cache
            .get_or_create(&key(number), || fresh(number), never)
            .expect("infallible");
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());

    // Simulates that a day has passed.
    for name in names(directory.path(), "tmp") {
        let yesterday = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        File::options()
            .write(true)
            .open(directory.path().join(name))
            .and_then(|file| file.set_modified(yesterday))
            .expect("our own file");
    }
    admin::gc(directory.path(), u64::MAX)
        .expect("a directory")
        .expect("alone");
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory")
        .map(|item| item.expect("an item").file_name())
        .filter(|name| {
            let name = name.to_string_lossy();
            !["entry", "content", "failed"].iter().any(|known| name.ends_with(known))
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
