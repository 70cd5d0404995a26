//! The operations of hipDNN's schema: one struct each, with the tensors it reads, the tensors it
//! writes and its attributes.
//!
//! The `operations!` table below is the only list of them. Each family of operations has a file.
//! The macro `operation!` gives each struct its visitor over tensors, so validation, normalisation
//! and tools need no code per operation.

mod attention;
mod block_scale;
mod conv;
mod custom;
mod matmul;
mod norm;
mod reduction;
mod resample;

pub use attention::{AttentionImplementation, AttentionScores, DiagonalAlignment, Sdpa, SdpaBackward};
pub use block_scale::{BlockScaleDequantize, BlockScaleQuantize};
pub use conv::{ConvDgrad, ConvFprop, ConvGeometry, ConvMode, ConvWgrad};
pub use custom::CustomOp;
pub use matmul::{Matmul, MoeGroupedMatmul, MoeGroupedMatmulBwd, MoeMode};
pub use norm::{
    Batchnorm, BatchnormBackward, BatchnormInference, BatchnormInferenceVariance, Layernorm, LayernormBackward,
    NormPhase, RmsNorm, RmsNormBackward,
};
pub use reduction::{Reduction, ReductionMode};
pub use resample::{PaddingMode, ResampleBwd, ResampleFwd, ResampleMode};

use crate::pointwise::Pointwise;
use crate::tensor_id::TensorId;
use serde::{Deserialize, Serialize};

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

            /// Returns the operation's name for messages.
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

            /// Replaces every tensor by the result of `to` for it.
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

impl Op {
    /// Returns true if the results are sums over loops.
    pub fn is_sum(&self) -> bool {
        let is_attention = matches!(self, Self::Sdpa(_) | Self::SdpaBackward(_));
        matches!(self, Self::Reduction(_)) || self.contracts() && !is_attention
    }

    /// Returns true if the operation sums products of tensors.
    pub fn contracts(&self) -> bool {
        matches!(
            self,
            Self::ConvFprop(_)
                | Self::ConvDgrad(_)
                | Self::ConvWgrad(_)
                | Self::Matmul(_)
                | Self::MoeGroupedMatmul(_)
                | Self::MoeGroupedMatmulBwd(_)
                | Self::Sdpa(_)
                | Self::SdpaBackward(_)
        )
    }
}
