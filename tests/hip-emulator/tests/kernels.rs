//! Kernels on the emulated device: results, faults, and what launching one costs in calls.

mod common;

use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

const WORDS: u32 = 256;

#[test]
fn a_kernel_computes() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let input: Vec<u32> = (0..WORDS).collect();
    let (from, to) = (hip.words(&input), hip.malloc(WORDS as usize * 4));
    let stream = hip.stream(NON_BLOCKING);
    assert_eq!(hip.launch(function, WORDS / 64, from, to, stream), SUCCESS);
    assert_eq!(hip.launch(function, WORDS / 64, to, to, stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    let expected: Vec<u32> = input.iter().map(|word| word + 2).collect();
    assert_eq!(hip.read(to, WORDS as usize), expected);
}

#[test]
fn arguments_can_come_as_one_buffer() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let (from, to) = (hip.words(&[7; 64]), hip.malloc(256));
    let mut buffer = [from, to];
    let mut bytes = size_of_val(&buffer);
    let mut extra: [*mut c_void; 5] = [
        std::ptr::without_provenance_mut(1),
        buffer.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(2),
        (&raw mut bytes).cast(),
        std::ptr::without_provenance_mut(3),
    ];
    let launch = |extra: *mut *mut c_void| {
        hip.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, null_mut(), null_mut(), extra)
    };
    assert_eq!(launch(extra.as_mut_ptr()), SUCCESS);
    assert_eq!(hip.read(to, 64), [8; 64]);
    let mut short = 8usize;
    extra[3] = (&raw mut short).cast();
    assert_eq!(launch(extra.as_mut_ptr()), INVALID_VALUE);
    assert_eq!(launch(null_mut()), INVALID_VALUE, "no arguments at all");
}

#[test]
fn shapes_that_no_device_takes_are_refused() {
    let hip = Emulator::open(&[("HIPEMU_NOOP", "1")]);
    let (_, function) = hip.add_one();
    let buffer = hip.malloc(256);
    let (mut from, mut to) = (buffer, buffer);
    let mut parameters = [(&raw mut from).cast::<c_void>(), (&raw mut to).cast()];
    let mut launch = |grid: u32, block: u32, shared: u32| {
        let parameters = parameters.as_mut_ptr();
        hip.hipModuleLaunchKernel(
            function,
            grid,
            1,
            1,
            block,
            1,
            1,
            shared,
            null_mut(),
            parameters,
            null_mut(),
        )
    };
    assert_eq!(launch(1, 64, 0), SUCCESS);
    assert_ne!(launch(0, 64, 0), SUCCESS);
    assert_ne!(launch(1, 0, 0), SUCCESS);
    assert_ne!(launch(1, 2048, 0), SUCCESS);
    assert_ne!(launch(1, 512, 0), SUCCESS, "the kernel takes 256");
    assert_ne!(launch(1, 64, 65 << 10), SUCCESS, "LDS");
}

/// A kernel that runs out of its buffer makes the next waiting call fail, and every use of the
/// device after it.
#[test]
fn a_fault_is_reported_and_stays() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let (from, to) = (hip.words(&[1; 128]), hip.malloc(64 * 4));
    let stream = hip.stream(NON_BLOCKING);
    assert_eq!(hip.launch(function, 2, from, to, stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), ILLEGAL_ADDRESS);
    let fault = hip.fault();
    for part in [
        "add_one",
        "global_store_dword",
        "after the end of an allocation of 256 bytes",
    ] {
        assert!(fault.contains(part), "{fault}");
    }
    assert_eq!(hip.hipDeviceSynchronize(), ILLEGAL_ADDRESS);
    assert_eq!(hip.launch(function, 1, from, to, stream), ILLEGAL_ADDRESS);
    assert_eq!(hip.hipDeviceReset(), SUCCESS);
    assert_eq!(hip.launch(function, 1, from, to, stream), SUCCESS);
    assert_eq!(hip.hipStreamSynchronize(stream), SUCCESS);
    assert_eq!(hip.read(to, 64), [2; 64]);
}

/// A fault hits all who use the device, and is that thread's whose command it was.
#[test]
fn a_fault_has_an_owner() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let pointers = [function, hip.words(&[1; 128]), hip.malloc(64 * 4)].map(<*mut _>::expose_provenance);
    let launch = |workgroups| {
        let [function, from, to] = pointers.map(std::ptr::with_exposed_provenance_mut);
        hip.launch(function, workgroups, from, to, null_mut())
    };
    std::thread::scope(|scope| {
        let culprit = scope.spawn(|| {
            assert_eq!(launch(2), SUCCESS);
            assert_eq!(hip.hipDeviceSynchronize(), ILLEGAL_ADDRESS);
        });
        culprit.join().unwrap();
        scope.spawn(|| {
            assert_eq!(launch(1), ILLEGAL_ADDRESS);
            assert_eq!(hip.take_thread_fault(), "", "not this thread's");
        });
    });
    assert!(hip.fault().contains("add_one"), "{}", hip.fault());
    hip.hipemu_clear_fault();
    assert_eq!((launch(2), hip.hipDeviceSynchronize()), (SUCCESS, ILLEGAL_ADDRESS));
    assert!(hip.take_thread_fault().contains("add_one"));
    assert_eq!(
        (hip.take_thread_fault().as_str(), hip.fault().as_str()),
        ("", ""),
        "it is taken"
    );
    assert_eq!(launch(1), ILLEGAL_ADDRESS, "the device is as unusable as before");
    hip.hipemu_clear_fault();
    assert_eq!((launch(1), hip.hipDeviceSynchronize()), (SUCCESS, SUCCESS));
}

#[test]
fn use_after_free_is_named() {
    let hip = Emulator::open(&[]);
    let (_, function) = hip.add_one();
    let (from, to) = (hip.words(&[1; 64]), hip.malloc(256));
    assert_eq!(hip.hipFree(from), SUCCESS);
    assert_eq!(hip.launch(function, 1, from, to, null_mut()), SUCCESS);
    assert_eq!(hip.hipDeviceSynchronize(), ILLEGAL_ADDRESS);
    assert!(hip.fault().contains("use after free"), "{}", hip.fault());
}

/// HIP does not keep a module for the launches that are not done.
#[test]
fn unloading_a_module_under_its_kernel_is_a_fault() {
    let hip = Emulator::open(&[]);
    let (module, function) = hip.add_one();
    let (from, to) = (hip.words(&[1; 64]), hip.malloc(256));
    let stream = hip.stream(NON_BLOCKING);
    let gate = Gate::close(&hip, stream);
    assert_eq!(hip.launch(function, 1, from, to, stream), SUCCESS);
    assert_eq!(hip.hipModuleUnload(module), SUCCESS);
    gate.open();
    assert_eq!(hip.hipStreamSynchronize(stream), ILLEGAL_ADDRESS);
    assert!(hip.fault().contains("unloaded"), "{}", hip.fault());
    assert_ne!(hip.launch(function, 1, from, to, stream), SUCCESS);
    assert_ne!(hip.hipModuleUnload(module), SUCCESS);
}

#[test]
fn reports_are_json_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report");
    let hip = Emulator::open(&[("HIPEMU_REPORT", path.to_str().unwrap())]);
    let (_, function) = hip.add_one();
    let (from, to) = (hip.words(&[1; 128]), hip.malloc(512));
    for _ in 0..2 {
        assert_eq!(hip.launch(function, 2, from, to, null_mut()), SUCCESS);
    }
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    for part in [
        "\"kernel\":\"add_one\"",
        "\"waves\":2",
        // Each of two waves reads 64 words and 16 bytes of arguments.
        "\"bytes_read\":544",
        "\"bytes_written\":512",
        "\"valu\":6",
    ] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
}

/// A sample is for time alone: its reports have records, and most workgroups do not run.
#[test]
fn samples_have_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report");
    let hip = Emulator::open(&[
        ("HIPEMU_REPORT", path.to_str().unwrap()),
        ("HIPEMU_SAMPLE", "3"),
        ("HIPEMU_WINDOW", "2"),
    ]);
    let (_, function) = hip.add_one();
    let (from, to) = (hip.words(&[1; 64 * 64]), hip.malloc(64 * 256));
    assert_eq!(hip.launch(function, 64, from, to, null_mut()), SUCCESS);
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
    let text = std::fs::read_to_string(&path).unwrap();
    for part in [
        "\"record\":{",
        "\"sampled\":2",
        "\"workgroups\":64",
        "\"footprint\":32768",
        " g1,4,2,2,2,1,1 ",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
}

/// The emulator knows the metadata of other architectures, not their instructions.
#[test]
fn other_architectures_load_and_do_not_run() {
    let hip = Emulator::open(&[("HIPEMU_DEVICES", "gfx90a")]);
    let (mut module, mut function) = (null_mut(), null_mut());
    let image = common::code::add_one("amdgcn-amd-amdhsa--gfx90a");
    assert_eq!(hip.hipModuleLoadData(&raw mut module, image.as_ptr().cast()), SUCCESS);
    assert_eq!(
        hip.hipModuleGetFunction(&raw mut function, module, c"add_one".as_ptr()),
        SUCCESS
    );
    let buffer = hip.words(&[1; 64]);
    hip.hipemu_set_noop(1);
    assert_eq!(hip.launch(function, 1, buffer, buffer, null_mut()), SUCCESS);
    assert_eq!(hip.hipDeviceSynchronize(), SUCCESS);
    hip.hipemu_set_noop(0);
    assert_eq!(hip.launch(function, 1, buffer, buffer, null_mut()), SUCCESS);
    assert_ne!(hip.hipDeviceSynchronize(), SUCCESS);
    assert!(hip.fault().contains("gfx90a"), "{}", hip.fault());
}
