//! Pooling and its gradient.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

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
