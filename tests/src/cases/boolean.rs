//! Truth values: masks of attention, comparisons and selections, conversions, reductions, scalars,
//! memory orders.
//!
//! Half of an input's bytes are nonzero, and some of these are not 1: 2, 0x80 and 0xFF are true as
//! well. Stored results are 0 or 1.

use super::attention::Attention;
use super::case::{Cases, Data, Order};
use super::pointwise::packed;
use super::scalar::scalar;
use crate::modes::integer_modes;
use anyhow::Result;
use rotini_graph::DataType::{self, Bf16, Bool, F16, F32, F64, I4, I8, I32, I64, U8};
use rotini_graph::{
    DiagonalAlignment, GraphBuilder, PointwiseMode as M, Reduction, ReductionMode, Scalar, Sdpa, TensorKind,
};
use rotini_reference::Profile;

const COMPARISONS: [M; 6] = [M::CmpEq, M::CmpGe, M::CmpGt, M::CmpLe, M::CmpLt, M::CmpNeq];
const LOGICAL: [M; 3] = [M::LogicalAnd, M::LogicalNot, M::LogicalOr];

/// Adds all of them.
pub(super) fn all(cases: &mut Cases) {
    masks(cases);
    modes(cases);
    conversions(cases);
    chains(cases);
    reductions(cases);
    scalars(cases);
    layouts(cases);
}

/// Adds the masks that PyTorch passes (of keys, of scores, of all heads), with attentions that use
/// different kernels.
fn masks(cases: &mut Cases) {
    let mut add = |name: String, attention: &Attention, is_backward: bool| {
        cases.add(format!("bool_sdpa_{name}"), attention.forward(true));
        if is_backward {
            cases.add(format!("bool_sdpa_backward_{name}"), attention.backward());
        }
    };
    for dtype in [F32, F16, Bf16] {
        // With scores in memory; in the lanes of a CPU, where one query's mask applies to all
        // queries; in rotini's kernels for MI300.
        let kinds = [
            ("small", Attention::new(2, 3, [9, 13], 8, dtype)),
            ("scheduled", Attention::new(2, 2, [130, 130], 64, dtype)),
            ("lanes", Attention::new(2, 2, [33, 130], 16, dtype)),
            ("tiled", Attention::new(2, 2, [32, 48], 32, dtype)),
            ("one_query", Attention::new(2, 2, [1, 72], 64, dtype)),
        ];
        for (name, plain) in kinds.into_iter().take(if dtype == Bf16 { 2 } else { 5 }) {
            let [queries, keys] = plain.lengths;
            let heads = plain.heads[0];
            for (shape, dims) in [
                ("keys", vec![2, 1, 1, keys]),
                ("scores", vec![1, 1, queries, keys]),
                ("all", vec![2, heads, queries, keys]),
            ] {
                let masked = plain.with(|op| (op.mask, op.truths) = (Some(dims), true));
                let is_backward = ["small", "scheduled"].contains(&name);
                add(format!("{name}_{shape}_{dtype}"), &masked, is_backward);
            }
        }
    }
    let plain = Attention::new(1, 2, [9, 13], 8, F32).with(|op| op.truths = true);
    let masked = |dims: &[i64]| plain.with(|op| op.mask = Some(dims.to_vec()));
    add("row".to_owned(), &masked(&[13]), true);
    add("matrix".to_owned(), &masked(&[9, 13]), true);
    // A mask of whole rows.
    add("rows".to_owned(), &masked(&[1, 2, 9, 1]), true);
    add("heads".to_owned(), &masked(&[2, 1, 1]), true);
    let causal = masked(&[9, 13]).with(|op| op.right = Some(0));
    add("causal".to_owned(), &causal, true);
    let corner = causal.with(|op| op.alignment = DiagonalAlignment::BottomRight);
    add("bottom_right".to_owned(), &corner, true);
    let padded = masked(&[3, 1, 9, 13]).with(|op| (op.batch, op.padding) = (3, true));
    add("padding".to_owned(), &padded, true);
    let gqa = masked(&[1, 4, 9, 13]).with(|op| op.heads = [4, 2, 2]);
    add("gqa".to_owned(), &gqa, true);
    let double = Attention::new(1, 2, [9, 13], 8, F64);
    let double = double.with(|op| (op.compute, op.truths, op.mask) = (F64, true, Some(vec![1, 1, 9, 13])));
    add("f64".to_owned(), &double, true);
    // Without statistics other kernels may be chosen.
    for dtype in [F32, F16, Bf16] {
        let tiled = Attention::new(2, 2, [32, 48], 32, dtype);
        let tiled = tiled.with(|op| (op.mask, op.truths) = (Some(vec![2, 1, 1, 48]), true));
        cases.add(format!("bool_sdpa_without_statistics_{dtype}"), tiled.forward(false));
    }
    let sink = masked(&[9, 13]).with(|op| op.sink = true);
    cases.add("bool_sdpa_sink", sink.forward(true));
}

/// Adds pointwise operations with results or operands that are truth values.
fn modes(cases: &mut Cases) {
    let dims = [4, 33];
    for mode in COMPARISONS {
        let types = [
            (F32, F32),
            (I32, I32),
            (F16, F32),
            (Bf16, F32),
            (F64, F64),
            (I64, I64),
            (U8, F32),
        ];
        let count = if mode == M::CmpGt { types.len() } else { 2 };
        for (dtype, compute) in types.into_iter().take(count) {
            let graph = packed(mode, &[dtype], Bool, compute, &dims);
            cases.add(format!("bool_{}_of_{dtype}", mode.name()), graph);
        }
        for compute in [F32, I32] {
            let graph = packed(mode, &[Bool], Bool, compute, &dims);
            cases.add(format!("bool_{}_in_{compute}", mode.name()), graph);
        }
    }
    for mode in LOGICAL {
        for compute in [F32, F16, F64, I32, I64] {
            let graph = packed(mode, &[Bool], Bool, compute, &dims);
            cases.add(format!("bool_{}_in_{compute}", mode.name()), graph);
        }
        cases.add(
            format!("bool_{}_of_f32", mode.name()),
            packed(mode, &[F32], Bool, F32, &dims),
        );
        cases.add(
            format!("bool_{}_to_f32", mode.name()),
            packed(mode, &[Bool], F32, F32, &dims),
        );
    }
    for (dtype, compute) in [
        (F32, F32),
        (F16, F32),
        (Bf16, F32),
        (F64, F64),
        (I8, I32),
        (I32, I32),
        (I64, I64),
        (Bool, I32),
    ] {
        let graph = packed(M::BinarySelect, &[dtype, dtype, Bool], dtype, compute, &dims);
        cases.add(format!("bool_select_{dtype}"), graph);
    }
    // Single elements, which a selection in i32 reads separately.
    let single = packed(M::BinarySelect, &[Bool, I32, Bool], I32, I32, &[1, 1]);
    cases.add("bool_select_single", single);
    // All other arithmetic reads truth values as 0 and 1. Divisors may not be 0, and GEN_INDEX
    // reads no element.
    let others = [M::BinarySelect, M::Div, M::GenIndex, M::Identity];
    let is_other = |mode: &&M| {
        [&others[..], &COMPARISONS, &LOGICAL]
            .iter()
            .all(|list| !list.contains(mode))
    };
    for &mode in integer_modes().iter().filter(is_other) {
        cases.add(
            format!("bool_{}_to_f32", mode.name()),
            packed(mode, &[Bool], F32, F32, &dims),
        );
        cases.add(
            format!("bool_{}_to_i32", mode.name()),
            packed(mode, &[Bool], I32, I32, &dims),
        );
        cases.add(
            format!("bool_{}_to_bool", mode.name()),
            packed(mode, &[Bool], Bool, F32, &dims),
        );
    }
    for mode in [M::Exp, M::SigmoidFwd, M::GeluFwd, M::TanhFwd] {
        cases.add(
            format!("bool_{}_to_f16", mode.name()),
            packed(mode, &[Bool], F16, F32, &dims),
        );
    }
    let mut broadcast = GraphBuilder::new("broadcast");
    let x = broadcast.buffer("x", F16, &[2, 5, 3, 7]);
    let other = broadcast.constant("other", F32, &[1, 1, 1, 1], Scalar::float(-1.5));
    let mask = broadcast.buffer("mask", Bool, &[1, 5, 1, 1]);
    let y = broadcast.buffer("y", F16, &[2, 5, 3, 7]);
    broadcast.pointwise(F32, M::BinarySelect, &[x, other, mask], y);
    cases.add("bool_select_broadcast", broadcast.build());
}

/// Adds conversions to and from every type, in every compute type that holds both.
fn conversions(cases: &mut Cases) {
    for &dtype in &DataType::ALL {
        let in_integers: &[DataType] = if dtype.is_integer() { &[I32, I64] } else { &[] };
        let in_floats: &[DataType] = if dtype == F64 { &[F64, F32] } else { &[F32] };
        for &compute in in_floats.iter().chain(in_integers) {
            // For packed types, extents that fill whole bytes and extents that do not.
            let shapes = [[3, 17], [8, 32]];
            for dims in shapes.into_iter().take(if dtype.is_packed() { 2 } else { 1 }) {
                let [rows, columns] = dims;
                let shape = format!("{rows}x{columns}_in_{compute}");
                let from = packed(M::Identity, &[Bool], dtype, compute, &dims);
                cases.add(format!("bool_to_{dtype}_{shape}"), from);
                if dtype != Bool {
                    let to = packed(M::Identity, &[dtype], Bool, compute, &dims);
                    cases.add(format!("bool_from_{dtype}_{shape}"), to);
                }
            }
        }
    }
}

/// Adds chains with intermediate truth values, stored or virtual.
fn chains(cases: &mut Cases) {
    for (name, kind) in [("virtual", TensorKind::Virtual), ("stored", TensorKind::Buffer)] {
        for (dtype, compute) in [(F32, F32), (F16, F32), (I32, I32)] {
            let mut b = GraphBuilder::new("chain");
            let dims = [6, 40];
            let [x, y] = ["x", "y"].map(|name| b.buffer(name, dtype, &dims));
            let flag = |b: &mut GraphBuilder, name: &str| b.tensor(name, Bool, &dims, &[40, 1], kind);
            let (above, not, both) = (flag(&mut b, "above"), flag(&mut b, "not"), flag(&mut b, "both"));
            let mask = b.buffer("mask", Bool, &dims);
            let z = b.buffer("z", dtype, &dims);
            b.pointwise(compute, M::CmpGt, &[x, y], above);
            b.pointwise(compute, M::LogicalNot, &[mask], not);
            b.pointwise(compute, M::LogicalAnd, &[above, not], both);
            b.pointwise(compute, M::BinarySelect, &[x, y, both], z);
            cases.add(format!("bool_chain_{name}_{dtype}"), b.build());
        }
        // A conversion inside the graph: 0.5 is true; and a computed mask hides keys.
        let mut b = GraphBuilder::new("halves");
        let x = b.buffer("x", F32, &[6, 40]);
        let t = b.tensor("t", Bool, &[6, 40], &[40, 1], kind);
        let y = b.buffer("y", F32, &[6, 40]);
        b.pointwise(F32, M::Identity, &[x], t);
        b.pointwise(F32, M::Add, &[t, t], y);
        cases.add(format!("bool_halves_{name}"), b.build());
    }
    for dtype in [F32, F16] {
        // A mask that is computed.
        let mut b = GraphBuilder::new("computed");
        let [q, k, v, o] = ["q", "k", "v", "o"].map(|name| b.buffer(name, dtype, &[2, 2, 32, 32]));
        let [x, y] = ["x", "y"].map(|name| b.buffer(name, I32, &[1, 1, 32, 32]));
        let mask = b.virtual_tensor("mask", Bool, &[1, 1, 32, 32]);
        b.pointwise(I32, M::CmpGe, &[x, y], mask);
        let op = Sdpa {
            attn_mask: Some(mask),
            attn_scale_value: Some(0.25),
            ..Sdpa::new(q, k, v, o)
        };
        b.node("sdpa", F32, Box::new(op));
        cases.add(format!("bool_sdpa_computed_{dtype}"), b.build());
    }
}

/// Adds reductions of all modes, along the innermost axis, another one, and all axes.
fn reductions(cases: &mut Cases) {
    use ReductionMode::{Add, Amax, Avg, Max, Min, Mul, MulNoZeros, Norm1, Norm2};
    let mut reduce = |name: String, mode, [from, to, compute]: [DataType; 3], dims: &[i64], out: &[i64]| {
        let mut b = GraphBuilder::new("reduce");
        let input = b.buffer("x", from, dims);
        let output = b.buffer("y", to, out);
        b.node("reduce", compute, Reduction::new(mode, input, output));
        cases.add(name, b.build());
    };
    for mode in [Add, Avg, Max, Min, Amax, Norm1, Norm2, Mul, MulNoZeros] {
        for (axis, out) in [("rows", [6, 1]), ("columns", [1, 70]), ("whole", [1, 1])] {
            let name = |types: &str| format!("bool_reduce_{mode:?}_{axis}_{types}");
            reduce(name("f32"), mode, [Bool, F32, F32], &[6, 70], &out);
            if matches!(mode, Avg | Norm2) {
                continue;
            }
            reduce(name("i32"), mode, [Bool, I32, I32], &[6, 70], &out);
            if axis == "rows" {
                reduce(name("bool"), mode, [Bool, Bool, F32], &[6, 70], &out);
                reduce(name("bool_in_i64"), mode, [Bool, Bool, I64], &[6, 70], &out);
            }
        }
    }
    // The number of true elements in long rows, and whether any is true.
    reduce(
        "bool_count_4x4100".to_owned(),
        Add,
        [Bool, I32, I32],
        &[4, 4100],
        &[4, 1],
    );
    reduce(
        "bool_count_4x4100_f32".to_owned(),
        Add,
        [Bool, F32, F32],
        &[4, 4100],
        &[4, 1],
    );
    reduce("bool_any_300x4".to_owned(), Max, [Bool, Bool, F32], &[300, 4], &[1, 4]);
    reduce("bool_any_of_i8".to_owned(), Amax, [I8, Bool, I32], &[6, 70], &[6, 1]);
    reduce("bool_any_of_f16".to_owned(), Norm1, [F16, Bool, F32], &[6, 70], &[6, 1]);
}

/// Adds scalars: passed at execution, and constants in the graph.
fn scalars(cases: &mut Cases) {
    for (mode, dtype, compute) in [(M::Mul, F32, F32), (M::CmpEq, Bool, I32), (M::LogicalOr, Bool, F32)] {
        let mut b = GraphBuilder::new("scalar");
        let x = b.buffer("x", dtype, &[3, 5, 7]);
        let s = scalar(&mut b, "s", Bool, 3);
        let y = b.buffer("y", dtype, &[3, 5, 7]);
        b.pointwise(compute, mode, &[x, s], y);
        cases.add(format!("bool_scalar_{}_{dtype}", mode.name()), b.build());
    }
    for value in [0, 1] {
        for (mode, operand) in [(M::Mul, F32), (M::LogicalAnd, Bool), (M::BinarySelect, F16)] {
            let mut b = GraphBuilder::new("constant");
            let x = b.buffer("x", operand, &[3, 40]);
            let s = b.constant("s", Bool, &[1, 1], Scalar::Integer(value));
            let y = b.buffer("y", operand, &[3, 40]);
            match mode {
                M::BinarySelect => {
                    let other = b.buffer("other", operand, &[3, 40]);
                    b.pointwise(F32, mode, &[x, other, s], y);
                }
                _ => _ = b.pointwise(F32, mode, &[x, s], y),
            }
            cases.add(format!("bool_constant_{value}_{}", mode.name()), b.build());
        }
    }
    // A mask that is passed by value hides either all keys or none.
    let mut graph = Attention::new(1, 2, [9, 13], 8, F32)
        .with(|op| (op.mask, op.truths) = (Some(vec![1, 1, 1, 1]), true))
        .forward(true);
    for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == "mask") {
        tensor.kind = TensorKind::RuntimeScalar;
    }
    cases.add("bool_sdpa_scalar", graph.clone());
    for value in [0, 1] {
        for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == "mask") {
            tensor.kind = TensorKind::Constant(Scalar::Integer(value));
        }
        cases.add(format!("bool_sdpa_constant_{value}"), graph.clone());
    }
}

/// Adds layouts: channels last, gaps in operands and results, repeated elements.
fn layouts(cases: &mut Cases) {
    for order in Order::BOTH {
        let mut b = GraphBuilder::new("orders");
        let x = order.buffer(&mut b, "x", F32, &[2, 5, 3, 7]);
        let mask = b.buffer("mask", Bool, &[2, 5, 3, 7]);
        let y = order.buffer(&mut b, "y", Bool, &[2, 5, 3, 7]);
        b.pointwise(F32, M::CmpLe, &[x, mask], y);
        cases.add(format!("bool_order_{}", order.name()), b.build());
    }
    for (name, of_mask, of_result) in [
        ("gaps", [12, 2], [10, 1]),
        ("repeated", [0, 1], [8, 1]),
        ("one_for_all", [0, 0], [9, 1]),
    ] {
        let mut b = GraphBuilder::new("gaps");
        let x = b.buffer("x", F32, &[4, 8]);
        let mask = b.tensor("mask", Bool, &[4, 8], &of_mask, TensorKind::Buffer);
        let y = b.tensor("y", Bool, &[4, 8], &of_result, TensorKind::Buffer);
        b.pointwise(F32, M::CmpGe, &[x, mask], y);
        cases.add(format!("bool_{name}"), b.build());
    }
    // With the strides of PyTorch's `expand`.
    for (name, strides) in [
        ("keys", [13, 0, 0, 1]),
        ("scores", [0, 0, 13, 1]),
        ("gaps", [400, 200, 20, 1]),
    ] {
        for dtype in [F32, F16] {
            let mut graph = Attention::new(2, 2, [9, 13], 8, dtype)
                .with(|op| (op.mask, op.truths) = (Some(vec![2, 2, 9, 13]), true))
                .forward(true);
            for tensor in graph.tensors.iter_mut().filter(|tensor| tensor.name == "mask") {
                tensor.strides = strides.to_vec();
            }
            cases.add(format!("bool_sdpa_expanded_{name}_{dtype}"), graph);
        }
    }
    let four_bits = packed(M::CmpGt, &[I4], Bool, I32, &[5, 7]);
    cases.add("bool_of_shared_bytes", four_bits);
}

/// Returns data with NaN and zeros of both signs: a NaN is true, and a zero is false, whatever its
/// sign.
pub(super) fn edges() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for dtype in [F32, F16, Bf16, F64, DataType::F8E5M2, DataType::F8E4M3Fnuz] {
        let compute = if dtype == F64 { F64 } else { F32 };
        for mode in [M::Identity, M::LogicalNot, M::CmpEq, M::CmpNeq, M::CmpLt] {
            let graph = packed(mode, &[dtype], Bool, compute, &[24, 33]);
            let name = format!("bool_edges_{}_{dtype}", mode.name());
            let filled = Data::filled(name, graph, "in_0", Profile::Edge)?;
            data.push(if mode.arity() == 2 {
                filled.and("in_1", Profile::Edge)?
            } else {
                filled
            });
        }
    }
    Ok(data)
}
