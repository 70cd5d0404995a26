//! Normalizations and the changes to each.

use crate::attributes::base::{Base, SINGLE, Tensor, To, base};
use rotini_graph::DataType::{self, F32};
use serde_json::{Value, json};

pub(super) fn norms() -> Vec<Base> {
    let (x, channel, row, one): (&[i64], &[i64], &[i64], &[i64]) =
        (&[2, 3, 4, 5], &[1, 3, 1, 1], &[2, 3, 4, 1], &SINGLE);
    let last: &[i64] = &[1, 1, 1, 5];
    let channels =
        |names: &[&'static str]| -> Vec<Tensor<'_>> { names.iter().map(|&name| (name, F32, channel)).collect() };
    let with = |first: &[Tensor<'static>], names: &[&'static str]| -> Vec<(&'static str, DataType, Vec<i64>)> {
        let first = first.iter().map(|&(name, dtype, dims)| (name, dtype, dims.to_vec()));
        first
            .chain(
                channels(names)
                    .iter()
                    .map(|&(name, dtype, dims)| (name, dtype, dims.to_vec())),
            )
            .collect()
    };
    let of_channels = |name, first: &[Tensor<'static>], names: &[&'static str], op: Value| Base {
        name,
        tensors: with(first, names),
        op,
        changes: Vec::new(),
    };
    let image: Tensor<'static> = ("x", F32, &[2, 3, 4, 5]);
    let epsilon: Tensor<'static> = ("epsilon", F32, &SINGLE);
    let given = |dims: &[i64]| {
        [
            ("mean", To::Tensor(F32, dims.to_vec())),
            ("inv_variance", To::Tensor(F32, dims.to_vec())),
        ]
    };
    let batchnorm = |name| {
        of_channels(
            name,
            &[image, ("y", F32, &[2, 3, 4, 5]), epsilon],
            &["scale", "bias"],
            json!({"Batchnorm": {"x": 0, "scale": 3, "bias": 4, "epsilon": 2, "peer_stats": [], "y": 1}}),
        )
    };
    let layernorm_backward = |name| {
        base(
            name,
            &[
                ("dy", F32, x),
                ("x", F32, x),
                ("scale", F32, last),
                ("dx", F32, x),
                ("dscale", F32, last),
                ("dbias", F32, last),
            ],
            json!({"LayernormBackward": {
                "dy": 0, "x": 1, "scale": 2, "dx": 3, "dscale": 4, "dbias": 5, "normalized_dim_count": 1,
            }}),
        )
    };
    let mut with_statistics = layernorm_backward("layernorm backward with statistics");
    for (id, (name, field)) in (6..).zip([("mean", "mean"), ("inverse", "inv_variance")]) {
        with_statistics.tensors.push((name, F32, row.to_vec()));
        with_statistics.op["LayernormBackward"][field] = json!(id);
    }
    vec![
        with_statistics.tensor("epsilon", F32, one),
        batchnorm("batchnorm without running statistics").tensor("momentum", F32, one),
        of_channels(
            "batchnorm inference",
            &[image, ("y", F32, &[2, 3, 4, 5])],
            &["mean", "inv_variance", "scale", "bias"],
            json!({"BatchnormInference": {"x": 0, "mean": 2, "inv_variance": 3, "scale": 4, "bias": 5, "y": 1}}),
        ),
        of_channels(
            "batchnorm inference with variance",
            &[image, ("y", F32, &[2, 3, 4, 5]), epsilon],
            &["mean", "variance", "scale", "bias"],
            json!({"BatchnormInferenceVariance": {
                "x": 0, "mean": 3, "variance": 4, "scale": 5, "bias": 6, "epsilon": 2, "y": 1,
            }}),
        ),
        batchnorm("batchnorm")
            .tensor("peer_stats", F32, channel)
            .tensor("prev_running_mean", F32, channel)
            .tensor("prev_running_variance", F32, channel)
            .tensor("next_running_mean", F32, channel)
            .tensor("next_running_variance", F32, channel)
            .tensor("mean", F32, channel)
            .tensor("inv_variance", F32, channel)
            .together(&[
                ("momentum", To::Tensor(F32, one.to_vec())),
                ("prev_running_mean", To::Tensor(F32, channel.to_vec())),
                ("prev_running_variance", To::Tensor(F32, channel.to_vec())),
                ("next_running_mean", To::Tensor(F32, channel.to_vec())),
                ("next_running_variance", To::Tensor(F32, channel.to_vec())),
            ]),
        of_channels(
            "batchnorm backward",
            &[image, ("dy", F32, &[2, 3, 4, 5]), ("dx", F32, &[2, 3, 4, 5])],
            &["scale", "dscale", "dbias"],
            json!({"BatchnormBackward": {
                "dy": 1, "x": 0, "scale": 3, "peer_stats": [], "dx": 2, "dscale": 4, "dbias": 5,
            }}),
        )
        .tensor("peer_stats", F32, channel)
        .tensor("mean", F32, channel)
        .tensor("inv_variance", F32, channel)
        .together(&given(channel)),
        base(
            "layernorm",
            &[
                ("x", F32, x),
                ("scale", F32, last),
                ("bias", F32, last),
                ("epsilon", F32, one),
                ("y", F32, x),
            ],
            json!({"Layernorm": {
                "x": 0, "scale": 1, "bias": 2, "epsilon": 3, "y": 4, "normalized_dim_count": 1, "phase": "Inference",
            }}),
        )
        .tensor("mean", F32, row)
        .tensor("inv_variance", F32, row)
        .together(&given(row))
        .values("normalized_dim_count", [json!(2), json!(0)])
        .values("phase", [json!("Training")]),
        layernorm_backward("layernorm backward")
            .tensor("mean", F32, row)
            .tensor("inv_variance", F32, row)
            .tensor("epsilon", F32, one)
            .together(&given(row))
            .values("normalized_dim_count", [json!(2), json!(0)]),
        base(
            "RMSNorm",
            &[
                ("x", F32, x),
                ("scale", F32, last),
                ("epsilon", F32, one),
                ("y", F32, x),
            ],
            json!({"RmsNorm": {"x": 0, "scale": 1, "epsilon": 2, "y": 3, "phase": "Inference"}}),
        )
        .tensor("bias", F32, last)
        .tensor("inv_rms", F32, row)
        .values("phase", [json!("Training")])
        .together(&[
            ("phase", To::Value(json!("Training"))),
            ("inv_rms", To::Tensor(F32, row.to_vec())),
        ]),
        base(
            "RMSNorm backward",
            &[
                ("dy", F32, x),
                ("x", F32, x),
                ("scale", F32, last),
                ("inv_rms", F32, row),
                ("dx", F32, x),
                ("dscale", F32, last),
            ],
            json!({"RmsNormBackward": {"dy": 0, "x": 1, "scale": 2, "inv_rms": 3, "dx": 4, "dscale": 5}}),
        )
        .tensor("dbias", F32, last),
    ]
}
