//! The forward direction as IREE's operation `iree_linalg_ext.online_attention`. On AMD GPUs it is one dispatch: tiles of scores stay in
//! registers, and the sums so far are scaled whenever a larger score appears.
//!
//! IREE's operation computes with powers of 2: it scales q and the mask by log2(e), q in its own type. The emitter passes a scale that
//! makes q's factor 1, and scales the scores in f32 instead. The operation rounds the exponentials to the type of v for the second product.
//!
//! Bounds are a mask that is computed from indices. The operation's own `iree_linalg_ext.index` does not help: it counts from the beginning
//! of each tile.

use super::online::{FLAT, NATURAL, Online, Problem, flattened, online, unflattened};
use super::scores::Attention;
use super::softmax::{Softmax, Weighted, asks_for_more, divided};
use super::told::{HEAD, KEY, QUERY};
use crate::EmitError;
use crate::contract::half;
use crate::convert::{FloatPredicate as F, compute_type};
use crate::lowering::Lowering;
use crate::quirks::{Quirk, Quirks};
use crate::step::{Shape, order_of};
use crate::target::Target;
use crate::value::{Data, Ordered, Value};
use rotini_graph::{DataType, Layout, NormalGraph, NormalKind, NormalTensor, Op, Sdpa};
use rotini_schedule::attention::Cut;

/// The least finite value of a mask: less would be -∞ once it is multiplied by log2(e), and hide a key.
const LEAST: f64 = -2e38;

/// Rows and columns of the smallest matrix that an instruction multiplies.
const TILE: i64 = 16;

/// Softmax and weighted sum; `None` where IREE's operation does not have all that is asked for, or is not the better form.
///
/// On CPUs it is not: it takes five times as long as the steps for 512 queries and keys of 64 columns.
pub(super) fn softmax<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
    op: &Sdpa,
) -> Result<Option<Softmax<'c, 'b>>, EmitError> {
    let Data::Constant(scale) = attention.scale.data else {
        return Ok(None);
    };
    if !is_possible(lowering, attention, op) {
        return Ok(None);
    }
    let Attention { q, k, v, .. } = attention;
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    let out = lowering.tensor(op.o)?;
    let order = match lowering.stored_order(op.o) {
        Some(order) => order,
        None => order_of(&out.dims, &[&Value::of(attention.q.clone())]),
    };
    let mask = mask(lowering, attention)?;
    let is_natural = [&q.order, &k.order, &v.order, &order]
        .iter()
        .all(|order| **order == NATURAL);
    let is_shared = mask.as_ref().is_none_or(|mask| mask.order == [QUERY, KEY]);
    let cut = cut(lowering.target(), attention.compute, operands).filter(|_| is_natural && is_shared);
    let at = lowering.emitter();
    let (factors, order) = match cut {
        Some(_) => (
            [flattened(&at, q)?, flattened(&at, k)?, flattened(&at, v)?],
            FLAT.to_vec(),
        ),
        None => ([q.clone(), k.clone(), v.clone()], order),
    };
    let Online {
        weighted,
        greatest,
        total,
    } = online(
        lowering,
        &Problem {
            operands: factors,
            order: &order,
            scale: scale.to_f64(),
            mask,
            cut,
        },
    )?;
    let (weighted, greatest, total) = match cut {
        None => (Weighted::Sum(weighted), greatest, total),
        Some(_) => {
            let shape = Shape {
                dims: &weighted.dims,
                order: &FLAT,
                dtype: if lowering.is_read(op.o) {
                    lowering.carried_type(op.o, DataType::F32)?
                } else {
                    // The barrier would keep the rounding out of the dispatch.
                    out.dtype
                },
            };
            let quotient = lowering.map(&[&weighted, &total], &shape, DataType::F32, divided)?;
            let rows = attention.rows();
            let back = |value, dims| unflattened(&at, value, dims);
            (
                Weighted::Quotient(back(Value::of(quotient), &out.dims)?),
                back(greatest, &rows)?,
                back(total, &rows)?,
            )
        }
    };
    Softmax::of_online(lowering, weighted, &greatest, total).map(Some)
}

/// Whether IREE's operation has all that is asked for.
pub(super) fn is_possible(lowering: &Lowering<'_, '_, '_>, attention: &Attention<'_, '_>, op: &Sdpa) -> bool {
    let Attention { q, k, v, mask, .. } = attention;
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    // A statistic may be that of a key that `LEAST` has raised.
    let is_raised = op.stats.is_some() && mask.as_ref().is_some_and(|mask| mask.dtype != DataType::F16);
    matches!(attention.scale.data, Data::Constant(_))
        && !is_raised
        && covers(lowering.target(), lowering.quirks(), attention.compute, op, operands)
}

/// How the operation is cut, if not as the compiler does, for q, k and v with these extents and types.
fn cut(target: &Target, compute: DataType, [q, k, v]: [(&[i64], DataType); 3]) -> Option<Cut> {
    half([k.1, v.1], compute)?;
    let size = |dims: &[i64], axis: usize| dims.get(axis).and_then(|&dim| u64::try_from(dim).ok());
    // The compiler would drop a loop of one step.
    if size(k.0, 0)?.saturating_mul(size(k.0, HEAD)?) < 2 {
        return None;
    }
    let batches = size(q.0, 0)?.saturating_mul(size(q.0, HEAD)?);
    let lengths = [size(q.0, QUERY)?, size(k.0, QUERY)?];
    let columns = [size(k.0, KEY)?, size(v.0, KEY)?];
    rotini_schedule::attention::cut(target.machine()?, batches, lengths, columns)
}

/// Whether IREE's operation has all that is asked for of q, k and v with these extents and types, and makes matrix instructions of it.
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
    let avoids = quirks.avoids(Quirk::UntiledAttention);
    let fits = |columns: i64| !avoids || (TILE..=widest).contains(&columns) && columns & (columns - 1) == 0;
    matches!(target, Target::Rocm { .. })
        && is_float
        && compute == DataType::F32
        && [k, v] == [dtype; 2]
        && !asks_for_more(op)
        && key_heads == value_heads
        && [queries, keys].iter().all(|length| !avoids || length % TILE == 0)
        && [d, columns].into_iter().all(fits)
}

/// Whether the whole graph is an attention in one dispatch that IREE does not form by itself, because the mask is made of indices or of
/// elements as wide as scores. What is cut as a schedule says is behind barriers, which a dispatch cannot have inside.
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
    let is_natural = [q, k, v, o]
        .into_iter()
        .all(|tensor| order(tensor).is_some_and(|order| order == NATURAL));
    let is_shared = mask.is_none_or(|mask| mask.dims.iter().rev().skip(2).all(|&dim| dim == 1));
    let scale = op.scale.and_then(|id| graph.tensor(id));
    let has_constant_scale = scale.is_none_or(|scale| matches!(scale.kind, NormalKind::Constant(_)));
    let diagonal = super::told::scores_of!(op).diagonal();
    let is_bound = diagonal.left.is_some() || diagonal.right.is_some();
    let is_wide = mask.is_some_and(|mask| mask.dtype == DataType::F32);
    let operands = [q, k, v].map(|tensor| (tensor.dims.as_slice(), tensor.dtype));
    is_dense
        && has_constant_scale
        && (is_bound || is_wide)
        && op.stats.is_none()
        && q.dims.get(HEAD) == k.dims.get(HEAD)
        && compute_type(node.compute).is_some_and(|compute| {
            covers(target, quirks, compute, op, operands)
                && !(is_natural && is_shared && cut(target, compute, operands).is_some())
        })
}

/// What is added to scores, in f32: the additive mask, and -∞ where bounds hide a key. It has all queries and keys, and batches and
/// heads if they differ. It is computed where the scores are.
fn mask<'c, 'b>(
    lowering: &Lowering<'_, 'c, 'b>,
    attention: &Attention<'c, 'b>,
) -> Result<Option<Ordered<'c, 'b>>, EmitError> {
    let Attention {
        mask, dims, diagonal, ..
    } = attention;
    if mask.is_none() && diagonal.left.is_none() && diagonal.right.is_none() {
        return Ok(None);
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
    let shape = Shape {
        dims: &own,
        order: &order,
        dtype: DataType::F32,
    };
    let operands: Vec<_> = mask.iter().collect();
    lowering
        .map(&operands, &shape, DataType::F32, |math, elements| {
            let Some(&element) = elements.first() else {
                return attention.hidden(math, math.constant(0.0)?, None);
            };
            let least = math.constant(LEAST)?;
            let is_low = math.compare(F::Less, element, least)?;
            let raised = math.select(is_low, least, element)?;
            let hides = math.compare(F::Equal, element, math.constant(f64::NEG_INFINITY)?)?;
            attention.hidden(math, math.select(hides, element, raised)?, None)
        })
        .map(Some)
}
