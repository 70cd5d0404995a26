//! Layouts that strides can express: orders that differ between tensors, gaps, repeated elements.

use super::case::{Cases, Order};
use super::convolution::Conv;
use rotini_graph::{
    ConvGeometry, DataType, GraphBuilder, Pointwise, PointwiseMode, Reduction, ReductionMode, TensorKind,
};

pub(super) fn mixed(cases: &mut Cases) {
    for x in Order::BOTH {
        for w in Order::BOTH {
            for y in Order::BOTH {
                for (dtype, groups) in [(DataType::F32, 1), (DataType::F16, 1), (DataType::F32, 2)] {
                    let mut conv = Conv::new(1, 8, 12, 7, 3, 1, dtype, x).groups(groups);
                    conv.orders = [x, w, y];
                    let name = format!("conv_mixed_{}_{}_{}_{dtype}_g{groups}", x.name(), w.name(), y.name());
                    cases.add(name, conv.fused(PointwiseMode::ReluFwd, false));
                }
            }
        }
    }
    // A layout that no convolution library supports: C H W N.
    let mut b = GraphBuilder::new("chwn");
    let x = b.tensor("x", DataType::F32, &[3, 4, 6, 5], &[1, 90, 15, 3], TensorKind::Buffer);
    let w = b.tensor("w", DataType::F32, &[6, 4, 3, 3], &[1, 6, 24, 72], TensorKind::Buffer);
    let y = b.tensor("y", DataType::F32, &[3, 6, 6, 5], &[30, 90, 1, 6], TensorKind::Buffer);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    cases.add("conv_chwn", b.build());
}

pub(super) fn strided(cases: &mut Cases) {
    let layouts: [(&str, &[i64], &[i64]); 8] = [
        ("row_gap", &[3, 4, 5], &[28, 7, 1]),
        ("inner_gap", &[3, 4, 5], &[40, 10, 2]),
        ("batch_gap", &[3, 4, 5], &[50, 5, 1]),
        ("nhwc_slice", &[2, 3, 4], &[64, 1, 8]),
        ("reversed", &[3, 4, 5], &[1, 3, 12]),
        ("uneven", &[2, 3, 4], &[37, 11, 2]),
        ("unit_dims", &[1, 4, 1], &[9, 3, 7]),
        ("tall", &[5, 1, 3], &[3, 99, 1]),
    ];
    for (label, dims, strides) in layouts {
        let mut b = GraphBuilder::new("strided");
        let x = b.tensor("x", DataType::F32, dims, strides, TensorKind::Buffer);
        let z = b.buffer("z", DataType::F32, dims);
        let y = b.buffer("y", DataType::F32, dims);
        b.pointwise(DataType::F32, PointwiseMode::Add, &[x, z], y);
        cases.add(format!("strided_in_{label}"), b.build());
        let mut b = GraphBuilder::new("strided");
        let x = b.buffer("x", DataType::F16, dims);
        let y = b.tensor("y", DataType::F16, dims, strides, TensorKind::Buffer);
        b.pointwise(DataType::F32, PointwiseMode::Exp, &[x], y);
        cases.add(format!("strided_out_{label}"), b.build());
    }
    for (label, strides) in [("rows", [0, 1]), ("columns", [1, 0]), ("all", [0, 0])] {
        let mut b = GraphBuilder::new("repeated");
        let x = b.tensor("x", DataType::F32, &[4, 6], &strides, TensorKind::Buffer);
        let z = b.buffer("z", DataType::F32, &[4, 6]);
        let y = b.buffer("y", DataType::F32, &[4, 6]);
        b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, z], y);
        cases.add(format!("repeated_{label}"), b.build());
    }
    let mut b = GraphBuilder::new("overlapping windows");
    let x = b.tensor("x", DataType::F32, &[5, 3], &[1, 1], TensorKind::Buffer);
    let y = b.buffer("y", DataType::F32, &[5, 3]);
    b.pointwise(DataType::F32, PointwiseMode::Identity, &[x], y);
    cases.add("overlapping_in", b.build());

    // Rows with gaps that are not a multiple of a vector, reduced along one axis and as a whole.
    for (name, dims) in [("rows", [33, 1]), ("columns", [1, 3]), ("whole", [1, 1])] {
        for mode in [
            ReductionMode::Add,
            ReductionMode::Max,
            ReductionMode::Avg,
            ReductionMode::Norm1,
        ] {
            let mut b = GraphBuilder::new("strided reduction");
            let input = b.tensor("x", DataType::F32, &[33, 3], &[6, 1], TensorKind::Buffer);
            let output = b.buffer("y", DataType::F32, &dims);
            b.node("reduce", DataType::F32, Reduction::new(mode, input, output));
            cases.add(format!("reduce_strided_{mode:?}_{name}"), b.build());
        }
    }
    // A convolution between strided tensors, one of them repeated.
    for order in Order::BOTH {
        let mut conv = GraphBuilder::new("strided conv");
        let (xs, ws, ys): (&[i64], &[i64], &[i64]) = if order == Order::First {
            (&[300, 70, 8, 1], &[40, 10, 3, 1], &[500, 60, 7, 1])
        } else {
            (&[300, 1, 35, 5], &[60, 1, 15, 5], &[500, 1, 70, 9])
        };
        let x = conv.tensor("x", DataType::F32, &[2, 4, 6, 6], xs, TensorKind::Buffer);
        let w = conv.tensor("w", DataType::F32, &[5, 4, 3, 3], ws, TensorKind::Buffer);
        let y = conv.tensor("y", DataType::F32, &[2, 5, 6, 6], ys, TensorKind::Buffer);
        conv.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
        cases.add(format!("conv_strided_{}", order.name()), conv.build());
    }
    let mut b = GraphBuilder::new("repeated filter");
    let x = b.buffer("x", DataType::F32, &[1, 3, 6, 6]);
    let w = b.tensor("w", DataType::F32, &[4, 3, 3, 3], &[0, 9, 3, 1], TensorKind::Buffer);
    let y = b.buffer("y", DataType::F32, &[1, 4, 6, 6]);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    cases.add("conv_repeated_filter", b.build());

    // The gaps hold a NaN with another payload than the compiler's.
    let mut b = GraphBuilder::new("gaps in bf16");
    let x = b.buffer("x", DataType::Bf16, &[3, 5]);
    let y = b.tensor("y", DataType::Bf16, &[3, 5], &[16, 3], TensorKind::Buffer);
    b.pointwise(DataType::F32, PointwiseMode::Erf, &[x], y);
    cases.add("gaps_bf16", b.build());
    // A slot of a cache, rows of one element, and planes, with elements of all widths.
    for dtype in [DataType::U8, DataType::F16, DataType::F32, DataType::F64] {
        for (label, dims, strides) in [
            ("slot", [2, 3, 1, 96], [98_304, 32_768, 32_768, 1]),
            ("slots", [2, 3, 7, 33], [9_000, 3_000, 40, 1]),
            ("column", [5, 7, 11, 1], [1_000, 99, 9, 1]),
            ("planes", [300, 2, 9, 5], [120, 1, 10, 2]),
        ] {
            let mut b = GraphBuilder::new("store with gaps");
            let x = b.buffer("x", dtype, &dims);
            let y = b.tensor("y", dtype, &dims, &strides, TensorKind::Buffer);
            b.pointwise(DataType::F32, PointwiseMode::Identity, &[x], y);
            cases.add(format!("gaps_{label}_{dtype}"), b.build());
        }
    }
    // A result that depends on no input.
    let mut b = GraphBuilder::new("index with gaps");
    let x = b.buffer("x", DataType::F32, &[3, 11]);
    let y = b.tensor("y", DataType::F32, &[3, 11], &[23, 2], TensorKind::Buffer);
    let mut index = Pointwise::new(PointwiseMode::GenIndex, x, None, None, y);
    index.axis = Some(1);
    b.node("index", DataType::F32, index);
    cases.add("gaps_index", b.build());
    // Loops that read no tensor behind a convolution: a gathered bias, an index.
    for order in Order::BOTH {
        let mut b = GraphBuilder::new("conv, strided bias, index");
        let x = order.buffer(&mut b, "x", DataType::F32, &[1, 32, 7, 7]);
        let w = order.buffer(&mut b, "w", DataType::F32, &[16, 32, 1, 1]);
        let bias = b.tensor(
            "bias",
            DataType::F32,
            &[1, 16, 1, 1],
            &[31, 2, 1, 1],
            TensorKind::Buffer,
        );
        let [conv, biased, channel] =
            ["conv", "biased", "channel"].map(|name| b.virtual_tensor(name, DataType::F32, &[1, 16, 7, 7]));
        let y = order.buffer(&mut b, "y", DataType::F32, &[1, 16, 7, 7]);
        b.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 0));
        b.pointwise(DataType::F32, PointwiseMode::Add, &[conv, bias], biased);
        let mut index = Pointwise::new(PointwiseMode::GenIndex, biased, None, None, channel);
        index.axis = Some(1);
        b.node("index", DataType::F32, index);
        b.pointwise(DataType::F32, PointwiseMode::Mul, &[biased, channel], y);
        cases.add(format!("conv_strided_bias_index_{}", order.name()), b.build());
    }
}
