//! The pointwise modes, broadcasting, and integers.

use crate::{buffers, elements, run, validated};
use rotini_graph::{DataType, Graph, GraphBuilder, Pointwise, PointwiseMode as Mode, TensorId, TensorKind};
use rotini_reference::{Options, Precision, ReferenceError, execute, execute_with};

/// Sets parameters other than the defaults, for the modes that have them.
fn with_parameters(mut op: Pointwise) -> Pointwise {
    match op.mode {
        Mode::ReluFwd | Mode::ReluBwd => {
            op.relu_lower_clip = Some(-0.5);
            op.relu_upper_clip = Some(1.5);
            op.relu_lower_clip_slope = Some(0.25);
        }
        Mode::SwishFwd | Mode::SwishBwd => op.swish_beta = Some(1.5),
        Mode::EluFwd | Mode::EluBwd => op.elu_alpha = Some(0.75),
        Mode::SoftplusFwd | Mode::SoftplusBwd => op.softplus_beta = Some(2.5),
        Mode::GenIndex => op.axis = Some(0),
        _ => {}
    }
    op
}

/// Returns a graph of one node over vectors.
fn graph(
    types: [DataType; 3],
    mode: Mode,
    length: usize,
    change: impl Fn(Pointwise) -> Pointwise,
) -> (Graph, Vec<TensorId>) {
    let [input, compute, output] = types;
    let dims = [i64::try_from(length).unwrap()];
    let mut builder = GraphBuilder::new("");
    let operands: Vec<TensorId> = (0..mode.arity()).map(|_| builder.buffer("in", input, &dims)).collect();
    let out = builder.buffer("out", output, &dims);
    let operand = |index: usize| operands.get(index).copied();
    let op = Pointwise::new(mode, operands[0], operand(1), operand(2), out);
    builder.node("", compute, change(op));
    let mut ids = operands;
    ids.push(out);
    (validated(builder), ids)
}

/// Runs one mode over vectors in one type.
fn apply(dtype: DataType, mode: Mode, operands: &[&[f64]], change: impl Fn(Pointwise) -> Pointwise) -> Vec<f64> {
    let (graph, ids) = graph([dtype; 3], mode, operands[0].len(), change);
    let inputs: Vec<(TensorId, &[f64])> = ids.iter().copied().zip(operands.iter().copied()).collect();
    run(&graph, &inputs, *ids.last().unwrap())
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Asserts that numbers are equal up to a few units in the last place; all NaN are equal.
fn assert_near(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (got, want) in got.iter().zip(want) {
        let near = got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= 4e-15 * want.abs().max(1.0);
        assert!(near, "{what}: {got} instead of {want}");
    }
}

/// A mode, its operands and its results.
type Case<'a> = (Mode, &'a [&'a [f64]], &'a [f64]);

#[test]
fn known_values() {
    // Constants from tables: Φ(1), erf(1/2), the logistic function and others, to all digits of
    // binary64.
    let cases: [Case; 38] = [
        (Mode::Abs, &[&[-2.5, 0.0, NAN]], &[2.5, 0.0, NAN]),
        (Mode::Add, &[&[1.0, INF], &[2.5, -INF]], &[3.5, NAN]),
        (Mode::AddSquare, &[&[1.0], &[-3.0]], &[10.0]),
        (
            Mode::BinarySelect,
            &[&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &[1.0, 0.0, NAN, -0.0]],
            &[1.0, 6.0, 3.0, 8.0],
        ),
        (Mode::Ceil, &[&[-1.5, 1.25, 3.0]], &[-1.0, 2.0, 3.0]),
        (
            Mode::CmpEq,
            &[&[1.0, 1.0, NAN, 0.0], &[1.0, 2.0, NAN, -0.0]],
            &[1.0, 0.0, 0.0, 1.0],
        ),
        (
            Mode::CmpGe,
            &[&[1.0, 1.0, 2.0, NAN], &[1.0, 2.0, 1.0, 1.0]],
            &[1.0, 0.0, 1.0, 0.0],
        ),
        (
            Mode::CmpGt,
            &[&[1.0, 1.0, 2.0, NAN], &[1.0, 2.0, 1.0, 1.0]],
            &[0.0, 0.0, 1.0, 0.0],
        ),
        (
            Mode::CmpLe,
            &[&[1.0, 1.0, 2.0, NAN], &[1.0, 2.0, 1.0, 1.0]],
            &[1.0, 1.0, 0.0, 0.0],
        ),
        (
            Mode::CmpLt,
            &[&[1.0, 1.0, 2.0, NAN], &[1.0, 2.0, 1.0, 1.0]],
            &[0.0, 1.0, 0.0, 0.0],
        ),
        (Mode::CmpNeq, &[&[1.0, 1.0, NAN], &[1.0, 2.0, NAN]], &[0.0, 1.0, 1.0]),
        (Mode::Div, &[&[1.0, 1.0, 0.0], &[4.0, 0.0, 0.0]], &[0.25, INF, NAN]),
        (
            Mode::EluFwd,
            &[&[2.0, -1.0, -INF]],
            &[2.0, -0.632_120_558_828_557_7, -1.0],
        ),
        (
            Mode::Erf,
            &[&[0.5, -0.5, INF]],
            &[0.520_499_877_813_046_5, -0.520_499_877_813_046_5, 1.0],
        ),
        (Mode::Exp, &[&[1.0, 0.0, -INF]], &[std::f64::consts::E, 1.0, 0.0]),
        (Mode::Floor, &[&[-1.5, 1.25, 3.0]], &[-2.0, 1.0, 3.0]),
        (
            Mode::GeluApproxTanhFwd,
            &[&[1.0, -1.0]],
            &[0.841_191_990_608_276_3, -0.158_808_009_391_723_7],
        ),
        (
            Mode::GeluFwd,
            &[&[1.0, -1.0, 0.0]],
            &[0.841_344_746_068_542_9, -0.158_655_253_931_457_05, 0.0],
        ),
        (Mode::GenIndex, &[&[9.0, 9.0, 9.0]], &[0.0, 1.0, 2.0]),
        (Mode::Identity, &[&[1.25, -INF, NAN]], &[1.25, -INF, NAN]),
        (Mode::Log, &[&[2.0, 0.0, -1.0]], &[std::f64::consts::LN_2, -INF, NAN]),
        (
            Mode::LogicalAnd,
            &[&[0.0, 2.0, 2.0, NAN], &[1.0, -1.0, 0.0, 1.0]],
            &[0.0, 1.0, 0.0, 1.0],
        ),
        (Mode::LogicalNot, &[&[0.0, -0.0, 0.5, NAN]], &[1.0, 1.0, 0.0, 0.0]),
        (
            Mode::LogicalOr,
            &[&[0.0, 0.0, 2.0], &[0.0, -1.0, 0.0]],
            &[0.0, 1.0, 1.0],
        ),
        (
            Mode::Max,
            &[&[1.0, NAN, 1.0, -INF], &[2.0, 1.0, NAN, -1.0]],
            &[2.0, NAN, NAN, -1.0],
        ),
        (
            Mode::Min,
            &[&[1.0, NAN, 1.0, INF], &[2.0, 1.0, NAN, -1.0]],
            &[1.0, NAN, NAN, -1.0],
        ),
        (Mode::Mul, &[&[1.5, 0.0], &[-2.0, INF]], &[-3.0, NAN]),
        (Mode::Neg, &[&[1.5, -INF]], &[-1.5, INF]),
        (Mode::Reciprocal, &[&[4.0, 0.0, -INF]], &[0.25, INF, 0.0]),
        (
            Mode::ReluFwd,
            &[&[-2.0, 3.0, -INF, INF, NAN]],
            &[0.0, 3.0, 0.0, INF, NAN],
        ),
        (Mode::Rsqrt, &[&[4.0, 0.0, -1.0]], &[0.5, INF, NAN]),
        (
            Mode::SigmoidFwd,
            &[&[2.0, -1000.0, 1000.0]],
            &[0.880_797_077_977_882_3, 0.0, 1.0],
        ),
        (Mode::Sin, &[&[std::f64::consts::FRAC_PI_6]], &[0.5]),
        (
            Mode::SoftplusFwd,
            &[&[0.0, 1000.0, -1000.0]],
            &[std::f64::consts::LN_2, 1000.0, 0.0],
        ),
        (Mode::Sqrt, &[&[2.0, -1.0]], &[std::f64::consts::SQRT_2, NAN]),
        (Mode::Sub, &[&[1.0], &[2.5]], &[-1.5]),
        (
            Mode::SwishFwd,
            &[&[1.0, -2.0]],
            &[0.731_058_578_630_004_9, -0.238_405_844_044_235_15],
        ),
        (Mode::TanhFwd, &[&[0.5, INF]], &[0.462_117_157_260_009_76, 1.0]),
    ];
    for (mode, operands, want) in cases {
        let got = apply(DataType::F64, mode, operands, |op| Pointwise {
            axis: (mode == Mode::GenIndex).then_some(0),
            ..op
        });
        assert_near(&got, want, mode.name());
    }
    let quarter = std::f64::consts::FRAC_PI_4;
    assert_near(&apply(DataType::F64, Mode::Tan, &[&[quarter]], |op| op), &[1.0], "TAN");
}

#[test]
fn parameters_of_the_activations() {
    let relu = |change: fn(&mut Pointwise), x: &[f64]| {
        apply(DataType::F64, Mode::ReluFwd, &[x], |mut op| {
            change(&mut op);
            op
        })
    };
    let x = [-4.0, -0.5, 0.0, 1.0, 6.0, 7.0];
    assert_eq!(
        relu(|op| op.relu_upper_clip = Some(6.0), &x),
        [0.0, 0.0, 0.0, 1.0, 6.0, 6.0]
    );
    assert_eq!(
        relu(|op| op.relu_lower_clip_slope = Some(0.25), &x),
        [-1.0, -0.125, 0.0, 1.0, 6.0, 7.0]
    );
    // The line goes through the point of the lower clip.
    let clipped = |op: &mut Pointwise| {
        op.relu_lower_clip = Some(-0.5);
        op.relu_lower_clip_slope = Some(2.0);
    };
    assert_eq!(relu(clipped, &x), [-7.5, -0.5, 0.0, 1.0, 6.0, 7.0]);

    let swish = apply(DataType::F64, Mode::SwishFwd, &[&[1.0]], |op| Pointwise {
        swish_beta: Some(2.0),
        ..op
    });
    assert_near(&swish, &[0.880_797_077_977_882_3], "the logistic function of 2");
    let elu = apply(DataType::F64, Mode::EluFwd, &[&[-1.0, 1.0]], |op| Pointwise {
        elu_alpha: Some(2.0),
        ..op
    });
    assert_near(&elu, &[-1.264_241_117_657_115_4, 1.0], "ELU");
    let softplus = apply(DataType::F64, Mode::SoftplusFwd, &[&[0.0]], |op| Pointwise {
        softplus_beta: Some(2.0),
        ..op
    });
    assert_near(&softplus, &[std::f64::consts::LN_2 / 2.0], "softplus");
}

#[test]
fn gradients_are_the_derivatives_of_their_functions() {
    let pairs = [
        (Mode::ReluFwd, Mode::ReluBwd),
        (Mode::TanhFwd, Mode::TanhBwd),
        (Mode::SigmoidFwd, Mode::SigmoidBwd),
        (Mode::EluFwd, Mode::EluBwd),
        (Mode::GeluFwd, Mode::GeluBwd),
        (Mode::GeluApproxTanhFwd, Mode::GeluApproxTanhBwd),
        (Mode::SoftplusFwd, Mode::SoftplusBwd),
        (Mode::SwishFwd, Mode::SwishBwd),
    ];
    let backward = Mode::ALL.iter().filter(|mode| mode.name().ends_with("_BWD")).count();
    assert_eq!(backward, pairs.len(), "every gradient has a pair");
    // None of these is at a kink.
    let x = [-3.0, -1.2, -0.4, 0.3, 0.9, 1.4, 2.0, 3.5];
    let dy = [2.0, -1.0, 0.5, 3.0, -2.0, 1.0, -0.25, 4.0];
    let step = 1e-5;
    type Change = fn(Pointwise) -> Pointwise;
    for change in [with_parameters as Change, |op| op] {
        for (forward, backward) in pairs {
            let at = |shift: f64| {
                let moved: Vec<f64> = x.iter().map(|x| x + shift).collect();
                apply(DataType::F64, forward, &[&moved], change)
            };
            let (low, high) = (at(-step), at(step));
            let got = apply(DataType::F64, backward, &[&dy, &x], change);
            for index in 0..x.len() {
                let derivative = (high[index] - low[index]) / (2.0 * step);
                let difference = (got[index] - dy[index] * derivative).abs();
                assert!(
                    difference < 1e-8,
                    "{} at {}: off by {difference}",
                    backward.name(),
                    x[index]
                );
            }
        }
    }
}

#[test]
fn relu_gradient_at_its_clips() {
    let got = apply(
        DataType::F64,
        Mode::ReluBwd,
        &[&[1.0, 1.0, 1.0, 1.0], &[-0.5, -0.25, 1.5, 1.75]],
        with_parameters,
    );
    assert_eq!(got, [0.25, 1.0, 1.0, 0.0]);
}

#[test]
fn every_mode_computes_in_floats_and_the_listed_ones_in_integers() {
    let integral = [
        Mode::Abs,
        Mode::Add,
        Mode::AddSquare,
        Mode::BinarySelect,
        Mode::CmpEq,
        Mode::CmpGe,
        Mode::CmpGt,
        Mode::CmpLe,
        Mode::CmpLt,
        Mode::CmpNeq,
        Mode::Div,
        Mode::GenIndex,
        Mode::Identity,
        Mode::LogicalAnd,
        Mode::LogicalNot,
        Mode::LogicalOr,
        Mode::Max,
        Mode::Min,
        Mode::Mul,
        Mode::Neg,
        Mode::ReluFwd,
        Mode::Sub,
    ];
    let axis = |op: Pointwise| Pointwise {
        axis: (op.mode == Mode::GenIndex).then_some(0),
        ..op
    };
    for &mode in Mode::ALL {
        for dtype in [DataType::F64, DataType::F32, DataType::F16, DataType::Bf16] {
            let (graph, _) = graph([dtype; 3], mode, 3, axis);
            execute(&graph, &mut buffers(&graph, &[]))
                .unwrap_or_else(|error| panic!("{} in {dtype}: {error}", mode.name()));
        }
        for dtype in [DataType::I64, DataType::I32, DataType::I8, DataType::U8] {
            let (graph, _) = graph([dtype; 3], mode, 3, axis);
            let result = execute(&graph, &mut buffers(&graph, &[]));
            let unsupported = matches!(&result, Err(ReferenceError::Unsupported { .. }));
            assert_eq!(
                unsupported,
                !integral.contains(&mode),
                "{} in {dtype}: {result:?}",
                mode.name()
            );
        }
    }
    let (graph, _) = graph([DataType::I32; 3], Mode::ReluFwd, 3, with_parameters);
    let result = execute(&graph, &mut buffers(&graph, &[]));
    assert!(
        matches!(result, Err(ReferenceError::Unsupported { .. })),
        "clips between integers: {result:?}"
    );
}

#[test]
fn integers_wrap_in_their_width() {
    let apply = |dtype, mode, operands: &[&[f64]]| apply(dtype, mode, operands, |op| op);
    let (least, most) = (f64::from(i32::MIN), f64::from(i32::MAX));
    assert_eq!(
        apply(DataType::I32, Mode::Add, &[&[most, 5.0], &[1.0, -7.0]]),
        [least, -2.0]
    );
    assert_eq!(apply(DataType::I32, Mode::Sub, &[&[least], &[1.0]]), [most]);
    assert_eq!(
        apply(DataType::I32, Mode::Mul, &[&[65536.0, -3.0], &[65536.0, 7.0]]),
        [0.0, -21.0]
    );
    assert_eq!(apply(DataType::I32, Mode::Neg, &[&[least, 4.0]]), [least, -4.0]);
    assert_eq!(apply(DataType::I32, Mode::Abs, &[&[least, -4.0]]), [least, 4.0]);
    assert_eq!(apply(DataType::I32, Mode::AddSquare, &[&[1.0], &[-3.0]]), [10.0]);
    assert_eq!(apply(DataType::I8, Mode::Add, &[&[127.0], &[1.0]]), [-128.0]);
    assert_eq!(apply(DataType::U8, Mode::Sub, &[&[1.0], &[2.0]]), [255.0]);
    assert_eq!(
        apply(DataType::I32, Mode::ReluFwd, &[&[-3.0, 0.0, 9.0]]),
        [0.0, 0.0, 9.0]
    );
    assert_eq!(
        apply(DataType::I32, Mode::CmpGt, &[&[1.0, -1.0], &[-1.0, 1.0]]),
        [1.0, 0.0]
    );
    let past = 2.0_f64.powi(53);
    let (graph, ids) = graph([DataType::I64; 3], Mode::Sub, 1, |op| op);
    let mut buffers = buffers(&graph, &[(ids[1], &[past])]);
    buffers.insert(1, ((1_i64 << 53) + 1).to_le_bytes().to_vec());
    execute(&graph, &mut buffers).unwrap();
    assert_eq!(
        elements(DataType::I64, &buffers[&3]),
        [1.0],
        "integers beyond 2^53 are exact"
    );
}

#[test]
fn operands_broadcast_to_the_declared_result() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[2, 2, 1, 3]);
    let channel = builder.buffer("channel", DataType::F32, &[1, 2, 1, 1]);
    let row = builder.buffer("row", DataType::F32, &[3]);
    let sum = builder.virtual_tensor("sum", DataType::F32, &[2, 2, 1, 3]);
    let y = builder.buffer("y", DataType::F32, &[2, 2, 1, 3]);
    // The result is larger than its operand, which has only one element.
    let all = builder.buffer("all", DataType::F32, &[2, 2]);
    let one = builder.buffer("one", DataType::F32, &[1, 1]);
    // The same element along the second axis.
    let repeated = builder.tensor("repeated", DataType::F32, &[2, 2], &[1, 0], TensorKind::Buffer);
    let difference = builder.buffer("difference", DataType::F32, &[2, 2]);
    builder.pointwise(DataType::F32, Mode::Add, &[channel, x], sum);
    builder.pointwise(DataType::F32, Mode::Add, &[sum, row], y);
    builder.pointwise(DataType::F32, Mode::Neg, &[one], all);
    builder.pointwise(DataType::F32, Mode::Sub, &[repeated, one], difference);
    let graph = validated(builder);
    let x_values: Vec<f64> = (0..12).map(f64::from).collect();
    let inputs: [(TensorId, &[f64]); 5] = [
        (x, &x_values),
        (channel, &[100.0, 200.0]),
        (row, &[1000.0, 2000.0, 3000.0]),
        (one, &[7.0]),
        (repeated, &[10.0, 20.0]),
    ];
    assert_eq!(
        run(&graph, &inputs, y),
        [
            1100.0, 2101.0, 3102.0, 1203.0, 2204.0, 3205.0, 1106.0, 2107.0, 3108.0, 1209.0, 2210.0, 3211.0
        ]
    );
    assert_eq!(run(&graph, &inputs, all), [-7.0; 4]);
    assert_eq!(run(&graph, &inputs, difference), [3.0, 3.0, 13.0, 13.0]);
}

#[test]
fn gen_index_counts_along_its_axis() {
    for (axis, want) in [(0, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), (1, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0])] {
        let mut builder = GraphBuilder::new("");
        let x = builder.buffer("x", DataType::F32, &[2, 3]);
        let y = builder.buffer("y", DataType::I32, &[2, 3]);
        let mut op = Pointwise::new(Mode::GenIndex, x, None, None, y);
        op.axis = Some(axis);
        builder.node("", DataType::F32, op);
        assert_eq!(run(&validated(builder), &[], y), want);
    }
}

#[test]
fn compute_precision_is_that_of_the_type() {
    let (graph, ids) = graph([DataType::F32; 3], Mode::Add, 1, |op| op);
    // In binary32, 2^24 + 1 is a tie that rounds to 2^24; stored as f64, a sum that was not rounded
    // would show.
    let mut graph = graph;
    graph.tensors[2].dtype = DataType::F64;
    let inputs: [(TensorId, &[f64]); 2] = [(ids[0], &[16_777_216.0]), (ids[1], &[1.0])];
    let with = |precision| {
        let mut buffers = buffers(&graph, &inputs);
        let options = Options {
            precision,
            ..Options::default()
        };
        execute_with(&graph, &mut buffers, &options).unwrap();
        elements(DataType::F64, &buffers[&3])
    };
    assert_eq!(with(Precision::F64), [16_777_217.0]);
    assert_eq!(with(Precision::Compute), [16_777_216.0]);
}
