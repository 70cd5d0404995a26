//! Graphs that rotini declines, with the reason.

mod attention;
mod boolean;
mod custom;
mod low_precision;
mod windows;

use super::case::{Case, Order};
use super::convolution::Conv;
use super::pointwise;
use super::pointwise::WITHOUT_F64;
use super::scalar;
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, ConvGeometry, DataType, Graph,
    GraphBuilder, Layernorm, LayernormBackward, Matmul, Op, PointwiseMode, Reduction, ReductionMode, RmsNorm,
    RmsNormBackward, Scalar, Tensor, TensorId, TensorKind,
};

const F32: DataType = DataType::F32;
const I32: DataType = DataType::I32;
const I8: DataType = DataType::I8;

/// Dims that fit every operand of an operation on single elements.
const SINGLE: [i64; 4] = [1; 4];

/// Reasons that several operations share.
const FLOAT_IN_I32: &str = "a float operand of an operation computed in i32";
const IN_I8: &str = "it cannot be computed in i8";
const CONSTANT: &str = "an operand of a contraction that is one value for every element";

/// Returns well-formed graphs that rotini does not run, each with a part of the reason. If the
/// reason is about an operation, the part is its beginning: the node, the tensor if any, and the
/// cause.
#[must_use]
pub fn declined() -> Vec<(Case, String)> {
    let mut declined = Declined(Vec::new());
    declined.pointwise();
    declined.tensors();
    declined.convolutions();
    declined.unreached_input();
    declined.matmuls();
    declined.reductions();
    declined.pooling();
    declined.experts();
    declined.norms();
    declined.sdpa();
    declined.low_precision();
    declined.truths();
    declined.block_scale();
    declined.custom();
    declined.sdpa_backward();
    declined.0
}

/// Cases, each with its reason.
struct Declined(Vec<(Case, String)>);

impl Declined {
    fn add(&mut self, name: impl Into<String>, graph: Graph, reason: impl Into<String>) {
        let name = name.into();
        self.0.push((Case { name, graph }, reason.into()));
    }

    fn pointwise(&mut self) {
        let packed = |mode, operand, out, compute| pointwise::packed(mode, &[operand], out, compute, &[4]);
        self.add(
            "exp_in_i32",
            packed(PointwiseMode::Exp, I32, I32, I32),
            "node 'EXP' (pointwise): EXP has no meaning in the integer compute type i32",
        );
        for mode in WITHOUT_F64 {
            let f64 = DataType::F64;
            self.add("f64", packed(mode, f64, f64, f64), mode.name());
        }
    }

    fn tensors(&mut self) {
        let mut b = GraphBuilder::new("constant only");
        let value = b.constant("value", F32, &[1, 1], Scalar::float(2.25));
        let y = b.buffer("y", F32, &[3, 8]);
        b.pointwise(F32, PointwiseMode::Sqrt, &[value], y);
        self.add("constant_only", b.build(), "'y'");
        // Scalars that are passed at execution, and no other input.
        let mut b = GraphBuilder::new("scalar only");
        let s = scalar::scalar(&mut b, "s", F32, 1);
        let y = b.buffer("y", F32, &[4]);
        b.pointwise(F32, PointwiseMode::Sqrt, &[s], y);
        self.add("scalar_only", b.build(), "tensor 'y' (uid 2): it depends on no buffer");
        let mut b = GraphBuilder::new("scalar operand");
        let a = scalar::scalar(&mut b, "a", F32, 2);
        let x = b.buffer("b", F32, &[1, 5]);
        let y = b.buffer("y", F32, &[1, 5]);
        b.node("matmul", F32, Matmul { a, b: x, c: y });
        let reason = format!("node 'matmul' (matmul), tensor 'a' (uid 1): {CONSTANT}");
        self.add("scalar_operand", b.build(), reason);
        let mut b = GraphBuilder::new("narrow scalar");
        let x = b.buffer("x", F32, &[4]);
        let s = scalar::scalar(&mut b, "s", DataType::F8E4M3, 1);
        let y = b.buffer("y", F32, &[4]);
        b.pointwise(F32, PointwiseMode::Mul, &[x, s], y);
        let reason = "tensor 's' (uid 2): a scalar of type f8e4m3 cannot be passed at execution";
        self.add("scalar_f8e4m3", b.build(), reason);
        let mut b = GraphBuilder::new("several scalars");
        let x = b.buffer("x", F32, &[4, 2]);
        let s = b.tensor("s", F32, &[1, 2], &[2, 1], TensorKind::RuntimeScalar);
        let y = b.buffer("y", F32, &[4, 2]);
        b.pointwise(F32, PointwiseMode::Mul, &[x, s], y);
        let reason = "tensor 's' (uid 2): more than one element is passed at execution";
        self.add("scalar_of_two", b.build(), reason);
        // Ragged rows, which are found through offsets.
        let ragged = |is_input: bool| {
            let mut b = GraphBuilder::new("ragged");
            let tensors = ["x", "y"].map(|name| b.buffer(name, F32, &[4, 3, 2]));
            let offsets = b.buffer("offsets", I32, &[5, 1, 1]);
            b.pointwise(F32, PointwiseMode::Abs, &tensors[..1], tensors[1]);
            let mut graph = b.build();
            let ragged = tensors[usize::from(!is_input)];
            graph.tensors[ragged.index()].ragged_offset = Some(offsets);
            graph
        };
        for (is_input, label) in [(true, "'x' (uid 1)"), (false, "'y' (uid 2)")] {
            self.add(
                format!("ragged_{is_input}"),
                ragged(is_input),
                format!(
                    "tensor {label}: it is ragged (its rows are found through offsets), which is not supported yet"
                ),
            );
        }
    }

    fn convolutions(&mut self) {
        // Each number fits in i64, and the output has five pixels per row: dilation and padding are
        // 2^62.
        let mut far = Conv::new(1, 4, 4, 5, 2, 0, F32, Order::First);
        far.geometry.dilation.fill(1 << 62);
        far.geometry.pre_padding.fill(1 << 62);
        let reason = "more than 1099511627776 elements with its padding";
        self.add("conv_far_padding", far.alone(), reason);
        self.add("dgrad_far_padding", far.dgrad(), reason);
        self.add("wgrad_far_padding", far.wgrad(), reason);
        let conv = Conv::new(1, 4, 4, 6, 3, 1, F32, Order::First);
        let mut in_i32 = conv.clone();
        in_i32.compute = I32;
        let mut in_i8 = Conv::new(1, 4, 4, 6, 3, 1, I8, Order::First);
        in_i8.compute = I8;
        let mut spatial = conv.clone();
        spatial.input = vec![3; 4];
        spatial.window = vec![1; 4];
        spatial.geometry = ConvGeometry::same(4, 0);

        type Direction = fn(&Conv) -> Graph;
        let directions: [(&str, &str, Direction, [&str; 2]); 3] = [
            ("conv", "convolution fprop", Conv::alone, ["x", "w"]),
            ("dgrad", "convolution dgrad", Conv::dgrad, ["dy", "w"]),
            ("wgrad", "convolution wgrad", Conv::wgrad, ["x", "dy"]),
        ];
        for (name, kind, build, operands) in directions {
            let node = format!("node '{name}' ({kind})");
            self.add(
                format!("{name}_4d"),
                build(&spatial),
                format!("{node}: 4 spatial dimensions, more than 3"),
            );
            self.add(
                format!("{name}_f32_in_i32"),
                build(&in_i32),
                format!("{node}, tensor '{}' (uid 1): {FLOAT_IN_I32}", operands[0]),
            );
            self.add(format!("{name}_compute_i8"), build(&in_i8), format!("{node}: {IN_I8}"));
            for (uid, operand) in (1..).zip(operands) {
                self.add(
                    format!("{name}_constant_{operand}"),
                    with_constant(build(&conv), operand),
                    format!("{node}, tensor '{operand}' (uid {uid}): {CONSTANT}"),
                );
            }
        }
    }

    fn unreached_input(&mut self) {
        let mut conv = Conv::new(1, 4, 6, 1, 2, 0, F32, Order::First);
        conv.geometry.pre_padding = vec![2; 2];
        conv.geometry.stride = vec![3; 2];
        self.add(
            "conv_of_padding",
            conv.alone(),
            "node 'conv' (convolution fprop): windows that reach nothing but padding",
        );
    }

    fn matmuls(&mut self) {
        let product = |types: [DataType; 2], compute| {
            let mut b = GraphBuilder::new("matmul");
            let a_id = b.buffer("a", types[0], &[3, 4]);
            let b_id = b.buffer("b", types[1], &[4, 5]);
            let c = b.buffer("c", F32, &[3, 5]);
            let op = Matmul { a: a_id, b: b_id, c };
            b.node("matmul", compute, op);
            b.build()
        };
        self.add(
            "matmul_f32_in_i32",
            product([I8, F32], I32),
            format!("node 'matmul' (matmul), tensor 'b' (uid 2): {FLOAT_IN_I32}"),
        );
        self.add(
            "matmul_compute_i8",
            product([I8; 2], I8),
            format!("node 'matmul' (matmul): {IN_I8}"),
        );
        self.add(
            "matmul_constant_a",
            with_constant(product([F32; 2], F32), "a"),
            format!("node 'matmul' (matmul), tensor 'a' (uid 1): {CONSTANT}"),
        );
        self.add(
            "matmul_constant_b",
            with_constant(product([F32; 2], F32), "b"),
            format!("node 'matmul' (matmul), tensor 'b' (uid 2): {CONSTANT}"),
        );
    }

    fn reductions(&mut self) {
        let reduce = |mode, dtype, compute| {
            let mut b = GraphBuilder::new("reduction");
            let input = b.buffer("x", dtype, &[2, 3]);
            let output = b.buffer("y", dtype, &[2, 1]);
            b.node("reduce", compute, Reduction::new(mode, input, output));
            b.build()
        };
        self.add(
            "reduce_avg_in_i32",
            reduce(ReductionMode::Avg, I32, I32),
            "node 'reduce' (reduction): Avg has no meaning in the integer compute type i32",
        );
        self.add(
            "reduce_norm2_in_i32",
            reduce(ReductionMode::Norm2, I32, I32),
            "node 'reduce' (reduction): Norm2 has no meaning in the integer compute type i32",
        );
        self.add(
            "reduce_f32_in_i32",
            reduce(ReductionMode::Add, F32, I32),
            format!("node 'reduce' (reduction), tensor 'x' (uid 1): {FLOAT_IN_I32}"),
        );
        self.add(
            "reduce_constant",
            with_constant(reduce(ReductionMode::Add, F32, F32), "x"),
            "tensor 'x' (uid 1): it depends on no buffer",
        );
        self.add(
            "reduce_compute_i8",
            reduce(ReductionMode::Add, I8, I8),
            format!("node 'reduce' (reduction): {IN_I8}"),
        );
    }

    fn norms(&mut self) {
        for (index, kind) in super::NORMS.into_iter().enumerate() {
            self.add(
                format!("norm_{index}_in_i32"),
                norm(index, I32, I32),
                format!("node 'norm' ({kind}): a normalization has no meaning in i32"),
            );
        }
        self.add(
            "norm_f32_in_i32",
            norm(4, F32, I32),
            format!("node 'norm' (layernorm), tensor 'x' (uid 1): {FLOAT_IN_I32}"),
        );
        self.add(
            "norm_constant_x",
            with_constant(norm(4, F32, F32), "x"),
            "tensor 'x' (uid 1): it depends on no buffer".to_owned(),
        );
        self.add(
            "norm_compute_i8",
            norm(4, I8, I8),
            format!("node 'norm' (layernorm): {IN_I8}"),
        );
        for (index, reason) in [
            (
                2,
                "node 'norm' (batchnorm training), tensor 'peer' (uid 6): statistics of other devices",
            ),
            (
                3,
                "node 'norm' (batchnorm backward), tensor 'peer' (uid 7): statistics of other devices",
            ),
        ] {
            let mut graph = norm(index, F32, F32);
            let peer = single(&mut graph, "peer");
            match &mut graph.nodes[0].op {
                Op::Batchnorm(op) => op.peer_stats.push(peer),
                Op::BatchnormBackward(op) => op.peer_stats.push(peer),
                _ => {}
            }
            self.add(format!("norm_{index}_peers"), graph, reason);
        }
    }
}

/// Replaces a tensor of the graph by a constant.
fn with_constant(mut graph: Graph, name: &str) -> Graph {
    for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == name) {
        tensor.kind = TensorKind::Constant(Scalar::float(0.25));
    }
    graph
}

/// Adds a buffer of a single element to a graph that is built.
fn single(graph: &mut Graph, name: &str) -> TensorId {
    let index = u32::try_from(graph.tensors.len()).unwrap_or(u32::MAX);
    graph.tensors.push(Tensor {
        uid: i64::from(index) + 1,
        name: name.to_owned(),
        dtype: F32,
        dims: SINGLE.to_vec(),
        strides: SINGLE.to_vec(),
        kind: TensorKind::Buffer,
        ragged_offset: None,
        alignment: 16,
    });
    TensorId(index)
}

/// Builds a normalization of single elements; `index` selects the kind, in the order of
/// `Declined::norms`.
fn norm(index: usize, dtype: DataType, compute: DataType) -> Graph {
    let mut b = GraphBuilder::new("norm");
    let mut buffer = |name| b.buffer(name, dtype, &SINGLE);
    let x = buffer("x");
    let scale = buffer("scale");
    let op: Op = match index {
        0 => BatchnormInference {
            x,
            mean: buffer("mean"),
            inv_variance: buffer("inv_variance"),
            scale,
            bias: buffer("bias"),
            y: buffer("y"),
        }
        .into(),
        1 => BatchnormInferenceVariance {
            x,
            mean: buffer("mean"),
            variance: buffer("variance"),
            scale,
            bias: buffer("bias"),
            epsilon: buffer("epsilon"),
            y: buffer("y"),
        }
        .into(),
        2 => Batchnorm::new([x, scale, buffer("bias"), buffer("epsilon")], buffer("y")).into(),
        3 => BatchnormBackward::new(
            [buffer("dy"), x, scale],
            [buffer("dx"), buffer("dscale"), buffer("dbias")],
        )
        .into(),
        4 => Layernorm::new([x, scale, buffer("bias"), buffer("epsilon")], buffer("y"), 1).into(),
        5 => LayernormBackward::new(
            [buffer("dy"), x, scale],
            [buffer("dx"), buffer("dscale"), buffer("dbias")],
            1,
        )
        .into(),
        6 => RmsNorm::new([x, scale, buffer("epsilon")], buffer("y")).into(),
        _ => RmsNormBackward {
            dy: buffer("dy"),
            x,
            scale,
            inv_rms: buffer("inv_rms"),
            dx: buffer("dx"),
            dscale: buffer("dscale"),
            dbias: None,
        }
        .into(),
    };
    b.node("norm", compute, op);
    b.build()
}
