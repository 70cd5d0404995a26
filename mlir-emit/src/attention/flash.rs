//! The forward direction as IREE's operation `iree_linalg_ext.online_attention`. On AMD GPUs it is
//! one dispatch: tiles of scores stay in registers, and the partial sums are rescaled whenever a
//! larger score appears.
//!
//! IREE's operation computes with powers of 2: it scales q and the mask by log2(e), q in its own
//! type. The emitter passes a scale that makes q's factor 1, and scales the scores in f32 instead.
//! The operation rounds the exponentials to the type of v for the second product.
//!
//! Diagonal bounds become a mask that is computed from indices. The operation's own
//! `iree_linalg_ext.index` cannot express them: it counts from the beginning of each tile.

use super::axes::{HEAD, KEY, QUERY};
use super::online::{Online, Problem, online};
use super::scores::Attention;
use super::softmax::{Softmax, Weighted, asks_for_more};
use crate::convert::compute_type;
use crate::ir::FloatPredicate as F;
use crate::kernel::LEAST_OF_MASK;
use crate::lowering::Lowering;
use crate::quirks::Quirks;
use crate::step::{Shape, order_of};
use crate::target::Target;
use crate::value::{Data, Ordered, Value};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, NormalTensor, Op, Sdpa};

/// Returns the softmax and the weighted sum; `None` if IREE's operation lacks something that `op`
/// asks for, or is slower.
///
/// The operation is not used on CPUs: for 512 queries and keys of 64 columns it takes five times as
/// long as the stepwise form.
pub(super) fn softmax<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>, op: &Sdpa) -> Option<Softmax<'c>> {
    let Data::Constant(scale) = attention.scale.data else {
        return None;
    };
    if !is_possible(lowering, attention, op) {
        return None;
    }
    let Attention { q, k, v, .. } = attention;
    let order = match lowering.stored_order(op.o) {
        Some(order) => order,
        None => order_of(&lowering.tensor(op.o).dims, &[&Value::of(q.clone())]),
    };
    let problem = Problem {
        operands: [q, k, v],
        order: &order,
        scale: scale.to_f64(),
        mask: mask(lowering, attention),
    };
    let found = online(lowering, &problem);
    let Online {
        weighted,
        greatest,
        total,
    } = attention.found_again(lowering, found);
    let weighted = Weighted::Sum(weighted);
    Some(Softmax::of_online(lowering, weighted, &greatest, total))
}

/// Returns true if IREE's operation supports everything that `op` asks for.
pub(super) fn is_possible(lowering: &Lowering<'_, '_>, attention: &Attention<'_>, op: &Sdpa) -> bool {
    let Attention { q, k, v, mask, .. } = attention;
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    // The statistic of a row may be the score of a key whose mask was raised to `LEAST_OF_MASK`,
    // and would be wrong.
    let is_raised = op.stats.is_some() && mask.as_ref().is_some_and(|mask| mask.dtype != DataType::F16);
    matches!(attention.scale.data, Data::Constant(_))
        && !is_raised
        && covers(lowering.target(), lowering.quirks(), attention.compute, op, operands)
}

/// Returns true if IREE's operation supports this attention for q, k and v of these extents and
/// types, and lowers it to matrix instructions.
fn covers(target: &Target, quirks: Quirks, compute: DataType, op: &Sdpa, operands: [(&[i64], DataType); 3]) -> bool {
    let [
        (&[_, _, queries, d], dtype),
        (&[_, key_heads, keys, _], k),
        (&[_, value_heads, _, columns], v),
    ] = operands
    else {
        return false;
    };
    let is_float = matches!(dtype, DataType::F32 | DataType::F16 | DataType::Bf16);
    let widest = if dtype == DataType::F32 { 128 } else { 256 };
    matches!(target, Target::Rocm { .. })
        && is_float
        && compute == DataType::F32
        && [k, v] == [dtype; 2]
        && !asks_for_more(op)
        && key_heads == value_heads
        && quirks.tiles_attention([queries, keys], [d, columns], widest)
}

/// Returns true if the whole graph is one attention that IREE does not put into a single dispatch
/// by itself, because the elements of the mask are as wide as the scores. rotini's own kernels have
/// no such limit.
pub(crate) fn is_one_dispatch(graph: &NormalGraph, target: &Target, quirks: Quirks) -> bool {
    let [node] = graph.nodes() else { return false };
    let Op::Sdpa(op) = &node.op else { return false };
    let tensors = [op.q, op.k, op.v, op.o].map(|id| graph.tensor(id));
    let [Some(q), Some(k), Some(v), Some(o)] = tensors else {
        return false;
    };
    let mask = op.attn_mask.and_then(|id| graph.tensor(id));
    let order = |tensor: &NormalTensor| match Layout::of(&tensor.dims, &tensor.strides) {
        Layout::Dense { order } if order.len() == tensor.dims.len() => Some(order),
        _ => None,
    };
    let is_dense = [q, k, v, o]
        .into_iter()
        .chain(mask)
        .all(|tensor| order(tensor).is_some());
    let scale = op.scale.and_then(|id| graph.tensor(id));
    let has_constant_scale = scale.is_none_or(|scale| matches!(scale.kind, NormalKind::Constant(_)));
    // With bounds, results that are NaN because of hidden rows are computed again, in a separate
    // dispatch.
    let diagonal = super::axes::Diagonal::of(&op.scores());
    let is_bound = diagonal.left.is_some() || diagonal.right.is_some();
    let is_wide = mask.is_some_and(|mask| mask.dtype == DataType::F32);
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    is_dense
        && has_constant_scale
        && is_wide
        && !is_bound
        && op.stats.is_none()
        && q.dims.get(HEAD) == k.dims.get(HEAD)
        && compute_type(node.compute).is_some_and(|compute| covers(target, quirks, compute, op, operands))
}

/// Returns the mask that is added to the scores, in f32: the additive mask, and -∞ where bounds
/// hide a key. It spans all queries and keys, and batches or heads only if the additive mask
/// differs among them. It is fused with the scores.
fn mask<'c>(lowering: &Lowering<'_, 'c>, attention: &Attention<'c>) -> Option<Ordered<'c>> {
    let Attention {
        mask, dims, diagonal, ..
    } = attention;
    if mask.is_none() && diagonal.left.is_none() && diagonal.right.is_none() {
        return None;
    }
    let differ = |axis: usize| {
        mask.as_ref().is_some_and(|mask| {
            let missing = dims.len().saturating_sub(mask.dims.len());
            let own = axis.checked_sub(missing).and_then(|axis| mask.dims.get(axis));
            own.is_some_and(|own| *own > 1)
        })
    };
    let order: Vec<usize> = [0, HEAD]
        .into_iter()
        .filter(|&axis| differ(axis))
        .chain([QUERY, KEY])
        .collect();
    let mut own = dims.clone();
    for axis in [0, HEAD] {
        if let (false, Some(dim)) = (order.contains(&axis), own.get_mut(axis)) {
            *dim = 1;
        }
    }
    let shape = Shape::new(&own, &order, DataType::F32);
    let operands: Vec<_> = mask.iter().collect();
    Some(lowering.map(&operands, &shape, DataType::F32, |math, elements| {
        let Some(&element) = elements.first() else {
            return attention.hidden(math, math.constant(0.0), None);
        };
        let least = math.constant(LEAST_OF_MASK);
        let is_low = math.compare(F::Less, element, least);
        let raised = is_low.select(least, element);
        let hides = math.compare(F::Equal, element, math.constant(f64::NEG_INFINITY));
        attention.hidden(math, hides.select(element, raised), None)
    }))
}
