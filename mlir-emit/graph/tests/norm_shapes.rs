//! Normalizations that validation rejects, with errors that name the node and the tensor.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use rotini_graph::*;

const F32: DataType = DataType::F32;

/// Returns a graph of one node over tensors with these dims, which `op` assigns to the node's
/// fields.
fn node(dims: &[&[i64]], op: impl FnOnce(&[TensorId]) -> Op) -> Graph {
    let mut b = GraphBuilder::new("");
    let ids: Vec<TensorId> = (0..dims.len())
        .map(|index| b.buffer(&format!("t{index}"), F32, dims[index]))
        .collect();
    b.node("n", F32, op(&ids));
    b.build()
}

fn valid(mut graph: Graph) {
    assert_eq!(graph.validate(), Ok(()));
}

#[track_caller]
fn fails(message: &str, mut graph: Graph) {
    let error = graph.validate().unwrap_err().to_string();
    assert!(error.contains("node 'n' ("), "{error}");
    assert!(error.ends_with(message), "{error}");
}

fn inference(x: &[i64], parameter: &[i64], y: &[i64]) -> Graph {
    node(&[x, parameter, parameter, parameter, parameter, y], |t| {
        BatchnormInference {
            x: t[0],
            mean: t[1],
            inv_variance: t[2],
            scale: t[3],
            bias: t[4],
            y: t[5],
        }
        .into()
    })
}

#[test]
fn batchnorm_inference() {
    valid(inference(&[2, 3, 4, 5], &[1, 3, 1, 1], &[2, 3, 4, 5]));
    valid(inference(&[2, 3, 4, 5], &[1, 3], &[2, 3, 4, 5]));
    valid(inference(&[2, 3], &[1, 3], &[2, 3]));
    fails(
        "tensor 't1' (uid 2) has dims [1, 4, 1, 1], but must have [1, 3, 1, 1]",
        inference(&[2, 3, 4, 5], &[1, 4, 1, 1], &[2, 3, 4, 5]),
    );
    fails(
        "tensor 't1' (uid 2) has dims [1, 3, 4, 5], but must have [1, 3, 1, 1]",
        inference(&[2, 3, 4, 5], &[1, 3, 4, 5], &[2, 3, 4, 5]),
    );
    fails(
        "tensor 't5' (uid 6) has dims [2, 3], but the operation makes [3, 2]",
        inference(&[3, 2], &[1, 2], &[2, 3]),
    );
    fails(
        "tensor 't0' (uid 1) has rank 1, but needs a batch and a channel dimension",
        inference(&[3], &[1, 3], &[3]),
    );
}

#[test]
fn batchnorm_inference_with_variance() {
    let graph = |epsilon: &[i64]| {
        let channel = &[1, 3, 1][..];
        let dims = [&[2, 3, 4][..], channel, channel, channel, channel, epsilon, &[2, 3, 4]];
        node(&dims, |t| {
            BatchnormInferenceVariance {
                x: t[0],
                mean: t[1],
                variance: t[2],
                scale: t[3],
                bias: t[4],
                epsilon: t[5],
                y: t[6],
            }
            .into()
        })
    };
    valid(graph(&[1]));
    valid(graph(&[1, 1, 1, 1]));
    fails("tensor 't5' (uid 6) has dims [3], but must have [1]", graph(&[3]));
}

fn training(change: impl FnOnce(&mut Batchnorm)) -> Graph {
    let (full, channel) = (&[2, 3, 4][..], &[1, 3, 1][..]);
    let dims = [
        full,
        channel,
        channel,
        &[1],
        channel,
        channel,
        &[1],
        full,
        channel,
        channel,
        channel,
        channel,
    ];
    node(&dims, |t| {
        let mut op = Batchnorm {
            x: t[0],
            scale: t[1],
            bias: t[2],
            epsilon: t[3],
            peer_stats: vec![],
            prev_running_mean: Some(t[4]),
            prev_running_variance: Some(t[5]),
            momentum: Some(t[6]),
            y: t[7],
            mean: Some(t[8]),
            inv_variance: Some(t[9]),
            next_running_mean: Some(t[10]),
            next_running_variance: Some(t[11]),
        };
        change(&mut op);
        op.into()
    })
}

#[test]
fn batchnorm_training() {
    valid(training(|_| {}));
    valid(training(|op| {
        (op.prev_running_mean, op.prev_running_variance) = (None, None);
        (op.next_running_mean, op.next_running_variance) = (None, None);
        (op.mean, op.inv_variance, op.momentum) = (None, None, None);
    }));
    let incomplete = "running statistics need the previous and the next mean and variance, and the momentum";
    fails(incomplete, training(|op| op.prev_running_mean = None));
    fails(incomplete, training(|op| op.next_running_variance = None));
    fails(incomplete, training(|op| op.momentum = None));
    fails("but must have [1]", training(|op| op.momentum = Some(TensorId(5))));
    let y = "tensor 't8' (uid 9) has dims [1, 3, 1], but the operation makes [2, 3, 4]";
    fails(y, training(|op| (op.y, op.mean) = (TensorId(8), None)));
}

fn batchnorm_backward(dx: &[i64], change: impl FnOnce(&mut BatchnormBackward)) -> Graph {
    let (full, channel) = (&[2, 3, 4][..], &[1, 3, 1][..]);
    node(&[full, full, channel, channel, channel, dx, channel, channel], |t| {
        let mut op = BatchnormBackward {
            dy: t[0],
            x: t[1],
            mean: Some(t[2]),
            inv_variance: Some(t[3]),
            scale: t[4],
            peer_stats: vec![],
            dx: t[5],
            dscale: t[6],
            dbias: t[7],
        };
        change(&mut op);
        op.into()
    })
}

#[test]
fn gradients_of_batchnorm() {
    valid(batchnorm_backward(&[2, 3, 4], |_| {}));
    valid(batchnorm_backward(&[2, 3, 4], |op| {
        (op.mean, op.inv_variance) = (None, None)
    }));
    let both = "mean and inv_variance must both be given, or neither";
    fails(both, batchnorm_backward(&[2, 3, 4], |op| op.mean = None));
    fails(
        "tensor 't5' (uid 6) has dims [2, 3, 5], but the operation makes [2, 3, 4]",
        batchnorm_backward(&[2, 3, 5], |_| {}),
    );
    fails(
        "tensor 't4' (uid 5) has dims [1, 3, 1], but must have [2, 3, 4]",
        batchnorm_backward(&[2, 3, 4], |op| op.dy = TensorId(4)),
    );
}

fn layernorm(x: &[i64], parameter: &[i64], statistic: &[i64], count: i64) -> Graph {
    node(&[x, parameter, parameter, &[1], x, statistic, statistic], |t| {
        Layernorm {
            x: t[0],
            scale: t[1],
            bias: t[2],
            epsilon: t[3],
            y: t[4],
            mean: Some(t[5]),
            inv_variance: Some(t[6]),
            normalized_dim_count: count,
            phase: NormPhase::Training,
        }
        .into()
    })
}

#[test]
fn layernorms() {
    let x = [2, 3, 4];
    valid(layernorm(&x, &[1, 1, 4], &[2, 3, 1], 1));
    valid(layernorm(&x, &[4], &[2, 3], 1));
    valid(layernorm(&x, &[3, 4], &[2, 1, 1], 2));
    valid(layernorm(&x, &x, &[1, 1, 1], 3));
    valid(layernorm(&x, &x, &[1], 3));
    for count in [0, 4, -1, i64::MIN] {
        fails(
            &format!("normalized_dim_count {count} is outside 1 to 3, the rank of tensor 't0' (uid 1)"),
            layernorm(&x, &[4], &[2, 3], count),
        );
    }
    fails(
        "tensor 't1' (uid 2) has dims [1, 3, 4], but must have [4]",
        layernorm(&x, &[1, 3, 4], &[2, 3, 1], 1),
    );
    fails(
        "tensor 't5' (uid 6) has dims [2, 1, 1], but must have [2, 3, 1]",
        layernorm(&x, &[4], &[2, 1, 1], 1),
    );
}

#[test]
fn gradients_of_layernorm() {
    let graph = |mean: bool, inv_variance: bool, dscale: &[i64]| {
        let (x, statistic) = (&[2, 4][..], &[2, 1][..]);
        node(&[x, x, &[4], statistic, statistic, &[1], x, dscale, &[4]], |t| {
            LayernormBackward {
                dy: t[0],
                x: t[1],
                scale: t[2],
                mean: mean.then_some(t[3]),
                inv_variance: inv_variance.then_some(t[4]),
                epsilon: Some(t[5]),
                dx: t[6],
                dscale: t[7],
                dbias: t[8],
                normalized_dim_count: 1,
            }
            .into()
        })
    };
    valid(graph(true, true, &[4]));
    valid(graph(false, false, &[1, 4]));
    fails(
        "mean and inv_variance must both be given, or neither",
        graph(false, true, &[4]),
    );
    fails(
        "tensor 't7' (uid 8) has dims [2], but must have [4]",
        graph(true, true, &[2]),
    );
}

fn rms_norm(x: &[i64], scale: &[i64], inv_rms: &[i64], phase: NormPhase, saved: bool) -> Graph {
    node(&[x, scale, &[1], scale, x, inv_rms], |t| {
        RmsNorm {
            x: t[0],
            scale: t[1],
            epsilon: t[2],
            bias: Some(t[3]),
            y: t[4],
            inv_rms: saved.then_some(t[5]),
            phase,
        }
        .into()
    })
}

#[test]
fn rms_norms() {
    use NormPhase::{Inference, Training};
    valid(rms_norm(&[2, 3, 4], &[1, 1, 4], &[2, 3, 1], Training, true));
    valid(rms_norm(&[2, 3, 4], &[1, 3, 4], &[2, 1, 1], Training, true));
    valid(rms_norm(&[2, 3, 4], &[1, 3, 4], &[1], Inference, false));
    fails(
        "inv_rms is missing in the training phase",
        rms_norm(&[2, 4], &[1, 4], &[2, 1], Training, false),
    );
    fails(
        "inv_rms is not saved in the inference phase",
        rms_norm(&[2, 4], &[1, 4], &[2, 1], Inference, true),
    );
    fails(
        "tensor 't1' (uid 2) with dims [1, 3, 1] must be 1 in the leading and as [2, 3, 4] in the normalized dims",
        rms_norm(&[2, 3, 4], &[1, 3, 1], &[2, 1, 4], Training, true),
    );
    fails(
        "tensor 't5' (uid 6) has dims [2, 3, 4], but must have [2, 3, 1]",
        rms_norm(&[2, 3, 4], &[1, 1, 4], &[2, 3, 4], Training, true),
    );
}

#[test]
fn gradients_of_rms_norm() {
    let graph = |inv_rms: &[i64], dbias: &[i64]| {
        let (x, scale) = (&[2, 3, 4][..], &[1, 1, 4][..]);
        node(&[x, x, scale, inv_rms, x, scale, dbias], |t| {
            RmsNormBackward {
                dy: t[0],
                x: t[1],
                scale: t[2],
                inv_rms: t[3],
                dx: t[4],
                dscale: t[5],
                dbias: Some(t[6]),
            }
            .into()
        })
    };
    valid(graph(&[2, 3, 1], &[1, 1, 4]));
    fails("but must have [2, 3, 1]", graph(&[2, 1, 1], &[1, 1, 4]));
    fails(
        "tensor 't6' (uid 7) has dims [4], but the operation makes [1, 1, 4]",
        graph(&[2, 3, 1], &[4]),
    );
}
