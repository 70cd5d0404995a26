//! Normalizations against results computed by hand, and layer against batch normalization.

use super::graphs::{F32, F64, Norm, close, layer, rms, training};
use crate::{irregular, run};
use rotini_graph::{BatchnormInference, BatchnormInferenceVariance, TensorId};

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
    // A channel's parameter may have more dims than x.
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

    // One element has no unbiased variance: hipDNN's reference then uses the biased one.
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
