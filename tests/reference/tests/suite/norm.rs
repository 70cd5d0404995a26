//! Batch, layer and RMS normalization.

use crate::{buffers, bytes, elements, run, validated};
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, DataType, Graph, GraphBuilder,
    Layernorm, LayernormBackward, NormPhase, Op, RmsNorm, RmsNormBackward, Scalar, TensorId,
};
use rotini_reference::{Evaluation, ReferenceError, evaluate, execute};

const F64: DataType = DataType::F64;
const F32: DataType = DataType::F32;

/// A graph of one node with its inputs and outputs by name.
struct Norm {
    builder: GraphBuilder,
    dtype: DataType,
}

impl Norm {
    fn new(dtype: DataType) -> Self {
        Norm {
            builder: GraphBuilder::new(""),
            dtype,
        }
    }

    fn buffer(&mut self, name: &str, dims: &[i64]) -> TensorId {
        self.builder.buffer(name, self.dtype, dims)
    }

    fn constant(&mut self, value: f64) -> TensorId {
        self.builder.constant("", self.dtype, &[1], Scalar::float(value))
    }

    fn graph(mut self, op: impl Into<Op>) -> Graph {
        self.builder.node("", self.dtype, op);
        validated(self.builder)
    }
}

fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!(
            (got - want).abs() <= 1e-6 * want.abs().max(1.0),
            "{got} instead of {want}"
        );
    }
}

/// Values on no grid.
fn irregular(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|i| ((i as f64 + seed) * 12.9898).sin()).collect()
}

#[test]
fn batchnorm_inference_by_hand() {
    let mut norm = Norm::new(F32);
    let x = norm.buffer("x", &[1, 2, 2]);
    let [mean, inv_variance, scale, bias] =
        ["mean", "inv_variance", "scale", "bias"].map(|name| norm.buffer(name, &[1, 2, 1]));
    let y = norm.buffer("y", &[1, 2, 2]);
    let graph = norm.graph(BatchnormInference {
        x,
        mean,
        inv_variance,
        scale,
        bias,
        y,
    });
    let inputs: [(TensorId, &[f64]); 5] = [
        (x, &[1.0, 2.0, 3.0, 4.0]),
        (mean, &[1.0, 3.0]),
        (inv_variance, &[2.0, 0.5]),
        (scale, &[3.0, -4.0]),
        (bias, &[10.0, 20.0]),
    ];
    assert_eq!(run(&graph, &inputs, y), [10.0, 16.0, 20.0, 18.0]);
}

#[test]
fn batchnorm_inference_with_variance_by_hand() {
    let mut norm = Norm::new(F32);
    let x = norm.buffer("x", &[2, 1]);
    // Fewer dims than x has are enough for a channel.
    let [mean, variance, scale, bias] =
        ["mean", "variance", "scale", "bias"].map(|name| norm.buffer(name, &[1, 1, 1, 1]));
    let epsilon = norm.constant(0.5);
    let y = norm.buffer("y", &[2, 1]);
    let graph = norm.graph(BatchnormInferenceVariance {
        x,
        mean,
        variance,
        scale,
        bias,
        epsilon,
        y,
    });
    let inputs: [(TensorId, &[f64]); 5] = [
        (x, &[1.0, 5.0]),
        (mean, &[1.0]),
        (variance, &[3.5]),
        (scale, &[3.0]),
        (bias, &[1.0]),
    ];
    assert_eq!(run(&graph, &inputs, y), [1.0, 7.0]);
}

struct Training {
    graph: Graph,
    x: TensorId,
    parameters: [TensorId; 2],
    running: [TensorId; 2],
    /// y, mean, inverse variance, running mean, running variance.
    outputs: [TensorId; 5],
}

fn training(dtype: DataType, dims: &[i64], epsilon: f64, momentum: f64) -> Training {
    let mut norm = Norm::new(dtype);
    let mut channel = vec![1; dims.len()];
    channel[1] = dims[1];
    let x = norm.buffer("x", dims);
    let [scale, bias, prev_mean, prev_variance] =
        ["scale", "bias", "prev_mean", "prev_variance"].map(|name| norm.buffer(name, &channel));
    let [epsilon, momentum] = [epsilon, momentum].map(|value| norm.constant(value));
    let y = norm.buffer("y", dims);
    let [mean, inv_variance, next_mean, next_variance] =
        ["mean", "inv_variance", "next_mean", "next_variance"].map(|name| norm.buffer(name, &channel));
    let graph = norm.graph(Batchnorm {
        x,
        scale,
        bias,
        epsilon,
        peer_stats: vec![],
        prev_running_mean: Some(prev_mean),
        prev_running_variance: Some(prev_variance),
        momentum: Some(momentum),
        y,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        next_running_mean: Some(next_mean),
        next_running_variance: Some(next_variance),
    });
    Training {
        graph,
        x,
        parameters: [scale, bias],
        running: [prev_mean, prev_variance],
        outputs: [y, mean, inv_variance, next_mean, next_variance],
    }
}

#[test]
fn batchnorm_training_by_hand() {
    // Two elements: mean 2, variance 1, unbiased 2.
    let norm = training(F32, &[2, 1, 1], 3.0, 0.25);
    let inputs: [(TensorId, &[f64]); 5] = [
        (norm.x, &[1.0, 3.0]),
        (norm.parameters[0], &[4.0]),
        (norm.parameters[1], &[1.0]),
        (norm.running[0], &[4.0]),
        (norm.running[1], &[6.0]),
    ];
    let got = norm.outputs.map(|output| run(&norm.graph, &inputs, output));
    assert_eq!(got[0], [-1.0, 3.0]);
    assert_eq!(got[1..], [[2.0], [0.5], [3.5], [5.0]]);

    // One element has no unbiased variance: hipDNN's reference takes the biased one.
    let norm = training(F32, &[1, 1, 1], 4.0, 0.5);
    let inputs: [(TensorId, &[f64]); 5] = [
        (norm.x, &[7.0]),
        (norm.parameters[0], &[4.0]),
        (norm.parameters[1], &[1.0]),
        (norm.running[0], &[1.0]),
        (norm.running[1], &[6.0]),
    ];
    let got = norm.outputs.map(|output| run(&norm.graph, &inputs, output));
    assert_eq!(got, [[1.0], [7.0], [0.5], [4.0], [3.0]]);
}

struct Layer {
    graph: Graph,
    x: TensorId,
    parameters: [TensorId; 2],
    /// y, mean, inverse variance.
    outputs: [TensorId; 3],
}

fn layer(dtype: DataType, dims: &[i64], count: usize, epsilon: f64, padded: bool) -> Layer {
    let mut norm = Norm::new(dtype);
    let (outer, inner) = dims.split_at(dims.len() - count);
    let [parameter, statistic] = if padded {
        [
            [vec![1; outer.len()], inner.to_vec()].concat(),
            [outer.to_vec(), vec![1; count]].concat(),
        ]
    } else {
        [inner.to_vec(), outer.to_vec()]
    };
    let x = norm.buffer("x", dims);
    let [scale, bias] = ["scale", "bias"].map(|name| norm.buffer(name, &parameter));
    let epsilon = norm.constant(epsilon);
    let y = norm.buffer("y", dims);
    let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| norm.buffer(name, &statistic));
    let graph = norm.graph(Layernorm {
        x,
        scale,
        bias,
        epsilon,
        y,
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        normalized_dim_count: i64::try_from(count).unwrap(),
        phase: NormPhase::Training,
    });
    Layer {
        graph,
        x,
        parameters: [scale, bias],
        outputs: [y, mean, inv_variance],
    }
}

#[test]
fn layernorm_by_hand() {
    for padded in [false, true] {
        let norm = layer(F32, &[2, 1, 2], 2, 3.0, padded);
        let inputs: [(TensorId, &[f64]); 3] = [
            (norm.x, &[1.0, 3.0, -5.0, -3.0]),
            (norm.parameters[0], &[2.0, 4.0]),
            (norm.parameters[1], &[0.0, 1.0]),
        ];
        let got = norm.outputs.map(|output| run(&norm.graph, &inputs, output));
        assert_eq!(got[0], [-1.0, 3.0, -1.0, 3.0]);
        assert_eq!(got[1], [2.0, -4.0]);
        assert_eq!(got[2], [0.5, 0.5]);
    }
}

#[test]
fn layernorm_of_rows_is_batchnorm_of_channels() {
    let dims = [1, 3, 4, 5];
    let x = irregular(60, 0.3);
    let rows = layer(F64, &dims, 2, 1e-3, true);
    let channels = training(F64, &dims, 1e-3, 0.1);
    let layer_inputs: [(TensorId, &[f64]); 3] = [
        (rows.x, &x),
        (rows.parameters[0], &[1.0; 20]),
        (rows.parameters[1], &[0.0; 20]),
    ];
    let batch_inputs: [(TensorId, &[f64]); 5] = [
        (channels.x, &x),
        (channels.parameters[0], &[1.0; 3]),
        (channels.parameters[1], &[0.0; 3]),
        (channels.running[0], &[0.0; 3]),
        (channels.running[1], &[0.0; 3]),
    ];
    for (layer, batch) in rows.outputs.into_iter().zip(channels.outputs) {
        let (layer, batch) = (
            run(&rows.graph, &layer_inputs, layer),
            run(&channels.graph, &batch_inputs, batch),
        );
        close(&layer, &batch);
    }
}

struct Rms {
    graph: Graph,
    x: TensorId,
    parameters: [TensorId; 2],
    y: TensorId,
    inv_rms: TensorId,
}

fn rms(dtype: DataType, dims: &[i64], scale_dims: &[i64], epsilon: f64) -> Rms {
    let mut norm = Norm::new(dtype);
    let statistic: Vec<i64> = dims
        .iter()
        .zip(scale_dims)
        .map(|(&dim, &scale)| if scale == 1 { dim } else { 1 })
        .collect();
    let x = norm.buffer("x", dims);
    let [scale, bias] = ["scale", "bias"].map(|name| norm.buffer(name, scale_dims));
    let epsilon = norm.constant(epsilon);
    let y = norm.buffer("y", dims);
    let inv_rms = norm.buffer("inv_rms", &statistic);
    let graph = norm.graph(RmsNorm {
        x,
        scale,
        epsilon,
        bias: Some(bias),
        y,
        inv_rms: Some(inv_rms),
        phase: NormPhase::Training,
    });
    Rms {
        graph,
        x,
        parameters: [scale, bias],
        y,
        inv_rms,
    }
}

#[test]
fn rms_norm_by_hand() {
    // Mean of squares 13 and 1, with epsilon 16 and 4.
    let norm = rms(F32, &[2, 2], &[1, 2], 3.0);
    let inputs: [(TensorId, &[f64]); 3] = [
        (norm.x, &[1.0, 5.0, -1.0, 1.0]),
        (norm.parameters[0], &[4.0, 8.0]),
        (norm.parameters[1], &[0.0, 1.0]),
    ];
    assert_eq!(run(&norm.graph, &inputs, norm.y), [1.0, 11.0, -2.0, 5.0]);
    assert_eq!(run(&norm.graph, &inputs, norm.inv_rms), [0.25, 0.5]);
    // Over two dims: mean of squares 15 of four elements.
    let norm = rms(F32, &[1, 2, 2, 2], &[1, 1, 2, 2], 1.0);
    let inputs: [(TensorId, &[f64]); 3] = [
        (norm.x, &[1.0, 1.0, 3.0, 7.0, 0.0, 0.0, 0.0, 0.0]),
        (norm.parameters[0], &[4.0; 4]),
        (norm.parameters[1], &[0.0; 4]),
    ];
    assert_eq!(
        run(&norm.graph, &inputs, norm.y),
        [1.0, 1.0, 3.0, 7.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(run(&norm.graph, &inputs, norm.inv_rms), [0.25, 1.0]);
}

/// The derivative of `loss` with respect to each of `at`, numerically.
pub(crate) fn derivatives(at: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-4;
    (0..at.len())
        .map(|position| {
            let moved = |step: f64| {
                let mut at = at.to_vec();
                at[position] += step;
                loss(&at)
            };
            // Of fourth order.
            (8.0 * (moved(STEP) - moved(-STEP)) - (moved(2.0 * STEP) - moved(-2.0 * STEP))) / (12.0 * STEP)
        })
        .collect()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Checks dx, dscale and dbias against the derivatives of the sum of dy y, which `forward` gives for x, scale and bias.
fn check_gradients(
    [x, scale, bias, dy]: [&[f64]; 4],
    forward: impl Fn(&[f64], &[f64], &[f64]) -> Vec<f64>,
    [dx, dscale, dbias]: [&[f64]; 3],
) {
    close(dx, &derivatives(x, |x| inner(dy, &forward(x, scale, bias))));
    close(dscale, &derivatives(scale, |scale| inner(dy, &forward(x, scale, bias))));
    close(dbias, &derivatives(bias, |bias| inner(dy, &forward(x, scale, bias))));
}

#[test]
fn gradients_of_batchnorm_are_derivatives() {
    let dims = [2, 3, 2, 2];
    let [x, dy] = [0.1, 0.7].map(|seed| irregular(24, seed));
    let [scale, bias] = [0.4, 0.9].map(|seed| irregular(3, seed));
    let forward = training(F64, &dims, 1e-5, 0.1);
    let zeros = [0.0; 3];
    let run_forward = |x: &[f64], scale: &[f64], bias: &[f64], output: usize| {
        let inputs = [
            (forward.x, x),
            (forward.parameters[0], scale),
            (forward.parameters[1], bias),
            (forward.running[0], &zeros),
            (forward.running[1], &zeros),
        ];
        run(&forward.graph, &inputs, forward.outputs[output])
    };
    let saved = [1, 2].map(|output| run_forward(&x, &scale, &bias, output));
    for with_statistics in [true, false] {
        let mut norm = Norm::new(F64);
        let [dy_id, x_id, dx] = ["dy", "x", "dx"].map(|name| norm.buffer(name, &dims));
        let [mean, inv_variance, scale_id, dscale, dbias] =
            ["mean", "inv_variance", "scale", "dscale", "dbias"].map(|name| norm.buffer(name, &[1, 3, 1, 1]));
        let graph = norm.graph(BatchnormBackward {
            dy: dy_id,
            x: x_id,
            mean: with_statistics.then_some(mean),
            inv_variance: with_statistics.then_some(inv_variance),
            scale: scale_id,
            peer_stats: vec![],
            dx,
            dscale,
            dbias,
        });
        let inputs: [(TensorId, &[f64]); 5] = [
            (dy_id, &dy),
            (x_id, &x),
            (scale_id, &scale),
            (mean, &saved[0]),
            (inv_variance, &saved[1]),
        ];
        let [dx, dscale, dbias] = [dx, dscale, dbias].map(|output| run(&graph, &inputs, output));
        let y = |x: &[f64], scale: &[f64], bias: &[f64]| run_forward(x, scale, bias, 0);
        check_gradients([&x, &scale, &bias, &dy], y, [&dx, &dscale, &dbias]);
    }
}

#[test]
fn gradients_of_layernorm_are_derivatives() {
    let dims = [3, 2, 4];
    let [x, dy] = [0.1, 0.7].map(|seed| irregular(24, seed));
    let epsilon = 0.01;
    for count in [1, 2, 3] {
        let forward = layer(F64, &dims, count, epsilon, true);
        let columns = usize::try_from(dims[3 - count..].iter().product::<i64>()).unwrap();
        let [scale, bias] = [0.4, 0.9].map(|seed| irregular(columns, seed));
        let run_forward = |x: &[f64], scale: &[f64], bias: &[f64], output: usize| {
            let inputs = [
                (forward.x, x),
                (forward.parameters[0], scale),
                (forward.parameters[1], bias),
            ];
            run(&forward.graph, &inputs, forward.outputs[output])
        };
        let saved = [1, 2].map(|output| run_forward(&x, &scale, &bias, output));
        for with_statistics in [true, false] {
            let mut norm = Norm::new(F64);
            let [dy_id, x_id, dx] = ["dy", "x", "dx"].map(|name| norm.buffer(name, &dims));
            let [mut parameter, mut statistic] = [dims; 2];
            parameter[..3 - count].fill(1);
            statistic[3 - count..].fill(1);
            let [mean, inv_variance] = ["mean", "inv_variance"].map(|name| norm.buffer(name, &statistic));
            let [scale_id, dscale, dbias] = ["scale", "dscale", "dbias"].map(|name| norm.buffer(name, &parameter));
            let epsilon = norm.constant(epsilon);
            let graph = norm.graph(LayernormBackward {
                dy: dy_id,
                x: x_id,
                scale: scale_id,
                mean: with_statistics.then_some(mean),
                inv_variance: with_statistics.then_some(inv_variance),
                epsilon: Some(epsilon),
                dx,
                dscale,
                dbias,
                normalized_dim_count: i64::try_from(count).unwrap(),
            });
            let inputs: [(TensorId, &[f64]); 5] = [
                (dy_id, &dy),
                (x_id, &x),
                (scale_id, &scale),
                (mean, &saved[0]),
                (inv_variance, &saved[1]),
            ];
            let [dx, dscale, dbias] = [dx, dscale, dbias].map(|output| run(&graph, &inputs, output));
            let y = |x: &[f64], scale: &[f64], bias: &[f64]| run_forward(x, scale, bias, 0);
            check_gradients([&x, &scale, &bias, &dy], y, [&dx, &dscale, &dbias]);
        }
    }
}

#[test]
fn gradients_of_rms_norm_are_derivatives() {
    let dims = [3, 2, 4];
    let [x, dy] = [0.1, 0.7].map(|seed| irregular(24, seed));
    for scale_dims in [[1, 1, 4], [1, 2, 4]] {
        let forward = rms(F64, &dims, &scale_dims, 0.01);
        let columns = usize::try_from(scale_dims.iter().product::<i64>()).unwrap();
        let [scale, bias] = [0.4, 0.9].map(|seed| irregular(columns, seed));
        let run_forward = |x: &[f64], scale: &[f64], bias: &[f64], output: TensorId| {
            let inputs = [
                (forward.x, x),
                (forward.parameters[0], scale),
                (forward.parameters[1], bias),
            ];
            run(&forward.graph, &inputs, output)
        };
        let saved = run_forward(&x, &scale, &bias, forward.inv_rms);
        let mut norm = Norm::new(F64);
        let [dy_id, x_id, dx] = ["dy", "x", "dx"].map(|name| norm.buffer(name, &dims));
        let inv_rms = norm.buffer("inv_rms", &[3, 3 - scale_dims[1], 1]);
        let [scale_id, dscale, dbias] = ["scale", "dscale", "dbias"].map(|name| norm.buffer(name, &scale_dims));
        let graph = norm.graph(RmsNormBackward {
            dy: dy_id,
            x: x_id,
            scale: scale_id,
            inv_rms,
            dx,
            dscale,
            dbias: Some(dbias),
        });
        let inputs: [(TensorId, &[f64]); 4] = [(dy_id, &dy), (x_id, &x), (scale_id, &scale), (inv_rms, &saved)];
        let [dx, dscale, dbias] = [dx, dscale, dbias].map(|output| run(&graph, &inputs, output));
        let y = |x: &[f64], scale: &[f64], bias: &[f64]| run_forward(x, scale, bias, forward.y);
        check_gradients([&x, &scale, &bias, &dy], y, [&dx, &dscale, &dbias]);
    }
}

/// y of a layernorm over one row in binary32, with `sum` to sum up and `store` for what is between the steps.
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
        // A mean far from 0, which makes the variance hard.
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

/// Judges one output with each of its elements, and with each of them a little off.
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
