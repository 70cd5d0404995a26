//! hipDNN's table of tolerances, and comparisons by it.

use crate::judging::conv_bias_relu;
use crate::{bytes, tensor, validated};
use rotini_graph::{DataType, GraphBuilder, PointwiseMode as Mode, TensorKind};
use rotini_reference::{Mismatch, Tolerance, compare, evaluate, execute, fill_all, tolerance};

#[test]
fn the_table_is_chosen_by_operation_and_coarsest_type() {
    let of = |dtype| {
        let (graph, [.., y]) = conv_bias_relu(dtype, 4);
        let tolerance = tolerance(&graph, y).unwrap();
        (tolerance.absolute, tolerance.relative)
    };
    assert_eq!(of(DataType::F32), (1e-5, 1e-5));
    assert_eq!(of(DataType::F16), (1e-1, 1e-2));
    assert_eq!(of(DataType::Bf16), (1e-1, 2e-2));

    let pointwise = |input, between, compute, output| {
        let mut builder = GraphBuilder::new("");
        let x = builder.buffer("x", input, &[4]);
        let z = builder.virtual_tensor("z", between, &[4]);
        let y = builder.buffer("y", output, &[4]);
        builder.pointwise(compute, Mode::Abs, &[x], z);
        builder.pointwise(compute, Mode::Abs, &[z], y);
        tolerance(&validated(builder), y).unwrap()
    };
    use DataType::{Bf16, F8E4M3, F16, F32, F64, I8};
    assert_eq!(pointwise(F32, F32, F32, F32).absolute, 1e-5);
    // One step of a type of eight bits to which a value is converted, even in an intermediate, but
    // not of an input of such a type.
    assert_eq!(pointwise(F32, F32, F32, F8E4M3).relative, 0.125);
    assert_eq!(pointwise(F32, F8E4M3, F32, F32).relative, 0.125);
    assert_eq!(pointwise(F8E4M3, F32, F32, F32).relative, 1e-5);
    assert_eq!(pointwise(F16, F32, F32, F32).absolute, 1e-3);
    assert_eq!(
        pointwise(F32, F16, F32, F32).absolute,
        1e-5,
        "intermediates are not rounded"
    );
    assert_eq!(pointwise(F32, F32, F32, Bf16).absolute, 1e-2);
    assert_eq!(pointwise(F64, F64, F64, F64).absolute, 1e-7);
    assert_eq!(pointwise(F64, F64, F32, F64).absolute, 1e-5);
    assert_eq!(pointwise(F16, F32, F32, I8), Tolerance::EXACT);
}

#[test]
fn tolerances_are_absolute_plus_relative() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::F64, &[2, 2]);
    let id = builder.buffer("y", DataType::F64, &[2, 2]);
    builder.pointwise(DataType::F64, Mode::Abs, &[x], id);
    let graph = validated(builder);
    let y = tensor(&graph, id);
    let within = Tolerance {
        absolute: 0.5,
        relative: 0.25,
    };
    let compare =
        |got: [f64; 4], want: [f64; 4]| compare(y, &bytes(DataType::F64, &got), &bytes(DataType::F64, &want), within);
    let nan = f64::NAN;
    let report = compare([4.0, -9.5, 0.25, nan], [4.0, -8.0, 0.0, nan]).unwrap();
    assert_eq!(
        (report.max_absolute, report.max_relative, report.ratio),
        (1.5, 0.1875, 0.6)
    );
    assert_eq!(
        (report.worst.index, report.worst.got, report.worst.want),
        (vec![0, 1], -9.5, -8.0)
    );

    for (got, want) in [
        (10.6, 8.0),
        (0.6, 0.0),
        (nan, 0.0),
        (0.0, nan),
        (f64::INFINITY, 1e308),
        (1.0, f64::INFINITY),
        (f64::NEG_INFINITY, f64::INFINITY),
    ] {
        let error = compare([0.0, 0.0, got, 0.0], [0.0, 0.0, want, 0.0]).unwrap_err();
        let Mismatch::Values { report, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            (report.wrong, report.worst.index.as_slice()),
            (1, [1, 0].as_slice()),
            "{got} for {want}"
        );
        assert!(report.ratio > 1.0, "{got} for {want}: {}", report.ratio);
        assert!(error.to_string().contains("'y'"), "{error}");
    }
    compare([f64::INFINITY; 4], [f64::INFINITY; 4]).unwrap();
}

#[test]
fn integers_are_exact_and_gaps_are_guarded() {
    let mut builder = GraphBuilder::new("");
    let x = builder.buffer("x", DataType::I32, &[2, 2]);
    let id = builder.tensor("y", DataType::I32, &[2, 2], &[3, 1], TensorKind::Buffer);
    builder.pointwise(DataType::I32, Mode::Neg, &[x], id);
    let graph = validated(builder);
    let y = tensor(&graph, id);
    let mut buffers = fill_all(&graph, 2).unwrap();
    let before = buffers[&y.uid].clone();
    execute(&graph, &mut buffers).unwrap();
    let want = &buffers[&y.uid];
    let loose = Tolerance {
        absolute: 10.0,
        relative: 10.0,
    };
    let evaluation = evaluate(&graph, &buffers).unwrap();

    assert_eq!(compare(y, want, want, loose).unwrap().elements, 4);
    evaluation.judge(id, want, &before).unwrap();
    let mut off = want.clone();
    off[12] ^= 1;
    assert!(matches!(compare(y, &off, want, loose), Err(Mismatch::Values { .. })));
    assert!(matches!(
        evaluation.judge(id, &off, &before),
        Err(Mismatch::Values { .. })
    ));
    let mut overwritten = want.clone();
    overwritten[9] = 0;
    assert!(matches!(
        compare(y, &overwritten, want, loose),
        Err(Mismatch::Gap {
            offset: 9,
            after: 0,
            ..
        })
    ));
    assert!(matches!(
        evaluation.judge(id, &overwritten, &before),
        Err(Mismatch::Gap { offset: 9, .. })
    ));
    assert!(matches!(
        compare(y, &want[1..], want, loose),
        Err(Mismatch::Length { .. })
    ));
    assert!(matches!(
        compare(y, &want[1..], &want[1..], loose),
        Err(Mismatch::Length { span: 20, .. })
    ));
}
