//! What a graph costs, as far as it can be told without compiling it.

use crate::EmitError;
use crate::target::{ConvStrategy, Target};
use rotini_graph::{ConvFprop, NormalGraph, Op};

/// The compiler aligns each buffer inside the workspace to at most this many bytes.
const SLACK: u64 = 4096;

/// How many element-wise operations and multiplications one execution does, roughly.
#[must_use]
pub fn operations(graph: &NormalGraph) -> u64 {
    let mut total: u64 = 0;
    for node in graph.nodes() {
        let mut elements: u64 = 0;
        node.op.for_each_output(&mut |_, id| {
            elements = elements.saturating_add(graph.tensor(id).map_or(0, |tensor| count(&tensor.dims)));
        });
        let per_element = match &node.op {
            Op::ConvFprop(conv) => {
                let filter = graph
                    .tensor(conv.w)
                    .map_or(1, |filter| count(filter.dims.get(1..).unwrap_or_default()));
                filter.saturating_add(1)
            }
            _ => 1,
        };
        total = total.saturating_add(elements.saturating_mul(per_element));
    }
    total
}

/// An upper bound of the workspace, in bytes, that the compiled graph will need.
///
/// Counts every tensor that the lowering could make the compiler keep: one for the value of each tensor in its widest form, one more for
/// a copy in another order, and what a convolution needs on the way (padding, patches).
///
/// # Errors
///
/// If the sizes overflow.
pub fn workspace_bound(graph: &NormalGraph, target: &Target) -> Result<u64, EmitError> {
    let overflow = || EmitError::Internal("a workspace that overflows");
    // Values are kept in compute types, of which the widest has 8 bytes.
    let kept = |elements: u64| {
        elements
            .checked_mul(8 * 2)
            .and_then(|bytes| bytes.checked_add(2 * SLACK))
    };
    let mut total: u64 = 0;
    for tensor in graph.tensors() {
        total = kept(count(&tensor.dims))
            .and_then(|bytes| total.checked_add(bytes))
            .ok_or_else(overflow)?;
    }
    for node in graph.nodes() {
        if let Op::ConvFprop(conv) = &node.op {
            let elements = conv_elements(graph, conv, target).ok_or_else(overflow)?;
            total = kept(elements)
                .and_then(|bytes| total.checked_add(bytes))
                .ok_or_else(overflow)?;
        }
    }
    Ok(total)
}

/// Elements of the padded input and, in the form of a matmul, of the matrix of patches.
fn conv_elements(graph: &NormalGraph, conv: &ConvFprop, target: &Target) -> Option<u64> {
    let (x, w, y) = (graph.tensor(conv.x)?, graph.tensor(conv.w)?, graph.tensor(conv.y)?);
    let mut padded: u64 = count(x.dims.get(..2)?);
    let padding = conv.geometry.pre_padding.iter().zip(&conv.geometry.post_padding);
    for (extent, (pre, post)) in x.dims.get(2..)?.iter().zip(padding) {
        let extent = extent.checked_add(*pre)?.checked_add(*post)?;
        padded = padded.checked_mul(u64::try_from(extent).ok()?)?;
    }
    let patches = match target.conv_strategy() {
        ConvStrategy::Direct => 0,
        ConvStrategy::Staged => {
            let positions = count(y.dims.get(2..)?).checked_mul(u64::try_from(*x.dims.first()?).ok()?)?;
            let window = count(w.dims.get(2..)?).checked_mul(u64::try_from(*x.dims.get(1)?).ok()?)?;
            positions.checked_mul(window)?
        }
    };
    padded.checked_add(patches)?.checked_add(count(&w.dims))
}

fn count(dims: &[i64]) -> u64 {
    dims.iter().fold(1, |product, &dim| {
        product.saturating_mul(u64::try_from(dim).unwrap_or(0))
    })
}
