//! Scaled dot-product attention, forward and backward, computed one row of scores at a time.
//!
//! Unless stated otherwise, the semantics are those of hipDNN's reference
//! (`CpuFpReferenceSdpa.hpp`).

mod backward;
mod forward;
mod scores;

pub(crate) use backward::sdpa_backward;
pub(crate) use forward::sdpa;
pub(crate) use scores::{Sight, sight};
