//! Scalars that are passed at execution, wherever an operation takes one.

use super::attention::Attention;
use super::case::{Cases, Order};
use super::convolution::Conv;
use rotini_graph::{
    BatchnormInferenceVariance, DataType, GraphBuilder, Layernorm, Matmul, PointwiseMode, Reduction, ReductionMode,
    TensorId, TensorKind,
};

const F32: DataType = DataType::F32;

/// Adds a value that is read through a host pointer.
pub(super) fn scalar(b: &mut GraphBuilder, name: &str, dtype: DataType, rank: usize) -> TensorId {
    b.tensor(name, dtype, &vec![1; rank], &vec![1; rank], TensorKind::RuntimeScalar)
}

pub(super) fn scalars(cases: &mut Cases) {
    types(cases);
    several(cases);
    operations(cases);
}

fn types(cases: &mut Cases) {
    use DataType::{Bf16, F16, F64, I8, I32, I64, U8};
    for (dtype, compute) in [
        (F32, F32),
        (F16, F32),
        (Bf16, F32),
        (F64, F64),
        (I32, I32),
        (I64, F64),
        (I8, I32),
        (U8, F32),
    ] {
        for mode in [PointwiseMode::Mul, PointwiseMode::Sub, PointwiseMode::CmpGt] {
            let mut b = GraphBuilder::new("scalar");
            let x = b.buffer("x", dtype, &[3, 5, 7]);
            let s = scalar(&mut b, "s", dtype, 3);
            let y = b.buffer("y", dtype, &[3, 5, 7]);
            // As either operand.
            let operands = if mode == PointwiseMode::Sub { [s, x] } else { [x, s] };
            b.pointwise(compute, mode, &operands, y);
            cases.add(format!("scalar_{}_{dtype}", mode.name()), b.build());
        }
    }
}

fn several(cases: &mut Cases) {
    // Scalars of all sizes together, one of them used twice.
    let mut b = GraphBuilder::new("many scalars");
    let x = b.buffer("x", F32, &[4, 33]);
    let mut last = x;
    let types = [
        DataType::F16,
        DataType::F64,
        F32,
        DataType::I32,
        DataType::I8,
        DataType::Bf16,
    ];
    let scalars: Vec<TensorId> = types
        .iter()
        .enumerate()
        .map(|(index, &dtype)| scalar(&mut b, &format!("s{index}"), dtype, 2))
        .collect();
    for (index, &s) in scalars.iter().chain(&scalars[..1]).enumerate() {
        let is_last = index == scalars.len();
        let next = if is_last {
            b.buffer("y", F32, &[4, 33])
        } else {
            b.virtual_tensor(&format!("t{index}"), F32, &[4, 33])
        };
        let mode = if index % 2 == 0 {
            PointwiseMode::Add
        } else {
            PointwiseMode::Sub
        };
        b.pointwise(F32, mode, &[last, s], next);
        last = next;
    }
    cases.add("scalars_of_all_sizes", b.build());

    // A value that is computed from scalars alone.
    let mut b = GraphBuilder::new("scalars alone");
    let x = b.buffer("x", F32, &[6, 10]);
    let [p, q] = ["p", "q"].map(|name| scalar(&mut b, name, F32, 2));
    let t = b.virtual_tensor("t", F32, &[1, 1]);
    let y = b.buffer("y", F32, &[6, 10]);
    b.pointwise(F32, PointwiseMode::Mul, &[p, q], t);
    b.pointwise(F32, PointwiseMode::Max, &[x, t], y);
    cases.add("scalar_of_scalars", b.build());

    // A scalar that is broadcast within the graph.
    let mut b = GraphBuilder::new("repeated scalar");
    let x = b.buffer("x", F32, &[6, 10]);
    let p = scalar(&mut b, "p", F32, 2);
    let t = b.virtual_tensor("t", F32, &[6, 10]);
    let y = b.buffer("y", F32, &[6, 10]);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[p], t);
    b.pointwise(F32, PointwiseMode::Add, &[t, x], y);
    cases.add("scalar_repeated", b.build());

    // A selection by an integer between elements of x and the scalar.
    let mut b = GraphBuilder::new("select");
    let m = b.buffer("m", DataType::I8, &[5, 8]);
    let x = b.buffer("x", F32, &[5, 8]);
    let s = scalar(&mut b, "s", F32, 1);
    let y = b.buffer("y", F32, &[5, 8]);
    b.pointwise(F32, PointwiseMode::BinarySelect, &[x, s, m], y);
    cases.add("scalar_selected", b.build());
}

fn operations(cases: &mut Cases) {
    // alpha and beta around a matmul.
    for dtype in [F32, DataType::F16] {
        let mut b = GraphBuilder::new("gemm");
        let [a, w, c] =
            [("a", [24, 40]), ("w", [40, 16]), ("c", [24, 16])].map(|(name, dims)| b.buffer(name, dtype, &dims));
        let [alpha, beta] = ["alpha", "beta"].map(|name| scalar(&mut b, name, F32, 2));
        let [p, q, r] = ["p", "q", "r"].map(|name| b.virtual_tensor(name, F32, &[24, 16]));
        let y = b.buffer("y", dtype, &[24, 16]);
        b.node("matmul", F32, Matmul { a, b: w, c: p });
        b.pointwise(F32, PointwiseMode::Mul, &[p, alpha], q);
        b.pointwise(F32, PointwiseMode::Mul, &[c, beta], r);
        b.pointwise(F32, PointwiseMode::Add, &[q, r], y);
        cases.add(format!("scalar_gemm_{dtype}"), b.build());
    }
    for order in Order::BOTH {
        let conv = Conv::new(1, 4, 8, 6, 3, 1, F32, order);
        let (x_dims, w_dims) = conv.dims();
        let mut b = GraphBuilder::new("scaled conv");
        let x = order.buffer(&mut b, "x", F32, &x_dims);
        let w = order.buffer(&mut b, "w", F32, &w_dims);
        let s = scalar(&mut b, "s", F32, 4);
        let t = b.virtual_tensor("t", F32, &conv.output());
        let y = order.buffer(&mut b, "y", F32, &conv.output());
        b.conv_fprop(F32, x, w, t, conv.geometry.clone());
        b.pointwise(F32, PointwiseMode::Mul, &[t, s], y);
        cases.add(format!("scalar_conv_{}", order.name()), b.build());
    }
    let attention = Attention::new(2, 3, [9, 17], 16, DataType::F16).with(|op| op.scale_tensor = true);
    let mut graph = attention.forward(false);
    for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == "scale") {
        tensor.kind = TensorKind::RuntimeScalar;
    }
    cases.add("scalar_sdpa", graph);
    let mut b = GraphBuilder::new("layernorm");
    let x = b.buffer("x", F32, &[6, 24]);
    let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, F32, &[1, 24]));
    let epsilon = scalar(&mut b, "epsilon", F32, 2);
    let y = b.buffer("y", F32, &[6, 24]);
    b.node("norm", F32, Layernorm::new([x, scale, bias, epsilon], y, 1));
    cases.add("scalar_layernorm", b.build());
    let mut b = GraphBuilder::new("batchnorm");
    let x = b.buffer("x", F32, &[2, 6, 3, 5]);
    let [mean, variance, scale, bias] =
        ["mean", "variance", "scale", "bias"].map(|name| b.buffer(name, F32, &[1, 6, 1, 1]));
    let epsilon = scalar(&mut b, "epsilon", DataType::F64, 4);
    let y = b.buffer("y", F32, &[2, 6, 3, 5]);
    let op = BatchnormInferenceVariance {
        x,
        mean,
        variance,
        scale,
        bias,
        epsilon,
        y,
    };
    b.node("norm", F32, op);
    cases.add("scalar_batchnorm", b.build());
    let mut b = GraphBuilder::new("scaled sum");
    let x = b.buffer("x", F32, &[7, 19]);
    let s = scalar(&mut b, "s", F32, 2);
    let t = b.virtual_tensor("t", F32, &[7, 19]);
    let y = b.buffer("y", F32, &[7, 1]);
    b.pointwise(F32, PointwiseMode::Mul, &[x, s], t);
    b.node("sum", F32, Reduction::new(ReductionMode::Add, t, y));
    cases.add("scalar_sum", b.build());
}
