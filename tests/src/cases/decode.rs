//! Attentions of few queries, for which MI300 kernels split the keys into parts.

use super::attention::{self, Attention};
use super::case::Cases;
use rotini_graph::{DataType, DiagonalAlignment};

/// Adds all cases.
pub(super) fn forward(cases: &mut Cases) {
    attention::add(cases, kinds());
    attention::add(cases, shared_keys());
}

/// Returns single queries of heads that share keys, which a CPU computes as rows of one head.
fn shared_keys() -> Vec<(String, Attention)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((format!("shared_keys_{name}"), attention));
    for dtype in [DataType::F32, DataType::F16, DataType::Bf16] {
        let plain = Attention::new(2, 10, [1, 150], 40, dtype).with(|op| op.heads = [10, 2, 2]);
        add(&format!("{dtype}"), plain);
    }
    let plain = Attention::new(2, 40, [1, 150], 64, DataType::F32).with(|op| op.heads = [40, 1, 1]);
    add("of_forty", plain.clone());
    let plain = plain.with(|op| op.heads = [6, 2, 2]);
    add("bshd", plain.with(|op| op.interleaved = true));
    add("padding", plain.with(|op| op.padding = true));
    add("mask", plain.with(|op| op.mask = Some(vec![2, 1, 1, 150])));
    add("mask_of_heads", plain.with(|op| op.mask = Some(vec![2, 6, 1, 150])));
    let window = plain.with(|op| (op.left, op.right, op.alignment) = (Some(20), Some(0), BottomRight));
    add("window", window);
    let bound = plain.with(|op| (op.right, op.padding) = (Some(100), true));
    add("bound_padding", bound);
    add("first_key", plain.with(|op| op.right = Some(0)));
    kinds
}

/// Returns attentions with their names.
fn kinds() -> Vec<(String, Attention)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((format!("scheduled_{name}"), attention));
    for dtype in [DataType::F16, DataType::Bf16] {
        let decode = Attention::new(2, 2, [1, 384], 128, dtype);
        add(&format!("decode_{dtype}"), decode.clone());
        add(&format!("decode_64_{dtype}"), decode.with(|op| op.columns = [64; 2]));
        add(&format!("decode_gqa_{dtype}"), decode.with(|op| op.heads = [8, 2, 2]));
    }
    let decode = Attention::new(2, 4, [1, 256], 128, DataType::F16);
    add("decode_one_batch", decode.with(|op| op.batch = 1));
    add("decode_one_head", decode.with(|op| op.heads = [1; 3]));
    add("decode_alone", decode.with(|op| (op.batch, op.heads) = (1, [1; 3])));
    add("decode_one_part", decode.with(|op| op.lengths = [1, 128]));
    add(
        "decode_alone_one_part",
        decode.with(|op| (op.batch, op.heads, op.lengths) = (1, [1; 3], [1, 128])),
    );
    add("decode_wider_values", decode.with(|op| op.columns = [64, 128]));
    add("decode_narrower_values", decode.with(|op| op.columns = [128, 64]));
    add("decode_bshd", decode.with(|op| op.interleaved = true));
    add(
        "decode_last_query",
        decode.with(|op| (op.right, op.alignment) = (Some(0), BottomRight)),
    );
    add("decode_first_query", decode.with(|op| op.right = Some(0)));
    add("decode_odd", decode.with(|op| op.lengths = [1, 300]));
    let few = decode.with(|op| (op.heads, op.lengths) = ([8, 2, 2], [3, 256]));
    add("decode_three_queries", few.clone());
    add(
        "decode_three_queries_bottom_right",
        few.with(|op| (op.right, op.alignment) = (Some(0), BottomRight)),
    );
    add("decode_sixteen_queries", decode.with(|op| op.lengths = [16, 256]));
    add(
        "decode_many_parts",
        decode.with(|op| (op.batch, op.heads, op.lengths) = (1, [4, 1, 1], [1, 8192])),
    );
    // Parts of several iterations, some of which mask keys.
    let long = decode.with(|op| (op.batch, op.heads, op.columns) = (38, [4, 2, 2], [64; 2]));
    add("decode_longer_parts", long.with(|op| op.lengths = [1, 4100]));
    add("decode_thousand_keys", decode.with(|op| op.lengths = [1, 1000]));
    add(
        "decode_8191_keys",
        decode.with(|op| (op.batch, op.heads, op.lengths) = (1, [2, 1, 1], [1, 8191])),
    );
    add("decode_one_key", decode.with(|op| op.lengths = [1, 1]));
    add(
        "decode_nine_queries_of_seven_keys",
        decode.with(|op| op.lengths = [9, 7]),
    );
    add("decode_wide_keys", decode.with(|op| op.columns = [256, 128]));
    add("decode_96_columns", decode.with(|op| op.columns = [96, 64]));
    add("decode_padding", few.with(|op| op.padding = true));
    let bound = few.with(|op| (op.right, op.padding) = (Some(200), true));
    add("decode_bound_padding", bound.clone());
    add("decode_between_bounds_padding", bound.with(|op| op.left = Some(1)));
    add(
        "decode_one_length_for_all",
        few.with(|op| (op.padding, op.repeats_lengths) = (true, true)),
    );
    add("decode_no_scale", few.with(|op| op.scale = Some(0.0)));
    for dtype in [DataType::F8E4M3, DataType::Bf16, DataType::F32] {
        let read = few.with(|op| op.read_as = Some(dtype));
        add(&format!("decode_read_as_{dtype}"), read);
    }
    let causal = few.with(|op| (op.right, op.alignment, op.lengths) = (Some(0), BottomRight, [4, 300]));
    add("decode_window", causal.with(|op| op.left = Some(70)));
    add(
        "decode_window_of_few_keys",
        causal.with(|op| (op.left, op.lengths) = (Some(3), [4, 40])),
    );
    add(
        "decode_left_of_the_diagonal",
        causal.with(|op| (op.left, op.right) = (Some(5), None)),
    );
    add("decode_no_keys_for_some", causal.with(|op| op.lengths = [4, 3]));
    add(
        "decode_right_bound_bshd",
        few.with(|op| (op.right, op.interleaved) = (Some(17), true)),
    );
    kinds
}
