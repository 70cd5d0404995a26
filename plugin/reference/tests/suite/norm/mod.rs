//! Batch, layer and RMS normalization.

mod bounds;
mod by_hand;
pub(crate) mod gradients;
mod graphs;
