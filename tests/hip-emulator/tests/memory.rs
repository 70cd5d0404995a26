//! Memory: who may touch it, what copies check, what freed memory is.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "in a child process, what is not safe is what is tested"
)]

mod common;

use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Runs code in a child process, and says how that ended: the signal, or 0.
fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: the child touches memory and ends; it takes no lock and allocates nothing.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            body();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        if libc::WIFSIGNALED(status) {
            libc::WTERMSIG(status)
        } else {
            0
        }
    }
}

#[test]
fn the_host_cannot_dereference_device_memory() {
    let hip = Emulator::open(&[]);
    let device = hip.malloc(64).cast::<u32>();
    let pinned = hip.pinned::<u32>(16);
    // SAFETY: none: that is what is tested, in a child.
    assert_eq!(in_child(|| unsafe { device.write_volatile(1) }), libc::SIGSEGV);
    // SAFETY: as above.
    assert_eq!(
        in_child(|| unsafe {
            std::hint::black_box(device.read_volatile());
        }),
        libc::SIGSEGV
    );
    // SAFETY: pinned memory is the host's.
    assert_eq!(in_child(|| unsafe { pinned.write_volatile(1) }), 0);
    assert_eq!(hip.hipHostFree(pinned.cast()), SUCCESS);
    // SAFETY: none: that is what is tested, in a child.
    assert_eq!(in_child(|| unsafe { pinned.write_volatile(1) }), libc::SIGSEGV);
}

#[test]
fn new_memory_is_no_zero() {
    let hip = Emulator::open(&[]);
    let pointer = hip.malloc(64);
    assert_eq!(hip.read(pointer, 16), [0xfff5_fff5; 16]);
}

#[test]
fn copies_check_ranges_and_kinds() {
    let hip = Emulator::open(&[]);
    let device = hip.malloc(64);
    let mut host = [0u8; 128];
    let start = host.as_mut_ptr().cast::<c_void>();
    let copy = |to: *mut c_void, from: *const c_void, bytes, kind| hip.hipMemcpy(to, from, bytes, kind);
    assert_eq!(copy(device, start, 64, HOST_TO_DEVICE), SUCCESS);
    assert_eq!(copy(device, start, 64, DEFAULT), SUCCESS);
    assert_eq!(
        copy(device, start, 65, HOST_TO_DEVICE),
        INVALID_VALUE,
        "one byte too many"
    );
    assert_eq!(
        copy(device.wrapping_byte_add(32), start, 33, HOST_TO_DEVICE),
        INVALID_VALUE
    );
    assert_eq!(copy(start, start, 8, HOST_TO_DEVICE), INVALID_VALUE, "no device memory");
    assert_eq!(
        copy(device, start, 8, DEVICE_TO_HOST),
        INVALID_VALUE,
        "the wrong way round"
    );
    assert_eq!(copy(device, start, 8, 17), 21);
    assert_eq!(copy(null_mut(), start, 8, HOST_TO_DEVICE), INVALID_VALUE);
    assert_eq!(copy(null_mut(), start, 0, HOST_TO_DEVICE), SUCCESS, "nothing to copy");
    assert_eq!(
        hip.hipFree(device.wrapping_byte_add(8)),
        INVALID_VALUE,
        "not where it starts"
    );
    assert_eq!(hip.hipFree(device), SUCCESS);
    assert_eq!(copy(device, start, 8, HOST_TO_DEVICE), INVALID_VALUE, "freed");
    assert_eq!(hip.hipFree(device), INVALID_VALUE, "twice");
    assert_eq!(hip.hipFree(null_mut()), SUCCESS);
}

#[test]
fn rows_are_copied() {
    let hip = Emulator::open(&[]);
    let device = hip.words(&(0..12).collect::<Vec<u32>>());
    let mut host = [0u32; 6];
    // The first two words of each row of four.
    assert_eq!(
        hip.hipMemcpy2D(host.as_mut_ptr().cast(), 8, device, 16, 8, 3, DEVICE_TO_HOST),
        SUCCESS
    );
    assert_eq!(host, [0, 1, 4, 5, 8, 9]);
    assert_eq!(
        hip.hipMemcpy2D(host.as_mut_ptr().cast(), 8, device, 16, 8, 4, DEVICE_TO_HOST),
        INVALID_VALUE
    );
    assert_eq!(
        hip.hipMemcpy2D(host.as_mut_ptr().cast(), 4, device, 16, 8, 3, DEVICE_TO_HOST),
        12,
        "pitch"
    );
}

#[test]
fn fills_have_elements() {
    let hip = Emulator::open(&[]);
    let device = hip.words(&[0; 4]);
    assert_eq!(hip.hipMemsetAsync(device, 0x1_23, 4, null_mut()), SUCCESS);
    assert_eq!(
        hip.hipMemsetD16Async(device.wrapping_byte_add(4), 0xabcd, 2, null_mut()),
        SUCCESS
    );
    assert_eq!(
        hip.hipMemsetD32Async(device.wrapping_byte_add(8), 0x1234_5678, 1, null_mut()),
        SUCCESS
    );
    assert_eq!(hip.read(device, 4), [0x2323_2323, 0xabcd_abcd, 0x1234_5678, 0]);
    assert_eq!(hip.hipMemsetD32Async(device, 0, 5, null_mut()), INVALID_VALUE);
}

#[test]
fn a_device_runs_out_of_memory() {
    let hip = Emulator::open(&[("HIPEMU_MEMORY", "1M")]);
    let mut pointer = null_mut();
    assert_eq!(hip.hipMalloc(&raw mut pointer, 2 << 20), OUT_OF_MEMORY);
    assert_eq!(hip.hipMalloc(&raw mut pointer, 0), SUCCESS);
    assert!(pointer.is_null());
    let half = hip.malloc(1 << 19);
    hip.malloc(1 << 19);
    assert_eq!(hip.hipMalloc(&raw mut pointer, 1), OUT_OF_MEMORY);
    assert_eq!(hip.hipFree(half), SUCCESS);
    hip.malloc(1 << 19);
}

/// The host's own memory is read when the call is made, pinned memory when the copy runs.
#[test]
fn only_pinned_memory_is_copied_later() {
    let hip = Emulator::open(&[]);
    let stream = hip.stream(NON_BLOCKING);
    let (first, second) = (hip.malloc(4), hip.malloc(4));
    let (mut own, pinned) = (1u32, hip.pinned::<u32>(1));
    // SAFETY: pinned memory is the host's.
    unsafe { pinned.write(1) };
    let gate = Gate::close(&hip, stream);
    let copy = |to, from: *const u32| hip.hipMemcpyAsync(to, from.cast(), 4, HOST_TO_DEVICE, stream);
    assert_eq!(copy(first, &raw const own), SUCCESS);
    assert_eq!(copy(second, pinned), SUCCESS);
    own = 2;
    std::hint::black_box(&own);
    // SAFETY: as above.
    unsafe { pinned.write(2) };
    gate.open();
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!((hip.read(first, 1), hip.read(second, 1)), (vec![1], vec![2]));
}

#[test]
fn memory_is_freed_in_stream_order() {
    let hip = Emulator::open(&[]);
    let stream = hip.stream(NON_BLOCKING);
    let mut pointer = null_mut();
    assert_eq!(hip.hipMallocAsync(&raw mut pointer, 256, stream), SUCCESS);
    let gate = Gate::close(&hip, stream);
    assert_eq!(hip.hipMemsetD32Async(pointer, 7, 64, stream), SUCCESS);
    assert_eq!(hip.hipFreeAsync(pointer, stream), SUCCESS);
    // It is there until the stream gets to it.
    let target = hip.malloc(256);
    assert_eq!(
        hip.hipMemcpyAsync(target, pointer, 256, DEVICE_TO_DEVICE, stream),
        SUCCESS
    );
    gate.open();
    assert_eq!(hip.hipStreamSynchronize(stream), ILLEGAL_ADDRESS);
    assert!(hip.fault().contains("use after free"), "{}", hip.fault());
}

#[test]
fn pointers_tell_what_they_are() {
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        device: i32,
        device_pointer: usize,
        host_pointer: usize,
        managed: i32,
        flags: u32,
    }
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx942,gfx942")]);
    assert_eq!(hip.hipSetDevice(1), SUCCESS);
    let (device, pinned) = (hip.malloc(64), hip.pinned::<u8>(64));
    let own = 0u8;
    let ask = |pointer: *const c_void| {
        let mut attributes = Attributes::default();
        assert_eq!(
            hip.hipPointerGetAttributes((&raw mut attributes).cast(), pointer),
            SUCCESS
        );
        attributes
    };
    let middle = device.wrapping_byte_add(63);
    let answer = ask(middle);
    assert_eq!(
        (answer.kind, answer.device, answer.device_pointer, answer.host_pointer),
        (2, 1, middle.addr(), 0)
    );
    let answer = ask(pinned.cast());
    assert_eq!((answer.kind, answer.host_pointer), (1, pinned.addr()));
    assert_eq!(ask((&raw const own).cast()).kind, 0);
    assert_eq!(ask(device.wrapping_byte_add(64)).kind, 0, "one behind the end");
}
