//! Comparisons, each of which has to accept correct results and to catch a wrong one.

use crate::{bytes, elements, result, tensor, validated};
use half::f16;
use rotini_graph::{
    ConvGeometry, DataType, Graph, GraphBuilder, PointwiseMode as Mode, Reduction, ReductionMode, Scalar, TensorId,
};
use rotini_reference::{Buffers, Mismatch, Options, Precision, compare, evaluate, fill_all, tolerance};

/// Returns a graph of convolution, bias and ReLU with f32 intermediates.
pub(crate) fn conv_bias_relu(dtype: DataType, channels: i64) -> (Graph, [TensorId; 4]) {
    let mut builder = GraphBuilder::new("conv_bias_relu");
    let dims = [1, 16, 6, 6];
    let x = builder.buffer_channels_last("x", dtype, &[1, channels, 6, 6]);
    let w = builder.buffer_channels_last("w", dtype, &[16, channels, 3, 3]);
    let bias = builder.buffer("bias", dtype, &[1, 16, 1, 1]);
    let [conv, sum] = ["conv", "sum"].map(|name| builder.virtual_tensor(name, DataType::F32, &dims));
    let y = builder.buffer_channels_last("y", dtype, &dims);
    builder.conv_fprop(DataType::F32, x, w, conv, ConvGeometry::same(2, 1));
    builder.pointwise(DataType::F32, Mode::Add, &[conv, bias], sum);
    builder.pointwise(DataType::F32, Mode::ReluFwd, &[sum], y);
    (validated(builder), [x, w, bias, y])
}

#[test]
fn a_bias_added_after_rounding_to_f16_is_caught() {
    for (dtype, channels) in [(DataType::F16, 32), (DataType::Bf16, 32), (DataType::F16, 512)] {
        let (graph, [.., y]) = conv_bias_relu(dtype, channels);
        let buffers = fill_all(&graph, 1).unwrap();
        let before = &buffers[&tensor(&graph, y).uid];
        let evaluation = evaluate(&graph, &buffers).unwrap();
        for precision in [Precision::F64, Precision::Compute] {
            let right = Options {
                precision,
                ..Options::default()
            };
            let report = evaluation
                .judge(y, &result(&graph, &buffers, &right, y), before)
                .unwrap();
            assert_eq!((report.wrong, report.unbounded, report.elements), (0, 0, 576));
        }
        let mutant = Options {
            round_intermediates: Some(dtype),
            ..Options::default()
        };
        let wrong = result(&graph, &buffers, &mutant, y);
        let error = evaluation.judge(y, &wrong, before).unwrap_err();
        let Mismatch::Values { report, .. } = &error else {
            panic!("{error}");
        };
        assert!(report.wrong > 20, "{dtype} with {channels} channels: {error}");

        // The tolerance table accepts the mutant too, which is why `judge` exists.
        let want = result(&graph, &buffers, &Options::default(), y);
        compare(tensor(&graph, y), &wrong, &want, tolerance(&graph, y).unwrap()).unwrap();
    }
}

/// Returns values that use all bits of binary32 and are multiples of no coarse power of two.
fn irregular(count: usize, seed: f64) -> Vec<f64> {
    (0..count)
        .map(|i| f64::from(((i as f64 + seed) * 12.9898).sin() as f32))
        .collect()
}

#[test]
fn kernels_that_sum_in_f32_pass_in_any_order_and_worse_ones_do_not() {
    // A convolution of one position is a dot product.
    let count = 500;
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[1, 500, 1]);
    let w = builder.buffer("w", DataType::F32, &[1, 500, 1]);
    let y = builder.buffer("y", DataType::F32, &[1, 1, 1]);
    builder.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(1, 0));
    let graph = validated(builder);
    let (a, b) = (irregular(count, 0.1), irregular(count, 0.7));
    let buffers = Buffers::from([
        (1, bytes(DataType::F32, &a)),
        (2, bytes(DataType::F32, &b)),
        (3, vec![0; 4]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |sum: f32| evaluation.judge(y, &sum.to_le_bytes(), &[0; 4]);

    let products = || a.iter().zip(&b).map(|(a, b)| (*a as f32, *b as f32));
    let forward = products().fold(0.0_f32, |sum, (a, b)| sum + a * b);
    let backward = products().rev().fold(0.0_f32, |sum, (a, b)| a.mul_add(b, sum));
    assert_ne!(forward, backward, "the order matters here");
    judge(forward).unwrap();
    judge(backward).unwrap();
    let exact: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    judge(exact as f32).unwrap();

    let truncated = |value: f32| f32::from_bits(value.to_bits() & 0xFFFF_0000);
    judge(products().map(|(a, b)| truncated(a) * truncated(b)).sum()).unwrap_err();
    judge(products().fold(0.0, |sum, (a, b)| f16::from_f32(sum + a * b).to_f32())).unwrap_err();
    judge(f32::NAN).unwrap_err();
    judge(f32::INFINITY).unwrap_err();
}

#[test]
fn filled_inputs_leave_one_right_result() {
    let (graph, [.., y]) = conv_bias_relu(DataType::F32, 64);
    let buffers = fill_all(&graph, 3).unwrap();
    let before = buffers[&tensor(&graph, y).uid].clone();
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let mut got = result(&graph, &buffers, &Options::default(), y);
    evaluation.judge(y, &got, &before).unwrap();
    // One unit in the last place of one element that is not 0.
    let position = elements(DataType::F32, &got)
        .iter()
        .position(|&value| value > 1.0)
        .unwrap();
    got[position * 4] ^= 1;
    let error = evaluation.judge(y, &got, &before).unwrap_err();
    assert!(
        matches!(&error, Mismatch::Values { report, .. } if report.wrong == 1),
        "{error}"
    );
}

#[test]
fn subnormals_may_be_flushed_to_zero_and_nothing_else_may() {
    // Stored type, a subnormal of the compute type f32, the least value of the stored type that is
    // normal in f32.
    for (dtype, subnormal, normal) in [
        (DataType::F32, 2.0_f64.powi(-130), 2.0_f64.powi(-126)),
        (DataType::Bf16, 2.0_f64.powi(-130), 2.0_f64.powi(-126)),
        // A subnormal of f16 is a normal number in f32.
        (DataType::F16, 0.0, 2.0_f64.powi(-24)),
    ] {
        let mut builder = GraphBuilder::new("");
        let x = builder.buffer("x", dtype, &[2]);
        let y = builder.buffer("y", dtype, &[2]);
        builder.pointwise(DataType::F32, Mode::Add, &[x, x], y);
        let graph = validated(builder);
        let before = vec![0; bytes(dtype, &[0.0; 2]).len()];
        let buffers = Buffers::from([(1, bytes(dtype, &[subnormal, normal])), (2, before.clone())]);
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let judge = |got: [f64; 2]| evaluation.judge(y, &bytes(dtype, &got), &before);
        judge([2.0 * subnormal, 2.0 * normal]).unwrap();
        judge([0.0, 2.0 * normal]).unwrap();
        judge([2.0 * subnormal, 0.0]).unwrap_err();
        judge([2.0_f64.powi(-14), 2.0 * normal]).unwrap_err();
    }
}

/// In the tails of gradients, a factor is subnormal while its product with dy is not: if a device
/// flushes the factor, the product is 0.
#[test]
fn products_of_subnormal_factors_may_be_zero_and_no_others() {
    let dy = 1024.0;
    // The density at -13, where the distribution function is subnormal.
    let density = (-84.5_f64).exp() / (2.0 * std::f64::consts::PI).sqrt();
    for (mode, x, got, is_right) in [
        (Mode::EluBwd, -88.0, 0.0, true),
        (Mode::EluBwd, -80.0, 0.0, false),
        (Mode::EluBwd, -88.0, 1e-30, false),
        (Mode::SigmoidBwd, 88.0, 0.0, true),
        (Mode::SigmoidBwd, 80.0, 0.0, false),
        (Mode::SoftplusBwd, -88.0, 0.0, true),
        (Mode::SoftplusBwd, -80.0, 0.0, false),
        (Mode::GeluBwd, -13.0, -13.0 * density * dy, true),
        (Mode::GeluBwd, -13.0, 0.0, false),
        (Mode::GeluBwd, -13.0, -12.0 * density * dy, false),
    ] {
        let mut builder = GraphBuilder::new("");
        let [dy_in, x_in, y] = ["dy", "x", "y"].map(|name| builder.buffer(name, DataType::F32, &[1]));
        builder.pointwise(DataType::F32, mode, &[dy_in, x_in], y);
        let graph = validated(builder);
        let [dy, x, got, before] = [dy, x, got, 0.0].map(|value| bytes(DataType::F32, &[value]));
        let evaluation = evaluate(&graph, &Buffers::from([(1, dy), (2, x), (3, before.clone())])).unwrap();
        let judged = evaluation.judge(y, &got, &before);
        assert_eq!(judged.is_ok(), is_right, "{mode:?}: {judged:?}");
    }
}

#[test]
fn comparisons_may_flip_only_where_their_operands_are_uncertain() {
    // 1 where x + y > z, with x + y inexact in f32.
    let mut builder = GraphBuilder::new("");
    let [x, y, z] = ["x", "y", "z"].map(|name| builder.buffer(name, DataType::F32, &[3]));
    let sum = builder.virtual_tensor("sum", DataType::F32, &[3]);
    let out = builder.buffer("out", DataType::U8, &[3]);
    builder.pointwise(DataType::F32, Mode::Add, &[x, y], sum);
    builder.pointwise(DataType::F32, Mode::CmpGt, &[sum, z], out);
    let graph = validated(builder);
    let tiny = 2.0_f64.powi(-30);
    let buffers = Buffers::from([
        (1, bytes(DataType::F32, &[1.0, 1.0, 1.0])),
        (2, bytes(DataType::F32, &[tiny, tiny, 1.0])),
        (3, bytes(DataType::F32, &[1.0, 0.5, 2.0])),
        (5, vec![7; 3]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |got: [u8; 3]| evaluation.judge(out, &got, &[7; 3]);
    // The first result is 1 in f64 and 0 in f32; the second is unambiguous; the third compares an
    // exact sum with an equal number, so it is 0.
    judge([1, 1, 0]).unwrap();
    judge([0, 1, 0]).unwrap();
    judge([1, 0, 0]).unwrap_err();
    judge([1, 1, 1]).unwrap_err();
    judge([0, 2, 0]).unwrap_err();
}

#[test]
fn tests_for_zero_may_flip_where_a_sum_may_vanish() {
    // (1 + 2^-30) - 1 is 0 in f32; 2 - 1 is not.
    let tiny = 2.0_f64.powi(-30);
    for mode in [
        Mode::LogicalNot,
        Mode::LogicalOr,
        Mode::CmpEq,
        Mode::CmpNeq,
        Mode::BinarySelect,
    ] {
        let mut builder = GraphBuilder::new("");
        let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F32, &[2]));
        let [one, zero] = [1.0, 0.0].map(|value| builder.constant("", DataType::F32, &[1], Scalar::float(value)));
        let [sum, difference] = ["sum", "difference"].map(|name| builder.virtual_tensor(name, DataType::F32, &[2]));
        let out = builder.buffer("out", DataType::I32, &[2]);
        builder.pointwise(DataType::F32, Mode::Add, &[x, y], sum);
        builder.pointwise(DataType::F32, Mode::Sub, &[sum, one], difference);
        let operands = [difference, zero, difference];
        match mode {
            Mode::BinarySelect => builder.pointwise(DataType::F32, mode, &[one, zero, difference], out),
            _ => builder.pointwise(DataType::F32, mode, &operands[..mode.arity()], out),
        };
        let graph = validated(builder);
        let buffers = Buffers::from([
            (tensor(&graph, x).uid, bytes(DataType::F32, &[1.0, 1.0])),
            (tensor(&graph, y).uid, bytes(DataType::F32, &[tiny, 1.0])),
            (tensor(&graph, out).uid, vec![0; 8]),
        ]);
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let right = elements(DataType::I32, &result(&graph, &buffers, &Options::default(), out));
        let judge = |got: [f64; 2]| evaluation.judge(out, &bytes(DataType::I32, &got), &[0; 8]);
        let name = mode.name();
        judge([right[0], right[1]]).unwrap_or_else(|error| panic!("{name}: {error}"));
        judge([1.0 - right[0], right[1]]).unwrap_or_else(|error| panic!("{name}: {error}"));
        judge([right[0], 1.0 - right[1]]).expect_err(name);
    }
}

#[test]
fn every_rounding_of_a_kernel_is_allowed_for() {
    // A convolution of one position with exact products, whose sum is too large to be exact in f32
    // in every order.
    let mut builder = GraphBuilder::new("");
    let [x, w] = ["x", "w"].map(|name| builder.buffer(name, DataType::F32, &[1, 3, 1]));
    let y = builder.buffer("y", DataType::F32, &[1, 1, 1]);
    builder.conv_fprop(DataType::F32, x, w, y, ConvGeometry::same(1, 0));
    let graph = validated(builder);
    let buffers = Buffers::from([
        (1, bytes(DataType::F32, &[16_777_216.0, 1.0, 1.0])),
        (2, bytes(DataType::F32, &[1.0, 1.0, 1.0])),
        (3, vec![0; 4]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |got| evaluation.judge(y, &bytes(DataType::F32, &[got]), &[0; 4]);
    judge(16_777_218.0).unwrap();
    judge(16_777_216.0).unwrap();
    judge(16_777_200.0).unwrap_err();

    // The square is rounded before it cancels.
    let (root, square) = (1.0_f32 / 3.0, (1.0_f32 / 3.0) * (1.0_f32 / 3.0));
    let mut builder = GraphBuilder::new("");
    let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F32, &[1]));
    let z = builder.buffer("z", DataType::F32, &[1]);
    builder.pointwise(DataType::F32, Mode::AddSquare, &[x, y], z);
    let graph = validated(builder);
    let buffers = Buffers::from([
        (1, (-square).to_le_bytes().to_vec()),
        (2, root.to_le_bytes().to_vec()),
        (3, vec![0; 4]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let fused = root.mul_add(root, -square);
    assert_ne!(fused, 0.0);
    evaluation.judge(z, &fused.to_le_bytes(), &[0; 4]).unwrap();
    evaluation.judge(z, &0.0_f32.to_le_bytes(), &[0; 4]).unwrap();
    evaluation.judge(z, &(fused * 20.0).to_le_bytes(), &[0; 4]).unwrap_err();

    // An operand is rounded to the compute type.
    let mut builder = GraphBuilder::new("");
    let [x, y] = ["x", "y"].map(|name| builder.buffer(name, DataType::F64, &[1]));
    builder.pointwise(DataType::F32, Mode::Identity, &[x], y);
    let graph = validated(builder);
    let buffers = Buffers::from([(1, bytes(DataType::F64, &[0.1])), (2, vec![0; 8])]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |got: f64| evaluation.judge(y, &got.to_le_bytes(), &[0; 8]);
    judge(0.1).unwrap();
    judge(0.1_f32.into()).unwrap();
    judge(f16::from_f32(0.1).into()).unwrap_err();
}

#[test]
fn every_mode_accepts_its_own_f32_arithmetic() {
    for &mode in Mode::ALL {
        let mut builder = GraphBuilder::new("");
        let inputs: Vec<TensorId> = (0..mode.arity())
            .map(|_| builder.buffer("in", DataType::F32, &[64]))
            .collect();
        // Operands that are inexact themselves.
        let third = builder.constant("third", DataType::F32, &[1], Scalar::float(1.0 / 3.0));
        let scaled: Vec<TensorId> = inputs
            .iter()
            .map(|&input| {
                let scaled = builder.virtual_tensor("scaled", DataType::F32, &[64]);
                builder.pointwise(DataType::F32, Mode::Mul, &[input, third], scaled);
                scaled
            })
            .collect();
        let out = builder.buffer("out", DataType::F32, &[64]);
        let operand = |index: usize| scaled.get(index).copied();
        let mut op = rotini_graph::Pointwise::new(mode, scaled[0], operand(1), operand(2), out);
        op.axis = (mode == Mode::GenIndex).then_some(0);
        builder.node("", DataType::F32, op);
        let graph = validated(builder);
        let mut buffers = fill_all(&graph, 9).unwrap();
        for (index, &input) in inputs.iter().enumerate() {
            let values: Vec<f64> = irregular(64, index as f64)
                .iter()
                .map(|value| value.abs() + 0.1)
                .collect();
            buffers.insert(tensor(&graph, input).uid, bytes(DataType::F32, &values));
        }
        let before = buffers[&tensor(&graph, out).uid].clone();
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let in_f32 = Options {
            precision: Precision::Compute,
            ..Options::default()
        };
        let report = evaluation
            .judge(out, &result(&graph, &buffers, &in_f32, out), &before)
            .unwrap_or_else(|error| panic!("{}: {error}", mode.name()));
        assert_eq!((report.elements, report.unbounded), (64, 0), "{}", mode.name());
        // An error of half a percent is caught in every mode.
        let mut moved = elements(DataType::F32, &result(&graph, &buffers, &in_f32, out));
        moved.iter_mut().for_each(|value| *value = *value * 1.005 + 0.001);
        evaluation
            .judge(out, &bytes(DataType::F32, &moved), &before)
            .expect_err(mode.name());
    }
}

#[test]
fn an_f32_overflow_is_not_held_against_a_kernel() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[2]);
    let double = builder.virtual_tensor("double", DataType::F32, &[2]);
    let y = builder.buffer("y", DataType::F32, &[2]);
    builder.pointwise(DataType::F32, Mode::Add, &[x, x], double);
    builder.pointwise(DataType::F32, Mode::Sub, &[double, x], y);
    let graph = validated(builder);
    let buffers = Buffers::from([(1, bytes(DataType::F32, &[f32::MAX.into(), 1.0])), (3, vec![0; 8])]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let report = evaluation
        .judge(y, &bytes(DataType::F32, &[f64::INFINITY, 1.0]), &[0; 8])
        .unwrap();
    assert_eq!((report.unbounded, report.wrong), (1, 0));
    // Nor is the result that it computes from the infinity.
    evaluation
        .judge(y, &bytes(DataType::F32, &[f64::NAN, 1.0]), &[0; 8])
        .unwrap();
    evaluation
        .judge(y, &bytes(DataType::F32, &[f64::INFINITY, 1.5]), &[0; 8])
        .unwrap_err();
}

/// A subnormal factor may be flushed to zero, and then its product with an infinity is NaN; the
/// product of any other factor with an infinity is certainly an infinity.
#[test]
fn an_infinite_product_of_a_subnormal_may_be_anything() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[3]);
    let most = builder.virtual_tensor("most", DataType::F32, &[1]);
    let y = builder.buffer("y", DataType::F32, &[3]);
    builder.node("most", DataType::F32, Reduction::new(ReductionMode::Max, x, most));
    builder.pointwise(DataType::F32, Mode::Mul, &[x, most], y);
    let graph = validated(builder);
    let subnormal = f64::from(f32::from_bits(1));
    let buffers = Buffers::from([
        (1, bytes(DataType::F32, &[-subnormal, f64::INFINITY, -1.0])),
        (3, vec![0; 12]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |values: [f64; 3]| evaluation.judge(y, &bytes(DataType::F32, &values), &[0; 12]);
    for first in [f64::NEG_INFINITY, f64::NAN] {
        let report = judge([first, f64::INFINITY, f64::NEG_INFINITY]).unwrap();
        assert_eq!((report.unbounded, report.wrong), (1, 0));
    }
    judge([f64::NAN, f64::INFINITY, f64::NAN]).unwrap_err();
    judge([f64::NAN, f64::NAN, f64::NEG_INFINITY]).unwrap_err();
}
