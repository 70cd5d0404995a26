//! What an execution costs in calls of HIP: one kernel launch per kernel and nothing else, on the caller's thread, whatever stream.
//!
//! Counted by the emulated HIP library, which sees every call of the plugin and of IREE's driver, from any thread. Kernels are no-ops
//! here: what they compute is tested elsewhere.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up has failed"
)]

use rotini_host::gpu::{Allocation, Driver, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_tests::cases::{self, Case};
use rotini_tests::{harness, plugin};
use std::ffi::{CStr, c_char, c_int};

/// The emulator's counters.
struct Calls {
    reset: unsafe extern "C" fn(),
    of: unsafe extern "C" fn(*const c_char) -> u64,
    total: unsafe extern "C" fn() -> u64,
    of_thread: unsafe extern "C" fn() -> u64,
    summary: unsafe extern "C" fn() -> *const c_char,
}

impl Calls {
    fn new(driver: &Driver) -> Self {
        // SAFETY: the emulator declares them so.
        unsafe {
            let no_op: unsafe extern "C" fn(c_int) = driver.function("hipemu_set_noop").expect("this is the emulator");
            no_op(1);
            Calls {
                reset: driver.function("hipemu_calls_reset").expect("this is the emulator"),
                of: driver.function("hipemu_calls").expect("this is the emulator"),
                total: driver.function("hipemu_calls_total").expect("this is the emulator"),
                of_thread: driver
                    .function("hipemu_thread_calls_total")
                    .expect("this is the emulator"),
                summary: driver.function("hipemu_calls_summary").expect("this is the emulator"),
            }
        }
    }

    /// Launches, all calls and this thread's calls that `work` makes, and their names.
    fn during(&self, work: impl FnOnce()) -> (u64, u64, u64, String) {
        // SAFETY: the functions take what they are given; the summary is the emulator's text, valid until the next.
        unsafe {
            (self.reset)();
            work();
            let summary = CStr::from_ptr((self.summary)()).to_string_lossy().into_owned();
            let launches = (self.of)(c"hipModuleLaunchKernel".as_ptr());
            (launches, (self.total)(), (self.of_thread)(), summary)
        }
    }
}

struct Subject {
    context: Context,
    pack: Vec<DeviceBuffer>,
    workspace: Allocation,
    _memory: Vec<Allocation>,
}

impl Subject {
    fn new(gpu: &Gpu, handle: &Handle, engine: i64, case: &Case) -> Self {
        let bytes = rotini_wire::encode(&case.graph);
        let context = handle
            .context(&engine_config(engine), &bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let filled = harness::fill(&case.graph).expect("the case can be filled");
        let (pack, memory) = filled
            .iter()
            .map(|(&uid, bytes)| {
                let memory = gpu.allocate(bytes.len()).expect("there is memory");
                let ptr = memory.pointer();
                (DeviceBuffer { uid, ptr }, memory)
            })
            .unzip();
        let workspace = context.workspace().expect("the context has a workspace");
        Subject {
            workspace: gpu.allocate(workspace).expect("there is memory"),
            context,
            pack,
            _memory: memory,
        }
    }

    fn execute(&self) {
        // SAFETY: the buffers have the spans of their tensors, the workspace its size; no kernel runs.
        unsafe { self.context.execute(self.workspace.pointer(), &self.pack) }.expect("the graph executes");
    }
}

/// The plugin on the emulated MI300.
fn setup() -> (Gpu, Handle, i64, Calls) {
    assert!(
        std::env::var_os("ROTINI_TEST_DEVICE").is_none(),
        "only the emulator counts calls"
    );
    let gpu = harness::gpu().expect("the emulator is there");
    let calls = Calls::new(gpu.driver());
    // SAFETY: the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().expect("the plugin is built")) }.expect("the plugin loads");
    let engine = *plugin.engine_ids().expect("engines").first().expect("an engine");
    let handle = plugin.handle().expect("a handle");
    (gpu, handle, engine, calls)
}

/// Every fused layer of ResNet-50 in f16: one launch, the first time as any other time, on any stream.
#[test]
fn a_fused_convolution_is_one_launch_and_nothing_else() {
    let (gpu, handle, engine, calls) = setup();
    let streams: Vec<Stream> = (0..3).map(|_| gpu.stream().expect("a stream")).collect();
    let half = cases::resnet50(1)
        .into_iter()
        .filter(|case| case.name.ends_with("_f16"));
    let mut layers = 0;
    for case in half {
        layers += 1;
        let subject = Subject::new(&gpu, &handle, engine, &case);
        for stream in [None, Some(&streams[0]), Some(&streams[1]), Some(&streams[2])] {
            let raw = stream.map_or(std::ptr::null_mut(), Stream::raw);
            let (launches, total, own, summary) = calls.during(|| {
                // SAFETY: the streams outlive the handle's work.
                unsafe { handle.set_stream(raw) }.expect("a stream can be set");
                subject.execute();
            });
            assert_eq!((launches, total, own), (1, 1, 1), "{}: {summary}", case.name);
        }
    }
    assert_eq!(layers, 48);
}

/// A graph of two kernels is two launches.
#[test]
fn two_kernels_are_two_launches() {
    let (gpu, handle, engine, calls) = setup();
    let case = cases::all()
        .into_iter()
        .find(|case| case.name == "two_convs_nhwc")
        .expect("there is such a case");
    let subject = Subject::new(&gpu, &handle, engine, &case);
    let (launches, total, own, summary) = calls.during(|| subject.execute());
    assert_eq!((launches, total, own), (2, 2, 2), "{summary}");
}

/// A second handle, and a context for a graph that is in use, ask nothing of the GPU that costs memory or a thread.
#[test]
fn handles_cost_no_memory_and_no_thread() {
    let (gpu, handle, engine, calls) = setup();
    let case = cases::all().into_iter().next().expect("there are cases");
    let subject = Subject::new(&gpu, &handle, engine, &case);
    subject.execute();
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    // SAFETY: the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(plugin::path().expect("the plugin is built")) }.expect("the plugin loads");
    let mut handles = Vec::new();
    let (_, _, _, summary) = calls.during(|| {
        for _ in 0..50 {
            handles.push(plugin.handle().expect("a handle"));
        }
    });
    for costly in ["Malloc", "HostAlloc", "Event", "StreamCreate", "Module"] {
        assert!(!summary.contains(costly), "50 handles: {summary}");
    }
    assert_eq!(threads(), before, "50 handles started threads");
}
