//! Scaled dot-product attention, forward and backward, one row of scores after the other.
//!
//! Where nothing else is said, hipDNN's reference (`CpuFpReferenceSdpa.hpp`) says what is computed.

mod backward;
mod forward;
mod scores;

pub(crate) use backward::sdpa_backward;
pub(crate) use forward::sdpa;
pub(crate) use scores::{Sight, sight};
