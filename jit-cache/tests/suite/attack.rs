//! Things that an attacker could put into the directory or replace it with: links, pipes, other
//! entries' files, another directory.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{entry_path, fetch, key, memory_only, names, open, payload, warnings};
use rotini_cache::{Cache, CacheConfig, CompiledFor, Key, KeyInputs, Origin, admin};

const CREATED: Origin = Origin::Created { on_disk: true };

fn lock_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{}.lock", key(number)))
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
}

/// The same graph for two targets: each file is intact, and is refused under the other's name.
#[test]
fn code_of_another_target_is_never_returned() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |target: &str| {
        Key::of(&KeyInputs {
            graph: b"graph",
            compiled_for: &CompiledFor::from(target.to_owned()),
            emitter: "1",
            flags: &[],
            compiler: "test",
        })
    };
    let get = |target: &'static str| {
        let create = || {
            let mut new = crate::common::new_entry(0, 0);
            new.facts.compiled_for.target = target.to_owned();
            new.payload = target.into();
            Ok::<_, std::convert::Infallible>(new)
        };
        let (entry, origin) = open(directory.path())
            .get_or_create(&of(target), create, crate::common::never)
            .expect("infallible");
        assert_eq!(entry.payload, target.as_bytes());
        assert_eq!(entry.metadata.facts.compiled_for.target, target);
        origin
    };
    let path = |target| directory.path().join(format!("{}.entry", of(target)));
    let (one, other) = ("gfx942", "gfx950");
    get(one);
    get(other);
    let aside = directory.path().join("aside");
    for (from, to) in [
        (path(one), aside.clone()),
        (path(other), path(one)),
        (aside, path(other)),
    ] {
        fs::rename(from, to).expect("our own file");
    }
    assert_eq!(get(one), CREATED);
    assert_eq!(get(other), CREATED);
    assert_eq!((get(one), get(other)), (Origin::Disk, Origin::Disk));
}

/// A lock file that cannot be locked is no reason to wait, and the file that it links to is left
/// alone.
#[test]
fn locks_that_are_no_files_are_done_without() {
    type Plant<'a> = (&'a str, &'a dyn Fn(&Path, &Path));
    let plant: [Plant<'_>; 4] = [
        ("link to a file", &|path, victim| symlink(victim, path).expect("a link")),
        ("link to nothing", &|path, victim| {
            symlink(victim.with_extension("new"), path).expect("a link");
        }),
        ("pipe", &|path, _| pipe(path)),
        ("directory", &|path, _| fs::create_dir(path).expect("a directory")),
    ];
    for (what, plant) in plant {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = directory.path().join("cache");
        let cache = open(&dir);
        let victim = directory.path().join("victim");
        fs::write(&victim, "untouched").expect("our own file");
        for number in 1..4 {
            plant(&lock_path(&dir, number), &victim);
        }
        plant(&dir.join(".sweep.lock"), &victim);
        let started = Instant::now();
        let warned = warnings(|| {
            for number in 1..4 {
                assert_eq!(fetch(&cache, number), CREATED, "{what}");
            }
        });
        assert_eq!(warned, 1, "{what}");
        assert!(started.elapsed() < Duration::from_secs(5), "{what}");
        admin::gc(&dir, u64::MAX).expect("a directory").expect("alone");
        assert_eq!(names(&dir, "entry").len(), 3, "{what}");
        assert_eq!(
            fs::read_to_string(&victim).expect("our own file"),
            "untouched",
            "{what}"
        );
        assert!(!victim.with_extension("new").exists(), "{what}");
    }
}

/// An attacker who guesses the name of a temporary file gains nothing by it, and a link under an
/// entry's name is replaced, not followed.
#[test]
fn writing_follows_no_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = directory.path().join("cache");
    let cache = open(&dir);
    let victim = directory.path().join("victim");
    fs::write(&victim, "untouched").expect("our own file");
    for number in 0..20 {
        symlink(&victim, entry_path(&dir, number)).expect("a link");
        assert_eq!(fetch(&cache, number), CREATED);
        assert!(
            fs::symlink_metadata(entry_path(&dir, number))
                .expect("stored")
                .is_file()
        );
    }
    assert_eq!(fs::read_to_string(&victim).expect("our own file"), "untouched");
    // The links themselves were set aside, and are removed.
    admin::clear(&dir).expect("a directory");
    assert!(names(&dir, "bad").is_empty() && victim.exists());
}

/// The directory's name is redirected all the time. The directory that was opened is the one that
/// is used.
#[test]
fn directory_that_is_swapped_while_in_use_leads_nowhere_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let (dir, real, trap) = (
        directory.path().join("cache"),
        directory.path().join("real"),
        directory.path().join("trap"),
    );
    let cache = Cache::open(CacheConfig {
        dir: Some(dir.clone()),
        memory_bytes: 0,
        disk_bytes: 64 << 20,
        ..memory_only()
    });
    fs::create_dir(&trap).expect("a directory");
    // Intact entries of other keys, under the names that will be requested.
    for number in 0..50 {
        fs::copy(stored(directory.path(), 1000 + number), entry_path(&trap, number)).expect("a copy");
    }
    let before = listing(&trap);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&dir, &real).expect("our own directory");
                symlink(&trap, &dir).expect("a link");
                thread::yield_now();
                fs::remove_file(&dir).expect("our own link");
                fs::rename(&real, &dir).expect("our own directory");
            }
        });
        for round in 0..10 {
            for number in 0..50 {
                let expected = if round == 0 { CREATED } else { Origin::Disk };
                assert_eq!(fetch(&cache, number), expected, "{number} in round {round}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(listing(&trap), before);
    assert_eq!(names(&dir, "entry").len(), 50);
    assert_eq!(cache.stats().bad_entries, 0);
}

/// Returns the file of entry `number`, created in a separate directory.
fn stored(directory: &Path, number: u64) -> PathBuf {
    let dir = directory.join("others");
    fetch(&open(&dir), number);
    entry_path(&dir, number)
}

fn listing(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut listing: Vec<_> = fs::read_dir(dir)
        .expect("the directory")
        .map(|item| item.expect("an item"))
        .map(|item| (item.path(), item.metadata().expect("a file").len()))
        .collect();
    listing.sort();
    listing
}

/// Eight threads use entries that are damaged, removed, exchanged and replaced by links meanwhile:
/// every payload is right.
#[test]
fn entries_that_change_all_the_time_are_right_or_made_again() {
    const KEYS: u64 = 12;
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        memory_bytes: 0,
        disk_bytes: 64 << 20,
        ..memory_only()
    });
    let done = AtomicBool::new(false);
    tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut turn: u64 = 0;
                while !done.load(Ordering::Relaxed) {
                    turn += 1;
                    let path = |number: u64| entry_path(directory.path(), number % KEYS);
                    // Each operation may fail because the cache has moved the file.
                    let _ = match turn % 6 {
                        0 => File::options()
                            .write(true)
                            .open(path(turn))
                            .and_then(|file| file.set_len(turn % 900)),
                        1 => fs::remove_file(path(turn)),
                        2 => fs::rename(path(turn), path(turn + 5)),
                        3 => fs::copy(path(turn), path(turn + 1)).map(drop),
                        4 => fs::remove_file(path(turn)).and_then(|()| symlink(path(turn + 1), path(turn))),
                        _ => fs::write(path(turn), b"\x89rotini\n\x02\0\0\0"),
                    };
                }
            });
            let users: Vec<_> = (0..8)
                .map(|thread| {
                    let cache = &cache;
                    scope.spawn(move || {
                        // Repeated, on a busy machine, until there was something to refuse.
                        let enough = |round| round >= 150 && cache.stats().bad_entries > 0;
                        for round in (0..100_000).take_while(|&round| !enough(round)) {
                            fetch(cache, (round * (2 * thread + 1)) % KEYS);
                        }
                    })
                })
                .collect();
            for user in users {
                user.join().expect("right payloads");
            }
            done.store(true, Ordering::Relaxed);
        });
    });
    assert!(cache.stats().bad_entries > 0, "nothing was ever damaged");
    let created = cache.get_or_create(
        &key(99),
        || Ok::<_, std::convert::Infallible>(crate::common::new_entry(99, 10)),
        crate::common::never,
    );
    assert_eq!(created.expect("infallible").0.payload, payload(99, 10));
}
