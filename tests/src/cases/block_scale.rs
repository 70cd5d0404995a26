//! Block scales: types, block sizes, incomplete blocks, and fused producers and consumers.

use super::case::{Cases, Data};
use anyhow::Result;
use rotini_graph::{
    BatchnormBackward, BlockScaleDequantize, BlockScaleQuantize, DataType, Graph, GraphBuilder, Matmul, PointwiseMode,
    TensorId, TensorKind,
};
use rotini_reference::Profile;

const F32: DataType = DataType::F32;
const F16: DataType = DataType::F16;
const BF16: DataType = DataType::Bf16;
const E4M3: DataType = DataType::F8E4M3;
const E5M2: DataType = DataType::F8E5M2;
const E8M0: DataType = DataType::F8E8M0;
const E2M1: DataType = DataType::F4E2M1;
const E2M3: DataType = DataType::F6E2M3;
const E3M2: DataType = DataType::F6E3M2;
const I4: DataType = DataType::I4;
const I8: DataType = DataType::I8;

/// Returns the dims of the scales for blocks over the trailing axes.
fn scale_dims(dims: &[i64], block_size: &[i32]) -> Vec<i64> {
    let leading = dims.len() - block_size.len();
    let sizes = std::iter::repeat_n(1, leading).chain(block_size.iter().copied().map(i64::from));
    dims.iter()
        .zip(sizes)
        .map(|(dim, size)| (dim + size - 1) / size)
        .collect()
}

/// Adds a tensor that is column-major in its last two axes.
fn columns(b: &mut GraphBuilder, name: &str, dtype: DataType, dims: &[i64]) -> TensorId {
    let rank = dims.len();
    let mut strides: Vec<i64> = (0..rank).map(|axis| dims[axis + 1..].iter().product()).collect();
    strides[rank - 2] = 1;
    strides[rank - 1] = dims[rank - 2];
    b.tensor(name, dtype, dims, &strides, TensorKind::Buffer)
}

/// Builds a dequantization; `types` are those of x, scale, y and the computation.
fn dequantize_graph(types: [DataType; 4], dims: &[i64], block_size: &[i32], is_negative_scale: bool) -> Graph {
    let mut b = GraphBuilder::new("dequantize");
    let x = b.buffer("x", types[0], dims);
    let scale = b.buffer("scale", types[1], &scale_dims(dims, block_size));
    let y = b.buffer("y", types[2], dims);
    let op = BlockScaleDequantize {
        x,
        scale,
        y,
        block_size: block_size.to_vec(),
        is_negative_scale,
    };
    b.node("dequantize", types[3], op);
    b.build()
}

pub(super) fn dequantize(cases: &mut Cases) {
    for x in [E4M3, E5M2, E2M1, E2M3, E3M2, I4, I8, F16, F32] {
        let scales = [E8M0, F32, F16, BF16, E4M3];
        for &scale in if [E4M3, E2M1].contains(&x) {
            &scales[..]
        } else {
            &scales[..2]
        } {
            let name = format!("bs_dequantize_{x}_{scale}");
            cases.add(name, dequantize_graph([x, scale, F32, F32], &[6, 64], &[32], false));
        }
        for y in [F16, BF16] {
            let name = format!("bs_dequantize_{x}_to_{y}");
            cases.add(name, dequantize_graph([x, E8M0, y, F32], &[4, 3, 32], &[16], false));
        }
    }
    for scale in [I8, I4, DataType::I32, F32, F16, E8M0] {
        for x in [E4M3, E2M1, F32] {
            let name = format!("bs_dequantize_{x}_negative_{scale}");
            cases.add(name, dequantize_graph([x, scale, F32, F32], &[5, 24], &[8], true));
        }
    }
    let shapes: [(&[i64], &[i32]); 12] = [
        (&[7, 30], &[32]),
        (&[7, 33], &[32]),
        (&[7, 40], &[16]),
        (&[64, 64], &[32, 32]),
        (&[10, 13], &[4, 5]),
        (&[3, 10, 13], &[1, 13]),
        (&[3, 10, 13], &[2, 4, 5]),
        (&[8], &[3]),
        (&[1, 1], &[16]),
        (&[2, 3, 4, 6], &[2, 3]),
        (&[5, 9], &[1]),
        (&[2, 2, 3, 5, 8], &[4]),
    ];
    for (dims, block_size) in shapes {
        let text = |list: Vec<String>| list.join("x");
        let name = format!(
            "bs_dequantize_{}_by_{}",
            text(dims.iter().map(i64::to_string).collect()),
            text(block_size.iter().map(i32::to_string).collect())
        );
        for x in [E4M3, E2M1] {
            cases.add(
                format!("{name}_{x}"),
                dequantize_graph([x, E8M0, F32, F32], dims, block_size, false),
            );
        }
    }
    cases.add(
        "bs_dequantize_in_f64",
        dequantize_graph([E4M3, F32, DataType::F64, DataType::F64], &[4, 32], &[8], false),
    );
    for scale in [F32, I8] {
        let types = [E4M3, scale, DataType::F64, DataType::F64];
        let name = format!("bs_dequantize_in_f64_negative_{scale}");
        cases.add(name, dequantize_graph(types, &[4, 32], &[8], true));
    }
    cases.add(
        "bs_dequantize_in_f16",
        dequantize_graph([E5M2, E8M0, F16, F16], &[4, 32], &[8], false),
    );
    // All tensors in another memory order.
    let mut b = GraphBuilder::new("columns");
    let x = columns(&mut b, "x", E4M3, &[2, 12, 20]);
    let scale = columns(&mut b, "scale", F32, &[2, 12, 4]);
    let y = b.buffer("y", F32, &[2, 12, 20]);
    let op = BlockScaleDequantize {
        x,
        scale,
        y,
        block_size: vec![5],
        is_negative_scale: false,
    };
    b.node("dequantize", F32, op);
    cases.add("bs_dequantize_columns", b.build());
}

/// Adds products whose operands are both scaled in blocks along the summed axis.
pub(super) fn matmuls(cases: &mut Cases) {
    for (name, operands, scale, out) in [
        ("mxfp8", [E4M3, E4M3], E8M0, F32),
        ("mxfp8_e5m2", [E5M2, E4M3], E8M0, BF16),
        ("mxfp6", [E2M3, E3M2], E8M0, F16),
        ("mxfp4", [E2M1, E2M1], E8M0, F32),
        ("fp4_by_16", [E2M1, E2M1], E4M3, BF16),
        ("fp8_f32", [E4M3, E4M3], F32, F16),
    ] {
        for (extents, block) in [([16, 64, 24], 32), ([5, 48, 7], 16)] {
            let [rows, inner, cols] = extents;
            let blocks = (inner + block - 1) / block;
            let mut b = GraphBuilder::new("scaled matmul");
            let x = b.buffer("x", operands[0], &[rows, inner]);
            let x_scale = b.buffer("x_scale", scale, &[rows, blocks]);
            let w = columns(&mut b, "w", operands[1], &[inner, cols]);
            let w_scale = columns(&mut b, "w_scale", scale, &[blocks, cols]);
            let y = b.buffer("y", out, &[rows, cols]);
            let a = b.virtual_tensor("a", F32, &[rows, inner]);
            let scaled = b.virtual_tensor("b", F32, &[inner, cols]);
            let block = i32::try_from(block).unwrap_or(1);
            for (node, x, scale, y, block_size) in [
                ("a", x, x_scale, a, vec![block]),
                ("b", w, w_scale, scaled, vec![block, 1]),
            ] {
                let op = BlockScaleDequantize {
                    x,
                    scale,
                    y,
                    block_size,
                    is_negative_scale: false,
                };
                b.node(node, F32, op);
            }
            b.node("matmul", F32, Matmul { a, b: scaled, c: y });
            cases.add(format!("bs_matmul_{name}_{inner}"), b.build());
        }
    }
    // Quantized weights with a scale per group, and plain activations.
    for (weights, activations) in [(I4, F16), (I4, BF16), (E2M1, F16), (I8, F16)] {
        let mut b = GraphBuilder::new("weights");
        let x = b.buffer("x", activations, &[6, 64]);
        let w = b.buffer("w", weights, &[64, 20]);
        let scale = b.buffer("scale", activations, &[2, 20]);
        let y = b.buffer("y", activations, &[6, 20]);
        let scaled = b.virtual_tensor("scaled", activations, &[64, 20]);
        let op = BlockScaleDequantize {
            x: w,
            scale,
            y: scaled,
            block_size: vec![32, 1],
            is_negative_scale: false,
        };
        b.node("dequantize", F32, op);
        b.node("matmul", F32, Matmul { a: x, b: scaled, c: y });
        cases.add(format!("bs_matmul_weights_{weights}_{activations}"), b.build());
    }
}

/// Builds a quantization; `types` are those of x, y, scale and the computation.
fn quantize_graph(types: [DataType; 4], dims: &[i64], block_size: i32, axis: Option<usize>) -> Graph {
    let mut b = GraphBuilder::new("quantize");
    let x = b.buffer("x", types[0], dims);
    let y = b.buffer("y", types[1], dims);
    let along = axis.unwrap_or(dims.len() - 1);
    let mut scale_dims = dims.to_vec();
    scale_dims[along] = (dims[along] - 1) / i64::from(block_size) + 1;
    let scale = b.buffer("scale", types[2], &scale_dims);
    let op = BlockScaleQuantize {
        x,
        y,
        scale,
        block_size,
        axis: axis.and_then(|axis| i64::try_from(axis).ok()),
        transpose: false,
    };
    b.node("quantize", types[3], op);
    b.build()
}

pub(super) fn quantize(cases: &mut Cases) {
    let outputs = [E4M3, E5M2, E2M1, E2M3, E3M2, I8, DataType::U8, DataType::I32, F16];
    for y in outputs {
        for scale in [E8M0, F32, F16, BF16] {
            let name = format!("bs_quantize_{y}_{scale}");
            cases.add(name, quantize_graph([F32, y, scale, F32], &[9, 64], 32, None));
        }
        for x in [F16, BF16, E5M2, DataType::I32] {
            if ![E4M3, E2M1, I8].contains(&y) {
                continue;
            }
            let name = format!("bs_quantize_{x}_to_{y}");
            cases.add(name, quantize_graph([x, y, E8M0, F32], &[9, 32], 16, None));
        }
    }
    let shapes: [(&[i64], i32, Option<usize>); 12] = [
        (&[7, 30], 32, None),
        (&[7, 33], 32, None),
        (&[7, 40], 16, Some(1)),
        (&[40, 7], 16, Some(0)),
        (&[3, 10, 13], 4, Some(1)),
        (&[3, 10, 13], 3, Some(0)),
        (&[8], 3, None),
        (&[1, 1], 16, None),
        (&[2, 3, 4, 6], 2, Some(2)),
        (&[5, 9], 1, None),
        (&[5, 9], 9, None),
        (&[2, 2, 3, 5, 8], 4, Some(3)),
    ];
    for (dims, block_size, axis) in shapes {
        let text: Vec<String> = dims.iter().map(i64::to_string).collect();
        let along = axis.map_or(String::new(), |axis| format!("_along_{axis}"));
        for (y, scale) in [(E4M3, E8M0), (E2M1, F32)] {
            cases.add(
                format!("bs_quantize_{}_by_{block_size}{along}_{y}", text.join("x")),
                quantize_graph([F32, y, scale, F32], dims, block_size, axis),
            );
        }
    }
    cases.add(
        "bs_quantize_in_f64",
        quantize_graph([DataType::F64, E4M3, F32, DataType::F64], &[9, 64], 16, None),
    );
    cases.add(
        "bs_quantize_in_bf16",
        quantize_graph([BF16, E4M3, E8M0, BF16], &[9, 64], 16, None),
    );
    // All tensors in another memory order.
    let mut b = GraphBuilder::new("columns");
    let x = columns(&mut b, "x", F32, &[2, 12, 20]);
    let y = columns(&mut b, "y", E4M3, &[2, 12, 20]);
    let scale = columns(&mut b, "scale", E8M0, &[2, 12, 4]);
    let op = BlockScaleQuantize {
        x,
        y,
        scale,
        block_size: 5,
        axis: None,
        transpose: false,
    };
    b.node("quantize", F32, op);
    cases.add("bs_quantize_columns", b.build());
}

/// Returns blocks with some or only NaN, infinities and denormals: a scale of 2^-127, which is
/// subnormal in f32, must not hide them.
///
/// # Errors
///
/// Those of filling buffers.
pub(super) fn edges() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for (dims, block_size) in [([16, 24], 1), ([40, 33], 4), ([9, 64], 32)] {
        for scale in [E8M0, F32, F16, BF16] {
            for (y, x) in [(E4M3, F32), (E2M1, F32), (I8, F16)] {
                let graph = quantize_graph([x, y, scale, F32], &dims, block_size, None);
                let name = format!("bs_edges_{x}_to_{y}_{scale}_by_{block_size}");
                data.push(Data::filled(name, graph, "x", Profile::FewEdges)?);
            }
        }
    }
    Ok(data)
}

/// Adds chains: a computed tensor is quantized, and a quantized one is read.
pub(super) fn chains(cases: &mut Cases) {
    // The last block is incomplete, and the scales have gaps.
    let (dims, channels) = ([6, 3], [1, 3]);
    let mut b = GraphBuilder::new("blocks of scales with gaps");
    let x = b.buffer("x", E4M3, &dims);
    let scale = b.tensor("scale", E8M0, &[2, 3], &[6, 1], TensorKind::Buffer);
    let y = b.virtual_tensor("y", F16, &dims);
    let dequantize = BlockScaleDequantize {
        x,
        scale,
        y,
        block_size: vec![4, 1],
        is_negative_scale: false,
    };
    b.node("dequantize", F32, dequantize);
    let [mean, inv_variance, dscale, dbias] =
        ["mean", "inv_variance", "dscale", "dbias"].map(|name| b.buffer(name, F16, &channels));
    let dx = b.buffer("dx", F16, &dims);
    let norm = BatchnormBackward {
        mean: Some(mean),
        inv_variance: Some(inv_variance),
        ..BatchnormBackward::new([y, y, mean], [dx, dscale, dbias])
    };
    b.node("norm", F32, norm);
    cases.add("blocks_of_scales_with_gaps", b.build());
    for (y, scale) in [(E4M3, E8M0), (E2M1, E8M0), (E5M2, F32), (I8, F16)] {
        let dims = [6, 48];
        let mut b = GraphBuilder::new("there and back");
        let x = b.buffer("x", F32, &dims);
        let active = b.virtual_tensor("active", F32, &dims);
        let quantized = b.virtual_tensor("quantized", y, &dims);
        let scale = b.buffer("scale", scale, &[6, 3]);
        let back = b.buffer("back", F32, &dims);
        b.pointwise(F32, PointwiseMode::ReluFwd, &[x], active);
        b.node(
            "quantize",
            F32,
            BlockScaleQuantize {
                x: active,
                y: quantized,
                scale,
                block_size: 16,
                axis: None,
                transpose: false,
            },
        );
        b.node(
            "dequantize",
            F32,
            BlockScaleDequantize {
                x: quantized,
                scale,
                y: back,
                block_size: vec![16],
                is_negative_scale: false,
            },
        );
        cases.add(format!("bs_there_and_back_{y}"), b.build());
    }
    // A product whose result is quantized for the next one.
    for (y, scale) in [(E4M3, E8M0), (E2M1, E8M0), (E4M3, F32)] {
        let mut b = GraphBuilder::new("quantised product");
        let x = b.buffer("x", F16, &[8, 32]);
        let w = b.buffer("w", F16, &[32, 64]);
        let c = b.virtual_tensor("c", F32, &[8, 64]);
        let quantized = b.buffer("y", y, &[8, 64]);
        let scale_id = b.buffer("scale", scale, &[8, 2]);
        b.node("matmul", F32, Matmul { a: x, b: w, c });
        b.node(
            "quantize",
            F32,
            BlockScaleQuantize {
                x: c,
                y: quantized,
                scale: scale_id,
                block_size: 32,
                axis: None,
                transpose: false,
            },
        );
        cases.add(format!("bs_matmul_quantized_{y}_{scale}"), b.build());
    }
}
