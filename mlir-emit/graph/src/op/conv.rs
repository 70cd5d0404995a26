//! Convolutions and their gradients.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// Which of the two operations named convolution is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConvMode {
    /// The mathematical convolution: the filter is flipped.
    Convolution,
    /// The convolution of deep learning: the filter is not flipped.
    CrossCorrelation,
}

/// The geometry that the forward convolution and both gradients share: each list has one entry per
/// spatial dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConvGeometry {
    /// Zeros before the first element.
    pub pre_padding: Vec<i64>,
    /// Zeros after the last element.
    pub post_padding: Vec<i64>,
    /// Distance between the windows of two neighbouring outputs, in input elements.
    pub stride: Vec<i64>,
    /// Distance between two neighbouring filter taps, in input elements.
    pub dilation: Vec<i64>,
    /// Whether the filter is flipped.
    pub mode: ConvMode,
}

operation! {
    /// y\[n, k, o\] = sum over c, t of x\[n, c, o stride + t dilation - pre_padding\] w\[k, c, t\],
    /// per group of channels.
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
