//! What a graph is and the least that it costs: words, operations, bytes.

use rotini_graph::{DataType, Graph, Op, Tensor, TensorId, TensorKind};

/// The description of a graph before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What it does in a few words: `convolution fprop + add + relu_fwd`.
    pub words: String,
    /// The type of the operands of its largest product, else of its first tensor.
    pub dtype: String,
    /// Bits of an element of that type.
    pub bits: u32,
    /// Operations of its products; a multiply and an add are two. Absent where it has no product,
    /// or where masks that only an execution knows decide how many there are.
    pub flops: Option<f64>,
    /// Bytes of all tensors that are in buffers, each counted once.
    pub bytes: u64,
}

/// Returns the description of a graph.
#[must_use]
pub fn summarise(graph: &Graph) -> Summary {
    /// The most words of a description.
    const MOST_WORDS: usize = 6;
    let mut words: Vec<String> = graph.nodes.iter().map(|node| word(&node.op)).collect();
    if words.len() > MOST_WORDS {
        let more = words.len() - MOST_WORDS;
        words.truncate(MOST_WORDS);
        words.push(format!("{more} more"));
    }
    let products = || {
        let nodes = graph.nodes.iter();
        nodes.filter_map(|node| product(&node.op).map(|(operand, _)| (operand, flops(graph, &node.op))))
    };
    let largest = products().max_by(|(_, a), (_, b)| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    let operand = largest.and_then(|(operand, _)| graph.tensor(operand));
    let dtype = operand.or(graph.tensors.first()).map(|tensor| tensor.dtype);
    let all: Option<f64> = products().map(|(_, flops)| flops).sum();
    let stored = graph.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Buffer);
    Summary {
        words: words.join(" + "),
        dtype: dtype.map(|dtype| dtype.to_string()).unwrap_or_default(),
        bits: dtype.map_or(32, DataType::bits),
        flops: all.filter(|&flops| flops > 0.0),
        bytes: stored.map(least_bytes).fold(0, u64::saturating_add),
    }
}

/// Returns the bytes of a tensor's elements, each counted once: less than its span where there are
/// gaps, and no more where elements are repeated.
fn least_bytes(tensor: &Tensor) -> u64 {
    let span = rotini_reference::span_bytes(tensor).map_or(0, |bytes| bytes as u64);
    let bits = tensor
        .dims
        .iter()
        .try_fold(u64::from(tensor.dtype.bits()), |bits, &extent| {
            bits.checked_mul(u64::try_from(extent).ok()?)
        });
    bits.map_or(span, |bits| span.min(bits.div_ceil(8)))
}

fn word(op: &Op) -> String {
    match op {
        Op::Pointwise(pointwise) => pointwise.mode.name().to_lowercase(),
        op => op.kind().to_owned(),
    }
}

/// The first operand of a product, and what it is a product with.
fn product(op: &Op) -> Option<(TensorId, TensorId)> {
    match op {
        Op::ConvFprop(conv) => Some((conv.x, conv.w)),
        Op::ConvDgrad(conv) => Some((conv.dy, conv.w)),
        Op::ConvWgrad(conv) => Some((conv.x, conv.dy)),
        Op::Matmul(matmul) => Some((matmul.a, matmul.b)),
        Op::Sdpa(sdpa) => Some((sdpa.q, sdpa.k)),
        Op::SdpaBackward(sdpa) => Some((sdpa.q, sdpa.k)),
        Op::MoeGroupedMatmul(moe) => Some((moe.token, moe.weight)),
        Op::MoeGroupedMatmulBwd(moe) => Some((moe.token, moe.doutput)),
        _ => None,
    }
}

fn flops(graph: &Graph, op: &Op) -> Option<f64> {
    let dims = |id: TensorId| graph.tensor(id).map(|tensor| tensor.dims.as_slice());
    let elements = |id: TensorId| Some(dims(id)?.iter().map(|&extent| extent as f64).product::<f64>());
    let extent = |id: TensorId, axis: usize| Some(*dims(id)?.get(axis)? as f64);
    // One multiply and add for each element of the output and of a filter.
    let convolution =
        |output: TensorId, filters: TensorId| Some(2.0 * elements(output)? * elements(filters)? / extent(filters, 0)?);
    match op {
        Op::ConvFprop(conv) => convolution(conv.y, conv.w),
        Op::ConvDgrad(conv) => convolution(conv.dy, conv.w),
        Op::ConvWgrad(conv) => convolution(conv.dy, conv.dw),
        Op::Matmul(matmul) => Some(2.0 * elements(matmul.c)? * *dims(matmul.a)?.last()? as f64),
        Op::Sdpa(sdpa) => {
            let decided_later = sdpa.padding_mask || sdpa.block_mask.is_some() || sdpa.left_bound.is_some();
            let causal = sdpa.causal_mask || sdpa.causal_mask_bottom_right || sdpa.right_bound == Some(0);
            attention(graph, [sdpa.q, sdpa.v], [decided_later, causal], [1.0, 1.0])
        }
        // The scores, and the gradients of queries and keys; the gradients of the scores, and of
        // values.
        Op::SdpaBackward(sdpa) => {
            let decided_later = sdpa.padding_mask || sdpa.left_bound.is_some();
            let causal = sdpa.causal_mask || sdpa.causal_mask_bottom_right || sdpa.right_bound == Some(0);
            attention(graph, [sdpa.q, sdpa.v], [decided_later, causal], [3.0, 2.0])
        }
        _ => None,
    }
}

/// Counts the operations of an attention with `of_q` products over the columns of q and `of_v` over
/// those of v. With a causal mask half of them count, as is usual.
fn attention(
    graph: &Graph,
    [q, v]: [TensorId; 2],
    [decided_later, causal]: [bool; 2],
    [of_q, of_v]: [f64; 2],
) -> Option<f64> {
    let dims = |id: TensorId| <[i64; 4]>::try_from(graph.tensor(id)?.dims.as_slice()).ok();
    let [b, h, rows, depth] = dims(q)?.map(|extent| extent as f64);
    let [_, _, keys, values] = dims(v)?.map(|extent| extent as f64);
    let share = if causal { 0.5 } else { 1.0 };
    (!decided_later).then_some(2.0 * b * h * rows * keys * (of_q * depth + of_v * values) * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotini_graph::{ConvGeometry, DataType, GraphBuilder, PointwiseMode, SdpaBackward};

    #[test]
    fn a_convolution_is_counted_as_the_field_does() {
        let mut graph = GraphBuilder::new("conv");
        let x = graph.buffer("x", DataType::F16, &[2, 8, 14, 14]);
        let w = graph.buffer("w", DataType::F16, &[16, 4, 3, 3]);
        let y = graph.virtual_tensor("y", DataType::F32, &[2, 16, 14, 14]);
        let z = graph.buffer("z", DataType::F16, &[2, 16, 14, 14]);
        graph.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
        graph.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[y], z);
        let summary = summarise(&graph.build());
        assert_eq!(summary.words, "convolution fprop + relu_fwd");
        assert_eq!((summary.dtype.as_str(), summary.bits), ("f16", 16));
        assert_eq!(summary.flops, Some(2.0 * (2 * 16 * 14 * 14 * 4 * 3 * 3) as f64));
        assert_eq!(summary.bytes, 2 * (2 * 8 * 14 * 14 + 16 * 4 * 9 + 2 * 16 * 14 * 14));
    }

    #[test]
    fn gaps_and_repeated_elements_are_no_bytes() {
        let mut graph = GraphBuilder::new("gaps");
        let slot = graph.tensor("slot", DataType::F16, &[2, 8], &[4096, 1], TensorKind::Buffer);
        let repeated = graph.tensor("repeated", DataType::F16, &[2, 8], &[0, 1], TensorKind::Buffer);
        let y = graph.buffer("y", DataType::F16, &[2, 8]);
        graph.pointwise(DataType::F32, PointwiseMode::Add, &[slot, repeated], y);
        assert_eq!(summarise(&graph.build()).bytes, 32 + 16 + 32);
    }

    #[test]
    fn gradients_of_attention_are_five_products() {
        let mut graph = GraphBuilder::new("gradients");
        let [q, dq] = ["q", "dq"].map(|name| graph.buffer(name, DataType::F16, &[2, 4, 100, 64]));
        let [k, dk] = ["k", "dk"].map(|name| graph.buffer(name, DataType::F16, &[2, 2, 60, 64]));
        let [v, dv] = ["v", "dv"].map(|name| graph.buffer(name, DataType::F16, &[2, 2, 60, 128]));
        let [o, d_o] = ["o", "do"].map(|name| graph.buffer(name, DataType::F16, &[2, 4, 100, 128]));
        let stats = graph.buffer("stats", DataType::F32, &[2, 4, 100, 1]);
        let mut op = SdpaBackward::new([q, k, v, o, d_o, stats], [dq, dk, dv]);
        op.right_bound = Some(0);
        graph.node("gradients", DataType::F32, Box::new(op));
        let summary = summarise(&graph.build());
        assert_eq!(summary.flops, Some((2 * 4 * 100 * 60 * (3 * 64 + 2 * 128)) as f64));
    }
}
