//! Conversions of values between nodes, on storing, and in tensors that are not buffers.

use crate::{buffers, elements, run, validated};
use rotini_graph::{DataType, GraphBuilder, PointwiseMode as Mode, Scalar, TensorKind};
use rotini_reference::{Options, UNTOUCHED, execute, execute_with};

#[test]
fn floats_are_not_rounded_between_nodes_and_integers_are() {
    // x / 3 * 3, with x / 3 in a virtual tensor or a buffer of each type.
    for (between, want) in [
        (DataType::F16, 10.0),
        (DataType::Bf16, 10.0),
        (DataType::I32, 9.0),
        (DataType::U8, 9.0),
    ] {
        for kind in [TensorKind::Virtual, TensorKind::Buffer] {
            let mut builder = GraphBuilder::new("");
            let x = builder.buffer("x", DataType::F32, &[1]);
            let three = builder.constant("three", DataType::F32, &[1], Scalar::float(3.0));
            let third = builder.tensor("third", between, &[1], &[1], kind);
            let y = builder.buffer("y", DataType::F64, &[1]);
            builder.pointwise(DataType::F64, Mode::Div, &[x, three], third);
            builder.pointwise(DataType::F64, Mode::Mul, &[third, three], y);
            assert_eq!(
                run(&validated(builder), &[(x, &[10.0])], y),
                [want],
                "{between} {kind:?}"
            );
        }
    }
}

#[test]
fn the_mutant_rounds_its_intermediates() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[1]);
    let between = builder.virtual_tensor("between", DataType::F32, &[1]);
    let y = builder.buffer("y", DataType::F32, &[1]);
    let stored = builder.buffer("stored", DataType::F32, &[1]);
    builder.pointwise(DataType::F32, Mode::Add, &[x, x], between);
    builder.pointwise(DataType::F32, Mode::Neg, &[between], y);
    builder.pointwise(DataType::F32, Mode::Identity, &[x], stored);
    let graph = validated(builder);
    let mut buffers = buffers(&graph, &[(x, &[2049.0])]);
    let mutant = Options {
        round_intermediates: Some(DataType::F16),
        ..Options::default()
    };
    execute_with(&graph, &mut buffers, &mutant).unwrap();
    // binary16 has steps of 2 between 2048 and 4096, and of 4 up to 8192, so 4098 is a tie.
    assert_eq!(elements(DataType::F32, &buffers[&3]), [-4096.0]);
    assert_eq!(
        elements(DataType::F32, &buffers[&4]),
        [2049.0],
        "this is no intermediate"
    );
    execute(&graph, &mut buffers).unwrap();
    assert_eq!(elements(DataType::F32, &buffers[&3]), [-4098.0]);
}

#[test]
fn scalars_come_from_the_graph_or_the_host() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F32, &[2]);
    // 0.1 in binary16 is 0.0999755859375.
    let tenth = builder.constant("tenth", DataType::F16, &[1], Scalar::float(0.1));
    let count = builder.constant("count", DataType::I32, &[1], Scalar::Integer(3));
    let host = builder.tensor("host", DataType::F32, &[1], &[1], TensorKind::RuntimeScalar);
    let [a, b] = ["a", "b"].map(|name| builder.virtual_tensor(name, DataType::F32, &[2]));
    let y = builder.buffer("y", DataType::F64, &[2]);
    builder.pointwise(DataType::F64, Mode::Mul, &[x, tenth], a);
    builder.pointwise(DataType::F64, Mode::Add, &[a, count], b);
    builder.pointwise(DataType::F64, Mode::Sub, &[b, host], y);
    let graph = validated(builder);
    assert_eq!(
        run(&graph, &[(x, &[1.0, 10.0]), (host, &[0.5])], y),
        [2.599_975_585_937_5, 3.499_755_859_375]
    );
}

#[test]
fn gaps_stay_untouched() {
    let mut builder = GraphBuilder::new("");
    let x = builder.tensor("x", DataType::F16, &[2, 3], &[5, 1], TensorKind::Buffer);
    let y = builder.tensor("y", DataType::I8, &[2, 3], &[1, 4], TensorKind::Buffer);
    builder.pointwise(DataType::F32, Mode::Neg, &[x], y);
    let graph = validated(builder);
    let nan = f64::NAN;
    let mut buffers = buffers(&graph, &[(x, &[1.0, 2.0, 3.0, nan, nan, 4.0, 5.0, 600.0])]);
    execute(&graph, &mut buffers).unwrap();
    let expected: [i8; 10] = [-1, -4, -1, -1, -2, -5, -1, -1, -3, -128];
    assert_eq!(elements(DataType::I8, &buffers[&2]), expected.map(f64::from));
    // An untouched byte reads as -1: the four gaps and the first element.
    assert_eq!(buffers[&2].iter().filter(|&&byte| byte == UNTOUCHED).count(), 5);

    // Bytes behind the tensor stay unchanged too.
    buffers.get_mut(&2).unwrap().extend([1, 2, 3]);
    execute(&graph, &mut buffers).unwrap();
    assert_eq!(buffers[&2][10..], [1, 2, 3]);
}
