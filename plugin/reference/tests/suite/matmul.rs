//! Matrix multiplication.

use crate::{Numbers, bytes, run, validated};
use half::f16;
use rotini_graph::{DataType, Graph, GraphBuilder, Matmul, TensorId, TensorKind};
use rotini_reference::{Buffers, evaluate};

fn matmul(types: [DataType; 4], a: &[i64], b: &[i64], c: &[i64]) -> (Graph, [TensorId; 3]) {
    let [a_type, b_type, c_type, compute] = types;
    let mut builder = GraphBuilder::new("");
    let (a, b) = (builder.buffer("a", a_type, a), builder.buffer("b", b_type, b));
    let c = builder.buffer("c", c_type, c);
    builder.node("matmul", compute, Matmul { a, b, c });
    (validated(builder), [a, b, c])
}

const F32: [DataType; 4] = [DataType::F32; 4];

#[test]
fn by_hand() {
    let (graph, [a, b, c]) = matmul(F32, &[2, 3], &[3, 2], &[2, 2]);
    let got = run(
        &graph,
        &[
            (a, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            (b, &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]),
        ],
        c,
    );
    assert_eq!(got, [14.0, 140.0, 32.0, 320.0]);
    let (graph, [a, b, c]) = matmul(F32, &[1, 1], &[1, 3], &[1, 3]);
    assert_eq!(run(&graph, &[(a, &[2.0]), (b, &[1.0, -0.5, 4.0])], c), [2.0, -1.0, 8.0]);
}

#[test]
fn a_transpose_is_only_a_matter_of_strides() {
    let mut builder = GraphBuilder::new("");
    let a = builder.tensor("a", DataType::F32, &[2, 3], &[1, 2], TensorKind::Buffer);
    let b = builder.buffer("b", DataType::F32, &[3, 1]);
    let c = builder.buffer("c", DataType::F32, &[2, 1]);
    builder.node("matmul", DataType::F32, Matmul { a, b, c });
    let got = run(
        &validated(builder),
        &[(a, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]), (b, &[1.0, 10.0, 100.0])],
        c,
    );
    assert_eq!(got, [321.0, 654.0]);
}

#[test]
fn batches_repeat_in_runs_and_do_not_cycle() {
    // Four output matrices; a has two, used in the order 0, 0, 1, 1. b has four.
    let (graph, [a, b, c]) = matmul(F32, &[2, 1, 1], &[4, 1, 1], &[4, 1, 1]);
    assert_eq!(
        run(&graph, &[(a, &[1.0, 2.0]), (b, &[1.0, 10.0, 100.0, 1000.0])], c),
        [1.0, 10.0, 200.0, 2000.0]
    );
    // With two batch axes, a repeats along both and b along neither.
    let (graph, [a, b, c]) = matmul(F32, &[1, 2, 1, 1], &[2, 4, 1, 1], &[2, 4, 1, 1]);
    let got = run(
        &graph,
        &[(a, &[1.0, -1.0]), (b, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])],
        c,
    );
    assert_eq!(got, [1.0, 2.0, -3.0, -4.0, 5.0, 6.0, -7.0, -8.0]);
    let (graph, [a, b, c]) = matmul(F32, &[3, 1, 1], &[1, 1, 2], &[3, 1, 2]);
    assert_eq!(
        run(&graph, &[(a, &[1.0, 2.0, 3.0]), (b, &[1.0, 10.0])], c),
        [1.0, 10.0, 2.0, 20.0, 3.0, 30.0]
    );
}

#[test]
fn products_are_associative() {
    // (a b) d = a (b d), on whole numbers.
    let (first, second) = (
        matmul(F32, &[2, 3, 4], &[2, 4, 5], &[2, 3, 5]),
        matmul(F32, &[2, 3, 5], &[1, 5, 2], &[2, 3, 2]),
    );
    let (inner, outer) = (
        matmul(F32, &[2, 4, 5], &[1, 5, 2], &[2, 4, 2]),
        matmul(F32, &[2, 3, 4], &[2, 4, 2], &[2, 3, 2]),
    );
    let run = |(graph, [a, b, c]): &(Graph, [TensorId; 3]), left: &[f64], right: &[f64]| {
        run(graph, &[(*a, left), (*b, right)], *c)
    };
    let mut numbers = Numbers(11);
    let (a, b, d) = (numbers.take(24), numbers.take(40), numbers.take(10));
    assert_eq!(
        run(&second, &run(&first, &a, &b), &d),
        run(&outer, &a, &run(&inner, &b, &d))
    );
}

#[test]
fn integers_are_exact_and_wrap_in_the_compute_type() {
    let types = [DataType::I8, DataType::I8, DataType::I32, DataType::I32];
    let (graph, [a, b, c]) = matmul(types, &[1, 3], &[3, 1], &[1, 1]);
    assert_eq!(
        run(&graph, &[(a, &[-128.0, 127.0, -128.0]), (b, &[-128.0, 127.0, 3.0])], c),
        [32129.0]
    );
    let (graph, [a, b, c]) = matmul([DataType::I32; 4], &[1, 2], &[2, 1], &[1, 1]);
    let big = f64::from(1 << 20);
    assert_eq!(run(&graph, &[(a, &[big, 5.0]), (b, &[big, 7.0])], c), [35.0]);
}

#[test]
fn kernels_that_sum_in_f32_pass_in_any_order_and_worse_ones_do_not() {
    let (graph, [_, _, c]) = matmul(F32, &[1, 300], &[300, 1], &[1, 1]);
    let irregular = |seed: f64| -> Vec<f32> {
        (0..300)
            .map(|i| ((f64::from(i) + seed) * 12.9898).sin() as f32)
            .collect()
    };
    let (a, b) = (irregular(0.1), irregular(0.7));
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| value.into()).collect() };
    let buffers = Buffers::from([
        (1, bytes(DataType::F32, &wide(&a))),
        (2, bytes(DataType::F32, &wide(&b))),
        (3, vec![0; 4]),
    ]);
    let evaluation = evaluate(&graph, &buffers).unwrap();
    let judge = |sum: f32| evaluation.judge(c, &sum.to_le_bytes(), &[0; 4]);
    let products = || a.iter().zip(&b);
    judge(products().fold(0.0, |sum, (a, b)| sum + a * b)).unwrap();
    judge(products().rev().fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))).unwrap();
    judge(products().fold(0.0, |sum, (a, b)| f16::from_f32(sum + a * b).to_f32())).unwrap_err();
    judge(products().skip(1).map(|(a, b)| a * b).sum()).unwrap_err();
}
