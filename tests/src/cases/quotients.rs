//! Rows divided by one number per row, over all magnitudes of both.

use super::case::{Case, Data};
use super::reduction::reduce;
use crate::harness::inputs::fill;
use anyhow::Result;
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode, ReductionMode, TensorId, TensorKind};

const F32: DataType = DataType::F32;
/// Enough rows that GPUs use one of rotini's kernels even without a reduction.
const DIMS: [i64; 2] = [4096, 64];

/// Returns all of them; subnormal numbers are optional, since CPUs flush them to zero.
pub(super) fn all(has_subnormals: bool) -> Result<Vec<Data>> {
    let mut data = Vec::new();
    let divided = |name: &str, graph| divided(name, graph, has_subnormals);
    for dtype in [DataType::F16, DataType::Bf16, DataType::F8E4M3] {
        data.push(divided(&format!("by_operand_{dtype}"), by_operand(dtype))?);
        data.push(divided(&format!("by_greatest_{dtype}"), by_greatest(dtype))?);
    }
    // One quotient is also stored in f32, and another is compared: neither may lose precision.
    let mut b = GraphBuilder::new("kept quotients");
    let (x, divisor) = operands(&mut b);
    let [quotient, rounded, floor] = [("quotient", F32), ("rounded", DataType::F16), ("floor", DataType::F16)]
        .map(|(name, dtype)| b.buffer(name, dtype, &DIMS));
    let other = b.virtual_tensor("other", F32, &DIMS);
    b.pointwise(F32, PointwiseMode::Div, &[x, divisor], quotient);
    b.pointwise(F32, PointwiseMode::Identity, &[quotient], rounded);
    b.pointwise(F32, PointwiseMode::Div, &[x, divisor], other);
    b.pointwise(F32, PointwiseMode::Floor, &[other], floor);
    data.push(divided("kept", b.build())?);
    Ok(data)
}

fn operands(b: &mut GraphBuilder) -> (TensorId, TensorId) {
    let x = b.buffer("x", F32, &DIMS);
    (x, b.tensor("divisor", F32, &[DIMS[0], 1], &[1, 1], TensorKind::Buffer))
}

fn by_operand(dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new("quotients");
    let (x, divisor) = operands(&mut b);
    let y = b.buffer("y", dtype, &DIMS);
    b.pointwise(F32, PointwiseMode::Div, &[x, divisor], y);
    b.build()
}

fn by_greatest(dtype: DataType) -> Graph {
    let mut b = GraphBuilder::new("quotients by what is found");
    let x = b.buffer("x", F32, &DIMS);
    let greatest = b.virtual_tensor("greatest", F32, &[DIMS[0], 1]);
    let y = b.buffer("y", dtype, &DIMS);
    reduce(&mut b, F32, ReductionMode::Amax, x, greatest);
    b.pointwise(F32, PointwiseMode::Div, &[x, greatest], y);
    b.build()
}

/// Returns a case whose rows each have a magnitude, from the smallest number to the largest.
fn divided(name: &str, graph: Graph, has_subnormals: bool) -> Result<Data> {
    let mut inputs = fill(&graph)?;
    let kept = |value: f32| {
        if has_subnormals || !value.is_subnormal() && value.abs() != f32::MIN_POSITIVE {
            value
        } else {
            0.0
        }
    };
    for tensor in &graph.tensors {
        let element: fn(usize) -> f32 = match tensor.name.as_str() {
            "x" => |index| element(index / 64, index % 64),
            "divisor" => divisor,
            _ => continue,
        };
        let elements: i64 = tensor.dims.iter().product();
        let bytes = (0..usize::try_from(elements)?).flat_map(|index| kept(element(index)).to_le_bytes());
        inputs.insert(tensor.uid, bytes.collect());
    }
    Ok(Data {
        case: Case {
            name: format!("quotients_{}{name}", if has_subnormals { "subnormal_" } else { "" }),
            graph,
        },
        inputs,
        has_meaning: true,
    })
}

/// Returns a row's divisor: all exponents in turn, with both signs, and sometimes a special value.
fn divisor(row: usize) -> f32 {
    const OTHERS: [f32; 6] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX];
    if row.is_multiple_of(41) {
        return OTHERS[row / 41 % OTHERS.len()];
    }
    let magnitude = (1.0 + (row % 7) as f64 / 7.0) * 2_f64.powi((row % 277) as i32 - 149);
    (if row.is_multiple_of(2) { magnitude } else { -magnitude }) as f32
}

/// Returns an element of a row: the divisor times a common number, a number just within the range
/// of 16 bits, or one beyond it.
fn element(row: usize, column: usize) -> f32 {
    const OTHERS: [f32; 6] = [0.0, -0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX];
    if (row + column).is_multiple_of(37) && row.is_multiple_of(3) {
        return OTHERS[column % OTHERS.len()];
    }
    let factor =
        [1.0, 1.0 / 3.0, -3.0, 65504.0, 1e-5, 6e-8, -0.1, 448.0][column % 8] * (1.0 + (column / 8) as f64 / 8.0);
    let divisor = f64::from(divisor(row));
    (if divisor.is_finite() { divisor } else { 1.0 } * factor) as f32
}
