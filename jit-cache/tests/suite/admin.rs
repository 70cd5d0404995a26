//! What the command does to folders.

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
    let folder = tempfile::tempdir().expect("a folder");
    let cache = open(folder.path());
    for number in 0..entries {
        fetch(&cache, number);
    }
    folder
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
    let folder = filled(3);
    damage(folder.path(), 1, |_| 20);
    for (number, hours) in [(0, 2), (1, 3), (2, 1)] {
        age(&entry_path(folder.path(), number), hours);
    }
    fs::write(folder.path().join("notes.txt"), "not ours").expect("a file");
    let listed = admin::list(folder.path()).expect("a folder");
    let keys: Vec<_> = listed.iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [key(2), key(0), key(1)]);
    let metadata = listed[0].metadata.as_ref().expect("intact");
    assert_eq!((metadata.workspace_bytes, metadata.target.as_str()), (2, "gfx942"));
    assert!(listed[2].metadata.is_err());
    let size = fs::metadata(entry_path(folder.path(), 2)).expect("stored").len();
    assert_eq!(listed[0].bytes, size);
}

#[test]
fn stats_count_what_is_there() {
    let folder = filled(3);
    let cache = open(folder.path());
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
    fs::write(folder.path().join(".publish-1-2-3.tmp"), "").expect("a file");
    fs::write(folder.path().join(format!("{}.lock", key(5))), "").expect("a file");
    let stats = admin::stats(folder.path()).expect("a folder");
    let size = fs::metadata(entry_path(folder.path(), 1)).expect("stored").len();
    assert_eq!((stats.entries, stats.entry_bytes), (2, 2 * size));
    assert_eq!(stats.targets.get("gfx942"), Some(&(2, 2 * size)));
    assert_eq!((stats.bad, stats.bad_bytes), (1, size));
    assert_eq!((stats.failures, stats.temporaries, stats.locks), (1, 1, 1));
}

#[test]
fn verify_reads_everything_and_changes_nothing() {
    let folder = filled(4);
    damage(folder.path(), 1, |length| length - 1);
    damage(folder.path(), 2, |_| 100);
    let before = names(folder.path(), "entry");
    let verified = admin::verify(folder.path()).expect("a folder");
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
    assert_eq!(names(folder.path(), "entry").len(), before.len());
    assert!(names(folder.path(), "bad").is_empty());
}

#[test]
fn gc_keeps_to_the_limit_and_to_what_is_used() {
    let folder = filled(10);
    let size = fs::metadata(entry_path(folder.path(), 0)).expect("stored").len();
    for number in 0..10 {
        age(&entry_path(folder.path(), number), 100 - number);
    }
    assert_eq!(fetch(&open(folder.path()), 0), Origin::Disk);
    let temporary = folder.path().join(".publish-1-2-3.tmp");
    fs::write(&temporary, "").expect("a file");
    age(&temporary, 25);
    fs::write(folder.path().join(format!("{}.lock", key(5))), "").expect("a file");
    let swept = admin::gc(folder.path(), 3 * size).expect("a folder").expect("alone");
    assert_eq!((swept.entries, swept.bytes, swept.left_bytes), (7, 7 * size, 3 * size));
    assert_eq!((swept.temporaries, swept.locks), (1, 1));
    for (number, stays) in [(0, true), (1, false), (7, false), (8, true), (9, true)] {
        assert_eq!(entry_path(folder.path(), number).exists(), stays, "{number}");
    }
}

/// Neither an entry that is being made nor its lock is anybody else's to remove.
#[test]
fn gc_and_clear_leave_what_is_locked() {
    let folder = filled(3);
    let lock_path = |number: u64| folder.path().join(format!("{}.lock", key(number)));
    let held = File::create(lock_path(1)).expect("a file");
    held.try_lock().expect("ours alone");
    fs::write(lock_path(2), "").expect("a file");
    admin::gc(folder.path(), 0).expect("a folder").expect("alone");
    assert_eq!(names(folder.path(), "entry"), [format!("{}.entry", key(1))]);
    assert_eq!(names(folder.path(), "lock"), [format!("{}.lock", key(1))]);
    let cleared = admin::clear(folder.path()).expect("a folder");
    assert_eq!(cleared.entries, 0);
    assert!(entry_path(folder.path(), 1).exists() && lock_path(1).exists());
    drop(held);
    assert_eq!(admin::clear(folder.path()).expect("a folder").entries, 1);
    assert!(names(folder.path(), "entry").is_empty() && names(folder.path(), "lock").is_empty());
}

#[test]
fn only_one_sweeps_at_a_time() {
    let folder = filled(3);
    let held = File::create(folder.path().join(".sweep.lock")).expect("a file");
    held.try_lock().expect("ours alone");
    assert_eq!(admin::gc(folder.path(), 0).expect("a folder"), None);
    // Nobody who publishes waits for it.
    fetch(&open(folder.path()), 7);
    assert_eq!(names(folder.path(), "entry").len(), 4);
    drop(held);
    let swept = admin::gc(folder.path(), 0).expect("a folder").expect("alone");
    assert_eq!(swept.entries, 4);
}

#[test]
fn clear_leaves_what_is_not_ours() {
    let folder = filled(3);
    open(folder.path()).reject(&key(0), &std::io::Error::other("bad"));
    let other = folder.path().join("compilers");
    fs::write(&other, "iree").expect("a file");
    assert_eq!(admin::clear(folder.path()).expect("a folder").entries, 3);
    let left: Vec<_> = fs::read_dir(folder.path())
        .expect("the folder")
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
    let folder = filled(5);
    let all = archive(folder.path(), None);
    assert_eq!(archive(folder.path(), None), all, "not the same bytes again");
    let target = tempfile::tempdir().expect("a folder");
    let dir = target.path().join("new");
    let imported = admin::import(&dir, all.as_slice()).expect("imported");
    assert_eq!((imported.added, imported.present, imported.refused.len()), (5, 0, 0));
    let imported = admin::import(&dir, all.as_slice()).expect("imported");
    assert_eq!((imported.added, imported.present), (0, 5));
    for number in 0..5 {
        assert_eq!(fetch(&open(&dir), number), Origin::Disk);
    }
    let two = archive(folder.path(), Some(&[key(3), key(1)]));
    let dir = target.path().join("two");
    assert_eq!(admin::import(&dir, two.as_slice()).expect("imported").added, 2);
    // Other programs read it too.
    let mut archive = tar::Archive::new(two.as_slice());
    let members = archive.entries().expect("an archive").count();
    assert_eq!(members, 2);
}

/// Into a folder that is shipped, by whoever may write it, for those who read it.
#[test]
fn imports_can_be_read_by_whoever_can_read_the_folder() {
    let all = archive(filled(1).path(), None);
    let target = tempfile::tempdir().expect("a folder");
    for (folder_mode, file_mode) in [(0o700, 0o600), (0o750, 0o640), (0o755, 0o644)] {
        let dir = target.path().join(format!("{folder_mode:o}"));
        fs::create_dir(&dir).expect("a folder");
        fs::set_permissions(&dir, fs::Permissions::from_mode(folder_mode)).expect("our own folder");
        assert_eq!(admin::import(&dir, all.as_slice()).expect("imported").added, 1);
        let metadata = fs::metadata(entry_path(&dir, 0)).expect("stored");
        assert_eq!(metadata.permissions().mode() & 0o7777, file_mode);
    }
}

#[test]
fn what_is_missing_or_damaged_is_not_exported() {
    let folder = filled(2);
    let export = |keys: &[Key]| admin::export(folder.path(), Some(keys), Vec::new());
    assert!(matches!(export(&[key(7)]), Err(AdminError::Export { key: missing, .. }) if missing == key(7)));
    damage(folder.path(), 1, |length| length - 1);
    assert!(matches!(export(&[key(1)]), Err(AdminError::Export { .. })));
    assert!(export(&[key(0)]).is_ok());
    assert!(admin::export(folder.path(), None, Vec::new()).is_err());
}

/// An archive from anywhere: paths that lead out, links, other keys' entries, damage, an end that is missing.
#[test]
fn archives_are_not_believed() {
    let folder = filled(3);
    let bytes = |number: u64| fs::read(entry_path(folder.path(), number)).expect("stored");
    let name = |number: u64| format!("{}.entry", key(number));
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        // Written by hand: the library refuses to write some of these.
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
    // Another name for the next member: not believed either, and not even read.
    add("././@LongLink", tar::EntryType::GNULongName, b"other.entry\0");
    add(&name(2), regular, &bytes(2));
    add("./PaxHeaders", tar::EntryType::XHeader, b"20 path=other.entry\n");
    add(&name(2), regular, &bytes(2));
    let archive = builder.into_inner().expect("written");

    let target = tempfile::tempdir().expect("a folder");
    let dir = target.path().join("cache");
    let imported = admin::import(&dir, archive.as_slice()).expect("read to its end");
    assert_eq!((imported.added, imported.present), (1, 1));
    assert_eq!(imported.refused.len(), 7, "{:?}", imported.refused);
    assert_eq!(names(&dir, "entry"), [name(2)]);
    assert_eq!(fs::read_dir(target.path()).expect("the folder").count(), 1);

    let whole = self::archive(folder.path(), None);
    let cut = Cursor::new(&whole[..whole.len() / 2]);
    assert!(matches!(admin::import(&dir, cut), Err(AdminError::Io { .. })));
    assert!(
        admin::verify(&dir)
            .expect("a folder")
            .iter()
            .all(|verdict| verdict.result.is_ok())
    );
}

#[test]
fn folders_are_neither_made_nor_trusted_for_looking() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    assert!(matches!(admin::list(&missing), Err(AdminError::Folder(_))));
    assert!(admin::gc(&missing, 0).is_err() && admin::clear(&missing).is_err());
    assert!(!missing.exists());
    let link: PathBuf = folder.path().join("link");
    let real = filled(1);
    symlink(real.path(), &link).expect("a link");
    assert_eq!(admin::list(&link).expect("a folder").len(), 1);
    wait_until("a sweep is done", || admin::gc(&link, 0).expect("a folder").is_some());
    assert!(names(real.path(), "entry").is_empty());
}
