//! Matrix products: plain, and one per expert.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// Selection of the rows of a grouped matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum MoeMode {
    None,
    Gather,
    Scatter,
}

operation! {
    /// c = a b over the last two dimensions.
    Matmul
    reads { a: TensorId, b: TensorId }
    writes { c: TensorId }
    attributes {}
}

operation! {
    /// One matmul per expert over the rows of that expert's tokens.
    MoeGroupedMatmul
    reads {
        token: TensorId, weight: TensorId, first_token_offset: TensorId, token_index: Option<TensorId>,
        token_ks: Option<TensorId>,
    }
    writes { output: TensorId }
    attributes {
        /// Selection of the rows.
        mode: MoeMode,
        /// Number of experts per token.
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
