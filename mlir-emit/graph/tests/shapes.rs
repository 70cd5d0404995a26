//! Validation of shapes and attributes of operations other than forward convolution and pointwise.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use rotini_graph::*;

const F32: DataType = DataType::F32;

/// Validates a graph of one node over tensors given as (name, type, dims).
fn validate<O: Into<Op>>(
    tensors: &[(&str, DataType, &[i64])],
    op: impl FnOnce(&[TensorId]) -> O,
) -> Result<(), String> {
    let mut b = GraphBuilder::new("one");
    let ids: Vec<TensorId> = tensors
        .iter()
        .map(|(name, dtype, dims)| b.buffer(name, *dtype, dims))
        .collect();
    let op = op(&ids);
    b.node("n", F32, op);
    b.build().validate().map_err(|error| error.to_string())
}

/// Returns an error's message without the node's label, with which it must start.
#[track_caller]
fn message(result: Result<(), String>, kind: &str) -> String {
    let message = result.unwrap_err();
    let node = format!("node 'n' ({kind}): ");
    assert!(message.starts_with(&node), "{message}");
    message.replace(&node, "")
}

fn dgrad(dy: &[i64], w: &[i64], dx: &[i64], geometry: ConvGeometry) -> Result<(), String> {
    validate(&[("dy", F32, dy), ("w", F32, w), ("dx", F32, dx)], |t| ConvDgrad {
        dy: t[0],
        w: t[1],
        dx: t[2],
        geometry,
    })
}

fn wgrad(x: &[i64], dy: &[i64], dw: &[i64], geometry: ConvGeometry) -> Result<(), String> {
    validate(&[("x", F32, x), ("dy", F32, dy), ("dw", F32, dw)], |t| ConvWgrad {
        x: t[0],
        dy: t[1],
        dw: t[2],
        geometry,
    })
}

#[test]
fn gradients_of_convolutions() {
    let strided = || ConvGeometry {
        stride: vec![2, 2],
        ..ConvGeometry::same(2, 1)
    };
    // Input extents 7 and 8 both lead to output extent 4.
    dgrad(&[2, 6, 4, 4], &[6, 2, 3, 3], &[2, 4, 7, 8], strided()).unwrap();
    wgrad(&[2, 4, 7, 8], &[2, 6, 4, 4], &[6, 2, 3, 3], strided()).unwrap();

    let got = message(
        dgrad(&[2, 6, 4, 4], &[6, 2, 3, 3], &[2, 4, 9, 8], strided()),
        "convolution dgrad",
    );
    let expected = "tensor 'dy' (uid 1) has dims [2, 6, 4, 4], but a convolution of dx with w makes [2, 6, 5, 4]";
    assert_eq!(got, expected);
    let got = message(
        wgrad(&[2, 4, 7, 8], &[1, 6, 4, 4], &[6, 2, 3, 3], strided()),
        "convolution wgrad",
    );
    let expected = "tensor 'dy' (uid 2) has dims [1, 6, 4, 4], but a convolution of x with dw makes [2, 6, 4, 4]";
    assert_eq!(got, expected);
    let got = message(
        wgrad(&[2, 4, 7, 8], &[2, 6, 4, 4], &[6, 3, 3, 3], strided()),
        "convolution wgrad",
    );
    assert_eq!(
        got,
        "4 input channels and 6 filters do not divide into groups of 3 channels"
    );
    let got = message(
        dgrad(&[2, 6, 4], &[6, 2, 3, 3], &[2, 4, 7, 8], strided()),
        "convolution dgrad",
    );
    assert_eq!(
        got,
        "ranks of dx, w and dy are 4, 4 and 3, but must be equal and at least 3"
    );
    let got = message(
        dgrad(&[2, 6, 4, 4], &[6, 2, 3, 3], &[2, 4, 7, 8], ConvGeometry::same(1, 1)),
        "convolution dgrad",
    );
    assert_eq!(got, "pre_padding has 1 entries, but there are 2 spatial dimensions");
}

#[test]
fn matmuls() {
    let matmul = |a: &[i64], b: &[i64], c: &[i64]| {
        validate(&[("a", F32, a), ("b", F32, b), ("c", F32, c)], |t| Matmul {
            a: t[0],
            b: t[1],
            c: t[2],
        })
    };
    matmul(&[2, 3], &[3, 4], &[2, 4]).unwrap();
    matmul(&[6, 1, 2, 3], &[2, 5, 3, 4], &[6, 5, 2, 4]).unwrap();
    let fails = |a: &[i64], b: &[i64], c: &[i64]| message(matmul(a, b, c), "matmul");
    assert_eq!(
        fails(&[3], &[3], &[1]),
        "ranks of a, b and c are 1, 1 and 1, but must be at least 2, and c must have the larger one"
    );
    matmul(&[5, 2, 3], &[3, 4], &[5, 2, 4]).unwrap();
    matmul(&[2, 3], &[6, 5, 3, 4], &[6, 5, 2, 4]).unwrap();
    assert_eq!(
        fails(&[1, 2, 3], &[3, 4], &[2, 4]),
        "ranks of a, b and c are 3, 2 and 2, but must be at least 2, and c must have the larger one"
    );
    assert_eq!(
        fails(&[5, 2, 3], &[3, 4], &[1, 2, 4]),
        "tensor 'c' (uid 3) has dims [1, 2, 4], but the operation makes [5, 2, 4]"
    );
    assert_eq!(
        fails(&[2, 3], &[4, 5], &[2, 5]),
        "tensor 'a' (uid 1) has 3 columns, but tensor 'b' (uid 2) has 4 rows"
    );
    assert_eq!(
        fails(&[4, 2, 3], &[6, 3, 4], &[12, 2, 4]),
        "batch extents 4 and 6 along axis 0 do not divide"
    );
    let larger = fails(&[2, 2, 3], &[2, 3, 4], &[4, 2, 4]);
    assert_eq!(
        larger,
        "tensor 'c' (uid 3) has dims [4, 2, 4], but the operation makes [2, 2, 4]"
    );
}

#[test]
fn reductions() {
    let reduction = |from: &[i64], to: &[i64]| {
        validate(&[("x", F32, from), ("y", F32, to)], |t| Reduction {
            input: t[0],
            output: t[1],
            mode: ReductionMode::Add,
            is_deterministic: true,
        })
    };
    reduction(&[2, 1, 4], &[1, 1, 4]).unwrap();
    let fails = |from: &[i64], to: &[i64]| message(reduction(from, to), "reduction");
    assert_eq!(
        fails(&[2, 3], &[2]),
        "ranks of input and output are 2 and 1, but must be equal"
    );
    assert_eq!(
        fails(&[2, 4], &[1, 2]),
        "tensor 'y' (uid 2) has extent 2 along axis 1, but tensor 'x' (uid 1) has 4: only that and 1 are possible"
    );
    assert_eq!(
        fails(&[1, 4], &[3, 1]),
        "tensor 'y' (uid 2) has extent 3 along axis 0, but tensor 'x' (uid 1) has 1: only that and 1 are possible"
    );
    // An axis of extent 1 may be reduced to itself.
    reduction(&[1, 4], &[1, 4]).unwrap();
    reduction(&[3, 1], &[3, 1]).unwrap();
}

/// Returns a pooling of 5 by 5 to 3 by 3.
fn pooling() -> ResampleFwd {
    ResampleFwd {
        x: TensorId(0),
        y: TensorId(1),
        index: None,
        pre_padding: vec![1, 1],
        post_padding: vec![1, 1],
        stride: vec![2, 2],
        window: vec![3, 3],
        resample_mode: ResampleMode::Maxpool,
        padding_mode: PaddingMode::NegInf,
        generate_index: false,
    }
}

/// Validates a changed `pooling()`, with an index of type `index` as tensor 2.
fn pool(x: &[i64], y: &[i64], index: DataType, change: impl FnOnce(&mut ResampleFwd)) -> Result<(), String> {
    let mut op = pooling();
    change(&mut op);
    validate(&[("x", F32, x), ("y", F32, y), ("index", index, y)], |_| op)
}

const FIVE: [i64; 4] = [1, 2, 5, 5];
const THREE: [i64; 4] = [1, 2, 3, 3];

#[test]
fn pooling_forward() {
    let index = Some(TensorId(2));
    pool(&FIVE, &THREE, DataType::I32, |_| ()).unwrap();
    for dtype in [DataType::I32, DataType::I8] {
        pool(&FIVE, &THREE, dtype, |op| op.index = index).unwrap();
    }
    let fails = |x: &[i64], y: &[i64], dtype, change: fn(&mut ResampleFwd)| {
        message(pool(x, y, dtype, change), "resample forward")
    };
    let same = |change| fails(&FIVE, &THREE, DataType::I32, change);
    assert_eq!(
        same(|op| op.window = vec![3]),
        "window has 1 entries, but there are 2 spatial dimensions"
    );
    assert_eq!(same(|op| op.stride = vec![2, 0]), "stride 0 is below 1");
    assert_eq!(
        same(|op| op.window = vec![8, 1]),
        "the window does not fit the padded input along spatial axis 0"
    );
    assert_eq!(
        same(|op| op.generate_index = true),
        "an index is asked for, but there is no tensor for it"
    );
    assert_eq!(
        same(|op| op.padding_mode = PaddingMode::NotSet),
        "MAXPOOL with padding needs a padding mode"
    );
    let average = same(|op| (op.index, op.resample_mode) = (Some(TensorId(2)), ResampleMode::AvgpoolIncludePadding));
    assert_eq!(
        average,
        "tensor 'index' (uid 3) is written, but only MAXPOOL has an index"
    );
    let float = fails(&FIVE, &THREE, F32, |op| op.index = Some(TensorId(2)));
    assert_eq!(
        float,
        "tensor 'index' (uid 3) is an index of type f32, but must be i8 or i32"
    );
    let narrow = fails(&[1, 2, 12, 12], &[1, 2, 6, 6], DataType::I8, |op| {
        op.index = Some(TensorId(2))
    });
    assert_eq!(
        narrow,
        "tensor 'index' (uid 3) has type i8, which does not hold position 143"
    );
    let extents = fails(&FIVE, &[1, 2, 2, 3], DataType::I32, |_| ());
    assert_eq!(
        extents,
        "tensor 'y' (uid 2) has dims [1, 2, 2, 3], but the operation makes [1, 2, 3, 3]"
    );
    let channels = fails(&FIVE, &[1, 3, 3, 3], DataType::I32, |_| ());
    assert_eq!(
        channels,
        "tensor 'y' (uid 2) has dims [1, 3, 3, 3], but the operation makes [1, 2, 3, 3]"
    );
    let rank = fails(&[1, 2], &[1, 2], DataType::I32, |_| ());
    assert_eq!(rank, "ranks of x and y are 2 and 2, but must be equal and at least 3");
}

#[test]
fn pooling_backward() {
    let pool = |dy: &[i64], index: Option<(DataType, &[i64])>, mode| {
        let (dtype, dims) = index.unwrap_or((DataType::I32, &[1]));
        let forward = pooling();
        validate(&[("dy", F32, dy), ("dx", F32, &FIVE), ("index", dtype, dims)], |t| {
            ResampleBwd {
                dy: t[0],
                dx: t[1],
                index: index.map(|_| t[2]),
                pre_padding: forward.pre_padding,
                post_padding: forward.post_padding,
                stride: forward.stride,
                window: forward.window,
                resample_mode: mode,
                padding_mode: forward.padding_mode,
            }
        })
    };
    let (max, average) = (ResampleMode::Maxpool, ResampleMode::AvgpoolExcludePadding);
    pool(&THREE, Some((DataType::I32, &THREE)), max).unwrap();
    pool(&THREE, None, average).unwrap();
    let fails = |dy: &[i64], index, mode| message(pool(dy, index, mode), "resample backward");
    assert_eq!(
        fails(&THREE, None, max),
        "MAXPOOL needs the index of the forward operation"
    );
    let unread = fails(&THREE, Some((DataType::I32, &THREE)), average);
    assert_eq!(unread, "tensor 'index' (uid 3) is read, but only MAXPOOL has an index");
    let index = fails(&THREE, Some((DataType::I32, &[1, 2, 3, 2])), max);
    assert_eq!(
        index,
        "tensor 'index' (uid 3) has dims [1, 2, 3, 2], but dy has [1, 2, 3, 3]"
    );
    let wide = fails(&THREE, Some((DataType::I64, &THREE)), max);
    assert_eq!(
        wide,
        "tensor 'index' (uid 3) is an index of type i64, but must be i8 or i32"
    );
    let dy = fails(&[1, 2, 3, 4], None, average);
    assert_eq!(
        dy,
        "tensor 'dy' (uid 1) has dims [1, 2, 3, 4], but pooling dx makes [1, 2, 3, 3]"
    );
}

#[test]
fn grouped_matmuls() {
    let i32 = DataType::I32;
    let grouped = |dims: [&[i64]; 3], index: Option<&[i64]>, ks: Option<&[i64]>, output: &[i64], mode, top_k| {
        let tensors = [
            ("token", F32, dims[0]),
            ("weight", F32, dims[1]),
            ("offset", i32, dims[2]),
            ("index", i32, index.unwrap_or(&[1])),
            ("ks", i32, ks.unwrap_or(&[1])),
            ("output", F32, output),
        ];
        validate(&tensors, |t| MoeGroupedMatmul {
            token: t[0],
            weight: t[1],
            first_token_offset: t[2],
            token_index: index.map(|_| t[3]),
            token_ks: ks.map(|_| t[4]),
            output: t[5],
            mode,
            top_k,
        })
    };
    let dims: [&[i64]; 3] = [&[1, 6, 4], &[3, 4, 5], &[6, 1, 1]];
    let (rows, output): ([i64; 3], [i64; 3]) = ([1, 6, 1], [1, 6, 5]);
    let rows = Some(rows.as_slice());
    grouped(dims, None, None, &output, MoeMode::None, 0).unwrap();
    grouped(dims, Some(&[1, 9, 1]), None, &[1, 9, 5], MoeMode::Gather, 0).unwrap();
    grouped(dims, rows, rows, &output, MoeMode::Scatter, 2).unwrap();
    let fails = |result| message(result, "MoE grouped matmul");
    let got = fails(grouped(dims, rows, None, &output, MoeMode::None, 0));
    assert_eq!(got, "None has no token_index");
    let got = fails(grouped(dims, rows, None, &output, MoeMode::Scatter, 2));
    assert_eq!(got, "Scatter needs token_ks");
    let got = fails(grouped(dims, rows, rows, &output, MoeMode::Scatter, 4));
    assert_eq!(got, "top_k 4 does not go with Scatter over 3 experts");
    let got = fails(grouped(dims, None, None, &output, MoeMode::None, 1));
    assert_eq!(got, "top_k 1 does not go with None over 3 experts");
    let got = fails(grouped(dims, rows, Some(&[1, 5, 1]), &output, MoeMode::Scatter, 2));
    assert_eq!(got, "tensor 'ks' (uid 5) has 5 rows, but there are 6 tokens");
    let got = fails(grouped(dims, Some(&[6]), None, &output, MoeMode::Gather, 0));
    assert_eq!(got, "tensor 'index' (uid 4) has dims [6], but must have 1, rows, 1");
    let got = fails(grouped(
        [dims[0], dims[1], &[4, 1, 1]],
        None,
        None,
        &output,
        MoeMode::None,
        0,
    ));
    assert_eq!(
        got,
        "tensor 'offset' (uid 3) has dims [4, 1, 1], which is no multiple of 3 experts"
    );
    let got = fails(grouped(
        [&[1, 6, 3], dims[1], dims[2]],
        None,
        None,
        &output,
        MoeMode::None,
        0,
    ));
    assert_eq!(
        got,
        "tensor 'token' (uid 1) has 3 columns, but tensor 'weight' (uid 2) has 4 rows"
    );
    let got = fails(grouped(dims, None, None, &[1, 5, 5], MoeMode::None, 0));
    assert_eq!(
        got,
        "tensor 'output' (uid 6) has dims [1, 5, 5], but the operation makes [1, 6, 5]"
    );

    let backward = |doutput: &[i64], offset_type, dweight: &[i64]| {
        let tensors: [(&str, DataType, &[i64]); 4] = [
            ("doutput", F32, doutput),
            ("token", F32, &[1, 6, 4]),
            ("offset", offset_type, &[3, 1, 1]),
            ("dweight", F32, dweight),
        ];
        validate(&tensors, |t| MoeGroupedMatmulBwd {
            doutput: t[0],
            token: t[1],
            first_token_offset: t[2],
            dweight: t[3],
        })
    };
    backward(&[1, 6, 5], i32, &[3, 4, 5]).unwrap();
    let fails = |result| message(result, "MoE grouped matmul backward");
    let got = fails(backward(&[1, 5, 5], i32, &[3, 4, 5]));
    assert_eq!(
        got,
        "tensor 'doutput' (uid 1) has 5 rows, but tensor 'token' (uid 2) has 6"
    );
    let got = fails(backward(&[1, 6, 5], F32, &[3, 4, 5]));
    assert_eq!(got, "tensor 'offset' (uid 3) has type f32, but must be i32");
    let got = fails(backward(&[1, 6, 5], i32, &[2, 4, 5]));
    assert_eq!(
        got,
        "tensor 'dweight' (uid 4) has dims [2, 4, 5], but the operation makes [3, 4, 5]"
    );
}

#[test]
fn block_scales() {
    let dequantize = |x: &[i64], scale: &[i64], block_size: &[i32]| {
        validate(&[("x", F32, x), ("scale", F32, scale), ("y", F32, x)], |t| {
            BlockScaleDequantize {
                x: t[0],
                scale: t[1],
                y: t[2],
                block_size: block_size.to_vec(),
                is_negative_scale: false,
            }
        })
    };
    dequantize(&[2, 5, 33], &[2, 3, 2], &[2, 32]).unwrap();
    dequantize(&[2, 64], &[2, 2], &[32]).unwrap();
    let fails = |result| message(result, "block-scale dequantize");
    let got = fails(dequantize(&[2, 64], &[2, 3], &[32]));
    assert_eq!(
        got,
        "tensor 'scale' (uid 2) has dims [2, 3], but blocks of tensor 'x' (uid 1) make [2, 2]"
    );
    let got = fails(dequantize(&[64], &[2], &[2, 32]));
    assert_eq!(got, "block_size has 2 entries, but tensor 'x' (uid 1) has 1 dimensions");
    let quantize = |x: &[i64], scale: &[i64], block_size, axis| {
        validate(&[("x", F32, x), ("y", F32, x), ("scale", F32, scale)], |t| {
            BlockScaleQuantize {
                x: t[0],
                y: t[1],
                scale: t[2],
                block_size,
                axis,
                transpose: false,
            }
        })
    };
    quantize(&[2, 33], &[2, 2], 32, None).unwrap();
    quantize(&[33, 4], &[2, 4], 32, Some(0)).unwrap();
    let fails_too = |result| message(result, "block-scale quantize");
    let got = fails_too(quantize(&[2, 33], &[2, 3], 32, None));
    assert_eq!(
        got,
        "tensor 'scale' (uid 3) has dims [2, 3], but the operation makes [2, 2]"
    );
    let got = fails_too(quantize(&[2, 33], &[2, 2], 32, Some(2)));
    assert_eq!(got, "axis 2 is outside 0 to 1");
    let got = fails_too(quantize(&[2, 33], &[2, 2], 0, None));
    assert_eq!(got, "block_size 0 is below 1");
    assert_eq!(fails(dequantize(&[64], &[64], &[0])), "block_size 0 is below 1");
    assert_eq!(
        fails(dequantize(&[64], &[64], &[])),
        "block_size has 0 entries, but tensor 'x' (uid 1) has 1 dimensions"
    );
}
