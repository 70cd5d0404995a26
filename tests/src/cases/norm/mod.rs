//! Batch, layer and RMS normalization, forward and backward.

pub(super) mod graph;
mod products;
pub(super) mod read;

use crate::cases::case::{Cases, FLOATS, Order};
use crate::rows::Rows;
use graph::Norm;
use rotini_graph::{DataType, Graph, GraphBuilder, LayernormBackward, NormPhase, PointwiseMode};

const F32: DataType = DataType::F32;

/// Extents by name; the first is run in every type.
const CHANNELS: [(&str, &[i64]); 9] = [
    ("4d", &[2, 6, 5, 4]),
    ("2d", &[9, 7]),
    ("3d", &[3, 5, 11]),
    ("5d", &[2, 3, 2, 3, 4]),
    ("one_channel", &[4, 1, 3, 3]),
    ("one_image", &[1, 8, 7, 5]),
    ("one_pixel", &[6, 16, 1, 1]),
    ("wide", &[2, 32, 16, 16]),
    ("of_subgroups", &[32, 5, 4, 7]),
];

pub(super) fn batchnorm(cases: &mut Cases) {
    for order in Order::BOTH {
        let name = order.name();
        for (index, (extents, dims)) in CHANNELS.into_iter().enumerate() {
            let types = if index == 0 { &FLOATS[..] } else { &FLOATS[..1] };
            for &dtype in types {
                let norm = Norm::new(dims, dtype, order);
                let suffix = format!("{extents}_{name}_{dtype}");
                cases.add(format!("bn_inference_{suffix}"), norm.batchnorm_inference(false, None));
                cases.add(format!("bn_variance_{suffix}"), norm.batchnorm_inference(true, None));
                cases.add(format!("bn_training_{suffix}"), norm.batchnorm_training(true, true));
                cases.add(format!("bn_backward_{suffix}"), norm.batchnorm_backward(true));
            }
        }
        let norm = Norm::new(&[2, 6, 5, 4], F32, order);
        cases.add(
            format!("bn_training_plain_{name}"),
            norm.batchnorm_training(false, false),
        );
        cases.add(
            format!("bn_training_saved_{name}"),
            norm.batchnorm_training(true, false),
        );
        cases.add(
            format!("bn_training_running_{name}"),
            norm.batchnorm_training(false, true),
        );
        cases.add(format!("bn_backward_recomputed_{name}"), norm.batchnorm_backward(false));
        for dtype in FLOATS {
            let norm = Norm::new(&[2, 8, 6, 6], dtype, order);
            let relu = norm.batchnorm_inference(false, Some(PointwiseMode::ReluFwd));
            cases.add(format!("bn_inference_relu_{name}_{dtype}"), relu);
            let swish = norm.batchnorm_inference(true, Some(PointwiseMode::SwishFwd));
            cases.add(format!("bn_variance_swish_{name}_{dtype}"), swish);
        }
        let mut double = Norm::new(&[3, 4, 5, 2], DataType::F64, order);
        double.compute = DataType::F64;
        cases.add(
            format!("bn_inference_{name}_f64"),
            double.batchnorm_inference(false, None),
        );
        cases.add(format!("bn_training_{name}_f64"), double.batchnorm_training(true, true));
        cases.add(format!("bn_backward_{name}_f64"), double.batchnorm_backward(true));
    }
    // One element has a variance of 0.
    let single = Norm::new(&[1, 5, 1, 1], F32, Order::First);
    cases.add("bn_training_one_element", single.batchnorm_training(true, true));
}

/// Extents by name, and the number of trailing dims that are normalized; the first is run in every
/// type.
const ROWS: [(&str, &[i64], usize); 10] = [
    ("2d", &[6, 32], 1),
    ("odd", &[5, 37], 1),
    ("3d", &[2, 7, 24], 1),
    ("3d_last_2", &[3, 5, 9], 2),
    ("4d_last_1", &[2, 3, 4, 20], 1),
    ("4d_last_2", &[2, 3, 6, 5], 2),
    ("4d_last_3", &[3, 4, 5, 2], 3),
    ("one_row", &[1, 65], 1),
    ("one_column", &[4, 6, 1], 1),
    ("wide", &[3, 1024], 1),
];

pub(super) fn layernorm(cases: &mut Cases) {
    products::biases(cases);
    for (index, (extents, dims, count)) in ROWS.into_iter().enumerate() {
        let types = if index == 0 { &FLOATS[..] } else { &FLOATS[..1] };
        for &dtype in types {
            let norm = Norm::new(dims, dtype, Order::First);
            let suffix = format!("{extents}_{dtype}");
            for (phase, name) in [(NormPhase::Inference, "inference"), (NormPhase::Training, "training")] {
                let graph = norm.layernorm(count, phase, true);
                cases.add(format!("layernorm_{name}_{suffix}"), graph);
                cases.add(format!("rmsnorm_{name}_{suffix}"), norm.rms_norm(count, phase, false));
            }
            cases.add(
                format!("rmsnorm_bias_{suffix}"),
                norm.rms_norm(count, NormPhase::Training, true),
            );
            cases.add(
                format!("layernorm_backward_{suffix}"),
                norm.layernorm_backward(count, true),
            );
            cases.add(
                format!("rmsnorm_backward_{suffix}"),
                norm.rms_norm_backward(count, true),
            );
        }
    }
    for dtype in FLOATS {
        let norm = Norm::new(&[2, 6, 48], dtype, Order::First);
        cases.add(format!("layernorm_residual_{dtype}"), norm.residual_layernorm(1));
    }
    let norm = Norm::new(&[4, 3, 10], F32, Order::First);
    cases.add("layernorm_short_scale", norm.layernorm(2, NormPhase::Training, false));
    cases.add("layernorm_everything", norm.layernorm(3, NormPhase::Training, true));
    cases.add("layernorm_backward_recomputed", norm.layernorm_backward(1, false));
    cases.add("layernorm_backward_everything", norm.layernorm_backward(3, true));
    cases.add("rmsnorm_backward_without_bias", norm.rms_norm_backward(1, false));
    let last = Norm::new(&[2, 6, 5, 4], F32, Order::Last);
    cases.add("layernorm_nhwc", last.layernorm(3, NormPhase::Training, true));
    cases.add("layernorm_nhwc_last_1", last.layernorm(1, NormPhase::Training, true));
    cases.add("layernorm_backward_nhwc", last.layernorm_backward(3, true));
    cases.add("rmsnorm_nhwc", last.rms_norm(3, NormPhase::Training, true));
    cases.add("rmsnorm_backward_nhwc", last.rms_norm_backward(3, true));
    // The reduced elements fill whole subgroups, but no reduced axis does, and parameters are
    // row-major: GPUs would omit parts of the sums.
    for order in Order::BOTH {
        for dims in [[2, 28, 4, 4], [5, 6, 4, 8]] {
            let norm = Norm::new(&dims, F32, order);
            let suffix = format!("{}_of_{}_subgroups", order.name(), dims[1]);
            cases.add(
                format!("layernorm_{suffix}"),
                norm.layernorm(3, NormPhase::Training, true),
            );
            cases.add(format!("layernorm_backward_{suffix}"), norm.layernorm_backward(3, true));
            cases.add(format!("rmsnorm_{suffix}"), norm.rms_norm(3, NormPhase::Training, true));
            cases.add(format!("rmsnorm_backward_{suffix}"), norm.rms_norm_backward(3, true));
        }
    }
    // IREE 3.13 for gfx942 rejects its own code for these sums with aggressive fusion.
    let mut b = GraphBuilder::new("layernorm backward of a converted tensor");
    let x = b.buffer("x", DataType::F64, &[6, 1, 3]);
    let scale = b.buffer("scale", DataType::F64, &[1, 1, 3]);
    let dy = b.virtual_tensor("dy", F32, &[6, 1, 3]);
    let dx = b.buffer("dx", F32, &[6, 1, 3]);
    let [dscale, dbias] = ["dscale", "dbias"].map(|name| b.buffer(name, F32, &[1, 1, 3]));
    b.pointwise(F32, PointwiseMode::Identity, &[x], dy);
    let op = LayernormBackward::new([dy, x, scale], [dx, dscale, dbias], 1);
    b.node("norm", F32, op);
    cases.add("layernorm_backward_of_narrowed_f64", b.build());
    let mut double = Norm::new(&[4, 30], DataType::F64, Order::First);
    double.compute = DataType::F64;
    cases.add("layernorm_f64", double.layernorm(1, NormPhase::Training, true));
    cases.add("layernorm_backward_f64", double.layernorm_backward(1, true));
    cases.add("rmsnorm_f64", double.rms_norm(1, NormPhase::Training, true));
    cases.add("rmsnorm_backward_f64", double.rms_norm_backward(1, true));
    // Long enough to be spread over lanes, which must be adjacent for 64-bit sums.
    let mut rows = Norm::new(&[4, 300], DataType::F64, Order::First);
    rows.compute = DataType::F64;
    cases.add("layernorm_rows_f64", rows.layernorm(1, NormPhase::Training, true));
    cases.add("layernorm_backward_rows_f64", rows.layernorm_backward(1, true));
    for (name, order) in [("nchw", Order::First), ("nhwc", Order::Last)] {
        let mut channels = Norm::new(&[6, 8, 7, 5], DataType::F64, order);
        channels.compute = DataType::F64;
        cases.add(
            format!("bn_training_channels_{name}_f64"),
            channels.batchnorm_training(true, true),
        );
        cases.add(
            format!("bn_backward_channels_{name}_f64"),
            channels.batchnorm_backward(true),
        );
    }
}

/// Rows that frameworks send: lengths that are no multiples of a subgroup, several dependent sums.
/// The last ones are spread over lanes in each way that row kernels support: several rows per
/// subgroup, several subgroups per row, rows that are not kept in registers.
const EVERYDAY: [&str; 56] = [
    "layernorm-training_4x300_f16",
    "layernorm-training_4x257_f16",
    "layernorm-training_4x1000_f16",
    "layernorm-training_8x300_bf16",
    "layernorm-training_16x1000_f16",
    "layernorm-training_32x1000_f32",
    "layernorm-training_1x300_f16",
    "layernorm-training_4x100_f16",
    "layernorm_4x257_f32",
    "layernorm_2x5x257_f32",
    "layernorm_16x1000_bf16",
    "layernorm-backward_4x300_f16",
    "layernorm-backward_8x3x127_f32",
    "layernorm-backward-found_4x1000_bf16",
    "rmsnorm_4x257_bf16",
    "rmsnorm-training_8x1000_f16",
    "rmsnorm-backward_4x300_f32",
    "softmax_4x257_f16",
    "softmax_3x1000_f32",
    "spread_4x200_f32",
    "batchnorm-last_16x17x17x5_f32",
    "batchnorm_16x17x17x5_f16",
    "batchnorm-backward-last_16x17x17x5_bf16",
    "batchnorm-backward_16x17x17x5_f32",
    "rmsnorm_7x2_f32",
    "layernorm_301x7_f16",
    "layernorm-training_35x333_f16",
    "layernorm-training_9x1023_bf16",
    "layernorm-backward_9x129_bf16",
    "layernorm_65x3_f16",
    "layernorm_7x1026_bf16",
    "rmsnorm_33x129_f16",
    "rmsnorm-training_3x50257_f16",
    "rmsnorm_5x1025_f32",
    "softmax_33x129_bf16",
    "softmax_7x130_f16",
    "softmax_1x50257_f16",
    "softmax_3x50257_bf16",
    "softmax_9x1025_f32",
    "spread_5x201_f16",
    "softmax_100x64_f16",
    "softmax_9x129_bf16",
    "layernorm-training_70x333_f16",
    "layernorm_2x8192_f16",
    "layernorm-training_5x12289_f32",
    "softmax_3x50257_f16",
    "layernorm-backward_2x50257_bf16",
    "layernorm-backward_2x65536_f16",
    "rmsnorm-backward_2x65535_f16",
    "layernorm-backward-found_2x40000_f32",
    "layernorm-training_3x41000_f16",
    "rmsnorm-training_2x65539_bf16",
    "softmax_1x128256_f32",
    "spread_2x131075_f32",
    "batchnorm_11x2x62x61_f16",
    "batchnorm-backward_10x2x64x65_f32",
];

pub(super) fn everyday(cases: &mut Cases) {
    for rows in EVERYDAY.iter().flat_map(|name| name.parse::<Rows>()) {
        cases.add(format!("rows_{}", rows.name()), rows.graph());
    }
}

#[test]
fn everyday_rows_have_names() {
    let mut cases = Cases(Vec::new());
    everyday(&mut cases);
    assert_eq!(cases.0.len(), EVERYDAY.len());
}

/// Enough elements that GPUs use rotini's kernels: several rows per lane, with and without a
/// remainder; odd channels, whose runs are not contiguous; rows with parameters of their own;
/// several subgroups per row.
const MANY: [(&[i64], DataType, Order); 5] = [
    (&[8, 64, 56, 56], DataType::F16, Order::Last),
    (&[3, 64, 115, 113], DataType::Bf16, Order::Last),
    (&[4, 257, 19, 23], DataType::F16, Order::Last),
    (&[8, 16, 57, 57], F32, Order::First),
    (&[2, 512, 17, 17], F32, Order::Last),
];

pub(super) fn many(cases: &mut Cases) {
    for (dims, dtype, order) in MANY {
        let graph = Norm::new(dims, dtype, order).batchnorm_inference(false, Some(PointwiseMode::ReluFwd));
        let extents: Vec<String> = dims.iter().map(i64::to_string).collect();
        cases.add(format!("bn_many_{}_{}_{dtype}", extents.join("x"), order.name()), graph);
    }
    // Two tensors are stored; the operands have all elements, one row, and a single element per
    // row.
    let mut b = GraphBuilder::new("many");
    let dims = [1, 3001, 96];
    let [x, residual] = ["x", "residual"].map(|name| b.buffer(name, DataType::F16, &dims));
    let bias = b.buffer("bias", DataType::F16, &[1, 1, 96]);
    let factor = b.buffer("factor", F32, &[1, 3001, 1]);
    let moved = b.virtual_tensor("moved", F32, &dims);
    let [sum, y] = ["sum", "y"].map(|name| b.buffer(name, DataType::F16, &dims));
    b.pointwise(F32, PointwiseMode::Add, &[x, bias], moved);
    b.pointwise(F32, PointwiseMode::Add, &[moved, residual], sum);
    b.pointwise(F32, PointwiseMode::Mul, &[sum, factor], y);
    cases.add("pw_many_of_rows".to_owned(), b.build());
}

/// Adds parameters with the shortest allowed dims: [C] per channel, and the last axes of x without
/// leading 1s.
pub(super) fn short_parameters(cases: &mut Cases) {
    let shortened = |mut graph: Graph, is_per_channel: bool| {
        for tensor in &mut graph.tensors {
            if tensor.dims.first() != Some(&1) || tensor.dims.iter().all(|&dim| dim == 1) {
                continue;
            }
            let ones = tensor.dims.iter().take_while(|&&dim| dim == 1).count();
            tensor.dims.drain(..ones);
            if is_per_channel {
                tensor.dims.truncate(1);
            }
            let rank = tensor.dims.len();
            tensor.strides = (0..rank).map(|axis| tensor.dims[axis + 1..].iter().product()).collect();
        }
        graph
    };
    for order in Order::BOTH {
        let name = order.name();
        let norm = Norm::new(&[2, 6, 5, 4], F32, order);
        for (kind, graph) in [
            ("inference", norm.batchnorm_inference(false, None)),
            ("variance", norm.batchnorm_inference(true, None)),
            ("training", norm.batchnorm_training(true, true)),
            ("backward", norm.batchnorm_backward(true)),
        ] {
            cases.add(format!("bn_short_{kind}_{name}"), shortened(graph, true));
        }
    }
    for (dims, axes) in [(&[4, 3, 65][..], 1), (&[4, 3, 10], 2), (&[5, 24], 1)] {
        let norm = Norm::new(dims, F32, Order::First);
        let rms_norm = norm.rms_norm(axes, NormPhase::Training, true);
        cases.add(
            format!("rmsnorm_short_{}d_{axes}", dims.len()),
            shortened(rms_norm, false),
        );
        let backward = norm.rms_norm_backward(axes, true);
        cases.add(
            format!("rmsnorm_short_backward_{}d_{axes}", dims.len()),
            shortened(backward, false),
        );
    }
}
