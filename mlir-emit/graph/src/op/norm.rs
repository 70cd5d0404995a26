//! Normalizations and their gradients.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// Determines whether a normalization also saves its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NormPhase {
    /// Statistics are not saved.
    Inference,
    /// Statistics are saved.
    Training,
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
    /// Batch normalization by the statistics of the batch, which are saved; running statistics are
    /// updated.
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

impl Batchnorm {
    /// Returns a batch normalization that saves no statistics and updates none.
    #[must_use]
    pub const fn new([x, scale, bias, epsilon]: [TensorId; 4], y: TensorId) -> Self {
        Batchnorm {
            x,
            scale,
            bias,
            epsilon,
            peer_stats: Vec::new(),
            prev_running_mean: None,
            prev_running_variance: None,
            momentum: None,
            y,
            mean: None,
            inv_variance: None,
            next_running_mean: None,
            next_running_variance: None,
        }
    }
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

impl BatchnormBackward {
    /// Returns the gradients of a batch normalization without saved statistics.
    #[must_use]
    pub const fn new([dy, x, scale]: [TensorId; 3], [dx, dscale, dbias]: [TensorId; 3]) -> Self {
        BatchnormBackward {
            dy,
            x,
            mean: None,
            inv_variance: None,
            scale,
            peer_stats: Vec::new(),
            dx,
            dscale,
            dbias,
        }
    }
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

impl RmsNorm {
    /// Returns an RMSNorm without a bias, whose statistics are not saved.
    #[must_use]
    pub const fn new([x, scale, epsilon]: [TensorId; 3], y: TensorId) -> Self {
        RmsNorm {
            x,
            scale,
            epsilon,
            bias: None,
            y,
            inv_rms: None,
            phase: NormPhase::Inference,
        }
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
        /// Number of trailing dimensions that are normalized over.
        normalized_dim_count: i64,
        /// Whether the statistics are saved.
        phase: NormPhase,
    }
}

impl Layernorm {
    /// Returns a layernorm over the last `count` dimensions, whose statistics are not saved.
    #[must_use]
    pub const fn new([x, scale, bias, epsilon]: [TensorId; 4], y: TensorId, count: i64) -> Self {
        Layernorm {
            x,
            scale,
            bias,
            epsilon,
            y,
            mean: None,
            inv_variance: None,
            normalized_dim_count: count,
            phase: NormPhase::Inference,
        }
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
        /// Number of trailing dimensions that are normalized over.
        normalized_dim_count: i64,
    }
}

impl LayernormBackward {
    /// Returns the gradients of a layernorm over the last `count` dimensions, without saved
    /// statistics.
    #[must_use]
    pub const fn new([dy, x, scale]: [TensorId; 3], [dx, dscale, dbias]: [TensorId; 3], count: i64) -> Self {
        LayernormBackward {
            dy,
            x,
            scale,
            mean: None,
            inv_variance: None,
            epsilon: None,
            dx,
            dscale,
            dbias,
            normalized_dim_count: count,
        }
    }
}
