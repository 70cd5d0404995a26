//! Inputs of executions whose results are judged.

use rotini_graph::{Graph, TensorId, TensorKind};
use rotini_reference::{Buffers, ReferenceError, fill_all, span_bytes};

/// Bytes of a tensor above which rows that attention must not read are not poisoned: finding them
/// would take longer than the executions.
const LARGE: usize = 1 << 20;

/// Returns bytes for every buffer and runtime scalar of a graph, by uid: those of [`fill_all`],
/// which poisons rows that attention must not read. Without poison if a tensor is large.
///
/// # Errors
///
/// Those of [`fill_all`].
pub fn fill(graph: &Graph, seed: u64) -> Result<Buffers, ReferenceError> {
    let is_bound = |kind| matches!(kind, TensorKind::Buffer | TensorKind::RuntimeScalar);
    let mut is_large = false;
    for tensor in graph.tensors.iter().filter(|tensor| is_bound(tensor.kind)) {
        is_large |= span_bytes(tensor)? > LARGE;
    }
    if !is_large {
        return fill_all(graph, seed);
    }
    let each = (0_u32..).map(TensorId).zip(&graph.tensors);
    each.filter(|(_, tensor)| is_bound(tensor.kind))
        .map(|(id, tensor)| Ok((tensor.uid, rotini_reference::fill(graph, id, seed)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{DataType, GraphBuilder, PointwiseMode};

    #[test]
    fn large_graphs_have_the_same_numbers() {
        let graph = |elements: i64| {
            let mut builder = GraphBuilder::new("");
            let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F32, &[elements]));
            builder.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[x], y);
            let mut graph = builder.build();
            graph.validate().unwrap();
            graph
        };
        for elements in [1000, 5 << 20] {
            let graph = graph(elements);
            assert_eq!(fill(&graph, 3).unwrap(), fill_all(&graph, 3).unwrap());
        }
    }
}
