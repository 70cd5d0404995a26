//! Stream capture: what is captured replays, and what cannot be captured says so.

mod common;

use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

fn begin(hip: &Emulator, stream: Handle, mode: u32) {
    assert_eq!(hip.hipStreamBeginCapture(stream, mode), SUCCESS);
}

fn end(hip: &Emulator, stream: Handle) -> Result<Handle, u32> {
    let mut graph = null_mut();
    match hip.hipStreamEndCapture(stream, &raw mut graph) {
        SUCCESS => Ok(graph),
        error => {
            assert!(graph.is_null());
            Err(error)
        }
    }
}

fn instantiate(hip: &Emulator, graph: Handle) -> Handle {
    let mut executable = null_mut();
    assert_eq!(
        hip.hipGraphInstantiate(&raw mut executable, graph, null_mut(), null_mut(), 0),
        SUCCESS
    );
    executable
}

fn status(hip: &Emulator, stream: Handle) -> u32 {
    let mut status = 99;
    assert_eq!(hip.hipStreamIsCapturing(stream, &raw mut status), SUCCESS);
    status
}

#[test]
fn a_captured_sequence_replays() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let stream = hip.stream(NON_BLOCKING);
    let (source, middle, target) = (hip.words(&[5; 64]), hip.words(&[0; 64]), hip.words(&[0; 64]));
    begin(&hip, stream, GLOBAL);
    assert_eq!(status(&hip, stream), ACTIVE);
    assert_eq!(
        hip.hipMemcpyAsync(middle, source, 256, DEVICE_TO_DEVICE, stream),
        SUCCESS
    );
    assert_eq!(hip.launch(function, 1, middle, middle, stream), SUCCESS);
    assert_eq!(hip.launch(function, 1, middle, target, stream), SUCCESS);
    assert_eq!(hip.hipMemsetD32Async(middle, 9, 64, stream), SUCCESS);
    let graph = end(&hip, stream).unwrap();
    assert_eq!(status(&hip, stream), 0);
    // Nothing has run.
    assert_eq!(hip.read(target, 64), [0; 64]);
    let mut count = 0;
    assert_eq!(hip.hipGraphGetNodes(graph, null_mut(), &raw mut count), SUCCESS);
    assert_eq!(count, 4);
    let mut nodes = [null_mut(); 4];
    assert_eq!(hip.hipGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count), SUCCESS);
    let kinds = nodes.map(|node| {
        let mut kind = 99;
        assert_eq!(hip.hipGraphNodeGetType(node, &raw mut kind), SUCCESS);
        kind
    });
    assert_eq!(kinds, [1, 0, 0, 2], "copy, kernels, fill");
    assert_eq!(
        hip.hipGraphGetEdges(graph, null_mut(), null_mut(), &raw mut count),
        SUCCESS
    );
    assert_eq!(count, 3, "a chain");

    let executable = instantiate(&hip, graph);
    assert_eq!(hip.hipGraphDestroy(graph), SUCCESS);
    for value in [5, 100, 7] {
        let input = [value; 64];
        assert_eq!(
            hip.hipMemcpy(source, input.as_ptr().cast(), 256, HOST_TO_DEVICE),
            SUCCESS
        );
        assert_eq!(hip.hipGraphLaunch(executable, stream), SUCCESS);
        assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
        assert_eq!(
            (hip.read(target, 64), hip.read(middle, 64)),
            (vec![value + 2; 64], vec![9; 64])
        );
    }
    assert_eq!(hip.hipGraphExecDestroy(executable), SUCCESS);
    assert_ne!(hip.hipGraphLaunch(executable, stream), SUCCESS);
}

/// An event takes a capture to another stream and back.
#[test]
fn a_capture_spreads_over_events() {
    for seed in 0..20 {
        let hip = Emulator::open(&[("HIPEMU_SEED", &seed.to_string())]);
        let (_, function) = hip.add_one();
        let (origin, other) = (hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING));
        let (fork, join) = (hip.event(), hip.event());
        let (a, b, c) = (hip.words(&[1; 64]), hip.words(&[0; 64]), hip.words(&[0; 64]));
        begin(&hip, origin, GLOBAL);
        assert_eq!(hip.launch(function, 1, a, a, origin), SUCCESS);
        assert_eq!(hip.hipEventRecord(fork, origin), SUCCESS);
        assert_eq!(hip.hipStreamWaitEvent(other, fork, 0), SUCCESS);
        assert_eq!(status(&hip, other), ACTIVE);
        assert_eq!(hip.launch(function, 1, a, b, other), SUCCESS);
        assert_eq!(hip.hipMemsetD32Async(c, 40, 64, origin), SUCCESS);
        assert_eq!(hip.hipEventRecord(join, other), SUCCESS);
        assert_eq!(hip.hipStreamWaitEvent(origin, join, 0), SUCCESS);
        assert_eq!(hip.launch(function, 1, b, a, origin), SUCCESS);
        let graph = end(&hip, origin).unwrap();
        assert_eq!(status(&hip, other), 0);
        let executable = instantiate(&hip, graph);
        assert_eq!(hip.hipGraphLaunch(executable, origin), SUCCESS);
        assert_eq!(hip.hipStreamSynchronize(origin), SUCCESS);
        assert_eq!(
            (hip.read(a, 1), hip.read(b, 1), hip.read(c, 1)),
            (vec![4], vec![3], vec![40])
        );
    }
}

#[test]
fn what_does_not_join_is_an_error() {
    let hip = Emulator::open(&[]);
    let (origin, other, fork) = (hip.stream(NON_BLOCKING), hip.stream(NON_BLOCKING), hip.event());
    let buffer = hip.malloc(256);
    begin(&hip, origin, GLOBAL);
    assert_eq!(hip.hipMemsetD32Async(buffer, 1, 64, origin), SUCCESS);
    assert_eq!(hip.hipEventRecord(fork, origin), SUCCESS);
    assert_eq!(hip.hipStreamWaitEvent(other, fork, 0), SUCCESS);
    assert_eq!(hip.hipMemsetD32Async(buffer, 2, 64, other), SUCCESS);
    assert_eq!(end(&hip, origin).unwrap_err(), CAPTURE_UNJOINED);
    assert_eq!((status(&hip, origin), status(&hip, other)), (0, 0));
}

#[test]
fn calls_that_disturb_a_capture_end_it() {
    let hip = Emulator::open(&[]);
    let (stream, event, outside) = (hip.stream(NON_BLOCKING), hip.event(), hip.event());
    let free = hip.stream(NON_BLOCKING);
    let buffer = hip.malloc(256);
    assert_eq!(hip.hipEventRecord(outside, free), SUCCESS);
    let mut pointer: *mut c_void = null_mut();
    let disturbing: [(&str, u32, &dyn Fn() -> u32); 9] = [
        ("malloc", CAPTURE_UNSUPPORTED, &|| {
            let mut pointer: *mut c_void = null_mut();
            hip.hipMalloc(&raw mut pointer, 64)
        }),
        ("free", CAPTURE_UNSUPPORTED, &|| hip.hipFree(buffer)),
        ("synchronize", CAPTURE_UNSUPPORTED, &|| hip.hipStreamSynchronize(stream)),
        ("device", CAPTURE_UNSUPPORTED, &|| hip.hipDeviceSynchronize()),
        ("query", CAPTURE_UNSUPPORTED, &|| hip.hipStreamQuery(stream)),
        ("another's event", CAPTURE_UNSUPPORTED, &|| hip.hipEventQuery(outside)),
        ("captured event", CAPTURED_EVENT, &|| {
            assert_eq!(hip.hipEventRecord(event, stream), SUCCESS);
            hip.hipEventSynchronize(event)
        }),
        ("isolation", CAPTURE_ISOLATION, &|| {
            hip.hipStreamWaitEvent(stream, outside, 0)
        }),
        ("memory", CAPTURE_UNSUPPORTED, &|| {
            let mut pointer: *mut c_void = null_mut();
            hip.hipMallocAsync(&raw mut pointer, 64, stream)
        }),
    ];
    for (name, error, call) in disturbing {
        begin(&hip, stream, GLOBAL);
        assert_eq!(call(), error, "{name}");
        assert_eq!(status(&hip, stream), INVALIDATED, "{name}");
        assert_eq!(
            hip.hipMemsetD32Async(buffer, 1, 64, stream),
            CAPTURE_INVALIDATED,
            "{name}"
        );
        assert_eq!(end(&hip, stream).unwrap_err(), CAPTURE_INVALIDATED, "{name}");
    }
    // A thread that says so may.
    begin(&hip, stream, GLOBAL);
    let mut mode = RELAXED;
    assert_eq!(hip.hipThreadExchangeStreamCaptureMode(&raw mut mode), SUCCESS);
    assert_eq!(mode, GLOBAL);
    assert_eq!(hip.hipMalloc(&raw mut pointer, 64), SUCCESS);
    assert_eq!(hip.hipEventQuery(outside), SUCCESS);
    assert!(end(&hip, stream).is_ok());
}

#[test]
fn other_threads_are_free_unless_the_capture_is_global() {
    let hip = Emulator::open(&[]);
    let stream = hip.stream(NON_BLOCKING);
    let allocate = || {
        std::thread::scope(|scope| {
            let call = || {
                let mut pointer = null_mut();
                hip.hipMalloc(&raw mut pointer, 64)
            };
            scope.spawn(call).join().unwrap()
        })
    };
    for (mode, expected) in [
        (GLOBAL, CAPTURE_UNSUPPORTED),
        (THREAD_LOCAL, SUCCESS),
        (RELAXED, SUCCESS),
    ] {
        begin(&hip, stream, mode);
        assert_eq!(allocate(), expected, "mode {mode}");
        assert_eq!(end(&hip, stream).is_ok(), expected == SUCCESS);
    }
}

/// As in ROCm's own library.
#[test]
fn waiting_for_any_device_ends_every_capture() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx942,gfx942")]);
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        let stream = hip.stream(NON_BLOCKING);
        begin(&hip, stream, mode);
        let elsewhere = || {
            assert_eq!(hip.hipSetDevice(1), SUCCESS);
            let mut mode = RELAXED;
            assert_eq!(hip.hipThreadExchangeStreamCaptureMode(&raw mut mode), SUCCESS);
            hip.hipDeviceSynchronize()
        };
        let status = std::thread::scope(|scope| scope.spawn(elsewhere).join().unwrap());
        assert_eq!(status, CAPTURE_UNSUPPORTED, "mode {mode}");
        assert_eq!(end(&hip, stream).unwrap_err(), CAPTURE_INVALIDATED, "mode {mode}");
    }
}

/// The null stream would wait for a captured stream, which never runs.
#[test]
fn the_null_stream_cannot_be_used_while_a_blocking_stream_is_captured() {
    let hip = Emulator::open(&[]);
    let buffer = hip.malloc(256);
    assert_eq!(hip.hipStreamBeginCapture(null_mut(), GLOBAL), CAPTURE_UNSUPPORTED);
    let blocking = hip.stream(0);
    begin(&hip, blocking, GLOBAL);
    let mut captured = 0;
    assert_eq!(
        hip.hipStreamIsCapturing(null_mut(), &raw mut captured),
        CAPTURE_IMPLICIT
    );
    assert_eq!(status(&hip, blocking), ACTIVE, "asking does no harm");
    assert_eq!(hip.hipMemsetD32Async(buffer, 1, 64, null_mut()), CAPTURE_IMPLICIT);
    assert_eq!(end(&hip, blocking).unwrap_err(), CAPTURE_INVALIDATED);
    let free = hip.stream(NON_BLOCKING);
    begin(&hip, free, GLOBAL);
    assert_eq!(hip.hipMemsetD32Async(buffer, 1, 64, null_mut()), SUCCESS);
    assert!(end(&hip, free).is_ok());
}
