//! Custom operations whose meaning the reference knows: types and layouts, alone and between other
//! operations.

pub(super) mod graphs;

use crate::cases::case::{Cases, Data, FLOATS, Order};
use anyhow::Result;
use graphs::{
    add_square, add_square_of_a_row, alone, gelu, joined, map, node, odd_rows, paired, product, rotary, row,
    row_maxima, row_sums, row_sums_and_maxima, row_sums_in_place, tensor, third_row_added, transposed, unary,
};
use rotini_graph::{ConvFprop, ConvGeometry, DataType, GraphBuilder, Matmul, PointwiseMode, TensorKind};

const F32: DataType = DataType::F32;

/// Returns extrema in which NaN wins and zeros of both signs differ: of two tensors and along rows,
/// starting from a constant and from a tensor.
///
/// # Errors
///
/// Those of filling buffers.
pub(super) fn extremes() -> Result<Vec<Data>> {
    let floats = [
        f32::NAN,
        -f32::NAN,
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-30,
        -2.5,
    ];
    let bits = |float: f32| float.to_bits().cast_signed();
    let firsts = floats.iter().flat_map(|&x| floats.map(|_| bits(x))).collect::<Vec<_>>();
    let seconds = floats.iter().flat_map(|_| floats.map(bits)).collect::<Vec<_>>();
    let mut data = Vec::new();
    for (name, operation) in [("larger", "arith.maximumf"), ("smaller", "arith.minimumf")] {
        let graph = paired(name, operation, F32, &[10, 10]);
        let elements = [("x0", firsts.clone()), ("x1", seconds.clone())];
        data.push(Data::with(format!("custom_{name}_of_any"), graph, &elements, true)?);
    }
    // Rows of numbers, some with NaN, some of zeros of both signs.
    let columns = 24_usize;
    let mut rows: Vec<f32> = (0..8 * columns)
        .map(|index| (index as f32 * 0.37).sin() * 1e3)
        .collect();
    rows[columns + 5] = f32::NAN;
    rows[2 * columns + 23] = -f32::NAN;
    rows[3 * columns] = f32::INFINITY;
    rows[4 * columns + 7] = f32::NEG_INFINITY;
    rows[5 * columns..6 * columns].fill(0.0);
    rows[5 * columns + 3] = -0.0;
    rows[6 * columns..7 * columns].fill(-0.0);
    rows[7 * columns + 1] = f32::MIN_POSITIVE;
    let rows: Vec<i32> = rows.into_iter().map(bits).collect();
    let (from, to) = (tensor(F32, &[8, 24]), tensor(F32, &[8, 1]));
    let (least, most) = (
        row("least", "arith.minimumf", "0x7F800000", [8, 24]),
        row("most", "arith.maximumf", "0xFF800000", [8, 24]),
    );
    let body = format!(
        "// row extremes\nfunc.func @f(%x: {from}) -> ({to}, {to}) {{\n{least}{most}  return %least, %most : {to}, {to}\n}}\n"
    );
    let graph = alone(&[(F32, &[8, 24])], &[(F32, &[8, 1]), (F32, &[8, 1])], body);
    data.push(Data::with("custom_row_extremes", graph, &[("x0", rows.clone())], true)?);
    // The maximum and the minimum of each row and an initial value, and the sum.
    let more = [f32::NAN, 0.0, 2e3, -1.0, 5e5, -0.0, 0.0, f32::NEG_INFINITY].map(bits);
    for (name, combiner) in [
        ("maxima", "arith.maximumf"),
        ("minima", "arith.minimumf"),
        ("largest numbers", "arith.maxnumf"),
        ("sums", "arith.addf"),
    ] {
        let body = format!(
            "// row {name} and more\nfunc.func @f(%a: {from}, %b: {to}) -> {to} {{\n  \
             %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], \
             iterator_types = [\"parallel\", \"reduction\"]}} ins(%a : {from}) outs(%b : {to}) {{\n  ^bb0(%x: f32, %s: f32):\n    \
             %r = {combiner} %s, %x : f32\n    linalg.yield %r : f32\n  }} -> {to}\n  return %0 : {to}\n}}\n"
        );
        let graph = alone(&[(F32, &[8, 24]), (F32, &[8, 1])], &[(F32, &[8, 1])], body);
        let elements = [("x0", rows.clone()), ("x1", more.to_vec())];
        let name = name.replace(' ', "_");
        data.push(Data::with(
            format!("custom_row_{name}_and_more"),
            graph,
            &elements,
            true,
        )?);
    }
    Ok(data)
}

/// Returns the examples in the documentation.
pub(super) fn examples() -> Vec<String> {
    include_str!("../../../../docs/custom-op.md")
        .split("```mlir\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(str::to_owned)
        .collect()
}

pub(super) fn bodies(cases: &mut Cases) {
    for dtype in FLOATS {
        for dims in [&[37][..], &[5, 7], &[2, 3, 4, 5]] {
            let name = format!("custom_gelu_{dtype}_{}d", dims.len());
            cases.add(name, alone(&[(dtype, dims)], &[(dtype, dims)], gelu(dtype, dims)));
        }
        let (all, one): (&[i64], &[i64]) = (&[6, 9], &[1, 9]);
        cases.add(
            format!("custom_add_square_{dtype}"),
            alone(
                &[(dtype, all), (dtype, one)],
                &[(dtype, all)],
                add_square(dtype, [6, 9]),
            ),
        );
    }
    let exp = unary("exp in f64", DataType::F64, &[3, 6], |x| {
        format!("    %r = math.exp {x} : f64\n")
    });
    let of_f64: (DataType, &[i64]) = (DataType::F64, &[3, 6]);
    cases.add("custom_exp_f64", alone(&[of_f64], &[of_f64], exp));
    let doubled = unary("doubled", DataType::I32, &[3, 6], |x| {
        format!("    %r = arith.addi {x}, {x} : i32\n")
    });
    let of_i32: (DataType, &[i64]) = (DataType::I32, &[3, 6]);
    cases.add("custom_doubled_i32", alone(&[of_i32], &[of_i32], doubled));
    // A value that the compiler finds to be constant.
    let nothing = unary("nothing", DataType::I32, &[3, 6], |x| {
        format!("    %r = arith.subi {x}, {x} : i32\n")
    });
    cases.add("custom_nothing_i32", alone(&[of_i32], &[of_i32], nothing));
    for (dtype, extension) in [(DataType::I8, "extsi"), (DataType::U8, "extui")] {
        let (narrow, wide) = (tensor(dtype, &[9]), tensor(DataType::I32, &[9]));
        let identity = map(1, &[0]);
        let body = format!(
            "// doubled\nfunc.func @f(%a: {narrow}) -> {wide} {{\n  %e = tensor.empty() : {wide}\n  \
             %0 = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [\"parallel\"]}} \
             ins(%a : {narrow}) outs(%e : {wide}) {{\n  ^bb0(%x: i8, %o: i32):\n    %w = arith.{extension} %x : i8 to i32\n    \
             %r = arith.addi %w, %w : i32\n    linalg.yield %r : i32\n  }} -> {wide}\n  return %0 : {wide}\n}}\n"
        );
        let graph = alone(&[(dtype, &[9])], &[(DataType::I32, &[9])], body);
        cases.add(format!("custom_doubled_{dtype}"), graph);
    }
    let ramp = unary("ramp", F32, &[5, 7], |x| {
        format!(
            "    %i = linalg.index 1 : index\n    %c = arith.index_cast %i : index to i32\n    %f = arith.sitofp %c : i32 to f32\n    \
             %r = arith.mulf {x}, %f : f32\n"
        )
    });
    cases.add("custom_ramp", alone(&[(F32, &[5, 7])], &[(F32, &[5, 7])], ramp));
    let half = DataType::F16;
    if let [swiglu, rotary] = examples().as_slice() {
        cases.add(
            "custom_example",
            alone(&[(half, &[32, 128])], &[(half, &[32, 64])], swiglu.clone()),
        );
        let (x, angles): (&[i64], &[i64]) = (&[2, 4, 16, 64], &[1, 1, 16, 32]);
        cases.add(
            "custom_example_rotary",
            alone(
                &[(half, x), (half, angles), (half, angles)],
                &[(half, x)],
                rotary.clone(),
            ),
        );
    }
    for dtype in FLOATS {
        let (all, one): (&[i64], &[i64]) = (&[6, 9], &[1, 9]);
        let body = add_square_of_a_row(dtype, [6, 9]);
        let graph = alone(&[(dtype, all), (dtype, one)], &[(dtype, all)], body);
        cases.add(format!("custom_add_square_of_a_row_{dtype}"), graph);
        cases.add(format!("custom_rotary_{dtype}"), rotary([dtype; 3], [2, 3, 5, 16]));
        cases.add(
            format!("custom_larger_number_{dtype}"),
            paired("larger number", "arith.maxnumf", dtype, &[5, 9]),
        );
        cases.add(format!("custom_row_maxima_{dtype}"), row_maxima(dtype, [5, 40]));
    }
    cases.add("custom_rotary_mixed", rotary([half, F32, DataType::Bf16], [1, 2, 7, 6]));
    cases.add("custom_rotary_large", rotary([half; 3], [1, 4, 33, 128]));
    cases.add("custom_rotary_pair", rotary([F32; 3], [1, 1, 1, 2]));
    cases.add(
        "custom_third_row_added",
        alone(&[(F32, &[5, 8])], &[(F32, &[5, 8])], third_row_added([5, 8])),
    );
    cases.add(
        "custom_row_sums_in_place",
        alone(&[(F32, &[6, 19])], &[(F32, &[6, 1])], row_sums_in_place([6, 19])),
    );
    for (name, dtype, axis, parts) in [
        ("rows", F32, 0, &[&[2_i64, 5][..], &[3, 5], &[1, 5]][..]),
        ("columns", F32, 1, &[&[4, 3], &[4, 8]]),
        ("halves", half, 2, &[&[2, 3, 4], &[2, 3, 1], &[2, 3, 5]]),
        ("bytes", DataType::I8, 0, &[&[7], &[9]]),
        ("one", F32, 1, &[&[3, 4]]),
        ("wholes", DataType::I64, 1, &[&[3, 4, 2], &[3, 2, 2]]),
    ] {
        cases.add(format!("custom_joined_{name}"), joined(dtype, axis, parts));
    }
    for (name, dims) in [
        ("", [6, 19]),
        ("_long", [2, 3000]),
        ("_single", [1, 1]),
        ("_column", [7, 1]),
    ] {
        if dims[1] > 1 {
            let graph = alone(&[(F32, &dims)], &[(F32, &[dims[0], 1])], row_sums(dims));
            cases.add(format!("custom_row_sums{name}"), graph);
        }
        let graph = alone(&[(F32, &dims)], &[(F32, &dims)], gelu(F32, &dims));
        cases.add(format!("custom_gelu{name}"), graph);
    }
    cases.add(
        "custom_two_outputs",
        alone(
            &[(F32, &[5, 8])],
            &[(F32, &[5, 1]), (F32, &[5, 1])],
            row_sums_and_maxima([5, 8]),
        ),
    );
    // One value for two outputs, and an output that shares its input's memory.
    let (from, to) = (tensor(F32, &[5, 8]), tensor(F32, &[5, 1]));
    let sum = row("sum", "arith.addf", "0.0", [5, 8]);
    cases.add(
        "custom_one_result_twice",
        alone(
            &[(F32, &[5, 8])],
            &[(F32, &[5, 1]), (F32, &[5, 1])],
            format!("// row sums twice\nfunc.func @f(%x: {from}) -> ({to}, {to}) {{\n{sum}  return %sum, %sum : {to}, {to}\n}}\n"),
        ),
    );
    let line = tensor(F32, &[40]);
    cases.add(
        "custom_reshaped",
        alone(
            &[(F32, &[5, 8])],
            &[(F32, &[40])],
            format!("// reshaped\nfunc.func @f(%x: {from}) -> {line} {{\n  %y = tensor.collapse_shape %x [[0, 1]] : {from} into {line}\n  return %y : {line}\n}}\n"),
        ),
    );
    for [rows, inner, columns] in [[5, 7, 9], [32, 64, 48], [1, 16, 1]] {
        cases.add(
            format!("custom_product_{rows}x{inner}x{columns}"),
            alone(
                &[(F32, &[rows, inner]), (F32, &[inner, columns])],
                &[(F32, &[rows, columns])],
                product([rows, inner, columns]),
            ),
        );
    }
    cases.add(
        "custom_transposed",
        alone(&[(F32, &[4, 9])], &[(F32, &[9, 4])], transposed([4, 9])),
    );
    cases.add(
        "custom_odd_rows",
        alone(&[(F32, &[8, 5])], &[(F32, &[4, 5])], odd_rows([8, 5])),
    );
}

pub(super) fn layouts(cases: &mut Cases) {
    // Whatever the layout, the body sees the logical order.
    let dims = [2, 5, 3, 4];
    for (from, to) in [
        (Order::Last, Order::Last),
        (Order::First, Order::Last),
        (Order::Last, Order::First),
    ] {
        let mut b = GraphBuilder::new("custom layout");
        let x = from.buffer(&mut b, "x", F32, &dims);
        let y = to.buffer(&mut b, "y", F32, &dims);
        node(&mut b, &[x], &[y], gelu(F32, &dims));
        cases.add(format!("custom_gelu_{}_{}", from.name(), to.name()), b.build());
    }
    let mut b = GraphBuilder::new("custom transposed operand");
    let x = b.tensor("x", F32, &[6, 19], &[1, 6], TensorKind::Buffer);
    let y = b.buffer("y", F32, &[6, 1]);
    node(&mut b, &[x], &[y], row_sums([6, 19]));
    cases.add("custom_row_sums_of_columns", b.build());
    let mut b = GraphBuilder::new("custom gaps");
    let x = b.tensor("x", F32, &[3, 4], &[9, 2], TensorKind::Buffer);
    let row = b.tensor("row", F32, &[1, 4], &[0, 0], TensorKind::Buffer);
    let y = b.tensor("y", F32, &[3, 4], &[1, 5], TensorKind::Buffer);
    node(&mut b, &[x, row], &[y], add_square(F32, [3, 4]));
    cases.add("custom_gaps_and_repeats", b.build());
}

pub(super) fn fused(cases: &mut Cases) {
    // Between pointwise operations; the type of a virtual tensor determines where the body rounds.
    for dtype in FLOATS {
        let dims = [4, 10];
        let mut b = GraphBuilder::new("custom between");
        let [x, bias] = [("x", &dims), ("bias", &[1, 10])].map(|(name, dims)| b.buffer(name, F32, dims));
        let [biased, activated] = ["biased", "activated"].map(|name| b.virtual_tensor(name, dtype, &dims));
        let y = b.buffer("y", F32, &dims);
        b.pointwise(F32, PointwiseMode::Add, &[x, bias], biased);
        node(&mut b, &[biased], &[activated], gelu(dtype, &dims));
        b.pointwise(F32, PointwiseMode::Mul, &[activated, x], y);
        cases.add(format!("custom_between_{dtype}"), b.build());
    }
    for order in Order::BOTH {
        let mut b = GraphBuilder::new("custom behind a convolution");
        let x = order.buffer(&mut b, "x", F32, &[1, 4, 6, 6]);
        let w = order.buffer(&mut b, "w", F32, &[8, 4, 3, 3]);
        let sums = b.virtual_tensor("sums", F32, &[1, 8, 6, 6]);
        let y = order.buffer(&mut b, "y", F32, &[1, 8, 6, 6]);
        let op = ConvFprop {
            x,
            w,
            y: sums,
            geometry: ConvGeometry::same(2, 1),
        };
        b.node("conv", F32, op);
        node(&mut b, &[sums], &[y], gelu(F32, &[1, 8, 6, 6]));
        cases.add(format!("custom_behind_conv_{}", order.name()), b.build());
    }
    let mut b = GraphBuilder::new("custom around a matmul");
    let [left, right] = [("left", &[9, 6]), ("right", &[6, 12])].map(|(name, dims)| b.buffer(name, F32, dims));
    let turned = b.virtual_tensor("turned", F32, &[6, 9]);
    let odd = b.virtual_tensor("odd", F32, &[3, 9]);
    let wide = b.virtual_tensor("wide", F32, &[9, 12]);
    let c = b.virtual_tensor("c", F32, &[3, 12]);
    let sums = b.buffer("sums", F32, &[3, 1]);
    let stored = b.buffer("stored", F32, &[9, 12]);
    node(&mut b, &[left], &[turned], transposed([9, 6]));
    node(&mut b, &[turned], &[odd], odd_rows([6, 9]));
    node(&mut b, &[left, right], &[wide], product([9, 6, 12]));
    b.node("matmul", F32, Matmul { a: odd, b: wide, c });
    node(&mut b, &[c], &[sums], row_sums([3, 12]));
    b.pointwise(F32, PointwiseMode::Abs, &[wide], stored);
    cases.add("custom_around_matmul", b.build());
}
