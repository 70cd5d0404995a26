//! Scaled dot-product attention.

use crate::norm::gradients::derivatives;
use crate::{buffers, bytes, elements, irregular, run, validated};
use half::f16;
use rotini_graph::{DataType, DiagonalAlignment, Graph, GraphBuilder, Scalar, Sdpa, SdpaBackward, TensorId};
use rotini_reference::{ReferenceError, evaluate, execute};

const F32: DataType = DataType::F32;
const F64: DataType = DataType::F64;
const HIDDEN: f64 = f64::NEG_INFINITY;

struct Attention {
    graph: Graph,
    q: TensorId,
    k: TensorId,
    v: TensorId,
    o: TensorId,
    stats: TensorId,
}

/// Returns an attention graph with statistics. Extents are B, H, Hk, Hv, Sq, Skv, D, Dv; `set` sets
/// further attributes.
fn attention(
    dtype: DataType,
    [b, h, hk, hv, sq, skv, d, dv]: [i64; 8],
    set: impl FnOnce(&mut GraphBuilder, &mut Sdpa),
) -> Attention {
    let mut builder = GraphBuilder::new("");
    let q = builder.buffer("q", dtype, &[b, h, sq, d]);
    let k = builder.buffer("k", dtype, &[b, hk, skv, d]);
    let v = builder.buffer("v", dtype, &[b, hv, skv, dv]);
    let o = builder.buffer("o", dtype, &[b, h, sq, dv]);
    let stats = builder.buffer("stats", dtype, &[b, h, sq, 1]);
    let mut op = Sdpa::new(q, k, v, o);
    op.stats = Some(stats);
    set(&mut builder, &mut op);
    builder.node("", dtype, Box::new(op));
    Attention {
        graph: validated(builder),
        q,
        k,
        v,
        o,
        stats,
    }
}

fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        let same = got == want || (got - want).abs() <= 1e-6 * want.abs().max(1.0);
        assert!(same, "{got} instead of {want}");
    }
}

/// Returns the identity matrix as values: with it, o is the matrix of probabilities.
fn identity(keys: usize) -> Vec<f64> {
    (0..keys * keys)
        .map(|i| f64::from(u8::from(i / keys == i % keys)))
        .collect()
}

/// Returns, for each query of one head, a string that marks its visible keys. All keys have the
/// same score, so the probabilities of the visible keys must be equal.
fn visible(queries: i64, keys: i64, set: impl FnOnce(&mut GraphBuilder, &mut Sdpa)) -> Vec<String> {
    let attention = attention(F64, [1, 1, 1, 1, queries, keys, 1, keys], set);
    let columns = usize::try_from(keys).unwrap();
    let inputs: [(TensorId, &[f64]); 3] = [
        (attention.q, &vec![0.0; usize::try_from(queries).unwrap()]),
        (attention.k, &vec![1.0; columns]),
        (attention.v, &identity(columns)),
    ];
    let o = run(&attention.graph, &inputs, attention.o);
    let stats = run(&attention.graph, &inputs, attention.stats);
    o.chunks(columns)
        .zip(stats)
        .map(|(row, statistic)| {
            let count = row.iter().filter(|&&p| p > 0.0).count() as f64;
            for &probability in row.iter().filter(|&&probability| probability > 0.0) {
                close(&[probability], &[1.0 / count]);
            }
            close(&[statistic], &[count.ln()]);
            row.iter()
                .map(|&probability| if probability > 0.0 { '1' } else { '.' })
                .collect()
        })
        .collect()
}

#[test]
fn by_hand() {
    // Scores ln 3 and 0: probabilities 3/4 and 1/4.
    let three = attention(F64, [1, 1, 1, 1, 1, 2, 1, 2], |_, op| op.attn_scale_value = Some(0.5));
    let inputs: [(TensorId, &[f64]); 3] = [
        (three.q, &[2.0]),
        (three.k, &[3.0_f64.ln(), 0.0]),
        (three.v, &[8.0, 0.0, 4.0, 40.0]),
    ];
    close(&run(&three.graph, &inputs, three.o), &[7.0, 10.0]);
    close(&run(&three.graph, &inputs, three.stats), &[4.0_f64.ln()]);

    // Without a scale, the scale is 1. A tensor may hold the scale too.
    let plain = attention(F64, [1, 1, 1, 1, 1, 2, 1, 2], |_, _| {});
    let inputs: [(TensorId, &[f64]); 3] = [
        (plain.q, &[1.0]),
        (plain.k, &[3.0_f64.ln(), 0.0]),
        (plain.v, &[8.0, 0.0, 4.0, 40.0]),
    ];
    close(&run(&plain.graph, &inputs, plain.o), &[7.0, 10.0]);
    let scaled = attention(F64, [1, 1, 1, 1, 1, 2, 1, 2], |builder, op| {
        op.scale = Some(builder.constant("scale", F64, &[1], Scalar::float(2.0)));
    });
    close(&run(&scaled.graph, &inputs, scaled.o), &[7.6, 4.0]);
}

#[test]
fn bounds_around_a_diagonal() {
    type Set = Box<dyn FnOnce(&mut GraphBuilder, &mut Sdpa)>;
    use DiagonalAlignment::{BottomRight, TopLeft};
    let bounds = |left, right, alignment| {
        move |_: &mut GraphBuilder, op: &mut Sdpa| {
            (op.left_bound, op.right_bound, op.diagonal_alignment) = (left, right, alignment);
        }
    };
    let three_by_four = |set: Set| visible(3, 4, set);
    let causal = three_by_four(Box::new(bounds(None, Some(0), TopLeft)));
    assert_eq!(causal, ["1...", "11..", "111."]);
    let causal = three_by_four(Box::new(bounds(None, Some(0), BottomRight)));
    assert_eq!(causal, ["11..", "111.", "1111"]);
    let window = three_by_four(Box::new(bounds(Some(1), Some(1), TopLeft)));
    assert_eq!(window, ["11..", "111.", ".111"]);
    let window = three_by_four(Box::new(bounds(Some(0), None, BottomRight)));
    assert_eq!(window, [".111", "..11", "...1"]);
    let none = three_by_four(Box::new(bounds(Some(-1), Some(-1), BottomRight)));
    assert_eq!(none, ["1111"; 3]);
    let flag = three_by_four(Box::new(|_, op| op.causal_mask = true));
    assert_eq!(flag, ["1...", "11..", "111."]);
    let flag = three_by_four(Box::new(|_, op| op.causal_mask_bottom_right = true));
    assert_eq!(flag, ["11..", "111.", "1111"]);
    // More queries than keys: the first ones see nothing.
    let empty = visible(4, 2, bounds(None, Some(0), BottomRight));
    assert_eq!(empty, ["..", "..", "1.", "11"]);
}

#[test]
fn additive_masks_broadcast_from_the_right() {
    let attention = attention(F64, [1, 2, 1, 1, 2, 2, 1, 2], |builder, op| {
        op.attn_mask = Some(builder.buffer("mask", F64, &[2, 1, 2]));
    });
    let mask = TensorId(5);
    let inputs: [(TensorId, &[f64]); 4] = [
        (attention.q, &[0.0; 4]),
        (attention.k, &[0.0; 2]),
        (attention.v, &identity(2)),
        (mask, &[3.0_f64.ln(), 0.0, HIDDEN, HIDDEN]),
    ];
    let o = run(&attention.graph, &inputs, attention.o);
    close(&o, &[0.75, 0.25, 0.75, 0.25, 0.0, 0.0, 0.0, 0.0]);
    let stats = run(&attention.graph, &inputs, attention.stats);
    close(&stats, &[4.0_f64.ln(), 4.0_f64.ln(), HIDDEN, HIDDEN]);
}

#[test]
fn heads_share_keys_and_values() {
    // Four heads of queries, two of keys, one of values: each head's score comes from the key head
    // of its group.
    let attention = attention(F64, [1, 4, 2, 1, 1, 2, 1, 2], |_, _| {});
    let inputs: [(TensorId, &[f64]); 3] = [
        (attention.q, &[1.0; 4]),
        (attention.k, &[0.0, 0.0, 3.0_f64.ln(), 0.0]),
        (attention.v, &identity(2)),
    ];
    let o = run(&attention.graph, &inputs, attention.o);
    close(&o, &[0.5, 0.5, 0.5, 0.5, 0.75, 0.25, 0.75, 0.25]);
}

#[test]
fn sequence_lengths_hide_keys_and_empty_queries() {
    let attention = attention(F64, [2, 1, 1, 1, 2, 3, 1, 3], |builder, op| {
        op.padding_mask = true;
        op.seq_len_q = Some(builder.buffer("seq_len_q", DataType::I32, &[2, 1, 1, 1]));
        op.seq_len_kv = Some(builder.buffer("seq_len_kv", DataType::I32, &[2, 1, 1, 1]));
    });
    let values = [identity(3), identity(3)].concat();
    let inputs: [(TensorId, &[f64]); 5] = [
        (attention.q, &[0.0; 4]),
        (attention.k, &[0.0; 6]),
        (attention.v, &values),
        (TensorId(5), &[1.0, 2.0]),
        (TensorId(6), &[2.0, 0.0]),
    ];
    let o = run(&attention.graph, &inputs, attention.o);
    close(&o, &[0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let stats = run(&attention.graph, &inputs, attention.stats);
    close(&stats, &[2.0_f64.ln(), HIDDEN, HIDDEN, HIDDEN]);
}

#[test]
fn a_sink_takes_its_share_of_the_sum_only() {
    let attention = attention(F64, [1, 2, 2, 2, 1, 2, 1, 2], |builder, op| {
        op.sink_token = Some(builder.buffer("sink", F64, &[1, 2, 1, 1]));
    });
    let values = [identity(2), identity(2)].concat();
    let inputs: [(TensorId, &[f64]); 4] = [
        (attention.q, &[0.0; 2]),
        (attention.k, &[0.0; 4]),
        (attention.v, &values),
        (TensorId(5), &[2.0_f64.ln(), 6.0_f64.ln()]),
    ];
    close(
        &run(&attention.graph, &inputs, attention.o),
        &[0.25, 0.25, 0.125, 0.125],
    );
    let stats = run(&attention.graph, &inputs, attention.stats);
    close(&stats, &[4.0_f64.ln(), 8.0_f64.ln()]);
}

#[test]
fn linear_biases_fall_with_the_distance() {
    // Eight heads: the slopes are 2^-1 to 2^-8.
    let attention = attention(F64, [1, 8, 1, 1, 2, 2, 1, 2], |_, op| {
        op.alibi_mask = true;
        op.right_bound = Some(0);
    });
    let inputs: [(TensorId, &[f64]); 3] = [
        (attention.q, &[0.0; 16]),
        (attention.k, &[0.0; 2]),
        (attention.v, &identity(2)),
    ];
    let o = run(&attention.graph, &inputs, attention.o);
    for (head, rows) in o.chunks(4).enumerate() {
        let slope = 0.5_f64.powi(i32::try_from(head).unwrap() + 1);
        let before = (-slope).exp() / (1.0 + (-slope).exp());
        close(rows, &[1.0, 0.0, before, 1.0 - before]);
    }
}

#[test]
fn the_maximum_and_the_sum_of_a_row() {
    let attention = attention(F64, [1, 1, 1, 1, 2, 3, 1, 1], |builder, op| {
        op.max = Some(builder.buffer("max", F64, &[1, 1, 2, 1]));
        op.sum_exp = Some(builder.buffer("sum_exp", F64, &[1, 1, 2, 1]));
    });
    let inputs: [(TensorId, &[f64]); 3] = [
        (attention.q, &[1.0, -1.0]),
        (attention.k, &[0.0, 2.0_f64.ln(), 4.0_f64.ln()]),
        (attention.v, &[0.0; 3]),
    ];
    close(&run(&attention.graph, &inputs, TensorId(5)), &[4.0_f64.ln(), 0.0]);
    close(&run(&attention.graph, &inputs, TensorId(6)), &[1.75, 1.75]);
}

#[test]
fn gradients_are_derivatives() {
    // B, H, Hk, Hv, Sq, Skv, D, Dv: heads share keys by two and values by four.
    let extents = [2, 4, 2, 1, 3, 4, 2, 3];
    let bound = |op: &mut Sdpa| {
        (op.left_bound, op.right_bound) = (Some(2), Some(0));
        op.diagonal_alignment = DiagonalAlignment::BottomRight;
    };
    let forward = attention(F64, extents, |builder, op| {
        bound(op);
        op.attn_mask = Some(builder.buffer("mask", F64, &[4, 1, 4]));
        op.attn_scale_value = Some(0.75);
    });
    let mask_id = TensorId(5);
    let sizes = [48, 32, 24, 16];
    let [q, k, v, mask] = [0, 1, 2, 3].map(|index| irregular(sizes[index], 0.1 + index as f64));
    let d_o = irregular(72, 0.77);
    let output = |[q, k, v, mask]: [&[f64]; 4], id: TensorId| {
        let inputs = [(forward.q, q), (forward.k, k), (forward.v, v), (mask_id, mask)];
        run(&forward.graph, &inputs, id)
    };
    let loss =
        |inputs: [&[f64]; 4]| -> f64 { output(inputs, forward.o).iter().zip(&d_o).map(|(o, d_o)| o * d_o).sum() };
    let all: [&[f64]; 4] = [&q, &k, &v, &mask];

    let backward = backward(extents, |builder, op| {
        op.attn_mask = Some(builder.buffer("mask", F64, &[4, 1, 4]));
        op.dbias = Some(builder.buffer("dbias", F64, &[4, 1, 4]));
        op.attn_scale_value = Some(0.75);
        (op.left_bound, op.right_bound) = (Some(2), Some(0));
        op.diagonal_alignment = DiagonalAlignment::BottomRight;
    });
    let (o, stats) = (output(all, forward.o), output(all, forward.stats));
    let given: [&[f64]; 7] = [&q, &k, &v, &o, &d_o, &stats, &mask];
    let ids = [0, 1, 2, 3, 4, 5, 9].map(TensorId);
    let inputs: Vec<(TensorId, &[f64])> = ids.into_iter().zip(given).collect();
    for (position, gradient) in [6, 7, 8, 10].map(TensorId).into_iter().enumerate() {
        let numerical = derivatives(all[position], |moved| {
            let mut all = all;
            all[position] = moved;
            loss(all)
        });
        close(&run(&backward, &inputs, gradient), &numerical);
    }
}

/// Returns a graph of attention backward whose first tensors are q, k, v, o, do, stats, dq, dk and
/// dv.
fn backward([b, h, hk, hv, sq, skv, d, dv]: [i64; 8], set: impl FnOnce(&mut GraphBuilder, &mut SdpaBackward)) -> Graph {
    let mut builder = GraphBuilder::new("");
    let (q_dims, k_dims, v_dims, o_dims) = ([b, h, sq, d], [b, hk, skv, d], [b, hv, skv, dv], [b, h, sq, dv]);
    let mut tensor = |name: &str, dims: [i64; 4]| builder.buffer(name, F64, &dims);
    let [q, k, v, o, d_o] = [
        ("q", q_dims),
        ("k", k_dims),
        ("v", v_dims),
        ("o", o_dims),
        ("do", o_dims),
    ]
    .map(|(name, dims)| tensor(name, dims));
    let stats = tensor("stats", [b, h, sq, 1]);
    let gradients = [("dq", q_dims), ("dk", k_dims), ("dv", v_dims)].map(|(name, dims)| tensor(name, dims));
    let mut op = SdpaBackward::new([q, k, v, o, d_o, stats], gradients);
    set(&mut builder, &mut op);
    builder.node("", F64, Box::new(op));
    validated(builder)
}

#[test]
fn hidden_rows_have_no_gradient() {
    // The only query sees nothing: its statistic is -infinity, and so is its score.
    let graph = backward([1, 1, 1, 1, 1, 2, 1, 1], |builder, op| {
        op.attn_mask = Some(builder.buffer("mask", F64, &[2]));
    });
    let given: [&[f64]; 7] = [
        &[1.0],
        &[1.0, 2.0],
        &[3.0, 4.0],
        &[0.0],
        &[1.0],
        &[HIDDEN],
        &[HIDDEN, HIDDEN],
    ];
    let ids = [0, 1, 2, 3, 4, 5, 9].map(TensorId);
    let inputs: Vec<(TensorId, &[f64])> = ids.into_iter().zip(given).collect();
    for (gradient, count) in [(6, 1), (7, 2), (8, 2)] {
        assert_eq!(run(&graph, &inputs, TensorId(gradient)), vec![0.0; count]);
    }
}

/// Returns o of one head in binary32, computed by online softmax: maximum, sum and average are
/// corrected after each block of keys, as in kernels for long sequences. `store` rounds the
/// weights.
fn online(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    [d, dv, block]: [usize; 3],
    scale: f32,
    store: impl Fn(f32) -> f32,
) -> Vec<f64> {
    let mut o = Vec::new();
    for q in q.chunks(d) {
        let (mut max, mut sum, mut average) = (f32::NEG_INFINITY, 0.0_f32, vec![0.0_f32; dv]);
        for (k, v) in k.chunks(d * block).zip(v.chunks(dv * block)) {
            let scores: Vec<f32> = k
                .chunks(d)
                .map(|k| k.iter().zip(q).fold(0.0, |sum, (k, q)| (q * scale).mul_add(*k, sum)))
                .collect();
            let larger = scores.iter().copied().fold(max, f32::max);
            let correction = (max - larger).exp();
            sum *= correction;
            average.iter_mut().for_each(|average| *average *= correction);
            for (score, v) in scores.iter().zip(v.chunks(dv)) {
                let weight = store((score - larger).exp());
                sum += weight;
                average
                    .iter_mut()
                    .zip(v)
                    .for_each(|(average, v)| *average += weight * v);
            }
            max = larger;
        }
        o.extend(average.iter().map(|average| f64::from(average / sum)));
    }
    o
}

#[test]
fn kernels_in_f32_pass_in_any_order_and_worse_ones_do_not() {
    let attention = attention(F32, [1, 1, 1, 1, 5, 64, 16, 8], |_, op| op.attn_scale_value = Some(0.3));
    let narrow = |count, seed| -> Vec<f32> { irregular(count, seed).iter().map(|&value| value as f32).collect() };
    let [q, k, v] = [narrow(80, 0.1), narrow(1024, 0.5), narrow(512, 0.8)];
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| value.into()).collect() };
    let (wide_q, wide_k, wide_v) = (wide(&q), wide(&k), wide(&v));
    let inputs: [(TensorId, &[f64]); 3] = [(attention.q, &wide_q), (attention.k, &wide_k), (attention.v, &wide_v)];
    let before = buffers(&attention.graph, &inputs);
    let evaluation = evaluate(&attention.graph, &before).unwrap();
    let judge = |o: &[f64]| evaluation.judge(attention.o, &bytes(F32, o), &bytes(F32, &[0.0; 40]));
    let same = |value| value;
    for block in [1, 16, 64] {
        let report = judge(&online(&q, &k, &v, [16, 8, block], 0.3, same)).unwrap();
        assert_eq!(report.unbounded, 0);
    }
    judge(&online(&q, &k, &v, [16, 8, 16], 0.3, |weight| {
        f16::from_f32(weight).to_f32()
    }))
    .unwrap_err();
    judge(&online(&q, &k, &v, [16, 8, 16], 0.31, same)).unwrap_err();
    judge(&online(&q, &k[16..], &v[8..], [16, 8, 16], 0.3, same)).unwrap_err();

    let mut after = before.clone();
    execute(&attention.graph, &mut after).unwrap();
    let stats = elements(F32, &after[&attention.graph.tensor(attention.stats).unwrap().uid]);
    let judge = |stats: &[f64]| evaluation.judge(attention.stats, &bytes(F32, stats), &bytes(F32, &[0.0; 5]));
    judge(&stats).unwrap();
    let in_base_2: Vec<f64> = stats.iter().map(|value| value / 2.0_f64.ln()).collect();
    judge(&in_base_2).unwrap_err();
    let off: Vec<f64> = stats.iter().map(|value| value + 1e-3).collect();
    judge(&off).unwrap_err();
}

#[test]
fn what_has_no_reference_is_told() {
    type Set = fn(&mut GraphBuilder, &mut Sdpa);
    let cases: [(&str, Set); 6] = [
        ("dropout", |_, op| op.dropout_probability = Some(0.5)),
        ("paged keys and values", |builder, op| {
            op.page_table_k = Some(builder.buffer("pages", DataType::I32, &[1, 1, 1, 1]));
        }),
        ("a block mask", |builder, op| {
            op.block_mask = Some(builder.buffer("blocks", DataType::U8, &[1]));
        }),
        ("scales of 8-bit floats", |builder, op| {
            op.descale_q = Some(builder.buffer("descale", F32, &[1]));
        }),
        ("ALiBi without a causal mask", |_, op| op.alibi_mask = true),
        ("sequence lengths without", |builder, op| {
            op.seq_len_kv = Some(builder.buffer("lengths", DataType::I32, &[1, 1, 1, 1]));
        }),
    ];
    for (what, set) in cases {
        let attention = attention(F32, [1, 1, 1, 1, 2, 2, 2, 2], set);
        let error = execute(&attention.graph, &mut buffers(&attention.graph, &[])).unwrap_err();
        assert!(
            matches!(&error, ReferenceError::Unsupported { what: told, .. } if told.contains(what)),
            "{what}: {error}"
        );
    }
}
