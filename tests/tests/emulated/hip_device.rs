//! What the plugin asks of HIP: how little an execution needs, which GPU and stream it goes to, when code is loaded and unloaded, and
//! what happens when HIP is not as it should be.
//!
//! Counted by the emulated HIP library, which sees every call of the plugin and of IREE's driver, from any thread. Kernels do nothing
//! here; that they compute the right thing is for `emulated` to say. Every test is a process of its own, because the emulator's devices
//! and counters are a process's: the test starts itself again as a child with the environment that it needs.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use rotini_graph::{DataType, GraphBuilder, PointwiseMode, TensorKind};
use rotini_host::gpu::{Allocation, Driver, Gpu};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, Plugin, ShapeOverride, engine_config};
use rotini_reference::span_bytes;
use rotini_tests::cases::{self, Case};
use rotini_tests::{harness, shapes};
use rotini_wire::engine_details::BehaviorNote;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// In a child: the test that it is.
const CHILD: &str = "ROTINI_TEST_CHILD";

/// Runs a body in a process of its own, where kernels do nothing.
fn alone(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    let test = format!("hip_device::{test}");
    if std::env::var_os(CHILD).is_some_and(|child| child == test.as_str()) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture"])
        .env(CHILD, &test)
        .env("HIPEMU_NOOP", "1")
        .env("ROTINI_CACHE_DIR", "")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    // A filter that matches nothing is a success too.
    assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
}

/// The emulated HIP, and its counters.
struct Emulator {
    gpu: Gpu,
    calls: unsafe extern "C" fn(*const c_char) -> u64,
    thread_calls: unsafe extern "C" fn(*const c_char) -> u64,
    calls_total: unsafe extern "C" fn() -> u64,
    thread_total: unsafe extern "C" fn() -> u64,
    summary: unsafe extern "C" fn() -> *const c_char,
    reset: unsafe extern "C" fn(),
    fail: unsafe extern "C" fn(*const c_char) -> c_int,
    current: unsafe extern "C" fn(*mut c_int) -> c_int,
}

impl Emulator {
    fn new() -> Self {
        assert!(
            std::env::var_os("ROTINI_TEST_DEVICE").is_none(),
            "only the emulator counts calls"
        );
        let gpu = harness::gpu().expect("the emulator is there");
        let driver = gpu.driver();
        // SAFETY: the emulator and HIP's header declare them like this.
        unsafe {
            Emulator {
                calls: driver.function("hipemu_calls").unwrap(),
                thread_calls: driver.function("hipemu_thread_calls").unwrap(),
                calls_total: driver.function("hipemu_calls_total").unwrap(),
                thread_total: driver.function("hipemu_thread_calls_total").unwrap(),
                summary: driver.function("hipemu_calls_summary").unwrap(),
                reset: driver.function("hipemu_calls_reset").unwrap(),
                fail: driver.function("hipemu_fail").unwrap(),
                current: driver.function("hipGetDevice").unwrap(),
                gpu,
            }
        }
    }

    fn driver(&self) -> &Driver {
        self.gpu.driver()
    }

    /// Calls of a function since the last reset.
    fn calls(&self, name: &str) -> u64 {
        let name = CString::new(name).unwrap();
        // SAFETY: a terminated text.
        let calls = unsafe { (self.calls)(name.as_ptr()) };
        assert_ne!(calls, u64::MAX, "{name:?} is no function");
        calls
    }

    /// What a body calls, given that it calls one function `count` times and nothing else, all of it on this thread.
    fn expect_only(&self, name: &str, count: u64, body: impl FnOnce()) {
        let text = CString::new(name).unwrap();
        self.reset();
        body();
        // SAFETY: take nothing, or a terminated text.
        let counts = unsafe {
            (
                (self.calls_total)(),
                (self.thread_total)(),
                (self.thread_calls)(text.as_ptr()),
            )
        };
        assert_eq!(
            counts,
            (count, count, count),
            "in all, this thread's, {name}: {}",
            self.summary()
        );
    }

    /// The same of a body that calls nothing.
    fn expect_none(&self, body: impl FnOnce()) {
        self.reset();
        body();
        // SAFETY: takes nothing.
        assert_eq!(unsafe { (self.calls_total)() }, 0, "{}", self.summary());
    }

    /// What was called since the last reset.
    fn summary(&self) -> String {
        // SAFETY: takes nothing; the text is valid until the next summary.
        unsafe { CStr::from_ptr((self.summary)()) }
            .to_string_lossy()
            .into_owned()
    }

    fn reset(&self) {
        // SAFETY: takes nothing.
        unsafe { (self.reset)() };
    }

    /// Makes calls fail: `function=error`.
    fn fail(&self, what: &str) {
        let what = CString::new(what).unwrap();
        // SAFETY: a terminated text.
        let done = unsafe { (self.fail)(what.as_ptr()) };
        assert_eq!(done, 0, "{what:?} is not understood");
    }

    /// Waits until what is done in the background has made so many calls of a function.
    fn wait_for(&self, name: &str, count: u64) {
        let started = Instant::now();
        while self.calls(name) < count {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{name}: {}",
                self.summary()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.calls(name), count, "{name}");
    }

    fn current(&self) -> c_int {
        let mut ordinal = -1;
        // SAFETY: the place is valid for the call.
        assert_eq!(unsafe { (self.current)(&mut ordinal) }, 0);
        ordinal
    }
}

fn plugin() -> Plugin {
    // SAFETY: the plugin that this workspace builds.
    unsafe { Plugin::load(rotini_tests::plugin::path().unwrap()) }.unwrap()
}

fn config(plugin: &Plugin) -> Vec<u8> {
    engine_config(plugin.engine_ids().unwrap()[0])
}

/// Relu over some elements: another graph for each number.
fn relu(elements: i64) -> Vec<u8> {
    let mut builder = GraphBuilder::new("relu");
    let x = builder.buffer("x", DataType::F32, &[elements]);
    let y = builder.buffer("y", DataType::F32, &[elements]);
    builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
    rotini_wire::encode(&builder.build())
}

/// A graph with its memory on a GPU.
struct Subject {
    context: Context,
    pack: Vec<DeviceBuffer>,
    memory: Vec<Allocation>,
    workspace: Allocation,
}

impl Subject {
    fn of_case(gpu: &Gpu, plugin: &Plugin, handle: &Handle, case: &Case) -> Self {
        Self::new(gpu, plugin, handle, &rotini_wire::encode(&case.graph))
    }

    fn relu(gpu: &Gpu, plugin: &Plugin, handle: &Handle, elements: i64) -> Self {
        Self::new(gpu, plugin, handle, &relu(elements))
    }

    fn new(gpu: &Gpu, plugin: &Plugin, handle: &Handle, bytes: &[u8]) -> Self {
        let context = handle.context(&config(plugin), bytes).unwrap();
        let workspace = gpu.allocate(context.workspace().unwrap()).unwrap();
        let graph = rotini_wire::decode(bytes).unwrap();
        let (pack, memory) = harness::stored(&graph)
            .into_iter()
            .map(|(id, _)| {
                let tensor = graph.tensor(id).unwrap();
                let memory = gpu.allocate(span_bytes(tensor).unwrap()).unwrap();
                let (uid, ptr) = (tensor.uid, memory.pointer());
                (DeviceBuffer { uid, ptr }, memory)
            })
            .unzip();
        let mut pack: Vec<DeviceBuffer> = pack;
        // On the host, and only read.
        static SCALAR: u64 = 0;
        for tensor in &graph.tensors {
            if tensor.kind == TensorKind::RuntimeScalar {
                pack.push(DeviceBuffer {
                    uid: tensor.uid,
                    ptr: (&raw const SCALAR).cast_mut().cast(),
                });
            }
        }
        Subject {
            context,
            pack,
            memory,
            workspace,
        }
    }

    fn execute(&self) -> Result<(), HostError> {
        self.execute_on(&self.pack)
    }

    fn execute_on(&self, pack: &[DeviceBuffer]) -> Result<(), HostError> {
        // SAFETY: the memory has the sizes of the tensors, and outlives the work, which does nothing with it.
        unsafe { self.context.execute(self.workspace.pointer(), pack) }
    }
}

fn set_stream(handle: &Handle, stream: *mut c_void) -> Result<(), HostError> {
    // SAFETY: the streams of these tests outlive their handles' work.
    unsafe { handle.set_stream(stream) }
}

#[test]
fn an_execution_is_one_launch_per_kernel_and_nothing_else() {
    // A workspace that is little is the host's too.
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    alone(
        "an_execution_is_one_launch_per_kernel_and_nothing_else",
        &environment,
        || {
            let emulator = Emulator::new();
            let plugin = plugin();
            let handle = plugin.handle().unwrap();
            let streams = [emulator.gpu.stream().unwrap(), emulator.gpu.stream().unwrap()];
            // Every fused layer of ResNet-50 in f16, in both layouts.
            let mut layers = cases::resnet50(1);
            layers.retain(|case| case.name.ends_with("_f16"));
            assert_eq!(layers.len(), 48);
            layers.extend(["scalar_MUL_f64", "scalars_of_all_sizes"].map(|name| cases::named(name).unwrap()));
            let single = layers.into_iter().map(|case| (case, 1));
            for (case, launches) in single.chain([(cases::named("two_convs_nhwc").unwrap(), 2)]) {
                println!("{}", case.name);
                let subject = Subject::of_case(&emulator.gpu, &plugin, &handle, &case);
                if subject.context.workspace().unwrap() > 0 {
                    // Where a workspace is, is asked once.
                    emulator.reset();
                    subject.execute().unwrap();
                    assert_eq!(emulator.calls("hipPointerGetAttributes"), 1);
                }
                // The first execution too: nothing is put off until then.
                for _ in 0..3 {
                    emulator.expect_only("hipModuleLaunchKernel", launches, || subject.execute().unwrap());
                }
                // With one GPU, not even a change of the stream asks HIP.
                emulator.expect_only("hipModuleLaunchKernel", 2 * launches, || {
                    for stream in &streams {
                        set_stream(&handle, stream.raw()).unwrap();
                        subject.execute().unwrap();
                    }
                    set_stream(&handle, std::ptr::null_mut()).unwrap();
                });
                emulator.gpu.synchronize().unwrap();
            }
        },
    );
}

/// Other shapes cost what the declared ones do, from the second time on.
#[test]
fn an_execution_of_known_shapes_is_one_launch_too() {
    alone("an_execution_of_known_shapes_is_one_launch_too", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let family = shapes::all()
            .into_iter()
            .find(|family| family.name == "scaled")
            .unwrap();
        let declared = family.declared();
        let subject = Subject::new(&emulator.gpu, &plugin, &handle, &rotini_wire::encode(&declared));
        let overrides: Vec<_> = family
            .executed()
            .map(|graph| shapes::overrides(&declared, &graph))
            .collect();
        let execute = |overrides: &[ShapeOverride]| {
            // SAFETY: no shape is larger than the declared one.
            let executed = unsafe {
                subject
                    .context
                    .execute_with_overrides(subject.workspace.pointer(), &subject.pack, overrides)
            };
            executed.unwrap();
        };
        overrides.iter().for_each(|overrides| execute(overrides));
        for overrides in &overrides {
            emulator.reset();
            execute(overrides);
            // Code of captured executions has to stay, so that is asked for first.
            for name in ["hipModuleLaunchKernel", "hipStreamGetCaptureInfo_v2"] {
                assert_eq!(emulator.calls(name), 1, "{name}: {}", emulator.summary());
            }
            // SAFETY: takes nothing.
            assert_eq!(unsafe { (emulator.calls_total)() }, 2, "{}", emulator.summary());
        }
        emulator.expect_only("hipModuleLaunchKernel", 1, || execute(&[]));
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn threads_with_streams_of_their_own_share_the_code() {
    alone("threads_with_streams_of_their_own_share_the_code", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let keep = plugin.handle().unwrap();
        let first = Subject::relu(&emulator.gpu, &plugin, &keep, 4096);
        emulator.reset();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let handle = plugin.handle().unwrap();
                    let stream = emulator.gpu.stream().unwrap();
                    set_stream(&handle, stream.raw()).unwrap();
                    let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 4096);
                    for _ in 0..100 {
                        subject.execute().unwrap();
                    }
                    stream.synchronize().unwrap();
                });
            }
        });
        assert_eq!(emulator.calls("hipModuleLaunchKernel"), 800);
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 0, "the code was loaded again");
        first.execute().unwrap();
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn a_handle_costs_no_thread_and_no_memory() {
    alone("a_handle_costs_no_thread_and_no_memory", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let first = plugin.handle().unwrap();
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let before = threads();
        let mut more = Vec::new();
        emulator.expect_none(|| more.extend((0..16).map(|_| plugin.handle().unwrap())));
        assert_eq!(threads(), before);
        drop((first, more));
    });
}

const MIXED: &str = "gfx942:sramecc+:xnack-=AMD Instinct MI300X,gfx942:sramecc+:xnack-=AMD Instinct MI300A,gfx1100=AMD Radeon RX 7900 XTX";

#[test]
fn a_handle_is_on_the_gpu_of_its_stream() {
    alone(
        "a_handle_is_on_the_gpu_of_its_stream",
        &[("HIPEMU_DEVICES", MIXED)],
        || {
            let emulator = Emulator::new();
            let plugin = plugin();
            let gpus = [0, 1, 2].map(|ordinal| emulator.driver().gpu(ordinal).unwrap());
            let streams = gpus.each_ref().map(|gpu| gpu.stream().unwrap());
            let graph = relu(1000);

            // The current GPU at creation, and it stays current whatever is done.
            gpus[1].select().unwrap();
            let handle = plugin.handle().unwrap();
            let on_one = Subject::relu(&gpus[1], &plugin, &handle, 1000);
            gpus[0].select().unwrap();
            // The null stream of the handle's GPU, though another one is current.
            on_one.execute().unwrap();
            assert_eq!(emulator.current(), 0);
            gpus[1].synchronize().unwrap();
            gpus[0].select().unwrap();

            // The stream's GPU.
            set_stream(&handle, streams[0].raw()).unwrap();
            let on_zero = Subject::relu(&gpus[0], &plugin, &handle, 1000);
            on_zero.execute().unwrap();
            let error = on_one.execute().unwrap_err().to_string();
            assert!(error.contains("GPU 1") && error.contains("GPU 0"), "{error}");
            set_stream(&handle, streams[1].raw()).unwrap();
            gpus[0].select().unwrap();
            emulator.expect_only("hipModuleLaunchKernel", 1, || on_one.execute().unwrap());
            assert!(on_zero.execute().is_err());

            // A GPU that code cannot be made for is declined, with the reason, and the handle can leave it again.
            set_stream(&handle, streams[2].raw()).unwrap();
            assert!(handle.applicable(&graph).unwrap().is_empty());
            let error = handle.context(&config(&plugin), &graph).err().unwrap().to_string();
            assert!(error.contains("gfx1100") && error.contains("ROTINI_TARGET"), "{error}");
            set_stream(&handle, streams[0].raw()).unwrap();
            assert_eq!(handle.applicable(&graph).unwrap().len(), 1);
            on_zero.execute().unwrap();

            // The null stream is the current GPU's.
            gpus[1].select().unwrap();
            set_stream(&handle, std::ptr::null_mut()).unwrap();
            on_one.execute().unwrap();
            assert!(on_zero.execute().is_err());
            // So are HIP's other names for streams, `hipStreamLegacy` and `hipStreamPerThread`: that GPU's whatever is current later.
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
        },
    );
}

#[test]
fn a_target_can_be_named_for_an_unknown_gpu() {
    let environment = [("HIPEMU_DEVICES", "gfx1100"), ("ROTINI_TARGET", "gfx942")];
    alone("a_target_can_be_named_for_an_unknown_gpu", &environment, || {
        let _emulator = Emulator::new();
        let handle = plugin().handle().unwrap();
        assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
    });
}

#[test]
fn code_stays_loaded_until_the_gpu_has_finished_with_it() {
    alone("code_stays_loaded_until_the_gpu_has_finished_with_it", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let stream = emulator.gpu.stream().unwrap();
        set_stream(&handle, stream.raw()).unwrap();
        emulator.reset();
        let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        subject.execute().unwrap();
        // In flight: nothing waits, nothing is unloaded.
        let Subject {
            context, pack, memory, ..
        } = subject;
        emulator.expect_none(|| drop(context));
        // The same graph again finds its code.
        let again = Subject::relu(&emulator.gpu, &plugin, &handle, 512);
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 0);
        again.execute_on(&pack).unwrap();
        drop((again, memory));

        // Many graphs, and a GPU that cannot be waited for: all stay.
        emulator.fail("hipDeviceSynchronize=hipErrorStreamCaptureUnsupported");
        emulator.reset();
        for index in 0..64 {
            assert_eq!(emulator.calls("hipDeviceSynchronize"), 0);
            drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + index));
        }
        // With the one above, that makes 65 with the last.
        emulator.wait_for("hipDeviceSynchronize", 1);
        assert_eq!(emulator.calls("hipModuleUnload"), 0);

        // When it can be again: one wait for a whole batch of them.
        emulator.fail("");
        emulator.reset();
        // The thread that was refused above may not have ended: then the next program is the occasion.
        let Subject { context, .. } = Subject::relu(&emulator.gpu, &plugin, &handle, 2048);
        std::thread::sleep(Duration::from_millis(100));
        drop(context);
        emulator.wait_for("hipModuleUnload", 66 - 32);
        assert_eq!(emulator.calls("hipDeviceSynchronize"), 1);
        // SAFETY: a terminated text.
        let own = unsafe { (emulator.thread_calls)(c"hipDeviceSynchronize".as_ptr()) };
        assert_eq!(own, 0, "the host's thread waited for the GPU");
        // The youngest are still there.
        drop(Subject::relu(&emulator.gpu, &plugin, &handle, 1024 + 63));
        assert_eq!(emulator.calls("hipModuleLoadDataEx"), 1);

        // The last handle takes everything with it.
        drop(handle);
        assert_eq!(emulator.calls("hipModuleUnload"), 66);
    });
}

#[test]
fn the_engine_says_that_it_can_be_captured() {
    alone("the_engine_says_that_it_can_be_captured", &[], || {
        let _emulator = Emulator::new();
        let plugin = plugin();
        let engine = plugin.engine_ids().unwrap()[0];
        let details = plugin.handle().unwrap().details(engine, &relu(64)).unwrap();
        assert!(details.behavior_notes.contains(&BehaviorNote::GraphCapture));
    });
}

#[test]
fn contexts_can_be_created_while_a_stream_is_captured() {
    alone("contexts_can_be_created_while_a_stream_is_captured", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let stream = emulator.gpu.stream().unwrap();
        set_stream(&handle, stream.raw()).unwrap();
        let captured = Subject::relu(&emulator.gpu, &plugin, &handle, 256);
        let mut other = None;
        let replay = stream.capture(|| -> Result<(), rotini_host::gpu::GpuError> {
            captured.execute().unwrap();
            other = Some(handle.context(&config(&plugin), &relu(257)).unwrap());
            captured.execute().unwrap();
            Ok(())
        });
        let replay = replay.unwrap();
        // SAFETY: what was captured is alive.
        unsafe { replay.launch(&stream) }.unwrap();
        stream.synchronize().unwrap();
        drop(other);
    });
}

#[test]
fn errors_have_hips_names() {
    alone("errors_have_hips_names", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let subject = Subject::relu(&emulator.gpu, &plugin, &handle, 64);
        emulator.fail("hipModuleLaunchKernel=hipErrorLaunchOutOfResources");
        let error = subject.execute().unwrap_err().to_string();
        assert!(
            error.contains("hipModuleLaunchKernel") && error.contains("hipErrorLaunchOutOfResources"),
            "{error}"
        );
        emulator.fail("hipModuleLoadDataEx=hipErrorOutOfMemory");
        let error = handle.context(&config(&plugin), &relu(65)).err().unwrap().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
    });
}

#[test]
fn memory_that_kernels_cannot_work_on_is_refused() {
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    alone("memory_that_kernels_cannot_work_on_is_refused", &environment, || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
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
        // Side by side is not over each other.
        let both = emulator.gpu.allocate(8192).unwrap();
        let mut pack = relu.pack.clone();
        pack[0].ptr = both.pointer();
        pack[1].ptr = both.pointer().wrapping_byte_add(4096);
        relu.execute_on(&pack).unwrap();

        // Two outputs over each other. Over an input one may be: see `own_memory`.
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

        let two = cases::named("two_convs_nhwc").unwrap();
        let two = Subject::of_case(&emulator.gpu, &plugin, &handle, &two);
        for (workspace, reason) in [
            (std::ptr::null_mut(), "workspace is null"),
            (two.memory[0].pointer(), "overlap"),
            (two.workspace.pointer().wrapping_byte_add(8), "16 bytes"),
        ] {
            // SAFETY: refused before anything uses it.
            let error = unsafe { two.context.execute(workspace, &two.pack) }
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
    });
}

/// Without a workspace, all is paid for the first time on a stream: later executions allocate nothing and wait for nothing.
#[test]
fn memory_of_our_own_is_made_once() {
    alone("memory_of_our_own_is_made_once", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let streams = [emulator.gpu.stream().unwrap(), emulator.gpu.stream().unwrap()];
        let two = Subject::of_case(
            &emulator.gpu,
            &plugin,
            &handle,
            &cases::named("two_convs_nhwc").unwrap(),
        );
        let relu = Subject::relu(&emulator.gpu, &plugin, &handle, 1024);
        let mut in_place = relu.pack.clone();
        in_place[1].ptr = in_place[0].ptr;
        let without = |subject: &Subject, pack: &[DeviceBuffer]| {
            // SAFETY: the buffers have the spans of their tensors, and outlive the work.
            unsafe { subject.context.execute(std::ptr::null_mut(), pack) }.unwrap();
        };
        for stream in &streams {
            set_stream(&handle, stream.raw()).unwrap();
            without(&two, &two.pack);
            without(&relu, &in_place);
        }
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
        // What is captured has memory of its own from the first time on, and asks for none when it is replayed.
        let mut beside = None;
        let replay = streams[0].capture(|| -> Result<(), rotini_host::gpu::GpuError> {
            set_stream(&handle, streams[0].raw()).unwrap();
            without(&two, &two.pack);
            without(&two, &two.pack);
            without(&relu, &in_place);
            // Beside it, on a stream that has no memory yet: nothing of it disturbs the capture.
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
        // The last handle takes it all with it.
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

/// Idle memory of our own that does not fit is freed before an execution fails for want of memory, and when code is retired.
#[test]
fn idle_memory_is_given_back() {
    alone("idle_memory_is_given_back", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let [large, little] = [20 * MIB, 64].map(|count| Subject::relu(&emulator.gpu, &plugin, &handle, count));
        in_place(&large).unwrap();
        emulator.gpu.synchronize().unwrap();
        emulator.reset();
        emulator.fail("hipMalloc=hipErrorOutOfMemory@1");
        in_place(&little).unwrap();
        assert_eq!(emulator.calls("hipMalloc"), 2);
        assert_eq!(emulator.calls("hipFree"), 1);
        // If that does not help, the execution says so.
        emulator.fail("hipMalloc=hipErrorOutOfMemory");
        let error = in_place(&large).unwrap_err().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
        emulator.fail("");

        in_place(&large).unwrap();
        emulator.gpu.synchronize().unwrap();
        emulator.reset();
        // 80 MiB are too much to keep.
        let Subject { context, memory, .. } = large;
        drop(context);
        // The smaller block goes with it if it is the older one.
        rotini_tests::process::wait_until("memory is given back", || emulator.calls("hipFree") > 0).unwrap();
        drop((memory, little));
        emulator.gpu.synchronize().unwrap();
    });
}

/// Contexts that come and go with their captures do not leave more and more memory behind.
#[test]
fn memory_of_captures_goes_with_their_code() {
    alone("memory_of_captures_goes_with_their_code", &[], || {
        const BYTES: u64 = 40 << 20;
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let stream = emulator.gpu.stream().unwrap();
        set_stream(&handle, stream.raw()).unwrap();
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
            // All that is allocated and not freed is the plugin's now.
            most = most.max(emulator.calls("hipMalloc").saturating_sub(emulator.calls("hipFree")));
        }
        // 256 MiB are kept, and as much again where the thread that unloads is late.
        assert!(
            most <= 2 * (256 << 20) / BYTES + 2,
            "{most} blocks: {}",
            emulator.summary()
        );
        emulator.gpu.synchronize().unwrap();
    });
}

/// A GPU that cannot be set up for want of memory can be when there is some.
#[test]
fn what_passes_is_no_verdict_on_a_gpu() {
    alone("what_passes_is_no_verdict_on_a_gpu", &[], || {
        let emulator = Emulator::new();
        let plugin = plugin();
        emulator.fail("hipGetDevicePropertiesR0600=hipErrorOutOfMemory");
        let before = plugin.handle().unwrap();
        let error = before.context(&config(&plugin), &relu(64)).err().unwrap().to_string();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
        emulator.fail("");
        // Those that were there meanwhile too.
        for handle in [&before, &plugin.handle().unwrap()] {
            assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
            Subject::relu(&emulator.gpu, &plugin, handle, 64).execute().unwrap();
        }
        emulator.gpu.synchronize().unwrap();
    });
}

#[test]
fn workspaces_of_another_gpu_are_refused() {
    let environment = [("HIPEMU_DEVICES", "gfx942,gfx942"), ("ROTINI_OWN_WORKSPACE", "0")];
    alone("workspaces_of_another_gpu_are_refused", &environment, || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let gpus = [0, 1].map(|ordinal| emulator.driver().gpu(ordinal).unwrap());
        gpus[0].select().unwrap();
        let handle = plugin.handle().unwrap();
        let case = cases::named("two_convs_nhwc").unwrap();
        let two = Subject::of_case(&gpus[0], &plugin, &handle, &case);
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
    alone(
        "without_a_workspace_little_is_needed_or_it_is_an_error",
        &environment,
        || {
            let emulator = Emulator::new();
            let plugin = plugin();
            let handle = plugin.handle().unwrap();
            let two = Subject::of_case(
                &emulator.gpu,
                &plugin,
                &handle,
                &cases::named("two_convs_nhwc").unwrap(),
            );
            assert!(two.context.workspace().unwrap() > 100);
            // SAFETY: refused before anything uses it.
            let error = unsafe { two.context.execute(std::ptr::null_mut(), &two.pack) };
            let error = error.unwrap_err().to_string();
            assert!(error.contains("workspace is null"), "{error}");
            two.execute().unwrap();
            emulator.gpu.synchronize().unwrap();
        },
    );
}

/// A kernel that is given the host's memory ends the process: hosts have been seen to pass it.
#[test]
fn workspaces_are_where_the_gpu_reaches_them() {
    let environment = [("ROTINI_OWN_WORKSPACE", "0")];
    alone("workspaces_are_where_the_gpu_reaches_them", &environment, || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        let two = Subject::of_case(
            &emulator.gpu,
            &plugin,
            &handle,
            &cases::named("two_convs_nhwc").unwrap(),
        );
        let bytes = two.context.workspace().unwrap();
        let mut on_host = vec![0_u128; bytes.div_ceil(16)];
        let execute = |workspace: *mut c_void| {
            // SAFETY: the workspace is as large as is asked for, and the work does nothing with it.
            unsafe { two.context.execute(workspace, &two.pack) }
        };
        for _ in 0..2 {
            let error = execute(on_host.as_mut_ptr().cast()).unwrap_err().to_string();
            assert!(error.contains("memory of the host"), "{error}");
        }
        emulator.expect_none(|| assert!(execute(std::ptr::null_mut()).is_err()));
        for name in ["hipMalloc", "hipMallocManaged", "hipHostMalloc"] {
            let mut memory = std::ptr::null_mut();
            // SAFETY: HIP's header declares the first like this; the others have flags, which it does not mind.
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

/// The plugin's answer to a handle when HIP is asked for and is not as it should be.
fn refusal() -> String {
    plugin().handle().err().expect("a handle without a GPU").to_string()
}

/// With `auto`, graphs run on the CPU then.
fn expect_cpu() {
    let handle = plugin().handle().unwrap();
    assert_eq!(handle.applicable(&relu(64)).unwrap().len(), 1);
}

#[test]
fn without_a_gpu_hip_is_declined() {
    let test = "without_a_gpu_hip_is_declined";
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let none = [
        ("HIPEMU_DEVICES", ""),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "hip"),
    ];
    alone(test, &none, || {
        let error = refusal();
        assert!(error.contains("hipErrorNoDevice"), "{error}");
    });
}

#[test]
fn without_a_gpu_auto_is_the_cpu() {
    let test = "without_a_gpu_auto_is_the_cpu";
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let none = [
        ("HIPEMU_DEVICES", ""),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "auto"),
    ];
    alone(test, &none, expect_cpu);
}

#[test]
fn a_library_that_is_not_there_is_declined() {
    let missing = [
        ("ROTINI_HIP_LIBRARY", "/nowhere/libamdhip64.so"),
        ("ROTINI_DEVICE", "hip"),
    ];
    alone("a_library_that_is_not_there_is_declined", &missing, || {
        let error = refusal();
        assert!(error.contains("/nowhere/libamdhip64.so"), "{error}");
    });
}

#[test]
fn another_library_is_declined() {
    // A library, but not HIP.
    let other = rotini_tests::plugin::path().unwrap();
    let other = [
        ("ROTINI_HIP_LIBRARY", other.to_str().unwrap()),
        ("ROTINI_DEVICE", "hip"),
    ];
    alone("another_library_is_declined", &other, || {
        let error = refusal();
        assert!(error.contains("hipInit"), "{error}");
    });
}

#[test]
fn a_file_that_is_no_library_is_declined() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = [("ROTINI_HIP_LIBRARY", file.to_str().unwrap()), ("ROTINI_DEVICE", "hip")];
    alone("a_file_that_is_no_library_is_declined", &file, || {
        let error = refusal();
        assert!(error.contains("ELF") || error.contains("header"), "{error}");
    });
}

/// A library that is short of memory is no machine without GPUs: the host's buffers are not for the CPU.
#[test]
fn without_memory_auto_is_not_the_cpu() {
    let test = "without_memory_auto_is_not_the_cpu";
    let emulator = rotini_tests::plugin::emulator().unwrap();
    let library = emulator.to_str().unwrap();
    let short = [
        ("HIPEMU_FAIL", "hipInit=hipErrorOutOfMemory"),
        ("ROTINI_HIP_LIBRARY", library),
        ("ROTINI_DEVICE", "auto"),
    ];
    alone(test, &short, || {
        let error = refusal();
        assert!(error.contains("hipErrorOutOfMemory"), "{error}");
    });
}
