//! What a case is executed on, unless it brings buffers of its own.

use anyhow::Result;
use rotini_graph::Graph;
use rotini_reference::{Buffers, fill_all, fill_around};

/// The seed of the buffers.
pub(super) const SEED: u64 = 7;

/// Fills what a graph reads and writes, as the harness does.
///
/// # Errors
///
/// For types that the reference does not have.
pub fn fill(graph: &Graph) -> Result<Buffers> {
    Ok(fill_all(graph, SEED)?)
}

/// The same around some buffers that are given, such as those of lengths.
pub(crate) fn fill_with_given(graph: &Graph, given: Buffers) -> Result<Buffers> {
    Ok(fill_around(graph, SEED, given)?)
}
