//! Minimal ranks and extents: matmuls of operands of unequal ranks, and reductions along axes of
//! one element.

use super::case::{Case, Cases, Data, Order};
use super::reduction::{MODES, alone, name_of, softmax};
use crate::harness::inputs::fill;
use anyhow::{Context as _, Result};
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, PointwiseMode, ReductionMode};

fn product(types: [DataType; 2], a: &[i64], b: &[i64], fused: bool) -> Graph {
    let mut c = vec![1; a.len().max(b.len())];
    for dims in [a, b] {
        for (extent, dim) in c.iter_mut().rev().zip(dims.iter().rev()) {
            *extent = *dim.max(extent);
        }
    }
    let [.., rows, columns] = c.as_mut_slice() else {
        unreachable!("matrices have two axes");
    };
    (*rows, *columns) = (a[a.len() - 2], b[b.len() - 1]);
    let [dtype, compute] = types;
    let mut builder = GraphBuilder::new("matmul");
    let a = builder.buffer("a", dtype, a);
    let b = builder.buffer("b", dtype, b);
    let out = if fused {
        let product = builder.virtual_tensor("product", compute, &c);
        let y = builder.buffer("y", dtype, &c);
        builder.pointwise(compute, PointwiseMode::ReluFwd, &[product], y);
        product
    } else {
        builder.buffer("c", dtype, &c)
    };
    builder.node("matmul", compute, Matmul { a, b, c: out });
    builder.build()
}

pub(super) fn ranks(cases: &mut Cases) {
    use DataType::{Bf16, F16, F32, F64};
    let shapes: [(&str, &[i64], &[i64]); 7] = [
        ("3x2", &[3, 5, 8], &[8, 6]),
        ("2x3", &[5, 8], &[3, 8, 6]),
        ("4x2", &[2, 3, 4, 8], &[8, 6]),
        ("4x3", &[2, 3, 4, 8], &[3, 8, 6]),
        ("3x4_repeated", &[2, 4, 8], &[5, 4, 8, 3]),
        ("tiles_3x2", &[2, 64, 96], &[96, 128]),
        ("tiles_2x4", &[128, 64], &[2, 3, 64, 64]),
    ];
    for (name, a, b) in shapes {
        for (dtype, compute) in [(F32, F32), (F16, F32), (Bf16, F32), (F64, F64)] {
            cases.add(
                format!("ranks_matmul_{name}_{dtype}"),
                product([dtype, compute], a, b, false),
            );
        }
        cases.add(format!("ranks_matmul_{name}_relu"), product([F16, F32], a, b, true));
    }
}

pub(super) fn single(cases: &mut Cases) {
    use DataType::{F16, F32, I8, I32};
    for mode in MODES {
        let name = name_of(mode);
        for dtype in [F32, F16] {
            let graph = alone(mode, [dtype, dtype, F32], &[4, 7, 1], &[4, 7, 1], Order::First);
            cases.add(format!("single_reduce_{name}_{dtype}"), graph);
        }
        // A reduced axis of one element beside a longer one.
        let graph = alone(mode, [F32; 3], &[4, 1, 7, 5], &[4, 1, 1, 5], Order::Last);
        cases.add(format!("single_reduce_{name}_beside"), graph);
        if !matches!(mode, ReductionMode::Avg | ReductionMode::Norm2) {
            let graph = alone(mode, [I8, I32, I32], &[6, 1], &[6, 1], Order::First);
            cases.add(format!("single_reduce_{name}_i8"), graph);
        }
    }
    for dims in [&[3, 1][..], &[2, 5, 1], &[1, 1]] {
        for dtype in [F32, F16] {
            let extents: Vec<String> = dims.iter().map(i64::to_string).collect();
            cases.add(
                format!("single_softmax_{}_{dtype}", extents.join("x")),
                softmax(dtype, dims),
            );
        }
    }
}

/// Returns rows of only NaN, of NaN and one number, and of infinities, for operations that ignore
/// NaN. The rows alternate between these.
pub(super) fn rows_of_nan() -> Result<Vec<Data>> {
    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;
    use DataType::{Bf16, F16, F32, F64};
    /// The first number of a row, and the number that fills the rest of it.
    const ROWS: [[f64; 2]; 7] = [
        [NAN, NAN],
        [-INF, NAN],
        [INF, NAN],
        [-INF, -INF],
        [INF, INF],
        [-2.5, NAN],
        [NAN, 1.5],
    ];
    let mut data = Vec::new();
    for mode in [ReductionMode::Max, ReductionMode::Min, ReductionMode::Amax] {
        for [dtype, compute] in [[F32, F32], [F16, F32], [Bf16, F32], [F16, F16], [F32, Bf16], [F64, F64]] {
            // Short rows, rows longer than a lane holds, and longer than all lanes hold; along an
            // axis that is not innermost; a single row.
            for (from, axis) in [
                (vec![7, 3], 1),
                (vec![14, 300], 1),
                (vec![7, 40_000], 1),
                (vec![300, 7], 0),
                (vec![7, 1], 1),
            ] {
                let mut to = from.clone();
                to[axis] = 1;
                let graph = alone(mode, [dtype, dtype, compute], &from, &to, Order::First);
                let mut inputs = fill(&graph)?;
                let mut bytes = Vec::new();
                for position in 0..from[0] * from[1] {
                    let place = [position / from[1], position % from[1]];
                    let row = usize::try_from(place[1 - axis])? % ROWS.len();
                    let number = ROWS[row][usize::from(place[axis] > 0)];
                    // bf16 takes the upper half of the f32's bits; f16 has its own bits.
                    let single = (number as f32).to_bits();
                    match dtype {
                        F16 => bytes.extend(half_bits(number).to_le_bytes()),
                        Bf16 => bytes.extend_from_slice(&single.to_le_bytes()[2..]),
                        F64 => bytes.extend(number.to_le_bytes()),
                        _ => bytes.extend(single.to_le_bytes()),
                    }
                }
                let x = graph.tensors.iter().find(|tensor| tensor.name == "x");
                inputs.insert(x.context("no operand")?.uid, bytes);
                let name = format!(
                    "nan_rows_{}_{}x{}_{dtype}_in_{compute}",
                    name_of(mode),
                    from[0],
                    from[1]
                );
                data.push(Data {
                    case: Case { name, graph },
                    inputs,
                    has_meaning: true,
                });
            }
        }
    }
    Ok(data)
}

/// Returns the f16 bits of the numbers of [`rows_of_nan`].
fn half_bits(number: f64) -> u16 {
    let magnitude = match number.abs() {
        2.5 => 0x4100,
        1.5 => 0x3E00,
        f64::INFINITY => 0x7C00,
        _ => 0x7E00,
    };
    magnitude | if number.is_sign_negative() { 0x8000 } else { 0 }
}
