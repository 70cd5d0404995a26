//! Operations that only their owner understands.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

operation! {
    /// An operation that only the plugin that owns its id understands.
    CustomOp
    reads { inputs: Vec<TensorId> }
    writes { outputs: Vec<TensorId> }
    attributes {
        /// `plugin.op` by convention.
        custom_op_id: String,
        /// Whatever the owner put there.
        data: Vec<u8>,
    }
}
