//! The plugin's HIP calls: how few an execution needs, its GPU and stream, loading and unloading of
//! code, and a broken HIP.
//!
//! The emulated HIP library counts the calls. It sees every call of the plugin and of IREE's
//! driver, from any thread. Kernels do nothing here; `cases` tests their results. The emulator's
//! devices and counters belong to a process, so each test starts itself again as a child with the
//! environment that it needs.
//!
//! | Module | Assertion |
//! |---|---|
//! | `launches` | the number of HIP calls of an execution, alone and beside others |
//! | `gpus` | the GPU and stream of an execution; no GPU, and a broken HIP |
//! | `code` | loading and unloading of code |
//! | `memory` | memory that kernels may access; allocation and freeing of rotini's own memory |

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod code;
mod gpus;
mod launches;
mod memory;

use rotini_graph::{DataType, GraphBuilder, PointwiseMode, TensorKind};
use rotini_host::gpu::{Allocation, Driver, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, Handle, HostError, Plugin, engine_config};
use rotini_reference::span_bytes;
use rotini_tests::cases::{self, Case};
use rotini_tests::harness;
use rotini_tests::process::{run, this_test, wait_until};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::{Command, Stdio};

/// Variable that is set in a child that [`alone`] has started. The variable of
/// [`rotini_tests::process`] would leave the child without a device.
const ALONE: &str = "ROTINI_TEST_ALONE";

/// Runs the body of this thread's test in a separate process, where kernels do nothing.
fn alone(environment: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([&this_test().unwrap(), "--exact", "--nocapture"])
        .env(ALONE, "1")
        .env("HIPEMU_NOOP", "1")
        .env("ROTINI_CACHE_DIR", "")
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    run(&mut child).unwrap();
}

/// Runs the body as [`alone`] does, with a handle of the plugin.
fn with_handle(environment: &[(&str, &str)], body: impl FnOnce(Emulator, Plugin, Handle)) {
    alone(environment, || {
        let emulator = Emulator::new();
        let plugin = plugin();
        let handle = plugin.handle().unwrap();
        body(emulator, plugin, handle);
    });
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
        // SAFETY: the emulator and HIP's header declare these signatures.
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

    /// Creates a stream and makes a handle execute on it.
    fn stream_of(&self, handle: &Handle) -> Stream {
        let stream = self.gpu.stream().unwrap();
        set_stream(handle, stream.raw()).unwrap();
        stream
    }

    fn driver(&self) -> &Driver {
        self.gpu.driver()
    }

    /// Returns the calls of a function since the last reset.
    fn calls(&self, name: &str) -> u64 {
        let name = CString::new(name).unwrap();
        // SAFETY: a NUL-terminated string.
        let calls = unsafe { (self.calls)(name.as_ptr()) };
        assert_ne!(calls, u64::MAX, "{name:?} is no function");
        calls
    }

    /// Asserts that a body calls one function `count` times and nothing else, always on this
    /// thread.
    fn expect_only(&self, name: &str, count: u64, body: impl FnOnce()) {
        let text = CString::new(name).unwrap();
        self.reset();
        body();
        // SAFETY: the functions take nothing, or a NUL-terminated string.
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

    /// Asserts that a body makes no HIP call.
    fn expect_none(&self, body: impl FnOnce()) {
        self.reset();
        body();
        // SAFETY: takes nothing.
        assert_eq!(unsafe { (self.calls_total)() }, 0, "{}", self.summary());
    }

    /// Lists the calls since the last reset.
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
        // SAFETY: a NUL-terminated string.
        let done = unsafe { (self.fail)(what.as_ptr()) };
        assert_eq!(done, 0, "{what:?} is not understood");
    }

    /// Waits until background threads have called a function this many times.
    fn wait_for(&self, name: &str, count: u64) {
        let waited = wait_until(name, || self.calls(name) >= count);
        assert!(waited.is_ok(), "{name}: {}", self.summary());
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

/// Returns a relu over some elements: another graph for each number.
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

    /// Two convolutions, which need a workspace.
    fn two_convs(gpu: &Gpu, plugin: &Plugin, handle: &Handle) -> Self {
        Self::of_case(gpu, plugin, handle, &cases::named("two_convs_nhwc").unwrap())
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
        // The scalar is on the host, and only read.
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
        // SAFETY: the memory has the sizes of the tensors, and outlives the kernels, which do
        // nothing.
        unsafe { self.context.execute(self.workspace.pointer(), pack) }
    }
}

fn set_stream(handle: &Handle, stream: *mut c_void) -> Result<(), HostError> {
    // SAFETY: the streams of these tests outlive their handles' work.
    unsafe { handle.set_stream(stream) }
}
