//! Other operations on one core, f32, against ONNX Runtime's.
//!
//! If ONNX has no such operation, the peer computes the same with others: dgrad as a transposed convolution, attention as two matmuls with
//! a softmax between them.

use crate::beside::Beside;
use crate::onnxruntime::{Network, Step};
use crate::report::Row;
use anyhow::Result;
use rotini_graph::{
    ConvDgrad, ConvGeometry, DataType, Graph, GraphBuilder, Layernorm, Matmul, NormPhase, PointwiseMode, Reduction,
    ReductionMode, Scalar, Sdpa,
};

const F32: DataType = DataType::F32;
const PEER: &str = "ONNX Runtime";
/// ONNX's own default.
const EPSILON: f64 = 1e-5;

pub(crate) fn run() -> Result<Vec<Row>> {
    let beside = Beside::new()?;
    let mut rows = Vec::new();
    let mut add = |name: &str, graph: &Graph, network: Network<'_>, batch| -> Result<()> {
        let mut peer = beside.peer(network)?;
        rows.push(beside.row(name.to_owned(), graph, "y", (&mut peer, PEER), batch, None)?);
        Ok(())
    };
    let (graph, network) = matmul_bias_gelu(128, 768, 3072);
    add("matmul+bias+gelu 128×768×3072", &graph, network, 1)?;
    let (graph, network) = matmul_bias_gelu(1, 768, 3072);
    add("matmul+bias+gelu 1×768×3072", &graph, network, 5)?;
    let (graph, network) = residual_layernorm(512, 768)?;
    add("residual+layernorm 512×768", &graph, network, 5)?;
    let (graph, network) = attention(8, 256, 64)?;
    add("SDPA 8 heads, 256×256, D 64", &graph, network, 1)?;
    let (graph, network) = dgrad(64, 64, 28)?;
    add("dgrad 64→64 3×3 at 28×28, NCHW", &graph, network, 1)?;
    let (graph, network) = global_average(8, 512, 14);
    add("average of 14×14, 8×512 of them", &graph, network, 5)?;
    Ok(rows)
}

fn matmul_bias_gelu(rows: i64, inner: i64, columns: i64) -> (Graph, Network<'static>) {
    let mut b = GraphBuilder::new("matmul_bias_gelu");
    let x = b.buffer("x", F32, &[rows, inner]);
    let w = b.buffer("w", F32, &[inner, columns]);
    let bias = b.buffer("bias", F32, &[1, columns]);
    let [product, sum] = ["product", "sum"].map(|name| b.virtual_tensor(name, F32, &[rows, columns]));
    let y = b.buffer("y", F32, &[rows, columns]);
    b.node("matmul", F32, Matmul { a: x, b: w, c: product });
    b.pointwise(F32, PointwiseMode::Add, &[product, bias], sum);
    b.pointwise(F32, PointwiseMode::GeluFwd, &[sum], y);
    let network = Network {
        inputs: vec![("x", vec![rows, inner])],
        constants: vec![("w", vec![inner, columns]), ("bias", vec![columns])],
        output: ("y", vec![rows, columns]),
        steps: vec![
            Step::new("MatMul", &["x", "w"], "product"),
            Step::new("Add", &["product", "bias"], "sum"),
            Step::new("Gelu", &["sum"], "y"),
        ],
    };
    (b.build(), network)
}

fn residual_layernorm(rows: i64, columns: i64) -> Result<(Graph, Network<'static>)> {
    let mut b = GraphBuilder::new("residual_layernorm");
    let dims = [rows, columns];
    let [x, residual] = ["x", "residual"].map(|name| b.buffer(name, F32, &dims));
    let [scale, bias] = ["w", "bias"].map(|name| b.buffer(name, F32, &[1, columns]));
    let epsilon = b.constant("epsilon", F32, &[1], Scalar::float(EPSILON));
    let sum = b.virtual_tensor("sum", F32, &dims);
    let y = b.buffer("y", F32, &dims);
    b.pointwise(F32, PointwiseMode::Add, &[x, residual], sum);
    let layernorm = Layernorm {
        x: sum,
        scale,
        bias,
        epsilon,
        y,
        mean: None,
        inv_variance: None,
        normalized_dim_count: 1,
        phase: NormPhase::Inference,
    };
    b.node("layernorm", F32, layernorm);
    let network = Network {
        inputs: vec![("x", dims.to_vec()), ("residual", dims.to_vec())],
        constants: vec![("w", vec![columns]), ("bias", vec![columns])],
        output: ("y", dims.to_vec()),
        steps: vec![
            Step::new("Add", &["x", "residual"], "sum"),
            Step::new("LayerNormalization", &["sum", "w", "bias"], "y").integer("axis", 1)?,
        ],
    };
    Ok((b.build(), network))
}

fn attention(heads: i64, length: i64, d: i64) -> Result<(Graph, Network<'static>)> {
    let dims = vec![1, heads, length, d];
    let mut b = GraphBuilder::new("sdpa");
    let [q, k, v, y] = ["q", "k", "v", "y"].map(|name| b.buffer(name, F32, &dims));
    b.node("sdpa", F32, Box::new(Sdpa::new(q, k, v, y)));
    let network = Network {
        inputs: ["q", "k", "v"].map(|name| (name, dims.clone())).to_vec(),
        constants: Vec::new(),
        output: ("y", dims),
        steps: vec![
            Step::new("Transpose", &["k"], "transposed").integers("perm", vec![0, 1, 3, 2])?,
            Step::new("MatMul", &["q", "transposed"], "scores"),
            Step::new("Softmax", &["scores"], "weights"),
            Step::new("MatMul", &["weights", "v"], "y"),
        ],
    };
    Ok((b.build(), network))
}

fn dgrad(c: i64, k: i64, extent: i64) -> Result<(Graph, Network<'static>)> {
    let mut b = GraphBuilder::new("dgrad");
    let dy = b.buffer("dy", F32, &[1, k, extent, extent]);
    let w = b.buffer("w", F32, &[k, c, 3, 3]);
    let dx = b.buffer("y", F32, &[1, c, extent, extent]);
    let geometry = ConvGeometry::same(2, 1);
    b.node("dgrad", F32, ConvDgrad { dy, w, dx, geometry });
    let network = Network {
        inputs: vec![("dy", vec![1, k, extent, extent])],
        constants: vec![("w", vec![k, c, 3, 3])],
        output: ("y", vec![1, c, extent, extent]),
        steps: vec![Step::new("ConvTranspose", &["dy", "w"], "y").integers("pads", vec![1; 4])?],
    };
    Ok((b.build(), network))
}

fn global_average(n: i64, c: i64, extent: i64) -> (Graph, Network<'static>) {
    let mut b = GraphBuilder::new("global_average");
    let input = b.buffer("x", F32, &[n, c, extent, extent]);
    let output = b.buffer("y", F32, &[n, c, 1, 1]);
    let reduction = Reduction {
        input,
        output,
        mode: ReductionMode::Avg,
        is_deterministic: false,
    };
    b.node("average", F32, reduction);
    let network = Network {
        inputs: vec![("x", vec![n, c, extent, extent])],
        constants: Vec::new(),
        output: ("y", vec![n, c, 1, 1]),
        steps: vec![Step::new("GlobalAveragePool", &["x"], "y")],
    };
    (b.build(), network)
}
