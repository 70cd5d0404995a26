//! Block scales and elements of few bits, with results computed by hand.

use crate::{bytes, elements, validated};
use rotini_graph::{BlockScaleDequantize, BlockScaleQuantize, DataType, GraphBuilder, PointwiseMode};
use rotini_reference::{Buffers, execute};

const F32: DataType = DataType::F32;
const E4M3: DataType = DataType::F8E4M3;
const E8M0: DataType = DataType::F8E8M0;
const E2M1: DataType = DataType::F4E2M1;

/// Returns the bytes of y and of scale for x in blocks along an axis.
fn quantized(x: &[f64], dims: &[i64], block_size: i32, axis: Option<i64>, [y, scale]: [DataType; 2]) -> [Vec<u8>; 2] {
    let mut b = GraphBuilder::new("");
    let along = usize::try_from(axis.unwrap_or(dims.len() as i64 - 1)).unwrap();
    let mut scale_dims = dims.to_vec();
    scale_dims[along] = (dims[along] - 1) / i64::from(block_size) + 1;
    let op = BlockScaleQuantize {
        x: b.buffer("x", F32, dims),
        y: b.buffer("y", y, dims),
        scale: b.buffer("scale", scale, &scale_dims),
        block_size,
        axis,
        transpose: false,
    };
    b.node("quantize", F32, op);
    let graph = validated(b);
    let mut buffers: Buffers = [(1, bytes(F32, x))].into();
    for tensor in &graph.tensors[1..] {
        let size = rotini_reference::span_bytes(tensor).unwrap();
        buffers.insert(tensor.uid, vec![0xFF; size]);
    }
    execute(&graph, &mut buffers).unwrap();
    [2, 3].map(|uid| buffers[&uid].clone())
}

#[test]
fn blocks_are_divided_by_their_scale() {
    // Largest magnitudes of the blocks: 448, 0, 896 (NaN is ignored), and 1 in an incomplete block.
    let x = [
        1.0,
        -3.0,
        448.0,
        2.0,
        0.0,
        -0.0,
        0.0,
        0.0,
        f64::NAN,
        896.0,
        -448.0,
        1.0,
        -1.0,
        0.5,
    ];
    let [y, scale] = quantized(&x, &[14], 4, None, [E4M3, F32]);
    assert_eq!(y[..4], [0x38, 0xC4, 0x7E, 0x40], "divided by 1");
    assert_eq!(y[4..8], [0; 4], "divided by nothing");
    assert_eq!(y[8..12], [0x7F, 0x7E, 0xF6, 0x30], "divided by 2");
    assert_eq!(y[12..], [0xFE, 0x76], "by a 448th");
    assert_eq!(elements(F32, &scale), [1.0, 0.0, 2.0, f64::from(1.0_f32 / 448.0)]);
}

#[test]
fn scales_are_rounded_up() {
    // 449 / 448 needs the scale 2; a block of zeros needs the least scale, 2^-127.
    let [y, scale] = quantized(&[449.0, 1.0, 0.0, 0.0, 7.0, -3.5], &[6], 2, None, [E4M3, E8M0]);
    // 7 / 448 is 2^-6.
    assert_eq!(scale, [128, 0, 121]);
    assert_eq!(y, [0x76, 0x30, 0, 0, 0x7E, 0xF6]);
    // 1 / 448 is 1170.3 units of f16, which at 2^-9 are 2^-19.
    let [_, scale] = quantized(&[1.0], &[1], 1, None, [E4M3, DataType::F16]);
    assert_eq!(elements(DataType::F16, &scale), [1171.0 * 2.0_f64.powi(-19)]);
    // And 146.3 units of bf16, which are 2^-16.
    let [_, scale] = quantized(&[1.0], &[1], 1, None, [E4M3, DataType::Bf16]);
    assert_eq!(elements(DataType::Bf16, &scale), [147.0 * 2.0_f64.powi(-16)]);
    // A scale that the type represents is not rounded up.
    let [_, scale] = quantized(&[448.0], &[1], 1, None, [E4M3, DataType::Bf16]);
    assert_eq!(elements(DataType::Bf16, &scale), [1.0]);
}

#[test]
fn blocks_lie_along_any_axis_and_nibbles_side_by_side() {
    // Columns (6, 3, -0.2) with (5), and (1.5, 0.75, 12) with (-2).
    let x = [6.0, 1.5, 3.0, 0.75, -0.2, 12.0, 5.0, -2.0];
    let [y, scale] = quantized(&x, &[4, 2], 3, Some(0), [E2M1, E8M0]);
    // Magnitudes 6 and 12 in the first blocks, 5 and 2 in the second: 2^0, 2^1; 2^0, 2^-1.
    assert_eq!(scale, [127, 128, 127, 126]);
    // 6, 0.75 | 3, 0.375 | -0.2, 6 | 5, -4 become 6, 1 (a tie) | 3, 0.5 | -0, 6 | 4 (a tie), -4.
    assert_eq!(y, [0x27, 0x15, 0x78, 0xE6]);
}

#[test]
fn integers_are_cut_off() {
    // 254 / 127 = 2: the quotients are 127, -1.5 and 0.5.
    let [y, scale] = quantized(&[254.0, -3.0, 1.0], &[3], 8, None, [DataType::I8, F32]);
    assert_eq!(y, [127, 0xFF, 0]);
    assert_eq!(elements(F32, &scale), [2.0]);
}

#[test]
fn nibbles_are_scaled_back() {
    let mut b = GraphBuilder::new("");
    let op = BlockScaleDequantize {
        x: b.buffer("x", E2M1, &[2, 3]),
        scale: b.buffer("scale", E8M0, &[2, 2]),
        y: b.buffer("y", F32, &[2, 3]),
        block_size: vec![2],
        is_negative_scale: false,
    };
    b.node("dequantize", F32, op);
    let graph = validated(b);
    // Row 6, 0.5, -1 with scales 2 and 1/2; row 3, -0.5, 4 with scales 1 and 4.
    let mut buffers: Buffers = [
        (1, vec![0x17, 0x5A, 0x69]),
        (2, vec![128, 126, 127, 129]),
        (3, vec![0; 24]),
    ]
    .into();
    execute(&graph, &mut buffers).unwrap();
    assert_eq!(elements(F32, &buffers[&3]), [12.0, 1.0, -0.5, 3.0, -0.5, 16.0]);
}

/// A virtual tensor of few bits rounds its elements, as one in a buffer does.
#[test]
fn intermediates_of_few_bits_are_rounded() {
    let mut b = GraphBuilder::new("");
    let x = b.buffer("x", F32, &[4]);
    let between = b.virtual_tensor("between", E4M3, &[4]);
    let y = b.buffer("y", F32, &[4]);
    b.pointwise(F32, PointwiseMode::Identity, &[x], between);
    b.pointwise(F32, PointwiseMode::Neg, &[between], y);
    let graph = validated(b);
    let mut buffers: Buffers = [(1, bytes(F32, &[1.06, 1.07, 1000.0, -0.001])), (3, vec![0; 16])].into();
    execute(&graph, &mut buffers).unwrap();
    // The least positive number is 2^-9, and 0.001 is slightly more than half of it.
    assert_eq!(elements(F32, &buffers[&3]), [-1.0, -1.125, -448.0, 2.0_f64.powi(-9)]);
}
