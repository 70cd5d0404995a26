//! Snapshots of the modules of operations that are made of steps: gradients of convolutions,
//! matmuls, reductions, normalizations. `snapshots.rs` has convolutions, pointwise operations and
//! layouts.

use crate::lowered::lowered;
use rotini_graph::{
    Batchnorm, BatchnormBackward, ConvDgrad, ConvGeometry, ConvWgrad, DataType, GraphBuilder, Layernorm, Matmul,
    NormPhase, PointwiseMode, Reduction, ReductionMode, RmsNormBackward, Scalar, TensorKind,
};

const F32: DataType = DataType::F32;
const F16: DataType = DataType::F16;

/// Stride 2, where the windows of dx's elements differ.
#[test]
fn gradients_of_convolutions() {
    let mut geometry = ConvGeometry::same(2, 1);
    geometry.stride = vec![2, 2];
    // One processor: what "cpu" is lowered to depends on the machine of the test.
    for (name, target) in [("cpu", "x86-64-v4"), ("gfx942", "gfx942")] {
        let mut b = GraphBuilder::new("dgrad");
        let dy = b.buffer_channels_last("dy", F16, &[2, 16, 3, 3]);
        let w = b.buffer_channels_last("w", F16, &[16, 8, 3, 3]);
        let dx = b.buffer_channels_last("dx", F16, &[2, 8, 6, 6]);
        let geometry = geometry.clone();
        let dgrad = ConvDgrad {
            dy,
            w,
            dx,
            geometry: geometry.clone(),
        };
        b.node("dgrad", F32, dgrad);
        insta::assert_snapshot!(format!("dgrad_{name}"), lowered(b.build(), target));
        let mut b = GraphBuilder::new("wgrad");
        let x = b.buffer_channels_last("x", F16, &[2, 8, 6, 6]);
        let dy = b.buffer_channels_last("dy", F16, &[2, 16, 3, 3]);
        let dw = b.buffer_channels_last("dw", F16, &[16, 8, 3, 3]);
        b.node("wgrad", F32, ConvWgrad { x, dy, dw, geometry });
        insta::assert_snapshot!(format!("wgrad_{name}"), lowered(b.build(), target));
    }
}

/// b lies column by column, and one of its matrices serves two of a.
#[test]
fn matmul() {
    let mut builder = GraphBuilder::new("matmul");
    let a = builder.buffer("a", F16, &[4, 5, 6]);
    let b = builder.tensor("b", F16, &[2, 6, 3], &[18, 1, 6], TensorKind::Buffer);
    let c = builder.buffer("c", F16, &[4, 5, 3]);
    builder.node("matmul", F32, Matmul { a, b, c });
    insta::assert_snapshot!("matmul", lowered(builder.build(), "gfx942"));
}

#[test]
fn reductions() {
    for (name, mode) in [
        ("avg", ReductionMode::Avg),
        ("amax", ReductionMode::Amax),
        ("norm2", ReductionMode::Norm2),
    ] {
        let mut b = GraphBuilder::new("reduction");
        let input = b.buffer("input", F16, &[3, 4, 5]);
        let output = b.buffer("output", F16, &[3, 1, 5]);
        b.node("reduction", F32, Reduction::new(mode, input, output));
        insta::assert_snapshot!(format!("reduction_{name}"), lowered(b.build(), "cpu"));
    }
}

#[test]
fn layernorm_with_statistics() {
    let mut b = GraphBuilder::new("layernorm");
    let [x, y] = ["x", "y"].map(|name| b.buffer(name, F16, &[3, 8]));
    let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, F32, &[1, 8]));
    let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| b.buffer(name, F32, &[3, 1]));
    let epsilon = b.constant("epsilon", F32, &[1], Scalar::float(1e-5));
    let layernorm = Layernorm {
        x,
        scale,
        bias,
        epsilon,
        y,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        normalized_dim_count: 1,
        phase: NormPhase::Training,
    };
    b.node("layernorm", F32, layernorm);
    insta::assert_snapshot!("layernorm", lowered(b.build(), "gfx942"));
}

#[test]
fn batchnorm_training_and_its_gradients() {
    let mut b = GraphBuilder::new("batchnorm");
    let [x, y] = ["x", "y"].map(|name| b.buffer_channels_last(name, F16, &[2, 3, 4, 4]));
    let names = [
        "scale",
        "bias",
        "mean",
        "inverse",
        "old mean",
        "old variance",
        "new mean",
        "new variance",
    ];
    let [
        scale,
        bias,
        mean,
        inverse,
        old_mean,
        old_variance,
        new_mean,
        new_variance,
    ] = names.map(|name| b.buffer(name, F32, &[1, 3, 1, 1]));
    let epsilon = b.constant("epsilon", F32, &[1], Scalar::float(1e-5));
    let momentum = b.constant("momentum", F32, &[1], Scalar::float(0.1));
    let batchnorm = Batchnorm {
        x,
        scale,
        bias,
        epsilon,
        peer_stats: Vec::new(),
        prev_running_mean: Some(old_mean),
        prev_running_variance: Some(old_variance),
        momentum: Some(momentum),
        y,
        mean: Some(mean),
        inv_variance: Some(inverse),
        next_running_mean: Some(new_mean),
        next_running_variance: Some(new_variance),
    };
    b.node("batchnorm", F32, batchnorm);
    insta::assert_snapshot!("batchnorm", lowered(b.build(), "gfx942"));

    let mut b = GraphBuilder::new("batchnorm backward");
    let [dy, x, dx] = ["dy", "x", "dx"].map(|name| b.buffer_channels_last(name, F16, &[2, 3, 4, 4]));
    let [mean, inverse, scale, dscale, dbias] =
        ["mean", "inverse", "scale", "dscale", "dbias"].map(|name| b.buffer(name, F32, &[1, 3, 1, 1]));
    let backward = BatchnormBackward {
        mean: Some(mean),
        inv_variance: Some(inverse),
        ..BatchnormBackward::new([dy, x, scale], [dx, dscale, dbias])
    };
    b.node("backward", F32, backward);
    insta::assert_snapshot!("batchnorm_backward", lowered(b.build(), "gfx942"));
}

#[test]
fn rms_norm_gradients() {
    let mut b = GraphBuilder::new("rms norm backward");
    let [dy, x, dx] = ["dy", "x", "dx"].map(|name| b.buffer(name, F16, &[3, 8]));
    let [scale, dscale] = ["scale", "dscale"].map(|name| b.buffer(name, F32, &[1, 8]));
    let inv_rms = b.buffer("inv_rms", F32, &[3, 1]);
    let backward = RmsNormBackward {
        dy,
        x,
        scale,
        inv_rms,
        dx,
        dscale,
        dbias: None,
    };
    b.node("backward", F32, backward);
    insta::assert_snapshot!("rms_norm_backward", lowered(b.build(), "gfx942"));
}

/// A chain that stores every fourth tensor with gaps, and reads one of those before it again and
/// again: no node is written out twice.
#[test]
fn what_is_emitted_grows_with_the_nodes() {
    let size = |nodes: usize| {
        let (dims, strides) = ([3, 5, 7, 4], [400, 60, 8, 2]);
        let mut b = GraphBuilder::new("chain");
        let mut made = vec![b.tensor("x", F32, &dims, &strides, TensorKind::Buffer)];
        for node in 0..nodes {
            let name = format!("y{node}");
            let (last, earlier) = (made[made.len() - 1], made[node * 7919 % made.len()]);
            let y = if node % 4 == 3 || node + 1 == nodes {
                b.tensor(&name, F32, &dims, &strides, TensorKind::Buffer)
            } else {
                b.virtual_tensor(&name, F32, &dims)
            };
            b.pointwise(F32, PointwiseMode::Add, &[last, earlier], y);
            made.push(y);
        }
        lowered(b.build(), "cpu").len()
    };
    let [one, two, four] = [44, 88, 176].map(size);
    assert!(
        two * 10 < one * 21 && four * 10 < two * 21,
        "{one}, {two}, {four} bytes"
    );
}
