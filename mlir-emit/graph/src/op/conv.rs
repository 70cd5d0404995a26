//! Convolutions and their gradients.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

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
