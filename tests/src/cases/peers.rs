//! The graphs that other engines for hipDNN claim to support, form by form. rotini runs them too.
//!
//! | Engine | Documentation of its support (ROCm/rocm-libraries, `dnn-providers`) |
//! |---|---|
//! | MIOpen | `miopen-provider/docs/OperationSupport.md`, `config/MIOPEN_ENGINE.supported.toml` |
//! | hipBLASLt | `hipblaslt-provider/docs/OperationSupport.md`, `integration_tests` |
//! | Fusilli | `fusilli-provider/include/graph_import.h`, `custom_ops.h`, `test/integration` |
//!
//! The modules of the operations cover convolutions, single activations, reductions and attention.
//! This one covers the chains.

use super::case::{Cases, FLOATS, Order};
use super::matmul::Product;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, BlockScaleDequantize, ConvGeometry,
    DataType, GraphBuilder, Matmul, Pointwise, PointwiseMode, Scalar, TensorId, TensorKind,
};

const F32: DataType = DataType::F32;
const EPSILON: f64 = 1e-5;

/// Clips of a relu: none, or those of a clamp.
const CLIPS: [(&str, Option<f32>, Option<f32>); 4] = [
    ("relu", None, None),
    ("lower", Some(0.125), None),
    ("upper", None, Some(0.5)),
    ("clamp", Some(-0.25), Some(0.75)),
];

/// Returns dims for NCL, NLC, NCHW, NHWC, NCDHW, NDHWC.
fn layouts() -> Vec<(Vec<i64>, Order)> {
    [&[2, 6, 5][..], &[2, 6, 3, 4], &[2, 4, 2, 3, 4]]
        .into_iter()
        .flat_map(|dims| Order::BOTH.map(|order| (dims.to_vec(), order)))
        .collect()
}

fn relu(x: TensorId, y: TensorId, lower: Option<f32>, upper: Option<f32>) -> Pointwise {
    let mut op = Pointwise::new(PointwiseMode::ReluFwd, x, None, None, y);
    (op.relu_lower_clip, op.relu_upper_clip) = (lower, upper);
    op
}

/// Normalizations that are followed by an activation.
#[derive(Clone, Copy, Debug)]
enum Norm {
    Inference,
    InferenceVariance,
    Training,
    TrainingRunning,
}

impl Norm {
    const ALL: [(&str, Norm); 4] = [
        ("inference", Norm::Inference),
        ("inference_variance", Norm::InferenceVariance),
        ("training", Norm::Training),
        ("training_running", Norm::TrainingRunning),
    ];

    fn add(self, b: &mut GraphBuilder, x: TensorId, y: TensorId, channel: &[i64]) {
        let mut per_channel = |name: &str| b.buffer(name, F32, channel);
        let [scale, bias] = ["scale", "bias"].map(&mut per_channel);
        match self {
            Norm::Inference => {
                let [mean, inv_variance] = ["mean", "inv_variance"].map(per_channel);
                let op = BatchnormInference {
                    x,
                    mean,
                    inv_variance,
                    scale,
                    bias,
                    y,
                };
                b.node("norm", F32, op);
            }
            Norm::InferenceVariance => {
                let [mean, variance] = ["mean", "variance"].map(per_channel);
                let op = BatchnormInferenceVariance {
                    x,
                    mean,
                    variance,
                    scale,
                    bias,
                    epsilon: b.constant("epsilon", F32, &[1], Scalar::float(EPSILON)),
                    y,
                };
                b.node("norm", F32, op);
            }
            Norm::Training | Norm::TrainingRunning => {
                let [mean, inv_variance] = ["mean", "inv_variance"].map(&mut per_channel);
                let running = matches!(self, Norm::TrainingRunning)
                    .then(|| ["prev_mean", "prev_variance", "next_mean", "next_variance"].map(per_channel));
                let op = Batchnorm {
                    x,
                    scale,
                    bias,
                    epsilon: b.constant("epsilon", F32, &[1], Scalar::float(EPSILON)),
                    peer_stats: Vec::new(),
                    prev_running_mean: running.map(|[mean, ..]| mean),
                    prev_running_variance: running.map(|[_, variance, ..]| variance),
                    momentum: running.map(|_| b.constant("momentum", F32, &[1], Scalar::float(0.1))),
                    y,
                    mean: Some(mean),
                    inv_variance: Some(inv_variance),
                    next_running_mean: running.map(|[.., mean, _]| mean),
                    next_running_variance: running.map(|[.., variance]| variance),
                };
                b.node("norm", F32, op);
            }
        }
    }
}

/// Returns the dims 1, C, 1, ...
fn channel(dims: &[i64]) -> Vec<i64> {
    let mut channel = vec![1; dims.len()];
    channel[1] = dims[1];
    channel
}

/// Adds normalizations with an activation, and the gradient of both; convolutions with a bias and
/// an activation.
pub(super) fn miopen(cases: &mut Cases) {
    for (index, (dims, order)) in layouts().into_iter().enumerate() {
        let name = |dtype: DataType| format!("{}d_{}_{dtype}", dims.len() - 2, order.name());
        for (turn, (kind, norm)) in Norm::ALL.into_iter().enumerate() {
            // Every clip of every kind, and every type and layout for each clip.
            for (clip, (form, lower, upper)) in CLIPS.into_iter().enumerate() {
                let dtype = FLOATS[(index + turn + clip) % FLOATS.len()];
                if index >= FLOATS.len() && clip > 0 {
                    continue;
                }
                let mut b = GraphBuilder::new("batchnorm and relu");
                let x = order.buffer(&mut b, "x", dtype, &dims);
                let normal = b.virtual_tensor("normal", F32, &dims);
                let y = order.buffer(&mut b, "y", dtype, &dims);
                norm.add(&mut b, x, normal, &channel(&dims));
                b.node("act", F32, relu(normal, y, lower, upper));
                cases.add(format!("peers_bn_{kind}_{form}_{}", name(dtype)), b.build());
            }
        }
        let dtype = FLOATS[index % FLOATS.len()];
        cases.add(format!("peers_bn_drelu_{}", name(dtype)), drelu(&dims, dtype, order));
        // One clip per layout: convolutions take long to compile.
        let clip = index % CLIPS.len();
        let (form, lower, upper) = CLIPS[clip];
        let dtype = FLOATS[(index + clip) % FLOATS.len()];
        for (bias, wide) in [(false, true), (true, true), (true, false)] {
            let between = if wide { F32 } else { dtype };
            let mut b = GraphBuilder::new("convolution and relu");
            let mut w_dims = vec![3; dims.len()];
            w_dims[..2].copy_from_slice(&[5, dims[1]]);
            let mut y_dims = dims.clone();
            y_dims[1] = 5;
            let x = order.buffer(&mut b, "x", dtype, &dims);
            let w = order.buffer(&mut b, "w", dtype, &w_dims);
            let product = b.virtual_tensor("product", between, &y_dims);
            let y = order.buffer(&mut b, "y", dtype, &y_dims);
            b.conv_fprop(F32, x, w, product, ConvGeometry::same(dims.len() - 2, 1));
            let mut last = product;
            if bias {
                let bias = b.buffer("bias", dtype, &channel(&y_dims));
                last = b.virtual_tensor("biased", between, &y_dims);
                // The bias is added in the type of the data.
                b.pointwise(dtype, PointwiseMode::Add, &[product, bias], last);
            }
            b.node("act", F32, relu(last, y, lower, upper));
            let bias = match (bias, wide) {
                (false, _) => "",
                (true, true) => "bias_",
                (true, false) => "narrow_bias_",
            };
            cases.add(format!("peers_conv_{bias}{form}_{}", name(dtype)), b.build());
        }
    }
}

/// Builds the gradients of a normalization and its activation, whose input is recomputed.
fn drelu(dims: &[i64], dtype: DataType, order: Order) -> rotini_graph::Graph {
    let mut b = GraphBuilder::new("batchnorm, relu backward, batchnorm backward");
    let channel = channel(dims);
    let [x, dy, dx] = ["x", "dy", "dx"].map(|name| order.buffer(&mut b, name, dtype, dims));
    let [mean, inv_variance, scale, bias, dscale, dbias] =
        ["mean", "inv_variance", "scale", "bias", "dscale", "dbias"].map(|name| b.buffer(name, F32, &channel));
    let [y, dnormal] = ["y", "dnormal"].map(|name| b.virtual_tensor(name, F32, dims));
    let forward = BatchnormInference {
        x,
        mean,
        inv_variance,
        scale,
        bias,
        y,
    };
    b.node("norm", F32, forward);
    b.pointwise(F32, PointwiseMode::ReluBwd, &[dy, y], dnormal);
    let backward = BatchnormBackward {
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        ..BatchnormBackward::new([dnormal, x, scale], [dx, dscale, dbias])
    };
    b.node("gradient", F32, backward);
    b.build()
}

/// Adds matmuls with a bias, an activation or both, batched in one or both operands; products of
/// block-scaled FP8.
pub(super) fn hipblaslt(cases: &mut Cases) {
    let activations = [
        ("relu", PointwiseMode::ReluFwd, None, None),
        ("clamp", PointwiseMode::ReluFwd, Some((-0.5, 0.5)), None),
        ("gelu", PointwiseMode::GeluApproxTanhFwd, None, None),
        ("swish", PointwiseMode::SwishFwd, None, Some(1.0)),
    ];
    for dtype in FLOATS {
        for (form, mode, clips, beta) in activations {
            for bias in [false, true] {
                let mut b = GraphBuilder::new("matmul and what follows");
                let a = b.tensor("a", dtype, &[1, 6, 9], &[54, 1, 6], TensorKind::Buffer);
                let weights = b.buffer("b", dtype, &[3, 9, 10]);
                let dims = [3, 6, 10];
                let [c, biased] = ["c", "biased"].map(|name| b.virtual_tensor(name, F32, &dims));
                b.node("matmul", F32, Matmul { a, b: weights, c });
                let mut last = c;
                if bias {
                    let bias = b.buffer("bias", dtype, &[1, 1, 10]);
                    b.pointwise(F32, PointwiseMode::Add, &[c, bias], biased);
                    last = biased;
                }
                let y = b.buffer("y", dtype, &dims);
                let mut op = Pointwise::new(mode, last, None, None, y);
                (op.relu_lower_clip, op.relu_upper_clip) = clips.unzip();
                op.swish_beta = beta;
                b.node("act", F32, op);
                let bias = if bias { "bias_" } else { "" };
                cases.add(format!("peers_matmul_{bias}{form}_{dtype}"), b.build());
            }
        }
    }
    for batch in [&[][..], &[1, 1]] {
        for (input, out) in [(DataType::F8E4M3, DataType::F16), (DataType::F8E5M2, DataType::Bf16)] {
            let dims = |matrix: [i64; 2]| [batch, &matrix].concat();
            let mut b = GraphBuilder::new("block-scaled matmul");
            let (rows, inner, columns) = (32, 128, 16);
            let mut strides = vec![rows * inner; batch.len()];
            strides.extend([1, rows]);
            let a = b.tensor("a", input, &dims([rows, inner]), &strides, TensorKind::Buffer);
            let weights = b.buffer("b", input, &dims([inner, columns]));
            let scale = DataType::F8E8M0;
            let scale_a = b.buffer("scale_a", scale, &dims([rows, inner / 32]));
            let scale_b = b.buffer("scale_b", scale, &dims([inner / 32, columns]));
            let c = b.buffer("c", out, &dims([rows, columns]));
            let [scaled_a, scaled_b] = [("scaled_a", [rows, inner]), ("scaled_b", [inner, columns])]
                .map(|(name, matrix)| b.virtual_tensor(name, F32, &dims(matrix)));
            for (x, scale, y, block_size) in [
                (a, scale_a, scaled_a, vec![32]),
                (weights, scale_b, scaled_b, vec![32, 1]),
            ] {
                let op = BlockScaleDequantize {
                    x,
                    scale,
                    y,
                    block_size,
                    is_negative_scale: false,
                };
                b.node("dequantize", F32, op);
            }
            let product = Matmul {
                a: scaled_a,
                b: scaled_b,
                c,
            };
            b.node("matmul", F32, product);
            let rank = batch.len() + 2;
            cases.add(format!("peers_mx_matmul_{input}_to_{out}_of_rank_{rank}"), b.build());
        }
    }
}

/// Adds alpha a b + beta c with scalars of rank 1; int4 as the left operand.
pub(super) fn fusilli(cases: &mut Cases) {
    let mut b = GraphBuilder::new("alpha a b + beta c");
    let dims = [4, 5];
    let a = b.buffer("a", F32, &[4, 8]);
    let weights = b.buffer("b", F32, &[8, 5]);
    let c = b.buffer("c", F32, &dims);
    let [alpha, beta] =
        [("alpha", 2.0), ("beta", 3.0)].map(|(name, value)| b.constant(name, F32, &[1], Scalar::float(value)));
    let [product, scaled, rest] = ["product", "scaled", "rest"].map(|name| b.virtual_tensor(name, F32, &dims));
    let y = b.buffer("y", F32, &dims);
    b.node(
        "matmul",
        F32,
        Matmul {
            a,
            b: weights,
            c: product,
        },
    );
    b.pointwise(F32, PointwiseMode::Mul, &[product, alpha], scaled);
    b.pointwise(F32, PointwiseMode::Mul, &[c, beta], rest);
    b.pointwise(F32, PointwiseMode::Add, &[scaled, rest], y);
    cases.add("peers_scaled_matmul_accumulate", b.build());
    let int4 = Product::new(4, 8, 4, DataType::F16).batched(&[1], &[1]).types([
        DataType::I4,
        DataType::F16,
        DataType::F16,
        F32,
    ]);
    cases.add("peers_matmul_i4_by_f16", int4.alone());
}
