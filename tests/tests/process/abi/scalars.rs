//! Scalars that are read through host pointers when an execution begins.

use super::{assert_fails, cpu, pack};
use crate::INVALID_VALUE;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode, TensorKind};
use rotini_host::{Context, DeviceBuffer, HostError, engine_config};
use rotini_reference::{Buffers, evaluate, fill_all};
use rotini_tests::cases;
use rotini_tests::harness::Memory;
use std::collections::BTreeMap;
use std::sync::Barrier;

/// Executes on buffers that hold `initial`, and judges the outputs.
fn run(context: &Context, graph: &Graph, initial: &Buffers) {
    let mut memories: BTreeMap<i64, Memory> = initial
        .iter()
        // Unaligned.
        .map(|(&uid, bytes)| (uid, Memory::new(bytes, 1)))
        .collect();
    execute(context, &mut memories).unwrap();
    let evaluation = evaluate(graph, initial).unwrap();
    for (id, is_output) in rotini_tests::harness::stored(graph) {
        let uid = graph.tensor(id).unwrap().uid;
        let memory = &memories[&uid];
        assert!(memory.is_guarded());
        if is_output {
            evaluation.judge(id, memory.bytes(), &initial[&uid]).unwrap();
        }
    }
}

fn execute(context: &Context, memories: &mut BTreeMap<i64, Memory>) -> Result<(), HostError> {
    let mut workspace = Memory::new(&vec![0; context.workspace().unwrap()], 16);
    // SAFETY: the memories have the spans of the graph's tensors.
    unsafe { context.execute(workspace.pointer().cast(), &pack(memories)) }
}

#[test]
fn other_values_need_no_other_context() {
    let (_plugin, handle, engine) = cpu();
    let with_scalars: Vec<_> = cases::all()
        .into_iter()
        .filter(|case| {
            let mut tensors = case.graph.tensors.iter();
            tensors.any(|tensor| tensor.kind == TensorKind::RuntimeScalar)
        })
        .collect();
    assert!(with_scalars.len() > 30, "{} cases", with_scalars.len());
    for case in with_scalars {
        let bytes = rotini_wire::encode(&case.graph);
        let graph = rotini_wire::decode(&bytes).unwrap();
        let context = handle.context(&engine_config(engine), &bytes).unwrap();
        // Also from serialized bytes, which contain no value.
        let serialized = context.serialize(Some(engine)).unwrap();
        let loaded = handle.context_from_serialized(&serialized).unwrap();
        for seed in 0..4 {
            let initial = fill_all(&graph, seed).unwrap();
            run(if seed % 2 == 0 { &context } else { &loaded }, &graph, &initial);
        }
        assert_eq!(serialized, loaded.serialize(Some(engine)).unwrap(), "{}", case.name);
    }
}

/// Builds y = x s, so that each element shows the value that it was computed with.
fn product(dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new("product");
    let x = b.buffer("x", dtype, &[64]);
    let s = b.tensor("s", dtype, &[1], &[1], TensorKind::RuntimeScalar);
    let y = b.buffer("y", dtype, &[64]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, s], y);
    b.build()
}

#[test]
fn threads_have_values_of_their_own() {
    const THREADS: u8 = 2;
    let (_plugin, handle, engine) = cpu();
    let bytes = rotini_wire::encode(&product(DataType::F32));
    let context = handle.context(&engine_config(engine), &bytes).unwrap();
    let barrier = Barrier::new(THREADS.into());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (context, barrier) = (&context, &barrier);
            scope.spawn(move || {
                let x = vec![1.0_f32; 64];
                let mut y = vec![0.0_f32; 64];
                for round in 0..200_u8 {
                    let mut value = f32::from(round) + 1000.0 * f32::from(thread);
                    let pack = [
                        (1, x.as_ptr().cast_mut().cast()),
                        (2, (&raw mut value).cast()),
                        (3, y.as_mut_ptr().cast()),
                    ];
                    let pack = pack.map(|(uid, ptr)| DeviceBuffer { uid, ptr });
                    barrier.wait();
                    // SAFETY: the buffers have 64 elements and one scalar, and no workspace is
                    // needed.
                    unsafe { context.execute(std::ptr::null_mut(), &pack) }.unwrap();
                    // The scalar was read during the call: changing it afterwards has no effect.
                    let expected = std::mem::replace(&mut value, f32::NAN);
                    assert!(y.iter().all(|&y| y == expected), "{thread} {round}: {y:?}");
                }
            });
        }
    });
}

#[test]
fn a_missing_scalar_is_named() {
    let (_plugin, handle, engine) = cpu();
    let graph = product(DataType::F16);
    let bytes = rotini_wire::encode(&graph);
    let context = handle.context(&engine_config(engine), &bytes).unwrap();
    let mut memories: BTreeMap<_, _> = fill_all(&graph, 1)
        .unwrap()
        .iter()
        .map(|(&uid, bytes)| (uid, Memory::new(bytes, 2)))
        .collect();
    execute(&context, &mut memories).unwrap();
    memories.remove(&2);
    assert_fails(
        execute(&context, &mut memories),
        INVALID_VALUE,
        "tensor 's' (uid 2) has no buffer",
    );
    let null = DeviceBuffer {
        uid: 2,
        ptr: std::ptr::null_mut(),
    };
    let mut pack = pack(&mut memories);
    pack.push(null);
    // SAFETY: all other buffers are passed.
    let result = unsafe { context.execute(std::ptr::null_mut(), &pack) };
    assert_fails(result, INVALID_VALUE, "tensor 's' (uid 2) has no buffer");
}

/// A tensor that is marked as a runtime scalar but has a value in the graph is a constant: hosts
/// pass any pointer for it (`RuntimePassByValue.hpp`).
#[test]
fn a_default_in_the_graph_wins() {
    let (_plugin, handle, engine) = cpu();
    let mut graph = product(DataType::F32);
    graph.tensors[1].kind = TensorKind::Constant(rotini_graph::Scalar::float(3.0));
    let context = handle
        .context(&engine_config(engine), &rotini_wire::encode(&graph))
        .unwrap();
    let mut buffers = [[1.0_f32; 64], [5.0; 64], [0.0; 64]];
    let pack: Vec<DeviceBuffer> = (1..)
        .zip(&mut buffers)
        .map(|(uid, buffer)| DeviceBuffer {
            uid,
            ptr: buffer.as_mut_ptr().cast(),
        })
        .collect();
    // SAFETY: three buffers of 64 elements.
    unsafe { context.execute(std::ptr::null_mut(), &pack) }.unwrap();
    assert_eq!(buffers[2], [3.0; 64]);
}
