//! File systems that take no writes: a small one that is full, and one that is read-only.
//!
//! They are mounted in a separate namespace of the processes that use them. If the system does not
//! allow that, the test is skipped and says so.

use std::path::Path;
use std::process::Command;

use crate::common::{fetch, key, memory_only, names, open, warnings};
use crate::processes::command;
use rotini_cache::{Cache, CacheConfig, Origin};

/// Entries have some thousand bytes; how many fit depends on the file system.
const SIZE: &str = "256k";
const ENTRIES: u64 = 300;
const STORED: u64 = 5;

/// Runs a script in a separate namespace. It consists of `mount` commands and roles (`$ROLES` with
/// the role's name before it).
fn in_namespace(what: &str, script: &str) {
    let allowed = Command::new("unshare")
        .args(["--mount", "--user", "--map-root-user", "sh", "-c"])
        .arg("mount -t tmpfs none /mnt")
        .output();
    match allowed {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("skipped: {what}: nothing can be mounted here: {}", reason.trim());
            return;
        }
        Err(error) => {
            eprintln!("skipped: {what}: unshare cannot be run: {error}");
            return;
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    // Arguments and environment of a role, which the script starts under another name.
    let role = command("ROLE", directory.path());
    let mut shell = Command::new("unshare");
    shell
        .args(["--mount", "--user", "--map-root-user", "sh", "-e", "-c"])
        .arg(format!(
            "role() {{ name=$1; shift; ROTINI_TEST_ROLE=$name \"$@\"; }}; dir=$1; shift; {script}"
        ))
        .arg("sh")
        .arg(directory.path())
        .arg(role.get_program())
        .args(role.get_args())
        .envs(role.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().expect("as before");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn full_file_system_degrades_to_memory_with_one_warning() {
    in_namespace(
        "a full file system",
        &format!("mount -t tmpfs -o size={SIZE},mode=700 none $dir; role full \"$@\""),
    );
}

pub(crate) fn full(directory: &Path) {
    let cache = open(directory);
    let warned = warnings(|| {
        for number in 0..ENTRIES {
            fetch(&cache, number);
        }
    });
    let stored = names(directory, "entry").len() as u64;
    assert!(
        0 < stored && stored < ENTRIES,
        "{stored} stored: the file system never was full"
    );
    assert_eq!(warned, 1);
    assert!(names(directory, "tmp").is_empty() && names(directory, "lock").is_empty());
    for number in 0..ENTRIES {
        assert_eq!(fetch(&cache, number), Origin::Memory);
    }
    // The stored entries are whole, and the next process can use them.
    let next = open(directory);
    let found = (0..ENTRIES).filter(|&number| next.peek(&key(number)).is_some()).count();
    assert_eq!(found as u64, stored);
    assert_eq!(next.stats().bad_entries, 0);

    // With a bound that fits on the file system, no write fails.
    rotini_cache::admin::clear(directory).expect("our own directory");
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.to_owned()),
        disk_bytes: 50_000,
        ..memory_only()
    });
    let warned = warnings(|| {
        for number in 0..ENTRIES {
            assert_eq!(fetch(&cache, number), Origin::Created { on_disk: true });
        }
    });
    assert_eq!(warned, 0);
}

#[test]
fn read_only_file_system_is_read_with_one_warning_where_something_is_missing() {
    in_namespace(
        "a read-only file system",
        "mount -t tmpfs -o mode=700 none $dir; role fill \"$@\"; mount -o remount,ro $dir; role read-only \"$@\"",
    );
}

pub(crate) fn fill(directory: &Path) {
    for number in 0..STORED {
        assert_eq!(fetch(&open(directory), number), Origin::Created { on_disk: true });
    }
}

pub(crate) fn read_only(directory: &Path) {
    assert!(std::fs::write(directory.join("file"), "").is_err(), "it can be written");
    let warned = warnings(|| {
        let cache = open(directory);
        assert!(cache.disk_error().is_none());
        for number in 0..STORED {
            assert_eq!(fetch(&cache, number), Origin::Disk);
        }
    });
    assert_eq!(warned, 0);
    let cache = open(directory);
    let warned = warnings(|| {
        for number in STORED..STORED + 10 {
            assert_eq!(fetch(&cache, number), Origin::Created { on_disk: false });
        }
    });
    assert_eq!(warned, 1);
    assert_eq!(fetch(&cache, STORED), Origin::Memory);
}
