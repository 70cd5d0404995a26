//! The memory that kernels may access; and allocation, sharing and freeing of rotini's own memory.

use super::{Emulator, Subject, alone, plugin, set_stream, with_handle};
use rotini_host::{DeviceBuffer, HostError};
use rotini_tests::{cases, harness};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;
use std::time::Duration;

#[test]
fn memory_that_kernels_cannot_work_on_is_refused() {
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    with_handle(&environment, |emulator, plugin, handle| {
        let relu = Subject::relu(&emulator.gpu, &plugin, &handle, 1024);
        let text = |pack: &[DeviceBuffer]| relu.execute_on(pack).unwrap_err().to_string();
        emulator.expect_none(|| {
            for index in [0, 1] {
                let mut pack = relu.pack.clone();
                pack[index].ptr = pack[index].ptr.wrapping_byte_add(8);
                let error = text(&pack);
                assert!(error.contains("16 bytes"), "{error}");
                pack[index].ptr = std::ptr::null_mut();
                assert!(text(&pack).contains("no buffer"));
            }
        });
        // Adjacent buffers do not overlap.
        let both = emulator.gpu.allocate(8192).unwrap();
        let mut pack = relu.pack.clone();
        pack[0].ptr = both.pointer();
        pack[1].ptr = both.pointer().wrapping_byte_add(4096);
        relu.execute_on(&pack).unwrap();

        // Two overlapping outputs are refused. An output over an input is allowed: see
        // `own_memory`.
        let diamond = cases::named("diamond_f32").unwrap();
        let diamond = Subject::of_case(&emulator.gpu, &plugin, &handle, &diamond);
        let graph = cases::named("diamond_f32").unwrap().graph;
        let outputs: Vec<i64> = harness::stored(&graph)
            .into_iter()
            .filter(|(_, is_output)| *is_output)
            .map(|(id, _)| graph.tensor(id).unwrap().uid)
            .collect();
        let place = |uid: i64| diamond.pack.iter().position(|buffer| buffer.uid == uid).unwrap();
        let [first, second] = outputs[..] else {
            panic!("{outputs:?}")
        };
        for distance in [0, 16, -16] {
            let mut pack = diamond.pack.clone();
            pack[place(second)].ptr = pack[place(first)].ptr.wrapping_byte_offset(distance);
            let error = diamond.execute_on(&pack).unwrap_err().to_string();
            assert!(error.contains("overlap"), "{distance}: {error}");
        }

        let two = Subject::two_convs(&emulator.gpu, &plugin, &handle);
        for (workspace, reason) in [
            (std::ptr::null_mut(), "workspace is null"),
            (two.memory[0].pointer(), "overlap"),
            (two.workspace.pointer().wrapping_byte_add(8), "16 bytes"),
        ] {
            // SAFETY: refused before any buffer is used.
            let error = unsafe { two.context.execute(workspace, &two.pack) }
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    });
}

/// `hipLaunchHostFunc`.
type LaunchHostFunc = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;

/// Blocks a stream until a gate, a `Mutex<()>`, is open.
unsafe extern "C" fn pass(gate: *mut c_void) {
    // SAFETY: the test keeps the gate alive until the stream has passed it.
    let gate = unsafe { &*gate.cast::<Mutex<()>>() };
    drop(gate.lock());
}

/// Without a workspace, only the first execution on a stream pays: later ones allocate nothing and
/// wait for nothing.
#[test]
fn memory_of_our_own_is_made_once() {
    with_handle(&[], |emulator, plugin, handle| {
        let streams = [emulator.gpu.stream().unwrap(), emulator.gpu.stream().unwrap()];
        let two = Subject::two_convs(&emulator.gpu, &plugin, &handle);
        let relu = Subject::relu(&emulator.gpu, &plugin, &handle, 1024);
        let mut in_place = relu.pack.clone();
        in_place[1].ptr = in_place[0].ptr;
        let without = |subject: &Subject, pack: &[DeviceBuffer]| {
            // SAFETY: the buffers have the spans of their tensors, and outlive the work.
            unsafe { subject.context.execute(std::ptr::null_mut(), pack) }.unwrap();
        };
        // While the first stream's work is pending, the second stream gets different blocks.
        let gate = Mutex::new(());
        let closed = gate.lock().unwrap();
        // SAFETY: HIP's header declares this signature.
        let launch: LaunchHostFunc = unsafe { emulator.driver().function("hipLaunchHostFunc") }.unwrap();
        // SAFETY: the stream is alive, and the gate lives until the stream has passed it.
        let status = unsafe { launch(streams[0].raw(), pass, (&raw const gate).cast_mut().cast()) };
        assert_eq!(status, 0);
        for stream in &streams {
            set_stream(&handle, stream.raw()).unwrap();
            without(&two, &two.pack);
            without(&relu, &in_place);
        }
        drop(closed);
        emulator.gpu.synchronize().unwrap();
        emulator.reset();
        for _ in 0..10 {
            for stream in &streams {
                set_stream(&handle, stream.raw()).unwrap();
                without(&two, &two.pack);
                without(&relu, &in_place);
            }
        }
        let executions = 2 * 2 * 10;
        for (name, calls) in [
            ("hipStreamGetCaptureInfo_v2", executions),
            ("hipStreamWaitEvent", executions),
            ("hipModuleLaunchKernel", 3 * executions / 2),
            ("hipMemcpyDtoDAsync", executions / 2),
            ("hipEventRecord", executions),
        ] {
            assert_eq!(emulator.calls(name), calls, "{name}: {}", emulator.summary());
        }
        // SAFETY: takes nothing.
        let all = unsafe { (emulator.calls_total)() };
        assert_eq!(all, 5 * executions, "{}", emulator.summary());
        // A capture has its own memory from the first time on, and a replay allocates none.
        let mut beside = None;
        let replay = streams[0].capture(|| -> Result<(), rotini_host::gpu::GpuError> {
            set_stream(&handle, streams[0].raw()).unwrap();
            without(&two, &two.pack);
            without(&two, &two.pack);
            without(&relu, &in_place);
            // Meanwhile, on a stream without memory yet: its allocations must not disturb the
            // capture.
            let new = emulator.gpu.stream().unwrap();
            set_stream(&handle, new.raw()).unwrap();
            without(&two, &two.pack);
            beside = Some(new);
            Ok(())
        });
        let replay = replay.unwrap();
        emulator.reset();
        for _ in 0..3 {
            // SAFETY: what was captured is alive.
            unsafe { replay.launch(&streams[0]) }.unwrap();
            without(&two, &two.pack);
        }
        assert_eq!(emulator.calls("hipMalloc"), 0, "{}", emulator.summary());
        emulator.gpu.synchronize().unwrap();
        drop((replay, beside));
        drop((two, relu, handle));
        // Dropping the last handle frees everything.
        assert!(emulator.calls("hipFree") >= 4, "{}", emulator.summary());
    });
}

/// Executes in place: the output is the input.
fn in_place(subject: &Subject) -> Result<(), HostError> {
    let mut pack = subject.pack.clone();
    pack[1].ptr = pack[0].ptr;
    subject.execute_on(&pack)
}

const MIB: i64 = 1 << 20;

/// Idle workspace of rotini that does not fit is freed before an execution fails for lack of
/// memory, and when code is retired.
#[test]
fn idle_memory_is_given_back() {
    with_handle(&[], |emulator, plugin, handle| {
        let [large, little] = [20 * MIB, 64].map(|count| Subject::relu(&emulator.gpu, &plugin, &handle, count));
        in_place(&large).unwrap();
        emulator.gpu.synchronize().unwrap();
        emulator.reset();
        emulator.fail("hipMalloc=hipErrorOutOfMemory@1");
        in_place(&little).unwrap();
        assert_eq!(emulator.calls("hipMalloc"), 2);
        assert_eq!(emulator.calls("hipFree"), 1);
        // If freeing does not help, the execution reports the failure.
        emulator.fail("hipMalloc=hipErrorOutOfMemory");
        let error = in_place(&large).unwrap_err().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
        emulator.fail("");

        in_place(&large).unwrap();
        emulator.gpu.synchronize().unwrap();
        emulator.reset();
        // 80 MiB exceed what is kept idle.
        let Subject { context, memory, .. } = large;
        drop(context);
        // The smaller block is freed too if it is the older one.
        rotini_tests::process::wait_until("memory is given back", || emulator.calls("hipFree") > 0).unwrap();
        drop((memory, little));
        emulator.gpu.synchronize().unwrap();
    });
}

/// Contexts that come and go with their captures do not leak memory.
#[test]
fn memory_of_captures_goes_with_their_code() {
    with_handle(&[], |emulator, plugin, handle| {
        const BYTES: u64 = 40 << 20;
        let stream = emulator.stream_of(&handle);
        let mut most = 0;
        emulator.reset();
        for _ in 0..20 {
            let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 10 * MIB);
            let replay = stream.capture(|| -> Result<(), rotini_host::gpu::GpuError> {
                in_place(&subject).unwrap();
                Ok(())
            });
            // SAFETY: what was captured is alive.
            unsafe { replay.as_ref().unwrap().launch(&stream) }.unwrap();
            stream.synchronize().unwrap();
            drop(replay);
            let Subject {
                context,
                memory,
                workspace,
                ..
            } = subject;
            drop((memory, workspace));
            drop(context);
            std::thread::sleep(Duration::from_millis(20));
            // All memory that is allocated and not freed belongs to the plugin now.
            most = most.max(emulator.calls("hipMalloc").saturating_sub(emulator.calls("hipFree")));
        }
        // 256 MiB are kept, and the same amount again if the unloading thread is late.
        assert!(
            most <= 2 * (256 << 20) / BYTES + 2,
            "{most} blocks: {}",
            emulator.summary()
        );
        emulator.gpu.synchronize().unwrap();
    });
}

/// Warnings of the plugin in this process.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn warned(severity: i32, message: *const c_char) {
    if severity > 0 {
        // SAFETY: the plugin passes a text with a terminator.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        WARNINGS.lock().unwrap().push(text);
    }
}

/// Each capture of a context keeps its own memory while the context lives, whatever happens to its
/// graph, and the plugin logs a warning. With a workspace none is needed.
#[test]
fn captures_keep_memory_and_say_so() {
    // Even a small workspace comes from the host.
    alone(&[("ROTINI_OWN_WORKSPACE", "0")], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        plugin.set_logging(Some(warned), 0).unwrap();
        let handle = plugin.handle().unwrap();
        let stream = emulator.stream_of(&handle);
        let capture = |execute: &dyn Fn()| {
            let replay = stream.capture(|| -> Result<(), rotini_host::gpu::GpuError> {
                execute();
                Ok(())
            });
            // SAFETY: what was captured is alive.
            unsafe { replay.unwrap().launch(&stream) }.unwrap();
            stream.synchronize().unwrap();
        };
        let relu = Subject::relu(&emulator.gpu, &plugin, &handle, 10 * MIB);
        let two = Subject::two_convs(&emulator.gpu, &plugin, &handle);
        emulator.reset();
        for _ in 0..50 {
            capture(&|| relu.execute().unwrap());
            capture(&|| two.execute().unwrap());
        }
        assert_eq!(emulator.calls("hipMalloc"), 0, "{}", emulator.summary());
        // 40 MiB each: six of them are below the limit for a warning.
        for round in 1..10 {
            capture(&|| in_place(&relu).unwrap());
            assert_eq!(emulator.calls("hipMalloc"), round);
            let warnings = WARNINGS.lock().unwrap();
            assert_eq!(warnings.len(), usize::from(round > 6), "{warnings:?}");
            assert!(
                warnings.iter().all(|text| text.contains("keep 280 MiB")),
                "{warnings:?}"
            );
        }
        assert_eq!(emulator.calls("hipFree"), 0, "{}", emulator.summary());
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn workspaces_of_another_gpu_are_refused() {
    let environment = [("HIPEMU_DEVICES", "gfx942,gfx942"), ("ROTINI_OWN_WORKSPACE", "0")];
    alone(&environment, || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let gpus = [0, 1].map(|ordinal| emulator.driver().gpu(ordinal).unwrap());
        gpus[0].select().unwrap();
        let handle = plugin.handle().unwrap();
        let two = Subject::two_convs(&gpus[0], &plugin, &handle);
        let other = gpus[1].allocate(two.workspace.bytes()).unwrap();
        gpus[0].select().unwrap();
        // SAFETY: refused before anything uses it.
        let error = unsafe { two.context.execute(other.pointer(), &two.pack) };
        let error = error.unwrap_err().to_string();
        assert!(error.contains("of another GPU"), "{error}");
        two.execute().unwrap();
        gpus[0].synchronize().unwrap();
    });
}

#[test]
fn without_a_workspace_little_is_needed_or_it_is_an_error() {
    let environment = [("ROTINI_OWN_WORKSPACE", "100")];
    with_handle(&environment, |emulator, plugin, handle| {
        let two = Subject::two_convs(&emulator.gpu, &plugin, &handle);
        assert!(two.context.workspace().unwrap() > 100);
        // SAFETY: refused before anything uses it.
        let error = unsafe { two.context.execute(std::ptr::null_mut(), &two.pack) };
        let error = error.unwrap_err().to_string();
        assert!(error.contains("workspace is null"), "{error}");
        two.execute().unwrap();
        emulator.gpu.synchronize().unwrap();
    });
}

/// A kernel that gets the host's memory ends the process: hosts have been seen to pass it.
#[test]
fn workspaces_are_where_the_gpu_reaches_them() {
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    with_handle(&environment, |emulator, plugin, handle| {
        let two = Subject::two_convs(&emulator.gpu, &plugin, &handle);
        let bytes = two.context.workspace().unwrap();
        let mut on_host = vec![0_u128; bytes.div_ceil(16)];
        let execute = |workspace: *mut c_void| {
            // SAFETY: the workspace has the required size, and the kernels do nothing.
            unsafe { two.context.execute(workspace, &two.pack) }
        };
        for _ in 0..2 {
            let error = execute(on_host.as_mut_ptr().cast()).unwrap_err().to_string();
            assert!(error.contains("memory of the host"), "{error}");
        }
        emulator.expect_none(|| assert!(execute(std::ptr::null_mut()).is_err()));
        for name in ["hipMalloc", "hipMallocManaged", "hipHostMalloc"] {
            let mut memory = std::ptr::null_mut();
            // SAFETY: HIP's header declares the last two functions with this signature; the first
            // takes no flags, and ignores the third argument.
            let status = unsafe {
                let allocate: unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> c_int =
                    emulator.driver().function(name).unwrap();
                allocate(&mut memory, bytes, u32::from(name == "hipMallocManaged"))
            };
            assert_eq!(status, 0, "{name}");
            execute(memory).unwrap();
            emulator.expect_only("hipModuleLaunchKernel", 2, || execute(memory).unwrap());
        }
        emulator.gpu.synchronize().unwrap();
    });
}
