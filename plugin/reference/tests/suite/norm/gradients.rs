//! The gradients against numerical derivatives.

use super::graphs::{F64, Norm, close, layer, rms, training};
use crate::{irregular, run};
use rotini_graph::{BatchnormBackward, LayernormBackward, RmsNormBackward, TensorId};

/// Returns the numerical derivative of `loss` with respect to each element of `at`.
pub(crate) fn derivatives(at: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-4;
    (0..at.len())
        .map(|position| {
            let moved = |step: f64| {
                let mut at = at.to_vec();
                at[position] += step;
                loss(&at)
            };
            // A central difference of fourth order.
            (8.0 * (moved(STEP) - moved(-STEP)) - (moved(2.0 * STEP) - moved(-2.0 * STEP))) / (12.0 * STEP)
        })
        .collect()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Checks dx, dscale and dbias against the derivatives of the sum of dy y, where y is `forward` of
/// x, scale and bias.
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
