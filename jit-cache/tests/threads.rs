//! A cache leaves nothing behind on the threads that use it. This is a separate program, because it
//! replaces a function of the C library.
//!
//! A thread-local destructor keeps its library loaded until the thread ends, and the threads of a
//! host do not end.

#![expect(clippy::expect_used, reason = "a test says no by panicking")]

use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::{c_int, c_void};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rotini_cache::{Cache, CacheConfig, CodeFacts, CompiledFor, Key, KeyInputs, NewEntry};

thread_local! {
    /// Whether destructors of this thread are counted.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

static DESTRUCTORS: AtomicU64 = AtomicU64::new(0);

/// The function with which Rust registers thread-local destructors. Destructors do not run in this
/// program, so nothing that matters may have one.
#[unsafe(no_mangle)]
extern "C" fn __cxa_thread_atexit_impl(
    _destructor: unsafe extern "C" fn(*mut c_void),
    _object: *mut c_void,
    _library: *mut c_void,
) -> c_int {
    if COUNTS.get() {
        DESTRUCTORS.fetch_add(1, Ordering::Relaxed);
    }
    0
}

fn key(number: u64) -> Key {
    Key::of(&KeyInputs {
        graph: &number.to_le_bytes(),
        compiled_for: &CompiledFor::from("gfx942".to_owned()),
        emitter: "1",
        flags: &[],
        compiler: "test",
    })
}

fn fetch(cache: &Cache, number: u64) {
    let create = || {
        Ok::<_, Infallible>(NewEntry {
            facts: CodeFacts {
                producer: "test".to_owned(),
                compiled_for: "gfx942".to_owned().into(),
                workspace_bytes: 0,
                dispatches: 1,
            },
            content: None,
            compile_micros: 2,
            payload: vec![0; 1000].into(),
        })
    };
    cache.get_or_create(&key(number), create, |_| None).expect("infallible");
}

#[test]
fn using_a_cache_leaves_no_destructor_on_a_thread() {
    const THREADS: u64 = 8;
    let directory = tempfile::tempdir().expect("a directory");
    // Memory for a few entries, so that threads see hits, insertions and evictions, and wait for
    // each other's creations.
    let in_memory = Cache::open(CacheConfig {
        dir: None,
        memory_bytes: 16 << 10,
        ..CacheConfig::default()
    });
    let on_disk = Cache::open(CacheConfig {
        dir: Some(directory.path().to_owned()),
        ..CacheConfig::default()
    });
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (in_memory, on_disk, start) = (&in_memory, &on_disk, &start);
            scope.spawn(move || {
                start.wait();
                COUNTS.set(true);
                for round in 0..20_000 {
                    fetch(in_memory, (round * (thread + 1)) % 40);
                }
                for round in 0..40 {
                    fetch(on_disk, round);
                }
                COUNTS.set(false);
            });
        }
    });
    assert!(
        in_memory.stats().joined + on_disk.stats().joined > 0,
        "nobody ever waited"
    );
    assert_eq!(DESTRUCTORS.load(Ordering::Relaxed), 0);
    // Checks the counter itself: a value that needs a destructor registers it.
    thread_local! {
        static NOISY: Vec<u8> = const { Vec::new() };
    }
    COUNTS.set(true);
    NOISY.with(Vec::len);
    COUNTS.set(false);
    assert_eq!(DESTRUCTORS.load(Ordering::Relaxed), 1);
}
