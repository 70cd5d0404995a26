//! One or more graphs for each operation, and the changes to each.

mod attention;
mod norms;

use crate::attributes::base::{Base, Tensor, To, base, strings};
use rotini_graph::DataType::{self, F32, I32};
use rotini_graph::PointwiseMode;
use serde_json::{Value, json};

/// Returns at least one graph of every operation.
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
    bases.extend(norms::norms());
    bases.extend(attention::attentions());
    bases.extend(pooling());
    bases.extend(blocks());
    bases.extend(experts());
    bases
}

/// Returns convolutions. Along both axes the windows start at 0 and 3 of 6 elements, the first and
/// the last of which are padding.
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

/// Returns one base for each number of operands, and one for each parameter.
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

/// Returns poolings whose windows overlap, with padding on both sides of every axis.
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
            // Without an index tensor: the tensor alone decides otherwise.
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
