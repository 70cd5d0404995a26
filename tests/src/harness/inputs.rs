//! The default inputs of a case.

use anyhow::Result;
use rotini_graph::Graph;
use rotini_reference::{Buffers, fill_all, fill_around};

/// Seed of the buffers' elements.
pub(super) const SEED: u64 = 7;

/// Fills a graph's inputs and outputs, as the harness does.
///
/// # Errors
///
/// For types that the reference does not have.
pub fn fill(graph: &Graph) -> Result<Buffers> {
    Ok(fill_all(graph, SEED)?)
}

/// Fills a graph's buffers as [`fill`] does, except for the given ones, such as lengths.
pub(crate) fn fill_with_given(graph: &Graph, given: Buffers) -> Result<Buffers> {
    Ok(fill_around(graph, SEED, given)?)
}
