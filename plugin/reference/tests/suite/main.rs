//! Tests the reference against values computed by hand, independent implementations of the
//! definitions, and numerical derivatives.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "everything here is a test, its helpers too"
)]

mod attention;
mod block_scale;
mod conv;
mod conversion;
mod filling;
mod functions;
mod gradients;
mod judging;
mod matmul;
mod moe;
mod norm;
mod pointwise;
mod reduction;
mod resample;
mod tolerances;

use half::{bf16, f16};
use rotini_graph::{DataType, Graph, GraphBuilder, Tensor, TensorId};
use rotini_reference::{Buffers, Options, UNTOUCHED, execute, execute_with, span_bytes};

/// Returns the graph of a builder, which has to be valid.
fn validated(builder: GraphBuilder) -> Graph {
    let mut graph = builder.build();
    graph.validate().expect("the test's graph is valid");
    graph
}

/// Returns the packed bytes of elements.
fn bytes(dtype: DataType, elements: &[f64]) -> Vec<u8> {
    elements
        .iter()
        .flat_map(|&value| match dtype {
            DataType::F64 => value.to_le_bytes().to_vec(),
            DataType::F32 => (value as f32).to_le_bytes().to_vec(),
            DataType::F16 => f16::from_f32(value as f32).to_le_bytes().to_vec(),
            DataType::Bf16 => bf16::from_f32(value as f32).to_le_bytes().to_vec(),
            DataType::I64 => (value as i64).to_le_bytes().to_vec(),
            DataType::I32 => (value as i32).to_le_bytes().to_vec(),
            DataType::I8 => (value as i8).to_le_bytes().to_vec(),
            DataType::U8 => (value as u8).to_le_bytes().to_vec(),
            other => panic!("no test uses {other}"),
        })
        .collect()
}

/// Returns the elements of packed bytes.
fn elements(dtype: DataType, bytes: &[u8]) -> Vec<f64> {
    let size = usize::try_from(dtype.bytes().expect("whole bytes")).expect("small");
    bytes
        .chunks_exact(size)
        .map(|element| match dtype {
            DataType::F64 => f64::from_le_bytes(element.try_into().unwrap()),
            DataType::F32 => f32::from_le_bytes(element.try_into().unwrap()).into(),
            DataType::F16 => f16::from_le_bytes(element.try_into().unwrap()).into(),
            DataType::Bf16 => bf16::from_le_bytes(element.try_into().unwrap()).into(),
            DataType::I64 => i64::from_le_bytes(element.try_into().unwrap()) as f64,
            DataType::I32 => i32::from_le_bytes(element.try_into().unwrap()).into(),
            DataType::I8 => i8::from_le_bytes(element.try_into().unwrap()).into(),
            DataType::U8 => element[0].into(),
            other => panic!("no test uses {other}"),
        })
        .collect()
}

/// Returns buffers with these inputs as packed elements in memory order; all other buffers are
/// filled with [`UNTOUCHED`].
fn buffers(graph: &Graph, inputs: &[(TensorId, &[f64])]) -> Buffers {
    let mut buffers: Buffers = graph
        .tensors
        .iter()
        .map(|tensor| (tensor.uid, vec![UNTOUCHED; span_bytes(tensor).expect("a plain type")]))
        .collect();
    for (id, values) in inputs {
        let tensor = graph.tensor(*id).expect("the test's tensor");
        let filled = bytes(tensor.dtype, values);
        assert_eq!(filled.len(), buffers[&tensor.uid].len(), "{tensor}");
        buffers.insert(tensor.uid, filled);
    }
    buffers
}

/// Executes the graph and returns one tensor's elements in memory order.
fn run(graph: &Graph, inputs: &[(TensorId, &[f64])], output: TensorId) -> Vec<f64> {
    let mut buffers = buffers(graph, inputs);
    execute(graph, &mut buffers).expect("the reference computes it");
    let tensor = graph.tensor(output).expect("the test's tensor");
    elements(tensor.dtype, &buffers[&tensor.uid])
}

/// Returns a tensor of a graph.
fn tensor(graph: &Graph, id: TensorId) -> &Tensor {
    graph.tensor(id).unwrap()
}

/// Returns the bytes of `id` after execution with `options`.
fn result(graph: &Graph, buffers: &Buffers, options: &Options, id: TensorId) -> Vec<u8> {
    let mut buffers = buffers.clone();
    execute_with(graph, &mut buffers, options).unwrap();
    buffers.remove(&tensor(graph, id).uid).unwrap()
}

/// Returns values that are multiples of no coarse power of two.
fn irregular(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|i| ((i as f64 + seed) * 12.9898).sin()).collect()
}

/// A pseudorandom generator of whole numbers from -8 to 8, so that every sum in a test is exact.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % 17).unwrap() - 8
    }

    fn take(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next() as f64).collect()
    }
}
