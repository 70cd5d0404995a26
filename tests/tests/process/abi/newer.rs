//! The plugin's answers to graphs that break the current rules: NOT_APPLICABLE if a newer version
//! may allow the graph, upon which hipDNN asks the next engine; INVALID_VALUE if no version can. In
//! both cases no engine is offered, which is a success.

use super::{assert_fails, cpu};
use crate::{INVALID_VALUE, NOT_APPLICABLE};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, PointwiseMode, Reduction, ReductionMode, TensorId};
use rotini_host::engine_config;

const F32: DataType = DataType::F32;

/// C = A B.
fn matmul(a: &[i64], b: &[i64], c: &[i64]) -> Graph {
    let mut builder = GraphBuilder::new("matmul");
    let [a, b, c] = [("a", a), ("b", b), ("c", c)].map(|(name, dims)| builder.buffer(name, F32, dims));
    builder.node("matmul", F32, Matmul { a, b, c });
    builder.build()
}

/// Builds the sum of x along its last axis.
fn sum(x: &[i64], y: &[i64]) -> Graph {
    let mut builder = GraphBuilder::new("sum");
    let [input, output] = [("x", x), ("y", y)].map(|(name, dims)| builder.buffer(name, F32, dims));
    builder.node("sum", F32, Reduction::new(ReductionMode::Add, input, output));
    builder.build()
}

/// Builds y = RELU(x), then applies a change.
fn relu(change: fn(&mut Graph)) -> Graph {
    let mut builder = GraphBuilder::new("relu");
    let [x, y] = ["x", "y"].map(|name| builder.buffer(name, F32, &[2, 3, 4]));
    builder.pointwise(F32, PointwiseMode::ReluFwd, &[x], y);
    let mut graph = builder.build();
    change(&mut graph);
    graph
}

fn no_elements(graph: &mut Graph) {
    for tensor in &mut graph.tensors {
        tensor.dims[0] = 0;
    }
}

fn dangling(graph: &mut Graph) {
    graph.tensors[0].ragged_offset = Some(TensorId(77));
}

#[test]
fn what_a_newer_hipdnn_may_mean_is_not_supported() {
    let (_plugin, handle, engine) = cpu();
    let config = engine_config(engine);
    let graphs: [(Graph, &str); 9] = [
        (relu(no_elements), "dim 0 is 0"),
        (relu(|graph| graph.tensors[0].dims[0] = -1), "dim 0 is -1"),
        (relu(|graph| graph.tensors[0].strides[0] = -12), "stride 0 is -12"),
        (relu(|graph| graph.tensors[0].strides.clear()), "3 dims but 0 strides"),
        (relu(|graph| graph.tensors[1].strides[0] = 0), "share an address"),
        (matmul(&[3], &[3], &[1]), "ranks of a, b and c are 1, 1 and 1"),
        (matmul(&[2, 3], &[3, 4], &[2, 5]), "has dims [2, 5]"),
        (sum(&[2, 3], &[2]), "ranks of input and output"),
        // Whatever else looks wrong in it.
        (
            relu(|graph| {
                graph.min_api_version = [1, 99, 0];
                dangling(graph);
            }),
            "ragged_offset",
        ),
    ];
    for (graph, reason) in graphs {
        let bytes = rotini_wire::encode(&graph);
        assert!(handle.applicable(&bytes).unwrap().is_empty(), "{reason}");
        assert_fails(handle.workspace_estimate(&config, &bytes), NOT_APPLICABLE, reason);
        assert_fails(handle.context(&config, &bytes), NOT_APPLICABLE, reason);
    }
}

#[test]
fn what_no_version_can_mean_is_not_valid() {
    let (_plugin, handle, engine) = cpu();
    let config = engine_config(engine);
    let graphs: [(Graph, &str); 4] = [
        (relu(dangling), "ragged_offset"),
        (relu(|graph| graph.tensors[1].uid = graph.tensors[0].uid), "two tensors"),
        (relu(|graph| graph.tensors[0].dims[0] = -5), "dim 0 is -5"),
        (matmul(&[2, 3], &[4, 5], &[2, 5]), "has 3 columns"),
    ];
    for (graph, reason) in graphs {
        let bytes = rotini_wire::encode(&graph);
        assert!(handle.applicable(&bytes).unwrap().is_empty(), "{reason}");
        assert_fails(handle.workspace_estimate(&config, &bytes), INVALID_VALUE, reason);
        assert_fails(handle.context(&config, &bytes), INVALID_VALUE, reason);
    }
}
