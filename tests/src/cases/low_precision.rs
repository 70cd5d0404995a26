//! Types of eight bits and fewer: values, rounding, layout in memory, and operations.

use super::attention::Attention;
use super::case::{Cases, Data, Order};
use super::convolution::Conv;
use super::matmul::Product;
use super::pointwise::packed;
use anyhow::{Context as _, Result};
use rotini_graph::{DataType, GraphBuilder, Layernorm, PointwiseMode, Reduction, ReductionMode, Scalar, TensorKind};

const F32: DataType = DataType::F32;
const F16: DataType = DataType::F16;
const BF16: DataType = DataType::Bf16;
const F64: DataType = DataType::F64;
const I32: DataType = DataType::I32;
const I8: DataType = DataType::I8;
const E4M3: DataType = DataType::F8E4M3;
const E5M2: DataType = DataType::F8E5M2;
const E8M0: DataType = DataType::F8E8M0;
const E2M1: DataType = DataType::F4E2M1;
const E2M3: DataType = DataType::F6E2M3;
const E3M2: DataType = DataType::F6E3M2;
const I4: DataType = DataType::I4;
/// The 8-bit floats of gfx942's matrix cores.
const E4M3_FNUZ: DataType = DataType::F8E4M3Fnuz;
const E5M2_FNUZ: DataType = DataType::F8E5M2Fnuz;

const NARROW: [DataType; 9] = [E4M3, E5M2, E8M0, E2M1, E2M3, E3M2, I4, E4M3_FNUZ, E5M2_FNUZ];

/// Adds conversions to and from every type: the operands are bit patterns with all special values
/// and ties.
pub(super) fn conversions(cases: &mut Cases) {
    let identity = |from, to, compute, dims: &[i64]| packed(PointwiseMode::Identity, &[from], to, compute, dims);
    for (index, narrow) in NARROW.into_iter().enumerate() {
        let integers = [I32, I8, DataType::U8, DataType::I64];
        let wide: &[DataType] = if [E4M3, I4, E4M3_FNUZ].contains(&narrow) {
            &integers
        } else {
            &[]
        };
        for &wide in [F32, F16, BF16].iter().chain(wide) {
            cases.add(format!("lp_{narrow}_to_{wide}"), identity(narrow, wide, F32, &[6, 96]));
            cases.add(format!("lp_{wide}_to_{narrow}"), identity(wide, narrow, F32, &[12, 96]));
        }
        cases.add(format!("lp_{narrow}_to_f64"), identity(narrow, F64, F64, &[6, 96]));
        cases.add(format!("lp_f64_to_{narrow}"), identity(F64, narrow, F64, &[12, 96]));
        for other in [narrow, NARROW[(index + 1) % NARROW.len()]] {
            cases.add(
                format!("lp_{narrow}_to_{other}"),
                identity(narrow, other, F32, &[6, 96]),
            );
        }
        // Every number of elements in the last byte, or in the last three bytes.
        let shapes = [&[1, 1][..], &[3, 5, 3], &[2, 1], &[1, 3], &[5], &[7], &[9, 6]];
        let shapes = if narrow.bits() == 8 { &shapes[..2] } else { &shapes };
        for &dims in shapes {
            let name: Vec<String> = dims.iter().map(i64::to_string).collect();
            let name = format!("lp_{narrow}_of_{}", name.join("x"));
            cases.add(format!("{name}_read"), identity(narrow, F32, F32, dims));
            cases.add(format!("{name}_written"), identity(F32, narrow, F32, dims));
        }
    }
    cases.add("lp_i4_to_i8_in_i32", identity(I4, I8, I32, &[6, 31]));
    cases.add("lp_i32_to_i4_in_i32", identity(I32, I4, I32, &[6, 31]));
    cases.add(
        "lp_i4_to_u8_in_i64",
        identity(I4, DataType::U8, DataType::I64, &[6, 31]),
    );
}

/// Returns wide numbers that are converted to 16 bits: subnormal results, and numbers slightly
/// above or below a tie, which would become ties if first rounded to f32.
///
/// # Errors
///
/// Those of filling buffers.
pub(super) fn halves() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for (half, digits, least) in [(F16, 11, -24), (BF16, 8, -100)] {
        let step = |exponent: i32| 2.0_f64.powi(exponent);
        let mut floats = vec![f64::INFINITY, f64::NAN, -0.0, 1e39, 65519.99, 65520.0, 1e-300];
        let mut integers = vec![i32::MAX, i32::MIN, -1];
        for count in 0..16 {
            for off in [-step(-30), 0.0, step(-30)] {
                let tie = 1.0 + step(1 - digits) * (f64::from(count) + 0.5 + off);
                floats.extend([tie, -tie * step(least + digits)]);
                // Subnormal in f16: small multiples of the least number, plus a half.
                floats.push(step(least) * (f64::from(count) + 0.5 + off));
            }
            for off in -1..=1 {
                integers.push((1 << 30) + (count << (31 - digits)) + (1 << (30 - digits)) + off);
            }
        }
        for (name, wide, count, bytes) in [
            (
                "f64",
                F64,
                floats.len(),
                floats.iter().flat_map(|float| float.to_le_bytes()).collect(),
            ),
            (
                "i32",
                I32,
                integers.len(),
                integers
                    .iter()
                    .flat_map(|integer| integer.to_le_bytes())
                    .collect::<Vec<u8>>(),
            ),
        ] {
            let graph = packed(PointwiseMode::Identity, &[wide], half, wide, &[i64::try_from(count)?]);
            let mut case = Data::with(format!("lp_{name}_rounded_to_{half}"), graph, &[], true)?;
            let x = case.case.graph.tensors.first().map(|tensor| tensor.uid);
            case.inputs.insert(x.context("no operand")?, bytes);
            data.push(case);
        }
    }
    Ok(data)
}

/// Adds memory orders, gaps, constants, intermediates.
pub(super) fn tensors(cases: &mut Cases) {
    for narrow in NARROW {
        let dims = [2, 6, 3, 5];
        let mut b = GraphBuilder::new("channels last");
        let x = b.buffer_channels_last("x", narrow, &dims);
        let y = b.buffer("y", F32, &dims);
        b.pointwise(F32, PointwiseMode::Identity, &[x], y);
        cases.add(format!("lp_{narrow}_nhwc_to_nchw"), b.build());

        let mut b = GraphBuilder::new("channels last");
        let x = b.buffer("x", F16, &dims);
        let bias = b.buffer("bias", narrow, &[1, 6, 1, 1]);
        let y = b.buffer_channels_last("y", narrow, &dims);
        b.pointwise(F32, PointwiseMode::Add, &[x, bias], y);
        cases.add(format!("lp_{narrow}_bias_nchw_to_nhwc"), b.build());

        // A virtual tensor is rounded as a stored one is.
        let mut b = GraphBuilder::new("intermediate");
        let x = b.buffer("x", F32, &[4, 33]);
        let narrowed = b.virtual_tensor("narrowed", narrow, &[4, 33]);
        let y = b.buffer("y", F32, &[4, 33]);
        b.pointwise(F32, PointwiseMode::Identity, &[x], narrowed);
        b.pointwise(F32, PointwiseMode::Mul, &[narrowed, x], y);
        cases.add(format!("lp_{narrow}_between"), b.build());

        if narrow.bits() == 8 {
            let mut b = GraphBuilder::new("gaps");
            let x = b.tensor("x", narrow, &[3, 5], &[11, 2], TensorKind::Buffer);
            let row = b.tensor("row", narrow, &[3, 5], &[0, 1], TensorKind::Buffer);
            let y = b.tensor("y", narrow, &[3, 5], &[1, 4], TensorKind::Buffer);
            b.pointwise(F32, PointwiseMode::Mul, &[x, row], y);
            cases.add(format!("lp_{narrow}_gaps"), b.build());
        }
    }
    for (narrow, value) in [
        (E4M3, Scalar::float(-0.4375)),
        (E5M2, Scalar::float(1.25)),
        (E4M3_FNUZ, Scalar::float(-0.4375)),
        (E5M2_FNUZ, Scalar::float(-1.25)),
        (I4, Scalar::Integer(-3)),
    ] {
        let mut b = GraphBuilder::new("constant");
        let x = b.buffer("x", F32, &[4, 9]);
        let scale = b.constant("scale", narrow, &[1, 1], value);
        let y = b.buffer("y", narrow, &[4, 9]);
        b.pointwise(F32, PointwiseMode::Mul, &[x, scale], y);
        cases.add(format!("lp_{narrow}_constant"), b.build());
    }
}

/// Operations on elements, sums, normalization and convolution.
pub(super) fn operations(cases: &mut Cases) {
    use PointwiseMode as M;
    for narrow in NARROW {
        for (mode, types, out) in [
            (M::Add, [narrow, narrow], narrow),
            (M::Mul, [narrow, F32], F32),
            (M::Max, [F16, narrow], BF16),
            (M::ReluFwd, [narrow, narrow], narrow),
            (M::CmpGt, [narrow, narrow], I8),
            (M::Div, [F32, narrow], narrow),
        ] {
            // An int4 from 0 to 7 may divide if it is not 0.
            let name = format!("lp_{narrow}_{}_{out}", mode.name());
            cases.add(name, packed(mode, &types, out, F32, &[3, 4, 21]));
        }
    }
    for mode in [M::Add, M::Sub, M::Mul, M::Min, M::Neg] {
        cases.add(
            format!("lp_i4_in_i32_{}", mode.name()),
            packed(mode, &[I4], I4, I32, &[3, 21]),
        );
    }
    for narrow in [E4M3, E5M2, E2M1, E3M2, I4, E4M3_FNUZ, E5M2_FNUZ] {
        for mode in [ReductionMode::Add, ReductionMode::Amax] {
            let mut b = GraphBuilder::new("reduction");
            let input = b.buffer("x", narrow, &[4, 6, 10]);
            let output = b.buffer("y", F32, &[4, 1, 10]);
            b.node("sum", F32, Reduction::new(mode, input, output));
            cases.add(format!("lp_{narrow}_{mode:?}"), b.build());
        }
    }
    for narrow in [E4M3, E5M2, E2M1, E4M3_FNUZ, E5M2_FNUZ] {
        for order in Order::BOTH {
            let mut conv = Conv::new(1, 8, 6, 7, 3, 1, narrow, order);
            conv.compute = F32;
            let name = format!("lp_{narrow}_conv_{}", order.name());
            cases.add(name.clone(), conv.alone());
            cases.add(format!("{name}_dgrad"), conv.dgrad());
            cases.add(format!("{name}_wgrad"), conv.wgrad());
        }
    }
    // Extents that fill matrix cores, with which products of gfx942's own floats are computed from
    // their codes.
    for (narrow, order) in [E4M3_FNUZ, E5M2_FNUZ]
        .into_iter()
        .flat_map(|narrow| Order::BOTH.map(|order| (narrow, order)))
    {
        for (kind, conv) in [
            ("1x1", Conv::new(2, 64, 32, 8, 1, 0, narrow, order)),
            ("3x3", Conv::new(1, 32, 32, 9, 3, 1, narrow, order)),
            ("stride2", Conv::new(1, 32, 48, 9, 3, 1, narrow, order).stride(2)),
            ("grouped", Conv::new(1, 64, 64, 8, 3, 1, narrow, order).groups(2)),
        ] {
            let name = format!("lp_{narrow}_conv_wide_{kind}_{}", order.name());
            cases.add(name.clone(), conv.alone());
            cases.add(format!("{name}_dgrad"), conv.dgrad());
            cases.add(format!("{name}_wgrad"), conv.wgrad());
        }
    }
}

/// Adds convolutions of unsigned bytes, summed exactly.
pub(super) fn bytes(cases: &mut Cases) {
    for order in Order::BOTH {
        let mut conv = Conv::new(2, 8, 6, 7, 3, 1, DataType::U8, order);
        (conv.compute, conv.out) = (I32, I32);
        cases.add(format!("lp_u8_conv_{}", order.name()), conv.alone());
        cases.add(format!("lp_u8_conv_{}_wgrad", order.name()), conv.wgrad());
    }
}

/// Adds normalizations and attention.
pub(super) fn layers(cases: &mut Cases) {
    for narrow in [E4M3, E5M2, E2M1, E4M3_FNUZ] {
        let attention = Attention::new(1, 2, [8, 8], 16, narrow);
        cases.add(format!("lp_{narrow}_sdpa"), attention.forward(false));

        let mut b = GraphBuilder::new("layernorm");
        let x = b.buffer("x", narrow, &[6, 32]);
        let [scale, bias] = ["scale", "bias"].map(|name| b.buffer(name, F16, &[1, 32]));
        let epsilon = b.constant("epsilon", F32, &[1, 1], Scalar::float(1e-5));
        let y = b.buffer("y", narrow, &[6, 32]);
        b.node("norm", F32, Layernorm::new([x, scale, bias, epsilon], y, 1));
        cases.add(format!("lp_{narrow}_layernorm"), b.build());
    }
}

/// The products that are tested in every shape.
const COMMON: [&str; 10] = [
    "e4m3_to_f32",
    "e4m3_to_f16",
    "e4m3_by_e5m2",
    "e4m3_to_e4m3",
    "f16_by_i4",
    "bf16_by_i4",
    "e4m3fnuz_to_f32",
    "e4m3fnuz_to_f16",
    "e4m3fnuz_by_e5m2fnuz",
    "e5m2fnuz_to_e5m2fnuz",
];

/// Adds matmuls: with two narrow operands, and with one narrow and one 16-bit operand.
pub(super) fn matmuls(cases: &mut Cases) {
    for (name, types) in [
        ("e4m3_to_f32", [E4M3, E4M3, F32, F32]),
        ("e4m3_to_f16", [E4M3, E4M3, F16, F32]),
        ("e4m3_to_bf16", [E4M3, E4M3, BF16, F32]),
        ("e4m3_to_e4m3", [E4M3, E4M3, E4M3, F32]),
        ("e5m2_to_f32", [E5M2, E5M2, F32, F32]),
        ("e4m3_by_e5m2", [E4M3, E5M2, F16, F32]),
        ("e4m3_by_f16", [E4M3, F16, F16, F32]),
        ("bf16_by_e4m3", [BF16, E4M3, BF16, F32]),
        ("e5m2_by_bf16", [E5M2, BF16, F32, F32]),
        ("e4m3_by_f32", [E4M3, F32, F32, F32]),
        ("e4m3_in_f16", [E4M3, E4M3, F16, F16]),
        ("e4m3_in_f64", [E4M3, E4M3, F64, F64]),
        ("e2m1_to_f32", [E2M1, E2M1, F32, F32]),
        ("e2m3_by_e3m2", [E2M3, E3M2, F32, F32]),
        ("e8m0_by_e4m3", [E8M0, E4M3, F32, F32]),
        ("f16_by_i4", [F16, I4, F16, F32]),
        ("bf16_by_i4", [BF16, I4, BF16, F32]),
        ("f32_by_i4", [F32, I4, F32, F32]),
        ("e4m3_by_i4", [E4M3, I4, F16, F32]),
        ("i4_by_i4", [I4, I4, I32, I32]),
        ("i8_by_i4", [I8, I4, I32, I32]),
        ("i8_by_i8", [I8, I8, I32, I32]),
        ("u8_by_i8", [DataType::U8, I8, I32, I32]),
        ("i8_by_i8_to_i8", [I8, I8, I8, I32]),
        ("u8_by_u8", [DataType::U8, DataType::U8, I32, I32]),
        ("i8_by_f16", [I8, F16, F16, F32]),
        ("bf16_by_u8", [BF16, DataType::U8, F32, F32]),
        ("e4m3_by_i8", [E4M3, I8, F32, F32]),
        ("e4m3fnuz_to_f32", [E4M3_FNUZ, E4M3_FNUZ, F32, F32]),
        ("e4m3fnuz_to_f16", [E4M3_FNUZ, E4M3_FNUZ, F16, F32]),
        ("e4m3fnuz_by_e5m2fnuz", [E4M3_FNUZ, E5M2_FNUZ, BF16, F32]),
        ("e5m2fnuz_to_e5m2fnuz", [E5M2_FNUZ, E5M2_FNUZ, E5M2_FNUZ, F32]),
        ("e5m2fnuz_in_f64", [E5M2_FNUZ, E5M2_FNUZ, F64, F64]),
        ("e4m3fnuz_by_f16", [E4M3_FNUZ, F16, F16, F32]),
        ("e4m3_by_e4m3fnuz", [E4M3, E4M3_FNUZ, F16, F32]),
        ("f32_by_e5m2fnuz", [F32, E5M2_FNUZ, F32, F32]),
        ("f32_by_u8", [F32, DataType::U8, F32, F32]),
        ("i4_by_i4_to_f32", [I4, I4, F32, F32]),
    ] {
        let shapes = [
            ([32, 64, 48], [false, false, false], 0),
            ([5, 7, 3], [true, false, true], 3),
            ([16, 32, 16], [false, true, false], 2),
            ([1, 33, 9], [false, true, false], 0),
            ([70, 96, 130], [false, true, false], 2),
            ([33, 100, 65], [true, false, false], 0),
        ];
        let is_common = COMMON.contains(&name);
        for &(extents, transposed, batch) in if is_common { &shapes[..] } else { &shapes[..2] } {
            let [rows, inner, columns] = extents;
            let mut product = Product::new(rows, inner, columns, F32).types(types);
            if batch > 0 {
                product = product.batched(&[batch], &[batch]);
            }
            let [a, b, c] = transposed;
            let name = format!("lp_matmul_{name}_{rows}x{inner}x{columns}");
            cases.add(name, product.transposed(a, b, c).alone());
        }
        if is_common {
            let bias = Product::new(9, 24, 10, F32).types(types);
            cases.add(
                format!("lp_matmul_{name}_bias_relu"),
                bias.fused(PointwiseMode::ReluFwd),
            );
        }
    }
    // In rotini's kernels: whole and partial tiles, split-K sums, all orders of the operands.
    for (name, types) in [
        ("e4m3fnuz_to_bf16", [E4M3_FNUZ, E4M3_FNUZ, BF16, F32]),
        ("e5m2fnuz_to_f32", [E5M2_FNUZ, E5M2_FNUZ, F32, F32]),
    ] {
        for [rows, inner, columns] in [
            [64, 256, 128],
            [130, 300, 200],
            [17, 129, 35],
            [16, 4096, 64],
            [33, 20_000, 65],
            [2, 7, 132],
        ] {
            for (order, [a, b]) in [
                ("nn", [false, false]),
                ("nt", [false, true]),
                ("tn", [true, false]),
                ("tt", [true, true]),
            ] {
                let product = Product::new(rows, inner, columns, F32).types(types);
                let name = format!("lp_matmul_{name}_{order}_{rows}x{inner}x{columns}");
                cases.add(name.clone(), product.clone().transposed(a, b, false).alone());
                if [a, b] == [false, true] {
                    cases.add(format!("{name}_out"), product.clone().transposed(a, b, true).alone());
                    cases.add(
                        format!("{name}_batch"),
                        product.batched(&[2], &[1]).transposed(a, b, false).alone(),
                    );
                }
            }
        }
    }
}
