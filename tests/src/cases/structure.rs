//! Graphs of several nodes: chains, diamonds, several outputs.

use super::case::{Cases, Order};
use super::pointwise;
use super::reduction::reduce;
use rotini_graph::{
    BatchnormBackward, ConvGeometry, DataType, Graph, GraphBuilder, Matmul, PointwiseMode, ReductionMode, Scalar,
    TensorKind,
};

/// Builds a chain of `nodes` nodes; every fourth is stored with gaps, and every second also reads
/// an earlier one.
fn long_chain(nodes: usize) -> Graph {
    use PointwiseMode::{Add, GeluFwd, Max, Sub, SwishFwd, TanhFwd};
    let (dims, strides) = ([3, 5, 7, 4], [400, 60, 8, 2]);
    let mut b = GraphBuilder::new("long chain");
    let x = b.tensor("x", DataType::F32, &dims, &strides, TensorKind::Buffer);
    let mut made = vec![b.buffer("w", DataType::F32, &dims), x];
    for node in 0..nodes {
        let last = made[made.len() - 1];
        let earlier = made[node * 7919 % made.len()];
        let name = format!("y{node}");
        let y = if node % 4 == 3 || node + 1 == nodes {
            b.tensor(&name, DataType::F32, &dims, &strides, TensorKind::Buffer)
        } else {
            b.virtual_tensor(&name, DataType::F32, &dims)
        };
        if node % 2 == 0 {
            b.pointwise(DataType::F32, [TanhFwd, GeluFwd, SwishFwd][node / 2 % 3], &[last], y);
        } else {
            b.pointwise(DataType::F32, [Add, Max, Sub][node / 2 % 3], &[last, earlier], y);
        }
        made.push(y);
    }
    b.build()
}

/// Builds the sum of `count` tensors, more than a kernel may have arguments.
fn adds(count: usize) -> Graph {
    let mut b = GraphBuilder::new("adds");
    let mut sum = b.buffer("x", DataType::F32, &[4, 6]);
    for index in 1..count {
        let x = b.buffer("x", DataType::F32, &[4, 6]);
        let next = if index + 1 == count {
            b.buffer("y", DataType::F32, &[4, 6])
        } else {
            b.virtual_tensor("sum", DataType::F32, &[4, 6])
        };
        b.pointwise(DataType::F32, PointwiseMode::Add, &[sum, x], next);
        sum = next;
    }
    b.build()
}

/// Builds `count` stored results: each computed from the one before, or all from one tensor.
fn stored(count: usize, is_chain: bool) -> Graph {
    let mut b = GraphBuilder::new("stored");
    let first = b.buffer("x", DataType::F32, &[4, 6]);
    let mut last = first;
    for index in 0..count {
        let y = b.buffer(&format!("y{index}"), DataType::F32, &[4, 6]);
        let mode = [PointwiseMode::Neg, PointwiseMode::Abs, PointwiseMode::SigmoidFwd][index % 3];
        b.pointwise(DataType::F32, mode, &[if is_chain { last } else { first }], y);
        last = y;
    }
    b.build()
}

/// Builds a product and a chain of `steps` steps, whose results are each stored or only summed:
/// more than one kernel can store.
fn product_of_many(steps: usize, is_summed: bool) -> Graph {
    use PointwiseMode::{Abs, Neg, SigmoidFwd};
    let mut b = GraphBuilder::new("product of many");
    let [left, right] = ["a", "b"].map(|name| b.buffer(name, DataType::F16, &[64, 64]));
    let mut last = b.virtual_tensor("product", DataType::F32, &[64, 64]);
    let op = Matmul {
        a: left,
        b: right,
        c: last,
    };
    b.node("matmul", DataType::F32, op);
    let mut made = Vec::new();
    for step in 0..steps {
        let next = match is_summed {
            true => b.virtual_tensor(&format!("t{step}"), DataType::F32, &[64, 64]),
            false => b.buffer(&format!("t{step}"), DataType::F32, &[64, 64]),
        };
        b.pointwise(DataType::F32, [Neg, SigmoidFwd, Abs][step % 3], &[last], next);
        made.push(next);
        last = next;
    }
    for made in made.into_iter().filter(|_| is_summed) {
        let sum = b.buffer("sum", DataType::F32, &[1, 64]);
        reduce(&mut b, DataType::F32, ReductionMode::Add, made, sum);
    }
    b.build()
}

/// Adds results that are not requested.
fn unread(cases: &mut Cases) {
    let (dims, channel) = ([2, 5, 6, 8], [1, 5, 1, 1]);
    let mut b = GraphBuilder::new("dx alone");
    let [dy, x, dx] = ["dy", "x", "dx"].map(|name| b.buffer(name, DataType::F32, &dims));
    let [mean, inv_variance, scale] =
        ["mean", "inv_variance", "scale"].map(|name| b.buffer(name, DataType::F32, &channel));
    let [dscale, dbias] = ["dscale", "dbias"].map(|name| b.virtual_tensor(name, DataType::F32, &channel));
    let op = BatchnormBackward {
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        ..BatchnormBackward::new([dy, x, scale], [dx, dscale, dbias])
    };
    b.node("norm", DataType::F32, op);
    cases.add("batchnorm_backward_of_dx_alone", b.build());
    let mut b = GraphBuilder::new("a product that nobody reads");
    let [left, right] = ["a", "b"].map(|name| b.buffer(name, DataType::F16, &[64, 64]));
    let [product, sum] = ["product", "sum"].map(|name| b.virtual_tensor(name, DataType::F32, &[64, 64]));
    let y = b.buffer("y", DataType::F16, &[64, 64]);
    let op = Matmul {
        a: left,
        b: right,
        c: product,
    };
    b.node("matmul", DataType::F32, op);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[product, left], sum);
    b.pointwise(DataType::F32, PointwiseMode::Add, &[left, right], y);
    cases.add("product_that_nobody_reads", b.build());
    let mut b = GraphBuilder::new("a sum that nobody reads");
    let x = b.buffer("x", DataType::F32, &[9, 130]);
    let sum = b.virtual_tensor("sum", DataType::F32, &[9, 1]);
    let y = b.buffer("y", DataType::F32, &[9, 130]);
    reduce(&mut b, DataType::F32, ReductionMode::Add, x, sum);
    b.pointwise(DataType::F32, PointwiseMode::Abs, &[x], y);
    cases.add("sum_that_nobody_reads", b.build());
}

pub(super) fn several_nodes(cases: &mut Cases) {
    cases.add("product_of_15_sums", product_of_many(15, true));
    cases.add("product_of_15_stored", product_of_many(15, false));
    unread(cases);
    cases.add("chain_of_89_with_gaps", long_chain(89));
    cases.add("adds_of_300", adds(300));
    cases.add("stored_sums_of_60", stored(60, true));
    cases.add("outputs_of_60", stored(60, false));
    use PointwiseMode::{Add, GeluFwd, Mul, ReluFwd, SigmoidFwd, Sub, TanhFwd};
    for dtype in [DataType::F32, DataType::F16] {
        // y = relu(x) + tanh(x) * sigmoid(x), with the tanh stored too.
        let mut b = GraphBuilder::new("diamond");
        let dims = [2, 6, 5, 4];
        let x = b.buffer("x", dtype, &dims);
        let relu = b.virtual_tensor("relu", DataType::F32, &dims);
        let tanh = b.buffer("tanh", dtype, &dims);
        let sigmoid = b.virtual_tensor("sigmoid", DataType::F32, &dims);
        let product = b.virtual_tensor("product", DataType::F32, &dims);
        let y = b.buffer("y", dtype, &dims);
        b.pointwise(DataType::F32, ReluFwd, &[x], relu);
        b.pointwise(DataType::F32, TanhFwd, &[x], tanh);
        b.pointwise(DataType::F32, SigmoidFwd, &[x], sigmoid);
        b.pointwise(DataType::F32, Mul, &[tanh, sigmoid], product);
        b.pointwise(DataType::F32, Add, &[relu, product], y);
        cases.add(format!("diamond_{dtype}"), b.build());
    }
    for order in Order::BOTH {
        // The convolution's result and its activation, both stored; nodes in reverse order.
        let mut b = GraphBuilder::new("conv two outputs");
        let x = order.buffer(&mut b, "x", DataType::F16, &[1, 8, 6, 6]);
        let w = order.buffer(&mut b, "w", DataType::F16, &[8, 8, 3, 3]);
        let y = order.buffer(&mut b, "y", DataType::F16, &[1, 8, 6, 6]);
        let z = order.buffer(&mut b, "z", DataType::F16, &[1, 8, 6, 6]);
        b.pointwise(DataType::F32, GeluFwd, &[y], z);
        b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("conv_two_outputs_{}", order.name()), b.build());
        // Two convolutions in a row, with an activation between.
        let mut b = GraphBuilder::new("two convs");
        let x = order.buffer(&mut b, "x", DataType::F32, &[1, 4, 7, 7]);
        let w1 = order.buffer(&mut b, "w1", DataType::F32, &[6, 4, 3, 3]);
        let w2 = order.buffer(&mut b, "w2", DataType::F32, &[5, 6, 1, 1]);
        let a = b.virtual_tensor("a", DataType::F32, &[1, 6, 7, 7]);
        let r = b.virtual_tensor("r", DataType::F32, &[1, 6, 7, 7]);
        let y = order.buffer(&mut b, "y", DataType::F32, &[1, 5, 7, 7]);
        b.conv_fprop(DataType::F32, x, w1, a, ConvGeometry::same(2, 1));
        b.pointwise(DataType::F32, ReluFwd, &[a], r);
        b.conv_fprop(DataType::F32, r, w2, y, ConvGeometry::same(2, 0));
        cases.add(format!("two_convs_{}", order.name()), b.build());
        // An activation in front of the convolution.
        let mut b = GraphBuilder::new("prologue");
        let x = order.buffer(&mut b, "x", DataType::F16, &[1, 8, 6, 6]);
        let scale = b.buffer("scale", DataType::F16, &[1, 8, 1, 1]);
        let w = order.buffer(&mut b, "w", DataType::F16, &[8, 8, 3, 3]);
        let s = b.virtual_tensor("s", DataType::F32, &[1, 8, 6, 6]);
        let y = order.buffer(&mut b, "y", DataType::F16, &[1, 8, 6, 6]);
        b.pointwise(DataType::F32, Mul, &[x, scale], s);
        b.conv_fprop(DataType::F32, s, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("scale_conv_{}", order.name()), b.build());
    }
    // A quantised chain: i8 convolution, scaled in f32, stored as i8.
    let mut b = GraphBuilder::new("quantised");
    let x = b.buffer("x", DataType::I8, &[1, 8, 5, 5]);
    let w = b.buffer("w", DataType::I8, &[6, 8, 3, 3]);
    let sum = b.virtual_tensor("sum", DataType::I32, &[1, 6, 5, 5]);
    let scale = b.constant("scale", DataType::F32, &[1, 1, 1, 1], Scalar::float(0.125));
    let y = b.buffer("y", DataType::I8, &[1, 6, 5, 5]);
    b.conv_fprop(DataType::I32, x, w, sum, ConvGeometry::same(2, 1));
    b.pointwise(DataType::F32, Mul, &[sum, scale], y);
    cases.add("quantised_chain", b.build());
    // One input, two outputs in different layouts.
    let mut b = GraphBuilder::new("two layouts");
    let x = b.buffer("x", DataType::F32, &[2, 3, 4, 5]);
    let first = b.buffer("first", DataType::F32, &[2, 3, 4, 5]);
    let last = b.buffer_channels_last("last", DataType::F32, &[2, 3, 4, 5]);
    let t = b.virtual_tensor("t", DataType::F32, &[2, 3, 4, 5]);
    b.pointwise(DataType::F32, TanhFwd, &[x], t);
    b.pointwise(DataType::F32, Sub, &[t, x], first);
    b.pointwise(DataType::F32, Add, &[t, x], last);
    cases.add("two_layouts", b.build());
    // A scalar graph.
    let mut b = GraphBuilder::new("scalar");
    let x = b.buffer("x", DataType::F32, &[1, 1, 1, 1]);
    let y = b.buffer("y", DataType::F32, &[1, 1, 1, 1]);
    b.pointwise(DataType::F32, Add, &[x, x], y);
    cases.add("scalar", b.build());
}

/// Adds graphs that promise a buffer alignment, or that allow other shapes at execution without
/// using them.
pub(super) fn declared_otherwise(cases: &mut Cases) {
    for alignment in [32, 64, 4096] {
        let mut graph = pointwise::packed(
            PointwiseMode::Add,
            &[DataType::F32],
            DataType::F32,
            DataType::F32,
            &[5, 7],
        );
        for tensor in &mut graph.tensors {
            tensor.alignment = alignment;
        }
        cases.add(format!("aligned_to_{alignment}"), graph);
    }
    for name in ["two_convs_nchw", "diamond_f16"] {
        let plain = cases.0.iter().find(|case| case.name == name);
        let Some(mut graph) = plain.map(|case| case.graph.clone()) else {
            continue;
        };
        graph.override_shapes = true;
        cases.add(format!("{name}_overridable"), graph);
    }
}
