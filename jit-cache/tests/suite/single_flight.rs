//! One creation per key, however many threads ask. No thread is left waiting, however the creation
//! ends.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crate::common::{fetch, key, memory_only, never, new_entry, open, payload};
use rotini_cache::{Cache, CacheConfig, CreateError, NewEntry, Origin};

const THREADS: usize = 32;

fn in_memory(memory_bytes: u64) -> Cache {
    Cache::open(CacheConfig {
        memory_bytes,
        ..memory_only()
    })
}

/// Waits until `count` other threads are waiting for the flight, as far as that can be observed
/// from outside.
fn let_them_board(arrived: &AtomicU64, count: u64) {
    while arrived.load(Ordering::SeqCst) < count {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(30));
}

#[test]
fn threads_with_one_key_share_one_creation() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open(directory.path());
    let created = AtomicU64::new(0);
    let arrived = AtomicU64::new(0);
    let origins: Vec<Origin> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    let create = || {
                        created.fetch_add(1, Ordering::SeqCst);
                        let_them_board(&arrived, THREADS as u64);
                        Ok::<_, Infallible>(new_entry(1, 1000))
                    };
                    let (entry, origin) = cache.get_or_create(&key(1), create, never).expect("made");
                    assert_eq!(entry.payload, payload(1, 1000));
                    origin
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert_eq!(created.load(Ordering::SeqCst), 1);
    let count = |wanted| origins.iter().filter(|&&origin| origin == wanted).count();
    assert_eq!(count(Origin::Created { on_disk: true }), 1);
    assert_eq!(
        count(Origin::Joined) + count(Origin::Memory),
        THREADS - 1,
        "{origins:?}"
    );
    assert_eq!(cache.stats().created, 1);
    assert_eq!(cache.stats().joined, count(Origin::Joined) as u64);
}

/// Many keys, many threads, a memory tier that holds a few entries: each payload is right, each
/// file is written once.
#[test]
fn hammering_many_keys_creates_each_once() {
    const KEYS: u64 = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        memory_bytes: 10_000,
        disk_bytes: 1 << 20,
        ..memory_only()
    });
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (cache, start) = (&cache, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..10 * KEYS {
                    fetch(cache, (round * (2 * thread + 1)) % KEYS);
                }
            });
        }
    });
    let stats = cache.stats();
    assert_eq!(stats.created, KEYS);
    assert!(stats.disk_hits > 0 && stats.memory_evictions > 0, "{stats:?}");
    assert!(stats.memory_bytes <= 10_000, "{stats:?}");
    assert_eq!(
        stats.memory_hits + stats.disk_hits + stats.joined + stats.created,
        8 * 10 * KEYS
    );
}

#[test]
fn another_key_does_not_wait() {
    let cache = in_memory(1 << 20);
    let released = Barrier::new(2);
    let started = Barrier::new(2);
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let create = || {
                started.wait();
                released.wait();
                Ok::<_, Infallible>(new_entry(1, 10))
            };
            cache.get_or_create(&key(1), create, never)
        });
        started.wait();
        // All this happens while key 1 is being created: if any of these calls waited for it, this
        // test would hang.
        for number in 2..200 {
            assert_eq!(fetch(&cache, number), Origin::Created { on_disk: false });
        }
        assert!(cache.peek(&key(1)).is_none());
        released.wait();
        slow.join().expect("no panic").expect("made");
    });
    assert!(cache.peek(&key(1)).is_some());
}

#[test]
fn all_who_waited_get_the_error_and_the_next_tries_again() {
    #[derive(Debug, PartialEq)]
    struct Refused(u64);

    let cache = in_memory(1 << 20);
    let attempts = AtomicU64::new(0);
    let arrived = AtomicU64::new(0);
    let errors: Vec<Arc<Refused>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    let create = || {
                        let attempt = attempts.fetch_add(1, Ordering::SeqCst);
                        let_them_board(&arrived, THREADS as u64);
                        Err::<NewEntry, _>(Refused(attempt))
                    };
                    match cache.get_or_create(&key(1), create, never) {
                        Err(CreateError::Failed(error)) => error,
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let attempts = attempts.load(Ordering::SeqCst);
    // One attempt, and more only if a thread was delayed for longer than the leader waited.
    assert!(attempts < 4, "{attempts}");
    assert_eq!(cache.stats().failed, attempts);
    assert_eq!(cache.stats().joined, THREADS as u64 - attempts);
    assert!(errors.iter().any(|error| **error == Refused(0)));
    // The failure is not a lasting one, so it is not remembered.
    assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
}

#[test]
fn waiter_with_another_error_type_tries_itself() {
    let cache = in_memory(1 << 20);
    let started = Barrier::new(2);
    let arrived = AtomicU64::new(0);
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let create = || {
                started.wait();
                let_them_board(&arrived, 1);
                Err::<NewEntry, String>("no".into())
            };
            cache.get_or_create(&key(1), create, never)
        });
        started.wait();
        arrived.fetch_add(1, Ordering::SeqCst);
        assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
        match leader.join().expect("no panic") {
            Err(CreateError::Failed(error)) => assert_eq!(*error, "no"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn waiter_takes_over_from_a_leader_that_panics() {
    let cache = in_memory(1 << 20);
    let attempts = AtomicU64::new(0);
    let arrived = AtomicU64::new(0);
    let panics: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    let create = || {
                        if attempts.fetch_add(1, Ordering::SeqCst) < 2 {
                            let_them_board(&arrived, THREADS as u64);
                            panic!("on purpose: the first two leaders die");
                        }
                        Ok::<_, Infallible>(new_entry(1, 10))
                    };
                    let result = catch_unwind(AssertUnwindSafe(|| cache.get_or_create(&key(1), create, never)));
                    match result {
                        Ok(made) => {
                            assert_eq!(made.expect("infallible").0.payload, payload(1, 10));
                            0
                        }
                        Err(_) => 1,
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("caught")).sum()
    });
    assert_eq!(panics, 2);
    assert_eq!(attempts.load(Ordering::SeqCst), 3);
    assert_eq!(cache.stats().created, 1);
}

/// An entry that the memory tier cannot hold still reaches every waiter.
#[test]
fn entries_larger_than_memory_are_handed_over() {
    let cache = in_memory(100);
    assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
    assert_eq!(fetch(&cache, 1), Origin::Created { on_disk: false });
    assert!(cache.peek(&key(1)).is_none());
}
