//! Custom operations.

use crate::tensor_id::TensorId;
use crate::visit::operation;
use serde::{Deserialize, Serialize};

operation! {
    /// A custom operation: only the plugin that owns its id can interpret it.
    CustomOp
    reads { inputs: Vec<TensorId> }
    writes { outputs: Vec<TensorId> }
    attributes {
        /// `plugin.op` by convention.
        custom_op_id: String,
        /// Opaque data of the owner.
        data: Vec<u8>,
    }
}
