//! Reductions: modes, axes, types, and fused producers and consumers.

use super::case::{Cases, FLOATS, Order};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode, Reduction, ReductionMode, TensorId, TensorKind};

pub(super) const MODES: [ReductionMode; 9] = [
    ReductionMode::Add,
    ReductionMode::Mul,
    ReductionMode::Min,
    ReductionMode::Max,
    ReductionMode::Amax,
    ReductionMode::Avg,
    ReductionMode::Norm1,
    ReductionMode::Norm2,
    ReductionMode::MulNoZeros,
];

pub(super) fn name_of(mode: ReductionMode) -> String {
    format!("{mode:?}").to_lowercase()
}

pub(super) fn reduce(b: &mut GraphBuilder, compute: DataType, mode: ReductionMode, input: TensorId, output: TensorId) {
    b.node("reduce", compute, Reduction::new(mode, input, output));
}

/// Builds one reduction; `types` are those of the input, the output and the computation.
pub(super) fn alone(mode: ReductionMode, types: [DataType; 3], from: &[i64], to: &[i64], order: Order) -> Graph {
    let mut b = GraphBuilder::new("reduction");
    let x = order.buffer(&mut b, "x", types[0], from);
    let y = order.buffer(&mut b, "y", types[1], to);
    reduce(&mut b, types[2], mode, x, y);
    b.build()
}

pub(super) fn modes(cases: &mut Cases) {
    use DataType::{F16, F32, F64, I8, I32};
    for mode in MODES {
        let name = name_of(mode);
        for dtype in FLOATS {
            for (axes, from, to) in [
                ("last", [2, 3, 4, 5], [2, 3, 4, 1]),
                ("spatial", [2, 5, 3, 4], [2, 5, 1, 1]),
                ("all", [2, 3, 2, 3], [1, 1, 1, 1]),
            ] {
                let graph = alone(mode, [dtype, dtype, F32], &from, &to, Order::First);
                cases.add(format!("reduce_{name}_{axes}_{dtype}"), graph);
            }
        }
        // The channels, innermost or not.
        for order in Order::BOTH {
            let graph = alone(mode, [F32; 3], &[2, 7, 3, 4], &[2, 1, 3, 4], order);
            cases.add(format!("reduce_{name}_channels_{}", order.name()), graph);
        }
        cases.add(
            format!("reduce_{name}_f64"),
            alone(mode, [F64; 3], &[3, 6], &[3, 1], Order::First),
        );
        cases.add(
            format!("reduce_{name}_f16_to_f32"),
            alone(mode, [F16, F32, F32], &[3, 6], &[1, 6], Order::First),
        );
        if !matches!(mode, ReductionMode::Avg | ReductionMode::Norm2) {
            cases.add(
                format!("reduce_{name}_i32"),
                alone(mode, [I32; 3], &[3, 6], &[3, 1], Order::First),
            );
            cases.add(
                format!("reduce_{name}_i8"),
                alone(mode, [I8, I32, I32], &[3, 4], &[1, 4], Order::First),
            );
        }
    }
}

pub(super) fn axes(cases: &mut Cases) {
    use DataType::{F32, I32, I64};
    use ReductionMode::{Add, Avg, Max};
    // 64-bit sums whose columns adjacent lanes hold.
    for dtype in [I32, I64] {
        for (axes, from, to) in [("rows", [100, 8], [1, 8]), ("columns", [9, 100], [9, 1])] {
            let graph = alone(Add, [dtype, I64, I64], &from, &to, Order::First);
            cases.add(format!("reduce_add_{axes}_{dtype}_in_i64"), graph);
        }
    }
    for mode in [Add, Max] {
        let name = name_of(mode);
        let shapes: [(&str, &[i64], &[i64]); 10] = [
            ("line", &[37], &[1]),
            ("rows", &[9, 37], &[1, 37]),
            ("columns", &[9, 37], &[9, 1]),
            ("batch", &[4, 3, 5], &[1, 3, 5]),
            ("outer", &[4, 3, 5], &[1, 3, 1]),
            ("two", &[2, 1, 5], &[1, 1, 5]),
            ("beside_one", &[3, 1, 1, 6], &[3, 1, 1, 1]),
            ("per_channel", &[2, 6, 5, 5], &[1, 6, 1, 1]),
            ("3d", &[2, 3, 2, 3, 4], &[2, 3, 1, 1, 1]),
            ("rank6", &[2, 2, 3, 2, 2, 3], &[2, 1, 3, 1, 2, 1]),
        ];
        for (axes, from, to) in shapes {
            cases.add(
                format!("reduce_{name}_{axes}"),
                alone(mode, [F32; 3], from, to, Order::First),
            );
        }
    }
    cases.add(
        "reduce_avg_per_channel_nhwc",
        alone(Avg, [F32; 3], &[2, 6, 5, 5], &[1, 6, 1, 1], Order::Last),
    );
    cases.add(
        "reduce_add_long",
        alone(Add, [F32; 3], &[3, 5000], &[3, 1], Order::First),
    );
    cases.add(
        "reduce_add_long_f16",
        alone(
            Add,
            [DataType::F16, DataType::F16, F32],
            &[2, 1023],
            &[2, 1],
            Order::First,
        ),
    );
    // Gaps in both tensors, and a broadcast operand.
    let mut b = GraphBuilder::new("reduction with gaps");
    let x = b.tensor("x", F32, &[3, 4, 5], &[50, 11, 2], TensorKind::Buffer);
    let y = b.tensor("y", F32, &[3, 1, 5], &[20, 1, 3], TensorKind::Buffer);
    reduce(&mut b, F32, Add, x, y);
    cases.add("reduce_gaps", b.build());
    let mut b = GraphBuilder::new("reduction of a repeated operand");
    let x = b.tensor("x", F32, &[3, 4, 5], &[5, 0, 1], TensorKind::Buffer);
    let y = b.buffer("y", F32, &[3, 1, 5]);
    reduce(&mut b, F32, Add, x, y);
    cases.add("reduce_repeated", b.build());
    // Long enough for a schedule over lanes.
    let mut b = GraphBuilder::new("long reduction of a repeated operand");
    let x = b.tensor("x", F32, &[4, 300], &[1, 0], TensorKind::Buffer);
    let y = b.buffer("y", F32, &[4, 1]);
    reduce(&mut b, F32, Add, x, y);
    cases.add("reduce_repeated_long", b.build());
}

/// Builds the softmax along the last axis.
pub(crate) fn softmax(dtype: DataType, dims: &[i64]) -> Graph {
    use PointwiseMode::{Div, Exp, Sub};
    let compute = DataType::F32;
    let mut rows = dims.to_vec();
    rows.splice(dims.len() - 1.., [1]);
    let mut b = GraphBuilder::new("softmax");
    let x = b.buffer("x", dtype, dims);
    let [most, total] = ["most", "total"].map(|name| b.virtual_tensor(name, compute, &rows));
    let [shifted, weights] = ["shifted", "weights"].map(|name| b.virtual_tensor(name, compute, dims));
    let y = b.buffer("y", dtype, dims);
    reduce(&mut b, compute, ReductionMode::Max, x, most);
    b.pointwise(compute, Sub, &[x, most], shifted);
    b.pointwise(compute, Exp, &[shifted], weights);
    reduce(&mut b, compute, ReductionMode::Add, weights, total);
    b.pointwise(compute, Div, &[weights, total], y);
    b.build()
}

/// Builds the variance of rows from hipDNN's operations: mean, difference, square, mean.
pub(crate) fn spread(dtype: DataType, dims: &[i64]) -> Graph {
    use PointwiseMode::{Mul, Sub};
    let compute = DataType::F32;
    let mut rows = dims.to_vec();
    rows.splice(dims.len() - 1.., [1]);
    let mut b = GraphBuilder::new("spread");
    let x = b.buffer("x", dtype, dims);
    let mean = b.virtual_tensor("mean", compute, &rows);
    let [distance, square] = ["distance", "square"].map(|name| b.virtual_tensor(name, compute, dims));
    let y = b.buffer("y", dtype, &rows);
    reduce(&mut b, compute, ReductionMode::Avg, x, mean);
    b.pointwise(compute, Sub, &[x, mean], distance);
    b.pointwise(compute, Mul, &[distance, distance], square);
    reduce(&mut b, compute, ReductionMode::Avg, square, y);
    b.build()
}

/// Adds sums along the axes around a kept one, as for batch statistics: few and many rows, of all
/// widths.
pub(super) fn around(cases: &mut Cases) {
    for dtype in [DataType::F32, DataType::Bf16] {
        for columns in [2, 3, 5, 8, 16, 33, 64] {
            for rows in [20, 257, 1030] {
                let graph = alone(
                    ReductionMode::Add,
                    [dtype, dtype, DataType::F32],
                    &[rows, 2, columns],
                    &[1, 2, 1],
                    Order::First,
                );
                cases.add(format!("sum_around_{rows}x2x{columns}_{dtype}"), graph);
            }
        }
    }
    for dims in [
        [300, 3, 2, 3, 8],
        [33, 2, 9, 3, 8],
        [65, 2, 17, 3, 8],
        [20, 3, 20, 2, 20],
    ] {
        let [_, one, _, two, _] = dims;
        let types = [DataType::F32; 3];
        let graph = alone(ReductionMode::Add, types, &dims, &[1, one, 1, two, 1], Order::First);
        let name = dims.map(|extent| extent.to_string()).join("x");
        cases.add(format!("sum_around_{name}"), graph);
    }
}

pub(super) fn fused(cases: &mut Cases) {
    use PointwiseMode::{Add, Mul, Sqrt};
    for dtype in FLOATS {
        let compute = DataType::F32;
        cases.add(format!("softmax_{dtype}"), softmax(dtype, &[6, 19]));

        // A dot product per row with a square root after it.
        let mut b = GraphBuilder::new("dots");
        let [left, right] = ["left", "right"].map(|name| b.buffer(name, dtype, &[5, 24]));
        let products = b.virtual_tensor("products", compute, &[5, 24]);
        let sum = b.virtual_tensor("sum", compute, &[5, 1]);
        let y = b.buffer("y", dtype, &[5, 1]);
        b.pointwise(compute, Mul, &[left, right], products);
        reduce(&mut b, compute, ReductionMode::Norm1, products, sum);
        b.pointwise(compute, Sqrt, &[sum], y);
        cases.add(format!("dots_{dtype}"), b.build());
    }
    // Squeeze and scale: each channel is multiplied by its average.
    for order in Order::BOTH {
        let mut b = GraphBuilder::new("squeeze");
        let x = order.buffer(&mut b, "x", DataType::F32, &[2, 5, 4, 4]);
        let mean = b.virtual_tensor("mean", DataType::F32, &[2, 5, 1, 1]);
        let y = order.buffer(&mut b, "y", DataType::F32, &[2, 5, 4, 4]);
        reduce(&mut b, DataType::F32, ReductionMode::Avg, x, mean);
        b.pointwise(DataType::F32, Mul, &[x, mean], y);
        cases.add(format!("squeeze_{}", order.name()), b.build());
    }
    // The sum and the maximum of one tensor, both stored.
    let mut b = GraphBuilder::new("two reductions");
    let x = b.buffer("x", DataType::F32, &[4, 9]);
    let bias = b.buffer("bias", DataType::F32, &[1, 9]);
    let biased = b.buffer("biased", DataType::F32, &[4, 9]);
    let sum = b.buffer("sum", DataType::F32, &[4, 1]);
    let most = b.buffer("most", DataType::F32, &[1, 9]);
    b.pointwise(DataType::F32, Add, &[x, bias], biased);
    reduce(&mut b, DataType::F32, ReductionMode::Add, biased, sum);
    reduce(&mut b, DataType::F32, ReductionMode::Max, biased, most);
    cases.add("two_reductions", b.build());
    // A single result from two tensors in different orders: with a reduction of several loops, GPUs
    // would omit parts of it.
    let compute = DataType::F32;
    for mode in [ReductionMode::Add, ReductionMode::Max] {
        for dims in [&[64, 28][..], &[16, 14], &[256, 28], &[1, 64, 4, 7]] {
            let mut b = GraphBuilder::new("one element of everything");
            let mut strides = dims.to_vec();
            let mut next = 1;
            for (stride, &dim) in strides.iter_mut().zip(dims) {
                *stride = next;
                next *= dim;
            }
            let x = b.buffer("x", compute, dims);
            let turned = b.tensor("turned", compute, dims, &strides, TensorKind::Buffer);
            let products = b.virtual_tensor("products", compute, dims);
            let whole = b.virtual_tensor("whole", compute, &vec![1; dims.len()]);
            let y = b.buffer("y", compute, dims);
            b.pointwise(compute, Mul, &[x, turned], products);
            reduce(&mut b, compute, mode, products, whole);
            b.pointwise(compute, Mul, &[x, whole], y);
            let extents: Vec<String> = dims.iter().map(i64::to_string).collect();
            let mode = format!("{mode:?}").to_lowercase();
            cases.add(format!("reduce_{mode}_whole_{}", extents.join("x")), b.build());
        }
    }
    // A product with an operand that is broadcast along some axes, summed along others: scores of
    // samples, gradients of scales.
    for (of, scale) in [
        ("rows", [1, 16, 1]),
        ("columns", [1, 1, 24]),
        ("samples", [8, 1, 1]),
        ("rows_of_samples", [8, 16, 1]),
        ("columns_of_samples", [8, 1, 24]),
    ] {
        for (over, sum) in [
            ("rows", [8, 1, 1]),
            ("samples", [1, 1, 24]),
            ("channels", [1, 16, 1]),
            ("all", [1, 1, 1]),
        ] {
            let is_plain = ["columns", "samples"].contains(&of) && ["rows", "all"].contains(&over);
            let others: &[DataType] = if is_plain { &[DataType::F64, DataType::I32] } else { &[] };
            for &dtype in [DataType::F32].iter().chain(others) {
                let mut b = GraphBuilder::new("sum of products");
                let x = b.buffer("x", dtype, &[8, 16, 24]);
                let w = b.buffer("w", dtype, &scale);
                let products = b.virtual_tensor("products", dtype, &[8, 16, 24]);
                let y = b.buffer("y", dtype, &sum);
                b.pointwise(dtype, Mul, &[x, w], products);
                reduce(&mut b, dtype, ReductionMode::Add, products, y);
                cases.add(format!("product_with_{of}_sum_of_{over}_{dtype}"), b.build());
            }
        }
    }
    // A single result, with an operand that is broadcast along one of the axes.
    for rows in [64, 16] {
        let mut b = GraphBuilder::new("one element of everything, biased");
        let x = b.buffer("x", compute, &[rows, 28]);
        let bias = b.buffer("bias", compute, &[rows, 1]);
        let biased = b.virtual_tensor("biased", compute, &[rows, 28]);
        let whole = b.buffer("whole", compute, &[1, 1]);
        b.pointwise(compute, Add, &[x, bias], biased);
        reduce(&mut b, compute, ReductionMode::Add, biased, whole);
        cases.add(format!("reduce_add_whole_biased_{rows}x28"), b.build());
    }
}

/// Adds integers of known sign reduced to one element: unsigned ones of few bits, and differences
/// that are zero.
pub(super) fn natural(cases: &mut Cases) {
    for mode in [ReductionMode::Min, ReductionMode::Max, ReductionMode::Add] {
        for dims in [[2, 5, 2, 2, 1], [2, 5, 2, 16, 1]] {
            let count: i64 = dims.iter().product();
            let mut b = GraphBuilder::new("differences");
            let x = b.buffer("x", DataType::I8, &dims);
            let difference = b.virtual_tensor("difference", DataType::I32, &dims);
            let y = b.buffer("y", DataType::I32, &[1; 5]);
            b.pointwise(DataType::I32, PointwiseMode::Sub, &[x, x], difference);
            reduce(&mut b, DataType::I32, mode, difference, y);
            cases.add(format!("reduce_{}_of_zeros_{count}", name_of(mode)), b.build());
            for (kind, pointwise) in [
                ("read", None),
                ("magnitude", Some(PointwiseMode::Abs)),
                ("negative", Some(PointwiseMode::Neg)),
            ] {
                let mut b = GraphBuilder::new("natural");
                let is_magnitude = pointwise == Some(PointwiseMode::Abs);
                let dtype = if is_magnitude { DataType::I32 } else { DataType::U8 };
                let mut x = b.buffer("x", dtype, &dims);
                let y = b.buffer("y", DataType::I32, &[1; 5]);
                if let Some(pointwise) = pointwise {
                    let made = b.virtual_tensor("made", DataType::I32, &dims);
                    b.pointwise(DataType::I32, pointwise, &[x], made);
                    x = made;
                }
                reduce(&mut b, DataType::I32, mode, x, y);
                cases.add(format!("reduce_{}_of_{kind}_{count}", name_of(mode)), b.build());
            }
        }
    }
}
