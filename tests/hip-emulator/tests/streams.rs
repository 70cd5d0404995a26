//! Streams and events: order, and no more order than HIP promises.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

/// What functions of the host noted, in the order in which they ran.
static NOTES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(data: *mut c_void) {
    let note = data.addr();
    NOTES.lock().unwrap().push((note >> 8, note & 0xff));
}

/// A function of the host that notes a number, among those of one test.
fn noting(hip: &Emulator, stream: Handle, test: usize, number: usize) {
    let data = std::ptr::without_provenance_mut(test << 8 | number);
    assert_eq!(hip.hipLaunchHostFunc(stream, note, data), SUCCESS);
}

fn notes(test: usize) -> Vec<usize> {
    let notes = NOTES.lock().unwrap();
    notes
        .iter()
        .filter(|(of, _)| *of == test)
        .map(|(_, number)| *number)
        .collect()
}

#[test]
fn a_stream_keeps_its_order_and_returns_early() {
    let hip = Emulator::open(&[]);
    let stream = hip.stream(NON_BLOCKING);
    let gate = Gate::close(&hip, stream);
    for number in 0..100 {
        noting(&hip, stream, 1, number);
    }
    assert_eq!(hip.hipStreamQuery(stream), NOT_READY);
    assert_eq!(notes(1), []);
    gate.open();
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(hip.hipStreamQuery(stream), SUCCESS);
    assert_eq!(notes(1), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let hip = Emulator::open(&[]);
    let (first, second, event) = (hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING), hip.event());
    assert_eq!(hip.hipEventQuery(event), SUCCESS, "never recorded");
    let gate = Gate::close(&hip, first);
    noting(&hip, first, 2, 1);
    assert_eq!(hip.hipEventRecord(event, first), SUCCESS);
    noting(&hip, second, 2, 0);
    assert_eq!(hip.hipStreamWaitEvent(second, event, 0), SUCCESS);
    noting(&hip, second, 2, 2);
    assert_eq!(hip.hipEventQuery(event), NOT_READY);
    // What the second stream had before the wait needs no event.
    while notes(2) != [0] {
        std::thread::yield_now();
    }
    gate.open();
    assert_eq!(hip.hipEventSynchronize(event), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(second), SUCCESS);
    assert_eq!(notes(2), [0, 1, 2]);
}

/// A wait is for what the event had recorded when the wait was submitted.
#[test]
fn recording_again_does_not_move_a_wait() {
    let hip = Emulator::open(&[]);
    let (first, second, event) = (hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING), hip.event());
    assert_eq!(hip.hipEventRecord(event, first), SUCCESS);
    assert_eq!(hip.hipStreamWaitEvent(second, event, 0), SUCCESS);
    let gate = Gate::close(&hip, first);
    assert_eq!(hip.hipEventRecord(event, first), SUCCESS);
    noting(&hip, second, 3, 1);
    assert_eq!(hip.hipStreamSynchronize(second), SUCCESS);
    assert_eq!(notes(3), [1]);
    gate.open();
    assert_eq!(hip.hipEventSynchronize(event), SUCCESS);
}

#[test]
fn the_null_stream_and_blocking_streams_wait_for_each_other() {
    let hip = Emulator::open(&[]);
    let (blocking, free) = (hip.stream(0), hip.stream(NON_BLOCKING));
    let gate = Gate::close(&hip, blocking);
    noting(&hip, blocking, 4, 1);
    noting(&hip, null_mut(), 4, 2);
    noting(&hip, blocking, 4, 3);
    // Streams that do not block go on.
    noting(&hip, free, 4, 0);
    assert_eq!(hip.hipStreamSynchronize(free), SUCCESS);
    assert_eq!(notes(4), [0]);
    gate.open();
    assert_eq!(hip.hipStreamSynchronize(blocking), SUCCESS);
    assert_eq!(notes(4), [0, 1, 2, 3]);
}

#[test]
fn synchronising_the_null_stream_waits_for_blocking_streams() {
    let hip = Emulator::open(&[]);
    let blocking = hip.stream(0);
    let gate = Gate::close(&hip, blocking);
    noting(&hip, blocking, 5, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.open();
        });
        assert_eq!(hip.hipStreamSynchronize(null_mut()), SUCCESS);
        assert_eq!(notes(5), [1]);
    });
}

#[test]
fn a_destroyed_stream_finishes_its_work() {
    let hip = Emulator::open(&[]);
    let (stream, event) = (hip.stream(NON_BLOCKING), hip.event());
    let gate = Gate::close(&hip, stream);
    noting(&hip, stream, 6, 1);
    assert_eq!(hip.hipEventRecord(event, stream), SUCCESS);
    assert_eq!(hip.hipStreamDestroy(stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), INVALID_HANDLE);
    assert_eq!(hip.hipStreamDestroy(stream), INVALID_HANDLE);
    gate.open();
    assert_eq!(hip.hipEventSynchronize(event), SUCCESS);
    assert_eq!(notes(6), [1]);
    assert_eq!(hip.hipStreamQuery(event), INVALID_HANDLE, "an event is no stream");
    assert_eq!(hip.hipEventDestroy(event), SUCCESS);
    assert_eq!(hip.hipEventQuery(event), INVALID_HANDLE);
}

unsafe extern "C" fn called_back(stream: Handle, status: u32, data: *mut c_void) {
    NOTES
        .lock()
        .unwrap()
        .push((stream.addr(), status as usize + data.addr()));
}

#[test]
fn callbacks_get_their_stream_and_status() {
    let hip = Emulator::open(&[]);
    let stream = hip.stream(NON_BLOCKING);
    let data = std::ptr::without_provenance_mut(77);
    assert_eq!(hip.hipStreamAddCallback(stream, called_back, data, 0), SUCCESS);
    assert_eq!(hip.hipStreamAddCallback(stream, called_back, data, 1), INVALID_VALUE);
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(notes(stream.addr()), [77]);
}

#[test]
fn events_measure_time() {
    let hip = Emulator::open(&[]);
    let (stream, start, stop) = (hip.stream(NON_BLOCKING), hip.event(), hip.event());
    let mut milliseconds = 0.0;
    assert_eq!(
        hip.hipEventElapsedTime(&raw mut milliseconds, start, stop),
        INVALID_HANDLE
    );
    assert_eq!(hip.hipEventRecord(start, stream), SUCCESS);
    let gate = Gate::close(&hip, stream);
    assert_eq!(hip.hipEventRecord(stop, stream), SUCCESS);
    assert_eq!(hip.hipEventElapsedTime(&raw mut milliseconds, start, stop), NOT_READY);
    std::thread::sleep(std::time::Duration::from_millis(5));
    gate.open();
    assert_eq!(hip.hipEventSynchronize(stop), SUCCESS);
    assert_eq!(hip.hipEventElapsedTime(&raw mut milliseconds, start, stop), SUCCESS);
    assert!(milliseconds >= 5.0, "{milliseconds}");
}

/// Many threads on many streams: every stream keeps its order.
#[test]
fn threads_do_not_disturb_each_other() {
    let hip = Emulator::open(&[]);
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let hip = &hip;
            scope.spawn(move || {
                let stream = hip.stream(if thread % 2 == 0 { NON_BLOCKING } else { 0 });
                let buffer = hip.malloc(4);
                for value in 0..200 {
                    assert_eq!(hip.hipMemsetD32Async(buffer, value, 1, stream), SUCCESS);
                    if value % 50 == 0 {
                        assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
                    }
                }
                assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
                assert_eq!(hip.read(buffer, 1), [199]);
                assert_eq!(hip.hipStreamDestroy(stream), SUCCESS);
            });
        }
    });
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
}
