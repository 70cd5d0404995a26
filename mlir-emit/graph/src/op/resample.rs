//! Pooling and its gradient.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// The function that a pooling window computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum ResampleMode {
    Maxpool,
    AvgpoolExcludePadding,
    AvgpoolIncludePadding,
}

/// The value that a pooling window reads outside its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum PaddingMode {
    NotSet,
    NegInf,
    Zero,
}

operation! {
    /// Pooling.
    ResampleFwd
    reads { x: TensorId }
    writes { y: TensorId, index: Option<TensorId> }
    attributes {
        /// Padding elements before the first element.
        pre_padding: Vec<i64>,
        /// Padding elements after the last element.
        post_padding: Vec<i64>,
        /// Distance between neighbouring windows, in input elements.
        stride: Vec<i64>,
        /// Extents of the window.
        window: Vec<i64>,
        /// The function that a window computes.
        resample_mode: ResampleMode,
        /// The value that a window reads outside the input.
        padding_mode: PaddingMode,
        /// Whether `index` is requested.
        generate_index: bool,
    }
}

operation! {
    /// The gradient of pooling.
    ResampleBwd
    reads { dy: TensorId, index: Option<TensorId> }
    writes { dx: TensorId }
    attributes {
        /// Padding elements before the first element.
        pre_padding: Vec<i64>,
        /// Padding elements after the last element.
        post_padding: Vec<i64>,
        /// Distance between neighbouring windows, in input elements.
        stride: Vec<i64>,
        /// Extents of the window.
        window: Vec<i64>,
        /// The function that a window of the forward operation computed.
        resample_mode: ResampleMode,
        /// The value that a window of the forward operation read outside the input.
        padding_mode: PaddingMode,
    }
}
