//! Minimised random graphs: each gave a wrong result once.

use super::attention::Attention;
use super::case::{Cases, Order};
use super::convolution::Conv;
use super::matmul::Product;
use super::reduction::reduce;
use rotini_graph::{
    BatchnormBackward, BlockScaleQuantize, ConvDgrad, ConvFprop, ConvGeometry, DataType, Graph, GraphBuilder,
    LayernormBackward, Matmul, Pointwise, PointwiseMode, ReductionMode, Scalar, TensorKind,
};

/// Adds minimised random graphs.
pub(super) fn found(cases: &mut Cases) {
    constant_results(cases);
    sums_of_constants(cases);
    unreached_inputs(cases);
    repeated_in_sums(cases);
    mixed_halves(cases);
    single_magnitude(cases);
    odd_convolutions(cases);
    negated_terms(cases);
    padded_rows(cases);
    stored_on_the_way(cases);
    beside_its_gelu(cases);
    selected_twice(cases);
}

/// Results that do not depend on the elements of an operand, whose memory order differs from
/// theirs.
fn constant_results(cases: &mut Cases) {
    let dims = [2, 6, 1, 5];
    for mode in [PointwiseMode::Sub, PointwiseMode::CmpLe, PointwiseMode::CmpNeq] {
        for compute in [DataType::I32, DataType::I64] {
            let mut b = GraphBuilder::new("an operand with itself");
            let x = b.buffer_channels_last("x", DataType::I32, &dims);
            let y = b.buffer("y", DataType::I32, &dims);
            b.pointwise(compute, mode, &[x, x], y);
            cases.add(
                format!("{}_with_itself_in_{compute}", mode.name().to_lowercase()),
                b.build(),
            );
        }
    }
    let mut b = GraphBuilder::new("times zero");
    let x = b.buffer_channels_last("x", DataType::I32, &dims);
    let zero = b.constant("zero", DataType::I32, &[1; 4], Scalar::Integer(0));
    let y = b.buffer("y", DataType::I32, &dims);
    b.pointwise(DataType::I32, PointwiseMode::Mul, &[x, zero], y);
    cases.add("times_zero", b.build());
    let mut b = GraphBuilder::new("and false");
    let x = b.buffer_channels_last("x", DataType::F32, &dims);
    let zero = b.constant("zero", DataType::F32, &[1; 4], Scalar::float(0.0));
    let y = b.buffer("y", DataType::F32, &dims);
    b.pointwise(DataType::F32, PointwiseMode::LogicalAnd, &[x, zero], y);
    cases.add("and_false", b.build());
    let mut b = GraphBuilder::new("a value is selected");
    let [yes, value] = [("yes", 1.0), ("value", 2.5)]
        .map(|(name, value)| b.constant(name, DataType::F32, &[1; 4], Scalar::float(value)));
    let x = b.buffer_channels_last("x", DataType::F32, &dims);
    let y = b.buffer("y", DataType::F32, &dims);
    b.pointwise(DataType::F32, PointwiseMode::BinarySelect, &[value, x, yes], y);
    cases.add("a_value_is_selected", b.build());
    let mut b = GraphBuilder::new("index along one");
    let x = b.buffer_channels_last("x", DataType::F32, &dims);
    let y = b.buffer("y", DataType::F32, &dims);
    let mut index = Pointwise::new(PointwiseMode::GenIndex, x, None, None, y);
    index.axis = Some(2);
    b.node("index", DataType::F32, index);
    cases.add("index_along_one", b.build());
}

/// Sums of elements that are equal after folding.
fn sums_of_constants(cases: &mut Cases) {
    let (dims, channel) = ([1, 3, 4, 1, 3], [1, 3, 1, 1, 1]);
    for (name, mode, dtype, constant) in [
        ("or_true", PointwiseMode::LogicalOr, DataType::F32, Scalar::float(0.5)),
        (
            "and_false",
            PointwiseMode::LogicalAnd,
            DataType::F32,
            Scalar::float(0.0),
        ),
        ("times_zero", PointwiseMode::Mul, DataType::I32, Scalar::Integer(0)),
    ] {
        let mut b = GraphBuilder::new("a sum of constants");
        let x = b.buffer("x", dtype, &dims);
        let constant = b.constant("constant", dtype, &[1; 5], constant);
        let same = b.virtual_tensor("same", dtype, &dims);
        let y = b.buffer("y", dtype, &channel);
        b.pointwise(dtype, mode, &[x, constant], same);
        reduce(&mut b, dtype, ReductionMode::Add, same, y);
        cases.add(format!("sum_of_{name}"), b.build());
    }
}

/// Windows that do not reach the end of their input, along axes where the output or the window has
/// an extent of 1.
fn unreached_inputs(cases: &mut Cases) {
    for order in Order::BOTH {
        for (name, channels, window) in [("conv", 4, 3), ("depthwise", 1, 3), ("wide", 4, 5)] {
            let mut b = GraphBuilder::new("one window");
            let x = order.buffer(&mut b, "x", DataType::F32, &[2, 4, 9, 9]);
            let w = order.buffer(&mut b, "w", DataType::F32, &[8, channels, window, window]);
            let y = order.buffer(&mut b, "y", DataType::F32, &[2, 8, 1, 1]);
            let geometry = ConvGeometry {
                stride: vec![7; 2],
                ..ConvGeometry::same(2, 0)
            };
            b.conv_fprop(DataType::F32, x, w, y, geometry);
            cases.add(format!("{name}_one_window_{}", order.name()), b.build());
        }
        let mut b = GraphBuilder::new("dgrad of padding");
        let dy = order.buffer(&mut b, "dy", DataType::F32, &[1, 3, 3, 3]);
        let w = order.buffer(&mut b, "w", DataType::F32, &[3, 6, 1, 1]);
        let dx = order.buffer(&mut b, "dx", DataType::F32, &[1, 6, 2, 1]);
        let geometry = ConvGeometry {
            post_padding: vec![1, 2],
            ..ConvGeometry::same(2, 0)
        };
        b.node("dgrad", DataType::F32, ConvDgrad { dy, w, dx, geometry });
        cases.add(format!("dgrad_of_padding_{}", order.name()), b.build());
    }
}

/// Padded convolutions with a loop of a single step; and dilated depthwise ones with several
/// filters per channel.
fn odd_convolutions(cases: &mut Cases) {
    // Rows are the outer axis, batches the inner.
    let mut b = GraphBuilder::new("two filters for each channel of columns");
    let x = b.tensor("x", DataType::F32, &[3, 4, 4, 7], &[16, 1, 4, 48], TensorKind::Buffer);
    let w = b.buffer_channels_last("w", DataType::F32, &[8, 1, 3, 2]);
    let y = b.buffer("y", DataType::F32, &[3, 8, 2, 2]);
    let geometry = ConvGeometry {
        pre_padding: vec![1, 0],
        post_padding: vec![2, 2],
        stride: vec![3, 4],
        dilation: vec![1, 2],
        ..ConvGeometry::same(2, 0)
    };
    b.node("conv", DataType::F32, ConvFprop { x, w, y, geometry });
    cases.add("conv_dilated_multiplier_of_columns", b.build());
    // Names, x's extents, windows, padding before and after, strides.
    type Odd = (&'static str, [i64; 2], [i64; 2], [i64; 2], [i64; 2], [i64; 2]);
    let odd: [Odd; 6] = [
        ("point", [4, 5], [1, 1], [1, 2], [0, 1], [1, 1]),
        ("point_of_a_row", [1, 3], [1, 1], [2, 1], [0, 0], [1, 1]),
        ("one_row", [1, 4], [2, 1], [1, 2], [0, 0], [4, 1]),
        ("one_pixel", [2, 5], [3, 3], [1, 0], [0, 0], [1, 4]),
        ("one_column", [5, 1], [1, 2], [1, 1], [1, 0], [1, 1]),
        ("row_of_a_column", [1, 3], [1, 3], [2, 1], [2, 1], [1, 4]),
    ];
    for order in Order::BOTH {
        for dtype in [DataType::F32, DataType::F16] {
            for (name, input, window, pre, post, stride) in odd {
                for groups in [1, 6] {
                    let mut conv = Conv::new(2, 6, 6, 1, 1, 0, dtype, order).groups(groups);
                    (conv.input, conv.window) = (input.to_vec(), window.to_vec());
                    conv.geometry.pre_padding = pre.to_vec();
                    conv.geometry.post_padding = post.to_vec();
                    conv.geometry.stride = stride.to_vec();
                    let name = format!("conv_padded_{name}_g{groups}_{}_{dtype}", order.name());
                    cases.add(name, conv.alone());
                }
            }
            for spatial in 2..=3 {
                let mut conv = Conv::new(2, 6, 12, 6, 2, 1, dtype, order).groups(6).dilation(2);
                (conv.input, conv.window) = (vec![6; spatial], vec![2; spatial]);
                conv.geometry = ConvGeometry {
                    dilation: vec![2; spatial],
                    ..ConvGeometry::same(spatial, 1)
                };
                let name = format!("conv_dilated_multiplier_{spatial}d_{}_{dtype}", order.name());
                cases.add(name, conv.alone());
            }
            for (name, filters) in [("two", 2), ("four", 4), ("eight", 8), ("nine", 9)] {
                for (groups, input) in [(4, 8), (8, 3), (16, 4), (32, 2)] {
                    let mut conv = Conv::new(2, 8 * groups, filters * groups, 8, 3, 1, dtype, order).groups(groups);
                    (conv.input, conv.window) = (vec![input; 2], vec![3; 2]);
                    let name = format!("conv_to_{name}_filters_g{groups}_{}_{dtype}", order.name());
                    cases.add(name, conv.alone());
                }
            }
        }
    }
}

/// Sums and means of negated elements.
fn negated_terms(cases: &mut Cases) {
    use DataType::{Bf16, F32, F64, I32};
    for (dtype, compute) in [(F32, F32), (Bf16, F32), (F64, F64), (I32, I32)] {
        let modes = [ReductionMode::Add, ReductionMode::Norm1, ReductionMode::Avg];
        // Means of integers are declined.
        for mode in modes
            .into_iter()
            .filter(|mode| dtype.is_float() || *mode != ReductionMode::Avg)
        {
            for (dims, sums) in [
                ([100, 64], [100, 1]),
                ([100, 64], [1, 64]),
                ([10, 5000], [10, 1]),
                ([10, 300], [1, 1]),
            ] {
                let mut b = GraphBuilder::new("a sum of -x");
                let x = b.buffer("x", dtype, &dims);
                let negated = b.virtual_tensor("negated", compute, &dims);
                let y = b.buffer("y", dtype, &sums);
                b.pointwise(compute, PointwiseMode::Neg, &[x], negated);
                reduce(&mut b, compute, mode, negated, y);
                let axes = if sums[0] == 1 {
                    if sums[1] == 1 { "_all" } else { "_rows" }
                } else {
                    ""
                };
                let what = format!("{mode:?}").to_lowercase();
                let [rows, columns] = dims;
                cases.add(format!("{what}_of_negated{axes}_{rows}x{columns}_{dtype}"), b.build());
            }
        }
    }
}

/// Padded convolutions along one axis, in types that matrix cores multiply and in others.
fn padded_rows(cases: &mut Cases) {
    use DataType::{Bf16, F16, F32, F64, I8, I32, U8};
    for (x_type, w_type, out, compute) in [
        (F32, F32, F32, F32),
        (F16, F16, F16, F32),
        (F64, F64, F64, F64),
        (F32, Bf16, Bf16, F32),
        (Bf16, F16, F32, F32),
        (I32, I32, I32, I32),
        (U8, U8, I32, I32),
        (I8, I8, I32, I32),
        (I8, U8, I32, I32),
        (I8, F16, F32, F32),
    ] {
        for (name, x, w, y, padding, stride) in [
            ("", [2, 8, 16], [8, 8, 3], 16, 1, 1),
            ("_strided", [8, 8, 2], [4, 8, 2], 2, 2, 3),
            ("_depthwise", [2, 6, 9], [6, 1, 4], 12, 3, 1),
        ] {
            let mut b = GraphBuilder::new("a padded row");
            let result = b.buffer("y", out, &[x[0], w[0], y]);
            let [x, w] = [("x", x_type, x), ("w", w_type, w)].map(|(name, dtype, dims)| b.buffer(name, dtype, &dims));
            let geometry = ConvGeometry {
                stride: vec![stride],
                ..ConvGeometry::same(1, padding)
            };
            b.conv_fprop(compute, x, w, result, geometry);
            cases.add(format!("conv_1d_padded{name}_{x_type}_by_{w_type}"), b.build());
        }
    }
    // One position along the second axis.
    for order in Order::BOTH {
        for window in [[3, 3, 1], [2, 3, 2], [1, 3, 1]] {
            let mut b = GraphBuilder::new("one position among others");
            let x = order.buffer(&mut b, "x", F16, &[2, 3, 6, 3, 4]);
            let w = order.buffer(&mut b, "w", F16, &[[8, 3].as_slice(), &window].concat());
            let positions = [7 - window[0], 1, 5 - window[2]];
            let y = order.buffer(&mut b, "y", F16, &[[2, 8].as_slice(), &positions].concat());
            b.conv_fprop(F32, x, w, y, ConvGeometry::same(3, 0));
            let name = window.map(|extent| extent.to_string()).join("x");
            cases.add(format!("conv_3d_one_position_{name}_{}", order.name()), b.build());
        }
    }
    // Code for this stored registers that were never written.
    let mut b = GraphBuilder::new("a padded volume");
    let x = b.buffer("x", I8, &[2, 6, 5, 4, 3]);
    let w = b.buffer("w", I8, &[4, 6, 3, 3, 3]);
    let y = b.buffer("y", I32, &[2, 4, 5, 4, 3]);
    b.conv_fprop(I32, x, w, y, ConvGeometry::same(3, 1));
    cases.add("conv_3d_padded_i8", b.build());
}

/// Sums of products with an operand that strides repeat along one of the summed axes.
fn repeated_in_sums(cases: &mut Cases) {
    let short = |channels| ([2, channels, 2, 4], [4 * channels, 4, 0, 1]);
    for (name, (dims, strides)) in [
        ("one_channel", short(1)),
        ("channels", short(3)),
        // The gradient of an average over whole planes.
        ("planes", ([2, 8, 8, 8], [8, 1, 0, 0])),
    ] {
        let mut b = GraphBuilder::new("batchnorm backward of a repeated gradient");
        let [_, channels, ..] = dims;
        let x = b.buffer("x", DataType::F32, &dims);
        let dy = b.tensor("dy", DataType::F32, &dims, &strides, TensorKind::Buffer);
        let [scale, dscale, dbias] =
            ["scale", "dscale", "dbias"].map(|name| b.buffer(name, DataType::F32, &[1, channels, 1, 1]));
        let dx = b.buffer("dx", DataType::F32, &dims);
        let op = BatchnormBackward::new([dy, x, scale], [dx, dscale, dbias]);
        b.node("norm", DataType::F32, op);
        cases.add(format!("bn_backward_repeated_{name}"), b.build());
    }
}

/// Sums of products of two float types, neither of which is the compute type.
fn mixed_halves(cases: &mut Cases) {
    use DataType::{Bf16, F8E4M3, F8E8M0, F16, F32, F64};
    for (first, second, compute) in [
        (F16, Bf16, F32),
        (Bf16, F8E4M3, F32),
        (F32, F16, F64),
        (F8E4M3, F8E8M0, F64),
    ] {
        let set = |mut graph: Graph, names: [&str; 2]| {
            for (name, dtype) in names.into_iter().zip([first, second]) {
                for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == name) {
                    tensor.dtype = dtype;
                }
            }
            for node in &mut graph.nodes {
                node.compute = compute;
            }
            graph
        };
        let conv = Conv::new(1, 6, 4, 6, 3, 1, F32, Order::Last);
        let attention = Attention::new(1, 2, [9, 6], 4, F32);
        for (name, graph, operands) in [
            ("matmul", Product::new(5, 9, 3, F32).alone(), ["a", "b"]),
            ("conv", conv.alone(), ["x", "w"]),
            ("dgrad", conv.dgrad(), ["dy", "w"]),
            ("wgrad", conv.wgrad(), ["x", "dy"]),
            ("sdpa", attention.forward(false), ["q", "k"]),
            ("sdpa_backward_qk", attention.backward(), ["q", "k"]),
            ("sdpa_backward_v", attention.backward(), ["do", "v"]),
        ] {
            cases.add(format!("{name}_{first}_by_{second}_in_{compute}"), set(graph, operands));
        }
    }
    let mut b = GraphBuilder::new("layernorm backward in f16 and bf16");
    let (dims, last) = ([5, 1, 3], [1, 1, 3]);
    let [dy, x] = ["dy", "x"].map(|name| b.buffer(name, DataType::F16, &dims));
    let scale = b.buffer("scale", DataType::Bf16, &last);
    let dx = b.buffer("dx", DataType::F16, &dims);
    let [dscale, dbias] = ["dscale", "dbias"].map(|name| b.buffer(name, DataType::F16, &last));
    let op = LayernormBackward::new([dy, x, scale], [dx, dscale, dbias], 1);
    b.node("norm", DataType::F32, op);
    cases.add("layernorm_backward_f16_by_bf16", b.build());
}

/// Sums that are stored beside tensors that are computed from them, alone or in a chain.
fn stored_on_the_way(cases: &mut Cases) {
    use DataType::{F8E4M3, F8E8M0, F32, F64};
    for (rows, inner, columns) in [(17, 33, 9), (3, 24, 6), (9, 9, 17), (2, 2, 4)] {
        let dims = [1, rows, columns];
        let product = |b: &mut GraphBuilder| {
            let x = b.buffer("a", F32, &[1, rows, inner]);
            let w = b.buffer("b", F32, &[1, inner, columns]);
            let y = b.buffer("y", F32, &dims);
            b.node("matmul", F32, Matmul { a: x, b: w, c: y });
            y
        };
        let mut b = GraphBuilder::new("matmul and a chain, all stored");
        let y = product(&mut b);
        let [z, w] = ["z", "w"].map(|name| b.buffer(name, F32, &dims));
        b.pointwise(F32, PointwiseMode::Abs, &[y], z);
        b.pointwise(F32, PointwiseMode::Neg, &[z], w);
        cases.add(format!("matmul_chain_stored_{rows}x{inner}x{columns}"), b.build());
        let mut b = GraphBuilder::new("matmul and a value computed from it in another order, both stored");
        let y = product(&mut b);
        let strides = [rows * columns, 1, rows];
        let turned = b.tensor("turned", F32, &dims, &strides, TensorKind::Buffer);
        b.pointwise(F32, PointwiseMode::Abs, &[y], turned);
        cases.add(format!("matmul_turned_stored_{rows}x{inner}x{columns}"), b.build());
        let mut b = GraphBuilder::new("matmul, widened, and a chain, all stored");
        let [x, w] =
            [("a", [1, rows, inner]), ("b", [1, inner, columns])].map(|(name, dims)| b.buffer(name, F32, &dims));
        let [y, z, sum] = [("y", F64), ("z", F32), ("sum", F32)].map(|(name, dtype)| b.buffer(name, dtype, &dims));
        let bias = b.buffer("bias", F32, &dims);
        b.node("matmul", F32, Matmul { a: x, b: w, c: y });
        b.pointwise(F32, PointwiseMode::ReluFwd, &[y], z);
        b.pointwise(F32, PointwiseMode::Add, &[bias, z], sum);
        cases.add(format!("matmul_widened_stored_{rows}x{inner}x{columns}"), b.build());
        // Axis 0 has extent 1, so each block has one element and its scale.
        let mut b = GraphBuilder::new("matmul and its blocks, all stored");
        let x = product(&mut b);
        let y = b.buffer("quantized", F8E4M3, &dims);
        let scale = b.buffer("scale", F8E8M0, &dims);
        let op = BlockScaleQuantize {
            x,
            y,
            scale,
            block_size: 2,
            axis: Some(0),
            transpose: false,
        };
        b.node("quantize", F32, op);
        cases.add(format!("matmul_blocks_stored_{rows}x{inner}x{columns}"), b.build());
    }
}

/// Products that cancel to small sums, which are added to values computed from them.
fn beside_its_gelu(cases: &mut Cases) {
    use DataType::F32;
    for (rows, inner, columns) in [(6, 2, 9), (16, 4, 16), (33, 8, 20)] {
        let dims = [4, rows, columns];
        let mut b = GraphBuilder::new("a product beside its GELU");
        let x = b.buffer("a", F32, &[4, rows, inner]);
        let w = b.buffer("b", F32, &[4, inner, columns]);
        let [product, gelu] = ["product", "gelu"].map(|name| b.virtual_tensor(name, F32, &dims));
        let y = b.buffer("y", F32, &dims);
        b.node("matmul", F32, Matmul { a: x, b: w, c: product });
        b.pointwise(F32, PointwiseMode::GeluFwd, &[product], gelu);
        b.pointwise(F32, PointwiseMode::Add, &[product, gelu], y);
        cases.add(format!("matmul_beside_its_gelu_{rows}x{inner}x{columns}"), b.build());
    }
}

/// A tensor, and the same tensor behind a selection that always chooses it.
fn selected_twice(cases: &mut Cases) {
    use PointwiseMode::{BinarySelect, Max, Mul};
    let dims = [6, 4, 1];
    for (name, dtype) in [
        ("select", DataType::F32),
        ("max", DataType::I32),
        ("once", DataType::I32),
    ] {
        let mut b = GraphBuilder::new("a tensor or itself");
        let x = b.buffer("x", dtype, &dims);
        let mask = b.buffer("mask", dtype, &[6, 1, 1]);
        let largest = b.buffer("largest", dtype, &[6, 1, 1]);
        let same = b.virtual_tensor("same", dtype, &[6, 1, 1]);
        let y = b.buffer("y", dtype, &[6, 1, 1]);
        reduce(&mut b, dtype, ReductionMode::Max, x, largest);
        match name {
            "select" => {
                let yes = b.constant("yes", dtype, &[1; 3], Scalar::float(2.0));
                b.pointwise(dtype, BinarySelect, &[largest, mask, yes], same);
            }
            "max" => {
                b.pointwise(dtype, Max, &[largest, largest], same);
            }
            _ => {
                let one = b.constant("one", dtype, &[1; 3], Scalar::Integer(1));
                b.pointwise(dtype, Mul, &[one, largest], same);
            }
        }
        b.pointwise(dtype, BinarySelect, &[largest, same, mask], y);
        cases.add(format!("itself_or_itself_{name}"), b.build());
    }
}

/// The magnitude of a block of one f16, beside a product of the same tensor.
fn single_magnitude(cases: &mut Cases) {
    let one = [1; 4];
    let mut b = GraphBuilder::new("the magnitude of one");
    let x = b.buffer("x", DataType::F16, &one);
    let y = b.buffer("y", DataType::F16, &one);
    let quantized = b.buffer("quantized", DataType::F8E4M3, &one);
    let scale = b.buffer("scale", DataType::F8E8M0, &one);
    b.conv_fprop(DataType::F32, x, x, y, ConvGeometry::same(2, 0));
    let op = BlockScaleQuantize {
        x,
        y: quantized,
        scale,
        block_size: 8,
        axis: None,
        transpose: false,
    };
    b.node("quantize", DataType::F32, op);
    cases.add("magnitude_of_one_f16", b.build());
}
