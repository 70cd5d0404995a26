//! Error bounds of single functions: kernels that must pass, and faults that must be caught.

use crate::{bytes, elements, result, tensor, validated};
use rotini_graph::{DataType, Graph, GraphBuilder, PointwiseMode as Mode, Reduction, ReductionMode, TensorId};
use rotini_reference::{Buffers, Mismatch, Options, evaluate, fill_all};

/// Functions whose results may be off by one unit in the last place.
const APPROXIMATED: [Mode; 13] = [
    Mode::EluFwd,
    Mode::Erf,
    Mode::Exp,
    Mode::GeluApproxTanhFwd,
    Mode::GeluFwd,
    Mode::Log,
    Mode::Rsqrt,
    Mode::SigmoidFwd,
    Mode::Sin,
    Mode::SoftplusFwd,
    Mode::SwishFwd,
    Mode::Tan,
    Mode::TanhFwd,
];

/// Returns a graph with one function, its output, its buffers, and the results of a correct kernel.
fn function(mode: Mode, dtype: DataType, arguments: &[f64]) -> (Graph, TensorId, Buffers, Vec<f64>) {
    let mut builder = GraphBuilder::new("function");
    let extent = i64::try_from(arguments.len()).unwrap();
    let x = builder.buffer("x", dtype, &[extent]);
    let y = builder.buffer("y", dtype, &[extent]);
    builder.pointwise(dtype, mode, &[x], y);
    let graph = validated(builder);
    let mut buffers = fill_all(&graph, 1).unwrap();
    buffers.insert(tensor(&graph, x).uid, bytes(dtype, arguments));
    let right = elements(dtype, &result(&graph, &buffers, &Options::default(), y));
    (graph, y, buffers, right)
}

/// The mutant's results are off by one unit of f32, as those of a kernel that computes in f32 and
/// converts are.
#[test]
fn one_unit_of_f32_in_a_function_of_f64_is_caught() {
    let arguments: Vec<f64> = [1e-30, 1e-8, 0.3, 1.7, 20.0, 600.0]
        .into_iter()
        .flat_map(|magnitude| [magnitude, -magnitude])
        .collect();
    let of_numbers = |mode: &&Mode| mode.arity() == 1 && !matches!(mode, Mode::LogicalNot | Mode::GenIndex);
    for &mode in Mode::ALL.iter().filter(of_numbers) {
        let (graph, y, buffers, right) = function(mode, DataType::F64, &arguments);
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let before = &buffers[&tensor(&graph, y).uid];
        let judge = |results: &[f64]| evaluation.judge(y, &bytes(DataType::F64, results), before);
        assert_eq!(judge(&right).unwrap().wrong, 0);
        let mut mutants = 0;
        for (position, &value) in right.iter().enumerate() {
            if !value.is_normal() || value.abs() < 1e-290 {
                continue;
            }
            mutants += 1;
            let mut mutant = right.clone();
            if APPROXIMATED.contains(&mode) {
                mutant[position] = f64::from_bits(value.to_bits() + 1);
                judge(&mutant).unwrap_or_else(|error| panic!("{mode:?} of {}: {error}", arguments[position]));
            }
            mutant[position] = value * (1.0 + 2.0_f64.powi(-23));
            let error = judge(&mutant).expect_err("one unit of f32");
            assert!(
                matches!(&error, Mismatch::Values { report, .. } if report.wrong == 1),
                "{mode:?}: {error}"
            );
        }
        assert!(mutants > 0, "{mode:?} has no result to change");
    }
}

/// Tiny results need a relative bound: an absolute tolerance would accept any of these wrong ones.
#[test]
fn functions_of_f32_are_held_to_their_last_digits() {
    for (mode, argument) in [
        (Mode::Sin, -1e-8),
        (Mode::TanhFwd, 1e-20),
        (Mode::GeluFwd, -12.0),
        (Mode::Exp, -80.0),
    ] {
        let (graph, y, buffers, right) = function(mode, DataType::F32, &[argument]);
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let before = &buffers[&tensor(&graph, y).uid];
        let judge = |value: f64| evaluation.judge(y, &bytes(DataType::F32, &[value]), before);
        assert!(judge(right[0]).is_ok());
        for wrong in [0.0, right[0] * 1.000_01, right[0] * 0.999_99] {
            assert!(judge(wrong).is_err(), "{mode:?} of {argument}: {wrong}");
        }
    }
}

#[test]
fn a_zero_of_the_other_sign_is_caught() {
    for (mode, dtype) in [
        (Mode::Neg, DataType::F32),
        (Mode::TanhFwd, DataType::F64),
        (Mode::Identity, DataType::F16),
        (Mode::Ceil, DataType::F32),
        (Mode::Sin, DataType::F32),
    ] {
        let (graph, y, buffers, right) = function(mode, dtype, &[0.0, -0.0]);
        let evaluation = evaluate(&graph, &buffers).unwrap();
        let before = &buffers[&tensor(&graph, y).uid];
        assert!(evaluation.judge(y, &bytes(dtype, &right), before).is_ok());
        for position in [0, 1] {
            let mut mutant = right.clone();
            mutant[position] = -mutant[position];
            let error = evaluation.judge(y, &bytes(dtype, &mutant), before);
            assert!(error.is_err(), "{mode:?} in {dtype}, {mutant:?}");
        }
    }
    // A sum may start from a zero of either sign.
    let mut builder = GraphBuilder::new("sum");
    let x = builder.buffer("x", DataType::F32, &[2]);
    let y = builder.buffer("y", DataType::F32, &[1]);
    builder.node("sum", DataType::F32, Reduction::new(ReductionMode::Add, x, y));
    let graph = validated(builder);
    let mut buffers = fill_all(&graph, 1).unwrap();
    buffers.insert(tensor(&graph, x).uid, bytes(DataType::F32, &[-0.0, -0.0]));
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let before = &buffers[&tensor(&graph, y).uid];
    for zero in [0.0, -0.0] {
        assert!(evaluation.judge(y, &bytes(DataType::F32, &[zero]), before).is_ok());
    }
}

/// A device may round `x + y * y` once or twice; every other result is wrong.
#[test]
fn fused_steps_in_f64_are_allowed() {
    let mut builder = GraphBuilder::new("fused");
    let [x, y, z] = ["x", "y", "z"].map(|name| builder.buffer(name, DataType::F64, &[1]));
    builder.pointwise(DataType::F64, Mode::AddSquare, &[x, y], z);
    let graph = validated(builder);
    let (from, root) = (-0.055_f64, 0.236_067_977_499_79_f64);
    let (twice, once) = (from + root * root, root.mul_add(root, from));
    assert_ne!(twice, once, "the example shows the difference");
    let mut buffers = fill_all(&graph, 1).unwrap();
    buffers.insert(tensor(&graph, x).uid, bytes(DataType::F64, &[from]));
    buffers.insert(tensor(&graph, y).uid, bytes(DataType::F64, &[root]));
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let before = &buffers[&tensor(&graph, z).uid];
    let judge = |value: f64| evaluation.judge(z, &bytes(DataType::F64, &[value]), before);
    judge(twice).unwrap();
    judge(once).unwrap();
    judge(twice + 1e-16).unwrap_err();
}
