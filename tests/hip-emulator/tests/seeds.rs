//! The adversarial scheduler: seeds give orders, orders show what is missing.

mod common;

use common::*;
use std::collections::HashSet;
use std::ptr::null_mut;

/// A producer, a stage and a consumer on three streams, with the waits that make it right or
/// without the second one; what the consumer read.
fn pipeline(hip: &Emulator, waits: bool) -> u32 {
    let streams = [(); 3].map(|()| hip.stream(NON_BLOCKING));
    let (_, function) = hip.add_one();
    let (source, middle, target) = (hip.words(&[10; 64]), hip.words(&[0; 64]), hip.words(&[0; 64]));
    let events = [hip.event(), hip.event()];
    assert_eq!(hip.launch(function, 1, source, middle, streams[0]), SUCCESS);
    assert_eq!(hip.hipEventRecord(events[0], streams[0]), SUCCESS);
    assert_eq!(hip.hipStreamWaitEvent(streams[1], events[0], 0), SUCCESS);
    assert_eq!(hip.launch(function, 1, middle, middle, streams[1]), SUCCESS);
    assert_eq!(hip.hipEventRecord(events[1], streams[1]), SUCCESS);
    if waits {
        assert_eq!(hip.hipStreamWaitEvent(streams[2], events[1], 0), SUCCESS);
    }
    assert_eq!(
        hip.hipMemcpyAsync(target, middle, 256, DEVICE_TO_DEVICE, streams[2]),
        SUCCESS
    );
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
    let read = hip.read(target, 1)[0];
    for stream in streams {
        assert_eq!(hip.hipStreamDestroy(stream), SUCCESS);
    }
    for pointer in [source, middle, target] {
        assert_eq!(hip.hipFree(pointer), SUCCESS);
    }
    read
}

#[test]
fn waits_hold_under_every_seed_and_a_missing_one_shows() {
    let hip = Emulator::open(&[]);
    let mut first_stale = None;
    for seed in 0..300 {
        hip.hipemu_set_seed(seed);
        assert_eq!(pipeline(&hip, true), 12, "seed {seed}");
        hip.hipemu_set_seed(seed);
        if pipeline(&hip, false) != 12 {
            first_stale.get_or_insert(seed);
        }
    }
    let first = first_stale.expect("no seed showed the missing wait");
    assert!(first < 20, "the missing wait showed first under seed {first}");
}

/// Fills on three streams that nothing orders.
fn unordered(hip: &Emulator) {
    let buffer = hip.malloc(64);
    let streams = [(); 3].map(|()| hip.stream(NON_BLOCKING));
    for value in 0..4 {
        for stream in streams {
            assert_eq!(hip.hipMemsetD32Async(buffer, value, 16, stream), SUCCESS);
        }
    }
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
}

#[test]
fn a_seed_gives_one_order() {
    let orders: Vec<Vec<u64>> = (0..2)
        .map(|_| {
            let hip = Emulator::open(&[]);
            let order = |seed| {
                hip.hipemu_set_seed(seed);
                unordered(&hip);
                hip.hipemu_order()
            };
            (0..40).map(order).collect()
        })
        .collect();
    assert_eq!(orders[0], orders[1]);
    assert!(orders[0].iter().collect::<HashSet<_>>().len() > 30);
}

/// What returns before it is done does so under a seed: a copy that reads the result without
/// waiting finds it old.
#[test]
fn the_host_returns_early() {
    let hip = Emulator::open(&[]);
    let pinned = hip.pinned::<u32>(1);
    let mut stale = 0;
    for seed in 0..50 {
        hip.hipemu_set_seed(seed);
        let (stream, buffer) = (hip.stream(NON_BLOCKING), hip.words(&[1]));
        // SAFETY: pinned memory is the host's; the device writes it later.
        unsafe { pinned.write_volatile(0) };
        assert_eq!(
            hip.hipMemcpyAsync(pinned.cast(), buffer, 4, DEVICE_TO_HOST, stream),
            SUCCESS
        );
        // SAFETY: as above.
        stale += u32::from(unsafe { pinned.read_volatile() } == 0);
        assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
        // SAFETY: as above.
        assert_eq!(unsafe { pinned.read_volatile() }, 1);
        assert_eq!(hip.hipFree(buffer), SUCCESS);
        assert_eq!(hip.hipStreamDestroy(stream), SUCCESS);
    }
    assert!((10..50).contains(&stale), "stale {stale} times of 50");
}

/// Programs that look at memory instead of waiting get on, if slowly.
#[test]
fn something_happens_without_a_wait() {
    let hip = Emulator::open(&[("HIPEMU_SEED", "3")]);
    let pinned = hip.pinned::<u32>(1);
    // SAFETY: pinned memory is the host's; the device writes it later.
    unsafe { pinned.write_volatile(0) };
    let stream = hip.stream(NON_BLOCKING);
    assert_eq!(hip.hipMemsetD32Async(pinned.cast(), 5, 1, stream), SUCCESS);
    // SAFETY: as above.
    while unsafe { pinned.read_volatile() } != 5 {
        std::thread::yield_now();
    }
}

/// Functions of the host run in other threads, and may wait for what the submitting thread does
/// next.
#[test]
fn functions_of_the_host_do_not_stop_the_scheduler() {
    for seed in 0..20 {
        let hip = Emulator::open(&[("HIPEMU_SEED", &seed.to_string())]);
        let (gated, free) = (hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING));
        let gate = Gate::close(&hip, gated);
        let buffer = hip.words(&[0]);
        assert_eq!(hip.hipMemsetD32Async(buffer, 1, 1, free), SUCCESS);
        assert_eq!(hip.hipStreamSynchronize(free), SUCCESS);
        gate.open();
        assert_eq!(hip.hipStreamSynchronize(gated), SUCCESS);
        assert_eq!(hip.hipStreamSynchronize(null_mut()), SUCCESS);
        assert_eq!(hip.read(buffer, 1), [1]);
    }
}

/// Eight threads under a seed: no stream loses its order, nothing hangs.
#[test]
fn threads_share_a_seed() {
    let hip = Emulator::open(&[]);
    for seed in 0..10 {
        hip.hipemu_set_seed(seed);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(pipeline(&hip, true), 12));
            }
        });
    }
    hip.hipemu_clear_seed();
    assert_eq!(pipeline(&hip, true), 12);
    assert_eq!(hip.hipemu_order(), 0);
}
