//! Executions on a GPU that need memory of rotini's: without a workspace, and with outputs over
//! inputs.
//!
//! `ordering` tests sharing of that memory between streams, threads and captures, and `hip_device`
//! its cost.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use crate::contents;
use rotini_graph::{ConvGeometry, DataType, Graph, GraphBuilder, PointwiseMode, TensorId, TensorKind};
use rotini_host::gpu::{Allocation, Gpu, GpuError};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin, engine_config};
use rotini_reference::{Buffers, evaluate, fill_all};
use rotini_tests::process::{command, part, run};
use rotini_tests::{cases, harness, plugin, samples};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};

/// The GPU, a handle on it, and the engine's id.
struct Machine {
    gpu: Gpu,
    handle: Handle,
    engine: i64,
}

impl Machine {
    fn new() -> Self {
        let gpu = harness::gpu().expect("there is a GPU, real or emulated");
        // SAFETY: the plugin that this workspace builds.
        let plugin = unsafe { Plugin::load(rotini_tests::plugin::path().unwrap()) }.unwrap();
        Machine {
            engine: plugin.engine_ids().unwrap()[0],
            handle: plugin.handle().unwrap(),
            gpu,
        }
    }

    fn context(&self, graph: &Graph) -> Context {
        let bytes = rotini_wire::encode(graph);
        self.handle.context(&engine_config(self.engine), &bytes).unwrap()
    }
}

/// A graph with its memory; some outputs share an input's memory.
struct Subject {
    graph: Graph,
    initial: Buffers,
    memory: BTreeMap<i64, Allocation>,
    pack: Vec<DeviceBuffer>,
}

impl Subject {
    /// Allocates a graph's memory. `over`: outputs by name, the inputs whose memory they share, and
    /// their byte offset from the input's start.
    fn new(gpu: &Gpu, graph: Graph, over: &[(&str, &str, usize)]) -> Self {
        Self::filled(gpu, graph, over, 7)
    }

    fn filled(gpu: &Gpu, mut graph: Graph, over: &[(&str, &str, usize)], seed: u64) -> Self {
        graph.validate().unwrap();
        let mut initial = fill_all(&graph, seed).unwrap();
        let uid = |name: &str| graph.tensors.iter().find(|tensor| tensor.name == name).unwrap().uid;
        let over: Vec<_> = over
            .iter()
            .map(|&(out, input, at)| (uid(out), uid(input), at))
            .collect();
        let memory: BTreeMap<i64, Allocation> = initial
            .iter()
            .filter(|(uid, _)| !over.iter().any(|(output, ..)| output == *uid))
            .map(|(&uid, bytes)| {
                let room = over
                    .iter()
                    .map(|&(_, input, at)| if input == uid { at } else { 0 })
                    .max();
                let memory = gpu.allocate(bytes.len() + room.unwrap_or(0)).unwrap();
                memory.write(0, bytes).unwrap();
                (uid, memory)
            })
            .collect();
        for &(output, input, at) in &over {
            // The memory holds the input first, and arbitrary bytes behind it.
            let all = contents(&memory[&input]);
            let bytes = initial[&output].len();
            initial.insert(output, all[at..at + bytes].to_vec());
        }
        let pack = initial
            .keys()
            .map(|&uid| {
                let shared = over.iter().find(|(output, ..)| *output == uid);
                let ptr = match shared {
                    Some(&(_, input, at)) => memory[&input].pointer().wrapping_byte_add(at),
                    None => memory[&uid].pointer(),
                };
                DeviceBuffer { uid, ptr }
            })
            .collect();
        Subject {
            graph,
            initial,
            memory,
            pack,
        }
    }

    /// Executes without a workspace.
    fn execute(&self, context: &Context) {
        // SAFETY: the memory has the spans of the tensors, and is alive when the work is done.
        unsafe { context.execute(std::ptr::null_mut(), &self.pack) }.unwrap();
    }

    fn outputs(&self) -> impl Iterator<Item = (TensorId, i64)> {
        let stored = harness::stored(&self.graph).into_iter();
        stored
            .filter(|(_, is_output)| *is_output)
            .map(|(id, _)| (id, self.graph.tensor(id).unwrap().uid))
    }

    fn read(&self, uid: i64) -> Vec<u8> {
        let pointer = self.pack.iter().find(|buffer| buffer.uid == uid).unwrap().ptr.addr();
        let memory = self.memory.values().find(|memory| {
            let start = memory.pointer().addr();
            (start..start + memory.bytes()).contains(&pointer)
        });
        let memory = memory.unwrap();
        let mut bytes = vec![0; self.initial[&uid].len()];
        memory.read(pointer - memory.pointer().addr(), &mut bytes).unwrap();
        bytes
    }

    /// Asserts that all outputs are right, after all work is done.
    #[track_caller]
    fn judge(&self, name: &str) {
        let evaluation = evaluate(&self.graph, &self.initial).unwrap();
        for (id, uid) in self.outputs() {
            if let Err(error) = evaluation.judge(id, &self.read(uid), &self.initial[&uid]) {
                panic!("{name}: {error}");
            }
        }
    }
}

/// hipDNN's samples as they are shipped.
#[test]
fn samples_run_without_a_workspace() {
    let machine = Machine::new();
    for (name, graph) in samples::batchnorm() {
        let subject = Subject::new(&machine.gpu, graph, &[]);
        let context = machine.context(&subject.graph);
        for _ in 0..2 {
            subject.execute(&context);
            machine.gpu.synchronize().unwrap();
            subject.judge(&name);
            // The first execution's results must not pass for the second's.
            for (_, uid) in subject.outputs() {
                subject.memory[&uid].write(0, &subject.initial[&uid]).unwrap();
            }
        }
    }
}

/// If there is no more memory, two streams share a block, and the second waits for the first.
#[test]
fn streams_take_turns_where_memory_is_short() {
    if part().is_none() {
        let cache = tempfile::tempdir().unwrap();
        let mut child = command("gpu", cache.path()).unwrap();
        child.env("ROTINI_DEVICE", "hip");
        child.env("ROTINI_HIP_LIBRARY", plugin::emulator().unwrap());
        run(&mut child).unwrap();
        return;
    }
    let machine = Machine::new();
    // SAFETY: the emulator declares these signatures.
    let (seed_scheduler, fail) = unsafe {
        let driver = machine.gpu.driver();
        let seed_scheduler: unsafe extern "C" fn(u64) = driver.function("hipemu_set_seed").unwrap();
        let fail: unsafe extern "C" fn(*const c_char) -> c_int = driver.function("hipemu_fail").unwrap();
        (seed_scheduler, fail)
    };
    let graph = cases::named("two_convs_nhwc").unwrap().graph;
    let subjects: Vec<Subject> = (0..3)
        .map(|seed| Subject::filled(&machine.gpu, graph.clone(), &[], seed))
        .collect();
    let context = machine.context(&subjects[0].graph);
    // Allocates the only block.
    subjects[0].execute(&context);
    machine.gpu.synchronize().unwrap();
    // SAFETY: NUL-terminated strings and a number, here and below.
    assert_eq!(unsafe { fail(c"hipMalloc=hipErrorOutOfMemory".as_ptr()) }, 0);
    for seed in 0..40 {
        // SAFETY: as above.
        unsafe { seed_scheduler(seed) };
        let streams: Vec<_> = subjects.iter().map(|_| machine.gpu.stream().unwrap()).collect();
        for (subject, stream) in subjects.iter().zip(&streams) {
            // SAFETY: the stream is waited for below.
            unsafe { machine.handle.set_stream(stream.raw()) }.unwrap();
            subject.execute(&context);
        }
        for (number, (subject, stream)) in subjects.iter().zip(&streams).enumerate() {
            stream.synchronize().unwrap();
            subject.judge(&format!("seed {seed}, stream {number}"));
        }
    }
}

fn relu(dtype: DataType, dims: &[i64]) -> Graph {
    let mut b = GraphBuilder::new("relu");
    let [x, y] = ["x", "y"].map(|name| b.buffer(name, dtype, dims));
    b.pointwise(dtype, PointwiseMode::ReluFwd, &[x], y);
    b.build()
}

/// `y = relu(x + r)`.
fn residual(dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new("residual");
    let dims = [2, 5, 7, 9];
    let [x, r] = ["x", "r"].map(|name| b.buffer_channels_last(name, dtype, &dims));
    let sum = b.virtual_tensor("sum", DataType::F32, &dims);
    let y = b.buffer_channels_last("y", dtype, &dims);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, r], sum);
    b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[sum], y);
    b.build()
}

/// Builds a convolution: every element of y depends on many of x.
fn conv() -> Graph {
    let mut b = GraphBuilder::new("conv");
    let dims = [1, 8, 12, 12];
    let [x, y] = ["x", "y"].map(|name| b.buffer_channels_last(name, DataType::F32, &dims));
    let w = b.buffer_channels_last("w", DataType::F32, &[8, 8, 3, 3]);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    b.build()
}

/// Builds the sum of all of x and one of its rows: in place, the row would change before it is
/// read.
fn broadcast() -> Graph {
    let mut b = GraphBuilder::new("broadcast");
    let row = b.buffer("row", DataType::F32, &[1, 64]);
    let x = b.buffer("x", DataType::F32, &[300, 64]);
    let y = b.buffer("y", DataType::F32, &[300, 64]);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, row], y);
    b.build()
}

/// Builds an output with gaps, which keep the input's bytes.
fn gaps() -> Graph {
    let mut b = GraphBuilder::new("gaps");
    let of = |b: &mut GraphBuilder, name| b.tensor(name, DataType::F32, &[6, 10], &[16, 1], TensorKind::Buffer);
    let x = of(&mut b, "x");
    let y = of(&mut b, "y");
    b.pointwise(DataType::F32, PointwiseMode::SigmoidFwd, &[x], y);
    b.build()
}

/// An output over an input, and the distance of their starts.
type Over = (&'static str, &'static str, usize);

#[test]
fn outputs_may_be_over_inputs() {
    let machine = Machine::new();
    let cases: [(&str, Graph, &[Over]); 9] = [
        ("relu", relu(DataType::F32, &[1000]), &[("y", "x", 0)]),
        ("relu of one element", relu(DataType::F32, &[1]), &[("y", "x", 0)]),
        ("relu f16", relu(DataType::F16, &[33, 77]), &[("y", "x", 0)]),
        ("relu, shifted", relu(DataType::F32, &[4096]), &[("y", "x", 64)]),
        ("residual", residual(DataType::F32), &[("y", "r", 0)]),
        ("residual bf16", residual(DataType::Bf16), &[("y", "x", 0)]),
        ("conv", conv(), &[("y", "x", 0)]),
        ("broadcast", broadcast(), &[("y", "x", 0)]),
        ("gaps", gaps(), &[("y", "x", 0)]),
    ];
    for (name, graph, over) in cases {
        let subject = Subject::new(&machine.gpu, graph, over);
        let context = machine.context(&subject.graph);
        subject.execute(&context);
        machine.gpu.synchronize().unwrap();
        subject.judge(name);
    }
}

/// Each launch of a captured graph repeats the execution in place, beside others that are not
/// captured.
#[test]
fn captured_in_place() {
    let machine = Machine::new();
    let mut b = GraphBuilder::new("add");
    let [x, r, y] = ["x", "r", "y"].map(|name| b.buffer(name, DataType::F32, &[5000]));
    b.pointwise(DataType::F32, PointwiseMode::Add, &[x, r], y);
    let graph = b.build();
    let subjects = [0, 1].map(|_| Subject::new(&machine.gpu, graph.clone(), &[("y", "r", 0)]));
    let context = machine.context(&subjects[0].graph);
    let stream = machine.gpu.stream().unwrap();
    // SAFETY: the stream outlives the work, here and below.
    unsafe { machine.handle.set_stream(stream.raw()) }.unwrap();
    let [captured, beside] = &subjects;
    let replay = stream
        .capture(|| -> Result<(), GpuError> {
            captured.execute(&context);
            captured.execute(&context);
            Ok(())
        })
        .unwrap();
    let other = machine.gpu.stream().unwrap();
    // SAFETY: as above.
    unsafe { machine.handle.set_stream(other.raw()) }.unwrap();
    for _ in 0..3 {
        // SAFETY: what was captured is alive.
        unsafe { replay.launch(&stream) }.unwrap();
        beside.execute(&context);
    }
    stream.synchronize().unwrap();
    other.synchronize().unwrap();
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.chunks_exact(4);
        words.map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    for (subject, times) in [(captured, 6), (beside, 3)] {
        let of = |name: &str| {
            subject
                .graph
                .tensors
                .iter()
                .find(|tensor| tensor.name == name)
                .unwrap()
                .uid
        };
        let x = floats(&subject.initial[&of("x")]);
        let mut sum = floats(&subject.initial[&of("r")]);
        for _ in 0..times {
            sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += x);
        }
        assert_eq!(floats(&subject.read(of("y"))), sum, "{times} times");
    }
}
