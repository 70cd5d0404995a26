//! The operations of hipDNN's schema: one struct each, with the tensors it reads, the tensors it writes and its attributes.
//!
//! The `operations!` table below is the only list of them. It gives each struct its visitor over tensors, so that validation,
//! normalisation and tools need no code per operation.

use crate::{Pointwise, TensorId};
use serde::{Deserialize, Serialize};

/// A field of an operation that names tensors: one, perhaps one, or several.
pub(crate) trait TensorField {
    fn visit(&self, visit: &mut dyn FnMut(TensorId));
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId);
}

impl TensorField for TensorId {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        visit(*self);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        *self = to(*self);
    }
}

impl TensorField for Option<TensorId> {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        self.iter().copied().for_each(visit);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        *self = self.map(to);
    }
}

impl TensorField for Vec<TensorId> {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        self.iter().copied().for_each(visit);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        for id in self {
            *id = to(*id);
        }
    }
}

/// Implements the visitors of one operation's struct.
macro_rules! visitors {
    ($name:ident, reads { $($input:ident),* }, writes { $($output:ident),* }) => {
        impl $name {
            /// Calls `visit` with the field's name and the tensor for every tensor that is read.
            pub fn for_each_input(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                $($crate::op::TensorField::visit(&self.$input, &mut |id| visit(stringify!($input), id));)*
            }

            /// Calls `visit` with the field's name and the tensor for every tensor that is written.
            pub fn for_each_output(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                $($crate::op::TensorField::visit(&self.$output, &mut |id| visit(stringify!($output), id));)*
            }

            /// Replaces every tensor by what `to` gives for it.
            pub fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
                $($crate::op::TensorField::renumber(&mut self.$input, to);)*
                $($crate::op::TensorField::renumber(&mut self.$output, to);)*
            }
        }
    };
}
pub(crate) use visitors;

/// Declares the struct of an operation from the fields it reads, those it writes and its attributes.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident
        reads { $($input:ident: $input_ty:ty),* $(,)? }
        writes { $($output:ident: $output_ty:ty),* $(,)? }
        attributes { $($(#[$attr_doc:meta])* $attr:ident: $attr_ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[expect(missing_docs, reason = "tensor fields carry the schema's names and mean what the operation's docs say")]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(pub $input: $input_ty,)*
            $(pub $output: $output_ty,)*
            $($(#[$attr_doc])* pub $attr: $attr_ty,)*
        }
        visitors!($name, reads { $($input),* }, writes { $($output),* });
    };
}

/// Declares [`Op`] over the structs, with the visitors passed through.
macro_rules! operations {
    ($($variant:ident($ty:ty) = $kind:literal),* $(,)?) => {
        /// One operation of the schema.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Op {
            $(#[doc = concat!("See [`", stringify!($ty), "`].")] $variant($ty),)*
        }

        impl Op {
            /// The name of every operation.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The operation's name as it stands in messages.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Op::$variant(_) => $kind,)* }
            }

            /// Calls `visit` with the field's name and the tensor for every tensor that is read.
            pub fn for_each_input(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                match self { $(Op::$variant(op) => op.for_each_input(visit),)* }
            }

            /// Calls `visit` with the field's name and the tensor for every tensor that is written.
            pub fn for_each_output(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                match self { $(Op::$variant(op) => op.for_each_output(visit),)* }
            }

            /// Replaces every tensor by what `to` gives for it.
            pub fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
                match self { $(Op::$variant(op) => op.renumber(to),)* }
            }
        }

        $(impl From<$ty> for Op {
            fn from(op: $ty) -> Self { Op::$variant(op) }
        })*
    };
}

operations! {
    BatchnormInference(BatchnormInference) = "batchnorm inference",
    Pointwise(Pointwise) = "pointwise",
    BatchnormBackward(BatchnormBackward) = "batchnorm backward",
    Batchnorm(Batchnorm) = "batchnorm training",
    ConvFprop(ConvFprop) = "convolution fprop",
    ConvDgrad(ConvDgrad) = "convolution dgrad",
    ConvWgrad(ConvWgrad) = "convolution wgrad",
    BatchnormInferenceVariance(BatchnormInferenceVariance) = "batchnorm inference with variance",
    Matmul(Matmul) = "matmul",
    RmsNorm(RmsNorm) = "RMSNorm",
    Layernorm(Layernorm) = "layernorm",
    Sdpa(Box<Sdpa>) = "SDPA",
    BlockScaleDequantize(BlockScaleDequantize) = "block-scale dequantize",
    BlockScaleQuantize(BlockScaleQuantize) = "block-scale quantize",
    SdpaBackward(Box<SdpaBackward>) = "SDPA backward",
    CustomOp(CustomOp) = "custom op",
    RmsNormBackward(RmsNormBackward) = "RMSNorm backward",
    Reduction(Reduction) = "reduction",
    ResampleFwd(ResampleFwd) = "resample forward",
    LayernormBackward(LayernormBackward) = "layernorm backward",
    ResampleBwd(ResampleBwd) = "resample backward",
    MoeGroupedMatmul(MoeGroupedMatmul) = "MoE grouped matmul",
    MoeGroupedMatmulBwd(MoeGroupedMatmulBwd) = "MoE grouped matmul backward",
}

/// Which of the two operations called convolution is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConvMode {
    /// The mathematical convolution: the filter is flipped.
    Convolution,
    /// What deep learning calls convolution.
    CrossCorrelation,
}

/// The geometry that the three convolutions share: one entry per spatial dimension in each list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvGeometry {
    /// Zeros before the first element.
    pub pre_padding: Vec<i64>,
    /// Zeros after the last element.
    pub post_padding: Vec<i64>,
    /// Distance between two outputs, in inputs.
    pub stride: Vec<i64>,
    /// Distance between two filter taps, in inputs.
    pub dilation: Vec<i64>,
    /// Flipped or not.
    pub mode: ConvMode,
}

/// Whether a normalization also saves its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NormPhase {
    /// Statistics are not saved.
    Inference,
    /// Statistics are saved.
    Training,
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum ReductionMode {
    Add,
    Mul,
    Min,
    Max,
    Amax,
    Avg,
    Norm1,
    Norm2,
    MulNoZeros,
}

/// What a pooling window computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum ResampleMode {
    Maxpool,
    AvgpoolExcludePadding,
    AvgpoolIncludePadding,
}

/// What a pooling window reads outside its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum PaddingMode {
    NotSet,
    NegInf,
    Zero,
}

/// Where the diagonal of an attention mask starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum DiagonalAlignment {
    TopLeft,
    BottomRight,
}

/// Which implementation of attention the author asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum AttentionImplementation {
    Auto,
    Composite,
    Unified,
}

/// How a grouped matmul finds its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum MoeMode {
    None,
    Gather,
    Scatter,
}

operation! {
    /// y = scale (x - mean) inv_variance + bias.
    BatchnormInference
    reads { x: TensorId, mean: TensorId, inv_variance: TensorId, scale: TensorId, bias: TensorId }
    writes { y: TensorId }
    attributes {}
}

operation! {
    /// y = scale (x - mean) / sqrt(variance + epsilon) + bias.
    BatchnormInferenceVariance
    reads { x: TensorId, mean: TensorId, variance: TensorId, scale: TensorId, bias: TensorId, epsilon: TensorId }
    writes { y: TensorId }
    attributes {}
}

operation! {
    /// Batch normalization with the statistics of the batch, which are saved, and running statistics, which are updated.
    Batchnorm
    reads {
        x: TensorId, scale: TensorId, bias: TensorId, epsilon: TensorId, peer_stats: Vec<TensorId>,
        prev_running_mean: Option<TensorId>, prev_running_variance: Option<TensorId>, momentum: Option<TensorId>,
    }
    writes {
        y: TensorId, mean: Option<TensorId>, inv_variance: Option<TensorId>,
        next_running_mean: Option<TensorId>, next_running_variance: Option<TensorId>,
    }
    attributes {}
}

operation! {
    /// The gradients of batch normalization.
    BatchnormBackward
    reads {
        dy: TensorId, x: TensorId, mean: Option<TensorId>, inv_variance: Option<TensorId>, scale: TensorId,
        peer_stats: Vec<TensorId>,
    }
    writes { dx: TensorId, dscale: TensorId, dbias: TensorId }
    attributes {}
}

operation! {
    /// y\[n, k, o\] = sum over c, t of x\[n, c, o stride + t dilation - pre_padding\] w\[k, c, t\], per group of channels.
    ConvFprop
    reads { x: TensorId, w: TensorId }
    writes { y: TensorId }
    attributes {
        /// Padding, stride, dilation, mode.
        geometry: ConvGeometry,
    }
}

operation! {
    /// The gradient of a convolution with respect to its input.
    ConvDgrad
    reads { dy: TensorId, w: TensorId }
    writes { dx: TensorId }
    attributes {
        /// Padding, stride, dilation, mode of the forward convolution.
        geometry: ConvGeometry,
    }
}

operation! {
    /// The gradient of a convolution with respect to its filter.
    ConvWgrad
    reads { x: TensorId, dy: TensorId }
    writes { dw: TensorId }
    attributes {
        /// Padding, stride, dilation, mode of the forward convolution.
        geometry: ConvGeometry,
    }
}

operation! {
    /// c = a b over the last two dimensions.
    Matmul
    reads { a: TensorId, b: TensorId }
    writes { c: TensorId }
    attributes {}
}

operation! {
    /// y = scale x / sqrt(mean of squares + epsilon) + bias.
    RmsNorm
    reads { x: TensorId, scale: TensorId, epsilon: TensorId, bias: Option<TensorId> }
    writes { y: TensorId, inv_rms: Option<TensorId> }
    attributes {
        /// Whether `inv_rms` is saved.
        phase: NormPhase,
    }
}

operation! {
    /// The gradients of RMSNorm.
    RmsNormBackward
    reads { dy: TensorId, x: TensorId, scale: TensorId, inv_rms: TensorId }
    writes { dx: TensorId, dscale: TensorId, dbias: Option<TensorId> }
    attributes {}
}

operation! {
    /// y = scale (x - mean) / sqrt(variance + epsilon) + bias over the last dimensions.
    Layernorm
    reads { x: TensorId, scale: TensorId, bias: TensorId, epsilon: TensorId }
    writes { y: TensorId, mean: Option<TensorId>, inv_variance: Option<TensorId> }
    attributes {
        /// How many trailing dimensions are normalized over.
        normalized_dim_count: i64,
        /// Whether the statistics are saved.
        phase: NormPhase,
    }
}

operation! {
    /// The gradients of layernorm.
    LayernormBackward
    reads {
        dy: TensorId, x: TensorId, scale: TensorId, mean: Option<TensorId>, inv_variance: Option<TensorId>,
        epsilon: Option<TensorId>,
    }
    writes { dx: TensorId, dscale: TensorId, dbias: TensorId }
    attributes {
        /// How many trailing dimensions are normalized over.
        normalized_dim_count: i64,
    }
}

operation! {
    /// Scaled dot-product attention: o = softmax(scale q k^T + mask) v, row by row; a row in which every key is hidden is zeros.
    ///
    /// The scale is `attn_scale_value` or the tensor, and 1 if there is neither (hipDNN's `PlanUtils.hpp`; its older versions had
    /// 1 / sqrt(D)). `stats` is the natural logarithm of the sum of exponentials, of which `sink_token` is one per head that has
    /// neither key nor value.
    Sdpa
    reads {
        q: TensorId, k: TensorId, v: TensorId, attn_mask: Option<TensorId>, scale: Option<TensorId>,
        seq_len_q: Option<TensorId>, seq_len_kv: Option<TensorId>, seed: Option<TensorId>, offset: Option<TensorId>,
        dropout_mask: Option<TensorId>, dropout_scale: Option<TensorId>, page_table_k: Option<TensorId>,
        page_table_v: Option<TensorId>, block_mask: Option<TensorId>, sink_token: Option<TensorId>,
        descale_q: Option<TensorId>, descale_k: Option<TensorId>, descale_v: Option<TensorId>,
        descale_s: Option<TensorId>, scale_s: Option<TensorId>, scale_o: Option<TensorId>,
    }
    writes {
        o: TensorId, stats: Option<TensorId>, max: Option<TensorId>, sum_exp: Option<TensorId>,
        rng_dump: Option<TensorId>, amax_s: Option<TensorId>, amax_o: Option<TensorId>,
    }
    attributes {
        /// Whether `stats` is asked for.
        generate_stats: Option<bool>,
        /// Linear bias by distance.
        alibi_mask: bool,
        /// Mask by sequence lengths.
        padding_mask: bool,
        /// Deprecated: right bound 0, top left.
        causal_mask: bool,
        /// Deprecated: right bound 0, bottom right.
        causal_mask_bottom_right: bool,
        /// Share of weights that are dropped.
        dropout_probability: Option<f32>,
        /// Factor on q k^T.
        attn_scale_value: Option<f32>,
        /// Keys visible before the diagonal.
        left_bound: Option<i64>,
        /// Keys visible after the diagonal.
        right_bound: Option<i64>,
        /// Longest sequence of keys.
        max_seq_len_kv: Option<i32>,
        /// Where the diagonal starts.
        diagonal_alignment: DiagonalAlignment,
        /// Type of the matrix core's inputs; `None` if not set.
        mma_core_mode: Option<crate::DataType>,
        /// Implementation asked for.
        implementation: AttentionImplementation,
    }
}

impl Sdpa {
    /// Attention without a mask, with a scale of 1, that saves nothing.
    #[must_use]
    pub const fn new(q: TensorId, k: TensorId, v: TensorId, o: TensorId) -> Self {
        Sdpa {
            q,
            k,
            v,
            attn_mask: None,
            scale: None,
            seq_len_q: None,
            seq_len_kv: None,
            seed: None,
            offset: None,
            dropout_mask: None,
            dropout_scale: None,
            page_table_k: None,
            page_table_v: None,
            block_mask: None,
            sink_token: None,
            descale_q: None,
            descale_k: None,
            descale_v: None,
            descale_s: None,
            scale_s: None,
            scale_o: None,
            o,
            stats: None,
            max: None,
            sum_exp: None,
            rng_dump: None,
            amax_s: None,
            amax_o: None,
            generate_stats: None,
            alibi_mask: false,
            padding_mask: false,
            causal_mask: false,
            causal_mask_bottom_right: false,
            dropout_probability: None,
            attn_scale_value: None,
            left_bound: None,
            right_bound: None,
            max_seq_len_kv: None,
            diagonal_alignment: DiagonalAlignment::TopLeft,
            mma_core_mode: None,
            implementation: AttentionImplementation::Auto,
        }
    }
}

operation! {
    /// The gradients of scaled dot-product attention: with P = exp(scores - stats) and dS = P (do v^T - sum of do o), dv = P^T do,
    /// dq = scale dS k, dk = scale dS^T q and dbias = dS summed up to the dims of the mask.
    SdpaBackward
    reads {
        q: TensorId, k: TensorId, v: TensorId, o: TensorId, d_o: TensorId, stats: TensorId,
        scale: Option<TensorId>, attn_mask: Option<TensorId>, seq_len_q: Option<TensorId>,
        seq_len_kv: Option<TensorId>, seed: Option<TensorId>, offset: Option<TensorId>,
        dropout_mask: Option<TensorId>, dropout_scale: Option<TensorId>, dropout_scale_inv: Option<TensorId>,
    }
    writes { dq: TensorId, dk: TensorId, dv: TensorId, dbias: Option<TensorId> }
    attributes {
        /// Linear bias by distance.
        alibi_mask: bool,
        /// Mask by sequence lengths.
        padding_mask: bool,
        /// Deprecated: right bound 0, top left.
        causal_mask: bool,
        /// Deprecated: right bound 0, bottom right.
        causal_mask_bottom_right: bool,
        /// Share of weights that were dropped.
        dropout_probability: Option<f32>,
        /// Factor on q k^T.
        attn_scale_value: Option<f32>,
        /// Keys visible before the diagonal.
        left_bound: Option<i64>,
        /// Keys visible after the diagonal.
        right_bound: Option<i64>,
        /// Where the diagonal starts.
        diagonal_alignment: DiagonalAlignment,
    }
}

impl SdpaBackward {
    /// The gradients of q, k and v from q, k, v, o, do and the statistic, without a mask and with a scale of 1.
    #[must_use]
    pub const fn new([q, k, v, o, d_o, stats]: [TensorId; 6], [dq, dk, dv]: [TensorId; 3]) -> Self {
        SdpaBackward {
            q,
            k,
            v,
            o,
            d_o,
            stats,
            scale: None,
            attn_mask: None,
            seq_len_q: None,
            seq_len_kv: None,
            seed: None,
            offset: None,
            dropout_mask: None,
            dropout_scale: None,
            dropout_scale_inv: None,
            dq,
            dk,
            dv,
            dbias: None,
            alibi_mask: false,
            padding_mask: false,
            causal_mask: false,
            causal_mask_bottom_right: false,
            dropout_probability: None,
            attn_scale_value: None,
            left_bound: None,
            right_bound: None,
            diagonal_alignment: DiagonalAlignment::TopLeft,
        }
    }
}

operation! {
    /// y = x scale per block.
    BlockScaleDequantize
    reads { x: TensorId, scale: TensorId }
    writes { y: TensorId }
    attributes {
        /// Extents of a block over the trailing dimensions.
        block_size: Vec<i32>,
        /// Whether the scale is an exponent to be negated.
        is_negative_scale: bool,
    }
}

operation! {
    /// y, scale: x divided by a scale per block.
    BlockScaleQuantize
    reads { x: TensorId }
    writes { y: TensorId, scale: TensorId }
    attributes {
        /// Elements in a block.
        block_size: i32,
        /// The axis that is cut into blocks; the last if absent.
        axis: Option<i64>,
        /// Whether the output is transposed.
        transpose: bool,
    }
}

operation! {
    /// An operation that only the plugin that owns its id understands.
    CustomOp
    reads { inputs: Vec<TensorId> }
    writes { outputs: Vec<TensorId> }
    attributes {
        /// `plugin.op` by convention.
        custom_op_id: String,
        /// Whatever the owner put there.
        data: Vec<u8>,
    }
}

operation! {
    /// Combines the elements along every dimension whose output extent is 1.
    Reduction
    reads { input: TensorId }
    writes { output: TensorId }
    attributes {
        /// How elements are combined.
        mode: ReductionMode,
        /// Whether the order of combination must not vary.
        is_deterministic: bool,
    }
}

operation! {
    /// Pooling.
    ResampleFwd
    reads { x: TensorId }
    writes { y: TensorId, index: Option<TensorId> }
    attributes {
        /// Elements before the first.
        pre_padding: Vec<i64>,
        /// Elements after the last.
        post_padding: Vec<i64>,
        /// Distance between windows.
        stride: Vec<i64>,
        /// Extents of the window.
        window: Vec<i64>,
        /// What a window computes.
        resample_mode: ResampleMode,
        /// What a window reads outside.
        padding_mode: PaddingMode,
        /// Whether `index` is asked for.
        generate_index: bool,
    }
}

operation! {
    /// The gradient of pooling.
    ResampleBwd
    reads { dy: TensorId, index: Option<TensorId> }
    writes { dx: TensorId }
    attributes {
        /// Elements before the first.
        pre_padding: Vec<i64>,
        /// Elements after the last.
        post_padding: Vec<i64>,
        /// Distance between windows.
        stride: Vec<i64>,
        /// Extents of the window.
        window: Vec<i64>,
        /// What a window computed.
        resample_mode: ResampleMode,
        /// What a window read outside.
        padding_mode: PaddingMode,
    }
}

operation! {
    /// One matmul per expert over the rows of its tokens.
    MoeGroupedMatmul
    reads {
        token: TensorId, weight: TensorId, first_token_offset: TensorId, token_index: Option<TensorId>,
        token_ks: Option<TensorId>,
    }
    writes { output: TensorId }
    attributes {
        /// How rows are found.
        mode: MoeMode,
        /// Experts per token.
        top_k: i32,
    }
}

operation! {
    /// The gradient of a grouped matmul with respect to its weights.
    MoeGroupedMatmulBwd
    reads { doutput: TensorId, token: TensorId, first_token_offset: TensorId }
    writes { dweight: TensorId }
    attributes {}
}
