//! The operations' tables in the schema, and the schema's field for each field of the IR.
//!
//! One list serves both directions of the wire, and hipDNN's JSON form, whose fields have the same
//! names. It is checked against samples that hipDNN itself serialized, and against the wire's field
//! ids, which the tests state independently.

use crate::error::DecodeError;
use crate::field::{Field, Place, Writer};
use crate::generated::graph_generated as wire;
use flatbuffers::{UnionWIPOffset, WIPOffset};
use rotini_graph::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, BlockScaleDequantize,
    BlockScaleQuantize, ConvDgrad, ConvFprop, ConvGeometry, ConvWgrad, CustomOp, Layernorm, LayernormBackward, Matmul,
    MoeGroupedMatmul, MoeGroupedMatmulBwd, Op, Pointwise, Reduction, ResampleBwd, ResampleFwd, RmsNorm,
    RmsNormBackward, Sdpa, SdpaBackward,
};

/// Passes the list of operations to a macro: `IR type = the schema's table, its arguments, its
/// accessor { IR field: the schema's field }`. `+ geometry` stands for the fields that the
/// convolutions share: `pre_padding`, `post_padding`, `stride`, `dilation` and `conv_mode`.
#[macro_export]
macro_rules! operations {
    ($consumer:ident) => {
        $consumer! {
            BatchnormInference = BatchnormInferenceAttributes, BatchnormInferenceAttributesArgs,
            attributes_as_batchnorm_inference_attributes {
                x: x_tensor_uid, mean: mean_tensor_uid, inv_variance: inv_variance_tensor_uid,
                scale: scale_tensor_uid, bias: bias_tensor_uid, y: y_tensor_uid,
            }
            Pointwise = PointwiseAttributes, PointwiseAttributesArgs, attributes_as_pointwise_attributes {
                mode: operation, relu_lower_clip: relu_lower_clip, relu_upper_clip: relu_upper_clip,
                relu_lower_clip_slope: relu_lower_clip_slope, axis: axis_tensor_uid, in_0: in_0_tensor_uid,
                in_1: in_1_tensor_uid, in_2: in_2_tensor_uid, out_0: out_0_tensor_uid, swish_beta: swish_beta,
                elu_alpha: elu_alpha, softplus_beta: softplus_beta,
            }
            BatchnormBackward = BatchnormBackwardAttributes, BatchnormBackwardAttributesArgs,
            attributes_as_batchnorm_backward_attributes {
                dy: dy_tensor_uid, x: x_tensor_uid, mean: mean_tensor_uid, inv_variance: inv_variance_tensor_uid,
                scale: scale_tensor_uid, peer_stats: peer_stats_tensor_uid, dx: dx_tensor_uid,
                dscale: dscale_tensor_uid, dbias: dbias_tensor_uid,
            }
            Batchnorm = BatchnormAttributes, BatchnormAttributesArgs, attributes_as_batchnorm_attributes {
                x: x_tensor_uid, scale: scale_tensor_uid, bias: bias_tensor_uid, epsilon: epsilon_tensor_uid,
                peer_stats: peer_stats_tensor_uid, prev_running_mean: prev_running_mean_tensor_uid,
                prev_running_variance: prev_running_variance_tensor_uid, momentum: momentum_tensor_uid,
                y: y_tensor_uid, mean: mean_tensor_uid, inv_variance: inv_variance_tensor_uid,
                next_running_mean: next_running_mean_tensor_uid,
                next_running_variance: next_running_variance_tensor_uid,
            }
            ConvFprop = ConvolutionFwdAttributes, ConvolutionFwdAttributesArgs, attributes_as_convolution_fwd_attributes {
                x: x_tensor_uid, w: w_tensor_uid, y: y_tensor_uid,
            } + geometry
            ConvDgrad = ConvolutionBwdAttributes, ConvolutionBwdAttributesArgs, attributes_as_convolution_bwd_attributes {
                dy: dy_tensor_uid, w: w_tensor_uid, dx: dx_tensor_uid,
            } + geometry
            ConvWgrad = ConvolutionWrwAttributes, ConvolutionWrwAttributesArgs, attributes_as_convolution_wrw_attributes {
                x: x_tensor_uid, dy: dy_tensor_uid, dw: dw_tensor_uid,
            } + geometry
            BatchnormInferenceVariance = BatchnormInferenceAttributesVarianceExt, BatchnormInferenceAttributesVarianceExtArgs,
            attributes_as_batchnorm_inference_attributes_variance_ext {
                x: x_tensor_uid, mean: mean_tensor_uid, variance: variance_tensor_uid, scale: scale_tensor_uid,
                bias: bias_tensor_uid, y: y_tensor_uid, epsilon: epsilon_tensor_uid,
            }
            Matmul = MatmulAttributes, MatmulAttributesArgs, attributes_as_matmul_attributes {
                a: a_tensor_uid, b: b_tensor_uid, c: c_tensor_uid,
            }
            RmsNorm = RMSNormAttributes, RMSNormAttributesArgs, attributes_as_rmsnorm_attributes {
                x: x_tensor_uid, scale: scale_tensor_uid, epsilon: epsilon_tensor_uid, y: y_tensor_uid,
                bias: bias_tensor_uid, inv_rms: inv_rms_tensor_uid, phase: forward_phase,
            }
            Layernorm = LayernormAttributes, LayernormAttributesArgs, attributes_as_layernorm_attributes {
                x: x_tensor_uid, scale: scale_tensor_uid, bias: bias_tensor_uid, epsilon: epsilon_tensor_uid,
                y: y_tensor_uid, normalized_dim_count: normalized_dim_count, mean: mean_tensor_uid,
                inv_variance: inv_variance_tensor_uid, phase: forward_phase,
            }
            Sdpa = SdpaAttributes, SdpaAttributesArgs, attributes_as_sdpa_attributes {
                q: q_tensor_uid, k: k_tensor_uid, v: v_tensor_uid, o: o_tensor_uid, attn_mask: attn_mask_tensor_uid,
                scale: scale_tensor_uid, seq_len_q: seq_len_q_tensor_uid, seq_len_kv: seq_len_kv_tensor_uid,
                seed: seed_tensor_uid, offset: offset_tensor_uid, dropout_mask: dropout_mask_tensor_uid,
                dropout_scale: dropout_scale_tensor_uid, page_table_k: page_table_k_tensor_uid,
                page_table_v: page_table_v_tensor_uid, block_mask: block_mask_tensor_uid,
                sink_token: sink_token_tensor_uid, descale_q: descale_q_tensor_uid, descale_k: descale_k_tensor_uid,
                descale_v: descale_v_tensor_uid, descale_s: descale_s_tensor_uid, scale_s: scale_s_tensor_uid,
                scale_o: scale_o_tensor_uid, stats: stats_tensor_uid, max: max_tensor_uid,
                sum_exp: sum_exp_tensor_uid, rng_dump: rng_dump_tensor_uid, amax_s: amax_s_tensor_uid,
                amax_o: amax_o_tensor_uid, generate_stats: generate_stats, alibi_mask: alibi_mask,
                padding_mask: padding_mask, causal_mask: causal_mask,
                causal_mask_bottom_right: causal_mask_bottom_right, dropout_probability: dropout_probability,
                attn_scale_value: attn_scale_value, left_bound: left_bound, right_bound: right_bound,
                max_seq_len_kv: max_seq_len_kv, diagonal_alignment: diagonal_alignment, mma_core_mode: mma_core_mode,
                implementation: implementation,
            }
            BlockScaleDequantize = BlockScaleDequantizeAttributes, BlockScaleDequantizeAttributesArgs,
            attributes_as_block_scale_dequantize_attributes {
                x: x_tensor_uid, scale: scale_tensor_uid, y: y_tensor_uid, block_size: block_size,
                is_negative_scale: is_negative_scale,
            }
            BlockScaleQuantize = BlockScaleQuantizeAttributes, BlockScaleQuantizeAttributesArgs,
            attributes_as_block_scale_quantize_attributes {
                x: x_tensor_uid, y: y_tensor_uid, scale: scale_tensor_uid, block_size: block_size, axis: axis,
                transpose: transpose,
            }
            SdpaBackward = SdpaBackwardAttributes, SdpaBackwardAttributesArgs, attributes_as_sdpa_backward_attributes {
                q: q_tensor_uid, k: k_tensor_uid, v: v_tensor_uid, o: o_tensor_uid, d_o: do_tensor_uid,
                stats: stats_tensor_uid, dq: dq_tensor_uid, dk: dk_tensor_uid, dv: dv_tensor_uid,
                scale: scale_tensor_uid, attn_mask: attn_mask_tensor_uid, seq_len_q: seq_len_q_tensor_uid,
                seq_len_kv: seq_len_kv_tensor_uid, seed: seed_tensor_uid, offset: offset_tensor_uid,
                dropout_mask: dropout_mask_tensor_uid, dropout_scale: dropout_scale_tensor_uid,
                dropout_scale_inv: dropout_scale_inv_tensor_uid, dbias: dbias_tensor_uid, alibi_mask: alibi_mask,
                padding_mask: padding_mask, causal_mask: causal_mask,
                causal_mask_bottom_right: causal_mask_bottom_right, dropout_probability: dropout_probability,
                attn_scale_value: attn_scale_value, left_bound: left_bound, right_bound: right_bound,
                diagonal_alignment: diagonal_alignment,
            }
            CustomOp = CustomOpAttributes, CustomOpAttributesArgs, attributes_as_custom_op_attributes {
                custom_op_id: custom_op_id, inputs: input_tensor_uids, outputs: output_tensor_uids, data: data,
            }
            RmsNormBackward = RMSNormBackwardAttributes, RMSNormBackwardAttributesArgs,
            attributes_as_rmsnorm_backward_attributes {
                dy: dy_tensor_uid, x: x_tensor_uid, scale: scale_tensor_uid, inv_rms: inv_rms_tensor_uid,
                dx: dx_tensor_uid, dscale: dscale_tensor_uid, dbias: dbias_tensor_uid,
            }
            Reduction = ReductionAttributes, ReductionAttributesArgs, attributes_as_reduction_attributes {
                mode: mode, input: in_tensor_uid, output: out_tensor_uid, is_deterministic: is_deterministic,
            }
            ResampleFwd = ResampleFwdAttributes, ResampleFwdAttributesArgs, attributes_as_resample_fwd_attributes {
                x: x_tensor_uid, y: y_tensor_uid, index: index_tensor_uid, pre_padding: pre_padding,
                post_padding: post_padding, stride: stride, window: window, resample_mode: resample_mode,
                padding_mode: padding_mode, generate_index: generate_index,
            }
            LayernormBackward = LayernormBackwardAttributes, LayernormBackwardAttributesArgs,
            attributes_as_layernorm_backward_attributes {
                dy: dy_tensor_uid, x: x_tensor_uid, scale: scale_tensor_uid, mean: mean_tensor_uid,
                inv_variance: inv_variance_tensor_uid, epsilon: epsilon_tensor_uid, dx: dx_tensor_uid,
                dscale: dscale_tensor_uid, dbias: dbias_tensor_uid, normalized_dim_count: normalized_dim_count,
            }
            ResampleBwd = ResampleBwdAttributes, ResampleBwdAttributesArgs, attributes_as_resample_bwd_attributes {
                dy: dy_tensor_uid, dx: dx_tensor_uid, index: index_tensor_uid, pre_padding: pre_padding,
                post_padding: post_padding, stride: stride, window: window, resample_mode: resample_mode,
                padding_mode: padding_mode,
            }
            MoeGroupedMatmul = MoeGroupedMatmulAttributes, MoeGroupedMatmulAttributesArgs,
            attributes_as_moe_grouped_matmul_attributes {
                token: token_tensor_uid, weight: weight_tensor_uid, first_token_offset: first_token_offset_tensor_uid,
                token_index: token_index_tensor_uid, token_ks: token_ks_tensor_uid, output: output_tensor_uid,
                mode: mode, top_k: top_k,
            }
            MoeGroupedMatmulBwd = MoeGroupedMatmulBwdAttributes, MoeGroupedMatmulBwdAttributesArgs,
            attributes_as_moe_grouped_matmul_bwd_attributes {
                doutput: doutput_tensor_uid, token: token_tensor_uid,
                first_token_offset: first_token_offset_tensor_uid, dweight: dweight_tensor_uid,
            }
        }
    };
}

/// Generates `read` and `write` from the list of operations.
macro_rules! functions {
    ($($op:ident = $table:ident, $args:ident, $accessor:ident {
        $($field:ident: $wire_field:ident),* $(,)?
    } $(+ $geometry:ident)?)*) => {
        /// Reads the operation of a node.
        pub(crate) fn read(node: &wire::Node<'_>, place: &Place<'_>) -> Result<Op, DecodeError> {
            match node.attributes_type() {
                $(wire::NodeAttributes::$table => {
                    let table = node.$accessor().ok_or_else(|| place.unset("attributes"))?;
                    let op = $op {
                        $($field: Field::read(table.$wire_field(), stringify!($field), place)?,)*
                        $($geometry: ConvGeometry {
                            pre_padding: Field::read(table.pre_padding(), "pre_padding", place)?,
                            post_padding: Field::read(table.post_padding(), "post_padding", place)?,
                            stride: Field::read(table.stride(), "stride", place)?,
                            dilation: Field::read(table.dilation(), "dilation", place)?,
                            mode: Field::read(table.conv_mode(), "conv_mode", place)?,
                        },)?
                    };
                    Ok(Op::$op(op.into()))
                })*
                wire::NodeAttributes::NONE => Err(place.unset("attributes")),
                newer => Err(place.unknown("operation", newer.0)),
            }
        }

        /// Appends the table of an operation.
        pub(crate) fn write(
            op: &Op,
            writer: &mut Writer<'_, '_>,
        ) -> (wire::NodeAttributes, WIPOffset<UnionWIPOffset>) {
            match op {
                $(Op::$op(op) => {
                    let args = wire::$args {
                        $($wire_field: op.$field.write(writer),)*
                        $(
                            pre_padding: op.$geometry.pre_padding.write(writer),
                            post_padding: op.$geometry.post_padding.write(writer),
                            stride: op.$geometry.stride.write(writer),
                            dilation: op.$geometry.dilation.write(writer),
                            conv_mode: op.$geometry.mode.write(writer),
                        )?
                    };
                    let table = wire::$table::create(&mut writer.builder, &args);
                    (wire::NodeAttributes::$table, table.as_union_value())
                })*
            }
        }
    };
}

operations!(functions);
