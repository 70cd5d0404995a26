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
        /// Number of trailing dimensions that are normalized over.
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
        /// Number of trailing dimensions that are normalized over.
        normalized_dim_count: i64,
    }
}
