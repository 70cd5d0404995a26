//! Reductions.

use crate::{bytes, run, validated};
use rotini_graph::{DataType, Graph, GraphBuilder, Reduction, ReductionMode as Mode, TensorId};
use rotini_reference::{Buffers, ReferenceError, evaluate, execute};

const ALL: [Mode; 9] = [
    Mode::Add,
    Mode::Mul,
    Mode::Min,
    Mode::Max,
    Mode::Amax,
    Mode::Avg,
    Mode::Norm1,
    Mode::Norm2,
    Mode::MulNoZeros,
];

fn reduction(dtype: DataType, mode: Mode, from: &[i64], to: &[i64]) -> (Graph, TensorId, TensorId) {
    let mut builder = GraphBuilder::new("");
    let (input, output) = (builder.buffer("x", dtype, from), builder.buffer("y", dtype, to));
    builder.node("reduce", dtype, Reduction::new(mode, input, output));
    (validated(builder), input, output)
}

fn reduce(dtype: DataType, mode: Mode, from: &[i64], to: &[i64], values: &[f64]) -> Vec<f64> {
    let (graph, input, output) = reduction(dtype, mode, from, to);
    run(&graph, &[(input, values)], output)
}

#[test]
fn every_mode_by_hand() {
    let values = [-2.0, 0.0, 3.0, 4.0, -5.0, 1.0];
    let expected = [1.0, 0.0, -5.0, 4.0, 5.0, 1.0 / 6.0, 15.0, 55.0_f64.sqrt(), 120.0];
    for (mode, expected) in ALL.into_iter().zip(expected) {
        let got = reduce(DataType::F64, mode, &[2, 3], &[1, 1], &values);
        assert_eq!(got, [expected], "{mode:?}");
    }
    assert_eq!(
        reduce(DataType::F64, Mode::MulNoZeros, &[3], &[1], &[0.0; 3]),
        [1.0],
        "an empty product"
    );
}

#[test]
fn the_output_s_extents_choose_the_axes() {
    let values: Vec<f64> = (0..24).map(f64::from).collect();
    let sum = |to: &[i64]| reduce(DataType::F32, Mode::Add, &[2, 3, 4], to, &values);
    assert_eq!(sum(&[1, 3, 1]), [60.0, 92.0, 124.0]);
    assert_eq!(sum(&[2, 1, 1]), [66.0, 210.0]);
    assert_eq!(sum(&[1, 3, 4])[..3], [12.0, 14.0, 16.0]);
    assert_eq!(sum(&[1, 1, 1]), [276.0]);
}

#[test]
fn nan_and_infinities() {
    let one = |mode, values: &[f64]| {
        let count = i64::try_from(values.len()).unwrap();
        reduce(DataType::F32, mode, &[count], &[1], values)[0]
    };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for mode in [Mode::Min, Mode::Max] {
        assert_eq!(one(mode, &[nan, 2.0, nan]), 2.0, "{mode:?} passes over NaN");
        assert_eq!(one(mode, &[inf, inf]), inf, "{mode:?}");
        assert_eq!(one(mode, &[-inf, -inf]), -inf, "{mode:?}");
    }
    assert_eq!(one(Mode::Amax, &[nan, -2.0]), 2.0);
    assert_eq!(one(Mode::Amax, &[1.0, -inf]), inf);
    for mode in [
        Mode::Add,
        Mode::Mul,
        Mode::Avg,
        Mode::Norm1,
        Mode::Norm2,
        Mode::MulNoZeros,
    ] {
        assert!(one(mode, &[1.0, nan]).is_nan(), "{mode:?} passes NaN on");
        assert_eq!(one(mode, &[1.0, inf]), inf, "{mode:?}");
    }
    assert!(one(Mode::Add, &[-inf, inf]).is_nan());
    assert!(one(Mode::Mul, &[0.0, inf]).is_nan());
    assert_eq!(one(Mode::MulNoZeros, &[0.0, inf]), inf);
}

#[test]
fn integers() {
    let one = |dtype, mode, values: &[f64]| {
        let count = i64::try_from(values.len()).unwrap();
        reduce(dtype, mode, &[count], &[1], values)[0]
    };
    let values = [-7.0, 3.0, 0.0, 5.0];
    let cases = [
        (Mode::Add, 1.0),
        (Mode::Mul, 0.0),
        (Mode::Min, -7.0),
        (Mode::Max, 5.0),
        (Mode::Amax, 7.0),
        (Mode::Norm1, 15.0),
        (Mode::MulNoZeros, -105.0),
    ];
    for (mode, expected) in cases {
        assert_eq!(one(DataType::I32, mode, &values), expected, "{mode:?}");
    }
    let big = f64::from(1 << 30);
    assert_eq!(one(DataType::I32, Mode::Add, &[big, big]), f64::from(i32::MIN), "wraps");
    for mode in [Mode::Avg, Mode::Norm2] {
        let (graph, ..) = reduction(DataType::I32, mode, &[2], &[1]);
        let mut buffers = Buffers::from([(1, vec![0; 8]), (2, vec![0; 4])]);
        let error = execute(&graph, &mut buffers).unwrap_err();
        assert!(matches!(error, ReferenceError::Unsupported { .. }), "{error}");
    }
}

/// Returns the result of a kernel in f32, reducing the values in the order given.
fn in_f32(mode: Mode, values: impl Iterator<Item = f32>, count: f32) -> f32 {
    let fold = |start: f32, step: fn(f32, f32) -> f32| values.fold(start, step);
    match mode {
        Mode::Add => fold(0.0, |sum, x| sum + x),
        Mode::Mul => fold(1.0, |product, x| product * x),
        Mode::Min => fold(f32::INFINITY, f32::min),
        Mode::Max => fold(f32::NEG_INFINITY, f32::max),
        Mode::Amax => fold(0.0, |most, x| most.max(x.abs())),
        Mode::Avg => fold(0.0, |sum, x| sum + x) * (1.0 / count),
        Mode::Norm1 => fold(0.0, |sum, x| sum + x.abs()),
        Mode::Norm2 => fold(0.0, |sum, x| x.mul_add(x, sum)).sqrt(),
        Mode::MulNoZeros => fold(1.0, |product, x| if x == 0.0 { product } else { product * x }),
    }
}

/// Judges one f32 result of reducing `values`; `Ok(false)` if its error has no bound.
fn judge(mode: Mode, values: &[f32], got: f32) -> Result<bool, rotini_reference::Mismatch> {
    let count = i64::try_from(values.len()).unwrap();
    let (graph, _, output) = reduction(DataType::F32, mode, &[count], &[1]);
    let wide: Vec<f64> = values.iter().map(|&value| value.into()).collect();
    let buffers = Buffers::from([(1, bytes(DataType::F32, &wide)), (2, vec![0; 4])]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    evaluation
        .judge(output, &got.to_le_bytes(), &[0; 4])
        .map(|report| report.unbounded == 0)
}

#[test]
fn kernels_in_f32_pass_in_any_order_and_wrong_ones_do_not() {
    let values: Vec<f32> = (0..60)
        .map(|i| 1.0 + 0.9 * (f64::from(i) * 12.9898).sin() as f32)
        .collect();
    for mode in ALL {
        let forward = in_f32(mode, values.iter().copied(), 60.0);
        let backward = in_f32(mode, values.iter().rev().copied(), 60.0);
        assert_eq!(judge(mode, &values, forward), Ok(true), "{mode:?}");
        assert_eq!(judge(mode, &values, backward), Ok(true), "{mode:?}");
        assert!(judge(mode, &values, forward * 1.0001).is_err(), "{mode:?}");
        assert!(judge(mode, &values, forward * 0.9999).is_err(), "{mode:?}");
        assert!(judge(mode, &values, f32::NAN).is_err(), "{mode:?}");
    }
    // With whole numbers, every result but the average has exactly one right value.
    let whole = [3.0, -4.0, 12.0];
    let exact = [11.0, -144.0, -4.0, 12.0, 12.0, 11.0 / 3.0, 19.0, 13.0, -144.0];
    for (mode, exact) in ALL.into_iter().zip(exact) {
        judge(mode, &whole, exact).unwrap();
        let near = judge(mode, &whole, exact.next_up());
        assert_eq!(near.is_err(), mode != Mode::Avg, "{mode:?}");
    }
}

#[test]
fn nothing_is_known_of_what_overflows_or_underflows_on_its_way() {
    let big = 1e25_f32;
    // The product passes 1e50 on the way to 1: depending on its order, a kernel in f32 overflows to
    // infinity there.
    assert_eq!(judge(Mode::Mul, &[big, big, 1e-25, 1e-25], f32::INFINITY), Ok(false));
    assert_eq!(judge(Mode::Norm2, &[big, 0.0], f32::INFINITY), Ok(false));
    assert_eq!(
        judge(Mode::Add, &[f32::MAX, f32::MAX, -f32::MAX], f32::INFINITY),
        Ok(false)
    );
    // Squares and products that a device may flush to zero.
    judge(Mode::Norm2, &[1e-25, 0.0], 0.0).unwrap();
    judge(Mode::Norm2, &[1e-15, 0.0], 0.0).unwrap_err();
    judge(Mode::Mul, &[1e-30, 1e-30, 1e20], 0.0).unwrap();
    judge(Mode::Mul, &[1e-10, 1e-10, 1e20], 0.0).unwrap_err();
}
