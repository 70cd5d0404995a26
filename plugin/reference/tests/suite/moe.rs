//! Grouped matmuls and block scales.

use crate::{Numbers, buffers, run, validated};
use rotini_graph::{
    BlockScaleDequantize, DataType, Graph, GraphBuilder, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode, TensorId,
};
use rotini_reference::{ReferenceError, execute};

const F32: DataType = DataType::F32;
const I32: DataType = DataType::I32;

/// token, weight, first_token_offset, token_index, token_ks, output.
fn grouped(
    tokens: i64,
    [experts, inner, columns]: [i64; 3],
    rows: i64,
    mode: MoeMode,
    top_k: i32,
) -> (Graph, [TensorId; 6]) {
    let mut b = GraphBuilder::new("");
    let token = b.buffer("token", F32, &[1, tokens, inner]);
    let weight = b.buffer("weight", F32, &[experts, inner, columns]);
    let offset = b.buffer("offset", I32, &[experts, 1, 1]);
    let index = b.buffer("index", I32, &[1, rows, 1]);
    let ks = b.buffer("ks", I32, &[1, rows, 1]);
    let output = b.buffer("output", F32, &[1, rows, columns]);
    let op = MoeGroupedMatmul {
        token,
        weight,
        first_token_offset: offset,
        token_index: (mode != MoeMode::None).then_some(index),
        token_ks: (mode == MoeMode::Scatter).then_some(ks),
        output,
        mode,
        top_k,
    };
    b.node("moe", F32, op);
    (validated(b), [token, weight, offset, index, ks, output])
}

#[test]
fn every_mode_by_hand() {
    // Experts multiply by 1, 10 and 100; the second has no rows.
    let (tokens, experts, offsets) = ([1.0, 2.0, 3.0, 4.0], [1.0, 10.0, 100.0], [0.0, 1.0, 1.0]);
    let (graph, [token, weight, offset, .., output]) = grouped(4, [3, 1, 1], 4, MoeMode::None, 0);
    let got = run(
        &graph,
        &[(token, &tokens), (weight, &experts), (offset, &offsets)],
        output,
    );
    assert_eq!(got, [1.0, 200.0, 300.0, 400.0]);

    let (graph, [token, weight, offset, index, _, output]) = grouped(4, [3, 1, 1], 3, MoeMode::Gather, 0);
    let inputs: [(TensorId, &[f64]); 4] = [
        (token, &tokens),
        (weight, &experts),
        (offset, &offsets),
        (index, &[3.0, 3.0, 0.0]),
    ];
    assert_eq!(run(&graph, &inputs, output), [4.0, 400.0, 100.0]);

    // Rows before the first offset belong to no expert, so their destinations are zero.
    let (graph, [token, weight, offset, index, ks, output]) = grouped(4, [3, 1, 1], 4, MoeMode::Scatter, 2);
    let inputs: [(TensorId, &[f64]); 5] = [
        (token, &tokens),
        (weight, &experts),
        (offset, &[1.0, 2.0, 3.0]),
        (index, &[0.0, 1.0, 0.0, 1.0]),
        (ks, &[0.0, 1.0, 1.0, 0.0]),
    ];
    assert_eq!(run(&graph, &inputs, output), [0.0, 30.0, 400.0, 2.0]);
}

#[test]
fn the_gradient_is_the_transpose() {
    let (tokens, experts, inner, columns) = (5, 3, 2, 2);
    let (graph, [token, weight, offset, .., output]) =
        grouped(tokens, [experts, inner, columns], tokens, MoeMode::None, 0);
    let mut numbers = Numbers(17);
    let (x, dy, offsets) = (numbers.take(10), numbers.take(10), [0.0, 2.0, 2.0]);

    let mut b = GraphBuilder::new("");
    let doutput = b.buffer("doutput", F32, &[1, tokens, columns]);
    let token_in = b.buffer("token", F32, &[1, tokens, inner]);
    let offset_in = b.buffer("offset", I32, &[experts, 1, 1]);
    let dweight = b.buffer("dweight", F32, &[experts, inner, columns]);
    let op = MoeGroupedMatmulBwd {
        doutput,
        token: token_in,
        first_token_offset: offset_in,
        dweight,
    };
    b.node("moe", F32, op);
    let got = run(
        &validated(b),
        &[(doutput, &dy), (token_in, &x), (offset_in, &offsets)],
        dweight,
    );
    for (position, got) in got.into_iter().enumerate() {
        let unit: Vec<f64> = (0..12).map(|index| f64::from(u8::from(index == position))).collect();
        let forward = run(&graph, &[(token, &x), (weight, &unit), (offset, &offsets)], output);
        assert_eq!(
            got,
            forward.iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>(),
            "at {position}"
        );
    }
}

#[test]
fn routing_that_goes_nowhere_is_refused() {
    let fails = |mode, top_k, offsets: &[f64], index: &[f64], ks: &[f64]| {
        let (graph, ids) = grouped(2, [2, 1, 1], 2, mode, top_k);
        let mut buffers = buffers(
            &graph,
            &[
                (ids[0], &[1.0; 2]),
                (ids[1], &[1.0; 2]),
                (ids[2], offsets),
                (ids[3], index),
                (ids[4], ks),
            ],
        );
        let error = execute(&graph, &mut buffers).unwrap_err();
        assert!(matches!(error, ReferenceError::Unsupported { .. }), "{error}");
    };
    let zeros = [0.0; 2];
    fails(MoeMode::None, 0, &[1.0, 0.0], &zeros, &zeros);
    fails(MoeMode::None, 0, &[0.0, 3.0], &zeros, &zeros);
    fails(MoeMode::None, 0, &[-1.0, 0.0], &zeros, &zeros);
    fails(MoeMode::Gather, 0, &[0.0, 1.0], &[0.0, 2.0], &zeros);
    fails(MoeMode::Scatter, 1, &[0.0, 1.0], &[0.0, 1.0], &[0.0, 1.0]);
    fails(MoeMode::Scatter, 1, &[0.0, 1.0], &[1.0, 1.0], &zeros);
}

#[test]
fn blocks_are_scaled_by_hand() {
    let dequantize = |x_dims: &[i64], scale_dims: &[i64], block_size: &[i32], negative, x: &[f64], scale: &[f64]| {
        let mut b = GraphBuilder::new("");
        let x_id = b.buffer("x", DataType::I8, x_dims);
        let scale_id = b.buffer("scale", F32, scale_dims);
        let y = b.buffer("y", F32, x_dims);
        let op = BlockScaleDequantize {
            x: x_id,
            scale: scale_id,
            y,
            block_size: block_size.to_vec(),
            is_negative_scale: negative,
        };
        b.node("dequantize", F32, op);
        run(&validated(b), &[(x_id, x), (scale_id, scale)], y)
    };
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    let got = dequantize(&[1, 5], &[1, 3], &[2], false, &five, &[1.0, 10.0, 100.0]);
    assert_eq!(got, [1.0, 2.0, 30.0, 40.0, 500.0], "the last block is cut off");
    let got = dequantize(
        &[2, 2, 3],
        &[2, 1, 2],
        &[2, 2],
        false,
        &[1.0; 12],
        &[1.0, 2.0, 3.0, 4.0],
    );
    assert_eq!(got, [1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 3.0, 3.0, 4.0]);
    let got = dequantize(&[1, 4], &[1, 2], &[2], true, &[1.0, 2.0, 3.0, -4.0], &[1.0, -3.0]);
    assert_eq!(got, [0.5, 1.0, 24.0, -32.0], "an exponent");
}
