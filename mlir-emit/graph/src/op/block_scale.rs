//! Quantization with one scale per block.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

operation! {
    /// y = scale x, with one scale per block.
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
    /// y = x / scale, with one scale per block, which is an output too.
    BlockScaleQuantize
    reads { x: TensorId }
    writes { y: TensorId, scale: TensorId }
    attributes {
        /// Number of elements in a block.
        block_size: i32,
        /// The axis that is divided into blocks; the last axis if absent.
        axis: Option<i64>,
        /// Whether the output is transposed.
        transpose: bool,
    }
}
