//! A writer that is killed at any moment leaves no entry that is not whole.
//!
//! The writers are this test program itself, started again with a folder in the environment, publishing without end.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{entry_path, key, names, new_entry, open, payload, warnings};
use rotini_cache::{Cache, CacheConfig};

const FOLDER: &str = "ROTINI_TEST_KILL_FOLDER";
const PAYLOAD: usize = 300_000;
const KEYS: u64 = 50;

#[test]
#[ignore = "not a test: what `start_writer` starts"]
fn writer() {
    let folder = std::env::var_os(FOLDER).expect("started by `start_writer`");
    let folder = Path::new(&folder);
    for number in 0.. {
        let number = number % KEYS;
        // Opened each time, with room for half: every publication also sweeps.
        let cache = Cache::open(CacheConfig {
            dir: Some(folder.to_owned()),
            memory_bytes: 0,
            disk_bytes: KEYS / 2 * PAYLOAD as u64,
        });
        let (entry, _) = cache
            .get_or_create(&key(number), || {
                Ok::<_, std::convert::Infallible>(new_entry(number, PAYLOAD))
            })
            .expect("infallible");
        assert_eq!(entry.payload, payload(number, PAYLOAD));
    }
}

fn start_writer(folder: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "kill::writer", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program again")
}

#[test]
fn killed_writers_leave_only_whole_entries() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0_u64..40 {
        let mut writers = [start_writer(folder.path()), start_writer(folder.path())];
        // Times that share no period with anything the writers do.
        thread::sleep(Duration::from_micros(8_000 + 1_733 * (round % 17)));
        for writer in &mut writers {
            writer.kill().expect("a child of ours");
            let status = writer.wait().expect("a child of ours");
            assert_eq!(status.code(), None, "the writer ended by itself: {status}");
        }
    }
    let entries = names(folder.path(), "entry").len();
    assert!(entries > 0, "no writer came as far as publishing");
    // Without this the test would not have met the moment it is about.
    assert!(
        !names(folder.path(), "tmp").is_empty(),
        "no writer was killed while publishing"
    );

    let cache = open(folder.path());
    let warned = warnings(|| {
        for number in 0..KEYS {
            let stored = entry_path(folder.path(), number).exists();
            let entry = cache.peek(&key(number));
            assert_eq!(entry.is_some(), stored, "{number}");
            if let Some(entry) = entry {
                assert_eq!(entry.payload, payload(number, PAYLOAD));
            }
        }
    });
    assert_eq!(warned, 0);
    assert_eq!(cache.stats().disk_hits, entries as u64);
    assert_eq!(cache.stats().bad_entries, 0);
    assert!(names(folder.path(), "bad").is_empty());
}
