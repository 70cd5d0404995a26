//! The operation graph that all other parts of rotini work on.
//!
//! # Meaning
//!
//! A [`Graph`] is a set of [`Tensor`]s and a list of [`Node`]s. A node reads tensors and defines
//! others; every tensor is defined by at most one node. A tensor that no node defines is an input
//! (a caller's buffer, or a [`Scalar`] stored in the graph). A tensor that a node defines is either
//! *virtual* (it exists only between nodes) or an output, stored in a caller's buffer. Dimensions
//! are logical (N, C, then spatial); the strides alone define the memory order.
//!
//! Each node computes in its compute type. Values stay in that type from node to node and are
//! rounded once, when a tensor is stored. An integer type of a virtual tensor is converted to
//! nevertheless, because there the conversion changes the value's meaning.
//!
//! # What flows through
//!
//! `wire` decodes bytes into a [`Graph`]; [`validate`](Graph::validate) proves the graph well
//! formed and orders its nodes; [`normalise`](Graph::normalise) strips everything that does not
//! change the result (names, uids, ids, strides of unit dimensions, order of tensors) and returns a
//! [`NormalGraph`] with its [`Bindings`] from uids to slots. The normal graph's
//! [`canonical_bytes`](NormalGraph::canonical_bytes) identify a compiled kernel.

mod builder;
mod dtype;
mod error;
mod infer;
mod layout;
mod normal;
mod op;
mod overrides;
mod pointwise;
mod shapes;
mod tensor;
mod tensor_id;
mod validate;
mod visit;

pub use builder::{GraphBuilder, packed_strides};
pub use dtype::{DataType, Scalar, Storage};
pub use error::GraphError;
pub use infer::{broadcast_dims, conv_output_extent, rms_normalized_axis};
pub use layout::{Layout, element_span};
pub use normal::{Bindings, NormalGraph, NormalKind, NormalNode, NormalTensor, SlotRole};
pub use op::{
    AttentionImplementation, AttentionScores, Batchnorm, BatchnormBackward, BatchnormInference,
    BatchnormInferenceVariance, BlockScaleDequantize, BlockScaleQuantize, ConvDgrad, ConvFprop, ConvGeometry, ConvMode,
    ConvWgrad, CustomOp, DiagonalAlignment, Layernorm, LayernormBackward, Matmul, MoeGroupedMatmul,
    MoeGroupedMatmulBwd, MoeMode, NormPhase, Op, PaddingMode, Reduction, ReductionMode, ResampleBwd, ResampleFwd,
    ResampleMode, RmsNorm, RmsNormBackward, Sdpa, SdpaBackward,
};
pub use overrides::{OverrideError, ShapeOverride};
pub use pointwise::{Pointwise, PointwiseMode, PointwiseParameter};
pub use tensor::{Graph, Node, Tensor, TensorKind};
pub use tensor_id::TensorId;

/// The largest rank of a tensor. hipDNN's operations stop at 5 (NCDHW); MoE and block scaling add
/// batch dimensions.
pub const MAX_RANK: usize = 8;

/// The largest number of tensors or nodes in one graph. Real graphs have tens; the limit keeps work
/// on hostile input small.
pub const MAX_GRAPH_SIZE: usize = 4096;
