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
use std::collections::{HashMap, HashSet};

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
    // The logical positions of the visible elements; `None` if all are visible.
    let mut seen: HashMap<TensorId, Option<HashSet<usize>>> = HashMap::new();
    for node in &graph.nodes {
        let roles = roles(&node.op);
        let sight = sight(graph, &node.op, buffers)?;
        let mut all = Vec::new();
        node.op.for_each_input(&mut |_, id| all.push(id));
        for id in all {
            let role = roles.iter().find(|(own, _)| *own == id);
            let own = match (role, &sight) {
                (Some((_, role)), Some(sight)) => numbers(graph, id, *role, sight)?,
                _ => None,
            };
            match (seen.entry(id).or_insert_with(|| Some(HashSet::new())), own) {
                (Some(seen), Some(own)) => seen.extend(own),
                (seen, _) => *seen = None,
            }
        }
    }
    for (id, seen) in seen {
        let tensor = tensor_of(graph, id)?;
        let (Some(seen), true) = (seen, inputs.contains(&id)) else {
            continue;
        };
        let Some(bytes) = buffers.get_mut(&tensor.uid) else {
            continue;
        };
        if tensor.kind != TensorKind::Buffer || !tensor.dtype.is_float() {
            continue;
        }
        let codec = Codec::of(tensor.dtype);
        // With stride 0, a visible and a hidden element may share memory.
        let mut kept = HashSet::new();
        for (number, offset) in Offsets::of(tensor)?.enumerate() {
            if seen.contains(&number) {
                kept.insert(offset);
            }
        }
        for (number, offset) in Offsets::of(tensor)?.enumerate() {
            if !kept.contains(&offset) {
                let poison = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
                let poison = poison.get(number % 3).copied().unwrap_or(f64::NAN);
                codec.store_at(Number::Float(poison), bytes, offset);
            }
        }
    }
    Ok(())
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

/// Returns the logical positions of the elements that some query sees; `None` if the dims do not
/// tell rows of queries or keys apart.
fn numbers(graph: &Graph, id: TensorId, role: Role, sight: &Sight) -> Result<Option<HashSet<usize>>, ReferenceError> {
    let dims = extents(&tensor_of(graph, id)?.dims)?;
    let Sight {
        batch,
        heads,
        queries,
        keys,
        ..
    } = *sight;
    let pairs = |batch: usize| {
        let pairs = (0..queries).flat_map(move |query| (0..keys).map(move |key| (query, key)));
        pairs.filter(move |&(query, key)| sight.sees(batch, query, key))
    };
    if role == Role::Score {
        let scores = [batch, heads, queries, keys];
        let strides = broadcast_strides(&dims, &scores)?;
        let mut seen = HashSet::new();
        let mut offsets = Offsets::new(&scores, &strides);
        for batch in 0..batch {
            for _ in 0..heads {
                for (query, key) in (0..queries).flat_map(|query| (0..keys).map(move |key| (query, key))) {
                    let offset = offsets.next();
                    if sight.sees(batch, query, key) {
                        seen.extend(offset);
                    }
                }
            }
        }
        return Ok(Some(seen));
    }
    let &[own_batch, own_heads, rows, columns] = dims.as_slice() else {
        return Ok(None);
    };
    if own_batch != batch || rows != if role == Role::Query { queries } else { keys } {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    for batch in 0..batch {
        let own: HashSet<usize> = pairs(batch)
            .map(|(query, key)| if role == Role::Query { query } else { key })
            .collect();
        for (head, row) in (0..own_heads).flat_map(|head| own.iter().map(move |&row| (head, row))) {
            let first = ((batch * own_heads + head) * rows + row) * columns;
            seen.extend(first..first + columns);
        }
    }
    Ok(Some(seen))
}
