//! With the knob `global.deterministic`, a graph gives the same bits in each run, on each stream
//! and in each order in which the GPU reaches commands and workgroups.
//!
//! Inputs have random bits, so sums round: another order of a sum would give other bits.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::{contents, filled};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rotini_emit::Target;
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, Op, TensorId, TensorKind};
use rotini_host::gpu::{Allocation, Gpu, Stream};
use rotini_host::{Context, DeviceBuffer, Handle, Plugin};
use rotini_plugin::prepared::check;
use rotini_reference::{Buffers, Profile, UNTOUCHED, fill_all, profile};
use rotini_tests::{cases, harness};
use rotini_wire::KnobValue;
use rotini_wire::engine_config::{EngineConfig, encode};
use std::collections::{BTreeMap, BTreeSet};

/// Number of streams with work in flight at the same time.
const STREAMS: usize = 8;
/// Number of runs on each stream and in each order: 120 in total.
const ROUNDS: usize = 5;
/// Maximum number of elements of the buffers of a graph of [`one_of_each`].
const ELEMENTS: i64 = 1 << 15;
/// Number of seeds of the emulator's scheduler: orders of commands and of workgroups.
const ORDERS: u64 = 3;

/// A product with split-K, and graphs with partial sums between kernels.
fn graphs() -> Vec<Graph> {
    let mut b = GraphBuilder::new("deep product");
    let [a, w] = [[1, 32, 1024], [1, 1024, 32]].map(|dims| b.buffer("operand", DataType::F16, &dims));
    let c = b.buffer("c", DataType::F16, &[1, 32, 32]);
    b.node("matmul", DataType::F32, Matmul { a, b: w, c });
    let cases = ["wgrad_many_one_channel_nchw_f16", "bool_sdpa_backward_row"];
    let cases = cases.map(|name| cases::named(name).unwrap().graph);
    [b.build()].into_iter().chain(cases).collect()
}

/// Returns for each operation the largest case with it, of those that are not too large and have
/// a tensor of a [type with random bits](is_random).
fn one_of_each() -> Vec<Graph> {
    let target = Target::parse("gfx942").unwrap();
    let mut largest = BTreeMap::<&str, (i64, String)>::new();
    let mut graphs = BTreeMap::new();
    for case in cases::all() {
        if check(&rotini_wire::encode(&case.graph), &target).is_err() {
            continue;
        }
        let buffers = case.graph.tensors.iter();
        let buffers = buffers.filter(|tensor| tensor.kind == TensorKind::Buffer);
        if !buffers.clone().any(|tensor| is_random(tensor.dtype)) {
            continue;
        }
        let elements = buffers.map(|tensor| tensor.dims.iter().product::<i64>()).sum();
        for node in &case.graph.nodes {
            let known = largest.get(node.op.kind());
            if elements <= ELEMENTS && known.is_none_or(|(count, _)| *count < elements) {
                largest.insert(node.op.kind(), (elements, case.name.clone()));
            }
        }
        graphs.insert(case.name, case.graph);
    }
    for kind in Op::KINDS {
        assert!(largest.contains_key(kind), "no case of {kind}");
    }
    let names: BTreeSet<String> = largest.into_values().map(|(_, name)| name).collect();
    graphs.retain(|name, _| names.contains(name));
    graphs.into_values().collect()
}

/// Returns true for the types that [`inputs`] fills with random bits.
fn is_random(dtype: DataType) -> bool {
    matches!(dtype, DataType::F16 | DataType::Bf16 | DataType::F32)
}

/// Returns inputs between -1 and 1 in f16, bf16 and f32, whose last bits affect sums; other types,
/// and inputs that must be positive, as usual.
fn inputs(graph: &Graph) -> Buffers {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut all = fill_all(graph, 0).unwrap();
    for (number, tensor) in (0..).zip(&graph.tensors) {
        let Some(bytes) = all.get_mut(&tensor.uid) else {
            continue;
        };
        if profile(graph, TensorId(number)) == Profile::Positive {
            continue;
        }
        // Exponents below that of 1.
        let sign = |rng: &mut ChaCha8Rng| u32::from(rng.random::<bool>()) << 31;
        match tensor.dtype {
            DataType::F16 => bytes.chunks_exact_mut(2).for_each(|element| {
                let bits = rng.random_range(0x2000_u16..0x3C00) | (sign(&mut rng) >> 16) as u16;
                element.copy_from_slice(&bits.to_le_bytes());
            }),
            DataType::Bf16 => bytes.chunks_exact_mut(2).for_each(|element| {
                let bits = rng.random_range(0x3C00_u16..0x3F80) | (sign(&mut rng) >> 16) as u16;
                element.copy_from_slice(&bits.to_le_bytes());
            }),
            DataType::F32 => bytes.chunks_exact_mut(4).for_each(|element| {
                let bits = rng.random_range(0x3C00_0000_u32..0x3F80_0000) | sign(&mut rng);
                element.copy_from_slice(&bits.to_le_bytes());
            }),
            _ => {}
        }
    }
    all
}

/// The memory of one stream's executions.
struct Lane {
    stream: Stream,
    memory: BTreeMap<i64, Allocation>,
    workspace: Option<Allocation>,
}

impl Lane {
    fn new(gpu: &Gpu, inputs: &Buffers, workspace: usize) -> Self {
        let lane = Lane {
            stream: gpu.stream().unwrap(),
            memory: inputs.iter().map(|(&uid, bytes)| (uid, filled(gpu, bytes))).collect(),
            workspace: (workspace > 0).then(|| filled(gpu, &vec![UNTOUCHED; workspace])),
        };
        gpu.synchronize().unwrap();
        lane
    }

    /// Overwrites the outputs, so that results of an earlier execution are not taken for new ones.
    fn reset(&self, outputs: &[i64]) {
        for memory in outputs.iter().map(|uid| &self.memory[uid]) {
            memory.write(0, &vec![UNTOUCHED; memory.bytes()]).unwrap();
        }
    }

    /// Enqueues an execution.
    fn execute(&self, handle: &Handle, context: &Context) {
        let buffer = |(&uid, memory): (&i64, &Allocation)| DeviceBuffer {
            uid,
            ptr: memory.pointer(),
        };
        let pack: Vec<DeviceBuffer> = self.memory.iter().map(buffer).collect();
        let workspace = self.workspace.as_ref();
        let workspace = workspace.map_or(std::ptr::null_mut(), Allocation::pointer);
        // SAFETY: the stream and the memory live until `results` has waited; the memory has the
        // spans of the tensors.
        unsafe {
            handle.set_stream(self.stream.raw()).unwrap();
            context.execute(workspace, &pack).unwrap();
        }
    }

    /// Waits for the work, and returns the outputs.
    fn results(&self, outputs: &[i64]) -> Vec<Vec<u8>> {
        self.stream.synchronize().unwrap();
        outputs.iter().map(|uid| contents(&self.memory[uid])).collect()
    }
}

#[test]
fn the_knob_fixes_every_bit() {
    let gpu = harness::gpu().unwrap();
    // SAFETY: the plugin that this workspace builds.
    let plugin = unsafe { Plugin::load(rotini_tests::plugin::path().unwrap()) }.unwrap();
    let config = encode(&EngineConfig {
        engine_id: plugin.engine_ids().unwrap()[0],
        knobs: vec![("global.deterministic".to_owned(), KnobValue::Integer(1))],
        ..EngineConfig::default()
    });
    // SAFETY: the emulator declares it so.
    let seed_scheduler = unsafe { gpu.driver().function::<unsafe extern "C" fn(u64)>("hipemu_set_seed") };
    let is_real = std::env::var_os("ROTINI_TEST_DEVICE").is_some();
    assert!(seed_scheduler.is_ok() || is_real, "the emulator has no scheduler");
    for mut graph in graphs().into_iter().chain(one_of_each()) {
        let bytes = rotini_wire::encode(&graph);
        let mut inputs = inputs(&graph);
        graph.validate().unwrap();
        let stored: BTreeMap<i64, bool> = harness::stored(&graph)
            .into_iter()
            .map(|(id, is_output)| (graph.tensor(id).unwrap().uid, is_output))
            .collect();
        inputs.retain(|uid, _| stored.contains_key(uid));
        let outputs: Vec<i64> = stored
            .iter()
            .filter(|(_, is_output)| **is_output)
            .map(|(&uid, _)| uid)
            .collect();
        let mut first = None;
        for order in 0..ORDERS {
            if let Ok(seed_scheduler) = &seed_scheduler {
                // SAFETY: takes a number.
                unsafe { seed_scheduler(order) };
            }
            let handle = plugin.handle().unwrap();
            let context = handle.context(&config, &bytes).unwrap();
            let workspace = context.workspace().unwrap();
            let lanes: Vec<Lane> = (0..STREAMS).map(|_| Lane::new(&gpu, &inputs, workspace)).collect();
            for _ in 0..ROUNDS {
                lanes.iter().for_each(|lane| lane.reset(&outputs));
                gpu.synchronize().unwrap();
                lanes.iter().for_each(|lane| lane.execute(&handle, &context));
                for lane in &lanes {
                    let results = lane.results(&outputs);
                    let expected = first.get_or_insert_with(|| results.clone());
                    assert!(results == *expected, "{}: other bits in order {order}", graph.name);
                }
            }
        }
    }
}
