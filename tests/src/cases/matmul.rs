//! Matrix multiplications: shapes, transposes by strides, broadcast batches, types, epilogues.

use super::case::{Cases, Data, FLOATS};
use anyhow::Result;
use rotini_graph::{
    DataType, Graph, GraphBuilder, Matmul, PointwiseMode, Reduction, ReductionMode, Scalar, TensorId, TensorKind,
};
use rotini_reference::Profile;

/// A product of two batches of matrices.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// Batch dims of a, b and c.
    batches: [Vec<i64>; 3],
    /// Rows, inner extent, columns.
    extents: [i64; 3],
    /// Whether a, b and c are column-major.
    transposed: [bool; 3],
    /// Types of a, b, c and the computation.
    types: [DataType; 4],
}

impl Product {
    pub(super) fn new(rows: i64, inner: i64, columns: i64, dtype: DataType) -> Self {
        Product {
            batches: [const { Vec::new() }; 3],
            extents: [rows, inner, columns],
            transposed: [false; 3],
            types: [dtype, dtype, dtype, DataType::F32],
        }
    }

    /// Sets the batch dims of a and b.
    pub(super) fn batched(mut self, a: &[i64], b: &[i64]) -> Self {
        let c = a.iter().zip(b).map(|(a, b)| *a.max(b)).collect();
        self.batches = [a.to_vec(), b.to_vec(), c];
        self
    }

    pub(super) fn transposed(mut self, a: bool, b: bool, c: bool) -> Self {
        self.transposed = [a, b, c];
        self
    }

    pub(super) fn types(mut self, types: [DataType; 4]) -> Self {
        self.types = types;
        self
    }

    fn dims(&self, operand: usize) -> Vec<i64> {
        let [rows, inner, columns] = self.extents;
        let matrix = [[rows, inner], [inner, columns], [rows, columns]][operand];
        [self.batches[operand].as_slice(), &matrix].concat()
    }

    fn buffer(&self, b: &mut GraphBuilder, name: &str, operand: usize) -> TensorId {
        let dims = self.dims(operand);
        if !self.transposed[operand] {
            return b.buffer(name, self.types[operand], &dims);
        }
        let rank = dims.len();
        let mut strides = vec![1; rank];
        strides[rank - 1] = dims[rank - 2];
        for axis in (0..rank - 2).rev() {
            strides[axis] = dims[axis + 1..].iter().product();
        }
        b.tensor(name, self.types[operand], &dims, &strides, TensorKind::Buffer)
    }

    pub(super) fn alone(&self) -> Graph {
        let mut builder = GraphBuilder::new("matmul");
        let [a, b, c] = [("a", 0), ("b", 1), ("c", 2)].map(|(name, operand)| self.buffer(&mut builder, name, operand));
        builder.node("matmul", self.types[3], Matmul { a, b, c });
        builder.build()
    }

    /// Builds the product with a bias per column and an activation.
    pub(super) fn fused(&self, activation: PointwiseMode) -> Graph {
        let mut builder = GraphBuilder::new("matmul_bias_act");
        let [a, b, y] = [("a", 0), ("b", 1), ("y", 2)].map(|(name, operand)| self.buffer(&mut builder, name, operand));
        let dims = self.dims(2);
        let mut bias_dims = vec![1; dims.len()];
        bias_dims[dims.len() - 1] = self.extents[2];
        let bias = builder.buffer("bias", self.types[2], &bias_dims);
        let compute = self.types[3];
        let [c, biased] = ["c", "biased"].map(|name| builder.virtual_tensor(name, compute, &dims));
        builder.node("matmul", compute, Matmul { a, b, c });
        builder.pointwise(compute, PointwiseMode::Add, &[c, bias], biased);
        builder.pointwise(compute, activation, &[biased], y);
        builder.build()
    }
}

/// Returns products of operands that round: those of the other cases have few bits, so that most
/// sums are exact.
pub(super) fn rounded() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for dtype in FLOATS {
        for (rows, inner, columns) in [(33, 768, 17), (64, 1024, 64), (5, 4096, 9)] {
            let product = Product::new(rows, inner, columns, dtype);
            for (kind, graph) in [
                ("alone", product.alone()),
                ("fused", product.fused(PointwiseMode::ReluFwd)),
            ] {
                let name = format!("matmul_rounded_{kind}_{rows}x{inner}x{columns}_{dtype}");
                data.push(Data::filled(name, graph, "b", Profile::Normal)?);
            }
        }
    }
    Ok(data)
}

pub(super) fn alone(cases: &mut Cases) {
    use DataType::{Bf16, F8E4M3Fnuz, F8E5M2Fnuz, F16, F32, F64, I8, I32};
    for dtype in FLOATS {
        for (a, b, c) in [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (true, true, false),
            (false, false, true),
            (true, true, true),
        ] {
            let letter = |transposed: bool| if transposed { 't' } else { 'n' };
            let name = format!("matmul_{}{}{}_{dtype}", letter(a), letter(b), letter(c));
            cases.add(name, Product::new(12, 20, 8, dtype).transposed(a, b, c).alone());
        }
        for (rows, inner, columns) in [
            (7, 13, 5),
            (1, 33, 9),
            (9, 33, 1),
            (6, 1, 10),
            (1, 1, 1),
            (64, 64, 64),
            (3, 257, 2),
        ] {
            let name = format!("matmul_{rows}x{inner}x{columns}_{dtype}");
            cases.add(name, Product::new(rows, inner, columns, dtype).alone());
        }
        let small = Product::new(4, 6, 5, dtype);
        cases.add(
            format!("matmul_batch_{dtype}"),
            small.clone().batched(&[3], &[3]).alone(),
        );
        cases.add(
            format!("matmul_heads_{dtype}"),
            small
                .clone()
                .batched(&[2, 3], &[2, 3])
                .transposed(false, true, false)
                .alone(),
        );
        // Batched, with ends that coincide with no step of a matrix core: the memory behind them
        // belongs to another matrix.
        for (name, a, b) in [("nn", false, false), ("tn", true, false), ("tt", true, true)] {
            let name = format!("matmul_batch_odd_{name}_{dtype}");
            let odd = Product::new(5, 7, 3, dtype).batched(&[3], &[3]);
            cases.add(name, odd.transposed(a, b, false).alone());
        }
        cases.add(
            format!("matmul_broadcast_a_{dtype}"),
            small.clone().batched(&[1], &[4]).alone(),
        );
        cases.add(
            format!("matmul_broadcast_b_{dtype}"),
            small.clone().batched(&[4], &[1]).alone(),
        );
        cases.add(
            format!("matmul_repeat_a_{dtype}"),
            small.clone().batched(&[2], &[6]).alone(),
        );
        cases.add(format!("matmul_repeat_b_{dtype}"), small.batched(&[6], &[3]).alone());
    }
    let small = Product::new(4, 6, 5, F32);
    cases.add("matmul_repeat_both", small.clone().batched(&[6, 2], &[2, 4]).alone());
    cases.add(
        "matmul_repeat_transposed",
        small
            .clone()
            .batched(&[2, 1], &[4, 3])
            .transposed(true, true, true)
            .alone(),
    );
    cases.add("matmul_rank5", small.clone().batched(&[2, 1, 3], &[1, 2, 3]).alone());
    cases.add(
        "matmul_rank6",
        small.clone().batched(&[2, 1, 2, 2], &[2, 2, 1, 2]).alone(),
    );
    for (name, types) in [
        ("f64", [F64; 4]),
        ("i8", [I8, I8, I32, I32]),
        ("i8_saturating", [I8, I8, I8, I32]),
        ("f16_to_f32", [F16, F16, F32, F32]),
        ("bf16_to_f32", [Bf16, Bf16, F32, F32]),
        ("f32_to_f16", [F32, F32, F16, F32]),
        ("f16_by_f32", [F16, F32, F32, F32]),
        ("f16_in_f16", [F16; 4]),
        ("i8_in_f32", [I8, F32, F32, F32]),
        ("f32_by_bf16_in_f64", [F32, Bf16, F64, F64]),
    ] {
        cases.add(
            format!("matmul_types_{name}"),
            Product::new(10, 24, 6, F32).types(types).alone(),
        );
        cases.add(
            format!("matmul_types_{name}_nt"),
            Product::new(5, 16, 7, F32)
                .types(types)
                .batched(&[2], &[2])
                .transposed(false, true, false)
                .alone(),
        );
    }
    for (rows, inner, columns) in [(8, 6, 16), (8, 16, 6), (6, 8, 16), (16, 6, 8)] {
        for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
            let letter = |transposed: bool| if transposed { 't' } else { 'n' };
            let name = format!("matmul_i8_{rows}x{inner}x{columns}_{}{}", letter(a), letter(b));
            let product = Product::new(rows, inner, columns, I8).types([I8, I8, I32, I32]);
            cases.add(name, product.batched(&[4], &[4]).transposed(a, b, false).alone());
        }
    }
    // Rows with gaps in all three tensors.
    let mut b = GraphBuilder::new("matmul with gaps");
    let x = b.tensor("a", F32, &[2, 5, 6], &[70, 9, 1], TensorKind::Buffer);
    let w = b.tensor("b", F32, &[2, 6, 4], &[61, 10, 2], TensorKind::Buffer);
    let c = b.tensor("c", F32, &[2, 5, 4], &[40, 7, 1], TensorKind::Buffer);
    b.node("matmul", F32, Matmul { a: x, b: w, c });
    cases.add("matmul_gaps", b.build());
    // Regular enough for rotini's tiled kernels.
    for dtype in [F16, Bf16] {
        for (rows, inner, columns) in [(2048, 64, 1280), (1024, 128, 1280)] {
            let product = Product::new(rows, inner, columns, dtype).transposed(false, true, false);
            let name = format!("matmul_tiled_{rows}x{inner}x{columns}_{dtype}");
            cases.add(name.clone(), product.alone());
            cases.add(format!("{name}_batch"), product.clone().batched(&[1], &[1]).alone());
            cases.add(
                format!("{name}_out"),
                product.clone().transposed(false, true, true).alone(),
            );
            cases.add(format!("{name}_gelu"), product.fused(PointwiseMode::GeluFwd));
        }
    }
    // A vector times a matrix that is large enough to be copied.
    for dtype in [F16, Bf16] {
        for (name, rows, columns, [a, b]) in [("row", 1, 1000, [false, false]), ("column", 1000, 1, [true, false])] {
            let product = Product::new(rows, 768, columns, dtype).transposed(a, b, false);
            cases.add(format!("matmul_vector_{name}_{dtype}"), product.alone());
        }
    }
    // Long sums of f32. A CPU reads the first in place, and adds the others in blocks.
    for (rows, inner, columns) in [(1, 4096, 24), (9, 517, 3), (8, 1000, 37), (10, 16397, 6), (57, 768, 66)] {
        let product = Product::new(rows, inner, columns, F32).transposed(false, true, false);
        cases.add(format!("matmul_long_{rows}x{inner}x{columns}_nt_f32"), product.alone());
    }
    for (rows, inner, columns) in [(20, 1536, 33), (70, 3584, 68), (3, 768, 20), (5, 5120, 7)] {
        let product = Product::new(rows, inner, columns, F32);
        let name = format!("matmul_long_{rows}x{inner}x{columns}_nn_f32");
        cases.add(name.clone(), product.alone());
        cases.add(format!("{name}_gelu"), product.fused(PointwiseMode::GeluFwd));
    }
    // Few rows, which a CPU multiplies by rows of the matrix in place.
    for (rows, inner, columns) in [(1, 768, 1000), (7, 1030, 131), (1, 20, 4200), (3, 5, 64)] {
        let product = Product::new(rows, inner, columns, F32);
        cases.add(format!("matmul_lines_{rows}x{inner}x{columns}_f32"), product.alone());
    }
    // Few rows or columns of f16 and odd sums: IREE 3.13 for gfx942 fails to compile the code that
    // it generates for a thread.
    for (rows, inner, columns) in [(72, 7, 2), (100, 25, 3), (2, 77, 100)] {
        let product = Product::new(rows, inner, columns, F16);
        cases.add(format!("matmul_thin_{rows}x{inner}x{columns}_f16"), product.alone());
    }
    let product = Product::new(8, 7, 2, F16).batched(&[9], &[1]);
    cases.add("matmul_thin_batch_f16", product.alone());
    // The same with FNUZ codes: there the code reads shared memory beyond the workgroup's.
    for (rows, inner, columns, a) in [(2, 7, 132, true), (132, 10, 3, true), (4, 9, 100, false)] {
        let codes = if a { F8E4M3Fnuz } else { F8E5M2Fnuz };
        let product = Product::new(rows, inner, columns, codes).types([codes, codes, F32, F32]);
        cases.add(
            format!("matmul_thin_{rows}x{inner}x{columns}_fnuz"),
            product.transposed(a, !a, false).alone(),
        );
    }
    // A result with batches innermost, and no whole tiles: IREE 3.13 for gfx942 generates a scatter
    // that it does not lower.
    for (dtype, extents) in [(F16, [12, 20, 8, 24]), (F32, [9, 17, 16, 20]), (F64, [5, 17, 16, 20])] {
        let [batch, rows, inner, columns] = extents;
        for fused in [false, true] {
            let mut b = GraphBuilder::new("matmul with its batches innermost");
            let x = b.buffer("a", dtype, &[batch, rows, inner]);
            let w = b.buffer("b", dtype, &[batch, inner, columns]);
            let dims = [batch, rows, columns];
            let y = b.tensor("y", dtype, &dims, &[1, columns * batch, batch], TensorKind::Buffer);
            let compute = if dtype == F64 { F64 } else { F32 };
            if fused {
                let c = b.virtual_tensor("c", compute, &dims);
                b.node("matmul", compute, Matmul { a: x, b: w, c });
                b.pointwise(compute, PointwiseMode::Abs, &[c], y);
            } else {
                b.node("matmul", compute, Matmul { a: x, b: w, c: y });
            }
            let fused = if fused { "_abs" } else { "" };
            cases.add(format!("matmul_batches_innermost{fused}_{dtype}"), b.build());
        }
    }
    // A matrix that is broadcast by stride 0 instead of by its extent.
    let mut b = GraphBuilder::new("matmul with a repeated operand");
    let x = b.buffer("a", F32, &[3, 5, 6]);
    let w = b.tensor("b", F32, &[3, 6, 4], &[0, 4, 1], TensorKind::Buffer);
    let c = b.buffer("c", F32, &[3, 5, 4]);
    b.node("matmul", F32, Matmul { a: x, b: w, c });
    cases.add("matmul_stride0", b.build());
    // One tensor as both operands.
    let mut b = GraphBuilder::new("square");
    let x = b.buffer("x", F32, &[7, 7]);
    let c = b.buffer("c", F32, &[7, 7]);
    b.node("matmul", F32, Matmul { a: x, b: x, c });
    cases.add("matmul_square", b.build());
}

/// A product in f16, computed in f32, with a virtual bf16 operand: it must be rounded to its own
/// type, which has fewer bits than the compute type.
pub(super) fn in_half(cases: &mut Cases) {
    use DataType::{Bf16, F16, F32};
    let dims = [1, 24, 1];
    let mut b = GraphBuilder::new("a product in f16 of bf16");
    let [x, y] = ["x", "y"].map(|name| b.buffer(name, Bf16, &dims));
    let product = b.virtual_tensor("product", Bf16, &dims);
    b.pointwise(F32, PointwiseMode::Mul, &[x, y], product);
    let w = b.buffer("w", Bf16, &[1, 1, 18]);
    let out = b.buffer("out", F32, &[1, 24, 18]);
    let op = Matmul {
        a: product,
        b: w,
        c: out,
    };
    b.node("matmul", F16, op);
    cases.add("matmul_in_f16_of_virtual_bf16", b.build());
}

pub(super) fn fused(cases: &mut Cases) {
    for dtype in FLOATS {
        for activation in [PointwiseMode::ReluFwd, PointwiseMode::GeluFwd, PointwiseMode::SwishFwd] {
            let name = format!("matmul_bias_{}_{dtype}", activation.name().to_lowercase());
            cases.add(name, Product::new(12, 32, 16, dtype).fused(activation));
        }
        let heads = Product::new(6, 16, 10, dtype)
            .batched(&[2, 3], &[2, 1])
            .transposed(false, true, false);
        cases.add(
            format!("matmul_heads_bias_gelu_{dtype}"),
            heads.fused(PointwiseMode::GeluApproxTanhFwd),
        );

        // Two products with an activation between, and a residual after them.
        let mut b = GraphBuilder::new("mlp");
        let x = b.buffer("x", dtype, &[9, 16]);
        let up = b.buffer("up", dtype, &[16, 24]);
        let down = b.buffer("down", dtype, &[24, 16]);
        let [wide, active] = ["wide", "active"].map(|name| b.virtual_tensor(name, DataType::F32, &[9, 24]));
        let narrow = b.virtual_tensor("narrow", DataType::F32, &[9, 16]);
        let y = b.buffer("y", dtype, &[9, 16]);
        b.node("up", DataType::F32, Matmul { a: x, b: up, c: wide });
        b.pointwise(DataType::F32, PointwiseMode::ReluFwd, &[wide], active);
        b.node(
            "down",
            DataType::F32,
            Matmul {
                a: active,
                b: down,
                c: narrow,
            },
        );
        b.pointwise(DataType::F32, PointwiseMode::Add, &[narrow, x], y);
        cases.add(format!("mlp_{dtype}"), b.build());
    }
    // An integer product that is scaled in f32.
    let mut b = GraphBuilder::new("quantised matmul");
    let x = b.buffer("x", DataType::I8, &[8, 32]);
    let w = b.buffer("w", DataType::I8, &[32, 12]);
    let sum = b.virtual_tensor("sum", DataType::I32, &[8, 12]);
    let scale = b.constant("scale", DataType::F32, &[1, 1], Scalar::float(0.0625));
    let y = b.buffer("y", DataType::I8, &[8, 12]);
    b.node("matmul", DataType::I32, Matmul { a: x, b: w, c: sum });
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[sum, scale], y);
    cases.add("matmul_quantised", b.build());
    // A scale applied to an operand.
    let mut b = GraphBuilder::new("scaled matmul");
    let x = b.buffer("x", DataType::F16, &[2, 6, 16]);
    let scale = b.buffer("scale", DataType::F16, &[2, 1, 16]);
    let w = b.buffer("w", DataType::F16, &[1, 16, 5]);
    let scaled = b.virtual_tensor("scaled", DataType::F32, &[2, 6, 16]);
    let y = b.buffer("y", DataType::F16, &[2, 6, 5]);
    b.pointwise(DataType::F32, PointwiseMode::Mul, &[x, scale], scaled);
    b.node("matmul", DataType::F32, Matmul { a: scaled, b: w, c: y });
    cases.add("matmul_scaled_operand", b.build());
    // The product divided by the largest magnitude of each row of x; the rows do not fill tiles.
    let mut b = GraphBuilder::new("matmul over row maxima");
    let x = b.buffer("x", DataType::F32, &[2, 9, 13]);
    let w = b.buffer("w", DataType::F32, &[2, 13, 8]);
    let largest = b.virtual_tensor("largest", DataType::F32, &[2, 9, 1]);
    let product = b.virtual_tensor("product", DataType::F32, &[2, 9, 8]);
    let y = b.buffer("y", DataType::F32, &[2, 9, 8]);
    let reduction = Reduction::new(ReductionMode::Amax, x, largest);
    b.node("largest", DataType::F32, reduction);
    b.node("matmul", DataType::F32, Matmul { a: x, b: w, c: product });
    b.pointwise(DataType::F32, PointwiseMode::Div, &[product, largest], y);
    cases.add("matmul_over_row_maxima", b.build());
}
