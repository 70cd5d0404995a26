//! What rotini does not run.

use super::{Case, Conv, Order, WITHOUT_F64, pointwise};
use rotini_graph::{
    ConvFprop, ConvGeometry, ConvMode, DataType, Graph, GraphBuilder, PointwiseMode, Scalar, TensorKind,
};

/// Graphs that are well formed and that rotini does not run, with a word of the reason.
#[must_use]
pub fn declined() -> Vec<(Case, &'static str)> {
    let mut cases = Vec::new();
    let mut add = |name: &str, graph: Graph, reason: &'static str| {
        cases.push((
            Case {
                name: name.to_owned(),
                graph,
            },
            reason,
        ));
    };
    let mut flipped = Conv::new(1, 4, 4, 6, 3, 1, DataType::F32, Order::First);
    flipped.geometry.mode = ConvMode::Convolution;
    add("conv_flipped", flipped.alone(), "CONVOLUTION");
    let mut float_in_int = Conv::new(1, 4, 4, 6, 3, 1, DataType::F32, Order::First);
    float_in_int.compute = DataType::I32;
    add("conv_f32_in_i32", float_in_int.alone(), "'x'");
    let mut eight = Conv::new(1, 4, 4, 6, 3, 1, DataType::I8, Order::First);
    eight.compute = DataType::I8;
    add("conv_compute_i8", eight.alone(), "i8");
    add(
        "exp_in_i32",
        pointwise::packed(PointwiseMode::Exp, &[DataType::I32], DataType::I32, DataType::I32, &[4]),
        "EXP",
    );
    add(
        "fp8",
        pointwise::packed(
            PointwiseMode::Add,
            &[DataType::F8E4M3],
            DataType::F32,
            DataType::F32,
            &[4],
        ),
        "f8e4m3",
    );
    for mode in WITHOUT_F64 {
        add(
            "f64",
            pointwise::packed(mode, &[DataType::F64], DataType::F64, DataType::F64, &[4]),
            mode.name(),
        );
    }
    let mut b = GraphBuilder::new("constant filter");
    let x = b.buffer("x", DataType::F32, &[1, 3, 6, 6]);
    let w = b.constant("w", DataType::F32, &[4, 3, 3, 3], Scalar::float(0.25));
    let y = b.buffer("y", DataType::F32, &[1, 4, 6, 6]);
    b.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(2, 1));
    add("constant_filter", b.build(), "'w'");
    let mut b = GraphBuilder::new("constant only");
    let value = b.constant("value", DataType::F32, &[1, 1], Scalar::float(2.25));
    let y = b.buffer("y", DataType::F32, &[3, 8]);
    b.pointwise(DataType::F32, PointwiseMode::Sqrt, &[value], y);
    add("constant_only", b.build(), "'y'");
    let mut override_shapes =
        pointwise::packed(PointwiseMode::Add, &[DataType::F32], DataType::F32, DataType::F32, &[4]);
    override_shapes.override_shapes = true;
    add("override_shapes", override_shapes, "shapes");
    let mut b = GraphBuilder::new("runtime");
    let x = b.buffer("x", DataType::F32, &[4]);
    let s = b.tensor("s", DataType::F32, &[1], &[1], TensorKind::RuntimeScalar);
    let y = b.buffer("y", DataType::F32, &[4]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, s], y);
    add("runtime_scalar", b.build(), "'s'");
    let mut spatial = GraphBuilder::new("4d");
    let x = spatial.buffer("x", DataType::F32, &[1, 2, 3, 3, 3, 3]);
    let w = spatial.buffer("w", DataType::F32, &[2, 2, 1, 1, 1, 1]);
    let y = spatial.buffer("y", DataType::F32, &[1, 2, 3, 3, 3, 3]);
    spatial.node(
        "conv",
        DataType::F32,
        ConvFprop {
            x,
            w,
            y,
            geometry: ConvGeometry::same(4, 0),
        },
    );
    add("conv_4d", spatial.build(), "4 spatial");
    cases
}
