//! Decides whether a graph resembles those whose kernels were compared with hardware.

use rotini_graph::{Graph, Op};

/// Returns true if kernels of such graphs were compared with hardware: forward convolutions with
/// channels innermost, and products of 16-bit floats whose summed axis is innermost in both
/// operands, with any pointwise operations. Predictions for all other graphs are extrapolated.
#[must_use]
pub fn is_like_the_measured(graph: &Graph) -> bool {
    let has_unit_stride = |x, from_last| {
        let strides = graph.tensor(x).map_or(&[][..], |tensor| tensor.strides.as_slice());
        strides.iter().rev().nth(from_last) == Some(&1)
    };
    let is_last = |x| graph.tensor(x).is_some_and(|tensor| tensor.strides.get(1) == Some(&1));
    let is_half = |x| graph.tensor(x).is_some_and(|tensor| tensor.dtype.bits() == 16);
    graph.nodes.iter().all(|node| match &node.op {
        Op::ConvFprop(conv) => is_last(conv.x),
        Op::Matmul(product) => has_unit_stride(product.a, 0) && has_unit_stride(product.b, 1) && is_half(product.a),
        Op::Pointwise(_) => true,
        _ => false,
    })
}
