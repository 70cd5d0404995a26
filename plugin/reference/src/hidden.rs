//! Fills the elements that no result of an attention may depend on with NaN and infinities: rows of
//! q and of the other per-query tensors, rows of k and v, and elements of a mask, if sequence
//! lengths and bounds hide them from every query.
//!
//! Key-value caches are allocated for the longest sequence, and the memory behind a sequence's end
//! holds stale bytes.

use crate::ReferenceError;
use crate::attention::{Sight, sight};
use crate::element::{Codec, Number};
use crate::tensors::{Buffers, inputs_and_outputs, tensor_of};
use crate::walk::{Offsets, broadcast_strides, extents};
use rotini_graph::{Graph, Op, TensorId, TensorKind};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The relation of an operand's elements to queries and keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// One row per query.
    Query,
    /// One row per key.
    Key,
    /// One element per score, perhaps broadcast.
    Score,
}

/// Fills the hidden elements of every tensor that only attention reads.
///
/// # Errors
///
/// If a graph is not validated, or a buffer is missing.
pub(crate) fn hide(graph: &Graph, buffers: &mut Buffers) -> Result<(), ReferenceError> {
    let (inputs, _) = inputs_and_outputs(graph);
    for (id, readers) in readers(graph, buffers)? {
        let tensor = tensor_of(graph, id)?;
        let is_filled = tensor.kind == TensorKind::Buffer && tensor.dtype.is_float() && inputs.contains(&id);
        let Some(bytes) = buffers.get_mut(&tensor.uid).filter(|_| is_filled) else {
            continue;
        };
        let Some(seen) = seen(&extents(&tensor.dims)?, &readers)? else {
            continue;
        };
        // With stride 0, a visible and a hidden element may share memory.
        let span = Offsets::of(tensor)?.max().map_or(0, |last| last + 1);
        let mut is_kept = vec![false; span];
        for (offset, &is_seen) in Offsets::of(tensor)?.zip(&seen) {
            is_kept[offset] |= is_seen;
        }
        let codec = Codec::of(tensor.dtype);
        let poisons = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().cycle();
        for (offset, poison) in Offsets::of(tensor)?.zip(poisons) {
            if !is_kept[offset] {
                codec.store_at(Number::Float(poison), bytes, offset);
            }
        }
    }
    Ok(())
}

/// What reads a tensor, and which queries and keys it sees.
type Readers = Vec<(Role, Rc<Sight>)>;

/// Returns the readers of each tensor that may have hidden elements: attentions that hide some keys
/// or queries are its only readers.
fn readers(graph: &Graph, buffers: &Buffers) -> Result<BTreeMap<TensorId, Readers>, ReferenceError> {
    let mut readers: BTreeMap<TensorId, Option<Readers>> = BTreeMap::new();
    for node in &graph.nodes {
        let roles = roles(&node.op);
        let sight = sight(graph, &node.op, buffers)?.filter(|sight| !sight.is_full());
        let sight = sight.map(Rc::new);
        node.op.for_each_input(&mut |_, id| {
            let role = roles.iter().find(|(own, _)| *own == id);
            let reader = role.zip(sight.as_ref());
            match (readers.entry(id).or_insert_with(|| Some(Vec::new())), reader) {
                (Some(readers), Some(((_, role), sight))) => readers.push((*role, Rc::clone(sight))),
                (readers, _) => *readers = None,
            }
        });
    }
    let only_attention = readers.into_iter().filter_map(|(id, readers)| Some((id, readers?)));
    Ok(only_attention.collect())
}

/// Returns the operands that may have hidden elements.
fn roles(op: &Op) -> Vec<(TensorId, Role)> {
    let (mut roles, mask) = match op {
        Op::Sdpa(op) => (
            vec![(op.q, Role::Query), (op.k, Role::Key), (op.v, Role::Key)],
            op.attn_mask,
        ),
        Op::SdpaBackward(op) => {
            let queries = [op.q, op.o, op.d_o, op.stats].map(|id| (id, Role::Query));
            let mut roles = queries.to_vec();
            roles.extend([op.k, op.v].map(|id| (id, Role::Key)));
            (roles, op.attn_mask)
        }
        _ => return Vec::new(),
    };
    roles.extend(mask.map(|mask| (mask, Role::Score)));
    // A tensor with two roles is read as a whole.
    let ids: Vec<TensorId> = roles.iter().map(|(id, _)| *id).collect();
    roles.retain(|(id, _)| ids.iter().filter(|other| *other == id).count() == 1);
    roles
}

/// Returns for each element of an array, in logical order, whether a reader's query sees it; `None`
/// if the dims do not tell rows of queries or keys apart.
fn seen(dims: &[usize], readers: &Readers) -> Result<Option<Vec<bool>>, ReferenceError> {
    let mut seen = vec![false; dims.iter().product()];
    for (role, sight) in readers {
        if *role == Role::Score {
            see_scores(&mut seen, dims, sight)?;
        } else if !see_rows(&mut seen, dims, *role, sight) {
            return Ok(None);
        }
    }
    Ok(Some(seen))
}

/// Marks the elements of a mask that belong to visible scores.
///
/// # Errors
///
/// If the mask does not broadcast to the scores.
fn see_scores(seen: &mut [bool], dims: &[usize], sight: &Sight) -> Result<(), ReferenceError> {
    let scores = [sight.batch, sight.heads, sight.queries, sight.keys];
    let strides = broadcast_strides(dims, &scores)?;
    // All heads see the same.
    let heads = if strides[1] == 0 { 1 } else { sight.heads };
    for (batch, head) in (0..sight.batch).flat_map(|batch| (0..heads).map(move |head| (batch, head))) {
        for query in 0..sight.queries {
            let first = batch * strides[0] + head * strides[1] + query * strides[2];
            for key in sight.keys_of(batch, query) {
                seen[first + key * strides[3]] = true;
            }
        }
    }
    Ok(())
}

/// Marks the rows of queries that see a key, or of keys that a query sees. Returns false if the
/// dims have no such rows.
fn see_rows(seen: &mut [bool], dims: &[usize], role: Role, sight: &Sight) -> bool {
    let extent = if role == Role::Query { sight.queries } else { sight.keys };
    let &[batch, heads, rows, columns] = dims else {
        return false;
    };
    if batch != sight.batch || rows != extent {
        return false;
    }
    for batch in 0..batch {
        let mut is_visible = vec![false; rows];
        // Later queries usually see later keys, so most of an interval is marked already.
        let mut marked = 0..0;
        for query in 0..sight.queries {
            let keys = sight.keys_of(batch, query);
            if role == Role::Query {
                is_visible[query] = !keys.is_empty();
            } else if keys.start < marked.start || keys.start > marked.end {
                is_visible[keys.clone()].fill(true);
                marked = keys;
            } else if keys.end > marked.end {
                is_visible[marked.end..keys.end].fill(true);
                marked.end = keys.end;
            }
        }
        for (head, row) in (0..heads).flat_map(|head| (0..rows).map(move |row| (head, row))) {
            if is_visible[row] {
                let first = ((batch * heads + head) * rows + row) * columns;
                seen[first..first + columns].fill(true);
            }
        }
    }
    true
}
