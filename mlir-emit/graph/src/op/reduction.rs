//! Reductions.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the schema's names, which say it all")]
pub enum ReductionMode {
    Add,
    Mul,
    Min,
    Max,
    Amax,
    Avg,
    Norm1,
    Norm2,
    MulNoZeros,
}

operation! {
    /// Combines the elements along every dimension whose output extent is 1.
    Reduction
    reads { input: TensorId }
    writes { output: TensorId }
    attributes {
        /// How elements are combined.
        mode: ReductionMode,
        /// Whether the order of combination must not vary.
        is_deterministic: bool,
    }
}
