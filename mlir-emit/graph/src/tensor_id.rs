//! References from operations to tensors.

use serde::{Deserialize, Serialize};

/// The position of a tensor in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TensorId(pub u32);

impl TensorId {
    /// Returns the position as an index into [`Graph::tensors`](crate::Graph::tensors).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
