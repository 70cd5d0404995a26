//! The fields of each operation.

use super::fields::{Field, Fields, Made};
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, BlockScaleDequantize,
    BlockScaleQuantize, ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad, CustomOp, Layernorm, LayernormBackward, Matmul,
    MoeGroupedMatmul, MoeGroupedMatmulBwd, Op, Pointwise, Reduction, ResampleBwd, ResampleFwd, RmsNorm,
    RmsNormBackward, Sdpa, SdpaBackward,
};

/// Generates `read` from lines of `table => IR type { IR field }`, with `field = name` where
/// hipDNN's name, without `_tensor_uid`, differs from the IR's.
macro_rules! operations {
    ($($table:literal => $op:ident { $($field:ident $(= $name:literal)?),* $(,)? })*) => {
        /// Reads the operation whose table has this name, taking its fields.
        pub(super) fn read(table: &str, fields: &mut Fields<'_>) -> Made<Op> {
            match table {
                $($table => {
                    let op = $op { $($field: Field::read(fields, operations!(@ $field $($name)?))?,)* };
                    Ok(Op::$op(op.into()))
                })*
                _ => Err(fields.error("the type is not known")),
            }
        }
    };
    (@ $field:ident) => { stringify!($field) };
    (@ $field:ident $name:literal) => { $name };
}

impl Field for ConvGeometry {
    /// Reads the fields that the convolutions share. They are separate fields in JSON, so the name
    /// is not used.
    fn read(fields: &mut Fields<'_>, _: &str) -> Made<Self> {
        Ok(ConvGeometry {
            pre_padding: Field::read(fields, "pre_padding")?,
            post_padding: Field::read(fields, "post_padding")?,
            stride: Field::read(fields, "stride")?,
            dilation: Field::read(fields, "dilation")?,
            mode: Field::read(fields, "conv_mode")?,
        })
    }
}

operations! {
    "BatchnormInferenceAttributes" => BatchnormInference { x, mean, inv_variance, scale, bias, y }
    "PointwiseAttributes" => Pointwise {
        mode = "operation", relu_lower_clip, relu_upper_clip, relu_lower_clip_slope, axis = "axis_tensor_uid", in_0,
        in_1, in_2, out_0, swish_beta, elu_alpha, softplus_beta,
    }
    "BatchnormBackwardAttributes" => BatchnormBackward {
        dy, x, mean, inv_variance, scale, peer_stats = "peer_stats_tensor_uid", dx, dscale, dbias,
    }
    "BatchnormAttributes" => Batchnorm {
        x, scale, bias, epsilon, peer_stats = "peer_stats_tensor_uid", prev_running_mean, prev_running_variance,
        momentum, y, mean, inv_variance, next_running_mean, next_running_variance,
    }
    "ConvolutionFwdAttributes" => ConvFprop { x, w, y, geometry }
    "ConvolutionBwdAttributes" => ConvDgrad { dy, w, dx, geometry }
    "ConvolutionWrwAttributes" => ConvWgrad { x, dy, dw, geometry }
    "BatchnormInferenceAttributesVarianceExt" => BatchnormInferenceVariance {
        x, mean, variance, scale, bias, y, epsilon,
    }
    "MatmulAttributes" => Matmul { a, b, c }
    "RMSNormAttributes" => RmsNorm { x, scale, epsilon, y, bias, inv_rms, phase = "forward_phase" }
    "LayernormAttributes" => Layernorm {
        x, scale, bias, epsilon, y, normalized_dim_count, mean, inv_variance, phase = "forward_phase",
    }
    "SdpaAttributes" => Sdpa {
        q, k, v, o, attn_mask, scale, seq_len_q, seq_len_kv, seed, offset, dropout_mask, dropout_scale, page_table_k,
        page_table_v, block_mask, sink_token, descale_q, descale_k, descale_v, descale_s, scale_s, scale_o, stats, max,
        sum_exp, rng_dump, amax_s, amax_o, generate_stats, alibi_mask, padding_mask, causal_mask,
        causal_mask_bottom_right, dropout_probability, attn_scale_value, left_bound, right_bound, max_seq_len_kv,
        diagonal_alignment, mma_core_mode, implementation,
    }
    "BlockScaleDequantizeAttributes" => BlockScaleDequantize { x, scale, y, block_size, is_negative_scale }
    "BlockScaleQuantizeAttributes" => BlockScaleQuantize { x, y, scale, block_size, axis, transpose }
    "SdpaBackwardAttributes" => SdpaBackward {
        q, k, v, o, d_o = "do", stats, dq, dk, dv, scale, attn_mask, seq_len_q, seq_len_kv, seed, offset, dropout_mask,
        dropout_scale, dropout_scale_inv, dbias, alibi_mask, padding_mask, causal_mask, causal_mask_bottom_right,
        dropout_probability, attn_scale_value, left_bound, right_bound, diagonal_alignment,
    }
    "CustomOpAttributes" => CustomOp {
        custom_op_id, inputs = "input_tensor_uids", outputs = "output_tensor_uids", data,
    }
    "RMSNormBackwardAttributes" => RmsNormBackward { dy, x, scale, inv_rms, dx, dscale, dbias }
    "ReductionAttributes" => Reduction { mode, input = "in", output = "out", is_deterministic }
    "ResampleFwdAttributes" => ResampleFwd {
        x, y, index, pre_padding, post_padding, stride, window, resample_mode, padding_mode, generate_index,
    }
    "LayernormBackwardAttributes" => LayernormBackward {
        dy, x, scale, mean, inv_variance, epsilon, dx, dscale, dbias, normalized_dim_count,
    }
    "ResampleBwdAttributes" => ResampleBwd {
        dy, dx, index, pre_padding, post_padding, stride, window, resample_mode, padding_mode,
    }
    "MoeGroupedMatmulAttributes" => MoeGroupedMatmul {
        token, weight, first_token_offset, token_index, token_ks, output, mode, top_k,
    }
    "MoeGroupedMatmulBwdAttributes" => MoeGroupedMatmulBwd { doutput, token, first_token_offset, dweight }
}
