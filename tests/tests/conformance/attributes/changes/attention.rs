//! Attention in both directions and the changes to it.

use crate::attributes::base::{Base, SINGLE, Tensor, To, base};
use rotini_graph::DataType::{self, F32, I32, I64};
use serde_json::{Value, json};

/// Dims of q and o, of k and v, of scores and of statistics.
const Q: [i64; 4] = [1, 2, 4, 8];
const K: [i64; 4] = [1, 2, 6, 8];
const SCORES: [i64; 4] = [1, 2, 4, 6];
const ROWS: [i64; 4] = [1, 2, 4, 1];

/// Adds the changes that both directions of attention share.
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

/// Changes bounds and alignments together; a bound without an effect is not tested.
fn diagonals(mut base: Base, name: &'static str, variant: &str) -> Base {
    base.name = name;
    base.op[variant]["right_bound"] = json!(0);
    base.values("diagonal_alignment", [json!("BottomRight")])
        .values("right_bound", [json!(1), Value::Null])
        .values("left_bound", [json!(0), json!(1)])
        .values("alibi_mask", [json!(true)])
}

pub(super) fn attentions() -> Vec<Base> {
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
