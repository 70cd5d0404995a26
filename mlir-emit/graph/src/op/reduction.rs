//! Reductions.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

/// The operation by which a reduction combines elements.
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
        /// Operation that combines elements.
        mode: ReductionMode,
        /// Whether the order in which elements are combined must not vary between executions.
        is_deterministic: bool,
    }
}

impl Reduction {
    /// Returns a reduction that may combine elements in any order.
    #[must_use]
    pub const fn new(mode: ReductionMode, input: TensorId, output: TensorId) -> Self {
        Reduction {
            input,
            output,
            mode,
            is_deterministic: false,
        }
    }
}
