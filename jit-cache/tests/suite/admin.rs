//! Tests of the operations of the command on directories.

use std::fs::{self, File};
use std::io::Cursor;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{entry_path, fetch, key, names, open};
use crate::processes::wait_until;
use rotini_cache::admin::{self, AdminError};
use rotini_cache::{Failure, Key, NewEntry, Origin};

fn filled(entries: u64) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open(directory.path());
    for number in 0..entries {
        fetch(&cache, number);
    }
    directory
}

fn damage(dir: &Path, number: u64, position: impl Fn(usize) -> usize) {
    let path = entry_path(dir, number);
    let mut bytes = fs::read(&path).expect("stored");
    let position = position(bytes.len());
    bytes[position] ^= 1;
    fs::write(path, bytes).expect("our own file");
}

fn age(path: &Path, hours: u64) {
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)))
        .expect("our own file");
}

#[test]
fn list_shows_the_most_recently_used_first() {
    let directory = filled(3);
    damage(directory.path(), 1, |_| 20);
    for (number, hours) in [(0, 2), (1, 3), (2, 1)] {
        age(&entry_path(directory.path(), number), hours);
    }
    fs::write(directory.path().join("notes.txt"), "not ours").expect("a file");
    let listed = admin::list(directory.path()).expect("a directory");
    let keys: Vec<_> = listed.iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [key(2), key(0), key(1)]);
    let metadata = listed[0].metadata.as_ref().expect("intact");
    let facts = &metadata.facts;
    assert_eq!(
        (facts.workspace_bytes, facts.compiled_for.target.as_str()),
        (2, "gfx942")
    );
    assert!(listed[2].metadata.is_err());
    let size = fs::metadata(entry_path(directory.path(), 2)).expect("stored").len();
    assert_eq!(listed[0].bytes, size);
}

#[test]
fn stats_count_what_is_there() {
    let directory = filled(3);
    let cache = open(directory.path());
    cache.reject(&key(0), &std::io::Error::other("bad"));
    let fails = || Err::<NewEntry, _>("no");
    assert!(
        cache
            .get_or_create(&key(9), fails, |_| Some(Failure::new(
                "no".to_owned(),
                Failure::LONGEST
            )))
            .is_err()
    );
    fs::write(directory.path().join(".publish-1-2-3.tmp"), "").expect("a file");
    fs::write(directory.path().join(format!("{}.lock", key(5))), "").expect("a file");
    let stats = admin::stats(directory.path()).expect("a directory");
    let size = fs::metadata(entry_path(directory.path(), 1)).expect("stored").len();
    assert_eq!((stats.entries, stats.entry_bytes), (2, 2 * size));
    assert_eq!(stats.targets.get("gfx942"), Some(&(2, 2 * size)));
    assert_eq!((stats.bad, stats.bad_bytes), (1, size));
    assert_eq!((stats.failures, stats.temporaries, stats.locks), (1, 1, 1));
}

#[test]
fn verify_reads_everything_and_changes_nothing() {
    let directory = filled(4);
    damage(directory.path(), 1, |length| length - 1);
    damage(directory.path(), 2, |_| 100);
    let before = names(directory.path(), "entry");
    let verified = admin::verify(directory.path()).expect("a directory");
    let bad: Vec<_> = verified
        .iter()
        .filter(|verdict| verdict.result.is_err())
        .map(|verdict| verdict.key)
        .collect();
    assert_eq!(verified.len(), 4);
    assert!(
        bad.len() == 2 && bad.contains(&key(1)) && bad.contains(&key(2)),
        "{bad:?}"
    );
    assert_eq!(names(directory.path(), "entry").len(), before.len());
    assert!(names(directory.path(), "bad").is_empty());
}

#[test]
fn gc_keeps_to_the_limit_and_to_what_is_used() {
    let directory = filled(10);
    let size = fs::metadata(entry_path(directory.path(), 0)).expect("stored").len();
    for number in 0..10 {
        age(&entry_path(directory.path(), number), 100 - number);
    }
    assert_eq!(fetch(&open(directory.path()), 0), Origin::Disk);
    let temporary = directory.path().join(".publish-1-2-3.tmp");
    fs::write(&temporary, "").expect("a file");
    age(&temporary, 25);
    fs::write(directory.path().join(format!("{}.lock", key(5))), "").expect("a file");
    let swept = admin::gc(directory.path(), 3 * size)
        .expect("a directory")
        .expect("alone");
    assert_eq!((swept.entries, swept.bytes, swept.left_bytes), (7, 7 * size, 3 * size));
    assert_eq!((swept.temporaries, swept.locks), (1, 1));
    for (number, stays) in [(0, true), (1, false), (7, false), (8, true), (9, true)] {
        assert_eq!(entry_path(directory.path(), number).exists(), stays, "{number}");
    }
}

/// An entry that is being created, and its lock, are not removed.
#[test]
fn gc_and_clear_leave_what_is_locked() {
    let directory = filled(3);
    let lock_path = |number: u64| directory.path().join(format!("{}.lock", key(number)));
    let held = File::create(lock_path(1)).expect("a file");
    held.try_lock().expect("ours alone");
    fs::write(lock_path(2), "").expect("a file");
    admin::gc(directory.path(), 0).expect("a directory").expect("alone");
    assert_eq!(names(directory.path(), "entry"), [format!("{}.entry", key(1))]);
    assert_eq!(names(directory.path(), "lock"), [format!("{}.lock", key(1))]);
    let cleared = admin::clear(directory.path()).expect("a directory");
    assert_eq!(cleared.entries, 0);
    assert!(entry_path(directory.path(), 1).exists() && lock_path(1).exists());
    drop(held);
    assert_eq!(admin::clear(directory.path()).expect("a directory").entries, 1);
    assert!(names(directory.path(), "entry").is_empty() && names(directory.path(), "lock").is_empty());
}

#[test]
fn only_one_sweeps_at_a_time() {
    let directory = filled(3);
    let held = File::create(directory.path().join(".sweep.lock")).expect("a file");
    held.try_lock().expect("ours alone");
    assert_eq!(admin::gc(directory.path(), 0).expect("a directory"), None);
    // Publishing does not wait for the lock.
    fetch(&open(directory.path()), 7);
    assert_eq!(names(directory.path(), "entry").len(), 4);
    drop(held);
    let swept = admin::gc(directory.path(), 0).expect("a directory").expect("alone");
    assert_eq!(swept.entries, 4);
}

#[test]
fn clear_leaves_what_is_not_ours() {
    let directory = filled(3);
    open(directory.path()).reject(&key(0), &std::io::Error::other("bad"));
    let other = directory.path().join("compilers");
    fs::write(&other, "iree").expect("a file");
    assert_eq!(admin::clear(directory.path()).expect("a directory").entries, 3);
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("the directory")
        .map(|item| item.expect("an item").path())
        .collect();
    assert_eq!(left, [other]);
}

fn archive(dir: &Path, keys: Option<&[Key]>) -> Vec<u8> {
    let mut archive = Vec::new();
    admin::export(dir, keys, &mut archive).expect("exported");
    archive
}

#[test]
fn what_is_exported_can_be_imported() {
    let directory = filled(5);
    let all = archive(directory.path(), None);
    assert_eq!(archive(directory.path(), None), all, "not the same bytes again");
    let target = tempfile::tempdir().expect("a directory");
    let dir = target.path().join("new");
    let imported = admin::import(&dir, all.as_slice()).expect("imported");
    assert_eq!((imported.added, imported.present, imported.refused.len()), (5, 0, 0));
    let imported = admin::import(&dir, all.as_slice()).expect("imported");
    assert_eq!((imported.added, imported.present), (0, 5));
    for number in 0..5 {
        assert_eq!(fetch(&open(&dir), number), Origin::Disk);
    }
    let two = archive(directory.path(), Some(&[key(3), key(1)]));
    let dir = target.path().join("two");
    assert_eq!(admin::import(&dir, two.as_slice()).expect("imported").added, 2);
    // The archive is readable by other programs.
    let mut archive = tar::Archive::new(two.as_slice());
    let members = archive.entries().expect("an archive").count();
    assert_eq!(members, 2);
}

/// Imports into a directory that is shipped, so its readers may be other users.
#[test]
fn imports_can_be_read_by_whoever_can_read_the_directory() {
    let all = archive(filled(1).path(), None);
    let target = tempfile::tempdir().expect("a directory");
    for (directory_mode, file_mode) in [(0o700, 0o600), (0o750, 0o640), (0o755, 0o644)] {
        let dir = target.path().join(format!("{directory_mode:o}"));
        fs::create_dir(&dir).expect("a directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(directory_mode)).expect("our own directory");
        assert_eq!(admin::import(&dir, all.as_slice()).expect("imported").added, 1);
        let metadata = fs::metadata(entry_path(&dir, 0)).expect("stored");
        assert_eq!(metadata.permissions().mode() & 0o7777, file_mode);
    }
}

#[test]
fn what_is_missing_or_damaged_is_not_exported() {
    let directory = filled(2);
    let export = |keys: &[Key]| admin::export(directory.path(), Some(keys), Vec::new());
    assert!(matches!(export(&[key(7)]), Err(AdminError::Export { key: missing, .. }) if missing == key(7)));
    damage(directory.path(), 1, |length| length - 1);
    assert!(matches!(export(&[key(1)]), Err(AdminError::Export { .. })));
    assert!(export(&[key(0)]).is_ok());
    assert!(admin::export(directory.path(), None, Vec::new()).is_err());
}

/// An archive from an unknown source: paths that lead out of the directory, links, other keys'
/// entries, damage, a missing end.
#[test]
fn archives_are_not_believed() {
    let directory = filled(3);
    let bytes = |number: u64| fs::read(entry_path(directory.path(), number)).expect("stored");
    let name = |number: u64| format!("{}.entry", key(number));
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        // The headers are written by hand, since the library refuses to write some of these.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        if kind == tar::EntryType::Symlink {
            header.set_link_name("/etc/passwd").expect("short");
        }
        header.set_cksum();
        builder.append(&header, bytes).expect("written");
    };
    let regular = tar::EntryType::Regular;
    add(&format!("../{}", name(0)), regular, &bytes(0));
    add(&format!("/tmp/{}", name(0)), regular, &bytes(0));
    add("notes.txt", regular, b"hello");
    add(&name(0), tar::EntryType::Symlink, b"");
    add(&name(0), tar::EntryType::Fifo, b"");
    add(&name(0), regular, &bytes(1));
    let mut damaged = bytes(0);
    damaged[200] ^= 1;
    add(&name(0), regular, &damaged);
    // Another name for the next member: not trusted, and not even read.
    add("././@LongLink", tar::EntryType::GNULongName, b"other.entry\0");
    add(&name(2), regular, &bytes(2));
    add("./PaxHeaders", tar::EntryType::XHeader, b"20 path=other.entry\n");
    add(&name(2), regular, &bytes(2));
    let archive = builder.into_inner().expect("written");

    let target = tempfile::tempdir().expect("a directory");
    let dir = target.path().join("cache");
    let imported = admin::import(&dir, archive.as_slice()).expect("read to its end");
    assert_eq!((imported.added, imported.present), (1, 1));
    assert_eq!(imported.refused.len(), 7, "{:?}", imported.refused);
    assert_eq!(names(&dir, "entry"), [name(2)]);
    assert_eq!(fs::read_dir(target.path()).expect("the directory").count(), 1);

    let whole = self::archive(directory.path(), None);
    let cut = Cursor::new(&whole[..whole.len() / 2]);
    assert!(matches!(admin::import(&dir, cut), Err(AdminError::Io { .. })));
    assert!(
        admin::verify(&dir)
            .expect("a directory")
            .iter()
            .all(|verdict| verdict.result.is_ok())
    );
}

#[test]
fn directories_are_neither_made_nor_trusted_for_looking() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    assert!(matches!(admin::list(&missing), Err(AdminError::Directory(_))));
    assert!(admin::gc(&missing, 0).is_err() && admin::clear(&missing).is_err());
    assert!(!missing.exists());
    let link: PathBuf = directory.path().join("link");
    let real = filled(1);
    symlink(real.path(), &link).expect("a link");
    assert_eq!(admin::list(&link).expect("a directory").len(), 1);
    wait_until("a sweep is done", || {
        admin::gc(&link, 0).expect("a directory").is_some()
    });
    assert!(names(real.path(), "entry").is_empty());
}
