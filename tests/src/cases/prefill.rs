//! Attentions of many queries, for which rotini has MI300 kernels, and their gradients: partial
//! tiles, one and two blocks of queries per subgroup, and bounds that skip whole steps, mask some
//! keys of a step, or mask all keys of a query.

use super::attention::{self, Attention};
use super::case::{Cases, Data};
use anyhow::Result;
use rotini_graph::{DataType, DiagonalAlignment};

/// Adds all cases.
pub(super) fn forward(cases: &mut Cases) {
    attention::add(cases, kinds());
}

/// Adds the gradients of those without a mask whose scores take the reference no gigabytes.
pub(super) fn backward(cases: &mut Cases) {
    const MOST_SCORES: i64 = 1 << 19;
    for (name, attention) in kinds() {
        let [heads, ..] = attention.heads;
        let [queries, keys] = attention.lengths;
        let is_small = attention.batch * heads * queries * keys <= MOST_SCORES;
        if attention.mask.is_none() && attention.flags.is_none() && is_small {
            let name = name.replace("prefill_", "");
            cases.add(format!("sdpa_backward_{name}"), attention.backward());
        }
    }
}

/// Returns attentions with their names.
fn kinds() -> Vec<(String, Attention)> {
    use DiagonalAlignment::BottomRight;
    let mut kinds = Vec::new();
    let mut add = |name: &str, attention: Attention| kinds.push((format!("scheduled_prefill_{name}"), attention));
    for dtype in [DataType::F16, DataType::Bf16] {
        let plain = Attention::new(1, 2, [128, 128], 128, dtype);
        add(&format!("whole_{dtype}"), plain.clone());
        let causal = plain.with(|op| (op.right, op.columns) = (Some(0), [64; 2]));
        add(&format!("causal_{dtype}"), causal);
        // Two blocks of queries per subgroup.
        let tall = Attention::new(8, 38, [20, 70], 64, dtype);
        add(&format!("tall_{dtype}"), tall.clone());
        add(&format!("tall_causal_{dtype}"), tall.with(|op| op.right = Some(0)));
    }
    // The same with several tiles, the last one partial.
    let tall = Attention::new(8, 19, [130, 70], 64, DataType::F16);
    add(
        "tall_rest",
        tall.with(|op| (op.columns, op.lengths) = ([256, 128], [130, 20])),
    );
    let causal = tall.with(|op| op.right = Some(0));
    add(
        "tall_rest_causal_bottom_right",
        causal.with(|op| op.alignment = BottomRight),
    );
    add(
        "tall_rest_window",
        causal.with(|op| (op.left, op.lengths) = (Some(20), [130, 150])),
    );
    for (name, lengths) in [("queries", [130, 20]), ("keys", [20, 130])] {
        let tall = tall.with(|op| op.lengths = lengths);
        add(&format!("tall_many_{name}"), tall.clone());
        add(&format!("tall_many_{name}_causal"), tall.with(|op| op.right = Some(0)));
    }
    // Few workgroups, for which scores in memory would be faster if the bounds did not shorten the
    // kernel.
    let few = Attention::new(1, 1, [1024, 1024], 64, DataType::F16);
    add("few_window", few.with(|op| (op.left, op.right) = (Some(63), Some(0))));
    let plain = Attention::new(2, 2, [150, 200], 64, DataType::F16);
    add("rest", plain.clone());
    add("one_key", plain.with(|op| op.lengths = [33, 1]));
    add("few_keys", plain.with(|op| op.lengths = [70, 17]));
    add("seventeen_queries", plain.with(|op| op.lengths = [17, 300]));
    add("bshd", plain.with(|op| op.interleaved = true));
    add("gqa", plain.with(|op| op.heads = [4, 2, 2]));
    add(
        "mqa_bshd",
        plain.with(|op| (op.heads, op.interleaved) = ([3, 1, 1], true)),
    );
    // Gradients of keys sum over several heads with few steps each: with more steps, the form with
    // scores in memory would be faster.
    let gqa = plain.with(|op| (op.heads, op.lengths) = ([6, 2, 2], [100, 60]));
    add("gqa_of_three", gqa.clone());
    add(
        "gqa_of_three_causal_bshd",
        gqa.with(|op| (op.right, op.interleaved) = (Some(0), true)),
    );
    let mqa = plain.with(|op| (op.heads, op.lengths, op.columns) = ([5, 1, 1], [40, 100], [128; 2]));
    add("mqa_of_five", mqa.clone());
    add("mqa_of_five_padding", mqa.with(|op| (op.padding, op.batch) = (true, 3)));
    add("wider_values", plain.with(|op| op.columns = [64, 128]));
    add("narrower_values", plain.with(|op| op.columns = [128, 64]));
    add("wide_keys", plain.with(|op| op.columns = [256, 128]));
    add("narrow_keys", plain.with(|op| op.columns = [32, 64]));
    add("no_scale", plain.with(|op| op.scale = Some(0.0)));
    add("negative_scale", plain.with(|op| op.scale = Some(-0.5)));
    for dtype in [DataType::F8E4M3, DataType::Bf16, DataType::F32] {
        add(&format!("read_as_{dtype}"), plain.with(|op| op.read_as = Some(dtype)));
    }
    let causal = plain.with(|op| op.right = Some(0));
    add("causal_rest", causal.clone());
    add(
        "causal_gqa_bshd",
        causal.with(|op| (op.heads, op.interleaved) = ([4, 2, 2], true)),
    );
    add("causal_bottom_right", causal.with(|op| op.alignment = BottomRight));
    let short = causal.with(|op| op.lengths = [200, 70]);
    add("causal_more_queries", short.clone());
    add(
        "causal_queries_without_keys",
        short.with(|op| op.alignment = BottomRight),
    );
    let window = causal.with(|op| op.left = Some(40));
    add("window", window.clone());
    add("window_bottom_right", window.with(|op| op.alignment = BottomRight));
    add("window_past_the_keys", window.with(|op| op.lengths = [300, 70]));
    add("window_of_few_keys", window.with(|op| op.left = Some(2)));
    add("left", window.with(|op| op.right = None));
    add("right", causal.with(|op| op.right = Some(90)));
    for (name, dims) in [
        ("mask", vec![2, 2, 150, 200]),
        ("mask_shared", vec![150, 200]),
        ("mask_without_batch", vec![2, 150, 200]),
        ("mask_heads", vec![2, 1, 1]),
        ("mask_keys", vec![2, 1, 1, 200]),
        ("mask_queries", vec![1, 1, 150, 1]),
    ] {
        add(name, plain.with(|op| op.mask = Some(dims)));
    }
    // Rows of a mask that are not aligned to a word.
    let odd = plain.with(|op| (op.lengths, op.mask) = ([150, 77], Some(vec![2, 1, 150, 77])));
    add("mask_odd", odd.clone());
    add("mask_odd_causal", odd.with(|op| op.right = Some(0)));
    add("mask_odd_keys", odd.with(|op| op.mask = Some(vec![77])));
    // Steps that are not aligned to a word.
    let shared = plain.with(|op| op.mask = Some(vec![150, 200]));
    add("mask_left", shared.with(|op| op.left = Some(41)));
    add("mask_padding", shared.with(|op| (op.padding, op.batch) = (true, 3)));
    let empty = shared.with(|op| (op.lengths, op.mask) = ([200, 70], Some(vec![2, 1, 200, 70])));
    add(
        "mask_queries_without_keys",
        empty.with(|op| (op.right, op.alignment) = (Some(0), BottomRight)),
    );
    let whole = Attention::new(2, 4, [128, 128], 128, DataType::F16);
    add("mask_whole", whole.with(|op| op.mask = Some(vec![2, 4, 128, 128])));
    add(
        "mask_whole_mqa",
        whole.with(|op| (op.heads, op.mask) = ([4, 1, 1], Some(vec![128, 128]))),
    );
    add(
        "mask_gqa_bshd",
        plain.with(|op| (op.heads, op.interleaved, op.mask) = ([4, 2, 2], true, Some(vec![1, 4, 150, 200]))),
    );
    let tall = tall.with(|op| (op.mask, op.columns) = (Some(vec![8, 1, 130, 70]), [128; 2]));
    add("tall_mask", tall);
    let bf16 = Attention::new(2, 2, [150, 200], 128, DataType::Bf16);
    add("mask_bf16", bf16.with(|op| op.mask = Some(vec![2, 2, 150, 200])));
    add(
        "mask_odd_bf16",
        bf16.with(|op| (op.lengths, op.mask) = ([150, 77], Some(vec![150, 77]))),
    );
    for (name, hiding) in [
        ("infinity", f64::NEG_INFINITY),
        ("nan", f64::NAN),
        ("least", f64::from(f32::MIN)),
        ("greatest", f64::from(f32::MAX)),
    ] {
        let rows = plain.with(|op| op.flags = Some((vec![1, 2, 150, 1], hiding)));
        add(&format!("rows_of_{name}"), rows);
        let some = plain.with(|op| op.flags = Some((vec![1, 1, 150, 200], hiding)));
        add(&format!("some_of_{name}"), some);
    }
    let padding = plain.with(|op| (op.batch, op.padding) = (3, true));
    add("padding", padding.clone());
    add("padding_causal", padding.with(|op| op.right = Some(0)));
    add(
        "padding_window",
        padding.with(|op| (op.left, op.right) = (Some(30), Some(20))),
    );
    add("one_length_for_all", padding.with(|op| op.repeats_lengths = true));
    kinds
}

/// Returns sequence lengths that end in a step, between steps, or before the first; and infinite
/// scores.
///
/// # Errors
///
/// Those of filling the buffers.
pub(super) fn unusual() -> Result<Vec<Data>> {
    let plain = Attention::new(3, 2, [150, 200], 64, DataType::F16).with(|op| op.padding = true);
    let mut data = Vec::new();
    for (bounds, left, right) in [
        ("", None, None),
        ("_causal", None, Some(0)),
        ("_window", Some(50), Some(20)),
    ] {
        let graph = || plain.with(|op| (op.left, op.right) = (left, right));
        for (name, queries, keys, has_meaning) in [
            ("uneven", [0, 64, 150], [200, 129, 0], true),
            ("whole_steps", [128, 65, 1], [128, 64, 192], true),
            ("outside", [1000, -1, i32::MIN], [i32::MAX, 1000, -7], false),
        ] {
            let elements = [("seq_len_q", queries.to_vec()), ("seq_len_kv", keys.to_vec())];
            let both = [("prefill", graph().forward(true)), ("gradients", graph().backward())];
            for (kind, graph) in both {
                let name = format!("sdpa_{kind}_lengths_{name}{bounds}");
                data.push(Data::with(name, graph, &elements, has_meaning)?);
            }
        }
    }
    // Queries of ∞ and keys of -1: all scores, and with them the statistics, are -∞.
    let infinite = Attention::new(1, 1, [64, 64], 64, DataType::Bf16).backward();
    let elements = |count, element: u32| vec![element.cast_signed(); count];
    let [infinity, minus_one] = [0x7f80_7f80, 0xbf80_bf80];
    let inputs = [
        ("q", elements(64 * 64 / 2, infinity)),
        ("k", elements(64 * 64 / 2, minus_one)),
        ("stats", elements(64, f32::NEG_INFINITY.to_bits())),
    ];
    data.push(Data::with(
        "sdpa_gradients_of_infinite_scores",
        infinite,
        &inputs,
        true,
    )?);
    Ok(data)
}
