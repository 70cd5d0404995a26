//! Minimised random graphs for gfx942: the compiler once rejected each, or did not terminate.

use super::case::{Cases, Order};
use super::convolution::Conv;
use super::matmul::Product;
use super::reduction::reduce;
use rotini_graph::{
    DataType, GraphBuilder, LayernormBackward, MoeGroupedMatmulBwd, Pointwise, PointwiseMode, ReductionMode, TensorKind,
};

/// Graphs that did not compile.
pub(super) fn uncompiled(cases: &mut Cases) {
    narrowed_factors(cases);
    single_fnuz(cases);
    masked_codes(cases);
    masked_magnitudes(cases);
    selected_byte(cases);
    summed_row(cases);
}

/// Adds products of f64 that are computed in fewer bits.
fn narrowed_factors(cases: &mut Cases) {
    use DataType::{F32, F64};
    let product = Product::new(48, 4, 16, F64).types([F64, F64, F32, F32]);
    cases.add("matmul_narrowed_f64_48x4x16", product.alone());
}

/// Adds products with a single element of the matrix cores' own 8-bit floats.
fn single_fnuz(cases: &mut Cases) {
    use DataType::{F8E4M3Fnuz, F8E5M2Fnuz, F32};
    let product = Product::new(1, 1, 5, F8E4M3Fnuz).types([F8E4M3Fnuz, F8E4M3Fnuz, F32, F32]);
    cases.add("matmul_single_e4m3fnuz_1x1x5", product.alone());
    let mut conv = Conv::new(1, 1, 5, 1, 1, 0, F8E5M2Fnuz, Order::First);
    conv.out = F32;
    cases.add("conv_single_e5m2fnuz", conv.alone());
}

/// Adds reductions of 8-bit floats over rows that do not fill whole subgroups.
fn masked_codes(cases: &mut Cases) {
    use DataType::{F8E4M3, F8E4M3Fnuz, F8E5M2, F32};
    for (name, dtype, mode, columns) in [
        ("largest_of_codes_7x56", F8E4M3, ReductionMode::Max, 56),
        ("sum_of_codes_3x36", F8E4M3Fnuz, ReductionMode::Add, 36),
        ("sum_of_codes_3x300", F8E5M2, ReductionMode::Add, 300),
    ] {
        let mut b = GraphBuilder::new("a reduction of codes");
        let rows = if columns == 56 { 7 } else { 3 };
        let x = b.buffer("x", dtype, &[rows, columns]);
        let y = b.buffer("y", F32, &[rows, 1]);
        reduce(&mut b, F32, mode, x, y);
        cases.add(name, b.build());
    }
}

/// Adds magnitudes of bytes over rows that do not fill whole subgroups.
fn masked_magnitudes(cases: &mut Cases) {
    use DataType::{I8, I32};
    for (name, mode, rows, columns) in [
        ("magnitudes_of_bytes_7x48", ReductionMode::Norm1, 7, 48),
        ("largest_magnitude_of_bytes_3x300", ReductionMode::Amax, 3, 300),
    ] {
        let mut b = GraphBuilder::new("magnitudes of bytes");
        let x = b.buffer("x", I8, &[rows, columns]);
        let y = b.buffer("y", I32, &[rows, 1]);
        reduce(&mut b, I32, mode, x, y);
        cases.add(name, b.build());
    }
}

/// Adds selections between integers that must be clamped and a single non-negative element.
fn selected_byte(cases: &mut Cases) {
    use DataType::{I8, I32, I64, U8};
    for (name, first, second, out) in [
        ("select_i64_or_a_byte_2x4x5", I64, U8, I64),
        ("select_a_byte_or_i64_2x4x5", U8, I64, I64),
        ("select_i64_or_a_byte_as_i32_2x4x5", I64, U8, I32),
    ] {
        let dims = |dtype: DataType| if dtype == U8 { [1; 3] } else { [2, 4, 5] };
        let mut b = GraphBuilder::new("a selected byte");
        let [x, y] = [("x", first), ("y", second)].map(|(name, dtype)| b.buffer(name, dtype, &dims(dtype)));
        let mask = b.buffer("mask", I8, &[2, 4, 5]);
        let z = b.buffer("z", out, &[2, 4, 5]);
        let op = Pointwise::new(PointwiseMode::BinarySelect, x, Some(y), Some(mask), z);
        b.node("select", I32, op);
        cases.add(name, b.build());
    }
    let mut b = GraphBuilder::new("a selected comparison");
    let [first, second] = ["first", "second"].map(|name| b.buffer(name, I32, &[1; 3]));
    let flag = b.virtual_tensor("flag", I32, &[1; 3]);
    let [x, z] = ["x", "z"].map(|name| b.buffer(name, I64, &[2, 4, 5]));
    let mask = b.buffer("mask", I8, &[2, 4, 5]);
    b.pointwise(I32, PointwiseMode::CmpEq, &[first, second], flag);
    b.pointwise(I32, PointwiseMode::BinarySelect, &[x, flag, mask], z);
    cases.add("select_i64_or_a_comparison_2x4x5", b.build());
}

/// Adds a sum over several axes that is the only row of a mixture of experts.
fn summed_row(cases: &mut Cases) {
    use DataType::{F32, I32};
    let mut b = GraphBuilder::new("the gradient of experts of one row of sums");
    let (dims, row) = ([7, 6, 7], [1, 1, 7]);
    let x = b.tensor("x", F32, &dims, &[42, 1, 6], TensorKind::Buffer);
    let [scale, dscale] = ["scale", "dscale"].map(|name| b.buffer(name, F32, &row));
    let dx = b.buffer("dx", F32, &dims);
    let token = b.virtual_tensor("token", F32, &row);
    let doutput = b.buffer("doutput", F32, &[1; 3]);
    let first_token_offset = b.buffer("offset", I32, &[1; 3]);
    let dweight = b.buffer("dweight", F32, &[1, 7, 1]);
    let norm = LayernormBackward::new([x, x, scale], [dx, dscale, token], 1);
    b.node("norm", F32, norm);
    let op = MoeGroupedMatmulBwd {
        doutput,
        token,
        first_token_offset,
        dweight,
    };
    b.node("moe", F32, op);
    cases.add("moe_backward_of_one_summed_row", b.build());
}
