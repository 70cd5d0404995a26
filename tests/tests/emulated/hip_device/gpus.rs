//! The GPU and stream of an execution, and the behaviour without a GPU or with a broken HIP.

use super::{Emulator, Subject, alone, config, plugin, relu, set_stream};
use std::path::Path;

const MIXED: &str = "gfx942:sramecc+:xnack-=AMD Instinct MI300X,gfx942:sramecc+:xnack-=AMD Instinct MI300A,gfx1100=AMD Radeon RX 7900 XTX";

#[test]
fn a_handle_is_on_the_gpu_of_its_stream() {
    alone(&[("HIPEMU_DEVICES", MIXED)], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let gpus = [0, 1, 2].map(|ordinal| emulator.driver().gpu(ordinal).unwrap());
        let streams = gpus.each_ref().map(|gpu| gpu.stream().unwrap());
        let graph = relu(1000);

        // The handle uses the GPU that is current at its creation, and never changes the current
        // one.
        gpus[1].select().unwrap();
        let handle = plugin.handle().unwrap();
        let on_one = Subject::relu(&gpus[1], &plugin, &handle, 1000);
        gpus[0].select().unwrap();
        // The null stream of the handle's GPU, even if another one is current.
        on_one.execute().unwrap();
        assert_eq!(emulator.current(), 0);
        gpus[1].synchronize().unwrap();
        gpus[0].select().unwrap();

        // After setting a stream, the stream's GPU.
        set_stream(&handle, streams[0].raw()).unwrap();
        let on_zero = Subject::relu(&gpus[0], &plugin, &handle, 1000);
        on_zero.execute().unwrap();
        let error = on_one.execute().unwrap_err().to_string();
        assert!(error.contains("GPU 1") && error.contains("GPU 0"), "{error}");
        set_stream(&handle, streams[1].raw()).unwrap();
        gpus[0].select().unwrap();
        emulator.expect_only("hipModuleLaunchKernel", 1, || on_one.execute().unwrap());
        assert!(on_zero.execute().is_err());

        // A GPU without a code target is declined, with the reason, and the handle can switch away
        // again.
        set_stream(&handle, streams[2].raw()).unwrap();
        assert!(handle.applicable(&graph).unwrap().is_empty());
        let error = handle.context(&config(&plugin), &graph).err().unwrap().to_string();
        assert!(error.contains("gfx1100") && error.contains("ROTINI_TARGET"), "{error}");
        set_stream(&handle, streams[0].raw()).unwrap();
        assert_eq!(handle.applicable(&graph).unwrap().len(), 1);
        on_zero.execute().unwrap();

        // The null stream means the current GPU.
        gpus[1].select().unwrap();
        set_stream(&handle, std::ptr::null_mut()).unwrap();
        on_one.execute().unwrap();
        assert!(on_zero.execute().is_err());
        // HIP's other special streams, `hipStreamLegacy` and `hipStreamPerThread`, do too: the GPU
        // is fixed then, whatever is current later.
        for name in [1, 2] {
            gpus[1].select().unwrap();
            set_stream(&handle, std::ptr::without_provenance_mut(name)).unwrap();
            gpus[0].select().unwrap();
            on_one.execute().unwrap();
            assert_eq!(emulator.current(), 0);
        }
        for gpu in &gpus {
            gpu.synchronize().unwrap();
        }
    });
}

#[test]
fn a_target_can_be_named_for_an_unknown_gpu() {
    let environment = [("HIPEMU_DEVICES", "gfx1100"), ("ROTINI_TARGET", "gfx942")];
    alone(&environment, || {
        let _emulator = Emulator::new();
        let handle = plugin().handle().unwrap();
        assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
    });
}

/// A GPU that could not be set up for lack of memory works once there is memory.
#[test]
fn what_passes_is_no_verdict_on_a_gpu() {
    alone(&[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        emulator.fail("hipGetDevicePropertiesR0600=hipErrorOutOfMemory");
        let before = plugin.handle().unwrap();
        let error = before.context(&config(&plugin), &relu(64)).err().unwrap().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
        emulator.fail("");
        // Handles that existed meanwhile work too.
        for handle in [&before, &plugin.handle().unwrap()] {
            assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
            Subject::relu(&emulator.gpu, &plugin, handle, 64).execute().unwrap();
        }
        emulator.gpu.synchronize().unwrap();
    });
}

/// Checks that the plugin refuses to make a handle in this environment, and that its error has one
/// of these words.
fn expect_refusal(environment: &[(&str, &str)], words: &[&str]) {
    alone(environment, || {
        let error = plugin().handle().err().expect("a handle without a GPU").to_string();
        assert!(words.iter().any(|word| error.contains(word)), "{error}");
    });
}

/// Checks that with `auto` graphs run on the CPU then.
fn expect_cpu() {
    let handle = plugin().handle().unwrap();
    assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
}

#[test]
fn without_a_gpu_hip_is_declined() {
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let none = [
        ("HIPEMU_DEVICES", ""),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "hip"),
    ];
    expect_refusal(&none, &["hipErrorNoDevice"]);
}

#[test]
fn without_a_gpu_auto_is_the_cpu() {
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let none = [
        ("HIPEMU_DEVICES", ""),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "auto"),
    ];
    alone(&none, expect_cpu);
}

#[test]
fn a_library_that_is_not_there_is_declined() {
    let missing = [
        ("ROTINI_HIP_LIBRARY", "/nowhere/libamdhip64.so"),
        ("ROTINI_DEVICE", "hip"),
    ];
    expect_refusal(&missing, &["/nowhere/libamdhip64.so"]);
}

#[test]
fn another_library_is_declined() {
    // A library that is not HIP.
    let other = rotini_tests::plugin::path().unwrap();
    let other = [
        ("ROTINI_HIP_LIBRARY", other.to_str().unwrap()),
        ("ROTINI_DEVICE", "hip"),
    ];
    expect_refusal(&other, &["hipInit"]);
}

#[test]
fn a_file_that_is_no_library_is_declined() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = [("ROTINI_HIP_LIBRARY", file.to_str().unwrap()), ("ROTINI_DEVICE", "hip")];
    expect_refusal(&file, &["ELF", "header"]);
}

/// A library that is short of memory does not mean that there are no GPUs: buffers on a GPU must
/// not be passed to the CPU.
#[test]
fn without_memory_auto_is_not_the_cpu() {
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let short = [
        ("HIPEMU_FAIL", "hipInit=hipErrorOutOfMemory"),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "auto"),
    ];
    expect_refusal(&short, &["hipErrorOutOfMemory"]);
}
