//! Attentions with NaN rows that only some queries see: those queries' results must be NaN, the
//! others' must not. Rows that no query sees are NaN in every case.

use super::attention::Attention;
use super::case::Data;
use anyhow::Result;
use rotini_graph::{DataType, DiagonalAlignment};

/// Returns all of them, forward and backward.
///
/// # Errors
///
/// Those of filling the buffers.
pub(super) fn partly() -> Result<Vec<Data>> {
    let mut data = Vec::new();
    for (name, attention, row) in kinds() {
        for operand in ["k", "v"] {
            let name = format!("sdpa_hidden_{name}_{operand}");
            data.push(Data::with(name, attention.forward(true), &[], true)?.poisoned(operand, row)?);
        }
        if attention.mask.is_some() {
            continue;
        }
        let query = row.min(attention.lengths[0] - 1) / 2;
        for (operand, row) in [("k", row), ("v", row), ("q", query), ("do", query)] {
            let name = format!("sdpa_backward_hidden_{name}_{operand}");
            data.push(Data::with(name, attention.backward(), &[], true)?.poisoned(operand, row)?);
        }
    }
    Ok(data)
}

/// Returns names, attentions, and a key that only some of the queries see.
fn kinds() -> Vec<(String, Attention, i64)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention, row: i64| kinds.push((name.to_owned(), attention, row));
    let causal = |lengths, columns, dtype| Attention::new(2, 2, lengths, columns, dtype).with(|op| op.right = Some(0));
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        // Scores in memory.
        add(&format!("odd_{dtype}"), causal([9, 13], 36, dtype), 4);
        // IREE's attention operation.
        add(&format!("tiled_{dtype}"), causal([32, 48], 32, dtype), 20);
        // Kernels for many queries, and gradients; on CPUs one query per lane.
        add(&format!("prefill_{dtype}"), causal([70, 100], 64, dtype), 33);
        add(&format!("wide_{dtype}"), causal([40, 70], 128, dtype), 17);
    }
    let double = causal([9, 13], 8, DataType::F64).with(|op| op.compute = DataType::F64);
    add("f64", double, 4);
    for dtype in [DataType::F32, DataType::F16] {
        for (name, lengths, columns) in [
            ("odd", [9, 13], 36),
            ("tiled", [32, 48], 32),
            ("prefill", [70, 100], 64),
        ] {
            let window = causal(lengths, columns, dtype).with(|op| op.left = Some(3));
            add(&format!("window_{name}_{dtype}"), window.clone(), 6);
            let bottom = window.with(|op| (op.alignment, op.left) = (BottomRight, None));
            add(&format!("bottom_right_{name}_{dtype}"), bottom, lengths[1] - 4);
            let shared = window.with(|op| (op.heads, op.interleaved) = ([4, 2, 2], true));
            add(&format!("gqa_{name}_{dtype}"), shared, 5);
            let padded = window.with(|op| (op.padding, op.left) = (true, None));
            add(&format!("padded_{name}_{dtype}"), padded, 0);
            let masked = window.with(|op| op.mask = Some(vec![lengths[0], lengths[1]]));
            add(&format!("mask_{name}_{dtype}"), masked, 6);
        }
    }
    let keys = causal([33, 129], 16, DataType::F32).with(|op| op.mask = Some(vec![2, 1, 1, 129]));
    add("mask_of_keys", keys, 9);
    let decode = causal([4, 300], 128, DataType::F16).with(|op| (op.heads, op.alignment) = ([4, 2, 2], BottomRight));
    add("decode", decode.clone(), 298);
    add("decode_window", decode.with(|op| op.left = Some(70)), 228);
    add(
        "decode_padding",
        causal([4, 300], 128, DataType::F16).with(|op| op.padding = true),
        0,
    );
    kinds
}
