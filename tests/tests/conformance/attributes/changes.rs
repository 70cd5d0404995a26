//! One or more graphs for each operation, and the changes to each.

use super::{Base, PointwiseMode, To, Value, json};
use rotini_graph::DataType::{self, F32, I32, I64};

type Tensor<'a> = (&'static str, DataType, &'a [i64]);

fn base(name: &'static str, tensors: &[Tensor<'_>], op: Value) -> Base {
    let owned = |&(name, dtype, dims): &Tensor<'_>| (name, dtype, dims.to_vec());
    Base {
        name,
        tensors: tensors.iter().map(owned).collect(),
        op,
        changes: Vec::new(),
    }
}

fn strings(list: &[&str]) -> Vec<Value> {
    list.iter().map(|&text| json!(text)).collect()
}

const SINGLE: [i64; 4] = [1; 4];

/// One graph or more of every operation.
pub(super) fn bases() -> Vec<Base> {
    let mut bases = convolutions();
    bases.push(base(
        "matmul",
        &[("a", F32, &[3, 4]), ("b", F32, &[4, 5]), ("c", F32, &[3, 5])],
        json!({"Matmul": {"a": 0, "b": 1, "c": 2}}),
    ));
    let modes = ["Mul", "Min", "Max", "Amax", "Avg", "Norm1", "Norm2", "MulNoZeros"];
    let reduction = json!({"Reduction": {"input": 0, "output": 1, "mode": "Add", "is_deterministic": false}});
    bases.push(
        base("reduction", &[("x", F32, &[3, 4]), ("y", F32, &[3, 1])], reduction)
            .values("mode", strings(&modes))
            .values("is_deterministic", [json!(true)]),
    );
    bases.extend(pointwise());
    bases.extend(norms());
    bases.extend(attentions());
    bases.extend(pooling());
    bases.extend(blocks());
    bases.extend(experts());
    bases
}

/// Along both axes the windows start at 0 and 3 of 6 elements, the first and the last of which are padding.
fn convolutions() -> Vec<Base> {
    let geometry = json!({
        "pre_padding": [1, 1], "post_padding": [1, 1], "stride": [3, 3], "dilation": [1, 1], "mode": "CrossCorrelation",
    });
    let (x, w, y) = ([1, 4, 4, 4], [6, 4, 3, 3], [1, 6, 2, 2]);
    let both = |first: Tensor<'_>, second: Tensor<'_>, written: Tensor<'_>, name, op: Value| {
        base(name, &[first, second, written], op)
            .values("geometry.pre_padding", [json!([2, 1]), json!([1, 2]), json!([0, 1])])
            .values("geometry.post_padding", [json!([4, 1]), json!([1, 4]), json!([0, 1])])
            .values("geometry.stride", [json!([2, 3]), json!([3, 2]), json!([1, 3])])
            .values("geometry.dilation", [json!([2, 1]), json!([1, 2])])
            .values("geometry.mode", [json!("Convolution")])
    };
    let (x, w, y) = (
        ("x", F32, x.as_slice()),
        ("w", F32, w.as_slice()),
        ("y", F32, y.as_slice()),
    );
    vec![
        both(
            x,
            w,
            y,
            "fprop",
            json!({"ConvFprop": {"x": 0, "w": 1, "y": 2, "geometry": geometry}}),
        ),
        both(
            y,
            w,
            x,
            "dgrad",
            json!({"ConvDgrad": {"dy": 0, "w": 1, "dx": 2, "geometry": geometry}}),
        ),
        both(
            x,
            y,
            w,
            "wgrad",
            json!({"ConvWgrad": {"x": 0, "dy": 1, "dw": 2, "geometry": geometry}}),
        ),
    ]
}

/// One base for each number of operands, and one for each parameter.
fn pointwise() -> Vec<Base> {
    let names = ["x", "y", "z"];
    let new = |name, mode: &str, arity: usize| {
        let mut tensors: Vec<Tensor<'_>> = names[..arity]
            .iter()
            .map(|&name| (name, F32, [3, 4].as_slice()))
            .collect();
        tensors.push(("out", F32, &[3, 4]));
        let operand = |index| if index < arity { json!(index) } else { Value::Null };
        let op = json!({"Pointwise": {
            "mode": mode, "in_0": 0, "in_1": operand(1), "in_2": operand(2), "out_0": arity,
        }});
        base(name, &tensors, op)
    };
    let other_modes = |mode: &str| -> Vec<Value> {
        PointwiseMode::ALL
            .iter()
            .map(|mode| json!(mode))
            .filter(|other| other != mode)
            .collect()
    };
    // GEN_INDEX needs an axis, which no other mode takes.
    let numbers = [json!(0.5), json!(2.0)];
    vec![
        new("pointwise of one", "ReluFwd", 1)
            .values("mode", other_modes("ReluFwd"))
            .tensor("in_1", F32, &[3, 4])
            .tensor("in_2", F32, &[3, 4])
            .values("relu_lower_clip", numbers.clone())
            .values("relu_upper_clip", numbers.clone())
            .values("relu_lower_clip_slope", numbers.clone())
            .values("axis", [json!(0)])
            .values("swish_beta", numbers.clone())
            .values("elu_alpha", numbers.clone())
            .values("softplus_beta", numbers.clone()),
        new("pointwise of two", "Add", 2)
            .values("mode", other_modes("Add"))
            .values("in_1", [Value::Null]),
        new("pointwise of three", "BinarySelect", 3)
            .values("mode", other_modes("BinarySelect"))
            .values("in_2", [Value::Null])
            .values("in_1", [Value::Null]),
        new("swish", "SwishFwd", 1).values("swish_beta", numbers.clone()),
        new("swish backward", "SwishBwd", 2).values("swish_beta", numbers.clone()),
        new("ELU", "EluFwd", 1).values("elu_alpha", numbers.clone()),
        new("ELU backward", "EluBwd", 2).values("elu_alpha", numbers.clone()),
        new("softplus", "SoftplusFwd", 1).values("softplus_beta", numbers.clone()),
        new("softplus backward", "SoftplusBwd", 2).values("softplus_beta", numbers.clone()),
        new("relu backward", "ReluBwd", 2)
            .values("relu_lower_clip", numbers.clone())
            .values("relu_upper_clip", numbers.clone())
            .values("relu_lower_clip_slope", numbers),
        index(&new),
    ]
}

fn index(new: &dyn Fn(&'static str, &str, usize) -> Base) -> Base {
    let mut index = new("index", "GenIndex", 1);
    index.op["Pointwise"]["axis"] = json!(0);
    index.values("axis", [json!(1), json!(2), Value::Null])
}

fn norms() -> Vec<Base> {
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

/// Dims of q and o, of k and v, of scores and of statistics.
const Q: [i64; 4] = [1, 2, 4, 8];
const K: [i64; 4] = [1, 2, 6, 8];
const SCORES: [i64; 4] = [1, 2, 4, 6];
const ROWS: [i64; 4] = [1, 2, 4, 1];

/// What the two directions of attention have in common.
fn attention(base: Base) -> Base {
    base.tensor("attn_mask", F32, &SCORES)
        .tensor("scale", F32, &SINGLE)
        .tensor("seq_len_q", I32, &SINGLE)
        .tensor("seq_len_kv", I32, &SINGLE)
        .tensor("seed", I64, &SINGLE)
        .tensor("offset", I64, &SINGLE)
        .tensor("dropout_mask", F32, &SCORES)
        .tensor("dropout_scale", F32, &SINGLE)
        .values("alibi_mask", [json!(true)])
        .values("padding_mask", [json!(true)])
        .together(&[
            ("padding_mask", To::Value(json!(true))),
            ("seq_len_q", To::Tensor(I32, SINGLE.to_vec())),
            ("seq_len_kv", To::Tensor(I32, SINGLE.to_vec())),
        ])
        .values("causal_mask", [json!(true)])
        .values("causal_mask_bottom_right", [json!(true)])
        .values("dropout_probability", [json!(0.5), json!(1.0)])
        .values("attn_scale_value", [json!(0.25), json!(2.0)])
        .values("left_bound", [json!(1), json!(2), json!(-2)])
        .values("right_bound", [json!(1), json!(2), json!(-2)])
}

/// What bounds and alignments do together; what a bound is that is as good as none is not asked.
fn diagonals(mut base: Base, name: &'static str, variant: &str) -> Base {
    base.name = name;
    base.op[variant]["right_bound"] = json!(0);
    base.values("diagonal_alignment", [json!("BottomRight")])
        .values("right_bound", [json!(1), Value::Null])
        .values("left_bound", [json!(0), json!(1)])
        .values("alibi_mask", [json!(true)])
}

fn attentions() -> Vec<Base> {
    let forward = |name| {
        let flags = json!({
            "q": 0, "k": 1, "v": 2, "o": 3, "alibi_mask": false, "padding_mask": false, "causal_mask": false,
            "causal_mask_bottom_right": false, "diagonal_alignment": "TopLeft", "implementation": "Auto",
        });
        let tensors: [Tensor<'_>; 4] = [("q", F32, &Q), ("k", F32, &K), ("v", F32, &K), ("o", F32, &Q)];
        base(name, &tensors, json!({"Sdpa": flags}))
    };
    let mut with_stats = forward("attention with stats");
    with_stats.tensors.push(("stats", F32, ROWS.to_vec()));
    with_stats.op["Sdpa"]["stats"] = json!(4);
    let backward = || {
        let op = json!({"SdpaBackward": {
            "q": 0, "k": 1, "v": 2, "o": 3, "d_o": 4, "stats": 5, "dq": 6, "dk": 7, "dv": 8, "alibi_mask": false,
            "padding_mask": false, "causal_mask": false, "causal_mask_bottom_right": false,
            "diagonal_alignment": "TopLeft",
        }});
        let tensors: [Tensor<'_>; 9] = [
            ("q", F32, &Q),
            ("k", F32, &K),
            ("v", F32, &K),
            ("o", F32, &Q),
            ("do", F32, &Q),
            ("stats", F32, &ROWS),
            ("dq", F32, &Q),
            ("dk", F32, &K),
            ("dv", F32, &K),
        ];
        base("attention backward", &tensors, op)
    };
    let mut optional = attention(forward("attention"));
    for field in [
        "descale_q",
        "descale_k",
        "descale_v",
        "descale_s",
        "scale_s",
        "scale_o",
        "amax_s",
        "amax_o",
    ] {
        optional = optional.tensor(field, F32, &SINGLE);
    }
    vec![
        optional
            .tensor("page_table_k", I32, &SINGLE)
            .tensor("page_table_v", I32, &SINGLE)
            .tensor("block_mask", DataType::U8, &SINGLE)
            .tensor("sink_token", F32, &[1, 2, 1, 1])
            .tensor("stats", F32, &ROWS)
            .tensor("max", F32, &ROWS)
            .tensor("sum_exp", F32, &ROWS)
            .tensor("rng_dump", F32, &SCORES)
            .values("generate_stats", [json!(true)])
            .values("max_seq_len_kv", [json!(6)])
            .values("mma_core_mode", [json!("F16"), json!("Bf16")])
            .values("implementation", [json!("Composite"), json!("Unified")]),
        diagonals(forward(""), "causal attention", "Sdpa"),
        with_stats.values("generate_stats", [json!(true), json!(false)]),
        attention(backward())
            .tensor("dropout_scale_inv", F32, &SINGLE)
            .tensor("dbias", F32, &SCORES)
            .together(&[
                ("dbias", To::Tensor(F32, SCORES.to_vec())),
                ("attn_mask", To::Tensor(F32, SCORES.to_vec())),
            ]),
        diagonals(backward(), "causal attention backward", "SdpaBackward"),
    ]
}

/// The windows overlap, and every axis has padding on both sides.
fn pooling() -> Vec<Base> {
    let geometry = |base: Base| {
        base.values("pre_padding", [json!([0, 1]), json!([1, 2])])
            .values("post_padding", [json!([0, 1]), json!([1, 3])])
            .values("stride", [json!([1, 2]), json!([2, 3])])
            .values("window", [json!([2, 3]), json!([3, 4])])
    };
    let (x, y): (&[i64], &[i64]) = (&[1, 2, 5, 5], &[1, 2, 3, 3]);
    let forward = |name, mode: &str| {
        let op = json!({"ResampleFwd": {
            "x": 0, "y": 1, "pre_padding": [1, 1], "post_padding": [1, 1], "stride": [2, 2], "window": [3, 3],
            "resample_mode": mode, "padding_mode": "NegInf", "generate_index": false,
        }});
        geometry(base(name, &[("x", F32, x), ("y", F32, y)], op))
    };
    let backward = json!({"ResampleBwd": {
        "dy": 0, "dx": 1, "pre_padding": [1, 1], "post_padding": [1, 1], "stride": [2, 2], "window": [3, 3],
        "resample_mode": "AvgpoolIncludePadding", "padding_mode": "Zero",
    }});
    vec![
        forward("max pooling", "Maxpool")
            .tensor("index", I32, y)
            // Without a tensor to write: the tensor alone decides otherwise.
            .values("generate_index", [json!(true)])
            .values("padding_mode", strings(&["Zero", "NotSet"]))
            .values(
                "resample_mode",
                strings(&["AvgpoolIncludePadding", "AvgpoolExcludePadding"]),
            ),
        forward("average pooling", "AvgpoolIncludePadding")
            .tensor("index", I32, y)
            .values("padding_mode", strings(&["Zero", "NotSet"]))
            .values("resample_mode", strings(&["Maxpool", "AvgpoolExcludePadding"])),
        geometry(base("pooling backward", &[("dy", F32, y), ("dx", F32, x)], backward))
            .tensor("index", I32, y)
            .values("padding_mode", strings(&["NegInf", "NotSet"]))
            .values("resample_mode", strings(&["Maxpool", "AvgpoolExcludePadding"])),
    ]
}

fn blocks() -> Vec<Base> {
    let narrow = DataType::F8E4M3;
    let dequantize = json!({"BlockScaleDequantize": {
        "x": 0, "scale": 1, "y": 2, "block_size": [4], "is_negative_scale": false,
    }});
    let quantize =
        json!({"BlockScaleQuantize": {"x": 0, "y": 1, "scale": 2, "block_size": 4, "axis": 1, "transpose": false}});
    let (x, scale): (&[i64], &[i64]) = (&[8, 8], &[8, 2]);
    vec![
        base(
            "dequantize",
            &[("x", narrow, x), ("scale", F32, scale), ("y", F32, x)],
            dequantize,
        )
        .values("block_size", [json!([2]), json!([5]), json!([2, 4])])
        .values("is_negative_scale", [json!(true)]),
        base(
            "quantize",
            &[("x", F32, x), ("y", narrow, x), ("scale", F32, scale)],
            quantize,
        )
        .values("block_size", [json!(2), json!(5)])
        .values("axis", [json!(0), json!(2)])
        .values("transpose", [json!(true)]),
        base(
            "custom",
            &[("x", F32, x), ("y", F32, x)],
            json!({"CustomOp": {"inputs": [0], "outputs": [1], "custom_op_id": "nobody.op", "data": []}}),
        )
        .values("custom_op_id", [json!("nobody.other"), json!("")])
        .values("data", [json!([1, 2, 3])]),
    ]
}

fn experts() -> Vec<Base> {
    let op = json!({"MoeGroupedMatmul": {
        "token": 0, "weight": 1, "first_token_offset": 2, "output": 3, "mode": "None", "top_k": 0,
    }});
    let (token, output): (&[i64], &[i64]) = (&[1, 6, 4], &[1, 6, 5]);
    let tensors: [Tensor<'_>; 4] = [
        ("token", F32, token),
        ("weight", F32, &[3, 4, 5]),
        ("offset", I32, &[3, 1, 1]),
        ("output", F32, output),
    ];
    let rows = || To::Tensor(I32, vec![1, 6, 1]);
    let scatter = |top_k: i32| {
        [
            ("top_k", To::Value(json!(top_k))),
            ("mode", To::Value(json!("Scatter"))),
            ("token_index", rows()),
            ("token_ks", rows()),
        ]
    };
    let backward = json!({"MoeGroupedMatmulBwd": {"doutput": 0, "token": 1, "first_token_offset": 2, "dweight": 3}});
    vec![
        base("experts", &tensors, op)
            .tensor("token_index", I32, &[1, 6, 1])
            .tensor("token_ks", I32, &[1, 6, 1])
            .values("mode", strings(&["Gather", "Scatter"]))
            .together(&[("mode", To::Value(json!("Gather"))), ("token_index", rows())])
            .values("top_k", [json!(1)])
            .together(&scatter(1))
            .together(&scatter(2)),
        base(
            "experts backward",
            &[
                ("doutput", F32, output),
                ("token", F32, token),
                ("offset", I32, &[3, 1, 1]),
                ("dweight", F32, &[3, 4, 5]),
            ],
            backward,
        ),
    ]
}
