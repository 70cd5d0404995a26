//! The fusions that are the engine's purpose, at the shapes of known networks and at small ones.

use super::case::{Case, Cases, FLOATS, Order};
use super::convolution::Conv;
use super::matmul::Product;
use rotini_graph::{BatchnormInferenceVariance, DataType, Graph, GraphBuilder, Layernorm, PointwiseMode, Scalar};

const F32: DataType = DataType::F32;
const EPSILON: f64 = 1e-5;

/// Convolution, batchnorm inference and relu, with a residual before the relu if `residual`.
fn conv_batchnorm_relu(conv: &Conv, residual: bool) -> Graph {
    let mut b = GraphBuilder::new("conv_batchnorm_relu");
    let (x, w) = conv.operands(&mut b);
    let dims = conv.output();
    let mut channel = vec![1; dims.len()];
    channel[1] = conv.k;
    let [mean, variance, scale, bias] = ["mean", "variance", "scale", "bias"].map(|name| b.buffer(name, F32, &channel));
    let epsilon = b.constant("epsilon", F32, &[1], Scalar::float(EPSILON));
    let [product, normal] = ["product", "normal"].map(|name| b.virtual_tensor(name, F32, &dims));
    b.conv_fprop(F32, x, w, product, conv.geometry.clone());
    let batchnorm = BatchnormInferenceVariance {
        x: product,
        mean,
        variance,
        scale,
        bias,
        epsilon,
        y: normal,
    };
    b.node("batchnorm", F32, batchnorm);
    let mut last = normal;
    if residual {
        let z = conv.orders[2].buffer(&mut b, "z", conv.dtype, &dims);
        last = b.virtual_tensor("summed", F32, &dims);
        b.pointwise(F32, PointwiseMode::Add, &[normal, z], last);
    }
    let y = conv.orders[2].buffer(&mut b, "y", conv.out, &dims);
    b.pointwise(F32, PointwiseMode::ReluFwd, &[last], y);
    b.build()
}

/// Layernorm over the last dimension of x plus a residual; the sum is stored too if `stored`.
fn residual_layernorm(rows: i64, columns: i64, dtype: DataType, stored: bool) -> Graph {
    let mut b = GraphBuilder::new("residual_layernorm");
    let dims = [1, rows, columns];
    let [x, residual] = ["x", "residual"].map(|name| b.buffer(name, dtype, &dims));
    let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, dtype, &[1, 1, columns]));
    let epsilon = b.constant("epsilon", F32, &[1], Scalar::float(EPSILON));
    let sum = if stored {
        b.buffer("sum", dtype, &dims)
    } else {
        b.virtual_tensor("sum", F32, &dims)
    };
    let y = b.buffer("y", dtype, &dims);
    b.pointwise(F32, PointwiseMode::Add, &[x, residual], sum);
    b.node("layernorm", F32, Layernorm::new([sum, scale, bias, epsilon], y, 1));
    b.build()
}

/// Adds small fusions, which are executed.
pub(super) fn small(cases: &mut Cases) {
    for dtype in FLOATS {
        for order in Order::BOTH {
            let conv = Conv::new(2, 8, 16, 7, 3, 1, dtype, order);
            let name = order.name();
            cases.add(
                format!("conv_batchnorm_relu_{name}_{dtype}"),
                conv_batchnorm_relu(&conv, false),
            );
            cases.add(
                format!("conv_batchnorm_add_relu_{name}_{dtype}"),
                conv_batchnorm_relu(&conv, true),
            );
        }
        for columns in [20, 64] {
            cases.add(
                format!("residual_layernorm_{columns}_{dtype}"),
                residual_layernorm(5, columns, dtype, false),
            );
            cases.add(
                format!("residual_layernorm_stored_{columns}_{dtype}"),
                residual_layernorm(5, columns, dtype, true),
            );
        }
    }
}

/// Returns the fusions that should each be one kernel, at the shapes of ResNet-50 and BERT.
#[must_use]
pub fn fusions() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    for dtype in FLOATS {
        for order in Order::BOTH {
            let name = order.name();
            for (c, k, input, window) in [(64, 64, 56, 3), (256, 64, 56, 1), (512, 512, 7, 3)] {
                let conv = Conv::new(1, c, k, input, window, window / 2, dtype, order);
                let name = format!("{c}to{k}_{window}x{window}_{input}_{name}_{dtype}");
                cases.add(format!("conv_batchnorm_relu_{name}"), conv_batchnorm_relu(&conv, false));
                cases.add(
                    format!("conv_batchnorm_add_relu_{name}"),
                    conv_batchnorm_relu(&conv, true),
                );
            }
        }
        for (rows, inner, columns) in [(512, 768, 3072), (512, 3072, 768)] {
            for transposed in [false, true] {
                let product = Product::new(rows, inner, columns, dtype).transposed(false, transposed, false);
                for gelu in [PointwiseMode::GeluFwd, PointwiseMode::GeluApproxTanhFwd] {
                    let form = if transposed { "nt" } else { "nn" };
                    let name = format!("matmul_bias_{}_{rows}x{inner}x{columns}_{form}_{dtype}", gelu.name());
                    cases.add(name, product.fused(gelu));
                }
            }
        }
    }
    cases.0
}

/// Returns layernorms behind a residual at the shapes of BERT and GPT-2: no matmul, one kernel.
#[must_use]
pub fn residual_layernorms() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    for dtype in FLOATS {
        for (rows, columns) in [(512, 768), (512, 1024), (4096, 4096)] {
            cases.add(
                format!("residual_layernorm_{rows}x{columns}_{dtype}"),
                residual_layernorm(rows, columns, dtype, false),
            );
            cases.add(
                format!("residual_layernorm_stored_{rows}x{columns}_{dtype}"),
                residual_layernorm(rows, columns, dtype, true),
            );
        }
    }
    cases.0
}

/// Returns both gradients of layers of ResNet-50, whose matmuls should use matrix instructions.
#[must_use]
pub fn conv_gradients() -> Vec<Case> {
    let mut cases = Cases(Vec::new());
    for dtype in FLOATS {
        for order in Order::BOTH {
            for (c, k, input, window, stride) in [
                (64, 64, 56, 3, 1),
                (128, 128, 28, 3, 2),
                (256, 64, 56, 1, 1),
                (512, 512, 7, 3, 1),
            ] {
                let conv = Conv::new(2, c, k, input, window, window / 2, dtype, order).stride(stride);
                let name = format!("{c}to{k}_{window}x{window}_{input}_s{stride}_{}_{dtype}", order.name());
                cases.add(format!("dgrad_{name}"), conv.dgrad());
                cases.add(format!("wgrad_{name}"), conv.wgrad());
            }
        }
    }
    cases.0
}
