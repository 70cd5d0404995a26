//! Attention graphs that validation rejects, with errors that name the node and the tensor.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use rotini_graph::*;

const F32: DataType = DataType::F32;

/// B 2, H 4, Hk 2, Hv 1, Sq 3, Skv 5, D 6, Dv 7.
const Q: [i64; 4] = [2, 4, 3, 6];
const K: [i64; 4] = [2, 2, 5, 6];
const V: [i64; 4] = [2, 1, 5, 7];
const O: [i64; 4] = [2, 4, 3, 7];

fn forward(dims: [&[i64]; 4], set: impl FnOnce(&mut GraphBuilder, &mut Sdpa)) -> Graph {
    let mut b = GraphBuilder::new("");
    let [q, k, v, o] = [0, 1, 2, 3].map(|index| b.buffer(["q", "k", "v", "o"][index], F32, dims[index]));
    let mut op = Sdpa::new(q, k, v, o);
    set(&mut b, &mut op);
    b.node("n", F32, Box::new(op));
    b.build()
}

fn valid(mut graph: Graph) {
    assert_eq!(graph.validate(), Ok(()));
}

#[track_caller]
fn fails(message: &str, mut graph: Graph) {
    let error = graph.validate().unwrap_err().to_string();
    assert!(error.starts_with("node 'n' (SDPA"), "{error}");
    assert!(error.ends_with(message), "{error}");
}

type Set = Box<dyn FnOnce(&mut GraphBuilder, &mut Sdpa)>;

/// Returns a change that adds a buffer and passes it to `set`.
fn with(dtype: DataType, dims: &'static [i64], set: fn(&mut Sdpa, TensorId)) -> Set {
    Box::new(move |b, op| {
        let id = b.buffer("t", dtype, dims);
        set(op, id);
    })
}

#[test]
fn operands() {
    valid(forward([&Q, &K, &V, &O], |_, _| {}));
    fails(
        "ranks of q, k and v are [3, 4, 4], but must be 4",
        forward([&[4, 3, 6], &K, &V, &O], |_, _| {}),
    );
    fails(
        "tensor 'k' (uid 2) has dims [2, 2, 5, 8], but must have [2, 2, 5, 6]",
        forward([&Q, &[2, 2, 5, 8], &V, &O], |_, _| {}),
    );
    fails(
        "tensor 'v' (uid 3) has dims [2, 1, 4, 7], but must have [2, 1, 5, 7]",
        forward([&Q, &K, &[2, 1, 4, 7], &O], |_, _| {}),
    );
    fails(
        "tensor 'v' (uid 3) has dims [1, 1, 5, 7], but must have [2, 1, 5, 7]",
        forward([&Q, &K, &[1, 1, 5, 7], &O], |_, _| {}),
    );
    fails(
        "4 heads of tensor 'q' (uid 1) are no multiple of the 3 heads of tensor 'k' (uid 2)",
        forward([&Q, &[2, 3, 5, 6], &V, &O], |_, _| {}),
    );
    fails(
        "tensor 'o' (uid 4) has dims [2, 4, 3, 6], but the operation makes [2, 4, 3, 7]",
        forward([&Q, &K, &V, &Q], |_, _| {}),
    );
}

#[test]
fn optional_tensors() {
    let set = |set: Set| forward([&Q, &K, &V, &O], set);
    for dims in [&[2, 4, 3, 5][..], &[2, 1, 1, 5], &[3, 1], &[5], &[1]] {
        valid(set(with(F32, dims, |op, id| op.attn_mask = Some(id))));
    }
    for (message, dims) in [
        ("with dims [4] does not broadcast to [2, 4, 3, 5]", &[4][..]),
        (
            "with dims [1, 1, 1, 1, 1] does not broadcast to [2, 4, 3, 5]",
            &[1, 1, 1, 1, 1],
        ),
    ] {
        fails(message, set(with(F32, dims, |op, id| op.attn_mask = Some(id))));
    }
    for dims in [&[2, 4, 3, 1][..], &[2, 4, 3]] {
        valid(set(with(F32, dims, |op, id| op.stats = Some(id))));
    }
    let stats = "tensor 't' (uid 5) has dims [2, 4, 1, 3], but must have [2, 4, 3, 1]";
    fails(stats, set(with(F32, &[2, 4, 1, 3], |op, id| op.stats = Some(id))));
    fails(stats, set(with(F32, &[2, 4, 1, 3], |op, id| op.sum_exp = Some(id))));
    let sink = "tensor 't' (uid 5) has dims [4], but must have [1, 4, 1, 1]";
    fails(sink, set(with(F32, &[4], |op, id| op.sink_token = Some(id))));
    let scale = "tensor 't' (uid 5) has dims [4], but must have [1]";
    fails(scale, set(with(F32, &[4], |op, id| op.scale = Some(id))));
    valid(set(with(F32, &[2, 2, 1, 1], |op, id| op.descale_q = Some(id))));
    let descale = "tensor 't' (uid 5) has dims [2, 2, 1, 1], but must have [2, 1, 1, 1]";
    fails(descale, set(with(F32, &[2, 2, 1, 1], |op, id| op.descale_v = Some(id))));
    let dropout = "tensor 't' (uid 5) has dims [2, 4, 1, 5], but must have [2, 4, 3, 5]";
    fails(
        dropout,
        set(with(F32, &[2, 4, 1, 5], |op, id| op.dropout_mask = Some(id))),
    );
    let length = "tensor 't' (uid 5) has dims [2], but must have [2, 1, 1, 1]";
    fails(length, set(with(DataType::I32, &[2], |op, id| op.seq_len_q = Some(id))));
    let length = "tensor 't' (uid 5) has type f32, but sequence lengths are i32";
    fails(length, set(with(F32, &[2, 1, 1, 1], |op, id| op.seq_len_kv = Some(id))));
}

#[test]
fn attributes() {
    let set = |set: fn(&mut Sdpa)| forward([&Q, &K, &V, &O], move |_, op| set(op));
    valid(set(|op| (op.left_bound, op.right_bound) = (Some(-1), Some(0))));
    fails("left_bound -2 is below -1", set(|op| op.left_bound = Some(-2)));
    fails("right_bound -9 is below -1", set(|op| op.right_bound = Some(-9)));
    valid(set(|op| op.causal_mask = true));
    fails(
        "causal_mask and causal_mask_bottom_right exclude each other",
        set(|op| (op.causal_mask, op.causal_mask_bottom_right) = (true, true)),
    );
    fails(
        "a deprecated causal mask excludes left_bound and right_bound",
        set(|op| (op.causal_mask_bottom_right, op.right_bound) = (true, Some(0))),
    );
    fails(
        "causal_mask is aligned to the top left, not to the bottom right",
        set(|op| (op.causal_mask, op.diagonal_alignment) = (true, DiagonalAlignment::BottomRight)),
    );
    fails(
        "a padding mask needs seq_len_q and seq_len_kv",
        set(|op| op.padding_mask = true),
    );
    fails(
        "generate_stats is set, but there is no stats tensor",
        set(|op| op.generate_stats = Some(true)),
    );
    let twice = forward([&Q, &K, &V, &O], |b, op| {
        op.scale = Some(b.constant("scale", F32, &[1], Scalar::float(1.0)));
        op.attn_scale_value = Some(1.0);
    });
    fails("attn_scale_value and a scale tensor exclude each other", twice);
}

fn backward(o: &[i64], stats: &[i64], dk: &[i64], mask: Option<&[i64]>, dbias: Option<&[i64]>) -> Graph {
    let mut b = GraphBuilder::new("");
    let mut tensor = |name: &str, dims: &[i64]| b.buffer(name, F32, dims);
    let [q, k, v, o, d_o, stats] = [
        ("q", &Q[..]),
        ("k", &K),
        ("v", &V),
        ("o", o),
        ("do", &O),
        ("stats", stats),
    ]
    .map(|(name, dims)| tensor(name, dims));
    let attn_mask = mask.map(|dims| tensor("mask", dims));
    let gradients = [("dq", &Q[..]), ("dk", dk), ("dv", &V)].map(|(name, dims)| tensor(name, dims));
    let op = SdpaBackward {
        attn_mask,
        dbias: dbias.map(|dims| tensor("dbias", dims)),
        ..SdpaBackward::new([q, k, v, o, d_o, stats], gradients)
    };
    b.node("n", F32, Box::new(op));
    b.build()
}

#[test]
fn gradients() {
    let stats = [2, 4, 3, 1];
    valid(backward(&O, &stats, &K, None, None));
    valid(backward(&O, &stats, &K, Some(&[3, 5]), Some(&[3, 5])));
    fails(
        "tensor 'o' (uid 4) has dims [2, 4, 3, 6], but must have [2, 4, 3, 7]",
        backward(&Q, &stats, &K, None, None),
    );
    fails(
        "tensor 'stats' (uid 6) has dims [3], but must have [2, 4, 3, 1]",
        backward(&O, &[3], &K, None, None),
    );
    fails(
        "tensor 'dk' (uid 8) has dims [2, 4, 3, 6], but the operation makes [2, 2, 5, 6]",
        backward(&O, &stats, &Q, None, None),
    );
    fails(
        "tensor 'dbias' (uid 11) has dims [5], but the operation makes [3, 5]",
        backward(&O, &stats, &K, Some(&[3, 5]), Some(&[5])),
    );
    fails(
        "dbias is the gradient of an attn_mask that is not given",
        backward(&O, &stats, &K, None, Some(&[5])),
    );
}
