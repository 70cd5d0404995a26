//! Devices, errors, counters and injected failures.

mod common;

use common::*;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

#[test]
fn devices_are_as_set_up() {
    let hip = Emulator::open(&[(
        "HIPEMU_DEVICES",
        "gfx942, gfx90a, gfx942:sramecc+:xnack+=AMD Instinct MI300A",
    )]);
    let mut count = 0;
    assert_eq!(hip.hipGetDeviceCount(&raw mut count), SUCCESS);
    assert_eq!(count, 3);
    // Offsets of the fields in HIP's own structure.
    const BYTES: usize = 1472;
    const MULTIPROCESSORS: usize = 388;
    const ARCHITECTURE: usize = 1160;
    for (device, name, architecture, units) in [
        (0, "AMD Instinct MI300X", "gfx942:sramecc+:xnack-", 304),
        (1, "AMD Instinct MI250X", "gfx90a:sramecc+:xnack-", 110),
        (2, "AMD Instinct MI300A", "gfx942:sramecc+:xnack+", 304),
    ] {
        let mut properties = [0xaau8; BYTES + 64];
        assert_eq!(
            hip.hipGetDevicePropertiesR0600(properties.as_mut_ptr().cast(), device),
            SUCCESS
        );
        let text = |at: usize| CStr::from_bytes_until_nul(&properties[at..]).unwrap().to_str().unwrap();
        assert_eq!((text(0), text(ARCHITECTURE)), (name, architecture));
        let number = i32::from_le_bytes(properties[MULTIPROCESSORS..MULTIPROCESSORS + 4].try_into().unwrap());
        assert_eq!(number, units);
        assert_eq!(properties[BYTES..], [0xaa; 64], "not a byte more than HIP's structure");
    }
    assert_eq!(hip.hipSetDevice(3), INVALID_DEVICE);
    assert_eq!(hip.hipGetLastError(), INVALID_DEVICE);
    assert_eq!(hip.hipGetLastError(), SUCCESS);
}

#[test]
fn code_is_loaded_where_it_can_run() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx942,gfx90a")]);
    let load = |target: &str| {
        let image = common::code::add_one(target);
        let mut module = null_mut();
        hip.hipModuleLoadData(&raw mut module, image.as_ptr().cast())
    };
    assert_eq!(load("amdgcn-amd-amdhsa--gfx942"), SUCCESS);
    assert_eq!(load("amdgcn-amd-amdhsa--gfx942:xnack-"), SUCCESS);
    assert_eq!(load("amdgcn-amd-amdhsa--gfx942:xnack+"), NO_BINARY);
    assert_eq!(load("amdgcn-amd-amdhsa--gfx90a"), NO_BINARY);
    assert_eq!(hip.hipSetDevice(1), SUCCESS);
    assert_eq!(load("amdgcn-amd-amdhsa--gfx942"), NO_BINARY);
    assert_eq!(load("amdgcn-amd-amdhsa--gfx90a"), SUCCESS);
    let mut module = null_mut();
    assert_eq!(
        hip.hipModuleLoadData(&raw mut module, [0u8; 64].as_ptr().cast()),
        200,
        "no ELF file"
    );
}

#[test]
fn a_function_runs_on_its_device_only() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx942,gfx942")]);
    let (_, function) = hip.add_one();
    let (own, buffer) = (hip.stream(NON_BLOCKING), hip.words(&[1; 64]));
    assert_eq!(hip.hipSetDevice(1), SUCCESS);
    let other = hip.stream(NON_BLOCKING);
    let mut device = 9;
    assert_eq!(hip.hipStreamGetDevice(own, &raw mut device), SUCCESS);
    assert_eq!(device, 0);
    assert_eq!(hip.launch(function, 1, buffer, buffer, other), INVALID_DEVICE);
    assert_eq!(hip.launch(function, 1, buffer, buffer, null_mut()), INVALID_DEVICE);
    assert_eq!(
        hip.launch(function, 1, buffer, buffer, own),
        SUCCESS,
        "whatever device is current"
    );
    assert_eq!(hip.hipStreamSynchronize(own), SUCCESS);
    assert_eq!(hip.read(buffer, 64), [2; 64]);
}

#[test]
fn memory_of_a_peer_needs_access() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx942,gfx942")]);
    let theirs = hip.words(&[1; 64]);
    assert_eq!(hip.hipSetDevice(1), SUCCESS);
    let (_, function) = hip.add_one();
    let (own, stream) = (hip.malloc(256), hip.stream(NON_BLOCKING));
    assert_eq!(hip.launch(function, 1, theirs, own, stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), ILLEGAL_ADDRESS);
    assert!(hip.fault().contains("memory of device 0"), "{}", hip.fault());
    assert_eq!(hip.hipDeviceReset(), SUCCESS);
    assert_eq!(hip.hipDeviceEnablePeerAccess(0, 0), SUCCESS);
    assert_eq!(hip.launch(function, 1, theirs, own, stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(hip.read(own, 64), [2; 64]);
}

#[test]
fn there_may_be_no_device() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "")]);
    let mut count = 7;
    assert_eq!(hip.hipInit(0), NO_DEVICE);
    assert_eq!(hip.hipGetDeviceCount(&raw mut count), NO_DEVICE);
    assert_eq!(count, 0);
    let mut pointer = null_mut();
    assert_eq!(hip.hipMalloc(&raw mut pointer, 64), NO_DEVICE);
    // SAFETY: C strings that stay.
    let text = |pointer: *const c_char| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap();
    assert_eq!(text(hip.hipGetErrorName(NO_DEVICE)), "hipErrorNoDevice");
    assert!(text(hip.hipGetErrorString(NO_DEVICE)).contains("no ROCm-capable device"));
}

#[test]
fn a_wrong_set_up_is_an_error() {
    for setting in [
        ("HIPEMU_DEVICES", "gfx000"),
        ("HIPEMU_SEED", "many"),
        ("HIPEMU_FAIL", "hipFoo=hipErrorUnknown"),
    ] {
        let hip = Emulator::open(&[setting]);
        assert_eq!(hip.hipInit(0), NOT_INITIALIZED, "{setting:?}");
    }
    let hip = Emulator::open(&[]);
    assert_eq!(
        hip.hipemu_set(c"HIPEMU_COLOUR".as_ptr(), c"1".as_ptr()),
        1,
        "no such variable"
    );
    assert_eq!(hip.hipInit(0), SUCCESS);
    assert_eq!(hip.hipemu_set(c"HIPEMU_SEED".as_ptr(), c"1".as_ptr()), 1, "too late");
}

#[test]
fn calls_are_counted_by_function_and_thread() {
    let hip = Emulator::open(&[("HIPEMU_NOOP", "1")]);
    let (_, function) = hip.add_one();
    let (buffer, stream) = (hip.malloc(256), hip.stream(NON_BLOCKING));
    hip.hipemu_calls_reset();
    assert_eq!(hip.hipemu_calls_total(), 0);
    for _ in 0..5 {
        assert_eq!(hip.launch(function, 1, buffer, buffer, stream), SUCCESS);
    }
    let handles = [function, buffer, stream].map(<*mut _>::expose_provenance);
    std::thread::scope(|scope| {
        let hip = &hip;
        scope.spawn(move || {
            let [function, buffer, stream] = handles.map(std::ptr::with_exposed_provenance_mut);
            for _ in 0..3 {
                assert_eq!(hip.launch(function, 1, buffer, buffer, stream), SUCCESS);
            }
            assert_eq!(hip.hipemu_thread_calls_total(), 3);
        });
    });
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(hip.calls(c"hipModuleLaunchKernel"), 8, "the thread that ended counts");
    assert_eq!(hip.hipemu_calls_total(), 9);
    assert_eq!(hip.hipemu_thread_calls(c"hipModuleLaunchKernel".as_ptr()), 5);
    assert_eq!(hip.hipemu_thread_calls_total(), 6);
    assert_eq!(hip.calls(c"hipMalloc"), 0);
    assert_eq!(hip.calls(c"hipMaloc"), u64::MAX, "a misspelt name is no zero");
}

#[test]
fn functions_fail_when_told_to() {
    let hip = Emulator::open(&[(
        "HIPEMU_FAIL",
        "hipMalloc=hipErrorOutOfMemory@2,hipDeviceSynchronize=hipErrorUnknown",
    )]);
    let mut pointer = null_mut();
    let results = [(); 3].map(|()| hip.hipMalloc(&raw mut pointer, 64));
    assert_eq!(results, [SUCCESS, OUT_OF_MEMORY, SUCCESS]);
    assert_eq!(hip.hipPeekAtLastError(), OUT_OF_MEMORY);
    assert_eq!([hip.hipDeviceSynchronize(), hip.hipDeviceSynchronize()], [999, 999]);
    assert_eq!(hip.hipemu_fail(c"".as_ptr()), 0);
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
    assert_eq!(hip.hipemu_fail(c"nonsense".as_ptr()), 1);
}

#[test]
fn a_trace_has_every_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let hip = Emulator::open(&[("HIPEMU_TRACE", path.to_str().unwrap())]);
    let pointer = hip.malloc(48);
    assert_eq!(hip.hipFree(pointer), SUCCESS);
    let trace = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = trace.lines().collect();
    assert_eq!(lines.len(), 2, "{trace}");
    assert!(
        lines[0].contains("hipMalloc(") && lines[0].contains("bytes=48"),
        "{trace}"
    );
    assert!(lines[1].contains(&format!("hipFree(pointer={pointer:?})")), "{trace}");
}
