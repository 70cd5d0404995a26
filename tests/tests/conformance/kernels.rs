//! Snapshots of whole kernels, one or two of each kind: they show how a change of the builder or of
//! a kernel affects the compiled text. And the forms among which the lowering chooses.

use rayon::prelude::*;
use rotini_emit::{Candidate, Choices, Target, emit, places};
use rotini_plugin::prepared::check;
use rotini_tests::cases;

/// A target, a case that has the kernel, and the start of the kernel's name.
const CHOSEN: [[&str; 3]; 41] = [
    ["mi300x", "conv_many_one_tap_nhwc_bf16", "conv_256x64_"],
    ["mi300x", "conv_padded_one_pixel_g1_nhwc_f16", "conv_2x6_"],
    ["mi300x", "conv_padded_point_of_a_row_g6_nchw_f32", "conv_24x1_"],
    ["mi300x", "conv_many_one_tap_nchw_bf16", "conv_images_"],
    [
        "mi300x",
        "sdpa_scheduled_decode_first_query",
        "decode_8x1x1x32x128x128_",
    ],
    [
        "mi300x",
        "sdpa_stats_scheduled_decode_96_columns",
        "decode_8x1x8x32x96x64_",
    ],
    ["mi300x", "dgrad_many_one_tap_nhwc_bf16", "dgrad_256x128_"],
    ["mi300x", "depthwise_dgrad_2x40x12_1s1d1_nchw_f32", "dgrad_288x1_"],
    ["mi300x", "sdpa_backward_long_bf16", "gradients_of_keys_"],
    ["mi300x", "sdpa_backward_long_bf16", "gradients_of_queries_"],
    ["mi300x", "moe_matrix_bf16", "matmul_32x64x64_"],
    ["mi300x", "lp_matmul_e4m3_to_e4m3_16x32x16", "matmul_16x16x32_"],
    ["mi300x", "matmul_vector_row_bf16", "matmul_1x1000x768_"],
    ["mi300x", "sdpa_scheduled_prefill_narrow_keys", "prefill_"],
    ["mi300x", "sdpa_backward_lanes_long_bf16", "rows_2400x64_"],
    ["mi300x", "reduce_norm1_last_bf16", "rows_24x5_"],
    ["mi300x", "strided_out_inner_gap", "scatter_"],
    ["mi300x", "dgrad_kernel_few_channels_nchw", "transpose_16x3x49_"],
    ["mi300x", "wgrad_one_tap_nchw_bf16", "wgrad_40x24_"],
    ["mi300x", "wgrad_many_long_nhwc_bf16", "wgrad_"],
    ["mi300x", "depthwise_wgrad_2x40x12_1s1d1_nchw_bf16", "wgrad_40_"],
    ["x86-64-v3", "sdpa_scheduled_decode_8191_keys", "attention_"],
    ["x86-64-v3", "conv_one_channel_nhwc", "conv_72x1x9_"],
    ["x86-64-v3", "cropped_conv_mixed_3to5_nchw_f32_stride2", "conv_50x5x27_"],
    ["x86-64-v3", "cropped_dgrad_after_3to5_nchw_f32", "dgrad_180x3x5_"],
    ["x86-64-v3", "dgrad_one_pixel_nhwc", "dgrad_2x4x5_"],
    ["x86-64-v3", "sdpa_backward_plain_bf16", "gradients_of_queries_"],
    ["x86-64-v3", "pool_max_rest_of_7_nchw", "maxpool_"],
    ["x86-64-v3", "rmsnorm_inference_3d_f32", "rows_14x24_"],
    ["x86-64-v3", "strided_out_inner_gap", "scatter_"],
    ["x86-64-v3", "wgrad_depthwise_nchw_bf16", "depthwise_wgrad_"],
    ["x86-64-v3", "wgrad_bare_groups_nchw_by_krsc", "wgrad_5x27x242_"],
    ["x86-64-v4", "sdpa_shared_keys_bf16", "attention_"],
    ["x86-64-v4", "conv_one_filter_each_nchw_f32", "conv_98x1x36_"],
    [
        "x86-64-v4",
        "conv_unpacked_one_tap_of_eight_nchw_by_krsc",
        "matmul_8x4x272_",
    ],
    ["x86-64-v4", "dgrad_f16_to_f32_nchw", "dgrad_49x8x8_"],
    ["x86-64-v4", "matmul_long_1x4096x24_nt_f32", "matmul_1x24x4096_"],
    ["x86-64-v4", "matmul_lines_1x768x1000_f32", "few_rows_"],
    ["x86-64-v4", "rows_spread_5x201_f16", "rows_5x201_"],
    ["x86-64-v4", "wgrad_bare_depthwise_dilated_nchw", "depthwise_wgrad_"],
    ["x86-64-v4", "wgrad_one_tap_odd_nchw_f16", "wgrad_9x17x147_"],
];

/// Returns the functions of a module whose names have this prefix.
fn functions(mlir: &str, start: &str) -> String {
    let start = format!("      func.func @{start}");
    let (mut text, mut is_inside) = (String::new(), false);
    for line in mlir.lines() {
        is_inside |= line.starts_with(&start);
        if is_inside {
            text += line.strip_prefix("      ").unwrap_or(line);
            text.push('\n');
        }
        is_inside &= line != "      }";
    }
    text
}

#[test]
fn whole_kernels() {
    for [target, case, kernel] in CHOSEN {
        let bytes = rotini_wire::encode(&cases::named(case).expect("it is a case").graph);
        let parsed = Target::parse(target).expect("it is known");
        let prepared = check(&bytes, &parsed).expect("the graph is supported");
        let mlir = emit(&prepared.graph, &parsed).expect("the graph is supported").mlir;
        let text = functions(&mlir, kernel);
        assert!(!text.is_empty(), "{case} has no {kernel} for {target}");
        insta::assert_snapshot!(format!("{target}_{}", kernel.trim_end_matches('_')), text);
    }
}

/// Each place of each case has its default form among its candidates, and no candidate twice.
#[test]
fn usual_forms_are_candidates() {
    let targets = ["cpu", "x86-64-v3", "mi300x", "sm_80"].map(|name| Target::parse(name).unwrap());
    let check_case = |case: &cases::Case| {
        let bytes = rotini_wire::encode(&case.graph);
        for target in &targets {
            let Ok(prepared) = check(&bytes, target) else { continue };
            for place in places(&prepared.graph, target, &Choices::default()).unwrap() {
                let mut ids: Vec<&str> = place
                    .candidates
                    .iter()
                    .map(|Candidate { id, .. }| id.as_str())
                    .collect();
                assert!(
                    ids.contains(&place.usual.as_str()),
                    "{}, {target}: {place:?}",
                    case.name
                );
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), place.candidates.len(), "{}, {target}: {place:?}", case.name);
            }
        }
    };
    cases::all().par_iter().for_each(check_case);
}
