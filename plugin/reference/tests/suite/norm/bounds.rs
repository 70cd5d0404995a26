//! Error bounds of normalizations: results that must be accepted and rejected.

use super::graphs::{F32, layer, training};
use crate::{buffers, bytes, elements, irregular};
use rotini_graph::{Graph, Op, TensorId};
use rotini_reference::{Evaluation, ReferenceError, evaluate, execute};

/// Returns y of a layernorm over one row in binary32. `sum` adds terms, and `store` rounds
/// intermediates.
fn layernorm_in_f32(
    x: &[f32],
    scale: &[f32],
    epsilon: f32,
    sum: impl Fn(&mut dyn Iterator<Item = f32>) -> f32,
    store: impl Fn(f32) -> f32,
) -> Vec<f64> {
    let count = x.len() as f32;
    let mean = store(sum(&mut x.iter().copied()) / count);
    let variance = store(sum(&mut x.iter().map(|x| (x - mean) * (x - mean))) / count);
    let inv = 1.0 / (variance + epsilon).sqrt();
    x.iter()
        .zip(scale)
        .map(|(x, scale)| f64::from(scale * (store(x - mean) * inv)))
        .collect()
}

#[test]
fn kernels_in_f32_pass_in_any_order_and_worse_ones_do_not() {
    let count = 300;
    let norm = layer(F32, &[1, 300], 1, 1e-5, true);
    let [x, scale] = [0.2, 0.6].map(|seed| -> Vec<f32> {
        // A mean far from 0, which makes the variance ill-conditioned.
        irregular(count, seed)
            .iter()
            .map(|value| (value + 3.0) as f32)
            .collect()
    });
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| value.into()).collect() };
    let (wide_x, wide_scale) = (wide(&x), wide(&scale));
    let inputs: [(TensorId, &[f64]); 3] = [
        (norm.x, &wide_x),
        (norm.parameters[0], &wide_scale),
        (norm.parameters[1], &[0.0; 300]),
    ];
    let evaluation = evaluate(&norm.graph, &buffers(&norm.graph, &inputs)).unwrap();
    let judge = |y: &[f64]| evaluation.judge(norm.outputs[0], &bytes(F32, y), &bytes(F32, &vec![0.0; count]));

    let forward = |terms: &mut dyn Iterator<Item = f32>| terms.fold(0.0, |sum, term| sum + term);
    let halves = |terms: &mut dyn Iterator<Item = f32>| {
        let terms: Vec<f32> = terms.collect();
        let (even, odd): (Vec<_>, Vec<_>) = terms.chunks(7).enumerate().partition(|(index, _)| index % 2 == 0);
        [odd, even]
            .iter()
            .flatten()
            .map(|(_, chunk)| chunk.iter().sum::<f32>())
            .sum::<f32>()
    };
    let same = |value| value;
    let right = layernorm_in_f32(&x, &scale, 1e-5, forward, same);
    let other = layernorm_in_f32(&x, &scale, 1e-5, halves, same);
    assert_ne!(right, other, "the order matters here");
    assert_eq!(judge(&right).unwrap().unbounded, 0);
    judge(&other).unwrap();

    judge(&layernorm_in_f32(&x, &scale, 1e-3, forward, same)).unwrap_err();
    let bf16 = |value: f32| f32::from_bits(value.to_bits() & 0xFFFF_0000);
    judge(&layernorm_in_f32(&x, &scale, 1e-5, forward, bf16)).unwrap_err();
    let unscaled = layernorm_in_f32(&x, &vec![1.0; count], 1e-5, forward, same);
    judge(&unscaled).unwrap_err();
}

/// Checks that an output is accepted as it is, and rejected with all its elements off by a factor
/// of 1 + `off`.
fn judge_all(evaluation: &Evaluation<'_>, graph: &Graph, output: TensorId, right: &[f64], off: f64) {
    let before = bytes(F32, &vec![0.0; right.len()]);
    let report = evaluation.judge(output, &bytes(F32, right), &before).unwrap();
    assert_eq!(report.unbounded, 0, "{}", graph.tensor(output).unwrap());
    let wrong: Vec<f64> = right.iter().map(|value| value * (1.0 + off)).collect();
    evaluation.judge(output, &bytes(F32, &wrong), &before).unwrap_err();
}

#[test]
fn all_outputs_of_training_are_bounded_tightly() {
    let norm = training(F32, &[4, 3, 5], 1e-5, 0.1);
    let x: Vec<f64> = irregular(60, 0.5)
        .iter()
        .map(|value| f64::from((value + 2.0) as f32))
        .collect();
    let inputs: [(TensorId, &[f64]); 5] = [
        (norm.x, &x),
        (norm.parameters[0], &[0.7; 3]),
        (norm.parameters[1], &[0.1; 3]),
        (norm.running[0], &[0.3; 3]),
        (norm.running[1], &[1.3; 3]),
    ];
    let before = buffers(&norm.graph, &inputs);
    let mut after = before.clone();
    execute(&norm.graph, &mut after).unwrap();
    let evaluation = evaluate(&norm.graph, &before).unwrap();
    for output in norm.outputs {
        let uid = norm.graph.tensor(output).unwrap().uid;
        judge_all(&evaluation, &norm.graph, output, &elements(F32, &after[&uid]), 1e-3);
    }
}

#[test]
fn statistics_of_several_devices_are_not_computed() {
    let norm = training(F32, &[2, 1, 1], 1e-5, 0.1);
    let mut graph = norm.graph.clone();
    let Op::Batchnorm(op) = &mut graph.nodes[0].op else {
        unreachable!()
    };
    op.peer_stats = vec![norm.running[0]];
    let error = execute(&graph, &mut buffers(&graph, &[])).unwrap_err();
    assert!(matches!(error, ReferenceError::Unsupported { .. }), "{error}");
}
